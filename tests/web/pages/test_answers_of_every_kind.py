"""Numbers, records and tables on the pages, and a kind that they do not know.

The surveys are handed to the browser as bytes, and its reports are taken from the request: no service has to know the
kinds that are asked for. Dashboards get readings of that form as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from deniable import design
from deniable.collect.wire import ID_BYTES
from deniable.domains import Grid, Integers, Interval, Records, Sets, ShortText
from deniable.protocols import (
    GRR,
    Attributes,
    BlockDesign,
    HeavyHitters,
    ItemSets,
    KeyValue,
    MeanTable,
    Moments,
    PlanarLaplace,
    PrivateStrata,
    Ranges,
    Rectangles,
    Stratified,
    Table,
    Window,
)
from deniable.protocols.profiles import ProfileGraph, SmoothCategorical
from deniable.randomness import Simulation
from deniable.specs import canonical_bytes, fingerprint
from deniable.surveys import Question, Survey
from deniable.surveys.promises import promises
from tests.collect.surveys import Crowd, current, terms
from tests.documents import rows_of, section
from tests.web.pages.browser import Log
from tests.web.pages.service import Service
from tests.web.pages.surveys import smoke
from tests.web.pages.test_dashboard import choose, opened, sign_in

Open = Callable[[str], Any]

HEAD = {"kind": "protocol", "version": 1, "epsilon": "1"}
HOURS = {"kind": "interval", "low": "0", "high": "201/2", "unit": "hours"}
AGES = {"kind": "integers", "low": 18, "high": 99}
BREAD = {"kind": "categories", "values": ["rye", "spelt", "pita"]}
WINDOW = {**HEAD, "protocol": "Window", "domain": HOURS, "positions": 5, "width": 3, "read": "mean"}
TABLE = {
    **HEAD,
    "protocol": "Table",
    "domain": BREAD,
    "outputs": ["dark", "light"],
    "rows": [["2", "1"], ["1", "2"], ["1", "2"]],
}
COLUMNS = [("hours", WINDOW), ("age", {**HEAD, "protocol": "OUE", "domain": AGES}), ("bread", TABLE)]
RECORD = {
    **HEAD,
    "protocol": "Attributes",
    "domain": {"kind": "records", "columns": [{"name": name, "domain": spec["domain"]} for name, spec in COLUMNS]},
    "groups": [{"weight": 1, "protocol": spec} for _, spec in COLUMNS],
}
SEND = "form >> text=Scramble and send"
COUNTED = "text=your report is counted"


class Canned:
    """A survey that only the browser knows."""

    def __init__(self, service: Service, profile: Any, **protocols: dict[str, Any]) -> None:
        spec = smoke().spec()
        spec["questions"] = [
            {"id": name, "text": f"What is your {name}?", "protocol": protocol} for name, protocol in protocols.items()
        ]
        self.question = spec["questions"][0]
        self.pinned = fingerprint("survey", spec)
        self.page = f"{service.address}/s/{self.pinned}"
        self.bodies: list[bytes] = []
        content = canonical_bytes(spec)
        profile.route(f"**/v1/surveys/{self.pinned}", lambda route: route.fulfill(body=content))
        profile.route(f"**/v1/surveys/{self.pinned}/reports", self._take)

    def _take(self, route: Any) -> None:
        self.bodies.append(route.request.post_data_buffer)
        route.fulfill(json={"accepted": 1, "rejected": []})


@pytest.fixture
def canned(service: Service, profile: Any, open_tab: Open) -> Callable[..., tuple[Any, Canned]]:
    def opened(**protocols: dict[str, Any]) -> tuple[Any, Canned]:
        survey = Canned(service, profile, **protocols)
        tab = open_tab(survey.page)
        tab.wait_for_selector("form, [role=alert]")
        return tab, survey

    return opened


def test_a_number_is_typed_or_moved_to_and_both_say_the_same(canned: Any) -> None:
    tab, _ = canned(week=WINDOW)
    number, slider = tab.get_by_label("What is your week?", exact=True), tab.get_by_label("What is your week? (slider)")
    help_text = "A number from 0 to 100.5\u00a0hours."
    assert tab.locator(f"#{number.get_attribute('aria-describedby').split()[0]}").inner_text() == help_text
    expect(slider).to_have_attribute("aria-valuetext", "no answer yet")
    expect(number).to_have_value("")
    number.fill("37.25")
    expect(slider).to_have_attribute("aria-valuetext", "37.25\u00a0hours")
    slider.focus()
    tab.keyboard.press("End")
    expect(slider).to_have_attribute("aria-valuetext", "100\u00a0hours")
    expect(number).to_have_value("100")
    tab.keyboard.press("ArrowLeft")
    expect(number).to_have_value("99")
    number.fill("5000")
    expect(slider).to_have_attribute("aria-valuetext", "100.5\u00a0hours")
    number.fill("")
    expect(slider).to_have_attribute("aria-valuetext", "no answer yet")


def test_a_slider_that_nobody_moved_is_no_answer(canned: Any, log: Log) -> None:
    tab, survey = canned(week=WINDOW)
    tab.click(SEND)
    expect(tab.locator("fieldset.invalid .error")).to_contain_text("Please answer")
    number = tab.locator("input.number")
    expect(number).to_be_focused()
    expect(number).to_have_attribute("aria-invalid", "true")
    number.press_sequentially("--")
    tab.click(SEND)
    expect(tab.locator("fieldset.invalid .error")).to_have_text("Please write a number with digits only.")
    assert survey.bodies == []


def test_decimals_are_those_of_the_language_and_others_are_refused(canned: Any) -> None:
    """38,5 is 38.5 in German. In English it is neither that nor 385, and nothing is sent before it is put right."""
    tab, survey = canned(week=WINDOW)
    number, slider = tab.locator("input.number"), tab.locator("input[type=range]")
    number.press_sequentially("38,5")
    expect(number).to_have_value("38,5")
    expect(slider).to_have_attribute("aria-valuetext", "no answer yet")
    tab.click(SEND)
    expect(tab.locator("fieldset.invalid .error")).to_have_text(
        "Please write a number with digits only, and with “.” before decimals, such as 38.5."
    )
    assert survey.bodies == []
    tab.locator(".languages select").select_option("de")
    expect(number).to_have_value("38,5")
    expect(slider).to_have_attribute("aria-valuetext", "38,5\u00a0hours")
    number.fill("38.5")
    tab.click("button[type=submit]")
    expect(tab.locator("fieldset.invalid .error")).to_contain_text("zum Beispiel 38,5.")
    assert survey.bodies == []
    slider.focus()
    tab.keyboard.press("ArrowLeft")
    number.fill("38,5")
    tab.click("text=Zeigen, was gesendet würde")
    expect(tab.locator("section[aria-label='Das Leben einer Meldung']")).to_contain_text("Browser bleibt: 38.5 hours")
    tab.click("button[type=submit]")
    tab.wait_for_selector("text=Ihre Meldung ist gezählt")
    assert len(survey.bodies) == 1


def test_a_block_design_is_told_as_a_set_of_answers(canned: Any) -> None:
    protocol = BlockDesign([f"town {place}" for place in range(100)], 1, cells=8, window=3)
    tab, survey = canned(town=protocol.spec())
    tab.get_by_role("combobox", name="What is your town?").fill("town 42")
    tab.keyboard.press("Enter")
    tab.click("text=Show me what leaves")
    life = tab.locator("section[aria-label='Life of a report']")
    # What the rehearsal says is what Python finds in the bytes that it shows.
    report = bytes.fromhex("".join(life.locator(".bytes span").all_inner_texts()[-protocol.report_bytes :]))
    speaks = protocol.support([report])[0]
    expect(life).to_contain_text(f"The report is a set of {speaks.sum()} of the 100 answers")
    expect(life).to_contain_text("It is among them." if speaks[42] else "It is left out.")
    tab.click(SEND)
    tab.wait_for_selector(COUNTED)
    (body,) = survey.bodies
    assert protocol.tally([body[-protocol.report_bytes :]]).n == 1


def test_a_number_beyond_an_end_is_taken_as_the_page_says(canned: Any) -> None:
    tab, survey = canned(week=WINDOW)
    counted = tab.locator(".counted")
    tab.locator("input.number").fill("100")
    expect(counted).to_be_empty()
    tab.locator("input.number").fill("100000")
    expect(counted).to_have_text("This is counted as 100.5\u00a0hours, the nearest end of the range.")
    tab.click("text=Show me what leaves")
    life = tab.locator("section[aria-label='Life of a report']")
    expect(life).to_contain_text("Your answer, which stays in this browser: 100000 hours")
    expect(life).to_contain_text("Your answer lies beyond an end, so it is taken as 100.5\u00a0hours.")
    assert life.locator("ol.steps li").count() == 5
    assert life.locator(".bytes span").count() == 25
    tab.click(SEND)
    tab.wait_for_selector(COUNTED)
    assert [len(body) for body in survey.bodies] == [25]
    assert survey.bodies[0][24] < 7
    tab.click("summary >> text=The 25 bytes")
    expect(tab.locator("[data-state=sent] table")).to_contain_text(f"output {survey.bodies[0][24]}, of 0 to 6")


def test_a_record_asks_for_every_part_and_reports_one(canned: Any) -> None:
    tab, survey = canned(person=RECORD)
    fields = tab.locator("[data-question=person]")
    expect(fields).to_contain_text("A report is about only one of these, chosen by chance.")
    assert fields.locator("fieldset.part > legend").all_inner_texts() == ["hours", "age", "bread"]
    tab.get_by_label("hours", exact=True).fill("12")
    tab.get_by_label("age", exact=True).fill("7")
    tab.click(SEND)
    parts = fields.locator("fieldset.part")
    assert [part.get_attribute("class") for part in parts.all()] == ["part", "part invalid", "part invalid"]
    expect(parts.nth(1).locator(".error")).to_have_text("Please write a whole number from 18 to 99.")
    expect(tab.get_by_label("age", exact=True)).to_be_focused()
    assert survey.bodies == []
    tab.get_by_label("age", exact=True).fill("40")
    expect(parts.nth(1).locator(".error")).to_have_text("")
    tab.get_by_label("pita", exact=True).check()
    tab.click("text=Show me what leaves")
    life = tab.locator("section[aria-label='Life of a report']")
    expect(life).to_contain_text("hours: 12 hours; age: 40; bread: pita")
    expect(life).to_contain_text("Nothing about the other parts is in the report.")
    assert life.locator(".bytes span").count() == 24 + 1 + 11
    tab.click(SEND)
    tab.wait_for_selector(COUNTED)
    (body,) = survey.bodies
    assert len(body) == 24 + 1 + 11
    assert body[24] in (0, 1, 2)
    if body[24] != 1:
        assert body[26:] == bytes(10)


def test_a_table_is_asked_like_a_list_of_answers(canned: Any) -> None:
    tab, survey = canned(loaf=TABLE)
    assert tab.locator("form label.choice").all_inner_texts() == ["rye", "spelt", "pita"]
    tab.get_by_label("rye", exact=True).check()
    tab.click("text=Show me what leaves")
    life = tab.locator("section[aria-label='Life of a report']")
    expect(life).to_contain_text("“dark” 66.67\u00a0%, “light” 33.33\u00a0%. One is drawn.")
    tab.click(SEND)
    tab.wait_for_selector(COUNTED)
    assert survey.bodies[0][24:] in (b"\0", b"\1")


@pytest.mark.parametrize(
    ("protocol", "named"),
    [
        (
            {**HEAD, "protocol": "Stranger", "domain": BREAD, "more": 1},
            'The protocol "Stranger" is unknown to this page',
        ),
        (
            {**HEAD, "protocol": "GRR", "domain": {"kind": "places"}},
            'The kind of answers "places" is unknown to this page',
        ),
    ],
    ids=["protocol", "domain"],
)
def test_an_unknown_kind_is_refused_by_name(canned: Any, protocol: dict[str, Any], named: str) -> None:
    tab, survey = canned(thing=protocol)
    alert = tab.locator("[role=alert]")
    expect(alert).to_contain_text("This survey cannot be answered in a browser")
    expect(alert).to_contain_text(named)
    expect(alert).to_contain_text("Nothing was sent.")
    assert tab.locator("form").count() == 0
    assert survey.bodies == []


# -- the dashboard ---------------------------------------------------------------------------------------


def reading(survey: Canned, rows: list[dict[str, Any]], kind: str, epoch: int = 10) -> dict[str, Any]:
    """Estimates of the survey's one question, as a service sends them."""
    question = {
        "id": survey.question["id"],
        "part": "",
        "text": survey.question["text"],
        "kind": kind,
        "protocol": survey.question["protocol"]["protocol"],
        "method": "unbiased",
        "n": 5000,
        "level": 0.95,
        "simultaneous": True,
        "population": True,
        "enough": True,
        "message": None,
        "headline": None,
        "notes": [],
        "trust": {
            "misfit": None,
            "warning": None,
            "epsilon": "1",
            "realized_epsilon": 1.0,
            "noise_floor": None,
            "poisoning": 250.0,
            "leverage": 125.0,
            "forgery": "One forged report outweighs up to 125 honest ones.",
        },
        "winner": None,
        "decision": None,
        "facts": {},
        "sections": [{"id": kind, "picture": "points", "columns": list(rows[0]), "rows": rows}],
    }
    return {
        "first": epoch,
        "last": epoch,
        "starts": None,
        "ends": None,
        "n": 5000,
        "questions": [question],
        "notes": [],
    }


