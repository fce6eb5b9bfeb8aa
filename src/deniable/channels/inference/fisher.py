"""Standard errors of a maximum-likelihood estimate, from the curvature of the likelihood.

Formula    information J = n C diag(1 / m) C^T with m = f C; its inverse among vectors that sum to zero is the
           covariance
Expected   an output that never came is as informative as its probability says. Leaving it out (the observed
           information) makes the errors of rare answers ten times too large at epsilon 8, or infinite
Space      coordinates are the differences to the most common answer: k - 1 of them, in which J is regular where the
           data determine everything. Each is scaled to unit length before anything is called flat
Rank       where it is known from the exact law it says how many directions are flat. Elsewhere, and for laws that are
           regular but beyond floats, a direction is flat below `FLAT` of the largest
Boundary   the constraint f >= 0 is ignored: an entry at zero gets the error that it would have as a free one.
           `support="active"` keeps zero entries fixed instead: narrower, but its intervals miss small
           frequencies far too often (62% of nominal 95% at eight values, epsilon 1, n = 500)
Infinite   where the data leave an entry undetermined (fewer independent rows than inputs)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from deniable.channels._vectors import Floats

# Of the largest singular value of a matrix with rows of unit length: rounding leaves about 1e-16 k of it.
FLAT = 1e-12
# The same for the eigenvalues of a matrix that was added up in single precision.
FLAT_SINGLE = 1e-6
# How much of a unit vector may lie in flat directions while its entry counts as determined.
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
        # An output that the estimate excludes but the channel allows: as if one person in n could cause it.
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
        others -= (others @ rows[self.reference])[:, None]  # no difference where everybody gives the reference
        return np.insert(others, self.reference, 1 - others.sum(axis=0), axis=0).T


def fisher_stderr(
    rows: Floats,
    observed: Floats,
    frequencies: Floats,
    support: Literal["all", "active"] = "all",
    rank: int | None = None,
) -> Floats:
    """Standard errors of `frequencies`, estimated from the counts `observed` through the channel `rows`.

    `rank` is the number of independent rows, where the exact law says it.
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
