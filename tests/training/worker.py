"""One of several workers; tests run it as a script. worker.py CACHE

Prints the examples of an epoch that this worker is dealt, by their first tokens, and
what dropout leaves of ones on each of its devices.
"""

import json
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])

import tensorflow as tf  # noqa: E402

from data.tokenizers import make_tokenizer  # noqa: E402
from models import build_classifier  # noqa: E402
from tasks import TASKS  # noqa: E402
from tests.scripts import listops_config  # noqa: E402
from training.tensorflow.strategy import make_strategy, separate_dropout  # noqa: E402
from training.tensorflow.trainer import Trainer  # noqa: E402

strategy = make_strategy("multi_worker")
config = listops_config(sys.argv[1])
kind = TASKS[config.kind]
task = kind(config, make_tokenizer(config.data))
with strategy.scope():
    model = build_classifier({**config.model, "dropout": 0.5}, 16, 10)
trainer = Trainer(model, task, config.train, strategy)
batches = task.training_batches()
dealt = []
iterator = trainer.iterate(batches.for_training(seed=0), batches.fillers)
for _ in range(batches.num_batches):
    batch = next(iterator)
    for rows in strategy.experimental_local_results(batch["inputs"]):
        dealt += [row.tolist() for row in rows.numpy() if row[0]]
separate_dropout(model, strategy)
tokens = tf.ones([4, 8], tf.int32)
logits = tf.function(lambda: strategy.run(lambda: model(tokens, training=True)))()
masks = [
    x.numpy().ravel().tolist() for x in strategy.experimental_local_results(logits)
]
print(json.dumps({"dealt": dealt, "masks": masks, "epoch": batches.num_examples}))
