"""What the service's list says of a survey is looked at before anything is asked, and before anything is spent."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect

from deniable.collect.stores import open_store
from deniable.surveys import Survey
from tests.collect.surveys import current
from tests.web.pages.browser import Log
from tests.web.pages.service import Service
from tests.web.pages.surveys import often, smoke
from tests.web.pages.test_survey_page import COUNTED, answer

Open = Callable[[str], Any]


def say(profile: Any, survey: Survey, **entry: Any) -> None:
    """Let the list of surveys say this of one."""
    given = {"surveys": [{"fingerprint": survey.fingerprint, "state": "collecting", **entry}], "next": None}
    profile.route("**/v1/surveys?*", lambda route: route.fulfill(json=given))


def test_a_closed_period_is_told_before_anything_is_asked(service: Service, open_tab: Open, log: Log) -> None:
    survey = often("period closed")
    service.publish(survey)
    tab = open_tab(service.survey_page(survey))
    tab.wait_for_selector("form")
    service.close_epoch(survey, current(survey))
    tab.wait_for_timeout(1500)  # a list may be a second old
    tab.reload()
    tab.wait_for_selector("text=This period is closed")
    assert re.search(r"The next period begins on \d{4}-\d\d-\d\d \(UTC\)", tab.inner_text("main"))
    assert tab.locator("form").count() == 0
    assert log.posts == []


def test_a_period_that_is_closed_meanwhile_costs_nothing(
    service: Service, open_tab: Open, profile: Any, log: Log
) -> None:
    survey = often("closed meanwhile")
    service.publish(survey)
    tab = open_tab(service.survey_page(survey))
    tab.wait_for_selector("form")
    say(profile, survey, open=False)
    answer(tab, "fair")
    tab.wait_for_selector("text=This period is closed")
    expect(tab.locator("main")).to_contain_text("Nothing was sent.")
    tab.click("text=Terms and fingerprint")
    expect(tab.locator("dl.facts")).to_contain_text("has spent epsilon 0 of")
    expect(tab.locator("main")).to_contain_text("Nothing so far for this survey")
    assert log.posts == []


def test_a_survey_that_is_deleted_meanwhile_costs_nothing(service: Service, open_tab: Open, log: Log) -> None:
    """Although the browser may keep the survey for a year."""
    survey = often("deleted meanwhile")
    service.publish(survey)
    tab = open_tab(service.survey_page(survey))
    tab.wait_for_selector("form")
    with open_store(service.store) as store:
        store.delete_survey(survey.fingerprint)
    tab.wait_for_timeout(1500)  # a list may be a second old
    answer(tab, "fair")
    tab.wait_for_selector("text=The survey was deleted")
    expect(tab.locator("main")).to_contain_text("Its owner has deleted it, and no more answers are taken.")
    expect(tab.locator("main")).to_contain_text("Nothing was sent.")
    tab.click("text=Terms and fingerprint")
    expect(tab.locator("dl.facts")).to_contain_text("has spent epsilon 0 of")
    tab.reload()
    tab.wait_for_selector("text=/deleted/")
    assert tab.locator("form").count() == 0
    assert log.posts == []


def test_without_the_list_the_survey_is_asked_as_ever(service: Service, open_tab: Open, profile: Any) -> None:
    survey = smoke("no list")
    service.publish(survey)
    replies = ["<p>files only", "null", '{"surveys": []}', '{"surveys": [null]}']
    left = list(replies)
    profile.route("**/v1/surveys?*", lambda route: route.fulfill(status=200, body=left.pop()))
    tab = open_tab(f"{service.address}/")
    for done in range(len(replies)):
        tab.goto(service.survey_page(survey))
        tab.wait_for_selector("form")
        assert len(left) == len(replies) - done - 1
    profile.unroute("**/v1/surveys?*")
    profile.route("**/v1/surveys?*", lambda route: route.abort())
    tab.reload()
    answer(tab)
    tab.wait_for_selector(COUNTED)


def test_a_survey_that_was_replaced_leads_to_the_next(service: Service, open_tab: Open, profile: Any) -> None:
    survey = smoke("replaced")
    service.publish(survey)
    say(profile, survey, open=True, replaced_by="a" * 64)
    tab = open_tab(service.survey_page(survey))
    tab.wait_for_selector("form")
    link = tab.get_by_role("link", name="go to the newer one")
    assert link.evaluate("a => a.href") == f"{service.address}/s/{'a' * 64}"
