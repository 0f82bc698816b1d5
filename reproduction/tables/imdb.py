"""What may explain how IMDB's figures differ from the published ones: runs that differ
in one setting."""

from models import BASELINE
from reproduction.results import Results
from reproduction.scales import Scale
from reproduction.scores import compared_cells
from reproduction.sheet import CHECKPOINT, EVIDENCE, Column, Sheet, compared_columns

TASK = "imdb"
MODELS = ("transevolve-randomff-1", BASELINE)
COLUMNS = [
    Column("model", "model"),
    Column("setting", "setting"),
    Column("value", "value"),
    *compared_columns("gain"),
]
NOTES = [
    "A row differs from the first row of its model in one setting. A gain is the mean "
    f"over seeds of the difference of two runs with one seed. {CHECKPOINT} {EVIDENCE}",
]


def rows(scale: Scale, results: Results | None = None) -> list[tuple[dict, list]]:
    """See `reproduction.tables`; the first ones of a model are the runs of table 3."""
    task = scale.tasks[TASK]._replace(seeds=scale.paired_seeds)
    cells = []
    for model in MODELS:
        for setting, value, changes in _settings(task, model):
            choice = "-".join([*setting.split(), value]) if setting else ""
            runs = scale.each_seed(task, model, changes=changes, choice=choice)
            cells.append(({"model": model, "setting": setting, "value": value}, runs))
    return cells


def _settings(task, variant):
    """(what differs, its value, {field: value}) of each row of a model."""
    if variant == BASELINE:
        model = task._replace(variant=variant).make_config({}).model
        twice = {f"model.{x}": 2 * model[x] for x in ("hidden_dim", "ffn_dim")}
        of_model = [("norm", "post", {"model.norm": "post"}), ("width", "twice", twice)]
    else:
        of_model = [
            ("fidelity", "official", {"model.fidelity": "official"}),
            ("scale of scores", "official", {"model.fidelity": "paper+score_scale"}),
        ]
    return [
        ("", "", {}),
        *of_model,
        ("dropout", "none", {"model.dropout": 0.0}),
        ("positions", "none", {"model.positions": "none"}),
    ]


def sheets(scale: Scale, results: Results) -> list[Sheet]:
    """See `reproduction.tables`."""
    filled, of_first = [], {}
    for row, runs in rows(scale, results):
        tests = results.tests(runs)
        if not row["setting"]:
            of_first = tests
        filled.append(row | compared_cells(tests, of_first if row["setting"] else {}))
    notes = [scale.meaning, *NOTES, *results.absences({TASK: scale.tasks[TASK]})]
    return [Sheet("imdb", "IMDB, one setting at a time", COLUMNS, filled, notes)]
