"""What TF_CONFIG must hold, said before anything waits."""

import json

import pytest
import tensorflow as tf

from common.errors import UserError
from training.cluster import workers

GOOD = {
    "cluster": {"worker": ["a:1", "b:2"]},
    "task": {"type": "worker", "index": 1},
}


@pytest.mark.parametrize(
    "config, found",
    [
        ("", "nothing"),
        ("{", "'{'"),
        ("[]", r"'\[\]'"),
        (json.dumps({"cluster": GOOD["cluster"]}), ".*"),
        (json.dumps({**GOOD, "cluster": {}}), "no workers"),
        (json.dumps({**GOOD, "cluster": {"worker": 5}}), ".*"),
        (json.dumps({**GOOD, "cluster": {"worker": []}}), "no workers"),
        (json.dumps({**GOOD, "cluster": {"ps": ["a:1"]}}), "the job ps"),
        (json.dumps({**GOOD, "cluster": {"worker": ["a"]}}), "the address 'a'"),
        (json.dumps({**GOOD, "cluster": {"worker": [5]}}), "the address 5"),
        (json.dumps({**GOOD, "cluster": {"worker": ["a:99999"]}}), "the address 'a:9"),
        (json.dumps({**GOOD, "cluster": {"worker": ["a:1", "a:1"]}}), "an address tw"),
        (
            json.dumps({**GOOD, "cluster": {"worker": {"a:1": 0}}}),
            r"\{'a:1': 0\} in pl",
        ),
        (json.dumps({**GOOD, "cluster": {"chief": ["a:1", "b:2"]}}), "more than one c"),
        (json.dumps({**GOOD, "task": {"type": "worker", "index": 2}}), "the task work"),
        (
            json.dumps({**GOOD, "task": {"type": "worker", "index": True}}),
            "the task wo",
        ),
        (json.dumps({**GOOD, "task": {"type": "worker", "index": "0"}}), "the task wo"),
        (json.dumps({**GOOD, "task": {"type": "chief", "index": 0}}), "the task chief"),
        (json.dumps({**GOOD, "task": {"type": [], "index": 0}}), ".*"),
    ],
)
def test_a_malformed_cluster_is_refused(config, found, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", config)
    with pytest.raises(
        UserError, match=f"^TF_CONFIG: expected the form .*, found {found}"
    ):
        workers.connect()


def test_one_process_agrees_with_itself():
    agreement = workers.Agreement(tf.distribute.OneDeviceStrategy("CPU:0"))
    assert agreement.is_chief
    assert agreement.any(True, False) == [True, False]
    agreement.wait()


def test_only_a_lost_worker_is_called_lost():
    agreement = workers.Agreement(tf.distribute.OneDeviceStrategy("CPU:0"))
    agreement._total = 2
    with pytest.raises(UserError, match="a worker was lost"), agreement.own_errors():
        raise tf.errors.UnavailableError(None, None, "gone")
    full = tf.errors.ResourceExhaustedError(None, None, "No space left on device")
    with pytest.raises(tf.errors.ResourceExhaustedError), agreement.own_errors():
        raise full
