"""Runs as tables take them, made up: nobody trains here."""

import json

from models import variants
from reproduction.scales import SCALES
from reproduction.survey import Run
from reproduction.tables.table import Results
from tasks import TASKS
from training.config import flatten

PAPER = SCALES["paper"]
PAPERS = variants(in_paper=True)


def run_of(
    experiment, results, test_scores=(), validations=(), failure=None, training=None
):
    """The `Run` that an experiment would leave."""
    config = flatten(json.loads(json.dumps(experiment.config({}).to_dict())))
    # What an evaluation has beside what a test looks at.
    others = {name: 0.0 for name in (*TASKS[config["kind"]].score_names, "parameters")}
    results = {name: others | result for name, result in results.items()}
    return Run(
        experiment.name,
        config,
        list(validations),
        [],
        list(test_scores),
        results,
        failure,
        {"finished": True, "training_examples": training},
        [],
    )


def results_of(runs, scale=PAPER, folder=None, **others):
    fields = {"missing": {}, "speeds": [], "memory": [], **others}
    return Results(scale, {run.name: run for run in runs}, folder=folder, **fields)


def rows(sheet, **wanted):
    return [row for row in sheet.rows if wanted.items() <= row.items()]
