"""Several processes that train one model together."""

import json
import os
import re
import socket
import time
from contextlib import contextmanager

import tensorflow as tf
from tensorflow.compiler.xla.tsl.protobuf.coordination_config_pb2 import CoordinatedJob
from tensorflow.python.eager import context

from common.errors import UserError

JOBS = ("chief", "worker")
# In seconds: for workers to be started by hand, and to notice that one has died.
START_LIMIT, SILENCE_LIMIT = 300, 20
# Of this worker, not of one that it has lost.
OWN_FAULTS = (
    tf.errors.DataLossError,
    tf.errors.NotFoundError,
    tf.errors.PermissionDeniedError,
    tf.errors.ResourceExhaustedError,
    tf.errors.UnauthenticatedError,
)
ADDRESS = re.compile(r".+:\d+")
EXAMPLE = (
    '{"cluster": {"worker": ["HOST:PORT", "HOST:PORT"]}, '
    '"task": {"type": "worker", "index": 0}}'
)


def connect() -> tf.distribute.MultiWorkerMirroredStrategy:
    """Waits for the workers of the environment variable TF_CONFIG.

    Raises:
      UserError: if it is malformed, or a worker does not come within `START_LIMIT`.
    """
    cluster, own_address = read_cluster()
    _meet(sum(cluster.values(), []), own_address)
    # TensorFlow's own waits are an hour and more; it offers no public way to say so.
    context.context().configure_coordination_service(
        service_type="standalone",
        service_leader=f"/job:{next(iter(cluster))}/replica:0/task:0",
        cluster_register_timeout_in_ms=1000 * START_LIMIT,
        heartbeat_timeout_in_ms=1000 * SILENCE_LIMIT,
        shutdown_barrier_timeout_in_ms=1000 * SILENCE_LIMIT,
        coordinated_jobs=[
            CoordinatedJob(name=job, num_tasks=len(addresses))
            for job, addresses in cluster.items()
        ],
    )
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except (tf.errors.OpError, RuntimeError, ValueError) as error:
        addresses = ", ".join(sum(cluster.values(), []))
        raise UserError(
            f"TF_CONFIG: expected the workers {addresses} within {START_LIMIT} s, "
            f"found {' '.join(str(error).split())[:200]}"
        ) from error


def _meet(addresses, own_address):
    """Waits until every worker answers: TensorFlow's chief waits an hour for one that
    is not there, and does not say for which."""
    end = time.monotonic() + START_LIMIT
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("", _split(own_address)[1]))
        except OSError as error:
            raise UserError(
                f"TF_CONFIG: expected the port of {own_address} to be free, found "
                f"{error.strerror}"
            ) from None
        listener.listen(len(addresses))
        absent = [address for address in addresses if address != own_address]
        while absent := [address for address in absent if not _answers(address)]:
            if time.monotonic() > end:
                raise UserError(
                    f"TF_CONFIG: expected all workers within {START_LIMIT} s, found no "
                    f"answer from {', '.join(absent)}"
                )
            time.sleep(0.1)


def _answers(address):
    try:
        socket.create_connection(_split(address), timeout=5).close()
        return True
    except OSError:
        return False


def _split(address):
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def read_cluster() -> tuple[dict[str, list[str]], str]:
    """The addresses of each job in TF_CONFIG, the chief's first, and this worker's.

    Raises:
      UserError: if it is malformed.
    """
    text = os.environ.get("TF_CONFIG", "")
    try:
        config = json.loads(text)
        cluster, task = config["cluster"], config["task"]
        each = sum((cluster[job] for job in JOBS if job in cluster), [])
        address = cluster[task["type"]][task["index"]]
        is_well_formed = (
            cluster.keys() <= set(JOBS)
            and all(cluster.values())
            and len(cluster.get("chief", [])) <= 1
            and type(task["index"]) is int
            and task["index"] >= 0
            and all(ADDRESS.fullmatch(one) and _split(one)[1] < 2**16 for one in each)
            and len(set(each)) == len(each)
        )
    except (ValueError, LookupError, TypeError, AttributeError):
        is_well_formed = False
    if not is_well_formed:
        shown = f"{' '.join(text.split()):.200}" or "nothing"
        raise UserError(
            f"TF_CONFIG: expected the form {EXAMPLE}, at most one chief, and each "
            f"address once, found {shown}"
        )
    return {job: cluster[job] for job in JOBS if job in cluster}, address


def place(strategy: tf.distribute.Strategy) -> tuple[int, int]:
    """The number of this worker, from 0, and how many there are."""
    resolver = strategy.cluster_resolver
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return 0, 1
    cluster = resolver.cluster_spec().as_dict()
    before = 0
    for job in JOBS:
        if job == resolver.task_type:
            before += resolver.task_id
            break
        before += len(cluster.get(job, []))
    return before, sum(len(cluster.get(job, [])) for job in JOBS)


class Agreement:
    """What any worker wants, all do: each asks at the same steps.

    Args:
      strategy: of the workers.

    Attributes:
      is_chief: whether this worker is the one that writes.
    """

    def __init__(self, strategy: tf.distribute.Strategy):
        self._strategy = strategy
        number, self._total = place(strategy)
        self.is_chief = number == 0
        self._sum = tf.function(self._summed, autograph=False)

    def any(self, *wishes: bool) -> list[bool]:
        """For each wish, whether a worker has it; waits for all workers to ask."""
        if self._total == 1:
            return list(wishes)
        wished = self._sum(tf.constant(wishes, tf.float32))
        return [bool(number) for number in wished.numpy()]

    def is_equal(self, number: int) -> bool:
        """Whether all workers have this number; waits for all workers to ask."""
        if self._total == 1:
            return True
        numbers = tf.constant([number, number**2], tf.float64)
        total, squares = self._sum(numbers).numpy()
        return total**2 == self._total * squares

    @contextmanager
    def explaining_losses(self):
        """Within it, what TensorFlow raises where a worker is lost is a `UserError`."""
        try:
            yield
        except OWN_FAULTS:
            raise
        except tf.errors.OpError as error:
            if self._total == 1:
                raise
            raise UserError(
                "expected all workers to go on, found that a worker was lost, or has "
                "failed and says why; start all of them again, and they go on from the "
                f"last checkpoint ({' '.join(str(error).split())[:200]})"
            ) from error

    def wait(self) -> None:
        """Until all workers are here."""
        self.any(False)

    def _summed(self, wishes):
        return self._strategy.reduce(
            "SUM", self._strategy.run(tf.identity, args=(wishes,)), axis=None
        )
