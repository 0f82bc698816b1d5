"""S4D, a diagonal state space for each channel: Gu et al. 2022, equations 1 to 3."""

import numpy as np


def kernel(drawn):
    """Answers to a unit impulse: y_i from one at u_j, by the recurrence.

    x_i = exp(step A) x_(i-1) + (exp(step A) - 1) / A B u_i, zero-order hold,
    y_i = 2 Re(C x_i) + D u_i, of N states that stand for conjugate pairs, with B = 1.
    """
    poles = -np.exp(drawn.weights["log_decay"]) + 1j * drawn.weights["frequency"]
    step = np.exp(drawn.weights["log_step"])[:, None]
    output = drawn.weights["output"][..., 0] + 1j * drawn.weights["output"][..., 1]
    decay = np.exp(step * poles)
    entry = (decay - 1) / poles
    batch, heads, length, _ = drawn.queries.shape
    channels = len(step)
    matrices = np.zeros((length, length, channels))
    for j in range(length):
        state = np.zeros(poles.shape, complex)
        for i in range(j, length):
            state = decay * state + (entry if i == j else 0)
            matrices[i, j] = 2 * np.sum(output * state, axis=-1).real
        matrices[j, j] += drawn.weights["skip"]
    by_head = matrices.reshape(length, length, heads, -1)
    by_head = np.einsum("nmhs->hnms", by_head)
    return np.broadcast_to(by_head, (batch, *by_head.shape))
