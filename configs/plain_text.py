"""Language modelling of plain text, a document a line.

    python train.py --config=configs/plain_text.py:VARIANT[,laptop] \\
        --config.data.dir=FOLDER --workdir=runs/text
    python evaluate.py --workdir=runs/text

FOLDER has the files train.txt, valid.txt and test.txt, or their .gz.

`small`: width 256, segments of 256 words, the 50,000 most frequent.

`laptop`: width 128, segments of 128 words, the 20,000 most frequent, an adaptive
softmax, in bfloat16. Its updates take 7 million words, in 20 to 30 minutes of one core.
A softmax in TransEvolve learns better with a rate of 0.002 (docs/results/language.md).
"""

from ml_collections import ConfigDict

from configs.shared import PAPER_ADAM, SMALL, make_config, segments, training, unset

PRESETS = {
    "small": {},
    "laptop": {
        "model.hidden_dim": 128,
        "model.ffn_dim": 512,
        # A text of some million words is seen once, and not learned by heart.
        "model.dropout": 0.0,
        "model.dtype": "mixed_bfloat16",
        "model.adaptive_cutoffs": (2000, 8000),
        "data.vocab_size": 20_000,
        "data.segment_length": 128,
        "train.batch_size": 16,
        "train.steps": 3400,
        "train.validate_every": 850,
        "train.schedule": "cosine",
        "train.learning_rate_max": 0.005,
        "train.warmup_steps": 400,
        "train.keep_checkpoints": 1,
    },
}


def get_config(argument: str = "") -> ConfigDict:
    """The settings of a variant, by default transevolve-fullff-1, and of a preset."""
    data = {
        "dataset": "plain_text",
        "source": "files",
        "train_name": "train.txt",
        "validation_name": "valid.txt",
        "test_name": "test.txt",
        **segments(),
    }
    train = training(
        batch_size=96,
        epochs=unset(int),
        steps=100_000,
        validate_every=2000,
        keep_checkpoints=10,
        learning_rate_max=0.5,
        warmup_steps=8000,
        **PAPER_ADAM,
    )
    model = {
        **SMALL,
        "adaptive_cutoffs": unset(tuple),
        "initial_deviation": unset(float),
    }
    decode = {
        "sliding_window": False,
        "segment_length": unset(int),
        "continuation_length": 100,
        "temperature": 1.0,
        "top_k": unset(int),
        "top_p": unset(float),
        "seed": unset(int),
        "beam_size": unset(int),
        "batch_size": 64,
    }
    return make_config(
        "plain_text",
        "language_modelling",
        argument,
        "transevolve-fullff-1",
        PRESETS,
        model=model,
        data=data,
        train=train,
        decode=decode,
    )
