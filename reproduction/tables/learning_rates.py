"""Figure 2: BLEU over learning rate and warm-up."""

from matplotlib.figure import Figure

from decoding.bleu import AS_PUBLISHED
from evaluation.evaluate import result_name
from reporting.palette import COLOURS, MARKERS
from reporting.png import write_png
from reproduction.differences import fidelities
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
    Column("fidelity", "fidelity"),
]


def rows(scale: Scale, results: Results | None = None) -> list[tuple[dict, list]]:
    """See `reproduction.tables`; those of the config's own pair are table 2's runs."""
    model = VARIANT if VARIANT in scale.variants else next(iter(scale.variants))
    cells = []
    for task, languages in TASKS.items():
        table_2 = scale.each_seed(scale.tasks[task], model)
        train = table_2[0].make_config({}).train
        # The figure shows nothing else than test data.
        tested = scale.tasks[task]._replace(splits=("test",))
        for rate, warmup in scale.learning_rates:
            changes = {"train.learning_rate_max": rate, "train.warmup_steps": warmup}
            choice = f"lr-{rate:g}-warmup-{warmup}"
            runs = scale.each_seed(tested, model, changes=changes, choice=choice)
            if (rate, warmup) == (train.learning_rate_max, train.warmup_steps):
                runs = table_2
            row = {"languages": languages, "model": model}
            cells.append((row | {"rate": rate, "warmup": warmup}, runs))
    return cells


def sheets(scale: Scale, results: Results) -> list[Sheet]:
    """See `reproduction.tables`."""
    tasks = {task: scale.tasks[task] for task in TASKS}
    average = tasks["wmt14_en_de"].average_checkpoints
    filled = []
    for row, runs in rows(scale, results):
        records = results.finished(runs)
        tested = [record.results[result_name("test", average)] for record in records]
        best = [max(x[AS_PUBLISHED] for x in one["checkpoints"]) for one in tested]
        figures = {
            "fidelity": fidelities(records),
            "runs": len(best),
            **mean_score(best).cells("bleu"),
            "lowest": min(best, default=None),
            "highest": max(best, default=None),
        }
        filled.append(row | figures)
    notes = [
        scale.meaning,
        "The paper plots each run's highest BLEU on test data. Here it is the highest "
        f"of the last {average} checkpoints. That choice sees the test data, so these "
        "figures compare settings and nothing else.",
        "The paper prints no numbers in this figure, so ours stand alone.",
        DEVIATIONS,
        *results.absences(tasks),
    ]
    run = [row for row in filled if row["runs"]]
    pictures = [_draw(run, results.folder.results)] if run else []
    title = "Figure 2: BLEU over learning rate and warm-up"
    return [Sheet("figure2", title, COLUMNS, filled, notes, pictures)]


def _draw(run, folder):
    figure = Figure(figsize=(5.2 * len(TASKS), 3.8))
    axes, said = figure.subplots(1, len(TASKS)), []
    for axis, name in zip(axes, TASKS.values(), strict=True):
        pairs = [row for row in run if row["languages"] == name]
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
