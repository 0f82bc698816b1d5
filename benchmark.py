"""Measures models side by side: benchmark.py params|speed|floor|memory|input.

params   parameters of every variant and task, beside the paper's
speed    seconds of a training step or a forward pass, models by turns
floor    the matrix products of a training step, each alone, beside the step
memory   peak memory of the process, each model in one of its own
input    what a training command's data pipeline delivers and consumes
"""

import json

from training import cli  # first: it quiets TensorFlow's logs

from absl import flags
from ml_collections import config_flags

COMMANDS = ("params", "speed", "floor", "memory", "input")
VARIANTS = [
    "transformer",
    "transevolve-randomff-1",
    "transevolve-randomff-2",
    "transevolve-fullff-1",
    "transevolve-fullff-2",
]

CONFIG = config_flags.DEFINE_config_file(
    "config", None, "input: task and variant, with train.py's --config.FIELD flags."
)
MODELS = flags.DEFINE_list(
    "models",
    VARIANTS,
    "speed, memory: variants, VARIANT-literal for the literal form, keras-hub.",
)
SIZE = flags.DEFINE_enum("size", "small", ["small", "base"], "Width 256 or 512.")
LENGTHS = flags.DEFINE_list(
    "lengths", ["1000", "2000", "3000", "4000"], "Tokens in a sequence."
)
TOKENS = flags.DEFINE_integer(
    "tokens_per_batch", 4000, "As many sequences as fit, at least one.", lower_bound=1
)
PRECISION = flags.DEFINE_enum(
    "precision", "float32", ["float32", "bfloat16"], "Of activations and products."
)
MODE = flags.DEFINE_enum(
    "mode", "train", ["train", "inference"], "Training step or forward pass."
)
ROUNDS = flags.DEFINE_integer("rounds", 5, "That count.", lower_bound=5)
XLA = flags.DEFINE_bool("xla", False, "speed: compile by XLA.")
MARKDOWN = flags.DEFINE_bool("markdown", False, "A table instead of JSON rows.")
PLOT = flags.DEFINE_string("plot", None, "speed, memory: write a PNG here.")


def main(argv):
    from benchmarks import rows

    command = argv[1]
    measured = []
    for row in _measure(command):
        measured.append(row)
        if not MARKDOWN.value:
            print(json.dumps(row), flush=True)
    if MARKDOWN.value:
        print(rows.markdown(measured))
    if PLOT.value:
        rows.plot(measured, PLOT.value)


def _measure(command):
    from training.errors import UserError

    shared = {
        "names": MODELS.value,
        "lengths": _lengths(),
        "size": SIZE.value,
        "precision": PRECISION.value,
        "mode": MODE.value,
        "tokens_per_batch": TOKENS.value,
    }
    if PLOT.value and command not in ("speed", "memory"):
        raise UserError(f"--plot: expected the command speed or memory, not {command}")
    if command == "params":
        from benchmarks import parameters

        return parameters.count()
    if command == "speed":
        from benchmarks import speed

        return speed.measure(**shared, rounds=ROUNDS.value, jit_compile=XLA.value)
    if command == "floor":
        from benchmarks import floor

        return floor.measure(
            MODELS.value, _lengths(), SIZE.value, TOKENS.value, ROUNDS.value
        )
    if command == "memory":
        from benchmarks import memory

        return memory.measure(**shared)
    from benchmarks import pipeline

    if CONFIG.value is None:
        raise UserError("--config: expected a task and variant, found nothing")
    return pipeline.measure(CONFIG.value, ROUNDS.value)


def _lengths():
    from training.errors import UserError

    for length in LENGTHS.value:
        if not length.isdecimal() or int(length) < 1:
            raise UserError(f"--lengths: expected positive numbers, found {length!r}")
    return [int(length) for length in LENGTHS.value]


if __name__ == "__main__":
    cli.run(main, COMMANDS)
