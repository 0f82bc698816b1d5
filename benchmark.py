"""Measures models side by side: benchmark.py COMMAND [flags].

params   parameters of every variant and task, beside the paper's
speed    seconds of a training step or a forward pass, models by turns
floor    the matrix products of a training step, each alone, beside the step
memory   peak memory of the process, each model in one of its own
decode   seconds of a beam search, with a cache and recomputing every prefix
input    what a training command's data pipeline delivers and consumes
stream   memory while a parallel text of any size is read for training
"""

import json
from pathlib import Path

from training import cli  # first: it quiets TensorFlow's logs

from absl import flags
from ml_collections import config_flags

# The flags that each command takes.
_MODELS = {"models", "size", "lengths", "tokens_per_batch"}
_STEP = {"precision", "mode", "plot"}
_SEARCH = {"beam", "batch", "recompute"}
COMMANDS = {
    "params": set(),
    "speed": {*_MODELS, *_STEP, "rounds", "xla"},
    "floor": {*_MODELS, "rounds"},
    "memory": {*_MODELS, *_STEP},
    "decode": {"models", "size", "lengths", *_SEARCH, "rounds", "xla"},
    "input": {"config", "rounds"},
    "stream": {"pairs"},
}
# Where its defaults are other than the flags' own.
DECODE_DEFAULTS = {"size": "base", "lengths": ["16", "64", "128"]}
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
    "Variants, VARIANT-literal for the literal form; not for decode: keras-hub.",
)
SIZE = flags.DEFINE_enum(
    "size", "small", ["small", "base"], "Width 256 or 512. decode: base by default."
)
LENGTHS = flags.DEFINE_list(
    "lengths",
    ["1000", "2000", "3000", "4000"],
    "Tokens in a sequence. decode: of an output, rising, 16,64,128 by default.",
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
ROUNDS = flags.DEFINE_integer(
    "rounds", 5, "Timed rounds, after one to warm up.", lower_bound=5
)
XLA = flags.DEFINE_bool("xla", False, "speed, decode: compile by XLA.")
BEAM = flags.DEFINE_integer("beam", 4, "decode: hypotheses.", lower_bound=1)
BATCH = flags.DEFINE_integer("batch", 8, "decode: sentences.", lower_bound=1)
RECOMPUTE = flags.DEFINE_bool("recompute", True, "decode: time that too; slow.")
PAIRS = flags.DEFINE_integer(
    "pairs", 5_000_000, "stream: of sentences.", lower_bound=10_000
)
MARKDOWN = flags.DEFINE_bool("markdown", False, "A table instead of JSON rows.")
PLOT = flags.DEFINE_string("plot", None, "speed, memory: write a PNG here.")


def main(argv):
    from benchmarks import rows

    command = argv[1]
    if command == "decode":
        for name, value in DECODE_DEFAULTS.items():
            if not flags.FLAGS[name].present:
                flags.FLAGS[name].value = value
    _check_flags(command)
    measured = []
    try:
        for row in _measure(command):
            measured.append(row)
            if not MARKDOWN.value:
                print(json.dumps(row), flush=True)
    finally:
        if MARKDOWN.value and measured:
            print(rows.markdown(measured))
    if PLOT.value:
        rows.plot(measured, PLOT.value)


def _check_flags(command):
    from training.errors import UserError

    for name in set.union(*COMMANDS.values()) - COMMANDS[command]:
        if flags.FLAGS[name].present:
            raise UserError(f"--{name}: {command} does not take it")
    if PLOT.value:
        path = Path(PLOT.value)
        if path.suffix != ".png":
            raise UserError(f"--plot: expected a name in .png, found {path.name}")
        path.parent.mkdir(parents=True, exist_ok=True)
    for length in LENGTHS.value:
        if not length.isdecimal() or int(length) < 1:
            raise UserError(f"--lengths: expected positive numbers, found {length!r}")
    for name in ("models", "lengths"):
        chosen = flags.FLAGS[name].value
        if not chosen or len(set(chosen)) < len(chosen):
            raise UserError(f"--{name}: expected different ones, found {chosen}")
    if command == "input" and CONFIG.value is None:
        raise UserError("--config: expected a task and variant, found nothing")


def _measure(command):
    models = {
        "names": MODELS.value,
        "lengths": [int(length) for length in LENGTHS.value],
        "size": SIZE.value,
        "tokens_per_batch": TOKENS.value,
    }
    step = {"precision": PRECISION.value, "mode": MODE.value}
    if command == "params":
        from benchmarks import parameters

        return parameters.count()
    timing = {"rounds": ROUNDS.value, "jit_compile": XLA.value}
    if command == "speed":
        from benchmarks import speed

        return speed.measure(**models, **step, **timing)
    if command == "floor":
        from benchmarks import floor

        return floor.measure(**models, rounds=ROUNDS.value)
    if command == "decode":
        from benchmarks import decoding

        return decoding.measure(
            **{name: models[name] for name in ("names", "lengths", "size")},
            beam_size=BEAM.value,
            batch_size=BATCH.value,
            recompute=RECOMPUTE.value,
            **timing,
        )
    if command == "memory":
        from benchmarks import memory

        return memory.measure(**models, **step)
    if command == "stream":
        from benchmarks import stream

        return stream.measure(PAIRS.value)
    from benchmarks import pipeline

    return pipeline.measure(CONFIG.value, ROUNDS.value)


if __name__ == "__main__":
    cli.run(main, COMMANDS)
