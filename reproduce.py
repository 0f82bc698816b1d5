"""Trains and compares all models at laptop scale: reproduce.py --workdir=DIR."""

import sys

from training import cli  # first: it quiets TensorFlow's logs

from absl import flags

WORKDIR = flags.DEFINE_string("workdir", "runs/reproduce", "Folder of all runs.")
VARIANTS = flags.DEFINE_list("variants", None, "Instead of the paper's five.")


def main():
    from common.paths import make_path
    from reproduction.laptop import reproduce

    report, learned = reproduce(WORKDIR.value, VARIANTS.value)
    (make_path(WORKDIR.value, "--workdir") / "report.md").write_text(report + "\n")
    print(report)
    if not learned:
        sys.exit("error: a model learned too little; see the table")


if __name__ == "__main__":
    cli.run(main)
