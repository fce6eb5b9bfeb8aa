"""Least noise that makes joined profiles look alike: for one bit, for values, and the same channel for everybody.

One bit from Bernoulli profiles: how often it must be flipped.

Law        the bit is flipped with probability alpha_i <= 1/2, which may depend on the profile i
Pair       p_i <= p_j, E = e^epsilon: alpha = max(0, u / (2 u + E - 1), w / (2 w + E - 1)) over those of
           u = p_j - E p_i, w = (1 - p_i) - E (1 - p_j) that are positive, rounded up to a multiple of 2^-64
Cluster    one alpha for a connected component: the largest of its edges (the ratios fall as alpha grows to 1/2)
Smooth     an alpha per profile: the least largest alpha, then the least total, by linear programming, made exact;
           never worse than the cluster's, which is never worse than Warner's 1 / (1 + E)
Source     Geumlek and Chaudhuri 2019, section 5.1; their Observation 10 lacks the conditions u > 0 and w > 0, without
           which it exceeds 1/2 or divides by zero

Smooth categorical: a transition matrix for each profile.

Law        value x of profile i becomes y with probability A^i[x, y]
Privacy    P_i A^i <= e^epsilon P_j A^j entry by entry on every edge, both ways; exact after repair
Objective  the smallest largest off-diagonal entry and, at that optimum, the smallest total of such entries (the
           paper's); or, with a prior over profiles or a cost[x, y], the smallest expected cost
Program    k d^2 variables and k d output probabilities, sparse; solved for each connected component on its own
Unique     the optimum is not: the integers are stored in the spec and never computed again
Never      worse than k-ary randomized response by the objective, which stands in when it is as good
Source     Geumlek and Chaudhuri 2019, section 5.2

Local differential privacy as a profile mechanism: one channel for everybody, whatever the graph.

Law        the value is kept with probability p, else each other one has q = ceil(2^64 / (E + d - 1)) / 2^64
Privacy    p / q <= E = e^epsilon for all pairs of values, so every graph of profiles is protected (Theorem 9)
Source     Warner 1965; Kairouz, Oh and Viswanath 2014; Geumlek and Chaudhuri 2019, theorem 9
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from deniable import exact
from deniable.errors import ChannelError, NumberError, ProbabilityError, ShapeError
from deniable.exact import WORD
from deniable.protocols.profiles.graph import Floats, Integers, Part, ProfileGraph
from deniable.protocols.profiles.mechanism import (
    Constraints,
    ProfileMechanism,
    holds,
    identity,
    minimize,
    off_diagonal,
    repaired,
)
from deniable.trace import Progress, Watch

# -- one bit ------------------------------------------------------------------------------------------


_FLIPS = "the flip probabilities"


def pair_flip(p: Any, q: Any, epsilon: Any) -> Fraction:
    """The smallest multiple of 2^-64 with which flipping hides Bernoulli(p) from Bernoulli(q).

    Args:
        p: Parameter of the first Bernoulli distribution.
        q: Parameter of the second.
        epsilon: The guarantee.

    Returns:
        The flip probability.

    Raises:
        ProbabilityError: A parameter is not between 0 and 1.

    >>> float(pair_flip(0, 1, 1)), float(pair_flip(0.9, 0.9, 1))
    (0.2689414213699951, 0.0)
    """
    low, high = sorted((exact.fraction(p, "the first parameter"), exact.fraction(q, "the second parameter")))
    if low < 0 or high > 1:
        raise ProbabilityError("a Bernoulli parameter lies between 0 and 1")
    return Fraction(_pair(low, high, exact.as_epsilon(epsilon)), WORD)


def _pair(low: Fraction, high: Fraction, epsilon: Fraction) -> int:
    def flip(odds: Fraction) -> Fraction:
        need = max(high - odds * low, (1 - low) - odds * (1 - high), Fraction(0))
        # x / (2 x + E - 1) grows with x, so the larger of u and w decides.
        return WORD * need / (2 * need + odds - 1)

    return 0 if low == high else exact.ceil_of(flip, epsilon)


def pair_program(p: float, q: float, epsilon: Any) -> float:
    """The same flip probability from the paper's program (4), in floats: a check of the closed form.

    Args:
        p: Parameter of the first Bernoulli distribution.
        q: Parameter of the second.
        epsilon: The guarantee.

    Returns:
        The flip probability.
    """
    shrink = float(exact.exp_floor(-exact.as_epsilon(epsilon)))
    rows = Constraints()
    for a, b in ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p)):
        # (a + (1 - 2a) alpha) e^-epsilon <= b + (1 - 2b) alpha
        rows.add([0], [shrink * (1 - 2 * a) - (1 - 2 * b)], b - shrink * a)
    return float(minimize(np.ones(1), rows, None, np.full(1, 0.5), "two profiles")[0])


@dataclass(frozen=True, eq=False, repr=False, init=False)
class _OneBit(ProfileMechanism):
    @property
    def flip(self) -> Floats:
        """The probability that the bit is flipped, for each profile in the graph's order."""
        rates: Floats = (self.table[:, 0, 1] / WORD).astype(np.float64)
        return rates

    @property
    def exact_flip(self) -> tuple[Fraction, ...]:
        return tuple(Fraction(int(top), WORD) for top in self.table[:, 0, 1])


