"""The fields of configs as tables: python -m reporting.flags."""

from collections.abc import Iterator

from common.fields import Field, below
from data import DATASETS
from data import FIELDS as DATA_FIELDS
from data.buckets import FIELDS as BUCKET_FIELDS
from data.tokenizers import TOKENIZERS
from models import ARCHITECTURES
from models import FIELDS as MODEL_FIELDS
from reporting.tables import markdown_table
from tasks import TASKS
from training.config import FIELDS


def tables() -> Iterator[tuple[str, str]]:
    """Yields a title and a Markdown table for each part of the code that has fields."""
    yield "Every config", _table("", FIELDS)
    yield "Every model", _table("model.", MODEL_FIELDS)
    for name, architecture in ARCHITECTURES.items():
        yield f"Models: {name}", _table("model.", architecture.fields)
    yield from _attentions().items()
    yield "Every dataset", _table("data.", DATA_FIELDS)
    yield "Datasets that are batched by length", _table("data.", BUCKET_FIELDS)
    for name, dataset in DATASETS.items():
        yield f"Datasets: {name}", _table("data.", dataset.FIELDS)
    for name, tokenizer in TOKENIZERS.items():
        yield f"Tokenizers: {name}", _table("data.", tokenizer.FIELDS)
    for name, task in TASKS.items():
        shared = below("data", BUCKET_FIELDS)
        of_task = {
            field: task.fields[field] for field in task.fields if field not in shared
        }
        yield f"Tasks: {name}", _table("", of_task)


def _attentions():
    """{title: table} of each form of an attention, with the models that have it."""
    models = {}
    for architecture, model in ARCHITECTURES.items():
        if model.attentions is None:
            continue
        for name, kind in model.attentions.named().items():
            for suffix, hyperparameters in kind.variants.items():
                form = "-".join(filter(None, (name, suffix)))
                fields = kind.fields_of(hyperparameters)
                table = _table("model.attention.", fields)
                models.setdefault((form, table), []).append(architecture)
    return {
        f"Attention: {form} ({', '.join(names)})": table
        for (form, table), names in models.items()
    }


def _table(prefix: str, fields: dict[str, Field]) -> str:
    rows = [
        [f"`--config.{prefix}{name}`", field.help, field.expected]
        for name, field in fields.items()
    ]
    return markdown_table(["flag", "what it is", "expected"], rows, left=3) * bool(rows)


if __name__ == "__main__":
    for title, table in tables():
        if table:
            print(f"\n### {title}\n\n{table}")
