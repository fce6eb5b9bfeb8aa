"""Where rows come from: a file, here or elsewhere, or standard input, looked at before it is read.

A name is a path, a URL, or "-" for standard input, which can be read once and not rewound.
"""

from __future__ import annotations

import io
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from deniable.engines.places import STDIN
from deniable.engines.urls import buffered, is_url, open_url, plain, shown

_LONGEST_LINE = 1 << 20
_PARQUET = b"PAR1"
_ARROW_STREAM = b"\xff\xff\xff\xff"


@dataclass
class Source:
    """An open input, with its first line read ahead."""

    name: str
    """How messages call it."""
    head: bytes
    rest: BinaryIO
    path: str | None
    """Where the local file is."""
    size: int | None
    taken: int = field(default=0)
    url: str | None = None
    """Where the file is that is elsewhere."""
    tail: bytes = b""
    """The last bytes that were read."""

    @classmethod
    def open(cls, given: str | Path) -> Source:
        if str(given) == STDIN:
            stream = sys.stdin.buffer
            return cls("standard input", _first_line(stream), stream, None, None)
        name = plain(given)
        if is_url(name):
            native, bytes_in_all = open_url(name)
            stream = buffered(native)
            return cls(repr(shown(name)), _first_line(stream), stream, None, bytes_in_all, url=name)
        file = open(name, "rb")  # noqa: SIM115
        size = os.fstat(file.fileno()).st_size if os.path.isfile(name) else None
        return cls(repr(name), _first_line(file), file, name, size)

    def seekable(self) -> Any:
        """What a reader of Parquet takes: a path, or an open file; None for what can be read only once."""
        return self.path if self.url is None else open_url(self.url)[0]

    @property
    def is_parquet(self) -> bool:
        return self.head.startswith(_PARQUET)

    @property
    def is_arrow(self) -> bool:
        return self.head.startswith(_ARROW_STREAM)

    @property
    def is_json(self) -> bool:
        return self.head.lstrip()[:1] in (b"{", b"[")

    @property
    def is_empty(self) -> bool:
        return not self.head.strip()

    def stream(self) -> BinaryIO:
        """Everything from the beginning."""
        return io.BufferedReader(_Rejoined(self), buffer_size=1 << 20)

    def close(self) -> None:
        if self.path is not None or self.url is not None:
            self.rest.close()


class _Rejoined(io.RawIOBase):
    """The head, then the rest, counting what was taken."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._source = source
        self._head = source.head

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        size = len(buffer)
        data = self._head[:size] or self._source.rest.read(size)
        self._head = self._head[size:]
        buffer[: len(data)] = data
        self._source.taken += len(data)
        self._source.tail = (self._source.tail + data[-8:])[-8:]
        return len(data)


def _first_line(stream: BinaryIO) -> bytes:
    """Up to the first line that is not blank, as a reader of CSV sees it."""
    head = b""
    while True:
        line = stream.readline(_LONGEST_LINE)
        head += line
        if line.strip() or not line or len(head) >= _LONGEST_LINE:
            return head
