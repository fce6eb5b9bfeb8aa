"""A small HTTP client that reveals nothing about the caller.

Sent        the request line, Host, and the caller's headers (Content-Type, Authorization); Content-Length with a body.
            No User-Agent, no Accept-*, no cookies, no proxy taken from the environment, no redirect followed
TLS         certificates and host names are verified; plain HTTP is for this machine only, unless `insecure` is set
Connection  one, kept alive between requests; if the server has closed it meanwhile, the request is sent once more
            on a new one (a submission has an id, so twice is once). A forked process opens its own
Limits      a size limit on every body that is read, and a time limit on the whole reply: a server that sends a byte
            now and then blocks nobody for longer. For a body that is read piece by piece, the limit is per piece
"""

from __future__ import annotations

import http.client
import io
import ipaddress
import os
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from deniable.errors import DeniableError

TIMEOUT = 30.0
LARGEST = 1 << 20
CHUNK = 1 << 16

_GONE = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)


class Turn:
    """A lock that is free in a forked process: the thread that held it stayed behind in the parent."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _turns.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    @staticmethod
    def renew() -> None:
        for turn in list(_turns):
            turn._lock = threading.Lock()


_turns: weakref.WeakSet[Turn] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=Turn.renew)


class Unreachable(DeniableError, ConnectionError):
    """The server cannot be reached, or does not speak HTTP; trying again later may help."""


class ForbiddenAddress(DeniableError, ValueError):
    """The address must not be contacted."""


@dataclass(frozen=True)
class Reply:
    """A reply that has been read completely."""

    status: int
    headers: Message
    body: bytes


class _Deadline:
    """The moment by which the current reply must be complete."""

    def __init__(self) -> None:
        self._end = 0.0

    def renew(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def limit(self, sock: socket.socket) -> None:
        """Limit the next wait of a socket to the time that is left."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        sock.settimeout(left)


class _Timed(io.RawIOBase):
    """What a socket receives, until a deadline: a socket's own time limit restarts with every byte."""

    def __init__(self, sock: socket.socket, deadline: _Deadline) -> None:
        self._socket, self._deadline = sock, deadline
        self._file = sock.makefile("rb", buffering=0)  # the socket is closed when this is

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._deadline.limit(self._socket)
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, deadline: _Deadline, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp.close()
        self.fp = io.BufferedReader(_Timed(sock, deadline))


class Transport:
    """Requests to one server, one at a time.

    >>> Transport("https://collect.example.org/base/").path("/v1/surveys")
    '/base/v1/surveys'
    >>> Transport("http://collect.example.org")
    Traceback (most recent call last):
    ...
    deniable.collect.http.ForbiddenAddress: http:// is for this machine only: use https://
    """

    def __init__(
        self, server: str, timeout: float = TIMEOUT, insecure: bool = False, context: ssl.SSLContext | None = None
    ) -> None:
        parts = urlsplit(server)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("https", "http") or not parts.hostname or port == -1:
            raise ForbiddenAddress("the address of a server is written https://host or https://host:port")
        if parts.username is not None or parts.query or parts.fragment:
            raise ForbiddenAddress("the address of a server has no user name, query or fragment")
        if parts.scheme == "http" and not insecure and not is_loopback(parts.hostname):
            raise ForbiddenAddress("http:// is for this machine only: use https://")
        self.server = server
        self._host, self._port, self._secure = parts.hostname, port, parts.scheme == "https"
        self._base = parts.path.rstrip("/")
        self._timeout = timeout
        self._deadline = _Deadline()
        self._context = context
        self._lock = Turn()
        self._process = os.getpid()
        self._connection: http.client.HTTPConnection | None = None

    def path(self, path: str) -> str:
        """A path of the API as it appears in the request line."""
        return self._base + path

    def get(self, path: str, headers: Mapping[str, str] | None = None, most: int = LARGEST) -> Reply:
        return self.request("GET", path, headers, most=most)

    def post(self, path: str, body: bytes, headers: Mapping[str, str], most: int = LARGEST) -> Reply:
        return self.request("POST", path, headers, body, most)

    def request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        most: int = LARGEST,
    ) -> Reply:
        """The complete reply; a reply of more than `most` bytes counts as no reply."""
        with self.stream(method, path, headers, body) as response:
            return Reply(response.status, response.headers, self.read(response, most))

    def read(self, response: http.client.HTTPResponse, most: int = LARGEST) -> bytes:
        """The rest of a body."""
        with self._explained():
            content = response.read(most + 1)
            if len(content) > most:
                raise http.client.HTTPException(f"its reply is longer than {most} bytes")
            # Reading a number of bytes does not notice that fewer came than were announced.
            if response.length:
                raise http.client.HTTPException("its reply was cut short")
        return content

    def chunks(self, response: http.client.HTTPResponse, size: int = CHUNK) -> Iterator[bytes]:
        """The body piece by piece, as it arrives, however long it is."""
        while True:
            with self._explained():
                self._deadline.renew(self._timeout)
                piece = response.read1(size)
                if not piece and response.length:
                    raise http.client.HTTPException("its reply was cut short")
            if not piece:
                return
            yield piece

    @contextmanager
    def stream(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        """The reply with its body still to be read: `read(response)` or `chunks(response)`."""
        with self._lock:
            response = None
            try:
                with self._explained():
                    response = self._send(method, self.path(path), headers or {}, body)
                yield response
            finally:
                if response is None or not response.isclosed():
                    # Unread bytes would be taken for the next reply.
                    self._drop()

    def close(self) -> None:
        with self._lock:
            self._drop()

    def __enter__(self) -> Transport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> http.client.HTTPResponse:
        if self._process != os.getpid():
            self._process, self._connection = os.getpid(), None
        kept = self._connection is not None and self._connection.sock is not None
        try:
            return self._once(method, path, headers, body)
        except _GONE:
            self._drop()
            if not kept:
                raise
            return self._once(method, path, headers, body)

    def _once(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> http.client.HTTPResponse:
        self._deadline.renew(self._timeout)
        if self._connection is None:
            self._connection = self._connect()
        connection = self._connection
        if connection.sock is None:
            connection.connect()
        self._deadline.limit(connection.sock)
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        return connection.getresponse()

    def _connect(self) -> http.client.HTTPConnection:
        made: http.client.HTTPConnection
        if self._secure:
            context = self._context or ssl.create_default_context()
            made = http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=context)
        else:
            made = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        made.response_class = partial(_Response, self._deadline)  # type: ignore[assignment]
        return made

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (OSError, http.client.HTTPException) as wrong:
            raise Unreachable(f"{self.server} cannot be reached: {_why(wrong)}") from None

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def is_loopback(host: str) -> bool:
    """Whether a host name alone shows that the host is this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("localhost.example.org")
    (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _why(wrong: Any) -> str:
    if isinstance(wrong, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({wrong.verify_message})"
    if isinstance(wrong, TimeoutError):
        return "it does not answer in time"
    if isinstance(wrong, OSError):
        return wrong.strerror or type(wrong).__name__
    return str(wrong) or type(wrong).__name__
