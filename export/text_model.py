"""A trained model with its tokenizer in one TensorFlow graph."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from common.errors import UserError
from export.signatures import TEXT, in_batches, padded, signature

# Texts that `outputs` hands to the graph at a time.
CHUNK = 256


class TextModel(tf.Module, ABC):
    """Text in, answers out; exported as it is, so that no answer can differ.

    A subclass has a method made by `export.signatures.signature` for each of its
    `signatures`, which returns a dict of tensors. All but "encode" return `truncated`,
    too, bool [batch]: whether the model has seen a part of a text only. Where not
    every text is an input, they return `error`, too, string [batch]: what was
    expected and found, empty for an input.

    Only what the functions need is kept: the model's weights, without what trains them.

    Class attributes:
      signatures: names of methods.
      main_output: which output of `serving_default` is the answer, if one line is
        wanted.
      scored: the texts that `score` takes, if there is one: columns of a line.

    Args:
      model: trained. Its weights are used, not copied, if they are stored as they are.
      tokenizer: see `data.tokenizers`.
      dtype: of the stored trainable weights; a call casts them to the model's own
        first. The others, such as counters, are stored as they are.

    Raises:
      UserError: if a weight is not finite.
    """

    signatures = ("serving_default", "encode")
    main_output: str
    scored: tuple[str, ...] = ()

    def __init__(self, model: keras.Model, tokenizer, dtype: str = "float32"):
        super().__init__()
        if not all(np.isfinite(weight).all() for weight in model.get_weights()):
            raise UserError("expected a trained model, found weights not finite")
        self.resources = list(tokenizer.resources)
        self.modules = tokenizer.modules
        self.weights = [
            weight.value
            if weight.dtype == dtype or not weight.trainable
            else tf.Variable(tf.cast(weight.value, dtype), name=weight.path)
            for weight in model.weights
        ]

        # A function hides the model from TensorFlow, which would export all of it. To
        # be called outside of `in_batches`, so that weights are cast once.
        def scope():
            return keras.StatelessScope(
                [
                    (weight, tf.cast(stored, weight.dtype))
                    for weight, stored in zip(model.weights, self.weights, strict=True)
                ]
            )

        self._scope = scope
        self._tokenize = tokenizer

    @abstractmethod
    def serving_default(self, text):
        """The answers to texts, string [batch]."""

    @abstractmethod
    def _read(self, text) -> tuple:
        """What the model sees of texts: ids, int32 ragged [batch, (length)], and
        `truncated`; others may follow."""

    @signature(TEXT)
    def encode(self, text):
        """`ids`, int32 [batch, length], and `mask`, bool: what the model sees."""
        ids = padded(self._read(text)[0])
        return {"ids": ids, "mask": ids != 0}

    @property
    @abstractmethod
    def limits(self) -> str:
        """What happens to a text that is too long, in sentences."""

    @abstractmethod
    def answer(self, outputs: dict):
        """What a person is told of a text; its str() is one line.

        Args:
          outputs: of `serving_default` for the text, NumPy values.
        """

    def _in_batches(self, function, columns, specs, numbers, max_rows):
        """Calls `in_batches` with the weights that are stored.

        Args:
          function: of padded ids, int32 [some, length], of each column.
          columns: ids, int32 ragged [rows, (length)].
        """
        lengths = [tf.cast(ids.row_lengths(), tf.int32) for ids in columns]
        scope = self._scope()

        def batch(rows):
            with scope:
                return function(*(padded(tf.gather(ids, rows)) for ids in columns))

        return in_batches(batch, tf.reduce_max(lengths, 0), specs, numbers, max_rows)

    def save(self, folder: Path) -> None:
        """Writes the SavedModel."""
        signatures = {name: getattr(self, name) for name in self.signatures}
        tf.saved_model.save(self, str(folder), signatures)

    def outputs(
        self,
        signature: str,
        *columns: list[str | bytes],
        on_progress: Callable = lambda num_texts: None,
    ) -> list[dict]:
        """What a signature returns for each text, NumPy values by name.

        Args:
          signature: one with an output for each text.
          *columns: texts for each of its inputs.
          on_progress: called with a number of texts just done.
        """
        function = getattr(self, signature)
        rows = list(zip(*columns, strict=True))
        # Texts of one length together.
        order = sorted(range(len(rows)), key=lambda row: sum(map(len, rows[row])))
        results = [None] * len(rows)
        for start in range(0, len(order), CHUNK):
            chosen = order[start : start + CHUNK]
            inputs = zip(*(rows[row] for row in chosen), strict=True)
            outputs = function(*(tf.constant(texts) for texts in inputs))
            outputs = {name: value.numpy() for name, value in outputs.items()}
            for place, row in enumerate(chosen):
                results[row] = {name: value[place] for name, value in outputs.items()}
            on_progress(len(chosen))
        return results


def list_of_texts(texts: Iterable[str | bytes]) -> list[str | bytes]:
    """What gives texts one by one, as a list.

    Raises:
      UserError: if it does not, or is a single text.
    """
    expected = "texts: expected a list of str or bytes"
    if isinstance(texts, str | bytes):
        raise UserError(f"{expected}, found one text; put it into a list: [text]")
    if getattr(texts, "ndim", 1) != 1:
        raise UserError(f"{expected}, found {texts.ndim} dimensions")
    if isinstance(texts, tf.Tensor):
        texts = texts.numpy()
    try:
        texts = list(texts)
    except TypeError:
        raise UserError(f"{expected}, found {type(texts).__name__}") from None
    for index, text in enumerate(texts):
        if not isinstance(text, str | bytes):
            kind = type(text).__name__
            raise UserError(f"{expected}, found {kind} at index {index}")
        try:
            text if isinstance(text, bytes) else text.encode()
        except UnicodeEncodeError as error:
            reason = f"one that UTF-8 has no bytes for, {error.reason}"
            raise UserError(f"{expected}, found {reason} at index {index}") from None
    return texts
