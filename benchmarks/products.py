"""The matrix products of a model's encoder, by shape."""

from typing import NamedTuple


class Product(NamedTuple):
    """Products of (a, b) and (b, c) matrices.

    Attributes:
      name: what they compute.
      count: how many calls a step makes.
      batch: independent products in a call.
      sizes: (a, b, c).
      transposed: "left" or "right" if that factor is stored the other way round.
      training_only: whether a forward pass does without them.
    """

    name: str
    count: int
    batch: int
    sizes: tuple[int, int, int]
    transposed: str = ""
    training_only: bool = False

    @property
    def operations(self) -> int:
        """Floating-point operations of all calls: 2abc for each product."""
        a, b, c = self.sizes
        return 2 * self.count * self.batch * a * b * c


def encoder_products(config: dict, batch_size: int, n: int) -> list[Product]:
    """Every matrix product of a training step; those of a forward pass are marked.

    Args:
      config: the `model` part of a config.
      batch_size: sequences.
      n: tokens in a sequence.
    """
    if config["encoder"] == "transformer":
        layers = config["num_layers"]
        found = _transformer_attention(config, batch_size, n)
    else:
        layers = config["num_blocks"] * config["num_depths"]
        attention = {"factored": _factored_attention, "literal": _literal_attention}
        found = _block_start(config, batch_size, n)
        found += attention[config["form"]](config, batch_size, n)
    d, ffn_dim, tokens = config["hidden_dim"], config["ffn_dim"], batch_size * n
    found += _with_gradients("output projection", layers, 1, (tokens, d, d))
    found += _with_gradients("expand", layers, 1, (tokens, d, ffn_dim))
    found += _with_gradients("contract", layers, 1, (tokens, ffn_dim, d))
    if config.get("feed_forward") == "rotation":
        # U S V of both kernels. V is fixed, and inference folds them for good.
        found += [
            Product("fold expand", layers, 1, (d, d, ffn_dim), "", True),
            Product("its gradient", layers, 1, (d, ffn_dim, d), "right", True),
            Product("fold contract", layers, 1, (ffn_dim, d, d), "", True),
            Product("its gradient", layers, 1, (ffn_dim, d, d), "right", True),
        ]
    return found


def operations(config: dict, batch_size: int, n: int, training: bool) -> int:
    """Floating-point operations of the products of a training step or forward pass.

    Everything else (softmax, LayerNorm, dropout, ReLU, Adam) counts nothing.
    """
    return sum(
        product.operations
        for product in encoder_products(config, batch_size, n)
        if training or not product.training_only
    )


def _with_gradients(name, count, batch, sizes, transposed=""):
    """A product and the two that give its factors' gradients."""
    a, b, c = sizes
    if transposed == "right":  # so is its gradient
        left, right = ((a, c, b), ""), ((c, a, b), "left")
    else:
        left, right = ((a, c, b), "right"), ((b, a, c), "left")
    return [
        Product(name, count, batch, sizes, transposed),
        Product(f"{name}: left gradient", count, batch, *left, True),
        Product(f"{name}: right gradient", count, batch, *right, True),
    ]


def _transformer_attention(config, batch_size, n):
    d, heads, layers = config["hidden_dim"], config["num_heads"], config["num_layers"]
    units, size = batch_size * heads, d // heads
    return [
        *_with_gradients("query, key, value", layers, 1, (batch_size * n, d, 3 * d)),
        *_with_gradients("Q K^T", layers, units, (n, size, n), "right"),
        *_with_gradients("A V", layers, units, (n, n, size)),
    ]


def _block_start(config, batch_size, n):
    d, heads, blocks = config["hidden_dim"], config["num_heads"], config["num_blocks"]
    units, size = batch_size * heads, 2 * d // heads
    return [
        *_with_gradients("query, key", 2 * blocks, 1, (batch_size * n, d, 2 * d)),
        *_with_gradients("Q K^T", blocks, units, (n, size, n), "right"),
    ]


def _factored_attention(config, batch_size, n):
    d, heads, blocks = config["hidden_dim"], config["num_heads"], config["num_blocks"]
    depths, units, size = config["num_depths"], batch_size * heads, d // heads
    layers, rank = blocks * depths, depths * (size + 1)
    biases = (batch_size * n, 2 * d, heads * depths)
    return [
        *_with_gradients("biases", blocks, 1, biases),
        Product("row sums", blocks, units, (n, n, depths)),
        Product("E (w V)", layers, units, (n, n, size)),
        Product("w V: gradient", layers, units, (n, n, size), "left", True),
        Product("w: gradient", blocks, units, (n, n, depths), "left", True),
        Product("E: gradient", blocks, units, (n, rank, n), "right", True),
    ]


def _literal_attention(config, batch_size, n):
    d, heads, blocks = config["hidden_dim"], config["num_heads"], config["num_blocks"]
    layers, units, size = blocks * config["num_depths"], batch_size * heads, d // heads
    operators = (batch_size * n, 2 * d, d)
    return [
        *_with_gradients("A1, A2", 2 * blocks, 1, operators, "right"),
        *_with_gradients("A1 T, T A2", 2 * layers, units, (n, size, 1)),
        *_with_gradients("A V", layers, units, (n, n, size)),
    ]
