"""Hidden tokens of a text from those around them: to train an encoder before it learns
classes of the same texts (Amos et al. 2023)."""

from common.errors import UserError
from common.fields import fail
from data.classification import ClassificationData
from data.masked import MaskedBatches
from models import attention_kind, build_masked_model
from tasks.classification import ClassificationTask
from tasks.task import Evaluation, Table, Task
from training.backends import Evaluator
from training.losses import cross_entropy, first_choice


class MaskedTokensTask(Task):
    """The best checkpoint is that of the lowest loss per hidden token. See `Task`.

    The config is that of a classification, whose classes are left out.
    """

    reads = ClassificationTask.reads
    unit = "tokens"
    fields = ClassificationTask.fields
    shapes = staticmethod(ClassificationTask.shapes)

    def __init__(self, config, tokenizer):
        super().__init__(config, tokenizer)
        self.data = ClassificationData(config.data, config.seed, tokenizer)

    @staticmethod
    def check(config):
        ClassificationTask.check(config)
        if attention_kind(config.model) is None:
            fail("variant", "a variant with attention", config.variant)

    def build_model(self):
        config = self.config
        return build_masked_model(
            config.model,
            self.tokenizer.vocabulary_size,
            config.seed,
            config.data.max_length,
        )

    def training_batches(self):
        batch_size = self.config.train.batch_size
        return MaskedBatches(self.data.batcher("train", batch_size))

    def evaluation_batches(self, split):
        return MaskedBatches(self.data.batcher(split, self.evaluation_batch_size))

    @staticmethod
    def losses(model, batch, state, training):
        """See `Task.losses`; (batch, length) each."""
        targets = batch["targets"]
        hidden = targets != 0
        logits = model(batch["inputs"], hidden, training=training)
        right = first_choice(logits) == targets
        return cross_entropy(targets, logits), right, hidden, state

    def evaluate(self, model, split, strategy, each_checkpoint=()):
        """Loss and accuracy of hidden tokens."""
        batches = self.evaluation_batches(split)
        evaluator = Evaluator(model, self, strategy)
        totals = self.totals(evaluator.evaluate(batches, f"evaluating {split}"))
        scores = {
            "examples": batches.num_examples,
            "tokens": int(totals.targets),
            **totals.metrics(),
        }
        accuracy = f"{100 * scores['accuracy']:.2f}"
        row = [f"{scores['tokens']:,}", f"{scores['loss']:.4f}", accuracy]
        header = ["hidden tokens", "loss", "accuracy %"]
        return Evaluation(scores, [Table(header, [row], left=0)])

    def text_model(self, model, dtype="float32"):
        """There is none.

        Raises:
          UserError: always.
        """
        raise UserError(
            "a run of kind masked_tokens answers no texts; "
            "--config.train.init_from starts one that does from its weights"
        )
