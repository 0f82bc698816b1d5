"""Time evolution: the sines and cosines of T^l, equation 7."""

import numpy as np

from models.fidelity import official_choices


def time_features(
    time_dim: int, num_depths: int, fidelity: str, offsets=(0.0,)
) -> np.ndarray:
    """The fixed sines and cosines of equation 7, for every read of one block.

    T^l is the product of row l with the learned coefficients w^l:

        paper:    [sin(j l / P)]_j, [cos(j l / P)]_j,  j = 1..d'/2,  P = d' L / 2 pi
        official: [sin(p l pi / 64)]_p, [cos(p l pi / 64)]_p,  p = 0..d'/2 - 1

    with l = 1..L in the paper, and l = 0..L - 1 in the official code, plus an offset
    where a depth is read at fractions of it.

    Args:
      time_dim: d', even.
      num_depths: L, the depth of the block.
      fidelity: see `models.fidelity`; of it "phase" and "depth_index".
      offsets: fractions of a depth, of the reads of each.

    Returns:
      float32 array of shape (num_depths * offsets, time_dim), sines first.

    Raises:
      ValueError: if `time_dim` is odd or `fidelity` is unknown.
    """
    if time_dim % 2:
        raise ValueError(f"time_dim must be even, got {time_dim}")
    official = official_choices(fidelity)
    depths = np.arange(num_depths) + ("depth_index" not in official)
    depths = np.add.outer(depths, offsets).ravel()
    frequencies = np.arange(time_dim // 2) + ("phase" not in official)
    if "phase" in official:
        phases = np.outer(depths, frequencies) * np.pi / 64
    else:
        phases = np.outer(depths, frequencies) * 2 * np.pi / (time_dim * num_depths)
    features = np.concatenate([np.sin(phases), np.cos(phases)], axis=1)
    return features.astype("float32")
