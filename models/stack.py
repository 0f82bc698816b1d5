"""Layers in a row, which the encoders and decoders of all models are."""

import keras

from models.seeds import derive_seed


class Stack(keras.layers.Layer):
    """Layers of one class, one after the other.

    Class attributes of a subclass:
      layer_class: it takes a seed, Keras's arguments and `**arguments`.
      unit: "layer" or "block", by which weights name a layer.
      closing_norm: class of what comes after the last layer, unless a LayerNorm closes
        each of them.

    Args:
      sharing: "weights" if all layers are one, applied again and again (Dehghani et al.
        2019; Lan et al. 2020).
      initialization: "depth-scaled" if the kernels of layer l, from 1, are 1/sqrt(l) as
        large at first as they would be (Zhang et al. 2019); else None.
      residuals: "reversible" for those of `models.reversible`, in an encoder that has
        them; else None.
      seed: non-negative integer; each layer derives its own.
      dtype, name, trainable: Keras's. A model that is saved has a dtype by its name.
      **arguments: `num_layers` or `num_blocks`, and those of a layer.
    """

    layer_class = None
    unit = "layer"
    closing_norm = keras.layers.Identity

    def __init__(
        self,
        sharing=None,
        initialization=None,
        residuals=None,
        seed=0,
        dtype=None,
        name=None,
        trainable=True,
        **arguments,
    ):
        super().__init__(dtype=dtype, name=name, trainable=trainable)
        self.initialization = initialization
        self.residuals = residuals
        # By name: for `get_config` Keras records arguments of plain types alone.
        each = {**arguments, "dtype": self.dtype_policy.name}
        count = each.pop(f"num_{self.unit}s")
        names = [f"{self.unit}_{index}" for index in range(count)]
        if sharing == "weights":
            names = names[:1]
        layers = [
            self.layer_class(
                seed=derive_seed(seed, name),
                name=name,
                **each,
                **self._of(number, count),
            )
            for number, name in enumerate(names, start=1)
        ]
        self.layers = layers * (count // len(layers))
        closing_norm = self.closing_norm
        if arguments.get("norm") == "post":
            closing_norm = keras.layers.Identity
        self.output_norm = closing_norm(dtype=self.dtype_policy, name="output_norm")

    def _of(self, number, count):
        """Arguments of a layer by its number, from 1, and by how many there are."""
        return {"kernel_scale": number**-0.5} if self.initialization else {}

    def build(self, input_shape):
        for layer in (*self.layers, self.output_norm):
            if not layer.built:
                layer.build(input_shape)

    def empty_cache(self, batch_size, beams):
        """What `step` keeps of earlier tokens, a list: nothing of any layer yet."""
        return [layer.empty_cache(batch_size, beams) for layer in self.layers]

    def step(self, x, given, cache, visible, position=None):
        """Decodes one position, (batch, beams, width); its result, and the cache with
        this position.

        Args:
          given: what no token of the text changes, of each layer.
          cache: what each layer has kept of earlier tokens.
          visible, position: see `Attention`.
        """
        new_cache = []
        for layer, of_layer, past in zip(self.layers, given, cache, strict=True):
            x, past = layer.step(x, of_layer, past, visible, position)
            new_cache.append(past)
        return self.output_norm(x), new_cache


class EncoderStack(Stack):
    """An encoder: layers of (batch, length, width) and a padding mask. A causal one
    decodes, too."""

    def call(self, x, padding_mask=None, training=None, memory=None):
        """Encodes (batch, length, width); the mask is true at real tokens.

        Args:
          memory: of a causal encoder, what the text before has left in each layer, as
            from `empty_memory`.

        Returns:
          (batch, length, width). Where there is a memory, that for the text after this
          one, too.
        """
        if memory is None:
            for layer in self.layers:
                x = layer(x, padding_mask, training=training)
            return self.output_norm(x)
        left = []
        for layer, earlier in zip(self.layers, memory, strict=True):
            x, later = layer(x, padding_mask, training=training, memory=earlier)
            left.append(later)
        return self.output_norm(x), left

    def empty_memory(self, batch_size, span):
        """What `call` keeps of earlier texts, of so many positions where it keeps
        positions: nothing of any layer yet."""
        return [layer.empty_memory(batch_size, span) for layer in self.layers]

    def constants(self):
        """What `step` needs that no token changes."""
        return [layer.attention.constants() for layer in self.layers]


class DecoderStack(Stack):
    """A decoder: layers of a target and an encoded source."""

    def build(self, x_shape, encoded_shape=None):
        super().build(x_shape)

    def call(self, x, encoded, target_mask=None, source_mask=None, training=None):
        """Decodes (batch, target, width) for a source (batch, source, width)."""
        for layer in self.layers:
            x = layer(x, encoded, target_mask, source_mask, training=training)
        return self.output_norm(x)

    def source_cache(self, encoded, source_mask):
        """What `step` needs of the source."""
        return [layer.source_cache(encoded, source_mask) for layer in self.layers]
