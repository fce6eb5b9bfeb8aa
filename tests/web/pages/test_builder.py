"""The survey builder in a browser: from templates to a published survey, and the whole way of a newcomer."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from deniable.surveys import Survey
from tests.web.pages.browser import Log, new_context
from tests.web.pages.service import Service
from tests.web.pages.surveys import smoke

Open = Callable[[str], Any]

TEMPLATES: dict[str, Any] = {
    "Yes or no": ["yes", "no"],
    "One of a list": ["tea", "coffee", "water"],
    "Several of a list": {"multiple": ["mail", "maps", "music"], "at_most": 2},
    "A number": {"number": {"low": 0, "high": 24, "unit": "hours"}, "read": "mean"},
    "A rating": {"low": 1, "high": 5},
    "A text": {"discover": {"bytes": 12}},
    "A place": {"places": {"columns": 8, "rows": 6, "cell": "1 km"}, "read": "rectangles"},
    "Several parts": {"record": {"smoke": ["yes", "no"], "sleep": {"number": {"low": 0, "high": 24, "unit": "hours"}}}},
}
LINES = {
    "One of a list": ("Answers", "tea\ncoffee\n\n water "),
    "Several of a list": ("Answers", "mail\nmaps\nmusic"),
    "Several parts": ("Parts", "smoke: yes, no\nsleep: 0..24 hours"),
}


def describe(tab: Any, name: str = "Habits") -> None:
    tab.get_by_label("Name", exact=True).fill(name)
    tab.get_by_label("Who asks", exact=True).fill("City Health Institute")
    tab.get_by_label("Why", exact=True).fill("To plan help where it is needed")


def add(tab: Any, template: str, text: str) -> Any:
    tab.get_by_role("button", name=template, exact=True).click()
    card = tab.locator(".questions > section").last
    card.get_by_label("Question", exact=True).fill(text)
    if template in LINES:
        label, lines = LINES[template]
        card.get_by_label(label, exact=True).fill(lines)
    return card


def saved(tab: Any) -> Any:
    with tab.expect_download() as caught:
        tab.get_by_role("button", name="Save the draft").click()
    return json.loads(Path(caught.value.path()).read_text(encoding="utf-8"))


def publish(tab: Any, service: Service) -> Survey:
    tab.get_by_label("Administrator's token").fill(service.admin)
    tab.get_by_role("button", name="Publish now").click()
    address = tab.locator("main a").first
    expect(address).to_contain_text("/s/")
    fingerprint = address.inner_text().rpartition("/")[2]
    with urllib.request.urlopen(f"{service.address}/v1/surveys/{fingerprint}", timeout=90) as reply:
        survey = Survey.from_spec(json.load(reply))
    assert survey.fingerprint == fingerprint
    return survey


def test_every_template_writes_the_grammar_of_drafts(service: Service, open_tab: Open) -> None:
    tab = open_tab(f"{service.address}/new")
    expect(tab.locator("aside [role=status]").first).to_contain_text(
        "Still missing: a name, who asks, why and a question."
    )
    describe(tab)
    for place, template in enumerate(TEMPLATES, 1):
        add(tab, template, f"Question number {place}?")
    for place in range(len(TEMPLATES)):
        expect(tab.locator(".questions .expected").nth(place)).to_contain_text("Expected: ±")
    draft = saved(tab)
    assert [one["answers"] for one in draft["questions"]] == list(TEMPLATES.values())
    assert [one["text"] for one in draft["questions"]] == [f"Question number {place}?" for place in range(1, 9)]
    made = Survey.from_draft(draft)
    assert made.terms is not None
    assert made.terms.owner == "City Health Institute"
    expect(tab.locator("section.promise")).to_be_visible()


def test_the_precision_follows_people_and_epsilon(service: Service, open_tab: Open) -> None:
    tab = open_tab(f"{service.address}/new")
    describe(tab)
    add(tab, "Yes or no", "Do you smoke?")
    shown = tab.locator(".questions .expected")
    draft = {"name": "Habits", "owner": "o", "purpose": "p", "days": 30, "people": 1000, "epsilon": "1"}
    draft["questions"] = [{"id": "smoke", "text": "Do you smoke?", "answers": ["yes", "no"]}]
    for changes in ({}, {"people": 40000}, {"epsilon": "0,5"}, {"epsilon": "1/2"}):
        for key, value in changes.items():
            tab.get_by_label(key.capitalize(), exact=True).fill(str(value))
        draft |= {key: 0.5 if value == "0,5" else value for key, value in changes.items()}
        request = urllib.request.Request(
            f"{service.address}/v1/drafts", json.dumps(draft).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=90) as reply:
            (figure,) = json.load(reply)["expected"]
        digits = 2 if figure["half_width"] < 0.01 else 1
        wanted = (
            f"± {100 * figure['half_width']:.{digits}f}\u00a0% with {figure['people']:,} people ({figure['protocol']})"
        )
        expect(shown).to_contain_text(wanted)


def test_what_is_wrong_is_said_and_cannot_be_published(service: Service, open_tab: Open) -> None:
    tab = open_tab(f"{service.address}/new")
    describe(tab)
    card = add(tab, "One of a list", "Which drink?")
    expect(tab.get_by_role("button", name="Publish now")).to_be_visible()
    card.get_by_label("Answers").fill("tea")
    expect(tab.locator("aside [role=status]").first).to_contain_text("which-drink")
    expect(tab.get_by_role("button", name="Publish now")).to_have_count(0)
    assert tab.locator("section.promise").count() == 0
    card.get_by_label("Answers").fill("tea\ncoffee")
    tab.get_by_role("button", name="Publish now").wait_for()
    tab.get_by_label("Administrator's token").fill(service.analyst)
    tab.get_by_role("button", name="Publish now").click()
    expect(tab.locator("form [role=alert]")).to_contain_text("admin")


def test_a_draft_of_the_command_line_is_opened_and_saved_as_it_is(
    service: Service, open_tab: Open, tmp_path: Path
) -> None:
    questions = [
        {"id": "age", "text": "How old are you?", "answers": {"low": 18, "high": 99, "read": "ranges"}, "epsilon": "2"},
        {"id": "stars", "text": "Stars?", "answers": {"keys": ["mail", "maps"], "low": 1, "high": 5, "at_most": 1}},
        {"id": "drink", "text": "Drink?", "answers": ["tea", "coffee"], "other": "else"},
    ]
    draft = {
        "name": "n",
        "owner": "o",
        "purpose": "p",
        "days": 7,
        "people": 900,
        "epsilon": "1",
        "questions": questions,
    }
    draft |= {"longitudinal": {"rule": "none", "epochs": 2}, "epochs": {"days": 1}, "min_reports": 70}
    file = tmp_path / "draft.json"
    file.write_text(json.dumps(draft), encoding="utf-8")
    tab = open_tab(f"{service.address}/new")
    tab.locator("input[type=file]").set_input_files(file)
    expect(tab.locator("aside [role=status]").first).to_contain_text("from 70 answers on")
    headings = tab.locator(".questions h2").all_inner_texts()
    assert headings == ["1. A rating", "2. Answers in JSON", "3. One of a list"]
    assert saved(tab) == draft
    tab.locator(".questions > section").nth(2).get_by_label("Question", exact=True).fill("Which drink?")
    tab.locator(".questions > section").nth(2).locator("summary").click()
    tab.locator(".questions > section").nth(2).get_by_role("button", name="Move up").click()
    questions[2]["text"] = "Which drink?"
    questions[1:] = questions[:0:-1]
    assert saved(tab) == draft, "an id that was given stays"
    tab.reload()
    expect(tab.get_by_label("Name", exact=True)).to_have_value("n")
    file.write_text('{"kind": "survey", "questions": []}', encoding="utf-8")
    tab.locator("input[type=file]").set_input_files(file)
    expect(tab.locator("aside [role=status]").first).to_contain_text("This file is not a draft")


def test_texts_in_several_languages_stand_side_by_side(service: Service, open_tab: Open) -> None:
    tab = open_tab(f"{service.address}/new")
    describe(tab, "Habits")
    add(tab, "Yes or no", "Do you smoke?")
    add(tab, "A number", "How long do you sleep?")
    add(tab, "Several parts", "About you")
    add(tab, "A rating", "How are you?")
    tab.get_by_label("Add a language").select_option("de")
    tab.get_by_label("Name in Deutsch").fill("Gewohnheiten")
    tab.get_by_label("Why in Deutsch").fill("Um zu planen")
    cards = tab.locator(".questions > section")
    for place, text in enumerate(("Rauchen Sie?", "Wie lange schlafen Sie?", "Über Sie", "Wie geht es Ihnen?")):
        cards.nth(place).get_by_label("Question in Deutsch").fill(text)
    cards.nth(0).get_by_label("Answers in Deutsch").fill("ja\nnein")
    cards.nth(1).get_by_label("Unit in Deutsch").fill("Stunden")
    cards.nth(2).get_by_label("Parts in Deutsch").fill("rauchen: ja, nein\nSchlaf: Stunden")
    own, german = (
        cards.nth(0).get_by_label(label, exact=True).bounding_box() for label in ("Question", "Question in Deutsch")
    )
    assert own["y"] == german["y"], "side by side"
    draft = saved(tab)
    assert draft["language"] == "en"
    parts = {"smoke": {"name": "rauchen", "answers": ["ja", "nein"]}, "sleep": {"name": "Schlaf", "unit": "Stunden"}}
    texts = {
        "smoke": {"text": "Rauchen Sie?", "answers": ["ja", "nein"]},
        "long-sleep": {"text": "Wie lange schlafen Sie?", "unit": "Stunden"},
        "about": {"text": "Über Sie", "parts": parts},
        "question": {"text": "Wie geht es Ihnen?"},
    }
    assert draft["translations"] == {"de": {"name": "Gewohnheiten", "purpose": "Um zu planen", "questions": texts}}
    cards.nth(0).get_by_label("Question", exact=True).fill("Do you ever drink coffee?")
    assert "ever-drink" in saved(tab)["translations"]["de"]["questions"], "a translation follows the id of its question"
    cards.nth(0).locator("summary").click()
    cards.nth(0).get_by_role("button", name="Remove", exact=True).click()
    assert len(saved(tab)["translations"]["de"]["questions"]) == 3
    tab.get_by_role("button", name="Remove Deutsch").click()
    assert not {"language", "translations"} & set(saved(tab))


def test_a_preview_is_the_page_of_respondents_and_sends_nothing(service: Service, open_tab: Open, log: Log) -> None:
    tab = open_tab(f"{service.address}/new")
    describe(tab, "Previewed")
    add(tab, "Yes or no", "Do you smoke?")
    tab.locator("summary", has_text="Preview on a phone").click()
    frame = tab.frame_locator("iframe")
    expect(frame.get_by_role("heading", name="Previewed")).to_be_visible()
    frame.get_by_label("yes", exact=True).check()
    frame.locator("form button[type=submit]").click()
    expect(frame.locator("section.fine")).to_be_visible()
    assert not log.urls("/reports")
    assert tab.locator("iframe").bounding_box()["width"] <= 390
    tab.get_by_label("Name", exact=True).fill("Another name")
    expect(frame.get_by_role("heading", name="Another name")).to_be_visible()


def test_weaker_privacy_is_shown_and_published_only_if_it_is_meant(service: Service, open_tab: Open) -> None:
    before = smoke("replaced by the builder")
    service.publish(before)
    tab = open_tab(f"{service.address}/new")
    describe(tab, "replaced by the builder")
    tab.get_by_label("Epsilon", exact=True).fill("3")
    add(tab, "Yes or no", "Do you smoke?")
    tab.get_by_label("Replaces").select_option(before.fingerprint)
    table = tab.locator("aside section.warn")
    expect(table).to_contain_text("Privacy gets weaker.")
    expect(table.locator("tr", has_text="epsilon of a submission")).to_contain_text("3")
    expect(table.locator("tbody tr").first).to_contain_text("weaker privacy")
    tab.get_by_label("Administrator's token").fill(service.admin)
    tab.get_by_role("button", name="Publish now").click()
    expect(tab.locator("form [role=alert]")).to_contain_text("weaker_privacy")
    tab.get_by_label("Publish although privacy gets weaker").check()
    survey = publish(tab, service)
    assert survey.terms is not None
    assert survey.terms.replaces == before.fingerprint


def test_the_planner_hands_its_plan_to_the_survey(service: Service, open_tab: Open) -> None:
    tab = open_tab(f"{service.address}/new")
    tab.get_by_label("Name", exact=True).fill("Kept while planning")
    tab.get_by_role("link", name="Planner").click()
    expect(tab.get_by_role("heading", name="Planner")).to_be_visible()
    assert tab.url == f"{service.address}/plan"
    tab.get_by_label("How many people do I need?").check()
    tab.get_by_label("Interval ± (percent)").fill("2")
    expect(tab.locator(".big")).to_contain_text("people for intervals of ± 2")
    people = tab.inner_text(".big b").split()[0].replace(",", "")
    tab.get_by_role("button", name="Use this epsilon and number of people").click()
    expect(tab.get_by_label("People", exact=True)).to_have_value(people)
    expect(tab.get_by_label("Name", exact=True)).to_have_value("Kept while planning")
    tab.go_back()
    expect(tab.get_by_role("heading", name="Planner")).to_be_visible()


def test_a_newcomer_builds_answers_and_reads_without_a_command_line(
    service: Service, open_tab: Open, browser: Any, complaints: Log
) -> None:
    """One person makes a survey, another answers it on a phone in German, and everybody reads what was found."""
    tab = open_tab(f"{service.address}/new")
    describe(tab, "Debts and work")
    tab.get_by_label("People", exact=True).fill("3000")
    tab.get_by_label("Everybody may read the results").check()
    asked = {
        "Yes or no": ("Have you ever failed to pay back a debt?", "Haben Sie je eine Schuld nicht beglichen?"),
        "One of a list": ("Which drink do you like best?", "Was trinken Sie am liebsten?"),
        "A number": ("How long do you sleep?", "Wie lange schlafen Sie?"),
    }
    for template, (english, _) in asked.items():
        add(tab, template, english)
    tab.get_by_label("Add a language").select_option("de")
    tab.get_by_label("Name in Deutsch").fill("Schulden und Arbeit")
    tab.get_by_label("Why in Deutsch").fill("Um zu helfen, wo es nötig ist")
    cards = tab.locator(".questions > section")
    for place, (_, german) in enumerate(asked.values()):
        cards.nth(place).get_by_label("Question in Deutsch").fill(german)
    cards.nth(0).get_by_label("Answers in Deutsch").fill("ja\nnein")
    cards.nth(1).get_by_label("Answers in Deutsch").fill("Tee\nKaffee\nWasser")
    cards.nth(2).get_by_label("Unit in Deutsch").fill("Stunden")
    for place in range(3):
        expect(tab.locator(".questions .expected").nth(place)).to_contain_text("with 3,000 people")
    survey = publish(tab, service)
    expect(tab.locator("svg.qr")).to_be_visible()
    assert f'<deniable-survey fingerprint="{survey.fingerprint}">' in tab.locator(".command code").inner_text()
    ids = [question.id for question in survey]
    crowd = [["yes"] * 600 + ["no"] * 2400, ["tea"] * 2000 + ["coffee"] * 1000, [7.0] * 3000]
    service.fill_answers(survey, 0, dict(zip(ids, crowd, strict=True)))

    screen = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
    context = new_context(browser, **screen, locale="de-DE")
    phone = context.new_page()
    complaints.watch(phone)
    phone.goto(f"{service.address}/s/{survey.fingerprint}")
    expect(phone.get_by_role("heading", name="Schulden und Arbeit")).to_be_visible()
    phone.get_by_label("ja", exact=True).check()
    phone.get_by_role("button", name="Weiter").click()
    phone.get_by_label("Tee", exact=True).check()
    phone.get_by_role("button", name="Weiter").click()
    phone.locator(f"[data-question={ids[2]}] input:not([type=range])").first.fill("7,5")
    phone.locator("form button[type=submit]").click()
    phone.get_by_role("link", name="Bisherige Ergebnisse ansehen").click()
    expect(phone.locator("[data-question]")).to_have_count(3)
    said = phone.inner_text("main")
    assert "Schulden und Arbeit" in said
    assert "3.001 Antworten" in said
    assert all(german in said and english not in said for english, german in asked.values())
    expect(phone.locator(f"[data-question={ids[0]}] h2")).to_contain_text(
        re.compile(r"Etwa [12]\d von 100 antworten „ja“")
    )
    expect(phone.locator(f"[data-question={ids[1]}] h2")).to_contain_text("Die häufigste Antwort ist Tee: etwa")
    expect(phone.locator(f"[data-question={ids[2]}] h2")).to_contain_text("Stunden")
    context.close()
