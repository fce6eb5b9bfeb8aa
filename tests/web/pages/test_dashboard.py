"""The dashboard: what analysts see, as it changes."""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import expect
from typer.testing import CliRunner

from deniable.cli import app
from deniable.collect.stores import Token, open_store
from deniable.collect.wire import hashed
from deniable.domains import Integers
from deniable.protocols import GRR, OUE
from deniable.surveys import Question, Survey
from deniable.surveys.results import SAME_NOISE, SAME_STATES
from deniable.surveys.terms import Longitudinal
from tests.collect.surveys import DAY, Crowd, crowd, current, terms
from tests.documents import rows_of
from tests.web.pages.browser import Log, eventually
from tests.web.pages.service import Service
from tests.web.pages.surveys import often, single, smoke, staged, ten, thousand
from tests.web.pages.test_survey_page import COUNTED, answer

Open = Callable[[str], Any]
MINUS = "\N{MINUS SIGN}"


def sign_in(tab: Any, service: Service, token: str | None = None) -> None:
    tab.get_by_label("Analyst's token").fill(token or service.analyst)
    tab.get_by_role("button", name="Sign in").click()


def opened(panel: Any, name: str) -> Any:
    """A tab of a question, opened; the first question's if it is that of a whole board."""
    panel.locator(".tabs").get_by_role("button", name=name).first.click()
    return panel.locator(".tab:visible").first


def choose(board: Any, label: str, value: str) -> None:
    """Choose something behind a menu, and fold the menu away."""
    menu = board.locator("details.menu", has=board.get_by_label(label))
    menu.locator("> summary").click()
    menu.get_by_label(label).select_option(value)
    menu.locator("> summary").click()


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
    assert board.locator(".answers").inner_text().split()[:2] == ["1", "answer"]


def test_a_service_that_comes_back_is_followed_again(stopped_service: Service, open_tab: Open) -> None:
    survey = smoke("again")
    stopped_service.publish(survey)
    board = open_tab(stopped_service.dashboard(survey))
    sign_in(board, stopped_service)
    board.wait_for_selector(".live.on")
    stopped_service.stop()
    board.wait_for_selector("text=not connected")
    stopped_service.start()
    stopped_service.fill(survey, current(survey), 10)
    board.wait_for_selector(".live.on")
    board.wait_for_selector(".chart")


def test_too_few_answers_are_not_shown(service: Service, open_tab: Open) -> None:
    survey = smoke("few", min_reports=100)
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
    eventually(board, lambda: board.locator(".chart .bar").count() == 10)
    opened(board, "Table")
    body = board.wait_for_selector("[data-question=bread] tbody")
    rows = [row.split("\t") for row in body.inner_text().split("\n")]
    numbers = [[float(re.sub(r"[^0-9.-]", "", cell.replace(MINUS, "-"))) for cell in row[1:]] for row in rows]
    unsure = [low <= 0 <= high for _, _, low, high, *_ in numbers]
    kinds = board.locator(".chart .bar").evaluate_all("bars => bars.map(b => b.classList.contains('unsure'))")
    assert kinds == unsure
    assert len(kinds) == 10


