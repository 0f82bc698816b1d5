"""Every step compiles by XLA, in each of its shapes, as a TPU needs it to."""

import pytest
import tensorflow as tf

from data.tokenizers import make_tokenizer
from decoding.translation import search
from models import can_decode, can_encode, can_model_language, variant_config
from models.convert import fold_rotations
from tasks import TASKS
from tests import forked, plain_text, scripts, translation
from tests.shallow import every_mechanism, representatives
from training.tensorflow.strategy import make_strategy
from training.tensorflow.trainer import Trainer

pytestmark = pytest.mark.slow

TINY = {"model.hidden_dim": 16, "model.ffn_dim": 16, "train.batch_size": 8}
# One model stands for all with these: they are the trainer's alone.
IN_PARTS = {"train.accumulate_steps": 2, "train.clip_norm": 0.5}
# Each in both models, and each variant of the paper.
EACH_ATTENTION = list(dict.fromkeys([*representatives(), *every_mechanism()]))


def changes(variant):
    return {**TINY, **(IN_PARTS if variant == "transformer" else {})}


def names(able, variants, quick=None):
    return [
        pytest.param(name, marks=[] if name == quick else pytest.mark.long)
        for name in variants
        if able(variant_config(name))
    ]


def only_models_language(config):
    return can_model_language(config) and not can_encode(config)


def open_task(config):
    kind = TASKS[config.kind]
    return kind(config, make_tokenizer(config.data))


def check_steps(task):
    """Trains on a batch of each shape, evaluates all, compiled; returns the model."""
    batches = task.training_batches()
    found = {}
    for batch in batches.for_training(seed=0):
        found.setdefault(tuple(batch["inputs"].shape), batch)
        if len(found) == len(batches.shapes):
            break
    assert set(found) == set(batches.shapes)
    strategy = make_strategy("one_device")
    with strategy.scope():
        model = task.build_model()
    trainer = Trainer(model, task, task.config.train, strategy, jit_compile=True)
    for batch in found.values():
        dataset = tf.data.Dataset.from_tensors(batch)
        trainer.train(trainer.iterate(dataset), 1)
    assert trainer.step == len(found)
    sums = tf.function(lambda batch: task.sums(model, batch, ()), jit_compile=True)
    validation = task.evaluation_batches("validation")
    shapes = {tuple(b["inputs"].shape) for b in validation.for_evaluation()}
    for batch in validation.for_evaluation():
        sums(batch)
    assert shapes <= set(validation.shapes)
    return model


@pytest.mark.parametrize(
    "variant", names(can_encode, EACH_ATTENTION, quick="transevolve-fullff-1")
)
def test_a_classifiers_steps_compile(variant, tmp_path):
    forked.call(check_classifier, variant, tmp_path)


# What a translator compiles more is its decoder, which decoding compiles, too. It takes
# longest, so the usual attentions stand for the others.
@pytest.mark.parametrize("variant", names(can_decode, representatives()))
def test_a_translators_steps_compile(variant, tmp_path):
    forked.call(check_translator, variant, tmp_path)


@pytest.mark.parametrize("variant", names(only_models_language, EACH_ATTENTION))
def test_a_language_models_steps_compile(variant, tmp_path):
    forked.call(check_language_model, variant, tmp_path)


def check_classifier(variant, folder):
    check_steps(open_task(scripts.listops_config(folder, variant, **changes(variant))))


def check_language_model(variant, folder):
    plain_text.write(folder)
    check_steps(open_task(plain_text.config(folder, variant, **changes(variant))))


def check_translator(variant, folder):
    translation.write(folder)
    # Shapes differ in a translation as in a classification: two are for the long test.
    shapes = {"data.bucket_lengths": (24,)} if variant == "transformer" else {}
    task = open_task(translation.config(folder, variant, **changes(variant), **shapes))
    model = check_steps(task)
    settings = task.config.decode
    folded = fold_rotations(model)
    compiled = tf.function(
        lambda rows: search(folded, rows, settings, static_shapes=True),
        jit_compile=True,
    )
    tokens, _ = compiled(tf.ones([2, 24], tf.int32))
    assert tokens.shape == (2, settings.beam_size, 24 + settings.extra_length)
