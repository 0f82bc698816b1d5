"""Language modelling: perplexities against sums by hand, and scores of texts."""

import math

import numpy as np
import pytest

from common.errors import UserError
from data.tokenizers import make_tokenizer
from evaluation.run import load_run
from tasks import TASKS
from tests import plain_text
from tests.models.builders import numpy, randomize
from tests.runs import untrained
from training import config as configuration
from training.tensorflow.strategy import make_strategy
from training.tensorflow.trainer import Trainer

pytestmark = pytest.mark.slow


def make_task(folder, **changes):
    config = plain_text.config(folder, **changes)
    configuration.check(config)
    kind = TASKS[config.kind]
    return kind(config, make_tokenizer(config.data))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return plain_text.write(tmp_path_factory.mktemp("text"))


def evaluate(task, model):
    return task.evaluate(model, "test", make_strategy("one_device")).scores


@pytest.mark.parametrize(
    "tokenizer, size",
    [
        pytest.param("words", 50, marks=pytest.mark.long),
        # As many as SentencePiece demands, and some.
        pytest.param("subwords", 300, marks=pytest.mark.long),
        ("bytes", 50),
    ],
)
def test_perplexity_is_a_word_s_whatever_the_tokens(folder, tokenizer, size):
    task = make_task(folder, **{"data.tokenizer": tokenizer, "data.vocab_size": size})
    model = randomize(task.build_model())
    scores = evaluate(task, model)
    text, length = task.data.text("test"), task.config.data.segment_length
    loss, tokens = 0.0, text.tokens.astype("int32")
    inputs = np.insert(tokens[:-1], 0, task.tokenizer.end)
    for start in range(0, len(tokens), length):
        logits = np.float64(model(inputs[None, start : start + length])[0])
        logits -= logits.max(axis=1, keepdims=True)
        targets = tokens[start : start + length]
        at_targets = logits[np.arange(len(targets)), targets]
        loss += np.sum(np.log(np.exp(logits).sum(axis=1)) - at_targets)
    assert scores["tokens"] == len(tokens) and scores["words"] == text.words
    assert scores["perplexity"] == pytest.approx(math.exp(loss / text.words), rel=1e-4)
    expected = math.exp(loss / len(tokens))
    assert scores["token_perplexity"] == pytest.approx(expected, rel=1e-4)


def test_segments_of_an_evaluation_may_have_their_own_length(folder):
    losses, rows = [], []
    for changes in ({"data.segment_length": 30}, {"decode.segment_length": 30}, {}):
        task = make_task(folder, **changes)
        losses.append(evaluate(task, randomize(task.build_model()))["loss"])
        (batch, *_) = task.evaluation_batches("test").for_evaluation()
        rows.append(len(batch["inputs"]))
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    assert losses[2] != pytest.approx(losses[1], rel=1e-3)
    # Of 30 tokens, a batch has no more than 8 rows of 12.
    assert rows == [8, 3, 8]


@pytest.mark.parametrize(
    "name, value, memory, most",
    [
        ("model.positions", "learned", False, 12),
        ("model.positions", "relative-sinusoids", False, 24),
        ("model.positions", "relative-sinusoids", True, 12),
        ("variant", "transformer-synthesizer-random", False, 12),
    ],
)
def test_no_segment_has_untrained_positions(folder, name, value, memory, most):
    changes = {name: value, "data.memory": memory}
    make_task(folder, **changes, **{"decode.segment_length": most})
    message = f"decode.segment_length: expected at most {most} beside model."
    with pytest.raises(UserError, match=message):
        make_task(folder, **changes, **{"decode.segment_length": most + 1})


def test_a_window_that_slides_has_the_distances_of_training_without_a_memory(folder):
    changes = {"model.positions": "relative-sinusoids", "data.memory": True}
    changes |= {"decode.segment_length": 24}
    make_task(folder, **changes, **{"decode.sliding_window": True})
    with pytest.raises(UserError, match="segment_length: expected at most 12 beside"):
        make_task(folder, **changes)


