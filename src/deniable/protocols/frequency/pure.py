"""Pure protocols: each report supports some answers; the true one with p*, any other with q*.

Estimate   counts(v) = (C_v - n q*) / (p* - q*), with C_v the number of reports that support v: exactly unbiased
Variance   n [f p*(1 - p*) + (1 - f) q*(1 - q*)] / (p* - q*)^2 for the respondents as they are; a population
           that they were drawn from adds n f (1 - f)
Source     Wang, Blocki, Li and Jha 2017
"""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.errors import ChannelError
from deniable.protocols.frequency.histogram import FrequencyProtocol
from deniable.protocols.tally import Counts, Tally
from deniable.results import Estimate, Support
from deniable.results.misfit import too_few, too_many

Floats = NDArray[np.float64]


class PureProtocol(FrequencyProtocol):
    """A protocol in the pure framework; p and q are the realized probabilities, exact."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.p <= self.q:
            raise ChannelError(f"at epsilon {float(self.epsilon):.3g} rounding leaves nothing to learn: raise epsilon")

    @property
    @abstractmethod
    def p(self) -> Fraction:
        """P(the report supports the true answer)."""

    @property
    @abstractmethod
    def q(self) -> Fraction:
        """P(the report supports some other given answer)."""

    @property
    def support_size(self) -> int | None:
        """How many answers a report supports, where that is always the same number."""
        return None

    def _support_counts(self, counts: Counts) -> Counts:
        """How many reports support each answer; most tallies are just that."""
        return counts

    def _estimate(self, tally: Tally) -> Estimate:
        supported = self._support_counts(tally.counts)
        support = Support(supported, tally.n, float(self.p), float(self.q), self.support_size)
        # The exact gap and offset, rounded once: n q may exceed what floats hold exactly.
        gap = float(self.p - self.q)
        offset = self.q * tally.n
        counts = (supported - np.float64(int(offset)) - float(offset - int(offset))) / gap
        shares = np.clip(counts / tally.n, 0.0, 1.0)
        return Estimate(
            labels=self.domain.labels,
            n=tally.n,
            counts=counts,
            noise=self.variance(tally.n, shares, population=False),
            protocol=self.name,
            support=support,
        )

    @property
    def leverage(self) -> float:
        """By how much one forged report can raise the estimated count of one answer: (1 - q) / (p - q)."""
        return float((1 - self.q) / (self.p - self.q))

    @property
    def poisoning(self) -> float:
        """m forged reports among n move a share by at most (m / n) / (p - q)."""
        return float(1 / (self.p - self.q))

    def _misfits(self, tally: Tally, worth: float) -> list[float]:
        # A report supports an answer with at least q and at most p, whoever sent it.
        supported, n, size = self._support_counts(tally.counts) * worth, tally.n * worth, self.domain.size
        few = too_few(float(supported.min()), n, float(self.q), size)
        return [few, too_many(float(supported.max()), n, float(self.p), size)]

    def variance(self, n: int, frequency: ArrayLike = 0.0, population: bool = True) -> Any:
        """The exact variance of an estimated count with n people, for an answer of that frequency.

        Noise and sampling error; `population=False` leaves the second out, for the count among those who answered.
        """
        f = np.asarray(frequency, dtype=np.float64)
        own, other = float(self.p * (1 - self.p)), float(self.q * (1 - self.q))
        spread = n * (f * own + (1 - f) * other) / float(self.p - self.q) ** 2
        if population:
            spread = spread + n * f * (1 - f)
        return float(spread) if spread.ndim == 0 else spread
