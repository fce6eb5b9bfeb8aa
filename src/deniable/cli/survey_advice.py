"""What an author should know of a survey before it is published: how exact it will be, and what looks like a slip.

expected   per question, for as many people as the draft says: how far the interval of a share in the population reaches
           to either side, whatever the share, and the smallest share that stands out when all answers are looked at
           together
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from deniable.channels.levels import epsilon_text
from deniable.cli import output
from deniable.cli.survey_facts import cut_epochs
from deniable.cli.targets import many
from deniable.surveys import Survey
from deniable.surveys.draft import crowds, divided, has_epsilon

LEVEL = 0.95
WIDE = 0.1
"""Intervals that reach further than this to either side say little."""


def print_division(survey: Survey, draft: Mapping[str, Any]) -> None:
    """How epsilon follows from the budget, if it does."""
    share = divided(draft)
    if share is None or survey.terms is None:
        return
    named = sum(map(has_epsilon, draft["questions"]))
    what = "round" if survey.terms.longitudinal.rule == "none" else "memoized answer"
    rest = ", after those that the draft names" if named else ""
    output.write("\n")
    output.prose(
        f"epsilon {epsilon_text(share)} a question: the budget of {epsilon_text(survey.terms.budget.epsilon)}, divided "
        f"equally over {many(survey.draws, what)} and {many(len(survey) - named, 'question')}{rest}"
    )


def print_expected(survey: Survey, draft: Mapping[str, Any]) -> None:
    """How exact the result will be, question by question."""
    from deniable.planning import half_width, visible

    people = crowds(draft)
    if not people:
        return
    rows = []
    for id, n in people.items():
        protocol = survey[id].protocol
        clear = visible(protocol, n, LEVEL)
        from_share = "none" if clear is None else f"{_percent(clear)} %"
        rows.append([id, f"{n:,}", f"+-{_percent(half_width(protocol, n, LEVEL))} points", from_share])
    output.write(f"\nexpected{_each(survey)}:\n")
    output.table(["question", "people", f"{100 * LEVEL:g}% interval", "smallest visible share"], rows)


def advice(survey: Survey, draft: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Notes and warnings, each with its kind."""
    if survey.terms is not None:
        for cut in cut_epochs(survey.terms):
            yield "note", f"the epochs do not divide the collection: {cut} will have fewer answers than the others"
    yield from _too_wide(survey, crowds(draft))


def _too_wide(survey: Survey, people: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    from deniable.planning import half_width

    needed = {}
    for id, n in people.items():
        wide = half_width(survey[id].protocol, n, LEVEL) / WIDE
        if wide > 1:
            needed[id] = n * wide**2  # errors shrink with the square root of the number of people
    if not needed:
        return
    again = survey.draws > 1 and survey.terms is not None and survey.terms.longitudinal.rule == "none"
    fewer = [what for what, some in (("questions", len(survey) > 1), ("rounds", again)) if some]
    sooner = f" (fewer {' or '.join(fewer)} leave more for each)" if fewer else ""
    memoize = (
        '. For answers that seldom change, the rule "memoize" takes epsilon for each different answer and not for each '
        "round, and so may allow a larger one"
    )
    yield (
        "warning",
        f"the intervals of {', '.join(needed)} are wider than +-{100 * WIDE:g} points: for these, ask about "
        f"{_round(max(needed.values())):,} people{_each(survey)}, or raise epsilon{sooner}{memoize if again else ''}",
    )


def _each(survey: Survey) -> str:
    return " in each epoch" if survey.terms is not None and survey.terms.count > 1 else ""


def _percent(share: float) -> str:
    """
    >>> _percent(0.16912), _percent(0.001234)
    ('16.9', '0.12')
    """
    return f"{100 * share:.1f}" if share >= 0.01 else f"{100 * share:.2g}"


def _round(value: float) -> int:
    """Up to two digits.

    >>> _round(4301.0), _round(99.5), _round(4300.0)
    (4400, 100, 4300)
    """
    unit = int(10 ** max(0, len(str(int(value))) - 2))
    return -int(-value // unit) * unit
