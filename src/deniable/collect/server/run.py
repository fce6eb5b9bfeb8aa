"""Running the service: the application, its connections, and one process or several workers on one port.

Starting   the port comes first: when it is taken, nothing else has happened
Stopping   SIGTERM or SIGINT: no new connections, requests are answered, what waits is committed, stores are closed
Workers    each has its own process, its shard of the tallies in a shared PostgreSQL store and its own socket on the
           shared port; the system distributes connections among them. A worker that dies is restarted; all end when
           the first process does
Heads      are limited in time and size, and the number of connections is limited; anything that is not HTTP is
           refused in the same form as every other refusal
Files      the limit of open files is raised as far as the system allows; if that is less than the connections need,
           fewer connections are accepted, and the log says so
Operator   probes and metrics of all workers are answered on their own port, by the first process
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import FrameType
from typing import Any, cast

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route

from deniable.collect.server import admin, drafts, estimates, ingest, pages, plan, progress, public, surveys
from deniable.collect.server.api import Operation, Resource, interface, resources
from deniable.collect.server.problems import KINDS, MEDIA_TYPE, document
from deniable.collect.server.service import OLD_SECONDS, Service, Settings
from deniable.collect.server.telemetry import log, own_the_process, quiet_library
from deniable.collect.stores.base import StoreError

SWITCH_SECONDS = 0.001
"""How long one thread may hold the interpreter: the writer wakes up often and works briefly."""
PIECE = 16_384
"""Bytes that are passed to the parser of heads at once."""
READY = (0, None)
"""The first message of a worker to its parent."""
SHORT_LIFE = 2.0
GRACE_SECONDS = 5.0

SPARE_FILES = 128
"""Files that a process opens besides connections: the store's, listeners, libraries that are loaded late."""

Announce = Callable[[str, str | None], None]

_context = multiprocessing.get_context("spawn")

# The first is matched first: reports come most often.
_MODULES = (ingest, surveys, estimates, public, progress, admin, plan, drafts, pages)


def operations() -> list[Operation]:
    """Everything that the service offers."""
    own = [operation for module in _MODULES for operation in module.OPERATIONS]
    return [*own, interface(own)]


def create_app(settings: Settings) -> Starlette:
    """The service as an ASGI application; its threads start and end with its lifespan.

    `app.state.service` is what the parts share.

    Args:
        settings: Settings of the service.

    Returns:
        The application.
    """
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with service.running():
            yield

    routes = [Route(path, Resource(service, some)) for path, some in resources(operations()).items()]
    app = Starlette(routes=[*routes, Route("/{rest:path}", pages.Lost(service))], lifespan=lifespan)
    app.state.service = service
    return app


def serve(
    settings: Settings,
    workers: int = 1,
    announce: Announce | None = None,
    prepare: AbstractContextManager[object] | None = None,
) -> None:
    """Serve until a signal arrives.

    Args:
        settings: Settings of the service.
        workers: Number of processes.
        announce: Called with the public and the operator's address once they answer.
        prepare: Entered once the port is bound, before anything else happens, and left at the end.
    """
    if workers > 1:
        refuse_workers(settings.store)
        # Otherwise another service's workers could share the port, too.
        bound(settings).close()
    own_the_process(settings.log_level)
    with ExitStack() as sockets:
        reserved = sockets.enter_context(bound(settings, shared=workers > 1))
        operator = sockets.enter_context(bound_operator(settings))
        sockets.enter_context(prepare or nullcontext())
        if workers > 1:
            supervise(settings, workers, reserved, announce, operator)
        else:
            run(settings, reserved, announce, operator)


def refuse_workers(store: str) -> None:
    """Raise an error with the reason if this store does not support several workers."""
    if not store.startswith(("postgresql:", "postgres:", "files:")):
        raise StoreError(
            "several workers need a PostgreSQL store, or one of files: a SQLite file has one writer at a time, and a "
            "second process would only wait for the first"
        )


def bound(settings: Settings, shared: bool = False) -> socket.socket:
    """A socket at the settings' address, not listening yet."""
    return _bind(settings.host, settings.port, shared)


