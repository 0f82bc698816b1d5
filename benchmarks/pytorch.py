"""PyTorch's own Transformer as an outside peer, in a process of its own.

Both libraries in one process would share its threads. It drops the outputs of
sublayers alone, and neither attention weights nor the inner layer of the feed-forward,
as no model here does.
"""

import os
import sys
from pathlib import Path

from benchmarks import alone, peer_process
from common.processors import num_usable

LABEL_SMOOTHING = 0.1
ROOT = Path(__file__).resolve().parents[1]


def start(config: dict, batch_size: int, length: int) -> alone.Peer:
    """Starts a process with a model, an optimizer and a batch.

    It never imports TensorFlow, beside which PyTorch may crash.

    Args:
      config: the `model` part of a config, the fields of `calls.Setting`, and
        `vocabulary_size`, `num_classes` and `num_subwords`.
      batch_size, length: of the batch.

    Raises:
      ProcessEnded: if that ends, here or in a call.
    """
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return alone.start(
        f"pytorch at {length} tokens",
        [sys.executable, "-P", "-m", "benchmarks.pytorch"],
        [config, batch_size, length],
        env={**os.environ, "PYTHONPATH": path},
    )


def _prepare(config, batch_size, length):
    """See `peer_process.serve`."""
    import torch

    torch.set_num_threads(num_usable())
    torch.manual_seed(0)
    model, inputs, targets = _model(config, batch_size, length)
    parameters = sum(weight.numel() for weight in model.parameters())
    if config["mode"] == "train":
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
        cross_entropy = torch.nn.CrossEntropyLoss(
            label_smoothing=LABEL_SMOOTHING if config["task"] == "translation" else 0.0
        )

        def step():
            optimizer.zero_grad()
            loss = cross_entropy(model(*inputs).flatten(0, -2), targets.flatten())
            loss.backward()
            optimizer.step()
            return loss.item()

    else:
        model.eval()

        def step():
            with torch.no_grad():
                return model(*inputs).sum().item()

    return step, parameters, lambda: None


def _model(config, batch_size, length):
    """A model, its inputs, and targets."""
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
    layers = config["num_layers"]
    layer_classes = (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(config["vocabulary_size"], d, padding_idx=0)
            layer = nn.TransformerEncoderLayer(d, **sizes)
            # Nested tensors are of no use to batches without padding.
            self.encoder = nn.TransformerEncoder(
                layer, layers, nn.LayerNorm(d), enable_nested_tensor=False
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
                d, num_encoder_layers=layers, num_decoder_layers=layers, **sizes
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
        elif isinstance(module, layer_classes):
            module.dropout.p = 0.0  # of the feed-forward's inner layer
    return model, inputs, targets


if __name__ == "__main__":
    peer_process.serve(_prepare)
