"""The dashboard: what analysts see, as it changes."""

from __future__ import annotations

import csv
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from deniable.protocols import GRR
from deniable.surveys import Question, Survey
from deniable.surveys.results import REPEATED
from deniable.surveys.terms import Longitudinal
from tests.collect.surveys import DAY, current, terms
from tests.web.pages.browser import Log, eventually
from tests.web.pages.service import Service
from tests.web.pages.surveys import often, smoke, ten, thousand
from tests.web.pages.test_survey_page import COUNTED, answer

Open = Callable[[str], Any]
MINUS = "\N{MINUS SIGN}"


def sign_in(tab: Any, service: Service, token: str | None = None) -> None:
    tab.get_by_label("Analyst's token").fill(token or service.analyst)
    tab.get_by_role("button", name="Sign in").click()


def test_answers_change_the_dashboard_live(service: Service, open_tab: Open) -> None:
    survey = smoke("live")
    service.publish(survey)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector("text=Not enough answers yet")
    board.wait_for_selector(".live.on")
    tab = open_tab(service.survey_page(survey))
    answer(tab)
    tab.wait_for_selector(COUNTED)
    board.wait_for_selector(".chart")
    assert board.locator(".tile").first.inner_text().split() == ["1", "answer"]


def test_a_service_that_comes_back_is_followed_again(own_service: Service, open_tab: Open) -> None:
    survey = smoke("again")
    own_service.publish(survey)
    board = open_tab(own_service.dashboard(survey))
    sign_in(board, own_service)
    board.wait_for_selector(".live.on")
    own_service.stop()
    board.wait_for_selector("text=not connected")
    own_service.start()
    own_service.fill(survey, current(survey), 10)
    board.wait_for_selector(".live.on")
    board.wait_for_selector(".chart")


def test_too_few_answers_are_not_shown(service: Service, open_tab: Open) -> None:
    survey = smoke("few", show_from=100)
    service.publish(survey)
    service.fill(survey, current(survey), 12)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector("text=12 answers of the 100")
    assert board.locator(".chart").count() == 0


def test_bars_are_grey_where_the_interval_contains_zero(service: Service, open_tab: Open) -> None:
    survey = ten("grey")
    service.publish(survey)
    service.fill(survey, current(survey), 400)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.get_by_label("Estimates").select_option("raw")
    eventually(board, lambda: board.locator(".chart .bar").count() == 10)
    board.locator("summary", has_text="Table").first.click()
    body = board.wait_for_selector("[data-question=bread] tbody")
    rows = [row.split("\t") for row in body.inner_text().split("\n")]
    numbers = [[float(re.sub(r"[^0-9.-]", "", cell.replace(MINUS, "-"))) for cell in row[1:]] for row in rows]
    unsure = [low <= 0 <= high for _, _, low, high, *_ in numbers]
    kinds = board.locator(".chart .bar").evaluate_all("bars => bars.map(b => b.classList.contains('unsure'))")
    assert kinds == unsure
    assert len(kinds) == 10


def test_the_numbers_are_those_of_the_command_line(service: Service, open_tab: Open) -> None:
    survey = ten("same")
    service.publish(survey)
    service.fill(survey, current(survey), 3000)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector(".chart")
    line = board.locator(".command code").first.inner_text()
    command = [sys.executable, "-m", *shlex.split(line), "--csv", "--token", service.analyst]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    with board.expect_download() as waiting:
        board.get_by_role("button", name="CSV").first.click()
    saved = waiting.value.path().read_text(encoding="utf-8")
    ours, theirs = (list(csv.DictReader(io.StringIO(text))) for text in (saved, printed))
    assert len(ours) == len(theirs) == 10
    for own, other in zip(ours, theirs, strict=True):
        assert own["label"] == other["label"]
        for name in ("frequency", "stderr", "low", "high"):
            assert abs(float(own[name]) - float(other[name])) < 1e-12


