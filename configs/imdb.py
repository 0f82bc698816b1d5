"""IMDB sentiment classification in word pieces (table 3)."""

from configs.common import classification_config, word_piece_data


def get_config(variant: str = "transevolve-fullff-2"):
    """See `configs.common.VARIANTS` for the variants."""
    data = word_piece_data("imdb", validation_examples=2500)
    return classification_config("imdb", variant, data, batch_size=80)
