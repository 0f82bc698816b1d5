"""Starting a run from the weights of another."""

import logging

from common.errors import UserError
from common.paths import make_path
from training import workdir as workdirs
from training.tensorflow.checkpoints import Checkpoints

logger = logging.getLogger("transevolve")


def take_weights(model, tokenizer, workdir) -> None:
    """Gives a model the best weights of another run, those of the same path and shape.

    What was taken and what was not is logged. Paths begin below the model, so that an
    encoder may come from a model of another kind.

    Args:
      model: a new one.
      tokenizer: of its task.
      workdir: of the other run.

    Raises:
      UserError: if there is no such run, or nothing fits.
    """
    workdir = make_path(workdir, "--config.train.init_from")
    try:
        _, other = workdirs.read(workdir)
        stored = {
            _below(path): value
            for path, value in Checkpoints(workdir, model).best_weights().items()
        }
    except UserError as error:
        raise UserError(f"--config.train.init_from: {error}") from None
    taken, left = [], []
    for weight in model.trainable_variables:
        value = stored.get(_below(weight.path))
        if value is None:
            left.append(f"{weight.path} (not there)")
        elif value.shape != tuple(weight.shape):
            here, there = (list(x.shape) for x in (weight, value))
            left.append(f"{weight.path} ({there} there, {here} here)")
        else:
            weight.assign(value)
            taken.append(weight.path)
    if not taken:
        raise UserError(
            f"--config.train.init_from={workdir}: expected weights that fit, found "
            f"none in common: {', '.join(left)}"
        )
    logger.info("from %s: took %s", workdir, ", ".join(taken))
    if left:
        logger.info("from %s: did not take %s", workdir, ", ".join(left))
    if other.identity != tokenizer.identity:
        logger.warning(
            "%s has another tokenizer: what its embeddings have learned is of other "
            "tokens",
            workdir,
        )


def _below(path):
    """The path of a weight without its model's name."""
    return path.partition("/")[2]
