"""Operators from scratch, and after the model has learned to find hidden tokens of the
same texts.

From-scratch comparisons of long-sequence models overestimate their differences (Amos
et al. 2023).
"""

import itertools
import statistics

from models import BASELINE
from reproduction.results import Results
from reproduction.scales import Scale
from reproduction.scores import (
    NOT_RUN,
    accuracy_cells,
    evidence,
    mean_score,
    paired_gain,
)
from reproduction.sheet import CHECKPOINT, DEVIATIONS, EVIDENCE, Column, Sheet
from reproduction.tables.classification import TUNED
from reproduction.tuning import tune

MODELS = (BASELINE, "transevolve-fullff-1")
# What their names have appended; a softmax nothing.
OPERATORS = (
    "",
    "-linear",
    "-linear-favor",
    "-rfa",
    "-sinkhorn",
    "-big-bird",
    "-state-space",
)
COLUMNS = [
    Column("task", "task"),
    Column("model", "model"),
    Column("scratch", "from scratch, test accuracy %", 2, is_mean=True),
    Column("scratch_interval", "± of 95 %", 2),
    Column("pretrained", "pretrained, test accuracy %", 2, is_mean=True),
    Column("pretrained_interval", "± of 95 % (pretrained)", 2),
    Column("gain", "gain", 2, signed=True, is_mean=True),
    Column("badge", "evidence"),
    Column("masked_loss", "loss per hidden token", 3, is_mean=True),
    Column("runs", "pairs", 0),
    Column("scratch_rate", "lr_max", 3),
    Column("pretrained_rate", "lr_max (pretrained)", 3),
]
NOTES = [
    "Pretraining hides half of the tokens of the training texts, and the model learns "
    "to find them. It takes half of the updates, at the learning rate of the task's "
    "config. Learning the classes then starts from its weights, with the other half. "
    "From scratch all updates learn classes.",
    "The lengths of texts, and the pretraining, are no settings of the paper.",
    f"{CHECKPOINT} A gain is the mean over seeds of the difference of two runs with "
    f"one seed. {EVIDENCE}",
    "The interval of 95 % is over draws of the test data and over runs. Seeds that "
    "only one of the two was trained with are left out.",
    DEVIATIONS,
]


def rows(scale: Scale, results: Results | None = None) -> list[tuple[dict, list]]:
    """See `reproduction.tables`; what starts from a run follows when that has ended."""
    cells = []
    for row, scratch, masked, pretrained in _compared(scale, results):
        ended = {one.seed for one in masked}
        if results is not None:
            records = [(one, results.records.get(one.name)) for one in masked]
            ended = {one.seed for one, record in records if one.is_finished(record)}
        following = [one for one in pretrained.runs if one.seed in ended]
        cells.append((row, [*scratch.runs, *masked, *following]))
    return cells


def _compared(scale, results):
    """(cells that say what it is, scratch, masked, pretrained) of each row.

    The first one is the `Tuning` of runs that learn classes from the start. Then come
    the runs that find hidden tokens, and the `Tuning` of those that learn classes from
    the weights of these.
    """
    rows = []
    for name, model, suffix in itertools.product(scale.pretraining, MODELS, OPERATORS):
        variant = model + suffix
        # As large as in the tables of other systems.
        usual = scale.systems.get(MODELS[0] + suffix, {})
        sizes = {k: v for k, v in usual.items() if k.startswith("model.attention.")}
        task = scale.pretraining[name].changed(sizes, seeds=scale.paired_seeds)
        masked = task.changed(
            {"kind": "masked_tokens"}, task=f"{name}-masked", test_at_validations=False
        )
        # As many updates as the other two have together.
        train = task.make_config({}).train
        until = "steps" if train.steps else "epochs"
        scratch = task.changed(
            {f"train.{until}": 2 * train[until]}, task=f"{name}-scratch"
        )
        pretrained = task._replace(task=f"{name}-pretrained", starts_from=masked.task)
        scratch, pretrained = (
            tune(scale, one, variant, results) for one in (scratch, pretrained)
        )
        row = {"task": name, "model": variant}
        rows.append((row, scratch, scale.each_seed(masked, variant), pretrained))
    return rows


def sheets(scale: Scale, results: Results) -> list[Sheet]:
    """See `reproduction.tables`."""
    filled, tests = [], {}
    for row, scratch, masked, pretrained in _compared(scale, results):
        before, after = (results.tests(one.filling) for one in (scratch, pretrained))
        seeds = sorted(before.keys() & after.keys())
        before, after = ({seed: one[seed] for seed in seeds} for one in (before, after))
        losses = [test["loss"] for test in results.tests(masked).values()]
        rates = {"scratch_rate": scratch.rate, "pretrained_rate": pretrained.rate}
        loss = mean_score(losses).cells("masked_loss")
        filled.append({**row, **_figures(before, after), **loss, **rates})
        tests.setdefault(row["task"], []).append((before, after))
    starts = {
        name: one._replace(task=f"{name}-scratch")
        for name, one in scale.pretraining.items()
    }
    notes = [
        scale.meaning,
        *NOTES,
        *(f"On {task}, {words}" for task in tests if (words := _order(tests[task]))),
        *[TUNED] * any(row.get("scratch_rate") for row in filled),
        *results.absences(starts),
    ]
    title = "Operators from scratch and pretrained"
    return [Sheet("pretraining", title, COLUMNS, filled, notes)]


def _figures(before, after):
    """Of {seed: test}, from scratch and after pretraining."""
    gain = paired_gain(after, before)
    return {
        **accuracy_cells([*before.values()], "scratch", "scratch_interval"),
        **accuracy_cells([*after.values()], "pretrained", "pretrained_interval"),
        **gain.cells("gain"),
        "badge": evidence(gain) if before else NOT_RUN,
        "runs": len(before),
    }


def _order(models):
    """What pretraining does to the differences of models, in words; "" of one model.

    Args:
      models: tests before and after, {seed: test} each, of each model.
    """
    models = [one for one in models if one[0]]
    pairs = [*itertools.combinations(models, 2)]
    gains = [[*map(paired_gain, *pair)] for pair in pairs]
    gains = [pair for pair in gains if all(gain.count for gain in pair)]
    if not gains:
        return ""
    before, after = (
        statistics.stdev(accuracy_cells([*one.values()])["accuracy"] for one in tests)
        for tests in zip(*models, strict=True)
    )
    clear = [[evidence(gain) == "clear" for gain in pair] for pair in gains]
    at_first, at_last = map(sum, zip(*clear, strict=True))
    turned = [first.mean * last.mean < 0 for first, last in gains]
    both = sum(turn and all(pair) for turn, pair in zip(turned, clear, strict=True))
    return (
        f"accuracies of models have a standard deviation of {before:.2f} points from "
        f"scratch and {after:.2f} after pretraining. Of {len(gains)} pairs of models "
        f"{at_first} differ clearly from scratch, and {at_last} after pretraining. The "
        f"order differs in {sum(turned)}, of which {both} differ clearly both times."
    )
