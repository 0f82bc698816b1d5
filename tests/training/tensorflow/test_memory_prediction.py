"""What an update takes of memory, predicted."""

import logging
from types import SimpleNamespace

import pytest
import tensorflow as tf

from benchmarks import memory as benchmark
from benchmarks.alone import run_alone
from benchmarks.calls import Setting, make_trainer
from common.errors import UserError
from tasks.classification import ClassificationTask
from tests.scripts import listops_config
from training.tensorflow import memory_prediction as memory
from training.tensorflow.evaluator import Evaluator
from training.tensorflow.strategy import make_strategy
from training.train import train_and_evaluate

SPECS = {
    "inputs": tf.TensorSpec([None, None], tf.int32),
    "targets": tf.TensorSpec([None], tf.int32),
}
MB = 2**20


def predicted(function, *shapes):
    specs = [tf.TensorSpec(shape) for shape in shapes]
    graph = tf.function(function, autograph=False).get_concrete_function(*specs).graph
    return memory.predicted_bytes(graph)


def test_a_tensor_lives_to_its_last_use():
    def chain(x):
        y = tf.matmul(x, x)
        z = tf.matmul(y, y)
        return tf.matmul(z, z)

    def fan(x):
        y = tf.matmul(x, x)
        z = tf.matmul(y, y)
        return tf.matmul(z, y)

    one = 4 * 512**2
    # Two or three at a time, and one more for what is lost between them.
    assert predicted(chain, [512, 512]) == (2 + 1) * one
    assert predicted(fan, [512, 512]) == (3 + 1) * one


def test_views_and_results_in_place_take_nothing():
    def function(x):
        y = tf.reshape(tf.matmul(x, x), [-1, 64])
        return tf.nn.relu(tf.identity(y) * 2.0) + 1.0

    assert predicted(function, [512, 512]) == pytest.approx(2 * 4 * 512**2, rel=1e-4)


def test_of_two_branches_the_usual_one_counts():
    def function(x):
        def seldom():
            y = tf.matmul(x, x)
            return tf.matmul(y, tf.matmul(y, y))

        return tf.cond(x[0, 0] > 0, lambda: tf.matmul(x, x), seldom)

    assert predicted(function, [512, 512]) == pytest.approx(2 * 4 * 512**2, rel=1e-4)


