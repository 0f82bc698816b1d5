"""TransEvolve whose attention does not evolve with depth."""

import numpy as np
import pytest

from tests.models.builders import SMALL, build_any, numpy, tokens

pytestmark = pytest.mark.jax


def test_without_evolution_all_depths_share_their_weights():
    source = tokens(length=9, padding=[(1, slice(6, None))])
    still = build_any({**SMALL, "evolution": "none"}, decoder=False)
    names = {weight.path.split("/", 1)[1] for weight in still.trainable_variables}
    evolving = build_any(SMALL, decoder=False)
    values = {weight.path: numpy(weight) for weight in still.weights}
    for weight in evolving.trainable_variables:
        path = weight.path.split("/", 1)[1]
        if path in names:
            weight.assign(values[weight.path])
        else:
            assert weight.name in ("query_time_kernel", "time_coefficients")
            weight.assign(np.zeros(weight.shape))
    np.testing.assert_allclose(
        numpy(still(source)), numpy(evolving(source)), rtol=0, atol=1e-6
    )
