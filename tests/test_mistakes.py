"""Mistakes in the commands of all scripts, and in every field: one line says each."""

import importlib
import math
import re
from collections import Counter

import pytest

from common.errors import UserError
from models import variants
from tests.conftest import ROOT
from tests.runs import untrained
from tests.scripts import listops_config, script, train_arguments
from training import config as configuration

HUGE = 2**31 - 1
SMALLEST = ("--table=3", "--scale=smoke")


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A run, and what stands where a folder should be."""
    folder = tmp_path_factory.mktemp("mistakes")
    untrained(listops_config(folder / "cache"), folder / "run")
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "nowhere").symlink_to(folder / "missing" / "folder")
    (folder / "file").write_text("not a folder")
    return folder


def not_folders(folder):
    names = ("loop", "nowhere", "file", "file/below", "loop/below")
    return [*(folder / name for name in names), "/dev/null", "/proc/none", "", "x://y"]


def commands(folder):
    """Those that no script can do what they ask for, without --strategy and --tpu."""
    run = f"--workdir={folder / 'run'}"
    for path in not_folders(folder):
        yield "train.py", *train_arguments(path, folder / "cache")
        yield "evaluate.py", f"--workdir={path}"
        if path != folder / "nowhere":  # an export makes what the link leads to
            yield "export.py", run, f"--output={path}"
        yield "export.py", f"--workdir={path}", f"--output={folder / 'export'}"
        yield "benchmark.py", "features", f"--plot={path or 'x://y'}/plot.png"
        yield "reproduce.py", f"--output={path}"
        yield "reproduce.py", *SMALLEST, f"--output={path}"
        yield "reproduce.py", f"--report={path}"
        figure = ("--figure=evolution", "--text=[MAX 2 9 ]", f"--output={path}")
        yield "reproduce.py", *figure, run
    train = train_arguments(folder / "new", folder / "cache")
    for name in ("batch_size", "accumulate_steps", "warmup_steps", "keep_checkpoints"):
        yield "train.py", *train, f"--config.train.{name}={10 * HUGE}"
    for field in ("model.num_depths", "model.hidden_dim", "train.batch_size"):
        yield "train.py", *train, f"--config.{field}={HUGE}"
    for seeds in (0, -1, 10**9, "many", ""):
        yield "reproduce.py", *SMALLEST, f"--seeds={seeds}"
    for flag in ("beam", "batch", "rounds", "lengths"):
        for value in (0, -1, 10**9, 10**30, "x"):
            yield "benchmark.py", "decode", f"--{flag}={value}"
    for flag in (
        "beam_size=8",
        "average_checkpoints=9",
        "attention=other",
        "split=all",
    ):
        yield "evaluate.py", run, f"--{flag}"
    for flag in ("dtype=int8", "attention=other", "average_checkpoints=-1"):
        yield "export.py", run, f"--output={folder / 'export'}", f"--{flag}"
    for name in ("train", "evaluate", "export", "reproduce"):
        yield f"{name}.py", "argument"
        yield f"{name}.py", "--other=1"
    yield ("benchmark.py",)
    yield "benchmark.py", "other"
    for name in ("train.py", "evaluate.py", "reproduce.py"):
        more = {"train.py": train, "evaluate.py": [run], "reproduce.py": SMALLEST}
        yield name, *more[name], "--strategy=one_device", "--tpu=local"
        yield name, *more[name], "--strategy=other"


@pytest.mark.script
@pytest.mark.long
def test_a_command_that_cannot_be_done_ends_with_a_line(places, record_property):
    before = sorted(places.rglob("*"))
    counts, wrong = Counter(), []
    for name, *arguments in commands(places):
        result = script(name, *arguments)
        *_, said = result.stderr.strip().splitlines() or [""]
        is_line = re.match("error: |FATAL Flags", said)
        if not is_line or result.returncode != 1 or "Traceback" in result.stderr:
            wrong.append((name, arguments, result.returncode, said))
        counts[name] += 1
    assert not wrong
    assert sorted(places.rglob("*")) == before
    record_property("commands refused", dict(counts))
    assert counts.total() > 100


def fields_of_all_configs():
    """(config, name of a field, what it may hold) of every config and model."""
    tasks = [path.stem for path in (ROOT / "configs").glob("*.py")]
    for task in sorted(tasks):
        module = importlib.import_module(f"configs.{task}")
        if not hasattr(module, "get_config"):
            continue
        for variant in variants():
            try:
                config = module.get_config(variant)
                configuration.check(config)
            except UserError:  # no decoder, say
                continue
            for name in configuration.declared(config):
                yield config, name


@pytest.mark.long
def test_every_field_refuses_numbers_that_float32_or_time_cannot_hold(record_property):
    values = (HUGE + 1, 10**30, -(10**30), math.nan, math.inf, -math.inf, 1e308)
    counts = Counter()
    for config, name in fields_of_all_configs():
        flat = configuration.flatten(config)
        is_number = isinstance(flat.get(name), int | float)
        if not is_number or isinstance(flat[name], bool):
            continue
        fields = configuration.declared(config)
        # Where 0 may be held, what float32 takes for 0 may be, too.
        tiny = () if fields[name].accepts(0) else (1e-320, 1e-40)
        for value in (*values, *tiny):
            with pytest.raises(
                UserError, match=rf"^--config\.{name}: expected [^\n]+$"
            ):
                configuration.fields.check(fields, {name: value})
            counts["refused"] += 1
        configuration.fields.check(fields, {name: flat[name]})
        counts["usual values accepted"] += 1
    record_property("fields", dict(counts))
    assert counts["refused"] > 1000