LINEAR = {"variant": "transevolve-fullff-1-linear", "data.memory": True}
EXACT = {**LINEAR, "variant": "transformer", "model.positions": "none"}
DELTA = {**LINEAR, "variant": "transevolve-fullff-1-delta"}
APART = {**DELTA, "model.positions": "none", "data.documents": "apart"}
DISTANCES = {**EXACT, "model.positions": "relative-sinusoids"}
ROUNDED = {"model.dtype": "mixed_bfloat16", "model.adaptive_cutoffs": (8,)}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="segments", marks=pytest.mark.long),
        pytest.param({"decode.sliding_window": True}, id="windows"),
        pytest.param(LINEAR, id="states", marks=pytest.mark.long),
        pytest.param(APART, id="states within documents"),
        pytest.param(EXACT, id="positions", marks=pytest.mark.long),
        pytest.param(ROUNDED, id="an adaptive softmax in bfloat16"),
    ],
)
def test_an_evaluation_does_not_depend_on_the_batch_size(folder, changes):
    found = []
    for batch_size in (1, 7):
        task = make_task(folder, **changes, **{"train.batch_size": batch_size})
        found.append(evaluate(task, randomize(task.build_model())))
    assert found[0].pop("loss") == pytest.approx(found[1].pop("loss"), rel=1e-6)
    for name in ("perplexity", "token_perplexity"):
        assert found[0].pop(name) == pytest.approx(found[1].pop(name), rel=1e-5)
    assert found[0] == found[1]


def test_a_score_is_the_loss_of_a_line(folder, tmp_path):
    config = plain_text.config(folder, **{"data.segment_length": 30})
    run = load_run(untrained(config, tmp_path / "run"))
    lines = (folder / "test.txt").read_text().splitlines()[:5]
    found = run.text_model.outputs("score", lines)
    for line, outputs in zip(lines, found, strict=True):
        (ids,) = run.tokenizer([line]).to_list()
        tokens = np.array([*ids, run.tokenizer.end])
        logits = np.float64(run.model(np.insert(tokens[:-1], 0, 2)[None])[0])
        log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        expected = log_probs[np.arange(len(tokens)), tokens].sum()
        assert outputs["log_prob"] == pytest.approx(expected, rel=1e-4)
        assert outputs["tokens"] == len(tokens) and not outputs["truncated"]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(APART, id="delta"),
        pytest.param(LINEAR, id="linear", marks=pytest.mark.long),
        pytest.param(
            {**DISTANCES, "model.adaptive_cutoffs": (8,)}, id="distances and cutoffs"
        ),
        pytest.param(
            {**EXACT, "variant": "transevolve-fullff-1-local"},
            id="window",
            marks=pytest.mark.long,
        ),
    ],
)
def test_with_a_memory_lines_are_scored_as_they_are_evaluated(
    folder, tmp_path, changes
):
    changes = {**changes, "data.documents": "apart", "data.segment_length": 3}
    config = plain_text.config(folder, **changes)
    run = load_run(untrained(config, tmp_path / "run"))
    lines = (folder / "test.txt").read_text().splitlines()
    outputs = run.text_model.outputs("score", lines)
    tokens = sum(each["tokens"] for each in outputs)
    loss = -sum(np.float64(each["log_prob"]) for each in outputs) / tokens
    assert loss == pytest.approx(evaluate(run.task, run.model)["loss"], rel=1e-5)
    assert not any(each["truncated"] for each in outputs)
    assert max(each["tokens"] for each in outputs) > 2 * 3


def test_a_run_without_a_seed_of_continuations_takes_one(folder, tmp_path):
    config = plain_text.config(folder)
    del config.decode.seed  # of a run from before there was one
    workdir = untrained(config, tmp_path / "run")
    texts = [
        load_run(workdir, decode=decode).predict(["one two three"])[0].text
        for decode in (None, {"seed": config.seed}, {"seed": 1})
    ]
    assert texts[0] == texts[1] != texts[2]


def test_what_is_too_long_is_cut_and_said(folder, tmp_path):
    run = load_run(untrained(plain_text.config(folder), tmp_path / "run"))
    text = " ".join(["one"] * 11)
    answers = run.predict([text, f"{text} one", f"two {text}", ""])
    assert [answer.truncated for answer in answers] == [False, True, True, False]
    # The last tokens are seen.
    assert answers[0].text == answers[1].text == answers[2].text
    assert len({len(answer.text.split()) for answer in answers}) <= 8


