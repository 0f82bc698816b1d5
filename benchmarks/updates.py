"""Training of what a benchmark trains itself."""

from collections.abc import Callable

import tensorflow as tf

from training.backends import BY_JAX, one_device_trainer


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
