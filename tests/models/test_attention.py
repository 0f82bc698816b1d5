"""Every mechanism of the registry: both its evaluations, and what a model needs of it.

Nothing here names a mechanism. A new one is tested as soon as it is registered.
"""

import keras
import numpy as np
import pytest
from keras import ops

from models import ARCHITECTURES, base_of, can_decode
from models.attention import OPERATORS, cache
from models.attention.cache import SlotMap
from models.attention.no_attention import Unattending
from models.attention.operator import USES, Operator
from models.convert import with_attention
from tests.models.builders import (
    MAX_LENGTH,
    SMALL_CONFIGS,
    at_once,
    build_any,
    compiled,
    numpy,
    randomize,
    tokens,
)
from tests.models.toy_attention import CosineOperator
from tests.shallow import is_usual, with_marks

pytestmark = pytest.mark.jax

WIDTH, HEADS, BATCH = 32, 4, 2
ATTENTIONS = {
    name: architecture.attentions
    for name, architecture in ARCHITECTURES.items()
    if architecture.attentions is not None
}


def _registered():
    """(architecture, config, operator or layer, whether it is a usual one), at sizes
    that give several blocks."""
    for architecture, attentions in ATTENTIONS.items():
        # The toy runs along, under each model.
        kinds = {**attentions.named(), "cosine": CosineOperator}
        for name, kind in kinds.items():
            for hyperparameters in kind.variants.values():
                config = {"name": name, **hyperparameters}
                usual = is_usual(architecture, config, kind)
                yield architecture, {**config, **kind.small}, kind, usual


REGISTERED = list(_registered())


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(OPERATORS, "cosine", CosineOperator)


def each(condition):
    """The attentions that fulfil a condition."""
    chosen = [
        pytest.param(
            architecture,
            config,
            id="-".join([architecture, *map(str, config.values())]),
            marks=() if usual else pytest.mark.long,
        )
        for architecture, config, kind, usual in REGISTERED
        if condition(kind)
    ]
    return pytest.mark.parametrize("architecture, config", chosen)


def serving(use):
    """Those that serve as `use`."""
    return each(lambda kind: use in kind.uses)


decoding = each(lambda kind: kind.can_decode and "causal" in kind.uses)


def make(architecture, config, use, **arguments):
    """An attention alone, with random weights, and its number of depths."""
    depths = 1 if architecture == "transformer" else 3
    layer = ATTENTIONS[architecture].make(
        config,
        num_heads=HEADS,
        num_depths=depths,
        use=use,
        **{"max_length": MAX_LENGTH, **arguments},
    )
    layer.build((None, None, WIDTH))
    return randomize(layer), depths


def kind_of(architecture, config):
    return ATTENTIONS[architecture].named()[config["name"]]


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def in_parallel(layer):
    """The layer as a function to (depths, batch, length, width)."""

    @at_once
    def call(x, context, values, mask=None):
        state = layer(x, context, mask)
        outputs = [state.read(depth, v) for depth, v in enumerate(values)]
        return ops.stack(outputs)

    return lambda *arguments: numpy(call(*arguments))


def draw_values(depths, *shape):
    """Values of each depth."""
    return list(normal(depths, BATCH, *shape, WIDTH, seed=1))


def recurrently(layer, x, values, beams=1, parents=None):
    """What a decoder's steps give, position by position, (depths, batch, beams, ...).

    Args:
      x: (batch, beams, length, width), of each beam.
      values: of each depth, as x.
      parents: (batch, beams, length), which beam each goes on from; None for itself.
    """
    past = layer.empty_cache(BATCH, beams)
    slots = SlotMap.empty(BATCH, beams) if cache.grows(past) else ()
    positions = cache.capacity(past, x.shape[2], x.shape[2])
    held = cache.grow((slots, past), positions)
    constants, outputs = layer.constants(), []
    settle = at_once(cache.settle)

    @at_once
    def step(x, values, held, position, parents):
        slots, past = held
        visible = None
        if slots:
            slots = slots.enter(position)
            visible = slots.visible(position)
        state = layer.step(x, constants, past, visible, position)
        outputs = [state.read(depth, value) for depth, value in enumerate(values)]
        after = (slots, state.left())
        if parents is not None:
            active = ops.ones((BATCH,), "bool")
            after = cache.hand_on(after, held, parents, active)
        return ops.stack(outputs), after

    for position in range(x.shape[2]):
        if position and position % cache.period(past, positions) == 0:
            held = settle(held, position)
        now = [value[:, :, position] for value in values]
        going_on = None
        if parents is not None:
            going_on = ops.convert_to_tensor(parents[:, :, position])
        attended, held = step(x[:, :, position], now, held, position, going_on)
        outputs.append(numpy(attended))
    return np.moveaxis(outputs, 0, 3)


