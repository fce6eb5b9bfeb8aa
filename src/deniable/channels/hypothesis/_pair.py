"""Two laws of one observation, reduced to what a test can use: the log-likelihood ratio.

Outputs of equal ratio are merged (lossless: the ratio is sufficient), impossible ones dropped. Outputs that only one
law can produce decide the question at once, so they are kept as two masses, `only0` and `only1`; the rest have
probabilities p, q > 0 and ratios l = ln(p/q), ascending.

The tilted laws w_s = p^s q^(1-s) / rho(s) on the common outputs, 0 <= s <= 1, carry every bound of this package:
-min ln rho is the Chernoff information. All sums are arranged so that laws 1e-9 apart lose nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from deniable.channels._vectors import Floats, probability_vector
from deniable.channels.divergences import exp_gap, log_gap

EPS = float(np.finfo(np.float64).eps)
# Ratios that differ by less than this, relative to 1 + |l|, are one ratio that was rounded twice.
SAME = 16 * EPS


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two laws on their common outputs, by ascending log-likelihood ratio."""

    p: Floats
    q: Floats
    llr: Floats
    only0: float
    only1: float

    def log_shared(self, n: int) -> tuple[float, float]:
        """ln of the probability that n observations leave the question open, under each law."""
        return n * _log1m(self.only0), n * _log1m(self.only1)

    def _mixed(self, s: float) -> Floats:
        """p^s q^(1-s), from the larger of the two, so that nothing overflows for 0 <= s <= 1."""
        with np.errstate(over="ignore", under="ignore"):
            return np.where(self.llr > 0, self.p * np.exp((s - 1) * self.llr), self.q * np.exp(s * self.llr))

    def log_moment(self, s: float) -> float:
        """ln rho(s) = ln sum p^s q^(1-s)."""
        mixed = self._mixed(s)
        whole = float(mixed.sum())
        if not 0.5 < whole < 2:
            return math.log(whole) if whole > 0 else -math.inf
        with np.errstate(all="ignore"):
            near = self.q * (exp_gap(s * self.llr) - s * log_gap((self.p - self.q) / self.q))
        terms = np.where(np.abs(self.llr) < 0.5, near, mixed - s * self.p - (1 - s) * self.q)
        return math.log1p(math.fsum(terms) - s * self.only0 - (1 - s) * self.only1)

    def slope(self, s: float) -> float:
        """rho'(s) = sum p^s q^(1-s) ln(p/q); its sign says on which side of s the minimum lies."""
        with np.errstate(all="ignore"):
            near = self.q * (np.expm1(s * self.llr) * self.llr - log_gap((self.p - self.q) / self.q))
        far = self._mixed(s) * self.llr - (self.p - self.q)
        return math.fsum(np.where(np.abs(self.llr) < 0.5, near, far)) + self.only1 - self.only0

    def tilted(self, s: float) -> Floats:
        """The law w_s."""
        weights = self._mixed(s)
        return np.asarray(weights / weights.sum(), dtype=np.float64)

    def mean(self, s: float) -> float:
        """The mean of l under w_s, which increases with s."""
        return self.slope(s) * math.exp(-self.log_moment(s))

    def deviation(self, s: float) -> float:
        """The standard deviation of l under w_s."""
        weights = self.tilted(s)
        return math.sqrt(float(weights @ (self.llr - weights @ self.llr) ** 2))


def _log1m(x: float) -> float:
    return math.log1p(-x) if x < 1 else -math.inf


def log_ratio(p: Floats, q: Floats) -> Floats:
    """ln(p/q) for p, q > 0, to relative rounding even when they nearly agree."""
    gap = (p - q) / q
    with np.errstate(all="ignore"):
        ratio = np.log(p / q)
        far = np.where(np.isfinite(ratio), ratio, np.log(p) - np.log(q))
        return np.where(np.abs(gap) < 0.5, np.log1p(np.clip(gap, -0.5, 0.5)), far)


def read_pair(m0: ArrayLike, m1: ArrayLike) -> Pair:
    """Check two laws of one observation and reduce them."""
    first = probability_vector(m0, what="first distribution")
    second = probability_vector(m1, first.size, what="second distribution")
    both = (first > 0) & (second > 0)
    p, q = first[both], second[both]
    llr = log_ratio(p, q)
    order = np.argsort(llr, kind="stable")
    p, q, llr = p[order], q[order], llr[order]
    starts: list[int] = []
    for i, value in enumerate(llr):
        if not starts or value - llr[starts[-1]] > SAME * (1 + abs(value)):
            starts.append(i)
    if starts and len(starts) < llr.size:
        p, q = np.add.reduceat(p, starts), np.add.reduceat(q, starts)
        llr = log_ratio(p, q)
    return Pair(p, q, llr, math.fsum(first[second == 0]), math.fsum(second[first == 0]))


def bisect(rises: Callable[[float], bool], low: float, high: float, steps: int = 60) -> float:
    """The point of [low, high] where the predicate turns from False to True."""
    for _ in range(steps):
        middle = (low + high) / 2
        if rises(middle):
            high = middle
        else:
            low = middle
    return (low + high) / 2
