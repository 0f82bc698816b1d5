"""The authors' code, by a clone of github.com/LCS2-IIITD/TransEvolve.

It needs Keras 2, which TensorFlow takes from the package `tf_keras`. So it has a
process of its own. Each depth has an n×n softmax, as equation 9 prints it. Time has 64
numbers for each head, so heads of another size end in an error.
"""

import functools
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path

from common.errors import UserError

HEAD_SIZE = 64
PROJECTIONS = {"dense": "full", "rotation": "random"}


def is_clone(folder: str) -> bool:
    """Whether a folder has the authors' code."""
    return Path(folder, "TransEvolve", "core_layers.py").is_file()


def calls(
    config: dict, batch_size: int, length: int, folder: str
) -> Iterator[tuple[int, int] | None]:
    """As `pytorch.calls`, of their model.

    The authors have no training step. This one has their loss of translations, and for
    classes the cross-entropy of what their model gives.

    Args:
      config, batch_size, length: as `pytorch.calls` takes them.
      folder: the clone.

    Raises:
      UserError: if heads have another size than `HEAD_SIZE`.
    """
    size = config["hidden_dim"] // config["num_heads"]
    if size != HEAD_SIZE:
        raise UserError(
            f"expected heads of {HEAD_SIZE} numbers, as --size=base has, found {size}"
        )
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    import tensorflow as tf

    tf.keras.utils.set_random_seed(0)
    model, inputs, targets, loss = _make(config, (batch_size, length), folder)
    model(*(x[:1, :1] for x in inputs), training=False)  # makes its weights
    yield model.count_params(), 1
    compiled = functools.partial(tf.function, jit_compile=config["xla"])
    if config["mode"] == "inference":
        forward = compiled(lambda: model(*inputs, training=False))
        while True:
            forward().numpy()
            yield
    optimizer = tf.keras.optimizers.Adam(1e-4)
    weights = model.trainable_variables

    @compiled
    def step():
        with tf.GradientTape() as tape:
            value = loss(targets, model(*inputs, training=True))
        gradients = tape.gradient(value, weights)
        optimizer.apply_gradients(zip(gradients, weights, strict=True))
        return value

    while True:
        step().numpy()
        yield


def _make(config, shape, folder):
    """A model, its inputs, the targets, and a loss of these and what it gives."""
    import tensorflow as tf

    # Its modules import each other as if the clone were a package of that name. Its
    # beam search imports a module beside it as if the inner folder were on the path.
    package = sys.modules["TransEvolve"] = types.ModuleType("TransEvolve")
    package.__path__ = [folder]
    sys.path.append(str(Path(folder, "TransEvolve")))
    from TransEvolve.TransEvolve import models, utils

    sizes = {
        "hidden_dim": config["hidden_dim"],
        "num_head": config["num_heads"],
        "projection_type": PROJECTIONS[config["feed_forward"]],
        "num_layers_per_block": config["num_depths"],
        "num_blocks": config["num_blocks"],
        "dropout": config["dropout"],
    }
    if config["task"] == "translation":
        num_subwords, smoothing = config["num_subwords"], config["label_smoothing"]
        model = models.EncoderDecoderModel(input_dim=num_subwords, **sizes)
        inputs = tf.unstack(tf.random.uniform((2, *shape), 4, num_subwords, tf.int32))

        def loss(targets, logits):
            return utils.padded_cross_entropy_loss(logits, targets, smoothing)

        return model, inputs, inputs[1], loss
    size = config["vocabulary_size"]
    model = models.ClassificationModel(
        input_dim=size, num_classes=config["num_classes"], **sizes
    )
    inputs = [tf.random.uniform(shape, 1, size, tf.int32)]
    # Of two classes it gives one probability.
    targets = tf.zeros((shape[0], 1))
    return model, inputs, targets, tf.keras.losses.BinaryCrossentropy()
