"""How exact a survey will be: the interval of each question for the number of people who are expected to answer.

The command line prints these figures for a draft, and the survey builder shows them while a draft is written.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from deniable.planning import half_width
from deniable.protocols import Protocol
from deniable.surveys.results import part_id
from deniable.surveys.survey import Survey

LEVEL = 0.95
SHARE, RANGE, UNIT = "share", "range", "unit"
LISTED = ("shares", "items", "keys", "found")
_TYPICAL = ("ranges", "rectangles", "places", "series")
_QUERIED = ("queries", "regression")


@dataclass(frozen=True)
class Expected:
    """The expected precision of a question, or of a part of its answers.

    Args:
        id: The question, or the part of it.
        protocol: How its answers are randomized.
        people: About how many answer it.
        half_width: Half-width of the interval; None if the reports do not determine the figure.
        scale: What the half-width is a part of: a "share", the "range" of a query, or none: a number in its "unit".
        unit: The unit of a number.
        visible: The smallest share that can be distinguished from zero; None if there is none.
    """

    id: str
    protocol: Protocol
    people: int
    half_width: float | None
    scale: str
    unit: str = ""
    visible: float | None = None


def expected(survey: Survey, people: Mapping[str, int]) -> Iterator[Expected]:
    """Each question, or each part of its answers; `people` answer each question, by its id."""
    for id, n in people.items():
        for part, (protocol, some) in survey[id].protocol.worth(n).parts.items():
            yield _expected(part_id(id, part), protocol, some)


def _expected(id: str, protocol: Protocol, n: int) -> Expected:
    reach, worth = half_width(protocol, n, LEVEL), protocol.worth()
    known = None if math.isnan(reach) else reach
    if worth.read in _TYPICAL:
        return Expected(id, protocol, n, known, SHARE)
    if worth.read in _QUERIED:
        return Expected(id, protocol, n, known, RANGE)
    if worth.unit or worth.read not in LISTED:
        return Expected(id, protocol, n, known, UNIT, worth.unit)
    return Expected(id, protocol, n, known, SHARE, visible=None if known is None else protocol.worth(n).visible(LEVEL))
