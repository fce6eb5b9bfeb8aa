"""The form of the survey page: on a phone, with numbers of every language, page by page, kept over a reload."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from deniable.domains import Integers, Interval
from deniable.protocols import GRR, OLH, Attributes, OneBitMean
from deniable.surveys import Question, Survey
from deniable.words import LANGUAGES, catalogue
from tests.collect.surveys import terms
from tests.web.pages.browser import Log, new_context
from tests.web.pages.service import Service
from tests.web.pages.surveys import smoke
from tests.web.pages.test_network import elsewhere  # noqa: F401  # a fixture
from tests.web.pages.test_survey_page import lives

Open = Callable[[str], Any]
PHONE = {"width": 390, "height": 844}
SEND = "form button[type=submit]"

BEFORE = """() => {
    const first = document.querySelector("form fieldset");
    const before = (node) => first.compareDocumentPosition(node) & Node.DOCUMENT_POSITION_PRECEDING;
    const shown = [...document.querySelectorAll("body *")].filter((one) => before(one) && one.checkVisibility());
    const isText = ({ nodeType }) => nodeType === Node.TEXT_NODE;
    const own = (one) => [...one.childNodes].filter(isText).map((node) => node.data).join(" ");
    const texts = shown.filter((one) => !one.closest("select, noscript, script, style")).map(own);
    const stops = shown.filter((one) => one.matches("a[href], button, input, select, summary, [tabindex='0']"));
    const words = texts.join(" ").split(/\\s+/).filter((word) => /[\\p{L}\\p{N}]/u.test(word));
    return [first.getBoundingClientRect().top + scrollY, words.length, stops.length];
}"""


def test_the_first_question_of_every_kind_is_in_sight_on_a_phone(service: Service, browser: Any) -> None:
    context = new_context(browser, viewport=PHONE)
    tab, found = context.new_page(), {}
    for survey in lives(together=1):
        service.publish(survey)
        tab.goto(service.survey_page(survey))
        tab.wait_for_selector("form")
        found[survey.name] = tab.evaluate(BEFORE)
        assert tab.locator("nav").count() == 0, "nothing of the operator"
    context.close()
    far = {name: at for name, at in found.items() if at[0] > 450 or at[1] > 60 or at[2] > 3}
    assert far == {}
    assert len(found) > 30
    assert min(words for _, words, _ in found.values()) > 20, "they were counted"


def numbers(name: str) -> Survey:
    """A number with decimals, and a whole one."""
    questions = [
        Question("hours", "How many hours do you work?", OneBitMean(Interval(0, 60, unit="h"), epsilon=1)),
        Question("age", "How old are you?", OLH(Integers(18, 99), epsilon=1)),
    ]
    return Survey(name, questions, terms())


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_number_is_never_sent_otherwise_than_it_was_written(
    service: Service, open_tab: Open, log: Log, language: str
) -> None:
    """The separator of another language, nothing, and what lies outside of the range: a notice, and no request."""
    survey, sign = numbers(f"numbers, {language}"), catalogue(language).entries["number.decimal"]
    service.publish(survey)
    tab = open_tab(f"{service.survey_page(survey)}?lang={language}")
    hours, age = (tab.locator(f"[data-question={id}]") for id in ("hours", "age"))
    expect(tab.locator("form")).to_be_visible()
    tab.click(SEND)
    for asked in (hours, age):
        expect(asked.locator(".error")).not_to_be_empty()
        expect(asked.locator(".note").first).to_contain_text("60" if asked is hours else "99")
    assert hours.locator("input[type=range]").evaluate("slider => slider.classList.contains('idle')"), "no start"
    age.locator("input").fill("40")
    foreign = "38.5" if sign == "," else "38,5"
    for wrong in (foreign, "3 8", "1e3", "x", ""):
        hours.locator("input.number").fill(wrong)
        tab.click(SEND)
        expect(hours.locator(".error"), wrong).not_to_be_empty()
    hours.locator("input.number").fill("70")
    expect(hours.locator(".counted")).to_contain_text("60")
    for wrong in ("17", "100", f"40{sign}5", "-3"):
        age.locator("input").fill(wrong)
        tab.click(SEND)
        expect(age.locator(".error"), wrong).to_contain_text("99")
    assert log.posts == []
    hours.locator("input.number").fill(f"38{sign}5")
    expect(hours.locator(".counted")).to_be_empty()
    age.locator("input").fill("40")
    tab.click(SEND)
    tab.wait_for_selector(".card.fine")
    assert len(log.posts) == 1


def paged(name: str) -> Survey:
    """A question, and a record of two parts: three steps."""
    record = Attributes.of({"smoke": GRR(["yes", "no"], 1), "age": OLH(Integers(18, 99), 1)})
    questions = [Question("mood", "How are you?", GRR(["good", "bad"], 1)), Question("both", "And you?", record)]
    return Survey(name, questions, terms())


def test_one_question_at_a_time_on_a_phone(service: Service, browser: Any) -> None:
    survey = paged("paged")
    service.publish(survey)
    context = new_context(browser, viewport=PHONE)
    tab = context.new_page()
    tab.goto(service.survey_page(survey))
    visible = tab.locator("form input:visible:not([data-draft])")
    expect(tab.locator("form")).to_contain_text("Step 1 of 3")
    expect(visible).to_have_count(2)
    expect(tab.locator(SEND)).to_be_hidden()
    tab.click("text=Next")
    expect(tab.locator("[data-question=mood] .error")).to_contain_text("Please answer")
    tab.get_by_label("good").check()
    tab.click("text=Next")
    expect(tab.locator("form")).to_contain_text("Step 2 of 3")
    tab.get_by_label("yes", exact=True).check()
    tab.click("text=Next")
    expect(visible).to_have_count(1)
    visible.fill("40")
    tab.click("text=Back")
    expect(tab.get_by_label("yes", exact=True)).to_be_checked()
    tab.click("text=Next")
    visible.fill("17")
    tab.click(SEND)
    expect(tab.locator("form .error:visible").first).to_contain_text("from 18 to 99")
    visible.fill("40")
    visible.press("Enter")
    tab.wait_for_selector("text=your report is counted")
    assert service.count(survey) == 1
    context.close()


def test_what_was_filled_in_survives_a_reload_only_if_that_is_wanted(service: Service, open_tab: Open) -> None:
    survey = numbers("kept")
    service.publish(survey)
    tab = open_tab(service.survey_page(survey))
    age, box = tab.get_by_label("How old are you?"), tab.locator("[data-draft]")
    kept = "() => Object.keys(sessionStorage).length + Object.keys(localStorage).length"
    age.fill("41")
    assert tab.evaluate(kept) == 0, "nothing is kept unless it is chosen"
    tab.reload()
    expect(age).to_have_value("")
    expect(tab.locator(".draft")).to_contain_text("a day at most")
    box.check()
    age.fill("42")
    tab.reload()
    expect(age).to_have_value("42")
    expect(box).to_be_checked()
    expect(tab.locator(".draft")).to_contain_text("Nothing of it was sent")
    tab.evaluate("""() => {
        const [key] = Object.keys(sessionStorage);
        const draft = JSON.parse(sessionStorage[key]);
        sessionStorage[key] = JSON.stringify({ ...draft, until: draft.until - 86400001 });
    }""")
    tab.reload()
    expect(box).not_to_be_checked()
    expect(age).to_have_value("")
    assert tab.evaluate(kept) == 0, "a day at most"
    box.check()
    age.fill("43")
    assert tab.evaluate(kept) == 1
    box.uncheck()
    assert tab.evaluate(kept) == 0
    box.check()
    tab.locator("[data-question=hours] input.number").fill("38")
    tab.click(SEND)
    tab.wait_for_selector("text=your report is counted")
    assert tab.evaluate(kept) == 0, "until it is sent"


def test_an_embedded_survey_tells_the_page_and_follows_its_attributes(
    service: Service,
    elsewhere: str,  # noqa: F811
    open_tab: Open,
) -> None:
    """Events without answers; another fingerprint, language and size by attributes."""
    first, second = smoke("embedded, first"), numbers("embedded, second")
    for survey in (smoke("embedded"), first, second):
        service.publish(survey)
    tab = open_tab(f"{elsewhere}/")
    tab.locator("deniable-survey form").wait_for()
    tab.evaluate(
        """(fingerprint) => {
            window.heard = [];
            const survey = document.createElement("deniable-survey");
            for (const name of ["ready", "sent", "refused"]) {
                survey.addEventListener(name, ({ detail }) => window.heard.push([name, detail]));
            }
            survey.setAttribute("fingerprint", fingerprint);
            document.querySelector("deniable-survey").replaceWith(survey);
        }""",
        first.fingerprint,
    )
    survey = tab.locator("deniable-survey")
    survey.get_by_label("yes", exact=True).check()
    survey.locator(SEND).click()
    survey.locator(".card.fine").wait_for()
    heard = tab.evaluate("window.heard")
    assert [name for name, _ in heard] == ["ready", "sent"]
    assert heard[1][1].keys() == {"fingerprint", "epoch", "fresh"}
    assert heard[1][1]["fingerprint"] == first.fingerprint
    survey.evaluate(
        """(one, to) => {
            one.setAttribute("fingerprint", to);
            one.setAttribute("lang", "de");
            one.toggleAttribute("compact");
        }""",
        second.fingerprint,
    )
    expect(survey.locator(SEND)).to_have_text("Verwürfeln und senden")
    expect(survey.locator("h1")).to_have_count(0)
    survey.evaluate("one => one.setAttribute('paged', '')")
    expect(survey.locator("form")).to_contain_text("Schritt 1 von 2")
    survey.evaluate("one => one.setAttribute('fingerprint', '0'.repeat(64))")
    survey.locator("[role=alert]").wait_for()
    assert [name for name, _ in tab.evaluate("window.heard")][-1] == "refused"
