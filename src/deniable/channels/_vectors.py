"""Reading what a channel is made of and asked about: probability vectors for analysis, exact rows for the law.

Vectors    floats; privacy never depends on them
Rows       integers over one denominator, from floats, ints, Fractions, Decimals or "a/b" strings
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from numbers import Rational
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.errors import ChannelError, NumberError, ProbabilityError, ShapeError
from deniable.exact import fraction, shown

Floats = NDArray[np.float64]

# Vectors that people type or load from files are off by rounding; more than this is a mistake.
TOLERANCE = 1e-6


def finite_vector(values: ArrayLike | Sequence[Any], size: int | None = None, what: str = "vector") -> Floats:
    """A one-dimensional float array without NaN or infinities, of the given size."""
    try:
        vector = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"the {what} must be a flat list of numbers") from None
    if vector.ndim != 1 or vector.size == 0:
        raise ShapeError(f"the {what} must be a flat, non-empty list of numbers, got shape {vector.shape}")
    if size is not None and vector.size != size:
        raise ShapeError(f"the {what} has {vector.size} entries where {size} are needed")
    if not np.isfinite(vector).all():
        raise ProbabilityError(f"the {what} contains NaN or infinity")
    return vector


def counts_vector(values: ArrayLike | Sequence[Any], size: int | None = None, what: str = "counts") -> Floats:
    """Non-negative counts."""
    vector = finite_vector(values, size, what)
    if (vector < 0).any():
        raise ProbabilityError(f"the {what} contain a negative number")
    return vector


def probability_vector(values: ArrayLike | Sequence[Any], size: int | None = None, what: str = "prior") -> Floats:
    """A distribution, divided by its sum when that is within rounding of one."""
    vector = finite_vector(values, size, what)
    if (vector < 0).any():
        raise ProbabilityError(f"the {what} contains a negative probability")
    with np.errstate(over="ignore"):
        total = float(vector.sum())
    if abs(total - 1) > TOLERANCE:
        way_out = "divide it by its sum" if total > 0 else "something must be possible"
        raise ProbabilityError(f"the {what} sums to {total:.6g}, not to 1: {way_out}")
    return vector / total


# -- the rows of a channel, as integers over one denominator ------------------------------------------


# A row of floats that is off by more than this was not meant to be a distribution.
_ROUNDING = Fraction(1, 10**9)

_REPAIR = ", or let Channel.from_floats(rows, epsilon=...) repair it"

# Rows that are divided by different sums share a long denominator; this many bits are a quarter of a gigabyte.
_MOST_BITS = 1 << 31


def read_rows(rows: Any) -> tuple[NDArray[np.object_], int]:
    """Rows of floats, ints, Fractions, Decimals or "a/b" strings that each sum to one."""
    if isinstance(rows, np.ndarray) and rows.ndim != 2:
        raise ShapeError(f"a channel is a matrix, but this array has {rows.ndim} dimensions")
    try:
        table = [list(row) for row in rows]
    except TypeError:
        raise ShapeError("a channel is a list of rows, each a list of probabilities") from None
    if not table or not table[0]:
        raise ShapeError("a channel needs at least one input and one output")
    for x, row in enumerate(table):
        if len(row) != len(table[0]):
            raise ShapeError(f"row {x} has {len(row)} entries, row 0 has {len(table[0])}: rows must be equally long")
    law = [read_row(row, f"row {x}", partial(_entry, x), _REPAIR) for x, row in enumerate(table)]
    denominator = math.lcm(*(entry.denominator for row in law for entry in row))
    if denominator.bit_length() * len(law) * len(law[0]) > _MOST_BITS:
        raise ChannelError("the exact matrix would not fit in memory: Channel.from_floats(rows) rounds it to 96 bits")
    integers = [[entry.numerator * (denominator // entry.denominator) for entry in row] for row in law]
    return _frozen(integers), denominator


def read_row(row: list[Any], name: str, entry_name: Callable[[int], str], remedy: str = "") -> list[Fraction]:
    """One distribution; what is wrong with it is said of the row and its entries by these names."""
    try:
        entries = [fraction(entry, entry_name(y)) for y, entry in enumerate(row)]
    except NumberError as wrong:
        raise ProbabilityError(str(wrong)) from None
    for y, entry in enumerate(entries):
        if entry < 0:
            raise ProbabilityError(f"{entry_name(y)} is negative ({shown(entry)})")
    total = sum(entries, Fraction(0))
    if total == 1:
        return entries
    written_exactly = all(isinstance(entry, Rational) or (isinstance(entry, str) and "/" in entry) for entry in row)
    if written_exactly or abs(total - 1) > _ROUNDING:
        raise ProbabilityError(f"{name} sums to {_sum_shown(total)}, not to 1: divide it by its sum{remedy}")
    return [entry / total for entry in entries]


def _entry(x: int, y: int) -> str:
    return f"entry {y} of row {x}"


def _sum_shown(total: Fraction) -> str:
    # A sum that six digits would show as 1 is shown by what it lacks.
    short = shown(total)
    return short if short != "1" else f"1 {'+' if total > 1 else '-'} {shown(abs(total - 1))}"


def reduce_rows(numerators: Any, denominator: int) -> tuple[NDArray[np.object_], int]:
    """Integer rows, checked and divided by what all entries have in common."""
    try:
        table = [[operator.index(entry) for entry in row] for row in numerators]
        denominator = operator.index(denominator)
    except TypeError:
        raise ProbabilityError("the numerators and the denominator of a channel are integers, in rows") from None
    if denominator < 1:
        raise ProbabilityError("the denominator of a channel is at least 1")
    if not table or not table[0] or any(len(row) != len(table[0]) for row in table):
        raise ShapeError("a channel needs rows that are equally long and not empty")
    for x, row in enumerate(table):
        if min(row) < 0:
            raise ProbabilityError(f"row {x} has a negative entry")
        if sum(row) != denominator:
            total = shown(Fraction(sum(row), denominator))
            raise ProbabilityError(f"row {x} sums to {total} times the denominator, not to the denominator")
    common = math.gcd(denominator, *(entry for row in table for entry in row))
    if common > 1:
        table = [[entry // common for entry in row] for row in table]
    return _frozen(table), denominator // common


def _frozen(table: list[list[int]]) -> NDArray[np.object_]:
    array = np.empty((len(table), len(table[0])), dtype=object)
    array[:] = table
    array.flags.writeable = False
    return array
