"""The Makefile's setup, without network and never in this checkout, and the pins."""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PINS = ["requirements.txt", "requirements-dev.txt", "constraints.txt"]
TOOLS = ["cat", "cksum", "cp", "mkdir", "rm", "touch"]
# Makes an environment of copies of itself; kills make where a file asks for it.
PYTHON = """#!/bin/sh
for last; do :; done
case "$*" in
"-m venv --clear .venv" | "-m pip "*) echo "${0##*/} $last" >> log ;;
*) exit ;;
esac
if [ -e "kill $last" ]; then kill -9 $PPID; exit; fi
if [ "$2" = venv ]; then rm -rf .venv; mkdir -p .venv/bin; cp "$0" .venv/bin/python; fi
"""
FAILS = "#!/bin/sh\nexit 127\n"
BUILD = ["python3.11 .venv", "python requirements.txt"]
BUILD_DEV = [*BUILD, "python requirements-dev.txt"]


@pytest.fixture(autouse=True)
def seeded():
    """Nothing here needs Keras, which conftest.py's fixture of this name imports."""


class Checkout:
    """The Makefile and the pins in a folder whose PATH has made-up Pythons only."""

    def __init__(self, folder):
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name in ["Makefile", *PINS]:
            shutil.copy(ROOT / name, folder)
        for name in TOOLS:
            (self.bin / name).symlink_to(shutil.which(name))

    def add_python(self, name, script=PYTHON):
        path = self.bin / name
        path.write_text(script)
        path.chmod(0o755)
        return path

    def make(self, *arguments):
        """Runs make without the variables of a make that runs these tests."""
        return subprocess.run(
            [shutil.which("make"), *arguments],
            cwd=self.folder,
            env={"PATH": str(self.bin)},
            capture_output=True,
            text=True,
        )

    def log(self):
        """What was built and installed since the last call."""
        path = self.folder / "log"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines


@pytest.fixture
def checkout(tmp_path):
    if not all(map(shutil.which, ["make", *TOOLS])):
        pytest.skip("no make here")
    return Checkout(tmp_path)


@pytest.mark.parametrize(
    "found, chosen",
    [
        (["python3.13", "python3.12", "python3.11"], "python3.11"),
        (["python3.13", "python3.12"], "python3.12"),
        (["python3.13", "python3.10", "python3"], "python3.13"),
    ],
)
def test_setup_takes_the_first_python_found(checkout, found, chosen):
    for name in found:
        checkout.add_python(name)
    assert f"{chosen} -m venv --clear .venv\n" in checkout.make("-n", "setup").stdout


def test_setup_passes_over_a_python_that_does_not_run(checkout):
    checkout.add_python("python3.11", FAILS)
    checkout.add_python("python3.12")
    assert "python3.12 -m venv --clear .venv\n" in checkout.make("-n", "setup").stdout


def test_setup_takes_the_python_named(checkout):
    checkout.add_python("python3.11")
    made = checkout.make("-n", "setup", "PYTHON=/opt/python")
    assert "/opt/python -m venv --clear .venv\n" in made.stdout


def test_setup_names_in_one_line_what_to_install(checkout):
    checkout.add_python("python3.11", FAILS)
    checkout.add_python("python3.10")
    made = checkout.make("setup")
    assert made.returncode != 0
    (line,) = (made.stdout + made.stderr).splitlines()
    assert "Install Python 3.11, 3.12 or 3.13" in line
    assert "PYTHON=" in line


def test_setup_builds_once(checkout):
    python = checkout.add_python("python3.11")
    assert checkout.make("setup").returncode == 0
    assert checkout.log() == BUILD
    assert checkout.make("setup-dev").returncode == 0
    assert checkout.log() == BUILD_DEV[2:]
    # As in a new checkout, and with no Python left to build another environment.
    later = time.time() + 60
    for name in PINS:
        os.utime(checkout.folder / name, (later, later))
    python.unlink()
    assert checkout.make("setup", "setup-dev").returncode == 0
    assert checkout.log() == []


@pytest.mark.parametrize("name", PINS)
def test_changed_pins_build_anew(checkout, name):
    checkout.add_python("python3.11")
    checkout.make("setup-dev")
    checkout.log()
    with open(checkout.folder / name, "a") as file:
        file.write("tqdm==1.0\n")
    checkout.make("setup-dev")
    assert checkout.log() == BUILD_DEV


@pytest.mark.parametrize(
    "step, log", [("requirements.txt", BUILD), ("requirements-dev.txt", BUILD_DEV)]
)
def test_interrupted_setup_starts_anew(checkout, step, log):
    checkout.add_python("python3.11")
    kill = checkout.folder / f"kill {step}"
    kill.touch()
    assert checkout.make("setup-dev").returncode != 0
    assert checkout.log() == log
    kill.unlink()
    assert checkout.make("setup").returncode == 0
    assert checkout.log() == BUILD


def test_environment_half_cleared_is_not_taken_for_whole(checkout):
    checkout.add_python("python3.11")
    checkout.make("setup")
    pins = checkout.folder / "requirements.txt"
    before = pins.read_text()
    pins.write_text(before + "tqdm==1.0\n")
    kill = checkout.folder / "kill .venv"
    kill.touch()
    assert checkout.make("setup").returncode != 0
    kill.unlink()
    pins.write_text(before)
    checkout.log()
    checkout.make("setup")
    assert checkout.log() == BUILD


def read_pins(path):
    """Lower-case names and versions of the packages that a file lists."""
    pins = []
    for line in path.read_text().splitlines():
        if line and not line.startswith(("#", "-r ", "-c ")):
            pin = re.fullmatch(r"([\w.-]+)(\[[\w,-]+\])?==([\w.]+)", line)
            assert pin, f"{path.name}: {line}: expected NAME==VERSION"
            pins.append((re.sub(r"[-_.]+", "-", pin[1]).lower(), pin[3]))
    assert len(pins) == len({name for name, _ in pins})
    return pins


@pytest.mark.parametrize("name", sorted(p.name for p in ROOT.glob("requirements*.txt")))
def test_requirements_are_pinned_and_constrained(name):
    pins = dict(read_pins(ROOT / name))
    # Not tested together with the others: they take TensorFlow's place on a TPU VM.
    for package in ["tensorflow-tpu", "libtpu"]:
        pins.pop(package, None)
    assert pins.items() <= dict(read_pins(ROOT / "constraints.txt")).items()
