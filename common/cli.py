"""What the scripts share: quiet logs, and mistakes of the user in one line."""

import errno
import logging
import os
import resource
import sys
from collections.abc import Callable, Iterable

from common.errors import UserError

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# A CPU's arrays take memory again that earlier ones have left, as a GPU's do: the
# system is slow to give fresh pages (docs/performance.md, "What was tried").
os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
PHYSICAL_MB = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
os.environ.setdefault("TF_CPU_BFC_MEM_LIMIT_IN_MB", str(PHYSICAL_MB))
try:
    import common.backend  # noqa: F401
except UserError as error:
    sys.exit(f"error: {error}")

from absl import app, flags  # noqa: E402
from absl import logging as absl_logging  # noqa: E402
from ml_collections import config_flags  # noqa: E402

from common import streams  # noqa: E402
from common.fields import fail  # noqa: E402
from common.interruption import EXIT_CODE, Interrupted  # noqa: E402
from common.progress import LinesAboveBars  # noqa: E402


def take_command(argv: list[str], commands: Iterable[str]) -> str:
    """Takes the command, the first argument, out of a command line."""
    if not argv[1:] or argv[1] not in commands:
        known, given = ", ".join(commands), ", ".join(argv[1:2]) or "nothing"
        sys.exit(f"error: expected a command out of {known}; found {given}")
    return argv.pop(1)


def run(main):
    """Runs a script's `main()`; a mistake of the user ends it with one line."""

    def guarded(argv):
        try:
            for argument in argv[1:]:
                raise UserError(f"{argument}: expected a flag")
            log_to_stderr()
            main()
        except Interrupted as error:
            print(f"stopped by {error}", file=sys.stderr)
            sys.exit(EXIT_CODE)
        except streams.LostOutputError as error:
            print(f"error: {error}", file=sys.stderr)
            sys.exit(streams.EXIT_CODE)
        except KeyboardInterrupt:
            sys.exit("stopped")
        except Exception as error:
            message = explain(error)
            if message is None:
                raise
            sys.exit(f"error: {message}")

    streams.secure()
    app.run(guarded, flags_parser=_parse_flags)


def explain(error: Exception) -> str | None:
    """What to say of a mistake of the user, or of a machine that lacks something.

    It is None for a fault of this code.
    """
    if isinstance(error, UserError):
        return str(error)

    import tensorflow as tf

    # TensorFlow names its operations first, in double braces.
    text = " ".join(str(error).split()).split("}} ")[-1][:400]
    if isinstance(error, OSError) and error.filename:
        text = f"{error.filename}: {error.strerror}"
    if os.strerror(errno.EFBIG) in text:
        limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        return f"{text}; expected a limit above {limit:,} bytes a file, see ulimit -f"
    if isinstance(error, OSError):
        return text
    missing = (
        tf.errors.PermissionDeniedError,
        tf.errors.UnauthenticatedError,
        tf.errors.NotFoundError,
        tf.errors.UnavailableError,
        tf.errors.AbortedError,  # a remote folder that does not answer
        tf.errors.DataLossError,
    )
    is_network = isinstance(error, tf.errors.FailedPreconditionError) and (
        "HTTP request" in text  # of a remote folder whose network has gone
    )
    if isinstance(error, missing) or is_network:
        return text
    if isinstance(error, MemoryError | tf.errors.ResourceExhaustedError):
        return (
            f"expected enough memory and disk, found too little ({text}); smaller "
            "batches need less memory, as do shorter texts, and, in training, a larger "
            "--config.train.accumulate_steps"
        )
    return None


def define_strategy(*names: str) -> Callable:
    """Defines flags that say where to run; a function for `main` that returns what they
    give, the arguments of `training.tensorflow.strategy.make_strategy`.

    Args:
      names: of strategies to choose from.
    """
    name = flags.DEFINE_enum("strategy", "auto", names, "Where to run.")
    tpu = flags.DEFINE_string("tpu", "", 'Name of the TPU; "local" on a TPU VM.')
    flags.register_multi_flags_validator(
        [name, tpu],
        lambda values: not values["tpu"] or values["strategy"] in ("auto", "tpu"),
        "expected --strategy=auto or --strategy=tpu beside a TPU",
    )

    return lambda: (name.value, tpu.value)


