"""Operations of a model's matrix products, counted from their shapes."""


def matrix_operations(
    config: dict, batch_size: int, length: int, training: bool
) -> int:
    """Floating-point operations of the encoder's matrix products, for one batch.

    A product of (a, b) and (b, c) counts 2abc. A training step counts three times
    the forward pass: each product has two more of its size behind it, one for each
    factor's gradient, in the factored form too. Everything that is not a matrix
    product (softmax, LayerNorm, dropout, ReLU, Adam) counts nothing.

    Args:
      config: the `model` part of a config.
      batch_size: sequences.
      length: n, tokens in a sequence.
      training: the whole training step, or the forward pass alone, for which
        rotations are taken to be folded.
    """
    if config["encoder"] == "transformer":
        layers = config["num_layers"]
        forward = batch_size * layers * _transformer_layer(config, length)
    else:
        blocks, depths = config["num_blocks"], config["num_depths"]
        block = _block_start(config, length) + depths * _depth(config, length)
        forward = batch_size * blocks * block
        if config["feed_forward"] == "rotation" and training:
            d, ffn_dim = config["hidden_dim"], config["ffn_dim"]
            folding = 2 * (2 * d * d * ffn_dim)  # of two kernels, once a step
            forward += blocks * depths * folding
    return 3 * forward if training else forward


def _transformer_layer(config, n):
    d, ffn_dim = config["hidden_dim"], config["ffn_dim"]
    scores_and_sums = 2 * n * n * d
    return 2 * n * (4 * d * d + 2 * d * ffn_dim) + 2 * scores_and_sums


def _block_start(config, n):
    d, heads = config["hidden_dim"], config["num_heads"]
    projected = 2 * d
    queries_keys_scores = 2 * (2 * n * d * projected) + 2 * n * n * projected
    if config["form"] == "literal":
        # A1 and A2 of equation 6.
        return queries_keys_scores + 2 * (2 * n * projected * d)
    # The biases and the row sums of all depths.
    directions = heads * config["num_depths"]
    return queries_keys_scores + 2 * n * (projected + n) * directions


def _depth(config, n):
    d, ffn_dim = config["hidden_dim"], config["ffn_dim"]
    total = 2 * n * n * d + 2 * n * (d * d + 2 * d * ffn_dim)
    if config["form"] == "literal":
        total += 2 * (2 * n * d)  # A1 T and T A2
    return total
