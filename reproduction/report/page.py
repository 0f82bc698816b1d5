"""Results as one HTML page that loads nothing: styles and pictures are in it."""

import base64
import hashlib
import logging
import re
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from PIL import Image

from common.errors import UserError
from common.paths import check_writable_file, make_path, write_whole
from reproduction.comparison import DIGITS, comparison, score_title, shown
from reproduction.differences import in_words, unusual_settings, usual_settings
from reproduction.facts import facts
from reproduction.learning_curves import learning_curves
from reproduction.records import FAILED, FINISHED, UNFINISHED, Record, survey
from reproduction.scores import DIFFERS, NOT_RUN, OTHER_MEASURE, REPRODUCED
from reproduction.sheet import Sheet
from training.config import flatten

NAME = "report.html"
FOLDER = Path(__file__).parent
TEMPLATE, STYLE, SCRIPT = "report.html.jinja", "report.css", "report.js"
# What a badge may say, with the class of its look.
BADGES = {
    REPRODUCED: "good",
    DIFFERS: "bad",
    NOT_RUN: "idle",
    OTHER_MEASURE: "other",
    FINISHED: "good",
    FAILED: "bad",
    UNFINISHED: "idle",
}
SHORT = 30  # characters of a cell that stays on one line
WIDE = 1.6  # times as wide as high: too small on a phone, so it scrolls there
# Of all logs together, in characters, and the most of one run and of one line.
ALL_LOGS, LOG, LINE = 1_500_000, 4_000, 300
VALUE = 500  # characters of a value that a file holds
# What a terminal takes for a command, and characters that are none of a page.
COMMAND = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
BYTE = re.compile(r"[\udc80-\udcff]")  # of a folder's name, that is no UTF-8
UNSHOWN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069"
    r"\ud800-\udfff\ufffe\uffff]"
)

logger = logging.getLogger("transevolve")


def report(folder) -> Path:
    """Compares the runs in a folder and all folders below it, finished or not.

    A run of which a file is damaged is named with the reason, and left out.

    Args:
      folder: with workdirs of train.py or reproduce.py.

    Returns:
      Path of the page, `report.html` in the folder.

    Raises:
      UserError: if there is no run, or the page cannot be written.
    """
    folder = make_path(folder, "--report")
    check_writable_file(folder / NAME, "--report")
    records, damaged = survey(folder)
    if not records:
        reasons = "".join(f"; {reason}" for reason in damaged.values())
        raise UserError(
            f"--report={folder}: expected a folder with runs of train.py or "
            f"reproduce.py, found none{reasons}"
        )
    sheets = comparison(records)
    tasks = [sheet.title for sheet in sheets]
    notes = [
        f"A comparison of the runs that were found, of {', '.join(tasks)}. Each task "
        "has a table and its learning curves."
    ]
    with tempfile.TemporaryDirectory() as pictures:
        for number, task in enumerate(tasks):
            members = [record for record in records if record.task == task]
            drawn = learning_curves(members, task, Path(pictures), f"{number}.png")
            sheets[number] = sheets[number]._replace(pictures=[drawn] if drawn else [])
        title = f"Runs in {folder.resolve().name}"
        text = page(title, sheets, records, damaged, Path(pictures), notes)
    write_whole(folder / NAME, text)
    return folder / NAME


def page(
    title: str,
    sheets: list[Sheet],
    records: list[Record],
    damaged: dict[str, str],
    folder: Path,
    notes: Sequence[str] = (),
) -> str:
    """A whole page of results, in one text.

    It makes no request: its policy lets a browser load nothing but what is in it. It
    stays under 5 MB for 400 runs and a dozen pictures: a picture takes 4/3 of its file,
    and all logs together at most 1.5 MB.

    Args:
      title, notes: what the page is.
      sheets: a section each, of which the pictures lie in the folder.
      records: of runs; each is a part of the last section.
      damaged: {name of a run that is left out: why}, which is logged too.
      folder: of pictures.
    """
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        finalize=_finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = (Markup((FOLDER / name).read_text()) for name in (STYLE, SCRIPT))
    environment.globals.update(badges=BADGES, SHORT=SHORT, style=style, script=script)
    environment.filters.update(hash=_hash, embed=partial(_embed, folder))
    for reason in damaged.values():
        logger.warning("left out: %s", reason)
    states = [record.state for record in records]
    return environment.get_template(TEMPLATE).render(
        title=title,
        notes=[
            *notes,
            *(f"The run {name} is left out: {why}." for name, why in damaged.items()),
        ],
        sheets=sheets,
        tasks=_tasks(records),
        states={s: states.count(s) for s in (FINISHED, UNFINISHED, FAILED)},
        facts=_facts(records),
    )


