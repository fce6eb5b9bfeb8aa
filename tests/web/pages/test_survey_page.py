"""The survey page: asks, explains, sends, remembers, and lets go."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import expect

from deniable.collect.stores import open_store
from deniable.collect.wire import HEADER_BYTES, ID_BYTES
from deniable.protocols import GRR, Evolving, SecureSum, registered
from deniable.protocols.law import ANY
from deniable.surveys import Question, Survey
from deniable.surveys.promises import colour, promises
from deniable.surveys.right_guesses import guesses
from deniable.surveys.terms import Longitudinal
from tests.collect.surveys import terms
from tests.web.pages.browser import INSECURE, Log
from tests.web.pages.service import Service
from tests.web.pages.surveys import often, shapes, single, smoke, staged, ten, thousand

Open = Callable[[str], Any]
COUNTED = "text=your report is counted"
WORST = "summary >> text=The worst case, and the numbers of the field"
SEND = "form >> text=Scramble and send"


def unfold_leaving(tab: Any) -> None:
    tab.locator("details:has(> section[aria-label=Leave])").evaluate("details => (details.open = true)")


def answer(tab: Any, label: str = "yes") -> None:
    tab.get_by_label(label, exact=True).check()
    tab.click(SEND)


def answered(service: Service, open_tab: Open, name: str) -> Any:
    """A tab with a survey of this name that was just answered."""
    survey = smoke(name)
    service.publish(survey)
    tab = open_tab(service.survey_page(survey))
    answer(tab)
    tab.wait_for_selector(COUNTED)
    return tab


def test_an_answer_is_counted_and_what_left_is_shown(service: Service, open_tab: Open, log: Log) -> None:
    survey = smoke("counted")
    service.publish(survey)
    tab, bodies = open_tab(service.survey_page(survey)), []
    tab.on("request", lambda request: bodies.append(request.post_data_buffer or b""))
    tab.click("text=How much can still be guessed?")
    assert "right 50 times of 100 without your report, and 73 times with it" in tab.inner_text(".promise")
    marked = [picture.locator(".marked").count() for picture in tab.locator(".dots").all()]
    assert marked == [50, 73], "right guesses are marked, and nothing else"
    assert tab.locator(".guessed b").all_inner_texts() == ["50 of 100 right", "73 of 100 right"]
    answer(tab)
    tab.wait_for_selector(COUNTED)
    assert service.count(survey) == 1
    assert len(log.posts) == 1
    tab.click("summary >> text=The 25 bytes")
    sent = tab.locator("[data-state=sent] .bytes span").all_inner_texts()
    assert len(sent) == HEADER_BYTES + ID_BYTES + 1
    assert sent[:4] == ["44", "4e", "52", "31"]
    assert [body for body in bodies if body] == [bytes.fromhex("".join(sent))], "what is shown is what left"


def test_what_all_submissions_give_away_stands_beside_what_one_does(service: Service, open_tab: Open) -> None:
    """Two questions of epsilon 2/5, five times: 0.8 a submission and 4 in all; r / (1 + r) is 0.6900 and 0.9820."""
    questions = [Question(name, f"{name}?", GRR(["yes", "no"], epsilon="2/5")) for name in ("smoke", "drink")]
    survey = Survey("both numbers", questions, terms(longitudinal=Longitudinal(epochs=5), budget=4))
    service.publish(survey)
    tab = open_tab(service.survey_page(survey))
    tab.wait_for_selector("form")
    tab.click("text=How much can still be guessed?")
    tab.click(WORST)
    shown = tab.inner_text(".promise").replace("\u00a0", " ")
    for name in ("smoke?", "drink?"):
        assert name in shown
    told = "right 50 times of 100 without your report, 60 times with one, and 68 times after all 5 if your answer stays"
    assert shown.count(told) == 2
    assert "cannot tell whether what arrives is what you chose" in shown, "what a browser may forget is a note"
    assert "about those that it remembers" in shown
    assert "at most 69.0 % sure of one of them from one report, and at most 98.3 % sure from all 5 together" in shown


def test_every_sentence_is_on_the_page(service: Service, open_tab: Open) -> None:
    tab = open_tab(f"{service.address}/")
    for survey in (smoke(), often(), thousand(), shapes()):
        tab.goto(service.survey_page(survey))
        tab.wait_for_selector("form")
        shown = " ".join(tab.locator("main").text_content().replace("\u00a0", " ").split())
        for name, sentence in promises(survey, "browser", lasting=False).items():
            # What cannot be taken back stands in the dialog.
            parts = (
                re.split(" ?“[^”]*” ", sentence) if name == "guess" else [sentence]
            )  # the page has the text above it
            assert all(part in shown for part in parts) or name == "leaving", (survey.name, name)
        (level,) = {colour(one) for one in guesses(survey)} - {""} or {""}
        assert tab.locator(".promise").get_attribute("class").split()[2:] == ([level] if level else [])


def test_the_budget_is_what_is_left_now(service: Service, open_tab: Open) -> None:
    survey = smoke("budget")
    service.publish(survey)
    tab = open_tab(service.survey_page(survey))
    tab.click("text=Terms and fingerprint")
    terms = tab.locator("dl.facts")
    expect(terms).to_contain_text("has spent epsilon 0 of at most 100")
    audit = tab.locator("text=Audit of this survey").get_attribute("href")
    assert audit == f"{service.address}/audit/{survey.fingerprint}"
    assert "25 bytes: 1 of randomized answers, and 24 for" in terms.inner_text()
    answer(tab)
    tab.wait_for_selector(COUNTED)
    expect(terms).to_contain_text("has spent epsilon 1 of at most 100")


def test_a_budget_that_is_used_up_is_told_before_anything_is_asked(service: Service, open_tab: Open, log: Log) -> None:
    tight = [single(GRR(["yes", "no"], epsilon=1), name, budget=1) for name in ("tight", "tighter")]
    for survey in tight:
        service.publish(survey)
    tab = open_tab(service.survey_page(tight[0]))
    answer(tab)
    tab.wait_for_selector(COUNTED)
    tab.goto(service.survey_page(tight[1]))
    tab.wait_for_selector("text=This browser has given enough away")
    whose = "all surveys of “Example Institute” in the group “tests” together may learn from this browser"
    assert whose in tab.inner_text("main")
    assert tab.locator("form").count() == 0
    assert len(log.posts) == 1


def test_every_kind_of_control_can_be_answered(service: Service, open_tab: Open) -> None:
    survey = shapes("controls")
    service.publish(survey)
    tab = open_tab(service.survey_page(survey))
    tab.get_by_label("yes (true)").check()
    tab.fill("[role=combobox]", "month 13")
    tab.get_by_label("How old are you?").fill("44")
    tab.get_by_label("Your word of the year?").fill("perhaps")
    tab.click("text=Show me what leaves")
    assert "month 13" in tab.inner_text("section[aria-label='Life of a report']")
    tab.click(SEND)
    tab.wait_for_selector(COUNTED)
    assert service.count(survey) == 1


def test_a_missing_answer_is_asked_for_and_nothing_leaves(service: Service, open_tab: Open, log: Log) -> None:
    tab = open_tab(service.survey_page(shapes()))
    tab.get_by_label("yes (true)").check()
    tab.get_by_label("How old are you?").fill("17")
    tab.fill("[role=combobox]", "month")
    tab.click(SEND)
    complaints = tab.locator("fieldset .error:not(:empty)").all_inner_texts()
    assert len(complaints) == 3
    assert "17" not in " ".join(complaints).replace("18", "")
    assert tab.evaluate("document.activeElement.getAttribute('role')") == "combobox"
    assert log.posts == []


def test_a_number_that_cannot_be_is_told_which_can(service: Service, open_tab: Open) -> None:
    tab = open_tab(service.survey_page(shapes()))
    age, error = tab.get_by_label("How old are you?"), tab.locator("[data-question=age] .error")
    for typed in ("12.5", "17", "100", "-3", "e"):
        age.press_sequentially(typed)
        tab.click(SEND)
        expect(error, typed).to_have_text("Please write a whole number from 18 to 99.")
        age.fill("40")
        expect(error).to_be_empty()
        age.fill("")
        tab.click(SEND)
        expect(error).to_contain_text("Please answer")


def test_arrow_keys_do_no_harm_where_nothing_matches(service: Service, open_tab: Open, log: Log) -> None:
    tab = open_tab(service.survey_page(shapes()))
    box = tab.locator("[role=combobox]")
    box.fill("no such month")
    for key in ("ArrowDown", "ArrowUp", "Enter", "ArrowDown"):
        box.press(key)
    assert log.complaints == []
    assert box.get_attribute("aria-expanded") == "false"
    assert box.get_attribute("aria-activedescendant") is None
    box.fill("month 12")
    box.press("ArrowUp")
    box.press("Enter")
    assert box.input_value() == "month 12"


def test_success_is_spoken_and_the_focus_goes_to_it(service: Service, open_tab: Open) -> None:
    """A screen reader speaks what appears in a region that was there before, and reads on from the focus."""
    survey = smoke("spoken")
    service.publish(survey)
    tab = open_tab(service.survey_page(survey))
    tab.get_by_label("yes", exact=True).check()
    said = tab.locator("p.hidden[role=status]").element_handle()
    tab.locator(SEND).press("Enter")
    tab.wait_for_selector(COUNTED)
    assert "your report is counted" in said.inner_text()
    assert said.evaluate("region => region.isConnected")
    expect(tab.locator("h2", has_text="your report is counted")).to_be_focused()
    # Looking again does not take the focus away.
    tab.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    tab.wait_for_timeout(300)
    expect(tab.locator("h2", has_text="your report is counted")).to_be_focused()
    unfold_leaving(tab)
    tab.get_by_role("button", name="Opt out").press("Enter")
    expect(tab.locator("h2", has_text="You have opted out")).to_be_focused()
    tab.get_by_role("button", name="Take part again").press("Enter")
    expect(tab.locator("h1")).to_be_focused()


def test_a_rehearsal_is_not_what_is_sent(service: Service, open_tab: Open, log: Log) -> None:
    survey = ten("rehearsed")
    service.publish(survey)
    tab = open_tab(service.survey_page(survey))
    tab.get_by_label("rye", exact=True).check()
    tab.click("text=Show me what leaves")
    life = tab.locator("section[aria-label='Life of a report']")
    ids = set()
    for _ in range(3):
        ids.add("".join(life.locator(".bytes span").all_inner_texts()[8:24]))
        life.get_by_text("Throw the coins again").click()
    assert len(ids) == 3
    assert log.posts == []
    life.get_by_text("Scramble and send").click()
    tab.wait_for_selector(COUNTED)
    tab.click("summary >> text=The 26 bytes")
    assert "".join(tab.locator("[data-state=sent] .bytes span").all_inner_texts()[8:24]) not in ids


def lives(together: int = 8) -> Iterator[Survey]:
    """Every kind once: several in a survey where one promise holds for all, the others each in its own."""
    ours = {name: next(iter(kind.examples())) for name, kind in sorted(registered().items())}
    alone = {name for name, made in ours.items() if isinstance(made, (Evolving, SecureSum))}
    alone |= {name for name, made in ours.items() if (made.guarantee.relation, made.guarantee.delta) != (ANY, 0)}
    yield from (single(ours[name], f"life of {name}") for name in sorted(alone))
    for names in batched(sorted(set(ours) - alone), together):
        questions = [Question(f"q{place}", name, ours[name]) for place, name in enumerate(names)]
        yield Survey(f"lives of {names[0]} to {names[-1]}", questions, terms(budget=1000))


def batched(names: list[str], size: int) -> list[list[str]]:
    return [names[at : at + size] for at in range(0, len(names), size)]


def test_the_life_of_every_protocol_s_report_is_told(service: Service, open_tab: Open) -> None:
    """In one tab, one page after the other: a tab of its own for each would load the same files again."""
    tab, told = open_tab(f"{service.address}/"), 0
    for survey in lives():
        service.publish(survey)
        tab.goto(service.survey_page(survey))
        tab.wait_for_selector("form")
        check_life(tab, survey)
        told += len(survey.questions)
    assert told == len(registered())


def check_life(tab: Any, survey: Survey) -> None:
    """Answer every question; the life of the report then tells of each, and explains every byte once."""
    for question in survey.questions:
        asked = f"form [data-question={question.id}]"
        for box in tab.locator(f"{asked} input[type=checkbox]").all()[:1]:
            box.check()
        for text in tab.locator(f"{asked} input[type=text].long").all():
            text.fill(str(question.protocol.domain.example))
    for number in tab.locator("form input.number:enabled").all():
        described = (number.get_attribute("aria-describedby") or "").split()
        note = tab.locator(f"#{described[0]}").inner_text() if described else ""
        number.fill("".join(re.findall(r"from (\S+)", note)[:1]).replace(",", "") or "1")
    for field in tab.locator("form fieldset:has(> label > input[type=radio])").all():
        field.locator("input[type=radio]").first.check()
    tab.click("text=Show me what leaves")
    stories, spans, rows = tab.locator("section[aria-label='Life of a report']").evaluate(
        """life => [
            [...life.querySelectorAll("ol.steps")].map((story) => story.querySelectorAll("li").length),
            life.querySelectorAll(".bytes span").length,
            [...life.querySelectorAll("tbody th")].map((place) => place.textContent),
        ]"""
    )
    names = [question.protocol.name for question in survey.questions]
    assert len(stories) == len(names)
    assert [name for name, steps in zip(names, stories, strict=True) if steps < 2] == []
    assert survey.terms is not None
    total = (24 + survey.report_bytes) * max(1, len(survey.terms.collectors))
    assert spans == total, survey.name
    places = [re.findall(r"\d+", text) for text in rows]
    covered = [i for place in places for i in range(int(place[0]), int(place[-1]) + 1)]
    assert covered == list(range(total)), f"{survey.name}: every byte is explained once"


def test_a_reload_remembers_and_sends_nothing_again(service: Service, open_tab: Open, log: Log) -> None:
    survey = smoke("reloaded")
    service.publish(survey)
    tab = open_tab(service.survey_page(survey))
    answer(tab)
    tab.wait_for_selector(COUNTED)
    tab.reload()
    tab.wait_for_selector(COUNTED)
    assert tab.locator("form").count() == 0
    assert len(log.posts) == 1
    assert service.count(survey) == 1


def test_two_tabs_are_one_device(service: Service, open_tab: Open, log: Log) -> None:
    survey = smoke("two tabs")
    service.publish(survey)
    tabs = [open_tab(service.survey_page(survey)) for _ in range(2)]
    for tab in tabs:
        tab.get_by_label("no", exact=True).check()
    for tab in tabs:
        tab.click(SEND, no_wait_after=True)
    for tab in tabs:
        tab.wait_for_selector(COUNTED)
    assert service.count(survey) == 1
    assert len(log.posts) == 1


def test_a_server_that_is_down_gets_the_report_when_it_is_back(stopped_service: Service, open_tab: Open) -> None:
    survey = smoke("down")
    stopped_service.publish(survey)
    tab = open_tab(stopped_service.survey_page(survey))
    tab.get_by_label("yes", exact=True).check()
    stopped_service.stop()
    tab.click(SEND)
    tab.wait_for_selector("text=Waiting to be sent")
    waiting = tab.locator("[data-state=queued]")
    assert waiting.count() == 1
    assert "bytes that wait here" in waiting.inner_text()
    assert "that left" not in tab.inner_text("main")
    assert "Sending" not in tab.inner_text("main")
    stopped_service.start()
    tab.wait_for_selector(COUNTED)
    assert stopped_service.count(survey) == 1


def test_opting_out_means_no_request_at_all(service: Service, open_tab: Open, log: Log) -> None:
    survey = smoke()
    tab = open_tab(service.survey_page(survey))
    unfold_leaving(tab)
    tab.click("text=Opt out")
    tab.wait_for_selector("text=You have opted out")
    log.requests.clear()
    tab.reload()
    tab.wait_for_selector("text=You have opted out")
    assert log.urls("/v1/") == []
    assert log.urls(), "the page itself was loaded, or the assertion above would mean nothing"
    tab.get_by_role("button", name="Take part again").click()
    tab.wait_for_selector("form")


def test_withdrawal_forgets_what_was_sent(service: Service, open_tab: Open) -> None:
    tab = answered(service, open_tab, "withdrawn")
    unfold_leaving(tab)
    tab.click("text=Withdraw…")
    tab.get_by_role("button", name="Withdraw", exact=True).click()
    tab.wait_for_selector("text=You have opted out")
    leaving = tab.locator("section[aria-label=Leave]")
    expect(leaving, "nothing is left to be deleted").to_be_hidden()
    assert "that left" not in tab.inner_text("main")
    tab.get_by_role("button", name="Take part again").click()
    tab.wait_for_selector("[data-state=withdrawn]", state="attached")
    unfold_leaving(tab)
    assert "Below is why" not in tab.inner_text("main")
    expect(leaving.get_by_role("button")).to_have_text(["Opt out"])
    assert tab.locator(".bytes").count() == 0
    assert tab.locator("form").count() == 0, "an answered period stays answered"


@pytest.mark.parametrize("retention", ["tally", "reports"])
def test_the_withdraw_dialog_says_what_the_server_keeps_and_does_it(
    retention: str, service: Service, open_tab: Open
) -> None:
    survey = Survey(f"leaving {retention}", smoke().questions, terms(retention=retention))
    service.publish(survey)
    tab = open_tab(service.survey_page(survey))
    answer(tab)
    tab.wait_for_selector(COUNTED)
    unfold_leaving(tab)
    tab.click("text=Withdraw…")
    dialog = tab.locator("dialog")
    expect(dialog).to_contain_text(promises(survey)["leaving"])
    wanted = dialog.get_by_label("Ask the server to delete 1 report of this survey")
    if retention == "tally":
        expect(wanted).to_be_hidden()
    else:
        expect(dialog).to_contain_text("shows it the network address behind it")
        wanted.check()
    tab.get_by_role("button", name="Withdraw", exact=True).click()
    tab.wait_for_selector("text=You have opted out")
    assert service.count(survey) == (1 if retention == "tally" else 0)
    if retention == "reports":
        expect(tab.locator("section[aria-label=Leave]")).to_contain_text("The server has deleted 1 report.")


def test_a_server_that_cannot_be_asked_to_delete_keeps_the_way_open(
    service: Service, profile: Any, open_tab: Open
) -> None:
    survey = Survey("leaving, alone", smoke().questions, terms(retention="reports"))
    service.publish(survey)
    tab = open_tab(service.survey_page(survey))
    answer(tab)
    tab.wait_for_selector(COUNTED)
    profile.route("**/reports/*", lambda route: route.fulfill(status=503, body="{}"))
    unfold_leaving(tab)
    tab.click("text=Withdraw…")
    tab.get_by_label("Ask the server to delete").check()
    tab.get_by_role("button", name="Withdraw", exact=True).click()
    expect(tab.locator("dialog [role=alert]")).to_contain_text("nothing was withdrawn")
    profile.unroute("**/reports/*")
    tab.get_by_role("button", name="Withdraw", exact=True).click()
    tab.wait_for_selector("text=You have opted out")
    assert service.count(survey) == 0


def test_a_successor_is_compared_before_anything_is_asked(service: Service, open_tab: Open, log: Log) -> None:
    before = smoke("first edition")
    service.publish(before)
    tab = open_tab(service.survey_page(before))
    answer(tab)
    tab.wait_for_selector(COUNTED)
    milder = Question("smoke", "Do you smoke today?", GRR(["yes", "no"], epsilon="1/2"))
    after = Survey("second edition", [milder], replace(terms(), replaces=before.fingerprint))
    service.publish(after)
    tab.goto(service.survey_page(after))
    tab.wait_for_selector("text=This survey has changed since you answered it")
    assert tab.locator("form").count() == 0
    rows = tab.locator("table tbody tr").all_inner_texts()
    assert any("question smoke: text" in row and "Do you smoke today?" in row for row in rows)
    assert any("epsilon" in row and "stronger privacy" in row for row in rows)
    assert len(log.posts) == 1
    tab.get_by_role("button", name="Go on to the questions").click()
    answer(tab)
    tab.wait_for_selector(COUNTED)
    assert service.count(after) == 1


def test_who_has_opted_out_is_not_asked_to_keep_taking_part(service: Service, open_tab: Open) -> None:
    """Of a service that keeps reports: an id is left by which the report can be deleted there."""
    survey = Survey("out, then withdrawn", smoke().questions, terms(retention="reports"))
    service.publish(survey)
    tab = open_tab(service.survey_page(survey))
    answer(tab)
    tab.wait_for_selector(COUNTED)
    unfold_leaving(tab)
    tab.click("text=Withdraw…")
    tab.get_by_role("button", name="Keep taking part").click()
    unfold_leaving(tab)
    tab.click("text=Opt out")
    tab.wait_for_selector("text=You have opted out")
    unfold_leaving(tab)
    tab.click("text=Withdraw…")
    expect(tab.locator("dialog button")).to_have_text(["Withdraw", "Cancel"])
    tab.reload()
    tab.wait_for_selector("text=You have opted out")
    unfold_leaving(tab)
    tab.click("text=Withdraw…")
    tab.get_by_role("button", name="Withdraw", exact=True).click()
    expect(tab.locator("section[aria-label=Leave]"), "nothing is left to be deleted").to_be_hidden()


def test_opting_out_leaves_nothing_to_withdraw(service: Service, open_tab: Open) -> None:
    tab = answered(service, open_tab, "out")
    unfold_leaving(tab)
    tab.click("text=Opt out")
    tab.wait_for_selector("text=You have opted out")
    expect(tab.locator("section[aria-label=Leave]")).to_be_hidden()
    assert tab.locator(".bytes").count() == 0


def test_a_browser_that_deletes_its_record_says_that_it_may(service: Service, open_tab: Open) -> None:
    survey = Survey("evicted", smoke().questions, terms(longitudinal=Longitudinal(epochs=3), budget=3))
    service.publish(survey)
    tab = open_tab(service.survey_page(survey))
    for times in range(1, 4):
        tab.wait_for_selector("form")
        tab.click("text=Terms and fingerprint")
        tab.click("text=How much can still be guessed?")
        tab.click(WORST)
        shown = tab.inner_text("main").replace("\u00a0", " ")
        assert "spent epsilon 0 of at most 3" in shown
        assert "as far as it remembers: if it deletes the data of this site, this begins anew" in shown
        assert "If it deletes them, it forgets what was sent and begins anew" in shown
        assert "What is said here about all reports together is about those that it remembers." in shown
        answer(tab)
        tab.wait_for_selector(COUNTED)
        session = tab.context.new_cdp_session(tab)
        session.send("Storage.clearDataForOrigin", {"origin": service.address, "storageTypes": "all"})
        tab.reload()
        assert service.count(survey) == times, "whoever forgets is somebody else: the page cannot know better"


def test_an_altered_survey_is_refused(service: Service, open_tab: Open, profile: Any, log: Log) -> None:
    survey = smoke()
    changed = survey.canonical.replace(b'"epsilon":"1"', b'"epsilon":"9"', 1)
    assert changed != survey.canonical
    profile.route("**/v1/surveys/*", lambda route: route.fulfill(status=200, body=changed))
    tab = open_tab(service.survey_page(survey))
    alert = tab.wait_for_selector("[role=alert]").inner_text()
    assert "not the survey that it claims to be" in alert
    assert "Nothing was sent" in alert
    assert tab.locator("form").count() == 0
    assert log.posts == []


def test_another_survey_s_bytes_are_refused(service: Service, open_tab: Open, profile: Any, log: Log) -> None:
    profile.route("**/v1/surveys/*", lambda route: route.fulfill(status=200, body=ten().canonical))
    tab = open_tab(service.survey_page(smoke()))
    assert "not the one that was pinned" in tab.wait_for_selector("[role=alert]").inner_text()
    assert log.posts == []


def test_a_wrong_fingerprint_is_refused(service: Service, open_tab: Open, log: Log) -> None:
    tab = open_tab(f"{service.address}/")
    wrong = {"0" * 64: "does not have this survey", "abc": "The link is incomplete", "0" * 63: "63 characters"}
    for pinned, says in wrong.items():
        tab.goto(f"{service.address}/s/{pinned}")
        alert = tab.wait_for_selector("[role=alert]").inner_text()
        assert says in alert
        assert "claims to be" not in alert
    assert log.posts == []


def test_plain_http_elsewhere_is_refused(service: Service, open_tab: Open, log: Log) -> None:
    tab = open_tab(f"http://{INSECURE}:{service.port}/s/{smoke().fingerprint}")
    alert = tab.wait_for_selector("[role=alert]").inner_text()
    assert "This page is not secure" in alert
    assert log.urls("/v1/") == []


def test_a_thousand_categories_are_searched(service: Service, open_tab: Open) -> None:
    survey = thousand("searched")
    service.publish(survey)
    tab = open_tab(service.survey_page(survey))
    tab.fill("[role=combobox]", "0999")
    assert tab.locator("[role=option]").all_inner_texts() == ["Town 0999"]
    tab.fill("[role=combobox]", "town")
    assert tab.locator("[role=option]").count() == 50
    tab.fill("[role=combobox]", "town 012")
    for _ in range(3):
        tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Enter")
    assert tab.input_value("[role=combobox]") == "Town 0122"
    tab.click(SEND)
    tab.wait_for_selector(COUNTED)
    assert service.count(survey) == 1


def test_a_memoized_survey_says_when_to_come_back(service: Service, open_tab: Open) -> None:
    tab = open_tab(service.survey_page(often()))
    answer(tab, "fair")
    tab.wait_for_selector(COUNTED)
    assert "You can answer again in the next period" in tab.inner_text("main")


def test_a_survey_in_two_stages_says_what_is_kept_and_what_all_reports_tell(service: Service, open_tab: Open) -> None:
    survey = staged()
    service.publish(survey)
    tab, said = open_tab(service.survey_page(survey)), promises(survey, "browser", lasting=False)
    tab.wait_for_selector("form")
    tab.click("text=How much can still be guessed?")
    tab.click(WORST)
    opened = tab.inner_text(".promise").replace("\u00a0", " ")
    for name in ("line", "often", "guess", "band", "factor", "sure"):
        assert said[name] in opened, name
    tab.get_by_label("fair", exact=True).check()
    tab.click("text=Show me what leaves")
    life = tab.locator("section[aria-label='Life of a report']")
    assert "the coins of the first stage are thrown once per answer" in life.inner_text()
    assert life.locator("ol.steps li").count() == 5
    life.get_by_text("Scramble and send").click()
    tab.wait_for_selector(COUNTED)
    assert "what it was randomized to, to draw reports from" in tab.inner_text("main")
    assert "Until you close this page the bytes that left are shown below" in tab.inner_text("main")
    tab.click("summary >> text=Terms and fingerprint")
    assert "has spent epsilon 1 of at most 2" in tab.inner_text("main"), "what the state costs"


def test_the_store_holds_nothing_but_the_sum(service: Service, open_tab: Open) -> None:
    survey = ten("sum")
    service.publish(survey)
    tab = open_tab(service.survey_page(survey))
    tab.get_by_label("rye", exact=True).check()
    tab.click(SEND)
    tab.wait_for_selector(COUNTED)
    tab.click("summary >> text=The 26 bytes")
    shown = bytes.fromhex("".join(tab.locator("[data-state=sent] .bytes span").all_inner_texts()))
    bits = [int(b) for byte in shown[24:] for b in f"{byte:08b}"[::-1]][:10]
    with open_store(service.store) as store:
        tally = store.tally(survey.fingerprint)
    assert tally["bread"].counts.tolist() == bits
