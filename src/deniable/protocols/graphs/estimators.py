"""What messages of a graph's nodes say: unbiased figures with standard errors. Estimators see the transcript alone.

Degrees    noise of the discrete Laplace law is undone exactly by a second difference: for any function f of a degree d,
           f(y) - c (f(y + 1) - 2 f(y) + f(y - 1)) is unbiased for f(d), with c half the variance of the noise; its
           variance is estimated without bias by c ((f(y + 1) - f(y))^2 + (f(y) - f(y - 1))^2) + c^2 (f'')^2, f'' the
           second difference. So stars and shares of degrees need no bound on the degrees
Lists      a bit x of a list becomes (x - q) / (p - q), unbiased for the edge, independent of all others; products of
           them are unbiased for edges, stars and triangles, and are summed by counting bits
Pairs      the sum of the messages over (P - Q) is unbiased for the triangles, where no node has more earlier
           neighbours than it looks at; those that have more look at some of them
Variance   of lists: C(n, 3) v^3 + v^2 m (n - 2) + v S + 2 v sum of C(c, 2) over pairs of nodes with c neighbours in
           common, v the variance of a bit, m edges, S 2-stars (Imola et al. 2021 have its order); of pairs: the noise,
           and v times the sum of squares of common later neighbours. What is unknown is estimated from lists
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

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
from deniable.results.base import decimals

Floats = NDArray[np.float64]

_SAMPLE = 1500
_CLEAR = 3.0


@dataclass(frozen=True, eq=False, repr=False)
class Figures(Result):
    """Figures of a graph, with the transcript that they come from."""

    kind: ClassVar[str] = "graph"
    heading: ClassVar[str] = "estimate"

    labels: Sequence[Label]
    values: Floats
    errors: Floats
    transcript: Transcript
    method: str = "unbiased"
    what: str = ""
    """What a single figure is called."""
    most: float = math.inf
    """No such figure is larger: what is known of it before anybody has spoken."""

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
        reach = quantile(level, max(1, len(self.labels)) if simultaneous else 1) * self.errors
        known = np.isfinite(self.values)
        low = np.where(known, self.values - reach, 0.0)
        largest = self.most if self.n or math.isfinite(self.most) else 0.0
        high = np.where(known, self.values + reach, largest)
        return Rows(
            self.labels, self.values, self.errors, low, high, level=level, simultaneous=simultaneous, is_ordered=True
        )

    @property
    def headline(self) -> str:
        if not self.what or not self.n or not math.isfinite(self.value):
            return ""
        low, high = self.interval()
        digits = decimals(self.stderr)
        return (
            f"about {number(self.value, digits)} {self.what}, between {number(low, digits)} and {number(high, digits)}"
        )

    @property
    def notes(self) -> list[str]:
        rounds = " + ".join(f"{shown(step.epsilon)} ({step.name})" for step, _ in self.transcript.rounds)
        about = f"epsilon {shown(self.epsilon)} = {rounds} is about one edge, in both lists that it stands in"
        return [*super().notes, about if len(self.transcript.rounds) > 1 else about.replace(f" = {rounds}", "")]

    def to_dict(self, level: float = 0.95, population: bool = True, simultaneous: bool = False) -> dict[str, Any]:
        return super().to_dict(level, population, simultaneous) | {"transcript": self.transcript.spec()}

    def repeated(self, noise: float, people: float) -> Figures:
        return replace(self, errors=math.sqrt(noise) * self.errors)

    def __repr__(self) -> str:
        if len(self.labels) == 1:
            return f"<{self.what or self.labels[0]}: {self.value:.6g} +- {self.stderr:.2g} from {self.n} nodes>"
        return f"<{len(self.labels)} figures from {self.n} nodes, {self.protocol}>"


def _one(label: str, value: float, variance: float, heard: Transcript, method: str, what: str) -> Figures:
    known = heard.size > 0
    values = np.array([value if known else math.nan])
    errors = np.array([math.sqrt(max(variance, 0.0)) if known else math.nan])
    return Figures([label], values, errors, heard, method, what)


# -- from noisy degrees -------------------------------------------------------------------------------


def degree_sum(heard: Transcript, function: Callable[[Floats], Floats]) -> tuple[float, float]:
    """The sum of any function of the degrees, unbiased, and an unbiased estimate of its variance."""
    values, variances = undone(heard, function)
    return math.fsum(values), math.fsum(variances)


def undone(heard: Transcript, function: Callable[[Floats], Floats]) -> tuple[Floats, Floats]:
    """The same for each node."""
    step, sent = heard.heard(NoisyDegrees)
    y, half = np.asarray(sent, dtype=np.float64), step.noise.variance / 2
    below, here, above = function(y - 1), function(y), function(y + 1)
    bend = above - 2 * here + below
    spread = half * ((above - here) ** 2 + (here - below) ** 2) + half**2 * bend**2
    return here - half * bend, spread


def binomial(y: Floats, k: int) -> Floats:
    """C(y, k) as a polynomial, which has values below zero too."""
    found = np.ones_like(y)
    for i in range(k):
        found = found * (y - i) / (i + 1)
    return found


def degree_figures(heard: Transcript, nodes: Sequence[Label]) -> Figures:
    if heard.of(NoisyDegrees) is not None:
        values, variances = undone(heard, lambda y: y)
        return Figures(nodes, values, np.sqrt(variances), heard, "noisy degrees")
    law = ListLaw.of(heard)
    values = law.scaled(law.degrees()[heard.rank], heard.size - 1)
    spread = np.maximum((heard.size - 1) * law.zero + values * (law.one - law.zero), 0.0)
    return Figures(nodes, values, np.sqrt(spread), heard, "randomized lists")


def distribution(heard: Transcript, cumulative: bool = False, largest: int | None = None) -> Figures:
    """Shares of nodes by their degree, or of nodes with at most that degree."""
    step, sent = heard.heard(NoisyDegrees)
    if not heard.size:
        return Figures([0], np.array([math.nan]), np.array([math.nan]), heard, "no nodes")
    top = int(max(0, sent.max())) if largest is None else largest
    half, reach = step.noise.variance / 2, 2 * math.ceil(math.sqrt(step.noise.variance)) + 2
    # Beyond these places every function below is constant, and a second difference zero.
    y = np.arange(-reach, top + reach + 1)
    counts = np.bincount(np.clip(sent, y[0], y[-1]) - y[0], minlength=y.size).astype(np.float64)
    # The errors take the counts of near degrees together: where nobody sent a degree, somebody might have.
    smooth = np.convolve(np.pad(counts[1:-1], 1), step.noise.probability(np.arange(-reach, reach + 1)), "same")
    values, errors = np.empty(top + 1), np.empty(top + 1)
    for k in range(top + 1):
        below, here, above = ((y + i <= k if cumulative else y + i == k).astype(np.float64) for i in (-1, 0, 1))
        bend = above - 2 * here + below
        values[k] = counts @ (here - half * bend)
        errors[k] = smooth @ (half * ((above - here) ** 2 + (here - below) ** 2) + half**2 * bend**2)
    share = values / heard.size
    name = "share of nodes with at most this degree" if cumulative else "share of nodes with this degree"
    return Figures(range(top + 1), share, np.sqrt(errors) / heard.size, heard, name)


def stars(heard: Transcript, k: int) -> Figures:
    """k-stars: choices of k neighbours of one node."""
    what = f"{k}-stars"
    by_noise, by_lists = heard.of(NoisyStars), heard.of(NoisyLists)
    if heard.of(NoisyDegrees) is not None:
        value, variance = degree_sum(heard, lambda y: binomial(y, k))
        return _one(what, value, variance, heard, "noisy degrees", what)
    if by_noise is not None:
        step, sent = by_noise
        return _one(what, float(np.sum(sent)), heard.size * step.noise.variance, heard, "noisy counts of stars", what)
    assert by_lists is not None
    law = ListLaw.of(heard)
    return _one(what, law.stars(k), law.wedge_variance(), heard, "randomized lists", what)


# -- from randomized lists ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ListLaw:
    """The lists that were heard, with what their bits are worth."""

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
        """The variance of a pair that is no edge."""
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
        """Edges among so many pairs of which so many bits are set."""
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

    def wedge_variance(self) -> float:
        """Of the number of 2-stars, with estimated degrees."""
        n, v = self.size, max(self.zero, self.one)
        each = self.scaled(self.degrees(), n - 1)
        edges = max(0.0, float(each.sum()) / 2)
        squares = max(0.0, float((each**2).sum()) - n * (n - 1) * v)
        return n * math.comb(max(n - 1, 0), 2) * v**2 + v * (2 * edges * (n - 2) + (n - 2) * squares + 4 * edges**2)

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
        return float(Fraction(total, self.gap**3)), self._variance(ones)

    def _variance(self, ones: int) -> float:
        edges, wedges = max(0.0, float(self.scaled(ones, self.pairs))), max(0.0, self.stars(2))
        return self.triple_variance(edges, wedges, 0.0, self.common(later=False))

    def triple_variance(self, edges: float, wedges: float, triangles: float, common: float) -> float:
        """Of the triangles from one round, in a graph with so many edges, 2-stars and triangles."""
        n, v, bend = self.size, self.zero, 1 + self.one - self.zero
        triples = math.comb(n, 3) * v**3 + v**2 * bend * edges * (n - 2) + v * bend**2 * wedges
        return triples + (bend**3 - 1) * triangles + max(self.zero, self.one) * common

    def common(self, later: bool) -> float:
        """The sum of c (c - 1) over pairs of nodes with c common neighbours; `later`: that come after both.

        Estimated without bias from some of the nodes; what is not clear of zero counts as none.
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
        return self.pairs * mean if mean > _CLEAR * error else 0.0