def define_run() -> Callable:
    """Defines flags that say which run to open; a function for `main` that returns the
    arguments of `evaluation.run.load_run` that they give."""
    workdir = flags.DEFINE_string("workdir", None, "Folder of the run.")
    average = flags.DEFINE_integer(
        "average_checkpoints",
        0,
        "Take the mean weights of so many last checkpoints, not the best one.",
        lower_bound=0,
    )
    other = "If not the run's config.decode."
    decode = [
        flags.DEFINE_integer("beam_size", None, other, lower_bound=1),
        flags.DEFINE_float("length_penalty", None, other, lower_bound=0),
        flags.DEFINE_integer("extra_length", None, other, lower_bound=0),
        flags.DEFINE_integer("batch_size", None, other, lower_bound=1),
        flags.DEFINE_bool("sliding_window", None, other),
        flags.DEFINE_integer("segment_length", None, other, lower_bound=2),
        flags.DEFINE_integer("continuation_length", None, other, lower_bound=1),
        flags.DEFINE_float("temperature", None, other, lower_bound=0),
        flags.DEFINE_integer("top_k", None, other, lower_bound=1),
        flags.DEFINE_float("top_p", None, other, lower_bound=0),
        flags.DEFINE_integer("seed", None, other, lower_bound=0),
    ]
    attention = flags.DEFINE_string(
        "attention", None, "A form of attention instead of the run's, e.g. linear."
    )
    data_dir = flags.DEFINE_string(
        "data_dir",
        None,
        "Where the run's data lies now, if not at its config.data.dir.",
    )
    flags.mark_flag_as_required("workdir")

    def arguments():
        return {
            "workdir": workdir.value,
            "average_checkpoints": average.value,
            "attention": attention.value,
            "data_dir": data_dir.value,
            "decode": {flag.name: flag.value for flag in decode if flag.present},
        }

    return arguments


def log_to_stderr():
    """What runs say, and nothing of what absl says, goes to standard error."""
    # TensorFlow's Python side logs through absl; what it warns of here is no news.
    absl_logging.set_verbosity(absl_logging.ERROR)
    logger = logging.getLogger("transevolve")
    logger.setLevel(logging.INFO)
    logger.addHandler(LinesAboveBars(sys.stderr))
    logger.propagate = False


def _parse_flags(argv):
    try:
        return parse_flags(argv)
    except UserError as error:
        sys.exit(f"error: {error}")


def parse_flags(argv: list[str], values: flags.FlagValues = flags.FLAGS) -> list[str]:
    """Parses a command line; returns what is left of it.

    Raises:
      UserError: for what absl or ml_collections refuse, in their words, and for flags
        of config fields that do not exist.
    """
    try:
        remaining = values(argv)
        if "config" in values and values["config"].value is not None:
            dict(values["config"].value)  # only now is an unreadable file noticed
            _check_given_buckets(values["config"])
        return remaining
    except (flags.Error, OSError, ValueError, MemoryError, RecursionError) as error:
        raise UserError(" ".join(str(error).split())) from None
    except (AttributeError, LookupError, TypeError) as error:
        # ml_collections names only a part of a field that does not exist, or none.
        part = str(error).rpartition(" ")[2].strip("\"'")
        names = [argument.split("=")[0].lstrip("-") for argument in argv[1:]]
        names = [name for name in names if name.removeprefix("no")[:7] == "config."]
        names = [name for name in names if part in name] or names
        if not names:
            raise
        raise UserError(
            f"--{', --'.join(names)}: expected a field of the config, found none"
        ) from None


def _check_given_buckets(config_flag):
    """Buckets follow `data.max_length`, but not those that somebody gave."""
    given = config_flags.get_override_values(config_flag).get("data.bucket_lengths")
    limit = config_flag.value.data.max_length if given else None
    if given and given[-1] != limit:
        fail(
            "data.bucket_lengths",
            f"increasing lengths that end at data.max_length={limit}",
            given,
        )
