"""Evaluates a run: evaluate.py --workdir=DIR [--split=test]."""

import json
import sys

from training import cli  # first: it quiets TensorFlow's logs

from absl import flags

WORKDIR = flags.DEFINE_string("workdir", None, "Folder of the run.")
SPLIT = flags.DEFINE_string("split", "test", '"test" or "validation".')
AVERAGE_CHECKPOINTS = flags.DEFINE_integer(
    "average_checkpoints",
    0,
    "Evaluate the mean weights of so many last checkpoints, not the best one.",
    lower_bound=0,
)


def main(argv):
    del argv
    from training.evaluation import evaluate, per_class_table

    result, confusion, class_names = evaluate(
        WORKDIR.value, SPLIT.value, AVERAGE_CHECKPOINTS.value
    )
    print(per_class_table(confusion, class_names), file=sys.stderr)
    print(json.dumps(result))


if __name__ == "__main__":
    flags.mark_flags_as_required(["workdir"])
    cli.run(main)
