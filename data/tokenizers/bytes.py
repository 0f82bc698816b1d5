"""Text as bytes."""

from pathlib import Path

import tensorflow as tf


class ByteTokenizer:
    """Every byte b becomes the id b + 1."""

    name = "bytes"
    resources = ()
    modules = ()
    FIELDS = {}
    vocabulary_size = 257
    identity = "bytes"

    @classmethod
    def make(cls, config) -> "ByteTokenizer":
        """See `data.tokenizers`."""
        return cls()

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Token ids, int32 [batch, (length)], of a string tensor [batch]."""
        flat = tf.io.decode_raw(tf.strings.reduce_join(texts), tf.uint8)
        ids = tf.cast(flat, tf.int32) + 1
        return tf.RaggedTensor.from_row_lengths(ids, tf.strings.length(texts))

    def names(self, ids) -> list[str]:
        """What to call ids, for people: a character, · for a space, else \\x, code."""
        codes = [int(i) - 1 for i in ids]
        return [
            "·" if code == 32 else chr(code) if 32 < code < 127 else f"\\x{code:02x}"
            for code in codes
        ]

    def save(self, directory: Path) -> None:
        """Writes no file: bytes need no vocabulary."""

    @classmethod
    def load(cls, directory: Path) -> "ByteTokenizer":
        """See `data.tokenizers`."""
        return cls()
