"""What a file of reports holds: one column per question, and metadata that say whose reports they are.

Survey     columns named by question id, some or all of them; `deniable.survey` is its fingerprint and
           `deniable.survey.spec` its canonical JSON
Protocol   one column "report"; `deniable.fingerprint` and `deniable.spec`, as `Reports.save` writes them
Ids        where they are kept, a first column "id": 16 random bytes per row, by which a row that comes twice is known
Version    `deniable.version` is the version of this layout; a file without it is of version 1
Columns    of Arrow become rows of bytes, and the other way round, without copying
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from deniable._extras import require
from deniable.errors import LabelError, MismatchError, ReportError, SpecError
from deniable.protocols import Protocol
from deniable.protocols.reports import Bytes
from deniable.specs import canonical_bytes
from deniable.surveys import Survey

REPORT, ID = "report", "id"
ID_BYTES = 16
SURVEY, SURVEY_SPEC = b"deniable.survey", b"deniable.survey.spec"
PROTOCOL, PROTOCOL_SPEC = b"deniable.fingerprint", b"deniable.spec"
VERSION_KEY, VERSION = b"deniable.version", b"1"


class UnnamedError(ReportError):
    """A file that does not say whose reports it holds."""


@dataclass(frozen=True)
class Layout:
    """A survey, or a single protocol, as columns of reports."""

    target: Survey | Protocol

    def __post_init__(self) -> None:
        if not isinstance(self.target, Survey | Protocol):
            raise SpecError(
                f"a survey or a protocol is wanted, not an object of type {type(self.target).__name__}: check the order"
            )

    @cached_property
    def protocols(self) -> dict[str, Protocol]:
        """The protocol of each column."""
        if isinstance(self.target, Survey):
            return {question.id: question.protocol for question in self.target}
        return {REPORT: self.target}

    @property
    def kind(self) -> str:
        return "survey" if isinstance(self.target, Survey) else "protocol"

    @property
    def fingerprint(self) -> str:
        return self.target.fingerprint

    def source(self, column: str) -> str | None:
        """What the tally of a column carries."""
        return self.target.source(column) if isinstance(self.target, Survey) else None

    def some(self, columns: Iterable[str] | None) -> tuple[str, ...]:
        """The columns asked for, in the order of the questions; all if none are named."""
        if columns is None:
            return tuple(self.protocols)
        wanted = list(columns)
        for name in wanted:
            if name not in self.protocols:
                raise LabelError(f"there is no question {name!r}; there are {', '.join(self.protocols)}")
        return tuple(name for name in self.protocols if name in wanted)

    def metadata(self) -> dict[bytes, bytes]:
        fingerprint, version = self.fingerprint.encode(), {VERSION_KEY: VERSION}
        if isinstance(self.target, Survey):
            return version | {SURVEY: fingerprint, SURVEY_SPEC: self.target.canonical}
        return version | {PROTOCOL: fingerprint, PROTOCOL_SPEC: canonical_bytes(self.target.spec())}

    def schema(self, columns: Iterable[str], ids: bool = False) -> Any:
        """The Arrow schema of a file with these columns: fixed-size binary, none missing."""
        pa = require("pyarrow", "files")
        if ids:
            self.check_ids()
        widths = ({ID: ID_BYTES} if ids else {}) | {name: self.protocols[name].report_bytes for name in columns}
        fields = [pa.field(name, pa.binary(width), nullable=False) for name, width in widths.items()]
        return pa.schema(fields, metadata=self.metadata())

    def check_ids(self) -> None:
        if ID in self.protocols:
            raise SpecError('this survey has a question "id", so that its reports cannot have ids beside it')

    def check(self, metadata: Mapping[bytes, bytes] | None, where: str) -> None:
        """Refuse a file whose metadata names another survey or protocol, or none."""
        found = metadata or {}
        version = found.get(VERSION_KEY, VERSION)
        if version != VERSION:
            raise ReportError(f"{where} is of version {version.decode(errors='replace')[:20]!r}: try a newer deniable")
        for kind, key in (("survey", SURVEY), ("protocol", PROTOCOL)):
            if key in found:
                self.check_identity(kind, found[key].decode(errors="replace"), where)
                return
        raise UnnamedError(f"{where} has no fingerprint in its metadata: it was not written as reports")

    def check_identity(self, kind: str, fingerprint: str, where: str) -> None:
        if (kind, fingerprint) != (self.kind, self.fingerprint):
            raise MismatchError(f"{where} belongs to {kind} {fingerprint}, not to {self.kind} {self.fingerprint}")

    def held(self, names: Iterable[str], wanted: tuple[str, ...], where: str) -> tuple[str, ...]:
        """The wanted columns that a file has; refuses columns that are no question's."""
        found = list(names)
        for name in found:
            if name not in self.protocols and name != ID:
                raise ReportError(f"{where} has the column {name!r}, which is no question of this {self.kind}")
            if found.count(name) > 1:
                raise ReportError(f"{where} has the column {name!r} twice")
        return tuple(name for name in wanted if name in found)


# -- columns of Arrow -----------------------------------------------------------------------------------


def as_arrow(pa: Any, reports: Bytes) -> Any:
    """Rows of bytes as a column of fixed-size binary."""
    n, width = reports.shape
    return pa.Array.from_buffers(pa.binary(width), n, [None, pa.py_buffer(np.ascontiguousarray(reports))])


def as_bytes(column: Any, name: str, row: int, where: str) -> Bytes:
    """A view of the column's own memory; `row` is how many rows came before, for the message."""
    if column.null_count:
        place = row + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False))) + 1
        raise ReportError(f"row {place} of {where} has no report in column {name!r}")
    width, n = column.type.byte_width, len(column)
    if n == 0:
        return np.empty((0, width), dtype=np.uint8)
    flat = np.frombuffer(column.buffers()[1], dtype=np.uint8)
    return flat[column.offset * width : (column.offset + n) * width].reshape(n, width)


def check_columns(schema: Any, layout: Layout, columns: tuple[str, ...], ids: bool, where: str) -> tuple[str, ...]:
    """The wanted columns that a schema has; refuses strange names, types and widths, and ids that are missing."""
    pa = require("pyarrow", "files")
    held = layout.held(schema.names, columns, where)
    widths = {name: layout.protocols[name].report_bytes for name in held}
    if ids:
        layout.check_ids()
        if ID not in schema.names:
            raise ReportError(f"{where} has no column {ID!r}: without ids nobody can tell which of its rows came twice")
        widths[ID] = ID_BYTES
    for name, width in widths.items():
        kind = schema.field(name).type
        if not pa.types.is_fixed_size_binary(kind):
            raise ReportError(f"column {name!r} of {where} holds {kind}, not reports of {width} bytes")
        if kind.byte_width != width:
            raise ReportError(f"column {name!r} of {where} holds reports of {kind.byte_width} bytes, not {width}")
    return held
