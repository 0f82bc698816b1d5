"""The learning rate against the authors' code."""

import numpy as np
import pytest
from ml_collections import ConfigDict

from common.errors import UserError
from configs import listops
from tests.models.golden import load
from training import config as configuration
from training.schedule import CosineSchedule, WarmupSchedule, make_schedule


def test_the_schedule_is_the_authors():
    golden = load("official_schedule.npz")
    schedule = WarmupSchedule(
        float(golden["lr_max"]), int(golden["hidden"]), int(golden["warmup"])
    )
    # Steps of the golden file count from 1; an optimizer's iterations from 0.
    found = [float(schedule(step - 1)) for step in golden["steps"]]
    np.testing.assert_allclose(found, golden["lr"], rtol=1e-6)


def test_peak_is_at_the_end_of_the_warmup():
    schedule = WarmupSchedule(0.5, 256, 8000)
    rates = [float(schedule(step)) for step in (0, 7998, 7999, 8000, 20000)]
    assert max(rates) == rates[2] == pytest.approx(0.5 / (256 * 8000) ** 0.5)


def test_a_cosine_falls_to_zero():
    schedule = CosineSchedule(3e-4, 10, 110)
    found = [float(schedule(step - 1)) for step in (1, 5, 10, 35, 60, 85, 110, 200)]
    falling = [(1 + np.cos(np.pi * share)) / 2 for share in (0.25, 0.5, 0.75, 1, 1)]
    expected = 3e-4 * np.array([0.1, 0.5, 1, *falling])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-10)


def test_settings_choose_one():
    settings = ConfigDict(
        {"learning_rate_max": 1.0, "warmup_steps": 4, "steps": 9, "schedule": None}
    )
    assert isinstance(make_schedule(settings, 16), WarmupSchedule)
    settings = ConfigDict({**settings, "schedule": "cosine"})
    assert isinstance(make_schedule(settings, 16), CosineSchedule)


def test_a_cosine_needs_the_number_of_steps():
    config = listops.get_config()
    config.train.schedule = "cosine"
    message = "--config.train.steps: expected a number beside train.schedule=cosine"
    with pytest.raises(UserError, match=message):
        configuration.check(config)
    config.train.steps = 100
    configuration.check(config)


def test_a_run_needs_an_end():
    config = listops.get_config()
    config.train.epochs = None
    message = "--config.train.steps: expected a number without train.epochs, found None"
    with pytest.raises(UserError, match=message):
        configuration.check(config)


@pytest.mark.parametrize(
    "schedule", [WarmupSchedule(0.5, 256, 8000), CosineSchedule(0.1, 20, 500)]
)
def test_config_round_trip(schedule):
    twin = type(schedule).from_config(schedule.get_config())
    assert float(twin(123)) == float(schedule(123))
