"""Statistical queries, also for regression: each person answers one bounded query about a record, chosen by coins.

Law        query g with probability w_g / W, whatever the record is; then a report of a mean's protocol about the value
           of that query, a number on [-1, 1], or on [0, 1] where it cannot be negative
Privacy    the largest epsilon of a query's protocol, for the whole record: one query is answered, and which one does
           not depend on the record. Queries are public; they may depend on what other people have reported
Error      of a query: its protocol's with n w_g / W people. Of coefficients see `results.regression`
Report     the query's number, its report, zeros up to the longest one
Cost       one random word more than the query's report
Source     Kearns 1998 (statistical queries); Kasiviswanathan et al. 2008 (their equivalence with local privacy);
           regression by batches: Smith, Thakurta and Upadhyay 2017; Duchi, Jordan and Wainwright 2018

Figures    `query_forms` defines what a query is
Regression of a target on all other columns, at coefficients that are published: the queries are the gradient, residual
           times feature, and the curvature, feature times feature (times the slope). A batch gives one step of
           Newton's method; for a logistic regression at 0, the linear discriminant (`results.regression`). Successive
           batches are a campaign: each is asked at the coefficients that the batch before has found. Linear
           residuals are clipped to a bound, 3 times their spread, which lowers their noise; larger ones count as the
           bound
Floats     values are float64 formulas of sums, products and quotients in a fixed order, the same in the browser. They
           come before an exact law, and so need no exactness for privacy
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.domains import Domain, Integers, Interval, Records
from deniable.domains.records import RecordColumns
from deniable.errors import SpecError
from deniable.protocols.choice import build, choose
from deniable.protocols.groups import Group, Groups
from deniable.protocols.law import Law
from deniable.protocols.numeric.grid import quantity
from deniable.protocols.protocol import Protocol, first_of
from deniable.protocols.record import remembered
from deniable.protocols.records.query_forms import (
    EVEN,
    LARGEST,
    ONE,
    POSITIVE,
    WHOLE,
    Feature,
    ProductQuery,
    Regressed,
    Wanted,
    Writer,
    bound_of,
    check_features,
    check_queries,
    different_products,
    ends_of,
    few_of,
    logistic,
    read_feature,
    read_regress,
    regression_queries,
    value_range,
    wanted_target,
    worded,
)
from deniable.protocols.tally import Tally
from deniable.protocols.traits import Traits, not_offered, scaled
from deniable.protocols.worth import Worth
from deniable.results import Floats, Mean, MomentFigures, Weights
from deniable.results.regression import Batch, Entry, Regression, Scale, discriminant
from deniable.words import Fact, word

_PEOPLE = 10_000
_LATER = (3, 1)
"""How many people gradient and curvature of a linear regression get, against each other, after the first batch."""
_SPREADS = 3
_SHOWN = 12
_FINE = 1 << 32


@dataclass(frozen=True, init=False, repr=False)
class Queries(Groups):
    """Means of bounded queries about a record, or with `regress` the coefficients of a regression.

    `queries` are by name: {"times": [feature, ...]} for the mean of a product, where a feature is the name of a column
    of numbers or a pair of column and answer. With "weights": [[feature, number], ...] (None for the constant), "link",
    "of" and "bound" a query has a form.

    Args:
        domain: `Records`, or domains by name.
        epsilon: Largest epsilon of a report.
        people: Expected number of respondents, for the choice of the protocols.
        queries: The queries by name; see above.
        regress: The target of a regression: {"target": column, "link": "linear" or "logistic", "answer": ...}.
        at: Coefficients at which the regression is asked; 0 if None.

    Raises:
        SpecError: Not exactly one of `queries` and `regress` is given, or a query is not valid.

    >>> people = {"age": Interval(20, 60, unit="years"), "sport": ["yes", "no"]}
    >>> young = Queries(people, 1, queries={"age of sportsmen": {"times": ["age", ("sport", "yes")]}})
    >>> young.group_names, young.report_bytes
    (('age of sportsmen',), 2)
    >>> both = Queries(people, 1, regress={"target": "age"})
    >>> both.labels, both.group_names
    (('intercept', 'sport: no'), ('residual', 'residual times sport: no', 'sport: no', 'residual squared'))
    """

    name: ClassVar[str] = "Queries"
    traits: ClassVar[Traits] = Traits(
        takes=(Records,),
        advice="it needs dn.Records({name: domain, ...})",
        reads=("queries", "regression"),
        candidates=not_offered,  # people say which queries they want
        at_epsilon=lambda protocol, factor: protocol._scaled(factor),
        waived={"unbiased": "each query divides by the number of its own reports, which chance decides"},
    )

    domain: Records
    features: tuple[Feature, ...] = ()
    forms: tuple[tuple[int, ...], ...] = ()
    """Coefficients over 2^16, the constant first, then one per feature."""
    queries: tuple[ProductQuery, ...] = ()
    names: tuple[str, ...] = ()
    regress: Regressed | None = None

    def __init__(
        self,
        domain: Any,
        epsilon: exact.Number,
        people: int | None = None,
        queries: Mapping[str, Any] | None = None,
        regress: Mapping[str, Any] | None = None,
        at: Sequence[exact.Number] | None = None,
    ) -> None:
        self._settle_record(domain, epsilon, people)
        if (queries is None) == (regress is None):
            raise SpecError("give either queries or regress, the target of a regression")
        if queries is not None:
            if at is not None:
                raise SpecError("`at` goes with regress")
            wanted = Writer(self.domain).written(queries)
        else:
            wanted = regression_queries(self.domain, *wanted_target(self.domain, regress, at))
        self._fill(self.domain, wanted, _laws(self.epsilon, people, len(wanted.queries)), self.epsilon)

    def _fill(self, domain: Domain, wanted: Wanted, laws: Mapping[Interval, Protocol], epsilon: Any) -> None:
        features = wanted.features
        groups = [(w, laws[value_range(one, features)]) for w, one in zip(wanted.weights, wanted.queries, strict=True)]
        self._set(domain, wanted, groups, epsilon)

    @classmethod
    def _made(cls, domain: Domain, wanted: Wanted, groups: Any, epsilon: Any) -> Queries:
        made = cls.__new__(cls)
        made._set(domain, wanted, groups, epsilon)
        return made

    def _set(self, domain: Domain, wanted: Wanted, groups: Any, epsilon: Any) -> None:
        values = {
            "domain": domain,
            "features": wanted.features,
            "forms": wanted.forms,
            "queries": wanted.queries,
            "names": wanted.names,
            "regress": wanted.regress,
            "groups": tuple(Group(weight, protocol) for weight, protocol in groups),
            "epsilon": epsilon,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check_groups()
        largest = max(group.protocol.epsilon for group in self.groups)
        if epsilon is None:
            object.__setattr__(self, "epsilon", largest)
        self._settle()
        if self.epsilon != largest:
            raise SpecError("epsilon is not the largest one of the groups")
        check_features(self.domain, self.features)
        check_queries(wanted, len(self.groups))
        for query, (_, protocol) in zip(self.queries, self.groups, strict=True):
            own = value_range(query, self.features)
            if protocol.domain != own or not hasattr(protocol, "contribution"):
                raise SpecError(f"a query of {self.name} is answered by a protocol for a mean on {own!r}")
        if self.regress is not None:
            again = regression_queries(self.domain, self._explained, self.regress.link, self.forms[0], self.bound)
            if again[:4] != (self.features, self.forms, self.queries, self.names):
                raise SpecError("the queries are not those of the regression that the spec names")

    def parameters(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "features": [one.spec() for one in self.features],
            "forms": [list(form) for form in self.forms],
            "queries": [{"name": name} | one.spec() for name, one in zip(self.names, self.queries, strict=True)],
        }
        if self.regress is not None:
            found["regress"] = {"target": self.regress.target, "link": self.regress.link}
        return found | super().parameters()

    @classmethod
    def _from_parameters(cls, domain: Domain, epsilon: Any, parameters: Mapping[str, Any]) -> Queries:
        if not isinstance(domain, Records):
            raise SpecError(f"{cls.name} cannot ask for {domain}: {cls.traits.advice}")
        match parameters:
            case {
                "features": list(features),
                "forms": list(forms),
                "queries": list(queries),
                "groups": list(groups),
                **rest,
            } if set(rest) <= {"regress"} and len(queries) == len(groups) and all(isinstance(f, list) for f in forms):
                named = [dict(one) for one in queries if isinstance(one, Mapping) and isinstance(one.get("name"), str)]
                if len(named) < len(queries):
                    raise SpecError("a query has a name")
                wanted = Wanted(
                    tuple(read_feature(one) for one in features),
                    tuple(tuple(form) for form in forms),
                    tuple(ProductQuery.from_spec({k: v for k, v in one.items() if k != "name"}) for one in named),
                    tuple(one["name"] for one in named),
                    (),
                    read_regress(rest.get("regress")) if "regress" in rest else None,
                )
                return cls._made(domain, wanted, cls._written(groups), epsilon)
        raise SpecError("queries need features, forms, queries and a group per query, perhaps regress, and no more")

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        from deniable.protocols.numeric.window import OneBitMean

        laws = {WHOLE: OneBitMean(WHOLE, 1), POSITIVE: OneBitMean(POSITIVE, 1)}
        people = Records({"smoke": ["yes", "no"], "age": Integers(0, 2), "warm": Interval(0, 1)})
        asked = {
            "smokers' age": {"times": ["age", ("smoke", "yes")]},
            "score": {"weights": [[None, "-3/4"], ["warm", "-1/2"], ["age", -1]], "bound": 2},
        }
        made = cls.__new__(cls)
        made._fill(people, Writer(people).written(asked), laws, None)
        yield made
        two = Records({"smoke": ["yes", "no"], "sport": ["yes", "no"]})
        target = wanted_target(two, {"target": "smoke", "link": "logistic"}, ["1/2", "-1/2"])
        made = cls.__new__(cls)
        made._fill(two, regression_queries(two, *target), laws, None)
        yield made

    def _scaled(self, factor: Fraction) -> Queries:
        groups = [(weight, scaled(protocol, factor)) for weight, protocol in self.groups]
        return self._made(self.domain, self._wanted, groups, None)

    @property
    def _wanted(self) -> Wanted:
        weights = tuple(weight for weight, _ in self.groups)
        return Wanted(self.features, self.forms, self.queries, self.names, weights, self.regress)

    # -- the law -----------------------------------------------------------------------------------

    @property
    def group_names(self) -> tuple[str, ...]:
        return self.names

    @cached_property
    def _coefficients(self) -> tuple[tuple[float, ...], ...]:
        return tuple(tuple(one / ONE for one in form) for form in self.forms)

    def project(self, value: Any, group: int) -> float:
        rows = [np.array([one], dtype=np.float64) for one in value]
        return float(self._values(rows, group)[0])

    def project_many(self, values: RecordColumns, group: int, rows: NDArray[np.intp]) -> Floats:
        return self._values([np.asarray(column).take(rows) for column in values.columns], group)

    def _values(self, columns: Sequence[NDArray[Any]], group: int) -> Floats:
        """A query of some records, given as their encoded columns."""
        query = self.queries[group]
        found = np.ones(len(columns[0]))
        for place in query.times:
            found *= self._feature(columns, place)
        if query.form is None:
            return found
        constant, *weights = self._coefficients[query.form]
        t = np.full(len(columns[0]), constant)
        for place, weight in enumerate(weights):
            t += weight * self._feature(columns, place)
        part = t if query.link == "linear" else logistic(t)
        if query.link == "slope":
            part = 4 * part * (1 - part)
        if query.of is not None:
            part = self._feature(columns, query.of) - part
        part = np.clip(part / float(query.bound), -1.0, 1.0)
        found *= part * part if query.squared else part
        return found

    def _feature(self, columns: Sequence[NDArray[Any]], place: int) -> Floats:
        column, answer = self.features[place]
        if answer is not None:
            found: Floats = (columns[column] == answer).astype(np.float64)
            return found
        low, high = ends_of(self.domain.columns[column][1])
        numbers = columns[column].astype(np.float64)
        if isinstance(self.domain.columns[column][1], Integers):
            numbers = numbers + low
        scaled: Floats = ((numbers - low) - (high - numbers)) / (high - low)
        return scaled

    def part(self, value: Any, group: int) -> Any:
        return self.project(self.domain.encode_one(value), group)

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        _, *rest = super().story(value, encoded, report)
        group = int.from_bytes(report[: self._head], "little")
        taken = quantity(self.project(encoded, group))
        return [word("story.figure", chances=first_of(self._told_chances(), len(self.groups)), taken=taken), *rest]

    def _inputs(self) -> Iterator[tuple[Any, Any]]:
        """Records of ends, middles and listed answers: a few of all laws."""
        for row in product(*(few_of(domain) for _, domain in self.domain.columns)):
            yield tuple(label for label, _ in row), tuple(value for _, value in row)

    # -- the read-out ------------------------------------------------------------------------------

    @property
    def labels(self) -> tuple[str, ...]:
        """The coefficients of the regression, in their order; of other queries their names."""
        if self.regress is None:
            return self.names
        return ("intercept", *(worded(self.domain, one) for one in self.features[: self.regress.target]))

    @property
    def bound(self) -> Fraction:
        """What residuals are clipped to, on the scale of the target from -1 to 1."""
        return next((one.bound for one in self.queries if one.of is not None), Fraction(1))

    @property
    def _explained(self) -> Feature:
        assert self.regress is not None
        return self.features[self.regress.target]

    @property
    def at(self) -> Floats:
        """The coefficients that the regression is asked at, of features on a scale from -1 to 1."""
        assert self.regress is not None
        return np.array(self.forms[0][: self.regress.target + 1]) / ONE

    def estimate(self, tally: Tally) -> Any:
        """The mean of each query; of a regression its coefficients after one step from those that it was asked at."""
        return super().estimate(tally)

    def infer(self, tally: Tally) -> MomentFigures | Regression:
        if self.regress is not None:
            return self.regression([self.batch(tally)] if tally.n else [])
        return self._means(self._measured(tally), tally.n)

    def _means(self, measured: Sequence[tuple[float, float, int]], n: int) -> MomentFigures:
        parts = {}
        asked = zip(self.names, self.queries, measured, self.groups, strict=True)
        for name, query, (value, variance, own), (_, protocol) in asked:
            ends = value_range(query, self.features).ends
            bound = bound_of(query)
            known = math.isfinite(value) and math.isfinite(variance)
            error = math.sqrt(variance) * bound if known else math.nan
            numbers = (value * bound, own, error, error) if known else (math.nan, 0, math.nan, math.nan)
            weights, range_of = _said(protocol, bound), (ends[0] * bound, ends[1] * bound)
            parts[name] = Mean(*numbers, range_of, self.name, figure=name, weights=weights)
        return MomentFigures(parts, n, self.name)

    def _measured(self, tally: Tally) -> list[tuple[float, float, int]]:
        """For each query: the mean, the variance of that mean, and how many people answered it."""
        found = []
        for own, exactly in zip(self.tallies(tally), self._exactly(tally), strict=True):
            mean, variance = (math.nan, math.nan) if exactly is None else map(float, exactly)
            found.append((mean, variance, own.n))
        return found

    def _exactly(self, tally: Tally) -> list[tuple[Fraction, Fraction] | None]:
        """The same in fractions; None for queries without answers."""
        found: list[tuple[Fraction, Fraction] | None] = []
        for (_, protocol), own in zip(self.groups, self.tallies(tally), strict=True):
            n = own.n
            if not n:
                found.append(None)
                continue
            pairs = [(protocol.contribution(y), int(count)) for y, count in enumerate(own.counts) if count]  # type: ignore[attr-defined]
            mean = sum((value * count for value, count in pairs), Fraction(0)) / n
            spread = sum((count * (value - mean) ** 2 for value, count in pairs), Fraction(0)) / max(1, n - 1)
            # Where all reports say the same, their spread says nothing about the noise.
            found.append((mean, (spread or _largest(protocol) ** 2) / n))
        return found

    def errors(self, n: int, population: bool = True) -> dict[str, float]:
        """The standard error of each query that n people share, in the worst case.

        >>> asked = Queries({"a": 2, "b": 2}, 1, queries={"a": {"times": ["a"]}, "both": {"times": ["a", "b"]}})
        >>> {name: round(error, 3) for name, error in asked.errors(20_000).items()}
        {'a': 0.022, 'both': 0.022}
        """
        each = zip(self.names, self.queries, self.groups, self.people(n), strict=True)
        return {
            name: bound_of(query) * (group.protocol.worth(own, population=population).error if own else math.inf)
            for name, query, group, own in each
        }

    # -- regression --------------------------------------------------------------------------------

    @property
    def _step_scale(self) -> Fraction:
        """What a mean of the slope is divided by for the curvature."""
        assert self.regress is not None
        return Fraction(1, 4) if self.regress.link == "logistic" else Fraction(1)

    @cached_property
    def _places(self) -> tuple[list[int], dict[tuple[int, ...], list[tuple[int, int]]]]:
        """The query of each coefficient's gradient, and the places of each product of features."""
        assert self.regress is not None
        size = self.regress.target + 1
        return list(range(size)), different_products(self.features[: self.regress.target])

    def batch(self, tally: Tally) -> Batch:
        """What this tally says about gradient and curvature."""
        return self._batch(self._measured(tally), tally.n)

    def _batch(self, measured: Sequence[tuple[float, float, int]], n: int) -> Batch:
        size, bound, scale = self.at.size, float(self.bound), float(self._step_scale)
        gradient = np.array([measured[place][0] for place in range(size)]) * bound
        variances = np.array([measured[place][1] for place in range(size)]) * bound**2
        asked = {one.times: place for place, one in enumerate(self.queries) if one.of is None}
        entries = []
        for factors, places in self._places[1].items():
            mean, variance, said = 1.0, 0.0, None
            if factors in asked:
                mean, variance, own = measured[asked[factors]]
                said = _said(self.groups[asked[factors]].protocol, scale, own)
            if not math.isfinite(variance):
                variances = np.full(size, math.nan)
            entries.append(Entry(scale * mean, scale**2 * variance, tuple(places), said))
        each = tuple(_said(self.groups[place].protocol, bound, measured[place][2]) for place in range(size))
        return Batch(self.at, gradient, variances, tuple(entries), n, each)

    def regression(self, batches: Sequence[Batch]) -> Regression:
        """The coefficients of several batches of the same regression, in the units of the columns."""
        assert self.regress is not None
        name = self.domain.names[self._explained.column]
        target = name if self._explained.answer is None else worded(self.domain, self._explained)
        return Regression.of(batches, self.labels, self.regress.link, target, self._scale, self.name)

    @cached_property
    def _scale(self) -> Scale:
        assert self.regress is not None
        size = self.regress.target + 1
        matrix, shift, units = np.eye(size), np.zeros(size), [""]
        own_unit = "log odds" if self.regress.link == "logistic" else ""
        by, off = 1.0, 0.0
        domain = self.domain.columns[self._explained.column][1]
        if self._explained.answer is None:
            low, high = ends_of(domain)
            by, off, own_unit = (high - low) / 2, (high + low) / 2, getattr(domain, "unit", "")
        units = [own_unit]
        for place, feature in enumerate(self.features[: self.regress.target], 1):
            column = self.domain.columns[feature.column][1]
            unit = ""
            if feature.answer is None:
                low, high = ends_of(column)
                matrix[place, place] = 2 / (high - low)
                matrix[0, place] = -(high + low) / (high - low)
                unit = getattr(column, "unit", "")
            units.append(f"{own_unit} per {unit}" if unit and own_unit else own_unit or (f"per {unit}" if unit else ""))
        shift[0] = off
        return Scale(by * matrix, shift, tuple(units), LARGEST)

    def following(self, tally: Tally, number: int = 1) -> Queries:
        """The regression as the batch after batch `number` is asked: at the coefficients that its tally finds.

        By fractions alone. A ridge as large as the noise of the curvature keeps the step short where little is known.
        Later steps are shorter, so that what was found is the mean of the batches: 1 / number of a linear regression;
        of a logistic one 1 / (number - 1), as its batch at 0 only finds a start, the linear discriminant.
        """
        assert self.regress is not None
        size, scale = self.regress.target + 1, self._step_scale
        fine = [
            (Fraction(0), _largest(group.protocol) ** 2) if one is None else (_rounded(one[0]), _rounded(one[1]))
            for group, one in zip(self.groups, self._exactly(tally), strict=True)
        ]
        gradient = [fine[place][0] * self.bound for place in range(size)]
        noise = [fine[place][1] * self.bound**2 for place in range(size)]
        asked = {one.times: fine[place] for place, one in enumerate(self.queries) if one.of is None}
        matrix = [[Fraction(0)] * size for _ in range(size)]
        total = Fraction(0)
        for factors, places in self._places[1].items():
            mean, variance = asked.get(factors, (Fraction(1), Fraction(0)))
            for i, j in places:
                matrix[i][j] = matrix[j][i] = scale * mean
                total += (1 if i == j else 2) * scale**2 * variance
        ridge = _root(total / size) + Fraction(1, 1 << 12)
        while (inverse := _inverse(matrix, ridge)) is None:
            ridge *= 2
        share = Fraction(1, number if self.regress.link == "linear" else max(1, number - 1))
        step = [share * sum((a * g for a, g in zip(row, gradient, strict=True)), Fraction(0)) for row in inverse]
        before = self.forms[0]
        if self.regress.link == "logistic" and not any(before) and any(step):
            step = discriminant(step, gradient, [one / scale for one in matrix[0]], _log)
        most = LARGEST * ONE
        after = [min(most, max(-most, before[i] + round(step[i] * ONE))) for i in range(size)]
        form = (*after, *before[size:])
        bound = self.bound
        if self.regress.link == "linear":
            square = fine[-1]
            left = square[0] * bound**2 + sum(
                (step[i] * step[j] * matrix[i][j] for i in range(size) for j in range(size)), Fraction(0)
            )
            left -= 2 * sum((s * g for s, g in zip(step, gradient, strict=True)), Fraction(0))
            unsure = 2 * _root(square[1]) * bound**2
            unsure += sum((inverse[i][i] * noise[i] for i in range(size)), Fraction(0))
            widest = 1 + sum((abs(Fraction(one, ONE)) for one in after), Fraction(0))
            bound = min(widest, _SPREADS * _root(max(left, Fraction(0)) + unsure))
            bound = Fraction(max(1, math.ceil(bound * 16)), 16)
        laws = {group.protocol.domain: group.protocol for group in self.groups}
        for own in (WHOLE, POSITIVE):
            laws.setdefault(own, laws[WHOLE])
        made = type(self).__new__(type(self))
        shares = _LATER if self.regress.link == "linear" else EVEN
        wanted = regression_queries(self.domain, self._explained, self.regress.link, form, bound, shares)
        made._fill(self.domain, wanted, laws, self.epsilon)  # type: ignore[arg-type]
        return made

    # -- what simulations compare with ---------------------------------------------------------------

    def _truth(self, answers: Any, people: Any = None) -> Floats:
        """The means of the queries, or the coefficients of one step, without noise."""
        found = self._true(answers, people)
        if self.regress is None:
            return self._means(found, 1).table().value
        return self.regression([self._batch(found, 1)]).value

    def _true(self, answers: Any, people: Any, n: int | None = None) -> list[tuple[float, float, int]]:
        encoded = self.domain.encode(answers)
        rows, found = np.arange(len(encoded)), []
        for group, (_, protocol) in enumerate(self.groups):
            mean = float(np.average(self.project_many(encoded, group, rows), weights=people))
            own = self.people(n)[group] if n else 1
            found.append((mean, protocol.worth(own).noise ** 2 if n else 1e-18, own))
        return found

    def _figure_variances(self, answers: Any, people: Any = None) -> Floats:
        """In the worst case of each query's noise."""
        n = len(answers) if people is None else int(np.sum(people))
        found = self._true(answers, people, n)
        if self.regress is None:
            return self._means(found, n).table().stderr ** 2
        return self.regression([self._batch(found, n)]).stderr ** 2

    def __repr__(self) -> str:
        inner = ", ".join(self.names[:_SHOWN]) + (", ..." if len(self.names) > _SHOWN else "")
        return f"Queries({inner}, epsilon={self.epsilon})"

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            read="queries" if self.regress is None else "regression",
            # One part: the queries are about the same record.
            parts=lambda: {"": (self, n)},
            split=lambda tally: {"": (self, tally)},
            tests=lambda: len(self.labels),
            truth=self._truth,
            variances=self._figure_variances,
            scales=lambda: np.ones(self.worth().tests),
            spreads=lambda answers: np.zeros(self.worth().tests),
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            inputs=self._inputs,
            sent=lambda value, bits: self.draw(value, bits),
        )


