"""Updates of a model by batches that are drawn in its graph."""

from collections.abc import Callable

import keras
import tensorflow as tf


def drawn_updates(
    model,
    learning_rate: float,
    losses_of: Callable,
    draw: Callable,
    jit_compile: bool = False,
) -> Callable:
    """Returns a function that updates a model by Adam, on batches drawn in its graph.

    It takes the numbers of its first update and of the one after its last.

    Args:
      model: to be trained.
      learning_rate: of Adam.
      losses_of: function of the model, the parts of a batch and `training`. It returns
        losses, whose mean goes down, and something else.
      draw: function of an update's number, a tensor. It returns the parts of its batch.
      jit_compile: whether XLA compiles an update, but for its draw.
    """
    # Each training traces anew, which TensorFlow warns of.
    tf.get_logger().setLevel("ERROR")
    optimizer = keras.optimizers.Adam(learning_rate)
    optimizer.build(model.trainable_variables)

    def update(*batch):
        with tf.GradientTape() as tape:
            losses, _ = losses_of(model, *batch, training=True)
            loss = tf.reduce_mean(losses)
        variables = model.trainable_variables
        gradients = tape.gradient(loss, [variable.value for variable in variables])
        optimizer.apply(gradients, variables)

    if jit_compile:
        update = tf.function(update, jit_compile=True)

    @tf.function(input_signature=2 * [tf.TensorSpec([], tf.int32)])
    def updates(first, end):
        for step in tf.range(first, end):
            update(*draw(step))

    return updates