def test_what_a_branch_keeps_for_its_gradient_counts():
    def usual(x):
        y = tf.sin(x)
        return tf.matmul(y, y)

    def seldom(x):
        return tf.matmul(usual(x), usual(usual(x)))

    def slope(of_one):
        def function(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = x
                for _ in range(4):
                    y = of_one(y)
            return tape.gradient(y, x)

        return predicted(function, [512, 512])

    def branch(y):
        return tf.cond(y[0, 0] > 0, lambda: usual(y), lambda: seldom(y))

    one = 4 * 512**2
    assert slope(branch) == pytest.approx(slope(usual), abs=1.1 * one)
    assert slope(usual) > 8 * one


@pytest.fixture(scope="module")
def trainer():
    return make_trainer("transevolve-fullff-1", Setting(), 4, 16)[0]


@pytest.mark.slow
def test_parts_of_a_batch_take_less(trainer, monkeypatch):
    whole = trainer.update_bytes(SPECS, (8, 512))
    monkeypatch.setattr(trainer, "_microbatches", 8)
    part = trainer.update_bytes(SPECS, (8, 512))
    gradients = 4 * trainer.model.count_params()
    assert part < whole / 4 + gradients


def batches(*shapes):
    dataset = SimpleNamespace(element_spec=SPECS)
    return SimpleNamespace(
        shapes=shapes,
        for_training=lambda seed: dataset,
        for_evaluation=lambda: dataset,
    )


@pytest.mark.slow
@pytest.mark.long
def test_what_cannot_fit_is_refused(trainer, monkeypatch, caplog):
    caplog.set_level(logging.INFO, logger="transevolve")

    evaluator = Evaluator(trainer.model, ClassificationTask, trainer.strategy)
    training = batches((8, 64), (4, 128))
    memory.check_updates_fit(trainer, training, evaluator, batches((4, 128)))
    assert "an update of 4 x 128 takes about 0." in caplog.text
    assert "validation" not in caplog.text
    memory.check_updates_fit(trainer, training, evaluator, batches((4, 128), (1, 256)))
    assert "a validation batch of 1 x 256 takes about 0." in caplog.text
    monkeypatch.setattr(memory, "_free_bytes", lambda strategy: 10 * MB)
    with pytest.raises(UserError, match="memory for an update of 4 x 128.*accumulate"):
        memory.check_updates_fit(trainer, training, evaluator, training)
    monkeypatch.setattr(memory, "_free_bytes", lambda strategy: 500 * MB)
    with pytest.raises(UserError, match="memory for a validation batch of 1 x 4,096"):
        memory.check_updates_fit(trainer, training, evaluator, batches((1, 4096)))
    memory.check_updates_fit(trainer, batches((8, None)), evaluator, training)


def test_a_model_that_no_device_holds_is_refused_before_it_is_built(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(memory, "_free_bytes", lambda strategy: 8 * MB)
    monkeypatch.setattr(ClassificationTask, "build_model", None)
    changes = {"model.hidden_dim": 1024, "model.ffn_dim": 4096}
    for variant in ("transformer", "transevolve-randomff-1"):
        config = listops_config(tmp_path / "cache", variant, **changes)
        message = "expected memory for the model, about 0.* GB on each device, found"
        with pytest.raises(UserError, match=message):
            train_and_evaluate(config, tmp_path / variant)


@pytest.mark.parametrize(("wanted", "doubtful"), [(70, False), (90, True), (110, True)])
def test_shortage_is_certain_or_possible(monkeypatch, wanted, doubtful):
    strategy = make_strategy("one_device")
    monkeypatch.setattr(memory, "_free_bytes", lambda strategy: 100 * MB)
    assert memory.shortage(wanted * MB, strategy) is None
    assert memory.shortage(130 * MB, strategy)
    assert bool(memory.shortage(wanted * MB, strategy, certain=True)) == doubtful


def test_what_a_tpu_has_is_known_by_its_name(monkeypatch):
    devices = [f"/job:worker/device:TPU:{number}" for number in range(8)]
    strategy = SimpleNamespace(extended=SimpleNamespace(worker_devices=devices))
    assert memory._free_bytes(strategy) is None
    monkeypatch.setenv("TPU_ACCELERATOR_TYPE", "v3-8")
    assert memory._free_bytes(strategy) == 16 * 2**30


def test_what_a_container_may_have_counts(monkeypatch, tmp_path):
    strategy = make_strategy("one_device")
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    on_the_machine = memory._free_bytes(strategy)
    (tmp_path / "memory.max").write_text("max\n")
    assert memory._free_bytes(strategy) == pytest.approx(on_the_machine, rel=0.5)
    (tmp_path / "memory.max").write_text(f"{100 * MB}\n")
    (tmp_path / "memory.current").write_text(f"{50 * MB}\n")
    (tmp_path / "memory.stat").write_text(f"anon {20 * MB}\ninactive_file {30 * MB}\n")
    assert memory._free_bytes(strategy) == 80 * MB


@pytest.fixture
def usual_threads(monkeypatch):
    """Processes have a user's threads: with one, the order of operations holds more."""
    monkeypatch.delenv("TF_NUM_INTRAOP_THREADS")
    monkeypatch.delenv("TF_NUM_INTEROP_THREADS")


def most_held(parts):
    """Bytes that a process holds at most, with updates in so many parts."""
    trainer, iterator = make_trainer("transevolve-fullff-1", Setting(), 8, 1000)
    trainer._microbatches = parts
    trainer.train(iterator, 1)
    return benchmark.peak_bytes()


@pytest.mark.long
@pytest.mark.usefixtures("usual_threads")
def test_parts_do_not_run_side_by_side():
    whole, parts = (run_alone("parts", most_held, n) for n in (1, 8))
    assert parts < 0.7 * whole


def measured(names, length):
    """Rows of the benchmark, where this machine has memory for it."""
    rows = list(benchmark.measure(names, [length]))
    for row in rows:
        if "GB on each device" in (reason := row.get("not_run", "")):
            pytest.skip(reason)
    return rows


# On a busy machine operations overlap that do not elsewhere, and hold more.
@pytest.mark.long
@pytest.mark.usefixtures("usual_threads")
@pytest.mark.parametrize("length", [1000, 4000])
@pytest.mark.parametrize(
    "name",
    [
        "transformer",
        "transformer-linear",
        "transevolve-fullff-1",
        "transevolve-fullff-1-linear",
        "transevolve-fullff-1-literal",
    ],
)
def test_the_prediction_is_what_is_measured(name, length):
    (row,) = measured([name], length)
    expected = pytest.approx(row["peak_memory_mb"], rel=memory.TOLERANCE)
    assert row["predicted_memory_mb"] == expected


@pytest.mark.long
@pytest.mark.usefixtures("usual_threads")
def test_linear_attention_takes_at_most_three_tenths_more_than_none():
    names = ["transevolve-fullff-1-none", "transevolve-fullff-1-linear"]
    *_, row = measured(names, 16_000)
    assert row["memory_ratio_to_lower_bound"] <= 1.3
