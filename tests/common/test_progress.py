"""Bars and messages, on a terminal and in a file."""

import io
import logging
import os
import pty
import subprocess
import sys
import termios

import pytest

from common import progress
from common.progress import LinesAboveBars, progress_bar
from tests.conftest import ROOT


def work(stream, num_steps=4):
    """A bar within a bar, and messages."""
    logger = logging.Logger("of a test")
    logger.addHandler(LinesAboveBars(stream))
    with progress_bar(desc="training", total=num_steps, unit=" steps") as bar:
        for step in range(num_steps):
            with progress_bar(desc="validating", total=2, leave=False) as inner:
                inner.update(2)
            logger.warning("step %d is done", step)
            bar.set_postfix_str("loss 1.0", refresh=False)
            bar.update()


def logged(monkeypatch):
    """What it writes to a file."""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    work(sys.stderr)
    return sys.stderr.getvalue()


def test_a_log_has_whole_lines_and_few_of_bars(monkeypatch):
    log = logged(monkeypatch)
    first, *messages, last = log.splitlines()
    assert not set("\r\x1b█") & set(log)
    assert first.startswith("training:   0% 0/4 [")
    assert messages == [f"step {step} is done" for step in range(4)]
    assert last.startswith("training: 100% 4/4 [") and last.endswith("loss 1.0]")
    assert "steps/s" in last


def test_long_work_shows_its_rate_and_the_time_left(monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_IN_LOG", 0)
    log = logged(monkeypatch)
    lines = log.splitlines()
    assert any(line.startswith("training:  50% 2/4 [00:00<00:00, ") for line in lines)
    assert any(line.startswith("validating: 100% 2/2 [") for line in lines)
    assert not set("\r\x1b█") & set(log)


class Odd:
    """What a program may put in place of standard error."""

    def write(self, text):
        raise BrokenPipeError


@pytest.mark.parametrize("stream", [None, Odd(), io.StringIO()])
def test_a_standard_error_that_is_no_file_stops_no_work(monkeypatch, capfd, stream):
    if isinstance(stream, io.StringIO):
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    for _ in progress_bar(range(3), desc="working"):
        pass
    assert capfd.readouterr() == ("", "")


def test_messages_stand_above_the_bar_of_a_terminal():
    reader, writer = pty.openpty()
    termios.tcsetwinsize(writer, (24, 80))
    code = "import sys; from tests.common.test_progress import work; work(sys.stderr)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, stderr=writer, check=True)
    os.close(writer)
    shown = b""
    try:
        while block := os.read(reader, 4096):
            shown += block
    except OSError:  # all of it is read
        os.close(reader)
    lines = [line.split("\r")[-1].strip() for line in shown.decode().split("\r\n")]
    assert [line for line in lines if line.startswith("step")] == [
        f"step {step} is done" for step in range(4)
    ]
    assert "█" in shown.decode()
