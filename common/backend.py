"""Checks the backend of Keras, and what else the environment decides.

Training and answering check before they import TensorFlow, which imports Keras, which
reads the environment once. The models alone run on other backends, and do not check.
"""

import codecs
import locale
import os
import sys

from common.errors import UserError

ANSWERING = ("tensorflow",)
TRAINING = ("tensorflow", "jax")


def check(backends: tuple[str, ...]) -> None:
    """Sets the backend of Keras, the first of some unless the environment says another.

    Args:
      backends: `ANSWERING` or `TRAINING`, what can be used.

    Raises:
      UserError: if Keras or Python was told to be what this code cannot use.
    """
    keras = sys.modules.get("keras")
    backend = os.environ.get("KERAS_BACKEND") or backends[0]
    if keras is not None:  # it keeps the backend that it began with
        backend = keras.backend.backend()
    if backend not in backends:
        expected = " or ".join(backends)
        raise UserError(
            f"KERAS_BACKEND: expected {expected}, found {backend}; set it to "
            f"{backends[0]} before Keras is imported; training runs on "
            f"{' and '.join(TRAINING)}, and the models alone on others"
        )
    # Keras's own configuration file may name another backend for other programs.
    os.environ["KERAS_BACKEND"] = backend
    legacy = os.environ.get("TF_USE_LEGACY_KERAS", "")
    if legacy.lower() in ("1", "true"):
        raise UserError(
            f"TF_USE_LEGACY_KERAS: expected Keras 3, found {legacy}; set it to 0"
        )
    # TensorFlow takes the names of files for UTF-8, whatever the locale says.
    encoding = codecs.lookup(locale.getpreferredencoding(False)).name
    if encoding != "utf-8":
        raise UserError(
            f"expected a locale with UTF-8, found {encoding}; set PYTHONUTF8=1"
        )
