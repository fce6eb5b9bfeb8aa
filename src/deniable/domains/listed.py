"""Listed answers: a list of labels, or the whole numbers of a range; each answer has a position 0 .. size - 1.

Categories   a list of labels, order kept; unknown answers are refused, or counted as an explicit `other`
Integers     every whole number from low to high

Answers come as a list, a numpy array, a pandas or polars column, or an Arrow array; dictionary-encoded columns
(Arrow dictionaries, pandas categoricals) are translated once per label, not once per row.
A missing answer (None, NaN, a null) is refused, unless the domain defines an answer for it.
Errors about an answer give its type and its index, never the answer, and neither does any chained exception:
this code runs on devices.
"""

from __future__ import annotations

import reprlib
from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.columns import absent, dictionary, flat, is_absent, kind, unique
from deniable.domains.base import Domain, wrong_spec
from deniable.errors import DomainError, LabelError, ValueRefused
from deniable.exact import MOST_DIGITS
from deniable.labels import (
    Label,
    as_label,
    as_labels,
    in_order,
    index_of,
    label_key,
    label_spec,
    load_label,
    text,
    whole_number,
    written,
)

Positions = NDArray[np.int64]
Labels = Sequence[Label] | NDArray[Any]
DomainLike = Domain | Labels | int
"""Accepted forms of a domain: a domain, a list of categories, or a number of answers."""

_MOST_SHOWN, _MOST_NAMED = 8, 20
_MOST_LISTED = 10_000


class ListedDomain(Domain):
    """A domain whose answers are known beforehand; an encoded answer is its position 0 .. size - 1."""

    is_listed: ClassVar[bool] = True

    @property
    @abstractmethod
    def size(self) -> int: ...

    @property
    @abstractmethod
    def labels(self) -> Sequence[Label]:
        """The answers in the order of their positions."""

    @abstractmethod
    def encode(self, values: Any) -> Positions: ...

    @property
    def least_forms(self) -> int:
        return self.size

    @property
    def short(self) -> str:
        return f"{self.size:,} answers"

    def encode_one(self, value: Any) -> int:
        return int(self.encode([value])[0])

    def index(self, values: Any) -> Positions:
        """Positions of the answers, in the order given."""
        return self.encode(values)

    def answer_key(self, encoded: Any) -> bytes:
        """00 and the position as 8 bytes, little-endian."""
        return b"\0" + int(encoded).to_bytes(8, "little")

    @property
    def example(self) -> Label:
        return self.labels[0]


