"""`rfa` that forgets, Peng et al. 2021, equation 7."""

import numpy as np

from tests.models.dense import rfa


def kernel(drawn):
    """S_t = g_t S_(t-1) + (1 - g_t) phi(k_t) v_t^T, and z_t alike."""
    return rfa.kernel(drawn) * _remembered(drawn)


def least(drawn):
    """As `rfa.least`, of what is remembered."""
    return rfa.least(drawn) * _remembered(drawn)


def _remembered(drawn):
    """What the gates leave at i of what entered at j, (batch, heads, n, m)."""
    gates = drawn.x @ drawn.weights["gate_kernel"] + drawn.weights["gate_bias"]
    gates = np.einsum("bnh->bhn", 1 / (1 + np.exp(-gates)))
    # Padding is not read, so nothing is forgotten there.
    gates = np.where(drawn.mask[:, None], gates, 1)
    remembered = np.zeros((*gates.shape, gates.shape[-1]))
    for j in range(gates.shape[-1]):
        remembered[..., j, j] = 1 - gates[..., j]
        for i in range(j + 1, gates.shape[-1]):
            remembered[..., i, j] = gates[..., i] * remembered[..., i - 1, j]
    return remembered
