"""Parameters of every variant on every task of the paper."""

from collections.abc import Iterator

import keras

from benchmarks.models import LITERAL, model_config
from configs.published import TRANSLATION_PARAMETERS
from data import DATASETS
from data.tokenizers.bytes import ByteTokenizer
from data.tokenizers.symbols import SymbolTokenizer
from models import (
    build_classifier,
    build_encoder_decoder,
    can_decode,
    count_parameters,
    variants,
)

BERT_UNCASED = 30_522
TRANSLATION_VOCABULARY = 32_000
# Task: the dataset, and the size of its vocabulary.
CLASSIFICATION = {
    "ag_news": ("ag_news", BERT_UNCASED),
    "imdb": ("imdb", BERT_UNCASED),
    "listops": (
        "listops",
        SymbolTokenizer(DATASETS["listops"].SYMBOLS).vocabulary_size,
    ),
    "char_imdb": ("imdb", ByteTokenizer.vocabulary_size),
}


def measure() -> Iterator[dict]:
    """Yields a row for each task and variant, but those that only differ in form.

    `parameters` is what the model trains; `parameters_literal`, where the variant has a
    literal form, what it holds in that one, in which the paper counts; `published` is
    in millions. Both of the paper's WMT tasks have the same model.
    """
    names = [name for name in variants() if not name.endswith(LITERAL)]
    for name in names:
        if not can_decode(model_config(name, "base")):
            continue
        row = {
            "benchmark": "params",
            "task": "wmt14",
            "model": name,
            "size": "base",
            **_forms(name, "base", _translation),
        }
        if name in TRANSLATION_PARAMETERS:
            row["published"] = TRANSLATION_PARAMETERS[name]
        yield row
    for task, (dataset, vocabulary_size) in CLASSIFICATION.items():
        num_classes = len(DATASETS[dataset].CLASS_NAMES)

        def classifier(config, sizes=(vocabulary_size, num_classes)):
            return count_parameters(build_classifier(config, *sizes))

        for name in names:
            yield {
                "benchmark": "params",
                "task": task,
                "model": name,
                "size": "small",
                **_forms(name, "small", classifier),
            }


def _forms(name, size, count_one):
    # Shapes are enough, and values take long to draw.
    with keras.StatelessScope(initialize_variables=False):
        row = {"parameters": count_one(model_config(name, size))}
        if name + LITERAL in variants():
            row["parameters_literal"] = count_one(model_config(name + LITERAL, size))
    return row


def _translation(config):
    model = build_encoder_decoder(config, TRANSLATION_VOCABULARY)
    return count_parameters(model)
