"""Runs that stand in one picture."""

from common.errors import UserError
from evaluation.run import Run


def run_name(run: Run) -> str:
    """The variant, and whether it carries a memory."""
    has_memory = run.config.data.get("memory", False)
    return run.config.variant + ", memory" * has_memory


def check_comparable(runs: list[Run], split: str) -> None:
    """Raises `UserError` if runs read other data of a split, or have the same name."""
    data, names = [], []
    for run in runs:
        data.append(run.task.evaluation_batches(split).fingerprint)
        names.append(run_name(run))
        if data[-1] != data[0]:
            expected = f"the {split} data and the tokens of {runs[0].workdir}"
            raise UserError(f"--workdir={run.workdir}: expected {expected}")
        if names.count(names[-1]) > 1:
            raise UserError(f"--workdir={run.workdir}: expected one run of {names[-1]}")
