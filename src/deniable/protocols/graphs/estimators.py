"""What messages of a graph's nodes say: unbiased figures with standard errors. Estimators see the transcript alone.

Degrees    noise of the discrete Laplace law is undone exactly by a second difference: for any function f of a degree d,
           f(y) - c (f(y + 1) - 2 f(y) + f(y - 1)) is unbiased for f(d), with c half the variance of the noise; its
           variance is estimated without bias by c ((f(y + 1) - f(y))^2 + (f(y) - f(y - 1))^2) + c^2 (f'')^2, f'' the
           second difference. So stars and shares of degrees need no bound on the degrees
Lists      a bit x of a list becomes (x - q) / (p - q), unbiased for the edge, independent of all others; products of
           them are unbiased for edges, stars and triangles, and are summed by counting bits
Pairs      the sum of the messages over (P - Q) is unbiased for the triangles, where no node has more earlier
           neighbours than it looks at; those that have more look at some of them
Intervals  of the noise alone: the graph is the population. Set bits are a sum of two binomial numbers, noise is a sum
           of Laplace numbers: both laws are known. A variance that is estimated is taken at its upper end. Shares of
           degrees are means of a few numbers, with the intervals of `results.bounds`
Variance   of lists: C(n, 3) v^3 + v^2 m (n - 2) + v S + 2 v sum of C(c, 2) over pairs of nodes with c neighbours in
           common, v the variance of a bit, m edges, S 2-stars (Imola et al. 2021 have its order); of pairs: the noise,
           and v times the sum of squares of common later neighbours. What is unknown is estimated from lists
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.channels import DiscreteLaplace
from deniable.errors import NumberError
from deniable.exact import shown
from deniable.labels import Label
from deniable.protocols.graphs.messages import (
    UNIT,
    Bytes,
    ClosedPairs,
    NoisyCounts,
    NoisyDegrees,
    NoisyLists,
    NoisyStars,
    Peeled,
    Peeling,
    Transcript,
)
from deniable.results import Result, Rows, number, quantile
from deniable.results.bounds import Numbers, held_ends, laplace_reach
from deniable.results.rows import decimals

Floats = NDArray[np.float64]

_SAMPLE = 1500
_CLEAR = 3.0


@dataclass(frozen=True, eq=False, repr=False)
class GraphFigures(Result):
    """Figures of a graph, with the transcript that they come from.

    Args:
        labels: Name of each figure.
        values: The estimates.
        errors: Their standard errors.
        transcript: The messages behind them.
        method: Name of the estimator.
        what: What a single figure is called.
        most: No such figure is larger: what is known of it before anybody has spoken.
        bounds: One row of ends per figure at a level, from the law of the noise.
        growth: The variance of the noise, over that of the messages.
    """

    kind: ClassVar[str] = "graph"
    heading: ClassVar[str] = "estimate"

    labels: Sequence[Label]
    values: Floats
    errors: Floats
    transcript: Transcript
    method: str = "unbiased"
    what: str = ""
    most: float = math.inf
    bounds: Callable[[float], Floats] | None = None
    growth: float = 1.0

    @property
    def n(self) -> int:
        return self.transcript.size

    @property
    def protocol(self) -> str:
        return ", ".join(step.name for step, _ in self.transcript.rounds)

    @property
    def epsilon(self) -> Fraction:
        """What all messages together say about one edge, which stands in two lists."""
        return self.transcript.epsilon

    @property
    def value(self) -> float:
        """The first figure."""
        return float(self.values[0])

    @property
    def stderr(self) -> float:
        """The standard error of the first figure."""
        return float(self.errors[0])

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """A confidence interval of the first figure."""
        rows = self.table(level)
        return float(rows.low[0]), float(rows.high[0])

    def table(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Rows:
        tests = max(1, len(self.labels)) if simultaneous else 1
        reach = quantile(level, tests) * self.errors
        ends = np.stack([self.values - reach, self.values + reach], axis=1)
        if self.bounds is not None and self.n:
            ends = self.values[:, None] + math.sqrt(self.growth) * (
                self.bounds(1 - (1 - level) / tests) - self.values[:, None]
            )
        known = np.isfinite(self.values)
        largest = self.most if self.n or math.isfinite(self.most) else 0.0
        low, high = np.where(known, ends[:, 0], 0.0), np.where(known, ends[:, 1], largest)
        return Rows(
            self.labels, self.values, self.errors, low, high, level=level, simultaneous=simultaneous, is_ordered=True
        )

    def _limits(self) -> tuple[float, float] | None:
        return (0.0, self.most) if math.isfinite(self.most) else None

    def finding(self) -> tuple[str, Mapping[str, Any], str] | None:
        if not self.what or not self.n or not math.isfinite(self.value):
            return None
        low, high = self.interval()
        digits = decimals(self.stderr)
        value, first, last = (number(one, digits) for one in (self.value, low, high))
        facts = {"what": self.what, "value": self.value, "low": low, "high": high, "digits": digits}
        return "figure", facts, f"about {value} {self.what}, between {first} and {last}"

    @property
    def facts(self) -> dict[str, Any]:
        return {"transcript": self.transcript.spec()}

    @property
    def notes(self) -> list[str]:
        rounds = " + ".join(f"{shown(step.epsilon)} ({step.name})" for step, _ in self.transcript.rounds)
        about = f"epsilon {shown(self.epsilon)} = {rounds} is about one edge, in both lists that it stands in"
        return [*super().notes, about if len(self.transcript.rounds) > 1 else about.replace(f" = {rounds}", "")]

    def repeated(self, noise: float, people: float) -> GraphFigures:
        return replace(self, errors=math.sqrt(noise) * self.errors, growth=noise * self.growth)

    def __repr__(self) -> str:
        if len(self.labels) == 1:
            return f"<{self.what or self.labels[0]}: {self.value:.6g} +- {self.stderr:.2g} from {self.n} nodes>"
        return f"<{len(self.labels)} figures from {self.n} nodes, {self.protocol}>"


def _one(
    label: str, value: float, variance: float, heard: Transcript, method: str, most: float, bounds: Any = None
) -> GraphFigures:
    known = heard.size > 0
    values = np.array([value if known else math.nan])
    errors = np.array([math.sqrt(max(variance, 0.0)) if known else math.nan])
    return GraphFigures([label], values, errors, heard, method, label, most if known else math.inf, bounds)


def _around(values: Any, scales: Any, spread: float = 0.0, rounded: float = 0.0) -> Callable[[float], Floats]:
    """Ends around values with the same noise: a sum of Laplace noises, and normal noise with this variance.

    `rounded` is half a step, where the noise is whole.
    """
    found = np.atleast_1d(np.asarray(values, dtype=np.float64))

    def ends(level: float) -> Floats:
        reach = laplace_reach(scales, level, spread) + rounded
        return np.stack([found - reach, found + reach], axis=1)

    return ends


def _normal(value: float, variance: Callable[[float], float]) -> Callable[[float], Floats]:
    """Ends around a value with normal noise, whose variance is taken at the upper end of what it may be."""
    return lambda level: _around(value, [], variance(quantile(level)))(level)


def _scale(noise: DiscreteLaplace) -> float:
    """The scale of the Laplace law with the same variance."""
    return math.sqrt(noise.variance / 2)


# -- from noisy degrees -------------------------------------------------------------------------------


def degree_sum(heard: Transcript, function: Callable[[Floats], Floats]) -> tuple[float, float]:
    """The sum of any function of the degrees, unbiased, and an unbiased estimate of its variance."""
    values, variances = undone(heard, function)
    return math.fsum(values), math.fsum(variances)


def _degree_ends(heard: Transcript, function: Callable[[Floats], Floats]) -> Callable[[float], Floats]:
    """Ends of the sum: as if each node added Laplace noise of its own variance.

    These variances are estimated from the same degrees, and small ones go with small sums: all are enlarged by the
    upper end of what they add up to.
    """
    values, each = undone(heard, function)
    doubt = undone(heard, _spread(function, heard.heard(NoisyDegrees)[0].noise.variance / 2))[1]

    def ends(level: float) -> Floats:
        total = float(each.sum())
        more = 1 + quantile(level) * math.sqrt(float(doubt.sum())) / total if total > 0 else 1.0
        return _around(math.fsum(values), np.sqrt(more * each / 2))(level)

    return ends


def undone(heard: Transcript, function: Callable[[Floats], Floats]) -> tuple[Floats, Floats]:
    """The same for each node."""
    step, sent = heard.heard(NoisyDegrees)
    y, half = np.asarray(sent, dtype=np.float64), step.noise.variance / 2
    bend = function(y + 1) - 2 * function(y) + function(y - 1)
    return function(y) - half * bend, _spread(function, half)(y)


def _spread(function: Callable[[Floats], Floats], half: float) -> Callable[[Floats], Floats]:
    """The variance that noise adds to an undone function, estimated without bias at a noisy degree."""

    def spread(y: Floats) -> Floats:
        below, here, above = function(y - 1), function(y), function(y + 1)
        return half * ((above - here) ** 2 + (here - below) ** 2) + half**2 * (above - 2 * here + below) ** 2

    return spread


def binomial(y: Floats, k: int) -> Floats:
    """C(y, k) as a polynomial, which has values below zero too."""
    found = np.ones_like(y)
    for i in range(k):
        found = found * (y - i) / (i + 1)
    return found


def degree_figures(heard: Transcript, nodes: Sequence[Label]) -> GraphFigures:
    most = max(0.0, heard.size - 1.0)
    if heard.of(NoisyDegrees) is not None:
        values, variances = undone(heard, lambda y: y)
        bounds = _around(values, [_scale(heard.heard(NoisyDegrees)[0].noise)], rounded=0.5)
        return GraphFigures(nodes, values, np.sqrt(variances), heard, "noisy degrees", most=most, bounds=bounds)
    law = ListLaw.of(heard)
    ones = law.degrees()[heard.rank]
    values = law.scaled(ones, heard.size - 1)
    spread = np.maximum((heard.size - 1) * law.zero + values * (law.one - law.zero), 0.0)
    bounds = law.ends(ones, heard.size - 1)
    return GraphFigures(nodes, values, np.sqrt(spread), heard, "randomized lists", most=most, bounds=bounds)


def distribution(heard: Transcript, cumulative: bool = False, largest: int | None = None) -> GraphFigures:
    """Shares of nodes by their degree, or of nodes with at most that degree."""
    step, sent = heard.heard(NoisyDegrees)
    if not heard.size:
        return GraphFigures([0], np.array([math.nan]), np.array([math.nan]), heard, "no nodes")
    top = int(max(0, sent.max())) if largest is None else largest
    half, reach = step.noise.variance / 2, 2 * math.ceil(math.sqrt(step.noise.variance)) + 2
    # Beyond these places every function below is constant, and a second difference zero.
    y = np.arange(-reach, top + reach + 1)
    counts = np.bincount(np.clip(sent, y[0], y[-1]) - y[0], minlength=y.size).astype(np.float64)
    # The errors take the counts of near degrees together: where nobody sent a degree, somebody might have.
    smooth = np.convolve(np.pad(counts[1:-1], 1), step.noise.probability(np.arange(-reach, reach + 1)), "same")
    values, errors, numbers = np.empty(top + 1), np.empty(top + 1), np.empty((top + 1, y.size))
    for k in range(top + 1):
        below, here, above = ((y + i <= k if cumulative else y + i == k).astype(np.float64) for i in (-1, 0, 1))
        bend = above - 2 * here + below
        numbers[k] = here - half * bend
        values[k] = counts @ numbers[k]
        errors[k] = smooth @ (half * ((above - here) ** 2 + (here - below) ** 2) + half**2 * bend**2)
    share, stderr = values / heard.size, np.sqrt(errors) / heard.size
    # Each node adds one of a few numbers to a share. Intervals are as if the nodes had been drawn from more nodes: how
    # much of what a few nodes show is noise cannot be told.
    said = Numbers.grouped(numbers, counts, (numbers.min(axis=1), numbers.max(axis=1)), stderr)
    name = "share of nodes with at most this degree" if cumulative else "share of nodes with this degree"
    return GraphFigures(
        range(top + 1), share, stderr, heard, name, most=1.0, bounds=partial(said.interval, errors=stderr)
    )


def stars(heard: Transcript, k: int) -> GraphFigures:
    """k-stars: choices of k neighbours of one node."""
    what, most = f"{k}-stars", float(heard.size * math.comb(max(heard.size - 1, 0), k))
    by_noise, by_lists = heard.of(NoisyStars), heard.of(NoisyLists)
    if heard.of(NoisyDegrees) is not None:
        value, variance = degree_sum(heard, lambda y: binomial(y, k))
        ends = _degree_ends(heard, lambda y: binomial(y, k))
        return _one(what, value, variance, heard, "noisy degrees", most, ends)
    if by_noise is not None:
        step, sent = by_noise
        value, ends = float(np.sum(sent)), _around(np.sum(sent), np.full(heard.size, _scale(step.noise)), rounded=0.5)
        return _one(what, value, heard.size * step.noise.variance, heard, "noisy counts of stars", most, ends)
    assert by_lists is not None
    law = ListLaw.of(heard)
    value, variance = law.stars(k), law.wedge_variance()
    return _one(what, value, variance, heard, "randomized lists", most, _normal(value, law.wedge_variance))


# -- from randomized lists ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ListLaw:
    """The published lists, with what their bits are worth."""

    step: NoisyLists
    rows: Bytes
    size: int

    @classmethod
    def of(cls, heard: Transcript) -> ListLaw:
        step, rows = heard.heard(NoisyLists)
        return cls(step, rows, heard.size)

    @property
    def gap(self) -> int:
        """P - Q."""
        return self.step.set_for_edge - self.step.set_for_others

    @property
    def zero(self) -> float:
        """The variance of a pair without an edge."""
        q = self.step.set_for_others
        return q * (UNIT - q) / self.gap**2

    @property
    def one(self) -> float:
        """The variance of an edge."""
        p = self.step.set_for_edge
        return p * (UNIT - p) / self.gap**2

    @property
    def pairs(self) -> int:
        return math.comb(self.size, 2)

    def scaled(self, ones: Any, pairs: int) -> Any:
        """The estimated edges among `pairs` pairs, if `ones` of their bits are set."""
        return (UNIT * ones - self.step.set_for_others * pairs) / self.gap

    def degrees(self) -> NDArray[np.int64]:
        """Set bits about each node, in the public order."""
        found: NDArray[np.int64] = np.bitwise_count(self.rows).sum(axis=1, dtype=np.int64)
        for start in range(0, self.size, 512):
            block = np.unpackbits(self.rows[start : start + 512], axis=1, bitorder="little", count=self.size)
            found = found + block.sum(axis=0, dtype=np.int64)
        return found

    def ones(self) -> int:
        return int(np.bitwise_count(self.rows).sum(dtype=np.int64))

    def ends(self, ones: Any, pairs: int) -> Callable[[float], Floats]:
        """Ends of `scaled`: set bits are the sum of two binomial numbers, of edges and of other pairs."""
        p, q = self.step.set_for_edge / UNIT, self.step.set_for_others / UNIT
        return lambda level: held_ends(np.atleast_1d(ones), pairs, p, q, level)

    def edges(self) -> tuple[float, float]:
        value = float(self.scaled(self.ones(), self.pairs))
        return value, self.pairs * self.zero + max(value, 0.0) * (self.one - self.zero)

    def stars(self, k: int) -> float:
        """Unbiased: products of k different bits about one node."""
        high, low = Fraction(UNIT - self.step.set_for_others, self.gap), Fraction(-self.step.set_for_others, self.gap)
        degrees, times = np.unique(self.degrees(), return_counts=True)
        total = Fraction(0)
        for d, count in zip(degrees.tolist(), times.tolist(), strict=True):
            terms = (
                math.comb(d, j) * math.comb(self.size - 1 - d, k - j) * high**j * low ** (k - j) for j in range(k + 1)
            )
            total += count * sum(terms, Fraction(0))
        return float(total)

    def wedge_variance(self, reach: float = 0.0) -> float:
        """The variance of the number of 2-stars, with estimated degrees or with `reach` standard errors above them."""
        n, v = self.size, max(self.zero, self.one)
        each = self.scaled(self.degrees(), n - 1)
        edges = self._above(float(each.sum()) / 2, self.pairs * v, reach)
        squares = max(0.0, float((each**2).sum()) - n * (n - 1) * v)
        squares = self._above(squares, 2 * n * (n * v) ** 2 + 4 * squares * n * v, reach)
        return n * math.comb(max(n - 1, 0), 2) * v**2 + v * (2 * edges * (n - 2) + (n - 2) * squares + 4 * edges**2)

    @staticmethod
    def _above(value: float, variance: float, reach: float) -> float:
        return max(0.0, value) + reach * math.sqrt(variance)

    def closed(self) -> int:
        """Triangles among the set bits."""
        wide = -(-self.size // 64) * 8
        words = np.zeros((self.size, wide), dtype=np.uint8)
        words[:, : self.rows.shape[1]] = self.rows
        lanes = words.view(np.uint64)
        total = 0
        for node in range(2, self.size):
            known = np.flatnonzero(np.unpackbits(self.rows[node], bitorder="little", count=node))
            reach = -(-node // 64)
            total += int(np.bitwise_count(lanes[known, :reach] & lanes[node, :reach]).sum(dtype=np.int64))
        return total

    def triangles(self) -> tuple[float, float]:
        """Unbiased, from the four kinds of triples; with an estimate of the variance."""
        high, low = UNIT - self.step.set_for_others, -self.step.set_for_others
        degrees = self.degrees()
        ones, wedges = int(degrees.sum()) // 2, sum(d * (d - 1) // 2 for d in degrees.tolist())
        three = self.closed()
        two = wedges - 3 * three
        one = ones * (self.size - 2) - 2 * two - 3 * three
        none = math.comb(self.size, 3) - one - two - three
        total = high**3 * three + high**2 * low * two + high * low**2 * one + low**3 * none
        return float(Fraction(total, self.gap**3)), self.triangle_variance()

    def triangle_variance(self, reach: float = 0.0) -> float:
        """The variance of `triangles`, with estimated edges and 2-stars or with `reach` standard errors above them."""
        value, variance = self.edges()
        edges, wedges = self._above(value, variance, reach), self._above(self.stars(2), self.wedge_variance(), reach)
        return self.triple_variance(edges, wedges, 0.0, self.common(later=False, reach=reach))

    def triple_variance(self, edges: float, wedges: float, triangles: float, common: float) -> float:
        """The variance of triangles from one round, in a graph with these numbers of edges, 2-stars and triangles."""
        n, v, bend = self.size, self.zero, 1 + self.one - self.zero
        triples = math.comb(n, 3) * v**3 + v**2 * bend * edges * (n - 2) + v * bend**2 * wedges
        return triples + (bend**3 - 1) * triangles + max(self.zero, self.one) * common

    def common(self, later: bool, reach: float = 0.0) -> float:
        """The sum of c (c - 1) over pairs of nodes with c common neighbours; `later`: neighbours after both nodes.

        Estimated without bias from some of the nodes; an estimate that is not clearly above zero counts as zero. With
        `reach`, this many standard errors above the estimate.
        """
        chosen = np.unique(np.linspace(0, self.size - 1, min(self.size, _SAMPLE)).astype(np.int64))
        if chosen.size < 2:
            return 0.0
        columns = np.zeros((self.size, chosen.size), dtype=np.float32)
        for start in range(0, self.size, 512):
            block = np.unpackbits(self.rows[start : start + 512], axis=1, bitorder="little", count=self.size)
            columns[start : start + 512] = block[:, chosen]
        worth: NDArray[Any] = (UNIT * columns - self.step.set_for_others) / self.gap
        worth[np.arange(self.size)[:, None] <= chosen] = 0
        if not later:
            bits = np.unpackbits(self.rows[chosen], axis=1, bitorder="little", count=self.size).T.astype(np.float32)
            own: NDArray[Any] = (UNIT * bits - self.step.set_for_others) / self.gap
            own[np.arange(self.size)[:, None] >= chosen] = 0
            worth += own
        square = worth**2
        cross = (worth.T @ worth) ** 2 - square.T @ square
        each = cross[np.triu_indices(chosen.size, 1)].astype(np.float64)
        mean, error = float(each.mean()), float(each.std()) / math.sqrt(each.size)
        clear = mean > _CLEAR * error
        return self.pairs * (max(mean, 0.0) + reach * error if reach else mean * clear)


def edges(heard: Transcript) -> GraphFigures:
    by_count, most = heard.of(NoisyCounts), float(math.comb(heard.size, 2))
    if by_count is not None:
        step, sent = by_count
        total, scales = float(np.sum(sent)), np.full(heard.size, _scale(step.noise))
        ends = _around(total, scales, rounded=0.5)
        return _one("edges", total, heard.size * step.noise.variance, heard, "noisy counts", most, ends)
    law = ListLaw.of(heard)
    value, variance = law.edges()
    return _one("edges", value, variance, heard, "randomized lists", most, law.ends(law.ones(), law.pairs))


def triangles(heard: Transcript) -> GraphFigures:
    law, most = ListLaw.of(heard), float(math.comb(heard.size, 3))
    second = heard.of(ClosedPairs)
    if second is None:
        value, variance = law.triangles() if heard.size > 2 else (0.0, 0.0)
        some = _normal(value, law.triangle_variance) if heard.size > 2 else None
        return _one("triangles", value, variance, heard, "randomized lists, one round", most, some)
    step, sent = second
    value = sum(int(one) for one in sent) / law.gap
    noise = float(step.variances(heard).sum()) / law.gap**2
    if step.most is None:
        wedges = max(0.0, degree_sum(heard, lambda y: binomial(y, 2))[0])
    else:
        wedges = sum(math.comb(int(bound), 2) for bound in step.bounds(heard))
    lists = max(law.zero, law.one) * (wedges + law.common(later=True))
    method = "noisy lists sent back" + (", by degree" if law.step.by_degree else "")
    scales = np.sqrt(step.variances(heard) / 2) / law.gap

    def ends(level: float) -> Floats:
        more = max(law.zero, law.one) * (wedges + law.common(later=True, reach=quantile(level)))
        return _around(value, scales, more)(level)

    return _one("triangles", value, noise + lists, heard, method, most, ends)


def clustering(heard: Transcript) -> GraphFigures:
    """Three times the triangles over the 2-stars: how often two neighbours of a node know each other."""
    closed = triangles(heard)
    wedges = stars(heard, 2)
    error = wedges.stderr if math.isfinite(wedges.stderr) else 0.0
    name = "clustering coefficient"
    if not heard.size or wedges.value <= 2 * error:
        note = ("there are too few 2-stars to tell a coefficient from the noise",) if heard.size else ()
        unknown = np.array([math.nan])
        return GraphFigures([name], unknown, unknown, heard, closed.method, most=1.0, said=note)
    ratio = 3 * closed.value / wedges.value
    spread = (3 * closed.stderr / wedges.value) ** 2 + (ratio * error / wedges.value) ** 2
    return replace(
        _one(name, ratio, spread, heard, closed.method, 1.0), what="", said=("a ratio of two unbiased figures",)
    )


# -- from a peeling -----------------------------------------------------------------------------------


def cores(heard: Transcript, nodes: Sequence[Label]) -> GraphFigures:
    """The core number of each node: it left a peeling at this threshold."""
    step, record = heard.heard(Peeling)
    assert isinstance(record, Peeled)
    error = math.sqrt(2 * step.noise.variance)
    said = (
        f"after {len(record.tests)} passes; the standard error is that of one noisy comparison, and a core number "
        "comes from several",
    )
    errors = np.full(heard.size, error)
    most = max(0.0, heard.size - 1.0)
    return GraphFigures(nodes, record.left.astype(np.float64), errors, heard, "noisy peeling", most=most, said=said)


def largest_degree(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 1:
        raise NumberError(f"the largest degree is a whole number above 0, not {given!r}")
    return int(given)
