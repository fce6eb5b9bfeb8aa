"""The survey page speaks the language of its reader: chosen, asked for or preferred; and it fits on a small screen."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

import deniable
from deniable.collect.server.pages import web_folder
from deniable.collect.stores import open_store
from deniable.collect.stores.base import Batch
from deniable.protocols import GRR
from deniable.randomness import Simulation
from deniable.surveys import Question, Survey
from deniable.surveys.promises import promises
from deniable.surveys.translations import positions
from deniable.words import LANGUAGES, Entry, catalogue
from tests.collect.surveys import current, terms
from tests.surveys.translated import ANSWERS, translated
from tests.web.pages.browser import new_context
from tests.web.pages.service import Service, serving
from tests.web.pages.surveys import often, shapes, smoke, staged

Open = Callable[[str], Any]
PLACE = re.compile(r"\{[A-Za-z][a-z]*(?::[a-z]+)?\}")
FEWEST_LETTERS = 12
"""Shorter sentences, such as "{n} of {of}", could be parts of others or of a survey's own texts."""
CHOICE = ".languages select"
PHONE = {"width": 360, "height": 740}

READ = """() => {
    const texts = [document.body.textContent];
    for (const name of ["aria-label", "placeholder", "title", "aria-valuetext"]) {
        for (const element of document.querySelectorAll(`[${name}]`)) texts.push(element.getAttribute(name));
    }
    return texts.filter(Boolean).join("\\n");
}"""
OVERFLOWS = """() => [document.documentElement, ...document.querySelectorAll("main *")]
    .filter((element) => element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0)
    .filter((element) => !element.closest(".scroll, .bytes, svg, .hidden, dialog:not([open])"))
    .filter((element) => getComputedStyle(element).display !== "inline")
    .map((element) => `${element.tagName} ${element.className} ${element.textContent.slice(0, 60)}`)"""


def texts(entry: Entry) -> list[str]:
    return [entry] if isinstance(entry, str) else list(entry.values())


def english_in(shown: str, entries: Mapping[str, Entry]) -> set[str]:
    """The ids of English sentences on a page of another language, where that language says something else."""
    shown, found = " ".join(shown.split()), set()
    for id, entry in catalogue("en").entries.items():
        for text in texts(entry):
            longest = max(PLACE.split(text), key=len).strip()
            if len(longest) >= FEWEST_LETTERS and not any(longest in other for other in texts(entries[id])):
                found |= {id} if longest in shown else set()
    return found


def looked_at(tab: Any) -> str:
    """All texts of a survey page: before an answer, with the life of a report, and after it was sent."""
    tab.wait_for_selector("form")
    seen = tab.evaluate(READ)
    tab.click("form button[type=submit]")  # says what is missing
    seen += tab.evaluate(READ)
    for field in tab.locator("form fieldset").all():
        kind = field.locator("input").first
        if kind.get_attribute("type") == "radio":
            kind.check()
        else:
            kind.fill("month 3" if kind.get_attribute("role") == "combobox" else "20")
    tab.click("form button.quiet")
    tab.wait_for_selector("ol.steps")
    seen += tab.evaluate(READ)
    tab.click("form button[type=submit]")
    tab.wait_for_selector(".card.fine")
    tab.evaluate("() => document.querySelectorAll('footer details').forEach((one) => (one.open = true))")
    tab.locator("button.danger:visible").click()
    tab.wait_for_selector("dialog[open]")
    return seen + str(tab.evaluate(READ))


@pytest.mark.parametrize("language", [one for one in LANGUAGES if one != "en"])
@pytest.mark.parametrize("made", [smoke, often, staged, shapes])
def test_no_english_sentence_is_left(
    service: Service, open_tab: Open, made: Callable[[str], Any], language: str
) -> None:
    survey = made(f"in {language}, {made.__name__}")
    service.publish(survey)
    tab = open_tab(f"{service.survey_page(survey)}?lang={language}")
    shown, words = looked_at(tab), catalogue(language)
    assert english_in(shown, words.entries) == set()
    told = " ".join(shown.replace("\u00a0", " ").split())
    for name, sentence in promises(survey, "browser", lasting=False, language=language).items():
        quoted = words.say("quoted", text="\0")
        opened, closed = map(re.escape, quoted.split("\0"))
        # The page has the text of the question above the guess about it.
        parts = re.split(f" ?{opened}[^{closed}]*{closed} ", sentence) if name == "guess" else [sentence]
        assert all(part in told for part in parts), name
    assert any(words.say(f"outcome.{one}") in tab.inner_text("main") for one in ("sent", "drawn"))


