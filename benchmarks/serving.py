"""Latency and throughput of exported models."""

import functools
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf
from ml_collections import ConfigDict

from benchmarks import models
from benchmarks.timing import interleave, speedup
from data.tokenizers.bytes import ByteTokenizer
from data.tokenizers.subwords import END, SubwordTokenizer, learn
from decoding.translation import Translator, longest_source
from export.classifier import TextClassifier
from export.translator import TextTranslator
from models import build_encoder_decoder
from models.convert import fold_rotations

# Sentences that a translator searches together.
SEARCHED = 64
# Of a batch of the evaluation that an export is compared with.
EVALUATED_TOKENS = 16_384


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
      UserError: if a model is unknown, or has no decoder that is wanted.
    """
    served = SERVED[task]
    models.check(names, decoding=task == "translation")
    with tempfile.TemporaryDirectory() as folder:
        each = {name: served(name, size, max(lengths), Path(folder)) for name in names}
        for length in lengths:
            one, many = {}, {}
            for name, model in each.items():
                text, texts = model.texts(length, 1), model.texts(length, batch_size)
                one[name] = model.exported(text)
                one[name, "predict"] = model.predicting(text)
                many[name] = model.exported(texts)
                many[name, "evaluation"] = model.evaluating(texts)
            one = interleave(one, rounds, f"one text of {length}")
            title = f"{batch_size} texts of {length}"
            many = interleave(many, max(rounds // 20, 3), title)
            for name, model in each.items():
                row = {
                    "benchmark": "serve",
                    "model": name,
                    "task": task,
                    "size": size,
                    "length": length,
                    "batch": batch_size,
                    "load_seconds": round(model.load_seconds, 2),
                    "disk_mb": round(model.num_bytes / 1e6, 1),
                    "p50_ms": round(1000 * statistics.median(one[name]), 2),
                    "p99_ms": round(1000 * float(np.percentile(one[name], 99)), 2),
                }
                if models.BASELINE in names:
                    ratio = 1 / speedup(one, name, models.BASELINE)
                    row["latency_to_transformer"] = round(ratio, 3)
                ratio = 1 / speedup(one, name, (name, "predict"))
                row["latency_to_predict"] = round(ratio, 3)
                row["texts_per_second"] = round(
                    batch_size / statistics.median(many[name]), 2
                )
                ratio = 1 / speedup(many, name, (name, "evaluation"))
                row["time_to_evaluation"] = round(ratio, 3)
                yield row


class _Served:
    """A model that nobody has trained, and its export, loaded.

    A subclass is called with a model's name and size, the longest text and a folder.
    """

    def __init__(self, text_model, folder):
        self.text_model = text_model
        text_model.save(folder)
        files = [path for path in folder.rglob("*") if path.is_file()]
        self.num_bytes = sum(path.stat().st_size for path in files)
        start = time.perf_counter()
        self.loaded = tf.saved_model.load(str(folder))
        self.load_seconds = time.perf_counter() - start
        self._random = random.Random(0)

    def exported(self, texts):
        texts = tf.constant(texts)
        answer = self.loaded.signatures["serving_default"]
        return lambda: [value.numpy() for value in answer(text=texts).values()]

    def predicting(self, texts):
        return lambda: self.text_model.outputs("serving_default", texts)


class _Classifier(_Served):
    def __init__(self, name, size, longest, folder):
        self.model = fold_rotations(models.build(name, size))
        classes = [str(i) for i in range(models.NUM_CLASSES)]
        config = models.model_config(name, size)
        text_model = TextClassifier(
            self.model, ByteTokenizer(), classes, longest, config
        )
        super().__init__(text_model, folder / name)

    def texts(self, length, count):
        letters = "abcdefghijklmnopqrstuvwxyz "
        return ["".join(self._random.choices(letters, k=length)) for _ in range(count)]

    def evaluating(self, texts):
        rows = ByteTokenizer()(tf.constant(texts)).to_tensor()
        size = max(1, EVALUATED_TOKENS // rows.shape[1])
        parts = [rows[i : i + size] for i in range(0, len(texts), size)]
        step = tf.function(lambda rows: self.model(rows, training=False))
        return lambda: [step(part).numpy() for part in parts]


class _Translator(_Served):
    def __init__(self, name, size, longest, folder):
        self.tokenizer = _tokenizer()
        config = models.model_config(name, size)
        vocabulary_size = self.tokenizer.vocabulary_size
        self.model = fold_rotations(build_encoder_decoder(config, vocabulary_size))
        self.settings = ConfigDict(
            {
                "beam_size": 4,
                # So large that a search goes on to the longest target.
                "length_penalty": 10.0,
                "extra_length": 0,
                "batch_size": SEARCHED,
            }
        )
        # Neither the export nor the evaluation may cut a text.
        longest = longest_source((longest,))
        text_model = TextTranslator(
            self.model, self.tokenizer, self.settings, longest, config
        )
        super().__init__(text_model, folder / name)

    def texts(self, length, count):
        # Less the end, which is a token too.
        vocabulary = range(END + 1, self.tokenizer.vocabulary_size)
        ids = [self._random.choices(vocabulary, k=length - 1) for _ in range(count)]
        texts = self.tokenizer.decode(tf.ragged.constant(ids, tf.int32))
        return [text.decode() for text in texts.numpy()]

    def evaluating(self, texts):
        rows = self.text_model.encode(tf.constant(texts))["ids"]
        strategy = tf.distribute.get_strategy()
        length = rows.shape[1]
        settings = self.settings.copy_and_resolve_references()
        settings.batch_size = min(SEARCHED, max(1, EVALUATED_TOKENS // length))
        translator = Translator(
            self.model, self.tokenizer, settings, (length,), strategy
        )
        return lambda: translator.translate(texts)


SERVED = {"classification": _Classifier, "translation": _Translator}


@functools.cache
def _tokenizer():
    """Subwords of words that do not exist."""
    letters = random.Random(0)
    words = [
        "".join(letters.choices("abcdefghijklmnopqrstuvwxyz", k=6))
        for _ in range(models.NUM_SUBWORDS)
    ]
    lines = [" ".join(letters.choices(words, k=20)) for _ in range(20_000)]
    lines = [line.encode() for line in lines]
    return SubwordTokenizer(learn(lines, models.NUM_SUBWORDS))
