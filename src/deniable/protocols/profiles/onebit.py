"""One bit from Bernoulli profiles: how often it must be flipped so that joined profiles look alike.

Law        the bit is flipped with probability alpha_i <= 1/2, which may depend on the profile i
Pair       p_i <= p_j, E = e^epsilon: alpha = max(0, u / (2 u + E - 1), w / (2 w + E - 1)) over those of
           u = p_j - E p_i, w = (1 - p_i) - E (1 - p_j) that are positive, rounded up to a multiple of 2^-64
Cluster    one alpha for a connected component: the largest of its edges (the ratios fall as alpha grows to 1/2)
Smooth     an alpha per profile: the least largest alpha, then the least total, by linear programming, made exact;
           never worse than the cluster's, which is never worse than Warner's 1 / (1 + E)
Source     Geumlek and Chaudhuri 2019, section 5.1; their Observation 10 lacks the conditions u > 0 and w > 0, without
           which it exceeds 1/2 or divides by zero
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from deniable import exact
from deniable.errors import NumberError, ProbabilityError, ShapeError
from deniable.exact import WORD
from deniable.protocols.profiles.graph import Floats, Integers, Part, ProfileGraph
from deniable.protocols.profiles.mechanism import ProfileMechanism, Rows, holds, identity, minimize, repaired
from deniable.trace import Progress, Watch

_WHAT = "the flip probabilities"


def pair_flip(p: Any, q: Any, epsilon: Any) -> Fraction:
    """The smallest multiple of 2^-64 with which flipping hides Bernoulli(p) from Bernoulli(q).

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
    """The same flip probability from the paper's program (4), in floats: a check of the closed form."""
    shrink = float(exact.exp_floor(-exact.as_epsilon(epsilon)))
    rows = Rows()
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
    rows = Rows()
    for i, j in ((edges[:, 0], edges[:, 1]), (edges[:, 1], edges[:, 0])):
        rows.add([i, j], [shrink * slope[i], -slope[j]], p[j] - shrink * p[i])
        rows.add([i, j], [-shrink * slope[i], slope[j]], (1 - p[j]) - shrink * (1 - p[i]))
    if weights is not None:
        cost = np.array([float(weight) for weight in weights])
        # A profile of weight zero still prefers fewer flips.
        cost = np.maximum(cost / max(cost.max(), 1e-300), 1e-6)
        return minimize(cost, rows, None, np.full(size, 0.5), _WHAT, watch)
    top = _smallest_largest(rows, size, watch)
    return minimize(np.ones(size), rows, None, np.full(size, top), _WHAT, watch)


def _smallest_largest(rows: Rows, size: int, watch: Watch) -> float:
    bounded = rows.copy()
    bounded.add([np.arange(size), size], [1.0, -1.0], np.zeros(size))
    cost = np.zeros(size + 1)
    cost[size] = 1.0
    return float(minimize(cost, bounded, None, np.full(size + 1, 0.5), _WHAT, watch)[size])
