"""Tests on private data: fit, difference and independence, and whether the reports match their protocol.

Statistic  x' S^-1 x, where x is the difference of unbiased figures from the hypothesis, and S their covariance under
           it: the noise of the protocol and the sampling error, at the given shares, or at
           those of all groups together
Law        chi-square in large samples; shares add up to one, so d of them have d - 1 degrees of freedom
Depend     whether two attributes are independent: x is the excess of the table over the product of its margins, which
           are shares with a known total of one. Its law is simulated from surveys with these margins and this protocol,
           because the large-sample law is far off if noise is large
Size       the p-value is below 0.05 in 5 % of surveys in which the hypothesis is true
Unknown    if a covariance is not known (texts of a sketch, combined estimates), each figure is tested separately
           and the smallest p-value is multiplied by their number (Bonferroni): never too small, and less powerful
Looks      the number of people is fixed beforehand: testing every day and stopping at the first small p-value finds
           something in the end, whatever the truth is
Misfit     could any population have produced these reports? The tests are: a count that is too small or too large for
           every population (binomial, at the share that favours it); the relative entropy of the observed shares from
           the nearest law of the channel, where P(n D >= x) <= e^-x (e x / (m - 1))^(m - 1) for m outputs, any law and
           any n; and a sum whose law does not depend on the answers (Chernoff's bound). Each is a bound, not an
           approximation, and the p-value is the smallest one times the number of tests: of honest collections fewer
           than one in a thousand fall below 0.001
Source     Agrawal 2020 for the relative entropy of a multinomial
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable._sheets import Sheet, Shown
from deniable.errors import LabelError, MismatchError, NumberError, ShapeError
from deniable.labels import Label, shown
from deniable.words import Figure, Joined, catalogue, said, word

if TYPE_CHECKING:
    from deniable.results.base import Result
    from deniable.results.shares import Estimate

Floats = NDArray[np.float64]

LEVEL = 0.05

FIT, SAME, INDEPENDENT = "fit", "same", "independent"

_WORDS = {
    FIT: ("Differs from what was given", "Nothing speaks against what was given"),
    SAME: ("The groups differ", "No difference between the groups is seen"),
    INDEPENDENT: ("The two depend on each other", "No dependence is seen between the two"),
}

DRAWN = "drawn"
DRAWS, _FEW = 1000, 20
"""Simulated surveys for the law of a statistic; if fewer than 20 of them reach a value, a gamma law is used."""

_NOISELESS = 1e-9
"""A direction with less than this fraction of the largest spread, after scaling each figure, counts as constant."""


@dataclass(frozen=True)
class SignificanceTest(Shown):
    """Whether reports contradict a hypothesis about the population.

    Args:
        hypothesis: What is tested: "fit" to given figures, "same" figures in all groups, or "independent" rows and
            columns.
        p_value: Probability of evidence this strong against the hypothesis if it is true.
        statistic: The test statistic.
        freedom: Degrees of freedom of the statistic.
        n: Reports, one number per group.
        method: Name of the test.
    """

    hypothesis: str
    p_value: float
    statistic: float
    freedom: int
    n: tuple[int, ...]
    method: str = "chi-square"

    def rejected(self, level: float = LEVEL) -> bool:
        """Whether the hypothesis is rejected, which is wrong with probability `level` if it is true."""
        if not 0 < level < 1:
            raise NumberError(f"the level of a test lies between 0 and 1, not at {level!r}")
        return self.p_value <= level

    def sentence(self, level: float = LEVEL) -> str:
        """The finding in words."""
        if not any(self.n):
            return "Nothing can be said yet: there are no reports."
        if not self.freedom and self.hypothesis == SAME:
            return "Nothing can be said yet: fewer than two of the groups have enough reports."
        found = _WORDS[self.hypothesis][0 if self.rejected(level) else 1]
        people = " and ".join(f"{one:,}" for one in self.n) if len(self.n) < 3 else f"{sum(self.n):,}"
        return f"{found} (p {catalogue().text(p_text(self.p_value))}, n = {people})."

    def to_dict(self) -> dict[str, Any]:
        """The test as JSON values."""
        head = {"hypothesis": self.hypothesis, "p_value": self.p_value, "statistic": self.statistic}
        return head | {"freedom": self.freedom, "n": list(self.n), "method": self.method, "sentence": self.sentence()}

    def sheet(self) -> Sheet:
        names = ("hypothesis", "method", "statistic", "freedom", "p_value")
        columns = {name: [getattr(self, name)] for name in names} | {"n": [sum(self.n)]}
        p = catalogue().text(p_text(self.p_value))
        cells = [self.hypothesis, self.method, f"{self.statistic:.4g}", f"{self.freedom}", p]
        head = ["hypothesis", "method", "statistic", "degrees of freedom", "p-value", "n"]
        return Sheet([self.sentence()], head, [[*cells, f"{sum(self.n):,}"]], columns=columns)

    def __str__(self) -> str:
        freedom = f"{self.freedom} degree{'s' if self.freedom != 1 else ''} of freedom"
        return f"{self.sentence()}\n{self.method}, statistic {self.statistic:.4g}, {freedom}"


def p_text(p: float) -> Joined:
    """A p-value after the letter p."""
    return Joined(["< " if p < 0.0001 else "= ", Figure("0.0001" if p < 0.0001 else f"{p:.2g}", False)], "")


@dataclass(frozen=True, eq=False)
class Measured:
    """Unbiased figures with the covariance of their errors, as estimates of the population's."""

    labels: Sequence[Label]
    value: Floats
    spread: Callable[[Floats], Floats]
    """The covariance if these are the true figures."""
    n: int
    basis: Floats
    """Possible differences, one direction per row: all figures separately, or for shares those that keep the sum."""
    law: Callable[[Floats, int, np.random.Generator], Floats] | None = None
    """Figures of a number of surveys, if these are the true ones; None if they are assumed to be normal."""

    def drawn(self, figures: Floats, surveys: int, random: np.random.Generator) -> Floats:
        """Estimated figures of `surveys` surveys, if these are the true ones: one row per survey."""
        if self.law is not None:
            return self.law(figures, surveys, random)
        sizes, directions = np.linalg.eigh(self.spread(figures))
        noise = random.standard_normal((surveys, sizes.size)) * np.sqrt(np.maximum(sizes, 0.0))
        return np.asarray(figures + noise @ directions.T)

    @property
    def weight(self) -> float:
        """The weight of the figures relative to those of other groups."""
        size = float(np.mean(np.diagonal(self.spread(self.value))))
        return 1 / size if size > 0 else 1.0