@pytest.mark.parametrize("about", ["population", pytest.param("respondents", marks=pytest.mark.slow)])
def test_the_numbers_are_those_of_the_command_line(service: Service, open_tab: Open, about: str) -> None:
    survey = ten(f"same {about}")
    service.publish(survey)
    service.fill(survey, current(survey), 3000)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector(".chart")
    choose(board, "Intervals are about", about)
    opened(board, "command")
    code = board.locator(".command code").first
    eventually(board, lambda: ("--respondents" in code.inner_text()) is (about == "respondents"))
    program, *words = shlex.split(code.inner_text())
    ran = CliRunner().invoke(app, [*words, "--csv"], env={"DENIABLE_TOKEN": service.analyst})
    assert (program, ran.exit_code) == ("deniable", 0), ran.stderr
    with board.expect_download() as waiting:
        board.get_by_role("button", name="CSV", exact=True).first.click()
    saved = waiting.value.path().read_text(encoding="utf-8")
    ours, theirs = (list(csv.DictReader(io.StringIO(text))) for text in (saved, ran.stdout))
    assert len(ours) == len(theirs) == 10
    for own, other in zip(ours, theirs, strict=True):
        assert own["label"] == other["label"]
        for name in ("value", "stderr", "low", "high"):
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
    first = board.locator(".answers b")
    assert first.inner_text() == "3,000"
    choose(board, "From period", str(last - 1))
    eventually(board, lambda: first.inner_text() == "2,500")
    assert f"--epochs {last - 1}.." in opened(board, "command").locator("code").inner_text()
    opened(board, "Over time")
    board.wait_for_selector(".uplot canvas")
    board.locator("summary", has_text="Compare").click()
    board.get_by_role("button", name="Compare").click()
    board.wait_for_selector("[data-compare=bread] .chart")
    compared = board.locator("[data-compare=bread] .chart")
    assert [one.locator(".line .name").count() for one in compared.all()] == [10, 10, 10], "before, after, the change"
    ends = [one.locator(".axis text").all_inner_texts() for one in compared.all()]
    assert ends[0] == ends[1] != ends[2], "both ranges are drawn on one scale"


def test_a_change_costs_one_request(service: Service, open_tab: Open) -> None:
    """And one more where periods are drawn over time, which asks for the period that changed and no other."""
    survey = ten("cheap")
    service.publish(survey)
    last = current(survey)
    for epoch in (last - 2, last - 1, last):
        service.fill(survey, epoch, 500, seed=epoch)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector(".live.on")
    asked: list[str] = []
    board.on("request", lambda request: asked.append(request.url))
    first = board.locator(".answers b")

    def changed(n: str, seed: int) -> list[str]:
        board.wait_for_timeout(6500)  # what came before is loaded
        asked.clear()
        service.fill(survey, last, 10, seed=seed)
        eventually(board, lambda: first.inner_text() == n)
        board.wait_for_timeout(500)
        return [url.partition("?")[2] for url in asked if "/v1/" in url]

    (query,) = changed("1,510", 100)
    assert f"status=true&status_epochs={last}..{last}" in query
    opened(board, "Over time")
    board.wait_for_selector(".uplot canvas")
    whole, part = changed("1,520", 101)
    assert "status=true" in whole
    assert f"epochs={last}..{last}" in part


def test_news_alone_are_loaded_every_five_seconds_at_most(service: Service, open_tab: Open) -> None:
    survey = ten("paced")
    service.publish(survey)
    service.fill(survey, current(survey), 500)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector(".live.on")
    first = board.locator(".answers b")
    for seed in range(100, 112):
        service.fill(survey, current(survey), 10, seed=seed)
        board.wait_for_timeout(1000)
    eventually(board, lambda: first.inner_text() == "620")
    asked = """performance.getEntriesByType("resource").filter(({ name }) => name.includes("/estimates?"))"""
    starts = board.evaluate(f"{asked}.map(({{ startTime }}) => startTime)")
    gaps = [after - before for before, after in pairwise(starts)]
    assert len(gaps) >= 2
    assert min(gaps) >= 4_990  # milliseconds


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


def test_a_token_of_one_survey_and_one_that_is_over(service: Service, open_tab: Open) -> None:
    own, other = smoke("own token"), smoke("another's")
    for survey in (own, other):
        service.publish(survey)
    with open_store(service.store) as store:
        store.add_token(Token(hashed("dn_own"), "analyst", "", own.fingerprint))
        store.add_token(Token(hashed("dn_over"), "analyst", "", None, 1_000_000_000))
    board = open_tab(f"{service.address}/dashboard")
    sign_in(board, service, "dn_over")
    board.wait_for_selector("text=This token was good until 2001-09-09T01:46:40Z")
    sign_in(board, service, "dn_own")
    board.wait_for_selector("main h2 >> text=own token")
    assert board.locator("main h2").count() == 1
    board = open_tab(service.dashboard(other))
    sign_in(board, service, "dn_own")
    board.wait_for_selector("text=This token is good for one survey only")


