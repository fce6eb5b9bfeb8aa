"""The front page: what is collected here, and only what is open can be answered."""

from __future__ import annotations

from dataclasses import replace

from deniable.collect.server.pages import MOST, foremost, front_page
from deniable.collect.server.registry import Entry
from deniable.collect.server.surveys import Listed, listed
from deniable.collect.stores.base import CLOSED, OPEN
from deniable.protocols import GRR
from deniable.surveys import Longitudinal, Survey
from deniable.surveys.promises import band, promises
from tests.collect.surveys import DAY, SMOKE, TODAY, memoized, mixed, plain, terms


def entry(name: str, state: str = OPEN, begins: int = -10) -> Entry:
    """Open for 40 days from the day that is `begins` days from now."""
    own = terms(TODAY + (begins + 10) * DAY)
    survey = Survey(name, [SMOKE], own)
    return Entry(survey, survey.canonical, state)


def said(entry: Entry) -> Listed:
    """What the list says, of a survey whose current epoch was not closed."""
    return listed(entry, TODAY, entry.phase(TODAY) == "collecting")


def whole(entries: list[Entry], origin: str | None = None) -> str:
    first = foremost(entries, TODAY)
    return front_page(first, [said(one) for one in first], len(entries) - len(first), origin)


def sections(text: str) -> dict[str, str]:
    """By name, in the order of the page."""
    parts = text.split("<h2>")[1:]
    return {part.partition("</h2>")[0]: part.partition("</section>")[0] for part in parts}


def test_only_an_open_survey_can_be_answered() -> None:
    entries = [entry("z closed", CLOSED), entry("over", begins=-50), entry("soon", begins=5), entry("yes"), entry("b")]
    found = sections(whole(entries))
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
    text = whole([Entry(survey, survey.canonical, OPEN)], "https://answers.example.org")
    assert "T00:00:00Z" not in text
    assert text.count("<li>") == len(survey)
    assert "https://answers.example.org" in text


def test_texts_are_not_markup_and_there_is_an_end() -> None:
    entries = [entry(f"<b>{i:03}") for i in range(MOST + 2)]
    text = whole(entries)
    assert "<b>" not in text
    assert text.count("<section") == MOST
    assert "And 2 more" in text
    assert "No survey is published yet." in whole([])


def test_a_closed_period_and_a_survey_that_was_replaced() -> None:
    known = entry("daily")
    shut = front_page([known], [listed(known, TODAY, False, "f" * 64)], 0, None)
    assert ">Answer<" not in shut
    assert "This period is closed; the survey ends: 20" in shut
    assert f'<dt>Replaced by</dt><dd><a href="s/{"f" * 64}">' in shut
    assert "Replaced by" not in whole([known])


def test_levels_are_written_as_decimals() -> None:
    question = replace(SMOKE, protocol=GRR(["yes", "no"], "0.8"))
    survey = Survey("x", [question], terms(TODAY, longitudinal=Longitudinal(epochs=3)))
    text = whole([Entry(survey, survey.canonical, OPEN)])
    assert "epsilon 0.8 per submission, 2.4 in all" in text


def test_what_is_promised_follows_the_survey() -> None:
    """Memoizing several answers has no number in all, here and in the list; what is kept follows retention."""
    several, kept = memoized(), plain(retention="reports")
    text = whole([Entry(several, several.canonical, OPEN), Entry(kept, kept.canonical, OPEN)])
    for survey in (several, kept):
        assert promises(survey)["kept"] in text
        assert f"protection: {band(survey)}" in text
    assert "epsilon 1 per submission, no epsilon bounds all reports together" in text
    assert listed(Entry(several, several.canonical, OPEN), TODAY, True, None).lifetime_epsilon is None
    assert listed(Entry(kept, kept.canonical, OPEN), TODAY, True, None).lifetime_epsilon == "1"
