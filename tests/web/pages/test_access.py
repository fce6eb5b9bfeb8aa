"""Everybody can use the pages: axe-core finds nothing serious, and a keyboard is enough."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from deniable.audit.verdict import audit
from deniable.collect.server.pages import AUDIT_SECONDS
from deniable.protocols import GRR, Stratified
from deniable.surveys import Question, Survey
from deniable.surveys.audit_report import report_html, reviewed
from deniable.surveys.terms import Longitudinal
from tests.collect.server.live import eventually
from tests.collect.surveys import current, terms
from tests.web.pages.browser import missing, new_context
from tests.web.pages.service import Service
from tests.web.pages.surveys import every, often, shapes, smoke, ten
from tests.web.pages.test_dashboard import opened, sign_in
from tests.web.pages.test_survey_page import COUNTED

Open = Callable[[str], Any]
AXE = "axe-core@4.10.3"
CACHE = Path(__file__).parents[3] / ".npm-cache"


@pytest.fixture(scope="module")
def axe() -> str:
    """The text of axe-core, fetched once and kept beside the repository's other caches."""
    file = CACHE / "node_modules" / "axe-core" / "axe.min.js"
    if not file.exists():
        npm = shutil.which("npm")
        if npm is None:
            missing("npm")
        install = [npm, "install", "--prefix", str(CACHE), "--no-save", "--no-audit", "--no-fund", AXE]
        done = subprocess.run(install, capture_output=True, text=True, timeout=120)
        if done.returncode:
            if os.environ.get("CI") == "true":
                pytest.fail(f"axe-core cannot be fetched: {done.stderr}")
            pytest.skip("axe-core cannot be fetched from here")
    return file.read_text(encoding="utf-8")


RULES = {"light": None, "dark": ["color-contrast"]}
"""Colours are all that differs in the dark; None is every rule."""


def serious(tab: Any, axe: str, rules: list[str] | None = None) -> list[str]:
    """What axe-core finds, as one line per violation."""
    tab.evaluate(axe)
    # Of rules that pass it need not list every element; and nothing is read but what the page has loaded.
    only = "({ resultTypes: ['violations'], selectors: false, preload: false, ...(rules ? { runOnly: rules } : {}) })"
    found = tab.evaluate(f"rules => axe.run(document, {only})", rules)
    bad = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
    return [f"{one['id']}: {one['help']}: {[node['html'][:120] for node in one['nodes'][:3]]}" for one in bad]


