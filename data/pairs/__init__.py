"""Parallel text: tokenized while it is read, dealt in batches."""

from data.pairs.data import ParallelData

__all__ = ["ParallelData"]
