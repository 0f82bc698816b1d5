"""S4D, a diagonal state space for each channel: Gu et al. 2022, equations 1 to 3."""

import numpy as np


def kernel(drawn):
    """Answers to a unit impulse: y_i from one at u_j, by the recurrence.

    x_i = exp(step A) x_(i-1) + (exp(step A) - 1) / A B u_i, zero-order hold,
    y_i = 2 Re(C x_i) + D u_i, of N states that stand for conjugate pairs, with B = 1.
    Where later tokens act too, they do so by a C of their own and from the end.
    """
    batch, heads, length, _ = drawn.queries.shape
    # (channels, n, m), zero above the diagonal.
    matrices = _responses(drawn.weights, "output", length)
    if not drawn.causal:
        backward = _responses(drawn.weights, "backward_output", length)
        matrices = matrices + backward.swapaxes(-1, -2)
    matrices = matrices + drawn.weights["skip"][:, None, None] * np.eye(length)
    by_head = matrices.reshape(heads, -1, length, length)
    by_head = np.einsum("hsnm->hnms", by_head)
    return np.broadcast_to(by_head, (batch, *by_head.shape))


def _responses(weights, name, length):
    poles = -np.exp(weights["log_decay"]) + 1j * weights["frequency"]
    step = np.exp(weights["log_step"])[:, None]
    output = weights[name][..., 0] + 1j * weights[name][..., 1]
    decay = np.exp(step * poles)
    entry = (decay - 1) / poles
    responses = np.zeros((len(step), length, length))
    for j in range(length):
        state = np.zeros(poles.shape, complex)
        for i in range(j, length):
            state = decay * state + (entry if i == j else 0)
            responses[:, i, j] = 2 * np.sum(output * state, axis=-1).real
    return responses
