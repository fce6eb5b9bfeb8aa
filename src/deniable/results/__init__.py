"""What an estimate can be: shares of answers, a mean, a distribution, ... all of them one table with the same forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deniable._extras import late
from deniable.results.base import (
    NOTHING,
    RESPONDENTS,
    ROWS_SHOWN,
    TOO_FEW,
    Difference,
    Floats,
    Result,
    Rows,
    Weights,
    finite,
    number,
    quantile,
)

if TYPE_CHECKING:
    from deniable.results.distribution import Distribution, Figure
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
    "Series",
    "Several",
    "SignificanceTest",
    "Strata",
    "Support",
    "TogetherShares",
    "TopShares",
    "Weights",
    "Winner",
    "combine",
    "compare",
    "finite",
    "independence",
    "number",
    "quantile",
]

# Loaded when first used: who counts shares does not wait for tables of many columns.
__getattr__ = late(
    __name__,
    {
        "distribution": ("Distribution", "Figure"),
        "joint": ("Crosstab", "Joint"),
        "mean": ("Mean",),
        "regression": ("Regression",),
        "sets": ("ItemShares", "KeyMeans", "TogetherShares", "TopShares"),
        "several": ("MomentFigures", "Series", "Several", "Strata"),
        "shares": ("Estimate", "Fit", "Support", "Winner", "combine"),
        "significance": ("Misfit", "SignificanceTest", "compare", "independence"),
    },
)
