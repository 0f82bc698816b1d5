"""Training of what a benchmark trains itself."""

from collections.abc import Callable

import keras
import tensorflow as tf

from training.backends import one_device_trainer


def updater(model, learning_rate: float, losses_of: Callable) -> Callable:
    """Returns a function of a batch that updates a model once by Adam, in a graph.

    Args:
      model: to be trained.
      learning_rate: of Adam.
      losses_of: function of the model, the parts of a batch and `training`. It returns
        losses, whose mean goes down, and something else.
    """
    optimizer = keras.optimizers.Adam(learning_rate)
    optimizer.build(model.trainable_variables)

    def update(*batch):
        with tf.GradientTape() as tape:
            losses, _ = losses_of(model, *batch, training=True)
            loss = tf.reduce_mean(losses)
        variables = model.trainable_variables
        gradients = tape.gradient(loss, [variable.value for variable in variables])
        optimizer.apply(gradients, variables)

    return update


def task_updates(task, count: int) -> Callable:
    """Returns a function that takes so many training steps of a new model of a task.

    They are as in training, on batches of its training data.
    """
    if task.config.train.deterministic:
        tf.config.experimental.enable_op_determinism()
    batches = task.training_batches()
    trainer, iterator = one_device_trainer(
        task.build_model,
        task,
        task.config.train,
        batches.train(seed=0),
        fillers=batches.fillers,
    )
    return lambda: trainer.train(iterator, count)
