"""The survey page speaks the language of its reader: chosen, asked for or preferred; and it fits on a small screen."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from playwright.sync_api import expect

from deniable.surveys.promises import promises
from deniable.words import LANGUAGES, Entry, catalogue
from tests.web.pages.browser import new_context
from tests.web.pages.service import Service
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
    tab.click("form button.second")
    tab.wait_for_selector("ol.steps")
    seen += tab.evaluate(READ)
    tab.click("form button[type=submit]")
    tab.wait_for_selector(".card.fine")
    tab.locator("button.danger:visible").click()
    tab.wait_for_selector("dialog[open]")
    return seen + str(tab.evaluate(READ))


@pytest.mark.parametrize("made", [smoke, often, staged, shapes])
def test_no_english_sentence_is_left_in_german(service: Service, open_tab: Open, made: Callable[[str], Any]) -> None:
    survey = made(f"auf Deutsch, {made.__name__}")
    service.publish(survey)
    tab = open_tab(f"{service.survey_page(survey)}?lang=de")
    shown = looked_at(tab)
    assert english_in(shown, catalogue("de").entries) == set()
    told = " ".join(shown.replace("\u00a0", " ").split())
    for name, sentence in promises(survey, "browser", lasting=False, language="de").items():
        assert sentence in told or name == "often", name
    assert "Ihre Meldung ist gezählt" in tab.inner_text("main")


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
    expect(tab.locator("form button[type=submit]")).to_have_text("Zufällig verändern und senden")
    assert tab.get_attribute("html", "lang") == "de"
    assert tab.url.endswith("?lang=de"), "the choice stays when the page is loaded again"
    assert tab.locator("form input[type=radio]").nth(1).is_checked()
    assert tab.locator("form input.number").input_value() == "33"
    assert tab.locator("nav a").first.inner_text() == "Dashboard"
    assert tab.locator(".mark").inner_text() == "Umfragen"
    expect(tab.locator(CHOICE)).to_be_focused()
    tab.reload()
    expect(tab.locator("form button[type=submit]")).to_have_text("Zufällig verändern und senden")
    tab.locator(CHOICE).select_option("en")
    expect(tab.locator("form button[type=submit]")).to_have_text("Randomize and send")


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
    side = "(name) => parseFloat(getComputedStyle(document.querySelector('.promise'))[name])"
    assert tab.evaluate(side, "borderRightWidth") > tab.evaluate(side, "borderLeftWidth"), (
        "the mark is where lines begin"
    )
    mark = tab.locator(".top .mark").bounding_box()
    assert mark["x"] + mark["width"] > PHONE["width"] - 20, "the name of the site begins on the right"
    starts = "() => getComputedStyle(document.querySelector('.facts dt')).textAlign"
    assert tab.evaluate(starts) in ("start", "right")
    assert tab.evaluate("() => getComputedStyle(document.querySelector('code')).direction") == "ltr"
    context.close()
