"""Smooth distributions behind the tally of a window: priors on the logarithms of the shares, weighed by their evidence.

Model      the logarithm of the share of a position is a cubic spline with 64 pieces, or any number where the positions
           are few. Its coefficients have a prior: their differences of order k are normal and independent, with mean 0
Orders     0, no smoothness: any coefficient by itself; 1, of steps; 2, of bends: exponential shapes are free; 3, of
           changes of the bend: normal shapes are free, too. What is free has a wide prior, of standard deviation 10
Strength   of an order: one over the variance of its differences, from the stiffest on in steps of 10, until the
           evidence is 6 nats below the best
Fit        the most probable coefficients, by Newton's method with the expected information: a penalized likelihood
Evidence   the probability of the tally under the prior, by Laplace's approximation at the fit
Coarse     positions are taken together to at most 512 cells, outputs to at most 256 bins, with the exact law of these
Source     Silverman 1982 and Nychka 1990 (EM with smoothing is a penalized likelihood); Eilers and Marx 1996 (splines);
           MacKay 1992 (evidence)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from deniable.protocols.tally import Counts
from deniable.results import Floats

ORDERS = (0, 1, 2, 3)
PIECES = 64
MOST_CELLS, MOST_BINS = 512, 256

_STIFFEST = (1.0, 16.0, 0.4, 0.01)
"""Of each order, for a range of length 1: beyond it only what is free is left."""
_STEP, _STEPS = 10.0, 12
_FREE = 10.0
_FALLEN = 6.0
_NEAR = 0.01
"""Nats that Newton's next step would gain at most, where it stops."""
_MOST_STEPS = 12
_TINY = 1e-300


class Explanation(NamedTuple):
    """What one prior makes of a tally."""

    order: int
    evidence: float
    """The logarithm of the tally's probability, up to a number that is the same for all priors."""
    shares: Floats
    """Of the positions."""


class _Prior(NamedTuple):
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
    for order in orders:
        if order and sizes.size < order + 2:
            continue
        prior = _prior(sizes.size, order)
        point, best, strength = np.zeros(prior.rough.size), -math.inf, prior.stiffest
        for _ in range(_STEPS):
            point, evidence = _fitted(matrix, sizes, seen, prior, prior.free + strength * prior.rough, point)
            yield Explanation(order, evidence, _spread(prior.basis @ point, edges, places))
            best, strength = max(best, evidence), strength / _STEP
            if evidence < best - _FALLEN:
                break


def _fitted(
    matrix: Floats, sizes: Counts, counts: Floats, prior: _Prior, precision: Floats, point: Floats
) -> tuple[Floats, float]:
    """The most probable coefficients, from a point on, and the evidence there."""
    n, basis = counts.sum(), prior.basis

    def judged(point: Floats) -> tuple[Floats, Floats, float]:
        logs = basis @ point
        shares = sizes * np.exp(logs - logs.max())
        shares /= shares.sum()
        mixture = np.maximum(matrix @ shares, _TINY)
        return shares, mixture, float(counts @ np.log(mixture) - precision @ point**2 / 2)

    shares, mixture, reached = judged(point)
    for _ in range(_MOST_STEPS):
        slopes = matrix @ (shares[:, None] * (basis - shares @ basis))
        information = slopes.T @ (slopes * (n / mixture)[:, None])
        information[np.diag_indices_from(information)] += precision
        gradient = slopes.T @ (counts / mixture) - precision * point
        step = np.linalg.solve(information, gradient)
        if float(gradient @ step) < 2 * _NEAR:
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


def _spread(logs: Floats, edges: Counts, places: Floats) -> Floats:
    """The shares of the positions in cells with these logarithms of densities, which change evenly in between."""
    sizes = np.diff(edges)
    cells = sizes * np.exp(logs - logs.max())
    between = np.interp(np.arange(edges[-1]), places, logs)
    inside = np.exp(between - np.repeat(np.maximum.reduceat(between, edges[:-1]), sizes))
    cells /= cells.sum() * np.add.reduceat(inside, edges[:-1])
    shares: Floats = inside * np.repeat(cells, sizes)
    return shares


@lru_cache(maxsize=32)
def _prior(cells: int, order: int) -> _Prior:
    size = min(cells, PIECES + 3)
    splines = np.eye(cells) if size == cells else _splines(cells, PIECES)
    differences = np.diff(np.eye(size), order, axis=0)
    # Polynomials below the degree `order` are free; the constant does nothing to shares and is left out.
    polynomials = np.linalg.qr(np.vander(np.linspace(-1, 1, size), max(order, 1), increasing=True))[0]
    others = np.linalg.qr(np.hstack([polynomials, np.eye(size)]))[0][:, polynomials.shape[1] : size]
    rough, turned = np.linalg.eigh(others.T @ differences.T @ differences @ others)
    free = polynomials[:, 1:] * math.sqrt(size)
    basis = splines @ np.hstack([free, others @ turned])
    zeros = np.zeros(free.shape[1])
    stiffest = _STIFFEST[order] * (size - 1) ** max(0, 2 * order - 1)
    return _Prior(basis, np.append(zeros, rough), np.append(zeros + _FREE**-2, np.zeros(rough.size)), stiffest)


def _splines(cells: int, pieces: int) -> Floats:
    """Cubic B-splines with even knots, one column each."""
    at = np.arange(cells) * (pieces / (cells - 1))
    piece = np.minimum(at.astype(np.int64), pieces - 1)
    u = at - piece
    heights = ((1 - u) ** 3, 3 * u**3 - 6 * u**2 + 4, -3 * u**3 + 3 * u**2 + 3 * u + 1, u**3)
    found = np.zeros((cells, pieces + 3))
    for place, height in enumerate(heights):
        found[np.arange(cells), piece + place] = height / 6
    return found


@lru_cache(maxsize=8)
def _coarse(positions: int, width: int, keep: float) -> tuple[Floats, Counts, Counts]:
    """The probability of each bin of outputs from each cell of positions, and where cells and bins begin and end."""
    outputs = positions + width - 1
    edges, bins = (
        np.round(np.linspace(0, many, min(many, most) + 1)).astype(np.int64)
        for many, most in ((positions, MOST_CELLS), (outputs, MOST_BINS))
    )
    # Outputs below e of the window of position x: clip(e - x, 0, w). Summed over e - x they serve all cells and bins.
    below = np.cumsum(np.clip(np.arange(-positions, outputs + 1), 0, width))
    inside = np.diff(-np.diff(below[bins[:, None] - edges[None, :] + positions], axis=1), axis=0)
    anywhere = (1 - keep) / outputs * np.diff(bins)[:, None]
    matrix: Floats = keep / width * inside / np.diff(edges) + anywhere
    return matrix, edges, bins
