"""What a data pipeline delivers, beside what the training step consumes."""

import tempfile
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.timing import interleave
from benchmarks.updates import task_updates
from data.tokenizers import make_tokenizer
from tasks import TASKS
from training import config as configuration

# In a round: enough batches that those prefetched while training do not count.
BATCHES, UPDATES = 50, 4


def measure(config, rounds: int = 5) -> Iterator[dict]:
    """Yields a row for each stage of a training command's input, then for training.

    Stages: "tokenize" reads (or generates) and tokenizes the training split without the
    cache, as a first run does, where the task does that before it deals any batch;
    "batch" deals out shuffled batches; "train" is the training step, which waits for
    the batches. Rates are of whole examples and of their tokens
    without padding; `ratio_to_training` says how many training steps a stage could
    feed.

    Args:
      config: as from a file in `configs/`.
      rounds: of "batch" and "train", by turns; their total counts, as batches differ.

    Raises:
      UserError: for a bad config; a `DataError` for bad input.
    """
    configuration.check(config)
    kind = TASKS[config.kind]
    tokenizer = make_tokenizer(config.data)
    rates = {}
    with tempfile.TemporaryDirectory() as cache:
        with config.unlocked():
            config.data.cache_dir = cache
        task = kind(config, tokenizer)
        start = time.perf_counter()
        batcher = task.training_batches()
        if batcher.num_examples is not None:  # it has read them all
            seconds = time.perf_counter() - start
            rates["tokenize"] = batcher.num_examples / seconds
        train = task_updates(task, UPDATES, batcher)
        batches, dealt = iter(batcher.for_training(seed=0)), []

        def deal():
            for _ in range(BATCHES):
                dealt.append(_count(next(batches), task.texts))

        calls = {"batch": deal, "train": train}
        with batcher.own_errors():
            seconds = interleave(calls, rounds, "batches and updates")
    examples, tokens = (sum(counts) for counts in zip(*dealt, strict=True))
    for stage, steps in (("batch", BATCHES), ("train", UPDATES)):
        steps_per_second = rounds * steps / sum(seconds[stage])
        rates[stage] = steps_per_second * examples / len(dealt)
    for stage, rate in rates.items():
        yield {
            "benchmark": "input",
            "task": config.task,
            "model": config.variant,
            "stage": stage,
            "batch": config.train.batch_size,
            "examples_per_second": round(rate, 1),
            "tokens_per_second": round(rate * tokens / examples),
            "ratio_to_training": round(rate / rates["train"], 2),
        }


def _count(batch, texts):
    """Real examples of a batch, and the tokens of all their texts."""
    tokens = sum(np.count_nonzero(batch[name]) for name in texts)
    return np.count_nonzero(batch["inputs"][:, 0]), tokens
