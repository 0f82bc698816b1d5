"""Text as bytes."""

import tensorflow as tf

from data.tokenizers.tokenizer import Tokenizer


class ByteTokenizer(Tokenizer):
    """Every byte b becomes the id b + 1."""

    name = "bytes"
    end = ord("\n") + 1
    vocabulary_size = 257
    identity = "bytes"

    @classmethod
    def make(cls, config):
        return cls()

    def __call__(self, texts):
        flat = tf.io.decode_raw(tf.strings.reduce_join(texts), tf.uint8)
        ids = tf.cast(flat, tf.int32) + 1
        return tf.RaggedTensor.from_row_lengths(ids, tf.strings.length(texts))

    def decode(self, ids):
        """See `Tokenizer`. Bytes that are not UTF-8 become U+FFFD."""
        table = tf.constant([b"", *(bytes([byte]) for byte in range(256))])
        texts = tf.strings.reduce_join(tf.gather(table, ids), axis=-1)
        return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")

    def names(self, ids):
        """A character, · for a space, else \\x and the code."""
        codes = [int(i) - 1 for i in ids]
        return [
            "·" if code == 32 else chr(code) if 32 < code < 127 else f"\\x{code:02x}"
            for code in codes
        ]

    def save(self, directory):
        """Writes no file: bytes need no vocabulary."""

    @classmethod
    def load(cls, directory):
        return cls()
