"""What an answer can be, and its position 0 .. size - 1.

Categories   a list of labels, order kept; unknown answers are refused, or counted as an explicit `other`
Integers     every whole number from low to high
Strings      any text at all, hashed into cells: nobody has to list the answers beforehand

Answers come as a list, a numpy array, a pandas or polars column, or an Arrow array; columns that are
dictionary-encoded already (Arrow dictionaries, pandas categoricals) are translated once per label, not once per row.
A missing answer (None, NaN, a null) is refused, unless the domain says which answer stands for it.
A message about an answer names its kind and its place, never the answer, and neither does any exception behind it:
this code runs on devices.
"""

from __future__ import annotations

import reprlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from deniable.columns import absent, dictionary, flat, is_absent, kind, unique
from deniable.errors import DomainError, LabelError, SpecError
from deniable.exact import MOST_DIGITS
from deniable.labels import Label, as_label, as_labels, in_order, index_of, label_key, label_spec, load_label
from deniable.texts import as_key, as_text, text_digest

Positions = NDArray[np.int64]
Labels = Sequence[Label] | NDArray[Any]

_MOST_SHOWN, _MOST_NAMED = 8, 20


@dataclass(frozen=True)
class Categories:
    """One of several named answers, in the order given.

    With `other="..."` unknown answers count as that one, with `missing="..."` missing ones do; else both are refused.

    >>> answers = Categories(["never", "once", "often"])
    >>> answers.size, answers.index(["often", "never"]).tolist()
    (3, [2, 0])
    >>> Categories(["yes", "no"], missing="no answer").index(["no", None, float("nan")]).tolist()
    [1, 2, 2]
    """

    values: tuple[Label, ...]
    other: Label | None = None
    missing: Label | None = None

    def __init__(self, values: Labels, other: Label | None = None, missing: Label | None = None) -> None:
        try:
            listed = in_order(values, "the categories")
            for extra in (other, missing):
                if extra is not None and label_key(as_label(extra)) not in index_of([as_label(v) for v in listed]):
                    listed.append(extra)
            labels = as_labels(listed, len(listed), "category")
        except LabelError as wrong:
            raise DomainError(str(wrong)) from None
        for label in labels:
            if not isinstance(label, str | int):
                raise DomainError(f"a category is text, a whole number or a truth value, not {kind(label)}")
            if isinstance(label, int) and abs(label) >= 10**MOST_DIGITS:
                raise DomainError(f"a category has more than {MOST_DIGITS} digits")
        if len(labels) < 2:
            raise DomainError(f"a question needs at least 2 possible answers, not {len(labels)}")
        object.__setattr__(self, "values", labels)
        object.__setattr__(self, "other", None if other is None else as_label(other))
        object.__setattr__(self, "missing", None if missing is None else as_label(missing))

    @property
    def size(self) -> int:
        return len(self.values)

    @property
    def labels(self) -> Sequence[Label]:
        return self.values

    @cached_property
    def _table(self) -> dict[Hashable, int]:
        return index_of(self.values)

    @cached_property
    def _texts(self) -> dict[str, int]:
        return {label: i for i, label in enumerate(self.values) if isinstance(label, str)}

    @cached_property
    def _other(self) -> int | None:
        return None if self.other is None else self._table[label_key(self.other)]

    @cached_property
    def _missing(self) -> int | None:
        return None if self.missing is None else self._table[label_key(self.missing)]

    def index(self, values: Any) -> Positions:
        """Positions of the answers, in the order given."""
        encoded = dictionary(values)
        if encoded is not None:
            codes, entries = encoded
            return self._from_codes(codes, entries)
        array = flat(values)
        if array.dtype.kind in "iub":
            return self._from_codes(*unique(array))
        listed = array.tolist()
        # One dictionary look-up per answer; text in form NFC, which is nearly all text, ends here.
        find, texts = self._find, self._texts
        return np.array(
            [texts[v] if type(v) is str and v in texts else find(v, i) for i, v in enumerate(listed)], dtype=np.int64
        )

    def _from_codes(self, codes: NDArray[Any], entries: Sequence[Any]) -> Positions:
        table = np.zeros(len(entries) + 1, dtype=np.int64)  # the last is for -1, a missing answer
        for place in np.sort(np.unique(codes, return_index=True)[1]).tolist():  # the first refused row is named
            code = int(codes[place])
            table[code] = self._find(None if code < 0 else entries[code], place)
        return np.asarray(table[codes])

    def _find(self, value: Any, place: int) -> int:
        found = self._missing if is_absent(value) else self._place(value)
        if found is None:
            raise absent(place) if is_absent(value) else DomainError(self._refusal(value, place))
        return found

    def _place(self, value: Any) -> int | None:
        try:
            label = as_label(value)
        except LabelError:
            return self._other
        if isinstance(label, float) and label.is_integer():
            label = int(label)  # a column of numbers with gaps is one of floats
        return self._table.get(label_key(label), self._other)

    def _refusal(self, value: Any, place: int) -> str:
        refusal = f"value {place}, {kind(value)}, is not one of {self}"
        if not isinstance(value, str):
            return refusal
        # Which answer it would be is not said.
        if value.strip() != value and self._place(value.strip()) is not None:
            return f"{refusal}; without the blanks around it, it would be one"
        if value.casefold().strip() in {label.casefold() for label in self._texts}:
            return f"{refusal}; but for upper and lower case, it would be one"
        return refusal

    def spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"kind": "categories", "values": [label_spec(value) for value in self.values]}
        extras = (("other", self.other), ("missing", self.missing))
        return spec | {key: label_spec(label) for key, label in extras if label is not None}

    def __repr__(self) -> str:
        shown = [reprlib.repr(value) for value in self.values[:_MOST_SHOWN]]
        if self.size > _MOST_SHOWN:
            shown.append(f"... {self.size - _MOST_SHOWN} more")
        extras = (("other", self.other), ("missing", self.missing))
        rest = "".join(f", {key}={reprlib.repr(label)}" for key, label in extras if label is not None)
        return f"Categories([{', '.join(shown)}]{rest})"

    def __str__(self) -> str:
        shown = ", ".join(str(value) for value in self.values[:_MOST_NAMED]) + (
            ", ..." if self.size > _MOST_NAMED else ""
        )
        return f"the {self.size} categories ({shown})"


