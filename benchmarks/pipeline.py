"""What a data pipeline delivers, beside what the training step consumes."""

import tempfile
import time
from collections.abc import Iterator

from benchmarks.timing import interleave
from training import config as configuration
from training.tasks import make_task, make_tokenizer
from training.trainer import one_device_trainer

# In a round: enough batches that those prefetched while training do not count.
BATCHES, UPDATES = 50, 4


def measure(config, rounds: int = 5) -> Iterator[dict]:
    """Yields a row for each stage of a training command's input, then for training.

    Stages: "tokenize" reads (or generates) and tokenizes the training split without
    the cache, as a first run does; "batch" deals out shuffled batches, as every epoch
    does; "train" is the training step, which waits for the batches. Rates are of
    whole examples and of their tokens without padding; `ratio_to_training` says how
    many training steps a stage could feed.

    Args:
      config: as from a file in `configs/`.
      rounds: of "batch" and "train", by turns; their total counts, as batches differ.

    Raises:
      UserError: for a bad config.
      data.DataError: for bad input.
    """
    configuration.check(config)
    settings = config.train
    tokenizer = make_tokenizer(config)
    with tempfile.TemporaryDirectory() as cache:
        with config.unlocked():
            config.data.cache_dir = cache
        task = make_task(config, tokenizer)
        start = time.perf_counter()
        split = task.training_batches().split
        seconds = time.perf_counter() - start
        rates = {"tokenize": len(split.targets) / seconds}
        batcher = task.training_batches()
        batches = iter(batcher.train(seed=0))
        trainer, iterator = one_device_trainer(
            task.build_model,
            task.losses,
            settings,
            batcher.train(seed=0),
        )

        def deal():
            for _ in range(BATCHES):
                next(batches)

        calls = {"batch": deal, "train": lambda: trainer.train(iterator, UPDATES)}
        seconds = interleave(calls, rounds, "batches and updates")
        for stage, steps in (("batch", BATCHES), ("train", UPDATES)):
            examples = rounds * steps * settings.batch_size
            rates[stage] = examples / sum(seconds[stage])
    tokens_per_example = float(split.lengths.mean())
    for stage, rate in rates.items():
        yield {
            "benchmark": "input",
            "task": config.task,
            "model": config.variant,
            "stage": stage,
            "batch": settings.batch_size,
            "examples_per_second": round(rate, 1),
            "tokens_per_second": round(rate * tokens_per_example),
            "ratio_to_training": round(rate / rates["train"], 2),
        }
