"""What the pages ask of the network: nothing from elsewhere, no cookie, no referrer, and no more than they must."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.collect.surveys import current
from tests.web.pages.browser import Log, Profile, new_context
from tests.web.pages.service import Service, site_of
from tests.web.pages.surveys import smoke, ten
from tests.web.pages.test_dashboard import opened, sign_in
from tests.web.pages.test_survey_page import COUNTED, answer

Open = Callable[[str], Any]


def check(log: Log, *homes: str) -> None:
    """Every request goes home, without cookies or a referrer."""
    sent = [one for one in log.requests.values() if "url" in one]
    assert len(sent) > 5
    for one in sent:
        assert one["url"].startswith((*homes, "blob:", "data:")), one["url"]
        assert not {"cookie", "referer"} & set(one["headers"]), one
        assert one.get("cookies", []) == []


def test_all_pages_stay_at_home(service: Service, open_tab: Open, profile: Any, log: Log) -> None:
    survey = ten("at home")
    service.publish(survey)
    service.fill(survey, current(survey), 100)
    tab = open_tab(service.survey_page(survey))
    tab.get_by_label("rye", exact=True).check()
    tab.click("text=Show me what leaves")
    tab.click("form >> text=Scramble and send")
    tab.wait_for_selector(COUNTED)
    tab.goto(f"{service.address}/plan")
    tab.wait_for_selector(".lines")
    tab.goto(service.dashboard(survey))
    sign_in(tab, service)
    opened(tab, "Over time")
    tab.wait_for_selector(".uplot canvas")
    check(log, service.address)
    assert profile.cookies() == []
    names = [database["name"] for database in tab.evaluate("() => indexedDB.databases()")]
    assert names == ["deniable"]
    assert tab.evaluate("localStorage.length + sessionStorage.length") == 0


def test_the_check_sees_a_referrer_and_a_stranger(service: Service, open_tab: Open, log: Log) -> None:
    tab = open_tab(f"{service.address}/plan")
    tab.wait_for_selector(".lines")
    check(log, service.address)
    tab.evaluate("fetch('/healthz', { referrerPolicy: 'unsafe-url' })")
    with pytest.raises(AssertionError):
        check(log, service.address)
    log.requests.clear()
    tab.reload()
    tab.wait_for_selector(".lines")
    with pytest.raises(AssertionError):
        check(log, "http://elsewhere.test")


def test_the_policy_forbids_what_is_inline_or_foreign(service: Service, open_tab: Open, log: Log) -> None:
    tab = open_tab(service.survey_page(smoke()))
    tab.wait_for_selector("form")
    ran = tab.evaluate(
        """async () => {
            const script = document.createElement("script");
            script.textContent = "window.ran = true";
            document.body.append(script);
            const foreign = await fetch("http://localhost:9/").then(() => "reached", () => "refused");
            return [window.ran ?? false, foreign];
        }"""
    )
    assert ran == [False, "refused"]
    assert any("Content Security Policy" in text for text in log.complaints)
    log.complaints.clear()


# -- a survey inside another site ----------------------------------------------------------------------------


@pytest.fixture
def elsewhere(service: Service) -> Iterator[str]:
    """A site of somebody else that embeds the survey with two lines."""
    lines = (
        f'<script type="module" src="{service.address}/web/current/pages/embed.js"></script>'
        f'<deniable-survey fingerprint="{smoke("embedded").fingerprint}"></deniable-survey>'
    )
    with site_of(lines) as address:
        yield address


def test_two_lines_embed_a_survey(service: Service, elsewhere: str, open_tab: Open, log: Log) -> None:
    survey = smoke("embedded")
    service.publish(survey)
    tab = open_tab(f"{elsewhere}/")
    answer(tab)
    tab.wait_for_selector(COUNTED)
    assert service.count(survey) == 1
    ours = [one for one in log.requests.values() if one.get("url", "").startswith(service.address)]
    assert ours
    for one in ours:
        assert "cookie" not in one["headers"]
        # Scripts and styles are fetched by the site's own rules; reports and surveys by ours.
        if "/v1/" in one["url"]:
            assert "referer" not in one["headers"]
    tab.click("summary >> text=Leave")
    tab.click("text=Opt out")
    tab.wait_for_selector("text=You have opted out")
    log.requests.clear()
    tab.reload()
    tab.wait_for_selector("text=You have opted out")
    assert log.urls("/v1/") == []


CONTRAST = """async (survey) => {
    const place = survey.shadowRoot.querySelector(".deniable");
    const light = (color) => {
        const parts = color.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255);
        const [r, g, b] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
    };
    const see = (element, below) => {
        const { color, backgroundColor } = getComputedStyle(element);
        const back = backgroundColor.endsWith(", 0)") ? below : backgroundColor;
        const [a, b] = [light(color), light(back)];
        const own = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
        const ratio = Math.max(a, b) / Math.min(a, b);
        const seen = own && element.checkVisibility() ? [[ratio, element.textContent]] : [];
        return seen.concat([...element.children].flatMap((child) => see(child, back)));
    };
    return see(place, "rgb(255, 255, 255)");
}"""


@pytest.mark.parametrize("around", ["normal", "light dark"])
def test_an_embedded_survey_can_be_read_in_the_dark(
    service: Service, elsewhere: str, browser: Any, around: str
) -> None:
    """On a page that stays white on a dark system, and on one that turns dark: 4.5 is what WCAG asks of text."""
    service.publish(smoke("embedded"))
    context = new_context(browser, color_scheme="dark")
    tab = context.new_page()
    tab.goto(f"{elsewhere}/")
    tab.wait_for_selector("deniable-survey form")
    tab.evaluate("scheme => (document.documentElement.style.colorScheme = scheme)", around)
    tab.evaluate("survey = document.querySelector('deniable-survey'); survey.replaceWith(survey.cloneNode())")
    tab.wait_for_selector("deniable-survey form")
    seen = tab.locator("deniable-survey").evaluate(CONTRAST)
    assert len(seen) > 10
    assert [text for ratio, text in seen if ratio < 4.5] == []
    dark = tab.locator("deniable-survey").evaluate("survey => !survey.matches('.light')")
    assert dark == (around != "normal"), "the survey is dark where the page is"
    context.close()


def test_a_profile_that_forgets_has_no_past(service: Service, forgetful: Profile) -> None:
    """Tests share it: what one of them keeps, in any way that a page can, must not reach the next."""
    held = """async () => [
        {...localStorage}, {...sessionStorage}, document.cookie, (await caches.keys()).length,
        (await indexedDB.databases()).map(({ name }) => name),
    ]"""
    keep = """async () => {
        localStorage.a = sessionStorage.b = document.cookie = "c=1";
        await caches.open("d");
        await new Promise((resolve) => (indexedDB.open("e").onsuccess = resolve));
    }"""
    found = []
    for _ in range(2):
        tab = forgetful.context.new_page()
        tab.goto(f"{service.address}/plan")
        found.append(tab.evaluate(held))
        tab.evaluate(keep)
        found.append(tab.evaluate(held))
        forgetful.context.route("**/plan", lambda route: route.abort())
        forgetful.forget()
    assert found[0] == found[2] == [{}, {}, "", 0, []]
    assert found[1] == found[3] == [{"a": "c=1"}, {"b": "c=1"}, "c=1", 1, ["e"]]