@dataclass(frozen=True)
class Integers:
    """A whole number from low to high, both included; 3.0 counts as 3, True does not count as 1.

    >>> Integers(1, 10).index([1, 10.0]).tolist()
    [0, 9]
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        for end in (self.low, self.high):
            if isinstance(end, bool) or not isinstance(end, int | np.integer):
                raise DomainError(f"the ends of a range are whole numbers, not {kind(end)}")
        object.__setattr__(self, "low", int(self.low))
        object.__setattr__(self, "high", int(self.high))
        if self.high <= self.low:
            raise DomainError(f"a range needs low < high, not {self.low} to {self.high}")
        if max(abs(self.low), abs(self.high)) >= 1 << 53:
            raise DomainError("the ends of a range lie within 2^53 of zero")

    @property
    def size(self) -> int:
        return self.high - self.low + 1

    @property
    def labels(self) -> Sequence[Label]:
        return range(self.low, self.high + 1)

    def index(self, values: Any) -> Positions:
        """Positions of the answers, in the order given."""
        array = flat(values)
        if array.dtype.kind == "O":
            array = self._numbers(array)
        if array.dtype.kind not in "iuf":
            raise DomainError(f"an answer to this question is a whole number, not a {array.dtype.name} value")
        outside = (array < self.low) | (array > self.high)
        if array.dtype.kind == "f":
            if np.isnan(array).any():
                raise absent(int(np.argmax(np.isnan(array))))
            outside |= array != np.floor(array)
        if outside.any():
            raise DomainError(f"value {int(np.argmax(outside))} is not one of {self}")
        return array.astype(np.int64) - self.low

    def _numbers(self, array: NDArray[Any]) -> NDArray[np.float64]:
        """Objects of several kinds as numbers; floats hold every whole number of a range."""
        for place, value in enumerate(array):
            if is_absent(value):
                raise absent(place)
            if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
                raise DomainError(f"value {place}, {kind(value)}, is not one of {self}")
            if not self.low <= value <= self.high:
                raise DomainError(f"value {place} is not one of {self}")
        return array.astype(np.float64)

    def spec(self) -> dict[str, Any]:
        return {"kind": "integers", "low": self.low, "high": self.high}

    def __str__(self) -> str:
        return f"the whole numbers from {self.low} to {self.high}"


@dataclass(frozen=True)
class Strings:
    """Any text of up to 4096 bytes, as `cohorts` public hash functions into `cells` cells see it.

    digest = SHA-256("deniable-strings-v1" NUL key NUL cohort NUL text), all in UTF-8, the cohort in decimal digits
    and the text in Unicode form NFC. The cell is the digest's first 8 bytes, little-endian, modulo `cells`, a power
    of two: in a browser, `crypto.subtle.digest` and a mask. The key is public; it makes a survey's hashes its own.

    Two strings share a cell in one cohort with probability 1 / cells, so the n_x people with another string add
    n_x^2 / (cohorts (cells - 1)) to the variance of a count. At 2^16 cells and 64 cohorts that is a standard error of
    at most n / 2048, when all others hold one and the same string, and of n / 19000 when they spread like the words
    of a language. The noise of a one-bit report at epsilon 1 is 4.4 n / 2048 with a million people, and falls below
    the worst case only beyond 19 million. More cells cost memory: a tally has cells x cohorts counters, 32 MiB here.

    >>> Strings().cell("sourdough", cohort=0)
    9847
    """

    cells: int = 1 << 16
    cohorts: int = 64
    key: str = ""
    missing: str | None = None
    """The text that stands for missing answers, which are refused without it."""

    def __post_init__(self) -> None:
        for name, number, most in (("cells", self.cells, 1 << 28), ("cohorts", self.cohorts, 1 << 16)):
            if isinstance(number, bool) or not isinstance(number, int | np.integer):
                raise DomainError(f"the number of {name} is a whole number, not {kind(number)}")
            if not 1 <= number <= most:
                raise DomainError(f"the number of {name} lies between 1 and {most}, not at {number}")
            object.__setattr__(self, name, int(number))
        if self.cells < 2 or self.cells & (self.cells - 1):
            raise DomainError(f"the number of cells is a power of two, at least 2, not {self.cells}")
        object.__setattr__(self, "key", as_key(self.key))
        if self.missing is not None:
            if not isinstance(self.missing, str):
                raise DomainError(f"what stands for missing answers is text, not {kind(self.missing)}")
            object.__setattr__(self, "missing", as_text(self.missing, 0))

    @property
    def size(self) -> int:
        _open()

    @property
    def labels(self) -> Sequence[Label]:
        _open()

    def index(self, values: Any) -> Positions:
        _open()

    def cell(self, text: str, cohort: int) -> int:
        """Where a text (NFC) falls in one cohort."""
        return int.from_bytes(text_digest("strings", self.key, cohort, text)[:8], "little") % self.cells

    def column(self, values: Any) -> tuple[Positions, list[str]]:
        """The different texts of a column, in NFC, and which of them stands where."""
        encoded = dictionary(values)
        if encoded is None:
            listed = list(values) if isinstance(values, list | tuple) else flat(values).tolist()
            if not set(map(type, listed)) <= {str}:
                listed = [self.text(value, place) for place, value in enumerate(listed)]
            table: dict[str, int] = {}
            encoded = np.array([table.setdefault(text, len(table)) for text in listed], dtype=np.int64), list(table)
        codes, entries = encoded
        used, places, within = np.unique(codes, return_index=True, return_inverse=True)
        texts = [""] * used.size
        for which in np.argsort(places).tolist():  # the first refused row is named
            code = int(used[which])
            texts[which] = self.text(None if code < 0 else entries[code], int(places[which]))
        return within, texts

    def text(self, value: Any, place: int) -> str:
        """An answer in NFC; refuses what is none."""
        return self.missing if self.missing is not None and is_absent(value) else as_text(value, place)

    def spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"kind": "strings", "cells": self.cells, "cohorts": self.cohorts, "key": self.key}
        return spec if self.missing is None else spec | {"missing": self.missing}

    def __str__(self) -> str:
        return f"any text, hashed into {self.cells} cells in {self.cohorts} cohorts"


Domain = Categories | Integers | Strings
DomainLike = Domain | Labels | int
"""What a domain may be given as: itself, a list of categories, or a number of answers."""


def as_domain(value: DomainLike) -> Domain:
    """A domain, a list of categories, or a number of answers (then 0 .. number - 1)."""
    if isinstance(value, Categories | Integers | Strings):
        return value
    if isinstance(value, bool) or value is None:
        raise DomainError(f"a domain is a list of categories or dn.Integers(low, high), not {kind(value)}")
    if isinstance(value, int | np.integer):
        if value < 2:
            raise DomainError(f"a question needs at least 2 possible answers, not {value}")
        return Integers(0, int(value) - 1)
    return Categories(value)


def load_domain(spec: Any) -> Domain:
    match spec:
        case {"kind": "categories", "values": list(values), **rest} if set(rest) <= {"other", "missing"}:
            other, missing = (load_label(rest[key]) if key in rest else None for key in ("other", "missing"))
            return Categories([load_label(value) for value in values], other, missing)
        case {"kind": "integers", "low": int(low), "high": int(high), **rest} if not rest:
            return Integers(low, high)
        case {"kind": "strings", "cells": int(cells), "cohorts": int(cohorts), "key": str(key), **rest} if set(
            rest
        ) <= {"missing"}:
            return Strings(cells, cohorts, key, None if "missing" not in rest else str(load_label(rest["missing"])))
    raise SpecError(
        "the domain in the spec is none of categories with values, integers with low and high, "
        "and strings with cells, cohorts and key"
    )


def _open() -> NoReturn:
    raise DomainError("any text may be an answer here, so no answers are listed: use CMS, HCMS, OLHSketch or RAPPOR")
