"""What the linear forms of both models share: their feature map."""

from keras import ops

from models.attention import feature_maps
from models.attention.feature_maps import make_feature_map
from models.seeds import derive_seed


class LinearFeatures:
    """A feature map of heads; mixed into an `Attention`.

    Args:
      feature_map: a key of `feature_maps.FEATURE_MAPS`.
      nu, num_features, orthogonal, redraw_every, kernel: of the map, those that it has.
    """

    variants = feature_maps.VARIANTS
    fields = feature_maps.FIELDS

    def __init__(self, *args, feature_map, **kwargs):
        names = set(feature_maps.FIELDS) & kwargs.keys()
        self.hyperparameters = {
            name: value
            for name in sorted(names)
            if (value := kwargs.pop(name)) is not None
        }
        self.hyperparameters["feature_map"] = feature_map
        super().__init__(*args, **kwargs)

    def build_features(self, size):
        """Makes the map of heads of `size` numbers."""
        self.feature_map = make_feature_map(
            size, derive_seed(self.seed, "features"), **self.hyperparameters
        )
        self.redraw_every = self.hyperparameters.get("redraw_every", 0)
        if self.redraw_every:
            self.passes = self.add_weight(
                name="passes",
                shape=(),
                dtype="int32",
                initializer="zeros",
                trainable=False,
                aggregation="only_first_replica",
            )

    def draw(self, training=None):
        """The number of the draw of random features; a training pass counts."""
        if not self.redraw_every:
            return 0
        if training:
            self.passes.assign(self.passes + 1)
        return self.passes // self.redraw_every

    def query_features(self, queries, draw=None):
        """phi of (batch, heads, n, size), in the layer's dtype."""
        draw = self.draw() if draw is None else draw
        return ops.cast(self.feature_map.queries(queries, draw), self.compute_dtype)

    def key_features(self, keys, draw=None):
        """Likewise, and the logarithm of a factor on each key; see `FeatureMap.keys`."""
        draw = self.draw() if draw is None else draw
        features, logs = self.feature_map.keys(keys, draw)
        return ops.cast(features, self.compute_dtype), logs

    def get_config(self):
        return {**super().get_config(), **self.hyperparameters}
