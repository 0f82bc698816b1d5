"""AG News topic classification (table 3)."""

from configs.common import classification_config, word_piece_data


def get_config(variant: str = "transevolve-fullff-1"):
    """See `configs.common.VARIANTS` for the variants."""
    data = word_piece_data("ag_news", validation_examples=6000)
    return classification_config("ag_news", variant, data, batch_size=80)
