"""The worst of all 2^k staircase columns for given multipliers, found by a sweep over tangents.

For a tangent z the best pattern switches on the symbols with w_x(z) = t P0(x) + h P1(x) - lambda_x > 0. Each w_x is
concave in t with its peak at z = ln(P0/P1), so each symbol is on for one interval of z: its two roots are bracketed by
the peak and the ends of the span and bisected; sorting the 2k roots lists all patterns that matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.channels._vectors import Floats
from deniable.design._curves import Curve

_HALVINGS = 64


@dataclass(frozen=True, slots=True)
class Switches:
    """When each symbol is on: for z in [low, high]; `on` is False for a symbol that never is."""

    on: NDArray[np.bool_]
    low: Floats
    high: Floats

    def events(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Symbols in the order in which they switch, and +1 for on, -1 for off; on comes first at a tie."""
        live = np.flatnonzero(self.on)
        symbols = np.concatenate([live, live])
        signs = np.repeat(np.array([1, -1]), live.size)
        order = np.lexsort((-signs, np.concatenate([self.low[live], self.high[live]])))
        return symbols[order], signs[order]


@dataclass(frozen=True, slots=True)
class Worst:
    """All patterns of a sweep, one after each event: `utility` is mu, `excess` is mu - lambda . s."""

    symbols: NDArray[np.int64]
    signs: NDArray[np.int64]
    excess: Floats
    utility: Floats

    @property
    def largest(self) -> float:
        return float(self.excess.max(initial=-np.inf))

    def pattern(self, event: int, size: int) -> Floats:
        """Which symbols are on after that event: zeros and ones."""
        state = np.zeros(size)
        np.add.at(state, self.symbols[: event + 1], self.signs[: event + 1])
        return state

    def peaks(self, most: int) -> NDArray[np.int64]:
        """The events with locally largest excess, largest first."""
        padded = np.concatenate([[-np.inf], self.excess, [-np.inf]])
        local = np.flatnonzero((padded[1:-1] >= padded[:-2]) & (padded[1:-1] >= padded[2:]))
        return local[np.argsort(-self.excess[local], kind="stable")[:most]]


def switches(lower: Floats, gaps: Floats, multipliers: Floats, odds: float, curve: Curve) -> Switches:
    """The interval of tangents in which each symbol is on."""
    low_end, high_end = curve.span(1 + odds)

    def rises(z: Floats) -> Floats:
        with np.errstate(all="ignore"):
            return np.asarray(curve.slope(z) * gaps + curve.sag(z) * lower - multipliers)

    # Clipped before the tangent is looked up: beyond the span a slope may be infinite.
    reach = np.clip(gaps, (1 / (1 + odds) - 1) * lower, odds * np.maximum(lower, gaps))
    peak = np.clip(curve.tangent_to(np.where(lower > 0, lower, 1.0), reach), low_end, high_end)
    peak = np.where((lower == 0) & (gaps > 0), high_end, peak)
    on = rises(peak) > 0
    ends = []
    for end in (low_end, high_end):
        outer, inner = np.full_like(peak, end), peak.copy()
        reaches = rises(outer) >= 0
        for _ in range(_HALVINGS):
            middle = (outer + inner) / 2
            inside = rises(middle) >= 0
            inner, outer = np.where(inside, middle, inner), np.where(inside, outer, middle)
        ends.append(np.where(reaches, end, inner))
    return Switches(on, ends[0], ends[1])


def sweep(lower: Floats, gaps: Floats, multipliers: Floats, odds: float, curve: Curve) -> Worst:
    """Every pattern that can be the worst one, with its excess over the multipliers."""
    symbols, signs = switches(lower, gaps, multipliers, odds, curve).events()
    b = 1 + odds * np.clip(np.cumsum(signs * lower[symbols]), 0.0, 1.0)
    gap = odds * np.cumsum(signs * gaps[symbols])
    utility = curve.column(b, gap)
    price = multipliers.sum() + odds * np.cumsum(signs * multipliers[symbols])
    return Worst(symbols, signs, utility - price, utility)
