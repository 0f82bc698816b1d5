"""Every task from its files, or from TFDS, to an evaluation."""

import importlib

import pytest

from data.datasets import ag_news, imdb
from reporting.evaluation import markdown
from training.evaluation import evaluate
from training.run import load_run
from training.train import train_and_evaluate

pytestmark = pytest.mark.slow

TINY = {
    "model.hidden_dim": 16,
    "model.num_heads": 2,
    "model.ffn_dim": 32,
    "model.num_depths": 1,
    "data.validation_examples": 6,
    "data.max_length": 32,
    "data.bucket_lengths": (16, 32),
    "train.batch_size": 4,
    "train.accumulate_steps": 2,
    "train.steps": 5,
}
WORDS = "[PAD]\n[UNK]\ngood\nbad\nfilm\nnews\n"


def write_ag_news(folder):
    for split in ("train", "test"):
        rows = [f'"{i % 4 + 1}","news","{"film " * (i + 1)}"\n' for i in range(20)]
        (folder / f"{split}.csv").write_text("".join(rows))


def write_imdb(folder):
    for split in ("train", "test"):
        for name, text in (("pos", "good film"), ("neg", "bad film")):
            reviews = folder / "aclImdb" / split / name
            reviews.mkdir(parents=True)
            for i in range(10):
                (reviews / f"{i}_1.txt").write_text(" ".join([text] * (i + 1)))


def settings(task, tmp_path):
    module = importlib.import_module(f"configs.{task}")
    config = module.get_config("transevolve-fullff-1")
    config.update_from_flattened_dict({**TINY, "data.cache_dir": str(tmp_path / "c")})
    if task != "char_imdb":
        (tmp_path / "vocab.txt").write_text(WORDS)
        config.data.vocab_file = str(tmp_path / "vocab.txt")
    return config


@pytest.mark.parametrize(
    "task, write, names",
    [
        ("ag_news", write_ag_news, ag_news.CLASS_NAMES),
        ("imdb", write_imdb, imdb.CLASS_NAMES),
        ("char_imdb", write_imdb, imdb.CLASS_NAMES),
    ],
)
def test_from_files(task, write, names, tmp_path):
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


def test_from_tfds(tmp_path):
    import tensorflow_datasets as tfds

    config = settings("ag_news", tmp_path)
    config.data.dir = str(tmp_path / "tfds")
    with tfds.testing.mock_data(num_examples=12):
        train_and_evaluate(config, tmp_path / "run")
        result, found = evaluate(tmp_path / "run")
    table = markdown(found)
    assert result["examples"] == 12
    assert all(f"| {name} |" in table for name in ag_news.CLASS_NAMES)
