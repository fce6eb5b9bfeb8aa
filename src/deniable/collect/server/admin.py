"""For the operator of the service: tokens, health and readiness of the process, and its metrics.

The first admin's token is made on the machine: deniable store token create --role admin.
"""

from __future__ import annotations

import asyncio
import platform
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated, Any, Literal

import msgspec
from starlette.responses import Response

import deniable
from deniable.collect.server.api import FINGERPRINT, Answer, Call, Operation, Parameter, json_response
from deniable.collect.server.otel import Pusher
from deniable.collect.server.problems import KINDS, MEDIA_TYPE, Problem, document, overloaded
from deniable.collect.server.service import Service
from deniable.collect.server.telemetry import Family, Labels, exposition, gauge, log, shared_gauge
from deniable.collect.stores.base import OPEN, StorageFull, StoreError, Token, VersionError
from deniable.collect.wire import JSON, hashed, new_token
from deniable.surveys.terms import read_time, write_time

METRICS = "text/plain; version=0.0.4"
STALLED_SECONDS = 10.0
PING_SECONDS = 3.0
LOOK_SECONDS = 0.45
"""Seconds that a probe waits for a worker. A worker normally answers sooner; if it is busy, its last state is used."""
FULL_SECONDS = 10.0
"""Seconds that the store counts as full after a commit that found no room."""
OPERATORS = 8
"""Maximum number of simultaneous connections to the operator's listener."""
FRESH_SECONDS = 0.5
"""Probes may come often: a store that was written successfully this many seconds ago is not written again."""


class Wanted(msgspec.Struct, forbid_unknown_fields=True):
    """A token to create."""

    role: Literal["admin", "analyst", "ingest"]
    label: Annotated[str, msgspec.Meta(max_length=200)] = ""
    """What it is for, in the operator's words."""
    survey: Annotated[str, msgspec.Meta(pattern=FINGERPRINT)] | None = None
    """The fingerprint of the only survey that it is valid for; null: all surveys."""
    expires: Annotated[str, msgspec.Meta(max_length=20)] | None = None
    """When it expires, as 2026-11-01T00:00:00Z; null: never."""


class Known(msgspec.Struct):
    """A stored token: its id is its SHA-256."""

    id: str
    role: str
    label: str
    survey: str | None
    """The fingerprint of the only survey that it is valid for; null: all surveys."""
    expires: str | None
    """When it expires, in UTC; null: never."""

    @classmethod
    def of(cls, token: Token) -> Known:
        expires = None if token.expires is None else write_time(token.expires)
        return cls(token.sha256, token.role, token.label, token.survey, expires)


class Made(Known, kw_only=True):
    """A new token. It is shown only this once."""

    token: str


class Tokens(msgspec.Struct):
    """All tokens."""

    tokens: list[Known]


async def create(call: Call) -> Response:
    wanted: Wanted = await call.json(Wanted)
    if wanted.survey is not None:
        await call.service.registry.find(wanted.survey)
    expires = None if wanted.expires is None else read_time(wanted.expires)
    if expires is not None and expires <= call.service.now():
        raise Problem("malformed", f"it is {write_time(int(call.service.now()))} now: a token ends later than that")
    token = new_token()
    kept = Token(hashed(token), wanted.role, wanted.label, wanted.survey, expires)
    await call.service.writer.run(lambda store: store.add_token(kept))
    await call.service.registry.refresh()
    log("token created", role=wanted.role)
    return json_response(Made(**msgspec.structs.asdict(Known.of(kept)), token=token), 201)


async def show(call: Call) -> Response:
    tokens = await call.service.readers.run(lambda store: store.tokens())
    return json_response(Tokens([Known.of(token) for token in tokens]))


async def revoke(call: Call) -> Response:
    id: str = call.path["id"]
    if not await call.service.writer.run(lambda store: store.remove_token(id)):
        raise Problem("unknownToken", "GET /v1/tokens lists those there are")
    await call.service.registry.refresh()
    log("token revoked")
    return Response(None, 204)


# -- health -----------------------------------------------------------------------------------------


class Health(msgspec.Struct):
    """ "ok"."""

    status: str


async def alive(call: Call) -> Response:
    return json_response(Health("ok"))


async def ready(call: Call) -> Response:
    found = await look(call.service)
    if not found.ready:
        raise Problem(found.kind, found.told, {"Retry-After": "1"})
    return json_response(Health(found.told))


async def readiness(service: Service) -> str:
    """ "ok" if the store can be written, the writer makes progress, and no shutdown has begun; else a problem."""
    if service.stopping or not service.writer.alive or service.writer.lag > STALLED_SECONDS:
        raise overloaded("the service is being restarted, or its store is stuck")
    if time.monotonic() - service.writer.full < FULL_SECONDS:
        raise _full(service)
    if time.monotonic() - service.pinged > FRESH_SECONDS:
        try:
            async with asyncio.timeout(PING_SECONDS):
                await _ping(service)
        except StorageFull:
            raise _full(service) from None
        except VersionError as error:
            raise overloaded(str(error)) from None
        except (StoreError, TimeoutError, Problem):
            raise overloaded("the store cannot be written") from None
    # Submissions are still counted, so the service is ready.
    failing = ", ".join(f"{step} ({code})" for step, code in sorted(service.failing.items()))
    said = f"ok, but housekeeping fails: {failing}" if failing else "ok"
    return "; ".join(filter(None, (said, service.clock_doubt)))


