"""The authors' code, run on Keras 2: weights, inputs and outputs as .npz files.

Each folder holds one run's arrays, in several files only to keep them small.
"""

from pathlib import Path

import numpy as np

from models import build_classifier, build_encoder_decoder

FOLDER = Path(__file__).resolve().parents[1] / "golden"
ENCODER, DECODER = "encoder/block_0", "decoder/block_0"


def load(name):
    """{name of array: array} of a golden run; weights as float32."""
    path = FOLDER / name
    files = sorted(path.glob("*.npz")) if path.is_dir() else [path]
    arrays = {}
    for file in files:
        arrays.update(np.load(file))
    return {
        key: value.astype("float32") if value.dtype == np.float16 else value
        for key, value in arrays.items()
    }


def build(golden, form):
    """The classifier of a golden run, in one of our forms, with its weights."""
    random = f"{ENCODER}/step_0/feed_forward/expand/left_frequencies" in golden
    config = _config(form, "rotation" if random else "dense")
    model = build_classifier(config, vocabulary_size=40, num_classes=4)
    _set_shared(golden, model, form)
    _set_norm(golden, model.norm, "head/norm")
    model.logits.kernel.assign(golden["head/kernel"])
    model.logits.bias.assign(golden["head/bias"])
    return model


def build_seq2seq(golden, form):
    """The encoder-decoder of a golden run, in one of our forms, with its weights."""
    model = build_encoder_decoder(_config(form, "dense"), vocabulary_size=40)
    _set_shared(golden, model, form)
    block = model.decoder.layers[0]
    for attention, projections, norms in (
        (block.attention, block.output_projections, block.attention_norms),
        (block.cross_attention, block.cross_projections, block.cross_norms),
    ):
        _set_attention(golden, attention, form, DECODER, attention.name)
        _set_depths(golden, projections, norms, DECODER, attention.name)
    _set_feed_forward(golden, block, DECODER)
    return model


def _config(form, feed_forward):
    return {
        "architecture": "transevolve",
        "attention": {"name": form},
        "hidden_dim": 128,
        "num_heads": 2,
        "ffn_dim": 512,
        "num_blocks": 1,
        "num_depths": 2,
        "feed_forward": feed_forward,
        "fidelity": "official",
        "dropout": 0.1,
    }


def _set_shared(golden, model, form):
    block = model.encoder.layers[0]
    model.embedding.embeddings.assign(golden["embedding"])
    _set_attention(golden, block.attention, form, ENCODER, "attention")
    _set_depths(
        golden, block.output_projections, block.attention_norms, ENCODER, "attention"
    )
    _set_feed_forward(golden, block, ENCODER)


def _set_depths(golden, projections, norms, block, name):
    for depth, (projection, norm) in enumerate(zip(projections, norms, strict=True)):
        step = f"{block}/step_{depth}/{name}"
        projection.kernel.assign(golden[f"{step}/output_kernel"])
        _set_norm(golden, norm, f"{step}/norm")


def _set_feed_forward(golden, block, name):
    for depth in range(2):
        step = f"{name}/step_{depth}/feed_forward"
        _set_norm(golden, block.feed_forward_norms[depth], f"{step}/norm")
        for part in ("expand", "contract"):
            layer = getattr(block.feed_forwards[depth], part)
            _set_dense(golden, layer, f"{step}/{part}")
    _set_norm(golden, block.output_norm, f"{name}/output_norm")


def _set_attention(golden, attention, form, block, name):
    # The authors' kernels are (output, input); columns from d on act on time.
    query = golden[f"{block}/{name}/query_kernel"].T
    key = golden[f"{block}/{name}/key_kernel"].T
    width = attention.hidden_dim
    attention.query_kernel.assign(query[:width])
    attention.query_time_kernel.assign(query[width:])
    attention.key_kernel.assign(key[:width])
    if form == "literal":
        attention.key_time_kernel.assign(key[width:])
    steps = [f"{block}/step_{depth}/{name}" for depth in range(2)]
    attention.time_coefficients.assign(
        np.stack([golden[f"{step}/time_coefficients"] for step in steps])
    )


def _set_norm(golden, layer, name):
    layer.gamma.assign(golden[f"{name}/gamma"])
    layer.beta.assign(golden[f"{name}/beta"])


def _set_dense(golden, layer, name):
    layer.bias.assign(golden[f"{name}/bias"])
    if f"{name}/left_frequencies" in golden:
        layer.set_frequencies(
            golden[f"{name}/left_frequencies"], golden[f"{name}/right_frequencies"]
        )
        layer.singular_values.assign(golden[f"{name}/singular_values"])
    else:
        layer.kernel.assign(golden[f"{name}/kernel"])