def plain(text: str) -> str:
    """A text without what steers a terminal, or turns or breaks a page."""
    text = BYTE.sub(lambda byte: f"\\x{ord(byte[0]) - 0xDC00:02x}", text)
    return UNSHOWN.sub("", COMMAND.sub("", text))


def _finalize(value):
    return value if isinstance(value, Markup) else plain(str(value))


def _embed(folder, picture):
    """What an <img> holds; with its size in pixels, so that the page stands still."""
    path = folder / picture.file
    with Image.open(path) as image:
        width, height = image.size
    content = base64.b64encode(path.read_bytes()).decode()
    return {
        "source": f"data:image/png;base64,{content}",
        "width": width,
        "height": height,
        "is_wide": width > WIDE * height,
    }


def _hash(text):
    """The name that a page's policy has for a style or script that it allows."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _facts(records):
    """Machines of the runs, as far as they wrote them down, and what made the page."""
    named = [str(one.facts["machine"]) for one in records if "machine" in one.facts]
    machines = sorted(set(named))
    if unnamed := len(records) - len(named):
        machines.append(f"not recorded, of {unnamed} runs")
    here = {f"{what} of this report": text for what, text in facts().items()}
    return {"machines of the runs": "; ".join(machines) or "none", **here}


def _tasks(records):
    """(task, settings of most of its runs, what is shown of each run) of each task."""
    size = min(LOG, ALL_LOGS // max(len(records), 1))
    tasks = []
    for task in sorted({record.task for record in records}):
        members = [record for record in records if record.task == task]
        usual = usual_settings(members)
        runs = [_run(record, usual, size) for record in members]
        tasks.append((task, _cut(usual), runs))
    return tasks


def _run(record, usual, size):
    """What the page shows of a run, with its log in so many characters."""
    results = [flatten(result) for result in record.results.values()]
    # The names of runs and of results say the others.
    scores = dict.fromkeys(score for result in results for score in result)
    scores = [score for score in scores if score not in ("task", "variant", "split")]
    step, epoch = record.last("step"), record.last("epoch")
    facts = {
        "variant": record.variant,
        "seed": record.seed,
        "steps": None if step is None else f"{step:,}",
        "epochs": None if epoch is None else f"{epoch:.1f}",
        **{name: in_words(value) for name, value in flatten(record.facts).items()},
    }
    return {
        "name": record.name,
        "state": record.state,
        "best": _best(record),
        "facts": _cut(facts),
        "columns": list(record.results),
        "results": {
            score_title(score): [_score(score, one.get(score)) for one in results]
            for score in scores
        },
        "settings": _cut(unusual_settings(record, usual)),
        "failure": record.failure and record.failure[-LOG:],
        "log": _tail(record.log, size),
    }


def _best(record):
    """The best validation score, for people; "" if there is none."""
    score, metric = record.best_validation, record.kind.metric
    if score is None:
        return ""
    title, percent, _ = score_title(metric).partition(" %")
    digits = DIGITS.get(metric, 2)
    return f"best validation {title}: {shown(metric, score):.{digits}f}{percent}"


def _score(name, value):
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{shown(name, value):.4f}".rstrip("0").rstrip(".")
    return "" if value is None else in_words(value)[:VALUE]


def _cut(values):
    """The values that are not None, as texts of at most `VALUE` characters."""
    return {
        name: str(value)[:VALUE] for name, value in values.items() if value is not None
    }


def _tail(lines, size):
    """The last lines that fit in a size, each cut to `LINE` characters."""
    tail = []
    for line in map(plain, reversed(lines)):
        tail.insert(0, line if len(line) <= LINE else line[: LINE - 1] + "…")
        if sum(map(len, tail)) + len(tail) > size:
            return "\n".join(tail[1:])
    return "\n".join(tail)
