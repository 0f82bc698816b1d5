"""Where a run is, weights apart, and the kinds of its checkpoints."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from training.metrics import Totals

# Folders of a workdir's `checkpoints/`, one folder for each step below them.
LAST, BEST, RESUME = "last", "best", "resume"
# Files of a checkpoint; the second one is there where a task carries a state.
STATE, CARRIED = "state.json", "carried.npz"


@dataclass
class RunState:
    """Where a run is, weights apart.

    Attributes:
      step: updates taken.
      validated_at: the last step that was validated.
      best_score: on validation data; None before the first.
      batches_per_epoch, examples_per_epoch: of the training data; None if not known
        yet.
      logged_lines, log_sum: of metrics.jsonl, and their SHA-256.
      totals: since the last logged step.
      carried: the state that the task carries from batch to batch, an array for each
        of its tensors; none for most tasks.
    """

    step: int = 0
    validated_at: int = 0
    best_score: float | None = None
    batches_per_epoch: int | None = None
    examples_per_epoch: int | None = None
    logged_lines: int = 0
    log_sum: str | None = None
    totals: Totals = Totals(0.0, 0.0, 0.0)
    carried: Sequence[np.ndarray] = ()

    def numbers(self) -> dict:
        """All but the carried state, for JSON."""
        return {name: x for name, x in vars(self).items() if name != "carried"}

    @classmethod
    def from_numbers(cls, fields: dict, carried: Sequence[np.ndarray] = ()):
        """The inverse of `numbers`."""
        return cls(**{**fields, "totals": Totals(*fields["totals"])}, carried=carried)