def test_a_sentence_that_is_not_translated_is_found(service: Service, open_tab: Open) -> None:
    """The check above finds the two sentences that stayed English here, and no other."""
    german, english = dict(catalogue("de").entries), catalogue("en").entries
    left = ("page.look", "terms.checked")

    def broken(route: Any) -> None:
        route.fulfill(json={id: english[id] if id in left else entry for id, entry in german.items()})

    tab = open_tab(f"{service.address}/")
    tab.route("**/words/de.json", broken)
    tab.goto(f"{service.survey_page(smoke())}?lang=de")
    tab.wait_for_selector("form")
    assert english_in(tab.evaluate(READ), german) == set(left)


def test_a_respondent_switches_the_language_and_keeps_what_was_filled_in(service: Service, open_tab: Open) -> None:
    tab = open_tab(service.survey_page(shapes()))
    tab.wait_for_selector("form")
    assert (tab.get_attribute("html", "lang"), tab.get_attribute("html", "dir")) == ("en", "ltr")
    tab.locator("form input[type=radio]").nth(1).check()
    tab.locator("form input.number").fill("33")
    tab.locator(CHOICE).focus()
    tab.locator(CHOICE).select_option("de")
    expect(tab.locator("form button[type=submit]")).to_have_text("Verwürfeln und senden")
    assert tab.get_attribute("html", "lang") == "de"
    assert tab.url.endswith("?lang=de"), "the choice stays when the page is loaded again"
    assert tab.locator("form input[type=radio]").nth(1).is_checked()
    assert tab.locator("form input.number").input_value() == "33"
    assert tab.locator("footer summary").first.inner_text() == "Bedingungen und Fingerabdruck"
    expect(tab.locator(CHOICE)).to_be_focused()
    tab.reload()
    expect(tab.locator("form button[type=submit]")).to_have_text("Verwürfeln und senden")
    tab.locator(CHOICE).select_option("en")
    expect(tab.locator("form button[type=submit]")).to_have_text("Scramble and send")


@pytest.mark.parametrize(
    ("locale", "query", "spoken"),
    [("de-AT", "", "de"), ("fr-FR", "", "en"), ("de-DE", "?lang=en", "en"), ("en-US", "?lang=xx", "en")],
)
def test_the_language_is_that_of_the_address_then_of_the_browser(
    service: Service, browser: Any, locale: str, query: str, spoken: str
) -> None:
    context = new_context(browser, locale=locale)
    tab = context.new_page()
    tab.goto(service.survey_page(smoke()) + query)
    tab.wait_for_selector("form")
    assert tab.get_attribute("html", "lang") == spoken
    assert tab.locator(CHOICE).input_value() == spoken
    context.close()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_sentence_fits_on_a_phone(service: Service, browser: Any, language: str) -> None:
    """The whole page at 360 pixels, then each sentence of the catalogue in a card, and the short ones on a button."""
    context = new_context(browser, viewport=PHONE)
    tab = context.new_page()
    tab.goto(f"{service.survey_page(shapes())}?lang={language}")
    tab.wait_for_selector("form")
    tab.evaluate("() => document.querySelectorAll('details').forEach((one) => (one.open = true))")
    assert tab.evaluate(OVERFLOWS) == []
    entries = catalogue(language).entries
    every = [text for entry in entries.values() for text in texts(entry)]
    buttons = [
        text for id in entries if id.startswith(("page.", "leave.", "ask.add", "out.")) for text in texts(entries[id])
    ]
    show = """([texts, buttons]) => {
        const made = (name, text) => Object.assign(document.createElement(name), { textContent: text });
        const card = Object.assign(document.createElement("section"), { className: "card" });
        document.querySelector("main").append(card);
        card.append(...texts.map((text) => made("p", text)), ...buttons.map((text) => made("button", text)));
    }"""
    tab.evaluate(show, [every, buttons])
    assert tab.evaluate(OVERFLOWS) == []
    tab.evaluate(show, [["Donaudampfschifffahrts" * 9], []])
    wide = "() => { document.querySelector('main > section.card:last-child p').style.overflowWrap = 'normal'; }"
    tab.evaluate(wide)
    assert tab.evaluate(OVERFLOWS) != [], "the check can fail"
    context.close()


