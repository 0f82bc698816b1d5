"""The next token of plain text, by a causal model."""

import keras
import numpy as np
from keras import ops

from common.fields import (
    below,
    boolean,
    changeable,
    fail,
    integer,
    lengths,
    optional,
    real,
)
from data.segments import SegmentData
from export.language_model import TextLanguageModel
from models import attention_kind, build_language_model, can_model_language
from models.attention.operator import STATES
from models.layers.embedding import IN_ATTENTION
from tasks.task import Evaluation, Table, Task
from training.backends import Evaluator
from training.losses import cross_entropy, first_choice

# Changeable when a run is taken up again: training does not continue texts.
CONTINUATION = {
    "decode.continuation_length": integer(
        "Tokens that a text is continued by, at most.", maximum=1_000_000
    ),
    "decode.temperature": real(
        "Logits are divided by it before one is drawn; 0 takes the largest.", 0, 100
    ),
    "decode.top_k": optional(integer("Draw from so many of the likeliest tokens.")),
    "decode.top_p": optional(
        real("Draw from the fewest tokens that have this probability.", 1e-6, 1)
    ),
    "decode.seed": optional(
        integer("Of what is drawn; the run's seed if unset.", 0, 2**31 - 1)
    ),
    "decode.beam_size": optional(
        integer(
            "Search for the likeliest continuation with so many hypotheses; draw one "
            "if unset.",
            maximum=1_000,
        )
    ),
    "decode.batch_size": integer("Texts continued together.", maximum=100_000),
}


class LanguageModellingTask(Task):
    """The best checkpoint is that of the lowest loss a token. See `Task`."""

    reads = "plain_text"
    unit = "tokens"
    metric = "loss"
    higher_is_better = False
    score_names = ("perplexity", "token_perplexity", "accuracy")
    fields = {
        "model.adaptive_cutoffs": optional(
            lengths(
                "Ids at which clusters of rarer words begin, for an adaptive softmax; "
                "a softmax over all words if unset or ().",
                may_be_empty=True,
            )
        ),
        "model.initial_deviation": optional(
            real(
                "Standard deviation of the normal distribution from which projections "
                "and vectors of tokens are drawn; each layer's own if unset or 0.",
                0,
                10,
            )
        ),
        **below("data", SegmentData.FIELDS),
        "data.memory": boolean(
            "Whether a segment begins with what those before it have left, and not "
            "with nothing."
        ),
        "data.memory_span": optional(
            integer(
                "Positions that a softmax remembers; those of a segment if unset.",
                maximum=1_000_000,
            )
        ),
        "decode.sliding_window": boolean(
            "Evaluate each token by a window that ends with it, and not by segments. "
            "Validation does so, too."
        ),
        "decode.segment_length": optional(
            integer(
                "Tokens of a segment, or of a window, in evaluation and validation; "
                "data.segment_length if unset.",
                minimum=2,
                maximum=1_000_000,
            )
        ),
        **{name: changeable(field) for name, field in CONTINUATION.items()},
    }

    def __init__(self, config, tokenizer):
        super().__init__(config, tokenizer)
        self.data = SegmentData(config.data, tokenizer)

    @staticmethod
    def check(config):
        if not can_model_language(config.model):
            fail("variant", "a variant that is causal and decodes", config.variant)
        if config.model.get("initial_deviation") and config.model.get("initialization"):
            expected = "none beside model.initialization"
            fail("model.initial_deviation", expected, config.model.initial_deviation)
        if config.model.get("residuals"):
            expected = "none given, since a reversible encoder does not decode"
            fail("model.residuals", expected, config.model.residuals)
        if config.data.memory:
            _check_memory(config)
        _check_evaluated_length(config)
        decode = config.decode
        for name in ("top_k", "top_p"):
            if decode.get("beam_size") and decode[name] is not None:
                fail(f"decode.{name}", "none beside decode.beam_size", decode[name])

    @staticmethod
    def shapes(config):
        return [(config.train.batch_size, config.data.segment_length)]

    def build_model(self):
        config, size = self.config, self.tokenizer.vocabulary_size
        cutoffs = config.model.get("adaptive_cutoffs")
        if cutoffs and max(cutoffs) >= size:
            expected = f"ids below {size}, the vocabulary, or ()"
            fail("model.adaptive_cutoffs", expected, cutoffs)
        self._model = build_language_model(
            config.model,
            size,
            config.seed,
            config.data.segment_length + config.decode.continuation_length,
        )
        return self._model

    def training_batches(self):
        return self.data.training(self.config.train.batch_size)

    def evaluation_batches(self, split):
        slides, length = self.config.decode.sliding_window, self._evaluated_length
        # Of longer segments a batch has no more tokens. With a memory a segment goes on
        # from the one before.
        rows = self.evaluation_batch_size * self.config.data.segment_length // length
        rows = 1 if _remembers(self.config) else max(1, rows)
        return self.data.evaluation(split, rows, length, slides)

    @property
    def _evaluated_length(self):
        # Runs from before evaluation could have its own length lack the field.
        length = self.config.decode.get("segment_length")
        return length or self.config.data.segment_length

    def initial_state(self, batch_size, training):
        """See `Task.initial_state`; an empty memory. Windows that slide have none."""
        if not (self.config.data.memory if training else _remembers(self.config)):
            return ()
        return self._model.empty_memory(batch_size, self._memory_span)

    @property
    def _memory_span(self):
        data = self.config.data
        return data.memory_span or data.segment_length

    def losses(self, model, batch, state, training):
        """See `Task.losses`; (batch, length) each."""
        inputs, targets = batch["inputs"], batch["targets"]
        arguments = {"training": training}
        if self.config.model.get("adaptive_cutoffs"):
            arguments["targets"] = targets
        if state:
            if self.data.documents_are_apart:
                state = self._of_documents(state, inputs[:, 0], training)
            output, state = model(inputs, memory=state, **arguments)
        else:
            output = model(inputs, **arguments)
        if "targets" not in arguments:
            output = cross_entropy(targets, output), first_choice(output) == targets
        return *output, targets != 0, state

    def _of_documents(self, state, first, training):
        """Memory without that of documents which have ended.

        Args:
          first: id that each row begins with; of a document's first segment an end.
        """
        begins = first == self.tokenizer.end

        def emptied(empty, memory):
            rows = ops.reshape(begins, (-1, *[1] * (len(memory.shape) - 1)))
            return ops.where(rows, empty, memory)

        empty = self.initial_state(first.shape[0], training)
        return keras.tree.map_structure(emptied, empty, state)

    def evaluate(self, model, split, strategy, each_checkpoint=()):
        """Perplexity a word, whatever the tokens, and a token."""
        batches = self.evaluation_batches(split)
        evaluator = Evaluator(model, self, strategy)
        totals = self.totals(evaluator.evaluate(batches, f"evaluating {split}"))
        text, rows = self.data.text(split), []
        scores = {
            "examples": text.lines,
            "words": text.words,
            "tokens": int(totals.targets),
            **totals.metrics(),
            "decode": {
                "sliding_window": self.config.decode.sliding_window,
                "segment_length": self._evaluated_length,
            },
        }
        for unit, name in (("words", "perplexity"), ("tokens", "token_perplexity")):
            loss = totals.loss / scores[unit]
            scores[name] = float(np.exp(loss))
            rows.append(
                [unit, f"{scores[unit]:,}", f"{loss:.4f}", f"{scores[name]:.2f}"]
            )
        return Evaluation(scores, [Table(["in", "count", "loss", "perplexity"], rows)])

    def text_model(self, model, dtype="float32"):
        """`TextLanguageModel`; it sees a segment of a text, and what it remembers."""
        config = self.config
        # Runs from before it could be given lack the field.
        seed = config.decode.get("seed")
        return TextLanguageModel(
            model,
            self.tokenizer,
            config.decode,
            config.data.segment_length,
            config.seed if seed is None else seed,
            config.model,
            dtype,
            memory_span=self._memory_span if config.data.memory else None,
        )