def edges(heard: Transcript) -> Figures:
    by_count = heard.of(NoisyCounts)
    if by_count is not None:
        step, sent = by_count
        total = float(np.sum(sent))
        return _one("edges", total, heard.size * step.noise.variance, heard, "noisy counts", "edges")
    value, variance = ListLaw.of(heard).edges()
    return _one("edges", value, variance, heard, "randomized lists", "edges")


def triangles(heard: Transcript) -> Figures:
    law = ListLaw.of(heard)
    second = heard.of(ClosedPairs)
    if second is None:
        value, variance = law.triangles() if heard.size > 2 else (0.0, 0.0)
        return _one("triangles", value, variance, heard, "randomized lists, one round", "triangles")
    step, sent = second
    value = sum(int(one) for one in sent) / law.gap
    noise = float(step.variances(heard).sum()) / law.gap**2
    if step.most is None:
        wedges = max(0.0, degree_sum(heard, lambda y: binomial(y, 2))[0])
    else:
        wedges = sum(math.comb(int(bound), 2) for bound in step.bounds(heard))
    lists = max(law.zero, law.one) * (wedges + law.common(later=True))
    method = "noisy lists sent back" + (", by degree" if law.step.by_degree else "")
    return _one("triangles", value, noise + lists, heard, method, "triangles")