LONG_TEXTS = ["one two six " * count for count in (5, 1, 3)] + ["", "nine"]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({**LINEAR, "model.positions": "none"}, marks=pytest.mark.long),
        {**APART, "decode.beam_size": 2},
        pytest.param({**APART, "variant": "transformer-delta"}, marks=pytest.mark.long),
    ],
    ids=["sum", "beams", "layers"],
)
def test_a_continuation_has_what_the_segments_before_left(folder, tmp_path, changes):
    def answers(length):
        now = {**changes, "decode.temperature": 0, "data.segment_length": length}
        config = plain_text.config(folder, **now)
        run = load_run(untrained(config, tmp_path / f"{length}"))
        return run.predict(LONG_TEXTS)

    whole = answers(40)
    assert answers(4) == whole
    assert not any(answer.truncated for answer in whole)
    assert len({answer.text for answer in whole}) > 1


def test_positions_begin_anew_in_the_segment_that_is_continued(folder, tmp_path):
    changes = {"data.segment_length": 4, "decode.continuation_length": 1}
    config = plain_text.config(folder, **DELTA, **changes, **{"decode.temperature": 0})
    run = load_run(untrained(config, tmp_path / "run"))
    for text, answer in zip(LONG_TEXTS, run.predict(LONG_TEXTS), strict=True):
        (ids,) = run.tokenizer([text]).to_list()
        tokens, memory = [run.tokenizer.end, *ids], run.model.empty_memory(1, 0)
        for start in range(0, len(tokens), 4):
            segment = np.array([tokens[start : start + 4]])
            logits, memory = run.model(segment, memory=memory)
        chosen = np.argmax(numpy(logits)[0, -1, 1:]) + 1
        (expected,) = run.tokenizer.decode(np.array([[chosen]])).numpy()
        assert answer.text == ("" if chosen == run.tokenizer.end else expected.decode())


def test_what_cannot_model_language_is_refused(folder):
    message = "--config.variant: expected a variant that is causal and decodes"
    with pytest.raises(UserError, match=message):
        make_task(folder, variant="transevolve-fullff-1-linformer")


@pytest.mark.parametrize(
    "changes, length, span",
    [
        pytest.param(LINEAR, 4, 200, id="states", marks=pytest.mark.long),
        pytest.param(DELTA, 4, 200, id="delta"),
        pytest.param(EXACT, 4, 200, id="positions", marks=pytest.mark.long),
        # They are told apart up to twice the length of a segment.
        pytest.param(DISTANCES, 100, 100, id="distances"),
    ],
)
def test_window_and_memory_as_long_as_the_text_are_one_segment(
    folder, changes, length, span
):
    """And of documents that are apart, each is a text."""
    losses = {}
    for documents in (None, "apart"):
        changes = {**changes, "data.memory_span": span, "data.documents": documents}
        for form, now in {
            "segment": {"data.segment_length": 200, "data.memory": False},
            "window": {"data.segment_length": 200, "decode.sliding_window": True},
            "memory": {"data.segment_length": length},
        }.items():
            task = make_task(folder, **({"model.positions": "none"} | changes | now))
            loss = evaluate(task, randomize(task.build_model()))["loss"]
            losses[documents, form] = loss
            segment = losses[documents, "segment"]
            assert loss == pytest.approx(segment, rel=1e-5), (documents, form)
    assert 100 < len(task.data.text("test").tokens) < 200
    assert losses[None, "segment"] != pytest.approx(segment, rel=1e-4)


@pytest.mark.parametrize("variant", ["transevolve-fullff-1-linear", "transformer"])
def test_a_row_that_begins_a_document_forgets_those_before(folder, variant):
    changes = {**LINEAR, "variant": variant, "model.positions": "none"}
    task = make_task(folder, **changes, **{"data.documents": "apart"})
    model, end = randomize(task.build_model()), task.tokenizer.end
    text = np.array([[end, 5, 6, 7], [end, 8, 5, 6]], np.int32)
    before = {"inputs": text, "targets": np.roll(text, -1, axis=1)}
    *_, memory = task.losses(
        model, before, task.initial_state(2, False), training=False
    )
    # The second text goes on, the first one begins another.
    text = np.array([[end, 7, 5], [6, 7, 5]], np.int32)
    batch = {"inputs": text, "targets": np.roll(text, -1, axis=1)}
    losses, *_ = task.losses(model, batch, memory, training=False)
    anew, *_ = task.losses(model, batch, task.initial_state(2, False), training=False)
    np.testing.assert_allclose(losses[0], anew[0], rtol=0, atol=1e-5)
    assert np.abs(numpy(losses)[1] - numpy(anew)[1]).max() > 1e-3