def assert_near(found, expected, tolerance=1e-4):
    scale = max(1, np.abs(expected).max())
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


@decoding
def test_steps_equal_the_parallel_form(architecture, config, recent):
    layer, depths = make(architecture, config, "causal")
    length = 2 * recent + 3  # past two settlings
    x = normal(BATCH, length, WIDTH)
    values = draw_values(depths, length)
    expected = in_parallel(layer)(x, x, values)
    stepped = [v[:, None] for v in values]
    assert_near(recurrently(layer, x[:, None], stepped)[:, :, 0], expected)


@decoding
def test_beams_take_over_their_parents_past(architecture, config, recent):
    layer, depths = make(architecture, config, "causal")
    beams, length = 3, recent + 3
    x = normal(BATCH, beams, length, WIDTH)
    values = draw_values(depths, beams, length)
    parents = np.random.default_rng(2).integers(0, beams, (BATCH, beams, length))
    parents = parents.astype("int32")
    found = recurrently(layer, x, values, beams, parents)
    # Which beam's input leads to each beam at each position; later ones are not seen.
    lineage, lineages = np.zeros((BATCH, beams, length), int), []
    for position in range(length):
        lineage[:, :, position] = np.arange(beams)
        lineages.append(lineage)
        lineage = np.take_along_axis(lineage, parents[:, :, position, None], axis=1)
    rows = np.arange(BATCH)[:, None, None]
    places = (rows, np.stack(lineages), np.arange(length))

    def inherited(array):
        return array[places].reshape(-1, length, WIDTH)

    x, own = inherited(x), [inherited(v) for v in values]
    expected = in_parallel(layer)(x, x, own)
    expected = expected.reshape(-1, length, BATCH, beams, length, WIDTH)
    for position in range(length):
        assert_near(found[:, :, :, position], expected[:, position, :, :, position])


@decoding
def test_finished_sentences_states_stand_still(architecture, config):
    layer, _ = make(architecture, config, "causal")
    before = layer.empty_cache(BATCH, 2)
    states = [leaf for leaf in cache.leaves(before) if not leaf.grows]
    if not states:
        pytest.skip("keeps slots, which belong to no sentence's state")
    after = cache._map(lambda leaf: type(leaf)(*(2 * x + 1 for x in leaf)), before)
    parents = ops.zeros((BATCH, 2), "int32")
    active = ops.convert_to_tensor([True, False])
    handed = cache.hand_on(after, before, parents, active)
    for old, new in zip(states, cache.leaves(handed), strict=True):
        np.testing.assert_array_equal(numpy(new.value)[1], numpy(old.value)[1])
        assert (numpy(new.value)[0] != numpy(old.value)[0]).all()


@serving("cross")
def test_a_source_gives_the_same_in_both_forms(architecture, config):
    layer, depths = make(architecture, config, "cross")
    x, source = normal(BATCH, 4, WIDTH), normal(BATCH, 9, WIDTH, seed=3)
    mask = np.ones((BATCH, 9), bool)
    mask[1, 5:] = False
    values = normal(BATCH, 9, WIDTH, seed=4)
    expected = in_parallel(layer)(x, source, [values] * depths, mask)

    @at_once
    def attend(x, source, values, mask):
        source_cache = layer.source_cache(source, values, mask)
        return ops.stack(list(layer.read_source(x, source_cache)))

    assert_near(numpy(attend(x, source, values, mask)), expected)


