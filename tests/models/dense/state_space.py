"""S4D, a diagonal state space for each channel: Gu et al. 2022, equations 1 to 3."""

import numpy as np


def kernel(drawn):
    """Answers to a unit impulse: y_i from one at u_j, by the recurrence.

    x_i = exp(step A) x_(i-1) + (exp(step A) - 1) / A B u_i, zero-order hold,
    y_i = 2 Re(C x_i) + D u_i, of N states that stand for conjugate pairs, with B = 1.
    Where it is not causal, another one with a C of its own, and without D, starts at
    the last u. Their outputs add up.
    """
    weights = drawn.weights
    poles = -np.exp(weights["log_decay"]) + 1j * weights["frequency"]
    decay = np.exp(np.exp(weights["log_step"])[:, None] * poles)
    entry = (decay - 1) / poles
    batch, heads, length, _ = drawn.queries.shape
    matrices = np.zeros((length, length, len(poles)))

    def run(name, places):
        output = weights[name][..., 0] + 1j * weights[name][..., 1]
        for number, j in enumerate(places):
            state = entry
            for i in places[number:]:
                matrices[i, j] += 2 * np.sum(output * state, axis=-1).real
                state = decay * state

    places = list(range(length))
    run("output", places)
    if not drawn.causal:
        run("backward_output", places[::-1])
    matrices[places, places] += weights["skip"]
    by_head = matrices.reshape(length, length, heads, -1)
    by_head = np.einsum("nmhs->hnms", by_head)
    return np.broadcast_to(by_head, (batch, *by_head.shape))