@pytest.mark.parametrize("name", ["top_k", "top_p"])
def test_what_draws_is_refused_beside_a_search(folder, name):
    changes = {"decode.beam_size": 2, f"decode.{name}": 1}
    with pytest.raises(
        UserError, match=f"decode.{name}: expected none beside decode.b"
    ):
        make_task(folder, **changes)


def test_windows_that_slide_remember_nothing_and_training_does_beside(folder):
    found, losses = [], []
    for memory in (False, True):
        changes = {**LINEAR, "data.memory": memory, "decode.sliding_window": True}
        task = make_task(folder, **changes)
        strategy = make_strategy("one_device")
        with strategy.scope():
            model = randomize(task.build_model())
        found.append(task.evaluate(model, "test", strategy).scores)
        trainer = Trainer(model, task, task.config.train, strategy)
        iterator = trainer.iterate(task.training_batches().for_training(0))
        losses.append([trainer.train(iterator, 1).loss for _ in range(2)])
        assert bool(trainer.carried()) == memory
    assert found[0] == found[1]
    (first, second), (first_of_memory, second_of_memory) = losses
    assert first == pytest.approx(first_of_memory, rel=1e-6)
    assert second != pytest.approx(second_of_memory, rel=1e-4)


@pytest.mark.parametrize(
    "changes, found",
    [
        (
            {"variant": "transevolve-fullff-1-synthesizer-random"},
            "the attention synthesizer has none",
        ),
        ({"model.positions": "rotary"}, "beside model.positions=rotary"),
        (
            {"variant": "transformer-linear-favor", "model.attention.redraw_every": 9},
            "where random features are redrawn",
        ),
        (
            {
                "variant": "transformer-delta",
                "model.attention.attention_normalisation": True,
            },
            "beside model.attention.attention_normalisation",
        ),
    ],
)
def test_a_memory_that_would_be_wrong_is_refused(folder, changes, found):
    with pytest.raises(UserError, match=f"data.memory: expected False.* {found}"):
        make_task(folder, **{**LINEAR, **changes})


def test_a_span_beyond_the_distances_that_are_told_apart_is_refused(folder):
    changes = {**LINEAR, "variant": "transformer", "data.memory_span": 13}
    message = "data.memory_span: expected at most data.segment_length=12 beside"
    with pytest.raises(UserError, match=message):
        make_task(folder, **changes, **{"model.positions": "relative-sinusoids"})
    make_task(folder, **changes, **{"model.positions": "relative-keys"})


def test_an_adaptive_softmax_is_evaluated_by_its_probabilities(folder):
    """Whatever the batch size, and in a window that slides."""
    scores = []
    for batch_size, slides in ((7, False), (1, False), (7, True)):
        changes = {"model.adaptive_cutoffs": (5, 9), "data.segment_length": 400}
        changes |= {"train.batch_size": batch_size, "decode.sliding_window": slides}
        task = make_task(folder, **changes)
        model = randomize(task.build_model())
        scores.append(evaluate(task, model))
    text = task.data.text("test").tokens.astype("int32")
    inputs = np.insert(text[:-1], 0, task.tokenizer.end)
    log_probs = numpy(model(inputs[None]))[0]
    at_targets = log_probs[np.arange(len(text)), text]
    for found in scores:
        assert found["loss"] == pytest.approx(-at_targets.mean(), rel=1e-5)
        right = log_probs.argmax(-1) == text
        assert found["accuracy"] == pytest.approx(right.mean(), abs=1e-6)


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {"model.adaptive_cutoffs": (5, 13)},
            "adaptive_cutoffs: expected ids below 13",
        ),
        (
            {"variant": "transformer", "model.residuals": "reversible"},
            "residuals: expected none given, since",
        ),
        (
            {
                "variant": "transformer",
                "model.initialization": "depth-scaled",
                "model.initial_deviation": 0.1,
            },
            "initial_deviation: expected none beside model.initialization",
        ),
    ],
)
def test_output_layers_and_weights_that_cannot_be_are_refused(folder, changes, message):
    with pytest.raises(UserError, match=f"model.{message}"):
        make_task(folder, **changes).build_model()
