"""Memory of earlier segments: two are as one, and what is left is what steps keep."""

import keras
import numpy as np
import pytest

from models import attention_kind, build_language_model
from models.attention.cache import grow
from tests.models.builders import (
    CAUSAL_CONFIGS,
    MAX_LENGTH,
    VOCABULARY_SIZE,
    at_once,
    numpy,
    randomize,
    tokens,
)
from tests.shallow import with_marks

pytestmark = [pytest.mark.jax, pytest.mark.slow]

# Some whose distances memory must keep.
POSITIONS = {
    "transformer": "relative-sinusoids",
    "transformer-local": "rotary",
    "transevolve-fullff-2": "relative-bias",
}
CONFIGS = {
    name: {**config, "positions": POSITIONS.get(name, "none")}
    for name, config in CAUSAL_CONFIGS.items()
    if attention_kind(config).memory
}
UNDIVIDED = {
    f"{name} undivided": {
        **CONFIGS[name],
        "attention": {**CONFIGS[name]["attention"], "attention_normalisation": False},
    }
    for name in ("transformer-linear", "transevolve-fullff-2-linear-dpfp")
}
LENGTH = 17
EACH_KIND = pytest.mark.parametrize(
    "name",
    [
        *("transformer-linear", "transevolve-fullff-2-delta"),
        *("transformer", "transevolve-fullff-2"),
    ],
)


def build(name, **changes):
    config = {**CONFIGS, **UNDIVIDED}[name] | changes
    return randomize(build_language_model(config, VOCABULARY_SIZE, 0, MAX_LENGTH))


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    """So that a segment, and what comes before it, are several."""
    from models.attention import causal_chunks, linear

    for module in (causal_chunks, linear):
        monkeypatch.setattr(module, "CHUNK", 4)


@pytest.fixture(scope="module", params=[*with_marks(CONFIGS), *UNDIVIDED])
def name(request):
    return request.param


def in_segments(model, text, lengths):
    memory, logits, start = model.empty_memory(len(text), LENGTH), [], 0
    for length in lengths:
        segment = text[:, start : start + length]
        now, memory = at_once(lambda x, m: model(x, memory=m))(segment, memory)
        logits.append(numpy(now))
        start += length
    return np.concatenate(logits, axis=1), memory


@pytest.mark.parametrize(
    "lengths", [pytest.param((9, 8), marks=pytest.mark.long), (1, 2, 14)]
)
def test_segments_are_as_the_whole_text(name, lengths):
    model, text = build(name), tokens(length=LENGTH)
    found, _ = in_segments(model, text, lengths)
    np.testing.assert_allclose(found, numpy(model(text)), rtol=0, atol=2e-5)


@pytest.mark.parametrize("changes", [{"sharing": "attention"}, {"norm": "post"}])
@pytest.mark.parametrize("name", ["transformer", "transformer-linear"])
def test_segments_are_as_the_whole_text_in_other_layers(name, changes):
    model, text = build(name, **changes), tokens(length=LENGTH)
    found, _ = in_segments(model, text, (9, 8))
    np.testing.assert_allclose(found, numpy(model(text)), rtol=0, atol=2e-5)


def test_what_is_left_is_what_steps_keep(name):
    model, text = build(name), tokens(length=12)
    _, memory = in_segments(model, text[:, :9], (5, 4))
    found, _ = model(text[:, 9:], memory=memory)
    cache = grow(model.empty_cache(len(text), 1), 16)
    expected, constants = [], model.constants()
    for position in range(12):
        now = text[:, position : position + 1]
        logits, cache = model.step(now, constants, cache, position)
        expected.append(numpy(logits))
    expected = np.concatenate(expected[9:], axis=1)
    np.testing.assert_allclose(numpy(found), expected, rtol=0, atol=2e-5)


def test_padding_is_not_remembered(name):
    model, text = build(name), tokens(length=6)
    padded = np.pad(text, [[0, 0], [0, 5]])
    following = tokens(length=5, seed=1)
    found, expected = (
        numpy(
            model(following, memory=model(x, memory=model.empty_memory(3, LENGTH))[1])[
                0
            ]
        )
        for x in (padded, text)
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "step", ["rk2", pytest.param("strang", marks=pytest.mark.long)]
)
@EACH_KIND
def test_each_stage_of_a_step_remembers(name, step):
    model, text = build(name, residual_step=step), tokens(length=LENGTH)
    found, _ = in_segments(model, text, (9, 8))
    np.testing.assert_allclose(found, numpy(model(text)), rtol=0, atol=2e-5)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="by a tape")
@EACH_KIND
def test_gradients_are_those_with_a_memory_that_is_given(name):
    """They equal differences of the loss of the second segment alone."""
    import tensorflow as tf

    model, text = build(name), tokens(length=12)
    _, memory = model(text[:, :6], memory=model.empty_memory(3, LENGTH))
    weight = next(x for x in model.trainable_weights if "key" in x.path)

    def loss():
        logits, _ = model(text[:, 6:], memory=memory)
        return tf.reduce_sum(tf.nn.log_softmax(logits)[:, :, 3])

    with tf.GradientTape() as tape:
        value = loss()
    gradient = numpy(tape.gradient(value, weight.value))
    slope = np.linalg.norm(gradient)
    start, ends, direction = numpy(weight), [], gradient / slope
    for step in (1e-2, -1e-2):
        weight.assign(start + step * direction)
        ends.append(float(loss()))
    assert slope == pytest.approx((ends[0] - ends[1]) / 2e-2, rel=2e-2)
    # Nothing goes on to what came before.
    weight.assign(start)
    with tf.GradientTape() as tape:
        _, memory = model(text[:, :6], memory=model.empty_memory(3, LENGTH))
        value = tf.add_n(
            [tf.reduce_sum(tf.cast(x, "float32")) for x in tf.nest.flatten(memory)]
        )
    assert tape.gradient(value, weight.value) is None


@pytest.mark.parametrize("name", ["transformer", "transevolve-fullff-2"])
def test_a_span_is_what_is_seen(name):
    """Of a segment of one token and one block, as many tokens before it."""
    layers = {"num_layers": 1} if name == "transformer" else {"num_depths": 1}
    model, text = build(name, **layers), tokens(length=9)
    if "num_blocks" in CONFIGS[name]:
        model = build(name, **layers, num_blocks=1)
    memory, span = model.empty_memory(len(text), 3), 3
    for position in range(9):
        now = text[:, position : position + 1]
        logits, memory = model(now, memory=memory)
    expected = model(text[:, 9 - span - 1 :])[:, -1:]
    np.testing.assert_allclose(numpy(logits), numpy(expected), rtol=0, atol=1e-5)
