"""Multi30k, captions of photographs (Elliott et al. 2016), English to German.

Not in the paper: 29,000 pairs, short enough for a laptop. French is
`--config.data.target_language=fr`.

    python train.py --config=configs/multi30k.py:VARIANT,laptop \\
        --workdir=runs/multi30k --config.data.dir=multi30k
    python evaluate.py --workdir=runs/multi30k

`paper`: the paper's translation settings, made smaller to fit the data: 4,000 steps.

`laptop`: the same in bfloat16. On two CPU cores (docs/runs.md) transevolve-fullff-2
reaches a BLEU of 33.6.
"""

from ml_collections import ConfigDict

from configs.shared import PAPER_ADAM, SMALL, make_config, reading, training, unset

PRESETS = {"paper": {}, "laptop": {"model.dtype": "mixed_bfloat16"}}


def get_config(argument: str = "") -> ConfigDict:
    """The settings of a variant, by default transevolve-fullff-2, and of a preset."""
    data = {
        "dataset": "parallel_text",
        "source": "files",
        "tfds_name": unset(str),
        **reading(),
        "source_language": "en",
        "target_language": "de",
        "train_name": "train",
        "validation_name": "val",
        "test_name": "test_2016_flickr",
        "tokenizer": "subwords",
        "vocab_file": unset(str),
        "vocab_size": 8000,
        "vocab_sentences": 2_000_000,
        "max_length": 64,
        "bucket_lengths": (12, 16, 20, 24, 32, 64),
        "shuffle_window": 1_000_000,
    }
    train = training(
        batch_size=64,
        batch_unit="sentences",
        steps=4000,
        validate_every=200,
        keep_checkpoints=10,
        learning_rate_max=0.4,
        warmup_steps=400,
        label_smoothing=0.1,
        **PAPER_ADAM,
    )
    decode = {
        "beam_size": 4,
        "length_penalty": 0.6,
        "extra_length": 50,
        "batch_size": 64,
    }
    return make_config(
        "multi30k",
        "translation",
        argument,
        "transevolve-fullff-2",
        PRESETS,
        model=SMALL,
        data=data,
        train=train,
        decode=decode,
    )
