"""Writes a SavedModel with what belongs to it, and checks it in another process."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from common.backend import expect_tensorflow
from common.cache import unfinished
from common.errors import UserError
from common.paths import check_writable_folder, make_local_path
from evaluation.run import Run, load_run
from export import card
from export.text_model import TextModel
from models import count_parameters
from models.convert import fold_rotations

# As TensorFlow Serving names the versions of a model.
VERSION = "1"
SCRIPT = "answer.py"
DTYPES = ("float32", "bfloat16")
# What TensorFlow does not take literally in the path of a SavedModel.
MISREAD = "[]\\"
# What the written model is asked, to be compared with the run.
QUESTIONS = [
    "",
    "[MAX 2 9 [MIN 4 7 ] 0 ]",
    "Two men are cooking.",
    "A dog runs in the snow, and nobody knows why. " * 20,
    "\u00fc \u2581 \u4e24 \U0001f600",
]
TOLERANCE = 1e-5

logger = logging.getLogger("transevolve")


def export(
    workdir,
    output,
    average_checkpoints: int = 0,
    decode: Mapping | None = None,
    attention: str | None = None,
    dtype: str = "float32",
    data_dir: str | None = None,
) -> dict:
    """Writes a run's model to a folder, with a script and a card on how to use it.

    The folder comes to its place when all is written and the model, loaded under its
    name by a process of its own, has answered as the run does.

    Args:
      workdir: of the run.
      output: a folder that is empty or does not exist.
      average_checkpoints, decode, attention: see `evaluation.run.load_run`.
      dtype: of the stored weights, "float32" or "bfloat16".
      data_dir: see `evaluation.run.load_run`; bfloat16 needs the data.

    Returns:
      The model's folder, signatures, parameters and bytes; with bfloat16 also the
      scores on validation data, before and after.

    Raises:
      UserError: for a bad argument or a workdir without a run, if the folder cannot be
        written, or if the model answers otherwise than the run.
    """
    if dtype not in DTYPES:
        raise UserError(f"--dtype={dtype}: expected one of {', '.join(DTYPES)}")
    expect_tensorflow("an export")
    output = Path(os.path.realpath(make_local_path(output, "--output")))
    if misread := set(MISREAD) & set(str(output)):
        raise UserError(
            f"--output={output}: expected a path without {' '.join(MISREAD)}, which "
            f"TensorFlow takes for a pattern, found {misread.pop()}"
        )
    check_writable_folder(output, "--output", by_rename=True)
    if output.exists() and any(output.iterdir()):
        raise UserError(f"--output={output}: expected an empty folder or none")
    run = load_run(workdir, average_checkpoints, decode, attention, data_dir=data_dir)
    measured = card.read_results(run)
    model = fold_rotations(run.model)
    rounding = {}
    if dtype != "float32":
        rounding = {"validation": _round(run, model, dtype)}
    text_model = run.task.text_model(model, dtype)
    weights = "of the best checkpoint"
    if average_checkpoints:
        weights = f"the mean of the last {average_checkpoints} checkpoints"
    text = card.write(run, text_model, weights, dtype, measured, **rounding)
    try:
        with unfinished(output.parent) as parent:
            folder = parent / output.name
            logger.info("writing the model")
            text_model.save(folder / VERSION)
            (folder / SCRIPT).write_text(_script(text_model))
            (folder / "README.md").write_text(text)
            logger.info("checking it in another process")
            _check(folder, text_model)
            folder.rename(output)
    except tf.errors.OpError as error:
        said = " ".join(error.message.split())
        raise UserError(f"--output={output}: not written: {said}") from None
    except OSError as error:
        raise UserError(f"--output={output}: not written: {error.strerror}") from None
    files = [path for path in (output / VERSION).rglob("*") if path.is_file()]
    return {
        "export": str(output / VERSION),
        "signatures": list(text_model.signatures),
        "parameters": count_parameters(run.model),
        "bytes": sum(path.stat().st_size for path in files),
        **rounding,
    }


def _round(run: Run, model: keras.Model, dtype: str) -> dict:
    """Rounds the weights; {score: [before, after]} on validation data."""
    run.check_data("validation")
    before = run.task.evaluate(model, "validation", run.strategy).scores
    for weight in model.trainable_weights:
        weight.assign(tf.cast(tf.cast(weight.value, dtype), weight.dtype))
    after = run.task.evaluate(model, "validation", run.strategy).scores
    return {name: [before[name], after[name]] for name in run.task.score_names}


def _script(text_model: TextModel) -> str:
    """answer.py, for this model."""
    before, constants, after = (
        Path(__file__).with_name(SCRIPT).read_text().partition('"label", []')
    )
    assert constants, f"{SCRIPT} names its constants otherwise"
    answer, modules = text_model.main_output, list(text_model.modules)
    return f"{before}{json.dumps(answer)}, {json.dumps(modules)}{after}"


def _check(folder: Path, text_model: TextModel) -> None:
    """Raises `UserError` if the written model answers otherwise than this one."""
    result = subprocess.run(
        # Without this repository: neither script nor environment lead to modules.
        [sys.executable, "-P", "-E", folder / SCRIPT, "--json"],
        cwd=folder,
        input="".join(question + "\n" for question in QUESTIONS).encode(),
        capture_output=True,
    )
    lines = result.stdout.splitlines()
    # With 1 it may have answered, too: some questions are no input of some models.
    if result.returncode not in (0, 1) or len(lines) < len(QUESTIONS):
        said = result.stderr.decode(errors="replace").split("\n")
        message = [line for line in said if line.strip()][-1:]
        message = message or [f"the process ended with {result.returncode}"]
        raise UserError(f"--output: the model was written, but not read: {message[0]}")
    answered = [json.loads(line) for line in lines]
    expected = text_model.serving_default(tf.constant(QUESTIONS))
    for name, values in expected.items():
        answers = [answer.get(name) for answer in answered]
        values = values.numpy()
        if values.dtype.kind == "f":
            agree = len(answers) == len(values) and None not in answers
            agree = agree and np.allclose(answers, values, TOLERANCE, TOLERANCE)
        else:
            agree = answers == [_text(value) for value in values.tolist()]
        if not agree:
            raise UserError(
                f"--output: expected the answers of the run, found others: {name} "
                f"{answers} for {values.tolist()}"
            )


def _text(value):
    return value.decode() if isinstance(value, bytes) else value
