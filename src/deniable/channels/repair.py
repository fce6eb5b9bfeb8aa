"""From a matrix of floats to exact rows of integers that hold their epsilon.

Solvers return probabilities of -1e-17 and zeros beside non-zeros, whose true epsilon is infinite. Here:

1. negative entries become zero, outputs that never happen are dropped, and each row is rounded to integers
   over 2^bits, the rounding error going to the row's largest entry;
2. the result is mixed with an interior channel, one that has slack in every ratio, by the smallest weight
   (rounded up to a multiple of 2^-bits) with which every ratio holds;
3. `Channel.from_floats` makes a channel of the result and verifies it with integers.

The interior channel is uniform or, on a line, a truncated geometric channel at 0.9 epsilon, whichever moves the
rows less.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.channels.adjacency import Adjacency
from deniable.channels.geometric_law import decay_ceil, denominator, fits, matrix
from deniable.errors import InternalError, ProbabilityError, ShapeError
from deniable.labels import Label, as_labels, in_order

Integers = NDArray[np.object_]

_BITS = 96

# Beyond this a "negative probability" is no rounding error of a solver.
_NOISE = Fraction(1, 10**6)


class Rows(NamedTuple):
    """Integer rows over one denominator."""

    numerators: Integers
    denominator: int

    @property
    def floats(self) -> Any:
        # Python divides integers of any size with one correct rounding.
        return (self.numerators / self.denominator).astype(np.float64)


class Repaired(NamedTuple):
    """What `Channel.from_integers` takes."""

    numerators: Integers
    denominator: int
    inputs: tuple[Label, ...]
    outputs: list[Any]


def repair(
    rows: Any,
    epsilon: Fraction | None,
    adjacency: Adjacency,
    inputs: Iterable[Any] | None,
    outputs: Iterable[Any] | None,
) -> Repaired:
    """Exact rows near `rows`, with the labels of what is left; with `epsilon` every ratio of neighbours holds it."""
    law = _fractions(rows)
    width = len(law[0])
    used = [y for y in range(width) if any(row[y] > 0 for row in law)]
    names = None if outputs is None else in_order(outputs, "the outputs")
    if names is not None and len(names) != width:
        raise ShapeError(f"there are {len(names)} output labels for {width} outputs")
    kept = [names[y] for y in used] if names is not None else used
    given = as_labels(inputs, len(law), "input")
    scale = 1 << _bits(law)
    draft = Rows(np.array([_round_row([row[y] for y in used], scale) for row in law], dtype=object), scale)
    if epsilon is None:
        return Repaired(*draft, given, kept)
    candidates = [
        (_smallest_weight(draft, inner, epsilon, adjacency, given), inner)
        for inner in _interiors(draft, width, epsilon, adjacency)
    ]
    return Repaired(*_mix(draft, *min(candidates, key=lambda candidate: _moved(draft, *candidate))), given, kept)


def _fractions(rows: Any) -> list[list[Fraction]]:
    matrix = np.asarray(rows, dtype=object)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ShapeError("a channel to repair is a matrix: rows of one length, none empty")
    law = []
    for x, row in enumerate(matrix):
        entries = [exact.fraction(entry, f"entry {y} of row {x}") for y, entry in enumerate(row)]
        if min(entries) < -_NOISE:
            raise ProbabilityError(
                f"row {x} has an entry of {exact.shown(min(entries))}: too negative to be a rounding error"
            )
        entries = [max(entry, Fraction(0)) for entry in entries]
        total = sum(entries, Fraction(0))
        if total == 0:
            raise ProbabilityError(f"row {x} has no positive entry")
        law.append([entry / total for entry in entries])
    return law


def _bits(law: list[list[Fraction]]) -> int:
    """Enough bits that the smallest positive entry keeps a relative precision of 2^-64."""
    smallest = min(entry for row in law for entry in row if entry > 0)
    return max(_BITS, 64 + math.ceil(-math.log2(smallest.numerator) + math.log2(smallest.denominator)))


def _round_row(row: list[Fraction], scale: int) -> list[int]:
    integers = [math.floor(entry * scale) for entry in row]
    largest = max(range(len(row)), key=lambda y: integers[y])
    integers[largest] += scale - sum(integers)
    return integers


def _interiors(draft: Rows, width: int, epsilon: Fraction, adjacency: Adjacency) -> list[Rows]:
    """Rows with slack in every ratio, on the outputs that are used."""
    rows, columns = draft.numerators.shape
    uniform = Rows(np.ones((rows, columns), dtype=object), columns)
    if adjacency.kind == "line" and adjacency.reach == 1 and columns == width == rows > 1:
        # At 0.9 epsilon: at epsilon itself a geometric channel has no slack to give.
        decay = decay_ceil(epsilon * Fraction(9, 10))
        if fits(decay, rows - 1):
            return [uniform, Rows(matrix(decay, rows - 1), denominator(decay, rows - 1))]
    return [uniform]


def _smallest_weight(
    draft: Rows, inner: Rows, epsilon: Fraction, adjacency: Adjacency, inputs: tuple[Label, ...]
) -> Fraction:
    """The least share of the interior channel with which a <= e^(epsilon d) b holds for all pairs."""
    weight = Fraction(0)
    for i, j, distance in adjacency.pairs(inputs):
        odds = exact.exp_floor(epsilon * distance)
        for x, z in ((i, j), (j, i)):
            excess = draft.numerators[x] * odds.denominator - draft.numerators[z] * odds.numerator
            over = np.flatnonzero(excess > 0)
            slack = inner.numerators[z] * odds.numerator - inner.numerators[x] * odds.denominator
            for y in over:
                if slack[y] <= 0:
                    raise InternalError("the interior channel has no slack")
                lack = Fraction(int(excess[y]), draft.denominator)
                weight = max(weight, lack / (lack + Fraction(int(slack[y]), inner.denominator)))
    return Fraction(math.ceil(weight * (1 << _BITS)), 1 << _BITS)


def _moved(draft: Rows, weight: Fraction, inner: Rows) -> float:
    """How far mixing moves a row: the weight times the distance to the interior channel."""
    return float(weight) * float(np.abs(draft.floats - inner.floats).sum(axis=1).max())


def _mix(draft: Rows, weight: Fraction, inner: Rows) -> Rows:
    w, total = weight.numerator, weight.denominator
    numerators = draft.numerators * ((total - w) * inner.denominator) + inner.numerators * (w * draft.denominator)
    return Rows(numerators, draft.denominator * total * inner.denominator)
