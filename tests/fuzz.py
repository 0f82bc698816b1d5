"""Damaged input, and what must become of it.

A subject writes sound files, uses them as the scripts do, and says what must be the
same. A case damages one of the files at random and uses them again. It must end with
the same result where a checksum or the format vouches for it, with any result where
damage is just other data, or with a `UserError` of one line; in a few seconds, and with
its input files untouched.
"""

import contextlib
import gzip
import hashlib
import io
import json
import logging
import os
import random
import shutil
import signal
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from absl import flags
from ml_collections import config_flags

from common.cli import parse_flags
from common.errors import UserError
from configs import ag_news, imdb, listops, multi30k
from data.classification import ClassificationData
from data.pairs import ParallelData
from data.tokenizers import make_tokenizer
from evaluation.answer_lines import answer_lines
from evaluation.evaluate import evaluate
from evaluation.run import load_run
from tests import scripts, translation
from tests.damage import damage
from training import config as configuration
from training.tensorflow import workers
from training.train import train_and_evaluate

SECONDS = 60  # until a case counts as hung


class Subject(NamedTuple):
    """Something that reads files.

    Attributes:
      write: makes a folder of sound files.
      damaged: patterns of the files that cases damage.
      use: function of the folder and a `random.Random`; what it returns is compared.
      same: whether what is returned must be what sound files gave.
      is_input: whether the files are the user's, and must not change.
    """

    write: Callable[[Path], None]
    damaged: list[str]
    use: Callable[[Path, random.Random], object]
    same: bool = False
    is_input: bool = True


# --- Subjects


def _digest(*arrays):
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array))
    return digest.hexdigest()


def _read_all(config, seed=0):
    """All splits of a classification dataset, as digests."""
    data = ClassificationData(config, seed, make_tokenizer(config))
    found = {}
    for name in ("train", "validation", "test"):
        batches = data.batcher(name, 8)
        split = batches.rows
        found[name] = _digest(split.tokens, split.lengths, split.targets)
        next(iter(batches.for_evaluation()))
    return found


def _on_error(generator):
    return generator.choice(["fail", "skip"])


def _write_vocabulary(folder):
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\ngood\nbad\nfilm\nnews\n##s\n")


def _write_ag_news(folder):
    _write_vocabulary(folder)
    for split in ("train", "test"):
        rows = [f'"{i % 4 + 1}","news","films, ""{"good " * i}"""\n' for i in range(20)]
        (folder / f"{split}.csv").write_text("".join(rows))


def _small(config, folder, **changes):
    config.data.update(
        source="files",
        dir=str(folder),
        cache_dir=str(folder / "cache"),
        max_length=64,
        bucket_lengths=(16, 64),
        **changes,
    )
    return config


def _use_ag_news(folder, generator):
    config = _small(ag_news.get_config(), folder, validation_examples=5)
    config.data.vocab_file = str(folder / "vocab.txt")
    config.data.on_error = _on_error(generator)
    return _read_all(config.data)


def _write_reviews(folder):
    _write_vocabulary(folder)
    for split in ("train", "test"):
        for name in ("pos", "neg"):
            (folder / "aclImdb" / split / name).mkdir(parents=True)
            for i in range(6):
                path = folder / "aclImdb" / split / name / f"{i}_1.txt"
                path.write_text("good film " * (i + 1))


def _write_archive(mode, name):
    def write(folder):
        _write_reviews(folder)
        with tarfile.open(folder / name, mode) as tar:
            tar.add(folder / "aclImdb", "aclImdb")
        shutil.rmtree(folder / "aclImdb")

    return write


def _use_reviews(name):
    def use(folder, generator):
        config = _small(imdb.get_config(), folder, validation_examples=5)
        config.data.dir = str(folder / name)
        config.data.vocab_file = str(folder / "vocab.txt")
        config.data.on_error = _on_error(generator)
        return _read_all(config.data)

    return use


def _write_listops(folder):
    for name in ("train", "val", "test"):
        rows = "Source\tTarget\n( ( [MAX 4 ) ( [MIN 2 3 ] ) ] )\t4\n[SM 9 9 ]\t8\n"
        rows += "".join(f"[MED {i} 2 5 ]\t{sorted((i, 2, 5))[1]}\n" for i in range(10))
        (folder / f"basic_{name}.tsv").write_text(rows)


def _use_listops(folder, generator):
    config = _small(listops.get_config(), folder, min_length=1)
    config.data.on_error = _on_error(generator)
    return _read_all(config.data)


def _use_generated(folder, generator):
    config = scripts.listops_config(folder / "cache").data
    return _read_all(config)


