"""Training of what a benchmark trains itself."""

from collections.abc import Callable

import keras
import tensorflow as tf

from training.backends import BY_JAX, one_device_trainer


def drawn_updates(
    model, learning_rate: float, losses_of: Callable, draw: Callable
) -> Callable:
    """Returns a function that updates a model by Adam, on batches drawn in its graph.

    It takes the numbers of its first update and of the one after its last.

    Args:
      model: to be trained.
      learning_rate: of Adam.
      losses_of: function of the model, the parts of a batch and `training`. It returns
        losses, whose mean goes down, and something else.
      draw: function of an update's number, a tensor. It returns the parts of its batch.
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

    @tf.function(input_signature=2 * [tf.TensorSpec([], tf.int32)])
    def updates(first, end):
        for step in tf.range(first, end):
            update(*draw(step))

    return updates


def task_updates(task, count: int, batches=None) -> Callable:
    """Returns a function that takes so many training steps of a new model of a task.

    They are as in training, and so is all that TensorFlow computes from then on.

    Args:
      task: a `tasks.task.Task`.
      count: steps of a call.
      batches: of its training data, which are made here if not given.
    """
    if task.config.train.deterministic and not BY_JAX:
        tf.config.experimental.enable_op_determinism()
    if batches is None:
        batches = task.training_batches()
    trainer, iterator = one_device_trainer(
        task.build_model,
        task,
        task.config.train,
        batches.for_training(seed=0),
        fillers=batches.fillers,
    )
    return lambda: trainer.train(iterator, count)
