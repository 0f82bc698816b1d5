"""What the scripts share: quiet logs, and mistakes of the user in one line."""

import logging
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Training is TensorFlow's; the models alone run on other backends.
os.environ["KERAS_BACKEND"] = "tensorflow"

from absl import app, flags  # noqa: E402
from absl import logging as absl_logging  # noqa: E402

RESUMABLE = ("train.py", "reproduce.py")


def run(main, commands=()):
    """Runs a script's `main(argv)`; a mistake of the user ends it with one line.

    Args:
      main: function of what is left of the arguments, without the flags.
      commands: what the first argument may be; none by default.
    """

    def guarded(argv):
        from data.errors import DataError
        from training.errors import UserError

        if commands and (not argv[1:] or argv[1] not in commands):
            found = argv[1] if argv[1:] else "nothing"
            known = ", ".join(commands)
            sys.exit(f"error: expected a command out of {known}; found {found}")
        for argument in argv[2 if commands else 1 :]:
            sys.exit(f"error: {argument}: expected a flag")
        _log_to_stderr()
        try:
            main(argv)
        except (DataError, UserError) as error:
            sys.exit(f"error: {error}")
        except BrokenPipeError:  # what reads our output has had enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except OSError as error:
            if error.filename is None:
                raise
            sys.exit(f"error: {error.filename}: {error.strerror}")
        except KeyboardInterrupt:
            again = "; repeated, it goes on from its last checkpoint"
            sys.exit("stopped" + again * (Path(argv[0]).name in RESUMABLE))

    app.run(guarded, flags_parser=_parse_flags)


def _log_to_stderr():
    # TensorFlow's Python side logs through absl; what it warns of here is no news.
    absl_logging.set_verbosity(absl_logging.ERROR)
    logger = logging.getLogger("transevolve")
    logger.setLevel(logging.INFO)
    logger.addHandler(logging.StreamHandler(sys.stderr))
    logger.propagate = False


def _parse_flags(argv):
    try:
        remaining = flags.FLAGS(argv)
        if "config" in flags.FLAGS and flags.FLAGS.config is not None:
            dict(flags.FLAGS.config)  # only now is a bad config file noticed
        return remaining
    except (AttributeError, KeyError) as error:
        # ml_collections names only the part of the field's name that does not exist.
        field = str(error).strip("\"'").split("'")[0]
        for argument in argv:
            name = argument.split("=")[0]
            if name.startswith("--config.") and field in name.split("."):
                sys.exit(f"error: {name}: expected a field of the config, found none")
        raise
    except (flags.Error, OSError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reasons = [line for line in lines if line.startswith("ValueError: ")]
        message = (reasons or [" ".join(lines)])[-1]
        sys.exit(f"error: {message.removeprefix('ValueError: ')}")
