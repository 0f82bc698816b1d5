"""Training by JAX is that of TensorFlow."""

import json
import shutil

import pytest

from tests.scripts import last_line, metrics, script, train, train_arguments

pytestmark = [pytest.mark.slow, pytest.mark.script]
pytest.importorskip("jax")

JAX = {"KERAS_BACKEND": "jax"}
# Ten updates to a validation, of one shape, which is compiled once.
SHORT = {
    "data.bucket_lengths": "(24,)",
    "train.epochs": 1,
    "train.validate_every": 10,
    "train.log_every": 5,
}
EXACT = {
    **SHORT,
    "model.dropout": 0,
    "train.clip_norm": 1,
    "train.accumulate_steps": 2,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a cache and a run by JAX."""
    folder = tmp_path_factory.mktemp("jax")
    result = train(folder / "run", folder / "cache", environment=JAX, **SHORT)
    assert result.returncode == 0, result.stderr
    assert "by JAX" in result.stderr
    return folder


def test_updates_and_scores_are_those_of_tensorflow(folder):
    """From the weights of a run by JAX, which TensorFlow opens."""
    start = {**EXACT, "train.init_from": folder / "run"}
    for name, environment in (("by-tf", None), ("by-jax", JAX)):
        result = train(
            folder / name, folder / "cache", environment=environment, **start
        )
        assert result.returncode == 0, result.stderr
    by_tf, by_jax = (metrics(folder / name) for name in ("by-tf", "by-jax"))
    assert [row["step"] for row in by_tf] == [5, 10, 10, 15, 19, 19]
    for one, other in zip(by_tf, by_jax, strict=True):
        assert one.keys() == other.keys()
        for name in one.keys() - {"split"}:
            assert other[name] == pytest.approx(one[name], rel=1e-5), name


@pytest.mark.long
def test_each_evaluates_a_run_of_the_other(folder):
    by_tf, by_jax = (
        json.loads(script("evaluate.py", f"--workdir={folder}/run", **backend).stdout)
        for backend in ({}, JAX)
    )
    assert by_tf.pop("loss") == pytest.approx(by_jax.pop("loss"), rel=1e-5)
    assert by_tf == by_jax


@pytest.mark.long
def test_a_run_that_goes_on_is_one_that_never_stopped(folder):
    stopped = shutil.copytree(folder / "run", folder / "stopped")
    shutil.rmtree(stopped / "checkpoints" / "last" / "19")
    for kind in ("best", "resume"):
        shutil.rmtree(stopped / "checkpoints" / kind)
    result = train(stopped, folder / "cache", environment=JAX, **SHORT)
    assert "going on from step 10" in result.stderr
    assert (stopped / "metrics.jsonl").read_bytes() == (
        folder / "run" / "metrics.jsonl"
    ).read_bytes()


@pytest.mark.long
def test_what_is_not_finite_ends_the_run(folder):
    wild = {
        **SHORT,
        "train.learning_rate_max": 1e10,
        "train.warmup_steps": 1,
        "train.adam_beta_2": 0.8,
    }
    result = train(folder / "wild", folder / "cache", environment=JAX, **wild)
    assert last_line(result).startswith("error: step ")
    assert "expected a finite loss and gradient, found a loss of" in last_line(result)


@pytest.mark.long
@pytest.mark.parametrize(
    "flag, message",
    [
        ("--strategy=mirrored", "error: --strategy: expected auto or one_device"),
        ("--profile=2:3", "error: --profile: expected TensorFlow to train, found JAX"),
    ],
)
def test_what_jax_does_not_do_is_refused(folder, flag, message):
    arguments = train_arguments(folder / "refused", folder / "cache", **SHORT)
    result = script("train.py", *arguments, flag, **JAX)
    assert last_line(result).startswith(message)


@pytest.mark.long
def test_answers_need_tensorflow(folder):
    workdir = f"--workdir={folder}/run"
    refusal = "error: KERAS_BACKEND: expected tensorflow for "
    for name, *arguments in (
        ("evaluate.py", workdir, "--interactive"),
        ("export.py", workdir, f"--output={folder}/export"),
        ("benchmark.py", "decode"),
    ):
        result = script(name, *arguments, input_text="7\n", **JAX)
        assert last_line(result).startswith(refusal)
