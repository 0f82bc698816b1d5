"""Feature maps: phi, with which phi(q) . phi(k) stands in for exp(q . k).

To add one, write its class here and name it in `FEATURE_MAPS`. It is made of the size
of a head, a seed for what it may draw, and its fields. Its `variants` are then variants
of every model with linear attention.
"""

import abc
from collections.abc import Mapping

import numpy as np
from keras import ops

from common.fields import boolean, choice, integer, optional
from models.attention.heads import transpose
from models.gradients import custom_gradient
from models.seeds import derive_seed

KERNELS = ("softmax", "relu")
# Of exponents of features: the product of two is no number of float32 below e^-87.
LEAST_EXPONENT = -40.0
# Draws, and rotations of them, that redrawing goes through.
NUM_DRAWS = 16
# Of what sines scale to unit length: a squared norm below this counts as this.
SMALLEST_SQUARE = 1e-12


class FeatureMap(abc.ABC):
    """A map of heads of `size` numbers to as many or more features.

    Attributes:
      fields: hyperparameters, see `common.fields`.
      variants: their values, by what a variant's name says of the map.
      is_softmax: whether products of features stand in for exp(q . k).
      may_be_zero: whether all features of a query or key may be zero.
      is_signed: whether features may be negative, so that nothing may be divided by
        their sum, or by that of products.
      leaves_out_factors: whether those of a query or key lack a factor, which dividing
        by their sum, or by that of products, takes out.
      size: numbers of a head.
      num_features: f.
    """

    fields = {}
    variants = {}
    is_softmax = False
    may_be_zero = False
    is_signed = False
    leaves_out_factors = False

    def __init__(self, size, num_features):
        self.size = size
        self.num_features = num_features

    def build(self, layer) -> None:
        """Makes its weights, if it has any, by `layer.add_weight`."""
        return None

    def count_pass(self):
        """Counts a training pass, for a map that draws random vectors anew."""
        return None

    @abc.abstractmethod
    def queries(self, x):
        """Features of queries, (..., f), of (..., size)."""

    def keys(self, x):
        """Features of keys, and the logarithm of a factor on those of each key.

        Returns:
          (..., f), and (..., 1), or None where the factor is 1.
        """
        return self.queries(x), None


class Elu(FeatureMap):
    """phi(x) = elu(x) + 1, of as many features (Katharopoulos et al. 2020)."""

    variants = {"": {}}

    def __init__(self, size, seed):
        super().__init__(size, size)

    def queries(self, x):
        """See `FeatureMap`."""
        return _elu1(x)


class Dpfp(FeatureMap):
    """Deterministic parameter-free projection (Schlag et al. 2021, equation 37).

    With r = relu([x, -x]), the products of r with itself rolled by 1 to nu places:
    2 nu features for each number. Many are zero, and all may be.
    """

    fields = {"nu": integer("ν of DPFP: 2ν features for each number.", 1, 8)}
    variants = {"dpfp": {"nu": 1}}
    may_be_zero = True

    def __init__(self, size, seed, nu):
        super().__init__(size, 2 * nu * size)
        self.nu = nu

    def queries(self, x):
        """See `FeatureMap`."""
        r = ops.relu(ops.concatenate([x, -x], axis=-1))
        rolled = (ops.roll(r, shift, axis=-1) for shift in range(1, self.nu + 1))
        return ops.concatenate([r * other for other in rolled], axis=-1)