@serving("causal")
def test_nothing_is_seen_before_it_comes(architecture, config):
    length = 300  # several chunks, which have 128 positions at most
    layer, depths = make(architecture, config, "causal", max_length=length)
    x = normal(BATCH, length, WIDTH)
    values = draw_values(depths, length)
    call = in_parallel(layer)
    whole = call(x, x, values)
    for position in (1, 150, 299):
        changed = x.copy()
        changed[:, position] += 1
        others = [v.copy() for v in values]
        for other in others:
            other[:, position] -= 1
        found = call(changed, changed, others)
        assert_near(found[:, :, :position], whole[:, :, :position], 1e-5)
        assert np.abs(found[:, :, position] - whole[:, :, position]).max() > 1e-3


@serving("self")
def test_padding_changes_nothing(architecture, config):
    layer, depths = make(architecture, config, "self")
    call = in_parallel(layer)
    x = normal(BATCH, 9, WIDTH)
    values = draw_values(depths, 9)
    expected = call(x, x, values)
    anywhere = not layer.operator.is_ordered and layer.operator.padding == "anywhere"
    for start in (0, 4, 9) if anywhere else (9,):
        real = np.ones(14, bool)
        real[start : start + 5] = False

        def pad(array, real=real):
            padded = normal(*array.shape[:-2], 14, WIDTH, seed=9)
            padded[..., real, :] = array
            return padded

        mask = np.tile(real, (BATCH, 1))
        found = call(pad(x), pad(x), [pad(v) for v in values], mask)
        assert_near(found[:, :, real], expected, 1e-5)


@serving("self")
def test_the_order_of_keys_matters_where_it_is_said_to(architecture, config):
    layer, depths = make(architecture, config, "self")
    call, order = in_parallel(layer), np.random.default_rng(5).permutation(14)
    x, values = normal(BATCH, 14, WIDTH), draw_values(depths, 14)
    attended = call(x, x, values)
    permuted = call(x[:, order], x[:, order], [v[:, order] for v in values])
    if kind_of(architecture, config).is_ordered:
        assert np.abs(permuted - attended[:, :, order]).max() > 1e-2
    else:
        assert_near(permuted, attended[:, :, order], 1e-5)


@serving("self")
def test_longer_texts_are_refused_where_weights_go_by_position(architecture, config):
    layer, depths = make(architecture, config, "self")
    length = 2 * MAX_LENGTH
    x, values = normal(BATCH, length, WIDTH), draw_values(depths, length)
    if kind_of(architecture, config).has_weights_by_position:
        with pytest.raises(ValueError, match=f"max_length={MAX_LENGTH}, got {length}"):
            in_parallel(layer)(x, x, values)
        with pytest.raises(ValueError, match="expected max_length.* got None"):
            make(architecture, config, "self", max_length=None)
    else:
        assert np.isfinite(in_parallel(layer)(x, x, values)).all()


@serving("causal")
@pytest.mark.parametrize("num_queries, length", [(1, 11), (150, 300)])
def test_queries_follow_earlier_keys(architecture, config, num_queries, length):
    layer, depths = make(architecture, config, "causal", max_length=length)
    x = normal(BATCH, length, WIDTH)
    values = draw_values(depths, length)
    call = in_parallel(layer)
    expected = call(x, x, values)
    try:
        attended = call(x[:, -num_queries:], x, values)
    except ValueError as error:
        assert "a query for each key" in str(error)
    else:
        assert_near(attended, expected[:, :, -num_queries:], 1e-5)


@serving("causal")
def test_more_queries_than_keys_are_refused(architecture, config):
    layer, depths = make(architecture, config, "causal")
    x = normal(BATCH, 5, WIDTH)
    with pytest.raises(ValueError, match="5 queries and 4 keys"):
        in_parallel(layer)(x, x[:, :4], draw_values(depths, 4))


