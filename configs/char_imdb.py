"""IMDB sentiment classification in bytes (table 4)."""

from configs.common import classification_config


def get_config(variant: str = "transevolve-randomff-2"):
    """See `configs.common.VARIANTS` for the variants."""
    data = {
        "dataset": "imdb",
        "source": "tfds",
        "tokenizer": "bytes",
        "max_length": 4000,
        "bucket_lengths": (512, 768, 1024, 1536, 2048, 3072, 4000),
        "validation_examples": 2500,
    }
    return classification_config("char_imdb", variant, data, batch_size=48)