def contrasts(size: int) -> Floats:
    """Orthonormal directions in which shares can move: all that keep their sum.

    >>> contrasts(3).round(3).tolist()
    [[0.707, -0.707, 0.0], [0.408, 0.408, -0.816]]
    """
    rows = np.tril(np.ones((size, size)), -1)[1:]
    steps = np.arange(1, size)
    rows[np.arange(size - 1), steps] = -steps
    found: Floats = rows / np.sqrt(steps * (steps + 1.0))[:, None]
    return found


def chi_square(value: Floats, spread: Floats) -> tuple[float, int]:
    """The statistic for the hypothesis that all values are zero, and its degrees of freedom."""
    scale = np.sqrt(np.maximum(np.diagonal(spread), 0.0))
    free = scale > 0
    if not free.any():
        return 0.0, 0
    value, spread, scale = value[free], spread[np.ix_(free, free)], scale[free]
    sizes, directions = np.linalg.eigh(spread / np.outer(scale, scale))
    kept = sizes > _NOISELESS * sizes[-1]
    along = (directions.T @ (value / scale))[kept]
    return float((along**2 / sizes[kept]).sum()), int(kept.sum())


def inverse_root(spread: Floats) -> Floats:
    """A matrix W with W' W the inverse of a covariance; directions without spread are left out."""
    scale = np.sqrt(np.maximum(np.diagonal(spread), 0.0))
    free = scale > 0
    sizes, directions = np.linalg.eigh(spread[np.ix_(free, free)] / np.outer(scale[free], scale[free]))
    kept = sizes > _NOISELESS * sizes[-1] if sizes.size else np.zeros(0, dtype=np.bool_)
    found = np.zeros((int(kept.sum()), len(spread)))
    found[:, free] = directions.T[kept] / np.sqrt(sizes[kept])[:, None] / scale[free]
    return found


