"""Where training runs: one device, several, several workers, or a TPU."""

import tensorflow as tf


def make_strategy(name: str = "auto", tpu: str = "") -> tf.distribute.Strategy:
    """Makes the strategy of that name.

    Args:
      name: "auto" takes a named TPU, else all GPUs, else the CPU. "mirrored" uses all
        GPUs, or all logical CPU devices where there is no GPU.
      tpu: name or address of the TPU, for "tpu" and "auto"; "local" on a TPU VM.
    """
    # Before anything asks for devices: that would fix what there is.
    if name == "tpu" or (name == "auto" and tpu):
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect(tpu)
        return tf.distribute.TPUStrategy(resolver)
    if name == "multi_worker":
        return tf.distribute.MultiWorkerMirroredStrategy()
    gpus = tf.config.list_logical_devices("GPU")
    devices = gpus or tf.config.list_logical_devices("CPU")
    if name == "mirrored" or (name == "auto" and len(gpus) > 1):
        return tf.distribute.MirroredStrategy([device.name for device in devices])
    return tf.distribute.OneDeviceStrategy(devices[0].name)


def separate_dropout(model, strategy: tf.distribute.Strategy) -> None:
    """Gives each replica dropout masks of its own.

    Keras seeds all replicas alike. To be called once the model has its weights, and
    again whenever they are restored, as that copies the first replica's seeds.
    """
    if strategy.num_replicas_in_sync == 1:
        return
    for variable in model.variables:
        if variable.name == "seed_generator_state":
            seed, count = variable.value.values[0].numpy()
            for replica, copy in enumerate(variable.value.values):
                copy.assign([seed + 1_000_003 * replica, count])
