"""Random Fourier features: sines and cosines, which have either sign."""

from keras import ops

from models.attention.feature_maps import FeatureMap, draw_vectors
from models.attention.heads import transpose
from models.gradients import custom_gradient
from models.products import with_gradients

# A squared norm below this counts as this.
SMALLEST_SQUARE = 1e-12


class SineFeatures(FeatureMap):
    """phi(x) = [sin(W u), cos(W u)], u = x / |x| (Peng et al. 2021, section 3.1).

    The m rows of W are sigma * w for w ~ N(0, 1), with a sigma for each head. Products
    phi(q) . phi(k) / m have the mean exp(-|sigma * (u_q - u_k)|^2 / 2), and a deviation
    from it of at most 1 / sqrt(2m). The paper has the factor in phi. Here what divides
    by the sum of the products has no need of it. Features are signed, unlike those of
    other maps.

    The authors draw vectors for each head. All heads share them here: one product for
    all takes a third of the time.

    Attributes:
      vectors: w, (m, size), constants of the seed.
      deviation: sigma, learned for each number of a head, (heads, 1, size), 1 at first.
    """

    def __init__(self, num_heads, size, seed, num_vectors):
        super().__init__(size, 2 * num_vectors)
        self.num_heads = num_heads
        self.vectors = draw_vectors(num_vectors, size, False, seed)

    def build(self, layer):
        """Makes sigma."""
        shape = (self.num_heads, 1, self.size)
        self.deviation = layer.add_weight(
            name="deviation", shape=shape, initializer="ones"
        )

    def queries(self, x, draw=0):
        """See `FeatureMap`."""
        # In float32: an error of an angle is one of the feature.
        x, deviation = (ops.cast(array, "float32") for array in (x, self.deviation))
        return _waves(x, deviation, ops.convert_to_tensor(self.vectors))

    def products(self, rows):
        """See `FeatureMap`; the random vectors are constants and have no gradient."""
        num_vectors, size = self.vectors.shape
        sizes = (rows, size, num_vectors)
        return with_gradients("random features", 2, 1, sizes, "right")[:2]


@custom_gradient
def _waves(x, deviation, vectors):
    """phi, whose slopes are its own numbers: no sine is computed for the gradient."""
    squares = ops.sum(ops.square(x), axis=-1, keepdims=True)
    inverse = ops.rsqrt(ops.maximum(squares, SMALLEST_SQUARE))
    unit = x * inverse
    angles = ops.matmul(unit * deviation, transpose(vectors))
    waves = ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)

    def backward(slopes):
        sines, cosines = ops.split(waves, 2, axis=-1)
        by_sines, by_cosines = ops.split(slopes, 2, axis=-1)
        d_scaled = ops.matmul(cosines * by_sines - sines * by_cosines, vectors)
        d_deviation = ops.sum(d_scaled * unit, axis=(0, 2))[:, None]
        d_unit = d_scaled * deviation
        along = ops.sum(d_unit * unit, axis=-1, keepdims=True)
        return inverse * (d_unit - along * unit), d_deviation, None

    return waves, backward