@dataclass(frozen=True, eq=False, repr=False, init=False)
class OneBitCluster(_OneBit):
    """One flip probability a connected component.

    Args:
        graph: The profiles and the pairs that must look alike.
        epsilon: The guarantee between joined profiles.

    >>> graph = ProfileGraph.chain([0, 0.5, 1])
    >>> OneBitCluster(graph, epsilon=1).flip.round(4).tolist()
    [0.1839, 0.1839, 0.1839]
    """

    name: ClassVar[str] = "OneBitCluster"

    def __init__(self, graph: ProfileGraph, epsilon: Any) -> None:
        level = exact.as_epsilon(epsilon)
        check_bits(graph)
        self._design(graph, level, lambda part, _: cluster(part, level))


@dataclass(frozen=True, eq=False, repr=False, init=False)
class SmoothOneBit(_OneBit):
    """One flip probability a profile: the paper's objective, or with `prior` the fewest flips on average.

    Args:
        graph: The profiles and the pairs that must look alike.
        epsilon: The guarantee between joined profiles.
        prior: Probability of each profile; minimizes the flips on average.
        progress: Called with a description of the current work.

    >>> graph = ProfileGraph.chain([0, 0.2, 0.4, 0.6, 0.8, 1])
    >>> SmoothOneBit(graph, epsilon=0.5).flip.round(4).tolist()
    [0.1472, 0.071, 0.0, 0.0, 0.071, 0.1472]
    >>> OneBitCluster(graph, epsilon=0.5).flip.round(4).tolist()
    [0.1907, 0.1907, 0.1907, 0.1907, 0.1907, 0.1907]
    """

    name: ClassVar[str] = "SmoothOneBit"

    def __init__(
        self, graph: ProfileGraph, epsilon: Any, prior: ArrayLike | None = None, progress: Progress | None = None
    ) -> None:
        level = exact.as_epsilon(epsilon)
        check_bits(graph)
        weights = None if prior is None else as_prior(prior, graph.size)
        self._design(graph, level, lambda part, watch: smooth(part, level, weights, watch), progress)


def check_bits(graph: Any) -> None:
    if not isinstance(graph, ProfileGraph):
        raise ShapeError(f"a profile mechanism needs a ProfileGraph, not a {type(graph).__name__}")
    if graph.whole.width != 2:
        raise ShapeError(f"a one-bit mechanism needs profiles of 2 values, not {graph.whole.width}: SmoothCategorical")


