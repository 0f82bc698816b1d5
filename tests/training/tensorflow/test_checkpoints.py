"""Checkpoints keep every variable, and damage is found and survived."""

import keras
import numpy as np
import pytest

from common import checksums
from common.checksums import DamagedError
from common.errors import UserError
from models import build_classifier, variant_config
from training.metrics import Totals
from training.run_state import BEST, LAST, RESUME, RunState
from training.tensorflow.checkpoints import MOST_READINGS, Checkpoints, RemovedError


class Model(keras.Model):
    def __init__(self, names=("a", "b"), shape=()):
        super().__init__(name="model")
        for number, name in enumerate(names):
            weight = self.add_weight(name=name, shape=shape, initializer="zeros")
            setattr(self, f"weight_{number}", weight)
        self.built = True


def test_two_variables_of_one_path_are_refused(tmp_path):
    with pytest.raises(ValueError, match="a: two variables have this path"):
        Checkpoints(tmp_path, Model(("a", "a")))


@pytest.fixture
def saved(tmp_path):
    """Checkpoints of the kinds and steps; the weight says which was restored."""

    def save(*kinds_and_steps, keep=1):
        model = Model()
        checkpoints = Checkpoints(tmp_path, model, keep=keep)
        for kind, step in kinds_and_steps:
            model.weight_0.assign(step)
            totals = Totals(0.1 * step, step, 3.0)
            checkpoints.save(kind, RunState(step, 0, 0.1, None, None, 3, "sum", totals))
        return checkpoints

    return save


def test_the_state_comes_back_to_the_bit(saved):
    state, kind = saved((LAST, 7)).resume()
    assert kind == LAST
    assert state == RunState(7, 0, 0.1, None, None, 3, "sum", Totals(0.1 * 7, 7, 3.0))
    assert isinstance(state.totals, Totals)


def resumed(checkpoints):
    state, kind = checkpoints.resume()
    assert float(checkpoints.model.weight_0.numpy()) == state.step
    return kind, state.step


def test_the_newest_is_resumed_and_the_validated_one_of_equals(saved):
    assert resumed(saved((LAST, 10), (RESUME, 15), (BEST, 10))) == (RESUME, 15)
    assert resumed(saved((RESUME, 20), (BEST, 20))) == (BEST, 20)
    assert resumed(saved((LAST, 20))) == (LAST, 20)


def test_the_best_stands_for_a_damaged_last(saved, tmp_path):
    checkpoints = saved((RESUME, 0), (BEST, 40), (LAST, 40))
    DAMAGES["cut"](tmp_path / "checkpoints/last/40/state.json")
    assert resumed(checkpoints) == (BEST, 40)


def test_old_ones_go_and_those_of_a_part_taken_back(saved):
    checkpoints = saved(*((LAST, step) for step in (10, 20, 30, 40)), keep=2)
    assert checkpoints.steps(LAST) == [30, 40]
    checkpoints.save(LAST, RunState(35))
    assert checkpoints.steps(LAST) == [30, 35]


DAMAGES = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "flipped": lambda path: path.write_bytes(
        bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:]
    ),
    "emptied": lambda path: path.write_bytes(b""),
    "missing": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    "name", ["weights.index", "weights.data-00000-of-00001", "state.json", "sums"]
)
def test_damage_is_named_and_an_older_one_is_used(
    saved, tmp_path, name, damage, caplog
):
    checkpoints = saved((LAST, 10), (LAST, 20), (BEST, 10), keep=2)
    path = tmp_path / "checkpoints/last/20" / name.replace("sums", "checksums.json")
    DAMAGES[damage](path)
    assert resumed(checkpoints) == (LAST, 10)
    assert str(path) in caplog.text or name == "sums"
    assert checkpoints.steps(LAST) == [10, 20]
    for folder in ("last/10", "best/10"):
        DAMAGES[damage](tmp_path / "checkpoints" / folder / path.name)
    with pytest.raises(DamagedError, match="checkpoints/best/10/"):
        checkpoints.resume()
    with pytest.raises(DamagedError, match="checkpoints/best/10/"):
        checkpoints.restore_best()


