"""Smooth categorical: a transition matrix for each profile, so that joined profiles' outputs look alike.

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

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from deniable import exact
from deniable.errors import ChannelError, NumberError, ShapeError
from deniable.exact import WORD
from deniable.protocols.profiles.graph import Floats, Integers, Part, ProfileGraph
from deniable.protocols.profiles.mechanism import (
    ProfileMechanism,
    Rows,
    holds,
    identity,
    minimize,
    off_diagonal,
    repaired,
)
from deniable.protocols.profiles.onebit import _OneBit, as_prior, check_bits
from deniable.trace import Progress, Watch

# -- the baseline: one channel for everybody, whatever the graph --------------------------------------


@dataclass(frozen=True, eq=False, repr=False, init=False)
class KaryResponse(ProfileMechanism):
    """k-ary randomized response, the baseline of the categorical setting."""

    name: ClassVar[str] = "KaryResponse"

    def __init__(self, graph: ProfileGraph, epsilon: Any) -> None:
        level = exact.as_epsilon(epsilon)
        self._design(graph, level, lambda part, _: response(part, level))


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Warner(_OneBit):
    """Warner's response, the baseline of the one-bit setting: flip with probability 1 / (1 + e^epsilon).

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


_WHAT = "the channels"


@dataclass(frozen=True, eq=False, repr=False, init=False)
class SmoothCategorical(ProfileMechanism):
    """One transition matrix per profile, by linear programming, made exact.

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


def _constraints(part: Part, at: _Layout, epsilon: Fraction) -> tuple[Rows, Rows]:
    """P_i A^i e^-epsilon <= P_j A^j on edges; rows sum to one and outputs are what the rows say."""
    edges, sums = Rows(), Rows()
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
    top = float(minimize(cost, bounded, sums, np.ones(at.size + 1), _WHAT, watch)[at.size])
    cost, upper = np.zeros(at.size), np.ones(at.size)
    cost[at.away], upper[at.away] = 1.0, top
    return at.channels(minimize(cost, edges, sums, upper, _WHAT, watch))


def _cheapest(part: Part, epsilon: Fraction, prices: Integers, watch: Watch) -> Floats:
    at = _Layout(part)
    edges, sums = _constraints(part, at, epsilon)
    cost = np.zeros(at.size)
    own = prices.astype(np.float64).ravel()
    cost[: own.size] = own / max(float(own.max()), 1e-300)
    # Entries that cost nothing (values that a profile never has) still prefer the truth.
    cost[at.away] = np.maximum(cost[at.away], 1e-9)
    return at.channels(minimize(cost, edges, sums, np.ones(at.size), _WHAT, watch))
