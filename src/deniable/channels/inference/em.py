"""The iterative Bayesian update as a numerical method: maximum likelihood with a certificate and standard errors.

Map        x'_i = x_i f_i with f_i = sum_y q_y C_iy / (x C)_y: Bayes' rule averaged over the observed outputs
Promise    the log-likelihood does not fall from one map to the next (by more than rounding)
Stop       log max_i f_i <= tolerance: the log-likelihood per person is concave with slope f and x.f = 1, so
           no distribution on the support of the start is better by more than that many nats
Speed      SQUAREM extrapolates each pair of maps (scheme S3); after a few pairs damped Newton steps finish
           if the number of inputs allows. A candidate that lowers the likelihood is replaced
           by the plain map
Model      the likelihoods C_iy come as a matrix (`MatrixModel`) or as any other object that can mix them (`Model`): a
           protocol has too many reports for a matrix
Source     Dempster, Laird and Rubin 1977; Agrawal and Aggarwal 2001; Varadhan and Roland 2008

Newton's method for a concave function on the simplex, applied to its fixed-point equations.

Promise    a candidate point with positive entries and sum one; the caller keeps it only if it is better
Equations  x_i (g_i - x.g) = 0, which expectation-maximization and Blahut-Arimoto iterate on, and which
           hold at the maximum; with H the negative Hessian and s_i = max(x.g - g_i, 0), a step d solves
           (H + diag(s / x) + damping / x) d = g - x.g - l, where l makes the entries of d sum to zero
Why        entries that belong at zero get there in a few steps without being identified, and the matrix, scaled by
           sqrt(x) from both sides, has eigenvalues of moderate size however small the entries become
Cost       one product and one solution of a k x k system

Standard errors of a maximum-likelihood estimate, from the curvature of the likelihood (Fisher's information).

Formula    information J = n C diag(1 / m) C^T with m = f C; its inverse among vectors that sum to zero is the
           covariance
Expected   an output that was never observed carries the information that its probability implies. Leaving it out
           (the observed information) makes the errors of rare answers ten times too large at epsilon 8, or infinite
Space      coordinates are the differences to the most common answer: k - 1 of them, in which J is regular if the
           data determine everything. Each is scaled to unit length before any direction is classified as flat
Rank       if known from the exact law, it determines how many directions are flat. Otherwise, and for laws that are
           regular but beyond floats, a direction is flat below `FLAT` of the largest
Boundary   the constraint f >= 0 is ignored: an entry at zero gets the error that it would have if it were free.
           `support="active"` keeps zero entries fixed instead: narrower, but its intervals miss small
           frequencies far too often (62% of nominal 95% at eight values, epsilon 1, n = 500)
Infinite   where the data leave an entry undetermined (fewer independent rows than inputs)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from deniable._threads import one_thread
from deniable.channels.laws import Floats

# -- Newton's method ----------------------------------------------------------------------------------


# One step shrinks an entry to no less than this fraction of itself, so that a wrong step can be undone.
SHRINK = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class NewtonSystem:
    """The equations at one point; `candidate` solves them for a given damping."""

    point: Floats
    scale: Floats
    matrix: Floats
    slope: Floats

    @classmethod
    def at(cls, point: Floats, gradient: Floats, root: Floats) -> Self:
        """`root @ root.T` is the negative Hessian."""
        scaled = np.sqrt(point)[:, None] * root
        return cls._of(point, gradient, scaled @ scaled.T)

    @classmethod
    def at_curvature(cls, point: Floats, gradient: Floats, curvature: Floats) -> Self:
        """`curvature` is the negative Hessian itself."""
        scale = np.sqrt(point)
        return cls._of(point, gradient, curvature * np.outer(scale, scale))

    @classmethod
    def _of(cls, point: Floats, gradient: Floats, matrix: Floats) -> Self:
        scale = np.sqrt(point)
        slope = gradient - point @ gradient
        matrix[np.diag_indices_from(matrix)] += np.maximum(-slope, 0.0)
        return cls(point, scale, matrix, scale * slope)

    def candidate(self, damping: float) -> Floats | None:
        matrix = self.matrix.copy()
        matrix[np.diag_indices_from(matrix)] += damping
        try:
            ascent, normal = np.linalg.solve(matrix, np.stack([self.slope, self.scale], axis=1)).T
        except np.linalg.LinAlgError:
            return None
        with np.errstate(all="ignore"):
            step = self.scale * (ascent - normal * ((self.scale @ ascent) / (self.scale @ normal)))
            moved = np.maximum(self.point + step, SHRINK * self.point)
            moved /= moved.sum()
        return moved if np.isfinite(moved).all() else None


Acceleration = Literal["plain", "squarem", "newton"]

WARM_UP = 5  # extrapolated pairs before the first Newton step
NEWTON_LIMIT = 4096  # inputs; beyond, the k x k system costs more than it saves
EXTRAPOLATED_SHRINK = 0.1  # an extrapolation below zero stops at this fraction of the plain map's value


class Model(Protocol):
    """The likelihoods of the observations, C_iy for input i and observation y, in the fastest form."""

    @property
    def newton(self) -> bool:
        """Whether Newton steps are worth their cost."""

    def mix(self, point: Floats) -> Floats:
        """sum_i x_i C_iy for each y."""

    def update(self, point: Floats, share: Floats) -> tuple[Floats, Floats]:
        """The mixture m, and the factors f_i = sum_y share_y C_iy / m_y."""

    def system(self, point: Floats, factor: Floats, weights: Floats) -> NewtonSystem:
        """Newton's equations; the negative Hessian is sum_y weights_y C_iy C_jy."""


