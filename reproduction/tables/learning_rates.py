"""Figure 2: BLEU over learning rate and warm-up."""

from matplotlib.figure import Figure

from decoding.bleu import AS_PUBLISHED
from evaluation.evaluate import result_name
from reporting.palette import COLOURS, MARKERS
from reporting.png import write_png
from reproduction.scores import mean_score
from reproduction.settings import profiles
from reproduction.sheet import DEVIATIONS, Column, Picture, Sheet
from reproduction.tables.table import Table
from reproduction.tables.translation import of_task

TASKS = {"wmt14_en_de": "en-de", "wmt14_en_fr": "en-fr"}
# The paper says TransEvolve-fullFF, of which it has two; this one is its best.
VARIANT = "transevolve-fullff-2"
COLUMNS = [
    Column("languages", "languages"),
    Column("model", "model"),
    Column("rate", "lr_max", 2),
    Column("warmup", "warm-up", 0),
    Column("runs", "runs", 0),
    Column("bleu", f"{AS_PUBLISHED}, best checkpoint", 2, deviation="deviation"),
    Column("lowest", "lowest", 2),
    Column("highest", "highest", 2),
    Column("fidelity", "profile"),
]


def _of_pair(task, rate, warmup, scale, seeds):
    """The experiments of a pair; those of the config's own pair are table 2's."""
    variant = VARIANT if VARIANT in scale.variants else next(iter(scale.variants))
    own = of_task(task, variant, scale, 1)[0].config({}).train
    if (rate, warmup) == (own.learning_rate_max, own.warmup_steps):
        return of_task(task, variant, scale, seeds)
    changes = {"train.learning_rate_max": rate, "train.warmup_steps": warmup}
    choice = f"lr-{rate:g}-warmup-{warmup}"
    found = of_task(task, variant, scale, seeds, choice=choice, changes=changes)
    # Others are tested alone, as the figure shows nothing else.
    tested = scale.settings[task]._replace(splits=("test",))
    return [experiment._replace(setting=tested) for experiment in found]


def experiments(scale, seeds):
    """See `Table`."""
    return [
        experiment
        for task in TASKS
        for rate, warmup in scale.learning_rates
        for experiment in _of_pair(task, rate, warmup, scale, seeds)
    ]


def sheets(scale, seeds, results):
    """See `Table`."""
    rows = []
    for task, languages in TASKS.items():
        average = scale.settings[task].average_checkpoints
        for rate, warmup in scale.learning_rates:
            chosen = _of_pair(task, rate, warmup, scale, seeds)
            name = result_name("test", average)
            runs = results.finished(chosen)
            best = [_best(run.results[name]) for run in runs]
            score = mean_score(best)
            rows.append(
                {
                    "languages": languages,
                    "model": chosen[0].variant,
                    "fidelity": profiles(runs),
                    "rate": rate,
                    "warmup": warmup,
                    "runs": score.count,
                    "bleu": score.mean,
                    "deviation": score.deviation,
                    "lowest": min(best, default=None),
                    "highest": max(best, default=None),
                }
            )
    notes = [
        scale.meaning,
        "The paper plots each run's highest BLEU on test data. Here it is the highest "
        f"of the last {average} checkpoints. That choice sees the test data, so these "
        "figures compare settings and nothing else.",
        "The paper prints no numbers in this figure, so ours stand alone.",
        DEVIATIONS,
        *results.absences(TASKS),
    ]
    pictures = [_draw(rows, results.folder)] if any(row["runs"] for row in rows) else []
    title = "Figure 2: BLEU over learning rate and warm-up"
    return [Sheet("figure2", title, COLUMNS, rows, notes, pictures)]


def _best(result):
    return max(checkpoint[AS_PUBLISHED] for checkpoint in result["checkpoints"])


def _draw(rows, folder):
    languages = list(dict.fromkeys(row["languages"] for row in rows))
    figure = Figure(figsize=(5.2 * len(languages), 3.8))
    axes = figure.subplots(1, len(languages), squeeze=False)[0]
    said = []
    for axis, name in zip(axes, languages, strict=True):
        found = [row for row in rows if row["languages"] == name and row["runs"]]
        labels = [f"{row['rate']:g}\n{row['warmup']:,}" for row in found]
        means = [row["bleu"] for row in found]
        # A line for each learning rate: between two of them there is nothing.
        rates = dict.fromkeys(row["rate"] for row in found)
        for rate, color, marker in zip(rates, COLOURS, MARKERS, strict=False):
            places = [i for i, row in enumerate(found) if row["rate"] == rate]
            own = [found[i] for i in places]
            low = [row["bleu"] - row["lowest"] for row in own]
            high = [row["highest"] - row["bleu"] for row in own]
            middle = [row["bleu"] for row in own]
            axis.errorbar(
                places, middle, [low, high], color=color, marker=marker, capsize=4
            )
        axis.set_xticks(range(len(found)), labels)
        axis.set(title=name, xlabel="lr_max, warm-up steps", ylabel=AS_PUBLISHED)
        axis.margins(x=0.08, y=0.15)
        axis.grid(alpha=0.3)
        if found:
            best = max(found, key=lambda row: row["bleu"])
            said.append(
                f"{name}: {min(means):.1f} to {max(means):.1f} BLEU, the highest at "
                f"lr_max {best['rate']:g} and {best['warmup']:,} warm-up steps."
            )
    figure.tight_layout()
    write_png(figure, folder / "figure2.png")
    caption = (
        "Each run's highest BLEU: mean over seeds, from the lowest to the highest."
    )
    return Picture("figure2.png", caption, " ".join(said))


TABLE = Table("figure2", experiments, sheets, is_of_all_models=False)
