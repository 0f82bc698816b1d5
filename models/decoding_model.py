"""What the models share that decode, one token after the other."""

from typing import Any, NamedTuple

from models.attention.cache import SlotMap, grows
from models.token_model import TokenModel


class DecodingCache(NamedTuple):
    """What a model keeps of earlier tokens.

    Attributes:
      slots: `SlotMap` of all layers; () where no layer has slots.
      layers: the cache of each.
    """

    slots: Any
    layers: list


class DecodingModel(TokenModel):
    """A `TokenModel` whose last part decodes: a `models.stack.Stack`."""

    @property
    def _stack(self):
        return getattr(self, self.parts[-1])

    def empty_cache(self, batch_size, beams):
        """What `step` keeps of earlier tokens: nothing yet.

        Args:
          batch_size: texts.
          beams: hypotheses of each.

        Returns:
          `DecodingCache`, see `models.attention.cache`.
        """
        layers = self._stack.empty_cache(batch_size, beams)
        slots = SlotMap.empty(batch_size, beams) if grows(layers) else ()
        return DecodingCache(slots, layers)

    def step(self, tokens, given, cache, position):
        """Logits of the next token; nothing is computed again for earlier ones.

        Args:
          tokens: int32 (batch, beams), the tokens at `position`.
          given: what no token changes, of all layers: a source, or constants.
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
        x, layers = self._stack.step(x, given, cache.layers, visible, position)
        return self.embedding.logits_at_position(x), DecodingCache(slots, layers)
