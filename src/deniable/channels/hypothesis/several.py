"""Several hypotheses: how often the best guess among them is wrong after n reports.

Formula    error = sum over types of (sum of prior_h P_h - max of prior_h P_h)
Exact      all types of n reports, up to 10^7 of them
Otherwise  with R_ij = sum of min(prior_i P_i, prior_j P_j), the error lies between
           max( max R_ij, sum R_ij / (h - 1) ) and min( sum R_ij, 1 - max prior ); each R_ij exact or bracketed
Why        sorted terms f_1 >= f_2 >= ... have sum over pairs of min = f_2 + 2 f_3 + ... + (h - 1) f_h
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from deniable.channels._vectors import Floats, probability_vector
from deniable.channels.hypothesis._pair import SAME, read_pair
from deniable.channels.hypothesis._types import MOST_TYPES, Progress, count_types, types
from deniable.channels.hypothesis.ratio_test import bayes_test, read_count
from deniable.errors import ShapeError


@dataclass(frozen=True, slots=True)
class BayesError:
    """The probability that the best guess is wrong: `value`, inside the proven bracket [lower, upper]."""

    value: float
    lower: float
    upper: float
    exact: bool
    method: str


def bayes_error(
    distributions: Sequence[ArrayLike],
    prior: ArrayLike | None = None,
    n: int = 1,
    *,
    max_types: int = MOST_TYPES,
    progress: Progress | None = None,
) -> BayesError:
    """The error of the best guess which of several laws n independent reports came from (uniform prior by default).

    >>> bayes_error([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]).value
    0.5
    """
    if len(distributions) < 2:
        raise ShapeError(f"two or more distributions are needed to tell apart, got {len(distributions)}")
    first = probability_vector(distributions[0], what="first distribution")
    laws = np.stack([probability_vector(law, first.size, "distribution") for law in distributions])
    reports = read_count(n)
    uniform = np.full(len(laws), 1 / len(laws))
    weights = uniform if prior is None else probability_vector(prior, len(laws))
    laws, weights = laws[weights > 0], weights[weights > 0]
    if len(laws) == 1:
        return BayesError(0.0, 0.0, 0.0, True, "one hypothesis")
    if len(laws) == 2:
        pair = bayes_test(read_pair(*laws), reports, float(weights[0]), max_types, progress)
        return BayesError(pair.bayes, pair.lower, pair.upper, pair.exact, pair.method)
    merged = _merge(laws)
    if count_types(reports, merged.shape[1]) <= max_types:
        value = _by_types(merged, weights, reports, progress)
        return BayesError(value, value, value, True, "types")
    lower, upper = _by_pairs(laws, weights, reports, max_types)
    return BayesError((lower + upper) / 2, lower, upper, False, "pairs")


def _merge(laws: Floats) -> Floats:
    """Add up outputs on which all likelihoods are proportional; drop impossible ones."""
    laws = laws[:, laws.max(axis=0) > 0]
    shape = laws / laws.sum(axis=0)
    order = np.lexsort(shape)
    laws, shape = laws[:, order], shape[:, order]
    # A zero stays apart from a small number: it rules its hypothesis out.
    same = (np.abs(np.diff(shape, axis=1)) <= SAME * np.minimum(shape[:, 1:], shape[:, :-1])).all(axis=0)
    starts = np.flatnonzero(np.concatenate([[True], ~same]))
    return np.asarray(np.add.reduceat(laws, starts, axis=1), dtype=np.float64)


def _by_types(laws: Floats, weights: Floats, n: int, progress: Progress | None) -> float:
    with np.errstate(divide="ignore"):
        logs = np.log(laws)
    parts = []
    for block in types(n, logs, progress):
        joint = np.exp(block) * weights[:, None]
        joint[joint.argmax(axis=0), np.arange(joint.shape[1])] = 0
        parts.append(float(joint.sum()))
    return math.fsum(parts)


def _by_pairs(laws: Floats, weights: Floats, n: int, max_types: int) -> tuple[float, float]:
    lows, highs = [], []
    for i, j in combinations(range(len(laws)), 2):
        mass = float(weights[i] + weights[j])
        error = bayes_test(read_pair(laws[i], laws[j]), n, float(weights[i]) / mass, max_types)
        lows.append(mass * error.lower)
        highs.append(mass * error.upper)
    lower = max(max(lows), math.fsum(lows) / (len(laws) - 1))
    return lower, min(math.fsum(highs), 1 - float(weights.max()))
