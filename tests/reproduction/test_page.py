"""The page of results, as text."""

import json
import os
from pathlib import Path

import pytest
from lxml import html
from PIL import Image

from common.errors import UserError
from common.paths import write_whole
from reproduction.facts import facts
from reproduction.records import FAILED, read, survey
from reproduction.report.page import page, report
from reproduction.sheet import Column, Picture, Sheet
from tests.reproduction.sample import config_of, write
from tests.reproduction.whole import OUTCOMES, write_page

HOSTILE = "<script>alert(1)</script>\"><img src=x onerror='alert(2)'> {{ 7 * 7 }} &amp;"
MOST_BYTES = 5_000_000


def parse(text):
    return html.fromstring(text.encode())


def words(element):
    return " ".join(" ".join(element.itertext()).split())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("whole")).read_text()


def test_parts_come_in_order(whole):
    found = parse(whole)
    titles = [words(heading) for heading in found.iter("h1", "h2")]
    assert titles == [
        "Everything",
        "Contents",
        "Outcomes of all models",
        "Speed",
        "Many columns",
        "listops",
        "multi30k",
        "Curves",
        "Runs",
        "Machine and versions",
    ]
    assert [element.tag for element in found.find("body")] == [
        *("a", "header", "nav", "main", "footer", "script")
    ]
    links = [link.get("href") for link in found.find(".//nav").iter("a")]
    assert len(links) == 8
    for link in links:
        assert found.get_element_by_id(link[1:]) is not None
    assert "A page of results." in words(found.find(".//header"))
    assert "11 runs" in words(found.find(".//header"))
    for what in ("machine", "versions"):
        expected = f"{what} of this report {facts()[what]}"
        assert expected in words(found.xpath("//section[last()]")[0])


def test_nothing_is_loaded_from_outside(whole):
    found = parse(whole)
    for element in found.iter():
        for name in ("src", "href", "srcset", "poster", "action", "data"):
            value = element.get(name, "#")
            assert value.startswith(("#", "data:")), (element.tag, name, value)
    for text in (*found.xpath("//style/text()"), *found.xpath("//script/text()")):
        assert "url(" not in text and "@import" not in text and "http" not in text
    policy = found.xpath("//meta[@http-equiv='Content-Security-Policy']/@content")[0]
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert len(whole.encode()) < MOST_BYTES


def test_tables_have_captions_headings_and_full_numbers(whole):
    found = parse(whole)
    for table in found.iter("table"):
        assert words(table.find("caption"))
        assert all(cell.get("scope") == "col" for cell in table.findall("thead/tr/th"))
        assert all(row.find("th").get("scope") == "row" for row in table.find("tbody"))
    assert len(found.xpath("//table[@class='sortable']")) == 5
    outcomes = found.xpath("//table")[0]
    assert "Outcomes of all models" in words(outcomes.find("caption"))
    assert len(outcomes.findall("thead/tr/th/button")) == 5
    values = [row[2].get("data-value") for row in outcomes.find("tbody")]
    assert values == ["9.5", "1000000.25", None, "10.25"]
    assert [words(row[2]) for row in outcomes.find("tbody")][1] == "1,000,000.25"
    badges = [words(row[1].find("span")) for row in outcomes.find("tbody")]
    assert badges == OUTCOMES
    looks = [row[1].find("span").get("class") for row in outcomes.find("tbody")]
    assert len(set(looks)) == 4


def test_pictures_are_in_the_page_with_words(whole):
    found = parse(whole)
    pictures = list(found.iter("img"))
    assert len(pictures) == 4
    for picture in pictures:
        assert picture.get("src").startswith("data:image/png;base64,iVBOR")
        assert len(picture.get("alt")) > 40
        assert int(picture.get("width")) > 300
        assert words(picture.xpath("ancestor::figure/figcaption")[0])


def test_runs_show_their_state_settings_and_log(whole):
    found = parse(whole)
    runs = found.xpath("//details[contains(@class, 'run')]")
    assert len(runs) == 13
    failed = next(run for run in runs if "failed" in words(run.find("summary")))
    assert "listops/transevolve-fullff-2/seed-1" in words(failed.find("summary"))
    assert "best validation accuracy: " in words(failed.find("summary"))
    assert "It failed. step 131: expected a finite loss" in words(failed)
    assert "model.num_blocks 2" in words(failed)
    assert "130/600" in failed.xpath(".//pre")[0].text
    finished = words(runs[0])
    assert "AMD EPYC 9004" in finished and "accuracy %" in finished
    shared = words(found.xpath("//details[contains(@class, 'common')]")[0])
    assert "train.batch_size 64" in shared and "train.clip_norm none" in shared
    assert "train.batch_size" not in finished


