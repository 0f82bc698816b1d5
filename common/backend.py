"""Checks the backend of Keras, and what else the environment decides, when imported.

Training and evaluation import it before TensorFlow, which imports Keras, which reads
the environment once. The models alone run on other backends, and do not import it.

Raises:
  UserError: if Keras or Python was told to be what this code cannot use.
"""

import codecs
import locale
import os
import sys

from common.errors import UserError

BACKENDS = ("tensorflow", "jax")


def expect_tensorflow(what: str) -> None:
    """Raises UserError, with what is asked for, if Keras has another backend."""
    if (backend := os.environ["KERAS_BACKEND"]) != BACKENDS[0]:
        raise UserError(
            f"KERAS_BACKEND: expected {BACKENDS[0]} for {what}, found {backend}"
        )


def _check():
    keras = sys.modules.get("keras")
    backend = os.environ.get("KERAS_BACKEND") or BACKENDS[0]
    if keras is not None:  # it keeps the backend that it began with
        backend = keras.backend.backend()
    if backend not in BACKENDS:
        raise UserError(
            f"KERAS_BACKEND: expected {' or '.join(BACKENDS)}, found {backend}; set it "
            "before Keras is imported; only the models run on other backends"
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


_check()
