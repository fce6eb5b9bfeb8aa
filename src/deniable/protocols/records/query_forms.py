"""Bounded figures of a record: what a query is, how people write one, and which ones a regression asks.

Feature    a column of numbers as u = ((x - low) - (high - x)) / (high - low), or whether an answer is a given one
Form       t = c_0 + sum_k c_k f_k over the features in their order; coefficients are whole numbers over 2^16
Query      the product of some features, times one factor more: a form through a link, or what is left of a feature when
           that is taken away, divided by a bound, clipped to [-1, 1] and perhaps squared. Links: t itself, the
           logistic function l(t), or its slope 4 l(t) (1 - l(t))
Regression of a target on all other columns asks for the gradient, residual times feature, and the curvature, feature
           times feature (times the slope); a linear one for the squared residual, too
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np

from deniable import exact
from deniable.domains import Domain, Integers, Interval, ListedDomain, Records
from deniable.errors import DomainError, SpecError
from deniable.labels import text
from deniable.results import Floats

ONE = 1 << 16
"""What a coefficient of 1 is written as."""
LARGEST = 32
"""Coefficients lie between this and its negative."""
MOST_QUERIES, MOST_FEATURES, MOST_FACTORS = 1 << 12, 64, 8
LINKS = ("linear", "logistic", "slope")
EVEN = (1, 1)
"""How many people gradient and curvature get, against each other."""
WHOLE, POSITIVE = Interval(-1, 1), Interval(0, 1)


class Feature(NamedTuple):
    """A column, by its place; of a list of answers whether it is the answer at a place."""

    column: int
    answer: int | None = None

    def spec(self) -> dict[str, Any]:
        return {"column": self.column} | ({} if self.answer is None else {"is": self.answer})


class ProductQuery(NamedTuple):
    """A product of features, times the factor of a form where there is one."""

    times: tuple[int, ...] = ()
    form: int | None = None
    link: str = "linear"
    of: int | None = None
    """The feature from which the form is taken away."""
    bound: Fraction = Fraction(1)
    squared: bool = False

    def spec(self) -> dict[str, Any]:
        head: dict[str, Any] = {"times": list(self.times)}
        if self.form is None:
            return head
        rest = {"form": self.form, "link": self.link, "of": self.of, "bound": str(self.bound)}
        return head | rest | {"squared": self.squared}

    @classmethod
    def from_spec(cls, spec: Any) -> ProductQuery:
        match spec:
            case {"times": list(times), **rest} if not rest:
                return cls(tuple(times))
            case {
                "times": list(times),
                "form": int(form),
                "link": str(link),
                "of": of,
                "bound": str(bound),
                "squared": bool(squared),
                **rest,
            } if not rest:
                return cls(tuple(times), form, link, of, exact.fraction(bound, "a bound"), squared)
        raise SpecError("a query has times, and perhaps form, link, of, bound and squared, and nothing else")


class Regressed(NamedTuple):
    """Which feature is explained by the others, and how."""

    target: int
    link: str


def logistic(t: Floats) -> Floats:
    """1 / (1 + exp(-t)) by sums, products and quotients alone, the same in every language; within 1e-12.

    >>> [round(float(one), 6) for one in logistic(np.array([0.0, 2.0, -50.0]))]
    [0.5, 0.880797, 0.0]
    """
    r = np.clip(t, -30.0, 30.0) / 1024
    power = 1 + r * (1 + r / 2 * (1 + r / 3 * (1 + r / 4 * (1 + r / 5 * (1 + r / 6)))))
    for _ in range(10):
        power = power * power
    found: Floats = power / (1 + power)
    return found


class Wanted(NamedTuple):
    """Everything about queries but their protocols."""

    features: tuple[Feature, ...]
    forms: tuple[tuple[int, ...], ...]
    queries: tuple[ProductQuery, ...]
    names: tuple[str, ...]
    weights: tuple[int, ...]
    regress: Regressed | None = None


class Writer:
    """Reads queries as people write them, and numbers features and forms as they come."""

    def __init__(self, domain: Records) -> None:
        self.domain = domain
        self.features: dict[Feature, int] = {}
        self.forms: list[dict[int | None, int]] = []

    def written(self, queries: Any) -> Wanted:
        if not isinstance(queries, Mapping) or not queries:
            raise SpecError('queries are an object of queries by name, such as {"both": {"times": ["a", "b"]}}')
        read = [self._query(name, one) for name, one in queries.items()]
        size = len(self.features)
        forms = tuple((form.get(None, 0), *(form.get(place, 0) for place in range(size))) for form in self.forms)
        names = tuple(queries)
        return Wanted(tuple(self.features), forms, tuple(read), names, (1,) * len(names))

    def _query(self, name: Any, given: Any) -> ProductQuery:
        known = {"times", "weights", "link", "of", "bound"}
        if not isinstance(name, str) or not isinstance(given, Mapping) or not set(given) <= known:
            raise SpecError(f"a query has times, weights, link, of and bound: look at {name!r}")
        times = tuple(self._place(one) for one in given.get("times", ()))
        if "weights" not in given:
            if set(given) - {"times"}:
                raise SpecError(f"link, of and bound of a query go with weights: look at {name!r}")
            return ProductQuery(times)
        form: dict[int | None, int] = {}
        for one in given["weights"]:
            if not isinstance(one, Sequence) or len(one) != 2:
                raise SpecError("weights are pairs of a feature, or null for the constant, and a number")
            place = None if one[0] is None else self._place(one[0])
            form[place] = form.get(place, 0) + round(exact.fraction(one[1], "a weight") * ONE)
        self.forms.append(form)
        of = None if given.get("of") is None else self._place(given["of"])
        bound = exact.fraction(given.get("bound", 1), "a bound")
        return ProductQuery(times, len(self.forms) - 1, given.get("link", "linear"), of, bound)

    def _place(self, written: Any) -> int:
        return self.features.setdefault(feature_of(self.domain, written), len(self.features))


def feature_of(domain: Records, written: Any) -> Feature:
    """The feature that is meant by a column of numbers, or by a column and one of its answers."""
    name, answer = written if isinstance(written, Sequence) and not isinstance(written, str) else (written, None)
    if name not in domain.names:
        raise DomainError(f"there is no column {name!r}; there are {', '.join(domain.names)}")
    column = domain.names.index(name)
    own = domain.columns[column][1]
    if is_number(own):
        if answer is not None:
            raise SpecError(f"column {name!r} has numbers: name it alone")
        return Feature(column)
    if not isinstance(own, ListedDomain):
        raise DomainError(f"column {name!r} cannot be a feature: it needs a list of answers or numbers")
    if answer is None:
        raise SpecError(f"column {name!r} has a list of answers: name one of them, [{name!r}, answer]")
    return Feature(column, own.encode_one(answer))


def is_number(domain: Domain) -> bool:
    return isinstance(domain, Interval | Integers)


def ends_of(domain: Any) -> tuple[float, float]:
    return float(domain.low), float(domain.high)


def few_of(domain: Domain) -> list[tuple[Any, Any]]:
    if isinstance(domain, Interval):
        return [(one, float(one)) for one in (domain.low, (domain.low + domain.high) / 2, domain.high)]
    assert isinstance(domain, ListedDomain)
    places = sorted({0, domain.size // 2, domain.size - 1}) if isinstance(domain, Integers) else range(domain.size)
    return [(domain.labels[place], place) for place in places]


def worded(domain: Records, feature: Feature) -> str:
    name, own = domain.columns[feature.column]
    if feature.answer is None:
        return name
    assert isinstance(own, ListedDomain)
    return f"{name}: {text(own.labels[feature.answer])}"


def bound_of(query: ProductQuery) -> float:
    """What the reported value of a query is multiplied by."""
    return 1.0 if query.squared or query.form is None else float(query.bound)


def value_range(query: ProductQuery, features: Sequence[Feature]) -> Interval:
    """Where the values of a query lie."""
    odd = any(query.times.count(i) % 2 for i in query.times if features[i].answer is None)
    signed = query.form is not None and not query.squared and (query.of is not None or query.link == "linear")
    return WHOLE if odd or signed else POSITIVE


def wanted_target(
    domain: Records, regress: Any, at: Sequence[exact.Number] | None
) -> tuple[Feature, str, tuple[int, ...] | None]:
    known = {"target", "link", "answer"}
    if not isinstance(regress, Mapping) or "target" not in regress or not set(regress) <= known:
        raise SpecError('a regression is {"target": column}, perhaps with "link" and "answer"')
    name, link = regress["target"], regress.get("link", "linear")
    if link not in ("linear", "logistic"):
        raise SpecError(f'the link of a regression is "linear" or "logistic", not {link!r}')
    if name not in domain.names:
        raise DomainError(f"there is no column {name!r}; there are {', '.join(domain.names)}")
    own, answer = domain[name], regress.get("answer")
    if answer is None and isinstance(own, ListedDomain) and not is_number(own):
        answer = own.labels[0]
    target = feature_of(domain, name if answer is None else (name, answer))
    if link == "logistic" and target.answer is None:
        raise SpecError(f"a logistic regression explains an answer of a list, and {name!r} has numbers: use linear")
    if at is None:
        return target, link, None
    size = 1 + len(regressors(domain, target))
    given = [round(exact.fraction(one, "a coefficient") * ONE) for one in at]
    if len(given) != size:
        raise SpecError(f"this regression has {size} coefficients, not {len(given)}")
    return target, link, (*given, 0)


def regressors(domain: Records, target: Feature) -> list[Feature]:
    """Numbers, and of lists all answers but the first."""
    found = []
    for column, (name, own) in enumerate(domain.columns):
        if column == target.column:
            continue
        if is_number(own):
            found.append(Feature(column))
        elif isinstance(own, ListedDomain):
            found += [Feature(column, place) for place in range(1, own.size)]
        else:
            raise DomainError(f"column {name!r} cannot explain another: it needs a list of answers or numbers")
    if not found:
        raise SpecError("a regression needs a column beside its target")
    return found


def different_products(features: Sequence[Feature]) -> dict[tuple[int, ...], list[tuple[int, int]]]:
    """The different products of two of 1 and the features, and where each stands in their matrix.

    The square of an indicator is itself; the product of two answers of one column is zero, and left out.
    """
    found: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for i, j in combinations_with_replacement(range(len(features) + 1), 2):
        factors = [one - 1 for one in (i, j) if one]
        if i == j and i and features[i - 1].answer is not None:
            factors = factors[:1]
        elif len(factors) == 2 and i != j and features[i - 1].column == features[j - 1].column:
            continue
        found.setdefault(tuple(factors), []).append((i, j))
    return found


def regression_queries(
    domain: Records,
    target: Feature,
    link: str,
    form: tuple[int, ...] | None = None,
    bound: Fraction = Fraction(1),
    shares: tuple[int, int] = EVEN,
) -> Wanted:
    """Gradient and curvature of a regression at the coefficients of a form; if linear, the squared residual, too."""
    explaining = regressors(domain, target)
    features = (*explaining, target)
    if len(features) > MOST_FEATURES:
        raise SpecError(f"a regression has at most {MOST_FEATURES - 1} features, not {len(explaining)}")
    size = len(explaining)
    form = (0,) * (size + 2) if form is None else form
    words = [worded(domain, one) for one in explaining]
    residual = ProductQuery((), 0, link, size, bound)
    named = {"residual": residual}
    named |= {f"residual times {word}": residual._replace(times=(i,)) for i, word in enumerate(words)}
    constant = link == "linear" or not any(form)
    products = [one for one in different_products(explaining) if one or not constant]
    for factors in products:
        said = " times ".join(words[i] for i in factors)
        if link == "linear":
            named[said] = ProductQuery(factors)
        else:
            slope = ProductQuery(factors, 0, "slope")
            named[f"slope times {said}" if said else "slope"] = slope
    gradients, curvatures = size + 1, max(1, len(products))
    common = math.gcd(shares[0] * curvatures, shares[1] * gradients)
    weights = [shares[0] * curvatures // common] * gradients + [shares[1] * gradients // common] * len(products)
    if link == "linear":
        named["residual squared"] = residual._replace(squared=True)
        weights.append(shares[1] * gradients // common)
    if len(named) < len(weights):
        raise SpecError("two queries are called the same: rename a column")
    return Wanted(features, (form,), tuple(named.values()), tuple(named), tuple(weights), Regressed(size, link))


def check_features(domain: Records, features: Sequence[Feature]) -> None:
    if not len(features) <= MOST_FEATURES or len(set(features)) < len(features):
        raise SpecError(f"there are at most {MOST_FEATURES} features, all different")
    for column, answer in features:
        if not _is_place(column, len(domain.columns)):
            raise SpecError("a feature is about a column of the record")
        own = domain.columns[column][1]
        fits = answer is None if is_number(own) else isinstance(own, ListedDomain) and _is_place(answer, own.size)
        if not fits:
            raise SpecError("a feature is a column of numbers, or one answer of a list")


def check_queries(made: Wanted, groups: int) -> None:
    if not 1 <= len(made.queries) <= MOST_QUERIES or len(made.queries) != groups:
        raise SpecError(f"there are 1 to {MOST_QUERIES:,} queries, each with a group")
    if len(set(made.names)) < len(made.names) or not all(made.names):
        raise SpecError("queries have different names")
    size = len(made.features)
    for form in made.forms:
        whole = all(type(one) is int and abs(one) <= LARGEST * ONE for one in form)
        if len(form) != size + 1 or not whole:
            raise SpecError(f"a form has a whole number per feature and one before them, up to {LARGEST} times 2^16")
    for query in made.queries:
        if len(query.times) > MOST_FACTORS or not all(_is_place(one, size) for one in query.times):
            raise SpecError(f"a query multiplies at most {MOST_FACTORS} of the features")
        if query.form is None:
            continue
        usable = _is_place(query.form, len(made.forms)) and query.link in LINKS
        usable &= query.of is None or (_is_place(query.of, size) and query.link != "slope")
        if not usable or query.bound <= 0 or max(query.bound.numerator, query.bound.denominator) >= 1 << 53:
            raise SpecError(f"a query has a form, a link ({', '.join(LINKS)}), a feature or none, and a positive bound")
    regress = made.regress
    if regress is not None and (regress.link not in LINKS[:2] or not made.forms or not _is_place(regress.target, size)):
        raise SpecError("a regression has a target among the features, a linear or logistic link, and a form")


def _is_place(value: Any, size: int) -> bool:
    return type(value) is int and 0 <= value < size


def read_feature(spec: Any) -> Feature:
    match spec:
        case {"column": column, **rest} if set(rest) <= {"is"}:
            return Feature(column, rest.get("is"))  # type: ignore[arg-type]  # it is checked with the domain
    raise SpecError("a feature has a column, and perhaps the answer that it is about")


def read_regress(spec: Any) -> Regressed:
    match spec:
        case {"target": int(target), "link": str(link), **rest} if not rest:
            return Regressed(target, link)
    raise SpecError("a regression names its target and its link, and nothing else")
