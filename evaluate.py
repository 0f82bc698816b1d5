"""Evaluates a run: evaluate.py --workdir=DIR [--split=test|--interactive]."""

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
SEARCH = [
    flags.DEFINE_integer(
        "beam_size", None, "Beams, if not the run's config.decode.", lower_bound=1
    ),
    flags.DEFINE_float(
        "length_penalty", None, "If not the run's config.decode.", lower_bound=0
    ),
    flags.DEFINE_integer(
        "extra_length", None, "If not the run's config.decode.", lower_bound=0
    ),
    flags.DEFINE_integer(
        "batch_size", None, "Sentences, if not the run's config.decode.", lower_bound=1
    ),
]
make_strategy = cli.define_strategy("auto", "one_device", "mirrored", "tpu")
INTERACTIVE = flags.DEFINE_bool(
    "interactive", False, "Answer lines of standard input, typed or piped in."
)


def main():
    search = {flag.name: flag.value for flag in SEARCH if flag.present}
    if INTERACTIVE.value:
        _answer_lines(search)
        return
    from reporting.evaluation import markdown
    from training.evaluation import evaluate

    result, found = evaluate(
        WORKDIR.value, SPLIT.value, AVERAGE_CHECKPOINTS.value, search, make_strategy()
    )
    print(markdown(found), file=sys.stderr)
    print(json.dumps(result))


def _answer_lines(search):
    from common.errors import UserError
    from training.interactive import answer_lines
    from training.run import load_run

    for name in ("split", "strategy", "tpu"):
        if flags.FLAGS[name].present:
            raise UserError(f"--{name}: --interactive does not take it")
    if sys.stdin is None:
        raise UserError("--interactive: expected standard input, found it closed")
    # A line each line, whatever else is in it.
    sys.stdin.reconfigure(encoding="utf-8", errors="replace", newline="\n")
    sys.stdout.reconfigure(encoding="utf-8")
    answer_lines(load_run(WORKDIR.value, AVERAGE_CHECKPOINTS.value, search), sys.stdin)


if __name__ == "__main__":
    flags.mark_flags_as_required(["workdir"])
    cli.run(main)