@pytest.mark.parametrize("use", USES)
@each(lambda kind: True)
def test_a_query_that_sees_no_real_key_gets_zero(architecture, config, use):
    if use not in kind_of(architecture, config).uses:
        pytest.skip("does not serve so")
    layer, depths = make(architecture, config, use)
    if isinstance(layer, Unattending):
        pytest.skip("returns its values unattended")
    values = draw_values(depths, 9)
    call = in_parallel(layer)
    mask = np.ones((BATCH, 9), bool)
    mask[1, : 4 if use == "causal" else 9] = False

    @at_once
    def attend_to_source(x, source, values, mask):
        source_cache = layer.source_cache(source, values, mask)
        return ops.stack(list(layer.read_source(x, source_cache)))

    # Scores and biases far apart send a form its safe way.
    for scale in (1, 100):
        x = scale * normal(BATCH, 9, WIDTH)
        whole = call(x, x, values)
        attended = call(x, x, values, mask)
        assert not attended[:, 1, ~mask[1]].any()
        assert_near(attended[:, 0], whole[:, 0], 1e-5)
        if use == "causal" and layer.operator.padding == "anywhere":
            after = call(x[:, 4:], x[:, 4:], [v[:, 4:] for v in values])
            assert_near(attended[:, 1, 4:], after[:, 1], 1e-5)
        if use == "cross":
            assert not numpy(attend_to_source(x, x, values[0], mask))[:, 1].any()


@each(lambda kind: True)
def test_a_use_that_it_does_not_serve_is_refused(architecture, config):
    kind = kind_of(architecture, config)
    for use in {*USES, "other"} - {*kind.uses}:
        if use == "cross" and issubclass(kind, Operator):
            # A decoder then attends to its source by a softmax.
            layer, _ = make(architecture, config, use)
            assert type(layer.operator) is OPERATORS["softmax"]
            continue
        with pytest.raises(ValueError, match="serves as"):
            make(architecture, config, use)


@each(lambda kind: True)
def test_its_config_makes_it_again(architecture, config):
    use, *_ = kind_of(architecture, config).uses
    layer, _ = make(architecture, config, use)
    described = layer.get_config()
    for name, value in config.items():
        assert name == "name" or described[name] == value
    twin = type(layer).from_config(described)
    twin.build((None, None, WIDTH))
    twin.set_weights(layer.get_weights())
    assert twin.get_config() == described
    name = keras.saving.get_registered_name(type(layer))
    assert keras.saving.get_registered_object(name) is type(layer)


@serving("self")
def test_a_depth_is_read_at_fractions_of_it(architecture, config):
    if architecture == "transformer":
        pytest.skip("makes an operator for each stage")
    layer, depths = make(architecture, config, "self", offsets=(0.0, 0.5))
    whole, _ = make(architecture, config, "self")
    whole.set_weights(layer.get_weights())
    x, values = normal(BATCH, 9, WIDTH), draw_values(2 * depths, 9)
    attended = in_parallel(layer)(x, x, values)
    assert_near(attended[::2], in_parallel(whole)(x, x, values[::2]), 1e-5)


@pytest.fixture(scope="module", params=with_marks(SMALL_CONFIGS))
def name(request):
    return request.param


@pytest.fixture(scope="module")
def config(name):
    return SMALL_CONFIGS[name]


@pytest.fixture(scope="module")
def model(name, config):
    """(model, inputs, outputs): an encoder-decoder with a model's first mechanism and
    with linear attention, or else a classifier."""
    inputs = [tokens(length=9, padding=[(1, slice(6, None))])]
    has_decoder = name == base_of(name) or config["attention"]["name"] == "linear"
    if has_decoder := has_decoder and can_decode(config):
        inputs.append(tokens(length=7, seed=1))
    model = build_any(config, decoder=has_decoder)
    return model, inputs, numpy(model(*inputs))


@pytest.mark.slow
class TestModels:
    def test_saves_and_loads(self, model, tmp_path):
        model, inputs, outputs = model
        model.save(tmp_path / "model.keras")
        twin = keras.saving.load_model(tmp_path / "model.keras")
        np.testing.assert_array_equal(numpy(twin(*inputs)), outputs)

    def test_converts_to_itself(self, config, model):
        if "attention" not in config:
            pytest.skip("has no attention")
        model, inputs, outputs = model
        twin = with_attention(model, **config["attention"])
        np.testing.assert_array_equal(numpy(twin(*inputs)), outputs)

    def test_compiles_with_static_shapes(self, model):
        model, inputs, outputs = model
        found, shape = compiled(model, inputs)
        assert list(shape) == list(outputs.shape)
        np.testing.assert_allclose(found, outputs, rtol=0, atol=1e-4)
