"""Results as one HTML page that loads nothing: styles and pictures are in it."""

import base64
import hashlib
import re
import struct
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from common.paths import make_path
from reproduction.report.runs import plain, views
from reproduction.sheet import Picture, Sheet
from reproduction.survey import FAILED, FINISHED, UNFINISHED, Run

FOLDER = Path(__file__).parent
TEMPLATE, STYLE, SCRIPT = "report.html.jinja", "report.css", "report.js"
# What a cell of a column whose key ends so may say, with the class of its look.
BADGE = "badge"
BADGES = {
    "reproduced": "good",
    "differs": "bad",
    "not run": "idle",
    "other measure": "other",
    FINISHED: "good",
    FAILED: "bad",
    UNFINISHED: "idle",
}
PNG = b"\x89PNG\r\n\x1a\n"
SHORT = 28  # characters of a cell that stays on one line
WIDE = 1.6  # times as wide as high: too small on a phone, so it scrolls there


def page(
    title: str,
    sheets: list[Sheet],
    runs: list[Run],
    facts: dict[str, str],
    folder: Path,
    notes: Sequence[str] = (),
) -> str:
    """A whole page of results, in one text.

    It makes no request: its policy lets a browser load nothing but what is in it. It
    stays under 5 MB for 400 runs and a dozen pictures: a picture takes 4/3 of its file,
    and all logs together at most 1.5 MB.

    Args:
      title: of the page.
      sheets: a section each.
      runs: a part of the last section each.
      facts: {what: text} of machine, versions, commit.
      folder: where the pictures of the sheets lie.
      notes: what the page is, a sentence or more each.
    """
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        finalize=_finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(BADGE=BADGE, badges=BADGES, SHORT=SHORT)
    style, script = ((FOLDER / name).read_text() for name in (STYLE, SCRIPT))
    folder = make_path(folder, "folder")
    tasks = views(runs)
    states = [run.state for run in runs]
    return environment.get_template(TEMPLATE).render(
        title=title,
        notes=notes,
        sheets=sheets,
        anchors=_anchors(sheets),
        pictures=[[_picture(each, folder) for each in s.pictures] for s in sheets],
        tasks=tasks,
        states={s: states.count(s) for s in (FINISHED, UNFINISHED, FAILED)},
        facts=facts,
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


def _finalize(value):
    return value if isinstance(value, Markup) else plain(str(value))


def _anchors(sheets):
    """A name for each sheet's section that a link can have; no two are alike."""
    found = []
    for number, sheet in enumerate(sheets, start=1):
        name = re.sub(r"[^a-z0-9]+", "-", sheet.name.lower()).strip("-")
        found.append(f"table-{number}-{name}" if name else f"table-{number}")
    return found


def _picture(picture: Picture, folder):
    """What an <img> holds; with its size in pixels, so that the page stands still."""
    content = (folder / picture.file).read_bytes()
    width = height = None
    if content.startswith(PNG):
        width, height = struct.unpack(">II", content[16:24])
    return {
        "source": f"data:image/png;base64,{base64.b64encode(content).decode()}",
        "caption": picture.caption,
        "alternative": picture.alternative,
        "width": width,
        "height": height,
        "is_wide": width is not None and width > WIDE * height,
    }


def _hash(text):
    """The name that a page's policy has for a style or script that it allows."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