def _write_generated(folder):
    _use_generated(folder, None)


def _pairs(folder, generator, vocab_file):
    config = translation.config(folder).data
    config.shuffle_window = 50
    config.vocab_file = str(vocab_file)
    config.on_error = _on_error(generator)
    data = ParallelData(config, make_tokenizer(config))
    validation = data.evaluation("validation", 8)
    train = data.training(8)
    with train.own_errors():
        batches = iter(train.for_training(seed=0))
        while train.num_batches is None:
            next(batches)
    validation = _digest(validation.rows.tokens)
    return {"validation": validation, "train": (train.num_batches, train.num_examples)}


def _write_pairs(folder):
    translation.write(folder)
    config = translation.config(folder).data
    model = make_tokenizer(config).model
    (folder / "subwords.model").write_bytes(model)
    shutil.rmtree(folder / "cache")


def _write_plain_pairs(folder):
    _write_pairs(folder)
    for path in folder.glob("*.gz"):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()


def _use_pairs(folder, generator):
    return _pairs(folder, generator, folder / "subwords.model")


def _write_learned(folder):
    _write_plain_pairs(folder)
    _write_ag_news(folder)
    _use_learned(folder, None)


def _use_learned(folder, generator):
    subwords = make_tokenizer(translation.config(folder).data)
    config = _small(ag_news.get_config(), folder, vocab="train", vocab_size=60)
    pieces = make_tokenizer(config.data)
    return {"subwords": subwords.identity, "pieces": pieces.identity}


def _tiny_run(folder):
    changes = {"train.steps": 4, "train.validate_every": 2, "model.hidden_dim": 8}
    return scripts.listops_config(folder / "cache", **changes)


def _write_run(folder):
    train_and_evaluate(_tiny_run(folder), folder / "run")


def _use_run(folder, generator):
    if generator.random() < 0.5:
        result = train_and_evaluate(_tiny_run(folder), folder / "run")
        log = (folder / "run/metrics.jsonl").read_text()
        return {"step": result["step"], "log": log}
    answers = load_run(folder / "run").predict(["[MAX 1 2 ]", "[SM 7 7 9 ]"])
    result, _ = evaluate(folder / "run")
    return {"answers": str(answers), "loss": result["loss"]}


def _write_lines(folder):
    _write_run(folder)
    (folder / "lines").write_text("[MAX 1 2 ]\n[SM 7 7 9 ]\n\n[MED 1 2 3 ]\n")


def _use_lines(folder, generator):
    raw = (folder / "lines").read_bytes()
    printed, run = io.StringIO(), load_run(folder / "run")
    # Lines that are no expressions have an answer, and are an error in the end.
    with contextlib.redirect_stdout(printed), contextlib.suppress(UserError):
        answer_lines(run, io.BytesIO(raw))
    wanted = raw.count(b"\n") + (not raw.endswith(b"\n") and raw != b"")
    found = printed.getvalue().count("\n")
    assert found == wanted, f"{found} answers to {wanted} lines"


def _write_cluster(folder):
    config = {
        "cluster": {"worker": ["localhost:1", "localhost:2"]},
        "task": {"type": "worker", "index": 0},
    }
    (folder / "TF_CONFIG").write_text(json.dumps(config))


def _use_cluster(folder, generator):
    text = (folder / "TF_CONFIG").read_bytes().decode("utf-8", "replace")
    os.environ["TF_CONFIG"] = text.replace("\0", "")
    try:
        workers.read_cluster()
    finally:
        del os.environ["TF_CONFIG"]


VALUES = [
    *("-1", "0", "1", "2", "7", "1.5", "1e400", "nan", "-inf", "", " ", "x", "True"),
    *("None", "()", "(1,)", "(8,16)", "(16,8)", "(8,8)", "[8,16]", "((8,),)", "'a'"),
    *("1e-320", "1e-40", "1e308", "0.99999999999", "257", "2147483647"),
    *("2147483648", "9" * 30, "0x10", "1e3", "ä", "\u2028", "../..", "~", "*", "a=b"),
    *("float16", "mixed_bfloat16", "transformer", "10 minutes", "0 steps", "5 hours"),
]