def fill_in(tab: Any, sleep: str) -> None:
    """Answers to the translated survey, by position; what people read is that of the language."""
    for name in ("q-smoke", "q-drink"):
        tab.locator(f"input[name={name}]").nth(1).check()
    tab.locator("input[name=q-sleep]").fill(sleep)
    tab.locator("input[name=q-apps]").nth(2).check()
    tab.locator("input[name=q-rating]").nth(1).check()
    tab.locator("[data-question=rating] input.number:enabled").fill("4")
    tab.locator("[data-question=you] input.number").fill("44")
    tab.locator("[data-question=you] input[type=radio]").nth(1).check()


@pytest.mark.parametrize(("language", "sleep"), [("de", "7,5"), ("ar", "\u0667\u066b\u0665")])
def test_a_translated_survey_is_asked_told_and_sent_in_the_language_of_the_browser(
    own_service: Service, browser: Any, language: str, sleep: str
) -> None:
    survey = translated()
    own_service.publish(survey)
    texts = survey.texts(language)
    context = new_context(browser, locale=language, viewport={"width": 1000, "height": 800})
    tab = context.new_page()
    tab.goto(own_service.survey_page(survey))
    tab.wait_for_selector("form")
    assert tab.title() == texts["name"]
    assert tab.locator("h1").inner_text() == texts["name"]
    asked = [one.inner_text() for one in tab.locator("form > fieldset > legend bdi").all()]
    assert asked == [texts["questions"][question.id]["text"] for question in survey]
    fill_in(tab, sleep)
    tab.click("form button.quiet")
    tab.wait_for_selector("ol.steps")
    shown = " ".join(tab.evaluate(READ).split())
    assert english_in(shown, catalogue(language).entries) == set()
    left = [text for _, text in positions(survey.texts()) if len(text) > 3 and text in shown]
    assert left == [], "every text of the survey is translated"
    assert all(text in shown for text in texts["questions"]["smoke"]["answers"])
    tab.click("form button[type=submit]")
    tab.wait_for_selector(".card.fine")
    assert own_service.count(survey) == 1
    context.close()


def test_a_survey_keeps_its_answers_when_the_language_is_switched(service: Service, open_tab: Open) -> None:
    survey = replace(translated(), name="Habits again")
    service.publish(survey)
    tab = open_tab(service.survey_page(survey))
    tab.wait_for_selector("form")
    assert tab.locator("legend bdi").first.inner_text() == "Do you smoke?"
    fill_in(tab, "7")
    tab.locator(CHOICE).select_option("de")
    expect(tab.locator("legend bdi").first).to_have_text("Rauchen Sie?")
    assert tab.locator("input[name=q-smoke]").nth(1).is_checked()
    assert tab.locator(".choice bdi").nth(1).inner_text() == "nein"
    assert tab.locator("legend bdi").first.get_attribute("lang") == "de"
    tab.click("form button[type=submit]")
    tab.wait_for_selector(".card.fine")
    assert service.count(survey) == 1


def test_the_dashboard_speaks_to_its_operator_whatever_respondents_used(service: Service, browser: Any) -> None:
    survey = replace(translated(), name="Habits of many")
    service.publish(survey)
    bits, n = Simulation(1), 400
    reports = [np.asarray(one.protocol.privatize([ANSWERS[one.id]] * n, bits)) for one in survey]
    ids = bits.words(2 * n).view(np.uint8).reshape(n, 16).copy()
    with open_store(service.store) as store:
        store.add([Batch(survey.fingerprint, current(survey), ids, np.hstack(reports))])
    context = new_context(browser, locale="de-DE")
    board = context.new_page()
    board.goto(service.dashboard(survey))
    german = catalogue("de")
    board.get_by_label(german.say("board.sign.token")).fill(service.analyst)
    board.get_by_role("button", name=german.say("board.sign")).click()
    board.wait_for_selector("[data-question=smoke] .chart")
    assert board.locator("h1").inner_text() == "Gewohnheiten"
    smoke_panel = board.locator("[data-question=smoke]")
    expect(smoke_panel).to_contain_text("Rauchen Sie?")
    expect(smoke_panel).to_contain_text("„ja“")
    expect(board.locator("[data-question='you.home']")).to_contain_text("Stadt")
    expect(board.locator("[data-question=sleep]")).to_contain_text("Stunden")
    context.close()