def board(service: Service, profile: Any, open_tab: Open, survey: Canned, *readings: dict[str, Any]) -> Any:
    """The dashboard of a survey, with these readings, one per epoch; the first stands for all."""
    base = f"**/v1/surveys/{survey.pinned}"
    epochs = [{"epoch": one["first"], "state": "open", "n": one["n"], "sha256": None} for one in readings]
    status = {"state": "collecting", "accepted": 5000, "duplicates": 0, "rejected": {}, "epochs": epochs}
    status |= {"taken_epochs": [10], "lag": {"requests": 0, "bytes": 0, "seconds": 0}}
    profile.route(f"{base}/status*", lambda route: route.fulfill(json=status))
    profile.route(f"{base}/stream", lambda route: route.fulfill(body="", content_type="text/event-stream"))

    def estimates(route: Any) -> None:
        over_time = {"series": readings}
        whole = {"series": readings[:1], "status": status}
        route.fulfill(json=over_time if "per=epoch" in route.request.url else whole)

    profile.route(f"{base}/estimates?*", estimates)
    tab = open_tab(f"{service.address}/dashboard/{survey.pinned}")
    sign_in(tab, service)
    tab.wait_for_selector(".chart")
    return tab


def mean(value: float, stderr: float) -> dict[str, Any]:
    ends = {"low": value - 2 * stderr, "high": value + 2 * stderr}
    return {"label": "mean", "value": value, "stderr": stderr, **ends, "unit": "hours", "count": None}


