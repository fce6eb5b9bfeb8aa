"""Protocols whose result is the share of each listed answer.

Beyond its law, such a protocol writes

variance      of an estimated count, from which errors, intervals and plans follow
_support      which answers each report speaks for: P(report | v) is `ratio` times as large for those
_likelihoods  a faster form of the same, where there is one

Pure protocols: each report supports some answers; the true one with p*, any other with q*.

Estimate   counts(v) = (C_v - n q*) / (p* - q*), with C_v the number of reports that support v: exactly unbiased
Variance   n [f p*(1 - p*) + (1 - f) q*(1 - q*)] / (p* - q*)^2 for the respondents as they are; a population
           that they were drawn from adds n f (1 - f)
Source     Wang, Blocki, Li and Jha 2017

Maximum likelihood from the reports themselves, for every protocol whose reports support answers.

Model      P(report | v) is `ratio` times as large for the answers that the report supports as for the others, so
           with c = ratio - 1 and pi the shares, the likelihood of a report is 1 + c pi(S), up to a constant
Update     pi'(v) = pi(v) * mean over reports of (1 + c 1[v in S]) / (1 + c pi(S)): Bayes' rule, averaged
Stop       when no distribution is better by more than `tolerance` nats per report (see `channels.inference.em`, which
           also accelerates the updates and drops any step that lowers the likelihood)
Why        the unbiased estimate uses only how many reports support each answer; the likelihood uses which answers
           they support together, and that shares are not negative. On Zipf data with 16 answers the total error is
           40 percent smaller at epsilon 1 (5 of them beyond what norm-sub does), and 20 beyond it at epsilon 3
Error      from the observed Fisher information for up to 2,000 answers, but never above that of the unbiased estimate
           at the same shares: in large samples it is not, and where reports that would support an answer are rare the
           observed information knows too little of it. Beyond, the error of the unbiased estimate
Interval   that of the unbiased estimate, cut to [0, 1] and stretched to contain f: where noise would make shares
           negative they stop at zero and the others are too small: with 64 answers, 1,000 people and epsilon 0.5 the
           most common one by a standard error. Without binomial counts by the score: the t with
           (|u - t| - 1/n)^2 <= z^2 V(t), where V(t) is the variance of the unbiased estimate u at t
Cost       a pass over reports x answers in blocks of bounded memory for each update; identical reports count once.
           Local hashing needs no such pass: g additions per report and a Walsh-Hadamard transform
Source     Dempster, Laird and Rubin 1977; Varadhan and Roland 2008; ElSalamouny and Palamidessi 2020
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.channels.inference.em import Model, NewtonSystem, information_stderr, maximize, progress_bar
from deniable.domains import DomainLike, ListedDomain
from deniable.errors import ChannelError, MismatchError, NumberError, ReportError
from deniable.exact import Number
from deniable.labels import text
from deniable.protocols.blanket import Blanket, supporting
from deniable.protocols.law import Law, PureSupport
from deniable.protocols.protocol import Positions, Protocol, speaks_for
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes, Reports
from deniable.protocols.tally import Counts, Tally
from deniable.protocols.traits import Traits
from deniable.protocols.worth import Worth
from deniable.randomness import Bits
from deniable.results import Estimate, Fit, Support, quantile
from deniable.results.significance import contrasts, power, too_few, too_many
from deniable.words import Fact

MOST_SPOKEN = 20_000
"""Answers at most, for a report to be told in their names."""

_LENGTHS = 64
"""The number of lengths of ranges that an error is averaged over."""

Floats = NDArray[np.float64]


class ShareProtocol(Protocol):
    """Shares of answers: of listed ones, or of texts that the analyst names afterwards.

    Args:
        domain: The possible answers.
        epsilon: Largest epsilon of a report.
    """

    @abstractmethod
    def variance(self, n: int, frequency: ArrayLike = 0.0, population: bool = True) -> Any:
        """The variance of an estimated count with n people, for an answer of that frequency.

        Noise and sampling error; `population=False` leaves the second out, for the count among those who answered.
        """

    def _noise_covariance(self, shares: Floats) -> Floats | None:
        """The covariance that one report adds to the estimated counts, for people of these shares, if it is known."""
        return None

    def power(self, given: Any, truth: Any, n: int, level: float = 0.05) -> float:
        """How often n people show that the shares are not the given ones, where they are `truth`.

        By the test `estimate.test(given)` at this level. Raises MismatchError where the covariance is not known.

        >>> from deniable.protocols import GRR
        >>> round(GRR(["yes", "no"], epsilon=1).power([0.5, 0.5], [0.55, 0.45], n=5_000), 2)
        0.9
        """
        empty = self._nothing()
        first, second = empty.as_given(given), empty.as_given(truth)
        noise = self._noise_covariance(first)
        if noise is None:
            raise MismatchError(f"the covariance of the shares that {self.name} estimates is not known")
        basis, drawn = contrasts(first.size), np.diag(first) - np.outer(first, first)
        return power(basis @ (second - first), basis @ ((noise + drawn) / n) @ basis.T, level)

    def _truth(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        """The share of each listed answer."""
        if not isinstance(self.domain, ListedDomain):
            return self._no_truth(answers, people)
        counts = np.bincount(self.domain.encode(answers), people, minlength=self.domain.size)
        shares: NDArray[np.float64] = counts / counts.sum()
        return shares

    def _figure_variances(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        n = len(answers) if people is None else int(np.sum(people))
        spread: NDArray[np.float64] = (
            np.asarray(self.variance(n, self.worth().truth(answers, people), population=False)) / n**2
        )
        return spread

    def _figure_spreads(self, answers: Any) -> NDArray[np.float64]:
        shares = self.worth().truth(answers)
        return shares * (1 - shares)

    def _worst_variance(self, n: int, frequency: float = 0.0, population: bool = True) -> float:
        """The variance of the count of an answer of that frequency, whatever the others gave."""
        return float(self.variance(n, frequency, population))

    def _nothing(self) -> Estimate:
        return Estimate.nothing(self.domain.labels, self.name)  # type: ignore[attr-defined]

    def _error(self, n: int, population: bool = True) -> float:
        """The standard error of a share, for the share where that is largest."""
        # All variances here are polynomials of degree two in the share: three values tell where the largest lies.
        none, half, everyone = (self._worst_variance(n, share, population) for share in (0.0, 0.5, 1.0))
        bend = 2 * (none - 2 * half + everyone)
        slope = everyone - none - bend
        most = max(none, everyone)
        if bend < 0 and 0 < slope < -2 * bend:
            most = max(most, none - slope**2 / (4 * bend))
        return math.sqrt(most) / n

    def _total(self, n: int, population: bool) -> float | None:
        if self.worth().read != "shares" or not isinstance(self.domain, ListedDomain):
            return None
        return math.sqrt(float(self.variance(n, 1 / self.worth().tests, population))) / n

    def _visible(self, n: int, level: float = 0.95, population: bool = True) -> float | None:
        """The share that is as large as its own simultaneous half-width; None if even a share of one is not."""
        reach = quantile(level, self.worth().tests)

        def clear(share: float) -> bool:
            return share * n > reach * math.sqrt(self._worst_variance(n, share, population))

        if not clear(1.0):
            return None
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if clear(middle) else (middle, high)
        return high

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)

        def share(share: float) -> float:
            return math.sqrt(self._worst_variance(n, share, population)) / n

        return base.but(
            formula_for="",
            truth=self._truth,
            variances=self._figure_variances,
            spreads=self._figure_spreads,
            # The standard error of the share of an answer that nobody gave, in the worst case.
            noise=lambda: math.sqrt(self._worst_variance(n, population=False)) / n,
            error=lambda: self._error(n, population),
            share=share if "shares" in self.traits.reads else None,
            total=lambda: self._total(n, population),
            visible=lambda level=0.95: self._visible(n, level, population),
        )


@dataclass(frozen=True)
class FrequencyProtocol(ShareProtocol):
    """Shares of listed answers.

    Args:
        domain: The possible answers: a list of categories, their number, or a listed domain.
        epsilon: Largest epsilon of a report.
    """

    domain: ListedDomain

    if TYPE_CHECKING:

        def __init__(self, domain: DomainLike, epsilon: Number) -> None: ...

    traits: ClassVar[Traits] = Traits(
        takes=(ListedDomain,),
        advice="it needs a list of answers; for any text use CMS, HCMS, OLHSketch or RAPPOR",
        says=lambda protocol, report: protocol._says(report),
    )

    @abstractmethod
    def draw_many(self, values: Positions, bits: Bits) -> Bytes: ...

    @abstractmethod
    def _support(self, reports: Bytes) -> NDArray[np.bool_]: ...

    def _inputs(self) -> Iterator[tuple[Any, Any]]:
        if not isinstance(self.domain, ListedDomain):
            return self._no_inputs()
        return ((label, place) for place, label in enumerate(self.domain.labels))

    def _likelihoods(self, reports: Bytes) -> Model:
        """How likely each report is under each answer; a subclass may know a faster form."""
        return SupportModel(Supports.of(self, reports), float(self.ratio - 1))

    def _distinct_reports(self, tally: Tally) -> Bytes | None:
        """The reports behind each counter, where a tally is a list of how often each report came."""
        return None

    def _says(self, report: bytes) -> Fact:
        if not isinstance(self.domain, ListedDomain) or self.domain.size > MOST_SPOKEN:
            return report.hex()
        speaks = np.flatnonzero(self.support(np.frombuffer(report, dtype=np.uint8).reshape(1, -1))[0])
        return speaks_for([text(self.domain.labels[place]) for place in speaks.tolist()])

    def support(self, reports: Reports | Bytes) -> NDArray[np.bool_]:
        """A matrix of truth values: which answers each report supports."""
        return self._support(self._rows(reports))

    def estimate(self, tally: Tally) -> Estimate:
        """Unbiased counts with error bars."""
        found: Estimate = super().estimate(tally)
        return found

    @abstractmethod
    def infer(self, tally: Tally) -> Estimate: ...

    def mle(
        self,
        reports: Reports | Bytes | Tally,
        tolerance: float = 1e-9,
        max_iterations: int = 10_000,
        progress: bool = False,
    ) -> Estimate:
        """The shares under which the reports are most likely: a distribution, more accurate than `estimate`.

        Needs the reports themselves, except for GRR and HadamardResponse, whose tally says as much. Stops when no
        distribution is better by more than `tolerance` nats per report; `Estimate.fit` says how it went.
        """
        if isinstance(reports, Tally):
            self._check_tally(reports)
            forms = self._distinct_reports(reports)
            if forms is None:
                raise ReportError(f"a tally of {self.name} is too little for maximum likelihood: give the reports")
            seen = reports.counts > 0
            return fit(self, forms[seen], reports.counts[seen], reports, tolerance, max_iterations, progress)
        valid = self._rows(reports)
        tally = self.tally(valid)
        rows, often = distinct(valid)
        return fit(self, rows, often, tally, tolerance, max_iterations, progress)

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(tests=lambda: self.domain.size)

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            inputs=self._inputs,
            input_count=lambda: self.domain.size if isinstance(self.domain, ListedDomain) else base.input_count,
        )


# -- pure protocols -----------------------------------------------------------------------------------


class PureLaw(Protocol):
    """A report supports what is true with p and any other given thing with q, whatever else is true; both exact."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.p <= self.q:
            raise ChannelError(f"at epsilon {float(self.epsilon):.3g} rounding leaves nothing to learn: raise epsilon")

    @property
    @abstractmethod
    def p(self) -> Fraction:
        """P(the report supports what is true)."""

    @property
    @abstractmethod
    def q(self) -> Fraction:
        """P(the report supports some other given thing)."""

    @cached_property
    def _spreads(self) -> tuple[float, float, float]:
        """p (1 - p), q (1 - q) and p - q as floats."""
        return float(self.p * (1 - self.p)), float(self.q * (1 - self.q)), float(self.p - self.q)

    def variance(self, n: int, frequency: ArrayLike = 0.0, population: bool = True) -> Any:
        """The variance of an estimated count with n people, for something of that frequency.

        Noise and sampling error; `population=False` leaves the second out, for the count among those who answered.
        """
        f = np.asarray(frequency, dtype=np.float64)
        own, other, gap = self._spreads
        spread, rest = f * own, 1 - f
        rest *= other
        spread += rest
        spread *= n
        spread /= gap**2
        if population:
            spread = spread + n * f * (1 - f)
        return float(spread) if spread.ndim == 0 else spread

    def _outside(self, counts: NDArray[Any], n: float, tests: int) -> list[float]:
        """p-values: was one of `tests` things supported less often than with q, or more often than with p?"""
        few = too_few(float(counts.min()), n, float(self.q), tests)
        return [few, too_many(float(counts.max()), n, float(self.p), tests)]

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            # How far one forged report can raise an estimated count: (1 - q) / (p - q).
            leverage=lambda: float((1 - self.q) / (self.p - self.q)),
            # m forged reports among n move a share by at most (m / n) / (p - q).
            moved=lambda: float(1 / (self.p - self.q)),
        )


