"""Records as tables take them, made up: nobody trains here."""

import json

from models import variants
from reproduction.experiment import Folder
from reproduction.records import Record
from reproduction.results import Results
from reproduction.scales import SCALES
from tasks import TASKS

PAPER = SCALES["paper"]
PAPERS = variants(in_paper=True)


def run_of(
    experiment, results, test_scores=(), validations=(), failure=None, training=None
):
    """The `Record` that an experiment would leave."""
    config = json.loads(json.dumps(experiment.make_config({}).to_dict()))
    # What an evaluation has beside what a test looks at.
    others = {name: 0.0 for name in (*TASKS[config["kind"]].score_names, "parameters")}
    results = {name: others | result for name, result in results.items()}
    return Record(
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


def experiments_of(table, scale):
    """The runs of a module of a table, each once."""
    runs = [one for _, runs in table.rows(scale) for one in runs]
    return list({one.name: one for one in runs}.values())


def results_of(records, folder):
    """What tables are filled with, without data; their pictures go to the folder."""
    where = Folder(folder, "made")
    where.results = folder
    return Results({record.name: record for record in records}, where)


def rows(sheet, **wanted):
    return [row for row in sheet.rows if wanted.items() <= row.items()]
