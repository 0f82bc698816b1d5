"""Language model: embedding, causal encoder, and the embedding again."""

import keras
from keras import ops

from models.attention.cache import SlotMap, grows
from models.encoder_decoder import DecodingCache
from models.layers.embedding import PADDING_ID, TokenEmbedding
from models.seeds import derive_seed


@keras.saving.register_keras_serializable("transevolve")
class LanguageModel(keras.Model):
    """Logits of each next token of a text, by an encoder whose tokens see none after
    them. Input and output layer share one embedding.

    Token ids: 0 is padding, which comes after the real tokens.

    Args:
      vocabulary_size: number of token ids, padding included, and of logits.
      hidden_dim: d.
      encoder: causal layer with the methods of `models.stack.EncoderStack`.
      positions, max_length: see `TokenEmbedding`.
      seed: of the initial embedding.
    """

    def __init__(
        self,
        vocabulary_size,
        hidden_dim,
        encoder,
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

    def build(self, input_shape):
        self.embedding.build(input_shape)
        if not self.encoder.built:  # one made from a config is
            self.encoder.build((*input_shape, self.hidden_dim))

    def call(self, tokens, training=None, memory=None):
        """Logits of the token after each of (batch, length) ids.

        Args:
          memory: what the text before has left, as from `empty_memory`; None where none
            is kept.

        Returns:
          (batch, length, vocabulary_size). Where there is a memory, that for the text
          after this one, too.
        """
        x, mask = self.embedding(tokens), ops.not_equal(tokens, PADDING_ID)
        if memory is None:
            encoded = self.encoder(x, mask, training=training)
            return self.embedding.logits(encoded)
        encoded, memory = self.encoder(x, mask, training=training, memory=memory)
        return self.embedding.logits(encoded), memory

    def empty_memory(self, batch_size, span):
        """What `call` takes and gives: nothing yet.

        Args:
          batch_size: texts.
          span: of positions that are remembered; states have no such limit, see
            `Operator.memory`.
        """
        return self.encoder.empty_memory(batch_size, span)

    def constants(self):
        """What `step` needs that no token changes."""
        return self.encoder.constants()

    def empty_cache(self, batch_size, beams):
        """What `step` keeps of earlier tokens: nothing yet.

        Args:
          batch_size: texts.
          beams: continuations of each.

        Returns:
          `DecodingCache`, see `models.attention.cache`.
        """
        layers = self.encoder.empty_cache(batch_size, beams)
        slots = SlotMap.empty(batch_size, beams) if grows(layers) else ()
        return DecodingCache(slots, layers)

    def step(self, tokens, constants, cache, position):
        """Logits of the next token; nothing is computed again for earlier ones.

        Args:
          tokens: int32 (batch, beams), the tokens at `position`.
          constants: of `constants`.
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
        x, layers = self.encoder.step(x, constants, cache.layers, visible, position)
        return self.embedding.logits_at_position(x), DecodingCache(slots, layers)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "positions": self.positions,
            "max_length": self.max_length,
            "seed": self.seed,
            "encoder": keras.saving.serialize_keras_object(self.encoder),
        }

    @classmethod
    def from_config(cls, config):
        encoder = keras.saving.deserialize_keras_object(config.pop("encoder"))
        return cls(encoder=encoder, **config)
