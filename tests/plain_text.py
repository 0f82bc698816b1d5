"""A small plain text: lines that count, each from a number of its own."""

import random

from configs import plain_text

DIGITS = [
    *("zero", "one", "two", "three", "four"),
    *("five", "six", "seven", "eight", "nine"),
]
CHANGES = {
    "model.dtype": "float32",
    "model.hidden_dim": 32,
    "model.num_heads": 4,
    "model.ffn_dim": 64,
    "model.adaptive_cutoffs": (),
    "data.vocab_size": 50,
    "data.segment_length": 12,
    "train.batch_size": 8,
    "train.steps": 60,
    "train.validate_every": 30,
    "train.log_every": 10,
    "train.learning_rate_max": 0.03,
    "train.warmup_steps": 20,
    "decode.continuation_length": 8,
}


def lines(count, seed):
    random.seed(seed)
    starts = (random.randrange(10) for _ in range(count))
    return [
        " ".join(DIGITS[(start + i) % 10] for i in range(random.randrange(4, 9)))
        for start in starts
    ]


def write(folder):
    for seed, (name, count) in enumerate((("train", 200), ("valid", 20), ("test", 20))):
        text = "".join(line + "\n" for line in lines(count, seed))
        (folder / f"{name}.txt").write_text(text)
    return folder


def config(folder, variant="transevolve-fullff-1", **changes):
    made = plain_text.get_config(f"{variant},laptop")
    places = {"data.dir": str(folder), "data.cache_dir": str(folder / "cache")}
    made.update_from_flattened_dict({**CHANGES, **places, **changes})
    return made