@dataclass(frozen=True, slots=True, eq=False)
class MatrixModel:
    """Likelihoods as a matrix, inputs x observations."""

    matrix: Floats

    @property
    def newton(self) -> bool:
        return len(self.matrix) <= NEWTON_LIMIT

    def mix(self, point: Floats) -> Floats:
        mixture: Floats = point @ self.matrix
        return mixture

    def update(self, point: Floats, share: Floats) -> tuple[Floats, Floats]:
        mixture = self.mix(point)
        return mixture, self.matrix @ (share / mixture)

    def system(self, point: Floats, factor: Floats, weights: Floats) -> NewtonSystem:
        return NewtonSystem.at(point, factor, self.matrix * np.sqrt(weights))


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Where the iteration stopped. `trace` holds the log-likelihood per person at each map."""

    point: Floats
    factor: Floats
    gap: float
    trace: Floats
    converged: bool


@one_thread
def maximize(
    model: Model,
    share: Floats,
    start: Floats,
    acceleration: Acceleration = "newton",
    tolerance: float = 1e-10,
    max_maps: int = 10_000,
    report: Callable[[int, float], None] | None = None,
) -> Solution:
    """Maximize share.log(mixture of x) over distributions x on the support of `start`.

    `share` must be positive (leave out unobserved outputs) and so must the mixture of `start`.
    """
    support = start > 0
    ascent = _Ascent(model, share, [])
    point, wait, damping = start / start.sum(), WARM_UP, 1e-4
    newton = acceleration == "newton" and model.newton
    while True:
        marginal, factor = ascent.map(point)
        gap = _gap(factor, support)
        if report is not None:
            report(len(ascent.trace), gap)
        if gap <= tolerance or len(ascent.trace) >= max_maps:
            break
        if newton and wait <= 0:
            found, damping = ascent.newton(point, marginal, factor, damping)
            if found is not None:
                point = found
                continue
            wait = 1
        once = _normalized(point * factor)
        if acceleration == "plain" or len(ascent.trace) + 1 >= max_maps:
            point = once
            continue
        wait -= 1
        point = ascent.extrapolate(point, once)
    converged = gap <= tolerance
    if converged:
        point, factor, gap = _snap(ascent, point, factor, gap, tolerance, support)
    return Solution(point, factor, gap, np.array(ascent.trace), converged)


@dataclass(slots=True)
class _Ascent:
    model: Model
    share: Floats
    trace: list[float]

    def map(self, point: Floats) -> tuple[Floats, Floats]:
        marginal, factor = self.model.update(point, self.share)
        self.trace.append(float(self.share @ np.log(marginal)))
        return marginal, factor

    def gain(self, old: Floats, new: Floats, marginal: Floats | None = None) -> float:
        """The gain of `new` over `old`: computed from the difference, because close to the maximum
        the two log-likelihoods agree in every digit long before the points do."""
        if marginal is None:
            marginal = self.model.mix(old)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(self.share @ np.log1p(self.model.mix(new - old) / marginal))

    def extrapolate(self, point: Floats, once: Floats) -> Floats:
        twice = _normalized(once * self.map(once)[1])
        first = once - point
        bend = (twice - once) - first
        curvature = float(np.linalg.norm(bend))
        length = float(np.linalg.norm(first)) / curvature if curvature > 0 else 1.0
        if length <= 1.0:
            return twice
        far = point + 2 * length * first + length**2 * bend
        far = _normalized(np.where(far > 0, far, EXTRAPOLATED_SHRINK * twice))
        return far if self.gain(twice, far) >= 0 else twice

    def newton(self, point: Floats, marginal: Floats, factor: Floats, damping: float) -> tuple[Floats | None, float]:
        system = self.model.system(point, factor, self.share / marginal**2)
        for _ in range(4):
            candidate = system.candidate(damping)
            if candidate is not None and self.gain(point, candidate, marginal) > 0:
                return candidate, max(damping / 10, 1e-13)
            damping *= 10
        return None, damping


def _normalized(point: Floats) -> Floats:
    normalized: Floats = point / point.sum()
    return normalized


def _gap(factor: Floats, support: NDArray[np.bool_]) -> float:
    return max(float(np.log(factor[support].max())), 0.0)


def _snap(
    ascent: _Ascent,
    point: Floats,
    factor: Floats,
    gap: float,
    tolerance: float,
    support: NDArray[np.bool_],
) -> tuple[Floats, Floats, float]:
    """Set entries that tend to zero to zero, if the certificate still holds."""
    leaving = (point > 0) & (point <= 1 - factor)
    if not leaving.any() or leaving.all():
        return point, factor, gap
    snapped = _normalized(np.where(leaving, 0.0, point))
    if not (ascent.model.mix(snapped) > 0).all():
        return point, factor, gap
    new = ascent.model.update(snapped, ascent.share)[1]
    new_gap = _gap(new, support)
    return (snapped, new, new_gap) if new_gap <= tolerance else (point, factor, gap)


# -- a progress bar -------------------------------------------------------------------------------------


@contextmanager
def progress_bar(wanted: bool, title: str, tolerance: float) -> Iterator[Callable[[int, float], None] | None]:
    """Yields the callback for `maximize` after each update, or None."""
    if not wanted:
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn(title), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns) as bar:
        task = bar.add_task("", total=1.0)
        reach: list[float] = []

        def report(iteration: int, gap: float) -> None:
            # Progress is measured in digits of the gap: from the first one to the tolerance.
            digits = -float(np.log(max(gap, tolerance)))
            reach[:] = reach or [digits]
            whole = -float(np.log(tolerance)) - reach[0]
            done = 1.0 if whole <= 0 else (digits - reach[0]) / whole
            bar.update(task, completed=done, description=f"{iteration} updates, gap {gap:.1e}")

        yield report


# Relative to the largest singular value of a matrix with rows of unit length: rounding leaves about 1e-16 k of it.
FLAT = 1e-12
# The same for the eigenvalues of a matrix that was summed in single precision.
FLAT_SINGLE = 1e-6
# Maximum part of a unit vector in flat directions while its entry counts as determined.
_HIDDEN = 1e-7


@dataclass(frozen=True, slots=True, eq=False)
class Curvature:
    """The information among the differences to the most common answer, scaled and decomposed."""

    directions: Floats
    sizes: Floats
    """Singular values of the scaled root of the information."""
    right: Floats
    flat: NDArray[np.bool_]
    lengths: Floats
    reference: int
    weights: Floats
    """sqrt(n / m) of each output; 0 for impossible ones."""

    @classmethod
    def of(cls, rows: Floats, frequencies: Floats, n: float, rank: int | None = None) -> Curvature:
        size = frequencies.size
        marginal = frequencies @ rows
        # An output that the estimate excludes but the channel allows counts as if one person in n could cause it.
        marginal = np.where(marginal > 0, marginal, rows.max(axis=0) / n)
        weights = np.sqrt(np.divide(n, marginal, out=np.zeros_like(marginal), where=marginal > 0))
        reference = int(np.argmax(frequencies))
        root = (np.delete(rows, reference, axis=0) - rows[reference]) * weights
        lengths = np.sqrt((root**2).sum(axis=1))
        scaled = np.divide(root, lengths[:, None], out=np.zeros_like(root), where=lengths[:, None] > 0)
        directions, sizes, right = np.linalg.svd(scaled, full_matrices=rows.shape[1] < size - 1)
        sizes = np.concatenate([sizes, np.zeros(size - 1 - sizes.size)])
        flat = sizes <= FLAT * sizes[0]
        if rank is not None:
            flat |= np.arange(size - 1) >= rank - 1
        return cls(directions, sizes, right, flat, lengths, reference, weights)

    def errors(self) -> Floats:
        return _errors(self.directions, self.sizes**2, self.flat, self.lengths, self.reference)

    def influence(self, rows: Floats) -> Floats:
        """h[y, v]: the efficient unbiased estimate of entry v is the mean of h over the reports."""
        curved = np.flatnonzero(~self.flat)
        inverse = np.divide(1.0, self.lengths, out=np.zeros_like(self.lengths), where=self.lengths > 0)
        parts = self.directions[:, curved] / self.sizes[curved] * inverse[:, None]
        others = (parts @ self.right[curved]) * self.weights
        others -= (others @ rows[self.reference])[:, None]  # no difference if everybody gives the reference answer
        return np.insert(others, self.reference, 1 - others.sum(axis=0), axis=0).T


def fisher_stderr(
    rows: Floats,
    observed: Floats,
    frequencies: Floats,
    support: Literal["all", "active"] = "all",
    rank: int | None = None,
) -> Floats:
    """Standard errors of `frequencies`, estimated from the counts `observed` through the channel `rows`.

    `rank` is the number of independent rows, if the exact law gives it.

    Args:
        rows: The channel's matrix.
        observed: Count of each output.
        frequencies: The estimated shares.
        support: "all" inputs are free, or only the "active" ones with a positive share.
        rank: Number of independent rows, if the exact law gives it.

    Returns:
        A standard error per input; zero where an input is not free.
    """
    free = np.ones(frequencies.size, dtype=bool) if support == "all" else frequencies > 0
    errors = np.zeros(frequencies.size)
    if free.sum() >= 2:
        known = rank if support == "all" else None
        errors[free] = Curvature.of(rows[free], frequencies[free], float(observed.sum()), known).errors()
    return errors


def information_stderr(information: Floats, frequencies: Floats) -> Floats:
    """The same from a matrix that equals J, as observed, up to constants per row and per column."""
    size = len(information)
    if size < 2:
        return np.zeros(size)
    reference = int(np.argmax(frequencies))
    others = np.delete(np.arange(size), reference)
    between = information[np.ix_(others, others)] - information[others, reference][:, None]
    between += information[reference, reference] - information[reference, others]
    lengths = np.sqrt(np.maximum(np.diagonal(between), 0.0))
    outer = np.outer(lengths, lengths)
    scaled = np.divide(between, outer, out=np.zeros_like(between), where=outer > 0)
    sizes, directions = np.linalg.eigh(scaled)
    flat = sizes <= FLAT_SINGLE * max(float(sizes[-1]), 0.0)
    return _errors(directions, sizes, flat, lengths, reference)


def _errors(directions: Floats, sizes: Floats, flat: NDArray[np.bool_], lengths: Floats, reference: int) -> Floats:
    """Errors of all entries from the scaled information among the differences to one of them."""
    seen = lengths > 0
    inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=seen)
    # One row per entry: in scaled coordinates, an entry is its own difference, the reference minus the sum of them all.
    entries = np.vstack([np.diag(inverse), -inverse])
    parts = entries @ directions
    curved = ~flat
    variance = (parts[:, curved] ** 2 / sizes[curved]).sum(axis=1)
    hidden = (parts[:, flat] ** 2).sum(axis=1) > _HIDDEN * (entries**2).sum(axis=1)
    hidden |= np.append(~seen, not seen.all())
    variance[hidden] = np.inf
    order = np.insert(np.arange(lengths.size), reference, lengths.size)
    errors: Floats = np.sqrt(variance)[order]
    return errors
