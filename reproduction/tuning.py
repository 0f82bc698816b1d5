"""The learning rate of each model, chosen on validation data."""

from typing import NamedTuple

from reproduction.experiment import Experiment
from reproduction.records import FAILED
from reproduction.results import Results
from reproduction.scales import Scale

FIELD = "train.learning_rate_max"
# What is tried, over the rate of the task's config.
FACTORS = (0.5, 1.0, 2.0)


class Tuning(NamedTuple):
    """A model on a task, and how far the choice of its learning rate has come.

    Attributes:
      runs: that there are to run now: first one trial of each rate, which have one
        seed, then those of the chosen rate, the trial among them.
      filling: the runs that fill a row: those of the chosen rate, or of the config's
        before one was chosen.
      rate: that was chosen; None before, and at a scale that tries none.
      scores: {rate: the best validation score of its trial}, of those that ended.
    """

    runs: list[Experiment]
    filling: list[Experiment]
    rate: float | None = None
    scores: dict[float, float] = {}


def tune(
    scale: Scale, task: Experiment, variant: str, results: Results | None
) -> Tuning:
    """The runs of a model on a task, at the best learning rate where the scale tunes.

    A trial that failed, as by a loss that is no number, is not chosen.

    Args:
      scale: says how many seeds there are, and whether rates are tried.
      task: how it runs.
      variant: of the model.
      results: of the trials. None for all runs that there may be: then the config's
        rate is taken for the best.
    """
    usual = scale.each_seed(task, variant)
    if not scale.tunes:
        return Tuning(usual, usual)
    config_rate = usual[0].make_config({}).train.learning_rate_max
    runs = {}
    for factor in FACTORS:
        rate = factor * config_rate
        changed = {"changes": {FIELD: rate}, "choice": f"lr-{rate:g}"}
        runs[rate] = usual if factor == 1 else scale.each_seed(task, variant, **changed)
    trials = {rate: first for rate, (first, *_) in runs.items()}
    if results is None:
        return Tuning([*trials.values(), *usual[1:]], usual)
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
        return Tuning(list(trials.values()), usual, scores=scores)
    best = max if next(iter(ended.values())).kind.higher_is_better else min
    rate = best(scores, key=scores.get)
    return Tuning(runs[rate], runs[rate], rate, scores)
