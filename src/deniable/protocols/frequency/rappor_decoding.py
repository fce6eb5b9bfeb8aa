"""From counted Bloom filters to counts of strings: regression on the candidates' filters.

Model      of the N_j people in cohort j, y_jb = (N_j / n) sum over x of n_x X_jbx have bit b in their filter, on
           average; X is 1 at the h positions of string x. Every filter has h bits, so the mean over the B bits says
           nothing, and both sides are centred. Strings that are not listed then add h / B - h / B = 0 on average over
           the keys: an incomplete dictionary does not bias the estimate
Fit        G = sum of N_j (X_j^T X_j - h^2 / B), r = X^T y, counts = n G^-1 r: least squares with weights 1 / N_j
Error      noise      n^2 w G^-1, w the variance that flipping adds to one bit of one person; larger where the
                      residuals show more than flipping (unlisted strings that share bits)
           cohorts    who is in which cohort is chance as well: with P_j = n G^-1 (X_j^T X_j - h^2 / B),
                      sum of N_j / n [sum_x n_x P_jvx^2 - (sum_x n_x P_jvx)^2 / n] - (n_v - n_v^2 / n)
Lasso      with more candidates than the filters can tell apart, a non-negative lasso with the universal penalty
           sqrt(2 ln d) standard errors chooses which are fitted together; each other one is then estimated as if it
           alone were added to those. Choosing and estimating from the same data favours the chosen slightly
Source     Erlingsson, Pihur and Korolova 2014; Tibshirani 1996; Beck and Teboulle 2009 (the iteration)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.protocols.tally import Counts

Floats = NDArray[np.float64]

LARGEST_FIT = 1500
_SHARE = 0.8  # of the dimensions, as in the published decoder: beyond, errors explode
_STEPS = 500
_SINGULAR = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Cohorts:
    """The candidates' filters and what was seen."""

    design: Any
    """Sparse, (cohorts * bits) x candidates."""
    sizes: Floats
    seen: Floats
    """Centred number of people with each bit, cohorts x bits."""
    hashes: int
    noise: float

    @classmethod
    def of(cls, filters: NDArray[np.int64], sizes: Counts, shifted: Floats, noise: float) -> Cohorts:
        from scipy.sparse import csc_array

        candidates, cohorts, hashes = filters.shape
        bits = shifted.shape[1]
        rows = (filters + bits * np.arange(cohorts)[:, None]).reshape(-1)
        starts = np.arange(candidates + 1) * cohorts * hashes
        design = csc_array((np.ones(rows.size), rows, starts), shape=(cohorts * bits, candidates))
        return cls(design, sizes.astype(np.float64), shifted - shifted.mean(axis=1, keepdims=True), hashes, noise)

    @property
    def n(self) -> float:
        return float(self.sizes.sum())

    @property
    def bits(self) -> int:
        return int(self.seen.shape[1])

    @property
    def dimensions(self) -> int:
        return int((self.sizes > 0).sum()) * (self.bits - 1)

    @property
    def capacity(self) -> int:
        """How many candidates can be fitted together."""
        return max(1, min(LARGEST_FIT, int(_SHARE * self.dimensions)))

    @property
    def moments(self) -> Floats:
        """r = X^T y."""
        moments: Floats = self.design.T @ self.seen.reshape(-1)
        return moments

    @property
    def diagonal(self) -> float:
        """Every G_vv."""
        return self.n * self.hashes * (1 - self.hashes / self.bits)

    def gram(self, left: Any, right: Any, weights: Floats) -> Floats:
        """X_left^T X_right, cohorts weighted, with the centring."""
        per_row = np.repeat(weights, self.bits)
        product = (left.T @ (right.multiply(per_row[:, None]))).toarray()
        gram: Floats = product - weights.sum() * self.hashes**2 / self.bits
        return gram

    def times_gram(self, point: Floats) -> Floats:
        """G @ point, without G."""
        image = np.repeat(self.sizes, self.bits) * (self.design @ point)
        product: Floats = self.design.T @ image - self.n * self.hashes**2 / self.bits * point.sum()
        return product


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    counts: Floats
    variance: Floats
    unlisted_stderr: float