def _full(service: Service) -> Problem:
    given = ", and its reserve is given up" if service.settings.store.startswith("sqlite:") else ""
    return Problem("storageFull", f"the store has no room left{given}: make room on its disk")


async def _ping(service: Service) -> None:
    """Ping through the writer, which alone waits for locks on the store; simultaneous probes share one ping."""
    if service.pinging is None:
        service.pinging = asyncio.ensure_future(service.writer.run(lambda store: store.ping()))
        service.pinging.add_done_callback(lambda done: _pinged(service, done))
    # A probe that gives up does not cancel the ping for the others.
    await asyncio.shield(service.pinging)


def _pinged(service: Service, done: asyncio.Future[None]) -> None:
    service.pinging = None
    if not done.cancelled() and done.exception() is None:
        service.pinged = time.monotonic()


async def metrics(call: Call) -> Response:
    found = (await look(call.service)).figures
    return Response(exposition({call.service.settings.shard: found}), 200, None, METRICS)


def _figures(service: Service, of_store: list[Family] | None) -> list[Family]:
    """All counters and measurements of this process, and the store's own figures if it answers."""
    version = (("version", deniable.__version__), ("python", platform.python_version()))
    return [
        *service.metrics.families(),
        gauge("deniable_queue_requests", "Requests that wait for a commit.", service.writer.items),
        gauge("deniable_queue_bytes", "Bytes of bodies that wait for a commit.", service.writer.bytes),
        gauge("deniable_arriving_bytes", "Bytes of bodies that are not whole yet.", service.receiving.bytes),
        gauge("deniable_lag_seconds", "Age of the transaction of this moment.", service.writer.lag),
        gauge("deniable_connections", "Open connections.", service.connections()),
        gauge(
            "deniable_connections_limit", "Connections beyond which others are refused.", service.settings.connections
        ),
        gauge("deniable_listeners", "Streams of events.", service.listeners),
        gauge("deniable_untidied_seconds", "Age of traces of order that wait to be removed.", service.untidied),
        gauge("deniable_housekeeping_failing", "Steps of housekeeping that failed last time.", len(service.failing)),
        gauge("deniable_surveys", "Published surveys.", len(service.registry.entries)),
        Family("deniable_build_info", "gauge", "What runs here.", (("", version, 1.0),)),
        gauge("deniable_store_answers", "Whether the store answered for these figures.", of_store is not None),
        *(of_store or []),
    ]


async def _store_figures(service: Service) -> list[Family]:
    size = await service.readers.run(lambda store: store.size())
    ids, closed, overdue = dict[Labels, float](), dict[Labels, float](), dict[Labels, float]()
    for entry in list(service.registry.entries.values()):
        survey = (("survey", entry.fingerprint),)
        epochs = (await service.versions.recent(entry.fingerprint)).epochs
        oldest = entry.terms.epochs.at(service.now()) - entry.terms.epochs.late
        opened = [one for one in epochs if one.state == OPEN]
        ids |= {(*survey, ("epoch", str(one.epoch))): one.n + one.deleted for one in opened}
        if done := [one.epoch for one in epochs if one.state != OPEN]:
            closed[survey] = max(done)
        overdue[survey] = sum(one.epoch < oldest for one in opened)
    return [
        shared_gauge("deniable_store_bytes", "Size of the store.", {(): size}),
        shared_gauge("deniable_epoch_ids", "Ids that are remembered, by open epoch.", ids),
        shared_gauge("deniable_last_closed_epoch", "The last epoch of a survey that is closed.", closed),
        shared_gauge("deniable_overdue_epochs", "Epochs whose time is over and that are still open.", overdue),
    ]


# -- the operator's listener ------------------------------------------------------------------------


@dataclass(frozen=True)
class Look:
    """The current state of one worker."""

    ready: bool
    told: str
    figures: list[Family]
    kind: str = "overloaded"
    """The kind of problem if the worker is not ready."""


async def look(service: Service) -> Look:
    """Returns at once: if the store does not answer soon, the last known state is used."""
    told, of_store = await asyncio.gather(
        service.latest("readiness", lambda: _told(service)), service.latest("figures", lambda: _store_figures(service))
    )
    ready, sentence, kind = (False, "the store does not answer", "overloaded") if told is None else told
    of_ready = gauge("deniable_ready", "Whether reports can be taken.", ready)
    return Look(ready, sentence, [of_ready, *_figures(service, of_store)], kind)


async def _told(service: Service) -> tuple[bool, str, str]:
    """Whether the service is ready, a sentence about it, and the kind of problem if it is not."""
    try:
        return True, await readiness(service), ""
    except Problem as problem:
        return False, problem.detail, problem.kind


