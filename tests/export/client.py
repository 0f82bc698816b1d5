"""Asks an export, and prints its answers: client.py EXPORT [MODULE]... < requests.

A request is a line of JSON, [signature, {input: texts}, whether to measure]. An answer
is one of {output: values}, and if it was measured "memory", bytes before the request
and the most while it was answered; or {"refused": reason}. Texts are nested in lists as
a tensor of theirs has dimensions. A byte of a text is a character.
"""

import importlib
import json
import sys
from pathlib import Path

import tensorflow as tf


def main():
    folder, *modules = sys.argv[1:]
    for name in modules:
        importlib.import_module(name)
    loaded = tf.saved_model.load(folder)
    for line in sys.stdin:
        signature, inputs, measured = json.loads(line)
        inputs = {
            name: tf.constant(decoded(texts), tf.string)
            for name, texts in inputs.items()
        }
        if measured:
            before = memory("VmRSS")
            Path("/proc/self/clear_refs").write_text("5")  # forgets the peak until now
        try:
            found = loaded.signatures[signature](**inputs)
        except tf.errors.InvalidArgumentError as error:
            print(json.dumps({"refused": str(error)}), flush=True)
            continue
        found = {name: encoded(value.numpy()) for name, value in found.items()}
        if measured:
            found["memory"] = [before, memory("VmHWM")]
        print(json.dumps(found), flush=True)


def memory(name):
    """Bytes of this process, of Linux's status file."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith(name))
    return 1024 * int(kilobytes)


def decoded(texts):
    if isinstance(texts, list):
        return [decoded(part) for part in texts]
    return texts.encode("latin-1")


def encoded(array):
    if array.dtype.kind == "O":
        return (
            [x.decode("latin-1") for x in array]
            if array.ndim == 1
            else [encoded(row) for row in array]
        )
    return array.tolist()


if __name__ == "__main__":
    main()