def fit(data: Cohorts, chosen: NDArray[np.int64]) -> Fitted:
    """Least squares of the chosen candidates together, and of each other one added alone."""
    n, total, moments = data.n, data.design.shape[1], data.moments
    others = np.setdiff1d(np.arange(total), chosen)
    active, rest = data.design[:, chosen], data.design[:, others]
    inverse, unknown = _inverse(data.gram(active, active, data.sizes))
    shared = data.gram(rest, active, data.sizes)
    across = shared @ inverse
    # What is left of each other candidate once the chosen ones have explained their part of its filters.
    left = data.diagonal - np.einsum("ij,ij->i", across, shared)
    left[left < _SINGULAR * data.diagonal] = np.inf

    counts, scale = np.empty(total), np.empty(total)
    counts[chosen] = n * inverse @ moments[chosen]
    counts[others] = n * (moments[others] - across @ moments[chosen]) / left
    scale[chosen] = np.where(unknown, np.inf, np.diag(inverse))
    scale[others] = np.where(np.isinf(left), np.inf, 1 / left)
    noise = n**2 * data.noise * _excess(data, active, counts[chosen])

    held = np.clip(counts[chosen], 0, n)
    chance = [np.zeros(len(chosen)), np.zeros(len(others)), np.zeros(1)]  # for the chosen, the others, the sum
    for j in np.flatnonzero(data.sizes):
        cohort = np.zeros(data.sizes.size)
        cohort[j] = 1.0
        own = data.gram(active, active, cohort)
        together = inverse @ own
        alone = (data.gram(rest, active, cohort) - across @ own) / left[:, None]
        for spread, mixing in zip(chance, (together, alone, together.sum(axis=0, keepdims=True)), strict=True):
            spread += n * data.sizes[j] * (mixing**2 @ held - (mixing @ held) ** 2 / n)

    variance = noise * scale
    variance[chosen] += np.maximum(chance[0] - held + held**2 / n, 0)
    variance[others] += chance[1]
    sum_variance = noise * float(inverse.sum()) + max(0.0, float(chance[2][0]) - held.sum() + held.sum() ** 2 / n)
    return Fitted(counts, variance, math.sqrt(sum_variance + float(variance[others].sum())) / n)


def _inverse(gram: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """The (pseudo-)inverse, and which candidates it says nothing about."""
    try:
        pivots = np.diag(np.linalg.cholesky(gram)) ** 2
        if pivots.size == 0 or pivots.min() > _SINGULAR * pivots.max():
            return np.asarray(np.linalg.inv(gram), dtype=np.float64), np.zeros(len(gram), dtype=np.bool_)
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(gram)
    good = values > _SINGULAR * max(1.0, float(values[-1]))
    inverse = vectors[:, good] / values[good] @ vectors[:, good].T
    unknown: NDArray[np.bool_] = np.square(vectors[:, ~good]).sum(axis=1) > _SINGULAR
    return inverse, unknown


def _excess(data: Cohorts, active: Any, counts: Floats) -> float:
    """How much larger the residuals are than flipping explains, at least 1."""
    image = (active @ counts).reshape(data.seen.shape)
    image = (image - image.mean(axis=1, keepdims=True)) * (data.sizes / data.n)[:, None]
    there = data.sizes > 0
    squares = float((np.square(data.seen - image)[there].sum(axis=1) / data.sizes[there]).sum())
    freedom = data.dimensions - counts.size
    return max(1.0, squares / (freedom * data.noise)) if freedom > 0 else 1.0


def select(data: Cohorts) -> NDArray[np.int64]:
    """The candidates that the lasso keeps, at most half as many as there are dimensions."""
    shares = lasso(data)
    order = np.argsort(-shares, kind="stable")[: min(data.capacity, max(1, data.dimensions // 2))]
    kept: NDArray[np.int64] = np.sort(order[shares[order] > 0])
    return kept


def penalty(data: Cohorts) -> float:
    """The largest of d correlations that noise alone reaches, about."""
    return math.sqrt(2 * math.log(max(2, data.design.shape[1])) * data.noise * data.diagonal)


def lasso(data: Cohorts) -> Floats:
    """The shares b >= 0 that minimize b^T G b / 2 - b^T r + penalty * sum of b, by accelerated proximal steps."""
    moments, price, largest = data.moments, penalty(data), _largest_eigenvalue(data)
    point = np.zeros(moments.size)
    ahead, momentum = point, 1.0
    for _ in range(_STEPS):
        slope = data.times_gram(ahead) - moments + price
        moved = np.maximum(0.0, ahead - slope / largest)
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        step = moved - point
        # Restart where the momentum points uphill.
        if float(slope @ step) > 0:
            following = momentum = 1.0
        ahead = moved + (momentum - 1) / following * step
        settled = float(np.abs(step).max()) < 1e-7 * max(1e-9, float(moved.max()))
        point, momentum = moved, following
        if settled:
            break
    return point


def _largest_eigenvalue(data: Cohorts) -> float:
    """An upper estimate, by the power iteration."""
    vector = np.random.default_rng(0).random(data.design.shape[1]) + 0.5
    value = data.diagonal
    for _ in range(30):
        vector = data.times_gram(vector / np.linalg.norm(vector))
        value = float(np.linalg.norm(vector))
        if value == 0:
            return data.diagonal
    return 1.2 * max(value, data.diagonal)


def non_negative(data: Cohorts) -> Floats:
    """Least squares counts without negative ones."""
    from scipy.optimize import nnls

    values, vectors = np.linalg.eigh(data.gram(data.design, data.design, data.sizes))
    good = values > _SINGULAR * max(1.0, float(values[-1]))
    root = np.sqrt(values[good])
    shares, _ = nnls(root[:, None] * vectors[:, good].T, (vectors[:, good].T @ data.moments) / root)
    counts: Floats = data.n * shares
    return counts
