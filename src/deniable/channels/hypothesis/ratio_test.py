"""The best test among hypotheses: how often it errs after n reports, how fast that falls, and how many people it needs.

Promise    no test has a smaller Bayes error (or, at a given type-I error, a smaller type-II error)
Convention type I: the first hypothesis is true, the test says "second". type II: the other way round
Binomial   two different likelihood ratios: exact for any n. K counts the output that speaks for the first hypothesis;
           the best test says "second" when K < k, and P(K >= k) = I_x(k, n-k+1), an incomplete beta function. A test
           whose type-I error lies between two k mixes them
Types      more ratios: all types of n reports, up to 10^7 of them. A type says how often each output occurred;
           n reports over r outputs have C(n + r - 1, r - 1) types against r^n sequences
Otherwise  a proven bracket [lower, upper] in about 0.1 s whatever n (`_bracket` says why). Measured against exact
           errors: nine in ten are within 3e-5 of a Bayes error and 2e-3 of a type-II error
Several    error = sum over types of (sum of prior_h P_h - max of prior_h P_h). Without types, with
           R_ij = sum of min(prior_i P_i, prior_j P_j), it lies between max( max R_ij, sum R_ij / (h - 1) ) and
           min( sum R_ij, 1 - max prior ): sorted terms f_1 >= f_2 >= ... have
           sum over pairs of min = f_2 + 2 f_3 + ... + (h - 1) f_h
Source     Neyman and Pearson 1933; Kairouz, Oh and Viswanath 2014 for tests on privatized reports

How fast errors fall with the number of reports: exponents and an inequality for every n.

Stein      at a fixed type-I error the best type-II error is e^(-n KL(M0 || M1) + o(n))
Chernoff   the Bayes error is e^(-n C + o(n)), and at most e^(-n C): C = -min over s of ln sum M0^s M1^(1-s);
           several hypotheses: the least C over pairs
Le Cam     type I + type II >= 1 - TV(M0^n, M1^n) >= max( 1 - sqrt(1 - BC^2n), (1 - TV)^n ), exact tensorization of the
           Bhattacharyya coefficient BC = sum sqrt(M0 M1) = 1 - hellinger2, and of the overlap 1 - TV
Source     Chernoff 1952; Le Cam 1973; Tsybakov 2009, chapter 2

What privacy costs in people: the effective sample size, and how many reports a test needs.

Factor     D(M0 || M1) / D(P0 || P1): n private reports are worth factor * n answers in the clear. For small epsilon it
           falls like epsilon^2 (for the binary mechanism and KL: epsilon^2 TV(P0, P1)^2 / (2 KL(P0 || P1)))
Need       the least n at which some test has both errors at most the given rates: the type-II error of the randomized
           Neyman-Pearson test never rises with n, so doubling and bisection find it; where errors are only bracketed,
           so is n
Picture    effective sample size against epsilon (matplotlib, imported when drawn)
Source     Kairouz, Oh and Viswanath 2014; Duchi, Jordan and Wainwright 2013
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any, ClassVar

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
from deniable.channels.hypothesis._bracket import SAME, Pair, bayes_bracket, bisect, level_bracket, read_pair
from deniable.channels.laws import Floats, probability_vector
from deniable.errors import NumberError, ShapeError

MOST_TYPES = 10**7
_BLOCK = 2**19

Progress = Callable[[float], object]

MOST_REPORTS = 10**12


# -- exact errors by types ------------------------------------------------------------------------------


def count_types(n: int, outputs: int) -> int:
    """C(n + outputs - 1, outputs - 1)."""
    return math.comb(n + outputs - 1, outputs - 1) if outputs else 0


def types(n: int, logs: Floats, progress: Progress | None = None) -> Iterator[Floats]:
    """Blocks of shape (laws, types): log-probabilities under each law of all types of n observations.

    `logs` holds the logarithms of the laws, one row per law. Partial types that have used up their n observations
    leave at once, so the work is at most twice the number of types.
    """
    from scipy.special import gammaln

    laws, outputs = logs.shape
    total, done = count_types(n, outputs), 0
    log_factorial = gammaln(np.arange(n + 1) + 1.0)
    stack = [(0, np.array([n]), np.full((laws, 1), log_factorial[n]))]
    while stack:
        output, left, sums = stack.pop()
        last = output == outputs - 1
        if not last and left.size > 1 and int(left.sum()) + left.size > _BLOCK:
            half = left.size // 2
            stack.append((output, left[half:], sums[:, half:]))
            stack.append((output, left[:half], sums[:, :half]))
            continue
        if last:
            counts, parent = left, np.arange(left.size)
        else:
            parent = np.repeat(np.arange(left.size), left + 1)
            starts = np.cumsum(left + 1) - (left + 1)
            counts = np.arange(parent.size) - starts[parent]
        sums = sums[:, parent] - log_factorial[counts]
        for law, log in zip(sums, logs[:, output], strict=True):
            if log == -math.inf:
                law[counts > 0] = -math.inf
            else:
                law += counts * log
        rest = left[parent] - counts
        ended = rest == 0
        block = sums[:, ended]
        if block.size:
            done += block.shape[1]
            if progress is not None:
                progress(done / total)
            yield block
        if not ended.all():
            stack.append((output + 1, rest[~ended], sums[:, ~ended]))


def bayes_by_types(pair: Pair, n: int, prior: float, progress: Progress | None = None) -> tuple[float, float]:
    """Type-I and type-II error of the Bayes test; ties go to the first hypothesis."""
    threshold = math.log1p(-prior) - math.log(prior)
    one: list[float] = []
    two: list[float] = []
    for log0, log1 in types(n, np.log(np.stack([pair.p, pair.q])), progress):
        says_one = log0 - log1 < threshold
        one.append(float(np.exp(log0[says_one]).sum()))
        two.append(float(np.exp(log1[~says_one]).sum()))
    return math.fsum(one), math.fsum(two)


def level_by_types(pair: Pair, n: int, level: float, progress: Progress | None = None) -> tuple[float, float]:
    """Type-I and type-II error of the most powerful randomized test of that type-I error."""
    blocks = [*types(n, np.log(np.stack([pair.p, pair.q])), progress)]
    log0, log1 = np.concatenate(blocks, axis=1)
    order = np.argsort(log0 - log1, kind="stable")
    used = np.cumsum(np.exp(log0[order]))
    cut = int(np.searchsorted(used, level))
    if cut == used.size:
        return float(used[-1]), 0.0
    before = float(used[cut - 1]) if cut else 0.0
    kept = (float(used[cut]) - level) / (float(used[cut]) - before)
    missed = np.exp(log1[order[cut:]])
    return level, float(missed[1:].sum() + kept * missed[0])


# -- exact errors by binomial tails ---------------------------------------------------------------------


def _errors(pair: Pair, n: int, k: int) -> tuple[float, float]:
    """Type-I and type-II error of saying "second" when K < k."""
    from scipy.special import betainc

    scale0, scale1 = (math.exp(x) for x in pair.log_shared(n))
    if k <= 0:
        return 0.0, scale1
    if k > n:
        return scale0, 0.0
    one = float(betainc(n - k + 1, k, pair.p[0] / (pair.p[0] + pair.p[1])))
    two = float(betainc(k, n - k + 1, pair.q[1] / (pair.q[0] + pair.q[1])))
    return scale0 * one, scale1 * two


def bayes_by_counts(pair: Pair, n: int, prior: float) -> tuple[float, float]:
    """Type-I and type-II error of the Bayes test; ties go to the first hypothesis."""
    low, high = pair.llr
    threshold = math.log1p(-prior) - math.log(prior)
    k = math.ceil((threshold - n * low) / (high - low))
    return _errors(pair, n, min(max(k, 0), n + 1))


def level_by_counts(pair: Pair, n: int, level: float) -> tuple[float, float]:
    """Type-I and type-II error of the most powerful randomized test of that type-I error."""
    low, high = 0, n + 1
    if _errors(pair, n, high)[0] <= level:
        return _errors(pair, n, high)
    while high - low > 1:
        middle = (low + high) // 2
        if _errors(pair, n, middle)[0] <= level:
            low = middle
        else:
            high = middle
    (one, two), (next_one, next_two) = _errors(pair, n, low), _errors(pair, n, high)
    share = (level - one) / (next_one - one)
    return level, two + share * (next_two - two)


# -- the best test between two laws ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TestError:
    """How often the best test errs.

    `lower` and `upper` bracket the number that was asked for: the Bayes error, or the type-II error when a type-I
    error was given. When `exact`, they coincide with it (to rounding); otherwise `type_one`, `type_two` and `bayes` are
    estimates from inside the bracket.
    """

    __test__: ClassVar[bool] = False

    type_one: float
    type_two: float
    bayes: float
    lower: float
    upper: float
    exact: bool
    method: str


def likelihood_ratio_test(
    m0: ArrayLike,
    m1: ArrayLike,
    n: int,
    prior: float = 0.5,
    type_one: float | None = None,
    *,
    max_types: int = MOST_TYPES,
    progress: Progress | None = None,
) -> TestError:
    """The best test between laws m0 and m1 of one report, given n independent reports.

    Without `type_one`, the Bayes test when m0 has probability `prior`; with it, the randomized Neyman-Pearson test of
    that type-I error. An enumeration of more than `max_types` types gives way to the bracket; `progress`, if given, is
    called with the fraction enumerated.

    >>> result = likelihood_ratio_test([0.75, 0.25], [0.25, 0.75], 3)
    >>> result.bayes, result.exact, result.method            # 3 * 9/64 * 1/4 + 1/64, as for a majority of three coins
    (0.15625, True, 'binomial')
    >>> likelihood_ratio_test([0.75, 0.25], [0.25, 0.75], 1, type_one=0.125).type_two     # 1/4 + 1/2 * 3/4
    0.625
    """
    pair = read_pair(m0, m1)
    reports = read_count(n)
    check_rate(prior, "prior probability of the first hypothesis")
    if type_one is not None:
        check_rate(type_one, "type-I error")
        return level_test(pair, reports, prior, type_one, max_types, progress)
    return bayes_test(pair, reports, prior, max_types, progress)


def bayes_test(
    pair: Pair, n: int, prior: float, max_types: int = MOST_TYPES, progress: Progress | None = None
) -> TestError:
    """The Bayes test between two reduced laws."""
    method = best_method(pair, n, max_types)
    if method == "bracket":
        lower, upper, one = bayes_bracket(pair, n, prior)
        middle = (lower + upper) / 2
        two = max(middle - prior * one, 0.0) / (1 - prior)
        return TestError(one, two, middle, lower, upper, False, method)
    if method == "binomial":
        one, two = bayes_by_counts(pair, n, prior)
    elif method == "types":
        one, two = bayes_by_types(pair, n, prior, progress)
    else:
        one, two = 0.0, 0.0
    bayes = prior * one + (1 - prior) * two
    return TestError(one, two, bayes, bayes, bayes, True, method)


def level_test(
    pair: Pair,
    n: int,
    prior: float,
    level: float,
    max_types: int = MOST_TYPES,
    progress: Progress | None = None,
) -> TestError:
    """The most powerful test of a given type-I error between two reduced laws."""
    method = best_method(pair, n, max_types)
    if method == "bracket":
        lower, upper = level_bracket(pair, n, level)
        one, two = level, (lower + upper) / 2
        return TestError(one, two, prior * one + (1 - prior) * two, lower, upper, False, method)
    if method == "binomial":
        one, two = level_by_counts(pair, n, level)
    elif method == "types":
        one, two = level_by_types(pair, n, level, progress)
    else:
        one, two = 0.0, 0.0
    return TestError(one, two, prior * one + (1 - prior) * two, two, two, True, method)


def best_method(pair: Pair, n: int, max_types: int) -> str:
    """Which computation serves: "disjoint", "binomial", "types" or "bracket"."""
    ratios = pair.llr.size
    if ratios == 0:
        return "disjoint"
    if ratios == 2:
        return "binomial"
    return "types" if count_types(n, ratios) <= max_types else "bracket"


def read_count(n: Any) -> int:
    """A number of reports: an integer from 1 to 10^12."""
    try:
        count = operator.index(n)
    except TypeError:
        raise NumberError(f"the number of reports must be an integer, not {n!r}") from None
    if not 1 <= count <= MOST_REPORTS:
        raise NumberError(f"the number of reports must lie between 1 and 10^12, not {count}")
    return count


def check_rate(rate: float, what: str) -> None:
    """A probability strictly between 0 and 1."""
    if not 0 < rate < 1:
        raise NumberError(f"the {what} must lie strictly between 0 and 1, not {rate}")


# -- the best guess among several laws ------------------------------------------------------------------


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


# -- how fast errors fall -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chernoff:
    """The Chernoff information `value`, the `exponent` s that attains it, and which two laws it is about."""

    value: float
    exponent: float
    pair: tuple[int, int] = (0, 1)


def stein_exponent(m0: ArrayLike, m1: ArrayLike) -> float:
    """KL(m0 || m1): the rate at which the type-II error falls when the type-I error is held."""
    return divergence(m0, m1, "kl")


def chernoff_information(m0: ArrayLike, m1: ArrayLike) -> Chernoff:
    """The rate at which the Bayes error falls.

    >>> result = chernoff_information([0.75, 0.25], [0.25, 0.75])
    >>> round(result.value, 12), round(result.exponent, 12)      # ln(2 / sqrt 3)
    (0.143841036226, 0.5)
    """
    pair = read_pair(m0, m1)
    if pair.llr.size == 0:
        return Chernoff(math.inf, 0.5)
    if pair.llr.size == 1 and pair.only0 == pair.only1:
        return Chernoff(-pair.log_moment(0.5), 0.5)
    ends = [s for s, past in ((0.0, pair.slope(0.0) >= 0), (1.0, pair.slope(1.0) <= 0)) if past]
    s = ends[0] if ends else bisect(lambda s: pair.slope(s) > 0, 0.0, 1.0)
    return Chernoff(max(-pair.log_moment(s), 0.0), s)


def least_chernoff_information(distributions: Sequence[ArrayLike]) -> Chernoff:
    """The rate at which the Bayes error between several laws falls: that of the two hardest to tell apart."""
    if len(distributions) < 2:
        raise ShapeError(f"two or more distributions are needed to tell apart, got {len(distributions)}")
    best = Chernoff(math.inf, 0.5)
    for i, j in combinations(range(len(distributions)), 2):
        found = chernoff_information(distributions[i], distributions[j])
        if found.value <= best.value:
            best = Chernoff(found.value, found.exponent, (i, j))
    return best


def le_cam_bound(m0: ArrayLike, m1: ArrayLike, n: int) -> float:
    """No test on n reports has type-I plus type-II error below this (and none an average error below half of it).

    >>> le_cam_bound([0.75, 0.25], [0.25, 0.75], 1)
    0.5
    """
    reports = read_count(n)
    overlap = 1 - divergence(m0, m1, "tv")
    square = math.exp(2 * reports * _log1m(divergence(m0, m1, "hellinger2")))
    return float(max(square / (1 + math.sqrt(1 - square)), max(overlap, 0.0) ** reports))


def _log1m(x: float) -> float:
    return math.log1p(-x) if x < 1 else -math.inf


Stage = Callable[[str, float | None], object]
"""Called with what is being done; how much is left is not known before the end."""

_QUICK_TYPES = 20_000
_PATIENT_TYPES = 1_000_000
# An exact error this close to the target, relatively, counts as reaching it.
_TIE = 1e-11


@dataclass(frozen=True, slots=True)
class SampleSize:
    """The least sufficient number of reports lies in [lower, upper]; `n` = upper is certainly enough."""

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
    """How many people a test needs when they answer through the channel, and when they answer in the clear."""

    private: SampleSize
    direct: SampleSize

    @property
    def factor(self) -> float:
        """Private respondents for each respondent without privacy."""
        return self.private.n / self.direct.n if self.direct.n else 1.0


def effective_sample_size(channel: Pushes, p0: ArrayLike, p1: ArrayLike, kind: str | FDivergence = "kl") -> float:
    """The share of the information between p0 and p1 that one report keeps: n reports count as factor * n answers.

    It is at most 1 (data processing). Refused where the divergence of answers in the clear is infinite: no number of
    reports is worth one such answer by that measure.
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
    """The least number of reports of law m0 or m1 with which a test errs at most that often either way.

    `progress` is called before each number of reports that is tried.

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
    """How many people tell p0 from p1 with errors at most those rates, with the channel and without it.

    >>> from deniable.channels import randomized_response
    >>> result = people_needed(randomized_response(2, 1), [0.9, 0.1], [0.5, 0.5], 0.05, 0.05)
    >>> result.private.n, result.direct.n
    (75, 13)
    """
    private = sample_size(*marginals(channel, p0, p1), type_one, type_two, progress)
    return PeopleNeeded(private, sample_size(p0, p1, type_one, type_two, progress))


def _enough(pair: Pair, n: int, type_one: float, type_two: float) -> bool | None:
    """Whether n reports suffice; None where the bracket cannot tell."""
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
            break  # rounding, no longer resolution, sets the width
        width = upper - lower
    if count_types(n, ratios) <= _PATIENT_TYPES:
        return level_test(pair, n, 0.5, type_one).type_two <= type_two * (1 + _TIE)
    return None


def _least(holds: Callable[[int], bool]) -> int:
    """The least n >= 1 that holds, for a property that once true stays true."""
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

    The dashed line has slope epsilon^2 and meets the binary mechanism at the smallest epsilon. Returns the axes.
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
