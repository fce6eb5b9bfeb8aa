"""Where rows come from: a file or standard input, looked at before it is read.

A name is a path, or "-" for standard input, which can be read once and not rewound.
"""

from __future__ import annotations

import io
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

STDIN = "-"
_LONGEST_LINE = 1 << 20
_PARQUET = b"PAR1"


@dataclass
class Source:
    """An open input, with its first line read ahead."""

    name: str
    """How messages call it."""
    head: bytes
    rest: BinaryIO
    path: str | None
    size: int | None
    taken: int = field(default=0)

    @classmethod
    def open(cls, given: str | Path) -> Source:
        if str(given) == STDIN:
            stream = sys.stdin.buffer
            return cls("standard input", _first_line(stream), stream, None, None)
        file = open(given, "rb")  # noqa: SIM115
        size = os.fstat(file.fileno()).st_size if os.path.isfile(given) else None
        return cls(repr(str(given)), _first_line(file), file, str(given), size)

    @property
    def is_parquet(self) -> bool:
        return self.head.startswith(_PARQUET)

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
        if self.path is not None:
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
        return len(data)


def _first_line(stream: BinaryIO) -> bytes:
    """Up to the first line that is not blank, as a reader of CSV sees it."""
    head = b""
    while True:
        line = stream.readline(_LONGEST_LINE)
        head += line
        if line.strip() or not line or len(head) >= _LONGEST_LINE:
            return head
