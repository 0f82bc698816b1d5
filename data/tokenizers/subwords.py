"""Subwords of a SentencePiece model: text to ids and back, inside the graph."""

import hashlib
from pathlib import Path

import sentencepiece
import tensorflow as tf

from common.fields import changeable, integer, optional, text
from data import DATASETS
from data.tokenizers import subword_vocabulary
from data.tokenizers.subword_vocabulary import (
    END,
    FILE_NAME,
    PADDING,
    START,
    UNKNOWN,
)


class SubwordTokenizer:
    """Subwords as ids, without start and end.

    Decoding what was encoded gives the very text, leading, trailing and double spaces
    included, if the model was learned by `subword_vocabulary`. There is one
    exception: U+2581 (▁), SentencePiece's own sign for a space, comes back as a space.
    Models from elsewhere may also normalize the text, or hold characters for unknown.

    Args:
      model: a serialized SentencePiece model whose first ids are <pad>, <unk>, <s> and
        </s>.
    """

    name = "subwords"
    resources = ()
    modules = ("tensorflow_text",)
    FIELDS = {
        "vocab_size": integer("How many subwords to learn.", maximum=1_000_000),
        "vocab_sentences": integer(
            "How many sentences of the training text to learn them from, at most."
        ),
        "vocab_file": changeable(
            optional(text("A SentencePiece model to use instead of learning one."))
        ),
    }

    def __init__(self, model: bytes):
        self.model = model
        self.identity = ["subwords", hashlib.sha256(model).hexdigest()]
        # In a graph of its own: made eagerly, the op dies when TensorFlow is seeded.
        signature = [tf.TensorSpec([None], tf.string)]
        self._in_graph = tf.function(self._tokenize, input_signature=signature)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.vocabulary_size = processor.vocab_size()
        self._texts = tf.constant([_text(processor, i) for i in range(len(processor))])
        # Most models put a space before the text.
        self._extra_space = processor.encode("a", out_type=str)[0].startswith("▁")

    @classmethod
    def make(cls, config) -> "SubwordTokenizer":
        """Of `vocab_file`, or learned; see `data.tokenizers`."""
        # Before a whole corpus is read for its vocabulary.
        DATASETS[config.dataset].require_files(config, "train", "validation")
        if config.vocab_file:
            return cls(subword_vocabulary.given(config))
        return cls(subword_vocabulary.trained(config))

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Token ids, int32 [batch, (length)], of a string tensor [batch]."""
        return self._in_graph(texts)

    def _tokenize(self, texts):
        import tensorflow_text

        tokenizer = tensorflow_text.SentencepieceTokenizer(self.model, tf.int32)
        return tokenizer.tokenize(texts)

    def decode(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """Texts, a string tensor [batch], of token ids, int32 [batch, (length)].

        The four special ids say nothing. Bytes that are not UTF-8, which only a model's
        output can hold, become U+FFFD.
        """
        # Not by SentencepieceTokenizer.detokenize: it loses leading spaces.
        texts = tf.strings.reduce_join(tf.gather(self._texts, ids), axis=-1)
        if self._extra_space:
            texts = tf.strings.regex_replace(texts, "^ ", "")
        return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")

    def names(self, ids) -> list[str]:
        """What to call ids, for people; ▁ begins a word."""
        processor = sentencepiece.SentencePieceProcessor(model_proto=self.model)
        return [processor.id_to_piece(int(i)) for i in ids]

    def save(self, directory: Path) -> None:
        """Writes the SentencePiece model."""
        (directory / FILE_NAME).write_bytes(self.model)

    @classmethod
    def load(cls, directory: Path) -> "SubwordTokenizer":
        """See `data.tokenizers`."""
        return cls((directory / FILE_NAME).read_bytes())

    @classmethod
    def is_saved(cls, config, directory: Path) -> bool:
        """See `data.tokenizers`; what would be learned is not known before."""
        saved = (directory / FILE_NAME).read_bytes()
        return bool(config.vocab_file) and subword_vocabulary.given(config) == saved


def _text(processor, index) -> bytes:
    if index in (PADDING, UNKNOWN, START, END) or processor.is_control(index):
        return b""
    piece = processor.id_to_piece(index)
    if processor.is_byte(index):
        return bytes([int(piece[1:-1], 16)])
    return piece.replace("▁", " ").encode()
