"""The front page: what is collected here, and only what is open can be answered."""

from __future__ import annotations

from deniable.collect.server.front import MOST, page
from deniable.collect.server.registry import Entry
from deniable.collect.stores.base import CLOSED, OPEN
from deniable.surveys import Survey
from tests.collect.surveys import DAY, SMOKE, TODAY, mixed, terms


def entry(name: str, state: str = OPEN, begins: int = -10) -> Entry:
    """Open for 40 days from the day that is `begins` days from now."""
    own = terms(TODAY + (begins + 10) * DAY)
    survey = Survey(name, [SMOKE], own)
    return Entry(survey, survey.canonical, state)


def sections(text: str) -> dict[str, str]:
    """By name, in the order of the page."""
    parts = text.split("<h2>")[1:]
    return {part.partition("</h2>")[0]: part.partition("</section>")[0] for part in parts}


def test_only_an_open_survey_can_be_answered() -> None:
    entries = [entry("z closed", CLOSED), entry("over", begins=-50), entry("soon", begins=5), entry("yes"), entry("b")]
    found = sections(page(entries, TODAY, None))
    assert list(found) == ["b", "yes", "soon", "over", "z closed"], "those that can be answered come first"
    assert [name for name, text in found.items() if ">Answer<" in text] == ["b", "yes"]
    assert all(">Dashboard<" in text and ">Specification<" in text for text in found.values())
    says = {
        "b": "Open until ",
        "soon": "Not open yet: opens on ",
        "over": "Over since ",
        "z closed": "Closed by its owner",
    }
    for name, words in says.items():
        assert words in found[name]


def test_times_are_dates_and_questions_a_list() -> None:
    survey = mixed()
    text = page([Entry(survey, survey.canonical, OPEN)], TODAY, "https://answers.example.org")
    assert "T00:00:00Z" not in text
    assert text.count("<li>") == len(survey)
    assert "https://answers.example.org" in text


def test_texts_are_not_markup_and_there_is_an_end() -> None:
    entries = [entry(f"<b>{i:03}") for i in range(MOST + 2)]
    text = page(entries, TODAY, None)
    assert "<b>" not in text
    assert text.count("<section") == MOST
    assert "And 2 more" in text
    assert "No survey is published yet." in page([], TODAY, None)
