"""Every mechanism of the registry: both its evaluations, and what a model needs of it.

Nothing here names a mechanism. A new one is tested as soon as it is registered.
"""

import keras
import numpy as np
import pytest
from keras import ops

from models import can_decode
from models.attention import MECHANISMS, cache, make_attention
from models.attention.cache import RECENT, SlotMap
from models.attention.mechanism import METHODS
from models.convert import with_attention
from tests.models.builders import (
    SMALL_CONFIGS,
    build_any,
    compiled,
    numpy,
    randomize,
    tokens,
)
from tests.models.toy_attention import MeanAttention

pytestmark = pytest.mark.jax

WIDTH, HEADS, BATCH = 32, 4, 2
# Past two settlings of the recent slots.
LENGTH = 2 * RECENT + 5
# The toy runs along: it is the one whose cache is states.
WITH_TOY = {**MECHANISMS}
WITH_TOY["transevolve"] = {**MECHANISMS["transevolve"], "mean": MeanAttention}
REGISTERED = [
    (architecture, {"name": name, **hyperparameters})
    for architecture, mechanisms in WITH_TOY.items()
    for name, mechanism in mechanisms.items()
    for hyperparameters in mechanism.variants.values()
]


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(MECHANISMS, "transevolve", WITH_TOY["transevolve"])


def serving(use):
    """The mechanisms that serve as `use`."""
    served = [
        pytest.param(architecture, config, id="-".join(map(str, config.values())))
        for architecture, config in REGISTERED
        if use in WITH_TOY[architecture][config["name"]].uses
    ]
    return pytest.mark.parametrize("architecture, config", served)


def make(architecture, config, use):
    """A mechanism alone, with random weights, and its number of depths."""
    own_values = MECHANISMS[architecture][config["name"]].own_values
    depths = 1 if own_values else 3
    layer = make_attention(
        architecture, config, num_heads=HEADS, num_depths=depths, use=use
    )
    layer.build((None, None, WIDTH))
    return randomize(layer), depths


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def in_parallel(layer, x, context, values, mask=None):
    """(depths, batch, length, width), with values as `draw_values` gives them."""
    state = layer(x, context, mask)
    return np.stack(
        [numpy(layer.attend(state, depth, v)) for depth, v in enumerate(values)]
    )


def draw_values(layer, depths, length, seed=1):
    """Values of each depth; None where the mechanism has its own."""
    if layer.own_values:
        return [None]
    return list(normal(depths, BATCH, length, WIDTH, seed=seed))


def recurrently(layer, x, values, beams=1, parents=None):
    """What a decoder's steps give, position by position, (depths, batch, beams, ...).

    Args:
      x: (batch, beams, length, width), of each beam.
      values: of each depth, as x.
      parents: (batch, beams, length), which beam each goes on from; None for itself.
    """
    past = layer.empty_cache(BATCH, beams)
    slots = SlotMap.empty(BATCH, beams) if cache.grows(past) else ()
    sizes = list(cache.sizes(past, LENGTH))
    held = cache.grow((slots, past), sizes[-1])
    constants, outputs = layer.constants(), []
    for position in range(x.shape[2]):
        if position and position % cache.period(past, sizes[-1]) == 0:
            held = cache.settle(held, position)
        slots, past = held
        visible = None
        if slots:
            slots = slots.enter(position)
            visible = slots.visible(position)
        state = layer.step(x[:, :, position], constants, past, visible)
        for depth, value in enumerate(values):
            now = None if value is None else value[:, :, position]
            attended, state = layer.attend_step(state, depth, now)
            outputs.append(numpy(attended))
        after = (slots, state.cache)
        if parents is not None:
            going_on = ops.convert_to_tensor(parents[:, :, position])
            active = ops.ones((BATCH,), "bool")
            after = cache.hand_on(after, held, going_on, active)
        held = after
    shape = (x.shape[2], len(values), BATCH, beams, WIDTH)
    return np.moveaxis(np.reshape(outputs, shape), 0, 3)


def assert_near(found, expected, tolerance=1e-4):
    scale = max(1, np.abs(expected).max())
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


@serving("causal")
def test_steps_equal_the_parallel_form(architecture, config):
    layer, depths = make(architecture, config, "causal")
    x = normal(BATCH, LENGTH, WIDTH)
    values = draw_values(layer, depths, LENGTH)
    expected = in_parallel(layer, x, x, values)
    stepped = [None if v is None else v[:, None] for v in values]
    assert_near(recurrently(layer, x[:, None], stepped)[:, :, 0], expected)


@serving("causal")
def test_beams_take_over_their_parents_past(architecture, config):
    layer, depths = make(architecture, config, "causal")
    beams, length = 3, 7
    x = normal(BATCH, beams, length, WIDTH)
    values = [None]
    if not layer.own_values:
        values = list(normal(depths, BATCH, beams, length, WIDTH, seed=1))
    parents = np.random.default_rng(2).integers(0, beams, (BATCH, beams, length))
    parents = parents.astype("int32")
    found = recurrently(layer, x, values, beams, parents)
    # The inputs that lead to each beam at each position.
    lineage = np.zeros((BATCH, beams, length), int)
    for position in range(length):
        lineage[:, :, position] = np.arange(beams)
        for row in range(BATCH):
            for beam in range(beams):
                # What comes later is not seen: one shape, which JAX compiles once.
                places = (row, lineage[row, beam], np.arange(length))
                own = [None if v is None else v[places][None] for v in values]
                expected = in_parallel(layer, x[places][None], x[places][None], own)
                assert_near(found[:, row, beam, position], expected[:, 0, position])
        lineage = np.take_along_axis(lineage, parents[:, :, position, None], axis=1)