def _tail(statistic: float, freedom: int) -> float:
    from scipy.special import chdtrc

    return float(chdtrc(freedom, statistic)) if freedom else 1.0


def power(difference: Floats, spread: Floats, level: float = LEVEL) -> float:
    """Probability that the test at this level finds a difference, whose estimate has this covariance."""
    from scipy.special import chdtri, chndtr

    away, freedom = chi_square(difference, spread)
    return float(1 - chndtr(chdtri(freedom, level), freedom, away)) if freedom else 0.0


def fit(found: Measured, given: Floats) -> SignificanceTest:
    """Test whether the population's figures are the given ones."""
    basis = found.basis
    statistic, freedom = chi_square(basis @ (found.value - given), basis @ found.spread(given) @ basis.T)
    return SignificanceTest(FIT, _tail(statistic, freedom), statistic, freedom, (found.n,))


def same(groups: Sequence[Measured]) -> SignificanceTest:
    """Test whether independent groups have the same figures."""
    basis, weights = groups[0].basis, np.array([one.weight for one in groups])
    pooled = np.average([one.value for one in groups], axis=0, weights=weights)
    values = [basis @ one.value for one in groups]
    spreads = [basis @ one.spread(pooled) @ basis.T for one in groups]
    # Each group against the last one, all at once: the statistic does not depend on which one that is.
    away = np.concatenate([value - values[-1] for value in values[:-1]])
    size, others = len(basis), len(groups) - 1
    spread = np.asarray(np.kron(np.ones((others, others)), spreads[-1]), dtype=np.float64)
    for place, own in enumerate(spreads[:-1]):
        block = slice(place * size, (place + 1) * size)
        spread[block, block] += own
    statistic, freedom = chi_square(away, spread)
    return SignificanceTest(SAME, _tail(statistic, freedom), statistic, freedom, tuple(one.n for one in groups))


def smallest(hypothesis: str, z: Floats, n: Sequence[int]) -> SignificanceTest:
    """The test that uses each figure separately, from figures divided by their errors."""
    largest = float(np.nan_to_num(np.abs(z)).max(initial=0.0))
    p = min(1.0, math.erfc(largest / math.sqrt(2)) * z.size)
    return SignificanceTest(hypothesis, p, largest**2, 1, tuple(n), f"smallest of {z.size} p-values (Bonferroni)")


def nothing(hypothesis: str, n: Sequence[int]) -> SignificanceTest:
    """The test without reports."""
    return SignificanceTest(hypothesis, 1.0, 0.0, 0, tuple(n))