def test_fakes_widen_what_is_possible(service: Service, open_tab: Open) -> None:
    survey = ten("fakes")
    service.publish(survey)
    service.fill(survey, current(survey), 1000)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector(".chart")
    tab = opened(board, "If some reports were fake")
    tab.get_by_label("How many reports are fake").fill("20")
    text = tab.locator("output").inner_text()
    said = re.match(r"If (\d+) of the ([\d,]+) were fake, a share could move by up to ([\d.]+)\spoints", text)
    assert said is not None, text
    fakes, n, move = said.groups()
    protocol = survey["bread"].protocol
    assert (fakes, n) == ("40", "1,000")
    assert abs(float(move) - 4 / float(protocol.p - protocol.q)) < 0.01
    assert board.locator(".chart .fakes").count() == 10


def test_open_text_asks_for_candidates(service: Service, open_tab: Open) -> None:
    from tests.collect.surveys import text

    survey = text()
    service.publish(survey)
    service.fill(survey, current(survey), 5000)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector("text=Name texts to look for.")
    board.get_by_label("Texts to look for, one per line").fill("rye\nsourdough\n")
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
        board.wait_for_selector(".operator > summary").click()
        health = board.wait_for_selector("section[aria-label='Ingest health']").inner_text()
        assert re.search(taken, health), health
        assert "Clock: the service has started: epochs stay open until" in health, health
        card = board.locator("section[aria-label='What the survey promises']")
        assert length in card.inner_text()
        assert card.locator("text=What it risks").get_attribute("href").endswith(f"/audit/{survey.fingerprint}#risk")
    # A period that was closed early is not taken any more, those around it are.
    service.close_epoch(weekly, current(weekly))
    board.goto(service.dashboard(weekly))
    sign_in(board, service)
    board.wait_for_selector(".operator > summary").click()
    health = board.wait_for_selector("section[aria-label='Ingest health']").inner_text()
    assert re.search(r"the periods [\d-]+ to [\d-]+ and [\d-]+ to [\d-]+ \(UTC\)\.", health), health


@pytest.mark.parametrize(("made", "note"), [(often, SAME_NOISE), (staged, SAME_STATES)], ids=["memoized", "two stages"])
def test_a_survey_that_keeps_answers_is_opened_at_its_latest_period(
    service: Service, open_tab: Open, made: Callable[[str], Survey], note: str
) -> None:
    """Thirty periods of the same devices say little more than one, and are not drawn as if they did."""
    survey = made(f"{made.__name__} board")
    service.publish(survey)
    last = current(survey)
    same = crowd(survey, 500).answers
    for epoch in range(last - 9, last + 1):
        service.fill_with(survey, epoch, Crowd(crowd(survey, 500, seed=epoch).ids, same))
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector(".chart")
    counted = board.locator(".answers")
    assert counted.inner_text().split()[:2] == ["500", "answers"]
    assert f"--epochs {last} " in opened(board, "command").locator("code").inner_text() + " "
    assert board.locator("main > div .warn").count() == 0
    expect(board.get_by_label("To period")).to_be_disabled()
    single = lines(board)
    opened(board, "Over time")
    board.wait_for_selector(".uplot canvas")
    assert board.locator(".series ~ div tbody tr").count() == 10, "over time all periods are drawn"
    choose(board, "From period", "")
    expect(counted).to_contain_text("5,000 reports")
    expect(board.locator("main .warn")).to_have_text(f"{note[0].upper()}{note[1:]}.")
    expect(opened(board.locator("[data-question=mood]"), "Method")).to_contain_text("5,000 reports")
    same_interval = lines(board) == single
    assert same_interval is (note is SAME_NOISE), "of two stages a part of the noise averages out"


def lines(board: Any) -> list[str]:
    return [str(text) for text in board.locator("[data-question] .chart .value").all_inner_texts()]


