"""Answers each line of standard input by the model that lies beside this file.

python answer.py < texts           prints an answer a line
python answer.py --json < texts    prints all outputs, a JSON object a line
"""

import argparse
import json
import os
import sys
from itertools import islice
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf
import tensorflow_text  # noqa: F401

ANSWER = "label"
LINES_AT_A_TIME = 1024


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    sys.stdout.reconfigure(encoding="utf-8")
    model = tf.saved_model.load(str(Path(__file__).resolve().parent / "1"))
    while lines := list(islice(sys.stdin.buffer, LINES_AT_A_TIME)):
        texts = [line.rstrip(b"\r\n") for line in lines]
        found = model.signatures["serving_default"](text=tf.constant(texts))
        found = {name: value.numpy().tolist() for name, value in found.items()}
        for row in zip(*found.values(), strict=True):
            outputs = dict(zip(found, map(_text, row), strict=True))
            print(json.dumps(outputs) if as_json else outputs[ANSWER], flush=True)


def _text(value):
    if isinstance(value, list):
        return [_text(part) for part in value]
    return value.decode() if isinstance(value, bytes) else value


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:  # what reads our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
