"""Dense layer whose kernel is a product of random rotations (equations 10 and 11)."""

import keras
import numpy as np
from keras import ops

from models.fidelity import official_choices
from models.layers.dense import project
from models.seeds import derive_seed


def rotation_matrix(frequencies, depth, num_depths, scale_size, fidelity):
    """The approximate rotation matrix U^l of equation 10, or leading rows of it.

        paper:    [sin(w_ij j l / P), cos(w_ij j l / P)],  j = 1..size/2,
                  P = size L / 2 pi
        official: [sin(w_ip p l pi / size), cos(...)],  p = 0..size/2 - 1

    divided by the square root of `scale_size`, with l = depth + 1 in the paper, and
    l = depth in the official code.

    Args:
      frequencies: w, (rows, size/2).
      depth: 0..num_depths - 1.
      num_depths: L.
      scale_size: what the entries are scaled by: the matrix's own size in the
        paper, the layer's output size in the official code.
      fidelity: see `models.fidelity`; of it "rotation_phase" and "depth_index".

    Returns:
      float32 array of shape (rows, size).
    """
    size = 2 * frequencies.shape[1]
    official = official_choices(fidelity)
    index = depth + ("depth_index" not in official)
    if "rotation_phase" not in official:
        step = 2 * np.pi * index / (size * num_depths)
        phases = step * np.arange(1, size // 2 + 1)
    else:
        # The angles reach thousands of radians, where rounding shows: as the
        # authors do, in float32.
        phases = np.float32(np.pi / size) * np.arange(size // 2, dtype="float32")
        phases *= np.float32(index)
        frequencies = frequencies.astype("float32")
    angles = frequencies * phases
    matrix = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return (matrix / np.sqrt(scale_size)).astype("float32")


@keras.saving.register_keras_serializable("transevolve")
class RotationDense(keras.layers.Layer):
    """x W + b with W = U S V: U, V fixed rotations, S a learned diagonal (eq. 11).

    U (input x input) and V (output x output) depend on the seed and the depth
    alone: they are drawn when the layer is built, are no weights, and never reach a
    checkpoint. Only the leading min(input, output) columns of U and rows of V meet
    the diagonal, so only those are kept. W is folded once per call, not per token.

    Args:
      units: output size, even, as the input size must be.
      depth: 0..num_depths - 1, the place in the block.
      num_depths: L, the depth of the block.
      fidelity: see `models.fidelity`; of it what is about rotations and singular
        values.
      seed: of the draw and of the initial diagonal; layers that share seed and depth
        share U and V.
    """

    def __init__(self, units, depth, num_depths, fidelity="paper", seed=0, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.depth = depth
        self.num_depths = num_depths
        self.fidelity = fidelity
        self._official = official_choices(fidelity)
        self.seed = seed

    def build(self, input_shape):
        input_dim = input_shape[-1]
        if input_dim % 2 or self.units % 2:
            raise ValueError(
                f"rotations need even sizes, got {input_dim} and {self.units}"
            )
        self.rank = min(input_dim, self.units)
        held = input_dim if "singular_values" in self._official else self.rank
        limit = (6 / self.rank) ** 0.5
        self.singular_values = self.add_weight(
            name="singular_values",
            shape=(held,),
            initializer=keras.initializers.RandomUniform(
                -limit, limit, derive_seed(self.seed, "singular_values")
            ),
        )
        self.bias = self.add_weight(
            name="bias", shape=(self.units,), initializer="zeros"
        )
        self.set_frequencies(
            self._draw(0, (input_dim, input_dim // 2), std=input_dim),
            self._draw(1, (self.rank, self.units // 2), std=self.units),
        )

    def _draw(self, which, shape, std):
        # RandomState's streams are frozen across NumPy versions.
        seed = np.random.SeedSequence((self.seed, self.depth, which))
        random = np.random.RandomState(np.random.MT19937(seed))
        return random.normal(0.0, std, shape)

    def set_frequencies(self, left, right):
        """Replaces the drawn frequencies w of U and V, e.g. by those of other code.

        Args:
          left: (input, input/2).
          right: (rows, units/2) with at least min(input, units) rows.
        """
        input_dim = left.shape[0]
        scale_size = self.units if "rotation_scale" in self._official else input_dim
        arguments = (self.depth, self.num_depths)
        left = rotation_matrix(left, *arguments, scale_size, self.fidelity)
        right = rotation_matrix(
            right[: self.rank], *arguments, self.units, self.fidelity
        )
        self.left = ops.convert_to_tensor(left[:, : self.rank])
        self.right = ops.convert_to_tensor(right)

    def kernel(self):
        """W = U S V, (input, units)."""
        values = ops.cast(self.singular_values, self.compute_dtype)[: self.rank]
        left = ops.cast(self.left, self.compute_dtype)
        return ops.matmul(left * values, ops.cast(self.right, self.compute_dtype))

    def call(self, x):
        return project(x, self.kernel()) + self.bias

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.units)
