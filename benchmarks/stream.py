"""Memory of a process that streams a parallel text of any size."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.alone import peak_bytes
from common.progress import progress_bar
from configs import wmt14_en_de
from data.pairs import ParallelData
from data.tokenizers.subwords import SubwordTokenizer, trained

BATCH_SIZE = 512
ROWS = 10
# Learned from few sentences: its peak is not the stream's, which does not depend on it.
SUBWORDS = {"vocab_size": 8000, "vocab_sentences": 10_000}
# Written over and over: nothing in the stream remembers a sentence.
DIFFERENT_PAIRS = 10_000
WORDS = 60_000


def measure(num_pairs: int) -> Iterator[dict]:
    """Streams a synthetic text once, in the batches and windows of WMT 2014.

    Yields a row before the first batch and after each tenth of the pairs: the pairs
    dealt out so far, the most memory that the process has held, TensorFlow included,
    and the pairs a second since the row before.

    Args:
      num_pairs: of sentences of 4 to 45 words.
    """
    config = wmt14_en_de.get_config().data
    with tempfile.TemporaryDirectory() as folder:
        config.update(source="files", dir=folder, cache_dir=folder, **SUBWORDS)
        languages = config.source_language, config.target_language
        for seed, language in enumerate(languages):
            path = Path(folder, f"{config.train_name}.{language}")
            _write_text(path, num_pairs, seed)
        tokenizer = SubwordTokenizer(trained(config))
        batcher = ParallelData(config, tokenizer).training(BATCH_SIZE)
        yield from _stream(batcher, num_pairs, config.shuffle_window)


def _stream(batcher, num_pairs, shuffle_window):
    batches = iter(batcher.for_training(seed=0))
    start, dealt, dealt_before, peak = time.perf_counter(), 0, 0, peak_bytes()
    row = {"benchmark": "stream", "batch": BATCH_SIZE, "window": shuffle_window}
    yield {**row, "pairs": 0, "peak_memory_mb": round(peak / 2**20)}
    with (
        batcher.own_errors(),
        progress_bar(
            total=num_pairs, desc="streaming", unit=" pairs", unit_scale=True
        ) as bar,
    ):
        for mark in (num_pairs * (i + 1) // ROWS for i in range(ROWS)):
            while dealt < mark:
                new = int(np.count_nonzero(next(batches)["inputs"][:, 0]))
                dealt += new
                bar.update(new)
            seconds = time.perf_counter() - start
            # Linux counts it by thread: what it says may fall a little.
            peak = max(peak, peak_bytes())
            yield {
                **row,
                "pairs": dealt,
                "peak_memory_mb": round(peak / 2**20),
                "pairs_per_second": round((dealt - dealt_before) / seconds),
            }
            start, dealt_before = time.perf_counter(), dealt


def _write_text(path, num_pairs, seed):
    """Words of random letters, drawn as Zipf's law says."""
    random = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlucmfwypvbgkqjxz"))
    words = np.array(
        ["".join(random.choice(letters, random.integers(2, 12))) for _ in range(WORDS)]
    )
    frequencies = 1 / np.arange(1, WORDS + 1)
    frequencies /= frequencies.sum()
    lengths = random.integers(4, 46, min(num_pairs, DIFFERENT_PAIRS))
    drawn = random.choice(words, lengths.sum(), p=frequencies)
    sentences = np.split(drawn, np.cumsum(lengths)[:-1])
    lines = [" ".join(sentence) + "\n" for sentence in sentences]
    with open(path, "w") as text:
        for start in range(0, num_pairs, len(lines)):
            text.writelines(lines[: num_pairs - start])
