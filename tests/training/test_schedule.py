"""The learning rate against the authors' code."""

import numpy as np
import pytest

from tests.models.golden import load
from training.schedule import WarmupSchedule


def test_golden_schedule():
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


def test_config_round_trip():
    schedule = WarmupSchedule(0.5, 256, 8000)
    twin = WarmupSchedule.from_config(schedule.get_config())
    assert float(twin(123)) == float(schedule(123))
