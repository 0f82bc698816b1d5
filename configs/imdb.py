"""IMDB, positive and negative film reviews, in BERT's word pieces (table 3).

    python train.py --config=configs/imdb.py:VARIANT[,laptop] --workdir=runs/imdb
    python evaluate.py --workdir=runs/imdb

`paper`: 15 epochs. On a TPU v3-8 the authors report 87.3 (randomFF-1), 87.5
(randomFF-2), 86.8 (fullFF-1) and 87.6 % (fullFF-2), the mean of the best of five runs.
docs/results/imdb.md has ten runs of ours.

`laptop`: one epoch, reviews cut at 256 word pieces. On two CPU cores (docs/runs.md)
transevolve-fullff-1 trains for 20 min and reaches 84.35 % of 2,000 test reviews.
"""

from ml_collections import ConfigDict

from configs.shared import KERAS_ADAM, SMALL, make_config, reading, training, unset

PRESETS = {
    "paper": {},
    "laptop": {
        "model.dropout": 0.2,
        "data.source": "files",
        "data.validation_examples": 1000,
        "data.max_length": 256,
        "data.bucket_lengths": (64, 96, 128, 160, 192, 224, 256),
        "train.batch_size": 32,
        "train.epochs": 1,
        "train.learning_rate_max": 0.14,
        "train.warmup_steps": 300,
    },
}


def get_config(argument: str = "") -> ConfigDict:
    """The settings of a variant, by default transevolve-fullff-2, and of a preset."""
    data = {
        "dataset": "imdb",
        "source": "tfds",
        **reading(),
        "validation_examples": 2500,
        "tokenizer": "wordpiece",
        "vocab": "bert",
        "vocab_size": 16000,
        "vocab_file": unset(str),
        "max_length": 512,
        "bucket_lengths": (64, 128, 192, 256, 384, 512),
    }
    train = training(
        batch_size=80,
        epochs=15,
        steps=unset(int),
        learning_rate_max=0.5,
        warmup_steps=8000,
        **KERAS_ADAM,
    )
    return make_config(
        "imdb",
        "classification",
        argument,
        "transevolve-fullff-2",
        PRESETS,
        model=SMALL,
        data=data,
        train=train,
    )