class PureProtocol(PureLaw, FrequencyProtocol):
    """A protocol in the pure framework; p and q are the realized probabilities.

    Args:
        domain: The possible answers: a list of categories, their number, or a listed domain.
        epsilon: Largest epsilon of a report.
    """

    _everyone: ClassVar[Fraction] = Fraction(0)
    """How likely a report is that supports all answers, under an answer that it did not support."""

    @property
    def _third(self) -> Fraction | None:
        """P(a report of a third answer supports the first of two others and not the second), where that is known."""
        return None

    def _blankets(self) -> tuple[Blanket, ...]:
        alone = self.p / self.ratio
        mass = 1 - (self.ratio - 1) * alone
        return (supporting(mass, self.ratio, (self.q - alone) / (self.ratio - 1), self._everyone),)

    def _told(self, noun: str) -> Sequence[Fact]:
        """What chance does to one of the answers, or to one of the cells."""
        return super().story(None, None, b"")

    @property
    def _support_size(self) -> int | None:
        """The number of answers that a report supports, if it is fixed."""
        return None

    def _support_counts(self, counts: Counts) -> Counts:
        """How many reports support each answer; most tallies are just that."""
        return counts

    def infer(self, tally: Tally) -> Estimate:
        if not tally.n:
            return self._nothing()
        supported = self._support_counts(tally.counts)
        support = Support(supported, tally.n, float(self.p), float(self.q), self._support_size)
        # The exact gap and offset, rounded once: n q may exceed what floats hold exactly.
        gap = float(self.p - self.q)
        offset = self.q * tally.n
        counts = supported - np.float64(int(offset))
        counts -= float(offset - int(offset))
        counts /= gap
        shares = counts / tally.n
        np.clip(shares, 0.0, 1.0, out=shares)
        return Estimate(
            labels=self.domain.labels,
            n=tally.n,
            counts=counts,
            noise=self.variance(tally.n, shares, population=False),
            protocol=self.name,
            support=support,
            law=self._noise_covariance,
        )

    def _noise_covariance(self, shares: Floats) -> Floats:
        # Supports of one size repel each other; bits that are set one by one and linear hashes leave no covariance.
        law = Support(np.zeros(shares.size, dtype=np.int64), 1, float(self.p), float(self.q), self._support_size)
        found = np.stack([law.covariance(shares, place) for place in range(shares.size)])
        np.fill_diagonal(found, self.variance(1, shares, population=False))
        return found

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            blankets=self._blankets,
            support=lambda: PureSupport(self.p, self.q, self._third, self._support_size, False, self.support),
            checks=lambda tally, worth: self._outside(
                self._support_counts(tally.counts) * worth, tally.n * worth, self.domain.size
            ),
        )


