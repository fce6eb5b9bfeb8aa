"""Figures of the pages, which `benchmarks.pages` times: how much is served, and how soon a chart is there."""

from __future__ import annotations

from typing import Any

from deniable.collect.server.pages import files
from deniable.surveys import Survey
from tests.web.pages.browser import new_context
from tests.web.pages.service import Service

PEOPLE = 20_000


def size() -> tuple[int, int]:
    """Bytes of everything that is served, as it is and compressed."""
    found = files().files.values()
    return sum(len(file.plain) for file in found), sum(len(file.packed) for file in found)


def first_chart(browser: Any, service: Service, survey: Survey) -> tuple[float, float]:
    """Seconds from the address to the sign-in form, and from the button to the first chart, with an empty cache."""
    context = new_context(browser)
    tab = context.new_page()
    tab.goto(service.dashboard(survey))
    field = tab.wait_for_selector("input[type=password]")
    loaded = tab.evaluate("performance.now()") / 1000
    field.fill(service.analyst)
    begun = tab.evaluate("performance.now()")
    tab.get_by_role("button", name="Sign in").click()
    tab.wait_for_selector(".chart")
    drawn = tab.evaluate("performance.getEntriesByName('deniable-chart')[0].startTime")
    context.close()
    return loaded, (drawn - begun) / 1000
