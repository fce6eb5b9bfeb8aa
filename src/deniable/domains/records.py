"""A record: one answer for each of several named columns, each with a domain of its own."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from deniable._extras import require
from deniable.columns import kind
from deniable.domains.base import Domain, load_domain, wrong_spec
from deniable.domains.listed import DomainLike, as_domain
from deniable.errors import DomainError, LabelError
from deniable.labels import as_label

MOST_COLUMNS = 64


@dataclass(frozen=True, slots=True, eq=False)
class RecordColumns:
    """Encoded records, column by column."""

    columns: tuple[Any, ...]
    count: int

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, place: int) -> tuple[Any, ...]:
        found = (column[place] for column in self.columns)
        return tuple(one.item() if isinstance(one, np.generic) else one for one in found)


@dataclass(frozen=True)
class Records(Domain):
    """Several answers of one person: {"age": Integers(18, 99), "smoke": ["yes", "no"]}.

    An encoded record is a tuple of encoded answers. Every column is checked, also those that are not reported.

    >>> people = Records({"smoke": ["yes", "no"], "children": 10})
    >>> people.encode_one({"smoke": "no", "children": 2}), people.names
    ((1, 2), ('smoke', 'children'))
    """

    kind: ClassVar[str] = "records"

    reads: ClassVar[str] = "attributes"

    columns: tuple[tuple[str, Domain], ...]

    def __init__(self, columns: Mapping[str, DomainLike]) -> None:
        if not isinstance(columns, Mapping):
            raise DomainError(f"the columns of a record are a dictionary of domains by name, not {kind(columns)}")
        if not 1 <= len(columns) <= MOST_COLUMNS:
            raise DomainError(f"a record has 1 to {MOST_COLUMNS} columns, not {len(columns)}")
        listed = []
        for name, value in columns.items():
            try:
                label = as_label(name)
            except LabelError as wrong:
                raise DomainError(str(wrong)) from None
            if not isinstance(label, str) or not label:
                raise DomainError(f"the name of a column is text, not {kind(name)}")
            domain = as_domain(value)
            if isinstance(domain, Records):
                raise DomainError(f"column {label!r} is a record itself: give its columns")
            listed.append((label, domain))
        if len({name for name, _ in listed}) < len(listed):
            raise DomainError("two columns have one name in Unicode form NFC: rename one")
        object.__setattr__(self, "columns", tuple(listed))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    def __getitem__(self, name: str) -> Domain:
        for known, domain in self.columns:
            if known == name:
                return domain
        raise DomainError(f"there is no column {name!r}; there are {', '.join(self.names)}")

    def encode(self, values: Any) -> RecordColumns:
        """Records from a table (pandas, polars, Arrow), a dictionary of columns, or a list of dictionaries."""
        columns = self._columns(values)
        encoded = []
        for name, domain in self.columns:
            try:
                encoded.append(domain.encode(columns[name]))
            except DomainError as wrong:
                raise DomainError(f"column {name!r}: {wrong}") from None
        counts = {len(column) for column in encoded}
        if len(counts) > 1:
            raise DomainError("the columns of these records have different lengths")
        return RecordColumns(tuple(encoded), counts.pop())

    def _columns(self, values: Any) -> Mapping[str, Any]:
        if isinstance(values, Mapping):
            lists = all(hasattr(column, "__len__") and not isinstance(column, str) for column in values.values())
            self._check_names(values)
            return values if lists else {name: [value] for name, value in values.items()}
        if isinstance(values, list | tuple):
            for place, record in enumerate(values):
                if not isinstance(record, Mapping):
                    raise DomainError(
                        f"value {place}, {kind(record)}, is not a record, a dictionary of answers by name"
                    )
                self._check_names(record)
            return {name: [record[name] for record in values] for name in self.names}
        if not hasattr(values, "column") and hasattr(values, "__arrow_c_stream__"):
            values = require("pyarrow", "files").table(values)
        if hasattr(values, "column_names"):  # Arrow
            names = list(values.column_names)
            self._check_names(dict.fromkeys(names))
            return {name: values.column(names.index(name)) for name in self.names}
        if hasattr(values, "type") and hasattr(values, "flatten"):  # Arrow structures
            struct_array = values.combine_chunks() if hasattr(values, "combine_chunks") else values
            names = [field.name for field in struct_array.type]
            self._check_names(dict.fromkeys(names))
            return {name: struct_array.field(names.index(name)) for name in self.names}
        raise DomainError(f"records come as a table or as dictionaries of answers by name, not as {kind(values)}")

    def _check_names(self, record: Mapping[str, Any]) -> None:
        names = set(self.names)
        if any(name not in names for name in record):
            raise DomainError(f"a record has a column that is none of {', '.join(self.names)}")
        missing = [name for name in self.names if name not in record]
        if missing:
            raise DomainError(f"a record lacks the column {missing[0]!r}: every column needs an answer")

    def encode_one(self, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, Mapping):
            raise _no_record(value, 0)
        self._check_names(value)
        encoded = []
        for name, domain in self.columns:
            try:
                encoded.append(domain.encode_one(value[name]))
            except DomainError as wrong:
                raise DomainError(f"column {name!r}: {wrong}") from None
        return tuple(encoded)

    def reader(self, typed: bool = True) -> Callable[[str], Any]:
        """A record as JSON text: {"smoke": "yes", "age": 44}."""
        import json

        def meaning(entry: str) -> Any:
            try:
                return json.loads(entry)
            except ValueError:
                return entry

        return meaning

    def answer_key(self, encoded: Any) -> bytes:
        """03, then the key of each column after its length in 4 bytes, little-endian."""
        keys = [domain.answer_key(one) for (_, domain), one in zip(self.columns, encoded, strict=True)]
        return b"\3" + b"".join(struct.pack("<I", len(key)) + key for key in keys)

    @property
    def example(self) -> dict[str, Any]:
        return {name: domain.example for name, domain in self.columns}

    @property
    def choices(self) -> str:
        return "; ".join(f"{name}: {domain.choices}" for name, domain in self.columns)

    def spec(self) -> dict[str, Any]:
        return {
            "kind": "records",
            "columns": [{"name": name, "domain": domain.spec()} for name, domain in self.columns],
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Records:
        match spec:
            case {"kind": "records", "columns": list(columns), **rest} if not rest:
                if all(isinstance(column, Mapping) and set(column) == {"name", "domain"} for column in columns):
                    found = {column["name"]: load_domain(column["domain"]) for column in columns}
                    if len(found) == len(columns):
                        return cls(found)
        raise wrong_spec("records", "columns, a list of different names with domains")

    def __repr__(self) -> str:
        return f"Records({dict(self.columns)!r})"

    def __str__(self) -> str:
        return f"records of {len(self.columns)} columns ({', '.join(self.names)})"


def _no_record(value: Any, place: int) -> DomainError:
    return DomainError(f"value {place}, {kind(value)}, is not a record, a dictionary of answers by name")
