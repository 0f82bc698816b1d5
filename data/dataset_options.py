"""Options of the TensorFlow datasets that training and evaluation read."""

import tensorflow as tf


def untuned(num_threads: int | None = None) -> tf.data.Options:
    """Options of a dataset that TensorFlow does not tune while it is read.

    What tunes a dataset sleeps for about as long as it has run, up to a minute. At the
    dataset's end TensorFlow (2.20) wakes it a moment too early now and then; it sleeps
    on, and the end waits for it.

    Args:
      num_threads: of the dataset's own; None for those that all datasets share. A
        dataset whose generator waits for another dataset holds one of its threads;
        where there are as many such waits as threads, none would go on.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    if num_threads is not None:
        options.threading.private_threadpool_size = num_threads
    return options