def test_epochs_are_chosen_compared_and_drawn(service: Service, open_tab: Open) -> None:
    survey = ten("epochs")
    service.publish(survey)
    last = current(survey)
    for epoch in (last - 2, last - 1, last):
        service.fill(survey, epoch, 500 * (epoch - last + 3), seed=epoch)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector(".chart")
    first = board.locator(".tile b").first
    assert first.inner_text() == "3,000"
    board.get_by_label("From period").select_option(str(last - 1))
    eventually(board, lambda: first.inner_text() == "2,500")
    assert f"--epochs {last - 1}.." in board.locator(".command code").first.inner_text()
    board.locator("summary", has_text="Over time").click()
    board.wait_for_selector(".uplot canvas")
    board.locator("summary", has_text="Compare").click()
    board.get_by_role("button", name="Compare").click()
    board.wait_for_selector("[data-compare=bread] .chart")
    assert board.locator("[data-compare=bread] .line .name").count() == 10


def test_a_wrong_fingerprint_is_no_matter_of_the_token(service: Service, open_tab: Open) -> None:
    for pinned in ("0" * 64, "abc"):
        board = open_tab(f"{service.address}/dashboard/{pinned}")
        sign_in(board, service, "dn_wrong")
        board.wait_for_selector("text=This token is not known here")
        sign_in(board, service)
        board.wait_for_selector("text=There is no such survey here")
        assert board.locator("input").count() == 0
        assert board.get_by_role("link", name="All surveys").evaluate("a => a.href") == f"{service.address}/"
        board.locator("main").get_by_role("link", name="Dashboard").click()
        board.wait_for_selector("main a >> text=thousand")


def test_a_difference_is_that_of_the_estimates(service: Service, open_tab: Open) -> None:
    tab = open_tab(f"{service.address}/plan")
    found = tab.evaluate(
        """async (script) => {
            const { differences, quantile } = await import(script);
            const side = (frequency, stderr) => ({ answers: [{ label: "a", frequency, stderr }] });
            return [differences(side(0.2, 0.03), side(0.5, 0.04), 0.95)[0], [0.9, 0.975, 0.995, 1e-7].map(quantile)];
        }""",
        f"{service.address}/web/current/pages/compare.js",
    )
    (row, quantiles) = found
    assert abs(row["value"] - 0.3) < 1e-12
    assert abs(row["stderr"] - 0.05) < 1e-12
    assert abs(row["high"] - (0.3 + 1.959964 * 0.05)) < 1e-6
    for ours, exact in zip(quantiles, (1.2815516, 1.9599640, 2.5758293, -5.1993376), strict=True):
        assert abs(ours - exact) < 1e-6


def test_fakes_widen_what_is_possible(service: Service, open_tab: Open) -> None:
    survey = ten("fakes")
    service.publish(survey)
    service.fill(survey, current(survey), 1000)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    slider = board.get_by_label("If some reports were fake")
    slider.fill("20")
    text = board.locator("output").inner_text()
    said = re.match(r"If (\d+) of the ([\d,]+) were fake, shares could move by up to ([\d.]+)\s%", text)
    assert said is not None, text
    fakes, n, move = said.groups()
    protocol = survey["bread"].protocol
    assert (fakes, n) == ("40", "1,000")
    assert abs(float(move) - 4 / float(protocol.p - protocol.q)) < 0.01
    assert board.locator(".chart .fakes").count() == 20


def test_open_text_asks_for_candidates(service: Service, open_tab: Open) -> None:
    from tests.collect.surveys import text

    survey = text()
    service.publish(survey)
    service.fill(survey, current(survey), 5000)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector("text=Name texts to look for.")
    board.get_by_label("Texts to look for, one a line").fill("rye\nsourdough\n")
    board.get_by_role("button", name="Look for these").click()
    board.wait_for_selector(".chart")
    assert board.locator(".chart .name").all_inner_texts() == ["rye", "sourdough"]
    assert "none of these" in board.inner_text("main")


