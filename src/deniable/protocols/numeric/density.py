"""How the tally of a window becomes a distribution: EM or EMS for its shape, unbiased figures for its intervals.

EM         on the positions, for shapes without any smoothness: the mixture of D windows is a difference of cumulative
           sums, so that a pass costs O(M). Pairs of passes are extrapolated (SQUAREM, on the logarithms of the shares);
           an extrapolation that lowers the log-likelihood is undone. It stops when a pair gains less than
           2 e^epsilon / sqrt(n) nats: more would follow the noise, and with a small epsilon passes gain little before
           the shape is there. The rule was chosen by simulation, of 10^4 to 10^6 people
EMS        for smooth shapes: EM with smoothing, as the penalized likelihood that it is. Which smoothness, and how much
           of it, the evidence of the tally says
Rule       every order and strength of smoothness has its evidence, the probability of this tally under it. The shapes
           are averaged, weighed by it; the shape of order 0, no smoothness at all, is that of EM
Unbiased   for any weights u of the positions there are weights h of the outputs whose mean is that of u, whatever the
           distribution. h(y + w) - h(y) is known, so h is free in one number per residue of y modulo w; they are chosen
           for the smallest variance at the fitted distribution. A jump of u from one position to the next costs a
           factor w / t, which is why the share of a single position is hardly known while wide ramps of u are
Model      of smoothness: the logarithm of the share of a position is a cubic spline with 64 pieces, or any number where
           the positions are few. Its coefficients have a prior: their differences of order k are normal and
           independent, with mean 0
Orders     0, no smoothness: any coefficient by itself; 1, of steps; 2, of bends: exponential shapes are free; 3, of
           changes of the bend: normal shapes are free, too. What is free has a wide prior, of standard deviation 10
Ends       orders 2 and 3 once more, for the logarithm as a function of ln(x / (1 - x)): powers of x, such as Zipf's
           law, gamma and beta laws, are free at order 2, and lognormal shapes at order 3
Marks      spikes and jumps, which no smooth curve has: a free number for one cell, or for all cells from one on. They
           are added to the fit with the most evidence, one by one, while each raises it. Any cell is equally likely to
           have one, which costs the logarithm of their number
Strength   of an order: one over the variance of its differences, from the stiffest on in steps of 10, until the
           evidence is 4 nats below the best
Fit        the most probable coefficients, by Newton's method with the expected information: a penalized likelihood. The
           evidence is the probability of the tally under the prior, by Laplace's approximation at the fit
Coarse     positions are taken together to at most 320 cells, outputs to at most 256 bins, with the exact law of these
Source     Li et al. 2020 (square wave, EMS); Varadhan and Roland 2008 (SQUAREM); Silverman 1982 and Nychka 1990 (EM
           with smoothing is a penalized likelihood); Eilers and Marx 1996 (splines); MacKay 1992 (evidence)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from deniable._threads import one_thread
from deniable.protocols.tally import Counts
from deniable.results import Floats
from deniable.results.distribution import Readings
from deniable.results.smooth import MOST_CELLS as MOST_LINEAR, Linear

ORDERS = (0, 1, 2, 3)
PIECES = 64
MOST_CELLS, MOST_BINS = 320, 256

_STIFFEST = (1.0, 16.0, 0.4, 0.01)
"""The largest stiffness per order, for a range of length 1: beyond it only the unpenalized part is left."""
_STEP, _STEPS = 10.0, 12
_FREE = 10.0
_FALLEN = 4.0
NEAR, _NEAR_ENOUGH = 0.01, 0.05
"""Nats that Newton's next step would gain at most, where it stops; for shapes that are averaged, more will do."""
_MOST_STEPS = 12
_STRETCHED, _END = (2, 3), 0.01
"""Orders of smoothness in ln(x / (1 - x)), where powers of x and lognormal shapes are free; x from this on."""
_MOST_MARKS = 6
_PLACES = 2.0
"""Kinds of marks per cell: each is as likely as the others."""
_SPIKE, _JUMP = 6.0, 2.0
"""The standard deviations of the logarithms of spikes and jumps, before the tally is known."""
_TINY = 1e-300


class Explanation(NamedTuple):
    """What one prior makes of a tally."""

    order: int
    evidence: float
    """The logarithm of the tally's probability, up to a number that is the same for all priors."""
    shares: Floats
    """The shares of the positions."""


class Prior(NamedTuple):
    """The logarithms of the cells' densities as a linear map of coefficients whose prior is independent."""

    basis: Floats
    rough: Floats
    """The precision of each coefficient, per unit of strength; 0 of what is free."""
    free: Floats
    """The precision that does not depend on the strength; 0 of what is not free."""
    stiffest: float


