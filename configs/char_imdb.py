"""IMDB, positive and negative film reviews, in bytes (table 4).

    python train.py --config=configs/char_imdb.py:VARIANT[,laptop] \\
        --workdir=runs/char_imdb
    python evaluate.py --workdir=runs/char_imdb

`paper`: 15 epochs, up to 4,000 bytes. On a TPU v3-8 the authors report 65.3
(randomFF-1), 66.1 (randomFF-2), 65.7 (fullFF-1) and 65.6 % (fullFF-2), the mean of the
best of five.

`laptop`: 600 steps of width 64, reviews cut at 512 bytes. It shows that bytes train, no
more. On two CPU cores (docs/runs.md) transevolve-randomff-1 trains for 8 min 34 s and
reaches 59.6 % of 2,000 test reviews.
"""

from ml_collections import ConfigDict

from configs.shared import KERAS_ADAM, SMALL, make_config, reading, training, unset

PRESETS = {
    "paper": {},
    "laptop": {
        "model.hidden_dim": 64,
        "model.ffn_dim": 256,
        "data.source": "files",
        "data.validation_examples": 500,
        "data.max_length": 512,
        "data.bucket_lengths": (512,),
        "train.batch_size": 32,
        "train.steps": 600,
        "train.learning_rate_max": 0.1,
        "train.warmup_steps": 100,
    },
}


def get_config(argument: str = "") -> ConfigDict:
    """The settings of a variant, by default transevolve-randomff-2, and of a preset."""
    data = {
        "dataset": "imdb",
        "source": "tfds",
        **reading(),
        "validation_examples": 2500,
        "tokenizer": "bytes",
        "max_length": 4000,
        "bucket_lengths": (512, 768, 1024, 1536, 2048, 3072, 4000),
    }
    train = training(
        batch_size=48,
        epochs=15,
        steps=unset(int),
        learning_rate_max=0.5,
        warmup_steps=8000,
        **KERAS_ADAM,
    )
    return make_config(
        "char_imdb",
        "classification",
        argument,
        "transevolve-randomff-2",
        PRESETS,
        model=SMALL,
        data=data,
        train=train,
    )
