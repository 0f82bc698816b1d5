"""One class for a text."""

import numpy as np
from keras import ops

from common.fields import below, fail
from data.buckets import FIELDS as BUCKET_FIELDS
from data.buckets import Buckets
from data.classification import ClassificationData
from data.packed import FILLER_TARGET
from export.classifier import TextClassifier
from models import build_classifier, can_encode
from tasks.task import Evaluation, Table, Task
from training.backends import Evaluator
from training.losses import cross_entropy, first_choice
from training.metrics import Totals


class ClassificationTask(Task):
    """The best checkpoint is that of the highest accuracy. See `Task`."""

    reads = "classification"
    unit = "examples"
    metric = "accuracy"
    higher_is_better = True
    fields = below("data", {**BUCKET_FIELDS, **ClassificationData.FIELDS})

    def __init__(self, config, tokenizer):
        super().__init__(config, tokenizer)
        self.data = ClassificationData(config.data, config.seed, tokenizer)

    @staticmethod
    def check(config):
        if not can_encode(config.model):
            fail("variant", "a variant with an encoder", config.variant)

    @staticmethod
    def shapes(config):
        return Buckets(config.data.bucket_lengths, config.train.batch_size).shapes

    def build_model(self):
        return build_classifier(
            self.config.model,
            self.tokenizer.vocabulary_size,
            len(self.data.class_names),
            self.config.seed,
            self.config.data.max_length,
        )

    def training_batches(self):
        return self.data.batcher("train", self.config.train.batch_size)

    def evaluation_batches(self, split):
        return self.data.batcher(split, self.evaluation_batch_size)

    @staticmethod
    def losses(model, batch, state, training):
        """See `Task.losses`; (batch,) each."""
        targets = batch["targets"]
        logits = model(batch["inputs"], training=training)
        right = first_choice(logits) == targets
        return cross_entropy(targets, logits), right, targets != FILLER_TARGET, state

    @staticmethod
    def sums(model, batch, state):
        """Summed loss, and the confusion matrix, int32 (classes, classes): how many
        examples of the row's class were given the column's."""
        targets = batch["targets"]
        logits = model(batch["inputs"], training=False)
        # A filler row is of no class.
        classes = ops.one_hot(targets, model.num_classes, dtype="int32")
        choices = ops.one_hot(first_choice(logits), model.num_classes, dtype="int32")
        confusion = ops.sum(classes[:, :, None] * choices[:, None], axis=0)
        real = ops.cast(targets != FILLER_TARGET, "float32")
        return (ops.sum(cross_entropy(targets, logits) * real), confusion), state

    def totals(self, sums):
        loss, confusion = sums
        return Totals(float(loss), int(np.trace(confusion)), int(confusion.sum()))

    def evaluate(self, model, split, strategy, each_checkpoint=()):
        """Accuracy and loss; a table of the classes."""
        batches = self.evaluation_batches(split)
        evaluator = Evaluator(model, self, strategy)
        sums = evaluator.evaluate(batches, f"evaluating {split}")
        totals = self.totals(sums)
        scores = {"examples": totals.targets, **totals.metrics()}
        return Evaluation(scores, [per_class_table(sums[1], self.data.class_names)])

    def text_model(self, model, dtype="float32"):
        """`TextClassifier`. A text is cut at `data.max_length`, as in training."""
        return TextClassifier(
            model,
            self.tokenizer,
            self.data.class_names,
            self.config.data.max_length,
            self.config.model,
            dtype,
            getattr(self.data.module, "parse", None),
        )

    @property
    def prompt(self):
        return f"{self.config.task}: one of {', '.join(self.data.class_names)}"


def per_class_table(confusion: np.ndarray, class_names) -> Table:
    """Examples, precision, recall and F1 of each class, in percent."""
    rows = []
    for index, name in enumerate(class_names):
        right = confusion[index, index]
        examples = confusion[index].sum()
        precision = right / max(confusion[:, index].sum(), 1)
        recall = right / max(examples, 1)
        f1 = 2 * right / max(examples + confusion[:, index].sum(), 1)
        scores = [f"{100 * x:.1f}" for x in (precision, recall, f1)]
        rows.append([name, examples, *scores])
    return Table(["class", "examples", "precision", "recall", "F1"], rows)
