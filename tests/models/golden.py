"""The authors' code, run on Keras 2: weights, inputs and outputs as .npz files.

Each folder holds one run's arrays, in several files only to keep them small.
"""

from pathlib import Path

import numpy as np

from models import build_classifier

FOLDER = Path(__file__).resolve().parents[1] / "golden"
ENCODER = "encoder/block_0"


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
    config = {
        "encoder": "transevolve",
        "hidden_dim": 128,
        "num_heads": 2,
        "ffn_dim": 512,
        "num_blocks": 1,
        "num_depths": 2,
        "feed_forward": "rotation" if random else "dense",
        "form": form,
        "fidelity": "official",
        "dropout": 0.1,
    }
    model = build_classifier(config, vocabulary_size=40, num_classes=4)
    block = model.encoder.blocks[0]
    model.embedding.embeddings.assign(golden["embedding"])
    _set_attention(golden, block.attention, form)
    for depth in range(2):
        step = f"{ENCODER}/step_{depth}"
        block.output_projections[depth].kernel.assign(
            golden[f"{step}/attention/output_kernel"]
        )
        _set_norm(golden, block.attention_norms[depth], f"{step}/attention/norm")
        _set_norm(golden, block.feed_forward_norms[depth], f"{step}/feed_forward/norm")
        for name in ("expand", "contract"):
            layer = getattr(block.feed_forwards[depth], name)
            _set_dense(golden, layer, f"{step}/feed_forward/{name}", random)
    _set_norm(golden, block.output_norm, f"{ENCODER}/output_norm")
    _set_norm(golden, model.norm, "head/norm")
    model.logits.kernel.assign(golden["head/kernel"])
    model.logits.bias.assign(golden["head/bias"])
    return model


def _set_attention(golden, attention, form):
    # The authors' kernels are (output, input); columns from d on act on time.
    query = golden[f"{ENCODER}/attention/query_kernel"].T
    key = golden[f"{ENCODER}/attention/key_kernel"].T
    width = attention.hidden_dim
    attention.query_kernel.assign(query[:width])
    attention.query_time_kernel.assign(query[width:])
    attention.key_kernel.assign(key[:width])
    if form == "literal":
        attention.key_time_kernel.assign(key[width:])
    names = [f"{ENCODER}/step_{i}/attention/time_coefficients" for i in range(2)]
    attention.time_coefficients.assign(np.stack([golden[name] for name in names]))


def _set_norm(golden, layer, name):
    layer.gamma.assign(golden[f"{name}/gamma"])
    layer.beta.assign(golden[f"{name}/beta"])


def _set_dense(golden, layer, name, random):
    layer.bias.assign(golden[f"{name}/bias"])
    if random:
        layer.set_frequencies(
            golden[f"{name}/left_frequencies"], golden[f"{name}/right_frequencies"]
        )
        layer.singular_values.assign(golden[f"{name}/singular_values"])
    else:
        layer.kernel.assign(golden[f"{name}/kernel"])
