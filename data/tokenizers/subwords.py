"""Subwords of a SentencePiece model: text to ids and back, and how they are learned."""

import hashlib
import json
import logging
import random
import re
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterable
from pathlib import Path

import sentencepiece
import tensorflow as tf
from sentencepiece.sentencepiece_model_pb2 import ModelProto, TrainerSpec

from common.fields import changeable, integer, optional, text
from common.paths import make_path
from common.progress import progress_bar
from data import DATASETS, files
from data.rows import DataError, GoodRows
from data.tokenizers.tokenizer import Tokenizer

PADDING, UNKNOWN, START, END = range(4)
# All runs on a corpus share its subwords, whatever their own seed.
SEED = 0
FILE_NAME = "subwords.model"
# SentencePiece learns from no longer sentence, in bytes, and from none with its sign
# for what is unknown.
LONGEST = TrainerSpec().max_sentence_length
UNKNOWN_SIGN = "\u2585".encode()

logger = logging.getLogger("transevolve")

_TRAIN = """
import json, sys, sentencepiece
sentencepiece.SentencePieceTrainer.train(**json.loads(sys.argv[1]))
"""


class SubwordTokenizer(Tokenizer):
    """Subwords as ids, without start and end.

    Decoding what was encoded gives the very text, leading, trailing and double spaces
    included, if the model was learned by `trained`. There is one
    exception: U+2581 (▁), SentencePiece's own sign for a space, comes back as a space.
    Models from elsewhere may also normalize the text, or hold characters for unknown.

    Args:
      model: a serialized SentencePiece model whose first ids are <pad>, <unk>, <s> and
        </s>.
    """

    name = "subwords"
    end = END
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
    def make(cls, config):
        """Of `vocab_file`, or learned."""
        # Before a whole corpus is read for its vocabulary.
        DATASETS[config.dataset].require_files(config, "train", "validation")
        if config.vocab_file:
            return cls(given(config))
        return cls(trained(config))

    def __call__(self, texts):
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

    def names(self, ids):
        """▁ begins a word."""
        processor = sentencepiece.SentencePieceProcessor(model_proto=self.model)
        return [processor.id_to_piece(int(i)) for i in ids]

    def save(self, directory):
        (directory / FILE_NAME).write_bytes(self.model)

    @classmethod
    def load(cls, directory):
        return cls((directory / FILE_NAME).read_bytes())

    @classmethod
    def is_saved(cls, config, directory):
        saved = (directory / FILE_NAME).read_bytes()
        return bool(config.vocab_file) and given(config) == saved


def _text(processor, index) -> bytes:
    if index in (PADDING, UNKNOWN, START, END) or processor.is_control(index):
        return b""
    piece = processor.id_to_piece(index)
    if processor.is_byte(index):
        return bytes([int(piece[1:-1], 16)])
    return piece.replace("▁", " ").encode()


def given(config) -> bytes:
    """The SentencePiece model of `vocab_file`.

    Raises:
      DataError: if it is no such model, or has other special ids.
    """
    path = make_path(config.vocab_file, "--config.data.vocab_file")
    expected = "a SentencePiece model"
    model = files.require_file(path, expected).read_bytes()
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        for index in range(len(processor)):
            processor.id_to_piece(index)  # or it is no UTF-8
    except (RuntimeError, UnicodeDecodeError):
        raise DataError(f"{path}: expected {expected}, found another file") from None
    expected = (PADDING, UNKNOWN, START, END)
    ids = tuple(getattr(processor, f"{x}_id")() for x in ("pad", "unk", "bos", "eos"))
    if ids != expected:
        raise DataError(
            f"{path}: expected a SentencePiece model with the ids {expected} of <pad>, "
            f"<unk>, <s> and </s>, found {ids}"
        )
    return model


def trained(config) -> bytes:
    """A SentencePiece model learned from all texts of the training split, once.

    Raises:
      DataError: if the text cannot be had or read, or does not fit `vocab_size`.
    """
    module = DATASETS[config.dataset]
    # Of parallel text: the same sentences the other way round are another sample.
    languages = ("source_language", "target_language")
    identity = [
        module.identify(config, "train"),
        *(config[field] for field in languages if field in config),
        config.on_error,
        config.vocab_size,
        config.vocab_sentences,
        sentencepiece.__version__,
    ]

    def write(folder):
        rows = progress_bar(
            module.read(config, "train"),
            desc="reading for the vocabulary",
            unit=" rows",
            unit_scale=True,
        )
        good = GoodRows(rows, config.on_error)
        sentences = (sentence for row in good for sentence in row.texts)
        chosen = sample(sentences, config.vocab_sentences, SEED)
        (folder / FILE_NAME).write_bytes(learn(chosen, config.vocab_size))

    folder = files.cached_folder(config, "subwords", identity, write)
    return (folder / FILE_NAME).read_bytes()


