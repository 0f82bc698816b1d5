"""ListOps, sequences of 500 to 2,000 symbols (table 4)."""

from configs.common import classification_config


def get_config(variant: str = "transevolve-randomff-1"):
    """See `configs.common.VARIANTS` for the variants."""
    data = {
        "dataset": "listops",
        "source": "generate",
        "tokenizer": "symbols",
        "max_length": 2000,
        "bucket_lengths": (768, 1024, 1280, 1536, 2000),
        # What to generate: bounds on the length are exclusive.
        "min_length": 500,
        "max_depth": 10,
        "max_arguments": 10,
        "train_examples": 96000,
        "validation_examples": 2000,
        "test_examples": 2000,
        "generator_seed": 0,
    }
    return classification_config("listops", variant, data, batch_size=64)