def compare(*groups: Result) -> SignificanceTest:
    """Test whether independent groups of people have the same figures: shares, means or distributions.

    With two groups, `a - b` also gives the difference of each figure. The groups may have been asked with
    different epsilons and protocols, if the answers are the same.

    Args:
        *groups: Results of two or more groups, about the same answers.

    Returns:
        The test of "all groups have the same figures".

    Raises:
        MismatchError: The answers differ.
        NumberError: There are fewer than two groups.

    >>> from deniable.protocols import GRR, Tally
    >>> coin = GRR(["yes", "no"], epsilon=1)
    >>> here, there = (coin.estimate(Tally(coin.fingerprint, 2000, [n, 2000 - n])) for n in (1100, 940))
    >>> print(compare(here, there).sentence())
    The groups differ (p < 0.0001, n = 2,000 and 2,000).
    """
    if len(groups) < 2:
        raise NumberError("a comparison needs at least two groups")
    each = [group.unbiased for group in groups]
    n = tuple(int(one.n) for one in each)
    if not all(n):
        return nothing(SAME, n)
    measured = each[0].measured_with(each)
    if measured is None:
        tables = [one.table() for one in each]
        if any((one.names, one.row_units) != (tables[0].names, tables[0].row_units) for one in tables[1:]):
            raise MismatchError("these estimates are about different answers")
        each_pair = [
            (one.value - other.value) / np.hypot(one.stderr, other.stderr)
            for place, one in enumerate(tables)
            for other in tables[:place]
        ]
        return smallest(SAME, np.concatenate(each_pair), n)
    if any(list(one.labels) != list(measured[0].labels) for one in measured[1:]):
        raise MismatchError("these estimates are about different answers")
    return same(measured)


Cells = Mapping[Any, tuple[Any, Any]] | Callable[[Any], tuple[Any, Any]] | tuple[int, int]


def independence(estimate: Estimate, cells: Cells) -> SignificanceTest:
    """Test whether two attributes are independent, from the shares of their combinations.

    Args:
        estimate: Shares of the combinations.
        cells: Row and column of each answer: {"f, yes": ("f", "yes"), ...}, a function of the label, or (rows, columns)
            if the answers are the cells row by row.

    Returns:
        The test of "rows and columns are independent".

    Raises:
        MismatchError: The estimate has no covariance, or the cells do not fit its answers.

    >>> from deniable.protocols import GRR, Tally
    >>> both = GRR(["f yes", "f no", "m yes", "m no"], epsilon=2)
    >>> found = both.estimate(Tally(both.fingerprint, 10_000, [3000, 2000, 2000, 3000]))
    >>> independence(found, lambda label: tuple(label.split())).rejected()
    True
    """
    raw = estimate.unbiased
    order, rows, columns = _places(raw.labels, cells)
    if not raw.n:
        return nothing(INDEPENDENT, (0,))
    found = raw.measured()
    if found is None:
        raise MismatchError(
            "the covariance of these shares is not known, and independence cannot be tested without it: ask with a "
            "protocol for listed answers"
        )
    return _depend(INDEPENDENT, found, order, (rows, columns), contrasts(columns))


def _depend(
    hypothesis: str, found: Measured, order: NDArray[np.intp], shape: tuple[int, int], along: Floats
) -> SignificanceTest:
    """The test of the excess of a table over the product of its margins, in these directions of its columns.

    If noise is large relative to the shares, neither the product of two estimated margins nor its variance is close to
    its large-sample value. So the law of the statistic is simulated from surveys in which the two are independent.
    """
    rows, columns = shape
    margins = _margins(found.value[order].reshape(1, rows, columns))
    expected = np.empty(rows * columns)
    # Shifted slightly towards even shares: the law of an answer that nobody seems to give has a spread, too.
    first, second = ((found.n * own[0] + 0.5) / (found.n + own.shape[-1] / 2) for own in margins)
    expected[order] = np.outer(first, second).ravel()
    inner: Floats = np.asarray(np.kron(contrasts(rows), along), dtype=np.float64)
    weights = inverse_root(inner @ found.spread(expected)[np.ix_(order, order)] @ inner.T)
    drawn = found.drawn(expected, DRAWS, np.random.default_rng(0))
    seen, others = (
        _beyond(one[:, order].reshape(-1, rows, columns), inner, weights) for one in (found.value[None, :], drawn)
    )
    statistic, freedom = float(seen[0]), len(weights)
    return SignificanceTest(hypothesis, _drawn_tail(statistic, others), statistic, freedom, (int(found.n),), DRAWN)


