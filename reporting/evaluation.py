"""What an evaluation found, for people."""

from reporting.tables import markdown_table
from tasks.task import Evaluation


def markdown(evaluation: Evaluation) -> str:
    """Tables, then samples, in Markdown."""
    tables = [markdown_table(*table) for table in evaluation.tables]
    samples = [
        "\n".join(f"{f'{what}:':11} {text}" for what, text in sample.items())
        for sample in evaluation.samples
    ]
    return "\n\n".join(tables + samples)