def added_up(protocol: PureProtocol, answers: int, share: float) -> float:
    """The variance that one report adds to the total count of some answers, which a share of the people gave.

    >>> from deniable.protocols import GRR
    >>> coin = GRR(4, epsilon=1)
    >>> added_up(coin, 1, 0.25) == coin.variance(1, 0.25, population=False), round(added_up(coin, 4, 1.0), 9)
    (True, 0.0)
    """
    own, other, gap = protocol._spreads
    mixed = pair = 0.0
    size = protocol.domain.size
    if protocol._support_size is not None and size > 1:  # supports of one size repel each other
        mixed = -own / (size - 1)
        pair = -(other + mixed) / (size - 2) if size > 2 else 0.0
    inside = own + (answers - 1) * (other + 2 * mixed + (answers - 2) * pair)
    outside = answers * (other + (answers - 1) * pair)
    return (share * inside + (1 - share) * outside) / gap**2


def in_order(
    protocol: PureProtocol,
    n: int,
    read: str | None,
    width: float,
    resolution: float = 0.0,
    population: bool = True,
) -> dict[str, Any] | None:
    """How exact shares of answers in order are that are added up, as facts of a `Worth`: the flat oracle.

    Of a "distribution" the median, where the answers are numbers of this width; of "ranges" the share of one with
    uniform ends, as a root mean square. All answers are equally common. `resolution` is the standard deviation of
    what lies inside of one answer, as a part of all: that of a bin of many numbers.
    """
    size = protocol.domain.size
    if read == "distribution":
        parts, scale, ends = [(0.5, 1.0)], width, 1
    elif read == "ranges":
        places = (np.arange(_LENGTHS) + 0.5) / _LENGTHS
        parts, scale, ends = [(x, 2 * (1 - x) / _LENGTHS) for x in places.tolist()], 1.0, 2
    else:
        return None

    def error(population: bool) -> float:
        each = [
            (weight, added_up(protocol, max(1, round(x * size)), x) + (x * (1 - x) if population else 0.0))
            for x, weight in parts
        ]
        spread = sum(weight * one for weight, one in each) / n
        return scale * math.sqrt(spread + ends * resolution**2)

    found = {"noise": lambda: error(False), "error": lambda: error(population)}
    return {"answers": True, "share": None, "total": None, **found}


