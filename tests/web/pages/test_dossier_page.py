"""The dossier and the page of telemetry in a browser: nothing is requested, nothing overflows, and it prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import deniable as dn
from deniable.surveys.dossier import dossier, dossier_html
from tests.surveys.test_audit_report import audited
from tests.surveys.test_dossier import asked, variant
from tests.web.pages.browser import new_context


@pytest.mark.parametrize("width", [390, 1080])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_loads_nothing_and_fits(browser: Any, tmp_path: Path, width: int, scheme: str) -> None:
    survey, before = asked(), variant("memoized")
    file = tmp_path / "dossier.html"
    file.write_text(dossier_html(dossier(survey, audited(survey), dn.__version__, previous=before)), encoding="utf-8")
    context = new_context(browser, viewport={"width": width, "height": 844}, color_scheme=scheme)
    tab = context.new_page()
    requests, told = [], []
    tab.on("request", lambda one: requests.append(one.url))
    tab.on("console", lambda one: told.append(one.text))
    tab.goto(file.as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    style = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (style == "rgb(20, 24, 28)") == (scheme == "dark"), "the policy allows the style"
    assert tab.locator("svg text").first.is_visible()
    tab.emulate_media(media="print")
    tab.set_viewport_size({"width": 718, "height": 1000})  # A4 with margins
    assert not tab.locator("nav").is_visible()
    wide = "[...document.querySelectorAll('table')].filter((one) => one.scrollWidth > one.parentElement.clientWidth)"
    assert tab.evaluate(f"{wide}.map((one) => one.parentElement.ariaLabel)") == []
    assert requests == [file.as_uri()]
    assert told == []
    context.close()
