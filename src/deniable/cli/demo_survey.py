"""The survey of the demo: 6,366 real answers to questions that nobody likes to answer.

Data       the survey of extramarital affairs that *Redbook* magazine held in 1974, as used by Fair, "A Theory of
           Extramarital Affairs", Journal of Political Economy 86 (1978); read from statsmodels, which bundles it
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable._extras import require
from deniable.surveys import Survey

AFFAIR, MARRIAGE = "affair", "marriage"
RATINGS = ("very poor", "poor", "fair", "good", "very good")
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
    """What the women of 1974 said, a column a question; the first `people` of them."""
    fair = require("statsmodels.datasets.fair", "demo").load_pandas().data.iloc[:people]
    affair = np.where(fair["affairs"].to_numpy() > 0, "yes", "no")
    marriage = np.array(RATINGS)[fair["rate_marriage"].to_numpy().astype(int) - 1]
    return {AFFAIR: affair.tolist(), MARRIAGE: marriage.tolist()}
