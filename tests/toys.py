"""A toy of each seam, as newcomers would write them: one file each, and one line."""

import keras
import numpy as np
import tensorflow as tf
from keras import ops
from ml_collections import ConfigDict

from common.fields import choice, integer
from configs import listops
from data import DATASETS
from data.batches import Batches
from data.rows import GoodRows, Line
from export.signatures import TEXT, padded, signature
from export.text_model import TextModel
from models import ARCHITECTURES, variant_config
from models.architecture import Architecture, Variant
from models.attention import OPERATORS
from models.layers.dense import seeded_dense
from models.layers.embedding import TokenEmbedding
from models.seeds import derive_seed
from tasks import TASKS
from tasks.task import Evaluation, Table, Task
from training.losses import cross_entropy, first_choice
from training.tensorflow.evaluator import Evaluator

# Of a tokenizer of bytes: padding and 256 values.
VOCABULARY_SIZE = 257


@keras.saving.register_keras_serializable("toy")
class BagEncoder(keras.layers.Layer):
    """Every position alone: a residual dense layer. An encoder without attention."""

    def __init__(self, num_heads, ffn_dim, rank, dropout=0.0, seed=0, **kwargs):
        super().__init__(**kwargs)
        self.arguments = {
            "num_heads": num_heads,
            "ffn_dim": ffn_dim,
            "rank": rank,
            "dropout": dropout,
            "seed": seed,
        }

    def build(self, input_shape):
        seed, same = self.arguments["seed"], {"dtype": self.dtype_policy}
        self.down = seeded_dense(self.arguments["rank"], "down", seed, **same)
        self.up = seeded_dense(input_shape[-1], "up", seed, **same)
        self.down.build(input_shape)
        self.up.build((*input_shape[:-1], self.arguments["rank"]))

    def call(self, x, padding_mask=None, training=None):
        return x + self.up(ops.relu(self.down(x)))

    def get_config(self):
        return {**super().get_config(), **self.arguments}


BAG = Architecture(
    encoder=BagEncoder,
    decoder=None,
    variants={"bag-8": Variant({"rank": 8})},
    fields={"rank": integer("Of the dense layer.")},
)


class counting:  # noqa: N801, a module in real life
    """Lines that count: "3 4 5 6 7"."""

    KIND = "plain_text"
    SPLITS = ("train", "validation", "test")
    TOKENIZERS = ("bytes",)
    FIELDS = {
        "source": choice("Where from.", "made"),
        "num_lines": integer("Lines of a split."),
    }

    @staticmethod
    def read(config, split):
        for start in range(config.num_lines):
            numbers = (str((start + i) % 10) for i in range(8))
            yield Line(" ".join(numbers).encode())

    @staticmethod
    def identify(config, split):
        return [config.num_lines, split]


class LineBatches(Batches):
    """Rows of one length, in order."""

    def __init__(self, rows, batch_size):
        self.rows, self.batch_size = rows, batch_size
        self.num_examples, self.num_batches = len(rows), len(rows) // batch_size

    @property
    def shapes(self):
        return [(self.batch_size, self.rows.shape[1])]

    def for_training(self, seed, first_batch=0):
        dataset = self.for_evaluation().repeat()
        return dataset.skip(first_batch % self.num_batches)

    def for_evaluation(self):
        def batch(rows):
            return {"inputs": rows[:, :-1], "targets": rows[:, 1:]}

        dataset = tf.data.Dataset.from_tensor_slices(self.rows)
        return dataset.batch(self.batch_size, drop_remainder=True).map(batch)


@keras.saving.register_keras_serializable("toy")
class NextToken(keras.Model):
    """Logits of each next token, from the token before."""

    def __init__(self, vocabulary_size, hidden_dim, seed, **kwargs):
        super().__init__(**kwargs)
        self.hidden_dim = hidden_dim
        self.embedding = TokenEmbedding(
            vocabulary_size, hidden_dim, derive_seed(seed, "embedding"), name="table"
        )
        self.logits = seeded_dense(vocabulary_size, "logits", seed)

    def build(self, shape):
        self.embedding.build(shape)
        self.logits.build((*shape, self.hidden_dim))

    def call(self, tokens, training=None):
        return self.logits(self.embedding(tokens))


