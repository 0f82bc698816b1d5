"""ListOps: the value of a nested expression of MIN, MAX, MED and SM (sum mod 10)."""

import json
from collections.abc import Iterator
from pathlib import Path

from common import checksums
from common.cache import cached
from common.fields import choice, fail, integer
from common.paths import make_path
from common.progress import progress_bar
from data import files
from data.datasets.listops_generator import (
    OPERATORS,
    Size,
    apply_operator,
    generate,
    mean_nodes,
)
from data.errors import DataError, bad_row
from data.examples import Example

KIND = "classification"
CLASS_NAMES = tuple("0123456789")
SYMBOLS = (*CLASS_NAMES, *OPERATORS, "]")
SPLITS = ("train", "validation", "test")
SOURCES = ("generate", "files")
TOKENIZERS = ("symbols", "bytes")
FIELDS = {
    "source": choice("Made here, or the benchmark's basic_*.tsv.", *SOURCES),
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

    With source "generate", the files are made first if they are not there yet.
    Parentheses are dropped, and each expression must evaluate to its target.
    """
    path = _path(config, split)
    rows = files.lines(path)
    _, header = next(rows)
    if header != HEADER:
        raise bad_row(path, 1, f"the header {HEADER!r}", f"{header!r:.60}")
    for number, line in rows:
        yield line if isinstance(line, DataError) else _parse(path, number, line)


def identify(config, split: str):
    """A value that changes when the source does."""
    return files.identify(_path(config, split))


def evaluate(symbols: list[str]) -> int:
    """The value of an expression without parentheses, e.g. ["[MIN", "4", "2", "]"].

    Raises:
      ValueError: if it is no expression; the message says what was found.
    """
    operators, arguments = [], [[]]
    for symbol in symbols:
        if symbol in OPERATORS:
            operators.append(symbol)
            arguments.append([])
        elif symbol == "]":
            if not operators:
                raise ValueError("a ']' that closes nothing")
            values = arguments.pop()
            operator = operators.pop()
            if not values:
                raise ValueError(f"{operator} without arguments")
            arguments[-1].append(apply_operator(operator, values))
        elif symbol in CLASS_NAMES:
            arguments[-1].append(int(symbol))
        else:
            raise ValueError(f"the symbol {symbol!r:.30}")
    if operators:
        raise ValueError(f"{len(operators)} operators that are not closed")
    if len(arguments[0]) != 1:
        raise ValueError(f"{len(arguments[0])} expressions")
    return arguments[0][0]


def _parse(path, number, line):
    columns = line.split("\t")
    if len(columns) != 2:
        expected = "two columns, Source and Target, parted by a tab"
        return bad_row(path, number, expected, f"{len(columns)}")
    source, target = columns
    if target not in CLASS_NAMES:
        return bad_row(path, number, "a target from 0 to 9", f"{target!r:.30}")
    symbols = source.replace("(", "").replace(")", "").split()
    try:
        value = evaluate(symbols)
    except ValueError as error:
        return bad_row(path, number, "one balanced ListOps expression", str(error))
    if value != int(target):
        expected = f"an expression with the stated target {target}"
        return bad_row(path, number, expected, f"one with the value {value}")
    return Example(" ".join(symbols).encode(), value)


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
    elif root.is_dir():
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
    found = json.loads((root / SETTINGS).read_text())
    if found != settings:
        raise DataError(
            f"{root / SETTINGS}: expected the settings {settings}, found {found}; "
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
