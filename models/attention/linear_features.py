"""What the linear forms of both models share: their feature map."""

from keras import ops

from models.attention.feature_maps import FEATURE_MAPS, variants
from models.seeds import derive_seed


class LinearFeatures:
    """A feature map of heads; mixed into an `Attention`.

    Args:
      feature_map: a key of `FEATURE_MAPS`.
      nu, num_features, orthogonal, redraw_every, kernel: of the map, those that it has.

    Raises:
      ValueError: if there is no feature map of that name.
    """

    variants = variants()
    inert_weights = ("passes",)

    def __init__(self, *args, feature_map, **kwargs):
        if feature_map not in FEATURE_MAPS:
            names = tuple(FEATURE_MAPS)
            raise ValueError(f"feature_map must be one of {names}, got {feature_map!r}")
        names = FEATURE_MAPS[feature_map].fields
        self.map_name = feature_map
        self.hyperparameters = {name: kwargs.pop(name) for name in names}
        super().__init__(*args, **kwargs)

    @classmethod
    def fields_of(cls, hyperparameters):
        """Those of the map, which the variant chooses."""
        return FEATURE_MAPS[hyperparameters["feature_map"]].fields

    def build_features(self, size):
        """Makes the map of heads of `size` numbers."""
        seed = derive_seed(self.seed, "features")
        self.feature_map = FEATURE_MAPS[self.map_name](
            size, seed, **self.hyperparameters
        )
        self.redraw_every = self.hyperparameters.get("redraw_every", 0)
        if self.redraw_every:
            self.passes = self.add_weight(
                name="passes",
                shape=(),
                dtype="int32",
                initializer="zeros",
                trainable=False,
                aggregation="none",
            )

    def draw(self, training=None):
        """The number of the draw of random features, and counts a training pass."""
        if not self.redraw_every:
            return 0
        draw = self.passes // self.redraw_every
        if training:
            self.passes.assign(self.passes + 1)
        return draw

    def query_features(self, queries, draw=None):
        """phi of (batch, heads, n, size), in the layer's dtype."""
        draw = self.draw() if draw is None else draw
        return ops.cast(self.feature_map.queries(queries, draw), self.compute_dtype)

    def key_features(self, keys, draw=None):
        """Returns phi of keys, and the logarithm of a factor on each key."""
        draw = self.draw() if draw is None else draw
        features, logs = self.feature_map.keys(keys, draw)
        return ops.cast(features, self.compute_dtype), logs

    def get_config(self):
        return {
            **super().get_config(),
            "feature_map": self.map_name,
            **self.hyperparameters,
        }
