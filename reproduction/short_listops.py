"""The newcomer's comparison: all models on short ListOps, beside the paper's."""

import logging

import numpy as np

from benchmarks.timing import interleave, speedup
from benchmarks.updates import task_updates
from common.errors import UserError
from common.paths import make_local_path
from configs import listops
from configs.published import ACCURACY
from data import tokenizers
from models import BASELINE, variants
from reporting.tables import markdown_table
from reproduction import records
from reproduction.experiment import Experiment, Folder
from reproduction.running import run_all
from tasks import TASKS
from training import config as configuration

LISTOPS = Experiment("listops", "listops", "laptop")
# The paper's, and its future work.
COMPARED = [*variants(in_paper=True), "transevolve-fullff-1-linear"]
HEADER = [
    "model",
    "parameters",
    "test accuracy %",
    "training speed / Transformer",
    "paper's accuracy %",
]
TIMED_ROUNDS, UPDATES_PER_ROUND = 5, 10
MARGIN = 10  # points above always answering the most frequent class

logger = logging.getLogger("transevolve")


def compare(output, names: list[str] | None = None) -> tuple[str, bool]:
    """Trains, evaluates and times variants. Finished runs are not trained again.

    Several processes may share the folder: each trains what no other does.

    Args:
      output: folder with the runs below it.
      names: of the variants; None for `COMPARED`. The Transformer always runs, last,
        as what the others are compared with.

    Returns:
      A Markdown table with what its scale leaves out of the paper's, and whether every
      model ended at least `MARGIN` points above the most frequent class.

    Raises:
      UserError: if a name is unknown, a run failed, or the folder holds runs of other
        settings.
    """
    folder = Folder(make_local_path(output, "--output"), "comparison")
    names = [*dict.fromkeys(name for name in names or COMPARED if name != BASELINE)]
    experiments = {name: LISTOPS._replace(variant=name) for name in [*names, BASELINE]}
    configs = {name: folder.config(one) for name, one in experiments.items()}
    if failed := run_all(list(experiments.values()), folder, "one_device"):
        raise UserError(f"--output={output}: a run failed: {failed[0]}")
    workdirs = {name: folder.workdir(one) for name, one in experiments.items()}
    tokenizer = tokenizers.load(workdirs[BASELINE] / "tokenizer")
    tasks = {
        name: TASKS[config.kind](config, tokenizer) for name, config in configs.items()
    }
    speeds = _speeds(tasks)
    targets = tasks[BASELINE].evaluation_batches("test").rows.targets
    majority = 100 * np.bincount(targets).max() / len(targets)
    ran = {name: records.read(workdir) for name, workdir in workdirs.items()}
    rows, learned = [], []
    for name, record in ran.items():
        result = record.results["test"]
        accuracy = 100 * result["accuracy"]
        learned.append(accuracy >= majority + MARGIN)
        parameters, speed = f"{result['parameters']:,}", f"{speeds[name]:.2f}"
        published = ACCURACY["listops"].get(name, "")
        rows.append([name, parameters, f"{accuracy:.1f}", speed, published])
    report = (
        f"{markdown_table(HEADER, rows)}\n\n"
        f"Always answering the most frequent class: {majority:.1f} %. "
        f"{sum(learned)} of {len(learned)} models are at least {MARGIN} points above.\n"
        f"{_differences(ran[BASELINE].facts['device'])}"
    )
    return report, all(learned)


def _differences(device):
    paper = configuration.flatten(listops.get_config())
    changed = ", ".join(
        f"{name.split('.')[1]} {value} ({paper[name]})"
        for name, value in listops.PRESETS["laptop"].items()
        if value != paper[name] and name != "train.log_every"
    )
    return (
        "Short ListOps: it shows that everything runs and learns, and does not stand "
        f"in for the paper's. Here, and in brackets at the paper's scale: {changed}; "
        f"1 run (mean of 5), {device} (TPU v3-8). The fidelity of TransEvolve is "
        f"{paper['model.fidelity']}; see docs/fidelity.md."
    )


def _speeds(tasks):
    """How many times as fast as the baseline's a training step of each task is."""
    logger.info("\ntiming training steps side by side")
    calls = {
        name: task_updates(task, UPDATES_PER_ROUND) for name, task in tasks.items()
    }
    seconds = interleave(calls, TIMED_ROUNDS, "timing")
    return {name: speedup(seconds, name, BASELINE) for name in tasks}