@serving("causal")
def test_finished_sentences_states_stand_still(architecture, config):
    layer, _ = make(architecture, config, "causal")
    before = layer.empty_cache(BATCH, 2)
    after = cache._map(lambda leaf: type(leaf)(*(x + 1 for x in leaf)), before)
    parents = ops.zeros((BATCH, 2), "int32")
    active = ops.convert_to_tensor([True, False])
    handed = cache.hand_on(after, before, parents, active)
    for old, new in zip(cache.leaves(before), cache.leaves(handed), strict=True):
        if isinstance(new, cache.State):
            np.testing.assert_array_equal(numpy(new.value)[1], numpy(old.value)[1])
            assert (numpy(new.value)[0] != numpy(old.value)[0]).all()


@serving("cross")
def test_a_source_gives_the_same_in_both_forms(architecture, config):
    layer, depths = make(architecture, config, "cross")
    x, source = normal(BATCH, 4, WIDTH), normal(BATCH, 9, WIDTH, seed=3)
    mask = np.ones((BATCH, 9), bool)
    mask[1, 5:] = False
    values = normal(BATCH, 9, WIDTH, seed=4)
    each = [None] if layer.own_values else [values] * depths
    expected = in_parallel(layer, x, source, each, mask)
    memory = layer.memory(source, values, mask)
    found = np.stack([numpy(y) for y in layer.attend_to_memory(x, memory)])
    assert_near(found, expected)


@serving("causal")
def test_nothing_is_seen_before_it_comes(architecture, config):
    layer, depths = make(architecture, config, "causal")
    x = normal(BATCH, 11, WIDTH)
    values = draw_values(layer, depths, 11)
    whole = in_parallel(layer, x, x, values)
    for position in (1, 4, 10):
        changed = x.copy()
        changed[:, position] += 1
        others = [None if v is None else v.copy() for v in values]
        for other in others:
            if other is not None:
                other[:, position] -= 1
        found = in_parallel(layer, changed, changed, others)
        assert_near(found[:, :, :position], whole[:, :, :position], 1e-5)
        assert np.abs(found[:, :, position] - whole[:, :, position]).max() > 1e-3


@serving("self")
@pytest.mark.parametrize("where", ["end", "start", "middle"])
def test_padding_changes_nothing(architecture, config, where):
    layer, depths = make(architecture, config, "self")
    x = normal(BATCH, 9, WIDTH)
    values = draw_values(layer, depths, 9)
    expected = in_parallel(layer, x, x, values)
    real = np.ones(14, bool)
    start = {"end": 9, "start": 0, "middle": 4}[where]
    real[start : start + 5] = False

    def pad(array):
        padded = normal(*array.shape[:-2], 14, WIDTH, seed=9)
        padded[..., real, :] = array
        return padded

    padded = [None if v is None else pad(v) for v in values]
    mask = np.tile(real, (BATCH, 1))
    found = in_parallel(layer, pad(x), pad(x), padded, mask)
    assert_near(found[:, :, real], expected, 1e-5)


@serving("self")
def test_a_row_of_padding_is_finite(architecture, config):
    layer, depths = make(architecture, config, "self")
    x = normal(BATCH, 5, WIDTH)
    mask = np.array([[True] * 5, [False] * 5])
    found = in_parallel(layer, x, x, draw_values(layer, depths, 5), mask)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("architecture, config", REGISTERED, ids=str)
def test_a_use_that_it_does_not_serve_is_refused(architecture, config):
    mechanism = MECHANISMS[architecture][config["name"]]
    for use in METHODS:
        if use not in mechanism.uses:
            with pytest.raises(ValueError, match="serves as"):
                make_attention(architecture, config, num_heads=HEADS, use=use)
    with pytest.raises(ValueError, match="serves as"):
        make_attention(architecture, config, num_heads=HEADS, use="other")


@pytest.mark.parametrize("architecture, config", REGISTERED, ids=str)
def test_its_config_makes_it_again(architecture, config):
    layer, _ = make(architecture, config, "self")
    described = layer.get_config()
    for name, value in config.items():
        assert name == "name" or described[name] == value
    twin = type(layer).from_config(described)
    twin.build((None, None, WIDTH))
    twin.set_weights(layer.get_weights())
    assert twin.get_config() == described


@pytest.mark.parametrize("name", SMALL_CONFIGS)
class TestModels:
    """Models with each mechanism: classifiers, and encoder-decoders where it serves."""

    def test_saves_and_loads(self, name, tmp_path):
        for number, (model, inputs) in enumerate(models(name)):
            path = tmp_path / f"{number}.keras"
            model.save(path)
            twin = keras.saving.load_model(path)
            np.testing.assert_array_equal(numpy(twin(*inputs)), numpy(model(*inputs)))

    def test_converts_to_itself(self, name):
        config = SMALL_CONFIGS[name]
        if "attention" not in config:
            pytest.skip("has no attention")
        for model, inputs in models(name):
            twin = with_attention(model, **config["attention"])
            np.testing.assert_array_equal(numpy(twin(*inputs)), numpy(model(*inputs)))

    def test_compiles_with_static_shapes(self, name):
        for model, inputs in models(name):
            expected = numpy(model(*inputs))
            found, shape = compiled(model, inputs)
            assert list(shape) == list(expected.shape)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


def models(name):
    """(model, inputs) of each kind of model that a small config can be."""
    source = tokens(length=9, padding=[(1, slice(6, None))])
    yield build_any(SMALL_CONFIGS[name], decoder=False), (source,)
    if can_decode(SMALL_CONFIGS[name]):
        target = tokens(length=7, seed=1)
        yield build_any(SMALL_CONFIGS[name], decoder=True), (source, target)
