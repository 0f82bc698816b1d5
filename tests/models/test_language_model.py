"""Language models: causality, padding, and steps against the pass over a text."""

import keras
import numpy as np
import pytest

from benchmarks.alone import peak_bytes, run_alone
from models import build_language_model
from models.attention.cache import grow, leaves, settle
from tests.models.builders import (
    CAUSAL_CONFIGS,
    MAX_LENGTH,
    SMALL_CONFIGS,
    VOCABULARY_SIZE,
    at_once,
    numpy,
    randomize,
    tokens,
)

pytestmark = [pytest.mark.jax, pytest.mark.slow]

# With slots and with states; each mechanism's steps have tests of their own.
USUAL = [
    *("transformer", "transformer-linear"),
    *("transevolve-fullff-2", "transevolve-fullff-2-delta"),
]
# What changes how a state moves.
OPTIONS = {
    "rotary": {"positions": "rotary", "residual_step": "rk2"},
    "relative": {"positions": "relative-bias"},
    "post": {"norm": "post", "sharing": "weights", "positions": "learned"},
}
CASES = [
    *(
        pytest.param(name, {}, marks=() if name in USUAL else pytest.mark.long, id=name)
        for name in CAUSAL_CONFIGS
    ),
    *(
        pytest.param(name, changes, id=f"{name}-{option}")
        for option, changes in OPTIONS.items()
        for name in ("transformer", "transevolve-fullff-2")
        if option != "post" or name == "transformer"
    ),
    *(
        pytest.param(
            name,
            {"sharing": "attention"},
            marks=() if name in USUAL else pytest.mark.long,
            id=f"{name}-shared",
        )
        for name, config in CAUSAL_CONFIGS.items()
        if config["architecture"] == "transformer"
    ),
]
LENGTH = 11


def build(name, changes=()):
    config = {**CAUSAL_CONFIGS[name], **dict(changes)}
    return randomize(build_language_model(config, VOCABULARY_SIZE, 0, MAX_LENGTH))


def decode(model, text, recent):
    """Logits of a text fed token by token through the cache."""
    batch, length = text.shape
    cache = grow(model.empty_cache(batch, 1), 3 * recent)
    constants = model.constants()
    step = at_once(lambda *given: model.step(given[0], constants, *given[1:]))
    settle_at, logits = at_once(settle), []
    for position in range(length):
        if position and position % recent == 0:
            cache = settle_at(cache, position)
        now, cache = step(text[:, position : position + 1], cache, position)
        logits.append(numpy(now))
    return np.concatenate(logits, axis=1)


@pytest.mark.parametrize("name, changes", CASES)
def test_steps_equal_the_pass_over_the_text(name, changes, recent):
    model, text = build(name, changes), tokens(length=LENGTH)
    expected = numpy(at_once(model)(text))
    np.testing.assert_allclose(decode(model, text, recent), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["transformer", "transevolve-fullff-2"])
def test_nothing_is_seen_before_it_comes(name):
    model, text = build(name), tokens(length=LENGTH)
    later = text.copy()
    later[:, 6:] = tokens(length=LENGTH, seed=1)[:, 6:]
    before, after = (numpy(model(x)) for x in (text, later))
    np.testing.assert_allclose(after[:, :6], before[:, :6], rtol=0, atol=1e-5)
    assert np.abs(after[:, 6:] - before[:, 6:]).max() > 1e-2


@pytest.mark.parametrize("name", ["transformer", "transevolve-fullff-2"])
def test_padding_changes_nothing(name):
    model, text = build(name), tokens(length=LENGTH)
    longer = np.pad(text, [[0, 0], [0, 4]])
    np.testing.assert_allclose(
        numpy(model(longer))[:, :LENGTH], numpy(model(text)), rtol=0, atol=1e-5
    )


def test_states_do_not_grow():
    model = build("transevolve-fullff-2-delta")
    assert not any(leaf.grows for leaf in leaves(model.empty_cache(1, 1).layers))


def test_input_and_output_share_a_table():
    shapes = [weight.shape for weight in build("transformer").trainable_weights]
    assert sum(VOCABULARY_SIZE in shape for shape in shapes) == 1


def test_what_is_not_causal_is_refused():
    config = SMALL_CONFIGS["transevolve-fullff-2-linformer"]
    with pytest.raises(ValueError, match="expected a causal model that decodes"):
        build_language_model(config, VOCABULARY_SIZE)


def read_stream(name):
    """Reads 100,000 tokens by steps and by segments that remember.

    Returns:
      After each 1,000 tokens the shapes of what both keep and the most bytes that the
      process has held; and how far the last logits of both are apart, at most.
    """
    import tensorflow as tf

    model = build(name, {"positions": "none"})
    stream = tokens(1, 100_000).reshape(100, 1, 1000)
    constants, cache = model.constants(), model.empty_cache(1, 1)

    @tf.function
    def steps(segment, first, cache):
        logits = tf.zeros([1, 1, VOCABULARY_SIZE])
        for place in tf.range(1000):
            now = segment[:, place : place + 1]
            logits, after = model.step(now, constants, cache, first + place)
            logits.set_shape([1, 1, VOCABULARY_SIZE])
            cache = tf.nest.map_structure(
                lambda new, old: tf.ensure_shape(new, old.shape), after, cache
            )
        return logits[:, 0], cache

    remember = tf.function(lambda x, memory: model(x, memory=memory))
    memory, shapes, peaks, errors = model.empty_memory(1, 1), [], [], []
    for number, segment in enumerate(stream):
        logits, cache = steps(segment, tf.constant(1000 * number), cache)
        of_segment, memory = remember(segment, memory)
        shapes.append([list(x.shape) for x in tf.nest.flatten((cache, memory))])
        peaks.append(peak_bytes())
        errors.append(float(tf.reduce_max(tf.abs(logits - of_segment[:, -1]))))
    return shapes, peaks, max(errors)


@pytest.mark.long
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="a loop in a graph")
@pytest.mark.parametrize("name", ["transevolve-fullff-2-delta", "transformer-linear"])
def test_a_stream_of_100_000_tokens(name):
    """Steps and segments that remember agree; nothing grows."""
    shapes, peaks, error = run_alone("stream", read_stream, name)
    assert error < 1e-3
    assert all(later == shapes[0] for later in shapes)
    assert peaks[-1] - peaks[9] < 10e6  # bytes, of 90,000 tokens


def test_kernels_have_the_deviation_that_is_asked_for():
    config = {**CAUSAL_CONFIGS["transformer-delta"], "hidden_dim": 128}
    deviations = {}
    for asked in (None, 0.02):
        changed = {**config, "initial_deviation": asked}
        model = build_language_model(changed, VOCABULARY_SIZE, 0, MAX_LENGTH)
        for weight in model.trainable_weights:
            deviations.setdefault(weight.path, []).append(np.std(numpy(weight)))
    for path, (usual, drawn) in deviations.items():
        if usual == 0:  # biases, and what normalisation multiplies by
            assert drawn == 0, path
        else:
            assert drawn == pytest.approx(0.02, rel=0.1) and usual > 0.03, path