def _use_flags(folder, generator):
    module = generator.choice([ag_news, imdb, listops, multi30k])
    name = module.__name__.split(".")[1]
    fields = configuration.flatten(module.get_config())

    def choose(usual, odd):
        return generator.choice(usual if generator.random() < 0.9 else odd)

    argv = ["train.py", f"--config=configs/{name}.py:{choose(*ARGUMENTS)}"]
    for _ in range(generator.randrange(1, 4)):
        field = choose(list(fields), ODD_FIELDS)
        value = generator.choice(VALUES + 10 * [str(fields.get(field))])
        argv.append(f"--config.{field}{choose(['='], [' ', ''])}{value}")
    values = flags.FlagValues()
    defined = config_flags.DEFINE_config_file(
        "config", flag_values=values, sys_argv=argv
    )
    if len(parse_flags(argv, values)) > 1:
        raise UserError("expected a flag")
    configuration.check(defined.value)


ODD_FIELDS = [
    "data",
    "train.",
    "",
    "x",
    "data.dir.x",
    "model.attention",
    "train.steps.1",
]
ARGUMENTS = (
    ["transevolve-fullff-1", "transevolve-randomff-2,laptop", "transformer", ""],
    [
        ",",
        ",laptop",
        "transformer,",
        "nothing",
        "transformer,laptop,laptop",
        "transformer:laptop",
    ],
)

SUBJECTS = {
    "ag_news": Subject(_write_ag_news, ["*.csv", "vocab.txt"], _use_ag_news),
    "listops": Subject(_write_listops, ["*.tsv"], _use_listops),
    "imdb_folder": Subject(
        _write_reviews, ["aclImdb/*/*/*.txt"], _use_reviews("aclImdb")
    ),
    "imdb_tar": Subject(_write_archive("w", "a.tar"), ["a.tar"], _use_reviews("a.tar")),
    "imdb_tar_gz": Subject(
        _write_archive("w:gz", "a.tar.gz"),
        ["a.tar.gz"],
        _use_reviews("a.tar.gz"),
        same=True,
    ),
    "pairs": Subject(_write_plain_pairs, ["*.en", "*.de", "*.model"], _use_pairs),
    "pairs_gz": Subject(_write_pairs, ["*.gz"], _use_pairs, same=True),
    "generated": Subject(
        _write_generated, ["cache/*/*"], _use_generated, same=True, is_input=False
    ),
    "learned": Subject(
        _write_learned, ["cache/*/*"], _use_learned, same=True, is_input=False
    ),
    "run": Subject(
        _write_run,
        ["run/*.json", "run/tokenizer/*", "run/checkpoints/*/*/*", "run/*.jsonl"],
        _use_run,
        same=True,
        is_input=False,
    ),
    "lines": Subject(_write_lines, ["lines"], _use_lines),
    "cluster": Subject(_write_cluster, ["TF_CONFIG"], _use_cluster),
    "flags": Subject(_write_cluster, ["TF_CONFIG"], _use_flags),
}


# --- Cases


class Hung(Exception):
    """A case took too long."""


def run_cases(name: str, seeds, folder: Path) -> dict[str, int]:
    """Runs cases of a subject; how many ended in each way.

    Raises:
      AssertionError: naming the first case that ended as none may, by its seed.
    """
    subject, sound = SUBJECTS[name], folder / "sound"
    sound.mkdir()
    logging.disable()
    try:
        subject.write(sound)
        expected = {}
        counts = {"used": 0, "refused": 0}
        for seed in seeds:
            counts[_run_case(name, seed, sound, folder / "used", expected)] += 1
        return counts
    finally:
        logging.disable(logging.NOTSET)


def _run_case(name, seed, sound, used, expected):
    subject, generator = SUBJECTS[name], random.Random(f"{name} {seed}")
    _copy(sound, used)
    paths = sorted(path for x in subject.damaged for path in used.glob(x))
    case = f"{name} {seed}: {damage(generator.choice(paths), generator)}"
    before = _contents(used)
    try:
        with _limited(case):
            found = subject.use(used, random.Random(seed)) or {}
    except (UserError, FileNotFoundError) as error:  # scripts name both in a line
        assert "\n" not in str(error), f"{case}: {error}"
        outcome = "refused"
    except Exception as error:
        raise AssertionError(f"{case}: {type(error).__name__}: {error}") from error
    else:
        outcome = "used"
    if subject.is_input:
        after = _contents(used)
        assert all(after.get(path) == content for path, content in before.items()), case
    if outcome == "used":
        if subject.same and not found.keys() <= expected.keys():
            _copy(sound, used)
            expected |= subject.use(used, random.Random(seed))
        if subject.same:
            assert found == {key: expected[key] for key in found}, case
    return outcome


def _copy(sound, used):
    shutil.rmtree(used, ignore_errors=True)
    shutil.copytree(sound, used)


def _contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@contextlib.contextmanager
def _limited(case):
    def stop(number, frame):
        raise Hung(f"{case}: took more than {SECONDS} s")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
