"""The flags of benchmark.py, in groups: a command takes some of them."""

from collections.abc import Callable
from typing import NamedTuple

from absl import flags
from ml_collections import config_flags

from common.errors import UserError
from common.paths import make_path
from common.writable import check_writable_file

FLAGS = flags.FLAGS
MOST_TOKENS = 1_000_000


class Group(NamedTuple):
    """Flags that belong together.

    Attributes:
      define: defines them.
      arguments: what a command's `measure` is called with, once they are parsed.
    """

    define: Callable[[], None]
    arguments: Callable[[], dict]


def models(size: str = "small", lengths: str = "1000,2000,3000,4000") -> Group:
    """Which models, of which size, on which lengths; with these defaults."""

    def define():
        from models import variants  # imports TensorFlow

        names = variants(in_paper=True)
        flags.DEFINE_list(
            "models",
            names,
            "Variants; for speed also keras-hub, pytorch, and CHECKOUT:VARIANT for a "
            "variant by the code of another checkout; for memory also keras-hub.",
        )
        flags.DEFINE_enum("size", size, ["small", "base"], "Width 256 or 512.")
        flags.DEFINE_list("lengths", lengths.split(","), "Tokens in a sequence.")

    def arguments():
        for length in FLAGS.lengths:
            is_short = length.isdecimal() and len(length) < 8
            if not is_short or not 1 <= int(length) <= MOST_TOKENS:
                raise UserError(
                    f"--lengths: expected whole numbers from 1 to {MOST_TOKENS:,}, "
                    f"found {length!r:.40}"
                )
        for name in ("models", "lengths"):
            chosen = FLAGS[name].value
            if not chosen or len(set(chosen)) < len(chosen):
                raise UserError(f"--{name}: expected different ones, found {chosen}")
        lengths = [int(length) for length in FLAGS.lengths]
        return {"names": FLAGS.models, "lengths": lengths, "size": FLAGS.size}

    return Group(define, arguments)


def _define_batch():
    help = "As many sequences as fit, at least one."
    flags.DEFINE_integer("tokens_per_batch", 4000, help, 1, MOST_TOKENS)


def _define_step():
    precisions = ["float32", "bfloat16"]
    help = "Of activations and products."
    flags.DEFINE_enum("precision", "float32", precisions, help)
    help = "Training step or forward pass."
    flags.DEFINE_enum("mode", "train", ["train", "inference"], help)
    tasks = ["classification", "translation"]
    flags.DEFINE_enum("task", tasks[0], tasks, "What is learned.")
    flags.DEFINE_bool("causal", False, "Tokens see none after them.")


def _step():
    names = ("precision", "mode", "task", "causal")
    return {name: FLAGS[name].value for name in names}


def _define_rounds():
    help = "Timed rounds, after one to warm up."
    flags.DEFINE_integer("rounds", 5, help, 5, 10_000)


def _define_search():
    flags.DEFINE_integer("beam", 4, "Hypotheses.", 1, 1_000)
    flags.DEFINE_integer("batch", 8, "Sentences.", 1, 10_000)
    flags.DEFINE_bool("recompute", True, "Time that too; slow.")


def _search():
    return {
        "beam_size": FLAGS.beam,
        "batch_size": FLAGS.batch,
        "recompute": FLAGS.recompute,
    }


def _define_served():
    tasks = ["classification", "translation"]
    flags.DEFINE_enum("task", tasks[0], tasks, "What is served.")
    help = "Texts that are answered together."
    flags.DEFINE_integer("batch", 64, help, 1, 10_000)


def _define_config():
    help = "As train.py takes it, with its --config.FIELD flags."
    config_flags.DEFINE_config_file("config", None, help)


def _config():
    if FLAGS.config is None:
        raise UserError("--config: expected a task and variant, found nothing")
    return {"config": FLAGS.config}


def _define_plot():
    flags.DEFINE_string("plot", None, "Write a PNG here.")


def _check_plot():
    if FLAGS.plot:
        path = make_path(FLAGS.plot, "--plot")
        if path.suffix != ".png":
            raise UserError(f"--plot: expected a name in .png, found {path.name}")
        check_writable_file(path, "--plot")
    return {}


def _define_pairs():
    flags.DEFINE_integer("pairs", 5_000_000, "Of sentences.", 10_000, 100_000_000)


BATCH = Group(_define_batch, lambda: {"tokens_per_batch": FLAGS.tokens_per_batch})
SERVED = Group(_define_served, lambda: {"task": FLAGS.task, "batch_size": FLAGS.batch})
STEP = Group(_define_step, _step)
ROUNDS = Group(_define_rounds, lambda: {"rounds": FLAGS.rounds})
XLA = Group(
    lambda: flags.DEFINE_bool("xla", False, "Compile by XLA."),
    lambda: {"jit_compile": FLAGS.xla},
)
SEARCH = Group(_define_search, _search)
CONFIG = Group(_define_config, _config)
PLOT = Group(_define_plot, _check_plot)
PAIRS = Group(_define_pairs, lambda: {"num_pairs": FLAGS.pairs})
