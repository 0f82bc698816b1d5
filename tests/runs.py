"""Runs that nobody has trained: any weights serve to compare answers."""

from data.tokenizers import make_tokenizer
from tasks import TASKS
from tests.models.builders import randomize
from training import workdir as workdirs
from training.run_state import BEST, RunState
from training.tensorflow.checkpoints import Checkpoints


def untrained(config, workdir):
    """Makes the run of a config, with random weights, as train.py would leave it."""
    kind = TASKS[config.kind]
    tokenizer = make_tokenizer(config.data)
    model = randomize(kind(config, tokenizer).build_model())
    workdir.mkdir()
    workdirs.keep(config, tokenizer, {}, workdir)
    Checkpoints(workdir, model).save(BEST, RunState(step=1))
    return workdir
