"""A trained model with its tokenizer in one TensorFlow graph."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from common.errors import UserError

# Texts that `outputs` hands to the graph at a time.
CHUNK = 256
TEXT = tf.TensorSpec([None], tf.string, name="text")


class TextModel(tf.Module, ABC):
    """Text in, answers out; exported as it is, so that no answer can differ.

    A subclass has a `tf.function` of input signature [TEXT] for each of its
    `signatures`, "serving_default" and "encode" among them, which returns a dict of
    tensors. All but "encode" return `truncated`, too, bool [batch]: whether the model
    has seen the beginning of a text only. Where not every text is an input, they return
    `error`, too, string [batch]: what was expected and found, empty for an input. Each
    refuses inputs that are not [batch] by an `InvalidArgumentError`: TensorFlow does
    not hold a graph's inputs to the signature, and a scalar ends the process in some
    tokenizers.

    Only what the functions need is kept: the model's weights, without what trains them.

    Class attributes:
      signatures: names of methods.
      main_output: which output of `serving_default` is the answer, if one line is
        wanted.

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

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        for name in set(cls.signatures) & vars(cls).keys():
            setattr(cls, name, _guarded(vars(cls)[name]))

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
    def encode(self, text):
        """`ids`, int32 [batch, length], and `mask`, bool: what the model sees."""

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
            found = function(*(tf.constant(texts) for texts in inputs))
            found = {name: value.numpy() for name, value in found.items()}
            for place, row in enumerate(chosen):
                results[row] = {name: value[place] for name, value in found.items()}
            on_progress(len(chosen))
        return results


def _guarded(function):
    """A signature's `tf.function` that refuses inputs which are not [batch]."""
    specs = function.input_signature

    @wraps(function.python_function)
    def guarded(self, *columns):
        return function.python_function(self, *_checked(columns, specs))

    return tf.function(guarded, input_signature=specs, autograph=False)


def _checked(columns, specs):
    """The columns, which nothing reads before their shapes have been found right."""
    # TensorFlow takes the shapes of a signature for facts, and leaves out what checks
    # them. It knows none of these.
    columns = [
        tf.raw_ops.PlaceholderWithDefault(input=column, shape=tf.TensorShape(None))
        for column in columns
    ]
    shapes = [tf.shape(column) for column in columns]
    names = ", ".join(spec.name for spec in specs)
    expected = f"{names}: expected texts of shape [batch]"
    if len(columns) > 1:
        expected += ", as many of each"
    places = " and ".join(["{}"] * len(columns))
    message = tf.strings.format(f"{expected}, found shape {places}", shapes)
    first = shapes[0]
    right = [tf.size(first) == 1, *(tf.reduce_all(x == first) for x in shapes)]
    check = tf.raw_ops.Assert(condition=tf.reduce_all(right), data=[message])
    with tf.control_dependencies([check]):
        return [
            tf.ensure_shape(column, spec.shape)
            for column, spec in zip(columns, specs, strict=True)
        ]


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


def padded(rows: tf.RaggedTensor) -> tf.Tensor:
    """int32 [batch, length] with zeros at the end; at least one column."""
    dense = rows.to_tensor()
    missing = tf.maximum(1 - tf.shape(dense)[1], 0)
    return tf.pad(dense, [[0, 0], [0, missing]])
