"""What an attention is: a linear operator on values, made once and read many times."""

import abc
from collections.abc import Mapping

from common.fields import Field

USES = ("self", "causal", "cross")
STATES, POSITIONS = "states", "positions"


class AttentionKind:
    """What an attention states of itself, by which a config or a model chooses it: an
    `Operator`, or a layer that is an attention of its own.

    Class attributes:
      uses: of `USES`, what it serves as. As "cross" what is read must sum to one over
        the keys: a decoder's biases are added to it.
      can_decode: whether it has the methods of `models.attention.decoding.Decoding`.
      memory: what it can remember of a text before, causally: `STATES`, if it has the
        methods of `models.attention.decoding.Carrying`, `POSITIONS`, or None.
      variants: hyperparameters by what they append to a variant's name, e.g.
        {"": {"feature_map": "elu1"}, "favor": {"feature_map": "favor"}}.
      fields: {hyperparameter: `common.fields.Field`}, unless `fields_of` says more.
      inert_weights: names of weights on which no output depends. Converting a model
        drops them, or leaves them as initialised, and a run with another attention
        leaves them unused.
      padding: where padding may lie, "anywhere" or "end".
      is_ordered: whether the order of keys matters, causality apart.
      has_weights_by_position: whether it has none for texts longer than its layer's
        `max_length`. The layer then needs one, and refuses such a text.
      takes_relative_positions: whether its scores may have those of
        `models.attention.relative_positions` added.
      small: hyperparameters with which a text of 14 tokens has several of whatever it
        is cut into, for tests.
    """

    uses = USES
    can_decode = False
    memory = None
    variants: Mapping[str, Mapping] = {"": {}}
    fields: Mapping[str, Field] = {}
    inert_weights: tuple[str, ...] = ()
    padding = "anywhere"
    is_ordered = False
    has_weights_by_position = False
    takes_relative_positions = False
    small: Mapping = {}

    @classmethod
    def fields_of(cls, hyperparameters: Mapping) -> Mapping[str, Field]:
        """What the hyperparameters of a variant may hold; others are fixed by it."""
        return cls.fields

    @staticmethod
    def check(config) -> None:
        """Raises `UserError` if its fields do not fit the rest of a config, whose
        lengths and widths it may need."""
        return None


