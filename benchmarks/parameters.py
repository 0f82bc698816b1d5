"""Parameters of every variant on every task of the paper, in both forms."""

from collections.abc import Iterator

from configs.common import SIZES, VARIANTS
from data import DATASETS
from data.tokenizers import ByteTokenizer, SymbolTokenizer
from models import build_classifier, build_encoder_decoder
from reporting.published import TRANSLATION_PARAMETERS

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


def count() -> Iterator[dict]:
    """Yields a row for each task and variant.

    `parameters` is what the model trains, in the factored form; `parameters_literal`
    what it holds in the literal form, in which the paper counts; `published` is in
    millions. Both of the paper's WMT tasks have the same model.
    """
    for name in VARIANTS:
        yield {
            "benchmark": "params",
            "task": "wmt14",
            "model": name,
            "size": "base",
            **_forms(name, "base", _translation),
            "published": TRANSLATION_PARAMETERS[name],
        }
    for task, (dataset, vocabulary_size) in CLASSIFICATION.items():
        num_classes = len(DATASETS[dataset].CLASS_NAMES)

        def classifier(config, sizes=(vocabulary_size, num_classes)):
            return build_classifier(config, *sizes).count_params()

        for name in VARIANTS:
            yield {
                "benchmark": "params",
                "task": task,
                "model": name,
                "size": "small",
                **_forms(name, "small", classifier),
            }


def _forms(name, size, count_one):
    config = {**VARIANTS[name], **SIZES[size]}
    row = {"parameters": count_one(config)}
    if "form" in config:
        row["parameters_literal"] = count_one({**config, "form": "literal"})
    return row


def _translation(config):
    return build_encoder_decoder(config, TRANSLATION_VOCABULARY).count_params()