class Favor(FeatureMap):
    """FAVOR+: random features of the softmax kernel (Choromanski et al. 2021).

        phi(x) = exp(w x - |x|^2 / 2) / sqrt(m)      for m vectors w ~ N(0, 1)

    whose products have the mean exp(q . k). The largest of each query and of each key
    is taken out of the exponents, so that none overflows: a query's cancels, and a
    key's is the factor that `keys` returns. Orthogonal vectors are the rows of
    orthogonal matrices with the lengths that independent ones have.

    Paired, half of the vectors are the others negated: features are exp(w x) and
    exp(-w x), of which products have a smaller variance (section 4 of the paper).

    With the kernel "relu", phi(x) = relu(w x / sqrt(m)) + 0.001.

    Redrawing goes through `NUM_DRAWS` draws, then through rotations of them, which are
    draws as good, and begins again after `NUM_DRAWS`^2. All are constants, of the seed
    alone: no checkpoint has them, and all replicas share them.
    """

    leaves_out_factors = True
    fields = {
        "num_features": integer("m, random features of FAVOR+ a head.", maximum=8_192),
        "orthogonal": boolean("Whether these are orthogonal."),
        "redraw_every": integer(
            "Training passes after which they are redrawn; 0 for never.", 0
        ),
        "kernel": choice("What FAVOR+ stands in for.", *KERNELS),
        "paired": optional(boolean("Whether half of them are those of -x.")),
    }
    variants = {
        "favor": {
            "num_features": 128,
            "orthogonal": True,
            "redraw_every": 0,
            "kernel": "softmax",
            "paired": False,
        },
    }

    def __init__(
        self,
        size,
        seed,
        num_features,
        orthogonal,
        redraw_every,
        kernel,
        paired=False,
    ):
        super().__init__(size, num_features)
        self.kernel = kernel
        self.is_softmax = kernel == "softmax"
        self.redraw_every = redraw_every
        numbers = range(NUM_DRAWS if redraw_every else 1)
        self.vectors = np.stack(
            [
                self._vectors(size, orthogonal, paired, derive_seed(seed, f"{number}"))
                for number in numbers
            ]
        )
        self.rotations = np.stack(
            [np.eye(size, dtype="float32")]
            + [
                draw_rotation(size, derive_seed(seed, f"rotation_{number}"))
                for number in numbers[1:]
            ]
        )

    def _vectors(self, size, orthogonal, paired, seed):
        if not paired:
            return draw_vectors(self.num_features, size, orthogonal, seed)
        half = draw_vectors((self.num_features + 1) // 2, size, orthogonal, seed)
        return np.concatenate([half, -half])[: self.num_features]

    def queries(self, x):
        """See `FeatureMap`."""
        _, projected = self._project(x)
        if self.kernel == "relu":
            return self._relu(projected)
        return self._scaled(_exp(projected - _largest(projected)))

    def keys(self, x):
        """See `FeatureMap`."""
        x, projected = self._project(x)
        if self.kernel == "relu":
            return self._relu(projected), None
        largest = _largest(projected)
        squares = ops.sum(ops.square(x), axis=-1, keepdims=True)
        return self._scaled(_exp(projected - largest)), largest - squares / 2

    def build(self, layer):
        """Makes a counter of the training passes, where it is to redraw."""
        if self.redraw_every:
            self.passes = layer.add_weight(
                name="passes",
                shape=(),
                dtype="int32",
                initializer="zeros",
                trainable=False,
                aggregation="none",
            )

    def count_pass(self):
        """See `FeatureMap.count_pass`."""
        if self.redraw_every:
            self.passes.assign(self.passes + 1)

    def _project(self, x):
        # In float32: an error of the exponent is a factor of the feature.
        x = ops.cast(x, "float32")
        draw = self.passes // self.redraw_every if self.redraw_every else 0
        vectors = ops.convert_to_tensor(self.vectors)[draw % len(self.vectors)]
        if self.redraw_every:
            number = draw // NUM_DRAWS % NUM_DRAWS
            rotation = ops.convert_to_tensor(self.rotations)[number]
            vectors = ops.matmul(vectors, rotation)
        return x, ops.matmul(x, ops.transpose(vectors))

    def _relu(self, projected):
        return self._scaled(ops.relu(projected)) + 1e-3

    def _scaled(self, features):
        return features * self.num_features**-0.5


class Tanh(FeatureMap):
    """phi(x) = tanh(x) (Schlag, Munkhdalai and Schmidhuber 2021, "Learning Associative
    Inference Using Fast Weight Memory")."""

    variants = {"tanh": {}}
    is_signed = True

    def __init__(self, size, seed):
        super().__init__(size, size)

    def queries(self, x):
        """See `FeatureMap`."""
        return ops.tanh(x)


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

    def queries(self, x):
        """See `FeatureMap`."""
        # In float32: an error of an angle is one of the feature.
        x, deviation = (ops.cast(array, "float32") for array in (x, self.deviation))
        return _waves(x, deviation, ops.convert_to_tensor(self.vectors))


FEATURE_MAPS = {"elu1": Elu, "dpfp": Dpfp, "favor": Favor}


def variants(feature_maps: Mapping[str, type[FeatureMap]], normalised: bool) -> dict:
    """Hyperparameters of an operator, by what they append to a variant's name.

    Args:
      feature_maps: {name: what it may have}.
      normalised: whether features are divided by their sum, where none are signed,
        and not what is read by that of their products.
    """
    return {
        suffix: {
            "feature_map": name,
            "sum_normalisation": normalised and not feature_map.is_signed,
            "attention_normalisation": not normalised,
            **hyperparameters,
        }
        for name, feature_map in feature_maps.items()
        for suffix, hyperparameters in feature_map.variants.items()
    }


def scaled(x, scale):
    """Queries or keys times the root of the scale of their products."""
    return x if scale == 1 else x * scale**0.5


def draw_vectors(count: int, size: int, orthogonal: bool, seed: int) -> np.ndarray:
    """Vectors of independent N(0, 1) numbers, float32 (count, size).

    Args:
      orthogonal: whether those of each `size` of them are orthogonal to each other;
        each has the distribution that it has by itself.
      seed: of the draw.
    """
    stream = _stream(seed)
    vectors = stream.normal(size=(count, size))
    if orthogonal:
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        blocks = [_rotation(size, stream) for _ in range(-(-count // size))]
        vectors = lengths * np.concatenate(blocks)[:count]
    return vectors.astype("float32")


def draw_rotation(size: int, seed: int) -> np.ndarray:
    """An orthogonal matrix, each as likely as any other, float32 (size, size)."""
    return _rotation(size, _stream(seed)).astype("float32")


def _stream(seed):
    # It stays the same across versions of NumPy: no checkpoint keeps what it draws.
    return np.random.RandomState(np.random.MT19937(np.random.SeedSequence(seed)))


def _rotation(size, stream):
    q, r = np.linalg.qr(stream.normal(size=(size, size)))
    # Uniform over all rotations only with these signs.
    return (q * np.sign(np.diag(r))).T


@custom_gradient
def _elu1(x):
    """elu(x) + 1, whose slope is itself or 1: nothing else is kept for the gradient.

    As a sum in which e^x is whole: what elu(x) rounds off is all of e^x at x = -17.
    """
    features = _exp(ops.minimum(x, 0)) + ops.relu(x)

    def backward(slopes):
        # Not slopes * min(features, 1), an array which would be made long before.
        return ops.where(features < 1, slopes * features, slopes)

    return features, backward


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


def _exp(x):
    return ops.exp(ops.maximum(x, LEAST_EXPONENT))


def _largest(x):
    return ops.stop_gradient(ops.max(x, axis=-1, keepdims=True))