def explanations(
    positions: int, width: int, keep: float, counts: Counts, orders: Iterable[int] = ORDERS
) -> Iterator[Explanation]:
    """One per order and strength. The law is that of a window: width w of outputs with probability `keep`, else any."""
    matrix, edges, bins = _coarse(positions, width, keep)
    sizes = np.diff(edges)
    seen = np.add.reduceat(counts, bins[:-1]).astype(np.float64)
    places = (edges[:-1] + edges[1:] - 1) / 2
    fits: list[_Fit] = []
    wanted = tuple(orders)
    for order, stretched in (*((one, False) for one in wanted), *((one, True) for one in _STRETCHED if one in wanted)):
        if sizes.size < (PIECES if stretched else order and order + 2):
            continue
        prior = prior_of(sizes.size, order, stretched=stretched)
        point, best, strength = np.zeros(prior.rough.size), -math.inf, prior.stiffest
        for _ in range(_STEPS):
            point, evidence = _fitted(matrix, sizes, seen, prior, prior.free + strength * prior.rough, point)
            yield Explanation(order, evidence, _spread(prior.basis @ point, edges, places))
            if order:
                fits.append(_Fit(order, prior, strength, point, evidence))
            best, strength = max(best, evidence), strength / _STEP
            if evidence < best - _FALLEN:
                break
    if fits:
        for fit in _marked(matrix, sizes, seen, max(fits, key=lambda one: one.evidence)):
            yield Explanation(fit.order, fit.evidence, _spread(fit.prior.basis @ fit.point, edges, places, fit.marks))


class _Fit(NamedTuple):
    """A fit, and the marks in it: cells that jump or stick out."""

    order: int
    prior: Prior
    strength: float
    point: Floats
    evidence: float
    marks: tuple[int, ...] = ()
    """The cells at which the logarithms are not smooth."""


def _marked(matrix: Floats, sizes: Counts, counts: Floats, fit: _Fit) -> Iterator[_Fit]:
    """Fits with ever more marks, the one that promises most first, while each raises the evidence."""
    n, cells = counts.sum(), sizes.size
    for _ in range(_MOST_MARKS):
        prior, precision = fit.prior, fit.prior.free + fit.strength * fit.prior.rough
        shares = shares_of(prior.basis @ fit.point, sizes)
        mixture = np.maximum(matrix @ shares, _TINY)
        ratios = matrix / mixture[:, None] - 1
        # A spike takes a share from all others; a jump raises all cells from it on.
        first, second = counts @ ratios, np.maximum(counts @ ratios**2, NEAR)
        spikes = np.where(first > 0, first**2 / (2 * second), 0.0)
        slopes = matrix @ (shares[:, None] * (prior.basis - shares @ prior.basis))
        jumps = np.cumsum(((matrix - mixture[:, None]) * shares)[:, ::-1], axis=1)[:, ::-1]
        weighed = slopes * (n / mixture)[:, None]
        information = slopes.T @ weighed + np.diag(precision)
        cross = weighed.T @ jumps
        own = (n / mixture) @ jumps**2 + _JUMP**-2 - (cross * np.linalg.solve(information, cross)).sum(axis=0)
        up = (counts / mixture) @ jumps
        gains = up**2 / (2 * own) - np.log(own * _JUMP**2) / 2
        gains[0] = -np.inf
        at, jump = int(np.argmax(spikes)), int(np.argmax(gains))
        options = []
        if spikes[at] > math.log(_PLACES * cells):
            start = math.log1p(first[at] / second[at] / max(shares[at], _TINY))
            options.append((at, np.arange(cells) == at, start, _SPIKE))
        if gains[jump] > math.log(_PLACES * cells) / 2:
            options.append((jump, np.arange(cells) >= jump, float(up[jump] / own[jump]), _JUMP))
        found = []
        for cell, column, start, spread in options:
            more = Prior(
                np.hstack([prior.basis, column[:, None].astype(np.float64)]),
                np.append(prior.rough, 0.0),
                np.append(prior.free, spread**-2),
                prior.stiffest,
            )
            for strength in (fit.strength, min(prior.stiffest, fit.strength * _STEP)):
                start_at = np.append(fit.point, start)
                point, evidence = _fitted(matrix, sizes, counts, more, more.free + strength * more.rough, start_at)
                evidence -= math.log(_PLACES * cells) * (len(fit.marks) + 1)
                found.append(_Fit(fit.order, more, strength, point, evidence, (*fit.marks, cell)))
        if not found:
            return
        best = max(found, key=lambda one: one.evidence)
        if best.evidence < fit.evidence:
            return
        yield from found
        fit = best


