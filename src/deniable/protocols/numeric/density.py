"""How the tally of a window becomes a distribution: EM or EMS for its shape, unbiased figures for its intervals.

EM         on the positions, for shapes without any smoothness: the mixture of D windows is a difference of cumulative
           sums, so that a pass costs O(M). Pairs of passes are extrapolated (SQUAREM, on the logarithms of the shares);
           an extrapolation that lowers the log-likelihood is undone. It stops when a pair gains less than 0.01 nats:
           more would follow the noise
EMS        for smooth shapes: EM with smoothing, as the penalized likelihood that it is. Which smoothness, and how much
           of it, the evidence of the tally says: `smooth.py`
Rule       every order and strength of smoothness has its evidence, the probability of this tally under it. The shapes
           are averaged, weighed by it; the shape of order 0, no smoothness at all, is that of EM
Unbiased   for any weights u of the positions there are weights h of the outputs whose mean is that of u, whatever the
           distribution. h(y + w) - h(y) is known, so h is free in one number per residue of y modulo w; they are chosen
           for the smallest variance at the fitted distribution. A jump of u from one position to the next costs a
           factor w / t, which is why the share of a single position is hardly known while wide ramps of u are
Source     Li et al. 2020 (square wave, EMS); Varadhan and Roland 2008 (SQUAREM)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deniable.protocols.numeric.smooth import ORDERS, explanations
from deniable.protocols.tally import Counts
from deniable.results import Floats
from deniable.results.distribution import Readings

MOST_PASSES = 1000

_GAIN = 0.01
_LEAST = 1e-3
"""Of a weight, below which EM is not run."""
_TINY = 1e-300


def square_wave_half_width(epsilon: float) -> float:
    """b of the square wave on [0, 1]: half of the window that tells most about a distribution.

    (epsilon e^epsilon - e^epsilon + 1) / (2 e^epsilon (e^epsilon - 1 - epsilon)); below 1, where the terms cancel, by
    their series.

    >>> [round(square_wave_half_width(x), 9) for x in (0.5, 1.0, 2.0, 4.0)]
    [0.358155425, 0.256082938, 0.129337067, 0.030427704]
    >>> [round(square_wave_half_width(x), 12) for x in (1e-12, 0.001)]
    [0.5, 0.499666777752]
    """
    if epsilon > 300:
        return 0.0
    odds = math.exp(epsilon)
    if epsilon >= 1:
        return (epsilon * odds - odds + 1) / (2 * odds * (odds - 1 - epsilon))
    powers = [epsilon ** (k - 2) / math.factorial(k) for k in range(2, 20)]  # both sides divided by epsilon^2
    return math.fsum((k - 1) * power for k, power in enumerate(powers, 2)) / (2 * odds * math.fsum(powers))


@dataclass(frozen=True)
class WindowLaw:
    """The law of a window as a linear map: D positions, w outputs from each on with probability t, else any of M."""

    positions: int
    width: int
    keep: float

    @property
    def outputs(self) -> int:
        return self.positions + self.width - 1

    def mix(self, point: Floats) -> Floats:
        """The law of the output of somebody drawn from `point`."""
        size, w = self.positions, self.width
        sums = np.empty(self.outputs)
        np.cumsum(point, out=sums[:size])
        sums[size:] = total = sums[size - 1]
        sums[w:] -= sums[: self.outputs - w].copy()
        sums *= self.keep / w
        sums += (1 - self.keep) / self.outputs * total
        return sums

    def expected(self, weights: Floats) -> Floats:
        """The mean of weights of the outputs for each position; `weights` may have several rows."""
        sums = np.zeros((*weights.shape[:-1], self.outputs + 1))
        np.cumsum(weights, axis=-1, out=sums[..., 1:])
        inside = sums[..., self.width :] - sums[..., : self.positions]
        everywhere = (1 - self.keep) / self.outputs * sums[..., -1:]
        found: Floats = self.keep / self.width * inside + everywhere
        return found


class Shape(NamedTuple):
    """A fitted distribution over the positions."""

    shares: Floats
    smoothness: float
    """The part of it that is smooth: 0 for EM alone."""

    @property
    def method(self) -> str:
        return "EMS" if self.smoothness > 0.5 else "EM"


def fit(law: WindowLaw, counts: Counts, smooth: bool | None = None) -> Shape:
    """The distribution behind a tally; `smooth` forces EMS or EM, else the evidence weighs them."""
    if smooth is False:
        return Shape(most_likely(law, counts), 0.0)
    orders = ORDERS[1:] if smooth else ORDERS
    found = list(explanations(law.positions, law.width, law.keep, counts, orders))
    if not any(one.order for one in found):  # two positions have no shape to be smooth
        return Shape(most_likely(law, counts), 0.0)
    evidence = np.array([one.evidence for one in found])
    weights = np.exp(evidence - evidence.max())
    weights /= weights.sum()
    rough = sum(weight for weight, one in zip(weights, found, strict=True) if not one.order)
    if rough < _LEAST:
        rough = 0.0
    shares = sum(weight * one.shares for weight, one in zip(weights, found, strict=True) if one.order)
    shares *= (1 - rough) / shares.sum()
    if rough:
        shares += rough * most_likely(law, counts)
    return Shape(shares, 1 - rough)


def most_likely(law: WindowLaw, counts: Counts) -> Floats:
    """The shares of the positions that make a tally most likely, up to what would follow the noise."""
    seen = counts > 0
    shown, share = counts[seen], counts / counts.sum()

    def passed(point: Floats, mixture: Floats) -> Floats:
        moved = np.maximum(point * law.expected(share / mixture), _TINY)
        moved /= moved.sum()
        return moved

    def judged(point: Floats) -> tuple[Floats, float]:
        mixture = law.mix(point)
        return mixture, float(shown @ np.log(mixture[seen]))

    point = np.full(law.positions, 1 / law.positions)
    mixture, reached = judged(point)
    for _ in range(MOST_PASSES // 2):
        before = reached
        once = passed(point, mixture)
        twice = passed(once, law.mix(once))
        far = _extrapolated(point, once, twice)
        point, (mixture, reached) = twice, judged(twice)
        leapt, beyond = judged(far)
        if beyond >= reached:
            point, mixture, reached = far, leapt, beyond
        if reached - before < _GAIN:
            break
    return point


def _extrapolated(point: Floats, once: Floats, twice: Floats) -> Floats:
    """Where the steps of two passes lead to, by their lengths and by how they bend (SQUAREM, on logarithms)."""
    start, middle, end = np.log(point), np.log(once), np.log(twice)
    first, bend = middle - start, end - 2 * middle + start
    curved = float(twice @ bend**2)
    length = math.sqrt(float(twice @ first**2) / curved) if curved > 0 else 1.0
    length = max(1.0, length)
    moved = start + 2 * length * first + length**2 * bend
    far = np.maximum(np.exp(moved - moved.max()), _TINY)
    far /= far.sum()
    return far  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Unbiased:
    """Unbiased estimates of the means of any weights of the positions, with their variances."""

    law: WindowLaw
    shares: Floats
    """The fitted distribution: what is optimal is chosen for it, and variances are those under it."""
    n: int
    counts: Counts | Floats

    def weights(self, wanted: Floats) -> Floats:
        """Weights of the outputs, one row per row of `wanted`, whose mean is that of `wanted` at every position."""
        law, w, t = self.law, self.law.width, self.law.keep
        rows, chains = len(wanted), -(-law.outputs // w)
        padded = np.zeros(chains * w)
        padded[: law.outputs] = law.mix(self.shares)
        chance, there = padded.reshape(chains, w), (np.arange(chains * w) < law.outputs).reshape(chains, w)
        steps = np.zeros((rows, chains * w))
        steps[:, w : law.outputs] = np.diff(wanted, axis=1) * (w / t)
        grown = np.cumsum(steps.reshape(rows, chains, w), axis=1)
        mass = chance.sum(axis=0)
        grown -= ((chance * grown).sum(axis=1) / mass)[:, None, :]
        grown *= there
        # One equation is left, at the first position; the free numbers share it out at the least variance.
        slope = t / w + (1 - t) / law.outputs * there.sum(axis=0)
        missing = wanted[:, 0] - t / w * grown[:, 0].sum(axis=1) - (1 - t) / law.outputs * grown.sum(axis=(1, 2))
        share = slope / mass
        grown += (missing / float(slope @ share))[:, None, None] * share
        found: Floats = grown.reshape(rows, -1)[:, : law.outputs]
        return found

    def read(self, wanted: Floats) -> Readings:
        """One figure per row of `wanted`: its value, and the variances of its noise and of having asked n people."""
        weights, n = self.weights(wanted), self.n
        square = weights**2 @ self.law.mix(self.shares)
        mean = wanted @ self.shares
        known = wanted**2 @ self.shares
        noise, people = np.maximum(square - known, 0.0) / n, np.maximum(known - mean**2, 0.0) / n
        return Readings(weights @ self.counts / n, noise, people, np.ptp(weights, axis=1) / n)

    def covariance(self, wanted: Floats) -> Floats:
        """Of the figures of `wanted`, as a population: noise and sampling error together."""
        weights, law = self.weights(wanted), self.law.mix(self.shares)
        centred = weights - (weights @ law)[:, None]
        found: Floats = (centred * law) @ centred.T / self.n
        return found
