"""Latency and throughput of exported models."""

import functools
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from ml_collections import ConfigDict

from benchmarks import models
from benchmarks.calls import Setting, check
from benchmarks.timing import interleave, speedup
from data.tokenizers.bytes import ByteTokenizer
from data.tokenizers.subwords import END, SubwordTokenizer, learn
from decoding.translation import Translator, longest_source
from export.classifier import TextClassifier
from export.text_model import TextModel
from export.translator import TextTranslator
from models import build_encoder_decoder
from models.convert import fold_rotations

# Sentences that a translator searches together.
SEARCHED = 64
# Of a batch of the evaluation that an export is compared with.
EVALUATED_TOKENS = 16_384
# Of random words, from which subwords are learned.
NUM_LINES = 20_000


def measure(
    names: list[str],
    lengths: list[int],
    size: str = "small",
    task: str = "classification",
    batch_size: int = 64,
    rounds: int = 5,
) -> Iterator[dict]:
    """Times exported models by turns; yields a row for each model and length.

    A classifier reads random bytes. A translator reads about `length` random subwords
    and writes as many, since nothing ends its search before. Neither is trained. A row
    has the seconds that loading takes and the bytes on disk; of a single text the
    median and the 99th percentile of its latency, and how many times the Transformer's
    and that of `run.predict` it is; of a batch how many texts are answered in a second,
    and how many times the time of evaluation they take.

    Args:
      names: of variants.
      lengths: tokens of a text.
      size: a key of `models.SIZES`.
      task: "classification" or "translation".
      batch_size: texts that are answered together.
      rounds: that count; of batches a twentieth as many, at least 3. Of fewer than 100
        the 99th percentile is about the longest.

    Raises:
      UserError: if a model is unknown, or has no decoder to translate with.
    """
    check(names, Setting(size=size, task=task))
    with tempfile.TemporaryDirectory() as folder:
        served, one, many = {}, {}, {}
        for name in names:
            model = SERVED[task](name, size, max(lengths))
            served[name] = model, Export(model.text_model, Path(folder, name))
        for length in lengths:
            for name, (model, export) in served.items():
                generator = random.Random(0)
                text, texts = (
                    model.texts(generator, length, n) for n in (1, batch_size)
                )
                one[name] = export.answering(text)
                one[name, "predict"] = functools.partial(
                    model.text_model.outputs, "serving_default", text
                )
                many[name] = export.answering(texts)
                many[name, "evaluation"] = model.evaluating(texts)
            singly = interleave(one, rounds, f"one text of {length}")
            title = f"{batch_size} texts of {length}"
            together = interleave(many, max(rounds // 20, 3), title)
            for name, (_, export) in served.items():
                row = {
                    "benchmark": "serve",
                    "model": name,
                    "task": task,
                    "size": size,
                    "length": length,
                    "batch": batch_size,
                    "load_seconds": round(export.load_seconds, 2),
                    "disk_mb": round(export.num_bytes / 1e6, 1),
                    "p50_ms": round(1000 * statistics.median(singly[name]), 2),
                    "p99_ms": round(1000 * float(np.percentile(singly[name], 99)), 2),
                }
                # A ratio of times is the speed of what stands beside over this model's.
                if models.BASELINE in names:
                    ratio = speedup(singly, models.BASELINE, name)
                    row["latency_to_transformer"] = round(ratio, 3)
                ratio = speedup(singly, (name, "predict"), name)
                row["latency_to_predict"] = round(ratio, 3)
                rate = batch_size / statistics.median(together[name])
                row["texts_per_second"] = round(rate, 2)
                ratio = speedup(together, (name, "evaluation"), name)
                row["time_to_evaluation"] = round(ratio, 3)
                yield row


class Export:
    """A model's export in a new folder, loaded."""

    def __init__(self, text_model, folder):
        text_model.save(folder)
        files = [path for path in folder.rglob("*") if path.is_file()]
        self.num_bytes = sum(path.stat().st_size for path in files)
        start = time.perf_counter()
        self._loaded = tf.saved_model.load(str(folder))
        self.load_seconds = time.perf_counter() - start

    def answering(self, texts):
        texts = tf.constant(texts)
        answer = self._loaded.signatures["serving_default"]
        return lambda: [value.numpy() for value in answer(text=texts).values()]


class Served(NamedTuple):
    """A model that nobody has trained.

    Attributes:
      text_model: `export.text_model.TextModel`.
      texts: function of a random generator, a length in tokens and a count of texts.
      evaluating: function of texts, which makes the call that evaluates them.
    """

    text_model: TextModel
    texts: Callable
    evaluating: Callable


def _classifier(name, size, longest):
    model, tokenizer = (
        fold_rotations(models.build(name, size, length=longest)),
        ByteTokenizer(),
    )
    classes = [str(i) for i in range(models.NUM_CLASSES)]
    config = models.model_config(name, size)

    def evaluating(texts):
        rows = tokenizer(tf.constant(texts)).to_tensor()
        size = max(1, EVALUATED_TOKENS // rows.shape[1])
        parts = [rows[i : i + size] for i in range(0, len(texts), size)]
        step = tf.function(lambda rows: model(rows, training=False))
        return lambda: [step(part).numpy() for part in parts]

    text_model = TextClassifier(model, tokenizer, classes, longest, config)
    return Served(text_model, _letters, evaluating)


def _letters(generator, length, count):
    letters = "abcdefghijklmnopqrstuvwxyz "
    return ["".join(generator.choices(letters, k=length)) for _ in range(count)]


def _translator(name, size, longest):
    tokenizer = _tokenizer()
    config = models.model_config(name, size)
    model = fold_rotations(build_encoder_decoder(config, tokenizer.vocabulary_size))
    settings = ConfigDict({"beam_size": 4, "extra_length": 0, "batch_size": SEARCHED})
    settings.length_penalty = 10.0  # so large that a search goes on to the longest
    # Neither the export nor the evaluation may cut a text.
    longest = longest_source((longest,))
    text_model = TextTranslator(model, tokenizer, settings, longest, config)

    def texts(generator, length, count):
        # Less the end, which is a token too.
        vocabulary = range(END + 1, tokenizer.vocabulary_size)
        ids = [generator.choices(vocabulary, k=length - 1) for _ in range(count)]
        lines = tokenizer.decode(tf.ragged.constant(ids, tf.int32))
        return [line.decode() for line in lines.numpy()]

    def evaluating(texts):
        length = text_model.encode(tf.constant(texts))["ids"].shape[1]
        changed = settings.copy_and_resolve_references()
        changed.batch_size = min(SEARCHED, max(1, EVALUATED_TOKENS // length))
        strategy = tf.distribute.get_strategy()
        translator = Translator(model, tokenizer, changed, (length,), strategy)
        return lambda: translator.translate(texts)

    return Served(text_model, texts, evaluating)


SERVED = {"classification": _classifier, "translation": _translator}


@functools.cache
def _tokenizer():
    """Subwords of words that do not exist."""
    letters = random.Random(0)
    words = [
        "".join(letters.choices("abcdefghijklmnopqrstuvwxyz", k=6))
        for _ in range(models.NUM_SUBWORDS)
    ]
    lines = [" ".join(letters.choices(words, k=20)) for _ in range(NUM_LINES)]
    lines = [line.encode() for line in lines]
    return SubwordTokenizer(learn(lines, models.NUM_SUBWORDS))
