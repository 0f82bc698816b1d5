"""The identity of a run survives kills, and what is not ours is left alone."""

import hashlib
import shutil
import time

import pytest
from tensorboard.backend.event_processing.plugin_event_accumulator import (
    EventAccumulator,
)

from common import checksums
from common.checksums import DamagedError
from common.errors import UserError
from configs import imdb, listops
from data.batches import Batches
from data.tokenizers.symbols import SymbolTokenizer
from data.tokenizers.word_pieces import WordPieceTokenizer
from evaluation.run import load_run
from training import config as configuration
from training import workdir as workdirs
from training.metrics_log import MetricsLog

DATA = {"training": "a", "validation": ["b", 1]}
TOKENIZER = WordPieceTokenizer(["[PAD]", "[UNK]", "a"])


def test_config_and_tokenizer_survive(tmp_path):
    config = imdb.get_config()
    workdirs.keep(config, TOKENIZER, DATA, tmp_path)
    again, tokenizer = workdirs.read(tmp_path)
    configuration.check(again)
    assert tokenizer.identity == TOKENIZER.identity
    assert not workdirs.differences(config, again)
    workdirs.check_same_run(config, again, tmp_path)
    config.seed = 1
    assert workdirs.differences(config, again) == ["seed"]
    with pytest.raises(UserError, match="holds a run with config.seed=0, not 1"):
        workdirs.check_same_run(config, again, tmp_path)
    assert again.data.vocab_file is None
    assert tuple(again.data.bucket_lengths) == config.data.bucket_lengths


def test_a_run_of_older_code_is_refused(tmp_path):
    config = listops.get_config()
    del config.train.deterministic
    workdirs.keep(config, SymbolTokenizer(["a"]), DATA, tmp_path)
    message = (
        f"^{tmp_path}: a run of other code: --config.train.deterministic: expected"
    )
    with pytest.raises(UserError, match=message):
        load_run(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "data.json", "tokenizer/symbols.txt"])
@pytest.mark.parametrize("content", [b"", b"{}", None])
def test_damage_is_named(tmp_path, name, content):
    workdirs.keep(listops.get_config(), SymbolTokenizer(["a"]), DATA, tmp_path)
    path = tmp_path / name
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(DamagedError, match=f"^{path}: expected"):
        workdirs.read(tmp_path)


@pytest.mark.parametrize("moved", range(5))
def test_a_kill_while_it_is_written_leaves_the_old_or_the_new(tmp_path, moved):
    """After each of the four moves, and before the first."""
    old, new = tmp_path / "run", tmp_path / "new"
    old.mkdir(), new.mkdir()
    config = listops.get_config()
    workdirs.keep(config, SymbolTokenizer(["a"]), DATA, old)
    config.train.epochs = 3
    workdirs.keep(config, SymbolTokenizer(["a"]), DATA, new)
    shutil.copytree(new, old / workdirs.UNFINISHED)
    for name in ("tokenizer", "config.json", "data.json", "checksums.json")[:moved]:
        if (old / name).is_dir():
            shutil.rmtree(old / name)
        (old / workdirs.UNFINISHED / name).replace(old / name)
    assert not workdirs.has_started(old)
    kept, _ = workdirs.read(old)
    assert kept.train.epochs == 3
    assert not (old / workdirs.UNFINISHED).exists()


def test_a_kill_before_it_was_whole_leaves_the_old(tmp_path):
    workdirs.keep(listops.get_config(), SymbolTokenizer(["a"]), DATA, tmp_path)
    (tmp_path / workdirs.UNFINISHED).mkdir()
    (tmp_path / workdirs.UNFINISHED / "config.json").write_text("{")
    assert not workdirs.has_started(tmp_path)
    workdirs.read(tmp_path)


@pytest.mark.parametrize("name", workdirs.NAMES)
def test_files_of_somebody_else_are_left_alone(tmp_path, name):
    (tmp_path / name).write_text("{}")
    with pytest.raises(UserError, match=f"found {name} of something else or of an old"):
        workdirs.has_started(tmp_path)
    assert (tmp_path / name).read_text() == "{}"


