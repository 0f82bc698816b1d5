"""Makes the paper's tables: reproduce.py --table=TABLE --scale=SCALE --output=DIR.

Without --table it is the newcomer's comparison, which `make reproduce` runs.
"""

import sys

from common import cli  # first: it quiets TensorFlow's logs

from absl import flags

from common.errors import UserError

TABLE = flags.DEFINE_string(
    "table",
    None,
    "2, 3, 4 or figure2 of the paper, all of these, or fidelity, blocks, imdb, "
    "pretraining, retrieval, recall or fast-weights.",
)
SCALE = flags.DEFINE_string(
    "scale", "laptop", "How large the runs are: paper, laptop or smoke."
)
SEEDS = flags.DEFINE_integer(
    "seeds", None, "Runs of each kind, if not the scale's number."
)
DATA_DIR = flags.DEFINE_string(
    "data_dir", None, "Folder with data as its authors ship it."
)
OUTPUT = flags.DEFINE_string("output", "runs/reproduce", "Folder of runs and results.")
ONLY = flags.DEFINE_string(
    "only", "", "Regular expression: only runs whose name it is found in."
)
VARIANTS = flags.DEFINE_list("variants", None, "Models instead of the usual ones.")
TUNE = flags.DEFINE_bool(
    "tune",
    False,
    "Train classifiers with half and twice the learning rate of their config, too, and "
    "go on with the best on validation data.",
)
DRY_RUN = flags.DEFINE_bool(
    "dry_run", False, "Print the runs, with an estimate of their time, and stop."
)
REPORT = flags.DEFINE_string(
    "report", None, "Write report.html of the runs in this folder, and stop."
)
FIGURE = flags.DEFINE_enum(
    "figure",
    None,
    ["evolution", "drift", "positions", "losses"],
    "Draw this of --workdir, the evolution of --text, and stop.",
)
WORKDIR = flags.DEFINE_multi_string(
    "workdir", None, "Of the run that --figure draws; of each, where it compares runs."
)
TEXT = flags.DEFINE_string("text", None, "Whose evolution --figure draws.")
# The process of each run makes it.
cli.define_strategy("auto", "one_device", "mirrored", "tpu")

# What a mode takes; with another flag it would do something other than was asked.
TAKES = {
    "report": {"report"},
    "figure": {"figure", "workdir", "text", "output"},
    "table": {
        *("table", "scale", "seeds", "data_dir", "output", "only", "variants"),
        *("tune", "dry_run", "strategy", "tpu"),
    },
    None: {"output", "variants"},
}


def main():
    # Names of files go out as they came, also those that are no text.
    sys.stdout.reconfigure(errors="surrogateescape")
    modes = [name for name in TAKES if name and flags.FLAGS[name].present]
    mode = modes[0] if modes else None
    for name in sorted(set().union(*TAKES.values()) - TAKES[mode]):
        if flags.FLAGS[name].present:
            takers = (taker for taker in TAKES if name in TAKES[taker])
            beside = f"beside --{mode}" if mode else f"without --{next(takers)}"
            raise UserError(f"--{name}: not expected {beside}")
    {
        "report": _report,
        "figure": _figure,
        "table": _table,
        None: _compare,
    }[mode]()


def _compare():
    from common.paths import make_path, write_whole
    from common.paths import check_writable_file
    from reproduction.short_listops import compare

    path = make_path(OUTPUT.value, "--output") / "report.md"
    check_writable_file(path, "--output")
    report, learned = compare(OUTPUT.value, VARIANTS.value)
    write_whole(path, report + "\n")
    print(report)
    if not learned:
        sys.exit("error: a model learned too little; see the table")


def _table():
    from reproduction.reproduce import Reproduction

    reproduction = Reproduction(
        TABLE.value,
        SCALE.value,
        OUTPUT.value,
        DATA_DIR.value,
        SEEDS.value,
        ONLY.value,
        VARIANTS.value,
        TUNE.value,
    )
    where = (flags.FLAGS.strategy, flags.FLAGS.tpu)
    if DRY_RUN.value:
        print(reproduction.plan(*where).markdown())
        return
    failed = reproduction.run(*where)
    for sheet in reproduction.sheets():
        print(sheet.markdown())
    if failed:
        sys.exit(f"error: {len(failed)} failed: {', '.join(failed)}")


def _report():
    from reproduction.report.page import report

    print(report(REPORT.value))


def _figure():
    from common.paths import make_path
    from common.paths import check_writable_file
    from analysis import drift, evolution_picture, positions
    from analysis.evolution import evolution
    from evaluation.run import load_run
    from reproduction import losses

    shows_text = FIGURE.value == "evolution"
    for flag in (WORKDIR, TEXT) if shows_text else (WORKDIR,):
        if flag.value is None:
            raise UserError(f"--{flag.name}: expected beside --figure")
    if TEXT.value is not None and not shows_text:
        raise UserError(f"--text: not expected beside --figure={FIGURE.value}")
    first, *more = WORKDIR.value
    compares = {"positions": positions.draw, "losses": losses.draw}
    if more and FIGURE.value not in compares:
        raise UserError(f"--workdir: expected one beside --figure={FIGURE.value}")
    folder, flag = (
        (OUTPUT.value, "--output") if OUTPUT.present else (first, "--workdir")
    )
    path = make_path(folder, flag) / f"{FIGURE.value}.png"
    check_writable_file(path, flag)
    run = load_run(first)
    if shows_text:
        shown = evolution(run, TEXT.value)
        print(evolution_picture.draw(shown, run.config.variant, path))
    elif FIGURE.value == "drift":
        print(drift.draw(drift.drift(run), run.config.variant, path))
    else:
        print(compares[FIGURE.value]([run, *map(load_run, more)], path))
    print(path)


if __name__ == "__main__":
    cli.run(main)