def test_hostile_texts_stay_texts(tmp_path):
    config = config_of("listops", "transformer")
    with config.unlocked():
        config.variant = HOSTILE
        config.train.optimizer = HOSTILE
    name = HOSTILE.replace("/", "_")
    codes = "\x1b[31mred\x1b[0m \x00\x07 \u202e"
    workdir = write(
        tmp_path / name,
        config,
        log=[HOSTILE, codes],
        failure=HOSTILE,
        facts={"machine": HOSTILE, HOSTILE: [HOSTILE, "\ud800"]},
    )
    (workdir / f"results/{name}.json").write_text(json.dumps({HOSTILE: HOSTILE}))
    Image.new("L", (2, 1)).save(tmp_path / "a.png")
    sheet = Sheet(
        HOSTILE,
        HOSTILE,
        [Column("variant", HOSTILE), Column("badge", HOSTILE)],
        [{"variant": HOSTILE, "badge": HOSTILE}],
        [HOSTILE],
        [Picture("a.png", HOSTILE, HOSTILE)],
    )
    runs = survey(tmp_path)[0]
    text = page(HOSTILE, [sheet], runs, {HOSTILE: HOSTILE}, tmp_path, [HOSTILE])
    text.encode()  # a lone surrogate would fail here
    found = parse(text)
    assert len(found.findall(".//script")) == len(found.findall(".//img")) == 1
    assert not found.xpath("//@onerror")
    assert found.find(".//h1").text == HOSTILE
    log = found.xpath("//pre")[0].text
    assert log.splitlines() == [HOSTILE, "red  "]


def test_400_runs_stay_small(tmp_path):
    log = [f"{number} " + "training: <&> " * 60 for number in range(40)]
    config = config_of("listops", "transformer")
    one = read(write(tmp_path / "a", config, 2, log=log, facts=facts()))
    records = [one._replace(name=f"run {number}") for number in range(400)]
    text = page("Many", [], records, {}, tmp_path)
    assert 1_000_000 < len(text.encode()) < MOST_BYTES
    log = parse(text).xpath("//pre")[0].text
    assert log.splitlines()[-1].startswith("39 ")
    assert max(map(len, log.splitlines())) <= 300


def damage(workdir, name, content):
    """Writes a file anew; a number cuts it to so many bytes."""
    path = workdir / name
    path.parent.mkdir(exist_ok=True)
    if isinstance(content, int):
        content = path.read_bytes()[:content]
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def config_with(**fields):
    config = config_of("listops", "transformer").to_dict()
    config["train"] |= fields.pop("train", {})
    return json.dumps(config | fields)


DIGITS = "1" * 400
DAMAGE = {
    "metrics": ("metrics.jsonl", 500, "expected the 10 lines that were written"),
    "emptied": ("metrics.jsonl", 0, "expected the 10 lines that were written"),
    "text": ("results/test.json", '{"accuracy": "0.9"}', "accuracy: expected a number"),
    "cut": ("results/test.json", 20, "expected JSON, found damage"),
    "empty": ("results/test.json", 0, "expected JSON, found damage"),
    "nan": ("results/test.json", '{"loss": NaN}', "expected numbers up to"),
    "inner": (
        "results/test.json",
        '{"checkpoints": [{"chrf": "high"}]}',
        "chrf: expected a number, found high",
    ),
    "singles": ("results/a.json", '{"checkpoints": [5]}', "expected scores of"),
    "deep": ("results/test.json", "[" * 100_000, "expected at most 50 levels"),
    "started": ("config.json", 100, "expected JSON, found damage"),
    "steps": (
        "config.json",
        config_with(train={"steps": "many"}),
        "--config.train.steps: expected a whole number from 1, or unset, found many",
    ),
    "neither": (
        "config.json",
        config_with(train={"steps": None, "epochs": None}),
        "expected train.steps or train.epochs, found neither",
    ),
    "seed": ("config.json", config_with(seed="1"), "--config.seed: expected a whole"),
    "facts": ("facts.json", '{"seconds": "long"}', "seconds: expected a number"),
    "bytes": ("facts.json", b'{"machine": "\xff"}', "found damage: 'utf-8' codec"),
    "log": (
        "test_scores.jsonl",
        f'{{"step": 1, "loss": {DIGITS}}}',
        "test_scores.jsonl:1: expected numbers up to 1e+150, found 111",
    ),
}