@dataclass(frozen=True)
class Categories(ListedDomain):
    """One of several named answers, in the order given.

    With `other="..."` unknown answers count as that label, with `missing="..."` missing ones do; else both are refused.

    Args:
        values: The answers.
        other: Label that unknown answers count as; they are refused if None.
        missing: Label that missing answers count as; they are refused if None.

    Raises:
        DomainError: The labels repeat, are too few, or cannot be labels.

    >>> answers = Categories(["never", "once", "often"])
    >>> answers.size, answers.index(["often", "never"]).tolist()
    (3, [2, 0])
    >>> Categories(["yes", "no"], missing="no answer").index(["no", None, float("nan")]).tolist()
    [1, 2, 2]
    """

    kind: ClassVar[str] = "categories"

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

    @property
    def texts(self) -> dict[str, Any]:
        return {"answers": list(self._texts)} if self._texts else {}

    def translated(self, texts: Mapping[str, Any]) -> Categories:
        new = dict(zip(self._texts, texts.get("answers", ()), strict=True))
        values = [new[one] if isinstance(one, str) else one for one in self.values]
        other, missing = (new[one] if isinstance(one, str) else one for one in (self.other, self.missing))
        return Categories(values, other, missing)

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

    @property
    def empty_is_an_answer(self) -> bool:  # type: ignore[override]  # of some, not of all
        return "" in self._texts

    def encode(self, values: Any) -> Positions:
        encoded = dictionary(values)
        if encoded is not None:
            codes, entries = encoded
            return self._from_codes(codes, entries)
        array = flat(values)
        if array.dtype.kind in "iub":
            return self._from_codes(*unique(array))
        listed = array.tolist()
        # One dictionary lookup per answer; text in form NFC, which is nearly all text, ends here.
        find, texts = self._find, self._texts
        return np.array(
            [texts[v] if type(v) is str and v in texts else find(v, i) for i, v in enumerate(listed)], dtype=np.int64
        )

    def encode_one(self, value: Any) -> int:
        if type(value) is str and value in self._texts:
            return self._texts[value]
        return self._find(value, 0)

    def _from_codes(self, codes: NDArray[Any], entries: Sequence[Any]) -> Positions:
        table = np.zeros(len(entries) + 1, dtype=np.int64)  # the last entry is for -1, a missing answer
        for place in np.sort(np.unique(codes, return_index=True)[1]).tolist():  # the first refused row is named
            code = int(codes[place])
            table[code] = self._find(None if code < 0 else entries[code], place)
        return np.asarray(table[codes])

    def _find(self, value: Any, place: int) -> int:
        found = self._missing if is_absent(value) else self._place(value)
        if found is None:
            raise absent(place) if is_absent(value) else ValueRefused(self._refusal(value), place)
        return found

    def _place(self, value: Any) -> int | None:
        try:
            label = as_label(value)
        except LabelError:
            return self._other
        if isinstance(label, float) and label.is_integer():
            label = int(label)  # a number column with gaps is a float column
        return self._table.get(label_key(label), self._other)

    def _refusal(self, value: Any) -> str:
        refusal = f", {kind(value)}, is not one of {self}"
        if not isinstance(value, str):
            return refusal
        # The message does not reveal which answer it would be.
        if value.strip() != value and self._place(value.strip()) is not None:
            return f"{refusal}; without the blanks around it, it would be one"
        if value.casefold().strip() in {label.casefold() for label in self._texts}:
            return f"{refusal}; but for upper and lower case, it would be one"
        return refusal

    def reader(self, typed: bool = True) -> Callable[[str], Any]:
        if all(isinstance(label, str) for label in self.values):
            return str
        texts = set(self._texts) if typed else set()
        table: dict[str, list[Label]] = {}
        for label in self.values:
            for form in written(label):
                if form not in texts or isinstance(label, str):
                    table.setdefault(form, []).append(label)
        numbers = {label for label in self.values if isinstance(label, int) and not isinstance(label, bool)}

        def meaning(entry: str) -> Label:
            found = table.get(entry, [])
            if len(found) > 1:
                raise DomainError("two answers of this question are written alike: text cannot tell them apart")
            number = whole_number(entry)
            return found[0] if found else number if number in numbers else entry

        return meaning

    @property
    def choices(self) -> str:
        if self.size > _MOST_NAMED:
            return str(self)
        return ", ".join(map(text, self.values))

    def spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"kind": "categories", "values": [label_spec(value) for value in self.values]}
        extras = (("other", self.other), ("missing", self.missing))
        return spec | {key: label_spec(label) for key, label in extras if label is not None}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Categories:
        match spec:
            case {"kind": "categories", "values": list(values), **rest} if set(rest) <= {"other", "missing"}:
                other, missing = (load_label(rest[key]) if key in rest else None for key in ("other", "missing"))
                return cls([load_label(value) for value in values], other, missing)
        raise wrong_spec("categories", "values, a list, and perhaps other and missing")

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
class Integers(ListedDomain):
    """A whole number from low to high, both included; 3.0 counts as 3, True does not count as 1.

    Args:
        low: The smallest answer.
        high: The largest answer.

    Raises:
        DomainError: The ends are not whole numbers in order.

    >>> Integers(1, 10).index([1, 10.0]).tolist()
    [0, 9]
    """

    kind: ClassVar[str] = "integers"

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

    def encode(self, values: Any) -> Positions:
        array = flat(values)
        if array.dtype.kind == "O":
            array = self._numbers(array)
        if array.dtype.kind not in "iuf":
            raise DomainError(f"an answer to this question is a whole number, not a {array.dtype.name} value")
        if array.dtype.kind == "f":
            if np.isnan(array).any():
                raise absent(int(np.argmax(np.isnan(array))))
            outside = (array < self.low) | (array > self.high) | (array != np.floor(array))
            if outside.any():
                raise ValueRefused(f" is not one of {self}", int(np.argmax(outside)))
        elif array.size and (int(array.min()) < self.low or int(array.max()) > self.high):
            outside = (array < self.low) | (array > self.high)
            raise ValueRefused(f" is not one of {self}", int(np.argmax(outside)))
        encoded = array.astype(np.int64)
        if self.low:
            encoded -= self.low
        return encoded

    def encode_one(self, value: Any) -> int:
        if type(value) is int and self.low <= value <= self.high:
            return value - self.low
        return super().encode_one(value)

    def _numbers(self, array: NDArray[Any]) -> NDArray[np.float64]:
        """Objects of several types as numbers; floats hold every integer of a range exactly."""
        for place, value in enumerate(array):
            if is_absent(value):
                raise absent(place)
            if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
                raise ValueRefused(f", {kind(value)}, is not one of {self}", place)
            if not self.low <= value <= self.high:
                raise ValueRefused(f" is not one of {self}", place)
        return array.astype(np.float64)

    def reader(self, typed: bool = True) -> Callable[[str], Any]:
        def meaning(entry: str) -> int | str:
            number = whole_number(entry)
            return entry if number is None else number

        return meaning

    def spec(self) -> dict[str, Any]:
        return {"kind": "integers", "low": self.low, "high": self.high}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Integers:
        match spec:
            case {"kind": "integers", "low": int(low), "high": int(high), **rest} if not rest:
                return cls(low, high)
        raise wrong_spec("integers", "low and high, whole numbers")

    def __str__(self) -> str:
        return f"the whole numbers from {self.low} to {self.high}"


def as_domain(value: DomainLike) -> Domain:
    """A domain, a list of categories, or a number of answers (then 0 .. number - 1).

    Args:
        value: A domain, a list of categories, or a number of answers.

    Returns:
        The domain.

    Raises:
        DomainError: It is something else.
    """
    if isinstance(value, Domain):
        return value
    if isinstance(value, bool) or value is None:
        raise DomainError(f"a domain is a list of categories or dn.Integers(low, high), not {kind(value)}")
    if isinstance(value, int | np.integer):
        if value < 2:
            raise DomainError(f"a question needs at least 2 possible answers, not {value}")
        return Integers(0, int(value) - 1)
    return Categories(value)


def as_listed(value: DomainLike) -> ListedDomain:
    """`as_domain` where the answers must be listed.

    Args:
        value: A listed domain, a list of categories, or a number of answers.

    Returns:
        The domain.

    Raises:
        DomainError: The answers are not listed.
    """
    domain = as_domain(value)
    if not isinstance(domain, ListedDomain):
        raise DomainError(f"this needs a list of answers, not {domain}")
    return domain