def test_adding_a_language_is_adding_a_file(browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of the package with one more file of words, which the page then offers and speaks."""
    package = Path(deniable.__file__).parent
    copied = tmp_path / "src" / "deniable"
    shutil.copytree(package, copied, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(web_folder(), tmp_path / "web", symlinks=True, ignore=shutil.ignore_patterns("test"))
    added = dict(catalogue("en").entries) | {"language.name": "Esperanto", "page.send": "Hazardigu kaj sendu"}
    (copied / "words" / "eo.json").write_text(json.dumps(added), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "src"))
    with serving(tmp_path, smoke()) as own:
        context = new_context(browser)
        tab = context.new_page()
        tab.goto(own.survey_page(smoke()))
        tab.wait_for_selector("form")
        choices = {one.get_attribute("value"): one.inner_text() for one in tab.locator(f"{CHOICE} option").all()}
        assert choices == {one: catalogue(one).entries["language.name"] for one in LANGUAGES} | {"eo": "Esperanto"}
        tab.locator(CHOICE).select_option("eo")
        expect(tab.locator("form button[type=submit]")).to_have_text("Hazardigu kaj sendu")
        context.close()
    said = "from deniable.words import LANGUAGES, catalogue; print(LANGUAGES, catalogue('eo').say('page.send'))"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert "'eo'" in done.stdout
    assert "Hazardigu kaj sendu" in done.stdout


def test_arabic_is_read_from_right_to_left(service: Service, browser: Any) -> None:
    """On a phone that prefers Arabic: questions begin at the right edge, and nothing is wider than the screen."""
    question = Question("smoke", "هل تدخن؟", GRR(["نعم", "لا", "I do not know"], epsilon=1))
    survey = Survey("عادات", [question], terms())
    service.publish(survey)
    context = new_context(browser, viewport={"width": 390, "height": 844}, locale="ar-EG")
    tab = context.new_page()
    tab.goto(service.survey_page(survey))
    tab.wait_for_selector("form")
    assert (tab.get_attribute("html", "lang"), tab.get_attribute("html", "dir")) == ("ar", "rtl")
    tab.evaluate("() => document.querySelectorAll('details').forEach((one) => (one.open = true))")
    assert tab.evaluate("() => document.documentElement.scrollWidth") <= 390
    assert tab.evaluate(OVERFLOWS) == []
    gaps = """(selector) => {
        const text = document.querySelector(selector), card = text.closest("fieldset").getBoundingClientRect();
        const own = text.getBoundingClientRect();
        return [own.left - card.left, card.right - own.right];
    }"""
    for selector in ("form legend bdi", "form .choice bdi"):
        left, right = tab.evaluate(gaps, selector)
        assert right < 80 < left, selector
    directions = "(at) => getComputedStyle(document.querySelectorAll('form .choice bdi')[at]).direction"
    assert [tab.evaluate(directions, at) for at in (0, 1, 2)] == ["rtl", "rtl", "ltr"]
    context.close()


def mirrored(entry: Entry) -> Entry:
    if not isinstance(entry, str):
        return {form: str(mirrored(text)) for form, text in entry.items()}
    parts = re.split(r"(\{[^}]*\})", entry)
    letters = [
        part if part.startswith("{") else re.sub(r"[a-z]", lambda m: chr(0x5D0 + ord(m[0]) % 22), part)
        for part in parts
    ]
    return "".join(letters) + " אבג"


def pseudo(tab: Any) -> None:
    """A pseudo-language instead of German: its words in Hebrew letters, longer, and from right to left."""
    kept = {"date", "date.time", "number.group", "number.decimal", "range", "percent", "percent.line", "quoted"}
    kept.add("language.name")
    words = {id: entry if id in kept else mirrored(entry) for id, entry in catalogue("de").entries.items()}
    words["language.direction"] = "rtl"
    tab.route("**/words/de.json", lambda route: route.fulfill(body=json.dumps(words), content_type="application/json"))


def test_a_language_from_right_to_left(service: Service, browser: Any) -> None:
    context = new_context(browser, viewport=PHONE)
    tab = context.new_page()
    pseudo(tab)
    tab.goto(f"{service.survey_page(shapes())}?lang=de")
    tab.wait_for_selector("form")
    assert tab.get_attribute("html", "dir") == "rtl"
    tab.evaluate("() => document.querySelectorAll('details').forEach((one) => (one.open = true))")
    assert tab.evaluate(OVERFLOWS) == []
    lock, choice = tab.locator(".lock").bounding_box(), tab.locator(CHOICE).bounding_box()
    assert lock["x"] > PHONE["width"] / 2 > choice["x"], "lines begin on the right"
    starts = "() => getComputedStyle(document.querySelector('.facts dt')).textAlign"
    assert tab.evaluate(starts) in ("start", "right")
    assert tab.evaluate("() => getComputedStyle(document.querySelector('code')).direction") == "ltr"
    context.close()