def _laws(epsilon: Fraction, people: int | None, queries: int) -> dict[Interval, Protocol]:
    # What is slow to build is a few percent better, and would make a survey of a hundred queries very long.
    each, found = max(1, (_PEOPLE if people is None else int(people)) // queries), {}
    for own in (WHOLE, POSITIVE):
        offered = build(own, epsilon, n=each, quick=True)
        found[own] = offered[choose(offered, each)]
    return found


# -- fractions -----------------------------------------------------------------------------------------


def _said(protocol: Any, scale: float, reports: int | None = None) -> Weights:
    """What one report can say about the mean of a query, times a scale."""
    each = [scale * float(protocol.contribution(y)) for y in range(protocol.tally_size)]
    return Weights(min(each), max(each), reports)


def _largest(protocol: Any) -> Fraction:
    """The largest number that a report can be read as."""
    found: Fraction = max(abs(protocol.contribution(y)) for y in range(protocol.tally_size))
    return found


def _rounded(value: Fraction) -> Fraction:
    """In 32 bits after the point: enough, and quick to calculate with."""
    return Fraction(math.floor(value * _FINE), _FINE)


def _log(ratio: Fraction) -> Fraction:
    """The natural logarithm in 16 bits after the point, rounded away from zero."""
    return exact.log_ceil(ratio, ONE) if ratio >= 1 else -exact.log_ceil(1 / ratio, ONE)


def _root(value: Fraction) -> Fraction:
    """The square root, rounded up in 20 bits after the point."""
    return Fraction(math.isqrt(math.ceil(value * (1 << 40))) + 1, 1 << 20)


def _inverse(matrix: Sequence[Sequence[Fraction]], ridge: Fraction) -> list[list[Fraction]] | None:
    """The inverse of a symmetric matrix with a ridge on its diagonal; None where a pivot is less than half of it."""
    size = len(matrix)
    rows = [
        [one + (ridge if i == j else 0) for j, one in enumerate(row)] + [Fraction(int(i == j)) for j in range(size)]
        for i, row in enumerate(matrix)
    ]
    for i in range(size):
        if 2 * rows[i][i] < ridge:
            return None
        rows[i] = [_rounded(one / rows[i][i]) for one in rows[i]]
        for j in range(size):
            if j != i and rows[j][i]:
                rows[j] = [_rounded(a - rows[j][i] * b) for a, b in zip(rows[j], rows[i], strict=True)]
    return [row[size:] for row in rows]
