"""A whole training in one process."""

import resource
import shutil
from contextlib import suppress

import pytest
import tensorflow as tf

from common.cli import explain
from evaluation.evaluate import evaluate
from tests import forked
from tests.scripts import listops_config, metrics
from training.metrics import NotFiniteError
from training.metrics_log import TEST_SCORES, MetricsLog, read_test_scores
from training.train import train_and_evaluate

pytestmark = pytest.mark.slow

EPOCH = {"train.epochs": 1, "train.validate_every": 10}
LAST = ["10", "20"]


@pytest.fixture(scope="module")
def epoch(tmp_path_factory):
    """The workdir of an epoch's run beside its cache."""
    folder = tmp_path_factory.mktemp("epoch")
    train_and_evaluate(listops_config(folder / "cache", **EPOCH), folder / "run")
    return folder / "run"


@pytest.fixture
def again(epoch, tmp_path):
    """A function from changes to the config of another run with the same cache, and a
    workdir that goes on from there."""
    shutil.copytree(epoch, tmp_path / "run")
    cache = epoch.parent / "cache"
    return (lambda **changes: listops_config(cache, **changes)), tmp_path / "run"


@pytest.mark.long
def test_a_program_for_each_shape_trains_as_one_for_all(epoch, again, monkeypatch):
    """As on a TPU, where a program has one shape."""
    config, workdir = again
    one_device = tf.distribute.OneDeviceStrategy
    monkeypatch.setattr(tf.distribute, "TPUStrategy", one_device)
    train_and_evaluate(config(**EPOCH), workdir.with_name("apart"))
    together, apart = (metrics(epoch), metrics(workdir.with_name("apart")))
    assert len(together) == len(apart) == 6
    for first, second in zip(together, apart, strict=True):
        assert first["loss"] == pytest.approx(second["loss"], rel=1e-5)


def test_what_is_not_finite_ends_the_run_and_is_not_saved(tmp_path, caplog, capsys):
    wild = {"train.learning_rate_max": 1e10, "train.checkpoint_every": "4 steps"}
    changes = {
        **wild,
        "data.bucket_lengths": (24,),
        "train.warmup_steps": 1,
        "train.adam_beta_2": 0.8,
        "train.steps_per_loop": 1,
        "train.log_every": 1,
    }
    config = listops_config(tmp_path / "cache", **changes)
    with pytest.raises(NotFiniteError) as error:
        train_and_evaluate(config, tmp_path / "run")
    assert str(error.value).endswith(
        "nothing was saved since step 0; in another workdir, a lower "
        "--config.train.learning_rate_max may help, or --config.train.clip_norm=1, or "
        "a --config.train.adam_beta_2 above the square of adam_beta_1"
    )
    assert not (tmp_path / "run/checkpoints/last").exists()
    for row in metrics(tmp_path / "run"):  # valid JSON
        assert row["step"] < 4


def test_a_full_disk_leaves_the_last_checkpoint_sound(again, monkeypatch, caplog):
    caplog.set_level("INFO", logger="transevolve")
    make_config, workdir = again
    config = make_config(**{**EPOCH, "train.steps": 30})
    write = tf.raw_ops.SaveV2

    def full(prefix, **tensors):
        write(prefix=prefix, **tensors)
        raise OSError(28, "No space left on device", prefix)

    with monkeypatch.context() as patch:
        patch.setattr(tf.raw_ops, "SaveV2", full)
        with pytest.raises(OSError, match="No space left"):
            train_and_evaluate(config, workdir)
    assert not list(workdir.rglob("unfinished*"))
    assert not (workdir / "checkpoints/last/30").exists()
    assert train_and_evaluate(config, workdir)["step"] == 30
    assert "going on from step 20" in caplog.text


def train_with_small_files(cache, workdir):
    """Why a training ends whose files may have 20,000 bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    try:
        train_and_evaluate(
            listops_config(cache, **EPOCH, **{"train.steps": 30}), workdir
        )
    except Exception as error:
        return explain(error)


@pytest.mark.long
def test_a_limit_of_files_leaves_the_last_checkpoint_sound(epoch, again):
    _, run = again
    message = forked.call(train_with_small_files, epoch.parent / "cache", run)
    assert message.startswith(f"{run}/checkpoints/") and "\n" not in message
    assert message.endswith(
        "; expected a limit above 20,000 bytes a file, see ulimit -f"
    )
    assert sorted(path.name for path in (run / "checkpoints/last").iterdir()) == LAST
    assert not list(run.rglob("unfinished*"))


def test_a_loss_that_explodes_is_warned_about(tmp_path, caplog):
    changes = {"train.learning_rate_max": 100.0, "train.epochs": 1}
    quick = {"train.warmup_steps": 3, "train.steps_per_loop": 1}
    quick["data.bucket_lengths"] = (24,)
    config = listops_config(tmp_path / "cache", **changes, **quick)
    with suppress(NotFiniteError):
        train_and_evaluate(config, tmp_path / "run")
    assert "warning: step " in caplog.text


def test_test_scores_choose_nothing(epoch, again):
    """A run with them is the run without, to the byte; the last is `evaluate`'s."""
    config, workdir = again
    scored = workdir.with_name("scored")
    train_and_evaluate(config(**EPOCH), scored, test_at_validations=True)
    assert metrics(scored) == metrics(epoch)
    assert read_test_scores(epoch) == []
    scores = read_test_scores(scored)
    assert [row["step"] for row in scores] == [10, 20]
    (best,) = (scored / "checkpoints/best").iterdir()
    result, _ = evaluate(scored)
    chosen = next(row for row in scores if row["step"] == int(best.name))
    assert chosen["accuracy"] == pytest.approx(result["accuracy"])


def test_test_scores_of_a_killed_run(tmp_path):
    (tmp_path / TEST_SCORES).write_text(
        '{"step": 5, "accuracy": 0.1}\n{"step": 10, "accu'
    )
    assert read_test_scores(tmp_path) == [{"step": 5, "accuracy": 0.1}]
    log = MetricsLog(tmp_path)
    for step, accuracy in ((5, 0.2), (10, 0.3)):
        log.write_test_scores(step, {"accuracy": accuracy})
    # Of a step that is repeated the last line counts.
    assert [row["accuracy"] for row in read_test_scores(tmp_path)] == [0.2, 0.3]
