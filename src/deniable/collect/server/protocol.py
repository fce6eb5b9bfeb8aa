"""Connections under stricter rules than the HTTP library's own.

Headers are limited in time and size, the number of connections is limited, and what is not HTTP is refused in the form
of every other refusal.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from deniable.collect.server.problems import KINDS, MEDIA_TYPE, document
from deniable.collect.server.settings import Settings

PIECE = 16_384
"""Bytes that the parser is given at once."""


def refusal(kind: str, detail: str, *headers: str) -> bytes:
    """A whole HTTP response."""
    body = document(kind, detail)
    lines = (
        f"HTTP/1.1 {KINDS[kind].status} {kind}",
        f"content-type: {MEDIA_TYPE}",
        f"content-length: {len(body)}",
        "connection: close",
        "cache-control: no-store",
        "x-content-type-options: nosniff",
        *headers,
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def guarded(settings: Settings) -> type[asyncio.Protocol]:
    """The protocol class for these settings."""

    class Guarded(HttpToolsProtocol):
        _timer: asyncio.TimerHandle | None = None
        _in_head = True
        _between = False
        """After a whole message: what comes next is a head."""
        _head = 0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > settings.connections:
                transport.write(refusal("overloaded", "there are too many connections", "retry-after: 1"))
                transport.close()
                return
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._rest()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self.transport.is_closing():
                return
            while data and not self.transport.is_closing():
                # A head is counted before it is parsed: what is beyond the limit never reaches the parser.
                size = min(len(data), PIECE)
                if self._in_head or self._between:
                    size = min(size, settings.head_bytes - self._head)
                    if size <= 0:
                        self.send_400_response("the headers are too long")
                        return
                    self._head += size
                piece, data = data[:size], data[size:]
                super().data_received(piece)
            if not self._in_head:
                self._rest()
            elif self._timer is None:
                self._wait()

        def on_message_begin(self) -> None:
            self._in_head, self._between = True, False
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self._in_head = False
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            self._between, self._head = True, 0
            super().on_message_complete()

        def _wait(self) -> None:
            self._timer = self.loop.call_later(settings.head_seconds, self._too_late)

        def _rest(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _too_late(self) -> None:
            self._timer = None
            if not self.transport.is_closing():
                self.transport.close()

        def send_400_response(self, msg: str) -> None:
            self.transport.write(refusal("malformed", "this is not an HTTP request that can be read here"))
            self.transport.close()

        def _unsupported_upgrade_warning(self) -> None:
            """Nobody needs to read about it."""

    return Guarded