def sample(sentences: Iterable[bytes], size: int, seed: int) -> list[bytes]:
    """At most `size` of the sentences, each as likely as any other, in one pass."""
    draw = random.Random(seed).random
    chosen = []
    for number, sentence in enumerate(sentences):
        if number < size:
            chosen.append(sentence)
        elif (place := int(draw() * (number + 1))) < size:
            chosen[place] = sentence
    return chosen


def learn(sentences: list[bytes], vocab_size: int) -> bytes:
    """A SentencePiece model of `vocab_size` byte-pair subwords.

    Raises:
      DataError: if the sentences yield fewer subwords, or need more.
    """
    if not sentences:
        raise DataError("train: expected sentences to learn subwords from, found none")
    usable = _usable(sentences)
    with tempfile.TemporaryDirectory() as folder:
        text, rules, model = (Path(folder, name) for name in ("text", "rules", "model"))
        text.write_bytes(b"\n".join(usable))
        # No normalization but this: SentencePiece's sign for a space is one. It would
        # be anyway, but without any rule each copy that TensorFlow makes logs a line.
        rules.write_text("2581\t20\n")
        settings = {
            "input": str(text),
            "model_prefix": str(model),
            "model_type": "bpe",
            "vocab_size": vocab_size,
            "pad_id": PADDING,
            "unk_id": UNKNOWN,
            "bos_id": START,
            "eos_id": END,
            # So that decoding gives the very text back.
            "normalization_rule_tsv": str(rules),
            "remove_extra_whitespaces": False,
            # The rarest characters, one in 10,000 of the text, are written as bytes:
            # web text holds thousands of them, which would fill the vocabulary.
            "byte_fallback": True,
            "character_coverage": 0.9999,
        }
        _train(settings, f"learning subwords from {len(usable):,} sentences")
        fields = ModelProto.FromString(model.with_suffix(".model").read_bytes())
    # The same text gives the same model, wherever the files were.
    fields.normalizer_spec.ClearField("normalization_rule_tsv")
    fields.trainer_spec.ClearField("input")
    fields.trainer_spec.ClearField("model_prefix")
    return fields.SerializeToString(deterministic=True)


def _usable(sentences):
    """The sentences that SentencePiece learns from; it leaves others out."""
    usable = [
        sentence
        for sentence in sentences
        if len(sentence) <= LONGEST and UNKNOWN_SIGN not in sentence
    ]
    left_out = (
        f"{len(sentences) - len(usable):,} of {len(sentences):,} sentences with more "
        f"than {LONGEST:,} bytes or with U+2585"
    )
    if not usable:
        raise DataError(
            "train: expected sentences that SentencePiece learns subwords from, found "
            f"{left_out}; split them, or give a model by --config.data.vocab_file"
        )
    if len(usable) < len(sentences):
        logger.warning("subwords are learned without %s", left_out)
    return usable


def _train(settings, title):
    """Runs SentencePiece in a process of its own, which gives its memory back.

    What it logs moves the bar: no other way leads from its loop to Python.
    """
    command = [sys.executable, "-c", _TRAIN, json.dumps(settings)]
    vocab_size, log = settings["vocab_size"], deque(maxlen=50)
    with (
        subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, errors="replace"
        ) as process,
        progress_bar(desc=title, total=vocab_size, unit=" subwords") as bar,
    ):
        try:
            for line in process.stderr:
                log.append(line)
                if size := re.search(r" size=(\d+)", line):
                    bar.update(int(size[1]) - bar.n)
        except BaseException:
            process.kill()
            raise
        if not process.wait():
            bar.update(vocab_size - bar.n)
    if process.returncode:
        raise _explain(process.returncode, "".join(log), vocab_size)


def _explain(returncode, log, vocab_size):
    if returncode < 0:
        return DataError(
            f"train: SentencePiece was ended by signal {-returncode}, as happens when "
            "memory runs out; --config.data.vocab_sentences bounds what it holds"
        )
    message = " ".join(log.rsplit("RuntimeError:")[-1].split()).rstrip(".")
    possible = re.search(r"a value <= (\d+)|\d vs (\d+)", message)
    advice = possible and (
        f"; --config.data.vocab_size={possible[possible.lastindex]} would do"
    )
    return DataError(
        f"--config.data.vocab_size={vocab_size}: expected a size that SentencePiece "
        "can learn from the training text, found that it ended with: "
        f"{message}{advice or ''}"
    )
