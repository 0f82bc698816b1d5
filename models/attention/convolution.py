"""Long convolutions by FFTs: a Toeplitz matrix for each channel, never written out.

A channel is one number of a head. Positions x are (batch, heads, m, columns), of which
each read has as many as a head has channels. Transforms are those of twice the length,
so that what leaves a text at one end does not come back at the other. They are pairs of
a real and an imaginary part, in float32.
"""

from keras import ops

from models.attention.heads import transpose


def transform(forward, *backward):
    """K's transform, (heads, 1, size, m + 1), of kernels (heads, size, m).

    Args:
      forward: what a position does to those after it, by distance.
      backward: what it does to those before it, if it does.
    """
    real, imaginary = _transform(forward[:, None])
    for kernel in backward:
        real_part, imaginary_part = _transform(kernel[:, None])
        # The conjugate is the transform in reverse.
        real, imaginary = real + real_part, imaginary - imaginary_part
    return real, imaginary


def length_of(kernel):
    """m, of K's transform."""
    return ops.shape(kernel[0])[-1] - 1


def times(kernel, x):
    """K x, of K's transform."""
    batch, heads, length, columns = ops.shape(x)
    product = signal(multiplied(kernel, _by_channel(x, kernel[0].shape[2])))
    product = ops.reshape(product, (batch, heads, columns, length))
    return ops.cast(transpose(product), x.dtype)


def transposed_times(kernel, y):
    """K^T y."""
    return times(conjugate(kernel), y)


def correlation(left, right, size):
    """The gradients of kernels, where that of K is left right^T: their transforms.

    Args:
      size: of a head.

    Returns:
      That of the forward kernel, and that of the backward one, (heads, size, m + 1).
    """
    reads, spectra = left.shape[-1] // size, []
    left, right = (ops.split(x, reads, axis=-1) for x in (left, right))
    # Read by read: what all take together is fresh memory for each operation.
    for factors in zip(left, right, strict=True):
        left_part, right_part = (_by_channel(x, size) for x in factors)
        products = multiplied(left_part, conjugate(right_part))
        spectra.append([ops.sum(part, axis=(0, 2)) for part in products])
    forward = [sum(parts) for parts in zip(*spectra, strict=True)]
    return forward, conjugate(forward)


def signal(spectrum):
    """(…, m) of its transform, (…, m + 1)."""
    return ops.irfft(spectrum)[..., : length_of(spectrum)]


def multiplied(x, y):
    """Products of complex numbers."""
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def conjugate(x):
    """Complex numbers with their imaginary parts negated."""
    return x[0], -x[1]


def _by_channel(x, size):
    """The transform of positions, (batch, heads, reads, size, m + 1)."""
    batch, heads, length, columns = ops.shape(x)
    x = ops.reshape(transpose(x), (batch, heads, columns // size, size, length))
    return _transform(x)


def _transform(x):
    *outer, length = ops.shape(x)
    parts = ops.rfft(ops.cast(x, "float32"), 2 * length)
    # TensorFlow knows no size of a transform whose length is dynamic.
    return [ops.reshape(part, (*outer, length + 1)) for part in parts]
