"""A state that goes from batch to batch, by a toy task that counts bytes."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from data.tokenizers import make_tokenizer
from evaluation.evaluate import evaluate
from evaluation.run import load_run
from export.saved_model import export
from tests import toys
from training.backends import one_device_trainer
from training.run_state import CARRIED
from training.tensorflow.evaluator import Evaluator
from training.tensorflow.strategy import make_strategy
from training.train import train_and_evaluate

ROWS, BATCHES = 8, 7


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    toys.register(monkeypatch)


def make_config(**changes):
    return toys.counting_config("next_byte_of_segment", **changes)


def make_task(**changes):
    config = make_config(**changes)
    task = toys.NextByteOfSegmentTask
    return task(config, make_tokenizer(config.data))


def trained(steps, **changes):
    """A trainer after updates, in two calls, and their summed totals."""
    keras.utils.set_random_seed(0)
    task = make_task(**changes)
    batches = task.training_batches()
    trainer, iterator = one_device_trainer(
        task.build_model,
        task,
        task.config.train,
        batches.for_training(0),
        False,
        batches.fillers,
    )
    totals = (
        trainer.train(iterator, steps // 2),
        trainer.train(iterator, steps - steps // 2),
    )
    return trainer, [sum(values) for values in zip(*totals, strict=True)]


def counts_of(inputs):
    """(rows, vocabulary) of ids (rows, length)."""
    return np.float32([np.bincount(row, minlength=257) for row in inputs])


def by_hand(task, model, batches):
    """The sums of the batches of a stream, and the counts after it."""
    counts, sums = np.zeros([ROWS, 257], "float32"), 0
    for batch in batches:
        these, _ = task.sums(model, batch, {"counts": counts})
        sums = sums + np.array(these)
        counts = counts + counts_of(batch["inputs"].numpy())
    return sums, counts


def test_updates_carry_it():
    # Weights that hardly move: each loss is that of the first ones.
    still = {"train.learning_rate_max": 1e-10}
    trainer, totals = trained(BATCHES + 3, **still)
    task = make_task()
    stream = task.training_batches().for_training(0).take(BATCHES + 3)
    sums, counts = by_hand(task, trainer.model, stream)
    np.testing.assert_array_equal(trainer.carried()[0], counts)
    np.testing.assert_allclose(totals, sums, rtol=1e-5)


@pytest.mark.parametrize("parts", [2, 4])
def test_each_part_of_a_batch_carries_that_of_its_rows(parts):
    whole, totals = trained(5)
    in_parts, same_totals = trained(5, **{"train.accumulate_steps": parts})
    np.testing.assert_array_equal(whole.carried(), in_parts.carried())
    np.testing.assert_allclose(same_totals, totals, rtol=1e-5)
    for a, b in zip(whole.model.weights, in_parts.model.weights, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-5)


def test_a_new_stream_begins_anew_unless_a_state_is_given():
    trainer, _ = trained(5)
    before = trainer.carried()
    batches = make_task().training_batches()
    trainer.iterate(batches.for_training(0), batches.fillers)
    assert not trainer.carried()[0].any()
    trainer.carry(before)
    np.testing.assert_array_equal(trainer.carried(), before)


def test_an_evaluation_starts_from_nothing_and_carries_it():
    task = make_task()
    model = task.build_model()
    batches = task.evaluation_batches("validation")
    evaluator = Evaluator(model, task, make_strategy("one_device"))
    expected, _ = by_hand(task, model, batches.for_evaluation())
    for _ in range(2):
        np.testing.assert_allclose(
            evaluator.evaluate(batches, "toy"), expected, rtol=1e-5
        )


def carried_by(checkpoint):
    with np.load(checkpoint / CARRIED) as arrays:
        return arrays["arr_0"]


@pytest.mark.slow
def test_a_run_goes_on_with_the_state_that_it_had(tmp_path):
    for name, stops in (("whole", [18]), ("stopped", [10, 18])):
        for steps in stops:
            changes = {"train.epochs": None, "train.steps": steps, "train.log_every": 1}
            every = {"train.validate_every": 10, "train.accumulate_steps": 2}
            config = make_config(**changes, **every)
            train_and_evaluate(config, tmp_path / name)
    logs = [
        (tmp_path / name / "metrics.jsonl").read_bytes()
        for name in ("whole", "stopped")
    ]
    assert logs[0] == logs[1]
    states = [
        carried_by(tmp_path / name / "checkpoints/last/18")
        for name in ("whole", "stopped")
    ]
    np.testing.assert_array_equal(*states)
    assert states[0].sum() == 18 * ROWS * toys.NextByteOfSegmentTask.length
    # What evaluates or answers begins anew.
    run = load_run(tmp_path / "whole", average_checkpoints=1)
    fresh = run.task.text_model(run.model)
    assert run.predict(["1 2 3"]) == [
        fresh.answer(*fresh.outputs("serving_default", ["1 2 3"]))
    ]
    assert evaluate(tmp_path / "whole")[0] == evaluate(tmp_path / "stopped")[0]
    exported = tf.saved_model.load(
        export(tmp_path / "whole", tmp_path / "new")["export"]
    )
    answers = exported.signatures["serving_default"](tf.constant(["1 2 3"]))
    expected = run.text_model.outputs("serving_default", ["1 2 3"])
    for name, values in answers.items():
        np.testing.assert_allclose(values[0], expected[0][name], rtol=1e-5)


def test_tasks_that_carry_nothing_keep_nothing(tmp_path):
    config = toys.counting_config(**{"train.epochs": 1})
    train_and_evaluate(config, tmp_path / "run")
    assert not list(tmp_path.rglob(CARRIED))
