"""Where the time of a step goes, by part of the model."""

import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from benchmarks.calls import Setting, check, each
from common.progress import progress_bar

# Steps before the profile, and in it.
WARM_UP, STEPS = 3, 5
# A traced operation is called PATH:KIND. Its part is the first whose pattern occurs.
OPERATION = re.compile(r"([^:]+):(\w+)")
PARTS = {
    "matrix products": r":\w*MatMul",
    "optimizer": r"/adam/",
    "dropout": r"dropout",
    "normalisation": r"norm",
    "feed-forward, beside products": r"/feed_forward",
    "attention, beside products": r"attention|/cond",
    "embedding": r"/embedding",
    "sums of gradients": r"/AddN",
    "the rest": "",
}


def measure(
    names: list[str], lengths: list[int], tokens_per_batch: int = 4000, **setting
) -> Iterator[dict]:
    """Yields a row for each model, length and part of the model.

    Seconds are those of a step that threads are busy with the part: operations run
    beside each other, so they add up to more than a step takes. A gradient by hand has
    no layer's name, so what is no product of it is in the rest. Arguments are as for
    `speed.measure`, but variants alone are profiled.

    Raises:
      UserError: if a model is unknown, or cannot attend causally where it must.
    """
    setting = Setting(**setting)
    check(names, setting)
    each_model = each("profile", names, lengths, setting, tokens_per_batch)
    num_models = len(lengths) * len(names)
    for row, prepared in progress_bar(each_model, total=num_models, desc="profiles"):
        if prepared.not_run:
            yield row
            continue
        seconds, counts = _by_part(_traced(prepared.call))
        total = sum(seconds.values())
        for part, taken in seconds.most_common():
            yield {
                **row,
                "part": part,
                "operations": round(counts[part] / STEPS),
                "busy_seconds": round(taken / STEPS, 5),
                "share": round(taken / total, 3),
            }


def _traced(step):
    """Names of what ran in some steps, and the picoseconds of each."""
    for _ in range(WARM_UP):
        step()
    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder):
            for _ in range(STEPS):
                step()
        (path,) = Path(folder).rglob("*.xplane.pb")
        space = xplane_pb2.XSpace.FromString(path.read_bytes())
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                yield plane.event_metadata[event.metadata_id].name, event.duration_ps


def _by_part(events):
    seconds, counts = Counter(), Counter()
    for name, picoseconds in events:
        if OPERATION.fullmatch(name):
            part = next(part for part, mark in PARTS.items() if re.search(mark, name))
            seconds[part] += picoseconds * 1e-12
            counts[part] += 1
    return seconds, counts
