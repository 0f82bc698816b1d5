"""Which fidelity learns better: the paper's, the authors' code's, or one between."""

import itertools

from matplotlib.figure import Figure

from common.errors import UserError
from models import variant_config
from models.fidelity import CHOICES
from reporting.palette import COLOURS
from reporting.png import write_png
from reproduction.results import Results
from reproduction.scales import Scale
from reproduction.scores import NOT_RUN, evidence, mean_score
from reproduction.sheet import DEVIATIONS, EVIDENCE, Column, Picture, Sheet

# The number of singular values that are held changes no function.
TRIED = [name for name in CHOICES if name != "singular_values"]
USUAL_VARIANTS = ["transevolve-fullff-2", "transevolve-randomff-2"]
PAPER = "paper"
# What a task's test score is, and its factor.
SCORES = {"accuracy": 100, "bleu_13a": 1}
# What the picture counts of a metric.
UNITS = {"accuracy": (100, "points of accuracy"), "loss": (1, "nats of loss")}
COLUMNS = [
    Column("model", "model"),
    Column("task", "task"),
    Column("fidelity", "fidelity"),
    Column("badge", "evidence"),
    Column("metric", "on validation data"),
    Column("validation", "best validation", 4, is_mean=True),
    Column("validation_gain", "better than paper by", 4, signed=True, is_mean=True),
    Column("pairs", "pairs", 0),
    Column("score", "on test data"),
    Column("test", "test score", 2, is_mean=True),
    Column("runs", "runs", 0),
]


def rows(scale: Scale, results: Results | None = None) -> list[tuple[dict, list]]:
    """See `reproduction.tables`; the paper's is the first one of a model."""
    cells = []
    for task, model in itertools.product(scale.fidelity, _models(scale)):
        rotates = variant_config(model)["feed_forward"] == "rotation"
        choices = [one for one in TRIED if rotates or not one.startswith("rotation_")]
        for fidelity in (PAPER, "official", *(f"{PAPER}+{one}" for one in choices)):
            changed = {"changes": {"model.fidelity": fidelity}}
            changed["choice"] = "" if fidelity == PAPER else fidelity
            how = scale.fidelity[task]._replace(seeds=scale.paired_seeds)
            row = {"task": task, "model": model, "fidelity": fidelity}
            cells.append((row, scale.each_seed(how, model, **changed)))
    return cells


def _models(scale):
    if set(USUAL_VARIANTS) <= scale.variants.keys():
        return USUAL_VARIANTS
    names = [name for name in scale.variants if "fidelity" in variant_config(name)]
    if not names:
        raise UserError(
            "--variants: expected a variant of TransEvolve for the fidelity table, "
            f"found {', '.join(scale.variants)}"
        )
    return names


def sheets(scale: Scale, results: Results) -> list[Sheet]:
    """See `reproduction.tables`."""
    filled, panels, of_paper = [], {}, {}
    for row, runs in rows(scale, results):
        task, model, fidelity = row.values()
        records = [one for one in results.finished(runs) if one.validations]
        if fidelity == PAPER:
            of_paper = {record.seed: record for record in records}
        pairs = [(one, of_paper[one.seed]) for one in records if one.seed in of_paper]
        gains = [_gain(*pair) for pair in pairs] if fidelity != PAPER else []
        filled.append(row | _figures(fidelity, records, gains))
        if gains:
            panel = panels.setdefault((task, model), {})
            panel[fidelity, filled[-1]["metric"]] = gains
    compared = sum(map(len, panels.values()))
    notes = [
        scale.meaning,
        "The fidelity `paper+choice` is the paper's but for one choice, which is as in "
        "the authors' code; docs/fidelity.md has the choices.",
        "Two runs with one seed differ by the fidelity alone. The mean over such pairs "
        "says how much better one is than the paper's, and is positive if it is. The ± "
        f"of it is the standard deviation of the pairs. {DEVIATIONS} {EVIDENCE} So "
        f"chance calls clear some {compared / 20:.1f} of the {compared} comparisons of "
        "this table, and one that is clear needs another to agree.",
        *results.absences(scale.fidelity),
        "Multi30k is not of the paper. It stands in for WMT 2014.",
    ]
    pictures = [_draw(panels, results.folder.results)] if panels else []
    title = "Fidelity: the paper's choices and the authors' code's"
    return [Sheet("fidelity", title, COLUMNS, filled, notes, pictures)]


def _gain(record, of_paper):
    """How much better a run is than the paper's of its seed."""
    gain = record.best_validation - of_paper.best_validation
    return gain if record.kind.higher_is_better else -gain


def _figures(fidelity, records, gains):
    if not records:
        return {"runs": 0, "badge": NOT_RUN}
    tests = [record.results["test"] for record in records]
    name = next(score for score in SCORES if score in tests[0])
    best = mean_score(record.best_validation for record in records)
    gain = mean_score(gains)
    return {
        "runs": best.count,
        "metric": records[0].kind.metric,
        **best.cells("validation"),
        **gain.cells("validation_gain"),
        "pairs": gain.count or None,
        "score": name,
        **mean_score(SCORES[name] * test[name] for test in tests).cells("test"),
        "badge": "" if fidelity == PAPER else evidence(gain),
    }


def _draw(panels, folder):
    """Draws a panel for each task and model, a line for each fidelity.

    Args:
      panels: {(task, model): {(fidelity, metric): a number for each pair of runs}},
        above 0 where the fidelity is better than the paper's.
      folder: where to write the PNG.
    """
    columns = min(2, len(panels))
    lines = -(-len(panels) // columns)
    figure = Figure(figsize=(5 * columns, 3.2 * lines), layout="constrained")
    axes = list(figure.subplots(lines, columns, squeeze=False).flat)
    told = []
    for axis, ((task, model), fidelities) in zip(axes, panels.items(), strict=False):
        means, units = {}, ""
        for place, ((fidelity, metric), gains) in enumerate(fidelities.items()):
            factor, units = UNITS[metric]
            gains = [factor * gain for gain in gains]
            means[fidelity] = mean_score(gains).mean
            places = [place] * len(gains)
            axis.plot(gains, places, "o", color=COLOURS[2], markerfacecolor="none")
            axis.plot(means[fidelity], place, "D", color=COLOURS[0])
        axis.axvline(0, color="black", linewidth=1)
        axis.set_yticks(range(len(means)), means)
        axis.invert_yaxis()
        axis.set_title(f"{model}, {task}", fontsize=10)
        axis.set_xlabel(f"better by, {units}")
        axis.grid(alpha=0.3)
        best, worst = max(means, key=means.get), min(means, key=means.get)
        told.append(
            f"{model} on {task}, {units}: from {means[worst]:+.3g} with {worst} to "
            f"{means[best]:+.3g} with {best}."
        )
    for axis in axes[len(panels) :]:
        axis.remove()
    write_png(figure, folder / "fidelity.png")
    caption = (
        "How much better than the paper's the others are on validation data. "
        "A circle is a pair of runs with one seed, a diamond their mean."
    )
    return Picture("fidelity.png", caption, " ".join(told))
