"""How the tally of a window becomes a distribution: EM or EMS for its shape, unbiased figures for its intervals.

Fit        EM on the positions: the mixture of D windows is a difference of cumulative sums, so that a pass costs O(M).
           Pairs of passes are extrapolated (SQUAREM, on the logarithms of the shares); an extrapolation that lowers
           the log-likelihood is undone. It stops when ten pairs gain less than 0.01 nats together, or after 100
           passes: more would follow the noise
EMS        after each pass the logarithms of the shares are blurred with a bell. A density whose logarithm is a line or
           a parabola, such as an exponential or a normal one, keeps its shape, so that much blur costs little.
           STRENGTHS are twice the variances of the bell, in steps of 1 / 1,024 of the range
Rule       the tally is divided by chance into five parts; EM and each strength are fitted to four of them and judged by
           the log-likelihood of the fifth. From the middle strength on the sum of the five is climbed to its top; of
           those within 1 nat of it the most blur is used. The division is drawn from a fixed seed, so that the same
           tally gives the same result
Unbiased   for any weights u of the positions there are weights h of the outputs whose mean is that of u, whatever the
           distribution. h(y + w) - h(y) is known, so h is free in one number per residue of y modulo w; they are chosen
           for the smallest variance at the fitted distribution. A jump of u from one position to the next costs a
           factor w / t, which is why the share of a single position is hardly known while wide ramps of u are
Source     Li et al. 2020 (square wave, EMS); Eggermont and LaRiccia 1995 (EMS on logarithms); Varadhan and Roland 2008
           (SQUAREM)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from deniable.protocols.tally import Counts
from deniable.results import Floats
from deniable.results.distribution import Readings

STRENGTHS = (0.25, 1.0, 4.0, 16.0, 64.0, 256.0)
FOLDS = 5
MOST_PASSES = 100
MARGIN = 1.0
"""Log-likelihoods of the held-out parts that differ by less, in nats, count as equal."""

STEPS = 1024
"""Of the range: what the blur is measured in."""

_MIDDLE = 16.0
_LATELY, _GAIN = 10, 0.01
_TINY = 1e-300
_SEED = 2020


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


@dataclass(frozen=True)
class Shape:
    """A fitted distribution over the positions."""

    shares: Floats
    strength: float
    """How strongly it was blurred: 0 for EM."""
    passes: int

    @property
    def method(self) -> str:
        return "EMS" if self.strength else "EM"


def fit(law: WindowLaw, counts: Counts, smooth: bool | None = None) -> Shape:
    """The distribution behind a tally; `smooth` forces EMS or EM, else the rule chooses."""
    if smooth is False:
        return _fitted(law, counts, 0.0)
    strengths = STRENGTHS if smooth else (0.0, *STRENGTHS)
    judged = _Judged(law, counts)
    best, last = strengths.index(_MIDDLE), len(strengths) - 1
    while True:
        near = [at for at in (best, best - 1, best + 1) if 0 <= at <= last]
        better = max(near, key=lambda at: judged.score(strengths[at]))
        if better == best:
            break
        best = better
    top = judged.score(strengths[best])
    while best < last and judged.score(strengths[best + 1]) >= top - MARGIN:
        best += 1
    return _fitted(law, counts, strengths[best])


class _Judged:
    """How well each strength foretells a fifth of the reports from the others, all five fifths together."""

    def __init__(self, law: WindowLaw, counts: Counts) -> None:
        random, left = np.random.default_rng(_SEED), counts.astype(np.int64)
        self.law, self.scores, self.parts = law, dict[float, float](), list[tuple[Counts, Counts]]()
        for rest in range(FOLDS, 0, -1):
            held = random.binomial(left, 1 / rest)
            left = left - held
            if held.any() and (held < counts).any():
                self.parts.append((held, counts - held))

    def score(self, strength: float) -> float:
        if strength not in self.scores:
            found = [(held, _fitted(self.law, others, strength).shares) for held, others in self.parts]
            self.scores[strength] = sum(float(held @ np.log(self.law.mix(shares))) for held, shares in found)
        return self.scores[strength]


def _fitted(law: WindowLaw, counts: Counts, strength: float) -> Shape:
    seen, blur = counts > 0, _blur(strength, law.positions)
    shown, share = counts[seen], counts / counts.sum()

    def passed(point: Floats, mixture: Floats) -> Floats:
        moved = np.maximum(blur(point * law.expected(share / mixture)), _TINY)
        moved /= moved.sum()
        return moved

    def judged(point: Floats) -> tuple[Floats, float]:
        mixture = law.mix(point)
        return mixture, float(shown @ np.log(mixture[seen]))

    point = np.full(law.positions, 1 / law.positions)
    mixture, reached = judged(point)
    trace, passes = [reached], 0
    while passes < MOST_PASSES:
        once = passed(point, mixture)
        twice = passed(once, law.mix(once))
        passes += 2
        far = _extrapolated(point, once, twice)
        point, (mixture, reached) = twice, judged(twice)
        leapt, beyond = judged(far)
        if beyond >= reached:
            point, mixture, reached = far, leapt, beyond
        trace.append(reached)
        if len(trace) > _LATELY and abs(trace[-1] - trace[-1 - _LATELY]) < _GAIN:
            break
    return Shape(point, strength, passes)


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


def _blur(strength: float, size: int) -> Callable[[Floats], Floats]:
    """Blurs the logarithms of shares; beyond an end they go on as their mirror image, turned upside down."""
    variance = strength / 2 * (size / STEPS) ** 2
    if not variance:
        return lambda shares: shares
    reach = max(1, math.ceil(4 * math.sqrt(variance)))
    if reach >= size:
        reach = size - 1
    if variance < 0.5:
        bell = np.array([variance / 2, 1 - variance, variance / 2])
        reach = 1
    else:
        bell = np.exp(-0.5 * np.arange(-reach, reach + 1) ** 2 / variance)
        bell /= bell.sum()

    def blurred(shares: Floats) -> Floats:
        logs = np.log(np.maximum(shares, _TINY))
        before, after = 2 * logs[0] - logs[reach:0:-1], 2 * logs[-1] - logs[-2 : -reach - 2 : -1]
        smooth = np.convolve(np.concatenate([before, logs, after]), bell, "valid")
        return np.exp(smooth - smooth.max())  # type: ignore[no-any-return]

    return blurred


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
