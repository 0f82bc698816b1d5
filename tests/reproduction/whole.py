"""A page with everything that one can have."""

from pathlib import Path

from reproduction.comparison import comparison
from reproduction.learning_curves import learning_curves
from reproduction.records import survey
from reproduction.report.page import page
from reproduction.sheet import Column, Sheet
from reproduction.tables.long_sequences import against_length
from tests.reproduction.sample import write_several

OUTCOMES = ["reproduced", "differs", "not run", "other measure"]
SCORES = [9.5, 1_000_000.25, None, 10.25]


def write_page(folder: Path) -> Path:
    """Writes it to the folder; returns its path."""
    columns = [
        Column("model", "model"),
        Column("badge", "outcome"),
        Column("score", "score", 2),
        Column("difference", "difference", 1, signed=True),
        Column("note", "note"),
    ]
    outcomes = Sheet(
        "outcomes",
        "Outcomes of all models",
        columns,
        [
            {
                "model": f"model-{number}",
                "badge": outcome,
                "score": score,
                "difference": number - 2,
                "note": "a sentence that is too long for one line of a cell" * number,
            }
            for number, (outcome, score) in enumerate(
                zip(OUTCOMES, SCORES, strict=True), start=1
            )
        ],
        ["What the table is.", "And what it is not."],
    )
    rows = [
        {
            "model": model,
            "length": length,
            "ratio_to_transformer": 1 / factor,
        }
        for model, factor in (("transformer", 1.0), ("transevolve-fullff-1", 0.8))
        for length in (1000, 2000)
    ]
    speed = Sheet(
        "speed",
        "Speed",
        [Column("model", "model"), Column("length", "length", 0)],
        rows,
        pictures=[against_length(rows, "speed", folder)],
    )
    runs = survey(write_several(folder / "runs"))[0]
    compared = [
        sheet._replace(
            pictures=[
                learning_curves(
                    [run for run in runs if run.task == sheet.title],
                    sheet.title,
                    folder,
                    f"{sheet.title}.png",
                )
            ]
        )
        for sheet in comparison(runs)
    ]
    # As table 2 of several seeds.
    columns = [Column(f"text_{number}", "compared") for number in range(5)]
    columns += [
        Column(key, "bleu_authors, best validation", 2, is_mean=True)
        for key in (f"score_{number}" for number in range(15))
    ]
    row = {}
    for column in columns:
        row[column.key] = 27.25 if column.is_mean else "newstest2013"
        row |= dict.fromkeys(column.keys[1:], 0.125)
    names = [{"model": f"transevolve-randomff-{number}"} for number in (1, 2)]
    columns = [Column("model", "model"), *columns]
    wide = Sheet("wide", "Many columns", columns, [name | row for name in names])
    only_curves = Sheet("curves", "Curves", [], [], pictures=compared[0].pictures)
    text = page(
        "Everything",
        [outcomes, speed, wide, *compared, only_curves],
        runs,
        {},
        folder,
        ["A page of results."],
    )
    path = folder / "report.html"
    path.write_text(text, encoding="utf-8")
    return path