def _margins(tables: Floats) -> tuple[Floats, Floats]:
    """The nearest shares of rows and of columns, whose totals are known to be one, for each table."""
    from deniable.postprocess import project_simplex

    return project_simplex(tables.sum(axis=2)), project_simplex(tables.sum(axis=1))


def _beyond(tables: Floats, inner: Floats, weights: Floats) -> Floats:
    """The statistic of each table: the squared length of its excess over the product of its margins."""
    first, second = _margins(tables)
    excess = tables - first[:, :, None] * second[:, None, :]
    return np.asarray(np.square(excess.reshape(len(tables), -1) @ inner.T @ weights.T).sum(axis=1))


def _drawn_tail(statistic: float, drawn: Floats) -> float:
    """How often a simulated statistic is as large; in the far tail by the gamma law with their mean and variance."""
    from scipy.special import chdtrc

    mean, spread = float(drawn.mean()), float(drawn.var())
    often = (1 + int((drawn >= statistic).sum())) / (1 + drawn.size)
    if often > _FEW / drawn.size or not spread > 0:
        return often
    return min(often, float(chdtrc(2 * mean**2 / spread, 2 * mean * statistic / spread)))


def associated(estimate: Estimate, groups: int, scores: Floats | None = None) -> SignificanceTest:
    """Test whether groups estimated from the same reports have the same shares, or means of `scores`.

    From the shares of the combinations of group and answer, group by group.
    """
    raw = estimate.unbiased
    columns = len(raw.labels) // groups
    found = raw.measured() if raw.n else None
    if found is None:
        return nothing(SAME, (int(raw.n),))
    along = contrasts(columns)
    if scores is not None:
        apart = scores - scores.mean()
        along = (apart / math.sqrt(float(apart @ apart)))[None, :]
    return _depend(SAME, found, np.arange(groups * columns), (groups, columns), along)


def beyond_independence(
    found: Measured, order: NDArray[np.intp], rows: int, columns: int
) -> tuple[Floats, Floats, Floats]:
    """The excess of a table over the product of its margins, cell by cell; its covariance if the two are independent;
    and that product."""
    joint = found.value[order].reshape(rows, columns)
    (first,), (second,) = _margins(joint[None])
    excess = joint - np.outer(first, second)
    # Derivative of the excess of cell (i, j) in the share of cell (k, l), if the two are independent.
    same_row, same_column = np.eye(rows), np.eye(columns)
    slope = (
        np.einsum("ik,jl->ijkl", same_row, same_column)
        - np.einsum("ik,j->ijk", same_row, second)[:, :, :, None]
        - np.einsum("jl,i->ijl", same_column, first)[:, :, None, :]
        + np.outer(first, second)[:, :, None, None]
    ).reshape(rows * columns, rows * columns)
    expected = np.empty(rows * columns)
    expected[order] = np.outer(first, second).ravel()
    spread = slope @ found.spread(expected)[np.ix_(order, order)] @ slope.T
    return excess.ravel(), spread, np.outer(first, second).ravel()


def _places(labels: Sequence[Label], cells: Cells) -> tuple[NDArray[np.intp], int, int]:
    """The answers in the order of the cells of their table, and its size."""
    if isinstance(cells, tuple):
        rows, columns = cells
        if rows < 2 or columns < 2 or rows * columns != len(labels):
            raise ShapeError(f"{len(labels)} answers are no table of {rows} rows and {columns} columns, two at least")
        return np.arange(len(labels)), rows, columns
    try:
        found = [cells(label) if callable(cells) else cells[label] for label in labels]
    except KeyError as missing:
        raise LabelError(f"the cells do not say where {shown(missing.args[0])} belongs") from None
    rows_named, columns_named = (list(dict.fromkeys(cell[side] for cell in found)) for side in (0, 1))
    place = {cell: i for i, cell in enumerate(found)}
    full = len(rows_named) * len(columns_named)
    if len(place) != len(labels) or full != len(labels) or min(len(rows_named), len(columns_named)) < 2:
        raise ShapeError(
            "the cells make no table: each combination of a row and a column is one answer, and there are at least "
            "two of both"
        )
    order = [place[row, column] for row in rows_named for column in columns_named]
    return np.array(order, dtype=np.intp), len(rows_named), len(columns_named)