def test_what_killed_saves_left_is_cleaned(saved, tmp_path):
    checkpoints = saved((LAST, 10))
    (tmp_path / "checkpoints/last/unfinished-20").mkdir()
    checkpoints.clean()
    assert [path.name for path in (tmp_path / "checkpoints/last").iterdir()] == ["10"]


READINGS = {
    "best": lambda checkpoints: checkpoints.restore_best(),
    "best weights": lambda checkpoints: checkpoints.best_weights(),
    "average": lambda checkpoints: checkpoints.restore_average(1),
}


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_one_that_a_training_removes_meanwhile_is_read_again(
    saved, tmp_path, monkeypatch, reading, moment
):
    training, check, seen = saved((BEST, 10), (LAST, 10)), checksums.check, []

    def check_and_train(folder):
        seen.append(folder.name)
        if moment == "after":
            check(folder)
        if len(seen) == 1:
            training.model.weight_0.assign(20)
            for kind in (BEST, LAST):
                training.save(kind, RunState(20))
        if moment == "before":
            check(folder)

    monkeypatch.setattr(checksums, "check", check_and_train)
    reader = Checkpoints(tmp_path, Model())
    weights = READINGS[reading](reader)
    weight = weights["model/a"] if weights else reader.model.weight_0.numpy()
    assert seen == ["10", "20"]
    assert weight == 20


def test_those_that_are_always_removed_end_with_a_line(saved, tmp_path, monkeypatch):
    training, step = saved((BEST, 1)), 1

    def train(folder):
        nonlocal step
        step += 1
        training.save(BEST, RunState(step))

    monkeypatch.setattr(checksums, "check", train)
    with pytest.raises(RemovedError, match="found that it was removed while it was re"):
        Checkpoints(tmp_path, Model()).restore_best()
    assert step == 1 + MOST_READINGS
    assert training.steps(BEST) == [step]
    assert len(list((tmp_path / "checkpoints/best").iterdir())) == 1


def test_those_of_another_model_are_refused(saved, tmp_path):
    saved((LAST, 10), (BEST, 10))
    other = Checkpoints(tmp_path, Model(("a", "c")))
    said = (
        "10: expected the variables of this model, found others: model/b, model/c; open"
    )
    for restore in (other.resume, other.restore_best):
        with pytest.raises(UserError, match=said):
            restore()


def test_a_weight_goes_unused_only_where_that_is_said(saved, tmp_path):
    saved((BEST, 10))
    model = Model(("a",))
    with pytest.raises(UserError, match="found others: model/b; open"):
        Checkpoints(tmp_path, model).restore_best()
    Checkpoints(tmp_path, model, unused=("b",)).restore_best()
    assert model.weight_0.numpy() == 10


def test_weights_of_another_shape_are_refused(saved, tmp_path):
    saved((BEST, 10))
    with pytest.raises(UserError, match="found others: model/a, model/b; open"):
        Checkpoints(tmp_path, Model(shape=(2,))).restore_best()


def test_those_of_older_code_are_refused(saved, tmp_path):
    checkpoints = saved()
    (tmp_path / "checkpoints/best").mkdir(parents=True)
    (tmp_path / "checkpoints/best/checkpoint").touch()
    with pytest.raises(UserError, match="found those of an older one"):
        checkpoints.restore_best()


def test_redrawing_goes_on_where_it_was(tmp_path):
    def make():
        config = variant_config("transformer-linear-favor")
        sizes = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "ffn_dim": 8}
        attention = {**config["attention"], "num_features": 4, "redraw_every": 2}
        config = {**config, **sizes, "dropout": 0.0, "attention": attention}
        return build_classifier(config, vocabulary_size=5, num_classes=2)

    model, resumed, texts = make(), make(), np.array([[1, 2, 3, 4]])
    for _ in range(3):
        model(texts, training=True)
    Checkpoints(tmp_path, model).save(LAST, RunState(3))
    Checkpoints(tmp_path, resumed).resume()
    for _ in range(2):  # of one draw, and of the next
        expected, found = model(texts, training=True), resumed(texts, training=True)
        np.testing.assert_array_equal(found, expected)
    assert (np.array(make()(texts)) != np.array(found)).any()