def test_axe_finds_nothing_serious_from_right_to_left(service: Service, browser: Any, axe: str) -> None:
    context = new_context(browser, locale="ar-EG", reduced_motion="reduce")
    tab = context.new_page()
    tab.goto(service.survey_page(shapes()))
    tab.wait_for_selector("form")
    tab.evaluate("() => document.querySelectorAll('details').forEach((one) => (one.open = true))")
    found = {"form": serious(tab, axe)}
    tab.click("form button[type=submit]")
    found["complaints"] = serious(tab, axe)
    assert tab.get_attribute("html", "dir") == "rtl"
    assert {page: faults for page, faults in found.items() if faults} == {}
    context.close()


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_axe_finds_nothing_serious(service: Service, browser: Any, axe: str, scheme: str) -> None:
    survey = ten(f"axe {scheme}")
    service.publish(survey)
    for epoch in (current(survey) - 1, current(survey)):
        service.fill(survey, epoch, 300)
    context = new_context(browser, color_scheme=scheme, reduced_motion="reduce")
    tab = context.new_page()
    found, rules = {}, RULES[scheme]
    tab.goto(f"{service.address}/")
    found["front page"] = serious(tab, axe, rules)
    tab.goto(service.survey_page(survey))
    tab.get_by_label("rye", exact=True).check()
    for title in ("Terms and fingerprint", "How much can still be guessed?", "The worst case"):
        tab.locator("summary", has_text=title).click()
    tab.click("text=Show me what leaves")
    found["survey, life"] = serious(tab, axe, rules)
    tab.click("form >> text=Scramble and send")
    tab.wait_for_selector(COUNTED)
    tab.click("summary >> text=The 26 bytes")
    found["survey, sent"] = serious(tab, axe, rules)
    tab.goto(service.survey_page(shapes()))
    tab.fill("[role=combobox]", "month")
    found["survey, controls"] = serious(tab, axe, rules)
    tab.click("form >> text=Scramble and send")
    found["survey, complaints"] = serious(tab, axe, rules)
    tab.goto(f"{service.address}/s/{'0' * 64}")
    tab.wait_for_selector("[role=alert]")
    found["survey, refused"] = serious(tab, axe, rules)
    tab.goto(f"{service.address}/plan")
    tab.wait_for_selector(".lines")
    found["planner"] = serious(tab, axe, rules)
    tab.goto(service.dashboard(survey))
    found["sign in"] = serious(tab, axe, rules)
    sign_in(tab, service)
    tab.wait_for_selector(".chart")
    tab.evaluate("document.querySelectorAll('main details:not(.menu)').forEach((one) => (one.open = true))")
    tab.get_by_role("button", name="Compare").click()
    tab.wait_for_selector("[data-compare]")
    for name in ("Table", "If some reports were fake", "command", "Method", "Over time"):
        opened(tab, name)
        found[f"dashboard, {name}"] = serious(tab, axe, rules)
    tab.wait_for_selector(".uplot canvas")
    for place, name in enumerate(("period", "method")):
        tab.locator(".menu > summary").nth(place).click()
        found[f"dashboard, {name}"] = serious(tab, axe, rules)
    context.close()
    assert {page: bad for page, bad in found.items() if bad} == {}


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_axe_finds_nothing_serious_in_audits(browser: Any, axe: str, scheme: str) -> None:
    """In a narrow window, where tables and specifications are scrolled."""
    asked = Survey("axe", [Question("smoke", "Do you smoke?", GRR(["yes", "no"], epsilon=1))], terms())
    clear = Stratified({"sex": ["f", "m"]}, GRR(["yes", "no"], epsilon=1))
    strata = Survey("axe", [Question("smoke", "Do you smoke?", clear)], terms())
    found = {}
    for width in (360, 1280):
        context = new_context(browser, color_scheme=scheme, viewport={"width": width, "height": 700})
        tab = context.new_page()
        for name, survey in (("a question", asked), ("strata", strata)):
            judged = audit(survey, samples=500, seed=1)
            tab.set_content(report_html(reviewed(survey, judged, "1", 1, [Fraction(1)]), "Made here."))
            found[f"{name}, {width}"] = serious(tab, axe, RULES[scheme])
        context.close()
    assert {page: bad for page, bad in found.items() if bad} == {}


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_any_state(service: Service, browser: Any, axe: str, scheme: str) -> None:
    context = new_context(browser, color_scheme=scheme, reduced_motion="reduce", viewport={"width": 700, "height": 900})
    tab = context.new_page()
    found: dict[str, list[str]] = {}
    unfold = "document.querySelectorAll('main details').forEach((one) => (one.open = true))"

    def look(state: str) -> None:
        tab.evaluate(unfold)
        found[state] = serious(tab, axe, RULES[scheme])

    tab.goto(f"{service.address}/nothing/here")
    look("no page")
    surveys = [*every(), smoke(f"axe few {scheme}", min_reports=50), often(f"axe often {scheme}")]
    for survey in surveys[-2:]:
        service.publish(survey)
    for survey in surveys:
        tab.goto(service.survey_page(survey))
        tab.wait_for_selector("form")
        look(f"{survey.name}: asked")
    tab.goto(f"{service.address}/plan")
    tab.wait_for_selector(".lines")
    choices = tab.get_by_label("An answer is").locator("option")
    for value in choices.evaluate_all("(all) => all.map((one) => one.value)"):
        tab.get_by_label("An answer is").select_option(value)
        look(f"planner: {value}")
    for question in ("How many people do I need?", "Which epsilon do I need?"):
        tab.get_by_label(question).check()
        look(f"planner: {question}")
    tab.get_by_label("How exact will it be?").check()
    tab.get_by_label("Epsilon", exact=True).fill("a lot")
    tab.wait_for_selector("[role=alert], [aria-invalid=true]")
    look("planner: refused")
    tab.goto(f"{service.address}/dashboard")
    sign_in(tab, service, "wrong")
    tab.wait_for_selector("[role=alert]")
    look("dashboard: wrong token")
    sign_in(tab, service)
    tab.wait_for_selector("main a[href*=dashboard]")
    look("dashboard: all surveys")
    for survey in surveys:
        tab.goto(service.dashboard(survey))
        sign_in(tab, service)
        tab.wait_for_selector("main h2")
        look(f"{survey.name}: dashboard")
    eventually(lambda: tab.goto(f"{service.address}/audit/{surveys[-1].fingerprint}").status == 200, AUDIT_SECONDS)
    look("audit")
    context.close()
    assert {page: bad for page, bad in found.items() if bad} == {}


