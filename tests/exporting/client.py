"""Asks an export, and prints its answers: client.py EXPORT [MODULE]... < requests.

A request is a line of JSON, [signature, {input: texts}], an answer is one of {output:
values} and "memory", the most bytes that the process has had. A byte is a character.
"""

import importlib
import json
import resource
import sys

import tensorflow as tf


def main():
    folder, *modules = sys.argv[1:]
    for name in modules:
        importlib.import_module(name)
    loaded = tf.saved_model.load(folder)
    for line in sys.stdin:
        signature, inputs = json.loads(line)
        inputs = {
            name: tf.constant([text.encode("latin-1") for text in texts], tf.string)
            for name, texts in inputs.items()
        }
        found = loaded.signatures[signature](**inputs)
        found = {name: encoded(value.numpy()) for name, value in found.items()}
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps({**found, "memory": 1024 * used}), flush=True)


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
