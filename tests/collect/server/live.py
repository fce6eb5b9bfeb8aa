"""Services to test: one in a thread of this process, one that is a process of its own, and ways to talk to them."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deniable.collect.server.run import bound, make_server
from deniable.collect.server.service import Service, Settings
from deniable.collect.stores import Store, Token, open_store
from deniable.collect.wire import BINARY, JSON, encode, encode_json, hashed, new_token
from deniable.surveys import Survey
from tests.collect.surveys import Crowd

TOKENS = {role: new_token() for role in ("admin", "analyst", "ingest")}


def token_file(folder: Path, role: str) -> str:
    """Commands read tokens from files, not from arguments."""
    (folder / role).write_text(f"{TOKENS[role]}\n", encoding="utf-8")
    return str(folder / role)


@dataclass
class Answered:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def problem(self) -> str:
        """The name of the problem; fails unless this is a whole problem document."""
        assert self.headers["content-type"] == "application/problem+json"
        content = self.json
        assert set(content) == {"type", "title", "status", "detail"}
        assert content["status"] == self.status
        prefix, _, name = content["type"].rpartition(":")
        assert prefix == "urn:deniable:problem"
        return str(name)


@dataclass
class Client:
    """Talks HTTP to a port, over a connection a thread."""

    port: int
    _local: threading.local = field(default_factory=threading.local)
    _opened: list[http.client.HTTPConnection] = field(default_factory=list)

    def close(self) -> None:
        for connection in self._opened:
            connection.close()

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        role: str | None = None,
        headers: dict[str, str] | None = None,
        timeout: float = 90,
    ) -> Answered:
        sent = dict(headers or {})
        if role is not None:
            sent["Authorization"] = f"Bearer {TOKENS[role]}"
        for attempt in (1, 2):
            connection = getattr(self._local, "connection", None)
            fresh = connection is None
            if connection is None:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
                self._local.connection = connection
                self._opened.append(connection)
            try:
                connection.request(method, path, body, sent)
                response = connection.getresponse()
                content = response.read()
            except (OSError, http.client.HTTPException):
                connection.close()
                self._local.connection = None
                # A kept connection may have been closed meanwhile; a new one fails for a reason.
                if fresh or attempt == 2:
                    raise
                continue
            return Answered(response.status, {k.lower(): v for k, v in response.getheaders()}, content)
        raise AssertionError("unreachable")

    def get(self, path: str, role: str | None = None, **headers: str) -> Answered:
        return self.ask("GET", path, None, role, {key.replace("_", "-"): value for key, value in headers.items()})

    def send(self, survey: Survey, epoch: int, people: Crowd, **extra: Any) -> Answered:
        """Submissions in binary."""
        return self.post(survey, body(survey, epoch, people), **extra)

    def post(self, survey: Survey, raw: bytes, kind: str = BINARY, **extra: Any) -> Answered:
        headers = {"Content-Type": kind} | extra.pop("headers", {})
        return self.ask("POST", f"/v1/surveys/{survey.fingerprint}/reports", raw, headers=headers, **extra)

    def send_json(self, survey: Survey, epoch: int, people: Crowd, **extra: Any) -> Answered:
        rows = zip(people.ids, people.answers, strict=True)
        records = [(id.tobytes(), epoch, answers.tobytes()) for id, answers in rows]
        return self.post(survey, encode_json(records), JSON, **extra)


def body(survey: Survey, epoch: int, people: Crowd) -> bytes:
    return encode(epoch, people.ids.tobytes(), people.answers.tobytes(), survey.report_bytes)


def prepare(store: Store, *surveys: Survey) -> None:
    """Publish surveys and make a token for each role."""
    for survey in surveys:
        store.publish(survey)
    for role, token in TOKENS.items():
        store.add_token(Token(hashed(token), role, f"{role} of the tests"))


@dataclass
class Live(Client):
    """A service in a thread of this process."""

    service: Service = None  # type: ignore[assignment]
    url: str = ""
    loop: Any = None

    def store(self) -> Store:
        return open_store(self.url)


@contextlib.contextmanager
def in_thread(url: str, *surveys: Survey, **settings: Any) -> Iterator[Live]:
    with open_store(url) as store:
        prepare(store, *surveys)
    # What other processes change is looked for often, and the clock is trusted at once, so that tests need not wait.
    given = Settings(**({"store": url, "port": 0, "refresh_seconds": 0.05, "steady_seconds": 0.0} | settings))
    listening = bound(given)
    started = threading.Event()
    server = make_server(given, started.set)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    assert started.wait(20)
    eventually(lambda: server.loop is not None)
    client = Live(listening.getsockname()[1], service=server.service, url=url, loop=server.loop)
    try:
        yield client
    finally:
        client.close()
        server.leave()
        thread.join(30)
        assert not thread.is_alive()


def moving(moment: list[float]) -> dict[str, Any]:
    """Clocks that go on together, as time does: settings of a service."""
    return {"clock": lambda: moment[0], "monotonic": lambda: moment[0]}


class Process(Client):
    """`python -m deniable serve`, which can be killed and started again on the same port; or another `command`."""

    command: tuple[str, ...] = ("serve",)

    def __init__(self, url: str, *arguments: str, program: str = "deniable", **variables: str) -> None:
        super().__init__(free_port())
        self.url, self._arguments, self._program, self._variables = url, arguments, program, variables
        self.log = Path(tempfile.mkstemp(suffix=".log")[1])
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", self._program, *self.command, "--store", self.url, "--port", str(self.port)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"} | self._variables,
            )
        assert self.process.stdout is not None
        self.said = ""
        for line in self.process.stdout:
            self.said += line
            if re.match(r"(serving|relaying): http://127\.0\.0\.1:\d+/", line):
                return
        raise AssertionError(f"the service did not start: {self.log.read_text()}")

    def kill(self) -> None:
        self.process.kill()
        self._gone()

    def stop(self) -> int:
        """As an operator would."""
        self.process.send_signal(signal.SIGTERM)
        return self._gone()

    def _gone(self) -> int:
        assert self.process.stdout is not None
        code = self.process.wait(60)
        self.process.stdout.close()
        return code

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        if self.process.poll() is None:
            self.stop()
        self.log.unlink(missing_ok=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def raw(port: int, data: bytes, timeout: float = 90) -> bytes:
    """The first whole answer to these bytes, or what came before the service hung up or fell silent."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        return exchanged(connection, data)


def exchanged(connection: socket.socket, data: bytes) -> bytes:
    """The same over a connection that stays open."""
    received = b""
    with contextlib.suppress(TimeoutError, ConnectionError):
        connection.sendall(data)
        while not _whole(received) and (piece := connection.recv(65_536)):
            received += piece
    return received


def _whole(received: bytes) -> bool:
    start, blank, content = received.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", start)
    return bool(blank) and length is not None and len(content) >= int(length[1])


def eventually(check: Any, seconds: float = 90.0) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)
