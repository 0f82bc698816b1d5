"""A small translation task: numbers from English to German."""

import gzip
import random

from configs import multi30k
from tests.scripts import for_variant, script

WORDS = {
    "one": "eins",
    "two": "zwei",
    "three": "drei",
    "four": "vier",
    "five": "fünf",
    "six": "sechs",
}
FLAGS = {
    "data.vocab_size": 300,
    "data.max_length": 24,
    "data.bucket_lengths": "(12,24)",
    "model.hidden_dim": 64,
    "model.ffn_dim": 128,
    "model.num_heads": 4,
    "model.num_depths": 1,
    "model.dropout": 0.1,
    "train.batch_size": 32,
    "train.steps": 300,
    "train.learning_rate_max": 0.5,
    "train.warmup_steps": 100,
    "train.validate_every": 100,
    "train.keep_checkpoints": 2,
    "train.log_every": 50,
    "decode.batch_size": 8,
    "decode.extra_length": 6,
}


def write(folder):
    generator = random.Random(0)
    for name, count in (("train", 600), ("val", 20), ("test_2016_flickr", 20)):
        sources = [generator.choices(list(WORDS), k=1 + i % 5) for i in range(count)]
        texts = {
            "en": [" ".join(words) for words in sources],
            "de": [" ".join(WORDS[word] for word in words) for words in sources],
        }
        for language, lines in texts.items():
            with gzip.open(folder / f"{name}.{language}.gz", "wt") as file:
                file.write("".join(line + "\n" for line in lines))


def train(workdir, data, variant="transevolve-fullff-1", **changes):
    return script("train.py", *train_arguments(workdir, data, variant, **changes))


def train_arguments(workdir, data, variant="transevolve-fullff-1", **changes):
    flags = {
        **for_variant(FLAGS, variant),
        "data.dir": data,
        "data.cache_dir": data / "cache",
        **changes,
    }
    return [
        f"--config=configs/multi30k.py:{variant}",
        f"--workdir={workdir}",
        *(f"--config.{name}={value}" for name, value in flags.items()),
    ]


def config(data, variant="transevolve-fullff-1", **changes):
    """The config that `train` makes by flags."""
    config = multi30k.get_config(variant)
    config.update_from_flattened_dict(
        {
            **for_variant(FLAGS, variant),
            "data.bucket_lengths": (12, 24),
            "data.dir": str(data),
            "data.cache_dir": str(data / "cache"),
            **changes,
        }
    )
    return config