def test_a_mean_is_shown_in_its_unit_over_time(service: Service, profile: Any, open_tab: Open) -> None:
    survey = Canned(service, profile, week=WINDOW)
    readings = [reading(survey, [mean(37.25 + epoch, 1.5)], "mean", epoch) for epoch in (8, 9, 10)]
    tab = board(service, profile, open_tab, survey, *readings)
    value = tab.locator("[data-question=week] .chart .value")
    expect(value).to_have_text("45.3\u00a0hours 42.3 to 48.3")
    assert "%" not in value.inner_text()
    opened(tab, "If some reports were fake").locator("input").fill("10")
    expect(tab.locator("[data-tab=fakes] output")).to_contain_text(
        "If 50 of the 5,000 were fake, the figure could move by up to 2.5\u00a0hours"
    )
    opened(tab, "Table")
    expect(tab.locator("[data-question=week] tbody tr").first).to_have_text("mean45.31.542.348.3hours")
    opened(tab, "Over time")
    cells = tab.locator("[data-question=week] .series ~ div tbody tr")
    expect(cells.last).to_contain_text("47.3\u00a0hours (44.3\u00a0hours to 50.3\u00a0hours)")


def test_a_kind_that_cannot_be_answered_here_has_a_panel(service: Service, profile: Any, open_tab: Open) -> None:
    """A protocol of somebody else's: the numbers come from the service, which knows it."""
    stranger = {**HEAD, "protocol": "Stranger", "domain": {"kind": "places"}, "more": 1}
    survey = Canned(service, profile, thing=stranger)
    rows = [{**mean(5.0, 0.5), "label": "north", "unit": "km"}, {**mean(0.25, 0.01), "label": "south", "unit": ""}]
    tab = board(service, profile, open_tab, survey, reading(survey, rows, "places"))
    expect(tab.locator("[data-question=thing] .chart .value").first).to_have_text("5.00\u00a0km 4.00 to 6.00")
    assert tab.locator("[data-question=thing] .chart").count() == 2, "one scale per unit"


# -- with a service that knows them ----------------------------------------------------------------------


def test_a_designed_mean_and_a_correlation_from_a_browser_to_the_dashboard(service: Service, open_tab: Open) -> None:
    hours = Interval(0, 100, unit="hours")
    designed = MeanTable(design.mean(4, positions=5), hours)
    both = Moments({"work": hours, "sleep": Interval(0, 60, unit="hours")}, epsilon=4)
    questions = [Question("week", "How long do you work?", designed), Question("both", "And sleep?", both)]
    survey = Survey("work and sleep", questions, terms(budget=64))
    service.publish(survey)
    work = 30 + 20 * Simulation(7).words(8_000).astype(float) / 2**64
    bits = Simulation(8)
    asked = ((designed, work), (both, {"work": work, "sleep": 60 - work}))
    reports = [np.asarray(protocol.privatize(answers, bits)) for protocol, answers in asked]
    ids = bits.words(16_000).view(np.uint8).reshape(8_000, ID_BYTES).copy()
    service.fill_with(survey, current(survey), Crowd(ids, np.concatenate(reports, axis=1)))
    tab = open_tab(service.survey_page(survey))
    tab.get_by_label("How long do you work?", exact=True).fill("38.5")
    tab.get_by_label("work", exact=True).fill("38.5")
    tab.get_by_label("sleep", exact=True).fill("50")
    assert "one figure that is calculated from these answers" in tab.locator("[data-question=both]").inner_text()
    tab.click(SEND)
    tab.wait_for_selector(COUNTED)
    assert service.count(survey) == 8_001
    week, moments = service.ask(survey, "estimates")["series"][0]["questions"]
    assert (week["kind"], moments["kind"]) == ("mean", "moments")
    rows = {row["label"]: row for row in rows_of(moments)}
    assert abs(rows["correlation"]["value"] + 1) < 6 * rows["correlation"]["stderr"]
    assert rows["variance of work"]["unit"] == "hours^2"
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector("[data-question=both] .chart")
    shown = board.locator("[data-question=both]").inner_text()
    assert "standard deviation of sleep" in shown
    assert "share" not in shown


def test_a_mean_from_a_browser_to_the_dashboard(service: Service, open_tab: Open) -> None:
    """The whole path: asked on the page, counted by the service, shown in its unit."""
    protocol = Window(Interval(0, 100, unit="hours"), epsilon=4)
    survey = Survey("working hours", [Question("week", "How long do you work?", protocol)], terms(budget=64))
    service.publish(survey)
    bits = Simulation(7)
    for epoch in (current(survey) - 1, current(survey)):
        hours = 30 + 20 * bits.words(2_000).astype(float) / 2**64
        reports = np.asarray(protocol.privatize(hours, bits))
        ids = bits.words(4_000).view(np.uint8).reshape(2_000, ID_BYTES).copy()
        service.fill_with(survey, epoch, Crowd(ids, reports))
    tab = open_tab(service.survey_page(survey))
    tab.get_by_label("How long do you work?", exact=True).fill("38.5")
    tab.click(SEND)
    tab.wait_for_selector(COUNTED)
    assert service.count(survey) == 4_001
    (found,) = service.ask(survey, "estimates")["series"][0]["questions"]
    (row,) = rows_of(found)
    assert (found["kind"], row["unit"]) == ("mean", "hours")
    assert abs(row["value"] - 40) < 6 * row["stderr"] < 12  # 2e-9 of all seeds fail
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector(".chart")
    shown = board.locator("[data-question=week] .chart .value").inner_text().replace("\u00a0", " ")
    value, low, high = (float(number) for number in re.findall(r"-?[\d.]+", shown))
    assert "hours" in shown
    panel = board.locator("[data-question=week]")
    assert "share" not in panel.inner_text()
    board.locator(".menu > summary").last.click()
    for hidden in ("Made consistent by", "Estimates", "Order", "Intervals hold for"):
        assert not board.get_by_label(hidden, exact=True).is_visible()
    board.keyboard.press("Escape")
    assert board.get_by_label("Confidence level").is_visible()
    edge = panel.evaluate(
        "(card) => card.querySelector('.value').scrollWidth <= card.querySelector('.value').clientWidth"
    )
    assert edge, "the figure stays inside its column"
    assert abs(value - row["value"]) < 0.1
    assert low < value < high
    board.locator("summary", has_text="Compare two").click()
    board.get_by_role("button", name="Compare").click()
    change = board.locator("[data-compare=week] .chart .value")
    expect(change).to_have_count(3)
    assert all("hours" in text for text in change.all_inner_texts())
    assert board.locator("[data-compare=week] tbody td").count() == 6


