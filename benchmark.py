"""Measures models side by side: benchmark.py COMMAND [flags].

params   parameters of every variant and task, beside the paper's
speed    seconds of a training step or a forward pass, models by turns
products the matrix products of a training step, each alone, beside the step
memory   peak memory of the process, each model in one of its own
decode   seconds of a beam search, with a cache and recomputing every prefix
serve    latency and throughput of exported models, beside Python and evaluation
features error of random features against softmax attention
scan     the delta rule in chunks beside its rule position by position
ngrams   perplexity of n-gram models of a text
input    what a training command's data pipeline delivers and consumes
stream   memory while a parallel text of any size is read for training

A row that could not be measured says why in `not_run`, and the exit code is 1.
"""

import importlib
import json
import sys

from common import cli  # first: it quiets TensorFlow's logs

from absl import flags

from benchmarks import flags as command_flags
from common import backend

MARKDOWN = flags.DEFINE_bool("markdown", False, "A table instead of JSON rows.")


def main():
    from benchmarks import rows

    if command != "speed":
        backend.expect_tensorflow(f"benchmark.py {command}")
    arguments = command_flags.arguments(command)
    measure = importlib.import_module(f"benchmarks.{command}").measure
    measured = []
    try:
        for row in measure(**arguments):
            measured.append(row)
            if not MARKDOWN.value:
                print(json.dumps(row), flush=True)
    finally:
        if MARKDOWN.value and measured:
            print(rows.markdown(measured))
    if "plot" in flags.FLAGS and flags.FLAGS.plot:
        rows.plot(measured, flags.FLAGS.plot)
    if missing := [row["not_run"] for row in measured if "not_run" in row]:
        sys.exit(
            f"error: {len(missing)} of {len(measured)} rows have no figures; the first "
            f"says: {missing[0]}"
        )


if __name__ == "__main__":
    command = cli.take_command(sys.argv, command_flags.COMMANDS)
    command_flags.define(command)
    cli.run(main)