# -- misfit -------------------------------------------------------------------------------------------

SUSPICIOUS = 1e-3
"""Below this p-value the misfit is reported wherever an estimate is shown."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """How well reports agree with the law of their protocol.

    Args:
        p_value: Bound on the probability that an honest collection, from any population, deviates this much from the
            law.
    """

    p_value: float

    @classmethod
    def of(cls, p_values: Iterable[float]) -> Misfit:
        """The smallest of several tests, times their number."""
        each = list(p_values)
        return cls(min([1.0, *(len(each) * p for p in each)]))

    @property
    def suspicious(self) -> bool:
        return self.p_value < SUSPICIOUS

    @property
    def message(self) -> str | None:
        """The message for readers of the estimate; None if there is nothing to report."""
        return self.about("protocol") if self.suspicious else None

    def about(self, law: str) -> str:
        p = f"= {self.p_value:.1g}" if self.p_value >= 1e-300 else "< 1e-300"
        return said("result.misfit", law=word(f"result.law.{law}"), p=p)


def too_few(count: float, n: float, least: float, tests: int = 1) -> float:
    """P(a count of n is at most this), if each report counts with probability `least`, for `tests` such counts."""
    from scipy.special import betainc

    if count >= n or least <= 0:
        return 1.0
    return min(1.0, tests * float(betainc(n - count, count + 1, 1 - least)))


def too_many(count: float, n: float, most: float, tests: int = 1) -> float:
    """P(a count of n is at least this), if each report counts with probability `most`, for `tests` such counts."""
    return too_few(n - count, n, 1 - most, tests)


def too_far(observed: Floats, fitted: Floats) -> float:
    """From the relative entropy of the observed shares to the likeliest law that the channel allows."""
    n, seen = float(observed.sum()), observed > 0
    outputs = int((fitted > 0).sum())
    if (fitted[seen] <= 0).any():
        return 0.0
    distance = float(observed[seen] @ np.log(observed[seen] / (n * fitted[seen])))
    free = outputs - 1
    if free < 1 or distance <= free:
        return 1.0
    return math.exp(min(0.0, free + free * math.log(distance / free) - distance))


def sum_is_off(log_moment: Callable[[float], float], mean: float, seen: float) -> float:
    """A sum that is this far from its mean, to either side; `log_moment(t)` is the logarithm of E e^(t sum)."""
    from scipy.optimize import minimize_scalar

    sign = 1.0 if seen > mean else -1.0
    found = minimize_scalar(lambda log_t: log_moment(sign * math.exp(log_t)) - sign * math.exp(log_t) * seen,
                            bounds=(-40.0, 3.0), method="bounded", options={"xatol": 1e-6})  # fmt: skip
    # Any t gives a bound: an inexact minimum makes it slightly larger, and no less valid.
    return min(1.0, 2 * math.exp(min(0.0, float(found.fun))))


def channel_misfit(rows: Floats, observed: Floats, fitted: Floats) -> Misfit:
    """The misfit of counts of a channel's outputs, with the law of the outputs at the maximum of the likelihood."""
    n, outputs = float(observed.sum()), observed.size
    low = min(too_few(c, n, p, outputs) for c, p in zip(observed, rows.min(axis=0), strict=True))
    high = min(too_many(c, n, p, outputs) for c, p in zip(observed, rows.max(axis=0), strict=True))
    return Misfit.of([low, high, too_far(observed, fitted)])
