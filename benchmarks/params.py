"""Parameters of every variant on every task of the paper."""

from collections.abc import Iterator

import keras

from benchmarks.models import LITERAL, model_config
from configs import ag_news, char_imdb, imdb, listops, wmt14_en_de
from configs.published import TRANSLATION_PARAMETERS
from data import DATASETS
from data.tokenizers.bytes import ByteTokenizer
from data.tokenizers.symbols import SymbolTokenizer
from models import (
    build_classifier,
    build_encoder_decoder,
    can_decode,
    can_encode,
    count_parameters,
    variants,
)

BERT_UNCASED = 30_522
SUBWORDS = 32_000
# Task: its config, and the size of its vocabulary.
CLASSIFICATION = {
    "ag_news": (ag_news, BERT_UNCASED),
    "imdb": (imdb, BERT_UNCASED),
    "listops": (
        listops,
        SymbolTokenizer(DATASETS["listops"].SYMBOLS).vocabulary_size,
    ),
    "char_imdb": (char_imdb, ByteTokenizer.vocabulary_size),
}


def measure() -> Iterator[dict]:
    """Yields a row for each task and variant, but those that only differ in form.

    `parameters` is what the model trains; `parameters_literal`, where the variant has a
    literal form, what it holds in that one, in which the paper counts; `published` is
    in millions. Both of the paper's WMT tasks have the same model. Weights by position
    are those of the longest texts of the task.
    """
    names = [name for name in variants() if not name.endswith(LITERAL)]
    for name in names:
        if can_decode(model_config(name, "base")):
            data = wmt14_en_de.get_config().data
            row = _row("wmt14", name, "base", data, build_encoder_decoder, SUBWORDS)
            if name in TRANSLATION_PARAMETERS:
                row["published"] = TRANSLATION_PARAMETERS[name]
            yield row
    for task, (config, vocabulary_size) in CLASSIFICATION.items():
        data = config.get_config().data
        sizes = vocabulary_size, len(DATASETS[data.dataset].CLASS_NAMES)
        for name in names:
            if can_encode(model_config(name, "small")):
                yield _row(task, name, "small", data, build_classifier, *sizes)


def _row(task, name, size, data, build, *sizes):
    def count(name):
        config, length = model_config(name, size), data.max_length
        return count_parameters(build(config, *sizes, max_length=length))

    row = {"benchmark": "params", "task": task, "model": name, "size": size}
    # Shapes are enough, and values take long to draw.
    with keras.StatelessScope(initialize_variables=False):
        row["parameters"] = count(name)
        if name + LITERAL in variants():
            row["parameters_literal"] = count(name + LITERAL)
    # Keras remembers them, and would draw them all when the next such scope ends.
    keras.utils.clear_session(free_memory=False)
    return row
