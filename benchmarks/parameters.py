"""Parameters of every variant on every task of the paper, in both forms."""

from collections.abc import Iterator

from configs.common import SIZES, VARIANTS
from data import DATASETS
from data.tokenizers import ByteTokenizer, SymbolTokenizer
from models import build_classifier
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
    """Parameters of the encoder-decoder, whose output layer is the embedding.

    Its decoder is the encoder with as many attentions again, over the encoder's
    output, each with its normalisation and output projection.
    """
    model = build_classifier(config, TRANSLATION_VOCABULARY, num_classes=1)
    encoder = model.encoder
    if config["encoder"] == "transformer":
        cross_attention = [
            layer
            for block in encoder.layers
            for layer in (
                block.attention_norm,
                block.query_key_value,
                block.output_projection,
            )
        ]
    else:
        cross_attention = [
            layer
            for block in encoder.blocks
            for layer in (
                block.attention,
                *block.attention_norms,
                *block.output_projections,
            )
        ]
    counts = [layer.count_params() for layer in cross_attention]
    return model.embedding.count_params() + 2 * encoder.count_params() + sum(counts)
