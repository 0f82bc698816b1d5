"""What memory an update takes, from the operations that it is made of."""

import logging
import math
import os
from itertools import zip_longest
from pathlib import Path

import tensorflow as tf

from common.errors import UserError
from models import ARCHITECTURES

# How far a prediction may be off, of what is measured.
TOLERANCE = 0.25
# GiB that the chips of a TPU have together, by the name that a TPU VM has in
# TPU_ACCELERATOR_TYPE: TensorFlow does not say how much memory they have.
TPU_MEMORY = {"v2-8": 64, "v3-8": 128, "v4-8": 128}
# What a container may have, by version 2 of Linux's control groups.
CGROUP = Path("/sys/fs/cgroup")
# An output of theirs is an input's memory under another shape.
VIEWS = {
    "ExpandDims",
    "Identity",
    "IdentityN",
    "PreventGradient",
    "Reshape",
    "Squeeze",
    "StopGradient",
}
# Their output may take the place of an input of its size that nothing else needs.
IN_PLACE = {
    "Add",
    "AddN",
    "AddV2",
    "BiasAdd",
    "Cast",
    "Exp",
    "Log",
    "Mul",
    "Neg",
    "RealDiv",
    "Relu",
    "ReluGrad",
    "Rsqrt",
    "SelectV2",
    "Softmax",
    "Sqrt",
    "Square",
    "SquaredDifference",
    "Sub",
}
# What they give lies in memory before.
OUTSIDE = {"OptionalGetValue", "Placeholder", "ReadVariableOp"}
POINTERS = (tf.resource, tf.variant, tf.string)
# Attributes that name functions.
FUNCTIONS = ("f", "then_branch", "else_branch", "body")


logger = logging.getLogger("transevolve")


def check_model_fits(config, vocabulary_size: int, strategy) -> None:
    """Checks, before a model is built, that a device can hold it at all.

    Its embedding and the least that its encoder needs are counted, as weights with
    Adam's two moments.

    Args:
      config: the `model` part of a config.
      vocabulary_size: of its tokenizer.
      strategy: whose devices are meant.

    Raises:
      UserError: if a device has less memory than that.
    """
    size = config.hidden_dim * vocabulary_size
    size += ARCHITECTURES[config.architecture].least_size(config)
    if short := shortage(3 * 4 * size, strategy):
        raise UserError(
            f"expected memory for the model, {short}; a smaller "
            f"--config.model.hidden_dim={config.hidden_dim} needs less, and so does a "
            f"smaller --config.model.ffn_dim={config.ffn_dim}, fewer layers or a "
            "smaller vocabulary"
        )


def check_updates_fit(trainer, training, evaluator, validation) -> None:
    """Logs what an update of the longest batches takes.

    Of a validation batch too, if there are longer ones: no pair is left out there.

    Args:
      trainer, evaluator: a `Trainer`, an `Evaluator`.
      training, validation: the `data.batches.Batches` that they are for. Where their
        length is None, there is nothing to predict.

    Raises:
      UserError: if a device does not have as much.
    """
    rows, length = longest = _longest(training)
    if length is None:
        return
    specs = training.for_training(seed=0).element_spec
    size = trainer.update_bytes(specs, longest)
    _check_fits(f"an update of {rows:,} x {length:,}", size, trainer.strategy)
    rows, longer = longest = _longest(validation)
    if longer > length:
        size = evaluator.batch_bytes(validation.for_evaluation().element_spec, longest)
        batch = f"a validation batch of {rows:,} x {longer:,}"
        _check_fits(batch, size, trainer.strategy)


def part_of_batch(specs, rows: int, length: int) -> dict[str, tf.TensorSpec]:
    """What a device gets of a batch: so many rows, of a length where they have one."""
    return {
        name: tf.TensorSpec([rows, length][: spec.shape.rank], spec.dtype)
        for name, spec in specs.items()
    }


def _longest(batches):
    shapes = batches.shapes
    if any(length is None for _, length in shapes):
        return shapes[0][0], None
    return max(shapes, key=lambda shape: (shape[1], shape[0]))


def shortage(size: int, strategy, certain: bool = False) -> str | None:
    """Bytes that each device is to have and those that it has left, for people.

    None where they suffice, or where they cannot be known.

    Args:
      size: bytes, as predicted.
      strategy: whose devices are meant.
      certain: whether to name bytes that may not suffice, as far as a prediction may
        be off; else those that cannot.
    """
    free = _free_bytes(strategy)
    least = size / (1 - TOLERANCE if certain else 1 + TOLERANCE)
    if free is None or least <= free:
        return None
    return f"about {size / 1e9:.1f} GB on each device, found {free / 1e9:.1f} GB"


def _check_fits(what, size, strategy):
    free = _free_bytes(strategy)
    left = "" if free is None else f" of {free / 1e9:.1f}"
    logger.info("%s takes about %.1f%s GB of a device", what, size / 1e9, left)
    if short := shortage(size, strategy):
        raise UserError(
            f"expected memory for {what}, {short}; a larger "
            "--config.train.accumulate_steps needs less, and so does a smaller "
            "--config.train.batch_size, or shorter texts"
        )


