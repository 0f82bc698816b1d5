"""Text to text, by an encoder-decoder and beam search."""

import logging
import statistics
import time

from keras import ops

from common.backend import expect_tensorflow
from common.fields import (
    below,
    changeable,
    choice,
    fail,
    integer,
    rate,
    real,
)
from common.progress import progress_bar
from configs.published import published_bleu
from data import DATASETS
from data.batches import fingerprint
from data.buckets import BATCH_UNITS, Buckets
from data.buckets import FIELDS as BUCKET_FIELDS
from data.pairs import ParallelData
from data.tokenizers.subwords import PADDING, START
from decoding.bleu import AS_PUBLISHED, METRICS, score
from decoding.translation import Translator, longest_source
from export.translator import TextTranslator
from models import build_encoder_decoder, can_decode
from tasks.task import Evaluation, Table, Task
from training.losses import first_choice, smoothed_cross_entropy
from training.tensorflow.strategy import is_tpu

NUM_SAMPLES = 3

logger = logging.getLogger("transevolve")


# Changeable when a run is taken up again: training does not decode.
SEARCH = {
    "decode.beam_size": integer("Hypotheses alive at a time.", maximum=1_000),
    "decode.length_penalty": real(
        "α: scores are divided by ((5 + length) / 6)^α.", 0, 5
    ),
    "decode.extra_length": integer(
        "Tokens that a translation may be longer than its source.",
        minimum=0,
        maximum=10_000,
    ),
    "decode.batch_size": integer(
        "Sentences that are translated together.", maximum=100_000
    ),
}


