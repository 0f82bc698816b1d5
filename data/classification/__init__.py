"""Classification datasets: tokenized, kept on disk, dealt in batches."""

from data.classification.batching import FILLER_TARGET
from data.classification.data import ClassificationData

__all__ = ["FILLER_TARGET", "ClassificationData"]
