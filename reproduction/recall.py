"""Recall by the bytes that a model keeps (multi-query associative recall: Arora et al.
2023, "Zoology", section 4).

A sequence begins with pairs of a key and its value. Some keys come again later, most of
them soon, between random tokens. The next token after each is to be its value. A model
that keeps slots recalls any number of pairs; one that keeps a state has room for so
many.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf
from keras import ops

import models
from models.attention.cache import num_bytes
from reproduction.drawn_updates import drawn_updates
from training.losses import cross_entropy, first_choice

# Each is trained with each attention, which its name has appended; a softmax nothing.
MODELS = ("transformer", "transevolve-fullff-1")
# Left out are causal attentions that cannot show it: synthesizers, most of which
# compare no keys, talking heads, which are a softmax where there is one head, the
# literal form of it, and the rule with tanh, whose state may grow without bound.
ATTENTIONS = (
    "",
    "-local",
    "-linear",
    "-linear-dpfp",
    "-linear-favor",
    "-rfa",
    "-rfa-gated",
    "-state-space",
    "-delta",
    "-delta-dpfp",
    "-delta-favor",
)
LAYERS = 2
# Of the power law by which queries follow the pairs.
EXPONENT = 0.01
TRAINING_EXAMPLES, TEST_EXAMPLES, BATCH_SIZE = 100_000, 3000, 64
EVERY, SOLVED = 250, 0.99


def sequences(
    length: int, pairs: int, vocabulary_size: int, batch_size: int, seed: int
):
    """Returns tokens (batch, length), and queries' places and values (batch, pairs).

    All are int32. Id 0, of padding, is nowhere. Keys are from the lower half of ids,
    values from the upper one, and neither comes twice in a sequence's pairs.
    """

    def uniform(count, number):
        shape = (batch_size, count)
        return tf.random.stateless_uniform(shape, [seed, number], minval=1e-20)

    half = vocabulary_size // 2
    keys = 1 + tf.math.top_k(uniform(half - 1, 0), pairs).indices
    values = half + tf.math.top_k(uniform(half, 1), pairs).indices
    prefix = tf.reshape(tf.stack([keys, values], axis=2), (batch_size, 2 * pairs))
    gaps = tf.range(1, (length - 2 * pairs) // 2 + 1, dtype=tf.float32)
    # Draws without replacement, by Gumbel noise.
    chances = (EXPONENT - 1) * tf.math.log(gaps)
    chances -= tf.math.log(-tf.math.log(uniform(gaps.shape[0], 2)))
    places = 2 * pairs + 2 * tf.math.top_k(chances, pairs).indices
    shape = (batch_size, length - 2 * pairs)
    random_tokens = tf.random.stateless_uniform(
        shape, [seed, 3], 1, vocabulary_size, dtype=tf.int32
    )
    rows = tf.repeat(tf.range(batch_size)[:, None], pairs, axis=1)
    tokens = tf.tensor_scatter_nd_update(
        tf.concat([prefix, random_tokens], axis=1),
        tf.stack([rows, places], axis=2),
        keys,
    )
    return tokens, places, values


def build(name: str, width: int, vocabulary_size: int, length: int):
    """Returns a language model of two layers, or depths, and one head.

    Its feed-forward has one unit: recall is the attention's. A window has a quarter of
    the length.
    """
    config = models.variant_config(name)
    attention = config["attention"]
    if "window" in attention:
        config = {**config, "attention": {**attention, "window": length // 4}}
    if "num_blocks" in config:
        config = {**config, "num_depths": LAYERS // config["num_blocks"]}
    else:
        config = {**config, "num_layers": LAYERS}
    config |= {"hidden_dim": width, "ffn_dim": 1, "num_heads": 1, "dropout": 0.0}
    return models.build_language_model(config, vocabulary_size, 0, length)


def encoded(model, tokens, training=False):
    """Returns what the model makes of tokens, (batch, length, width).

    A token comes with the one before it, whose vector is flipped. So a value stands
    beside its key, which would take a layer of its own otherwise.
    """
    x = model.embedding(tokens)
    before = ops.pad(x[:, :-1], [[0, 0], [1, 0], [0, 0]])
    return model.encoder(x + ops.flip(before, axis=-1), training=training)


def recalled(model, tokens, places, values, training=False):
    """Returns the loss of each query, (batch, pairs), and whether it is answered."""
    x = encoded(model, tokens, training)
    asked = ops.take_along_axis(x, places[..., None], axis=1)
    logits = model.embedding.logits(asked)
    return cross_entropy(values, logits), first_choice(logits) == values


def train(model, rate: float, length: int, pairs: int, steps: int) -> Iterator[float]:
    """Yields the share of test queries that are recalled, now and then."""
    size = model.vocabulary_size
    first_of_test = TRAINING_EXAMPLES // BATCH_SIZE

    def draw(step):
        return sequences(length, pairs, size, BATCH_SIZE, step % first_of_test)

    @tf.function
    def evaluate():
        right, count = 0.0, TEST_EXAMPLES // BATCH_SIZE
        for number in tf.range(first_of_test, first_of_test + count):
            batch = sequences(length, pairs, size, BATCH_SIZE, number)
            is_right = tf.cast(recalled(model, *batch)[1], tf.float32)
            right += tf.reduce_mean(is_right)
        return right / count

    updates = drawn_updates(model, rate, recalled, draw)
    for first in range(0, steps, EVERY):
        updates(first, min(first + EVERY, steps))
        yield float(evaluate())


def bytes_kept(model, length: int) -> int:
    """What decoding keeps of one text of a length."""
    each_token, fixed = num_bytes(model.encoder.empty_cache(1, 1))
    return each_token * length + fixed


def row(
    name: str,
    length: int,
    pairs: int,
    width: int,
    vocabulary_size: int,
    learning_rates: Sequence[float],
    steps: int,
) -> dict:
    """Trains a model at each learning rate, until one recalls 99 %.

    Args:
      name: of a variant that can model language.
      length: tokens of a sequence.
      pairs: keys, each with its value, that it begins with.
      width: of the model.
      vocabulary_size: ids, half of them keys.
      learning_rates: of Adam, in this order.
      steps: updates at each, at most.

    Returns:
      What it was; `accuracy`, the best that any evaluation gave, with its learning rate
      and updates; `state_bytes`, what decoding keeps of one text of this length.
    """
    best = {"accuracy": -np.inf}
    for rate in learning_rates:
        model = build(name, width, vocabulary_size, length)
        for number, accuracy in enumerate(train(model, rate, length, pairs, steps), 1):
            if accuracy > best["accuracy"]:
                best = {"accuracy": accuracy, "learning_rate": rate}
                best["steps"] = min(number * EVERY, steps)
            if accuracy >= SOLVED:
                break
        if best["accuracy"] >= SOLVED:
            break
    return {
        "model": name,
        "length": length,
        "pairs": pairs,
        "width": width,
        "state_bytes": bytes_kept(model, length),
        **best,
    }
