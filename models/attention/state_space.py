"""Diagonal state spaces: a long convolution of each channel, or its recurrence."""

import math

import numpy as np
from keras import initializers, ops

from common.fields import integer
from models.attention import convolution
from models.attention.cache import State
from models.attention.convolution import multiplied
from models.attention.decoding import RecurrentDecoding, Step, beams_first
from models.attention.heads import after_earlier, num_earlier, sees_a_key, transpose
from models.attention.operator import Operator
from models.seeds import derive_seed

# Bounds of Δ at first.
STEPS = (0.001, 0.1)
# Powers are those of multiples of ROW times those below it: two small tables.
ROW = 64


class StateSpaceOperator(RecurrentDecoding, Operator):
    """K of a diagonal state space (S4D: Gu et al. 2022, "On the Parameterization and
    Initialization of Diagonal State Space Models", equations 1 to 3).

    A channel, which is one number of a head, has a state s of N complex numbers. It
    maps its values v to y with B = 1 and zero-order hold:

        s_t = Ā s_{t-1} + B̄ v_t,   y_t = 2 Re(C s_t) + D v_t
        Ā = exp(Δ A),   B̄ = (Ā - 1) / A

    So y is v convolved with the kernel K_t = 2 Re Σ_n C_n B̄_n Ā_n^t. Nothing of it
    depends on the text: there are no queries or keys. Causally that is all. As "self" a
    second kernel, with a C of its own, acts from the end to the start. Both have a lag
    of 0, at which D is added once.

    A = -exp(log_decay) + i frequency starts as -1/2 + i π n (S4D-Lin), and Δ =
    exp(log_step) with a uniform logarithm. C and D start at random. The paper's block
    goes on with a nonlinearity and a product that mixes channels. Here K stands between
    the projections of the model instead.

    The rounding of FFTs reaches earlier positions, at some 1e-7 of the outputs. Padding
    counts as zeros and keeps its place in time. FFTs are no matrix products, so
    a count of these has those of the kernels alone, and a time that is computed from it
    leaves the convolutions out.

    Args:
      states: N. Each stands for a conjugate pair, so the paper counts 2 N.
    """

    uses = ("self", "causal")
    projections = ()
    fields = {"states": integer("Complex states of a channel.", maximum=1_024)}
    variants = {"": {"states": 16}}
    linear_time = True
    is_ordered = True

    def __init__(self, num_heads, use, seed, states):
        super().__init__(num_heads, use, seed)
        self.states = states

    def build(self, layer, size):
        """Makes the weights of as many channels as the layer is wide."""

        def add(name, shape, initializer):
            # In float32 even where a model computes in bfloat16: the powers of rounded
            # numbers are far from those of the numbers.
            shape = (layer.hidden_dim, *shape)
            return layer.add_weight(
                name=name, shape=shape, initializer=initializer, autocast=False
            )

        def normal(name, deviation):
            seed = derive_seed(self.seed, name)
            return initializers.RandomNormal(0.0, deviation, seed)

        seed, states = derive_seed(self.seed, "log_step"), self.states
        steps = initializers.RandomUniform(*np.log(STEPS), seed)
        decays = initializers.Constant(math.log(0.5))
        frequencies = initializers.Constant(math.pi * np.arange(states))
        self.log_step = add("log_step", (), steps)
        self.log_decay = add("log_decay", (states,), decays)
        self.frequency = add("frequency", (states,), frequencies)
        # Real and imaginary parts have a variance of 1 together.
        names = ("output",) if self.causal else ("output", "backward_output")
        self.outputs = [
            add(name, (states, 2), normal(name, 0.5**0.5)) for name in names
        ]
        self.skip = add("skip", (), normal("skip", 1.0))

    def _by_head(self, weight):
        """(heads, size, …) of a weight of channels, float32."""
        shape = (self.num_heads, weight.shape[0] // self.num_heads, *weight.shape[1:])
        return ops.reshape(ops.cast(weight, "float32"), shape)

    def _system(self):
        """Δ A, and 2 C B̄ of each kernel, pairs of parts (heads, size, N)."""
        step = ops.exp(self._by_head(self.log_step))[..., None]
        decay = ops.exp(self._by_head(self.log_decay))
        frequency = self._by_head(self.frequency)
        real, imaginary = logarithm = -step * decay, step * frequency
        # Ā - 1, without the digits that a small step would lose.
        growth = (
            ops.expm1(real) * ops.cos(imaginary) - 2 * ops.sin(imaginary / 2) ** 2,
            ops.exp(real) * ops.sin(imaginary),
        )
        squares = decay**2 + frequency**2
        entry = multiplied(growth, (-decay / squares, -frequency / squares))
        outputs = [2 * self._by_head(output) for output in self.outputs]
        return logarithm, [multiplied((c[..., 0], c[..., 1]), entry) for c in outputs]

    def kernels(self, length):
        """K_t of t < length, (heads, size, length), with D at lag 0 of the first."""
        logarithm, outputs = self._system()
        rows = (length + ROW - 1) // ROW
        starts = _powers(logarithm, ROW * ops.arange(rows))
        below = transpose(ops.concatenate(_powers(logarithm, ops.arange(ROW)), -1))
        kernels = []
        for output in outputs:
            real, imaginary = multiplied([c[:, :, None] for c in output], starts)
            kernel = ops.matmul(ops.concatenate([real, -imaginary], -1), below)
            kernel = ops.reshape(kernel, (*kernel.shape[:2], rows * ROW))
            kernels.append(kernel[..., :length])
        at_once = ops.cast(ops.arange(length) == 0, "float32")
        kernels[0] = kernels[0] + self._by_head(self.skip)[..., None] * at_once
        return kernels

    def further_inputs(self, x, context, mask=None, training=None):
        """The kernels, and which queries see a real token, (batch or 1, 1, n, 1)."""
        num_queries, num_keys = ops.shape(x)[1], ops.shape(context)[1]
        num_earlier(num_queries, num_keys)  # refuses more queries than keys
        sees = ops.ones((1, 1, num_queries, 1), x.dtype)
        if mask is not None:
            real = sees_a_key(mask, num_queries, self.causal)
            sees = sees * ops.cast(real, x.dtype)
        return *(ops.cast(k, x.dtype) for k in self.kernels(num_keys)), sees

    def make(self, inputs, columns):
        """The transform of K, and which queries see a real token."""
        *kernels, sees = inputs
        return *convolution.transform(*kernels), sees

    def times(self, parts, x):
        *kernel, sees = parts
        return sees * convolution.times(kernel, x)[:, :, -ops.shape(sees)[2] :]

    def transposed_times(self, parts, y):
        *kernel, sees = parts
        y = after_earlier(sees * y, convolution.length_of(kernel))
        return convolution.transposed_times(kernel, y)

    def gradient(self, parts, left, right):
        *kernel, sees = parts
        left = after_earlier(sees * left, convolution.length_of(kernel))
        transforms = convolution.correlation(left, right, kernel[0].shape[2])
        transforms = transforms[: len(self.outputs)]
        kernels = [convolution.signal(transform) for transform in transforms]
        return *(ops.cast(kernel, left.dtype) for kernel in kernels), None

    def empty_cache(self, batch_size, beams, key_size, size, reads, dtype):
        """A `State` for each read, in float32 whatever the dtype: s without B̄, real and
        imaginary parts, (batch, beams, 2, heads, size, N)."""
        shape = (batch_size, beams, 2, self.num_heads, size, self.states)
        return [State(ops.zeros(shape, "float32")) for _ in range(max(reads, 1))]

    def step(self, inputs, biases, cache, visible):
        """Shared are Ā and 2 C B̄, real and imaginary parts (heads, size, N); and w of
        all reads, (batch, beams, heads, reads), or None. Biases are None where there
        are none."""
        logarithm, outputs = self._system()
        weights = None
        if biases is not None:
            weights = 2 * ops.sigmoid(beams_first(biases))
        shared = _exponential(*logarithm), outputs[0], weights
        return Step(self, shared, [*cache])

    def advance(self, shared, number, past, values):
        """See `RecurrentDecoding`."""
        powers, outputs, weights = shared
        if weights is not None:
            values = values * weights[..., number, None]
        real, imaginary = multiplied(powers, (past[:, :, 0], past[:, :, 1]))
        real = real + values[..., None]
        attended, _ = multiplied(outputs, (real, imaginary))
        attended = ops.sum(attended, axis=-1) + self._by_head(self.skip) * values
        return attended, ops.stack([real, imaginary], axis=2)


def _exponential(real, imaginary):
    size = ops.exp(real)
    return size * ops.cos(imaginary), size * ops.sin(imaginary)


def _powers(logarithm, exponents):
    """(heads, size, exponents, N) of logarithms (heads, size, N)."""
    exponents = ops.cast(exponents, "float32")[:, None]
    return _exponential(*(part[:, :, None] * exponents for part in logarithm))
