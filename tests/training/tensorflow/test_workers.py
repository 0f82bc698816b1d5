"""What TF_CONFIG must hold, said before anything waits."""

import json
import re

import pytest
import tensorflow as tf

from common.errors import UserError
from training.tensorflow import workers

GOOD = {
    "cluster": {"worker": ["a:1", "b:2"]},
    "task": {"type": "worker", "index": 1},
}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        *(
            json.dumps({**GOOD, **change})
            for change in [
                {"task": None},
                {"cluster": {}},
                {"cluster": {"worker": 5}},
                {"cluster": {"worker": []}},
                {"cluster": {"worker": ["a:1", "b:2"], "chief": []}},
                {"cluster": {"worker": ["a:1", "b:2"], "ps": ["c:3"]}},
                {"cluster": {"worker": ["a:1", "b"]}},
                {"cluster": {"worker": ["a:1", 5]}},
                {"cluster": {"worker": ["a:1", "b:99999"]}},
                {"cluster": {"worker": ["a:1", "a:1"]}},
                {"cluster": {"worker": {"a:1": 0, "b:2": 1}}},
                {"cluster": {"worker": ["a:1", "b:2"], "chief": ["c:3", "d:4"]}},
                {"task": {"type": "worker", "index": 2}},
                {"task": {"type": "worker", "index": -1}},
                {"task": {"type": "worker", "index": True}},
                {"task": {"type": "worker", "index": "0"}},
                {"task": {"type": "chief", "index": 0}},
                {"task": {"type": [], "index": 0}},
            ]
        ),
    ],
)
def test_a_malformed_cluster_is_refused(text, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", text)
    shown = re.escape(text or "nothing")
    with pytest.raises(UserError, match=f"^TF_CONFIG: expected .*, found {shown}$"):
        workers.connect()


def test_a_well_formed_cluster_is_read(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", json.dumps(GOOD))
    assert workers.read_cluster() == ({"worker": ["a:1", "b:2"]}, "b:2")


def test_one_process_agrees_with_itself():
    agreement = workers.Agreement(tf.distribute.OneDeviceStrategy("CPU:0"))
    assert agreement.is_chief
    assert agreement.any(True, False) == [True, False]
    agreement.wait()


def test_only_a_lost_worker_is_called_lost():
    agreement = workers.Agreement(tf.distribute.OneDeviceStrategy("CPU:0"))
    agreement._total = 2
    with (
        pytest.raises(UserError, match="a worker was lost"),
        agreement.explaining_losses(),
    ):
        raise tf.errors.UnavailableError(None, None, "gone")
    full = tf.errors.ResourceExhaustedError(None, None, "No space left on device")
    with pytest.raises(tf.errors.ResourceExhaustedError), agreement.explaining_losses():
        raise full
