"""Findings first: one sentence per question, in the reader's language, at an address that shows the same again."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from deniable.design import extremal
from deniable.domains import Integers, Interval, Records, Sets, ShortText, Strings
from deniable.protocols import (
    CMS,
    GRR,
    OUE,
    Attributes,
    HeavyHitters,
    ItemSets,
    KeyValue,
    Protocol,
    Rectangles,
    Stratified,
    Table,
    Window,
)
from deniable.randomness import Simulation
from deniable.surveys import Question, Survey
from deniable.words import catalogue
from tests.collect.surveys import Crowd, current, terms
from tests.web.pages.browser import new_context
from tests.web.pages.service import Service
from tests.web.pages.surveys import smoke, ten
from tests.web.pages.test_dashboard import choose, opened, sign_in
from tests.web.pages.test_languages import CHOICE, OVERFLOWS, READ, english_in, pseudo

Open = Callable[[str], Any]
PHONE = {"width": 390, "height": 844}
PEOPLE = 2_000
STATES = ["hurts", "so so", "fine"]
LAWS = [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]


def kinds() -> dict[str, tuple[Protocol, Any]]:
    """A protocol of every picture, and the answers of 2,000 people."""
    random = np.random.default_rng(5)
    ages, words = random.integers(20, 50, PEOPLE), random.choice(["tea", "ale", "gin"], PEOPLE, p=[0.7, 0.2, 0.1])
    half = ["ja" if one else "nein" for one in random.random(PEOPLE) < 0.2]
    hypotheses = {"H0": LAWS[0], "H1": LAWS[1]}
    table = Table(extremal(*LAWS, 1, inputs=STATES), laws=hypotheses)
    record = Records({"age": Integers(18, 57), "hours": Interval(0, 80, unit="h")})
    columns = Records({"sex": ["f", "m"], "age": Integers(18, 57), "town": ["Ulm", "Bonn"]})
    items = [["mail", "news"] if one == "ja" else ["maps"] for one in half]
    keys = [{"mail": 4.0, "maps": 2.0} if one == "ja" else {"maps": 3.0} for one in half]
    strata = Stratified({"land": ["de", "fr"]}, GRR(["ja", "nein"], 2), "raucht")
    rated = KeyValue(["mail", "maps"], Interval(1, 5, unit="Sterne"), 4, at_most=2)
    together = {"sex": ["f", "m"] * (PEOPLE // 2), "age": ages.tolist(), "town": ["Ulm", "Bonn"] * (PEOPLE // 2)}
    return {
        "shares": (GRR(["ja", "nein"], 2), half),
        "leader": (OUE(["Brot", "Reis", "Mais"], 2), random.choice(["Brot", "Reis", "Mais"], PEOPLE).tolist()),
        "mean": (Window(Interval(0, 80, unit="h"), 4), ages.astype(float)),
        "distribution": (Window(Integers(18, 57), 4, read="distribution"), ages),
        "map": (Rectangles(record, 4, grids=[(2, 2), (4, 4)]), {"age": ages, "hours": ages.astype(float)}),
        "strata": (strata, {"land": ["de", "fr"] * (PEOPLE // 2), "raucht": half}),
        "sets": (ItemSets(Sets(["mail", "maps", "news"], at_most=2), 4), items),
        "ratings": (rated, keys),
        "table": (Attributes(columns, epsilon=4, ask=[("sex", "age", "town")], cells={"age": 4}), together),
        "text": (CMS(Strings(cells=64, cohorts=8, key="k"), 4), words.tolist()),
        "found": (HeavyHitters(ShortText(4), 8, people=PEOPLE), words.tolist()),
        "decision": (table, random.choice(STATES, PEOPLE, p=LAWS[1]).tolist()),
    }


def filled(service: Service, name: str, *wanted: str, epochs: int = 1) -> Survey:
    """A published survey of these kinds, with answers in the last epochs."""
    made = {kind: one for kind, one in kinds().items() if kind in wanted}
    questions = [Question(kind, "Was?", protocol) for kind, (protocol, _) in made.items()]
    survey = Survey(name, questions, terms(budget=64))
    service.publish(survey)
    for step in range(epochs):
        bits = Simulation(step)
        reports = [np.asarray(protocol.privatize(answers, bits)) for protocol, answers in made.values()]
        ids = bits.words(2 * PEOPLE).view(np.uint8).reshape(PEOPLE, 16).copy()
        service.fill_with(survey, current(survey) - step, Crowd(ids, np.concatenate(reports, axis=1)))
    return survey


def opened_board(tab: Any, service: Service, address: str) -> None:
    tab.goto(address)
    tab.locator("input[type=password]").fill(service.analyst)
    tab.locator("form button").click()
    tab.wait_for_selector(".live.on")


# -- where the finding is --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["shares", "leader", "mean", "distribution", "map", "strata", "sets", "decision"])
def test_the_first_finding_is_on_the_first_screen_of_a_phone(service: Service, browser: Any, kind: str) -> None:
    survey = filled(service, f"first screen, {kind}", kind, epochs=2)
    context = new_context(browser, viewport=PHONE)
    tab = context.new_page()
    opened_board(tab, service, service.dashboard(survey))
    place = tab.locator(".finding:visible .headline").first.bounding_box()
    assert place["y"] <= 450
    controls = tab.locator(".chips > select:visible, .chips > details:not(:last-child):visible")
    assert controls.count() <= 3, "period, group and confidence; the rest is under Method"
    assert tab.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    context.close()


def test_every_answer_has_one_bar_and_it_can_be_made_consistent(service: Service, open_tab: Open) -> None:
    survey = ten("one bar")
    service.publish(survey)
    service.fill(survey, current(survey), 300)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector(".chart")
    assert board.locator(".chart .bar").count() == 10
    before = board.locator(".chart .value").all_inner_texts()
    choose(board, "Estimates", "consistent")
    expect(board.locator(".chart .value").first).not_to_have_text(before[0])
    assert board.locator(".chart .bar").count() == 10
    shares = [float(text.split()[0]) for text in board.locator(".chart .value").all_inner_texts()]
    assert sum(shares) == pytest.approx(100, abs=5), "consistent shares are a distribution, but for rounding"


# -- what it says ----------------------------------------------------------------------------------------

SAY = """async (documents) => {
  const pages = document.querySelector('script[type="module"]').src;
  const { finding, card } = await import(new URL("finding.js", pages));
  const { read } = await import(new URL("document.js", pages));
  return documents.map((one) => [finding(read(one)), card(one).textContent.length > 0]);
}"""


def document(rows: list[tuple[Any, float, float, float]], **more: Any) -> dict[str, Any]:
    """A document of shares: answer, value and interval."""
    names = ("label", "value", "low", "high")
    each = [dict(zip(names, row, strict=True)) | {"stderr": (row[3] - row[2]) / 4, "unit": ""} for row in rows]
    trust = {"warning": None, "noise_floor": None, "poisoning": None, "forgery": "", "epsilon": "1"}
    section = {"id": "shares", "picture": "bars", "columns": list(names), "rows": each}
    head = {"id": "q", "part": "", "text": "What?", "kind": "shares", "method": "unbiased", "n": 100, "level": 0.95}
    head |= {"simultaneous": True, "population": True, "enough": True, "headline": None, "notes": [], "facts": {}}
    return head | {"trust": trust, "winner": None, "decision": None, "sections": [section]} | more


def leads(certain: bool) -> dict[str, Any]:
    return {"label": "b", "runner_up": "a", "margin": 0.1, "error": 0.02, "level": 0.95, "certain": certain}


THREE = [("a", 0.3, 0.25, 0.35), ("b", 0.4, 0.35, 0.45), ("c", 0.3, 0.25, 0.35)]
SAID: list[tuple[dict[str, Any], str]] = [
    (document([("no", 0.81, 0.78, 0.85), ("yes", 0.19, 0.153, 0.219)]), "About 19 in 100 answer “yes” (15 to 22)."),
    (
        document([(True, 0.0042, 0.004, 0.0045), (False, 0.9958, 0.9955, 0.996)]),
        "About 4 in 1,000 answer “yes (true)” (4 to 5).",
    ),
    (document([("yes", -0.02, -0.05, 0.013), ("no", 1.02, 0.987, 1.05)]), "At most 2 in 100 answer “yes”."),
    (document([("yes", 0.5, -0.4, 1.4), ("no", 0.5, -0.4, 1.4)]), "Too few answers to say anything yet."),
    (document(THREE, winner=leads(True)), "The most common answer is b: about 40 in 100 (35 to 45)."),
    (document(THREE, winner=leads(False)), "No clear leader: b (40.0\u00a0%) and a (30.0\u00a0%) are ahead."),
    (document(THREE), "The largest estimate is b: about 40 in 100 (35 to 45)."),
    (document(THREE, n=0), "Nobody has answered in this time."),
    (document(THREE, enough=False), "Not enough answers yet."),
]


def test_findings_of_documents_alone(service: Service, open_tab: Open) -> None:
    """The module that draws a document needs no token and no dashboard. Intervals are never written narrower."""
    tab = open_tab(f"{service.address}/dashboard")
    tab.wait_for_selector("input")
    found = tab.evaluate(SAY, [one for one, _ in SAID])
    assert [said for said, _ in found] == [wanted for _, wanted in SAID]
    assert all(drawn for _, drawn in found)


# -- languages -------------------------------------------------------------------------------------------


def looked_at(tab: Any) -> str:
    """All texts of a dashboard: every tab of every question, a comparison, and the part for operators."""
    tab.evaluate("document.querySelectorAll('main details:not(.menu)').forEach((one) => (one.open = true))")
    seen = [tab.evaluate(READ)]
    form = tab.locator("details.card form button")
    form.click()
    tab.wait_for_selector("[data-compare]")
    tabs = tab.locator(".tabs")
    for place in range(5):
        for one in tabs.all():
            button = one.locator("button").nth(place)
            if button.is_visible():
                button.click()
        tab.wait_for_timeout(300)
        seen.append(tab.evaluate(READ))
    return "\n".join(seen)


EVERY = [*kinds()]
PARTS = [EVERY[:4], EVERY[4:8], EVERY[8:]]


@pytest.mark.parametrize("part", range(len(PARTS)))
def test_no_english_sentence_is_left_on_a_german_dashboard(service: Service, open_tab: Open, part: int) -> None:
    survey = filled(service, f"auf Deutsch, {part}", *PARTS[part], epochs=2)
    tab = open_tab(f"{service.address}/dashboard?lang=de")
    tab.wait_for_selector("input")
    assert english_in(tab.evaluate(READ), catalogue("de").entries) == set()
    opened_board(tab, service, f"{service.dashboard(survey)}?lang=de")
    shown = looked_at(tab)
    assert english_in(shown, catalogue("de").entries) == set()
    assert "Für den Betrieb" in shown
    assert re.search(r"\d,\d", shown), "decimals have a comma"
    found = service.ask(survey, "estimates?intervals=simultaneous")["series"][0]["questions"]
    known = [one for question in found for one in question["sentences"]]
    german = " ".join(shown.split())
    for one in known:
        assert catalogue("en").entries[one["id"]] != catalogue("de").entries[one["id"]]
        assert one["text"] not in german, "sentences of the service are said in German, too"
    assert known


def test_a_dashboard_that_is_not_translated_is_found(service: Service, open_tab: Open) -> None:
    """The check above finds the two sentences that stayed English here, and no other."""
    survey = filled(service, "halb auf Deutsch", "leader")
    german, english = dict(catalogue("de").entries), catalogue("en").entries
    left = ("board.mark.floor", "result.forged")

    def broken(route: Any) -> None:
        route.fulfill(json={id: english[id] if id in left else entry for id, entry in german.items()})

    tab = open_tab(f"{service.address}/")
    tab.route("**/words/de.json", broken)
    opened_board(tab, service, f"{service.dashboard(survey)}?lang=de")
    assert english_in(tab.evaluate(READ), german) == set(left)


def test_the_language_is_switched_and_the_view_stays(service: Service, open_tab: Open) -> None:
    survey = filled(service, "Sprachen", "leader")
    tab = open_tab(service.dashboard(survey))
    sign_in(tab, service)
    tab.wait_for_selector(".chart")
    opened(tab, "Table")
    tab.locator(CHOICE).select_option("de")
    expect(tab.locator(".tabs button[aria-expanded=true]")).to_have_text("Tabelle")
    expect(tab.locator("[data-tab=table] thead")).to_contain_text("Antwort")
    assert tab.get_attribute("html", "lang") == "de"
    assert "?lang=de#" in tab.url
    assert tab.locator("input[type=password]").count() == 0, "the token is still known"
    tab.reload()
    expect(tab.locator("form button")).to_have_text("Anmelden")


@pytest.mark.parametrize(("locale", "query", "spoken"), [("de-AT", "", "de"), ("de-DE", "?lang=en", "en")])
def test_the_dashboard_speaks_the_language_of_the_browser(
    service: Service, browser: Any, locale: str, query: str, spoken: str
) -> None:
    context = new_context(browser, locale=locale)
    tab = context.new_page()
    tab.goto(f"{service.address}/dashboard{query}")
    expect(tab.locator("form button")).to_have_text(str(catalogue(spoken).entries["board.sign"]))
    assert tab.get_attribute("html", "lang") == spoken
    context.close()


def test_a_dashboard_from_right_to_left(service: Service, browser: Any) -> None:
    survey = filled(service, "rtl", "leader", "distribution", "map", epochs=2)
    context = new_context(browser, viewport=PHONE)
    tab = context.new_page()
    pseudo(tab)
    opened_board(tab, service, f"{service.dashboard(survey)}?lang=de")
    assert tab.get_attribute("html", "dir") == "rtl"
    tab.evaluate("document.querySelectorAll('main details:not(.menu)').forEach((one) => (one.open = true))")
    assert tab.evaluate(OVERFLOWS) == []
    chip = tab.locator(".answers").bounding_box()
    assert chip["x"] + chip["width"] > PHONE["width"] - 20, "the first control begins on the right"
    names = tab.locator(".chart .name").first.bounding_box()
    values = tab.locator(".chart .value").first.bounding_box()
    assert names["x"] > values["x"], "names stand where lines begin"
    context.close()


# -- the address -----------------------------------------------------------------------------------------

VIEW = """() => ({
  text: document.querySelector("main").innerText.replace(/connecting|live/g, ""),
  open: [...document.querySelectorAll("[aria-expanded=true]")].map((one) => one.textContent),
  fields: [...document.querySelectorAll("main select, main input:not([role]), main textarea")].map((one) => one.value),
  marks: document.querySelectorAll(".chart .fakes").length,
})"""


def test_a_copied_address_shows_the_same_view(service: Service, open_tab: Open, profile: Any) -> None:
    """Controls, tabs, forgeries, ranges, filters, texts and a comparison are there again after signing in."""
    profile.grant_permissions(["clipboard-read", "clipboard-write"], origin=service.address)
    survey = filled(service, "shared", "leader", "distribution", "strata", "table", "text", epochs=3)
    last = current(survey)
    tab = open_tab(service.dashboard(survey))
    sign_in(tab, service)
    tab.wait_for_selector(".chart")
    usual = tab.evaluate(VIEW)
    tab.get_by_label("Confidence level").select_option("0.9")
    tab.get_by_label("Group").select_option("de")
    choose(tab, "From period", str(last - 1))
    choose(tab, "Estimates", "consistent")
    choose(tab, "Bins", "10")
    text = tab.locator("[data-question=text]")
    text.get_by_label("Texts to look for").fill("tea\nale")
    text.get_by_role("button", name="Look for these").click()
    text.locator(".chart").wait_for()
    ages = tab.locator("[data-question=distribution]")
    ages.get_by_label("Share from").fill("20")
    ages.get_by_label("to", exact=True).fill("30")
    ages.get_by_role("button", name="Show").click()
    ages.locator(".range-share").wait_for()
    tab.locator("[data-question^='table'] .matrix select").first.select_option("1")
    opened(ages, "Table")
    leader = tab.locator("[data-question=leader]")
    opened(leader, "If some reports were fake").locator("input").fill("30")
    tab.locator("summary", has_text="Compare two").click()
    tab.get_by_role("button", name="Compare").click()
    tab.wait_for_selector("[data-compare=leader]")
    wanted = tab.evaluate(VIEW)
    assert wanted != usual
    tab.get_by_role("button", name="Copy link").click()
    expect(tab.get_by_role("button", name="Copied")).to_be_visible()
    address = tab.evaluate("navigator.clipboard.readText()")
    assert address == tab.url
    tab.close()
    again = open_tab(address)
    sign_in(again, service)
    again.wait_for_selector("[data-compare=leader]")
    again.wait_for_selector(".live.on")
    assert again.evaluate(VIEW) == wanted
    again.close()
    bare = open_tab(address.partition("#")[0])
    sign_in(bare, service)
    bare.wait_for_selector(".chart")
    assert bare.evaluate(VIEW) != wanted, "the comparison can fail"


def test_what_is_looked_at_is_not_told_to_the_service(service: Service, open_tab: Open) -> None:
    """The view stands behind the #, which browsers keep; and an address with nonsense there opens the usual view."""
    survey = smoke("nonsense")
    service.publish(survey)
    service.fill(survey, current(survey), 100)
    asked: list[str] = []
    tab = open_tab(f"{service.address}/")
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(
        f"{service.dashboard(survey)}#level=7&first=x&tab.smoke=no&fakes.smoke=-3&filter.smoke=%7B&compare=1..x&top=secret"
    )
    sign_in(tab, service)
    tab.wait_for_selector(".chart")
    assert tab.get_by_label("Confidence level").input_value() == "0.95"
    assert tab.locator("[aria-expanded=true]").count() == 0
    assert not any("secret" in url.partition("#")[0] for url in asked)


