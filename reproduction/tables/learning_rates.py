"""Figure 2: BLEU over learning rate and warm-up."""

from matplotlib.figure import Figure

from decoding.bleu import AS_PUBLISHED
from evaluation.evaluate import result_name
from reporting.palette import COLOURS, MARKERS
from reporting.png import write_png
from reproduction.differences import profiles
from reproduction.experiment import Experiment
from reproduction.results import Results
from reproduction.scales import Scale
from reproduction.scores import mean_score
from reproduction.sheet import DEVIATIONS, Column, Picture, Sheet

TASKS = {"wmt14_en_de": "en-de", "wmt14_en_fr": "en-fr"}
# The paper says TransEvolve-fullFF, of which it has two; this one is its best.
VARIANT = "transevolve-fullff-2"
COLUMNS = [
    Column("languages", "languages"),
    Column("model", "model"),
    Column("rate", "lr_max", 2),
    Column("warmup", "warm-up", 0),
    Column("runs", "runs", 0),
    Column("bleu", f"{AS_PUBLISHED}, best checkpoint", 2, is_mean=True),
    Column("lowest", "lowest", 2),
    Column("highest", "highest", 2),
    Column("fidelity", "profile"),
]


def experiments(scale: Scale) -> list[Experiment]:
    """See `reproduction.tables`."""
    return [
        one
        for task in TASKS
        for pair in scale.learning_rates
        for one in _of_pair(task, *pair, scale)
    ]


def _of_pair(task, rate, warmup, scale):
    """The experiments of a pair; those of the config's own pair are table 2's."""
    variant = VARIANT if VARIANT in scale.variants else next(iter(scale.variants))
    usual = scale.each_seed(scale.tasks[task], variant)
    train = usual[0].make_config({}).train
    if (rate, warmup) == (train.learning_rate_max, train.warmup_steps):
        return usual
    changes = {"train.learning_rate_max": rate, "train.warmup_steps": warmup}
    choice = f"lr-{rate:g}-warmup-{warmup}"
    # Others are tested alone, as the figure shows nothing else.
    tested = scale.tasks[task]._replace(splits=("test",))
    return scale.each_seed(tested, variant, choice, changes)


def sheets(scale: Scale, results: Results) -> list[Sheet]:
    """See `reproduction.tables`."""
    rows = []
    for task, languages in TASKS.items():
        average = scale.tasks[task].average_checkpoints
        for rate, warmup in scale.learning_rates:
            chosen = _of_pair(task, rate, warmup, scale)
            records = results.finished(chosen)
            best = [
                max(one[AS_PUBLISHED] for one in result["checkpoints"])
                for record in records
                if (result := record.results[result_name("test", average)])
            ]
            rows.append(
                {
                    "languages": languages,
                    "model": chosen[0].variant,
                    "fidelity": profiles(records),
                    "rate": rate,
                    "warmup": warmup,
                    "runs": len(best),
                    **mean_score(best).cells("bleu"),
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
        *results.absences({task: scale.tasks[task] for task in TASKS}),
    ]
    run = [row for row in rows if row["runs"]]
    pictures = [_draw(run, results.folder)] if run else []
    title = "Figure 2: BLEU over learning rate and warm-up"
    return [Sheet("figure2", title, COLUMNS, rows, notes, pictures)]


def _draw(rows, folder):
    figure = Figure(figsize=(5.2 * len(TASKS), 3.8))
    axes, said = figure.subplots(1, len(TASKS)), []
    for axis, name in zip(axes, TASKS.values(), strict=True):
        pairs = [row for row in rows if row["languages"] == name]
        # A line for each learning rate: between two of them there is nothing.
        rates = dict.fromkeys(row["rate"] for row in pairs)
        for rate, color, marker in zip(rates, COLOURS, MARKERS, strict=False):
            line = {i: row for i, row in enumerate(pairs) if row["rate"] == rate}
            middle = [row["bleu"] for row in line.values()]
            low = [row["bleu"] - row["lowest"] for row in line.values()]
            high = [row["highest"] - row["bleu"] for row in line.values()]
            axis.errorbar(
                list(line), middle, [low, high], color=color, marker=marker, capsize=4
            )
        labels = [f"{row['rate']:g}\n{row['warmup']:,}" for row in pairs]
        axis.set_xticks(range(len(pairs)), labels)
        axis.set(title=name, xlabel="lr_max, warm-up steps", ylabel=AS_PUBLISHED)
        axis.margins(x=0.08, y=0.15)
        axis.grid(alpha=0.3)
        if pairs:
            means = [row["bleu"] for row in pairs]
            best = max(pairs, key=lambda row: row["bleu"])
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
