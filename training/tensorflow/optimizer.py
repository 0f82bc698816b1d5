"""Adam of a `Trainer`: Keras' own, with the arithmetic of a weight in one operation."""

import keras
import tensorflow as tf


class Adam(keras.optimizers.Adam):
    """Adam (Kingma and Ba 2015) of gradients that are summed over the replicas already.

    They have to be, to be clipped by the norm of their sum. The update is Keras', equal
    but for rounding. Keras writes it in some 26 operations a weight, which pass over
    the weight and its moments again and again; TensorFlow has it in one.
    """

    def _all_reduce_sum_gradients(self, grads_and_vars):
        return grads_and_vars

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        step = tf.cast(self.iterations + 1, tf.float32)
        corrections = tf.sqrt(1 - self.beta_2**step) / (1 - self.beta_1**step)
        rate = learning_rate * corrections
        super()._backend_update_step(grads, trainable_variables, rate)

    def update_step(self, gradient, variable, learning_rate):
        index = self._get_variable_index(variable)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            # The rate has the corrections of both moments in it.
            beta1_power=0.0,
            beta2_power=0.0,
            lr=learning_rate,
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=gradient,
        )
