"""Shares of answers: unbiased counts and frequencies with error bars; consistency is a separate, named step.

population  the default everywhere: errors refer to the population that the respondents were drawn from, so they
            consist of the noise of the protocol and the sampling error. `population=False` leaves the sampling error
            out: then the figures refer to those who answered, and say so wherever they are printed
interval    Clopper-Pearson on the support counts, if the protocol is pure; from the count of each number, if a
            share is a mean of a few numbers (`bounds`); Wald elsewhere and with population=False.
            Consistent and maximum-likelihood estimates keep the intervals of the unbiased one, cut to [0, 1]
repeated    the same if one person contributes several reports, as over several epochs of a survey
combine     estimates of the same shares from different people or protocols, weighted by inverse variance
a - b       how much the shares differ between two independent groups, with interval and test

The most common answer, if the reports prove it.

Estimate     the answer with the largest unbiased share; the margin is its lead over the runner-up
Confidence   each other answer is tested against the leader, by a sign test that holds for any number of reports. The
             doubts are added up as if all were as near as the nearest. So of all collections at most 5 % name an answer
             that is not the most common with 95 % confidence; otherwise the finding is "no clear leader"
Whom         the population that the respondents were drawn from; `population=False`: those who answered
Error        of a difference of two shares. Reports that always support equally many answers (GRR, subset selection)
             make the counts repel each other, which is accounted for; unary reports and linear hashes leave
             them uncorrelated. Where the correlation is not known, the two errors are added, the worst case
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from deniable.errors import LabelError, MismatchError, NumberError, ShapeError
from deniable.labels import Label, label_spec, numbers_first, shown
from deniable.results.base import Result, Weights, quantile
from deniable.results.bounds import Numbers, TableBounds
from deniable.results.rows import Floats, Picture, Rows
from deniable.results.significance import Measured, contrasts

MOST_TOGETHER = 2048
"""Maximum number of shares tested together: the covariance of more takes too long."""


def clopper_pearson(counts: Floats, n: Floats | float, level: float) -> Floats:
    """One row of ends per count out of n, which may differ between counts.

    >>> clopper_pearson(np.array([0.0, 5.0, 10.0]), 10, 0.95).round(3).tolist()
    [[0.0, 0.308], [0.187, 0.813], [0.692, 1.0]]
    """
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = np.where(counts > 0, betaincinv(np.where(counts > 0, counts, 1.0), n - counts + 1, tail), 0.0)
    high = np.where(counts < n, betaincinv(counts + 1, np.where(counts < n, n - counts, 1.0), 1 - tail), 1.0)
    return np.stack([low, high], axis=1)


@dataclass(frozen=True, eq=False)
class Support:
    """Number of reports that support each answer: binomial when people are drawn from a population.

    Args:
        counts: Number of reports that support each answer.
        n: Number of reports.
        p: Probability that a report supports the answer that it was made from.
        q: Probability that a report supports another answer.
        size: Number of answers that a report supports, if it is fixed.
        worth: Number of independent reports that one report equals, for each answer: below 1 if reports repeat.
        noise: Factor by which the variance of the noise exceeds that of n reports with independent noise.
    """

    counts: NDArray[np.int64]
    n: int
    p: float
    q: float
    size: int | None = None
    worth: Floats | float = 1.0
    noise: float = 1.0

    def interval(self, level: float, fakes: int = 0) -> Floats:
        """Clopper-Pearson for each count, solved for the frequency.

        With forged reports the ends of the honest ones' intervals, if all forged ones support an answer, or none does.
        """
        # The consistent form of an estimate asks for the same intervals again.
        kept: dict[tuple[float, int], Floats] = self.__dict__.setdefault("_kept", {})
        if (level, fakes) not in kept:
            kept[level, fakes] = self._interval(level, fakes)
            kept[level, fakes].flags.writeable = False
        return kept[level, fakes]

    def _interval(self, level: float, fakes: int) -> Floats:
        counts = self.counts.astype(np.float64)
        shares = clopper_pearson(counts * self.worth, self.n * self.worth, level)
        if fakes:
            left = max(0, self.n - fakes)
            fewest, most = np.maximum(counts - fakes, 0.0), np.minimum(counts, left)
            low, high = (clopper_pearson(one * self.worth, left * self.worth, level) for one in (fewest, most))
            shares = np.stack([low[:, 0], high[:, 1]], axis=1)
        found: Floats = (shares - self.q) / (self.p - self.q)
        return found

    def drawn(self, shares: Floats, surveys: int, random: np.random.Generator) -> Floats:
        """Estimated shares of `surveys` surveys of n people, if the population has these shares.

        Exact for reports that support one answer each, and for independent supports.
        """
        known = np.clip(shares, 0.0, None) / np.clip(shares, 0.0, None).sum()
        if self.size == 1:
            seen = random.multinomial(self.n, self.q + (self.p - self.q) * known, surveys)
        else:
            people = random.multinomial(self.n, known, surveys)
            seen = random.binomial(people, self.p) + random.binomial(self.n - people, self.q)
        return np.asarray((seen / self.n - self.q) / (self.p - self.q))

    @property
    def weights(self) -> Weights:
        """The weight of a report that supports an answer, and of one that does not."""
        gap = self.p - self.q
        return Weights(-self.q / gap, (1 - self.q) / gap)

    def covariance(self, people: Floats, one: int) -> Floats:
        """Covariance of the estimated count of answer `one` with each other, if about `people` people hold each answer.

        Supports of fixed size sum to a constant, so each answer's covariances with all answers sum to zero: that
        determines the covariance of the true answer with another one, and of two others. Otherwise it is zero.
        """
        answers = people.size
        if self.size is None or answers < 2:
            return np.zeros(answers)
        true, other = self.p * (1 - self.p), self.q * (1 - self.q)
        with_truth = -true / (answers - 1)
        apart = -(other + with_truth) / (answers - 2) if answers > 2 else 0.0
        pair = np.clip(people[one], 0, self.n) + np.clip(people, 0, self.n)
        pair = np.minimum(pair, self.n)
        between: Floats = self.noise * (pair * with_truth + (self.n - pair) * apart) / (self.p - self.q) ** 2
        return between


@dataclass(frozen=True, slots=True)
class Fit:
    """How an iterative estimate was computed.

    Args:
        iterations: Number of updates.
        gap: No distribution is better by more than this, in nats per report.
        converged: Whether the tolerance was reached.
        unbiased: The unbiased estimate from the same reports. Its intervals are used: a share cut at zero lowers the
            others.
        spread: a, b and c of the variance (a + b t + c t^2) / n of the unbiased share of an answer with true share t.
    """

    iterations: int
    gap: float
    converged: bool
    unbiased: Estimate = field(repr=False)
    spread: tuple[Floats, Floats, Floats] | None = field(default=None, repr=False)

    def interval(self, level: float, simultaneous: bool, population: bool) -> Floats:
        """The intervals of the unbiased estimate; with `spread` by the score, which also holds for rare answers.

        By the score: the shares t that are within the quantile times their own standard errors, and one report.
        """
        unbiased = self.unbiased
        if self.spread is None or not population:
            return unbiased.interval(level, simultaneous, population)
        shares, n = unbiased.frequencies, unbiased.n
        reach = quantile(level, shares.size if simultaneous else 1)
        a, b, c = (reach**2 / n * one for one in self.spread)
        ends = []
        for side in (-1, 1):
            centre = shares + side / n
            half = centre + b / 2
            root = np.sqrt(np.maximum(half**2 - (1 - c) * (centre**2 - a), 0.0))
            end = (half + side * root) / (1 - c)
            ends.append(np.minimum(end, centre) if side < 0 else np.maximum(end, centre))
        return np.stack(ends, axis=1)


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(Result):
    """Estimated counts of each answer among n people.

    Args:
        labels: The answers.
        n: Number of reports.
        counts: Estimated number of people for each answer.
        noise: The variance of the counts for fixed respondents: the noise of the protocol.
        protocol: Name of the protocol.
        method: Name of the post-processing or estimator.
        support: Number of reports that support each answer, if exact intervals come from it.
        raw: The unbiased estimate behind a consistent one.
        fit: For maximum likelihood: the estimate is a distribution, so its intervals are cut to [0, 1].
        people: Factor by which the sampling variance exceeds that of n different people.
        bounded: Whether the method gives a distribution, so that intervals are cut to [0, 1].
        law: The covariance that one report adds to the counts if people have these shares; None if it is not known.
        bounds: Computes the intervals about the population, if they come neither from `support` nor from a normal law.
        growth: Factors by which the variances of noise and sampling error exceed those of n different people.
    """

    kind: ClassVar[str] = "shares"
    heading: ClassVar[str] = "share"
    picture: ClassVar[Picture] = "bars"
    family: ClassVar[str] = "shares"
    is_whole: ClassVar[bool] = True
    """Whether the shares of a population sum to one; otherwise a test may be about some of them."""

    labels: Sequence[Label]
    n: int
    counts: Floats
    noise: Floats
    protocol: str
    method: str = "unbiased"
    support: Support | None = None
    raw: Estimate | None = None
    fit: Fit | None = None
    people: Floats | float = 1.0
    bounded: bool = False
    law: Callable[[Floats], Floats] | None = None
    bounds: TableBounds | None = None
    growth: tuple[float, float] = (1.0, 1.0)

    @classmethod
    def nothing(cls, labels: Sequence[Label], protocol: str) -> Self:
        """The result before the first report."""
        none = np.zeros(len(labels))
        return cls(labels, 0, none, none, protocol)

    @property
    def value(self) -> Floats:
        """The `frequencies`."""
        return self.frequencies

    @property
    def frequencies(self) -> Floats:
        """The estimated shares; NaN while there are no reports."""
        return self.counts / self.n if self.n else np.full(len(self.labels), np.nan)

    @property
    def variance(self) -> Floats:
        """Variance of the counts: noise and sampling error; for a consistent estimate, that of the unbiased one."""
        if self.raw is not None:
            return self.raw.variance
        return self.noise + self.people * _sampling(self.counts, self.n)

    @property
    def stderr(self) -> Floats:
        """Standard errors of the frequencies, as estimates of the population's."""
        return self.errors()

    def errors(self, population: bool = True) -> Floats:
        """Standard errors of the frequencies; without `population` those of the shares among the respondents."""
        if not self.n:
            return np.full(len(self.labels), np.nan)
        return np.sqrt(self.variance if population else self.noise) / self.n

    def interval(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Floats:
        """A (d, 2) array of confidence intervals of the frequencies.

        They refer to the population that the respondents were drawn from, or, with `population=False`, to the
        respondents only. `simultaneous` makes all d hold at once (Bonferroni). A consistent estimate keeps the
        intervals of the unbiased one behind it, cut to [0, 1]; so does maximum likelihood, and its intervals contain
        its estimates.
        Without reports every interval is [0, 1].
        """
        reach = quantile(level, len(self.labels) if simultaneous else 1)
        if not self.n:
            return np.tile([0.0, 1.0], (len(self.labels), 1))
        if self.raw is not None:
            return np.clip(self.raw.interval(level, simultaneous, population), 0.0, 1.0)
        if self.fit is not None:
            return self._around(np.clip(self.fit.interval(level, simultaneous, population), 0.0, 1.0))
        if population and self.support is not None:
            return self.support.interval(1 - (1 - level) / (len(self.labels) if simultaneous else 1), self.fakes)
        errors = reach * self.errors(population)
        ends = np.stack([self.frequencies - errors, self.frequencies + errors], axis=1)
        if population and self.bounds is not None:
            ends = self.bounds.interval(1 - (1 - level) / (len(self.labels) if simultaneous else 1), self.errors())
        ends = self._widened(ends, self.frequencies)
        return np.clip(ends, 0.0, 1.0) if self.bounded else ends

    def _widened(self, ends: Floats, value: Floats) -> Floats:
        if not self.fakes:
            return ends
        known = self.weights or (None if self.support is None else self.support.weights)
        ends = ends if known is None else known.widened(ends, value, self.n, self.fakes)
        return np.clip(ends, 0.0, 1.0) if self.fakes >= self.n else ends

    def _robust(self, fakes: int) -> Self:
        if self.raw is not None:
            return replace(self, fakes=fakes, raw=self.raw.robust(fakes))
        if self.fit is not None:
            return replace(
                self, fakes=fakes, fit=replace(self.fit, unbiased=self.fit.unbiased.robust(fakes), spread=None)
            )
        if self.support is not None or not len(self.frequencies):  # nothing was found, so there is nothing to widen
            return replace(self, fakes=fakes)
        return super()._robust(fakes)

    def _around(self, ends: Floats) -> Floats:
        """Intervals that contain the estimate."""
        low, high = np.minimum(ends[:, 0], self.frequencies), np.maximum(ends[:, 1], self.frequencies)
        return np.stack([low, high], axis=1)

    def consistent(self, method: str = "norm-sub") -> Estimate:
        """Frequencies that are a distribution: biased, usually with a smaller total error.

        The methods are in `deniable.postprocess`, each with advice on its use.
        """
        from deniable.postprocess import apply, named

        raw = self.raw or self
        if not raw.n:
            return replace(raw, method=named(method), raw=raw)
        shares = apply(method, raw.frequencies, raw.errors(population=False), raw.n)
        return replace(raw, counts=shares * raw.n, method=method, raw=raw)

    def repeated(self, noise: float, people: float) -> Self:
        """The same estimate from n reports of fewer people.

        The variances of the noise and of the sampling error grow by these factors: 1 if every report has its own
        noise, or its own person.
        """
        sampling = self.people * _sampling(self.counts, self.n)
        once = self.noise + sampling
        now = noise * self.noise + people * sampling
        worth = np.divide(once, now, out=np.full_like(once, 1 / max(noise, people)), where=now > 0)
        support = None if self.support is None else replace(self.support, worth=worth, noise=noise)
        raw = None if self.raw is None else self.raw.repeated(noise, people)
        fit = None
        if self.fit is not None:
            fit = replace(self.fit, unbiased=self.fit.unbiased.repeated(noise, people), spread=None)
        drawn = people * self.people
        growth = noise * self.growth[0], max(noise, people) * self.growth[1]
        again = replace(self, noise=noise * self.noise, people=drawn, support=support, raw=raw, fit=fit, growth=growth)
        return replace(again, check=self._check_of(noise))

    def sampled(self, part: Fraction) -> Self:
        # People who answered and were not drawn count like those who were not asked at all.
        drawn = self.people * _sampling(self.counts, self.n)
        return replace(self, noise=self.noise + float(1 - part) * drawn, people=float(part) * self.people)

    def measured(self) -> Measured | None:
        if self.fit is not None:
            return self.fit.unbiased.measured()
        law = self.law
        if law is None or not self.is_whole or not 2 <= len(self.labels) <= MOST_TOGETHER:
            return None

        def spread(shares: Floats) -> Floats:
            known = np.clip(shares, 0.0, None)
            known = known / known.sum() if known.sum() > 0 else np.full(known.size, 1 / known.size)
            noise, drawn = self.growth
            total: Floats = (noise * law(known) + drawn * (np.diag(known) - np.outer(known, known))) / self.n
            return total

        drawn = None if self.support is None or self.growth != (1.0, 1.0) else self.support.drawn
        return Measured(self.labels, self.frequencies, spread, self.n, contrasts(len(self.labels)), drawn)

    def as_given(self, given: Any) -> Floats:
        if isinstance(given, Mapping):
            strange = [label for label in given if label not in self.labels]
            if strange:
                raise LabelError(f"{shown(strange[0])} is not one of the {len(self.labels)} answers")
            given = [given.get(label, 0.0 if self.is_whole else math.nan) for label in self.labels]
        if not isinstance(given, Iterable):
            raise NumberError(f"shares are tested against shares, by answer or in order, not against {given!r}")
        shares = np.asarray([float(one) for one in given])
        if shares.shape != (len(self.labels),):
            raise ShapeError(f"give a share for each of the {len(self.labels)} answers, not {shares.size}")
        if not self.is_whole:
            if not all(0 <= one <= 1 for one in shares[~np.isnan(shares)].tolist()):
                raise NumberError("each share is between 0 and 1")
            return shares
        if not (np.isfinite(shares).all() and (shares >= 0).all() and abs(shares.sum() - 1) < 1e-6):
            raise NumberError(f"shares are not negative and add up to one, not to {shares.sum():.6g}")
        given_shares: Floats = shares / shares.sum()
        return given_shares

    def combine(self, *others: Estimate) -> Estimate:
        """One estimate from several of the same shares, each weighted by its inverse variance."""
        return combine(self, *others)

    @property
    def unbiased(self) -> Estimate:
        return self.raw or self

    def winner(self, level: float = 0.95, population: bool = True) -> Winner:
        """The answer that appears most common, its lead, and the confidence that no other is more common.

        `winner().certain` tells whether the confidence reaches the level; if not, there is no clear leader. It refers
        to the population; with `population=False` to the people who answered.
        """
        return find(self, level, population)

    def table(self, level: float = 0.95, simultaneous: bool = False, population: bool = True) -> Rows:
        ends = self.interval(level, simultaneous, population)
        return Rows(
            self.labels,
            self.frequencies,
            self.errors(population),
            ends[:, 0],
            ends[:, 1],
            "",
            level,
            simultaneous,
            population,
            {"count": self.counts},
        )

    def _limits(self) -> tuple[float, float]:
        return 0.0, 1.0

    @property
    def is_biased(self) -> bool:
        return self.raw is not None

    def leader(self, rows: Rows) -> Winner | None:
        if not self.n or not 2 <= len(rows) <= MOST_COMPARED or numbers_first(rows.labels):
            return None
        return self.winner(rows.level, rows.population)

    def __repr__(self) -> str:
        return f"<Estimate of {len(self.labels)} answers from {self.n} reports, {self.protocol}, {self.method}>"


def combine(*estimates: Estimate) -> Estimate:
    """Weight each frequency by its inverse variance, noise and sampling error together; the people are added.

    Args:
        *estimates: Estimates of the same answers by independent groups of people.

    Returns:
        One estimate.

    Raises:
        MismatchError: There are no estimates, or their answers differ.
    """
    if not estimates:
        raise MismatchError("there is no estimate to combine")
    raws = [estimate.raw or estimate for estimate in estimates]
    for other in raws[1:]:
        _same_labels(raws[0], other)
    raws = [raw for raw in raws if raw.n] or raws[:1]
    if not raws[0].n:
        return raws[0]
    # The sampling error in a weight is that of a first, common estimate: with each estimate's own error, smaller shares
    # would get more weight.
    shares = np.clip(_weighted([raw.n**2 / raw.noise for raw in raws], [raw.frequencies for raw in raws]), 0.0, 1.0)
    drawn = [raw.people / raw.n for raw in raws]
    spread = shares * (1 - shares)
    weights = np.array([1 / (raw.noise / raw.n**2 + spread * one) for raw, one in zip(raws, drawn, strict=True)])
    weights = weights / weights.sum(axis=0)
    n = sum(raw.n for raw in raws)
    noise = np.sum([w**2 * raw.noise / raw.n**2 for w, raw in zip(weights, raws, strict=True)], axis=0)
    people = n * np.sum([w**2 * one for w, one in zip(weights, drawn, strict=True)], axis=0)
    found = _weighted(weights, [raw.frequencies for raw in raws])
    name = " + ".join(sorted({raw.protocol for raw in raws}))
    known = [raw.weights or (None if raw.support is None else raw.support.weights) for raw in raws]
    bounds: TableBounds | None = None
    if all(known):
        # The contribution of a report of each group to the weighted mean, times n.
        each = [n * w / raw.n for w, raw in zip(weights, raws, strict=True)]
        ends = [(w * one.lowest, w * one.highest) for w, one in zip(each, known, strict=True) if one is not None]
        lowest, highest = np.min([low for low, _ in ends], axis=0), np.max([high for _, high in ends], axis=0)
        bounds = Numbers.between(lowest, highest, found, n)
    return Estimate(raws[0].labels, n, found * n, noise * n**2, name, "combined", people=people, bounds=bounds)


def _weighted(weights: Any, values: Sequence[Floats]) -> Floats:
    total = np.sum([w * value for w, value in zip(weights, values, strict=True)], axis=0)
    mean: Floats = total / np.sum(weights, axis=0)
    return mean


def _sampling(counts: Floats, n: int) -> Floats:
    """The variances of counts among n people who are drawn from a population."""
    shares = np.clip(counts / max(1, n), 0.0, 1.0)
    return n * shares * (1 - shares)


def _same_labels(first: Estimate, second: Estimate) -> None:
    if first.labels != second.labels:
        raise MismatchError("these estimates are about different answers")


# -- the most common answer ---------------------------------------------------------------------------


MOST_COMPARED = 1 << 14
"""Maximum number of answers among which the most common one is named."""
_NUMBERS = ("share", "margin", "error", "confidence", "level", "certain", "population")
_RARE = 1e-4
"""The part of the doubt for the event that more reports distinguish two answers than is assumed."""


@dataclass(frozen=True, slots=True)
class Winner:
    """The answer that appears most common, and whether the reports prove it.

    Args:
        label: The answer with the largest estimate.
        share: Its estimated share.
        runner_up: The answer with the second largest estimate.
        margin: Its lead over the runner-up, in shares.
        error: The standard error of that lead.
        confidence: The highest confidence level at which it is the most common answer: of all collections, at most the
            rest name an answer that is not, with this confidence or more.
        level: Confidence level at which a winner is declared.
        population: Whether the claim is about the population, or only about those who answered.
    """

    label: Label
    share: float
    runner_up: Label
    margin: float
    error: float
    confidence: float
    level: float
    population: bool = True

    @property
    def certain(self) -> bool:
        """Whether the confidence reaches the requested level; else there is no clear leader."""
        return self.confidence >= self.level

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values."""
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        return {"label": label_spec(self.label), "runner_up": label_spec(self.runner_up)} | numbers

    def __str__(self) -> str:
        lead = (
            f"{100 * self.margin:.2f} points ahead of {shown(self.runner_up)} (standard error {100 * self.error:.2f})"
        )
        whom = "" if self.population else ", among those who answered"
        if self.certain:
            return f"Most common with {self.level:.0%} confidence{whom}: {shown(self.label)}, {lead}"
        return f"No clear leader{whom}: {shown(self.label)} is {lead}, not enough for {self.level:.0%} confidence"


def find(estimate: Estimate, level: float, population: bool) -> Winner:
    """The winner of the unbiased estimate behind `estimate`.

    The leader is tested against each other answer, and the confidence is that of the weakest test, with the doubt
    multiplied by the number of other answers. Proof: to name a wrong answer with doubt a, that answer must pass its
    test against the true leader at a / (d - 1), and there are d - 1 wrong answers. Ties are right either way.
    """
    if not 0 < level < 1:
        raise NumberError(f"the confidence level lies between 0 and 1, not at {level!r}")
    raw = estimate.raw or estimate
    raw = raw if raw.fit is None else raw.fit.unbiased
    if not raw.n:
        raise NumberError("there are no reports yet: no answer is known to be the most common")
    shares = raw.frequencies
    best = int(np.argmax(shares))
    others = np.delete(np.arange(shares.size), best)
    errors = _lead_errors(raw, best, population)[others]
    leads = shares[best] - shares[others]
    test = _by_normal if raw.support is None else _by_signs
    doubt = float(others.size * test(raw, best, others, leads, errors).max())
    second = int(np.argmin(leads))
    return Winner(
        label=raw.labels[best],
        share=float(shares[best]),
        runner_up=raw.labels[int(others[second])],
        margin=float(leads[second]),
        error=float(errors[second]),
        confidence=max(0.0, 1 - doubt),
        level=level,
        population=population,
    )


def _by_signs(raw: Estimate, best: int, others: NDArray[np.intp], leads: Floats, errors: Floats) -> Floats:
    """p-values of "the other answer is as common": a sign test, valid for any number of reports.

    Among the D reports that support one of the two answers and not the other, the number for the leader is binomial
    with probability one half. D is not in a tally, but it is at most the sum of both counts, and the tail grows with D.
    If supports are independent, D is also binomial with at most `most`, so that a bound on it fails with probability
    `rare`.
    """
    from scipy.special import betainc

    support = raw.support
    assert support is not None
    worth = float(np.min(support.worth))
    n, counts = support.n * worth, support.counts * worth
    told = np.minimum(counts[best] + counts[others], n)
    rare = 0.0
    if support.size is None:
        p, q, rare = support.p, support.q, _RARE / others.size
        most, spare = max(2 * q * (1 - q), p * (1 - q) + q * (1 - p)), -math.log(rare)
        reach = spare / 3 + math.sqrt((spare / 3) ** 2 + 2 * n * most * (1 - most) * spare)
        rare, told = (rare, np.minimum(told, n * most + reach)) if n * most + reach < told.max() else (0.0, told)
    ahead = counts[best] - counts[others] - raw.fakes
    for_it = (told + np.minimum(ahead, told)) / 2
    tail = betainc(np.maximum(for_it, 1e-300), told - for_it + 1, 0.5)
    found: Floats = np.where(ahead > 0, np.minimum(1.0, rare + tail), 1.0)
    return found


def _by_normal(raw: Estimate, best: int, others: NDArray[np.intp], leads: Floats, errors: Floats) -> Floats:
    """The same if the number of reports that support an answer is not known: by the standard error of the lead.

    If the largest contribution of one report to a lead is known, by Bernstein's inequality, which holds for any number
    of reports; else as if the lead were normal, with few reports by Student's law.
    """
    from scipy.special import stdtr

    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(errors > 0, leads / errors, np.where(leads > 0, np.inf, 0.0))
    if raw.weights is None or raw.fakes:
        return np.where(leads > 0, stdtr(max(1.0, raw.n - 1.0), -z), 1.0)
    known, n = raw.weights, raw.n if raw.weights.reports is None else raw.weights.reports
    each = np.broadcast_to((np.asarray(known.highest) - np.asarray(known.lowest)) / n, raw.frequencies.shape)
    reach = each[best] + each[others]
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where(leads > 0, np.exp(-(leads**2) / (2 * errors**2 + 2 * reach * leads / 3)), 1.0)
    return found


def _lead_errors(raw: Estimate, best: int, population: bool) -> Floats:
    """Standard errors of share[best] - share[v], for each v."""
    spread, n = raw.noise, raw.n
    if raw.support is None:
        squares = (np.sqrt(spread[best]) + np.sqrt(spread)) ** 2
    else:
        squares = spread[best] + spread - 2 * raw.support.covariance(raw.counts, best)
    if population:
        shares = np.clip(raw.frequencies, 0.0, 1.0)
        drawn = shares[best] + shares - (shares[best] - shares) ** 2
        people = np.broadcast_to(raw.people, shares.shape)
        squares = squares + np.maximum(people, people[best]) * n * drawn
    errors: Floats = np.sqrt(np.maximum(squares, 0.0)) / n
    return errors
