"""ListOps, the value of nested expressions of 500 to 2,000 symbols (table 4).

    python train.py --config=configs/listops.py:VARIANT[,laptop] --workdir=runs/listops
    python evaluate.py --workdir=runs/listops

`paper`: 15 epochs on 96,000 expressions, which are generated. On a TPU v3-8 the authors
report 43.2 (randomFF-1), 39.1 (randomFF-2), 42.2 (fullFF-1) and 37.8 % (fullFF-2), the
mean of the best of five runs.

`laptop`: two epochs on 16,000 expressions of 6 to 39 symbols, width 128.
docs/runs.md has what it reaches.
"""

from ml_collections import ConfigDict

from configs.shared import KERAS_ADAM, SMALL, make_config, reading, training, unset

PRESETS = {
    "paper": {},
    "laptop": {
        "model.hidden_dim": 128,
        "model.ffn_dim": 512,
        "data.min_length": 5,
        "data.max_length": 40,
        "data.bucket_lengths": (16, 24, 32, 40),
        "data.max_depth": 4,
        "data.max_arguments": 5,
        "data.train_examples": 16000,
        "data.validation_examples": 1000,
        "data.test_examples": 2000,
        "train.epochs": 2,
        "train.learning_rate_max": 0.2,
        "train.warmup_steps": 100,
        "train.log_every": 50,
    },
}


def get_config(argument: str = "") -> ConfigDict:
    """The settings of a variant, by default transevolve-randomff-1, and of a preset."""
    data = {
        "dataset": "listops",
        "source": "generate",
        **reading(),
        "tokenizer": "symbols",
        "max_length": 2000,
        "bucket_lengths": (768, 1024, 1280, 1536, 2000),
        # What to generate. Bounds on the length are exclusive.
        "min_length": 500,
        "max_depth": 10,
        "max_arguments": 10,
        "train_examples": 96000,
        "validation_examples": 2000,
        "test_examples": 2000,
        "generator_seed": 0,
    }
    train = training(
        batch_size=64,
        epochs=15,
        steps=unset(int),
        learning_rate_max=0.5,
        warmup_steps=8000,
        **KERAS_ADAM,
    )
    return make_config(
        "listops",
        "classification",
        argument,
        "transevolve-randomff-1",
        PRESETS,
        model=SMALL,
        data=data,
        train=train,
    )
