"""The validation data of a dataset that has none: a part of its training data."""

import numpy as np

from data.rows import DataError


def split_off(split: str, total: int, held_out: int, seed: int) -> np.ndarray:
    """Sorted indices of the examples of the part "train" or "validation".

    Args:
      total: training examples.
      held_out: how many of them are validation examples, drawn by the seed.

    Raises:
      DataError: if none would be left to train on.
    """
    if held_out >= total:
        raise DataError(
            "--config.data.validation_examples: expected less than the "
            f"{total:,} training examples, found {held_out:,}; a tenth of them is "
            f"--config.data.validation_examples={max(1, total // 10)}"
        )
    order = np.random.default_rng(seed).permutation(total)
    return np.sort(order[:held_out] if split == "validation" else order[held_out:])
