"""Could any population have produced these reports? A test of the law against what was counted.

Null       every report came from the law and an answer of somebody, whatever the shares of the answers are
Tests      tails      a count that is too small for every population, or too large: binomial, at the share that
                      favours it
           entropy    the relative entropy of the observed shares from the nearest law of the channel. The true law is
                      never nearer, and P(n D >= x) <= e^-x (e x / (m - 1))^(m - 1) for m outputs, any law and any n
           sum        a sum whose law does not depend on the answers: Chernoff's bound
Valid      for every population and every number of reports: each test is a bound and not an approximation, and the
           p-value is the smallest one times the number of tests. So it is cautious: of honest collections fewer than
           one in a thousand fall below 0.001
Source     Agrawal 2020 for the relative entropy of a multinomial
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SUSPICIOUS = 1e-3
"""Below this p-value the misfit is said wherever an estimate is shown."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """How well reports agree with the law that they are read with."""

    p_value: float
    """At most so often would an honest collection, of whatever population, look so unlike the law or more."""

    @classmethod
    def of(cls, p_values: Iterable[float]) -> Misfit:
        """The smallest of several tests, times their number."""
        each = list(p_values)
        return cls(min([1.0, *(len(each) * p for p in each)]))

    @property
    def suspicious(self) -> bool:
        return self.p_value < SUSPICIOUS

    @property
    def message(self) -> str | None:
        """What to tell whoever looks at the estimate; None if there is nothing to tell."""
        return self.about("protocol") if self.suspicious else None

    def about(self, law: str) -> str:
        p = f"p = {self.p_value:.1g}" if self.p_value >= 1e-300 else "p < 1e-300"
        return (
            f"these reports do not look like this {law}'s: {p}. No shares of the answers explain them; is it the right "
            f"{law}, with the right epsilon and order of answers, and are the reports genuine?"
        )


def too_few(count: float, n: float, least: float, tests: int = 1) -> float:
    """P(a count of n is so small), if each report counts with probability `least`, for `tests` such counts."""
    from scipy.special import betainc

    if count >= n or least <= 0:
        return 1.0
    return min(1.0, tests * float(betainc(n - count, count + 1, 1 - least)))


def too_many(count: float, n: float, most: float, tests: int = 1) -> float:
    """P(a count of n is so large), if each report counts with probability `most`, for `tests` such counts."""
    return too_few(n - count, n, 1 - most, tests)


def too_far(observed: Floats, fitted: Floats) -> float:
    """From the relative entropy of the observed shares to the likeliest law that the channel allows."""
    n, seen = float(observed.sum()), observed > 0
    outputs = int((fitted > 0).sum())
    if (fitted[seen] <= 0).any():
        return 0.0
    distance = float(observed[seen] @ np.log(observed[seen] / (n * fitted[seen])))
    free = outputs - 1
    if free < 1 or distance <= free:
        return 1.0
    return math.exp(min(0.0, free + free * math.log(distance / free) - distance))


def sum_is_off(log_moment: Callable[[float], float], mean: float, seen: float) -> float:
    """A sum that is this far from its mean, to either side; `log_moment(t)` is the logarithm of E e^(t sum)."""
    from scipy.optimize import minimize_scalar

    sign = 1.0 if seen > mean else -1.0
    found = minimize_scalar(lambda log_t: log_moment(sign * math.exp(log_t)) - sign * math.exp(log_t) * seen,
                            bounds=(-40.0, 3.0), method="bounded", options={"xatol": 1e-6})  # fmt: skip
    # Any t gives a bound: a minimum that is not quite found makes it a little larger, and no less valid.
    return min(1.0, 2 * math.exp(min(0.0, float(found.fun))))


def channel_misfit(rows: Floats, observed: Floats, fitted: Floats) -> Misfit:
    """Of counts of a channel's outputs, with the law of the outputs at the maximum of the likelihood."""
    n, outputs = float(observed.sum()), observed.size
    low = min(too_few(c, n, p, outputs) for c, p in zip(observed, rows.min(axis=0), strict=True))
    high = min(too_many(c, n, p, outputs) for c, p in zip(observed, rows.max(axis=0), strict=True))
    return Misfit.of([low, high, too_far(observed, fitted)])
