"""WMT 2014, English to German (table 2).

    python train.py --config=configs/wmt14_en_de.py:VARIANT --workdir=runs/wmt14_en_de
    python evaluate.py --workdir=runs/wmt14_en_de --average_checkpoints=10

`paper`: 300,000 steps of 512 pairs. On a TPU v3-8 the authors report a BLEU on
newstest2014 of 23.1 (randomFF-1), 23.8 (randomFF-2), 25.8 (fullFF-1) and 27.2
(fullFF-2).
"""

from ml_collections import ConfigDict

from configs.shared import BASE, PAPER_ADAM, make_config, reading, training, unset

PRESETS = {"paper": {}}


def get_config(argument: str = "") -> ConfigDict:
    """The settings of a variant, by default transevolve-fullff-2, and of a preset."""
    return from_english("de", argument, extra_length=50)


def from_english(language: str, argument: str, extra_length: int) -> ConfigDict:
    """The settings of German and of French, which differ in `extra_length` alone."""
    data = {
        "dataset": "parallel_text",
        "source": "tfds",
        "tfds_name": f"wmt14_translate/{language}-en",
        **reading(),
        "source_language": "en",
        "target_language": language,
        "train_name": "train",
        "validation_name": "newstest2013",
        "test_name": "newstest2014",
        "tokenizer": "subwords",
        "vocab_file": unset(str),
        "vocab_size": 32_000,
        "vocab_sentences": 2_000_000,
        "max_length": 256,
        "bucket_lengths": (16, 32, 48, 64, 96, 128, 192, 256),
        "shuffle_window": 1_000_000,
    }
    train = training(
        batch_size=512,
        batch_unit="sentences",
        steps=300_000,
        validate_every=2000,
        keep_checkpoints=10,
        learning_rate_max=1.5,
        warmup_steps=16_000,
        label_smoothing=0.1,
        **PAPER_ADAM,
    )
    decode = {
        "beam_size": 4,
        "length_penalty": 0.6,
        "extra_length": extra_length,
        "batch_size": 64,
    }
    return make_config(
        f"wmt14_en_{language}",
        "translation",
        argument,
        "transevolve-fullff-2",
        PRESETS,
        model=BASE,
        data=data,
        train=train,
        decode=decode,
    )
