"""Seeds that follow from a model's seed and a variable's path, not from an order."""

import hashlib

from keras import layers


def derive_seed(seed: int, *path: str) -> int:
    """The seed of what lies at a path below the owner of `seed`.

    It is the same whatever else the owner holds, and whichever way the path is cut:
    derive_seed(derive_seed(0, "a"), "b") == derive_seed(0, "a", "b").

    Args:
      seed: non-negative integer.
      path: names, from the owner's child downwards.

    Returns:
      An integer from 0 to below 2^31.
    """
    for name in path:
        digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
        seed = int.from_bytes(digest[:4], "big") >> 1
    return seed


def seeded_dropout(rate: float, name: str, seed: int, **options) -> layers.Dropout:
    """Dropout that is drawn by its path below the owner of `seed`."""
    return layers.Dropout(rate, seed=derive_seed(seed, name), name=name, **options)