def test_a_folder_with_checksums_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "data.tsv").write_text("theirs")
    checksums.write(tmp_path, ["data.tsv"])
    with pytest.raises(UserError, match="found checksums.json of something else"):
        workdirs.has_started(tmp_path)
    assert checksums.read(tmp_path).keys() == {"data.tsv"}


def test_a_folder_of_our_leftovers_name_is_left_alone(tmp_path):
    path = tmp_path / workdirs.UNFINISHED / "notes"
    path.parent.mkdir()
    path.write_text("theirs")
    with pytest.raises(UserError, match=f"found {path} of something else"):
        workdirs.has_started(tmp_path)
    assert path.read_text() == "theirs"


def test_a_run_of_older_code_is_refused_in_one_line(tmp_path):
    (tmp_path / "config.json").write_text('{"task": "listops", "model": {}}')
    with pytest.raises(UserError, match="found one of an older version") as error:
        workdirs.read(tmp_path)
    assert "\n" not in str(error.value)


def test_the_log_goes_on_after_the_lines_of_the_checkpoint(tmp_path, monkeypatch):
    log = MetricsLog(tmp_path)
    for step in range(3):
        log.write("train", step, {"loss": 0.5})
    assert log.lines == 3
    with open(tmp_path / "metrics.jsonl", "a") as file:
        file.write('{"step": 3, "spl')
    path = tmp_path / "metrics.jsonl"
    two = b"".join(path.read_bytes().splitlines(keepends=True)[:2])
    # TensorBoard reads files in the order of their names, which begin with a second.
    later = time.time() + 10
    monkeypatch.setattr(time, "time", lambda: later)
    log = MetricsLog(tmp_path, 2, hashlib.sha256(two).hexdigest())
    log.write("train", 7, {"loss": 0.5})
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [line[:10] for line in lines] == ['{"step": 0', '{"step": 1', '{"step": 7']
    events = EventAccumulator(str(tmp_path / "tensorboard/train")).Reload()
    assert [event.step for event in events.Tensors("loss")] == [0, 1, 7]
    last = log.sum
    path.write_bytes(path.read_bytes().replace(b"0.5", b"0.4", 1))
    with pytest.raises(DamagedError, match="metrics.jsonl: expected the 3 lines that"):
        MetricsLog(tmp_path, 3, last)
    path.unlink()
    with pytest.raises(DamagedError, match="metrics.jsonl: expected the 3 lines that"):
        MetricsLog(tmp_path, 3, last)


def test_other_data_is_noticed(tmp_path):
    workdirs.keep(listops.get_config(), TOKENIZER, DATA, tmp_path)
    batches = {"training": Batches(), "validation": Batches()}
    batches["training"].fingerprint = "a"
    batches["validation"].fingerprint = ("b", 1)
    workdirs.check_same_data(batches, tmp_path, "")
    batches["validation"].fingerprint = None
    message = "a run that began with other validation data; give it"
    with pytest.raises(UserError, match=message):
        workdirs.check_same_data(batches, tmp_path, "give it")


def test_a_log_whose_checkpoints_are_gone_is_left_alone(tmp_path):
    log = MetricsLog(tmp_path)
    log.write("train", 10, {"loss": 0.5})
    log.write("validation", 10, {"loss": 0.5})
    MetricsLog(tmp_path)  # killed before the checkpoint
    for split in ("validation", "train"):
        log.write(split, 20, {"loss": 0.5})
    text = (tmp_path / "metrics.jsonl").read_text()
    with pytest.raises(DamagedError, match="checkpoints: expected those of the valida"):
        MetricsLog(tmp_path)
    assert (tmp_path / "metrics.jsonl").read_text() == text


def test_a_field_that_is_newer_than_a_run_has_its_variant_s_value():
    config = listops.get_config("transformer-linear,laptop")
    stored = config.copy_and_resolve_references()
    with stored.unlocked():
        del stored.model.attention["sum_normalisation"]
    assert not workdirs.differences(config, stored)
    config.model.attention.sum_normalisation = True
    changed = workdirs.differences(config, stored)
    assert changed == ["model.attention.sum_normalisation"]