# -- busy, files and paper -------------------------------------------------------------------------------


def test_what_takes_a_while_says_so(service: Service, open_tab: Open) -> None:
    survey = ten("busy")
    service.publish(survey)
    service.fill(survey, current(survey), 300)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector(".live.on")
    sign = board.locator(".busy")
    expect(sign).to_be_hidden()
    held: list[Any] = []
    board.route("**/estimates?*level=0.99*", lambda route: held.append(route))
    board.get_by_label("Confidence level").select_option("0.99")
    expect(sign).to_be_visible()
    expect(sign).to_have_text("Working…")
    for route in held:
        route.continue_()
    expect(sign).to_be_hidden()


def saved(board: Any, tab: Any, kind: str) -> bytes:
    with board.expect_download() as waiting:
        tab.get_by_role("button", name=kind, exact=True).click()
    assert waiting.value.suggested_filename.endswith(f".{kind.lower()}")
    return bytes(waiting.value.path().read_bytes())


@pytest.mark.parametrize("kind", ["leader", "distribution", "map"])
def test_a_card_is_saved_as_a_picture(service: Service, open_tab: Open, kind: str) -> None:
    survey = filled(service, f"files, {kind}", kind)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector(".finding .legend, .finding .touchable")
    files = opened(board, "command")
    picture = ET.fromstring(saved(board, files, "SVG").decode())
    names = [one.tag.rpartition("}")[2] for one in picture.iter()]
    assert {"svg", "rect", "text"} == set(names) - {"path", "circle", "line"}
    texts = " ".join("".join(one.itertext()) for one in picture.iter() if one.tag.endswith("text"))
    assert board.locator(".headline").inner_text().split()[0] in texts
    bars = board.locator(".finding .chart .bar, .finding .lines .bar").count()
    colours = [one.get("fill") for one in picture.iter() if one.tag.endswith("rect")]
    assert sum(one == "rgb(61, 130, 184)" for one in colours) >= min(bars, 2)
    width, height = (float(picture.get(name) or 0) for name in ("width", "height"))
    image = saved(board, files, "PNG")
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    size = [int.from_bytes(image[16 + 4 * i : 20 + 4 * i], "big") for i in range(2)]
    assert size == [2 * width, 2 * height]
    assert len(image) > 10_000, "it is not empty"


