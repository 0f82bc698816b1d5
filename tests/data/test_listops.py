"""ListOps: the evaluator, the generator and the benchmark's own examples."""

import json

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from common.checksums import DamagedError
from configs.listops import get_config
from data.datasets import listops
from data.datasets.listops_generator import Size, generate
from data.rows import DataError

SMALL = Size(min_length=5, max_length=40, max_depth=4, max_arguments=5)


def config(directory, **changes):
    data = get_config().data
    data.update(
        dir=str(directory),
        **SMALL._asdict(),
        train_examples=60,
        validation_examples=20,
        test_examples=10,
        bucket_lengths=(40,),
    )
    data.update(changes)
    return data


def symbols(source):
    return source.replace("(", "").replace(")", "").split()


@pytest.mark.parametrize(
    "expression, value",
    [
        ("[MAX 2 9 [MIN 4 7 ] 0 ]", 9),
        ("[MIN 3 5 ]", 3),
        ("[MED 1 2 ]", 1),
        ("[MED 9 0 4 ]", 4),
        ("[MED 1 2 5 8 ]", 3),
        ("[SM 9 9 9 ]", 7),
        ("7", 7),
    ],
)
def test_an_expression_has_its_value(expression, value):
    assert listops.evaluate(expression.split()) == value


@pytest.fixture(scope="module")
def parse():
    """Traced once, as an export has it; of a list of texts."""
    signature = [tf.TensorSpec([None], tf.string)]
    function = tf.function(listops.parse, input_signature=signature)
    return lambda texts: [part.numpy().tolist() for part in function(texts)]


EXPRESSIONS = {
    "( ( ( ( ( [SM 1 ) 0 ) 2 ) 3 ) ] )": "[SM 1 0 2 3 ]",
    "[SM 1 0 2 3 ]": "[SM 1 0 2 3 ]",
    "[MAX 2 9]": "[MAX 2 9 ]",
    "([MAX\t2(9)[MIN 4 7]0])\n": "[MAX 2 9 [MIN 4 7 ] 0 ]",
    " ( 7 ) ": "7",
}
OTHERS = {
    "[MAX 2 9": "1 operators that are not closed",
    "[MAX 2 ] ]": "a ']' that closes nothing",
    "] [MAX 2": "a ']' that closes nothing",
    "[MAX [MIN ] 2 ]": "an operator without arguments",
    "1 2": "2 expressions",
    "[MAX 1 2 ] [MIN 3 ]": "2 expressions",
    "": "0 expressions",
    " ( ) ": "0 expressions",
    "[MUL 2 3 ]": "the symbol '[MUL'",
    "[MAX 2 29 ]": "the symbol '29'",
    "[ MAX 2 ]": "the symbol '['",
    "hello": "the symbol 'hello'",
    "x" * 1_000: f"the symbol '{'x' * 30}'",
    "1 \0": "the symbol '\ufffd'",
    b"\xff": "the symbol '\ufffd'",
    "a\u2028b": "the symbol 'a\ufffdb'",
    # The text after it, and no other, begins with a bracket.
    "[MED": "1 operators that are not closed",
    "]": "a ']' that closes nothing",
}


def test_expressions_are_read_however_they_are_written(parse):
    found, errors = parse(list(EXPRESSIONS))
    assert [text.decode() for text in found] == list(EXPRESSIONS.values())
    assert errors == [b""] * len(EXPRESSIONS)
    assert parse(found) == [found, errors]
    assert parse(tf.constant([], tf.string)) == [[], []]


def test_what_is_no_expression_is_said_of_each_text_alone(parse):
    texts = [text for other in OTHERS for text in (other, "[MIN 3 5 ]")]
    found, errors = parse(texts)
    assert found == [b"", b"[MIN 3 5 ]"] * len(OTHERS)
    expected = "expected one balanced ListOps expression, found "
    assert [error.decode() for error in errors[::2]] == [
        expected + message for message in OTHERS.values()
    ]
    assert set(errors[1::2]) == {b""}


def test_generated_examples_are_distinct_bounded_and_right():
    examples = list(generate(1500, SMALL, seed=3, processes=1))
    assert len({source for source, _ in examples}) == 1500
    for source, target in examples:
        found = symbols(source)
        assert SMALL.min_length < len(found) < SMALL.max_length
        assert listops.evaluate(found) == target
        assert source.count("(") == source.count(")")


def test_generation_depends_on_the_seed_alone():
    alone = list(generate(1200, SMALL, seed=1, processes=1))
    assert alone == list(generate(1200, SMALL, seed=1, processes=2))
    assert alone != list(generate(1200, SMALL, seed=2, processes=1))


def test_generation_says_when_expressions_run_out():
    tiny = Size(min_length=3, max_length=5, max_depth=2, max_arguments=2)
    with pytest.raises(ValueError, match="found only 400 distinct"):
        list(generate(1000, tiny, seed=0, processes=1))


def test_bounds_that_nothing_meets_are_named():
    with pytest.raises(ValueError, match="found no expressions of Size"):
        list(generate(1, Size(500, 2000, max_depth=2), seed=0, processes=1))


