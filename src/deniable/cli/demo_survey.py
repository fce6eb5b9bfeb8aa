"""The survey of the demo: 6,366 real answers to questions that nobody likes to answer.

Data       the survey of extramarital affairs that *Redbook* magazine held in 1974, as used by Fair, "A Theory of
           Extramarital Affairs", Journal of Political Economy 86 (1978); counted from the table that statsmodels
           bundles as `statsmodels.datasets.fair`
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from deniable.surveys import Survey

AFFAIR, MARRIAGE = "affair", "marriage"
RATINGS = ("very poor", "poor", "fair", "good", "very good")
COUNTS = {"yes": (74, 221, 547, 724, 487), "no": (25, 127, 446, 1518, 2197)}  # by affair, then by rating
DRAFT: dict[str, Any] = {
    "name": "Marriage and affairs",
    "owner": "deniable demo",
    "purpose": "to show on one machine how a sensitive survey is collected without learning what anyone said",
    "days": 30,
    "epsilon": "1",
    "people": 6366,
    "show_from": 100,
    "questions": [
        {"id": AFFAIR, "text": "Have you had an affair in this marriage?", "answers": ["yes", "no"]},
        {"id": MARRIAGE, "text": "How do you rate your marriage?", "answers": list(RATINGS)},
    ],
}


def demo_survey() -> Survey:
    """The survey, open from now on."""
    return Survey.from_draft(DRAFT)


def demo_answers(people: int | None = None) -> dict[str, list[str]]:
    """What the women of 1974 said, one column per question; the first `people` of them.

    The order of the people is ours: every kind is spread evenly, so that the first few have the shares of all.
    """
    women = [
        (Fraction(2 * i + 1, 2 * count), affair, rating)
        for affair, counts in COUNTS.items()
        for rating, count in zip(RATINGS, counts, strict=True)
        for i in range(count)
    ]
    women = sorted(women)[:people]
    return {AFFAIR: [affair for _, affair, _ in women], MARRIAGE: [rating for _, _, rating in women]}
