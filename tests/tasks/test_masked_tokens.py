"""Learning to find hidden tokens, and a classification that starts from it."""

import numpy as np
import pytest

from common.errors import UserError
from evaluation.evaluate import evaluate
from evaluation.run import load_run
from models import build_classifier, build_masked_model, variant_config
from tests.models.builders import randomize
from tests.scripts import listops_config, metrics
from training import config as configuration
from training.init_from import take_weights
from training.train import train_and_evaluate

pytestmark = pytest.mark.slow
CHANGES = {"kind": "masked_tokens", "data.bucket_lengths": (24,)}
MODEL = {"hidden_dim": 16, "num_heads": 2, "ffn_dim": 32, "dropout": 0.0}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("masked")
    config = listops_config(
        folder / "cache", **CHANGES, **{"train.steps": 200, "train.accumulate_steps": 2}
    )
    train_and_evaluate(config, folder / "run")
    return folder / "run"


@pytest.mark.parametrize("variant", ["transevolve-randomff-1", "transformer-rfa"])
def test_the_encoder_sees_a_hidden_token_s_place_alone(variant):
    model = randomize(build_masked_model({**variant_config(variant), **MODEL}, 9))
    tokens = np.array([[3, 1, 4, 1, 5, 0]])
    hidden = np.array([[False, True, False, False, True, False]])
    logits = np.array(model(tokens, hidden))
    assert logits.shape == (1, 6, 9)
    others = np.where(hidden, 7, tokens)
    np.testing.assert_array_equal(model(others, hidden), logits)
    shown = np.array(model(tokens, np.zeros_like(hidden)))
    assert np.abs(shown - logits)[0, :5].max() > 1e-3


def test_a_model_without_attention_is_refused():
    config = listops_config("cache", "bag-of-words", **CHANGES)
    with pytest.raises(UserError, match="variant: expected a variant with attention"):
        configuration.check(config)


def test_it_learns_more_than_how_often_a_token_is(run):
    """As that a bracket closes at the end."""
    batches = load_run(run).task.evaluation_batches("validation").for_evaluation()
    targets = [batch["targets"].ravel() for batch in batches.as_numpy_iterator()]
    counts = np.bincount(np.concatenate(targets))[1:]
    shares = counts[counts > 0] / counts.sum()
    rows = [row["loss"] for row in metrics(run) if row["split"] == "validation"]
    assert min(rows) < -np.sum(shares * np.log(shares)) - 0.05


def test_its_evaluation_is_a_table_and_no_class(run):
    result, found = evaluate(run)
    assert result["tokens"] > 0 and 0 < result["accuracy"] < 1
    (table,) = found.tables
    assert table.header == ["hidden tokens", "loss", "accuracy %"]
    with pytest.raises(UserError, match="kind masked_tokens answers no texts"):
        load_run(run).predict(["( MAX 1 2 )"])


def test_a_classification_starts_from_it(run, caplog):
    given = load_run(run)
    size = given.tokenizer.vocabulary_size
    classifier = build_classifier(given.config.model, size, 10)
    caplog.set_level("INFO", logger="transevolve")
    take_weights(classifier, given.tokenizer, run)
    *_, left = caplog.messages
    names = [part.split()[0] for part in left.split("did not take ")[1].split(", ")]
    # The head alone is new.
    new = [f"classifier/{name}" for name in ("norm/gamma", "norm/beta")]
    assert names == [*new, "classifier/logits/kernel", "classifier/logits/bias"]
    for one, other in zip(
        classifier.encoder.trainable_weights,
        given.model.encoder.trainable_weights,
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(
        classifier.embedding.embeddings, given.model.embedding.embeddings
    )
