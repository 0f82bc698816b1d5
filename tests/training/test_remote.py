"""Workdir, cache and data in TensorFlow's memory file system, as in gs://."""

import time

import pytest
import tensorflow as tf
from etils import epath
from etils.epath import backend, gpath, register

from common import cli, paths
from common.errors import UserError
from common.paths import make_path
from data.datasets import ag_news
from evaluation.evaluate import evaluate
from evaluation.run import load_run
from export.saved_model import export
from reporting.evaluation import markdown
from reproduction.reproduce import Reproduction
from reproduction.short_listops import compare
from tests.classification import settings, write_ag_news
from tests.scripts import listops_config, metrics
from training.metrics_log import MetricsLog, read_test_scores
from training.train import train_and_evaluate

pytestmark = pytest.mark.slow


@pytest.fixture
def memory(monkeypatch, tmp_path):
    """ram:// as one more kind of path that TensorFlow reads and writes."""
    monkeypatch.setattr(gpath, "_URI_PREFIXES", (*gpath._URI_PREFIXES, "ram://"))
    monkeypatch.setattr(gpath, "_URI_SCHEMES", {*gpath._URI_SCHEMES, "ram"})
    monkeypatch.setitem(gpath._URI_MAP_ROOT, "ram://", "/ram/")
    monkeypatch.setitem(gpath._PREFIX_TO_BACKEND, "ram", backend.tf_backend)
    monkeypatch.setitem(register._URI_PREFIXES_TO_CLS, "ram://", gpath.PosixGPath)
    return epath.Path(f"ram://{tmp_path.name}")


@pytest.mark.long
def test_a_remote_run_is_as_a_local_one(memory, tmp_path):
    """Stopped after the first epoch, too."""
    train_and_evaluate(listops_config(tmp_path / "cache"), tmp_path / "run")
    for epochs in (1, 2):
        config = listops_config(str(memory / "cache"), **{"train.epochs": epochs})
        train_and_evaluate(config, str(memory / "run"))
    assert metrics(memory / "run") == metrics(tmp_path / "run")
    local, _ = evaluate(tmp_path / "run")
    remote, _ = evaluate(str(memory / "run"))
    assert remote == local
    assert (memory / "run/results/test.json").exists()
    # As `train.init_from` reads them.
    run = load_run(str(memory / "run"))
    weights = {weight.path for weight in run.model.weights}
    assert run.checkpoints.best_weights().keys() == weights
    assert list((memory / "run/tensorboard/train").iterdir())


def test_scores_of_test_data_are_written_to_a_remote_workdir(memory):
    (memory / "run").mkdir(parents=True)
    log = MetricsLog(memory / "run")
    for step, accuracy in ((5, 0.2), (10, 0.3)):
        log.write_test_scores(step, {"accuracy": accuracy})
    assert [row["step"] for row in read_test_scores(memory / "run")] == [5, 10]


@pytest.mark.long
def test_data_is_read_from_a_remote_folder(memory, tmp_path):
    write_ag_news(tmp_path)
    memory.mkdir(parents=True, exist_ok=True)
    for path in tmp_path.glob("*.csv"):
        (memory / path.name).write_bytes(path.read_bytes())
    config = settings("ag_news", tmp_path)
    vocabulary = (tmp_path / "vocab.txt").read_text()
    (memory / "vocab.txt").write_text(vocabulary)
    config.data.update(
        source="files",
        dir=str(memory),
        cache_dir=str(memory / "cache"),
        vocab_file=str(memory / "vocab.txt"),
    )
    train_and_evaluate(config, str(memory / "run"))
    result, found = evaluate(str(memory / "run"))
    assert result["examples"] == 20
    assert f"| {ag_news.CLASS_NAMES[0]} |" in markdown(found)


@pytest.mark.parametrize(
    "text", ["", " ", "a\0b", "ftp://host/folder", "gs://bucket/a[b]"]
)
def test_what_is_no_path_is_refused(text):
    with pytest.raises(UserError, match="^--workdir: expected a .*path.*, found"):
        make_path(text, "--workdir")


def fail_to_resolve(path):
    message = "Error executing an HTTP request: libcurl code 6\n\t when reading it"
    raise tf.errors.FailedPreconditionError(None, None, message)


@pytest.mark.parametrize(
    "answer, reason",
    [
        (fail_to_resolve, "Error executing an HTTP request: libcurl code 6 when read"),
        (lambda path: time.sleep(5), r"no answer in 0\.1 s"),
    ],
)
def test_a_folder_that_does_not_answer_is_named(answer, reason, monkeypatch, tmp_path):
    monkeypatch.setattr(tf.io.gfile, "exists", answer)
    monkeypatch.setattr(paths, "SECONDS_TO_ANSWER", 0.1)
    expected = "=gs://bucket/a: expected a remote path that answers, found "
    with pytest.raises(UserError, match=f"^--workdir{expected}{reason}"):
        load_run("gs://bucket/a")
    with pytest.raises(UserError, match=f"^--workdir{expected}{reason}"):
        train_and_evaluate(listops_config(tmp_path), "gs://bucket/a")


def test_a_folder_that_answers_no_more_is_told_of():
    with pytest.raises(tf.errors.FailedPreconditionError) as error:
        fail_to_resolve("gs://bucket/a")
    assert cli.explain(error.value).startswith("Error executing an HTTP request")
    fault = tf.errors.FailedPreconditionError(None, None, "uninitialized variable")
    assert cli.explain(fault) is None


def test_what_must_be_local_is_not_asked_for(monkeypatch):
    monkeypatch.setattr(tf.io.gfile, "exists", fail_to_resolve)
    message = "^--output=gs://bucket/a: expected a folder of this machine$"
    with pytest.raises(UserError, match=message):
        compare("gs://bucket/a")
    with pytest.raises(UserError, match=message):
        Reproduction("2", "smoke", "gs://bucket/a")
    with pytest.raises(UserError, match=message):
        export("gs://bucket/run", "gs://bucket/a")


@pytest.mark.long
def test_odd_names_work(tmp_path):
    folder = tmp_path / "a [b] ü \u2603 {x}*?\\y"
    changes = {"train.epochs": 1, "data.bucket_lengths": (24,)}
    config = listops_config(folder / "cache", **changes)
    train_and_evaluate(config, folder / "run")
    train_and_evaluate(config, folder / "run")
    result, _ = evaluate(folder / "run")
    assert result["examples"] == 70
