"""The commands of benchmark.py, and the flags that each takes."""

from absl import flags
from ml_collections import config_flags

from common.errors import UserError
from common.paths import check_writable_file, make_path

MOST_TOKENS = 1_000_000
WHOLE, CHOICE, LIST = flags.DEFINE_integer, flags.DEFINE_enum, flags.DEFINE_list
BOOLEAN, TEXT = flags.DEFINE_bool, flags.DEFINE_string
CONFIG = config_flags.DEFINE_config_file
TASKS = ["classification", "translation"]
# What defines each flag, its default, and what else that takes.
FLAGS = {
    "models": (
        LIST,
        None,
        "Variants, by default the paper's; for speed also pytorch, and "
        "CHECKOUT:VARIANT for a variant by the code of another checkout, or of a clone "
        "of the authors' repository.",
    ),
    "size": (CHOICE, "small", ["small", "base"], "Width 256 or 512."),
    "lengths": (LIST, ["1000", "2000", "3000", "4000"], "Tokens in a sequence."),
    "tokens_per_batch": (
        WHOLE,
        4000,
        "As many sequences as fit, at least one.",
        1,
        MOST_TOKENS,
    ),
    "precision": (
        CHOICE,
        "float32",
        ["float32", "bfloat16"],
        "Of activations and products.",
    ),
    "mode": (
        CHOICE,
        "train",
        ["train", "inference"],
        "Training step or forward pass.",
    ),
    "task": (CHOICE, TASKS[0], TASKS, "What is learned, or served."),
    "causal": (BOOLEAN, False, "Tokens see none after them."),
    "rounds": (WHOLE, 5, "Timed rounds, after one to warm up.", 5, 10_000),
    "xla": (BOOLEAN, False, "Compile by XLA."),
    "plot": (TEXT, None, "Write a PNG here."),
    "beam": (WHOLE, 4, "Hypotheses.", 1, 1_000),
    "batch": (WHOLE, 8, "Texts that are answered together.", 1, 10_000),
    "recompute": (BOOLEAN, True, "Time that too; slow."),
    "pairs": (WHOLE, 5_000_000, "Of sentences.", 10_000, 100_000_000),
    "config": (CONFIG, None, "As train.py takes it, with its --config.FIELD flags."),
}
# What a command's `measure` calls them, where that is not the flag's name.
ARGUMENTS = {
    "models": "names",
    "beam": "beam_size",
    "batch": "batch_size",
    "pairs": "num_pairs",
}
MODELS = ["models", "size", "lengths"]
STEP = [*MODELS, "tokens_per_batch", "precision", "mode", "task", "causal"]
# By command, which is the name of a file in benchmarks/, too.
COMMANDS = {
    "params": [],
    "speed": [*STEP, "rounds", "xla", "plot"],
    "products": [*MODELS, "tokens_per_batch", "rounds"],
    "memory": [*STEP, "plot"],
    "decode": [*MODELS, "causal", "beam", "batch", "recompute", "rounds", "xla"],
    "serve": [*MODELS, "task", "batch", "rounds"],
    "features": ["plot"],
    "scan": ["lengths", "rounds", "xla"],
    "ngrams": ["config"],
    "input": ["config", "rounds"],
    "stream": ["pairs"],
}
# Where they differ from those of `FLAGS`.
DEFAULTS = {
    "scan": {"lengths": ["2048"]},
    "decode": {"size": "base", "lengths": ["16", "64", "128"]},
    "serve": {"lengths": ["64", "256", "1024", "2048", "4096"], "batch": 64},
}


def define(command: str) -> None:
    """Defines the flags of a command."""
    for name in COMMANDS[command]:
        define_one, default, *rest = FLAGS[name]
        define_one(name, DEFAULTS.get(command, {}).get(name, default), *rest)


def arguments(command: str) -> dict:
    """What the command's `measure` is called with, by the flags that were parsed.

    Raises:
      UserError: naming a flag that cannot be used.
    """
    values = {name: flags.FLAGS[name].value for name in COMMANDS[command]}
    if "models" in values:
        from models import variants  # imports TensorFlow

        if values["models"] is None:
            values["models"] = variants(in_paper=True)
    for name in ("models", "lengths"):
        chosen = values.get(name)
        if chosen is not None and (not chosen or len(set(chosen)) < len(chosen)):
            raise UserError(f"--{name}: expected different ones, found {chosen}")
    if "lengths" in values:
        values["lengths"] = [_length(text) for text in values["lengths"]]
    if values.get("config", True) is None:
        raise UserError("--config: expected a task and variant, found nothing")
    if path := values.pop("plot", None):
        path = make_path(path, "--plot")
        if path.suffix != ".png":
            raise UserError(f"--plot: expected a name in .png, found {path.name}")
        check_writable_file(path, "--plot")
    return {ARGUMENTS.get(name, name): value for name, value in values.items()}


def _length(text):
    is_short = text.isdecimal() and len(text) < 8
    if not is_short or not 1 <= int(text) <= MOST_TOKENS:
        raise UserError(
            f"--lengths: expected whole numbers from 1 to {MOST_TOKENS:,}, found "
            f"{text!r:.40}"
        )
    return int(text)
