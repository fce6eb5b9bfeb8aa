from deniable.results.base import (
    Difference as Difference,
    Quantity as Quantity,
    Result as Result,
    Weights as Weights,
    few_people as few_people,
    no_reports as no_reports,
    quantile as quantile,
)
from deniable.results.distribution import Distribution as Distribution
from deniable.results.document import Document as Document, Section as Section
from deniable.results.joint import Crosstab as Crosstab, Joint as Joint
from deniable.results.mean import Mean as Mean
from deniable.results.regression import Regression as Regression
from deniable.results.rows import (
    RESPONDENTS as RESPONDENTS,
    ROWS_SHOWN as ROWS_SHOWN,
    Drawing as Drawing,
    Floats as Floats,
    Rows as Rows,
    View as View,
    finite as finite,
    number as number,
)
from deniable.results.sets import (
    ItemShares as ItemShares,
    KeyMeans as KeyMeans,
    TogetherShares as TogetherShares,
    TopShares as TopShares,
)
from deniable.results.several import (
    MomentFigures as MomentFigures,
    Series as Series,
    Several as Several,
    Strata as Strata,
)
from deniable.results.shares import (
    Estimate as Estimate,
    Fit as Fit,
    Support as Support,
    Winner as Winner,
    combine as combine,
)
from deniable.results.significance import (
    Misfit as Misfit,
    SignificanceTest as SignificanceTest,
    compare as compare,
    independence as independence,
)
