"""ListOps: the value of a nested expression of MIN, MAX, MED and SM (sum mod 10)."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from common import checksums
from common.cache import cached
from common.fields import choice, fail, integer
from common.paths import check_writable_folder, make_path
from common.progress import progress_bar
from data import files
from data.datasets.listops_generator import (
    OPERATORS,
    Size,
    apply_operator,
    generate,
    mean_nodes,
)
from data.rows import DataError, Example, bad_row

KIND = "classification"
CLASS_NAMES = tuple("0123456789")
SYMBOLS = (*CLASS_NAMES, *OPERATORS, "]")
SPLITS = ("train", "validation", "test")
TOKENIZERS = ("symbols", "bytes")
FIELDS = {
    "source": choice("Made here, or the benchmark's basic_*.tsv.", "generate", "files"),
    "min_length": integer(
        "Expressions have more symbols than this, and less than max_length.", minimum=0
    ),
    "max_depth": integer(
        # With each level a tree has half as many nodes more.
        "The most levels of nesting, the outermost included.",
        maximum=20,
    ),
    "max_arguments": integer(
        "The most arguments of an operator.", minimum=2, maximum=1_000
    ),
    "train_examples": integer(
        "How many training examples to make.", maximum=10_000_000
    ),
    "validation_examples": integer(
        "How many validation examples to make.", maximum=10_000_000
    ),
    "test_examples": integer("How many test examples to make.", maximum=10_000_000),
    "generator_seed": integer("Seed of the expressions.", minimum=0, maximum=2**31 - 1),
}
FILE_NAMES = {"train": "train", "validation": "val", "test": "test"}
SETTINGS = "generated.json"
# On average of a drawn tree's deepest level; a thousand trees are drawn together.
NODES = 10_000
HEADER = "Source\tTarget"
ROWS_AT_A_TIME = 1024


def check(config) -> None:
    """Raises `UserError` if no length lies between `min_length` and `max_length`, or if
    drawing takes gigabytes for trees that are mostly too long."""
    if config.min_length + 1 >= config.max_length:
        expected = f"at least 2 below data.max_length={config.max_length}"
        fail("data.min_length", expected, config.min_length)
    most = config.max_arguments
    while config.source == "generate" and mean_nodes(config.max_depth, most) > NODES:
        most -= 1
    if config.max_arguments > most:
        expected = f"at most {most:,} with data.max_depth={config.max_depth}"
        fail("data.max_arguments", expected, config.max_arguments)


def read(config, split: str) -> Iterator[Example | DataError]:
    """Yields the examples of a split from the benchmark's TSV files.

    With source "generate", the files are made first if they are not there yet. Each
    source must be an expression, see `parse`, and have the value of its target.
    """
    path = _path(config, split)
    rows = files.lines(path)
    _, header = next(rows)
    if header != HEADER:
        raise bad_row(path, 1, f"the header {HEADER!r}", f"{header!r:.60}")
    while chunk := list(islice(rows, ROWS_AT_A_TIME)):
        yield from _examples(path, chunk)


def identify(config, split: str):
    """A value that changes when the source does."""
    return files.identify(_path(config, split))


def parse(texts):
    """Reads expressions, in the TensorFlow graph: evaluation and exports do it alike.

    An expression is a digit, or an operator with expressions and a closing bracket.
    Parentheses count as spaces, and brackets need none around them.

    Args:
      texts: string tensor [batch].

    Returns:
      Two string tensors [batch]. The expressions, a space between two symbols; empty
      for a text that is none. And what was expected and found of such a text; empty for
      an expression.
    """
    import tensorflow as tf

    spaced = tf.strings.regex_replace(texts, r"[()\s]+", " ")
    spaced = tf.strings.regex_replace(spaced, r"\[", " [")
    rows = tf.strings.split(tf.strings.regex_replace(spaced, r"\]", " ] "))
    symbols, splits = rows.flat_values, rows.row_splits
    is_digit = tf.strings.regex_full_match(symbols, "[0-9]")
    opens = tf.strings.regex_full_match(symbols, r"\[(MIN|MAX|MED|SM)")
    closes = symbols == "]"

    def sums(numbers):
        """Before each symbol, and after the last."""
        return tf.concat([[0], tf.cumsum(numbers)], axis=0)

    def count(chosen):
        """How many symbols of each text are chosen."""
        at_splits = tf.gather(sums(tf.cast(chosen, tf.int32)), splits)
        return at_splits[1:] - at_splits[:-1]

    depths = sums(tf.cast(opens, tf.int32) - tf.cast(closes, tf.int32))
    starts = tf.repeat(tf.gather(depths, splits[:-1]), rows.row_lengths())
    depths = depths[1:] - starts  # after each symbol
    after_operator = tf.concat([[False], opens], axis=0)[:-1]
    unknown = tf.ragged.boolean_mask(
        rows, rows.with_values(~(is_digit | opens | closes))
    )
    unknown = tf.strings.reduce_join(unknown[:, :1], axis=1)
    visible = tf.strings.unicode_transcode(unknown, "UTF-8", "UTF-8", errors="replace")
    visible = tf.strings.regex_replace(visible, r"[\pC\pZ]", "\ufffd")
    visible = tf.strings.substr(visible, 0, 30, unit="UTF8_CHAR")
    not_closed = count(opens) - count(closes)
    expressions = count((is_digit | closes) & (depths == 0))
    # The first that holds is what is said: those after it may follow from it.
    faults = (
        (unknown != "", ["the symbol '", visible, "'"]),
        (count(depths < 0) > 0, ["a ']' that closes nothing"]),
        (count(closes & after_operator) > 0, ["an operator without arguments"]),
        (not_closed > 0, [tf.as_string(not_closed), " operators that are not closed"]),
        (expressions != 1, [tf.as_string(expressions), " expressions"]),
    )
    errors = tf.fill(tf.shape(texts), "")
    for is_bad, words in reversed(faults):
        error = ["expected one balanced ListOps expression, found ", *words]
        errors = tf.where(is_bad, tf.strings.join(error), errors)
    expressions = tf.strings.reduce_join(rows, axis=1, separator=" ")
    return tf.where(errors == "", expressions, ""), errors


def evaluate(symbols: list[str]) -> int:
    """The value of an expression that `parse` has read, as a list of its symbols, e.g.
    ["[MIN", "4", "2", "]"]."""
    operators, arguments = [], [[]]
    for symbol in symbols:
        if symbol in OPERATORS:
            operators.append(symbol)
            arguments.append([])
        elif symbol == "]":
            values = arguments.pop()
            arguments[-1].append(apply_operator(operators.pop(), values))
        else:
            arguments[-1].append(int(symbol))
    return arguments[0][0]


def _examples(path, lines):
    """The examples of numbered lines, and a `DataError` for a bad one."""
    import tensorflow as tf

    rows = [
        line if isinstance(line, DataError) else _columns(path, number, line)
        for number, line in lines
    ]
    sources = ["" if isinstance(row, DataError) else row[0] for row in rows]
    expressions, errors = (x.numpy() for x in parse(tf.constant(sources)))
    for (number, _), row, expression, error in zip(
        lines, rows, expressions, errors, strict=True
    ):
        if isinstance(row, DataError):
            yield row
        elif error:
            yield DataError(f"{path}:{number}: {error.decode()}")
        elif (value := evaluate(expression.decode().split())) != int(row[1]):
            expected = f"an expression with the stated target {row[1]}"
            yield bad_row(path, number, expected, f"one with the value {value}")
        else:
            yield Example(expression, value)


def _columns(path, number, line):
    """Source and target of a line, or what is wrong with it."""
    columns = line.split("\t")
    if len(columns) != 2:
        expected = "two columns, Source and Target, parted by a tab"
        return bad_row(path, number, expected, f"{len(columns)}")
    if columns[1] not in CLASS_NAMES:
        return bad_row(path, number, "a target from 0 to 9", f"{columns[1]!r:.30}")
    return columns


def _path(config, split) -> Path:
    if config.source == "generate":
        root = _generated(config)
    else:
        root = files.data_path(config.dir, "ListOps", "a folder of basic_*.tsv")
    path = root / f"basic_{FILE_NAMES[split]}.tsv"
    return files.require_file(path, f"TSV rows with the header {HEADER!r}")


def _generated(config) -> Path:
    """The folder of the generated files, made now if it is not there."""
    size = Size(*(config[field] for field in Size._fields))
    counts = {split: config[f"{split}_examples"] for split in SPLITS}
    settings = {**size._asdict(), **counts, "seed": config.generator_seed}
    if config.dir:
        root = make_path(config.dir, "--config.data.dir")
    else:
        name = "-".join(str(value) for value in settings.values())
        root = make_path(config.cache_dir, "--config.data.cache_dir")
        root /= f"listops-{name}"

    def write(folder):
        _write_splits(folder, root, size, counts, config.generator_seed)
        (folder / SETTINGS).write_text(json.dumps(settings) + "\n")

    if not config.dir:
        return cached(root, write)
    if root.is_dir() and any(root.iterdir()):
        _check_generated(root, settings)
    else:
        check_writable_folder(root, "--config.data.dir", by_rename=True)
        if root.is_dir():
            root.rmdir()
    return cached(root, write)


def _check_generated(root, settings):
    """A folder that somebody has chosen is not made again: they may have edited it."""
    if not (root / checksums.NAME).exists():
        raise DataError(
            f"{root}: expected an empty folder to write to, found files that this "
            "version's generator has not made; give another --config.data.dir, or read "
            "them with --config.data.source=files"
        )
    checksums.check(root)
    stored = json.loads((root / SETTINGS).read_text())
    if stored != settings:
        raise DataError(
            f"{root / SETTINGS}: expected the settings {settings}, found {stored}; "
            "give another --config.data.dir, or read it with "
            "--config.data.source=files"
        )


def _write_splits(folder, root, size, counts, seed):
    total = sum(counts.values())
    examples = generate(total, size, seed)
    progress = progress_bar(
        total=total, desc=f"generating ListOps in {root}", unit=" examples"
    )
    try:
        with progress:
            for split, count in counts.items():
                path = folder / f"basic_{FILE_NAMES[split]}.tsv"
                with open(path, "w", encoding="utf-8") as file:
                    file.write(HEADER + "\n")
                    for _ in range(count):
                        source, target = next(examples)
                        file.write(f"{source}\t{target}\n")
                        progress.update()
    except ValueError as error:
        raise DataError(
            f"--config.data: expected bounds that {total} distinct expressions meet, "
            f"{error}"
        ) from None
    finally:
        examples.close()