def as_prior(prior: Any, size: int) -> list[Fraction]:
    """Weights of the profiles, exact; they need not sum to one."""
    listed: Sequence[Any] = list(prior)
    weights = [exact.fraction(weight, "a weight of the prior") for weight in listed]
    if len(weights) != size:
        raise ShapeError(f"the prior has {len(weights)} weights for {size} profiles")
    if min(weights) < 0 or max(weights) == 0:
        raise NumberError("the prior's weights are not negative, and one is positive")
    return weights


def flips(tops: Sequence[int] | Integers) -> Integers:
    """Channels that flip a bit with probability tops[i] / 2^64."""
    table = np.empty((len(tops), 2, 2), dtype=object)
    for i, top in enumerate(tops):
        table[i] = [[WORD - int(top), int(top)], [int(top), WORD - int(top)]]
    return table


def cluster(part: Part, epsilon: Fraction) -> Integers:
    pairs = {tuple(sorted((part.law(i)[1], part.law(j)[1]))) for i, j in part.edges.tolist()}
    return flips([max(_pair(low, high, epsilon) for low, high in pairs)] * part.size)


def smooth(part: Part, epsilon: Fraction, prior: list[Fraction] | None, watch: Watch) -> Integers:
    plain = identity(part)
    if holds(part, plain, epsilon):
        return plain
    weights = None if prior is None else [prior[i] for i in part.members]
    draft = _program(part.profiles[:, 1], part.edges, epsilon, weights, watch)
    solved = repaired(part, np.stack([[1 - draft, draft], [draft, 1 - draft]], axis=0).transpose(2, 0, 1), epsilon)

    def score(table: Integers) -> tuple[Any, Any]:
        tops = table[:, 0, 1]
        if weights is None:
            return tops.max(), tops.sum()
        return sum(weight * top for weight, top in zip(weights, tops, strict=True)), tops.sum()

    return min(solved, cluster(part, epsilon), key=score)


def _program(p: Floats, edges: Any, epsilon: Fraction, weights: list[Fraction] | None, watch: Watch) -> Floats:
    """The flip probabilities of program (5) as floats; each constraint is divided by e^epsilon."""
    size, shrink = p.size, float(exact.exp_floor(-epsilon))
    slope = 1 - 2 * p
    rows = Constraints()
    for i, j in ((edges[:, 0], edges[:, 1]), (edges[:, 1], edges[:, 0])):
        rows.add([i, j], [shrink * slope[i], -slope[j]], p[j] - shrink * p[i])
        rows.add([i, j], [-shrink * slope[i], slope[j]], (1 - p[j]) - shrink * (1 - p[i]))
    if weights is not None:
        cost = np.array([float(weight) for weight in weights])
        # A profile of weight zero still prefers fewer flips.
        cost = np.maximum(cost / max(cost.max(), 1e-300), 1e-6)
        return minimize(cost, rows, None, np.full(size, 0.5), _FLIPS, watch)
    top = _smallest_largest(rows, size, watch)
    return minimize(np.ones(size), rows, None, np.full(size, top), _FLIPS, watch)


def _smallest_largest(rows: Constraints, size: int, watch: Watch) -> float:
    bounded = rows.copy()
    bounded.add([np.arange(size), size], [1.0, -1.0], np.zeros(size))
    cost = np.zeros(size + 1)
    cost[size] = 1.0
    return float(minimize(cost, bounded, None, np.full(size + 1, 0.5), _FLIPS, watch)[size])


# -- the baseline: one channel for everybody, whatever the graph --------------------------------------


