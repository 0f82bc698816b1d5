"""Signals are noted, and those that are ignored stay ignored."""

import os
import signal

import pytest

from common.interruption import catch_signals


@pytest.fixture(autouse=True)
def handler():
    """Of SIGHUP, put back after the test."""
    before = signal.signal(signal.SIGHUP, signal.default_int_handler)
    yield
    signal.signal(signal.SIGHUP, before)


def test_the_first_is_noted_and_the_second_ends():
    with pytest.raises(KeyboardInterrupt), catch_signals() as interruption:
        assert not interruption
        os.kill(os.getpid(), signal.SIGHUP)
        assert interruption.name == "SIGHUP"
        os.kill(os.getpid(), signal.SIGHUP)


def test_what_is_ignored_stays_ignored():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    with catch_signals() as interruption:
        os.kill(os.getpid(), signal.SIGHUP)
    assert not interruption
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
