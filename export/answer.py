"""Answers each line of standard input by the model that lies beside this file.

python answer.py < texts           prints an answer a line
python answer.py --json < texts    prints all outputs, a JSON object a line

What is typed is answered line by line, what is piped in many lines at a time. Of a text
that was cut, standard error says so. A line that is no input of the model is answered
by "error: " and what is wrong with it. The script then exits with 1.
"""

import argparse
import codecs
import importlib
import json
import os
import sys
from itertools import islice
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

# Of this model.
ANSWER, MODULES = "label", []
LINES_AT_A_TIME = 1024


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    sys.stdout.reconfigure(encoding="utf-8")
    for name in MODULES:  # whose operations it has
        importlib.import_module(name)
    folder = Path(__file__).resolve().parent
    if set("[]\\") & set(str(folder)):  # which TensorFlow would take for a pattern
        os.chdir(folder)
        folder = Path()
    model = tf.saved_model.load(str(folder / "1"))
    size = 1 if sys.stdin.isatty() else LINES_AT_A_TIME
    number = num_errors = 0
    while lines := list(islice(sys.stdin.buffer, size)):
        if number == 0:
            lines[0] = lines[0].removeprefix(codecs.BOM_UTF8)
        texts = [line.rstrip(b"\r\n") for line in lines]
        outputs = model.signatures["serving_default"](text=tf.constant(texts))
        columns = {name: value.numpy().tolist() for name, value in outputs.items()}
        for row in zip(*columns.values(), strict=True):
            outputs = dict(zip(columns, map(_text, row), strict=True))
            number += 1
            error = outputs.get("error")
            answer = f"error: {error}" if error else outputs[ANSWER]
            print(json.dumps(outputs) if as_json else answer, flush=True)
            if outputs["truncated"]:
                print(f"line {number}: cut", file=sys.stderr)
            if error:
                num_errors += 1
                print(f"line {number}: {error}", file=sys.stderr)
    if num_errors:
        sys.exit(f"error: {num_errors} of {number} lines have no answer, see above")


def _text(value):
    if isinstance(value, list):
        return [_text(part) for part in value]
    return value.decode() if isinstance(value, bytes) else value


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:  # what reads our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
