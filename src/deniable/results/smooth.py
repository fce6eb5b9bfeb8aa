"""Intervals that assume a smooth distribution: shorter than those that hold for any, and marked wherever they appear.

Assumed    the density bends no more than that of a normal distribution whose standard deviation is a fraction s of the
           range: with the range as unit, the integral of the square of its second derivative is at most
           3 / (8 sqrt(pi) s^5). Every mixture of normal distributions at least as wide satisfies it, and so do
           uniform and linear densities. Jumps, spikes and narrower peaks do not
Name       "smooth:0.1" for s = 0.1; "smooth" is the default s
Figure     a sum of weights u of the cells. The linear function of the observations with the smallest mean
           square error at the worst distribution: with K the law, V the variances and D the second differences, the
           weights are V^-1 K (K' V^-1 K + D' D / M^2)^-1 u, where M^2 is the bound
Interval   the worst bias b of this figure is known exactly, and so is its standard error e: value +- c e, with c the
           quantile of |N(b / e, 1)|. It holds for every distribution that satisfies the assumption, and s is never
           estimated: no interval can adapt to an unknown smoothness and hold (Low 1997)
Cells      at most 1,024; finer ones are merged
Source     Donoho 1994 (intervals of linear functionals); Armstrong and Kolesar 2018 (the quantile); Low 1997
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable._threads import one_thread
from deniable.errors import NumberError

Floats = NDArray[np.float64]

SMOOTH = "smooth"
USUAL = 0.1
"""Default minimum standard deviation of a peak, as a fraction of the range."""
LEAST, MOST = 0.01, 1.0
MOST_CELLS = 1024
_EXACTLY = 1e4
"""Factor by which the sum of all shares is more accurate than the observations."""


def read_assumption(text: str) -> float:
    """The width of a peak, as a fraction of the range.

    >>> read_assumption("smooth"), read_assumption("smooth:0.05")
    (0.1, 0.05)
    """
    word, colon, width = text.partition(":") if isinstance(text, str) else ("", "", "")
    try:
        found = float(width) if colon else USUAL
    except ValueError:
        found = math.nan
    if word != SMOOTH or not LEAST <= found <= MOST:
        raise NumberError(
            f'intervals may assume "smooth", or "smooth:S" with the least standard deviation S of a hump, from '
            f"{LEAST:g} to {MOST:g} of the range, not {text!r}"
        )
    return found


class Linear(NamedTuple):
    """The observations, as unbiased figures that are linear in the shares of groups of cells."""

    edges: NDArray[np.int64]
    """The first cell of each group, and the end of the last one."""
    chances: Floats
    """The mean of each figure for somebody in each group."""
    seen: Floats
    variance: Floats
    """Approximate variance of each figure."""
    moved: Callable[[Floats, bool], Floats]
    """For rows of weights of the figures: the variance of their sum, the largest change by one report and, on
    request, the largest decrease and increase if one report is left out."""
    people: int


class Found(NamedTuple):
    """Figures, one entry each."""

    value: Floats
    everything: Floats
    """The variance as a figure of the population."""
    people: Floats
    """The part of it that does not apply to those who answered."""
    bias: Floats
    """The largest bias, over all smooth distributions."""
    moved: Floats
    """The largest change by one report, and the largest decrease and increase if one is left out."""


@dataclass(frozen=True, eq=False)
class Smooth:
    """The assumption, for one result."""

    width: float
    linear: Linear
    boundaries: Floats
    """The edges of the cells, in steps."""
    shares: Floats
    """The fitted shares of the cells."""

    @property
    def name(self) -> str:
        return f"{SMOOTH}:{self.width:g}"

    @property
    def sentence(self) -> str:
        return (
            f"The intervals of quantiles, ranges and bins assume {self.name}: the density bends no more than that of a "
            f"normal distribution whose standard deviation is {self.width:g} of the range. At jumps, spikes and "
            "narrower humps they hold less often than stated."
        )

    @property
    def bound(self) -> float:
        """Upper bound on the root of the integral of the squared second derivative of the density."""
        return math.sqrt(3 / (8 * math.sqrt(math.pi) * self.width**5))

    @cached_property
    def _sizes(self) -> Floats:
        """Sizes of the groups, as fractions of the range."""
        return np.diff(self.boundaries[self.linear.edges]) / np.ptp(self.boundaries)

    @cached_property
    def _bends(self) -> Floats:
        """Second derivatives of densities of the groups, times the root of the length that each represents."""
        size = self._sizes.size
        if size < 3:
            return np.zeros((0, size))
        ends = np.concatenate([[0.0], np.cumsum(self._sizes)])
        apart = np.diff((ends[1:] + ends[:-1]) / 2)
        length = (apart[1:] + apart[:-1]) / 2
        slopes = np.diff(np.eye(size), axis=0) / apart[:, None]
        found: Floats = np.diff(slopes, axis=0) / np.sqrt(length)[:, None]
        return found

    @cached_property
    def _law(self) -> Floats:
        """The figures as a linear map of the densities; the last one is the sum of all shares."""
        return np.vstack([self.linear.chances, np.ones(self._sizes.size)]) * self._sizes

    @cached_property
    def _precision(self) -> Floats:
        return np.append(1 / self.linear.variance, _EXACTLY * self.linear.people)

    @cached_property
    @one_thread
    def _inverse(self) -> Floats:
        information = (self._law.T * self._precision) @ self._law
        return np.linalg.inv(information + self._bends.T @ self._bends / self.bound**2).astype(np.float64)

    @one_thread
    def read(self, wanted: Floats, forged: bool = False) -> Found:
        """One figure per row of weights of the cells."""
        edges, own = self.linear.edges, np.diff(self.boundaries)
        grouped = np.add.reduceat(wanted * own, edges[:-1], axis=1) / np.add.reduceat(own, edges[:-1])
        solved = self._inverse @ (grouped * self._sizes).T
        weights = ((self._law @ solved) * self._precision[:, None]).T
        bias = np.linalg.norm(self._bends @ solved, axis=0) / self.bound
        everything, *moved = self.linear.moved(weights[:, :-1], forged)
        shares = np.add.reduceat(self.shares, edges[:-1])
        # The figure minus its share among those who answered: the variance common to both is not counted.
        centred = grouped - (grouped @ shares)[:, None]
        blurred = weights[:, :-1] @ self.linear.chances
        people = ((2 * blurred - grouped) * centred) @ shares / max(1, self.linear.people)
        value = weights[:, :-1] @ self.linear.seen + weights[:, -1]
        return Found(value, everything, people, bias, np.stack(moved))

    def between(self, start: Floats, stop: Floats) -> Floats:
        """The weights of the cells in ranges from a place to a place; a cell counts by its part inside the range."""
        low, high = self.boundaries[:-1], self.boundaries[1:]
        inside = np.minimum(stop[:, None], high) - np.maximum(start[:, None], low)
        return np.clip(inside / (high - low), 0.0, 1.0)

    @cached_property
    def knots(self) -> Floats:
        """Places among which quantiles are searched for."""
        return self.boundaries[self.linear.edges]


def critical(ratio: Floats, z: float) -> Floats:
    """Half-width of an interval in standard errors, for a figure with a bias of up to `ratio` of them; z without bias.

    >>> critical(np.array([0.0, 0.5, 3.0]), 1.959964).round(3).tolist()
    [1.96, 2.181, 4.645]
    """
    wrong = math.erfc(z / math.sqrt(2))
    low, high = np.full(ratio.shape, z), z + ratio
    for _ in range(30):
        middle = (low + high) / 2
        short = _beyond(middle - ratio) + _beyond(middle + ratio) > wrong
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return high


def _beyond(z: Floats) -> Floats:
    return np.array([math.erfc(one / math.sqrt(2)) / 2 for one in z.ravel().tolist()]).reshape(z.shape)