def _free_bytes(strategy):
    """What each device of a strategy has left; None where that cannot be known."""
    devices = strategy.extended.worker_devices
    kind = tf.DeviceSpec.from_string(devices[0]).device_type
    if kind == "CPU":
        free = _free_bytes_of_this_machine()
        return free and free / len(devices)
    if kind == "GPU":
        from tensorflow.python.client import device_lib

        sizes = [
            x.memory_limit
            for x in device_lib.list_local_devices()
            if x.device_type == kind
        ]
        used = tf.config.experimental.get_memory_info("GPU:0")["current"]
        return min(sizes) - used
    if kind == "TPU":
        memory = TPU_MEMORY.get(os.environ.get("TPU_ACCELERATOR_TYPE"))
        return memory and memory * 2**30 / len(devices)
    return None


def _free_bytes_of_this_machine():
    """What Linux and the control group of a container leave; None on macOS."""
    status = Path("/proc/meminfo")
    if not status.exists():
        return None
    lines = dict(line.split(":") for line in status.read_text().splitlines())
    free = int(lines["MemAvailable"].split()[0]) * 1024
    limit, used = (CGROUP / f"memory.{name}" for name in ("max", "current"))
    if limit.exists() and (most := limit.read_text().strip()) != "max":
        # Of what is used, files in memory count too, and go where they are in the way.
        statistics = dict(
            map(str.split, (CGROUP / "memory.stat").read_text().splitlines())
        )
        in_use = int(used.read_text()) - int(statistics["inactive_file"])
        free = min(free, max(0, int(most) - in_use))
    return free


def predicted_bytes(graph: tf.Graph) -> int:
    """What a traced function takes of a device's memory, for its tensors.

    That is the most that they hold at a time, and the largest of them once more:
    memory is a pool, in which what was freed lies in pieces that are too small for it.
    Inputs and variables are not counted.

    Args:
      graph: of a `tf.function`; tensors of unknown shape are not counted.
    """
    sizes = [_bytes(x) for each in graph.get_operations() for x in each.outputs]
    return _most_held(graph) + max(sizes)


def _most_held(graph):
    """Operations are taken in the order of tracing. A tensor lives from the one that
    makes it to the last that reads it."""
    operations = graph.get_operations()
    memory, last_use = {}, {}
    for number, operation in enumerate(operations):
        for output, source in zip_longest(operation.outputs, operation.inputs):
            if output is not None:
                is_view = operation.type in VIEWS and source is not None
                memory[output.ref()] = memory[source.ref()] if is_view else output.ref()
        for tensor in operation.inputs:
            last_use[memory[tensor.ref()]] = number
    for tensor in graph.outputs:
        last_use[memory[tensor.ref()]] = len(operations)
    held, total, most = {}, 0, 0
    for number, operation in enumerate(operations):
        held_inside, inner = _inside(operation, graph)
        most = max(most, total + held_inside)
        ended = {memory[tensor.ref()] for tensor in operation.inputs}
        ended = [key for key in ended if key in held and last_use[key] == number]
        sizes = _output_bytes(operation, inner)
        for output, size in zip(operation.outputs, sizes, strict=True):
            key = output.ref()
            if memory[key] != key or operation.type in OUTSIDE or key not in last_use:
                continue
            free = [x for x in ended if held[x] == size]
            if operation.type in IN_PLACE and free:
                ended.remove(free[0])
                held[key] = held.pop(free[0])
            else:
                held[key] = size
                total += size
        most = max(most, total)
        total -= sum(held.pop(key) for key in ended)
    return most


def _inside(operation, graph):
    """What a call or a branch holds, and its graph; of two branches the one that takes
    less, as the other is for what seldom happens."""
    names = [
        attribute for attribute in FUNCTIONS if attribute in operation.node_def.attr
    ]
    graphs = [graph._get_function(operation.get_attr(x).name).graph for x in names]
    held = [(_most_held(inner), inner) for inner in graphs]
    return min(held, key=lambda pair: pair[0], default=(0, None))


def _output_bytes(operation, inner):
    """Bytes of each output; optionals have what a branch keeps for its gradient."""
    sizes = [_bytes(output) for output in operation.outputs]
    if "then_branch" in operation.node_def.attr:
        counted = {_source(x).ref() for x in inner.outputs}
        for number, output in enumerate(inner.outputs):
            if _source(output).op.type in OUTSIDE:  # handed on as it came
                sizes[number] = 0
            elif output.op.type == "OptionalFromValue":
                stored = _source(output.op.inputs[0])
                if stored.ref() not in counted and stored.op.type not in OUTSIDE:
                    counted.add(stored.ref())
                    sizes[number] = _bytes(stored)
    return sizes


def _source(tensor):
    """What a view is a view of."""
    while tensor.op.type in VIEWS:
        tensor = tensor.op.inputs[0]
    return tensor


def _bytes(tensor):
    if tensor.dtype in POINTERS or not tensor.shape.is_fully_defined():
        return 0
    return math.prod(tensor.shape) * tensor.dtype.size
