"""Running the service: one process, or several workers on one port over a shared PostgreSQL store.

Starting   the port comes first: when it is taken, nothing else has happened
Stopping   SIGTERM or SIGINT: no new connections, requests are answered, what waits is committed, stores are closed
Workers    each has its own process, its shard of the tallies and its own socket on the shared port, among which the
           system divides connections. One that dies is started again; all end when the first process does
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import FrameType
from typing import Any

import uvicorn

from deniable.collect.server.app import create_app
from deniable.collect.server.log import quiet_library
from deniable.collect.server.service import Service
from deniable.collect.server.settings import Settings
from deniable.collect.stores.base import StoreError

SWITCH_SECONDS = 0.001
"""How long one thread may keep the interpreter from another: the writer wakes up often and works shortly."""

Announce = Callable[[str], None]


def serve(
    settings: Settings,
    workers: int = 1,
    announce: Announce | None = None,
    prepare: AbstractContextManager[object] | None = None,
) -> None:
    """Serve until a signal says otherwise; `announce` is told the address once it answers.

    `prepare` is entered when the port is ours, before anything else happens, and left at the end.
    """
    if workers > 1:
        refuse_workers(settings.store)
        # The port that workers share would be shared with another service's workers, too.
        bound(settings).close()
    with bound(settings, shared=workers > 1) as reserved, prepare or nullcontext():
        if workers > 1:
            from deniable.collect.server.workers import supervise

            supervise(settings, workers, reserved, announce)
        else:
            run(settings, reserved, announce)


def refuse_workers(store: str) -> None:
    """Say why several workers do not go with this store, if they do not."""
    if not store.startswith(("postgresql:", "postgres:")):
        raise StoreError(
            "several workers need a PostgreSQL store: a SQLite file has one writer at a time, and a second process "
            "would only wait for the first"
        )


def bound(settings: Settings, shared: bool = False) -> socket.socket:
    """A socket at the settings' address, not listening yet."""
    infos = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = infos[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind(address)
    except OSError as error:
        made.close()
        raise OSError(error.errno, error.strerror, f"{settings.host}:{settings.port}") from None
    return made


def address_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Server(uvicorn.Server):
    """The HTTP library's server, which tells the service when it is time to go."""

    def __init__(self, config: uvicorn.Config, service: Service, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._service, self._ready = service, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.leave()

    def leave(self) -> None:
        """Stop as after a signal, which is then done with: the exit code is 0."""
        self._service.stopping = True
        self.should_exit = True


def run(settings: Settings, listening: socket.socket, announce: Announce | None = None) -> None:
    """Serve on this socket in this process."""
    server = make_server(settings, lambda: announce(address_of(listening)) if announce else None)
    sys.setswitchinterval(SWITCH_SECONDS)
    server.run([listening])


def make_server(settings: Settings, ready: Callable[[], None]) -> Server:
    app = create_app(settings)
    quiet_library()
    config = uvicorn.Config(
        app,
        http=_protocol(settings),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=2048,
        timeout_keep_alive=settings.idle_seconds,
        h11_max_incomplete_event_size=settings.head_bytes,
        timeout_graceful_shutdown=settings.stop_seconds,
    )
    return Server(config, app.state.service, ready)


def _protocol(settings: Settings) -> Any:
    try:
        from deniable.collect.server.protocol import guarded
    except ImportError:  # without httptools, the slower pure-Python parser, which limits headers by itself
        return "h11"
    return guarded(settings)
