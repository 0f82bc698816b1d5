"""What benchmark.py serve yields, on models and texts that take seconds."""

import pytest

from benchmarks import models, serve
from tests.benchmarks.turns import PAIR, TWO_SECONDS

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick")]


@pytest.fixture
def answers(monkeypatch):
    """What is served, by its name; an export takes two seconds, all else takes one."""
    answers = {}

    def interleave(given, rounds, title):
        answers.update({name: call() for name, call in given.items()})
        return {
            name: [1.0] * 3 if isinstance(name, tuple) else TWO_SECONDS
            for name in given
        }

    monkeypatch.setattr(serve, "interleave", interleave)
    return answers


def check_served(row):
    assert (row["p50_ms"], row["p99_ms"]) == (2000, 3960)
    assert row["texts_per_second"] == 1.5
    assert (row["latency_to_predict"], row["time_to_evaluation"]) == (2.0, 2.0)


def test_classifiers_are_served(answers):
    short, long = serve.measure(PAIR[:1], [8, 40], batch_size=3)
    assert (short["length"], long["length"]) == (8, 40)
    for row in (short, long):
        check_served(row)
        assert row["latency_to_transformer"] == 1.0
    # An export holds its weights, and little more.
    weights = 4 * models.build(PAIR[0], "small").count_params() / 1e6
    assert weights < short["disk_mb"] < weights + 2
    scores, *_ = answers[PAIR[0]]
    assert len(scores) == sum(map(len, answers[PAIR[0], "evaluation"])) == 3


class Unsaved:
    """A `serve.Export` that is not written, which takes long."""

    load_seconds = num_bytes = 0

    def __init__(self, text_model, folder):
        self._text_model = text_model

    def answering(self, texts):
        return lambda: self._text_model.outputs("serving_default", texts)


@pytest.mark.long
def test_translators_are_served(answers, monkeypatch):
    monkeypatch.setattr(models, "NUM_SUBWORDS", 300)
    monkeypatch.setattr(serve, "NUM_LINES", 200)
    monkeypatch.setattr(serve, "Export", Unsaved)
    serve._tokenizer.cache_clear()
    (row,) = serve.measure(PAIR[1:], [8], task="translation", batch_size=3)
    serve._tokenizer.cache_clear()
    check_served(row)
    assert "latency_to_transformer" not in row
    served = [text["translation"].decode() for text in answers[PAIR[1]]]
    assert len(served) == len(answers[PAIR[1], "evaluation"]) == 3
    assert served[0] == answers[PAIR[1], "evaluation"][0]
