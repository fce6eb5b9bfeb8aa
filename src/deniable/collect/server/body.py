"""Reading a body within limits of size, time and memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from deniable.collect.server.problems import Problem

Headers = list[tuple[bytes, bytes]]

LINGER_SECONDS = 2.0
LINGER_BYTES = 16 << 20


class Gone(Exception):
    """The client has left: nobody waits for an answer."""


def header(headers: Headers, name: bytes) -> bytes:
    for key, value in headers:
        if key == name:
            return value
    return b""


def media_type(headers: Headers) -> str:
    return header(headers, b"content-type").partition(b";")[0].strip().lower().decode("latin-1")


def announced(headers: Headers, most: int) -> int | None:
    """The length that the headers promise, None if it comes in chunks; a problem if it is too large."""
    text = header(headers, b"content-length")
    if not text:
        return None if header(headers, b"transfer-encoding") else 0
    if not text.isdigit():
        raise Problem("malformed", "Content-Length is a number", close=True)
    length = int(text) if len(text) < 20 else most + 1
    if length > most:
        raise Problem("tooLarge", f"a body has at most {most} bytes: send fewer submissions at once", close=True)
    return length


async def read(receive: Receive, most: int, seconds: float, room: Callable[[int], None] | None = None) -> bytes:
    """The whole body. `room` is asked before each piece is kept, with its size, and may refuse."""
    pieces: list[bytes] = []
    size, more = 0, True
    try:
        async with asyncio.timeout(seconds):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Gone
                piece: bytes = message.get("body", b"")
                size += len(piece)
                if size > most:
                    raise Problem("tooLarge", f"a body has at most {most} bytes: send less at once", close=True)
                if room is not None:
                    room(len(piece))
                pieces.append(piece)
                more = message.get("more_body", False)
    except TimeoutError:
        raise Problem("tooSlow", f"a body arrives within {seconds:g} seconds", close=True) from None
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def answer_and_close(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer although the body is not read, and hang up.

    Closing a connection on which more arrives resets it, and the client may never see the answer. So the answer goes
    out whole, and what still comes is thrown away for a moment before the connection is closed.
    """
    response.headers["Connection"] = "close"
    await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
    await send({"type": "http.response.body", "body": response.body, "more_body": True})
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            await _drain(receive)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _drain(receive: Callable[[], Awaitable[Message]]) -> None:
    left = LINGER_BYTES
    while left > 0:
        message = await receive()
        left -= len(message.get("body", b""))
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            return
