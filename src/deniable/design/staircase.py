"""The textbook program over all 2^k staircase columns, for every utility that is a sum of sublinear column utilities.

Program    maximize sum of mu(s) theta_s over theta >= 0 with sum of s_x theta_s = 1 for each symbol x, s in {1, E}^k
Families   the smallest of several divergences ("what if P0 and P1 are not known exactly"), or their weighted sum
Proof      multipliers lambda (and weights of the members): lambda . s >= U(s) for all 2^k patterns, enumerated; floats
           with a margin of 1e-12 of the largest terms, many times what the library's logarithms lose
Beyond     k = 16: the program on 12 merged symbols, and a bound from the members' own optima (or, for mutual
           information, from the best single column), with the gap between them
Source     Kairouz, Oh and Viswanath 2014 (theorems 2 and 4)
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deniable import exact
from deniable.channels import Channel
from deniable.channels._vectors import Floats, probability_vector
from deniable.channels.divergences import FDivergence, find_divergence
from deniable.design._coarse import coarse_groups, merged
from deniable.design._columns import ColumnUtility, Custom, Divergences, family, information
from deniable.design._pair import read_hypotheses
from deniable.design._program import Solution, bits_of, solve
from deniable.design.base import Design
from deniable.design.extremal import extremal, rise
from deniable.design.staircase_certificate import StaircaseCertificate, channel_values, enumerated_bound
from deniable.design.trace import Progress, Watch
from deniable.errors import LabelError, ShapeError

MOST_SYMBOLS = 16


def pattern_matrix(k: int, epsilon: Any) -> Floats:
    """The k x 2^k staircase pattern matrix: entry (x, j) is e^epsilon if bit x of j is set, counted from the top.

    >>> pattern_matrix(2, epsilon="1.0986122886681098").round(6).tolist()
    [[1.0, 1.0, 3.0, 3.0], [1.0, 3.0, 1.0, 3.0]]
    """
    size = exact.whole(k, "the number of symbols")
    if not 1 <= size <= MOST_SYMBOLS:
        raise ShapeError(f"the pattern matrix has 2^k columns: k is 1 to {MOST_SYMBOLS}, not {size}")
    return np.asarray((1 + rise(exact.as_epsilon(epsilon)) * bits_of(size)).T)


def staircase(
    p0: ArrayLike,
    p1: ArrayLike,
    epsilon: Any,
    divergence: str | FDivergence = "kl",
    inputs: Iterable[Any] | None = None,
    progress: Progress | None = None,
) -> Design:
    """The extremal mechanism by the 2^k program: slow, and the yardstick for `extremal`.

    Here and below `progress` is called with what is being done.
    """
    found = find_divergence(divergence)
    first, second, names = read_hypotheses(p0, p1, inputs)
    return _design(f"staircase ({found.name})", family([(first, second)], found), epsilon, None, names, progress)


def best_columns(
    utility: Callable[[Floats], Any],
    k: int,
    epsilon: Any,
    inputs: Iterable[Any] | None = None,
    progress: Progress | None = None,
) -> Design:
    """The mechanism that maximizes the sum over outputs of your sublinear `utility` of the column.

    `utility` takes an array with a column of the channel in each row and returns a number for each.
    """
    custom = Custom(exact.whole(k, "the number of symbols"), utility)
    return _design("staircase (your utility)", custom, epsilon, None, inputs, progress)


def mutual_information(
    prior: ArrayLike, epsilon: Any, inputs: Iterable[Any] | None = None, progress: Progress | None = None
) -> Design:
    """The mechanism whose reports carry most information about symbols that follow `prior`.

    >>> design = mutual_information([0.5, 0.25, 0.25], epsilon=1)
    >>> round(design.value, 9), design.relative_gap < 1e-9
    (0.115215436, True)
    """
    return _design("mutual information", information(prior), epsilon, None, inputs, progress)


def several(
    pairs: Sequence[tuple[Any, Any]],
    epsilon: Any,
    divergence: str | FDivergence = "kl",
    goal: str = "smallest",
    weights: ArrayLike | None = None,
    inputs: Iterable[Any] | None = None,
    progress: Progress | None = None,
) -> Design:
    """One mechanism for several pairs of hypotheses: the best "smallest" or "weighted" divergence of the family."""
    if goal not in ("smallest", "weighted"):
        raise LabelError(f"the goal is 'smallest' or 'weighted', not {goal!r}")
    found = find_divergence(divergence)
    members = family(pairs, found)
    if goal == "smallest":
        if weights is not None:
            raise LabelError("weights belong to goal='weighted': the smallest divergence has none")
        return _design(f"smallest of {members.members} ({found.name})", members, epsilon, None, inputs, progress)
    even = np.full(members.members, 1 / members.members)
    shares = even if weights is None else probability_vector(weights, members.members, "weights of the family")
    return _design(f"weighted sum of {members.members} ({found.name})", members, epsilon, shares, inputs, progress)


def _design(
    name: str,
    utility: ColumnUtility,
    epsilon: Any,
    weights: Floats | None,
    inputs: Iterable[Any] | None,
    progress: Progress | None,
) -> Design:
    began = time.perf_counter()
    level = exact.as_epsilon(epsilon)
    shares = np.ones(1) if weights is None and utility.members == 1 else weights
    names = None if inputs is None else tuple(inputs)
    odds, watch = rise(level), Watch(progress)
    if utility.size <= MOST_SYMBOLS:
        solution = solve(utility, odds, shares, watch)
        rows = solution.rows
        certify_with: Solution | None = solution
    else:
        groups = coarse_groups(utility)
        rows = solve(merged(utility, groups), odds, shares, watch).rows[groups]
        certify_with = None
    channel = Channel.from_floats(rows, level, inputs=names)
    value = channel_values(utility, channel, shares)
    watch.worth(value)
    certify = partial(_certify, utility, channel, level, shares, certify_with, value, progress)
    return Design(name, level, value, channel, certify, names, tuple(watch.steps), time.perf_counter() - began)


def _certify(
    utility: ColumnUtility,
    channel: Channel,
    epsilon: Fraction,
    weights: Floats | None,
    solution: Solution | None,
    value: float,
    progress: Progress | None,
) -> StaircaseCertificate:
    Watch(progress).say(f"proof: all columns of {utility.size} symbols")
    shares = None if weights is None else tuple(weights.tolist())
    if solution is not None:
        mixed, prices = tuple(solution.weights.tolist()), tuple(solution.multipliers.tolist())
        bound = enumerated_bound(utility, np.array(mixed), np.array(prices), epsilon, room=2)
        return StaircaseCertificate(utility, epsilon, channel, shares, mixed, prices, (), value, bound)
    if isinstance(utility, Divergences):
        parts = tuple(
            extremal(_law(pair.weights0), _law(pair.weights1), epsilon, utility.divergence).certificate
            for pair in utility.pairs
        )
        bounds = [part.bound for part in parts]
        bound = min(bounds) if weights is None else math.fsum(w * b for w, b in zip(weights, bounds, strict=True))
        # One rounding for each product and one for the sum.
        bound *= 1 + 1e-14
        return StaircaseCertificate(utility, epsilon, channel, shares, (), (), parts, value, bound)
    ceiling = getattr(utility, "ceiling", None)
    if ceiling is None:
        raise ShapeError(f"a utility of your own is optimized over at most {MOST_SYMBOLS} symbols, not {utility.size}")
    bound = float(ceiling(rise(epsilon))) * (1 + 1e-12)
    return StaircaseCertificate(utility, epsilon, channel, shares, (), (), (), value, bound)


def _law(weights: tuple[int, ...]) -> list[Fraction]:
    total = sum(weights)
    return [Fraction(w, total) for w in weights]
