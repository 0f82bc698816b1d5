"""Blocks and residual steps: what more of them do to accuracy.

The paper calls the first one the degree of temporal evolution (section 7), and has one
and two blocks. Section 4 takes Euler's steps.
"""

import itertools

from models.residual_step import EULER, RESIDUAL_STEPS
from reproduction.results import Results
from reproduction.scales import Scale
from reproduction.scores import compared_cells
from reproduction.sheet import CHECKPOINT, EVIDENCE, Column, Sheet, compared_columns

TASKS = ("listops", "imdb")
VARIANT = "transevolve-fullff-1"
DEPTHS = 6  # of all blocks
# The first one is what the others are compared with.
SETTINGS = [(1, EULER), (2, EULER), (3, EULER), (6, EULER)]
SETTINGS += [(1, step) for step in RESIDUAL_STEPS if step != EULER]
COLUMNS = [
    Column("task", "task"),
    Column("step", "residual step"),
    Column("blocks", "blocks", 0),
    Column("depths", "depths of a block", 0),
    Column("ffn_dim", "inner width", 0),
    *compared_columns("above one block, Euler"),
]
NOTES = [
    f"The model is {VARIANT}. A block makes its attention once, and its depths read "
    "it. With more blocks the feed-forwards are narrower. So all models have about as "
    "many parameters.",
    f"{CHECKPOINT} The difference from one block with Euler's steps is the mean over "
    f"seeds of the difference of two runs with one seed. {EVIDENCE} So one that is "
    "clear needs another to agree.",
]


def rows(scale: Scale, results: Results | None = None) -> list[tuple[dict, list]]:
    """See `reproduction.tables`; the first setting's are the runs of tables 3 and 4."""
    cells = []
    for name, (blocks, step) in itertools.product(TASKS, SETTINGS):
        task = scale.tasks[name]._replace(seeds=scale.paired_seeds)
        model = task._replace(variant=VARIANT).make_config({}).model
        changes, choice = {}, ""
        if blocks > 1:
            changes = {
                "model.num_blocks": blocks,
                "model.num_depths": DEPTHS // blocks,
                "model.ffn_dim": _ffn_dim(model, blocks),
            }
            choice = f"{blocks}-blocks"
        elif step != EULER:
            changes, choice = {"model.residual_step": step}, step
        row = {
            "task": name,
            "step": step,
            "blocks": blocks,
            "depths": DEPTHS // blocks,
            "ffn_dim": changes.get("model.ffn_dim", model.ffn_dim),
        }
        runs = scale.each_seed(task, VARIANT, changes=changes, choice=choice)
        cells.append((row, runs))
    return cells


def _ffn_dim(model, num_blocks):
    """The inner width with which so many blocks have as many parameters as one.

    The attention of a block has 6 d^2 weights, as many as d / 2 inner units of all
    depths.
    """
    return max(1, model.ffn_dim - (num_blocks - 1) * model.hidden_dim // 2)


def sheets(scale: Scale, results: Results) -> list[Sheet]:
    """See `reproduction.tables`."""
    filled, of_first = [], {}
    for row, runs in rows(scale, results):
        is_first = (row["blocks"], row["step"]) == SETTINGS[0]
        tests = results.tests(runs)
        if is_first:
            of_first = tests
        filled.append(row | compared_cells(tests, {} if is_first else of_first))
    tasks = {task: scale.tasks[task] for task in TASKS}
    notes = [scale.meaning, *NOTES, *results.absences(tasks)]
    title = "Blocks and residual steps"
    return [Sheet("blocks", title, COLUMNS, filled, notes)]
