"""JSON files that somebody else may have written, or damaged."""

import pytest

from common.errors import UserError
from common.json_files import read_object, read_rows

DIGITS = "1" * 400
UNSOUND = {
    "": "expected JSON, found damage: Expecting value",
    '{"loss": 1.5': "expected JSON, found damage: ",
    '{"loss": "\xff"}': "expected JSON, found damage: 'utf-8' codec",
    "null": "expected a JSON object, found null",
    "[1, 2]": r"expected a JSON object, found \[1, 2\]",
    "[" * 100_000: "expected at most 50 levels, found more",
    '{"a":' * 60 + "1" + "}" * 60: "expected at most 50 levels, found more",
    '{"a": NaN}': "expected numbers up to 1e.150, found NaN",
    '{"a": -Infinity}': "expected numbers up to 1e.150, found -Infinity",
    '{"a": [1e400]}': "expected numbers up to 1e.150, found 1e400",
    f'{{"a": {DIGITS}}}': "expected numbers up to 1e.150, found 1{39}…$",
    f'{{"a": {13 * DIGITS}}}': "expected numbers up to 1e.150, found 1{39}…$",
    '{"loss": "low"}': "loss: expected a number, found low",
    '{"loss": true}': "loss: expected a number, found true",
    '{"loss": [1]}': r"loss: expected a number, found \[1\]",
}


@pytest.mark.parametrize("content", UNSOUND, ids=range(len(UNSOUND)))
def test_what_cannot_be_computed_with_is_named(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(UserError, match=f"^{path}: {UNSOUND[content]}"):
        read_object(path, ["loss"])
    if content.endswith("}") and len(content.splitlines()) == 1:
        path.write_bytes(b'{"step": 1}\n' + content.encode("latin-1"))
        with pytest.raises(UserError, match=f"^{path}:2: {UNSOUND[content]}"):
            read_rows(path, ["loss"])


def test_sound_values_are_read(tmp_path):
    path = tmp_path / "a.json"
    assert read_object(path) is None and read_rows(path) == []
    path.write_text('{"loss": null, "accuracy": 1e-300, "decode": {"beams": [4, -2]}}')
    found = read_object(path, ["loss", "accuracy", "step"])
    expected = {"loss": None, "accuracy": 1e-300, "decode": {"beams": [4, -2]}}
    assert found == expected


def test_lines_that_a_kill_cut_off_are_left_out(tmp_path):
    path = tmp_path / "rows"
    path.write_text('{"step": 1}\n{"step": 2, "lo\n{"step": 3}\n{"st')
    assert read_rows(path) == [{"step": 1}, {"step": 3}]


@pytest.mark.parametrize("step", ['"1"', "1.5", "true", "null"])
def test_rows_are_of_a_step(tmp_path, step):
    path = tmp_path / "rows"
    path.write_text(f'{{"step": {step}}}\n')
    with pytest.raises(UserError, match=f"^{path}:1: step: expected a whole number"):
        read_rows(path)