def test_what_is_printed_is_the_findings(service: Service, open_tab: Open) -> None:
    survey = filled(service, "paper", "leader", epochs=2)
    board = open_tab(service.dashboard(survey))
    sign_in(board, service)
    board.wait_for_selector(".chart")
    board.emulate_media(media="print")
    for shown in (".headline", ".chart", ".answers b", ".owner"):
        expect(board.locator(shown).first).to_be_visible()
    for hidden in ("header.top", ".tabs", ".menu", ".operator", ".live"):
        expect(board.locator(hidden).first).to_be_hidden()
    board.emulate_media(media="screen")


def test_sentences_travel_with_their_ids(service: Service) -> None:
    """What a document says in English can be said in every language from the ids and parameters beside it."""
    survey = filled(service, "sentences", "strata", "found", "decision", "sets")
    said: dict[str, Mapping[str, Any]] = {}
    for one in service.ask(survey, "estimates")["series"][0]["questions"]:
        texts = [*one["notes"], one["trust"]["forgery"], *([one["decision"]["verdict"]] if one["decision"] else [])]
        known = {sentence["text"]: sentence for sentence in one["sentences"]}
        assert set(texts) <= set(known), json.dumps(texts)
        said |= {sentence["id"]: sentence for sentence in known.values()}
    assert {"result.forged", "result.found", "result.strata.differ", "result.reported"} & set(said)
