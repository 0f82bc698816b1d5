"""Language model: embedding, causal encoder, and the embedding again."""

import functools

import keras
from keras import ops

from models.attention.cache import repeat
from models.decoding_model import DecodingCache, DecodingModel
from models.layers.adaptive_softmax import AdaptiveEmbedding
from models.layers.embedding import PADDING_ID


@keras.saving.register_keras_serializable("transevolve")
class LanguageModel(DecodingModel):
    """Logits of each next token of a text, by an encoder whose tokens see none after
    them. Input and output layer share one embedding.

    `step` is given the `constants`.

    Args:
      vocabulary_size, hidden_dim: see `TokenModel`; there are as many logits.
      encoder: causal layer with the methods of `models.stack.EncoderStack`.
      cutoffs: of an adaptive softmax, see `AdaptiveEmbedding`; none for a softmax over
        all words.
      **kwargs: see `TokenModel`.
    """

    def __init__(self, vocabulary_size, hidden_dim, encoder, cutoffs=(), **kwargs):
        if cutoffs:
            adaptive = functools.partial(AdaptiveEmbedding, cutoffs=cutoffs)
            kwargs["embedding"] = adaptive
        super().__init__(vocabulary_size, hidden_dim, [encoder], **kwargs)
        self.cutoffs = cutoffs

    def call(self, tokens, training=None, memory=None, targets=None):
        """Logits of the token after each of (batch, length) ids.

        Args:
          memory: what the text before has left, as from `empty_memory`; None where none
            is kept.
          targets: with an adaptive softmax, (batch, length) ids of those tokens, whose
            losses it then gives and not the logits of all.

        Returns:
          (batch, length, vocabulary_size), or `AdaptiveEmbedding.losses`. Where there
          is a memory, that for the text after this one, too.
        """
        if memory is None:
            encoded = self.encode(tokens, training)
        else:
            x, mask = self.embedding(tokens), ops.not_equal(tokens, PADDING_ID)
            encoded, memory = self.encoder(x, mask, training=training, memory=memory)
        if targets is None:
            output = self.embedding.logits(encoded)
        else:
            output = self.embedding.losses(encoded, targets)
        return output if memory is None else (output, memory)

    def empty_memory(self, batch_size, span):
        """What `call` takes and gives: nothing yet.

        Args:
          batch_size: texts.
          span: of positions that are remembered; states have no such limit, see
            `AttentionKind.memory`.
        """
        return self.encoder.empty_memory(batch_size, span)

    def cache_after(self, memory, beams):
        """What `step` keeps of a text that has left this memory, if that is states.

        Args:
          memory: as `call` gives it.
          beams: hypotheses that go on from each text.
        """
        return DecodingCache((), repeat(memory, beams))

    def constants(self):
        """What `step` needs that no token changes."""
        return self.encoder.constants()

    def get_config(self):
        return {**super().get_config(), "cutoffs": self.cutoffs}
