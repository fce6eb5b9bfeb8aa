"""The cost of privacy in people: the effective sample size, and how many reports a test needs.

Factor     D(M0 || M1) / D(P0 || P1): n private reports are worth factor * n answers in the clear. For small epsilon it
           falls like epsilon^2 (for the binary mechanism and KL: epsilon^2 TV(P0, P1)^2 / (2 KL(P0 || P1)))
Need       the smallest n at which some test has both errors at most the given rates: the type-II error of the
           randomized Neyman-Pearson test never rises with n, so doubling and bisection find it; if errors are only
           bracketed, so is n
Picture    effective sample size against epsilon (matplotlib, imported when drawn)
Source     Kairouz, Oh and Viswanath 2014; Duchi, Jordan and Wainwright 2013
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deniable._extras import require
from deniable.channels.closed_forms import binary, randomized_response
from deniable.channels.divergences import (
    FDivergence,
    Pushes,
    divergence,
    find_divergence,
    marginal_divergence,
    marginals,
)
from deniable.channels.hypothesis._bracket import Pair, level_bracket, read_pair
from deniable.channels.hypothesis.ratio_test import MOST_REPORTS, check_rate, count_types, level_test
from deniable.channels.laws import probability_vector
from deniable.errors import NumberError

Stage = Callable[[str, float | None], object]
"""Called with a description of the current work; the remaining work is not known before the end."""

_QUICK_TYPES = 20_000
_PATIENT_TYPES = 1_000_000
# An exact error this close to the target, relatively, counts as reaching it.
_TIE = 1e-11


@dataclass(frozen=True, slots=True)
class SampleSize:
    """The smallest sufficient number of reports lies in [lower, upper]; `n` = upper is certainly enough.

    Args:
        lower: Fewer reports than this are not enough.
        upper: This many reports are enough.
    """

    lower: int
    upper: int

    @property
    def n(self) -> int:
        return self.upper

    @property
    def exact(self) -> bool:
        return self.lower == self.upper


@dataclass(frozen=True, slots=True)
class PeopleNeeded:
    """How many people a test needs when they answer through the channel, and when they answer without privacy.

    Args:
        private: Number of people who answer through the channel.
        direct: Number of people who answer without privacy.
    """

    private: SampleSize
    direct: SampleSize

    @property
    def factor(self) -> float:
        """Number of private respondents per respondent without privacy."""
        return self.private.n / self.direct.n if self.direct.n else 1.0


def effective_sample_size(channel: Pushes, p0: ArrayLike, p1: ArrayLike, kind: str | FDivergence = "kl") -> float:
    """The share of the information between p0 and p1 that one report keeps: n reports count as factor * n answers.

    It is at most 1 (data processing). Refused if the divergence of answers without privacy is infinite: by that measure
    no number of reports equals one such answer.

    Args:
        channel: The channel.
        p0: Distribution of the answers under the first hypothesis.
        p1: Distribution of the answers under the second hypothesis.
        kind: The divergence that measures information.

    Returns:
        The factor, between 0 and 1.

    Raises:
        NumberError: The distributions are the same, or their divergence is infinite.
    """
    clear = divergence(p0, p1, kind)
    if clear == 0:
        raise NumberError("the two distributions are the same: there is nothing to tell apart")
    private = marginal_divergence(channel, p0, p1, kind)
    if private == float("inf"):
        raise NumberError("both divergences are infinite: compare with kind='hellinger2', 'tv' or 'js'")
    if clear == float("inf"):
        raise NumberError(
            "answers in the clear are infinitely better by this divergence, because some answer is possible under one "
            "distribution only: compare with kind='hellinger2', 'tv' or 'js'"
        )
    return min(private / clear, 1.0)


def sample_size(
    m0: ArrayLike, m1: ArrayLike, type_one: float, type_two: float, progress: Stage | None = None
) -> SampleSize:
    """The smallest number of reports of law m0 or m1 with which a test has at most the given errors.

    Args:
        m0: The law of one report under the first hypothesis.
        m1: The law of one report under the second hypothesis.
        type_one: Allowed probability of rejecting `m0` if it is true.
        type_two: Allowed probability of rejecting `m1` if it is true.
        progress: Called before each number of reports that is tried.

    Returns:
        Bounds on the smallest number.

    Raises:
        NumberError: The two laws are the same.

    >>> sample_size([0.75, 0.25], [0.25, 0.75], 0.05, 0.05)
    SampleSize(lower=9, upper=9)
    """
    check_rate(type_one, "type-I rate")
    check_rate(type_two, "type-II rate")
    pair = read_pair(m0, m1)
    if type_one + type_two >= 1:
        return SampleSize(0, 0)
    if pair.llr.size == 1 and pair.only0 == pair.only1 == 0:
        raise NumberError("the two distributions are the same: no number of reports tells them apart")

    @cache
    def enough(n: int) -> bool | None:
        if progress is not None:
            progress(f"are {n:,} reports enough?", None)
        return _enough(pair, n, type_one, type_two)

    upper = _least(lambda n: enough(n) is True)
    lower = _least(lambda n: enough(n) is not False)
    return SampleSize(lower, upper)


def people_needed(
    channel: Pushes,
    p0: ArrayLike,
    p1: ArrayLike,
    type_one: float,
    type_two: float,
    progress: Stage | None = None,
) -> PeopleNeeded:
    """How many people are needed to distinguish p0 and p1 with at most the given errors, with and without the channel.

    Args:
        channel: The channel.
        p0: Distribution of the answers under the first hypothesis.
        p1: Distribution of the answers under the second hypothesis.
        type_one: Allowed probability of rejecting `p0` if it is true.
        type_two: Allowed probability of rejecting `p1` if it is true.
        progress: Called before each number of reports that is tried.

    Returns:
        Both numbers of people.

    >>> from deniable.channels import randomized_response
    >>> result = people_needed(randomized_response(2, 1), [0.9, 0.1], [0.5, 0.5], 0.05, 0.05)
    >>> result.private.n, result.direct.n
    (75, 13)
    """
    private = sample_size(*marginals(channel, p0, p1), type_one, type_two, progress)
    return PeopleNeeded(private, sample_size(p0, p1, type_one, type_two, progress))


def _enough(pair: Pair, n: int, type_one: float, type_two: float) -> bool | None:
    """Whether n reports suffice; None if the bracket cannot decide."""
    ratios = pair.llr.size
    if ratios in (0, 2) or count_types(n, ratios) <= _QUICK_TYPES:
        return level_test(pair, n, 0.5, type_one).type_two <= type_two * (1 + _TIE)
    width = math.inf
    for nodes in (2**13, 2**16, 2**18):
        lower, upper = level_bracket(pair, n, type_one, nodes)
        if upper <= type_two:
            return True
        if lower > type_two:
            return False
        if upper - lower > width / 4:
            break  # rounding, not resolution, now limits the width
        width = upper - lower
    if count_types(n, ratios) <= _PATIENT_TYPES:
        return level_test(pair, n, 0.5, type_one).type_two <= type_two * (1 + _TIE)
    return None


def _least(holds: Callable[[int], bool]) -> int:
    """The smallest n >= 1 that holds, for a property that stays true once it is true."""
    low, high = 0, 1
    while not holds(high):
        if high == MOST_REPORTS:
            raise NumberError("10^12 reports cannot be shown to be enough: the two distributions are too close")
        low, high = high, min(2 * high, MOST_REPORTS)
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


# -- a picture ------------------------------------------------------------------------------------------


def plot_effective_sample_size(
    p0: ArrayLike,
    p1: ArrayLike,
    epsilons: Sequence[float] | None = None,
    kind: str | FDivergence = "kl",
    ax: Any = None,
) -> Any:
    """Factor by which n shrinks, for the binary mechanism and k-ary randomized response, on logarithmic axes.

    The dashed line has slope epsilon^2 and meets the binary mechanism at the smallest epsilon.

    Args:
        p0: Distribution of the answers under the first hypothesis.
        p1: Distribution of the answers under the second hypothesis.
        epsilons: Where the curves are computed; 40 values from 0.05 to 8 if None.
        kind: The divergence that measures information.
        ax: Axes of matplotlib to draw on; new ones if None.

    Returns:
        The axes.
    """
    pyplot = require("matplotlib.pyplot", "plot")
    first = probability_vector(p0, what="first distribution")
    second = probability_vector(p1, first.size, what="second distribution")
    levels = np.sort(np.geomspace(0.05, 8, 40) if epsilons is None else np.asarray(epsilons, np.float64))
    one_bit = [effective_sample_size(binary(first, second, float(e)), first, second, kind) for e in levels]
    direct = [effective_sample_size(randomized_response(first.size, float(e)), first, second, kind) for e in levels]
    if ax is None:
        _, ax = pyplot.subplots(figsize=(6, 4), layout="constrained")
    ax.loglog(levels, one_bit, label="binary mechanism")
    ax.loglog(levels, direct, label=f"randomized response, k = {first.size}")
    reference = one_bit[0] * (levels / levels[0]) ** 2
    shown = reference <= 1
    ax.loglog(levels[shown], reference[shown], "--", color="0.5", label="slope epsilon^2")
    ax.set_xlabel("epsilon")
    ax.set_ylabel("effective sample size / n")
    ax.set_title(f"What privacy costs ({find_divergence(kind).name})")
    ax.grid(True, which="both", alpha=0.2)
    ax.legend()
    return ax
