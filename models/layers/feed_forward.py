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
        inner_shape = self.expand.compute_output_shape(input_shape)
        for layer, shape in ((self.expand, input_shape), (self.contract, inner_shape)):
            if not layer.built:  # one made from a config is
                layer.build(shape)

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
