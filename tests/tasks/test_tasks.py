"""Every task from its files, or from TFDS, to an evaluation."""

import pytest

from data.datasets import ag_news, imdb
from evaluation.evaluate import evaluate
from evaluation.run import load_run
from reporting.evaluation import markdown
from tests import tfds_server
from tests.classification import settings, write_ag_news, write_imdb
from training.train import train_and_evaluate

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "task, write, names",
    [
        ("ag_news", write_ag_news, ag_news.CLASS_NAMES),
        *(
            pytest.param(task, write_imdb, imdb.CLASS_NAMES, marks=pytest.mark.long)
            for task in ("imdb", "char_imdb")
        ),
    ],
)
def test_a_task_trains_from_files(task, write, names, tmp_path):
    write(tmp_path)
    config = settings(task, tmp_path)
    config.data.update(source="files", dir=str(tmp_path))
    result = train_and_evaluate(config, tmp_path / "run")
    assert result["step"] == 5
    # What is too much at once in training is too much in evaluation.
    task_of_run = load_run(tmp_path / "run").task
    assert task_of_run.evaluation_batches("test").shapes == [(2, 16), (2, 32)]
    result, found = evaluate(tmp_path / "run")
    table = markdown(found)
    assert result["task"] == task and result["examples"] == 20
    assert len(table.splitlines()) == 2 + len(names)
    assert all(f"| {name} |" in table for name in names)


def test_a_task_trains_from_tfds(tmp_path, monkeypatch):
    config = settings("ag_news", tmp_path)
    config.data.dir = str(tmp_path / "tfds")
    with tfds_server.serving(monkeypatch):
        train_and_evaluate(config, tmp_path / "run")
        result, found = evaluate(tmp_path / "run")
    table = markdown(found)
    assert result["examples"] == 4
    assert all(f"| {name} |" in table for name in ag_news.CLASS_NAMES)
