"""What the scripts share: quiet logs, and mistakes of the user in one line."""

import logging
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from absl import app, logging as absl_logging  # noqa: E402


def run(main):
    """Runs a script's `main(argv)`; a `UserError` or `DataError` is one line."""

    def guarded(argv):
        from data.errors import DataError
        from training.errors import UserError

        absl_logging.set_verbosity(absl_logging.WARNING)
        logger = logging.getLogger("transevolve")
        logger.setLevel(logging.INFO)
        logger.addHandler(logging.StreamHandler(sys.stderr))
        logger.propagate = False
        try:
            main(argv)
        except (DataError, UserError) as error:
            sys.exit(f"error: {error}")
        except KeyboardInterrupt:
            sys.exit("stopped; the same command goes on from the last checkpoint")

    app.run(guarded)
