"""The page of results in a browser: sorting, small screens, print and accessibility."""

import json

import pytest
from playwright.sync_api import expect

from reproduction import tables
from reproduction.report.page import page
from reproduction.scales import SCALES
from tests.reproduction.browser import DESK, PHONE, open_all, serious_findings
from tests.reproduction.made_runs import experiments_of, results_of, run_of
from tests.reproduction.whole import write_page

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("page")).as_uri()


@pytest.fixture
def open_page(browse, address):
    """A function that opens the page; what goes wrong in it fails the test."""
    return lambda viewport=DESK, scheme="light": browse(address, viewport, scheme)


def column(page, number):
    """Texts of a column of the first table."""
    cells = page.locator("table").first.locator(f"tbody tr > :nth-child({number})")
    return cells.all_inner_texts()


def sorted_headings(page):
    found = page.locator("table").first.locator("th[aria-sort]")
    return found.evaluate_all("all => all.map(one => [one.innerText, one.ariaSort])")


def test_a_heading_sorts_by_value(open_page):
    page = open_page()
    before = column(page, 3)
    assert before == ["9.50", "1,000,000.25", "", "10.25"]
    assert sorted_headings(page) == []
    score = page.get_by_role("button", name="score")
    score.click()
    assert column(page, 3) == ["9.50", "10.25", "1,000,000.25", ""]
    assert sorted_headings(page) == [["score", "ascending"]]
    expect(page.get_by_role("status")).to_have_text("Sorted by score, ascending.")
    score.click()
    assert column(page, 3) == ["1,000,000.25", "10.25", "9.50", ""]
    assert sorted_headings(page) == [["score", "descending"]]
    page.get_by_role("button", name="difference").click()
    assert column(page, 4) == ["-1.0", "+0.0", "+1.0", "+2.0"]
    assert sorted_headings(page) == [["difference", "ascending"]]
    page.get_by_role("button", name="outcome").click()
    assert column(page, 2) == ["differs", "not run", "other measure", "reproduced"]


def test_the_keyboard_sorts_and_opens(open_page):
    page = open_page()
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the results")).to_be_in_viewport()
    page.keyboard.press("Enter")
    focused = page.locator("*:focus")
    for _ in range(3):
        page.keyboard.press("Tab")
    expect(focused).to_have_text("score")
    page.keyboard.press("Enter")
    assert sorted_headings(page) == [["score", "ascending"]]
    page.keyboard.press("Space")
    assert column(page, 3) == ["1,000,000.25", "10.25", "9.50", ""]
    run = page.locator("details.run").first
    run.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(run.locator("pre")).to_be_visible()


def test_every_picture_loads(open_page):
    page = open_page()
    widths = page.locator("img").evaluate_all("all => all.map(one => one.naturalWidth)")
    assert len(widths) == 4 and min(widths) > 0


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_the_page_does_not_scroll_sideways(open_page, width):
    page = open_page({"width": width, "height": 844})
    open_all(page)
    # Where it does not fit, a table scrolls alone, and the keyboard reaches it.
    table = page.locator(".scroll").first
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    is_wider = table.evaluate("one => one.scrollWidth > one.clientWidth")
    assert is_wider == (width < 1280)
    expect(table).to_have_attribute("tabindex", "0" if is_wider else "-1")


def test_a_phone_shows_figures_of_table_4(browse, tmp_path):
    """Beside the names that few rows have."""
    table, scale = tables.TABLES["4"], SCALES["laptop"]
    row = {"benchmark": "speed", "length": 1000, "ratio_to_transformer": 1.5}
    speeds = [
        {**row, "model": name, "seconds": 0.5}
        for name in ("transformer-linear", "transevolve-randomff-1")
    ]
    runs = [
        run_of(one, {"test": {"accuracy": 0.5}})
        for one in experiments_of(table, scale.with_seeds(1))
        if one.task == "listops"
    ]
    (tmp_path / "speed_benchmark.json").write_text(json.dumps({"rows": speeds}))
    results = results_of(runs, tmp_path)
    sheets = table.sheets(scale.with_seeds(1), results)
    path = tmp_path / "report.html"
    path.write_text(page("Table 4", sheets, runs, {}, tmp_path))
    found = browse(path.as_uri(), PHONE)
    for number, title in enumerate(("test accuracy %", "speed / Transformer")):
        headings = found.locator("table.sortable").nth(number).locator("thead th")
        assert "published as" in headings.all_inner_texts()
        box = headings.filter(has_text=title).first.bounding_box()
        assert box["x"] + box["width"] <= PHONE["width"]


@pytest.mark.parametrize(
    "viewport, scheme", [(PHONE, "dark"), (DESK, "light")], ids=["phone", "desk"]
)
def test_axe_finds_nothing_serious(open_page, scheme, viewport):
    page = open_page(viewport, scheme)
    open_all(page)
    page.locator("table.sortable button").first.click()
    assert serious_findings(page) == []


def test_light_and_dark_differ(open_page):
    def background(page):
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    assert background(open_page()) != background(open_page(scheme="dark"))


def test_paper_has_everything_but_what_steers(open_page):
    page = open_page(scheme="dark")
    expect(page.get_by_role("navigation")).to_be_visible()
    page.emulate_media(media="print")
    expect(page.locator("nav")).to_be_hidden()
    expect(page.locator(".skip")).to_be_hidden()
    black, white = "rgb(0, 0, 0)", "rgb(255, 255, 255)"
    expect(page.locator("body")).to_have_css("color", black)
    expect(page.locator("body")).to_have_css("background-color", white)
    expect(page.locator(".scroll").first).to_have_css("overflow-x", "visible")
    # A sheet across, A4 or letter, within its margins.
    page.set_viewport_size({"width": 960, "height": 700})
    widest = page.evaluate(
        "Math.max(...[...document.querySelectorAll('table, img')]"
        ".map(x => x.getBoundingClientRect().right))"
    )
    assert widest <= 960
    closed = page.locator("details:not([open])")
    before = closed.count()
    assert before > 10
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(closed).to_have_count(0)
    expect(page.locator(".failed .log").first).to_be_visible()
    expect(page.locator(".finished .log").first).to_be_hidden()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(closed).to_have_count(before)
