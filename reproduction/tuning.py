"""The learning rate of each model, chosen on validation data."""

from typing import NamedTuple

from reproduction.experiment import Experiment
from reproduction.records import FAILED
from reproduction.results import Results
from reproduction.scales import Scale

FIELD = "train.learning_rate_max"


class Tuning(NamedTuple):
    """A model on a task, and how far the choice of its learning rate has come.

    Attributes:
      runs: that there are to run now: first one trial of each rate, which have one
        seed, then those of the chosen rate, the trial among them.
      rate: that was chosen; None before, and where a task tries none.
      scores: {rate: the best validation score of its trial}, of those that ended.
    """

    runs: list[Experiment]
    rate: float | None = None
    scores: dict[float, float] = {}

    @property
    def filling(self) -> list[Experiment]:
        """The runs that fill a row: none of the trials before one was chosen."""
        return [one for one in self.runs if one.choice == _choice(self.rate)]


def tune(
    scale: Scale, task: Experiment, variant: str, results: Results | None
) -> Tuning:
    """The runs of a model on a task at the best of the task's learning rates.

    A trial that failed, as by a loss that is no number, is not chosen.

    Args:
      scale: says how many seeds there are.
      task: how it runs; its `learning_rates` are tried.
      variant: of the model.
      results: of the trials. None for all runs that there may be: then the middle rate
        is taken for the best.
    """
    if not task.learning_rates:
        return Tuning(scale.each_seed(task, variant))
    runs = {
        rate: scale.each_seed(
            task, variant, changes={FIELD: rate}, choice=_choice(rate)
        )
        for rate in task.learning_rates
    }
    trials = {rate: first for rate, (first, *_) in runs.items()}
    if results is None:
        middle = task.learning_rates[len(runs) // 2]
        return Tuning([*trials.values(), *runs[middle][1:]])
    records = {rate: results.records.get(one.name) for rate, one in trials.items()}
    ended = {
        rate: record
        for rate, record in records.items()
        if trials[rate].is_finished(record)
    }
    scores = {
        rate: record.best_validation
        for rate, record in ended.items()
        if record.best_validation is not None
    }
    failed = {rate for rate, one in records.items() if one and one.state == FAILED}
    if not scores or trials.keys() - ended.keys() - failed:
        return Tuning(list(trials.values()), scores=scores)
    best = max if next(iter(ended.values())).kind.higher_is_better else min
    rate = best(scores, key=scores.get)
    return Tuning(runs[rate], rate, scores)


def _choice(rate):
    """What a rate appends to the names of its runs."""
    return "" if rate is None else f"lr-{rate:g}"
