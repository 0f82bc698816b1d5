"""A page with everything that one can have."""

from pathlib import Path

from reproduction.comparison import comparison
from reproduction.pictures import against_length, learning_curves
from reproduction.report.page import page
from reproduction.sheet import Column, Sheet
from reproduction.survey import survey
from tests.reproduction.sample import write_several

OUTCOMES = ["reproduced", "differs", "not run", "other measure"]
SCORES = [9.5, 1_000_000.25, None, 10.25]
FACTS = {"machine": "AMD EPYC, 2 cores", "versions": "python 3.11", "commit": "unknown"}


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
        pictures=[
            against_length(rows, "ratio_to_transformer", "Speed", folder, "speed.png")
        ],
    )
    runs = survey(write_several(folder / "runs")).runs
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
        Column(key, "bleu_authors, best validation", 2, deviation=f"{key}_deviation")
        for key in (f"score_{number}" for number in range(15))
    ]
    keys = [(column.key, column.deviation) for column in columns]
    row = {key: 27.25 if deviation else "newstest2013" for key, deviation in keys}
    row |= {deviation: 0.125 for _, deviation in keys if deviation}
    names = [{"model": f"transevolve-randomff-{number}"} for number in (1, 2)]
    columns = [Column("model", "model"), *columns]
    wide = Sheet("wide", "Many columns", columns, [name | row for name in names])
    only_curves = Sheet("curves", "Curves", [], [], pictures=compared[0].pictures)
    text = page(
        "Everything",
        [outcomes, speed, wide, *compared, only_curves],
        runs,
        FACTS,
        folder,
        ["A page of results."],
    )
    path = folder / "report.html"
    path.write_text(text, encoding="utf-8")
    return path
