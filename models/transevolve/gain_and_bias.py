"""The learned part of a LayerNorm, apart from the normalisation."""

import keras


@keras.saving.register_keras_serializable("transevolve")
class GainAndBias(keras.layers.Layer):
    """x * gamma + beta, (..., width): a LayerNorm of what is already normalised."""

    def build(self, input_shape):
        shape = (input_shape[-1],)
        self.gamma = self.add_weight(name="gamma", shape=shape, initializer="ones")
        self.beta = self.add_weight(name="beta", shape=shape, initializer="zeros")

    def call(self, x):
        return x * self.gamma + self.beta