def test_times_are_told_in_days_and_hours(service: Service, open_tab: Open) -> None:
    questions = [Question("smoke", "Do you smoke?", GRR(["yes", "no"], epsilon=1))]
    weekly = Survey("weekly", questions, terms(seconds=7 * DAY, longitudinal=Longitudinal(epochs=3)))
    hourly = Survey("hourly", questions, terms(seconds=3600, longitudinal=Longitudinal(epochs=3)))
    board = open_tab(f"{service.address}/dashboard")
    for survey, length, taken in (
        (weekly, "period of 7 days", r"Now taken: reports of the periods [\d-]+ to [\d-]+ \(UTC\)\."),
        (hourly, "period of 1 hour", r"Now taken: reports of the periods [\d-]+ \d+:00 to ([\d-]+ )?\d+:00 \(UTC\)\."),
    ):
        service.publish(survey)
        board.goto(service.dashboard(survey))
        sign_in(board, service)
        health = board.wait_for_selector("section[aria-label='Ingest health']").inner_text()
        assert re.search(taken, health), health
        assert length in board.inner_text("section[aria-label='What the survey promises']")
    # A period that was closed early is not taken any more, those around it are.
    service.close_epoch(weekly, current(weekly))
    board.goto(service.dashboard(weekly))
    sign_in(board, service)
    health = board.wait_for_selector("section[aria-label='Ingest health']").inner_text()
    assert re.search(r"the periods [\d-]+ to [\d-]+ and [\d-]+ to [\d-]+ \(UTC\)\.", health), health


def test_repeated_reports_are_warned_of(service: Service, open_tab: Open) -> None:
    survey = often("warned")
    service.publish(survey)
    for epoch in (current(survey) - 1, current(survey)):
        service.fill(survey, epoch, 100)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    warning = board.wait_for_selector("main .warn").inner_text()
    assert warning.lower() == f"{REPEATED}."
    board.get_by_label("From period").select_option(str(current(survey)))
    board.get_by_label("To period").select_option(str(current(survey)))
    eventually(board, lambda: board.locator("main .warn").count() == 0)


def test_a_wrong_token_is_refused_and_a_right_one_is_not_kept(
    service: Service, open_tab: Open, profile: Any, log: Log
) -> None:
    board = open_tab(f"{service.address}/dashboard")
    sign_in(board, service, "dn_wrong")
    eventually(board, lambda: "token is not known" in board.locator("[role=alert]").inner_text())
    sign_in(board, service)
    board.get_by_role("link", name="ten", exact=True).click()
    board.wait_for_selector("text=What the survey promises")
    assert board.url == service.dashboard(ten())
    kept = board.evaluate("async () => [{...localStorage}, {...sessionStorage}, await indexedDB.databases()]")
    assert kept == [{}, {}, []]
    assert profile.cookies() == []
    assert all(service.analyst not in url for url in log.urls())
    board.reload()
    board.wait_for_selector("text=Sign in")


def test_a_thousand_categories_are_drawn_soon(service: Service, open_tab: Open) -> None:
    survey = thousand("drawn")
    service.publish(survey)
    service.fill(survey, current(survey), 20_000)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector(".chart")
    assert board.locator(".chart .name").count() == 25
    board.get_by_role("combobox", name="Answers").select_option("")
    eventually(board, lambda: board.locator(".chart .name").count() == 1000)
    assert "the table has all" not in board.inner_text("main")


def test_what_chance_lifts_does_not_stand_out_among_a_thousand(service: Service, open_tab: Open) -> None:
    """Everybody answers anything: of 1,000 intervals at once at 95 % none should exclude zero (seeded)."""
    survey = thousand("chance")
    service.publish(survey)
    service.fill(survey, current(survey), 2_000, seed=3)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector(".chart")
    count = "bars => bars.filter(bar => !bar.classList.contains('unsure')).length"
    assert board.locator(".chart .bar").evaluate_all(count) == 0
    board.get_by_label("Intervals hold for").select_option("each")
    eventually(board, lambda: board.locator(".chart .bar").evaluate_all(count) > 10)