class OperatorListener:
    """Answers /healthz, /readyz and /metrics for all workers.

    It has its own threads and a few connections, so that neither the event loop nor the ingest connections can block
    it. There is no token: everyone who can reach it may read. `workers` maps the worker's number to a function that
    returns the worker's state, or None if the worker does not answer.
    """

    def __init__(
        self, listening: socket.socket, workers: Mapping[int, Callable[[], Look | None]], pushes: bool = False
    ) -> None:
        self._workers = workers
        listener = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 5.0

            def do_GET(self) -> None:
                status, kind, content = listener.answer(self.path.partition("?")[0])
                self.send_response(status)
                head = {"Content-Type": kind, "Content-Length": str(len(content)), "Cache-Control": "no-store"}
                for name, value in head.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def version_string(self) -> str:
                return "deniable"

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing, so that no address is written down."""

        class Listener(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False
            _free = threading.BoundedSemaphore(OPERATORS)

            def process_request(self, request: Any, client_address: Any) -> None:
                if self._free.acquire(blocking=False):
                    super().process_request(request, client_address)
                else:
                    self.shutdown_request(request)

            def process_request_thread(self, request: Any, client_address: Any) -> None:
                try:
                    super().process_request_thread(request, client_address)
                finally:
                    self._free.release()

            def handle_error(self, request: Any, client_address: Any) -> None:
                """The client has left. The standard library would print its address."""

        self._server = Listener(listening.getsockname(), Handler, bind_and_activate=False)
        self._server.socket.close()
        self._server.socket = listening
        listening.listen(OPERATORS)
        threading.Thread(target=self._server.serve_forever, name="operator", daemon=True).start()
        self._pusher = Pusher(lambda: _told_by(self._looks())) if pushes else None

    def _looks(self) -> dict[int, Look | None]:
        with ThreadPoolExecutor(len(self._workers)) as asking:
            return dict(zip(self._workers, asking.map(lambda ask: ask(), self._workers.values()), strict=True))

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """Status, media type and body."""
        if path == "/healthz":
            return 200, JSON, msgspec.json.encode(Health("ok"))
        if path not in ("/readyz", "/metrics"):
            return KINDS["notFound"].status, MEDIA_TYPE, document("notFound", "/healthz, /readyz and /metrics are here")
        found = self._looks()
        if path == "/metrics":
            return 200, METRICS, exposition(_told_by(found)).encode()
        unready = {
            number: "it does not answer" if one is None else one.told
            for number, one in found.items()
            if one is None or not one.ready
        }
        if unready:
            detail = "; ".join(f"worker {number}: {why}" for number, why in sorted(unready.items()))
            return KINDS["overloaded"].status, MEDIA_TYPE, document("overloaded", detail)
        told_all = sorted({one.told for one in found.values() if one is not None}, key=len)
        return 200, JSON, msgspec.json.encode(Health(told_all[-1]))

    def close(self) -> None:
        if self._pusher is not None:
            self._pusher.close()
        self._server.shutdown()
        self._server.server_close()


def _told_by(looks: Mapping[int, Look | None]) -> dict[int, list[Family]]:
    """The figures of the workers that answer, and which of them do."""
    answers = [((("worker", str(number)),), float(one is not None)) for number, one in looks.items()]
    up = shared_gauge("deniable_up", "Whether a worker answers.", dict(answers))
    return {-1: [up], **{number: one.figures for number, one in looks.items() if one is not None}}


ID = Parameter("id", {"type": "string", "pattern": "^[0-9a-f]{64}$"}, "the token's SHA-256", missing="unknownToken")

OPERATIONS = (
    Operation(
        "GET",
        "/v1/tokens",
        "listTokens",
        "List the tokens by their hashes, with what they are good for.",
        show,
        {200: Answer("The tokens.", {JSON: Tokens})},
        role="admin",
    ),
    Operation(
        "POST",
        "/v1/tokens",
        "createToken",
        "Make a token: for all surveys or for one, until it is revoked or until a time.",
        create,
        {201: Answer("The token, shown once.", {JSON: Made})},
        role="admin",
        problems=("unknownSurvey", "surveyDeleted"),
        bodies={JSON: Wanted},
    ),
    Operation(
        "DELETE",
        "/v1/tokens/{id}",
        "revokeToken",
        "Revoke a token.",
        revoke,
        {204: Answer("The token is of no use any more.")},
        role="admin",
        problems=("unknownToken",),
        parameters=(ID,),
    ),
    Operation("GET", "/healthz", "isAlive", "The process lives.", alive, {200: Answer("It does.", {JSON: Health})}),
    Operation(
        "GET",
        "/readyz",
        "isReady",
        "Reports can be taken.",
        ready,
        {200: Answer("They can.", {JSON: Health})},
        problems=("overloaded", "storageFull"),
    ),
    Operation(
        "GET",
        "/metrics",
        "getMetrics",
        "Figures of the worker that answers, for Prometheus. They grow with each submission, and so tell when it came.",
        metrics,
        {200: Answer("The figures.", {"text/plain": {"type": "string"}})},
        role="analyst",
    ),
)
