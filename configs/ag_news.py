"""AG News, four topics of news, in BERT's word pieces (table 3).

    python train.py --config=configs/ag_news.py:VARIANT[,laptop] --workdir=runs/ag_news
    python evaluate.py --workdir=runs/ag_news

`paper`: 15 epochs. On a TPU v3-8 the authors report 90.6 (randomFF-1), 90.8
(randomFF-2), 91.1 (fullFF-1) and 90.5 % (fullFF-2), the mean of the best of five runs.

`laptop`: five epochs on 6,000 of 6,600 articles in `ag_news_csv/`
(`--config.data.dir`). On two CPU cores (docs/runs.md) transevolve-fullff-1 took
7 min 38 s and reached 83.8 %.
"""

from ml_collections import ConfigDict

from configs.shared import KERAS_ADAM, SMALL, make_config, reading, training, unset

PRESETS = {
    "paper": {},
    "laptop": {
        "model.dropout": 0.3,
        "data.source": "files",
        "data.validation_examples": 600,
        "data.max_length": 128,
        "data.bucket_lengths": (32, 48, 64, 96, 128),
        "train.batch_size": 32,
        "train.epochs": 5,
        "train.learning_rate_max": 0.16,
        "train.warmup_steps": 400,
    },
}


def get_config(argument: str = "") -> ConfigDict:
    """The settings of a variant, by default transevolve-fullff-1, and of a preset."""
    data = {
        "dataset": "ag_news",
        "source": "tfds",
        **reading(),
        "validation_examples": 6000,
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
        "ag_news",
        "classification",
        argument,
        "transevolve-fullff-1",
        PRESETS,
        model=SMALL,
        data=data,
        train=train,
    )
