"""Models of another checkout, timed by its own code."""

import pytest

from benchmarks import alone, checkout, models, speed
from common.errors import UserError
from models import variant_config
from tests.conftest import ROOT
from tests.shallow import shallow_variant

NAME = "transevolve-fullff-1-none"
# What a checkout must have, with a model that counts its calls.
OTHER = {
    "common/errors.py": "class UserError(Exception): pass",
    "benchmarks/calls.py": """
import os
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

from common.errors import UserError


class Setting(NamedTuple):
    mode: str = "train"


def check(names, setting):
    if names == ["unknown"]:
        raise UserError("--models: expected another")


def prepare(name, setting, batch_size, length):
    def call():
        print("called", setting.mode)
        if name == "mortal":
            os._exit(1)
        with open("calls", "a") as file:
            file.write(f"{name} {setting.mode}\\n")

    def close():
        Path("closed").touch()

    parameters = batch_size * length
    return SimpleNamespace(call=call, parameters=parameters, close=close)
""",
}


@pytest.fixture
def other(tmp_path):
    for name, text in OTHER.items():
        path = tmp_path / name
        path.parent.mkdir()
        path.write_text(text)
    return tmp_path


def test_a_call_is_made_by_the_other_code(other):
    peer = checkout.start(str(other), "any", {"mode": "inference"}, 3, 16)
    assert peer.parameters == 48
    peer.call()
    peer.call()
    peer.close()
    assert (other / "calls").read_text() == "any inference\n" * 2
    assert (other / "closed").exists()


def test_what_the_other_code_does_not_know_is_an_error(other):
    with pytest.raises(UserError, match=f"{other}:.* --models: expected another"):
        checkout.start(str(other), "unknown", {}, 1, 16)
    with pytest.raises(UserError, match=f"{other}:any at .*'causal'"):
        checkout.start(str(other), "any", {"causal": True}, 1, 16)


def test_a_process_that_ends_says_so(other):
    peer = checkout.start(str(other), "mortal", {}, 1, 16)
    with pytest.raises(alone.ProcessEnded, match="mortal at 16 .* ended with code 1$"):
        peer.call()
    peer.close()


def test_names_of_no_checkout_are_refused(tmp_path):
    assert checkout.models(["transformer"]) == []
    with pytest.raises(UserError, match=f"--models: {tmp_path}:x: expected a checkout"):
        list(speed.measure([f"{tmp_path}:x"], [16]))


@pytest.mark.slow
def test_this_checkout_is_timed_beside_itself(monkeypatch):
    monkeypatch.setattr(models, "variant_config", shallow_variant)
    monkeypatch.setattr(speed, "PEAK_SIZE", 256)
    theirs, ours = speed.measure([f"{ROOT}:{NAME}", NAME], [16], 16, 1)
    ratio = ours["seconds"] / theirs["seconds"]
    assert theirs["ratio_to_here"] == pytest.approx(ratio, rel=0.02)
    # Nothing of this process is in that one, where models are as deep as ever.
    monkeypatch.setattr(models, "variant_config", variant_config)
    deep = models.build(NAME, "small").count_params()
    assert theirs["parameters"] == deep > ours["parameters"]
