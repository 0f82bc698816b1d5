"""PyTorch's own Transformer, which a process of its own calls.

Both libraries in one process would share its threads, and PyTorch may crash beside
TensorFlow, which nothing here imports. The model drops the outputs of sublayers alone,
and neither attention weights nor the inner layer of the feed-forward, as no model here
does.
"""

from collections.abc import Iterator

from common.processes import num_usable


def calls(
    config: dict, batch_size: int, length: int
) -> Iterator[tuple[int, int] | None]:
    """Yields a model's parameters and the updates of a call; then makes each call.

    Args:
      config: the `model` part of a config, the fields of `calls.Setting`, and
        `vocabulary_size`, `num_classes`, `num_subwords` and `label_smoothing`.
      batch_size, length: of the batch.
    """
    import torch

    torch.set_num_threads(num_usable())
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model, inputs, targets = make_model(config, batch_size, length)
    model, targets = model.to(device), targets.to(device)
    inputs = [x.to(device) for x in inputs]
    yield sum(weight.numel() for weight in model.parameters()), 1
    if config["mode"] == "inference":
        model.eval()
        while True:
            with torch.no_grad():
                model(*inputs).sum().item()
            yield
    smoothing = config["label_smoothing"] if config["task"] == "translation" else 0.0
    cross_entropy = torch.nn.CrossEntropyLoss(label_smoothing=smoothing)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    while True:
        optimizer.zero_grad()
        loss = cross_entropy(model(*inputs).flatten(0, -2), targets.flatten())
        loss.backward()
        optimizer.step()
        loss.item()
        yield


def make_model(config: dict, batch_size: int, length: int) -> tuple:
    """A model, its inputs, and targets; see `calls`."""
    import torch
    from torch import nn

    d, shape = config["hidden_dim"], (batch_size, length)
    sizes = {
        "nhead": config["num_heads"],
        "dim_feedforward": config["ffn_dim"],
        "dropout": config["dropout"],
        "batch_first": True,
        "norm_first": True,
    }
    num_layers = config["num_layers"]

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(config["vocabulary_size"], d, padding_idx=0)
            layer = nn.TransformerEncoderLayer(d, **sizes)
            # Nested tensors are of no use to batches without padding.
            self.encoder = nn.TransformerEncoder(
                layer, num_layers, nn.LayerNorm(d), enable_nested_tensor=False
            )
            self.norm = nn.LayerNorm(d)
            self.logits = nn.Linear(d, config["num_classes"])

        def forward(self, tokens):
            encoded = self.encoder(self.embedding(tokens) * d**0.5)
            return self.logits(self.norm(encoded.mean(dim=1)))

    class Translator(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(config["num_subwords"], d, padding_idx=0)
            self.transformer = nn.Transformer(
                d, num_encoder_layers=num_layers, num_decoder_layers=num_layers, **sizes
            )
            mask = nn.Transformer.generate_square_subsequent_mask(length)
            self.register_buffer("mask", mask)

        def forward(self, source, target):
            source, target = (self.embedding(x) * d**0.5 for x in (source, target))
            decoded = self.transformer(
                source, target, tgt_mask=self.mask, tgt_is_causal=True
            )
            return decoded @ self.embedding.weight.T

    if config["task"] == "translation":
        model = Translator()
        inputs = torch.randint(4, config["num_subwords"], (2, *shape)).unbind()
        targets = inputs[1]
    else:
        model = Classifier()
        inputs = (torch.randint(1, config["vocabulary_size"], shape),)
        targets = torch.zeros(batch_size, dtype=torch.long)
    for module in model.modules():
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = 0.0
        elif isinstance(
            module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer
        ):
            module.dropout.p = 0.0  # of the feed-forward's inner layer
    return model, inputs, targets
