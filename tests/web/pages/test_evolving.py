"""Answers that change on the pages: a browser's report, and shares of every period on the dashboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from deniable.protocols import Tally
from deniable.randomness import Simulation
from tests.collect.surveys import Crowd, current
from tests.protocols.test_evolving import evolving
from tests.web.pages.service import Service
from tests.web.pages.test_dashboard import opened, sign_in

Open = Callable[[str], Any]


def test_a_browser_answers_and_the_dashboard_draws_every_period(service: Service, open_tab: Open) -> None:
    survey = evolving()
    protocol, terms = survey["ill"].protocol, survey.terms
    assert terms is not None
    service.publish(survey)
    streams = np.array(["no", "yes"], dtype=object)[(np.arange(40) >= np.arange(2_000)[:, None] % 80).astype(int)]
    random, tallies = np.random.default_rng(1), []
    for place, reports in enumerate(protocol.streams(streams, Simulation(1))[: current(survey) - terms.first + 1]):
        ids = random.integers(0, 256, (len(reports), 16), dtype=np.uint8)
        service.fill_with(survey, terms.first + place, Crowd(ids, reports.array))
        tallies.append(protocol.tally(reports))
    tab = open_tab(service.survey_page(survey))
    tab.get_by_label("yes").click()
    tab.locator("form >> text=Scramble and send").click()
    tab.wait_for_selector("text=your report is counted")
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector("[data-question=ill] .series canvas")
    assert "Over all periods: no" in board.locator("[data-question=ill]").inner_text()
    opened(board, "Table")
    body = board.wait_for_selector("[data-question=ill] table.numbers tbody").inner_text().split("\n")
    assert len(body) == 2 * 41
    before = protocol.estimate(Tally.sum(tallies)).frequencies[1][0]
    shown = float(
        next(row for row in body if row.startswith("yes\t1\t")).split("\t")[2].split()[0].replace("\u2212", "-")
    )
    assert abs(shown / 100 - before) < 0.05  # one more report
