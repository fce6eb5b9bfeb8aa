"""Columns of answers, read from lists, numpy, pandas, polars or Arrow.

Dictionary-encoded columns (Arrow dictionaries, pandas categoricals) give codes and entries, so that
labels are looked up once per entry and not once per row. None of these packages is imported: a column is recognized
by its methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from deniable.errors import DomainError, IgnoredColumns, ValueRefused

MOST_NAMED = 8
"""Number of columns that a message names."""


def ignore(names: Iterable[Any], used: Iterable[Any], where: str) -> None:
    """Say which columns of a table are left out, by a warning."""
    known = set(used)
    others = [str(name) for name in names if name not in known]
    if others:
        listed = ", ".join(map(repr, others[:MOST_NAMED])) + (", ..." if len(others) > MOST_NAMED else "")
        many = "another column, which is" if len(others) == 1 else f"{len(others)} other columns, which are"
        warn(f"{where} has {many} ignored: {listed}", IgnoredColumns, stacklevel=2)


def kind(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def is_absent(value: Any) -> bool:
    """Whether a value is None, NaN, or the pandas equivalent."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas' NA is neither equal nor unequal to anything
        return True
    except ValueError:  # an array, which is not absent, even if it is not an answer
        return False


def absent(place: int) -> DomainError:
    return ValueRefused(
        " is missing, and nothing stands for missing answers: leave such rows out, or give listed "
        'answers a label for them ("missing": "no answer" in the question\'s draft, '
        'or dn.Categories([...], missing="no answer"))',
        place,
    )


@dataclass(frozen=True, eq=False, slots=True)
class Coded:
    """A column as codes into its distinct entries; -1 is a missing value."""

    codes: NDArray[np.int64]
    entries: Sequence[Any]

    def __len__(self) -> int:
        return len(self.codes)

    def slice(self, start: int, count: int) -> Coded:
        """Some of its rows."""
        return Coded(self.codes[start : start + count], self.entries)

    def map(self, meaning: Callable[[Any], Any]) -> Coded:
        """The column with each entry replaced by `meaning(entry)`."""
        return Coded(self.codes, [meaning(entry) for entry in self.entries])


def coded(values: Any) -> Coded:
    """Any column as codes and entries; 1, 1.0 and True are different entries."""
    found = dictionary(values)
    if found is not None:
        return Coded(*found)
    if hasattr(values, "to_list"):  # polars without pyarrow, and pandas
        values = values.to_list()
    table: dict[Any, int] = {}
    entries: list[Any] = []
    codes = []
    for value in flat(values).tolist():
        try:
            code = -1 if is_absent(value) else table.setdefault((type(value), value), len(entries))
        except TypeError:  # a value that cannot be hashed is an entry of its own
            code = len(entries)
        if code == len(entries):
            entries.append(value)
        codes.append(code)
    return Coded(np.array(codes, dtype=np.int64), entries)


def dictionary(values: Any) -> tuple[NDArray[np.int64], Sequence[Any]] | None:
    """Codes and entries of a column that has, or can cheaply compute, a dictionary."""
    if isinstance(values, Coded):
        return values.codes, values.entries
    if hasattr(values, "cat") and hasattr(values, "dtype") and hasattr(values.cat, "codes"):  # pandas
        return np.asarray(values.cat.codes, dtype=np.int64), list(values.cat.categories)
    values = _arrow(values)
    if hasattr(values, "dictionary_encode"):  # Arrow
        array = values.combine_chunks() if hasattr(values, "combine_chunks") else values
        try:
            encoded = array if hasattr(array, "dictionary") else array.dictionary_encode()
        except NotImplementedError:  # for lists and structures
            return None
        codes = encoded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
        return codes, encoded.dictionary.to_pylist()
    return None


def flat(values: Any) -> NDArray[Any]:
    """A flat array; a single value becomes a column of length one, and values of mixed types keep their types."""
    if isinstance(values, Coded):
        if values.codes.size and values.codes.min() < 0:
            raise absent(int(np.argmin(values.codes)))
        if values.entries and set(map(type, values.entries)) <= {int}:
            return np.array(flat(values.entries)[values.codes])
        values = [values.entries[code] for code in values.codes.tolist()]
    values = _arrow(values)
    if isinstance(values, str | bytes | int | float) or values is None or not hasattr(values, "__len__"):
        values = list(values) if hasattr(values, "__iter__") and not isinstance(values, str | bytes) else [values]
    if isinstance(values, list | tuple):
        kinds = set(map(type, values))
        if kinds == {int} and all(-(1 << 63) <= value < 1 << 63 for value in values):
            return np.array(values, dtype=np.int64)
        if kinds == {float}:
            return np.array(values, dtype=np.float64)
        array = np.empty(len(values), dtype=object)
        if kinds & {list, tuple, np.ndarray}:  # numpy would take lists of one length for a matrix
            for place, value in enumerate(values):
                array[place] = value
        else:
            array[:] = values
        return array
    if hasattr(values, "null_count"):  # Arrow
        if values.null_count:
            raise absent(int(np.argmax(values.is_null())))
        values = values.to_numpy(**({} if hasattr(values, "chunks") else {"zero_copy_only": False}))
    elif hasattr(values, "to_numpy"):  # pandas
        values = values.to_numpy()
    array = np.asarray(values)
    if array.ndim != 1:
        raise DomainError(f"answers are a flat column, not an array of {array.ndim} dimensions")
    return array


def unique(array: NDArray[Any]) -> tuple[NDArray[np.int64], list[Any]]:
    entries, codes = np.unique(array, return_inverse=True)
    return codes, entries.tolist()


def _arrow(values: Any) -> Any:
    """A polars column as an Arrow column, or as a list if pyarrow is not installed."""
    if not hasattr(values, "to_arrow"):
        return values
    try:
        return values.to_arrow()
    except ImportError:
        return values.to_list()