def test_a_live_event_leaves_the_focus_and_what_is_folded_out(service: Service, open_tab: Open) -> None:
    survey = ten("focus")
    service.publish(survey)
    for epoch in (current(survey) - 1, current(survey)):
        service.fill(survey, epoch, 300)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector(".live.on")
    board.wait_for_selector(".chart")
    panel = board.locator("[data-question=bread]")
    opened(panel, "Table")
    panel.locator("tbody").first.wait_for()
    board.locator(".operator > summary").click()
    health = board.locator("section[aria-label='Ingest health']")
    health.locator("summary").click()
    kept = [
        panel.locator(".tabs button").first,
        panel.locator(".scroll").first,
        board.get_by_label("Confidence level"),
        health.locator("summary"),
        board.get_by_label("Before: from"),
    ]
    board.locator("summary", has_text="Compare two").click()
    n = 600
    for seed, one in enumerate(kept, 2):
        one.focus()
        n += 1
        service.fill(survey, current(survey), 1, seed=seed)
        expect(board.locator(".answers b")).to_have_text(str(n))
        expect(one).to_be_focused()
    assert panel.locator("tbody").first.is_visible()
    assert health.locator("tbody").is_visible()


def test_a_range_cannot_end_before_it_begins(service: Service, open_tab: Open) -> None:
    survey = ten("reversed")
    service.publish(survey)
    last = current(survey)
    for epoch, n in ((last - 2, 100), (last - 1, 200), (last, 400)):
        service.fill(survey, epoch, n)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector(".chart")
    opened(board, "command")
    board.locator(".menu > summary").first.click()
    begin, end = board.get_by_label("From period"), board.get_by_label("To period")
    first = board.locator(".answers b")
    end.select_option(str(last - 2))
    expect(first).to_have_text("100")
    begin.select_option(str(last))
    expect(first).to_have_text("400")
    expect(end).to_have_value(str(last))
    end.select_option(str(last - 1))
    expect(first).to_have_text("200")
    expect(begin).to_have_value(str(last - 1))
    assert f"--epochs {last - 1} " in board.locator(".command code").first.inner_text()
    board.keyboard.press("Escape")
    expect(begin).to_be_hidden()
    assert board.locator(".error:visible").count() == 0


def test_what_ten_answers_say_is_drawn_within_the_scale(service: Service, open_tab: Open) -> None:
    """Estimates from ten answers lie far outside of 0 to 100 %: the table says so, the chart stays inside."""
    survey = ten("nothing")
    service.publish(survey)
    service.fill(survey, current(survey), 10)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector("text=Not enough answers to say anything")
    axis = board.locator(".axis text").all_text_contents()
    assert (axis[0], axis[-1]) == ("0\u00a0%", "100\u00a0%")
    outside = """svg => {
        const room = svg.getBoundingClientRect();
        const marks = [...svg.querySelectorAll("rect, line")].map((mark) => mark.getBoundingClientRect());
        return marks.filter((box) => box.left < room.left - 2 || box.right > room.right + 2).length;
    }"""
    assert sum(svg.evaluate(outside) for svg in board.locator(".chart svg:not(.axis)").element_handles()) == 0
    assert set(lines(board)) <= {"wider than the scale", "anything is possible"}
    assert "without a mark at its end: goes beyond the scale" in board.locator(".legend").first.inner_text()
    opened(board, "Table")
    assert MINUS in board.wait_for_selector("[data-question=bread] tbody").inner_text()


def test_reports_that_are_not_the_protocol_s_are_pointed_out(service: Service, open_tab: Open) -> None:
    survey = smoke("misfit")
    service.publish(survey)
    people = crowd(survey, 1000)
    service.fill_with(survey, current(survey), Crowd(people.ids, people.answers[:1].repeat(1000, axis=0)))
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    warning = board.locator("[data-question=smoke] .warn")
    expect(warning).to_contain_text("These reports do not look like this protocol's: p = ")
    expect(board.locator("[data-question=smoke] .chart")).to_be_visible()
    honest = smoke("fit")
    service.publish(honest)
    service.fill(honest, current(honest), 1000)
    board.goto(service.dashboard(honest))
    sign_in(board, service)
    board.wait_for_selector(".chart")
    assert warning.count() == 0


