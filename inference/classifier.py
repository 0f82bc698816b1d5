"""Classes of texts."""

from typing import NamedTuple

import tensorflow as tf

from inference.batches import in_batches
from inference.text_model import TEXT, TextModel, padded

MAX_ROWS = 64


class Classified(NamedTuple):
    """A text's class.

    Attributes:
      label: its name.
      scores: the probability of each class, by name.
      truncated: whether the model saw the beginning of the text only.
    """

    label: str
    scores: dict[str, float]
    truncated: bool

    def __str__(self):
        return self.label


class TextClassifier(TextModel):
    """A `SequenceClassifier` for texts.

    Args:
      model, tokenizer, dtype: see `TextModel`.
      class_names: the labels.
      max_length: tokens of a text; what is longer is cut.
      config: the `model` part of a config.
    """

    main_output = "label"

    def __init__(
        self, model, tokenizer, class_names, max_length, config, dtype="float32"
    ):
        super().__init__(model, tokenizer, dtype)
        self.class_names = tuple(class_names)
        self.max_length = max_length
        self._num_heads, self._ffn_dim = config["num_heads"], config["ffn_dim"]
        self._logits = lambda rows: model(rows, training=False)

    @tf.function(input_signature=[TEXT], autograph=False)
    def serving_default(self, text):
        """The class of each text.

        Returns:
          `scores`, float32 [batch, classes], which sum to 1; `label`, string [batch],
          and `label_id`, int32 [batch], of the largest; `truncated`, bool [batch].
        """
        ids, truncated = self._ids(text)
        num_classes, scope = len(self.class_names), self._scope()

        def probabilities(rows):
            with scope:
                logits = self._logits(padded(tf.gather(ids, rows)))
            return [tf.nn.softmax(tf.cast(logits, tf.float32))]

        (scores,) = in_batches(
            probabilities,
            tf.cast(ids.row_lengths(), tf.int32),
            [tf.TensorSpec([None, num_classes], tf.float32)],
            lambda n: tf.maximum(self._num_heads * n, self._ffn_dim) * n,
            MAX_ROWS,
        )
        label_id = tf.argmax(scores, axis=1, output_type=tf.int32)
        label = tf.gather(tf.constant(self.class_names), label_id)
        return {
            "scores": scores,
            "label": label,
            "label_id": label_id,
            "truncated": truncated,
        }

    @tf.function(input_signature=[TEXT], autograph=False)
    def encode(self, text):
        ids = padded(self._ids(text)[0])
        return {"ids": ids, "mask": ids != 0}

    @property
    def limits(self):
        return (
            f"The model reads the first {self.max_length:,} tokens of a text. Of a "
            "longer one `truncated` is true."
        )

    def answer(self, outputs):
        """`Classified`, see `TextModel`."""
        scores = outputs["scores"].tolist()
        return Classified(
            outputs["label"].decode(),
            dict(zip(self.class_names, scores, strict=True)),
            bool(outputs["truncated"]),
        )

    def _ids(self, text):
        ids = self._tokenize(text)
        return ids[:, : self.max_length], ids.row_lengths() > self.max_length
