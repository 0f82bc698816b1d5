"""What training and evaluation ask of a task: its data, model, loss and sums."""

import numpy as np
import tensorflow as tf

from data import classification, translation
from data.batching import FILLER_TARGET
from data.subwords import PADDING, START
from models import build_classifier, build_encoder_decoder
from training.losses import cross_entropy, smoothed_cross_entropy
from training.metrics import Totals


def make_tokenizer(config):
    """The tokenizer that a config asks for.

    Raises:
      data.DataError: if its vocabulary, or the data to learn one from, cannot be had.
    """
    if config.data.dataset == "parallel_text":
        return translation.make_tokenizer(config.data)
    return classification.make_tokenizer(config.data)


def make_task(config, tokenizer):
    """The `ClassificationTask` or `TranslationTask` of a config."""
    if config.data.dataset == "parallel_text":
        return TranslationTask(config, tokenizer)
    return ClassificationTask(config, tokenizer)


class ClassificationTask:
    """One class for a text; the best checkpoint is that of the highest accuracy.

    Args:
      config: as from a file in `configs/`.
      tokenizer: from `make_tokenizer`, or as saved by an earlier run.
    """

    unit = "examples"
    best = "accuracy"

    def __init__(self, config, tokenizer):
        self.config = config
        self.tokenizer = tokenizer
        self.data = classification.ClassificationData(
            config.data, config.seed, tokenizer
        )

    def build_model(self):
        return build_classifier(
            self.config.model,
            self.tokenizer.vocabulary_size,
            len(self.data.class_names),
            self.config.seed,
        )

    def training_batches(self):
        return self.data.batcher("train", self.config.train.batch_size)

    def evaluation_batches(self, split):
        return self.data.batcher(split, self.config.train.batch_size)

    @staticmethod
    def losses(model, batch, training):
        """Loss, whether the answer is right and whether there is one, (batch,) each."""
        targets = batch["targets"]
        logits = model(batch["inputs"], training=training)
        right = tf.argmax(logits, axis=1, output_type=targets.dtype) == targets
        return cross_entropy(targets, logits), right, targets != FILLER_TARGET

    def sums(self, model, batch):
        """Summed loss, and the confusion matrix, int64 (classes, classes): how many
        examples of the row's class were given the column's."""
        targets = batch["targets"]
        real = targets != FILLER_TARGET
        logits = model(batch["inputs"], training=False)
        confusion = tf.math.confusion_matrix(
            tf.maximum(targets, 0),
            tf.argmax(logits, axis=1),
            model.num_classes,
            weights=tf.cast(real, tf.int64),
            dtype=tf.int64,
        )
        losses = cross_entropy(targets, logits) * tf.cast(real, tf.float32)
        return tf.reduce_sum(losses), confusion

    def totals(self, sums) -> Totals:
        loss, confusion = sums
        return Totals(float(loss), int(np.trace(confusion)), int(confusion.sum()))


class TranslationTask:
    """Text to text; the best checkpoint is that of the lowest loss a token.

    Args:
      config: as from a file in `configs/`.
      tokenizer: from `make_tokenizer`, or as saved by an earlier run.
    """

    unit = "tokens"
    best = "loss"

    def __init__(self, config, tokenizer):
        self.config = config
        self.tokenizer = tokenizer
        self.data = translation.TranslationData(config.data, tokenizer)

    def build_model(self):
        return build_encoder_decoder(
            self.config.model, self.tokenizer.vocabulary_size, self.config.seed
        )

    def training_batches(self):
        settings = self.config.train
        return self.data.train(settings.batch_size, settings.batch_unit)

    def evaluation_batches(self, split):
        settings = self.config.train
        return self.data.evaluation(split, settings.batch_size, settings.batch_unit)

    def losses(self, model, batch, training):
        """Smoothed loss, whether the token is right, and whether there is one,
        (batch, length) each."""
        targets = batch["targets"]
        start = tf.fill([tf.shape(targets)[0], 1], START)
        before = tf.concat([start, targets[:, :-1]], axis=1)
        # Where a target has ended there is nothing to see.
        before = tf.where(targets == PADDING, PADDING, before)
        logits = model(batch["inputs"], before, training=training)
        smoothing = self.config.train.label_smoothing
        losses = smoothed_cross_entropy(targets, logits, smoothing)
        right = tf.argmax(logits, axis=2, output_type=targets.dtype) == targets
        return losses, right, targets != PADDING

    def sums(self, model, batch):
        """Summed loss, right tokens, and tokens."""
        return masked_sums(*self.losses(model, batch, training=False))

    def totals(self, sums) -> Totals:
        return Totals(*(float(value) for value in sums))


def masked_sums(losses, right, real):
    """Sums of what `losses` returned: loss, right targets, and targets; float32."""
    real = tf.cast(real, tf.float32)
    right = tf.cast(right, tf.float32)
    return tuple(tf.reduce_sum(x) for x in (losses * real, right * real, real))
