"""Columns of answers, whatever they come in: lists, numpy, pandas, polars, Arrow.

Columns that are dictionary-encoded already (Arrow dictionaries, pandas categoricals) give codes and entries, so that
labels are looked up once an entry and not once a row. None of these packages is imported: a column is known by what
it can do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import DomainError


def kind(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def is_absent(value: Any) -> bool:
    """None, NaN, and what pandas has for them."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas' NA is neither equal nor unequal to anything
        return True
    except ValueError:  # an array, which is something, if no answer
        return False


def absent(place: int) -> DomainError:
    return DomainError(
        f'value {place} is missing, and nothing stands for missing answers: say "missing": "no answer" in the '
        'question\'s draft, or dn.Categories([...], missing="no answer")'
    )


def dictionary(values: Any) -> tuple[NDArray[np.int64], Sequence[Any]] | None:
    """Codes and entries of a column that holds, or can cheaply get, a dictionary."""
    if hasattr(values, "cat") and hasattr(values, "dtype") and hasattr(values.cat, "codes"):  # pandas
        return np.asarray(values.cat.codes, dtype=np.int64), list(values.cat.categories)
    if hasattr(values, "to_arrow"):  # polars
        values = values.to_arrow()
    if hasattr(values, "dictionary_encode"):  # Arrow
        array = values.combine_chunks() if hasattr(values, "combine_chunks") else values
        encoded = array if hasattr(array, "dictionary") else array.dictionary_encode()
        codes = encoded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
        return codes, encoded.dictionary.to_pylist()
    return None


def flat(values: Any) -> NDArray[Any]:
    """A flat array; one value counts as a column of one, and mixed kinds stay what they are."""
    if isinstance(values, str | bytes | int | float) or values is None or not hasattr(values, "__len__"):
        values = list(values) if hasattr(values, "__iter__") and not isinstance(values, str | bytes) else [values]
    if isinstance(values, list | tuple):
        kinds = set(map(type, values))
        if kinds == {int} and all(-(1 << 63) <= value < 1 << 63 for value in values):
            return np.array(values, dtype=np.int64)
        if kinds == {float}:
            return np.array(values, dtype=np.float64)
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array
    if hasattr(values, "to_arrow"):  # polars
        values = values.to_arrow()
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
