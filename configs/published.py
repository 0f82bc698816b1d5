"""The numbers that the paper prints, as data."""

# Table 2: parameters in millions, of the encoder-decoder, 32,000 word pieces.
TRANSLATION_PARAMETERS = {
    "transformer": 65,
    "transevolve-randomff-1": 27,
    "transevolve-randomff-2": 33,
    "transevolve-fullff-1": 53,
    "transevolve-fullff-2": 59,
}

# Table 4: training speed over the Transformer's on char-IMDB, by length.
SPEED = {
    "transevolve-randomff-1": {1000: 1.2, 2000: 1.3, 3000: 1.2, 4000: 1.2},
    "transevolve-randomff-2": {1000: 1.1, 2000: 1.2, 3000: 1.2, 4000: 1.1},
    "transevolve-fullff-1": {1000: 1.2, 2000: 1.2, 3000: 1.2, 4000: 1.1},
    "transevolve-fullff-2": {1000: 1.1, 2000: 1.1, 3000: 1.0, 4000: 1.1},
}

# Tables 3 and 4: test accuracy in percent, mean of the best of five runs.
ACCURACY = {
    "ag_news": {
        "transformer": 88.8,
        "transevolve-randomff-1": 90.6,
        "transevolve-randomff-2": 90.8,
        "transevolve-fullff-1": 91.1,
        "transevolve-fullff-2": 90.5,
    },
    "imdb": {
        "transformer": 81.3,
        "transevolve-randomff-1": 87.3,
        "transevolve-randomff-2": 87.5,
        "transevolve-fullff-1": 86.8,
        "transevolve-fullff-2": 87.6,
    },
    "listops": {
        "transformer": 36.4,
        "transevolve-randomff-1": 43.2,
        "transevolve-randomff-2": 39.1,
        "transevolve-fullff-1": 42.2,
        "transevolve-fullff-2": 37.8,
    },
    "char_imdb": {
        "transformer": 64.3,
        "transevolve-randomff-1": 65.3,
        "transevolve-randomff-2": 66.1,
        "transevolve-fullff-1": 65.7,
        "transevolve-fullff-2": 65.6,
    },
}

# Table 2: BLEU by languages and test set, averaged over the last 10 checkpoints.
BLEU = {
    ("en", "de"): {
        "newstest2013": {
            "transformer": 25.8,
            "transevolve-randomff-1": 22.5,
            "transevolve-randomff-2": 24.2,
            "transevolve-fullff-1": 25.3,
            "transevolve-fullff-2": 26.2,
        },
        "newstest2014": {
            "transformer": 27.3,
            "transevolve-randomff-1": 23.1,
            "transevolve-randomff-2": 23.8,
            "transevolve-fullff-1": 25.8,
            "transevolve-fullff-2": 27.2,
        },
    },
    ("en", "fr"): {
        "newstest2014": {
            "transformer": 38.1,
            "transevolve-randomff-1": 32.6,
            "transevolve-randomff-2": 33.4,
            "transevolve-fullff-1": 38.0,
            "transevolve-fullff-2": 39.5,
        },
    },
}


def published_bleu(
    languages: tuple[str, str], test_set: str, variant: str
) -> float | None:
    """The paper's BLEU of a variant on a test set, if any.

    Args:
      languages: of the source and the target, e.g. ("en", "de").
      test_set: its name, e.g. "newstest2014".
      variant: its name, of `models.variants`.
    """
    return BLEU.get(languages, {}).get(test_set, {}).get(variant)