def _fitted(
    matrix: Floats, sizes: Counts, counts: Floats, prior: Prior, precision: Floats, point: Floats
) -> tuple[Floats, float]:
    """The most probable coefficients, from a point on, and the evidence there."""
    n, basis = counts.sum(), prior.basis

    def judged(point: Floats) -> tuple[Floats, Floats, float]:
        shares = shares_of(basis @ point, sizes)
        mixture = np.maximum(matrix @ shares, _TINY)
        return shares, mixture, float(counts @ np.log(mixture) - precision @ point**2 / 2)

    shares, mixture, reached = judged(point)
    for _ in range(_MOST_STEPS):
        slopes = matrix @ (shares[:, None] * (basis - shares @ basis))
        information = slopes.T @ (slopes * (n / mixture)[:, None])
        information[np.diag_indices_from(information)] += precision
        gradient = slopes.T @ (counts / mixture) - precision * point
        step = np.linalg.solve(information, gradient)
        if float(gradient @ step) < 2 * _NEAR_ENOUGH:
            break
        for _ in range(_MOST_STEPS):
            moved = judged(point + step)
            if moved[2] > reached:
                point, (shares, mixture, reached) = point + step, moved
                break
            step = step / 2
        else:
            break
    return point, reached + (np.log(precision).sum() - np.linalg.slogdet(information)[1]) / 2


def shares_of(logs: Floats, sizes: NDArray[Any]) -> Floats:
    """The shares of cells of these sizes, from the logarithms of their densities; size 0 gets no share."""
    there = np.where(sizes > 0, logs, -np.inf)
    shares = sizes * np.exp(there - there.max())
    found: Floats = shares / shares.sum()
    return found


def _spread(logs: Floats, edges: Counts, places: Floats, marks: tuple[int, ...] = ()) -> Floats:
    """The shares of the positions in cells with these logarithms of densities, which change evenly in between.

    At marks they do not.
    """
    sizes = np.diff(edges)
    cells = sizes * np.exp(logs - logs.max())
    between = np.interp(np.arange(edges[-1]), places, logs)
    for mark in marks:
        for cell in range(max(0, mark - 1), min(sizes.size, mark + 2)):
            between[edges[cell] : edges[cell + 1]] = logs[cell]
    inside = np.exp(between - np.repeat(np.maximum.reduceat(between, edges[:-1]), sizes))
    cells /= cells.sum() * np.add.reduceat(inside, edges[:-1])
    shares: Floats = inside * np.repeat(cells, sizes)
    return shares


@lru_cache(maxsize=32)
def prior_of(cells: int, order: int, pieces: int = PIECES, stretched: bool = False) -> Prior:
    """The prior of an order, for `cells` cells; `stretched` near both ends if wanted."""
    size = min(cells, pieces + 3)
    splines = np.eye(cells) if size == cells else _splines(cells, pieces, stretched)
    differences = np.diff(np.eye(size), order, axis=0)
    # Polynomials below the degree `order` are free; the constant does nothing to shares and is left out.
    polynomials = np.linalg.qr(np.vander(np.linspace(-1, 1, size), max(order, 1), increasing=True))[0]
    others = np.linalg.qr(np.hstack([polynomials, np.eye(size)]))[0][:, polynomials.shape[1] : size]
    rough, turned = np.linalg.eigh(others.T @ differences.T @ differences @ others)
    free = polynomials[:, 1:] * math.sqrt(size)
    basis = splines @ np.hstack([free, others @ turned])
    zeros = np.zeros(free.shape[1])
    stiffest = _STIFFEST[order] * (size - 1) ** max(0, 2 * order - 1)
    return Prior(basis, np.append(zeros, rough), np.append(zeros + _FREE**-2, np.zeros(rough.size)), stiffest)


def _splines(cells: int, pieces: int, stretched: bool) -> Floats:
    """Cubic B-splines, one column each, with even knots, or with ever closer ones towards both ends."""
    at = np.linspace(0.0, 1.0, cells)
    if stretched:
        at = np.log((at + _END) / (1 - at + _END))
        at = (at - at[0]) / (at[-1] - at[0])
    at = at * pieces
    piece = np.minimum(at.astype(np.int64), pieces - 1)
    u = at - piece
    heights = ((1 - u) ** 3, 3 * u**3 - 6 * u**2 + 4, -3 * u**3 + 3 * u**2 + 3 * u + 1, u**3)
    found = np.zeros((cells, pieces + 3))
    for place, height in enumerate(heights):
        found[np.arange(cells), piece + place] = height / 6
    return found


@lru_cache(maxsize=8)
def _coarse(positions: int, width: int, keep: float, most_cells: int = MOST_CELLS) -> tuple[Floats, Counts, Counts]:
    """The probability of each bin of outputs from each cell of positions, and where cells and bins begin and end."""
    outputs = positions + width - 1
    edges, bins = (
        np.round(np.linspace(0, many, min(many, most) + 1)).astype(np.int64)
        for many, most in ((positions, most_cells), (outputs, MOST_BINS))
    )
    # Outputs below e of the window of position x: clip(e - x, 0, w). Summed over e - x they serve all cells and bins.
    below = np.cumsum(np.clip(np.arange(-positions, outputs + 1), 0, width))
    inside = np.diff(-np.diff(below[bins[:, None] - edges[None, :] + positions], axis=1), axis=0)
    anywhere = (1 - keep) / outputs * np.diff(bins)[:, None]
    matrix: Floats = keep / width * inside / np.diff(edges) + anywhere
    return matrix, edges, bins