def test_benchmark_rows_evaluate_to_their_targets(shared):
    data = get_config().data
    lines = (shared / "lra_listops/basic_val.tsv").read_text().splitlines()[1:]
    assert len(lines) == 300
    for line in lines:
        source, target = line.split("\t")
        assert listops.evaluate(symbols(source)) == int(target)
    data.update(source="files", dir=str(shared / "lra_listops"))
    examples = list(listops.read(data, "validation"))
    assert [e.label for e in examples] == [int(x.split("\t")[1]) for x in lines]


def test_generator_draws_as_the_benchmark_does(shared):
    lines = (shared / "lra_listops/basic_val.tsv").read_text().splitlines()[1:]
    theirs = [line.split("\t") for line in lines]
    ours = list(generate(2000, Size(), seed=0))
    lengths = [[len(symbols(source)) for source, _ in rows] for rows in (ours, theirs)]
    assert stats.ks_2samp(*lengths).pvalue > 0.01
    targets = [
        np.bincount([int(target) for _, target in rows], minlength=10)
        for rows in (ours, theirs)
    ]
    assert stats.chi2_contingency(targets).pvalue > 0.01


def test_files_are_written_once_and_read_ever_after(tmp_path):
    data = config(tmp_path)
    first = {split: list(listops.read(data, split)) for split in listops.SPLITS}
    assert [len(rows) for rows in first.values()] == [60, 20, 10]
    written = (tmp_path / "basic_train.tsv").stat().st_mtime_ns
    assert list(listops.read(data, "train")) == first["train"]
    assert (tmp_path / "basic_train.tsv").stat().st_mtime_ns == written
    sources = [row.text for rows in first.values() for row in rows]
    assert len(set(sources)) == 90
    header = (tmp_path / "basic_val.tsv").read_text().splitlines()[0]
    assert header == "Source\tTarget"


def test_files_of_other_settings_are_not_mistaken(tmp_path):
    list(listops.read(config(tmp_path), "test"))
    with pytest.raises(DataError, match="generated.json: expected the settings"):
        list(listops.read(config(tmp_path, generator_seed=1), "test"))


def test_damaged_files_of_a_folder_that_was_given_are_refused(tmp_path):
    list(listops.read(config(tmp_path), "test"))
    path = tmp_path / "basic_test.tsv"
    damaged = path.read_bytes()[:-9]
    path.write_bytes(damaged)
    with pytest.raises(DamagedError, match="basic_test.tsv: expected the content"):
        list(listops.read(config(tmp_path), "test"))
    assert path.read_bytes() == damaged


def test_files_that_were_not_generated_are_not_overwritten(tmp_path):
    path = tmp_path / "basic_train.tsv"
    path.write_text("mine")
    with pytest.raises(DataError, match="expected an empty folder to write to"):
        list(listops.read(config(tmp_path), "test"))
    assert path.read_text() == "mine"


def test_an_interrupted_generation_starts_again(tmp_path, monkeypatch):
    def interrupted(*arguments):
        yield "( ( ( [MAX 1 ) 2 ) ] )", 2
        raise KeyboardInterrupt

    monkeypatch.setattr(listops, "generate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(listops.read(config(tmp_path), "test"))
    monkeypatch.undo()
    assert len(list(listops.read(config(tmp_path), "test"))) == 10
    assert json.loads((tmp_path / "generated.json").read_text())["seed"] == 0


@pytest.mark.parametrize(
    "row, message",
    [
        ("( ( ( [MAX 1 ) 2 ) ] )", "two columns"),
        ("( ( ( [MAX 1 ) 2 ) ] )\t12", "a target from 0 to 9, found '12'"),
        ("( ( [MAX 1 ) 2 )\t2", "balanced ListOps expression, found 1 operators"),
        ("( ( ( [MAX 1 ) x ) ] )\t3", "balanced ListOps expression, found the symbol"),
        ("( ( ( [MAX 1 ) 2 ) ] )\t3", "stated target 3, found one with the value 2"),
        ("( ( ( [MAX 1 ) \xff ) ] )\t3", "UTF-8 text, found the invalid byte 0xff"),
    ],
)
def test_bad_rows_name_file_and_line(tmp_path, row, message):
    good = "( ( ( [MAX 1 ) 2 ) ] )\t2"
    path = tmp_path / "basic_val.tsv"
    path.write_bytes(f"Source\tTarget\n{good}\n{row}\n{good}\n".encode("latin-1"))
    data = config(tmp_path, source="files")
    rows = list(listops.read(data, "validation"))
    assert [isinstance(row, DataError) for row in rows] == [False, True, False]
    assert str(rows[1]).startswith(f"{path}:3: expected ")
    assert message in str(rows[1])


def test_a_wrong_header_is_refused(tmp_path):
    (tmp_path / "basic_val.tsv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"basic_val.tsv:1: expected the header"):
        list(listops.read(config(tmp_path, source="files"), "validation"))
