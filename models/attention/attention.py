"""An attention layer: projections, and the operator made of them."""

import keras
from keras import ops

from models.attention import OPERATORS, reading
from models.attention.heads import (
    masked,
    merge_heads,
    num_earlier,
    split_heads,
    zero_unseeing,
)
from models.attention.layer_decoding import LayerDecoding
from models.attention.memory import AfterPositions, AfterStates, Positions
from models.attention.operator import STATES, AttentionKind
from models.attention.relative_positions import RELATIVE_POSITIONS
from models.attention.rotary import rotated
from models.fidelity import official_choices


class Attention(LayerDecoding, AttentionKind, keras.layers.Layer):
    """Projections of queries and keys, the operator made of them, and its reads.

    A block of L depths has one layer for each of its uses. A model of one depth a
    layer, as the Transformer, is the case of L = 1. Shapes: queries n, keys m, width d.

    *In parallel*, for training. The call sees the block's input and makes the operator;
    then each depth reads it.

        made = attention(x, context, padding_mask, training=training)
        attended = made.read(number, values)

      x: (batch, n, d), where queries come from.
      context: (batch, m, d), where keys come from: `x` itself, or a source. Causal
        queries may follow m - n earlier keys: `x` is then the end of the context.
      padding_mask: (batch, m), true at real tokens; None if all are real.
      number: of the read, from 0; depth by depth, and in a depth stage by stage.
      values: (batch, m, d), what the depth reads. A layer that projects values of its
        own from the context leaves them aside.
      attended: (batch, n, d), heads merged, not yet projected. Zero where a query sees
        no real token.

    `LayerDecoding` has how it decodes.

    A subclass projects (`project_queries`, `project_keys`) and has `scale`, the factor
    on the products of queries and keys.

    Class attributes: of `AttentionKind`, for a layer that is registered as an attention
    of its own.

    Args:
      operator: a key of `models.attention.OPERATORS`.
      num_heads: H. Must divide the width.
      num_depths: L, in how many depths it is read.
      use: of `USES`; "causal" lets a query see no key that comes after it.
      offsets: of the reads of each depth, as fractions of a depth: see
        `models.residual_step`.
      positions: of the model, of `models.layers.embedding.POSITIONS`. As "rotary"
        queries and keys are rotated by them, as one of `RELATIVE_POSITIONS` scores
        have something added for distances. Cross-attention, whose positions are those
        of two texts, takes neither.
      dropout: rate of the model.
      fidelity: see `models.fidelity`, where a layer differs by it.
      max_length: of the texts that it must serve; None if not known. An operator whose
        weights depend on it makes them in `Operator.build`.
      seed: of the initial weights and of the dropout.
      name, dtype, trainable: Keras's.
      **hyperparameters: of the operator.

    Raises:
      ValueError: if it does not serve that use, or takes no relative positions.
    """

    takes_relative_positions = True

    def __init__(
        self,
        num_heads,
        operator="softmax",
        num_depths=1,
        use="self",
        offsets=(0.0,),
        positions=None,
        dropout=0.0,
        fidelity="paper",
        max_length=None,
        seed=0,
        name=None,
        dtype=None,
        trainable=True,
        **hyperparameters,
    ):
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        kind = OPERATORS[operator]
        for uses in (self.uses, kind.uses):
            if use not in uses:
                raise ValueError(f"{operator} serves as {uses}, got use={use!r}")
        self.operator = kind(num_heads, use, seed, **hyperparameters)
        self.num_heads = num_heads
        self.num_depths = num_depths
        self.use = use
        self.offsets = tuple(offsets)
        self.rotary = positions == "rotary" and use != "cross"
        if positions in RELATIVE_POSITIONS and use != "cross":
            if not (self.takes_relative_positions and kind.takes_relative_positions):
                raise ValueError(f"{operator} takes no relative positions")
            relative = RELATIVE_POSITIONS[positions](num_heads, self.causal, seed)
            self.operator.relative = relative
        self.dropout = dropout
        self.fidelity = fidelity
        self.official_choices = official_choices(fidelity)
        self.max_length = max_length
        self.seed = seed

    def build_operator(self, size):
        """Makes the operator's weights.

        Args:
          size: of a head's queries and keys.

        Raises:
          ValueError: if it has weights by position, and `max_length` is None.
        """
        if self.operator.has_weights_by_position and self.max_length is None:
            raise ValueError(
                "expected max_length, which weights by position need, got None"
            )
        self.key_size = size
        self.operator.build(self, size)
        if self.operator.relative is not None:
            self.operator.relative.build(self, size)

    @property
    def head_size(self) -> int:
        """Of values."""
        return self.hidden_dim // self.num_heads

    def by_head(self, x, positions=None):
        """Queries or keys (batch, length, width) by head, rotated by positions."""
        x = split_heads(x, self.num_heads)
        return x if positions is None else rotated(x, positions)

    def positions(self, x, context):
        """Those to rotate queries and keys by; None where they are not rotated."""
        if not self.rotary:
            return None, None
        num_queries, num_keys = ops.shape(x)[1], ops.shape(context)[1]
        earlier = num_earlier(num_queries, num_keys) if self.causal else 0
        return ops.arange(num_queries) + earlier, ops.arange(num_keys)

    def _check_length(self, length):
        """Raises `ValueError` for a text that is known to be longer than the weights by
        position."""
        if not self.operator.has_weights_by_position or not isinstance(length, int):
            return
        if length > self.max_length:
            expected = f"expected at most max_length={self.max_length}"
            raise ValueError(f"{expected}, got {length}")

    @property
    def num_reads(self) -> int:
        return self.num_depths * len(self.offsets)

    @property
    def num_biased_reads(self) -> int:
        """For how many reads decoding and memory keep b and values; 0 for a single
        read without b, of values that are projected."""
        return self.num_reads

    @property
    def causal(self) -> bool:
        return self.use == "causal"

    @property
    def all_inert_weights(self) -> tuple[str, ...]:
        """Names of weights, the operator's included, on which no output depends."""
        return self.inert_weights + self.operator.inert_weights

    def project(self, x, context, training=None):
        """`project_queries` of x, and `project_keys` of the context."""
        queries = self.project_queries(x, training)
        return queries, *self.project_keys(context, training)

    def biases(self, keys, context, constants):
        """b of all reads, float32 (batch, heads, m, reads); None where all are 0."""
        return None

    def call(self, x, context, padding_mask=None, training=None, memory=None):
        """Makes the operator of the block's input. What it gives has `read` and, after
        a memory, `left`, that for the text after this one."""
        if isinstance(memory, Positions):
            context, mask = memory.before(context, padding_mask)
            made = self.call(x, context, mask, training)
            return AfterPositions(made, context, mask, memory, {})
        if padding_mask is not None:
            padding_mask = ops.cast(padding_mask, "bool")
        inputs, biases, values = self.prepared(x, context, padding_mask, training)
        length = ops.shape(x)[1]
        if values is not None and self.operator.rows_sum_to_one:
            by_head = split_heads(values, self.num_heads)
            attended = self.operator.read_once(inputs, biases, by_head)
            sees = self.operator.sees((), padding_mask, length)
            return reading.Attended(merge_heads(zero_unseeing(attended, sees)))
        if biases is None:
            biases = self.zero_biases(context)
        arguments = self.operator, inputs, biases, padding_mask, length, self.head_size
        if memory is None:
            made = reading.start(*arguments)
        else:
            made = AfterStates.start(*arguments, memory)
        return made if values is None else reading.OfValues(made, values)

    def prepared(self, x, context, mask=None, training=None):
        """What `call` makes an operator of.

        Returns:
          The inputs of `Operator.make`. Then b of all reads, (batch, heads or 1, m,
          reads), `MASKED` at padding; None where all are 0. Then the values that are
          projected, (batch, m, d); None if the reads have theirs.
        """
        self._check_length(ops.shape(context)[1])
        queries, keys, values = self.project(x, context, training)
        positions, key_positions = self.positions(x, context)
        queries = self._prepared_queries(queries, positions)
        keys, biases = self._keys_and_biases(
            keys, context, self.constants(), key_positions, mask
        )
        if training:
            self.operator.count_pass()
        further = self.operator.further_inputs(x, context, mask, training)
        return self.operator.inputs(queries, keys, further), biases, values

    def empty_memory(self, batch_size, span):
        if self.operator.memory == STATES:
            return self.empty_cache(batch_size, 1)
        width, reads = self.hidden_dim, self.num_biased_reads
        return Positions.empty(batch_size, span, width, reads, self.compute_dtype)

    def _prepared_queries(self, queries, positions=None):
        """Queries by head, as an operator is made of them; None for one that is not."""
        if queries is None:
            return None
        queries = self.by_head(queries, positions)
        return self.operator.prepare_queries(queries, self.scale)

    def _keys_and_biases(self, keys, context, constants, positions=None, mask=None):
        """Keys by head, likewise, and biases as `prepared` gives them."""
        biases = self.biases(keys, context, constants)
        if keys is not None:
            keys = self.by_head(keys, positions)
            keys, logs = self.operator.prepare_keys(keys, self.scale, mask)
            if logs is not None:
                biases = logs if biases is None else biases + logs
        if biases is None and mask is not None:
            biases = self.zero_biases(context)
        return keys, None if biases is None else masked(biases, mask)

    def zero_biases(self, context):
        """Biases of one read that change nothing, float32."""
        batch, length, _ = ops.shape(context)
        # Where they are added to scores, one for all heads will do.
        heads = 1 if self.operator.rows_sum_to_one else self.num_heads
        return ops.zeros((batch, heads, length, 1), "float32")