class TranslationTask(Task):
    """The best checkpoint is that of the lowest loss a token. See `Task`."""

    reads = "parallel_text"
    unit = "tokens"
    texts = ("inputs", "targets")
    metric = "loss"
    higher_is_better = False
    score_names = tuple(METRICS)
    fields = {
        **below("data", {**BUCKET_FIELDS, **ParallelData.FIELDS}),
        "train.batch_unit": choice(
            "What `train.batch_size` counts: pairs, or tokens of a side.", *BATCH_UNITS
        ),
        # An epoch's length is not known before one has been read.
        "train.validate_every": integer("Updates between validations."),
        "train.label_smoothing": rate("Share of the words that are not the target."),
        **{name: changeable(field) for name, field in SEARCH.items()},
    }

    def __init__(self, config, tokenizer):
        super().__init__(config, tokenizer)
        self.data = ParallelData(config.data, tokenizer)
        self._last_translator = None
        self._translations = {}

    @staticmethod
    def check(config):
        if not can_decode(config.model):
            fail("variant", "a variant with a decoder", config.variant)
        attention = config.model.get("attention", {})
        if attention.get("attention_normalisation") is False:
            expected = "True in a model that attends to a source"
            fail("model.attention.attention_normalisation", expected, False)
        size, longest = config.train.batch_size, config.data.max_length
        if config.train.batch_unit == "tokens" and size < longest:
            fail("train.batch_size", f"at least data.max_length={longest} tokens", size)

    @staticmethod
    def shapes(config):
        settings = config.train
        lengths = config.data.bucket_lengths
        return Buckets(lengths, settings.batch_size, settings.batch_unit).shapes

    def build_model(self):
        config = self.config
        return build_encoder_decoder(
            config.model,
            self.tokenizer.vocabulary_size,
            config.seed,
            longest_source(config.data.bucket_lengths) + config.decode.extra_length,
        )

    def training_batches(self):
        settings = self.config.train
        return self.data.training(settings.batch_size, settings.batch_unit)

    def evaluation_batches(self, split):
        unit = self.config.train.batch_unit
        return self.data.evaluation(split, self.evaluation_batch_size, unit)

    def losses(self, model, batch, state, training):
        """See `Task.losses`; (batch, length) each, the loss smoothed."""
        targets = batch["targets"]
        start = ops.full_like(targets[:, :1], START)
        before = ops.concatenate([start, targets[:, :-1]], axis=1)
        # Where a target has ended there is nothing to see.
        before = ops.where(targets == PADDING, PADDING, before)
        logits = model(batch["inputs"], before, training=training)
        smoothing = self.config.train.label_smoothing
        smoothed = smoothed_cross_entropy(targets, logits, smoothing)
        return smoothed, first_choice(logits) == targets, targets != PADDING, state

    def evaluate(self, model, split, strategy, each_checkpoint=()):
        """BLEU three ways and chrF, beside the paper's figure; the hypotheses."""
        sources, references = self.data.texts(split)
        translator = self._translator(model, strategy)

        def translate(title):
            return self._translate(translator, split, sources, title)

        hypotheses, seconds = translate(f"translating {split}")
        scores, signatures = score(hypotheses, references)
        logger.info("%s", scores)
        data = self.config.data
        languages = (data.source_language, data.target_language)
        test_set = DATASETS[data.dataset].test_set(data, split)
        result = {
            "languages": "-".join(languages),
            "test_set": test_set,
            "examples": len(sources),
            **scores,
            "signatures": signatures,
            "decode": self.config.decode.to_dict(),
        }
        columns = {"these weights": scores}
        singles = []
        for number, restore in enumerate(each_checkpoint, start=1):
            restore()
            translator.refresh()
            texts, _ = translate(f"checkpoint {number}")
            singles.append(score(texts, references)[0])
            logger.info("checkpoint %d: %s", number, singles[-1])
        if singles:
            mean = {
                name: round(statistics.mean(one[name] for one in singles), 2)
                for name in METRICS
            }
            columns[f"mean of {len(singles)} checkpoints"] = mean
            result["mean_of_checkpoints"] = mean
            result["checkpoints"] = singles
        result["sentences_per_second"] = round(len(sources) / seconds, 2)
        published = published_bleu(languages, test_set, self.config.variant)
        if published is not None:
            result["published"] = published
            columns["published"] = {AS_PUBLISHED: published}
        table = _table(columns, signatures)
        samples = _samples(sources, references, hypotheses)
        return Evaluation(result, [table], samples, hypotheses)

    def evaluation_sample(self, model, split, strategy):
        """A batch of translations."""
        sources, _ = self.data.texts(split)
        size = min(len(sources), self.config.decode.batch_size)
        # Every so many: of all lengths.
        some = sources[:: max(1, len(sources) // size)][:size]
        translator = self._translator(model, strategy)
        return lambda: translator.translate(some), len(sources) / len(some)

    def _translate(self, translator, split, sources, title):
        """(hypotheses, seconds that they took) of a split, once for the same weights:
        the best checkpoint is often one of the last ones, too."""
        weights = [weight.numpy() for weight in translator.model.weights]
        key = split, fingerprint(*weights)
        if key not in self._translations:
            start = time.monotonic()
            with progress_bar(desc=title, total=len(sources), unit=" sentences") as bar:
                hypotheses = translator.translate(sources, bar.update)
            self._translations[key] = hypotheses, time.monotonic() - start
        return self._translations[key]

    def _translator(self, model, strategy):
        """A `Translator` of the model's weights; the last one, if it was of the model:
        tracing a search takes long."""
        expect_tensorflow("translations")
        last = self._last_translator
        if last and last.model is model and last.strategy is strategy:
            last.refresh()
            return last
        self._last_translator = Translator(
            model,
            self.tokenizer,
            self.config.decode,
            self.config.data.bucket_lengths,
            strategy,
            static_shapes=is_tpu(strategy),
        )
        return self._last_translator

    def text_model(self, model, dtype="float32"):
        """`TextTranslator`, of the run's beam search."""
        return TextTranslator(
            model,
            self.tokenizer,
            self.config.decode,
            longest_source(self.config.data.bucket_lengths),
            self.config.model,
            dtype,
        )

    @property
    def prompt(self):
        return (
            f"{self.config.data.source_language} to {self.config.data.target_language}"
        )


def _table(columns, signatures):
    rows = [
        [name, signatures[name], *(column.get(name, "") for column in columns.values())]
        for name in METRICS
    ]
    return Table(["score", "signature", *columns], rows, left=2)


def _samples(sources, references, hypotheses):
    step = max(1, len(sources) // NUM_SAMPLES)
    return [
        {
            "source": sources[i],
            "reference": references[i],
            "hypothesis": hypotheses[i],
        }
        for i in range(0, len(sources), step)[:NUM_SAMPLES]
    ]
