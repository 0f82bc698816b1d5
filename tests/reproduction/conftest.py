"""A browser for the pages of results."""

import shutil

import pytest
from playwright.sync_api import sync_playwright

from tests.reproduction.browser import DESK


@pytest.fixture(scope="module")
def chromium():
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no browser here: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@pytest.fixture
def browse(chromium):
    """A function that opens an address; what goes wrong in a page fails the test."""
    complaints, contexts = [], []

    def browse(address, viewport=DESK, scheme="light"):
        def answer(route):
            if route.request.url == address:
                return route.continue_()
            complaints.append(f"asked for {route.request.url}")
            return route.abort()

        context = chromium.new_context(viewport=viewport, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.route("**/*", answer)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        return page

    yield browse
    for context in contexts:
        context.close()
    assert complaints == []
