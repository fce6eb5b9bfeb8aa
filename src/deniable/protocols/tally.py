"""A tally: what is left of any number of reports, one vector of integers that adds up.

Tallies of one protocol form a commutative monoid: the tally of all reports is the sum of the tallies of the
parts, in any order and grouping, to the last bit. Reports need never be kept.

Batches    a `Counter` counts them as if they had come at once. A family whose counters are cheaper to carry on than to
           finish says so by an adder of its own (`Protocol._adder`)
"""

from __future__ import annotations

import json
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable._extras import require
from deniable._files import atomic_write, load_json, parse_json
from deniable.errors import MismatchError, SpecError
from deniable.protocols.reports import Bytes, Reports

if typing.TYPE_CHECKING:
    from deniable.protocols.base import Protocol


Counts = NDArray[np.int64]

_LARGEST = np.iinfo(np.int64).max
_NOTE = b"deniable.tally"


@dataclass(frozen=True, eq=False)
class Tally:
    """Sum of reports: the protocol's fingerprint, the number of reports n, and an int64 vector.

    >>> a, b = Tally("f", 2, [1, 1]), Tally("f", 1, [0, 1])
    >>> (a + b).n, (a + b).counts.tolist()
    (3, [1, 2])
    """

    fingerprint: str
    n: int
    counts: Counts
    source: str | None = None
    """Survey and question that the reports answer, where there is one; tallies of different sources do not add."""

    def __init__(self, fingerprint: str, n: int, counts: ArrayLike, source: str | None = None) -> None:
        vector = np.array(counts, dtype=np.int64)
        if vector.ndim != 1 or n < 0:
            raise SpecError("a tally is a number of reports and a flat vector of integers")
        vector.flags.writeable = False
        object.__setattr__(self, "fingerprint", str(fingerprint))
        object.__setattr__(self, "n", int(n))
        object.__setattr__(self, "counts", vector)
        object.__setattr__(self, "source", source)

    def __add__(self, other: Any) -> Tally:
        if isinstance(other, int) and other == 0:
            return self  # so that sum(tallies) works
        if not isinstance(other, Tally):
            return NotImplemented
        self._check(other)
        # No count exceeds what one report can add times n, but the check is on the numbers themselves.
        total = self.counts + other.counts
        overflow = ((self.counts >= 0) == (other.counts >= 0)) & ((total >= 0) != (self.counts >= 0))
        if overflow.any() or self.n + other.n > _LARGEST:
            raise OverflowError("the sum of these tallies does not fit in 64 bits")
        return Tally(self.fingerprint, self.n + other.n, total, self.source)

    __radd__ = __add__

    def _check(self, other: Tally) -> None:
        if self.fingerprint != other.fingerprint:
            raise MismatchError(
                f"tallies of different protocols do not add: {self.fingerprint[:16]} and {other.fingerprint[:16]}"
            )
        if self.source != other.source:
            raise MismatchError(f"tallies of different sources do not add: {self.source} and {other.source}")
        if self.counts.size != other.counts.size:
            raise MismatchError(f"one tally has {self.counts.size} counters, the other {other.counts.size}")

    @staticmethod
    def sum(tallies: Iterable[Tally]) -> Tally:
        """The sum of at least one tally."""
        total: Any = 0
        for tally in tallies:
            total = total + tally
        if not isinstance(total, Tally):
            raise MismatchError("there is no tally to add: start from protocol.empty()")
        return total

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        same = (self.fingerprint, self.n, self.source) == (other.fingerprint, other.n, other.source)
        return same and np.array_equal(self.counts, other.counts)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<tally of {self.n} reports, {self.counts.size} counters, protocol {self.fingerprint[:12]}>"

    def spec(self) -> dict[str, Any]:
        head = {"kind": "tally", "version": 1, "fingerprint": self.fingerprint, "n": self.n}
        return head | ({"source": self.source} if self.source else {}) | {"counts": self.counts.tolist()}

    @classmethod
    def from_spec(cls, spec: Any) -> Tally:
        match spec:
            case {"kind": "tally", "version": 1, "fingerprint": str(name), "n": int(n), "counts": list(counts)}:
                if all(type(count) is int for count in counts):
                    return cls(name, n, counts, spec.get("source"))
            case {"kind": "tally", "version": version} if version != 1:
                raise SpecError(f"tallies of version {version!r} are unknown here: only 1 is")
        raise SpecError("this is not a tally: it needs kind, version, fingerprint, n and integer counts")

    def to_arrow(self) -> Any:
        """A pyarrow table with one column of counts; the rest is in the schema's metadata."""
        pa = require("pyarrow", "files")
        head = {key: value for key, value in self.spec().items() if key != "counts"}
        return pa.table({"count": self.counts}).replace_schema_metadata({_NOTE: json.dumps(head).encode()})

    @classmethod
    def from_arrow(cls, table: Any) -> Tally:
        notes = table.schema.metadata or {}
        head = parse_json(notes[_NOTE], "the table's metadata") if _NOTE in notes else None
        if not isinstance(head, dict) or "count" not in table.column_names:
            raise SpecError("this table is not a tally: it needs a column of counts, and the rest in its metadata")
        return cls.from_spec(head | {"counts": table.column("count").to_pylist()})

    def save(self, path: str | Path) -> None:
        """Write JSON, or Parquet when the name ends in .parquet; the file appears whole or not at all."""
        with atomic_write(path) as file:
            if Path(path).suffix == ".parquet":
                require("pyarrow.parquet", "files").write_table(self.to_arrow(), file)
            else:
                file.write(json.dumps(self.spec(), separators=(",", ":")).encode() + b"\n")

    @classmethod
    def load(cls, path: str | Path) -> Tally:
        if Path(path).suffix == ".parquet":
            pa = require("pyarrow", "files")
            try:
                return cls.from_arrow(require("pyarrow.parquet", "files").read_table(path))
            except pa.ArrowInvalid as broken:
                raise SpecError(f"{path} is not a readable Parquet file: {broken}") from None
        return load_json(path, cls.from_spec)


# -- reports that come in batches, counted as if they had come at once --------------------------------


class Adder(typing.Protocol):
    """The counters of a tally while reports still come."""

    def add(self, reports: Bytes) -> None:
        """Count these too; the array may be reused afterwards."""

    def counts(self) -> Counts:
        """The counters so far."""


class PlainAdder:
    """Counts each batch by itself, and sums."""

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol
        self._total = np.zeros(protocol.tally_size, dtype=np.int64)

    def add(self, reports: Bytes) -> None:
        self._total += self._protocol._count(reports)

    def counts(self) -> Counts:
        return self._total.copy()


class Counter:
    """Adds up batches of reports; `tally` is what `Protocol.tally` of all of them would be.

    >>> from deniable.protocols import OUE
    >>> protocol = OUE(8, epsilon=1)
    >>> counter = protocol.counter()
    >>> for answers in ([0, 1], [7]):
    ...     counter.add(protocol.privatize(answers))
    >>> counter.tally().n
    3
    """

    def __init__(self, protocol: Protocol, source: str | None = None) -> None:
        self._protocol, self._source = protocol, source
        self._adder, self._n = protocol._adder(), 0

    def add(self, reports: Reports | Bytes) -> None:
        """Count a batch, or refuse all of it."""
        array = self._protocol._valid_rows(reports)
        self._adder.add(array)
        self._n += len(array)

    def tally(self) -> Tally:
        return Tally(self._protocol.fingerprint, self._n, self._adder.counts(), self._source)
