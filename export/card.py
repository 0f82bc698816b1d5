"""The model card, which lies beside a written model."""

import json
import math
from importlib.metadata import version

from common.errors import UserError
from evaluation.run import Run
from export.text_model import TextModel
from models import count_parameters
from reporting.tables import markdown_table

PACKAGES = {"tensorflow_text": "tensorflow-text"}
MEASURED = """\
## What evaluate.py has measured of the run

`average-N` is of the mean of the last N checkpoints. The others are of the best one. \
A name such as `test-beam_size-8` tells another search, one such as `test-linear` \
another form of attention than the run was trained with. All are of the weights before \
any rounding."""
USE = """\
## Use

`pip install {pins}`

```python
import tensorflow as tf
{imports}
model = tf.saved_model.load("1")
answer = model.signatures["serving_default"]
print(answer(text=tf.constant(["a text", "another"])))
```

```bash
python answer.py < texts.txt          # an answer a line
python answer.py --json < texts.txt   # all outputs
```"""
CLI = """\
```bash
saved_model_cli run --dir 1 --tag_set serve --signature_def serving_default \\
  --input_exprs 'text=["a text"]'
```"""
NO_CLI = """\
`saved_model_cli` cannot run this model, since it does not import {modules}."""
PATHS = """\
TensorFlow takes `[`, `]` and `\\` in the path of a model for a pattern, and finds no \
weights there. So keep them out of the names of this folder and of those around it. \
`answer.py` answers in any folder."""
ERRORS = """\
Not every text is an input. Of one that is none, `error` says what was expected and \
found, `scores` are 0, `label` is empty and `label_id` is -1."""


def write(
    run: Run,
    text_model: TextModel,
    weights: str,
    dtype: str,
    measured: list[list],
    validation: dict | None = None,
) -> str:
    """What the model is, what it was measured at, and how to call it, in Markdown.

    Args:
      run: whose model it is.
      text_model: as it was written.
      weights: which of the run's, in words.
      dtype: of the stored weights.
      measured: from `read_results`.
      validation: {score: [before, after]} of rounding the weights to that dtype.
    """
    config, data = run.config, run.config.data
    stored = sum(math.prod(weight.shape) for weight in text_model.weights)
    packages = ["tensorflow", *(PACKAGES[name] for name in text_model.modules)]
    facts = {
        "task": config.task,
        "variant": config.variant,
        "data": data.dataset,
        "parameters": f"{count_parameters(run.model):,}",
        "numbers stored": f"{stored:,}",
        "weights": weights,
        "stored as": dtype,
        "arithmetic": config.model.dtype,
        "written with": ", ".join(f"{name} {version(name)}" for name in packages),
        **{name: str(value) for name, value in config.get("decode", {}).items()},
    }
    modules = text_model.modules
    parts = [
        f"# {config.variant}, {config.task}",
        "A SavedModel that takes raw text, from a reproduction of TransEvolve (Dutta "
        "et al., NeurIPS 2021).",
        markdown_table(["", ""], [list(fact) for fact in facts.items()], left=2),
        MEASURED if measured else "It has not been evaluated.",
    ]
    if measured:
        header = ["split", "examples", "score", "value"]
        parts.append(markdown_table(header, measured))
    if validation:
        rows = [
            [name, round(before, 4), round(after, 4), round(after - before, 4)]
            for name, (before, after) in validation.items()
        ]
        header = ["on validation data", "float32", dtype, "difference"]
        parts += ["## What rounding costs", markdown_table(header, rows)]
    imports = "".join(f"import {name}\n" for name in modules)
    pins = " ".join(f"{name}=={version(name)}" for name in packages)
    parts += [
        USE.format(pins=pins, imports=imports),
        NO_CLI.format(modules=", ".join(modules)) if modules else CLI,
        PATHS,
        "## Inputs and outputs",
        markdown_table(
            ["signature", "inputs", "outputs"], list(_signatures(text_model)), left=3
        ),
        f"Any number of texts is taken, none too. {text_model.limits} Bytes that are "
        "not UTF-8 do no harm.",
    ]
    answers = text_model.serving_default.get_concrete_function().structured_outputs
    if "error" in answers:
        parts.append(ERRORS)
    return "\n\n".join(parts) + "\n"


def read_results(run: Run) -> list[list]:
    """What evaluate.py has found of a run: split, examples, score and its value.

    Raises:
      UserError: for a file that is no result.
    """
    rows = []
    for path in sorted((run.workdir / "results").glob("*.json")):
        try:
            result = json.loads(path.read_text())
            for name in run.task.score_names:
                if name in result:
                    value = round(result[name], 4)
                    rows.append([path.stem, result["examples"], name, value])
        except (ValueError, TypeError, KeyError):
            raise UserError(
                f"{path}: expected a result of evaluate.py, found another file"
            ) from None
    return rows


def _signatures(text_model):
    for name in text_model.signatures:
        function = getattr(text_model, name).get_concrete_function()
        inputs = function.structured_input_signature[0]
        yield [
            f"`{name}`",
            ", ".join(_tensor(spec.name, spec) for spec in inputs),
            ", ".join(
                _tensor(key, spec) for key, spec in function.structured_outputs.items()
            ),
        ]


def _tensor(name, spec):
    sizes = ", ".join("?" if size is None else str(size) for size in spec.shape)
    return f"`{name}` {spec.dtype.name} [{sizes}]"
