"""A campaign in a real browser: round 1 is answered and closed, round 2 follows, and the dashboard shows both."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Callable
from typing import Any

import numpy as np
from playwright.sync_api import expect

from deniable.collect.stores import open_store
from deniable.collect.wire import ID_BYTES
from deniable.randomness import Simulation
from deniable.surveys import Survey
from deniable.surveys.campaign import combine, next_round
from deniable.surveys.promises import promises
from tests.collect.surveys import TODAY, Crowd
from tests.surveys.rounds import DAY, first_round
from tests.web.pages.browser import Log, new_context
from tests.web.pages.service import Service
from tests.web.pages.test_dashboard import sign_in
from tests.web.pages.test_survey_page import COUNTED, SEND

Open = Callable[[str], Any]


def people(survey: Survey, n: int, seed: int) -> Crowd:
    bits = Simulation(seed)
    hours = np.random.default_rng(seed).normal(38, 3, n)
    ids = np.frombuffer(bits.take(n * ID_BYTES), dtype=np.uint8).reshape(n, ID_BYTES)
    return Crowd(ids, survey["hours"].protocol.privatize(hours, bits).array)


def tally(service: Service, survey: Survey) -> Any:
    with open_store(service.store) as store:
        return store.tally(survey.fingerprint)


def close(service: Service, survey: Survey) -> None:
    address = f"{service.address}/v1/surveys/{survey.fingerprint}/close"
    urllib.request.urlopen(
        urllib.request.Request(address, b"", {"Authorization": f"Bearer {service.admin}"}), timeout=90
    ).close()


def answer(tab: Any, hours: str) -> None:
    tab.locator("form input.number").first.fill(hours)
    tab.click(SEND)


def test_a_campaign_from_the_first_answer_to_the_result_of_both_rounds(
    service: Service, open_tab: Open, browser: Any, log: Log
) -> None:
    first = first_round(epsilon=3, start=TODAY - DAY)
    service.publish(first)
    tab = open_tab(service.survey_page(first))
    tab.wait_for_selector("form")
    assert promises(first, "browser", lasting=False)["round"] in tab.text_content(".promise")
    answer(tab, "39")
    tab.wait_for_selector(COUNTED)
    service.fill_with(first, 0, people(first, 600, 1))

    close(service, first)
    counted = tally(service, first)
    assert counted["hours"].n == 601
    second = next_round(first, counted, TODAY - DAY, TODAY + 6 * DAY)
    service.publish(second)

    # The browser that took part in round 1 is told so, and is asked nothing.
    again = open_tab(service.survey_page(second))
    again.wait_for_selector("h2 >> text=You took part in round 1")
    assert "one browser answers one round" in again.inner_text("main")
    assert again.locator("form").count() == 0
    assert len(log.posts) == 1

    # Another browser finds round 1 closed, with a way to round 2, and answers that.
    other = new_context(browser)
    late = other.new_page()
    late.goto(service.survey_page(first))
    late.click("text=go to the next round")
    late.wait_for_selector("form")
    answer(late, "37.5")
    late.wait_for_selector(COUNTED)
    other.close()
    service.fill_with(second, 0, people(second, 900, 2))

    board = open_tab(service.dashboard(second))
    sign_in(board, service)
    card = board.get_by_label("All rounds together", exact=True)
    expect(card).to_contain_text("All rounds together: 2 of 2")
    expect(card).to_contain_text("of two rounds: 601 reports on the whole interval, then 901 on", ignore_case=True)
    mean = combine([first, second], [counted, tally(service, second)])["hours"]
    expect(card.locator(".chart .value")).to_contain_text(f"{mean.value:.2f}".rstrip("0").rstrip("."))
    card.get_by_role("link", name="Round 1").click()
    expect(board.get_by_label("All rounds together", exact=True)).to_contain_text("Round 1, shown below")
    assert board.url.endswith(first.fingerprint)

    # Before a survey is chosen, both rounds are one entry: the title leads to the last round, the list to each.
    listing = open_tab(f"{service.address}/dashboard")
    sign_in(listing, service)
    entries = listing.locator("section.card").filter(has=listing.get_by_role("link", name="work", exact=True))
    expect(entries).to_have_count(1)
    expect(entries.locator("h2 a")).to_have_attribute("href", re.compile(f"{second.fingerprint}$"))
    expect(entries).to_contain_text("round 2 of 2")
    rounds = entries.get_by_label("Rounds", exact=True).get_by_role("listitem")
    expect(rounds).to_have_text(["Round 1, closed", "Round 2, collecting"])
    others = listing.locator("section.card").filter(has_not=listing.get_by_role("link", name="work", exact=True))
    expect(others.get_by_label("Rounds", exact=True)).to_have_count(0)
    rounds.nth(0).get_by_role("link").click()
    expect(listing.get_by_label("All rounds together", exact=True)).to_contain_text("Round 1, shown below")
    assert listing.url.endswith(first.fingerprint)