class NextByteTask(Task):
    """Language modelling, without buckets. The best has the lowest loss."""

    reads = "plain_text"
    unit = "bytes"
    score_names = ("perplexity",)

    def _batches(self, split):
        dataset = DATASETS[self.config.data.dataset]
        read = GoodRows(dataset.read(self.config.data, split))
        texts = tf.constant([line.text for line in read])
        rows = self.tokenizer(texts).to_tensor().numpy()
        return LineBatches(rows.astype(np.int32), self.config.train.batch_size)

    def build_model(self):
        model = NextToken(
            self.tokenizer.vocabulary_size,
            self.config.model.hidden_dim,
            self.config.seed,
            name="next_token",
        )
        model.build((None, None))
        return model

    def training_batches(self):
        return self._batches("train")

    def evaluation_batches(self, split):
        return self._batches(split)

    def losses(self, model, batch, state, training):
        targets = batch["targets"]
        logits = model(batch["inputs"], training=training)
        right = first_choice(logits) == targets
        return cross_entropy(targets, logits), right, targets != 0, state

    def evaluate(self, model, split, strategy, each_checkpoint=()):
        batches = self.evaluation_batches(split)
        sums = Evaluator(model, self, strategy).evaluate(batches, "toy")
        metrics = self.totals(sums).metrics()
        perplexity = float(np.exp(metrics["loss"]))
        scores = {"examples": batches.num_examples, "perplexity": perplexity}
        return Evaluation(
            scores, [Table(["split", "perplexity"], [[split, perplexity]])]
        )

    def text_model(self, model, dtype="float32"):
        return NextByte(model, self.tokenizer, dtype)


class NextByte(TextModel):
    """The byte that comes next."""

    main_output = "next"
    limits = "There are none."

    def __init__(self, model, tokenizer, dtype):
        super().__init__(model, tokenizer, dtype)
        self._logits = lambda rows: model(rows)

    def _read(self, text):
        return self._tokenize(text), tf.zeros_like(text, tf.bool)

    @signature(TEXT)
    def serving_default(self, text):
        ids, truncated = self._read(text)
        with self._scope():
            following = tf.argmax(self._logits(padded(ids))[:, -1], axis=-1) - 1
        return {"next": following, "truncated": truncated}

    def answer(self, outputs):
        return chr(outputs["next"])


class SegmentBatches(LineBatches):
    """Segments of the same texts, one after the other: row i of each goes on from row
    i of the batch before."""

    def __init__(self, texts, batch_size, length):
        streams = texts.reshape(batch_size, -1)
        count = (streams.shape[1] - 1) // length
        cut = [streams[:, i * length : (i + 1) * length + 1] for i in range(count)]
        super().__init__(np.concatenate(cut), batch_size)


class NextByteOfSegmentTask(NextByteTask):
    """It carries how often each row has had each byte, which raises its logit."""

    length = 10

    @staticmethod
    def initial_state(batch_size, training):
        return {"counts": ops.zeros([batch_size, VOCABULARY_SIZE], "float32")}

    def _batches(self, split):
        rows = super()._batches(split).rows
        return SegmentBatches(rows, self.config.train.batch_size, self.length)

    def losses(self, model, batch, state, training):
        inputs, targets, counts = batch["inputs"], batch["targets"], state["counts"]
        logits = model(inputs, training=training) + ops.log1p(counts)[:, None]
        losses = cross_entropy(targets, logits)
        new = ops.sum(ops.one_hot(inputs, VOCABULARY_SIZE), axis=1)
        state = {"counts": counts + new}
        return losses, first_choice(logits) == targets, targets != 0, state


def register(monkeypatch):
    """The one line each, undone when the test ends."""
    monkeypatch.setitem(ARCHITECTURES, "bag", BAG)
    monkeypatch.setitem(DATASETS, "counting", counting)
    monkeypatch.setitem(TASKS, "next_byte", NextByteTask)
    monkeypatch.setitem(TASKS, "next_byte_of_segment", NextByteOfSegmentTask)


def register_attention(monkeypatch):
    """As `register`."""
    from tests.models.toy_attention import CosineOperator

    monkeypatch.setitem(OPERATORS, "cosine", CosineOperator)


def counting_config(kind="next_byte", **changes):
    """The config of a task that reads `counting`."""
    train = {
        name: x for name, x in listops.get_config().train.items() if name != "steps"
    }
    config = ConfigDict(
        {
            "task": "counting",
            "kind": kind,
            "variant": "bag-8",
            "seed": 0,
            "model": {
                **variant_config("bag-8"),
                "hidden_dim": 16,
                "num_heads": 2,
                "ffn_dim": 32,
                "dropout": 0.0,
                "dtype": "float32",
            },
            "data": {
                "dataset": "counting",
                "source": "made",
                "tokenizer": "bytes",
                "on_error": "fail",
                "cache_dir": "unused",
                "num_lines": 40,
            },
            "train": {
                **train,
                "batch_size": 8,
                "epochs": 20,
                "learning_rate_max": 1.0,
                "warmup_steps": 10,
            },
        }
    )
    config.update_from_flattened_dict(changes)
    return config