@dataclass(frozen=True, eq=False, repr=False, init=False)
class KaryResponse(ProfileMechanism):
    """k-ary randomized response, the baseline of the categorical setting.

    Args:
        graph: The profiles and the pairs that must look alike.
        epsilon: The guarantee between joined profiles.
    """

    name: ClassVar[str] = "KaryResponse"

    def __init__(self, graph: ProfileGraph, epsilon: Any) -> None:
        level = exact.as_epsilon(epsilon)
        self._design(graph, level, lambda part, _: response(part, level))


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Warner(_OneBit):
    """Warner's response, the baseline of the one-bit setting: flip with probability 1 / (1 + e^epsilon).

    Args:
        graph: The profiles and the pairs that must look alike.
        epsilon: The guarantee between joined profiles.

    >>> Warner(ProfileGraph.chain([0.2, 0.3]), epsilon=1).flip.round(4).tolist()
    [0.2689, 0.2689]
    """

    name: ClassVar[str] = "Warner"

    def __init__(self, graph: ProfileGraph, epsilon: Any) -> None:
        level = exact.as_epsilon(epsilon)
        check_bits(graph)
        self._design(graph, level, lambda part, _: response(part, level))


def response(part: Part, epsilon: Fraction) -> Integers:
    """Randomized response on the part's values, the same for every profile."""
    width = part.width
    lie = exact.ceil_of(lambda odds: WORD / (odds + width - 1), epsilon)
    truth = WORD - (width - 1) * lie
    if truth < lie:
        raise ChannelError(f"at this epsilon a value among {width} would never be kept: raise epsilon")
    table = np.full((part.size, width, width), lie, dtype=object)
    table[identity(part) > 0] = truth
    return table


_CHANNELS = "the channels"


@dataclass(frozen=True, eq=False, repr=False, init=False)
class SmoothCategorical(ProfileMechanism):
    """One transition matrix per profile, by linear programming, made exact.

    Args:
        graph: The profiles and the pairs that must look alike.
        epsilon: The guarantee between joined profiles.
        prior: Probability of each profile, for the average cost.
        cost: `cost[x][y]` of reporting y for x; 1 for every change if None.
        progress: Called with a description of the current work.

    >>> graph = ProfileGraph.chain({"P1": [0.2, 0.3, 0.4, 0.1], "P2": [0.3, 0.3, 0.3, 0.1]})
    >>> mechanism = SmoothCategorical(graph, epsilon=0.2)
    >>> mechanism.epsilon <= 0.2, mechanism.largest < Fraction(1, 10)
    (True, True)
    """

    name: ClassVar[str] = "SmoothCategorical"

    def __init__(
        self,
        graph: ProfileGraph,
        epsilon: Any,
        prior: ArrayLike | None = None,
        cost: ArrayLike | None = None,
        progress: Progress | None = None,
    ) -> None:
        level = exact.as_epsilon(epsilon)
        prices = None
        if isinstance(graph, ProfileGraph) and (prior is not None or cost is not None):
            weights = [Fraction(1)] * graph.size if prior is None else as_prior(prior, graph.size)
            prices = _prices(graph.whole, weights, _as_cost(cost, graph.whole.width))
        self._design(graph, level, lambda part, watch: _channels(part, level, prices, watch), progress)


def _as_cost(cost: Any, width: int) -> list[list[Fraction]]:
    if cost is None:
        return [[Fraction(int(x != y)) for y in range(width)] for x in range(width)]
    rows = [[exact.fraction(entry, "a cost") for entry in row] for row in cost]
    if len(rows) != width or any(len(row) != width for row in rows):
        raise ShapeError(f"the cost is a {width} x {width} matrix: cost[x][y] of reporting y for x")
    if min(min(row) for row in rows) < 0:
        raise NumberError("costs are not negative")
    return rows


def _prices(whole: Part, weights: list[Fraction], cost: list[list[Fraction]]) -> Integers:
    """What entry [i, x, y] adds to the expected cost."""
    prices = np.empty((whole.size, whole.width, whole.width), dtype=object)
    for i, weight in enumerate(weights):
        for x, chance in enumerate(whole.law(i)):
            prices[i, x] = [weight * chance * price for price in cost[x]]
    return prices


