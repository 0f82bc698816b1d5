"""Position-wise feed-forward: expand, ReLU, contract."""

import keras


@keras.saving.register_keras_serializable("transevolve")
class FeedForward(keras.layers.Layer):
    """contract(relu(expand(x))), equation 3 or 11 by the layers given.

    Args:
      expand: layer from the width to the inner size.
      contract: layer back.
    """

    def __init__(self, expand, contract, **kwargs):
        super().__init__(**kwargs)
        self.expand = expand
        self.contract = contract

    def build(self, input_shape):
        self.expand.build(input_shape)
        self.contract.build(self.expand.compute_output_shape(input_shape))

    def call(self, x):
        return self.contract(keras.ops.relu(self.expand(x)))

    def get_config(self):
        serialize = keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            "expand": serialize(self.expand),
            "contract": serialize(self.contract),
        }

    @classmethod
    def from_config(cls, config):
        deserialize = keras.saving.deserialize_keras_object
        config["expand"] = deserialize(config["expand"])
        config["contract"] = deserialize(config["contract"])
        return cls(**config)