MOST_PASSES = 1000

_GAIN, _WINDOW_GAIN = 10.0, 2.0
"""EM goes on while a pair of passes gains at least this many nats, over the root of the number of people; for a window,
times e^epsilon."""
_LEAST = 1e-3
"""The smallest weight for which EM is run."""


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


class LinearLaw(Protocol):
    """The law of a report, as a linear map of the shares of positions."""

    @property
    def positions(self) -> int: ...

    def mix(self, point: Floats) -> Floats:
        """The law of the output of somebody drawn from `point`."""

    def expected(self, weights: Floats) -> Floats:
        """The mean of weights of the outputs, for each position."""


@dataclass(frozen=True)
class WindowLaw:
    """The law of a window as a linear map: D positions, w outputs from each on with probability t, else any of M."""

    positions: int
    width: int
    keep: float

    @property
    def outputs(self) -> int:
        return self.positions + self.width - 1

    @property
    def odds(self) -> float:
        """How many times as likely an output is inside of the window: e^epsilon."""
        return 1 + self.keep * self.outputs / (self.width * (1 - self.keep))

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


@one_thread
def fit(law: WindowLaw, counts: Counts, smooth: bool | None = None) -> Shape:
    """The distribution behind a tally; `smooth` forces EMS or EM, else the evidence weighs them."""
    gain = _WINDOW_GAIN * law.odds
    if smooth is False:
        return Shape(most_likely(law, counts, gain), 0.0)
    orders = ORDERS[1:] if smooth else ORDERS
    found = list(explanations(law.positions, law.width, law.keep, counts, orders))
    if not any(one.order for one in found):  # two positions have no shape to be smooth
        return Shape(most_likely(law, counts, gain), 0.0)
    weights = weights_of(found)
    rough = sum(weight for weight, one in zip(weights, found, strict=True) if not one.order)
    if rough < _LEAST:
        rough = 0.0
    shares = sum(weight * one.shares for weight, one in zip(weights, found, strict=True) if one.order)
    shares *= (1 - rough) / shares.sum()
    if rough:
        shares += rough * most_likely(law, counts, gain)
    return Shape(shares, 1 - rough)


def weights_of(found: Sequence[Explanation]) -> Floats:
    """What each is worth, by its evidence."""
    evidence = np.array([one.evidence for one in found])
    weights = np.exp(evidence - evidence.max())
    parts: Floats = weights / weights.sum()
    return parts


@one_thread
def most_likely(law: LinearLaw, counts: Counts, gain: float = _GAIN) -> Floats:
    """The shares of the positions that make a tally most likely, up to what would follow the noise."""
    seen = counts > 0
    shown, share = counts[seen], counts / counts.sum()
    enough = gain / math.sqrt(counts.sum())

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
        if reached - before < enough:
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
        value, lowest, highest = weights @ self.counts / n, weights.min(axis=1), weights.max(axis=1)
        return Readings(value, noise, people, (highest - lowest) / n, (highest - value) / n, (value - lowest) / n)

    def thinned(self, fakes: int) -> float:
        return self.n / (self.n - fakes) if fakes < self.n else math.inf

    def linear(self, cells: int) -> Linear:
        """The shares of bins of outputs, as functions of the shares of `cells` positions."""
        matrix, edges, bins = _coarse(cells, self.law.width, self.law.keep, MOST_LINEAR)
        sizes, law = np.diff(bins), self.law.mix(self.shares)

        def moved(weights: Floats, forged: bool) -> Floats:
            each = np.repeat(weights, sizes, axis=1)
            mean, value, low, high = each @ law, each @ self.counts / self.n, each.min(axis=1), each.max(axis=1)
            spread = each**2 @ law - mean**2
            found: Floats = np.stack([spread, high - low, high - value, value - low]) / self.n
            return found

        seen = np.add.reduceat(self.counts, bins[:-1]) / self.n
        return Linear(edges, matrix, seen, np.add.reduceat(law, bins[:-1]) / self.n, moved, self.n)

    def covariance(self, wanted: Floats) -> Floats:
        """The covariance of the figures of `wanted`, for the population: noise and sampling error together."""
        weights, law = self.weights(wanted), self.law.mix(self.shares)
        centred = weights - (weights @ law)[:, None]
        found: Floats = (centred * law) @ centred.T / self.n
        return found
