"""Sets of listed items, and numbers by key: one number for each key of a set.

Sets        "Which of these do you use?": {"mail", "maps"}. An item given twice counts once
KeyNumbers  "Rate the ones that you use": {"mail": 4, "maps": 2.5}. A number beyond an end is clipped to that end
Limit       `at_most` items are reported. A larger set is also an answer: the protocol samples `at_most` of its items
            on the device, each equally likely
Text        a cell of a file is a JSON list or object, or items between semicolons ("mail; maps", "mail: 4; maps: 2.5");
            an empty cell is the empty set
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.columns import Coded, absent, dictionary, is_absent, kind
from deniable.domains.base import Domain, load_domain, wrong_spec
from deniable.domains.interval import Interval
from deniable.domains.listed import DomainLike, ListedDomain, as_domain
from deniable.errors import DomainError, ValueRefused

SEPARATOR = ";"

_LISTS = (list, tuple, set, frozenset)


@dataclass(frozen=True, slots=True, eq=False)
class SetColumn:
    """Encoded sets in sequence: row i has the items `items[starts[i] : starts[i + 1]]`, ascending.

    For numbers by key, `numbers` holds the number of each item.

    Args:
        starts: Where each row begins in `items`; one entry more than there are rows.
        items: The items of all rows.
        numbers: The number of each item, if the answers are numbers by key.
    """

    starts: NDArray[np.int64]
    items: NDArray[np.int64]
    numbers: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> SetColumn:
        """From sorted sets."""
        return cls(_starts(rows), np.fromiter(chain.from_iterable(rows), dtype=np.int64))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.starts)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The row of each item."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def repeat(self, times: int) -> SetColumn:
        """Each set `times` times."""
        return self.take(np.repeat(np.arange(len(self)), times))

    def take(self, rows: NDArray[Any]) -> SetColumn:
        """The sets of some rows."""
        sizes = self.sizes[rows]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(starts[-1]) + np.repeat(self.starts[:-1][rows] - starts[:-1], sizes)
        return SetColumn(starts, self.items[places], None if self.numbers is None else self.numbers[places])

    def __getitem__(self, place: Any) -> Any:
        """One set, or with a slice or an array the sets of several rows."""
        if not isinstance(place, int | np.integer):
            return self.take(np.arange(len(self))[place])
        part = slice(self.starts[place], self.starts[place + 1])
        items = tuple(self.items[part].tolist())
        return items if self.numbers is None else tuple(zip(items, self.numbers[part].tolist(), strict=True))


def _starts(rows: Iterable[Sequence[Any]]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)]).astype(np.int64)


class _OfItems(Domain):
    """The common part of both kinds: listed items, and how many of them are reported."""

    reads: ClassVar[str] = "items"
    is_column: ClassVar[bool] = False
    empty_is_an_answer: bool = True

    items: ListedDomain
    at_most: int

    def _check(self, items: Any, at_most: Any) -> None:
        listed = as_domain(items)
        if not isinstance(listed, ListedDomain):
            raise DomainError(f"the items of a set are a list, or how many there are, not {listed}")
        if getattr(listed, "missing", None) is not None or getattr(listed, "other", None) is not None:
            raise DomainError("the items of a set are listed without other and missing: nothing stands for them")
        if isinstance(at_most, bool) or not isinstance(at_most, int | np.integer) or not 1 <= at_most <= listed.size:
            raise DomainError(f"at_most is a whole number from 1 to {listed.size}, the number of items")
        object.__setattr__(self, "items", listed)
        object.__setattr__(self, "at_most", int(at_most))

    @property
    def least_forms(self) -> int:
        return self.items.size + self.at_most

    def from_column(self, column: Any, typed: bool) -> Any:
        if _arrow_lists(column) is not None:
            return column
        meaning, known = self.reader(typed), {}
        rows = _rows(column)
        for row in rows:
            if isinstance(row, str) and row not in known:
                known[row] = meaning(row)
        return [known[row] if isinstance(row, str) else row for row in rows]

    @property
    def texts(self) -> dict[str, Any]:
        return self.items.texts

    @property
    def choices(self) -> str:
        return f"any of {self.items.choices}"

    @property
    def short(self) -> str:
        return f"sets of {self.items.size:,} items"


@dataclass(frozen=True)
class Sets(_OfItems):
    """Any set of listed items, or of 0 .. N - 1 for a number of items; `at_most` of them are reported.

    Args:
        items: The items: a list, their number, or a listed domain.
        at_most: Number of items that are reported.

    Raises:
        DomainError: `at_most` does not fit the items.

    >>> apps = Sets(["mail", "maps", "music"], at_most=2)
    >>> apps.encode_one({"music", "mail"}), apps.encode_one([])
    ((0, 2), ())
    >>> apps.encode([["maps"], {"mail", "maps"}, []]).sizes.tolist()
    [1, 2, 0]
    """

    kind: ClassVar[str] = "sets"
    nested: ClassVar[tuple[str, ...]] = ("lists",)

    items: ListedDomain
    at_most: int

    def __init__(self, items: DomainLike, at_most: int) -> None:
        self._check(items, at_most)

    def encode(self, values: Any) -> SetColumn:
        """Sets from a list of lists or sets, or a column of lists (Arrow, pandas, polars)."""
        if isinstance(values, set | frozenset):  # one answer
            values = [values]
        arrow = _arrow_lists(values)
        if arrow is not None:
            return self._from_arrow(*arrow)
        rows = _rows(values)
        if rows and not any(is_absent(row) or not isinstance(row, (*_LISTS, np.ndarray)) for row in rows):
            sizes = _starts(rows)
            every = list(chain.from_iterable(row.tolist() if isinstance(row, np.ndarray) else row for row in rows))
            try:
                return _distinct(sizes, self.items.encode(every))
            except (DomainError, TypeError, ValueError):
                pass  # row by row, so that the error gives the row
        return SetColumn.of([self._one(row, place) for place, row in enumerate(rows)])

    def _from_arrow(self, starts: NDArray[np.int64], items: Any) -> SetColumn:
        try:
            return _distinct(starts, self.items.encode(items))
        except DomainError:
            listed = items.to_pylist()
            rows = [listed[one:two] for one, two in pairwise(starts.tolist())]
        return SetColumn.of([self._one(row, place) for place, row in enumerate(rows)])

    def encode_one(self, value: Any) -> tuple[int, ...]:
        return self._one(value, 0)

    def _one(self, value: Any, place: int) -> tuple[int, ...]:
        value = value.tolist() if isinstance(value, np.ndarray) else value
        if not isinstance(value, _LISTS):
            if is_absent(value):
                raise absent(place)
            raise ValueRefused(f", {kind(value)}, is not a set: give a list of items, such as [] or ['a']", place)
        return tuple(sorted({_item(self.items, item, place) for item in value}))

    def answer(self, label: Any) -> Any:
        return frozenset(label)

    def reader(self, typed: bool = True) -> Callable[[str], Any]:
        items = self.items.reader(typed=False)

        def meaning(entry: Any) -> Any:
            if not isinstance(entry, str):
                return entry
            if entry.lstrip().startswith("["):
                return _json(entry)
            return [items(part.strip()) for part in entry.split(SEPARATOR) if part.strip()]

        return meaning

    def answer_key(self, encoded: Any) -> bytes:
        """04, then each position in 8 bytes, little-endian, ascending."""
        return b"\4" + b"".join(int(item).to_bytes(8, "little") for item in encoded)

    @property
    def example(self) -> list[Any]:
        return [self.items.example]

    def translated(self, texts: Mapping[str, Any]) -> Sets:
        return Sets(self.items.translated(texts), self.at_most)

    def spec(self) -> dict[str, Any]:
        return {"kind": "sets", "items": self.items.spec(), "at_most": self.at_most}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Sets:
        match spec:
            case {"kind": "sets", "items": items, "at_most": int(at_most), **rest} if not rest:
                return cls(load_domain(items), at_most)
        raise wrong_spec("sets", "items, a list or a range, and at_most")

    def __repr__(self) -> str:
        return f"Sets({self.items!r}, at_most={self.at_most})"

    def __str__(self) -> str:
        return f"sets of {self.items}, of which at most {self.at_most} are reported"


@dataclass(frozen=True)
class KeyNumbers(_OfItems):
    """A number for each of some listed keys; `at_most` keys are reported.

    Args:
        keys: The keys: a list, their number, or a listed domain.
        interval: The domain of the numbers, or the pair of its ends.
        at_most: Number of keys that are reported.

    Raises:
        DomainError: `at_most` does not fit the keys.

    >>> stars = KeyNumbers(["mail", "maps"], Interval(1, 5, unit="stars"), at_most=2)
    >>> stars.encode_one({"maps": 4, "mail": 9})
    ((0, 5.0), (1, 4.0))
    """

    kind: ClassVar[str] = "key-numbers"
    nested: ClassVar[tuple[str, ...]] = ("structures", "maps")
    reads: ClassVar[str] = "keys"

    items: ListedDomain
    interval: Interval
    at_most: int

    def __init__(self, keys: DomainLike, interval: Interval | tuple[Any, Any], at_most: int) -> None:
        self._check(keys, at_most)
        found = interval if isinstance(interval, Interval) else Interval(*interval)
        object.__setattr__(self, "interval", found)

    def encode(self, values: Any) -> SetColumn:
        """From a list of dictionaries, a column of structures or maps (Arrow), or pairs of key and number."""
        rows = [values] if isinstance(values, Mapping) else _rows(values)
        found = [self._one(row, place) for place, row in enumerate(rows)]
        every = list(chain.from_iterable(found))
        items = np.array([item for item, _ in every], dtype=np.int64)
        return SetColumn(_starts(found), items, np.array([number for _, number in every], dtype=np.float64))

    def encode_one(self, value: Any) -> tuple[tuple[int, float], ...]:
        return self._one(value, 0)

    def _one(self, value: Any, place: int) -> tuple[tuple[int, float], ...]:
        if isinstance(value, list | tuple) and all(isinstance(one, tuple) and len(one) == 2 for one in value):
            if len({one[0] for one in value}) < len(value):
                raise ValueRefused(" has two numbers for one key", place)
            value = dict(value)  # as Arrow gives a map
        if not isinstance(value, Mapping):
            if is_absent(value):
                raise absent(place)
            raise ValueRefused(f", {kind(value)}, is not a dictionary of numbers by key", place)
        found: dict[int, float] = {}
        for key, number in value.items():
            if is_absent(number):
                continue  # Arrow writes a key that only other rows have as a key without a number
            item = _item(self.items, key, place)
            if item in found:
                raise ValueRefused(" has two numbers for one key", place)
            try:
                found[item] = float(self.interval.encode_one(number))
            except DomainError:
                raise ValueRefused(" has something else than a number beside a key", place) from None
        return tuple(sorted(found.items()))

    def answer(self, label: Any) -> Any:
        return dict(label)

    def reader(self, typed: bool = True) -> Callable[[str], Any]:
        keys, numbers = self.items.reader(typed=False), self.interval.reader(typed=False)

        def meaning(entry: Any) -> Any:
            if not isinstance(entry, str):
                return entry
            if entry.lstrip().startswith("{"):
                found = _json(entry)
                return {keys(key): number for key, number in found.items()} if isinstance(found, dict) else found
            pairs = [part.rpartition(":") for part in entry.split(SEPARATOR) if part.strip()]
            if not all(colon for _, colon, _ in pairs):
                return entry
            return {keys(key.strip()): numbers(number.strip()) for key, _, number in pairs}

        return meaning

    def answer_key(self, encoded: Any) -> bytes:
        """05, then for each key its position in 8 bytes and its number as a float in 8, little-endian, ascending."""
        return b"\5" + b"".join(int(item).to_bytes(8, "little") + np.float64(x).tobytes() for item, x in encoded)

    @property
    def example(self) -> dict[Any, float]:
        return {self.items.example: float(self.interval.ends[1])}

    @property
    def texts(self) -> dict[str, Any]:
        return self.items.texts | self.interval.texts

    def translated(self, texts: Mapping[str, Any]) -> KeyNumbers:
        return KeyNumbers(self.items.translated(texts), self.interval.translated(texts), self.at_most)

    def spec(self) -> dict[str, Any]:
        shape = {"keys": self.items.spec(), "interval": self.interval.spec(), "at_most": self.at_most}
        return {"kind": "key-numbers"} | shape

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> KeyNumbers:
        match spec:
            case {"kind": "key-numbers", "keys": keys, "interval": interval, "at_most": int(at_most), **rest} if (
                not rest
            ):
                ends = load_domain(interval)
                if isinstance(ends, Interval):
                    return cls(load_domain(keys), ends, at_most)
        raise wrong_spec("key-numbers", "keys, an interval and at_most")

    @property
    def choices(self) -> str:
        return f"a number from {self.interval.low} to {self.interval.high} for any of {self.items.choices}"

    @property
    def short(self) -> str:
        return f"numbers of {self.items.size:,} keys"

    def __repr__(self) -> str:
        return f"KeyNumbers({self.items!r}, {self.interval!r}, at_most={self.at_most})"

    def __str__(self) -> str:
        return f"numbers by key for {self.items}, of which at most {self.at_most} are reported"


def _item(items: ListedDomain, item: Any, place: int) -> int:
    """The position of one item; an error gives the index of the set, not of the item in it."""
    try:
        if isinstance(item, (*_LISTS, Mapping)):
            raise TypeError
        return int(items.encode_one(item))
    except (DomainError, TypeError, ValueError):
        raise ValueRefused(f" holds {kind(item)} that is not one of the {items.size} items", place) from None


def _rows(values: Any) -> list[Any]:
    """A column as a list with one entry per row; anything but a column is refused."""
    coded = dictionary(values)
    if coded is not None:
        codes, entries = coded
        return [None if code < 0 else entries[code] for code in codes.tolist()]
    for convert in ("to_pylist", "to_list", "tolist"):
        if hasattr(values, convert):
            values = getattr(values, convert)()
            break
    if not isinstance(values, list | tuple):
        raise DomainError(f"sets come as a list with one set per person, not as {kind(values)}")
    return list(values)


def _arrow_lists(values: Any) -> tuple[NDArray[np.int64], Any] | None:
    """Starts and items of a column of lists of Arrow or polars, without a Python object per row."""
    if isinstance(values, Coded):
        return None
    if hasattr(values, "to_arrow"):
        values = values.to_arrow()
    if not (hasattr(values, "type") and hasattr(values.type, "value_type") and hasattr(values, "null_count")):
        return None
    array = values.combine_chunks() if hasattr(values, "combine_chunks") else values
    if not hasattr(array, "offsets") or hasattr(array, "dictionary"):
        return None
    if array.null_count:
        raise absent(int(np.argmax(np.asarray(array.is_null()))))
    offsets = np.asarray(array.offsets).astype(np.int64)
    return offsets - offsets[0], array.flatten()


def _distinct(starts: NDArray[np.int64], items: NDArray[np.int64]) -> SetColumn:
    """Sorted rows without repeated items."""
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.lexsort((items, rows))
    items, rows = items[order], rows[order]
    first = np.ones(items.size, dtype=np.bool_)
    first[1:] = (items[1:] != items[:-1]) | (rows[1:] != rows[:-1])
    counts = np.bincount(rows[first], minlength=len(starts) - 1)
    return SetColumn(np.concatenate([[0], np.cumsum(counts)]), items[first])


def _json(entry: str) -> Any:
    try:
        return json.loads(entry)
    except ValueError:
        return entry
