"""Memory of a process that streams a parallel text of any size."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.alone import run_alone
from benchmarks.memory import peak_bytes
from common.progress import progress_bar
from configs import wmt14_en_de
from data.pairs import ParallelData
from data.tokenizers.subwords import SubwordTokenizer, trained

BATCH_SIZE = 512
ROWS = 10
# The stream does not depend on them.
VOCABULARY = {"vocab_size": 8000, "vocab_sentences": 100_000}
# Written over and over: nothing in the stream remembers a sentence.
DIFFERENT_PAIRS = 100_000
WORDS = 60_000


def measure(num_pairs: int) -> Iterator[dict]:
    """Streams a synthetic text once, in the batches and windows of WMT 2014.

    Yields a row before the first batch and after each tenth of the pairs: the pairs
    dealt out so far, the most memory that the process has held, TensorFlow included,
    and the pairs a second since the row before.

    Args:
      num_pairs: of sentences of 4 to 45 words.

    Raises:
      UserError: if memory runs out while the vocabulary is learned.
    """
    config = wmt14_en_de.get_config().data
    with tempfile.TemporaryDirectory() as folder:
        config.update(source="files", dir=folder, cache_dir=folder, **VOCABULARY)
        # Its peak is not the stream's.
        vocabulary = run_alone("stream: the vocabulary", _prepare, config, num_pairs)
        data = ParallelData(config, SubwordTokenizer(vocabulary))
        yield from _stream(data.train(BATCH_SIZE), num_pairs, config.shuffle_window)


def _prepare(config, num_pairs) -> bytes:
    """Writes the text; returns its vocabulary."""
    for seed, language in enumerate((config.source_language, config.target_language)):
        path = Path(config.dir, f"{config.train_name}.{language}")
        _write_text(path, num_pairs, seed)
    return trained(config)


def _stream(batcher, num_pairs, shuffle_window):
    dealt, marks = 0, [num_pairs * (i + 1) // ROWS for i in range(ROWS)]
    batches = iter(batcher.train(seed=0))
    start, dealt_before = time.perf_counter(), 0
    peak = peak_bytes()
    yield _row(0, shuffle_window, peak)
    with (
        batcher.own_errors(),
        progress_bar(
            total=num_pairs, desc="streaming", unit=" pairs", unit_scale=True
        ) as bar,
    ):
        while marks:
            new = int(np.count_nonzero(next(batches)["inputs"][:, 0]))
            dealt += new
            bar.update(new)
            if dealt >= marks[0]:
                seconds = time.perf_counter() - start
                speed = round((dealt - dealt_before) / seconds)
                # Linux counts it by thread: what it says may fall a little.
                peak = max(peak, peak_bytes())
                row = _row(dealt, shuffle_window, peak)
                yield {**row, "pairs_per_second": speed}
                start, dealt_before = time.perf_counter(), dealt
                marks.pop(0)


def _row(dealt, shuffle_window, peak):
    return {
        "benchmark": "stream",
        "batch": BATCH_SIZE,
        "window": shuffle_window,
        "pairs": dealt,
        "peak_memory_mb": round(peak / 2**20),
    }


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