class Operator(AttentionKind, abc.ABC):
    """K, for each head a linear map of values to queries, often not written out.

    A block makes it from its input. `models.attention.reading` reads it, any number of
    times, with weights w on the keys (docs/attention.md):

        out = K (w * V) / (K w)      w = exp(b), a `DividedOperator`
        out = K (w * V)              w = 2 sigmoid(b), any other

    Nothing here knows of models: TransEvolve reads an operator at each depth l with the
    biases b^l, the Transformer once, with b = 0. Both ways w is 1 at b = 0, and 0 at
    padding.

    Shapes are by head: queries (batch, heads, n, size), keys, values and x (batch,
    heads, m, size), outputs and y (batch, heads, n, size). What `make` computes is a
    tuple of arrays, the operator's *parts*.

    To add one, write its class in a file of its own and name it in
    `models.attention.OPERATORS`. `tests/models/test_attention.py` then tests it.

    Class attributes, besides those of `AttentionKind`:
      divides: whether what is read is divided by K w, as of a `DividedOperator`.
      projections: of "query" and "key", those that it is made of. A layer whose model
        needs no others leaves them out.
      rows_sum_to_one: whether those of K do. A single read without weights then needs
        no sums, and the operator has `read_once`.
      linear_time: whether no array of it has a number for each query and key.

    Attributes:
      relative: `models.attention.relative_positions.RelativePositions` that its layer
        has given it; None without.

    Args:
      num_heads: H.
      use: of `USES`; "causal" lets a query see no key that comes after it. Its n
        queries may follow m - n earlier keys.
      seed: of what it draws.
      **hyperparameters: of `fields_of`.
    """

    divides = False
    projections = ("query", "key")
    rows_sum_to_one = False
    linear_time = False

    def __init__(self, num_heads, use, seed):
        self.num_heads = num_heads
        self.use = use
        self.seed = seed
        self.relative = None

    @property
    def causal(self):
        return self.use == "causal"

    @property
    def is_softmax(self) -> bool:
        """Whether it stands for softmax(Q K^T), so scores are scaled as a softmax's."""
        return True

    def build(self, layer, size: int) -> None:
        """Makes its weights by `layer.add_weight`.

        Args:
          layer: the attention layer that owns it; its `max_length` is that of the texts
            that it must serve, or None.
          size: of a head's queries and keys.
        """
        return None

    def count_pass(self):
        """Counts a training pass, whose inputs are prepared, for an operator that draws
        numbers anew now and then."""
        return None

    def prepare_queries(self, queries, scale):
        """What queries enter `make` as, differentiable as usual.

        Args:
          queries: projected, by head.
          scale: factor on the products of queries and keys.
        """
        return queries * scale

    def prepare_keys(self, keys, scale, mask=None):
        """What keys enter `make` as, likewise.

        Args:
          mask: bool (batch, m), true at real tokens; None if all are real.

        Returns:
          The keys, and the logarithm of a factor on each, (batch, heads, m, 1), or
          None.
        """
        return keys, None

    def further_inputs(self, x, context, mask=None, training=None) -> tuple:
        """What `make` takes beside queries and keys, differentiable as usual.

        A weight that `make` uses is one of them, or it has no gradient. So is the mask,
        where K has a sum over keys inside: a weight of 0 takes padding out of K x, and
        not out of that sum.

        Args:
          x, context: of the layer, (batch, n, d) and (batch, m, d).
          mask: bool (batch, m), true at real tokens; None if all are real.
        """
        return ()

    def inputs(self, queries, keys, further=()) -> tuple:
        """The inputs of `make`: prepared queries and keys, those that `projections`
        names, then `further_inputs`."""
        prepared = {"query": queries, "key": keys}
        return (*(prepared[name] for name in self.projections), *further)

    @abc.abstractmethod
    def make(self, inputs: tuple, columns: int) -> tuple:
        """The parts that the other methods need. Its gradient is `gradient`.

        Args:
          inputs: of `inputs`.
          columns: in all reads; an operator may choose by them how it is held.
        """

    @abc.abstractmethod
    def times(self, parts, x):
        """K x: (batch, heads, n, columns) of (batch, heads, m, columns)."""

    @abc.abstractmethod
    def transposed_times(self, parts, y):
        """K^T y: (batch, heads, m, columns) of (batch, heads, n, columns)."""

    @abc.abstractmethod
    def gradient(self, parts, left, right) -> tuple:
        """The gradients of the inputs, where that of K is left right^T.

        An input that has no gradient has None.

        Args:
          left: (batch, heads, n, rank), collected over all reads.
          right: (batch, heads, m, rank).
        """


class DividedOperator(Operator):
    """K that is read with a division: out = K (w * V) / (K w), with w = exp(b).

    K has no negative entries, or what is divided by is `bounded` from below.
    """

    divides = True

    def bounded(self, sums, inputs, biases):
        """What is divided by, not negative, differentiable as usual.

        Args:
          sums: K w of all reads, (batch, heads, n, reads), for biases relative to the
            largest of the keys.
          inputs: as `make` takes them.
          biases: b of all reads, (batch, heads, m, reads), `MASKED` at padding.
        """
        return sums

    @abc.abstractmethod
    def sees(self, parts, mask, num_queries: int):
        """Whether a query has anything to read: bool (batch, heads or 1, n or 1, 1).

        Args:
          mask: bool (batch, m), true at real tokens; None if all are real.

        Returns:
          None where each query has.
        """

    @abc.abstractmethod
    def read_apart(self, inputs, biases, values):
        """One read whatever the spread of the biases: slower, and always right.

        Args:
          inputs: as `make` takes them.
          biases: b, (batch, heads, m, 1), `MASKED` at padding.
          values: by head.

        Returns:
          (batch, heads, n, size).
        """
