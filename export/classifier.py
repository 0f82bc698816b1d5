"""Classes of texts."""

from typing import NamedTuple

import tensorflow as tf

from export.signatures import TEXT, signature
from export.text_model import TextModel

MAX_ROWS = 64


class Classified(NamedTuple):
    """A text's class.

    Attributes:
      label: its name; None for a text that is no input.
      scores: the probability of each class, by name; none for such a text.
      truncated: whether the model saw the beginning of the text only.
      error: what was expected and found of such a text; empty for any other.
    """

    label: str | None
    scores: dict[str, float]
    truncated: bool
    error: str = ""

    def __str__(self):
        return f"error: {self.error}" if self.error else self.label


class TextClassifier(TextModel):
    """A `SequenceClassifier` for texts.

    Args:
      model, tokenizer, dtype: see `TextModel`.
      class_names: the labels.
      max_length: tokens of a text; what is longer is cut.
      config: the `model` part of a config.
      parse: of the dataset, see `data`; None if any text is an input.
    """

    main_output = "label"

    def __init__(
        self,
        model,
        tokenizer,
        class_names,
        max_length,
        config,
        dtype="float32",
        parse=None,
    ):
        super().__init__(model, tokenizer, dtype)
        self._parse = parse or (lambda text: (text, None))
        self.class_names = tuple(class_names)
        self.max_length = max_length
        self._num_heads, self._ffn_dim = config["num_heads"], config["ffn_dim"]
        self._logits = lambda rows: model(rows, training=False)

    @signature(TEXT)
    def serving_default(self, text):
        """The class of each text.

        Returns:
          `scores`, float32 [batch, classes], which sum to 1; `label`, string [batch],
          and `label_id`, int32 [batch], of the largest; `truncated`, bool [batch].
          If there are texts that are no input, `error`, too, string [batch], which is
          empty for any other. They have `scores` of 0, no `label`, and the id -1.
        """
        ids, truncated, error = self._read(text)

        def probabilities(rows):
            return [tf.nn.softmax(tf.cast(self._logits(rows), tf.float32))]

        (scores,) = self._in_batches(
            probabilities,
            [ids],
            [tf.TensorSpec([None, len(self.class_names)], tf.float32)],
            lambda n: tf.maximum(self._num_heads * n, self._ffn_dim) * n,
            MAX_ROWS,
        )
        label_id = tf.argmax(scores, axis=1, output_type=tf.int32)
        label = tf.gather(tf.constant(self.class_names), label_id)
        outputs = {
            "scores": scores,
            "label": label,
            "label_id": label_id,
            "truncated": truncated,
        }
        if error is None:
            return outputs
        is_input = error == ""
        return {
            **outputs,
            "scores": tf.where(is_input[:, None], scores, 0.0),
            "label": tf.where(is_input, label, ""),
            "label_id": tf.where(is_input, label_id, -1),
            "error": error,
        }

    @property
    def limits(self):
        return (
            f"The model reads the first {self.max_length:,} tokens of a text. Of a "
            "longer one `truncated` is true."
        )

    def answer(self, outputs):
        """`Classified`, see `TextModel`."""
        if error := outputs.get("error"):
            return Classified(None, {}, False, error.decode())
        scores = outputs["scores"].tolist()
        return Classified(
            outputs["label"].decode(),
            dict(zip(self.class_names, scores, strict=True)),
            bool(outputs["truncated"]),
        )

    def _read(self, text):
        """See `TextModel`; and `parse`'s errors."""
        text, error = self._parse(text)
        ids = self._tokenize(text)
        return ids[:, : self.max_length], ids.row_lengths() > self.max_length, error
