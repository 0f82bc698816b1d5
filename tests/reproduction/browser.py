"""What tests do with a page in a browser."""

from axe_playwright_python.sync_playwright import Axe

PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
KINDS, SERIOUS = ["violations", "incomplete"], {"serious", "critical"}


def open_all(page):
    """Opens what can be opened."""
    page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")


def serious_findings(page):
    """What an accessibility checker finds serious, or cannot decide and would be."""
    found = Axe().run(page, options={"resultTypes": KINDS}).response
    assert len(found["passes"]) > 20
    return [
        (rule["id"], [node["html"][:200] for node in rule["nodes"]])
        for kind in KINDS
        for rule in found[kind]
        if rule["impact"] in SERIOUS
    ]
