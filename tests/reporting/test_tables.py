"""Tables and results in Markdown."""

from reporting.evaluation import markdown
from reporting.tables import markdown_table
from tasks.task import Evaluation, Table


def test_a_table_is_written_in_markdown():
    assert (
        markdown_table(["a", "b"], [["x", 1]]) == "| a | b |\n| --- | --: |\n| x | 1 |"
    )


def test_an_evaluation_shows_its_tables_and_samples():
    samples = [{"source": "a", "hypothesis": "b"}]
    found = Evaluation({"examples": 1}, [Table(["x"], [["y"]])], samples)
    assert markdown(found) == ("| x |\n| --- |\n| y |\n\nsource:     a\nhypothesis: b")
