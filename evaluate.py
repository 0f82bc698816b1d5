"""Evaluates a run: evaluate.py --workdir=DIR [--split=test|--interactive|--score]."""

import json
import sys

from common import cli  # first: it quiets TensorFlow's logs

from absl import flags

from common.errors import UserError

run_arguments = cli.define_run()
SPLIT = flags.DEFINE_string("split", "test", '"test" or "validation".')
strategy_arguments = cli.define_strategy("auto", "one_device", "mirrored", "tpu")
INTERACTIVE = flags.DEFINE_bool(
    "interactive", False, "Answer lines of standard input, typed or piped in."
)
N_BEST = flags.DEFINE_integer(
    "n_best",
    None,
    "Answer each line by so many translations, score<TAB>translation.",
    lower_bound=1,
)
SCORE = flags.DEFINE_bool(
    "score",
    False,
    "Score lines of standard input, text<TAB>translation or, of a language model, a "
    "text: log-probability<TAB>tokens.",
)


def main():
    if INTERACTIVE.value or SCORE.value:
        _answer_lines()
        return
    if N_BEST.value is not None:
        raise UserError("--n_best: expected beside --interactive")
    from reporting.evaluation import markdown
    from evaluation.evaluate import evaluate
    from training.tensorflow.strategy import make_strategy

    strategy = make_strategy(*strategy_arguments())
    result, evaluation = evaluate(
        split=SPLIT.value, strategy=strategy, **run_arguments()
    )
    print(markdown(evaluation), file=sys.stderr)
    print(json.dumps(result))


def _answer_lines():
    from evaluation.answer_lines import answer_lines, score_lines
    from evaluation.run import load_run

    if SCORE.value and INTERACTIVE.value:
        raise UserError("--score: expected without --interactive")
    mode = "score" if SCORE.value else "interactive"
    unused = ("split", "strategy", "tpu", "data_dir")
    for name in (*unused, *(["n_best"] if SCORE.value else [])):
        if flags.FLAGS[name].present:
            raise UserError(f"--{name}: --{mode} does not take it")
    if sys.stdin is None:
        raise UserError(f"--{mode}: expected standard input, found it closed")
    sys.stdout.reconfigure(encoding="utf-8")
    run = load_run(**run_arguments())
    if SCORE.value:
        score_lines(run, sys.stdin.buffer)
    else:
        answer_lines(run, sys.stdin.buffer, N_BEST.value)


if __name__ == "__main__":
    cli.run(main)
