"""Marks of the dashboard's charts: whiskers, greys, and the periods that they stand for."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from deniable.surveys import Survey
from tests.collect.surveys import current, terms
from tests.web.pages.browser import eventually
from tests.web.pages.service import Service
from tests.web.pages.surveys import smoke
from tests.web.pages.test_dashboard import opened, sign_in

Open = Callable[[str], Any]


def test_the_command_over_time_names_the_latest_period_that_is_shown(service: Service, open_tab: Open) -> None:
    survey = Survey("latest", smoke().questions, terms(min_reports=100))
    service.publish(survey)
    last = current(survey)
    for epoch, n in ((last - 1, 200), (last, 3)):
        service.fill(survey, epoch, n)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector(".chart")
    opened(board, "Over time")
    board.wait_for_selector(".uplot canvas")
    assert f"--epochs {last - 1} " in board.locator(".series ~ div .command code").inner_text()
    options = board.get_by_label("From period (epoch)").locator("option").all_text_contents()
    assert [re.sub(r".* ", "", text) for text in options[2:]] == [f"({last - 1})", f"({last})"]


def test_a_single_period_has_whiskers(service: Service, open_tab: Open) -> None:
    """Without neighbours there is no band; the whisker of 100 answers is high, a mere dot would not be."""
    survey = smoke("lone")
    service.publish(survey)
    service.fill(survey, current(survey), 100)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector(".chart")
    opened(board, "Over time")
    board.wait_for_selector(".uplot canvas")
    height = """canvas => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const rows = new Set();
        for (let i = 0; i < data.length; i += 4) {
            const blue = data[i] === 61 && data[i + 1] === 130 && data[i + 3] === 255;
            if (blue) rows.add(Math.floor(i / 4 / canvas.width));
        }
        return rows.size;
    }"""
    eventually(board, lambda: board.locator(".uplot canvas").evaluate(height) > 60)