def test_a_distribution_from_a_browser_to_the_dashboard(service: Service, open_tab: Open) -> None:
    """Asked on the page, counted by the service; then words, a histogram in the order of its numbers, and quantiles."""
    protocol = Window(Integers(18, 99), epsilon=4, read="distribution")
    survey = Survey("ages", [Question("age", "How old are you?", protocol)], terms(budget=64))
    service.publish(survey)
    bits = Simulation(8)
    for epoch, centre in ((current(survey) - 1, 30), (current(survey), 60)):
        ages = centre + bits.integers(11, 4_000)
        ids = bits.words(8_000).view(np.uint8).reshape(4_000, ID_BYTES).copy()
        service.fill_with(survey, epoch, Crowd(ids, np.asarray(protocol.privatize(ages, bits))))
    tab = open_tab(service.survey_page(survey))
    tab.get_by_label("How old are you?", exact=True).first.fill("41")
    tab.click(SEND)
    tab.wait_for_selector(COUNTED)
    (found,) = service.ask(survey, "estimates?intervals=simultaneous")["series"][0]["questions"]
    assert found["kind"] == "distribution"
    bins = section(found, "bins")
    assert [row["begin"] for row in bins] == sorted(row["begin"] for row in bins)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    said = re.fullmatch(r"Median (\d+ \(\d+ to \d+\)), n = 8,001", found["headline"]["text"])
    assert said is not None
    expect(board.locator("[data-question=age] .headline")).to_have_text(f"The median is {said[1]}.")
    assert board.locator("[data-question=age] .lines").first.locator("path.curve").count() == 1, "the curve comes first"
    bars = board.locator("[data-question=age] .lines").last.locator("rect.bar")
    expect(bars).to_have_count(len(bins))
    places = [bar.bounding_box()["x"] for bar in bars.all()]
    assert places == sorted(places)
    assert board.locator("[data-question=age] .lines circle.mark").count() == 5
    choose(board, "Bins", "50")
    expect(bars).not_to_have_count(len(bins))
    assert bars.count() > len(bins)
    opened(board, "Over time")
    series = board.locator("[data-question=age] .series ~ div tbody tr")
    expect(series.last).to_contain_text("6")
    heads = board.locator("[data-question=age] .series ~ div thead th").all_text_contents()
    assert [head.lower() for head in heads[2:]] == ["25 % quantile", "median", "75 % quantile"]
    board.click("summary >> text=Compare two ranges")
    board.get_by_role("button", name="Compare", exact=True).click()
    compared = board.locator("[data-compare=age]")
    expect(compared).to_contain_text("The distributions differ")
    expect(compared.locator(".chart").first).to_contain_text("mean")


def test_ranges_from_a_browser_to_the_dashboard(service: Service, open_tab: Open) -> None:
    """One panel, although there are several levels; the share of the range that is asked for is the service's."""
    protocol = Ranges(Integers(18, 99), epsilon=4)
    survey = Survey("spans", [Question("age", "How old are you?", protocol)], terms(budget=64))
    service.publish(survey)
    bits = Simulation(9)
    for epoch, centre in ((current(survey) - 1, 30), (current(survey), 60)):
        ages = centre + bits.integers(11, 4_000)
        ids = bits.words(8_000).view(np.uint8).reshape(4_000, ID_BYTES).copy()
        service.fill_with(survey, epoch, Crowd(ids, np.asarray(protocol.privatize(ages, bits))))
    tab = open_tab(service.survey_page(survey))
    tab.get_by_label("How old are you?", exact=True).first.fill("41")
    tab.click(SEND)
    tab.wait_for_selector(COUNTED)
    (found,) = service.ask(survey, "estimates?range=30..40&range=60..70&intervals=simultaneous")["series"][0][
        "questions"
    ]
    assert found["kind"] == "ranges"
    assert [row["label"] for row in section(found, "ranges")] == ["30 to 40", "60 to 70"]
    assert all(row["low"] < 0.5 < row["high"] for row in section(found, "ranges"))
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    panel = board.locator("[data-question=age]")
    expect(panel.locator(".headline")).to_contain_text("The median is")
    assert board.locator("[data-question]").count() == 1
    panel.get_by_label("Share from").fill("30")
    panel.get_by_label("to", exact=True).fill("40")
    panel.get_by_role("button", name="Show").click()
    expect(panel.locator(".range-share")).to_contain_text("are from 30 to 40")
    shown = float(re.findall(r"[\d.]+", panel.locator(".range-share").inner_text())[0]) / 100
    assert abs(shown - section(found, "ranges")[0]["value"]) < 0.01
    opened(panel, "If some reports were fake").locator("input").fill("20")
    expect(panel.locator("output").last).to_contain_text("fake, the share of a range could move by up to")
    expect(opened(panel, "command")).to_contain_text("--range=30..40")
    expect(panel).to_contain_text("--robust")
    board.click("summary >> text=Compare two ranges")
    board.get_by_role("button", name="Compare", exact=True).click()
    expect(board.locator("[data-compare=age]")).to_contain_text("The distributions differ")


