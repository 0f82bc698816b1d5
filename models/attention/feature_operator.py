"""What the operators of feature maps share: phi(Q) and phi(K)."""

from keras import ops

from common.fields import boolean, fail, optional
from models.attention.feature_maps import FEATURE_MAPS, scaled
from models.attention.operator import Operator
from models.seeds import derive_seed


class FeatureOperator(Operator):
    """K that is made of features of queries and keys.

    Queries and keys are scaled by the root of the scores' scale each. With sum
    normalisation the features of each are divided by their sum (Schlag, Irie and
    Schmidhuber 2021, section 4.2); where all are zero they stay so. With attention
    normalisation what is read is divided by the sum of the products of features.

    Class attributes:
      feature_maps: {name: `FeatureMap`} that it may have.
      sum_normalisation, attention_normalisation: whether it has these, if their fields
        do not say so.

    Args:
      feature_map: a key of `feature_maps`.
      sum_normalisation, attention_normalisation: whether it has these; None where the
        class attributes say so.
      **hyperparameters: of the map, those that it has.

    Raises:
      ValueError: if there is no feature map of that name.
    """

    feature_maps = FEATURE_MAPS
    sum_normalisation = False
    attention_normalisation = False
    inert_weights = ("passes",)

    def __init__(
        self,
        num_heads,
        use,
        seed,
        feature_map,
        sum_normalisation=None,
        attention_normalisation=None,
        **hyperparameters,
    ):
        super().__init__(num_heads, use, seed)
        if feature_map not in self.feature_maps:
            names = tuple(self.feature_maps)
            raise ValueError(f"feature_map must be one of {names}, got {feature_map!r}")
        self.map_name = feature_map
        if sum_normalisation is not None:
            self.sum_normalisation = sum_normalisation
        if attention_normalisation is not None:
            self.attention_normalisation = attention_normalisation
        self.hyperparameters = hyperparameters

    @classmethod
    def fields_of(cls, hyperparameters):
        """Those of the map, which the variant chooses, and of normalisation."""
        return {
            **cls.feature_maps[hyperparameters["feature_map"]].fields,
            "sum_normalisation": optional(
                boolean(
                    "Whether features are divided by their sum; only delta's if unset."
                )
            ),
            "attention_normalisation": optional(
                boolean(
                    "Whether what is read is divided by the sum of the products of "
                    "features; only linear's if unset."
                )
            ),
        }

    @classmethod
    def check(cls, config):
        """See `AttentionKind.check`; what features lack must be divided out."""
        attention = config.model.attention
        feature_map = cls.feature_maps[attention.feature_map]
        normalised = attention.get("sum_normalisation")
        if normalised is None:
            normalised = cls.sum_normalisation
        divides = cls.divides and attention.get("attention_normalisation") is not False
        lacks = feature_map.leaves_out_factors and not divides
        if feature_map.is_signed if normalised else lacks:
            expected = f"{not normalised} with feature_map={attention.feature_map}"
            fail("model.attention.sum_normalisation", expected, normalised)

    @property
    def is_softmax(self):
        return self.feature_map.is_softmax

    def build(self, layer, size):
        """Makes the map of heads of `size` numbers."""
        self.feature_map = self.feature_maps[self.map_name](
            size, derive_seed(self.seed, "features"), **self.hyperparameters
        )
        self.feature_map.build(layer)

    def count_pass(self):
        """See `Operator.count_pass`."""
        self.feature_map.count_pass()

    def prepare_queries(self, queries, scale):
        """phi(Q)."""
        features = self.feature_map.queries(scaled(queries, scale))
        return self._normalised(features, queries.dtype)

    def prepare_keys(self, keys, scale, mask=None):
        """phi(K), and the logarithm of a factor that the map takes out of it; with sum
        normalisation it cancels."""
        features, logs = self.feature_map.keys(scaled(keys, scale))
        if self.sum_normalisation:
            logs = None
        return self._normalised(features, keys.dtype), logs

    def _normalised(self, features, dtype):
        if self.sum_normalisation:
            total = ops.sum(features, axis=-1, keepdims=True)
            features = features / ops.where(total > 0, total, 1)
        return ops.cast(features, dtype)
