"""Weights by position: for texts up to a length that is known when they are made."""


def needed_max_length(layer) -> int:
    """The length of the longest text that an attention layer must serve.

    Raises:
      ValueError: if it is not known.
    """
    if layer.max_length is None:
        raise ValueError(
            "expected max_length, which weights by position need, got None"
        )
    return layer.max_length


def checked_length(length, max_length: int):
    """The length of a text, if it is not known to be longer than the weights.

    Raises:
      ValueError: if it is.
    """
    if isinstance(length, int) and length > max_length:
        raise ValueError(f"expected at most max_length={max_length}, got {length}")
    return length