def test_damaged_runs_are_named_and_left_out(tmp_path, caplog):
    """And stop no report."""
    for name, (file, content, _) in DAMAGE.items():
        workdir = write(tmp_path / name, config_of("listops", "transformer"))
        damage(workdir, file, content)
    write(tmp_path / "sound", config_of("listops", "transformer"))
    damage(tmp_path, "config.json", '{"task": 1, "train": []}')  # of somebody else
    runs, damaged = survey(tmp_path)
    assert [run.name for run in runs] == ["sound"]
    assert damaged.keys() == DAMAGE.keys()
    found = parse(report(tmp_path).read_text())
    assert len(found.xpath("//details[contains(@class, 'run ')]")) == 1
    header = words(found.find(".//header"))
    for name, (file, _, message) in DAMAGE.items():
        assert f"The run {name} is left out: {tmp_path / name / file}" in header
        assert message in damaged[name] and damaged[name] in caplog.text


def test_runs_of_which_none_is_sound(tmp_path):
    damage(write(tmp_path / "a", config_of("imdb", "transformer")), "config.json", 9)
    with pytest.raises(UserError, match="found none; .*a/config.json: expected JSON"):
        report(tmp_path)


def test_a_log_that_a_kill_cut_after_the_last_checkpoint_is_sound(tmp_path):
    workdir = write(tmp_path / "a", config_of("listops", "transformer"), epochs=2)
    with (workdir / "metrics.jsonl").open("a") as log:
        log.write('{"step": 360, "split": "train", "loss": 1.5}\n{"step": 37')
    (workdir / "log.txt").write_bytes(b"\xff\xfe\x00 \x1b[2K 10%|\xe2\x96\r\n")
    (workdir / "failure.txt").write_bytes(b"\xff killed")
    write(tmp_path / "new/unfinished-run", config_of("listops", "transformer"))
    (run,) = survey(tmp_path)[0]
    assert run.state == FAILED and run.training[-1]["step"] == 360
    # Of a checkpoint that is damaged itself, training takes the one before.
    newer = workdir / "checkpoints/resume/360"
    newer.mkdir(parents=True)
    (newer / "state.json").write_text('{"logged_lines": 9')
    assert survey(tmp_path)[1] == {}


def test_names_that_are_no_text_are_shown(tmp_path):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/runs-\xff"))
    write(
        folder / os.fsdecode(b"\xe9t\xe9") / "seed-0", config_of("imdb", "transformer")
    )
    found = parse(report(folder).read_text())
    assert words(found.find(".//h1")) == r"Runs in runs-\xff"
    assert found.xpath("//*[@class='name']")[0].text == r"\xe9t\xe9/seed-0"


def test_a_report_that_cannot_be_written_is_refused_first(tmp_path):
    write(tmp_path / "a", config_of("imdb", "transformer"))
    (tmp_path / "report.html").mkdir()
    with pytest.raises(UserError, match="^--report=.*html: expected a file .*a folder"):
        report(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "report.html"]


def test_report_of_a_workdir_itself(tmp_path):
    workdir = write(tmp_path / "imdb", config_of("imdb", "transformer"))
    found = parse(report(workdir).read_text())
    assert words(found.find(".//h1")) == "Runs in imdb"
    assert read(workdir).name == "imdb"


def test_what_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "report.html").mkdir()
    with pytest.raises(OSError):
        write_whole(tmp_path / "report.html", "a page")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_report_is_written_anew(tmp_path):
    config = config_of("listops", "transformer")
    write(tmp_path / "a", config, facts={"machine": "AMD EPYC 9004, 2 cores"})
    write(tmp_path / "b", config)
    (tmp_path / "report.html").write_text("an older one")
    assert report(str(tmp_path)) == tmp_path / "report.html"
    found = parse((tmp_path / "report.html").read_text())
    machines = "machines of the runs AMD EPYC 9004, 2 cores; not recorded, of 1 runs"
    assert machines in words(found)
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["report.html"]


@pytest.mark.parametrize("name", [".", "missing"])
def test_report_of_nothing(tmp_path, name):
    with pytest.raises(UserError, match="^--report=.*runs of train.py or reproduce.py"):
        report(tmp_path / name)


def test_page_without_runs_and_sheets(tmp_path):
    found = parse(page("Nothing yet", [], [], {}, tmp_path))
    assert [words(heading) for heading in found.iter("h2")][1:] == [
        "Machine and versions"
    ]