def _remembers(config):
    """Whether a segment of an evaluation begins with what those before it have left."""
    return config.data.memory and not config.decode.sliding_window


def _check_evaluated_length(config):
    """Raises `UserError` if a segment has positions that were not trained."""
    length, trained = config.decode.get("segment_length"), config.data.segment_length
    positions = config.model.get("positions")
    beside = f"model.positions={positions}"
    if positions == "learned":
        most = trained
    elif attention_kind(config.model).has_weights_by_position:
        most, beside = trained, f"model.attention.name={config.model.attention.name}"
    elif positions == "relative-sinusoids":
        # All distances within a segment and the span of its memory are told apart.
        most = 2 * trained
        if _remembers(config):
            most -= config.data.memory_span or trained
    else:
        return
    if length and length > most:
        expected = f"at most {most} beside {beside}"
        fail("decode.segment_length", expected, length)


def _check_memory(config):
    """Raises `UserError` if a model can remember no text before, or would do so
    wrongly."""
    data, model = config.data, config.model
    by_sines = model.get("positions") == "relative-sinusoids"
    if by_sines and (data.memory_span or 0) > data.segment_length:
        fail(
            "data.memory_span",
            f"at most data.segment_length={data.segment_length} beside "
            "model.positions=relative-sinusoids",
            data.memory_span,
        )
    expected, memory = "False", attention_kind(model).memory
    if memory is None:
        expected += f", since the attention {model.attention.name} has none"
    elif memory == STATES and model.get("positions") in IN_ATTENTION:
        expected += f" beside model.positions={model.positions}"
    elif model.attention.get("redraw_every"):
        expected += " where random features are redrawn"
    else:
        return
    fail("data.memory", expected, True)
