"""JSON files that a report computes with, whoever wrote them: sound, or refused."""

import json
import math
from collections.abc import Collection, Mapping
from pathlib import Path

from common.errors import UserError

# Squares of larger numbers overflow, and deeper values exhaust Python's stack.
LARGEST, DEEPEST = 1e150, 50


def read_object(path: Path, numbers: Collection[str] = ()) -> dict | None:
    """The JSON object in a file.

    Args:
      path: of the file.
      numbers: names in the object that stand for a number or null.

    Returns:
      The object, whose numbers are finite and at most `LARGEST`; None if there is no
      such file.

    Raises:
      UserError: if the file holds anything else. The message names it.
    """
    content = _content(path)
    return None if content is None else _object(content, numbers, path)


def read_rows(path: Path, numbers: Collection[str] = ()) -> list[dict]:
    """The JSON objects in a file, one a line, each with the step that it is of.

    A line without its end, as a process leaves it that is killed, is left out.

    Args:
      path, numbers: as for `read_object`.

    Raises:
      UserError: as `read_object`, with the number of the line.
    """
    rows = []
    for number, line in enumerate((_content(path) or b"").splitlines(), start=1):
        if line.endswith(b"}"):
            row = _object(line, numbers, f"{path}:{number}")
            if type(row.get("step")) is not int:
                raise UserError(
                    f"{path}:{number}: step: expected a whole number, found "
                    f"{_short(row.get('step'))}"
                )
            rows.append(row)
    return rows


def check_numbers(values: Mapping, names: Collection[str], where) -> None:
    """Checks that values of these names, those that are there, are numbers or null.

    Raises:
      UserError: naming the first that is none.
    """
    for name in names:
        if type(value := values.get(name)) not in (int, float, type(None)):
            raise UserError(
                f"{where}: {name}: expected a number, found {_short(value)}"
            )


def _content(path):
    """The bytes of a file; None if there is none."""
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError as error:
        raise UserError(f"{path}: expected a file, found {error.strerror}") from None


def _object(content, numbers, where):
    def finite(kind):
        def parse(text):
            if not abs(float(text)) <= LARGEST:
                raise UserError(
                    f"{where}: expected numbers up to {LARGEST:g}, found {_short(text)}"
                )
            return kind(text)

        return parse

    try:
        value = json.loads(
            content.decode(),
            parse_int=finite(int),
            parse_float=finite(float),
            parse_constant=finite(float),
        )
        depth = _depth(value)
    except ValueError as error:
        raise UserError(f"{where}: expected JSON, found damage: {error}") from None
    except RecursionError:
        depth = math.inf
    if depth > DEEPEST:
        raise UserError(f"{where}: expected at most {DEEPEST} levels, found more")
    if not isinstance(value, dict):
        raise UserError(f"{where}: expected a JSON object, found {_short(value)}")
    check_numbers(value, numbers, where)
    return value


def _depth(value):
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


def _short(value):
    text = json.dumps(value) if not isinstance(value, str) else value
    return text if len(text) <= 40 else f"{text[:39]}…"
