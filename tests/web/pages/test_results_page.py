"""Results for everybody in a browser: without a token, in a frame, and nothing where the terms do not allow it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import expect

from deniable.domains import Interval
from deniable.protocols import GRR, OneBitMean, Ranges
from deniable.surveys import Question, Survey
from tests.collect.surveys import current, terms
from tests.web.pages.browser import Log
from tests.web.pages.service import Service, site_of
from tests.web.pages.surveys import smoke, ten

Open = Callable[[str], Any]


def public(survey: Survey, min_reports: int = 100) -> Survey:
    assert survey.terms is not None
    return replace(survey, terms=replace(survey.terms, results="public", min_reports=min_reports))


def page(service: Service, survey: Survey) -> str:
    return f"{service.address}/r/{survey.fingerprint}"


def filled(service: Service, survey: Survey, n: int) -> Survey:
    service.publish(survey)
    if n:
        service.fill(survey, current(survey), n)
    return survey


def test_everybody_reads_findings_without_a_token(service: Service, open_tab: Open, log: Log) -> None:
    survey = filled(service, public(ten("public bread")), 3000)
    tab = open_tab(page(service, survey))
    card = tab.locator("[data-question=bread]")
    expect(card.locator(".chart")).to_be_visible()
    (document,) = service.ask(survey, "estimates?intervals=simultaneous&consistent=norm-sub")["series"][0]["questions"]
    rows = {row["label"]: row for row in document["sections"][0]["rows"]}
    for line in card.locator(".chart .line").all()[:-1]:
        share = rows[line.locator(".name").inner_text()]["value"]
        assert f"{100 * share:.1f}" in line.locator(".value").inner_text()
    tab.click("summary >> text=Table")
    assert tab.locator("tbody tr").count() == len(rows)
    assert "3,000 answers" in tab.inner_text("main")
    assert not [one for one in log.requests.values() if "authorization" in one["headers"] or one.get("cookies")]
    assert log.posts == []


@pytest.mark.parametrize("n", [0, 99])
def test_below_the_minimum_there_is_nothing_to_see(service: Service, open_tab: Open, n: int) -> None:
    survey = filled(service, public(smoke(f"public, {'few' if n else 'none'}")), n)
    tab = open_tab(page(service, survey))
    expect(tab.get_by_role("heading", name="Not enough answers yet")).to_be_visible()
    assert "from 100 answers on" in tab.inner_text("main")
    assert "99" not in tab.inner_text("main").replace(survey.fingerprint, "")
    assert tab.locator(".chart, table").count() == 0
    assert "Arrow" not in tab.inner_text("main")


def test_without_the_term_there_is_nothing_to_see(service: Service, open_tab: Open) -> None:
    survey = filled(service, smoke("results for its owner"), 500)
    tab = open_tab(page(service, survey))
    expect(tab.get_by_role("alert")).to_contain_text("The results of this survey are not public")
    assert "smoke" not in tab.inner_text("main")
    tab.goto(f"{service.address}/r/{'f' * 64}?lang=de")
    expect(tab.get_by_role("alert")).to_contain_text("Diese Umfrage gibt es hier nicht")


def test_who_has_answered_gets_there_in_one_click(service: Service, open_tab: Open) -> None:
    survey = filled(service, public(smoke("public after sending")), 500)
    tab = open_tab(f"{service.survey_page(survey)}?lang=de")
    tab.locator("section.promise summary").first.click()
    assert "Die Ergebnisse kann jeder lesen, ab 100 Antworten." in tab.locator("section.promise").inner_text()
    tab.locator("input[type=radio]").first.check()
    tab.locator("form button[type=submit]").click()
    tab.get_by_role("link", name="Bisherige Ergebnisse ansehen").click()
    expect(tab.locator("[data-question=smoke] .chart")).to_be_visible()
    own = open_tab(service.survey_page(filled(service, smoke("private after sending"), 0)))
    own.locator("input[type=radio]").first.check()
    own.locator("form button[type=submit]").click()
    expect(own.locator("section.fine")).to_be_visible()
    assert own.get_by_role("link", name="See the results so far").count() == 0


def test_any_site_may_show_public_results_and_no_others(service: Service, profile: Any) -> None:
    """The frame of another origin shows public results; the browser refuses to show others."""
    surveys = filled(service, public(smoke("public framed")), 300), filled(service, smoke("private framed"), 300)
    frames = "".join(f'<iframe src="{page(service, survey)}" height="700"></iframe>' for survey in surveys)
    with site_of(frames) as address:
        tab = profile.new_page()
        tab.goto(address)
        first, second = (tab.frame_locator(f"iframe >> nth={place}") for place in range(2))
        expect(first.locator(".chart")).to_be_visible()
        expect(second.locator("main")).to_have_count(0)


def test_means_and_distributions_have_their_pictures(service: Service, open_tab: Open) -> None:
    hours = Interval(0, 24, unit="hours")
    questions = [
        Question("sleep", "How long did you sleep?", OneBitMean(hours, 2)),
        Question("age", "How old are you?", Ranges(Interval(18, 98), 4)),
        Question("smoke", "Do you smoke?", GRR(["yes", "no"], 1)),
    ]
    survey = public(Survey("public pictures", questions, terms()))
    service.publish(survey)
    people = {"sleep": [6.0, 8.0] * 1000, "age": [30, 60] * 1000, "smoke": ["yes", "no"] * 1000}
    service.fill_answers(survey, current(survey), people)
    tab = open_tab(f"{page(service, survey)}?lang=de")
    expect(tab.locator("[data-question=sleep] h2")).to_contain_text("Mittelwert: ")
    expect(tab.locator("[data-question=sleep] .chart.units")).to_be_visible()
    expect(tab.locator("[data-question=age] svg.lines")).to_have_count(2)
    expect(tab.locator("[data-question=age] h2")).to_contain_text("Der Median ist ")
    expect(tab.locator("[data-question=smoke] h2")).to_contain_text("von 100 antworten „yes“ (")