def _channels(part: Part, epsilon: Fraction, prices: Integers | None, watch: Watch) -> Integers:
    own = None if prices is None else prices[part.members]

    def score(table: Integers) -> tuple[Any, Any]:
        away = off_diagonal(table)
        return (away.max(), away.sum()) if own is None else ((own * table).sum(), away.max())

    plain = identity(part)
    if holds(part, plain, epsilon) and (own is None or score(plain)[0] == 0):
        return plain
    draft = _paper(part, epsilon, watch) if own is None else _cheapest(part, epsilon, own, watch)
    return min(repaired(part, draft, epsilon), response(part, epsilon), key=score)


class _Layout:
    """Where A^i[x, y], the output probabilities (P_i A^i)_y and their minima stand among the variables."""

    def __init__(self, part: Part) -> None:
        self.entries = np.arange(part.size * part.width**2).reshape(part.size, part.width, part.width)
        self.outputs = self.entries.size + np.arange(part.size * part.width).reshape(part.size, part.width)
        self.away = self.entries[:, ~np.eye(part.width, dtype=np.bool_)].ravel()
        self.complete = len(part.edges) == part.size * (part.size - 1) // 2
        self.lowest = self.entries.size + self.outputs.size + np.arange(part.width if self.complete else 0)
        self.size = self.entries.size + self.outputs.size + self.lowest.size

    def channels(self, solution: Floats) -> Floats:
        return solution[: self.entries.size].reshape(self.entries.shape)


def _constraints(part: Part, at: _Layout, epsilon: Fraction) -> tuple[Constraints, Constraints]:
    """P_i A^i e^-epsilon <= P_j A^j on edges; rows sum to one and outputs are what the rows say."""
    edges, sums = Constraints(), Constraints()
    shrink = float(exact.exp_floor(-epsilon))
    if at.complete:
        # All pairs at once: every output probability lies between a column's minimum and e^epsilon times it.
        every, lowest = at.outputs.ravel(), np.tile(at.lowest, part.size)
        edges.add([lowest, every], [1.0, -1.0], np.zeros(every.size))
        edges.add([every, lowest], [shrink, -1.0], np.zeros(every.size))
    else:
        for i, j in ((part.edges[:, 0], part.edges[:, 1]), (part.edges[:, 1], part.edges[:, 0])):
            first, second = at.outputs[i].ravel(), at.outputs[j].ravel()
            edges.add([first, second], [shrink, -1.0], np.zeros(first.size))
    width = part.width
    flat = at.entries.reshape(-1, width)
    sums.add([flat[:, y] for y in range(width)], [1.0] * width, np.ones(len(flat)))
    columns = [at.entries[:, x, :].ravel() for x in range(width)]
    chances = [np.repeat(part.profiles[:, x], width) for x in range(width)]
    sums.add([*columns, at.outputs.ravel()], [*chances, -1.0], np.zeros(at.outputs.size))
    return edges, sums


def _paper(part: Part, epsilon: Fraction, watch: Watch | None = None) -> Floats:
    at = _Layout(part)
    edges, sums = _constraints(part, at, epsilon)
    bounded = edges.copy()
    bounded.add([at.away, at.size], [1.0, -1.0], np.zeros(at.away.size))
    cost = np.zeros(at.size + 1)
    cost[at.size] = 1.0
    top = float(minimize(cost, bounded, sums, np.ones(at.size + 1), _CHANNELS, watch)[at.size])
    cost, upper = np.zeros(at.size), np.ones(at.size)
    cost[at.away], upper[at.away] = 1.0, top
    return at.channels(minimize(cost, edges, sums, upper, _CHANNELS, watch))


def _cheapest(part: Part, epsilon: Fraction, prices: Integers, watch: Watch) -> Floats:
    at = _Layout(part)
    edges, sums = _constraints(part, at, epsilon)
    cost = np.zeros(at.size)
    own = prices.astype(np.float64).ravel()
    cost[: own.size] = own / max(float(own.max()), 1e-300)
    # Entries that cost nothing (values that a profile never has) still prefer the truth.
    cost[at.away] = np.maximum(cost[at.away], 1e-9)
    return at.channels(minimize(cost, edges, sums, np.ones(at.size), _CHANNELS, watch))