def test_places_from_a_browser_to_the_dashboard(service: Service, open_tab: Open) -> None:
    """A cell is clicked on, its numbers can be written as well, and the dashboard shows a map."""
    protocol = PlanarLaplace(Grid(8, 6, cell="500 m"), epsilon=2)
    made = terms(budget=64)
    limits = replace(made, budget=replace(made.budget, relation="metric"))
    survey = Survey("homes", [Question("home", "Where do you live?", protocol)], limits)
    service.publish(survey)
    bits = Simulation(9)
    answers = {"north": 1 + bits.integers(2, 4_000), "east": 5 + bits.integers(3, 4_000)}
    ids = bits.words(8_000).view(np.uint8).reshape(4_000, ID_BYTES).copy()
    service.fill_with(survey, current(survey), Crowd(ids, np.asarray(protocol.privatize(answers, bits))))
    tab = open_tab(service.survey_page(survey))
    expect(tab.locator(".promise")).to_contain_text("can tell roughly where you are, and not exactly")
    expect(tab.locator(".promise")).to_contain_text("One cell side is 500 m.")
    picker = tab.locator("svg.places")
    box = picker.bounding_box()
    assert box is not None
    # The third column from the west, the second row from the top: the fifth from the south.
    picker.click(position={"x": box["width"] * 2.5 / 8, "y": box["height"] * 1.5 / 6})
    expect(tab.get_by_label("east", exact=True).first).to_have_value("3")
    expect(tab.get_by_label("north", exact=True).first).to_have_value("5")
    expect(picker.locator("rect.chosen")).to_have_attribute("visibility", "visible")
    tab.get_by_label("east", exact=True).first.fill("9")
    expect(picker.locator("rect.chosen")).to_have_attribute("visibility", "hidden")
    tab.get_by_label("east", exact=True).first.fill("4")
    tab.click(SEND)
    tab.wait_for_selector(COUNTED)
    (found,) = service.ask(survey, "estimates?range=1..2,5..7")["series"][0]["questions"]
    assert found["kind"] == "rectangles"
    assert section(found, "ranges")[0]["high"] > 0.9
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    panel = board.locator("[data-question=home]")
    expect(panel.locator(".headline")).to_contain_text(f"Most often {found['headline']['parameters']['label']}: about ")
    expect(panel.locator("svg.map rect.bar")).to_have_count(len(rows_of(found)))
    assert panel.locator(".strengths svg rect").count() == 5, "a key says what the colours stand for"
    panel.locator("svg.map g").first.click()
    expect(panel.locator(".touchable output")).to_have_text(panel.locator("svg.map title").first.text_content())


def test_rectangles_from_a_browser_to_the_dashboard(service: Service, open_tab: Open) -> None:
    """Two numbers are asked and one panel is shown: a map, and the share of the rectangle that is asked for."""
    domain = Records({"age": Integers(18, 57), "hours": Interval(0, 80, unit="h")})
    protocol = Rectangles(domain, epsilon=4, grids=[(2, 2), (4, 4), (40, 1)])
    survey = Survey("work by age", [Question("work", "Your work", protocol)], terms(budget=64))
    service.publish(survey)
    bits = Simulation(9)
    for epoch, hours in ((current(survey) - 1, 30), (current(survey), 50)):
        answers = {"age": 30 + bits.integers(8, 4_000), "hours": hours + bits.integers(10, 4_000)}
        ids = bits.words(8_000).view(np.uint8).reshape(4_000, ID_BYTES).copy()
        service.fill_with(survey, epoch, Crowd(ids, np.asarray(protocol.privatize(answers, bits))))
    tab = open_tab(service.survey_page(survey))
    tab.get_by_label("age", exact=True).first.fill("41")
    tab.get_by_label("hours", exact=True).first.fill("38.5")
    tab.click(SEND)
    tab.wait_for_selector(COUNTED)
    (found,) = service.ask(survey, "estimates?range=28..37,20..40&range=1..2")["series"][0]["questions"]
    assert found["kind"] == "rectangles"
    assert [row["label"] for row in section(found, "ranges")] == ["age 28 to 37, hours 20 to 40"]
    assert section(found, "ranges")[0]["low"] < 0.5 < section(found, "ranges")[0]["high"]
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    panel = board.locator("[data-question=work]")
    expect(panel.locator(".headline")).to_contain_text(f"Most often {found['headline']['parameters']['label']}: about ")
    assert board.locator("[data-question]").count() == 1
    expect(panel.locator("svg.map rect.bar")).to_have_count(len(rows_of(found)))
    strongest = max(rows_of(found), key=lambda row: row["value"])["label"]
    darkest = panel.locator("svg.map g", has=board.locator("rect[fill-opacity='1.000']")).locator("title")
    assert darkest.text_content().startswith(strongest)
    for name, ends in (("age", ("28", "37")), ("hours", ("20", "40"))):
        panel.get_by_label(f"{name} from").fill(ends[0])
        panel.get_by_label("to", exact=True).nth(int(name == "hours")).fill(ends[1])
    panel.get_by_role("button", name="Show").click()
    expect(panel.locator(".range-share")).to_contain_text("are at age 28 to 37, hours 20 to 40")
    shown = float(re.findall(r"[\d.]+", panel.locator(".range-share").inner_text())[0]) / 100
    assert abs(shown - section(found, "ranges")[0]["value"]) < 0.01
    expect(opened(panel, "command")).to_contain_text("--range=28..37,20..40")
    opened(panel, "Over time")
    expect(panel.locator("tbody tr").last).to_contain_text("%")
    board.click("summary >> text=Compare two ranges")
    board.get_by_role("button", name="Compare", exact=True).click()
    expect(board.locator("[data-compare=work] tbody tr")).to_have_count(len(rows_of(found)))


def test_a_record_from_a_browser_to_the_dashboard(service: Service, open_tab: Open) -> None:
    """The whole path: every part is asked, one is reported, and each has a panel of its own."""
    domain = Records({"smoke": ["yes", "no"], "children": 5, "sleep": Interval(0, 24, unit="hours")})
    protocol = Attributes(domain, epsilon=3)
    survey = Survey("habits", [Question("habits", "Your habits", protocol)], terms(budget=64))
    service.publish(survey)
    bits, n = Simulation(11), 3_000
    for epoch in (current(survey) - 1, current(survey)):
        columns = {
            "smoke": ["yes", "no", "no"] * 1_000,
            "children": [0, 1, 2] * 1_000,
            "sleep": [6.0, 7.0, 8.0] * 1_000,
        }
        reports = np.asarray(protocol.privatize(columns, bits))
        ids = bits.words(2 * n).view(np.uint8).reshape(n, ID_BYTES).copy()
        service.fill_with(survey, epoch, Crowd(ids, reports))
    tab = open_tab(service.survey_page(survey))
    tab.wait_for_selector("form")
    promised = tab.locator("section.promise").text_content()
    assert promises(survey, "browser")["parts"] in promised.replace("\u00a0", " ")
    tab.get_by_label("no", exact=True).check()
    tab.get_by_label("children", exact=True).fill("2")
    tab.get_by_label("sleep", exact=True).fill("7.5")
    tab.click(SEND)
    tab.wait_for_selector(COUNTED)
    assert service.count(survey) == 2 * n + 1
    found = {one["part"]: one for one in service.ask(survey, "estimates")["series"][0]["questions"]}
    assert [one["kind"] for one in found.values()] == ["shares", "shares", "mean"]
    assert sum(one["n"] for one in found.values()) == 2 * n + 1
    for part, truth in (("smoke", 1 / 3), ("children", 1 / 3), ("sleep", 7)):
        row = rows_of(found[part])[0]
        assert abs(row["value"] - truth) < 6 * row["stderr"]
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector(".chart")
    shown = board.locator("section[data-question]").evaluate_all("(all) => all.map((one) => one.dataset.question)")
    assert shown == [f"habits.{part}" for part in found]
    sleep = board.locator("[data-question='habits.sleep']")
    expect(sleep.locator(".chart .value")).to_contain_text("hours")
    assert "share" not in sleep.inner_text()
    assert "smallest visible share" in board.locator("[data-question='habits.smoke']").inner_text()
    board.locator(".menu > summary").last.click()
    assert board.get_by_label("Made consistent by").is_visible()
    board.keyboard.press("Escape")
    opened(sleep, "Over time")
    expect(sleep.locator("tbody tr").last).to_contain_text("hours to ")
    board.locator("summary", has_text="Compare two").click()
    board.get_by_role("button", name="Compare").click()
    expect(board.locator("[data-compare='habits.sleep'] .chart .value").last).to_contain_text("hours")
    expect(board.locator("[data-compare='habits.smoke'] tbody tr")).to_have_count(2)


