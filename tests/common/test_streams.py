"""Streams that are closed, full or read by nobody end no work and hide no loss."""

import subprocess
import sys

import pytest

from tests.conftest import ROOT

SCRIPT = """
import logging, os, sys
from contextlib import suppress
from common import streams
streams.secure()
from common.progress import LinesAboveBars, progress_bar
logger = logging.getLogger("transevolve")
logger.addHandler(LinesAboveBars(sys.stderr))
for _ in progress_bar(range(3), desc="working"):
    logger.warning("a message")
    print("another", file=sys.stderr)
with open(sys.argv[1], "w") as file:
    assert file.fileno() > 2
    with suppress(OSError):
        os.write(2, b"a library's\\n")
    file.write("done")
try:
    print("a result")
except streams.LostOutputError as error:
    print(error, file=sys.stderr)
    sys.exit(streams.EXIT_CODE)
"""
LOST = (
    "standard output: {}; what was printed is lost, what was written to files is whole"
)


def run(redirections, work):
    command = f'"$0" -c "$1" "$2" {redirections}'
    arguments = [sys.executable, SCRIPT, work]
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert work.read_text() == "done"
    assert "Traceback" not in result.stderr and "ignored" not in result.stderr
    return result


@pytest.mark.parametrize("lost", ["2>&-", "2>/dev/full", "2> >(:)", "<&- 2>&-"])
def test_a_lost_standard_error_changes_nothing(tmp_path, lost):
    result = run(lost, tmp_path / "work")
    assert (result.returncode, result.stdout) == (0, "a result\n")
    assert result.stderr == ""


@pytest.mark.parametrize(
    "lost, reason",
    [
        (">&-", "Bad file descriptor"),
        (">/dev/full", "No space left on device"),
        ("| :", "Broken pipe"),
    ],
)
def test_a_lost_standard_output_is_told_after_the_work(tmp_path, lost, reason):
    result = run(lost, tmp_path / "work")
    assert result.returncode == 74
    assert result.stderr.splitlines()[-1] == LOST.format(reason)


@pytest.mark.parametrize("lost", [">&- 2>&-", "2>&1 | :", "<&- >&- 2>&-"])
def test_without_both_streams_the_exit_code_tells(tmp_path, lost):
    result = run(lost, tmp_path / "work")
    assert (result.returncode, result.stdout, result.stderr) == (74, "", "")


def test_a_reader_that_has_all_it_reads_is_no_loss(tmp_path):
    result = run("| head -1", tmp_path / "work")
    assert (result.returncode, result.stdout) == (0, "a result\n")
