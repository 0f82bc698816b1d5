"""Where training runs: one device, several, several workers, or a TPU."""

import tensorflow as tf

STRATEGIES = ("auto", "one_device", "mirrored", "multi_worker", "tpu")


def make_strategy(name: str = "auto", tpu: str = "") -> tf.distribute.Strategy:
    """Makes the strategy of that name.

    Args:
      name: "auto" takes a named TPU, else all GPUs, else the CPU. "mirrored" uses all
        GPUs, or all logical CPU devices where there is no GPU.
      tpu: name or address of the TPU, for "tpu" and "auto"; "local" on a TPU VM.
    """
    gpus = tf.config.list_logical_devices("GPU")
    if name == "auto":
        name = "tpu" if tpu else "mirrored" if len(gpus) > 1 else "one_device"
    if name == "tpu":
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect(tpu)
        return tf.distribute.TPUStrategy(resolver)
    if name == "multi_worker":
        return tf.distribute.MultiWorkerMirroredStrategy()
    devices = gpus or tf.config.list_logical_devices("CPU")
    if name == "mirrored":
        return tf.distribute.MirroredStrategy([device.name for device in devices])
    return tf.distribute.OneDeviceStrategy(devices[0].name)