def bound_operator(settings: Settings) -> AbstractContextManager[socket.socket | None]:
    """A socket for the operator's probes, if the settings have an address for it."""
    return nullcontext() if settings.operator_port is None else _bind(settings.operator_host, settings.operator_port)


def _bind(host: str, port: int, shared: bool = False) -> socket.socket:
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = infos[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind(address)
    except OSError as error:
        made.close()
        raise OSError(error.errno, error.strerror, f"{host}:{port}") from None
    return made


def address_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Server(uvicorn.Server):
    """The HTTP library's server, which tells the service when to stop."""

    def __init__(self, config: uvicorn.Config, service: Service, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.service, self._ready = service, ready
        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop that answers requests, once it runs."""
        self.looked: tuple[float, admin.Look | None] = (0.0, None)
        """When the operator's side last read the service's state, and that state."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()
        self.loop = asyncio.get_running_loop()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.leave()

    def leave(self) -> None:
        """Stop as after a signal, but with exit code 0."""
        self.service.stopping = True
        self.should_exit = True


def run(
    settings: Settings,
    listening: socket.socket,
    announce: Announce | None = None,
    operator: socket.socket | None = None,
) -> None:
    """Serve on this socket in this process, and answer the operator on the other."""
    watching: list[admin.OperatorListener] = []

    def ready() -> None:
        if operator is not None:
            looks = {settings.shard: lambda: look(server)}
            watching.append(admin.OperatorListener(operator, looks, settings.otel))
        if announce is not None:
            announce(address_of(listening), None if operator is None else address_of(operator))

    server = make_server(settings, ready)
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        server.run([listening])
    finally:
        for one in watching:
            one.close()


def look(server: Server, ask: Callable[[], Coroutine[Any, Any, admin.Look]] | None = None) -> admin.Look | None:
    """The service's state, for a thread other than the event loop's; None if the loop does not answer."""
    if server.loop is None:
        return None
    try:
        work = admin.look(server.service) if ask is None else ask()
        asked = asyncio.run_coroutine_threadsafe(work, server.loop)
        server.looked = time.monotonic(), asked.result(admin.LOOK_SECONDS)
    except TimeoutError:  # the loop is busy
        pass
    except (CancelledError, RuntimeError):  # it has ended
        return None
    when, found = server.looked
    return found if time.monotonic() - when < OLD_SECONDS else None


def allowed_connections(wanted: int) -> int:
    """Raise the limit of open files for the wanted number of connections; returns how many are possible."""
    try:
        import resource
    except ImportError:  # not on Windows, where connections are not files
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    possible = wanted if soft == resource.RLIM_INFINITY else min(wanted, max(soft - SPARE_FILES, soft // 2))
    if possible < wanted:
        log("fewer connections", "warning", connections=possible, wanted=wanted, files=soft, needed=needed)
    return possible


def make_server(settings: Settings, ready: Callable[[], None], app: Starlette | None = None) -> Server:
    settings = replace(settings, connections=allowed_connections(settings.connections))
    app = create_app(settings) if app is None else app
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
    server = Server(config, app.state.service, ready)
    server.service.connections = lambda: len(server.server_state.connections)
    return server


def _protocol(settings: Settings) -> Any:
    try:
        return guarded(settings)
    except ImportError:  # without httptools, the slower pure-Python parser, which limits headers by itself
        return "h11"


# -- connections ------------------------------------------------------------------------------------


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
    """The protocol class for these settings; raises ImportError where httptools is not installed."""
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    class Guarded(HttpToolsProtocol):
        _timer: asyncio.TimerHandle | None = None
        _in_head = True
        _between = False
        """After a whole message: the next bytes are a head."""
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
                # A head is measured before it is parsed: bytes beyond the limit never reach the parser.
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
            """Suppress the warning: nobody needs it."""

    return Guarded


# -- workers ----------------------------------------------------------------------------------------


def supervise(
    settings: Settings,
    workers: int,
    reserved: socket.socket,
    announce: Announce | None = None,
    operator: socket.socket | None = None,
) -> None:
    """Run workers until a signal arrives, and report on all of them to the operator.

    `reserved` keeps the port, so that it stays the same when a worker is restarted; it is bound but never listens: the
    system gives connections only to the workers.
    """
    settings = replace(settings, port=reserved.getsockname()[1])
    stopping = threading.Event()
    before = {number: signal.signal(number, lambda *_: stopping.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    staff = [Worker(settings, shard) for shard in range(workers)]
    if hasattr(signal, "SIGUSR1"):
        before[signal.SIGUSR1] = signal.signal(signal.SIGUSR1, lambda *_: _pass_on(staff))
    watching = None
    try:
        for worker in staff:
            worker.wait_ready(stopping)
        if operator is not None:
            looks = {shard: one.look for shard, one in enumerate(staff)}
            watching = admin.OperatorListener(operator, looks, settings.otel)
        if announce is not None and not stopping.is_set():
            announce(address_of(reserved), None if operator is None else address_of(operator))
        while not stopping.is_set():
            for worker in staff:
                worker.revive()
            wait([worker.process.sentinel for worker in staff], timeout=0.5)
    finally:
        _end(staff, settings.stop_seconds + GRACE_SECONDS)
        if watching is not None:
            watching.close()
        for number, handler in before.items():
            signal.signal(number, handler)


def _pass_on(staff: list[Worker]) -> None:
    """Switch all workers to the next log level."""
    log.next_level()
    for worker in staff:
        if worker.process.pid is not None and worker.process.is_alive():
            os.kill(worker.process.pid, signal.SIGUSR1)


class Worker:
    """One worker process; it keeps its shard however often it is restarted."""

    def __init__(self, settings: Settings, shard: int) -> None:
        self._settings, self._shard = replace(settings, shard=shard), shard
        self._asking, self._asked = threading.Lock(), 0
        self.start()

    def start(self) -> None:
        self._born, self._ready = time.monotonic(), False
        self.ours, theirs = _context.Pipe()
        self.process: SpawnProcess = _context.Process(target=work, args=(self._settings, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def wait_ready(self, stopping: threading.Event) -> None:
        while not stopping.is_set() and not self._is_ready(0.1):
            if not self.process.is_alive():
                raise ChildProcessError(f"worker {self._shard} ended with code {self.process.exitcode} as it started")

    def _is_ready(self, seconds: float = 0.0) -> bool:
        if not self._ready and self.ours.poll(seconds):
            with suppress(EOFError, OSError):
                self._ready = self.ours.recv() == READY
        return self._ready

    def revive(self) -> None:
        if self.process.is_alive():
            return
        log("worker ended", "warning", shard=self._shard, code=self.process.exitcode)
        time.sleep(max(0.0, SHORT_LIFE - (time.monotonic() - self._born)))
        with self._asking:
            self.ours.close()
            self.start()

    def look(self) -> admin.Look | None:
        """The worker's state; None if it does not answer."""
        with self._asking, suppress(OSError, EOFError):
            if not self._is_ready():
                return None
            self._asked += 1
            end = time.monotonic() + admin.LOOK_SECONDS + 0.03
            self.ours.send(self._asked)
            while self.ours.poll(max(0.0, end - time.monotonic())):
                number, found = self.ours.recv()
                if number == self._asked:  # other numbers are late answers that nobody waits for
                    return cast("admin.Look | None", found)
        return None


def work(settings: Settings, parent: Connection) -> None:
    """The life of a worker: it ends with a signal, or when its parent is gone."""
    own_the_process(settings.log_level)
    with bound(settings, shared=True) as listening:
        server = make_server(settings, lambda: parent.send(READY))
        threading.Thread(target=_watch, args=(parent, server), daemon=True).start()
        server.run([listening])


def _watch(parent: Connection, server: Server) -> None:
    """Send the parent the worker's state when it asks. The pipe ends when the parent does, even by kill -9."""
    try:
        while True:
            # Nobody asks before the worker is ready; another thread reports that.
            number = parent.recv()
            parent.send((number, look(server)))
    except (EOFError, OSError):
        server.leave()


def _end(staff: list[Worker], seconds: float) -> None:
    for worker in staff:
        worker.process.terminate()
    deadline = time.monotonic() + seconds
    for worker in staff:
        worker.process.join(max(0.1, deadline - time.monotonic()))
        if worker.process.is_alive():
            log("worker killed", "warning", shard=worker._shard)
            worker.process.kill()
            worker.process.join()
        worker.ours.close()
