"""Loss and accuracy over batches."""

from typing import NamedTuple

from common.errors import UserError

METRICS = ("loss", "accuracy")  # of `Totals.metrics`


class NotFiniteError(UserError):
    """Training has left the numbers; the weights are of no use any more."""


class Totals(NamedTuple):
    """Sums over targets: a classifier has one an example, a translation one a token.

    Attributes:
      loss: in nats.
      correct: how many were the model's first choice.
      targets: how many there were.
    """

    loss: float
    correct: float
    targets: float

    def metrics(self) -> dict:
        """Mean loss and accuracy."""
        return {
            "loss": self.loss / self.targets,
            "accuracy": self.correct / self.targets,
        }