def clustering(heard: Transcript) -> Figures:
    """Three times the triangles over the 2-stars: how often two neighbours of a node know each other."""
    closed = triangles(heard)
    wedges = stars(heard, 2)
    error = wedges.stderr if math.isfinite(wedges.stderr) else 0.0
    name = "clustering coefficient"
    if not heard.size or wedges.value <= 2 * error:
        note = ("there are too few 2-stars to tell a coefficient from the noise",) if heard.size else ()
        unknown = np.array([math.nan])
        return Figures([name], unknown, unknown, heard, closed.method, most=1.0, said=note)
    ratio = 3 * closed.value / wedges.value
    spread = (3 * closed.stderr / wedges.value) ** 2 + (ratio * error / wedges.value) ** 2
    return replace(
        _one(name, ratio, spread, heard, closed.method, ""), most=1.0, said=("a ratio of two unbiased figures",)
    )


# -- from a peeling -----------------------------------------------------------------------------------


def cores(heard: Transcript, nodes: Sequence[Label]) -> Figures:
    """The core number of each node: it left a peeling at this threshold."""
    step, record = heard.heard(Peeling)
    assert isinstance(record, Peeled)
    error = math.sqrt(2 * step.noise.variance)
    said = (
        f"after {len(record.tests)} passes; the standard error is that of one noisy comparison, and a core number "
        "comes from several",
    )
    errors = np.full(heard.size, error)
    return Figures(nodes, record.left.astype(np.float64), errors, heard, "noisy peeling", said=said)


def largest_degree(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 1:
        raise NumberError(f"the largest degree is a whole number above 0, not {given!r}")
    return int(given)
