"""Sequence to sequence: one embedding, encoder, decoder, and the embedding again."""

from typing import Any, NamedTuple

import keras
from keras import ops

from models.attention.cache import SlotMap, grows
from models.layers.embedding import PADDING_ID, TokenEmbedding
from models.seeds import derive_seed


class DecodingCache(NamedTuple):
    """Of all layers, and the map of their slots; without slots an empty tuple."""

    slots: Any
    layers: list


@keras.saving.register_keras_serializable("transevolve")
class EncoderDecoder(keras.Model):
    """The encoder-decoder model of section 6.

    Source, target and output layer share one embedding. Token ids: 0 is padding, which
    comes after the real tokens; what starts a target is the caller's choice.

    Args:
      vocabulary_size: number of token ids, padding included, and of logits.
      hidden_dim: d.
      encoder: layer from (batch, source, d) and a padding mask to the same shape.
      decoder: layer with the methods of
        `models.stack.DecoderStack`.
      positions, max_length: see `TokenEmbedding`.
      seed: of the initial embedding.
    """

    def __init__(
        self,
        vocabulary_size,
        hidden_dim,
        encoder,
        decoder,
        positions=None,
        max_length=None,
        seed=0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.positions = positions
        self.max_length = max_length
        self.seed = seed
        self.embedding = TokenEmbedding(
            vocabulary_size,
            hidden_dim,
            positions,
            max_length,
            seed=derive_seed(seed, "embedding"),
            dtype=self.dtype_policy,
            name="embedding",
        )
        self.encoder = encoder
        self.decoder = decoder

    def build(self, source_shape, target_shape=None):
        self.embedding.build(source_shape)
        for part in (self.encoder, self.decoder):
            if not part.built:  # one made from a config is
                part.build((*source_shape, self.hidden_dim))

    def call(self, source, target, training=None):
        """Logits of each next token.

        Args:
          source: int32 (batch, source length).
          target: int32 (batch, target length): a start token, then target tokens.

        Returns:
          (batch, target length, vocabulary_size).
        """
        encoded = self.encode(source, training=training)
        decoded = self.decoder(
            self.embedding(target),
            encoded,
            ops.not_equal(target, PADDING_ID),
            ops.not_equal(source, PADDING_ID),
            training=training,
        )
        return self.embedding.logits(decoded)

    def encode(self, source, training=None):
        """Encoder output, (batch, length, d), of (batch, length) token ids."""
        mask = ops.not_equal(source, PADDING_ID)
        return self.encoder(self.embedding(source), mask, training=training)

    def source_cache(self, source):
        """What `step` needs of (batch, length) source ids; computed once."""
        return self.decoder.source_cache(
            self.encode(source, training=False), ops.not_equal(source, PADDING_ID)
        )

    def empty_cache(self, batch_size, beams):
        """What `step` keeps of earlier target tokens: nothing yet.

        Args:
          batch_size: sentences.
          beams: hypotheses of each.

        Returns:
          `DecodingCache`, see `models.attention.cache`.
        """
        layers = self.decoder.empty_cache(batch_size, beams)
        slots = SlotMap.empty(batch_size, beams) if grows(layers) else ()
        return DecodingCache(slots, layers)

    def step(self, tokens, source_cache, cache, position):
        """Logits of the next token; nothing is computed again for earlier ones.

        Args:
          tokens: int32 (batch, beams), the tokens at `position`.
          source_cache: of the source.
          cache: of earlier positions.
          position: scalar, int32, from 0.

        Returns:
          Logits (batch, beams, vocabulary_size), and the cache with this position.
        """
        slots, visible = cache.slots, None
        if slots:
            slots = slots.enter(position)
            visible = slots.visible(position)
        x = self.embedding.at_position(tokens, position)
        x, layers = self.decoder.step(x, source_cache, cache.layers, visible, position)
        return self.embedding.logits_at_position(x), DecodingCache(slots, layers)

    def get_config(self):
        serialize = keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "positions": self.positions,
            "max_length": self.max_length,
            "seed": self.seed,
            "encoder": serialize(self.encoder),
            "decoder": serialize(self.decoder),
        }

    @classmethod
    def from_config(cls, config):
        deserialize = keras.saving.deserialize_keras_object
        config["encoder"] = deserialize(config["encoder"])
        config["decoder"] = deserialize(config["decoder"])
        return cls(**config)