def test_strata_from_a_browser_to_the_dashboard(service: Service, open_tab: Open) -> None:
    """The whole path: a public stratum is asked once and sent in clear; a private one is randomized."""
    countries = {"country": ["de", "fr", "it", "pl", "se"]}
    smoke = Stratified(countries, GRR(["yes", "no"], 2), "smoke")
    sleep = Stratified(countries, Window(Interval(0, 24, unit="hours"), 2), "sleep")
    tea = PrivateStrata({"sex": ["f", "m"], "tea": ["daily", "seldom"]}, 4)
    questions = [Question("smoke", "Do you smoke?", smoke), Question("sleep", "How long do you sleep?", sleep)]
    questions.append(Question("tea", "How often do you drink tea?", tea))
    survey = Survey("nations", questions, replace(terms(budget=64), min_reports=50))
    service.publish(survey)
    bits, n = Simulation(12), 4_000
    where = (["de", "fr", "fr", "pl"] * 1_000)[: n - 3] + ["se"] * 3
    table = {"smoke": ["yes" if one == "fr" else "no" for one in where], "sleep": [7.0] * n}
    each = [
        np.asarray(one.privatize({"country": where, id: table[id]}, bits))
        for id, one in (("smoke", smoke), ("sleep", sleep))
    ]
    drinks = {"sex": ["f", "m"] * (n // 2), "tea": ["daily", "seldom"] * (n // 2)}
    each.append(np.asarray(tea.privatize(drinks, bits)))
    ids = bits.words(2 * n).view(np.uint8).reshape(n, ID_BYTES).copy()
    service.fill_with(survey, current(survey), Crowd(ids, np.hstack(each)))
    tab = open_tab(service.survey_page(survey))
    tab.wait_for_selector("form")
    promised = tab.locator("section.promise").text_content().replace("\u00a0", " ")
    assert promises(survey, "browser")["clear"] in promised
    expect(tab.get_by_text("country (sent in clear)")).to_have_count(1)
    tab.get_by_label("pl", exact=True).check()
    tab.get_by_label("no", exact=True).check()
    tab.get_by_label("sleep", exact=True).fill("7.5")
    tab.get_by_label("f", exact=True).check()
    tab.get_by_label("daily", exact=True).check()
    tab.click("text=Show me what leaves")
    expect(tab.locator("body")).to_contain_text("goes along as it is")
    expect(tab.locator("body")).to_contain_text("Your sex and tea together are one of 4 combinations")
    tab.click(SEND)
    tab.wait_for_selector(COUNTED)
    assert service.count(survey) == n + 1
    found = {(one["id"], one["part"]): one for one in service.ask(survey, "estimates")["series"][0]["questions"]}
    assert found["smoke", "all"]["n"] == n + 1
    assert found["sleep", "pl"]["n"] == n // 4
    assert not found["smoke", "se"]["enough"], "too few people for a result"
    assert found["smoke", "all"]["notes"][0].startswith("The strata differ (p < 0.0001")
    assert [part for id, part in found if id == "tea"] == ["all", "sex", "f", "m"]
    assert rows_of(found["tea", "f"])[0]["value"] == pytest.approx(1, abs=0.1)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector(".chart")
    panel = board.locator("[data-question='smoke.all']")
    expect(panel).to_contain_text("The strata differ (p < 0.0001")
    expect(board.locator("[data-question='smoke.fr']")).to_be_hidden()
    words = board.locator("[data-question='sleep.all'] .headline")
    expect(words).to_have_text(re.compile(r"^The mean is [67]\.\d+\shours \(6\.\d+ to 7\.\d+\)\.$"))
    expect(board.locator("[data-question='tea.all']")).to_contain_text("The strata differ")
    expect(board.locator("[data-question='tea.sex']")).to_be_visible()
    expect(board.locator("[data-question='tea.f']")).to_be_hidden()
    board.get_by_label("Group").select_option("f")
    expect(board.locator("[data-question='tea.f'] .chart")).to_be_visible()
    board.get_by_label("Group").select_option("fr")
    expect(board.locator("[data-question='smoke.fr']")).to_be_visible()
    expect(board.locator("[data-question='smoke.pl']")).to_be_hidden()
    board.get_by_label("Group").select_option("")
    expect(board.locator("[data-question='smoke.se']")).to_contain_text("Not enough answers yet")
    beside = [board.locator(f"[data-question='smoke.{part}']") for part in ("all", "de", "fr", "pl")]
    scales = [one.locator(".axis text").all_inner_texts() for one in beside]
    assert scales == scales[:1] * 4, "strata are drawn on one scale"
    assert beside[0].bounding_box()["y"] == beside[1].bounding_box()["y"], "side by side"


def test_a_profile_mechanism_from_a_browser_to_the_dashboard(service: Service, open_tab: Open) -> None:
    """The whole path: profile and value are asked, a drawn value leaves, and the dashboard has shares of the values."""
    graph = ProfileGraph.chain(
        {"clerk": [0.5, 0.45, 0.05], "engineer": [0.25, 0.1, 0.65]}, ["idle", "print", "compute"]
    )
    protocol = Table(SmoothCategorical(graph, epsilon=1))
    budget = replace(terms().budget, relation="profiles")
    survey = Survey("workstation", [Question("job", "Your workstation", protocol)], replace(terms(), budget=budget))
    service.publish(survey)
    bits, n = Simulation(5), 4_000
    profiles = ["clerk", "clerk", "engineer", "clerk"] * (n // 4)
    random = np.random.default_rng(3)
    values = [graph.values[random.choice(3, p=graph.profiles[graph.labels.index(one)])] for one in profiles]
    reports = np.asarray(protocol.privatize({"profile": profiles, "value": values}, bits))
    ids = bits.words(2 * n).view(np.uint8).reshape(n, ID_BYTES).copy()
    service.fill_with(survey, current(survey), Crowd(ids, reports))
    tab = open_tab(service.survey_page(survey))
    tab.wait_for_selector("form")
    promised = tab.locator("section.promise").text_content().replace("\u00a0", " ")
    for name in ("line", "guess", "band", "profiles"):
        assert promises(survey, "browser")[name] in promised
    assert "whatever else is known about you" not in promised
    asked = tab.locator("form").inner_text()
    assert "your profile is not in it" in asked
    assert "only one of these" not in asked
    tab.get_by_label("engineer", exact=True).check()
    tab.get_by_label("compute", exact=True).check()
    tab.click(SEND)
    tab.wait_for_selector(COUNTED)
    assert service.count(survey) == n + 1
    (found,) = service.ask(survey, "estimates")["series"][0]["questions"]
    truth = dict(zip(graph.values, [0.75, 0.25] @ graph.profiles, strict=True))
    assert [row["label"] for row in rows_of(found)] == list(graph.values)
    for row in rows_of(found):
        assert abs(row["value"] - truth[row["label"]]) < 6 * row["stderr"] < 0.1  # 2e-9 of all seeds fail
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector(".chart")
    panel = board.locator("[data-question=job]")
    assert all(value in panel.inner_text() for value in graph.values)
    assert "clerk" not in panel.locator(".chart").inner_text()
    opened(panel, "Method")
    assert found["method"] in panel.inner_text(), "the estimate has its name"
    assert "unbiased" not in panel.inner_text()


APPS = ["mail", "maps", "music", "news", "notes"]


def set_questions(epsilon: int = 4) -> list[Question]:
    stars = KeyValue(APPS[:3], Interval(1, 5, unit="stars"), epsilon, at_most=3)
    return [
        Question("apps", "Which of these do you use?", ItemSets(Sets(APPS, at_most=3), epsilon)),
        Question("stars", "How good are they?", stars),
    ]


def test_boxes_are_ticked_and_keys_get_numbers(canned: Any) -> None:
    tab, survey = canned(**{question.id: question.protocol.spec() for question in set_questions(1)})
    apps, stars = tab.locator("[data-question=apps]"), tab.locator("[data-question=stars]")
    assert apps.locator("label.choice").all_inner_texts() == [*APPS, "None of them"]
    expect(apps).to_contain_text("If you choose more than 3, 3 of them are drawn by chance for the report.")
    for name in ("mail", "music", "notes", "news"):
        apps.get_by_label(name, exact=True).check()
    number = stars.get_by_label("maps: a number in stars")
    expect(number).to_be_disabled()
    stars.get_by_label("maps", exact=True).check()
    tab.click(SEND)
    expect(stars.locator(".error")).to_have_text("Please write a number beside each that you chose.")
    assert survey.bodies == []
    number.fill("4,5")
    tab.click(SEND)
    expect(stars.locator(".error")).to_contain_text("with “.” before decimals")
    number.fill("7")
    expect(stars).to_contain_text("This is counted as 5\u00a0stars, the nearest end of the range.")
    assert survey.bodies == []
    number.fill("4.5")
    tab.click("text=Show me what leaves")
    life = tab.locator("section[aria-label='Life of a report']")
    expect(life).to_contain_text("Your answer, which stays in this browser: mail, music, news, notes")
    expect(life).to_contain_text("maps: 4.5\u00a0stars")
    expect(life).to_contain_text("maps up with probability 87.50\u00a0%")
    expect(life).to_contain_text("Chance chooses it, whatever you answered")
    tab.click(SEND)
    tab.wait_for_selector(COUNTED)
    protocols = [question.protocol for question in set_questions(1)]
    (body,) = survey.bodies
    assert len(body) == 24 + sum(protocol.report_bytes for protocol in protocols)


def test_boxes_that_nobody_touched_are_not_sent(canned: Any) -> None:
    """None of them is an answer, which a box of its own gives."""
    tab, survey = canned(**{question.id: question.protocol.spec() for question in set_questions(1)})
    apps, stars = tab.locator("[data-question=apps]"), tab.locator("[data-question=stars]")
    tab.click(SEND)
    for question in (apps, stars):
        expect(question.locator(".error")).to_contain_text("Please answer")
    assert survey.bodies == []
    apps.get_by_label("mail", exact=True).check()
    apps.get_by_label("None of them").check()
    expect(apps.get_by_label("mail", exact=True)).not_to_be_checked()
    stars.get_by_label("None of them").check()
    stars.get_by_label("maps", exact=True).check()
    expect(stars.get_by_label("None of them")).not_to_be_checked()
    stars.get_by_label("maps", exact=True).uncheck()
    tab.click(SEND)
    expect(stars.locator(".error")).to_contain_text("Please answer")
    stars.get_by_label("None of them").check()
    tab.click(SEND)
    tab.wait_for_selector(COUNTED)
    assert len(survey.bodies) == 1


CROWD = """async ({ server, pinned, people }) => {
  const page = document.querySelector("script[type=module]").src;
  const { Client } = await import(new URL("../deniable.js", page).href);
  const memory = () => {
    let kept;
    const update = async (change) => void (kept = change(kept));
    return { read: async () => kept, update, exclusive: (task) => task() };
  };
  const survey = await fetch(`${server}/v1/surveys/${pinned}`).then((reply) => reply.arrayBuffer());
  const known = (url, ...rest) =>
    String(url).endsWith(pinned) ? Promise.resolve(new Response(survey)) : fetch(url, ...rest);
  const states = [];
  for (const values of people) {
    const client = new Client({ server, fingerprint: pinned, store: memory(), fetch: known });
    states.push((await client.answer(values)).state);
  }
  return states.filter((state) => state === "sent").length;
}"""


@pytest.mark.slow
def test_a_thousand_people_type_words_and_tick_boxes_in_a_browser_and_the_dashboard_shows_them(
    service: Service, open_tab: Open
) -> None:
    """Every respondent has a device of their own; shares, pairs and means are within five standard errors.

    Four words have the share that the planner names. Each is found nine times out of ten: fewer than two are found in
    one of 270 runs.
    """
    words = HeavyHitters(ShortText(8), 8, people=1_000)
    survey = Survey("trial of sets", [*set_questions(), Question("word", "Which word?", words)], terms(budget=64))
    service.publish(survey)
    random = np.random.default_rng(11)
    planted = ["lantern", "maté", "日本", "harvest moon"]
    stated = float(words.worth(1_000).visible() or 1)
    drawn = (random.random(1_000) / stated).astype(int).tolist()
    typed = [planted[one] if one < 4 else f"{random.integers(1 << 32):x}" for one in drawn]
    held = random.random((1_000, 5)) < [0.7, 0.5, 0.3, 0.1, 0.05]
    people = [
        {
            "apps": [name for name, has in zip(APPS, row, strict=True) if has],
            "stars": {name: 5 - place for place, name in enumerate(APPS[:3]) if row[place]},
            "word": word,
        }
        for row, word in zip(held.tolist(), typed, strict=True)
    ]
    tab = open_tab(service.survey_page(survey))
    tab.wait_for_selector("form")
    sent = 0
    for start in range(0, len(people), 200):
        given = {"server": service.address, "pinned": survey.fingerprint, "people": people[start : start + 200]}
        sent += tab.evaluate(CROWD, given)
    assert sent == 1_000 == service.count(survey)
    apps, share, mean, word = service.ask(survey, "estimates")["series"][0]["questions"]
    assert [one["kind"] for one in (apps, share, mean, word)] == ["items", "shares", "means", "found"]
    wanted = {words.domain.label(words.domain.encode_one(one)) for one in planted}
    assert len({row["label"] for row in rows_of(word)} & wanted) >= 2
    truth = survey["apps"].protocol.worth().truth([one["apps"] for one in people])
    for row, true in zip(rows_of(apps), truth, strict=True):
        assert abs(row["value"] - true) < 5 * row["stderr"]
    both = next(row for row in section(apps, "together") if row["label"] == "mail & maps")
    assert abs(both["value"] - np.mean(held[:, 0] & held[:, 1])) < 5 * both["stderr"] + 0.05
    for row, true in zip(rows_of(mean), (5, 4, 3), strict=True):
        assert row["low"] - 2 * row["stderr"] <= true <= row["high"] + 2 * row["stderr"]
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector("[data-question=apps] .matrix td")
    panel = board.locator("[data-question=apps]")
    expect(panel).to_contain_text("How many of them people have")
    assert panel.locator(".matrix tbody tr, .matrix tr").count() >= 6
    expect(board.locator("[data-question='stars.mean']")).to_contain_text("stars")
    assert board.locator("[data-question='stars.share'] .chart").count() == 1
    chart = board.locator("[data-question=word] .chart").first.inner_text()
    assert all(row["label"] in chart for row in rows_of(word))


def test_words_that_nobody_listed_are_found_expected_and_followed_on_the_dashboard(
    service: Service, open_tab: Open
) -> None:
    """A word that is too rare to be found is found once it is expected; one found is counted in each period.

    At this share about three of four draws find it if it is expected, one of four if not: this draw is one of both.
    """
    protocol = HeavyHitters(ShortText(4), 8, people=3_000)
    survey = Survey("words", [Question("word", "Which word?", protocol)], terms(budget=64))
    service.publish(survey)
    rare = round(0.5 * 3_000 * float(protocol.worth(6_000).visible() or 1))
    for epoch, often in ((current(survey) - 1, 300), (current(survey), 900)):
        bits, random = Simulation(often), np.random.default_rng(often)
        words = ["tea"] * often + ["soda"] * rare
        words += [f"{one:x}" for one in random.integers(0, 1 << 16, 3_000 - len(words))]
        ids = bits.words(6_000).view(np.uint8).reshape(3_000, ID_BYTES).copy()
        service.fill_with(survey, epoch, Crowd(ids, np.asarray(protocol.privatize(words, bits))))
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    panel = board.locator("[data-question=word]")
    expect(panel.locator(".chart").first).to_contain_text("tea")
    assert "soda" not in panel.locator(".chart").first.inner_text()
    panel.locator("summary", has_text="Expected answers").click()
    panel.get_by_label("Texts that you expect, one per line").fill("soda\nmilk")
    panel.get_by_role("button", name="Search again").click()
    expect(panel.locator(".chart").first).to_contain_text("soda")
    assert "milk" not in panel.locator(".chart").first.inner_text()
    expect(opened(panel, "command")).to_contain_text("--candidates words.txt")
    opened(panel, "Over time")
    heads = panel.locator(".series ~ div thead th")
    expect(heads).to_have_count(4)
    assert [head.lower() for head in heads.all_text_contents()[2:]] == ["tea", "soda"]


def test_tables_of_columns_from_a_browser_to_the_dashboard(service: Service, open_tab: Open) -> None:
    """Every part is asked, some are reported together, and each table is a map that can be turned and filtered."""
    domain = Records({"smoke": ["yes", "no"], "age": Integers(18, 57), "town": ["a", "b", "c"]})
    ask = [("smoke", "age"), ("age", "town"), ("smoke", "age", "town")]
    protocol = Attributes(domain, epsilon=4, ask=ask, cells={"age": 4})
    survey = Survey("tables", [Question("habits", "Your habits", protocol)], terms(budget=64))
    service.publish(survey)
    bits, n = Simulation(12), 3_000
    columns = {"smoke": ["yes", "no", "no"] * 1_000, "age": [20, 40, 55] * 1_000, "town": ["a", "b", "c"] * 1_000}
    ids = bits.words(2 * n).view(np.uint8).reshape(n, ID_BYTES).copy()
    service.fill_with(survey, current(survey), Crowd(ids, np.asarray(protocol.privatize(columns, bits))))
    tab = open_tab(service.survey_page(survey))
    tab.wait_for_selector("form")
    promised = tab.locator("section.promise").text_content()
    assert promises(survey, "browser")["parts"] in promised.replace("\u00a0", " ")
    tab.get_by_label("no", exact=True).check()
    tab.get_by_label("age", exact=True).fill("40")
    tab.get_by_label("b", exact=True).check()
    tab.click(SEND)
    tab.wait_for_selector(COUNTED)
    found = {one["part"]: one for one in service.ask(survey, "estimates")["series"][0]["questions"]}
    assert [one["kind"] for one in found.values()] == ["table"] * 3
    assert [axis["name"] for axis in found["smoke & age"]["sections"][0]["axes"]] == ["smoke", "age"]
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    pair = board.locator("[data-question='habits.smoke & age']")
    expect(pair.locator(".matrix td[class]")).to_have_count(8)
    darkest = max(rows_of(found["smoke & age"]), key=lambda row: row["value"])["label"]
    assert pair.locator(".matrix td.shade-10").first.get_attribute("title").startswith(darkest)
    assert pair.locator(".matrix tr").count() == 3
    choose(board, "Rows of tables", "age")
    expect(pair.locator(".matrix tr")).to_have_count(5)
    three = board.locator("[data-question='habits.smoke & age & town']")
    three.get_by_label("town", exact=True).select_option("c")
    expect(three.locator(".matrix td[title^='no & 48 to 57 & c: ']")).to_contain_text("%")
    choose(board, "Columns of tables", "town")
    expect(pair).to_be_hidden()
    assert board.locator("[data-question='habits.age & town']").is_visible()
