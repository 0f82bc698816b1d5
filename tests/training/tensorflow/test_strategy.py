"""Where training runs, said and checked."""

import os

import pytest
import tensorflow as tf

from tests import scripts
from tests.data import test_classification_batching, test_pair_batching
from training.tensorflow import strategy as strategies


def test_a_strategy_is_described():
    one = strategies.make_strategy("one_device")
    assert strategies.describe(one) == "1 CPU"


@pytest.mark.parametrize("module", [test_classification_batching, test_pair_batching])
def test_one_cpu_reads_a_dataset_that_nothing_tunes(module):
    """What tunes it can hold up its end for a minute."""
    dataset = module.batcher().for_training(seed=0)
    one = strategies.make_strategy("one_device")
    assert strategies.distribute(dataset, one) is dataset
    assert dataset.options().autotune.enabled is False


@pytest.mark.parametrize(
    "driver, gpus, is_told",
    [(True, [], True), (True, ["GPU"], False), (False, [], False)],
)
def test_an_idle_gpu_is_told(monkeypatch, driver, gpus, is_told):
    monkeypatch.setattr(os.path, "exists", lambda path: driver)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: gpus)
    warning = strategies.warn_of_idle_gpu()
    assert bool(warning) == is_told
    if is_told:
        assert "requirements-gpu.txt" in warning


@pytest.mark.slow
@pytest.mark.script
@pytest.mark.parametrize("tpu", ["local", ""])
def test_a_tpu_that_is_not_there(tpu, tmp_path):
    arguments = scripts.train_arguments(tmp_path / "run", tmp_path)
    result = scripts.script("train.py", *arguments, "--strategy=tpu", f"--tpu={tpu}")
    message = scripts.last_line(result)
    assert message.startswith(f"error: --tpu={tpu}: expected a TPU of that name")


@pytest.mark.slow
@pytest.mark.script
@pytest.mark.parametrize("name", ["train.py", "evaluate.py", "reproduce.py"])
def test_a_tpu_is_for_no_other_strategy(name, tmp_path):
    arguments = [f"--workdir={tmp_path}"]
    if name == "train.py":
        arguments = scripts.train_arguments(tmp_path, tmp_path)
    if name == "reproduce.py":
        arguments = ["--table=2", "--scale=smoke", f"--output={tmp_path}"]
    result = scripts.script(name, *arguments, "--tpu=x", "--strategy=one_device")
    assert scripts.last_line(result) == (
        "error: flags strategy=one_device, tpu=x: expected --strategy=auto or "
        "--strategy=tpu beside a TPU"
    )