FISHER_LIMIT = 2000  # answers; beyond, the information matrix costs more than all else
FISHER_WORK = 4e11  # multiplications
NEWTON_LIMIT = 2048  # answers

_BLOCK_CELLS = 1 << 20  # floats at a time, so that a block stays in the cache
_KEPT_CELLS = 1 << 28  # truth values that are kept between passes


@dataclass(frozen=True, slots=True, eq=False)
class Supports:
    """Which answers each report supports, in blocks of rows."""

    protocol: FrequencyProtocol
    reports: Bytes
    kept: NDArray[np.bool_] | None

    @classmethod
    def of(cls, protocol: FrequencyProtocol, reports: Bytes) -> Supports:
        small = len(reports) * protocol.domain.size <= _KEPT_CELLS
        return cls(protocol, reports, protocol._support(reports) if small else None)

    def blocks(self, kind: Any = np.float64) -> Iterator[tuple[slice, NDArray[Any]]]:
        rows = max(1, _BLOCK_CELLS // self.protocol.domain.size)
        for start in range(0, len(self.reports), rows):
            part = slice(start, start + rows)
            block = self.protocol._support(self.reports[part]) if self.kept is None else self.kept[part]
            yield part, block.astype(kind)


@dataclass(frozen=True, eq=False)
class SupportModel:
    """Likelihoods 1 + c 1[v in S] of distinct reports, as `em.Model` wants them."""

    supports: Supports
    contrast: float

    @property
    def newton(self) -> bool:
        # A Newton step is worth d / 50 updates of this kind, and saves a few hundred.
        return self.supports.protocol.domain.size <= NEWTON_LIMIT

    def mix(self, point: Floats) -> Floats:
        held = np.empty(len(self.supports.reports))
        for part, block in self.supports.blocks():
            held[part] = block @ point
        mixture: Floats = point.sum() + self.contrast * held
        return mixture

    def update(self, point: Floats, share: Floats) -> tuple[Floats, Floats]:
        mixture = np.empty(len(self.supports.reports))
        backed = np.zeros(point.size)
        total = point.sum()
        for part, block in self.supports.blocks():
            mixture[part] = total + self.contrast * (block @ point)
            backed += (share[part] / mixture[part]) @ block
        return mixture, (share / mixture).sum() + self.contrast * backed

    def curvature(self, weights: Floats) -> Floats:
        """sum over reports of weight (1 + c s)(1 + c s)^T, s the truth values of one report."""
        once, pairs = self._moments(weights)
        single = self.contrast * once
        curvature: Floats = weights.sum() + single + single[:, None] + self.contrast**2 * pairs
        return curvature

    def information(self, weights: Floats) -> Floats:
        """The same without what is constant in a row or a column, which no change of shares can see."""
        information: Floats = self.contrast**2 * self._moments(weights)[1]
        return information

    def _moments(self, weights: Floats) -> tuple[Floats, Floats]:
        """sum of weight s, and of weight s s^T. In single precision: they steer the search and set error bars."""
        size = self.supports.protocol.domain.size
        once, pairs = np.zeros(size), np.zeros((size, size))
        for part, block in self.supports.blocks(np.float32):
            weighted = block * weights[part, None].astype(np.float32)
            once += weighted.sum(axis=0, dtype=np.float64)
            pairs += weighted.T @ block
        return once, pairs

    def system(self, point: Floats, factor: Floats, weights: Floats) -> NewtonSystem:
        return NewtonSystem.at_curvature(point, factor, self.curvature(weights))


def distinct(reports: Bytes) -> tuple[Bytes, NDArray[np.int64]]:
    """Each different report once, with how often it came; wide reports hardly ever repeat and are left alone."""
    count, width = reports.shape
    if width > 8 or count == 0:
        return reports, np.ones(count, dtype=np.int64)
    padded = np.zeros((count, 8), dtype=np.uint8)
    padded[:, :width] = reports
    _, first, often = np.unique(padded.view("<u8")[:, 0], return_index=True, return_counts=True)
    return reports[first], often


def fit(
    protocol: FrequencyProtocol,
    reports: Bytes,
    often: NDArray[np.int64],
    tally: Tally,
    tolerance: float,
    max_iterations: int,
    progress: bool,
) -> Estimate:
    """The maximum-likelihood estimate from distinct reports, how often each came, and the tally of all."""
    if not tolerance > 0:
        raise NumberError(f"the tolerance must be positive, not {tolerance!r}")
    if max_iterations < 1:
        raise NumberError(f"at least one iteration is needed, not {max_iterations!r}")
    n = int(often.sum())
    if n == 0:
        return replace(protocol.estimate(tally), method="mle")
    size = protocol.domain.size
    model: Model = protocol._likelihoods(reports)
    with progress_bar(progress, "MLE", tolerance) as watch:
        start = np.full(size, 1 / size)
        solution = maximize(model, often / n, start, "newton", tolerance, max_iterations, watch)
    shares = solution.point
    unbiased = protocol.estimate(tally)
    spread = _spread(protocol, unbiased) if unbiased.support is None else None
    return Estimate(
        labels=protocol.domain.labels,
        n=n,
        counts=shares * n,
        noise=_noise(protocol, model, often, shares),
        protocol=protocol.name,
        method="mle" if solution.converged else "mle (not converged)",
        fit=Fit(solution.trace.size, solution.gap, solution.converged, unbiased, spread),
    )


def _noise(protocol: FrequencyProtocol, model: Model, often: NDArray[np.int64], shares: Floats) -> Floats:
    """The variance of the counts, for the respondents as they are."""
    n = int(often.sum())
    size = shares.size
    unbiased = np.asarray(protocol.variance(n, shares), dtype=np.float64)
    total = unbiased
    if size <= FISHER_LIMIT and often.size * size**2 <= FISHER_WORK and isinstance(model, SupportModel):
        observed = n * information_stderr(model.information(often / model.mix(shares) ** 2), shares)
        total = np.minimum(observed**2, unbiased)
    # Observed information is random: without the floor its difference from the sampling variance could be negative.
    noise: Floats = np.maximum(total - n * shares * (1 - shares), 1e-6 * total)
    return noise


def _spread(protocol: FrequencyProtocol, unbiased: Estimate) -> tuple[Floats, Floats, Floats]:
    """a, b and c of the variance (a + b t + c t^2) / n of the unbiased share of an answer that has the share t.

    In the proportion in which the estimate's own variance, which knows the other answers, is larger or smaller.
    """
    none, half, everyone = protocol.variance(1, np.array([0.0, 0.5, 1.0]))
    bend = 2 * (none - 2 * half + everyone)
    own = unbiased.variance / protocol.variance(unbiased.n, np.clip(unbiased.frequencies, 0.0, 1.0))
    return own * none, own * (everyone - none - bend), own * bend
