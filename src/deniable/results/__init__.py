"""Results: shares of answers, a mean, a distribution, ... all of them one table with the same output forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deniable._extras import late
from deniable.results.base import NOTHING, TOO_FEW, Difference, Result, Weights, quantile
from deniable.results.rows import RESPONDENTS, ROWS_SHOWN, Drawing, Floats, Rows, View, finite, number

if TYPE_CHECKING:
    from deniable.results.distribution import Distribution, Figure
    from deniable.results.document import Document, Section
    from deniable.results.joint import Crosstab, Joint
    from deniable.results.mean import Mean
    from deniable.results.regression import Regression
    from deniable.results.sets import ItemShares, KeyMeans, TogetherShares, TopShares
    from deniable.results.several import MomentFigures, Series, Several, Strata
    from deniable.results.shares import Estimate, Fit, Support, Winner, combine
    from deniable.results.significance import Misfit, SignificanceTest, compare, independence

__all__ = [
    "NOTHING",
    "RESPONDENTS",
    "ROWS_SHOWN",
    "TOO_FEW",
    "Crosstab",
    "Difference",
    "Distribution",
    "Document",
    "Drawing",
    "Estimate",
    "Figure",
    "Fit",
    "Floats",
    "ItemShares",
    "Joint",
    "KeyMeans",
    "Mean",
    "Misfit",
    "MomentFigures",
    "Regression",
    "Result",
    "Rows",
    "Section",
    "Series",
    "Several",
    "SignificanceTest",
    "Strata",
    "Support",
    "TogetherShares",
    "TopShares",
    "View",
    "Weights",
    "Winner",
    "combine",
    "compare",
    "finite",
    "independence",
    "number",
    "quantile",
]

# Loaded on first use: counting shares does not load the code for tables of many columns.
__getattr__ = late(
    __name__,
    {
        "distribution": ("Distribution", "Figure"),
        "document": ("Document", "Section"),
        "joint": ("Crosstab", "Joint"),
        "mean": ("Mean",),
        "regression": ("Regression",),
        "sets": ("ItemShares", "KeyMeans", "TogetherShares", "TopShares"),
        "several": ("MomentFigures", "Series", "Several", "Strata"),
        "shares": ("Estimate", "Fit", "Support", "Winner", "combine"),
        "significance": ("Misfit", "SignificanceTest", "compare", "independence"),
    },
)