def test_nothing_is_wider_than_a_phone(service: Service, open_tab: Open) -> None:
    """Words that no line can hold are broken, wherever they stand."""
    word = "Donaudampfschifffahrtsgesellschaftskapitaensmuetzenabzeichenverleihungsurkunde"
    question = Question("word", f"Do you have a {word}?", GRR([word, "no"], epsilon=8))
    survey = Survey(f"On the {word}", [question], terms(longitudinal=Longitudinal(epochs=2)))
    service.publish(survey)
    service.fill(survey, current(survey), 300)
    tab = open_tab(f"{service.address}/")
    tab.set_viewport_size({"width": 390, "height": 800})
    excess = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    found = {"front page": tab.evaluate(excess)}
    tab.goto(service.survey_page(survey))
    tab.get_by_label("no", exact=True).check()
    tab.click("text=Show me what leaves")
    found["survey"] = tab.evaluate(excess)
    tab.goto(f"{service.address}/plan")
    tab.wait_for_selector(".lines")
    found["planner"] = tab.evaluate(excess)
    tab.goto(service.dashboard(survey))
    sign_in(tab, service)
    tab.wait_for_selector(".chart")
    found["dashboard"] = tab.evaluate(excess)
    assert found == dict.fromkeys(found, 0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_builder_and_public_results_are_for_everybody(
    service: Service, browser: Any, axe: str, scheme: str, tmp_path: Path
) -> None:
    """Nothing serious for axe, and nothing wider than a phone, with long words in every text."""
    word = "Donaudampfschifffahrtsgesellschaftskapitaensmuetzenabzeichenverleihungsurkunde"
    answers: list[Any] = [[word, "no"], {"number": {"low": 0, "high": 24, "unit": word}, "read": "mean"}, "text"]
    answers += [
        {"record": {"a": ["x", word], "b": ["y", "z"]}},
        {"places": {"columns": 3, "rows": 2}, "read": "rectangles"},
    ]
    questions = [{"id": f"q{i}", "text": f"{word} {i}?", "answers": one} for i, one in enumerate(answers)]
    draft = {"name": f"{word} {scheme}", "owner": word, "purpose": word, "days": 3, "people": 900, "epsilon": 1}
    (tmp_path / "draft.json").write_text(json.dumps(draft | {"questions": questions, "results": "public"}))
    context = new_context(browser, color_scheme=scheme, viewport={"width": 390, "height": 800}, reduced_motion="reduce")
    tab = context.new_page()
    excess = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    found, wide = {}, {}

    def look(page: str) -> None:
        found[page], wide[page] = serious(tab, axe, RULES[scheme]), tab.evaluate(excess)

    tab.goto(f"{service.address}/new")
    tab.get_by_role("button", name="Yes or no").click()
    look("builder, begun")
    tab.locator("input[type=file]").set_input_files(tmp_path / "draft.json")
    tab.locator("section.promise").wait_for()
    tab.evaluate("document.querySelectorAll('main details').forEach((one) => (one.open = true))")
    tab.frame_locator("iframe").locator("h1").wait_for()
    look("builder, filled")
    tab.get_by_label("Administrator's token").fill(service.admin)
    tab.get_by_role("button", name="Publish now").click()
    tab.locator("svg.qr").wait_for()
    look("published")
    tab.get_by_role("link", name="Results for everybody").click()
    tab.locator("main h1").wait_for()
    look("results, none")
    survey = replace(ten(f"axe results {scheme}"), terms=replace(terms(late=10), results="public"))
    service.publish(survey)
    service.fill(survey, current(survey), 300)
    tab.goto(f"{service.address}/r/{survey.fingerprint}")
    tab.locator(".chart").wait_for()
    tab.evaluate("document.querySelectorAll('main details').forEach((one) => (one.open = true))")
    look("results")
    context.close()
    assert {page: bad for page, bad in found.items() if bad} == {}
    assert wide == dict.fromkeys(wide, 0)


def test_axe_would_find_something(service: Service, open_tab: Open, axe: str) -> None:
    tab = open_tab(f"{service.address}/plan")
    tab.wait_for_selector(".lines")
    tab.evaluate("document.querySelector('main label').remove(), document.querySelector('input[type=number]').id = ''")
    assert any("label" in one for one in serious(tab, axe))


def focus(tab: Any) -> str:
    return str(tab.evaluate("(document.activeElement.innerText || document.activeElement.type || '').slice(0, 40)"))


def until(tab: Any, wanted: str, key: str = "Tab", most: int = 60) -> None:
    """Press a key until what has the focus is this."""
    for _ in range(most):
        if wanted in focus(tab):
            return
        tab.keyboard.press(key)
    raise AssertionError(f"{wanted!r} cannot be reached; the focus is at {focus(tab)!r}")


def test_a_survey_is_answered_by_keyboard_alone(service: Service, open_tab: Open) -> None:
    survey = ten("keys")
    service.publish(survey)
    tab = open_tab(service.survey_page(survey))
    tab.wait_for_selector("form")
    until(tab, "radio")
    tab.keyboard.press("Space")
    tab.keyboard.press("ArrowDown")
    assert tab.get_by_label("sourdough", exact=True).is_checked()
    until(tab, "Show me what leaves")
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.getAttribute('aria-label')") == "Life of a report"
    tab.keyboard.press("Tab")
    until(tab, "Scramble and send")
    tab.keyboard.press("Enter")
    tab.wait_for_selector(COUNTED)
    until(tab, "Leave")
    tab.keyboard.press("Enter")
    until(tab, "Withdraw…")
    tab.keyboard.press("Enter")
    until(tab, "Keep taking part")
    tab.keyboard.press("Enter")
    until(tab, "Opt out", "Shift+Tab")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("text=You have opted out")


def test_a_search_and_a_number_are_answered_by_keyboard_alone(service: Service, open_tab: Open) -> None:
    tab = open_tab(service.survey_page(shapes()))
    tab.wait_for_selector("form")
    until(tab, "radio")
    tab.keyboard.press("Space")
    tab.keyboard.press("Tab")
    tab.keyboard.type("13")
    tab.keyboard.press("ArrowDown")
    assert tab.get_attribute("[role=combobox]", "aria-activedescendant")
    tab.keyboard.press("Enter")
    tab.keyboard.press("Tab")
    tab.keyboard.type("40")
    tab.keyboard.press("Tab")
    tab.keyboard.type("perhaps")
    tab.keyboard.press("Enter")
    tab.wait_for_selector(COUNTED)


def test_the_dashboard_and_the_planner_are_used_by_keyboard_alone(service: Service, open_tab: Open) -> None:
    survey = ten("keys of analysts")
    service.publish(survey)
    service.fill(survey, current(survey), 300)
    tab = open_tab(f"{service.address}/dashboard")
    expect(tab.locator("main input")).to_be_focused()  # the page may still be loading its words
    tab.keyboard.type(service.analyst)
    tab.keyboard.press("Enter")
    tab.wait_for_selector("text=keys of analysts")
    expect(tab.locator("h1", has_text="Dashboard")).to_be_focused()
    until(tab, "keys of analysts")
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".chart")
    expect(tab.locator("h1", has_text="keys of analysts")).to_be_focused()
    until(tab, "If some reports")
    tab.keyboard.press("Enter")
    until(tab, "range")
    for _ in range(30):
        tab.keyboard.press("ArrowRight")
    tab.wait_for_selector(".chart .fakes", state="attached")
    until(tab, "Over time", "Shift+Tab")
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".uplot canvas")
    tab.goto(f"{service.address}/plan")
    tab.wait_for_selector(".lines")
    until(tab, "radio")
    tab.keyboard.press("ArrowDown")
    tab.wait_for_selector("text=--within 0.01")
