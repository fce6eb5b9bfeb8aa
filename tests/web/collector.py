"""A collector for browser tests: serves the SDK and one survey, and writes down every request it gets."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from deniable.surveys import Survey

WEB = Path(__file__).parents[2] / "web"
TYPES = {".js": "text/javascript", ".json": "application/json"}


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Collector:
    """`replies` are the statuses of the next reports; then they are taken. `hold` makes them wait."""

    survey: Survey
    port: int = 0
    served: bytes = b""
    requests: list[Request] = field(default_factory=list)
    replies: list[int] = field(default_factory=list)
    hold: threading.Event | None = None
    arrived: threading.Event = field(default_factory=threading.Event)

    @property
    def page(self) -> str:
        """Another origin than the collector's, so that reports go from one site to another."""
        return f"http://localhost:{self.port}/"

    @property
    def server(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def bodies(self) -> list[bytes]:
        return [request.body for request in self.requests if request.method == "POST"]

    @property
    def to_the_service(self) -> list[Request]:
        return [request for request in self.requests if request.path.startswith("/v1/")]


@contextmanager
def collecting(survey: Survey) -> Iterator[Collector]:
    collector = Collector(survey, served=survey.canonical)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

        def _reply(self, status: int, body: bytes = b"", kind: str = "application/json") -> None:
            self.send_response(status)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Access-Control-Allow-Methods", "GET, POST, OPTIONS")
            self.send_header("Access-Control-Allow-Headers", "Content-Type")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _note(self) -> Request:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = Request(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body)
            collector.requests.append(request)
            return request

        def do_OPTIONS(self) -> None:
            self._note()
            self._reply(204)

        def do_GET(self) -> None:
            path = self._note().path
            file = WEB / path.lstrip("/")
            if path == "/":
                self._reply(200, b"<!doctype html><title>a page</title>", "text/html")
            elif path == f"/v1/surveys/{survey.fingerprint}":
                self._reply(200, collector.served)
            elif file.suffix in TYPES and file.is_file():
                self._reply(200, file.read_bytes(), TYPES[file.suffix])
            else:
                self._reply(404)

        def do_POST(self) -> None:
            self._note()
            collector.arrived.set()
            if collector.hold is not None:
                collector.hold.wait(90)
                return
            status = collector.replies.pop(0) if collector.replies else 200
            self._reply(status, b'{"accepted":1,"rejected":[]}' if status == 200 else b"{}")

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A browser that hangs up is no error here."""

    with Server(("127.0.0.1", 0), Handler) as server:
        collector.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield collector
        finally:
            if collector.hold is not None:
                collector.hold.set()
            server.shutdown()
            thread.join()