def test_numbers_keep_their_order(service: Service, open_tab: Open) -> None:
    survey = single(OUE(Integers(18, 77), epsilon=2), "numbers")
    service.publish(survey)
    service.fill(survey, current(survey), 2000)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector(".chart")
    names = board.locator(".chart .name")
    assert names.all_inner_texts() == [str(age) for age in range(18, 78)]
    choose(board, "Order", "share")
    eventually(board, lambda: names.count() == 25)
    shares = [float(text.split()[0].replace(MINUS, "-")) for text in lines(board)]
    assert shares == sorted(shares, reverse=True)
    choose(board, "Order", "own")
    eventually(board, lambda: names.count() == 60)


def test_the_numbers_of_a_page_are_those_of_the_service(service: Service, open_tab: Open) -> None:
    """Intervals for everybody, for those who answered, and differences: drawn as served, nothing is computed twice."""
    survey = ten("served")
    service.publish(survey)
    last = current(survey)
    for epoch in (last - 1, last):
        service.fill(survey, epoch, 2000, seed=epoch)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector(".chart")
    tables = {}
    opened(board, "Table")
    for about in ("population", "respondents"):
        choose(board, "Intervals are about", about)
        words = re.compile("interval, all at once" + (", among those who answered" if about == "respondents" else "$"))
        expect(board.locator("[data-question=bread] .legend li").filter(has_text=words)).to_have_count(1)
        tables[about] = board.wait_for_selector("[data-question=bread] tbody").inner_text()
        query = f"about={about}&intervals=simultaneous&question=bread"
        (question,) = service.ask(survey, f"estimates?{query}")["series"][0]["questions"]
        for row, share in zip(tables[about].split("\n"), rows_of(question), strict=True):
            cells = [float(re.sub("[^0-9.-]", "", cell.replace(MINUS, "-"))) for cell in row.split("\t")[1:5]]
            wanted = [100 * share[name] for name in ("value", "stderr", "low", "high")]
            assert cells == pytest.approx(wanted, abs=0.051)
    assert tables["population"] != tables["respondents"]
    board.locator("summary", has_text="Compare two").click()
    board.get_by_role("button", name="Compare").click()
    board.locator("[data-compare=bread] summary").click()
    shown = board.wait_for_selector("[data-compare=bread] tbody").inner_text()
    query = f"before={last - 1}&after={last}&intervals=simultaneous&question=bread"
    (question,) = service.ask(survey, f"differences?{query}")["questions"]
    changes = {change["label"]: change for change in question["rows"]}
    for row in shown.split("\n"):
        name, *cells = row.split("\t")
        found = [float(re.sub("[^0-9.-]", "", cell.replace(MINUS, "-"))) for cell in cells]
        parts = ("before", "after", "difference", "stderr", "low", "high")
        assert found == pytest.approx([100 * changes[name][part] for part in parts], abs=0.051)


def test_a_picture_says_what_its_own_numbers_are_about(service: Service, open_tab: Open) -> None:
    """Until the estimates that were asked for are there, what is drawn is still what was there before."""
    survey = ten("late")
    service.publish(survey)
    service.fill(survey, current(survey), 2000)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector(".chart")
    held: list[Any] = []
    board.route("**/estimates?*about=respondents*", lambda route: held.append(route))
    choose(board, "Intervals are about", "respondents")
    eventually(board, lambda: len(held) == 1)
    opened(board, "If some reports were fake").locator("input").fill("50")  # draws again
    board.wait_for_selector("[data-question=bread] .legend li:has-text('with the fakes')")
    legend = board.locator("[data-question=bread] .legend")
    assert "among those who answered" not in legend.inner_text()
    for request in held:
        request.continue_()
    expect(legend).to_contain_text("among those who answered")


def test_a_wrong_token_is_refused_and_a_right_one_is_not_kept(
    service: Service, open_tab: Open, profile: Any, log: Log
) -> None:
    board = open_tab(f"{service.address}/dashboard")
    sign_in(board, service, "dn_wrong")
    eventually(board, lambda: "token is not known" in board.locator("[role=alert]").inner_text())
    sign_in(board, service)
    board.get_by_role("link", name="ten", exact=True).click()
    board.wait_for_selector(".operator")
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
    choose(board, "Answers", "")
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
    choose(board, "Intervals hold for", "each")
    eventually(board, lambda: board.locator(".chart .bar").evaluate_all(count) > 10)
