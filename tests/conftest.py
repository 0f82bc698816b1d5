"""Paths and helpers that tests share."""

import gc
import os
from pathlib import Path

import hypothesis
import pytest

# How long an example takes is the machine's affair, tracing included.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Several processes test side by side; threads that wait for each other take their time.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")
# Tests compile much and run what they compiled once.
flags = ["--xla_backend_optimization_level=0"]
if os.environ.get("KERAS_BACKEND") == "jax":
    flags.append("--xla_cpu_use_fusion_emitters=false")  # half the time to compile
os.environ.setdefault("XLA_FLAGS", " ".join(flags))
ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"


def pytest_collection_modifyitems(items):
    """Long files first: neither of two workers should end long before the other."""
    longest, marks = "test_fuzz.py", ("script", "slow")
    items.sort(
        key=lambda item: (
            item.path.name != longest,
            *(item.get_closest_marker(mark) is None for mark in marks),
        )
    )


def pytest_collection_finish():
    """Leaves what imports have made out of each search for garbage, which took a tenth
    of the time of a test."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter):
    """Says what tests have counted, by `record_property`."""
    for report in terminalreporter.getreports("passed"):
        for name, counted in report.user_properties:
            terminalreporter.line(f"{report.nodeid}: {name} {counted}")


@pytest.fixture(autouse=True)
def seeded():
    """Gives every run of a test the same initial weights."""
    import keras

    keras.utils.set_random_seed(0)


@pytest.fixture
def shared():
    """Real data beside the checkout; tests of it skip where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("no sample data beside this checkout")
    return SHARED


@pytest.fixture
def recent(monkeypatch):
    """How many slots of a cache are recent: few, so that short targets pass them."""
    from models.attention import cache

    monkeypatch.setattr(cache, "RECENT", 4)
    monkeypatch.setattr(cache, "FIRST_POSITIONS", 8)
    return 4
