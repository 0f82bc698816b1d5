"""Training a model from a config to a workdir."""

import common.backend  # noqa: F401 - TensorFlow imports Keras

# isort: split
import logging
from contextlib import nullcontext

import keras
import tensorflow as tf

from common.errors import UserError
from common.interruption import catch_signals
from common.paths import make_path
from data.tokenizers import make_tokenizer
from models import count_parameters
from tasks import TASKS
from training import config as configuration
from training import workdir as workdirs
from training.backends import BY_JAX, Evaluator, Trainer, announce, take_jax_device
from training.init_from import take_weights
from training.lock import locked
from training.loop import Loop
from training.metrics_log import MetricsLog
from training.run_state import BEST, LAST, RESUME, RunState
from training.tensorflow.checkpoints import Checkpoints
from training.tensorflow.memory_prediction import check_model_fits, check_updates_fit
from training.tensorflow.profiler import Profile
from training.tensorflow.strategy import make_strategy, separate_dropout
from training.tensorflow.workers import Agreement

# Fields that may differ between workers: where files lie.
PLACES = {"data.dir", "data.cache_dir"}

logger = logging.getLogger("transevolve")


def train_and_evaluate(
    config,
    workdir,
    strategy: tf.distribute.Strategy | None = None,
    profile: str | None = None,
    test_at_validations: bool = False,
):
    """Trains from the config, or from the workdir's last checkpoint, to the end.

    Each epoch, or every `train.validate_every` steps, ends with an evaluation on
    validation data and a checkpoint; the best one is kept too. With one seed, on one
    machine, two runs are alike to the bit, and so is one that was stopped and went on.

    Args:
      config: as from a file in `configs/`.
      workdir: folder of the run; docs/runs.md, "The workdir", lists what it holds.
      strategy: None for one device.
      profile: steps, see `Profile`.
      test_at_validations: whether to evaluate test data, too, at each validation. Its
        scores go to `test_scores.jsonl` and choose nothing.

    Returns:
      The step reached, the best validation score by its name, and the number of
      training examples, None if no epoch has ended that would count them.

    Raises:
      UserError: for a bad config, or a workdir of another run or process; a
        `DataError` for bad input; `Interrupted` after a signal.
    """
    configuration.check(config)
    strategy = strategy or make_strategy("one_device")
    if BY_JAX:
        take_jax_device(strategy, profile, config.train.deterministic)
    announce(strategy)
    _report_filling(config, strategy)
    workdir = make_path(workdir, "--workdir")
    profile = None if profile is None else Profile(profile, workdir)
    agreement = Agreement(strategy)
    with (
        locked(workdir) if agreement.is_chief else nullcontext(),
        agreement.explaining_losses(),
    ):
        return _train(
            config, workdir, strategy, agreement, profile, test_at_validations
        )


def _train(config, workdir, strategy, agreement, profile, test_at_validations):
    keras.utils.set_random_seed(config.seed)
    if config.train.deterministic and not BY_JAX:
        tf.config.experimental.enable_op_determinism()
    is_chief = agreement.is_chief
    (going_on,) = agreement.any(is_chief and workdirs.has_started(workdir))
    if is_chief:
        task, train, validation = _prepare(config, workdir, going_on)
    agreement.wait()
    if not is_chief:
        # The chief has stored what all must have.
        stored, _ = workdirs.read(workdir)
        for name in set(workdirs.differences(config, stored)) - PLACES:
            raise UserError(f"--config.{name}: expected the same for all workers")
        task, train, validation = _prepare(config, workdir, True, is_chief=False)
    # JAX says itself what it has no memory for, before the first update.
    if not BY_JAX:
        check_model_fits(config.model, task.tokenizer.vocabulary_size, strategy)
    with strategy.scope():
        model = task.build_model()
    logger.info("%s: %d parameters", config.variant, count_parameters(model))
    trainer = Trainer(model, task, config.train, strategy)
    keep = config.train.keep_checkpoints
    checkpoints = Checkpoints(workdir, model, trainer.optimizer, keep)
    if is_chief:
        checkpoints.clean()
    state = RunState()
    if going_on:
        state = _resume(checkpoints, agreement, workdir)
        train.num_batches = state.batches_per_epoch or train.num_batches
        train.num_examples = state.examples_per_epoch or train.num_examples
    elif config.train.init_from:
        take_weights(model, task.tokenizer, config.train.init_from)
    if not going_on and is_chief:
        # So that what a run has lost is told from what it never had.
        checkpoints.save(RESUME, state)
    agreement.wait()
    evaluator = Evaluator(model, task, strategy)
    if not BY_JAX:
        separate_dropout(model, strategy)
        # Before the log: after it, the run has begun, and its config stays.
        check_updates_fit(trainer, train, evaluator, validation)
    log = None
    if is_chief:
        log = MetricsLog(workdir, state.logged_lines, state.log_sum)
        log.write_hyperparameters(configuration.flatten(config), task.metric)
    loop = Loop(
        task,
        trainer,
        evaluator,
        train,
        validation,
        checkpoints,
        log,
        state,
        agreement,
        profile if is_chief else None,
        task.evaluation_batches("test") if test_at_validations else None,
    )
    with catch_signals() as interruption:
        loop.run(interruption)
    return {
        "step": state.step,
        f"best_validation_{task.metric}": state.best_score,
        "training_examples": train.num_examples,
    }


def _resume(checkpoints, agreement, workdir):
    state, kind = checkpoints.resume()
    if not agreement.is_equal(state.step):
        raise UserError(
            f"--workdir={workdir}: expected the same checkpoint for all workers, "
            f"found that of step {state.step} here and another elsewhere"
        )
    logger.info("going on from step %d", state.step)
    if agreement.is_chief and kind == BEST:  # saved before its fellow in `last/`
        checkpoints.save(LAST, state)
    return state


def _prepare(config, workdir, going_on, is_chief=True):
    """The task, its training and its validation batches; the run's identity is stored,
    or compared with what is stored."""
    kind, stored = TASKS[config.kind], None
    if going_on:
        stored, tokenizer = workdirs.read(workdir)
        workdirs.check_same_run(config, stored, workdir)
    else:
        tokenizer = make_tokenizer(config.data)
    task = kind(config, tokenizer)
    train, validation = task.training_batches(), task.evaluation_batches("validation")
    batches = {"training": train, "validation": validation}
    if going_on:
        otherwise = "give the same data to go on with it, or another workdir"
        workdirs.check_same_data(batches, workdir, otherwise)
    data = {split: one.fingerprint for split, one in batches.items()}
    if is_chief and (not going_on or workdirs.differences(config, stored)):
        workdirs.keep(config, tokenizer, data, workdir)
    return task, train, validation


def _report_filling(config, strategy):
    replicas = strategy.num_replicas_in_sync
    microbatches = config.train.accumulate_steps
    rows = sorted({rows for rows, _ in TASKS[config.kind].shapes(config)})
    if any(number % (replicas * microbatches) for number in rows):
        logger.info(
            "batches of %s rows are filled up with empty rows to a multiple of %d, for "
            "%d devices and %d microbatches",
            ", ".join(map(str, rows)),
            replicas * microbatches,
            replicas,
            microbatches,
        )
