"""Checkpoints keep every variable, and the best by the task's direction."""

import keras
import pytest

from training.checkpoints import Checkpoints


class Model(keras.Model):
    def __init__(self, names=("a", "b")):
        super().__init__(name="model")
        for number, name in enumerate(names):
            weight = self.add_weight(name=name, shape=(), initializer="zeros")
            setattr(self, f"weight_{number}", weight)
        self.built = True


def test_two_variables_of_one_path_are_refused(tmp_path):
    with pytest.raises(ValueError, match="a: two variables have this path"):
        Checkpoints(tmp_path, Model(("a", "a")))


@pytest.mark.parametrize(
    "higher_is_better, best, step", [(True, 0.9, 2), (False, 0.1, 3)]
)
def test_the_best_is_by_direction(tmp_path, higher_is_better, best, step):
    model = Model()
    checkpoints = Checkpoints(tmp_path, model, higher_is_better=higher_is_better)
    for number, score in enumerate((0.5, 0.9, 0.1, 0.9, 0.1), start=1):
        model.weight_0.assign(number)
        checkpoints.save(number, score, None)
    assert checkpoints.best_score == best
    checkpoints.restore_best(tmp_path)
    assert float(model.weight_0.numpy()) == step  # the first of equals
