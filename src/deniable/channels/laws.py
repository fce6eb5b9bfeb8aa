"""Laws in the forms that people give: probability vectors, exact rows of a channel, and named hypotheses.

Vectors    floats; privacy never depends on them
Rows       integers over one denominator, from floats, ints, Fractions, Decimals or "a/b" strings
Hypotheses a float is read as the decimal that prints it, so 0.1/0.2 and 0.3/0.6 are one ratio; each law over its sum.
           {name: law} names the hypotheses, {symbol: probability} the symbols; all laws get the same order
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from numbers import Rational
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable import exact
from deniable.errors import ChannelError, NumberError, ProbabilityError, ShapeError, SpecError
from deniable.exact import fraction, shown
from deniable.labels import Label, as_label, as_labels, label_key, label_spec, load_label
from deniable.specs import integer_text, read_integer

Floats = NDArray[np.float64]

# Vectors that people type or load from files have rounding errors; a larger error is a mistake.
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


# A row of floats with a larger error was not meant to be a distribution.
_ROUNDING = Fraction(1, 10**9)

_REPAIR = ", or let Channel.from_floats(rows, epsilon=...) repair it"

# Rows divided by different sums share a long denominator; this many bits are a quarter of a gigabyte.
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
    """One distribution; errors use these names for the row and its entries."""
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
    # A sum that six digits would show as 1 is shown by its distance from 1.
    short = shown(total)
    return short if short != "1" else f"1 {'+' if total > 1 else '-'} {shown(abs(total - 1))}"


def reduce_rows(numerators: Any, denominator: int) -> tuple[NDArray[np.object_], int]:
    """Integer rows, checked and divided by their common factor."""
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


# -- hypotheses ---------------------------------------------------------------------------------------


def read_hypotheses(p0: Any, p1: Any, inputs: Iterable[Any] | None = None) -> tuple[Any, Any, Iterable[Any] | None]:
    """Two laws in the same order and the names of their symbols; mappings {label: probability} provide the names.

    >>> read_hypotheses({"yes": 0.5, "no": 0.5}, {"no": 0.25, "yes": 0.75})
    ([0.5, 0.5], [0.75, 0.25], ('yes', 'no'))
    """
    (first, second), names = _aligned([p0, p1], ["first", "second"], inputs)
    return first, second, names


def _aligned(laws: list[Any], called: Sequence[str], inputs: Iterable[Any] | None) -> tuple[list[Any], Any]:
    """Laws over the same symbols in the same order, and the names of the symbols, if any."""
    if not any(isinstance(law, Mapping) for law in laws):
        return laws, inputs
    if not all(isinstance(law, Mapping) for law in laws):
        raise ShapeError("one hypothesis has names and the other has none: give all as {label: probability}")
    names = as_labels(list(laws[0]) if inputs is None else inputs, len(laws[0]), "input")
    keyed = [{label_key(as_label(name)): share for name, share in law.items()} for law in laws]
    for law, what in zip(keyed, called, strict=True):
        missing = [name for name in names if label_key(name) not in law]
        if missing or len(law) != len(names):
            odd = f"misses {missing[0]!r}" if missing else f"has {len(law)} symbols, not {len(names)}"
            raise ShapeError(f"the {what} hypothesis {odd}: all need a probability for each of the same symbols")
    return [[law[label_key(name)] for name in names] for law in keyed], names


@dataclass(frozen=True)
class Laws:
    """Several named hypotheses over the same symbols, each as integers over their sum.

    Args:
        weights: The laws as integers: one row per hypothesis, each over its own sum.
        names: Names of the hypotheses.
        inputs: The symbols, if they have names.

    Raises:
        ShapeError: There are fewer than two laws, or they differ in length.
        ProbabilityError: A weight is negative, or all are zero.
    """

    weights: tuple[tuple[int, ...], ...]
    names: tuple[Label, ...]
    inputs: tuple[Label, ...] | None = None

    def __post_init__(self) -> None:
        if len(self.weights) < 2 or len({len(law) for law in self.weights}) != 1 or not self.weights[0]:
            raise ShapeError("give at least two laws, all over the same symbols")
        if any(min(law) < 0 or sum(law) == 0 for law in self.weights):
            raise ProbabilityError("the weights of a hypothesis are not negative and not all zero")

    @classmethod
    def numbered(cls, weights: Sequence[Sequence[int]], inputs: tuple[Label, ...] | None = None) -> Laws:
        """Laws without names are H0, H1, ..."""
        return cls(tuple(map(tuple, weights)), tuple(f"H{place}" for place in range(len(weights))), inputs)

    def renamed(self, names: Sequence[Any]) -> Laws:
        return Laws(self.weights, as_labels(names, self.count, "hypothesis"), self.inputs)

    def spec(self) -> list[dict[str, Any]]:
        """Names and weights as JSON, without the names of the symbols."""
        return [
            {"name": label_spec(name), "weights": [integer_text(weight) for weight in plain_weights(law)]}
            for name, law in zip(self.names, self.weights, strict=True)
        ]

    @classmethod
    def load(cls, written: Any) -> Laws:
        """From JSON."""
        names, weights = [], []
        for law in written if isinstance(written, list) else [None]:
            match law:
                case {"name": name, "weights": list(listed), **rest} if not rest:
                    names.append(load_label(name))
                    weights.append(tuple(read_integer(weight) for weight in listed))
                case _:
                    raise SpecError("laws are a list of objects, each with a name and weights")
        return cls(tuple(weights), as_labels(names, len(names), "hypothesis"))

    @property
    def count(self) -> int:
        return len(self.weights)

    @property
    def size(self) -> int:
        return len(self.weights[0])

    def fractions(self, place: int) -> list[Fraction]:
        total = sum(self.weights[place])
        return [Fraction(w, total) for w in self.weights[place]]


def read_laws(laws: Mapping[Any, Any] | Sequence[Any], inputs: Iterable[Any] | None = None) -> Laws:
    """Read the laws of several hypotheses.

    A probability may be text, such as "1/3".

    Args:
        laws: {name: law} or a list of laws; a law is a list of probabilities or {symbol: probability}.
        inputs: The symbols, in order; taken from the laws if None.

    Returns:
        The laws, over the same symbols.

    Raises:
        ShapeError: There are fewer than two laws, or they differ in length.

    >>> read_laws({"fair": [0.5, 0.5], "biased": [0.75, 0.25]})
    Laws(weights=((1, 1), (3, 1)), names=('fair', 'biased'), inputs=None)
    """
    named = isinstance(laws, Mapping)
    listed = list(laws.values()) if isinstance(laws, Mapping) else list(laws)
    names = as_labels(list(laws) if named else None, len(listed), "hypothesis")
    if len(listed) < 2:
        raise ShapeError("give at least two laws, all over the same symbols")
    called = [repr(name) if named else f"number {place}" for place, name in enumerate(names, start=1)]
    aligned, symbols = _aligned(listed, called, inputs)
    aligned = [[exact.fraction(p, "a probability") if isinstance(p, str) else p for p in law] for law in aligned]
    size = len(aligned[0])
    for law, what in zip(aligned, called, strict=True):
        probability_vector(law, size, f"hypothesis {what}")
    given = None if symbols is None else as_labels(symbols, size, "input")
    return Laws(tuple(integer_weights(law) for law in aligned), names, given)


def integer_weights(values: ArrayLike | Sequence[Any]) -> tuple[int, ...]:
    """Non-negative integers in the proportions of the numbers as typed."""
    listed = values if isinstance(values, list | tuple) else np.asarray(values).tolist()
    fractions: list[Fraction] = [exact.fraction(value, "a probability") for value in listed]
    scale = math.lcm(*{value.denominator for value in fractions})
    weights = [value.numerator * (scale // value.denominator) for value in fractions]
    return plain_weights(weights)


def plain_weights(weights: Sequence[int]) -> tuple[int, ...]:
    """The same proportions in the smallest integers."""
    common = math.gcd(*weights) or 1
    return tuple(weight // common for weight in weights)
