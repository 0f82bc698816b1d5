"""What the tests of the benchmarks share: models on which they take seconds."""

import keras
import pytest

from benchmarks import models, speed
from tests.benchmarks.turns import WIDTH
from tests.shallow import shallow_variant


@pytest.fixture
def quick(monkeypatch):
    """Few and narrow layers, a small product for the peak; `speed` sets the dtype
    policy of the process."""
    monkeypatch.setattr(models, "variant_config", shallow_variant)
    narrow = {**models.SIZES["small"], "hidden_dim": WIDTH, "ffn_dim": 2 * WIDTH}
    monkeypatch.setitem(models.SIZES, "small", narrow)
    monkeypatch.setattr(speed, "PEAK_SIZE", 256)
    yield
    keras.config.set_dtype_policy("float32")
