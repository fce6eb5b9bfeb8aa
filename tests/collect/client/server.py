"""A real server on a real socket that keeps every byte it receives, and misbehaves on request."""

from __future__ import annotations

import json
import socket
import threading
import time
from dataclasses import dataclass, field

from deniable.collect import wire
from deniable.surveys import Survey

OK, DROP_REQUEST, DROP_RESPONSE, PORTAL, TORN = "ok", "drop request", "drop response", "portal", "torn"

CUT = b"["
"""The end of a reply that was torn off."""


@dataclass
class Server:
    """Surveys by GET, submissions by POST, counted once an id, deleted by DELETE; `script` says what posts meet."""

    surveys: dict[str, bytes] = field(default_factory=dict)
    script: list = field(default_factory=list)
    """OK, DROP_REQUEST, ..., ("reject", reason), ("slow", seconds) or (status, headers); then OK for ever."""
    requests: list[bytes] = field(default_factory=list)
    counted: dict[bytes, bytes] = field(default_factory=dict)
    """Id to body, of each submission that was counted."""
    connections: int = 0
    conflicts: int = 0
    """Submissions with a known id and other bytes: what must never happen."""

    def __post_init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(0.05)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def publish(self, survey: Survey, content: bytes | None = None) -> str:
        self.surveys[survey.fingerprint] = survey.canonical if content is None else content
        return survey.fingerprint

    @property
    def posts(self) -> list[bytes]:
        """Bodies as they came."""
        return [raw.partition(b"\r\n\r\n")[2] for raw in self.requests if raw.startswith(b"POST")]

    def close(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._socket.close()

    def _accept(self) -> None:
        while not self._stop.is_set():
            try:
                connection, _ = self._socket.accept()
            except TimeoutError:
                continue
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(0.05)
        with connection:
            while not self._stop.is_set():
                if self.script and self.script[0] == DROP_REQUEST and self._begins(connection):
                    self.script.pop(0)
                    return
                raw = self._request(connection)
                if raw is None:
                    return
                with self._lock:
                    self.requests.append(raw)
                    reply = self._reply(raw)
                if reply is None:
                    return
                if isinstance(reply, float):
                    time.sleep(reply)
                    return
                try:
                    connection.settimeout(5)
                    connection.sendall(reply)
                    connection.settimeout(0.05)
                except OSError:
                    return
                if b"Connection: close" in reply or reply.endswith(CUT):
                    return

    def _begins(self, connection: socket.socket) -> bool:
        while not self._stop.is_set():
            try:
                return connection.recv(4, socket.MSG_PEEK) == b"POST"
            except TimeoutError:
                continue
        return False

    def _request(self, connection: socket.socket) -> bytes | None:
        raw = b""
        while not self._stop.is_set():
            head, found, body = raw.partition(b"\r\n\r\n")
            if found:
                lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.startswith(b"Content-Length")]
                if len(body) >= int(lengths[0] if lengths else 0):
                    return raw
            try:
                piece = connection.recv(65536)
            except TimeoutError:
                continue
            except ConnectionError:
                return None
            if not piece:
                return None
            raw += piece
        return None

    def _reply(self, raw: bytes) -> bytes | float | None:
        head, _, body = raw.partition(b"\r\n\r\n")
        method, path, _ = head.split(b"\r\n")[0].decode().split(" ")
        fingerprint = path.split("/")[3]
        if method == "GET":
            found = self.surveys.get(fingerprint)
            return response(404, b"{}") if found is None else response(200, found)
        action = self.script.pop(0) if self.script else OK
        if method == "DELETE":
            if isinstance(action, tuple):
                return response(action[0], b"{}", action[1])
            held = self.counted.pop(wire.from_text(path.split("/")[5], wire.ID_BYTES), None)
            return response(200, json.dumps({"deleted": held is not None}).encode())
        if action == PORTAL:
            return response(200, b"<html>Please log in</html>")
        if isinstance(action, tuple) and isinstance(action[0], int):
            problem = {"type": f"urn:deniable:{action[2]}"} if len(action) > 2 else {}
            return response(action[0], json.dumps(problem).encode(), action[1])
        if isinstance(action, tuple) and action[0] == "slow":
            return float(action[1])
        id = body[wire.HEADER_BYTES : wire.HEADER_BYTES + wire.ID_BYTES]
        if isinstance(action, tuple):
            rejected = [[0, wire.to_text(id), action[1]]]
            return response(200, json.dumps({"accepted": 0, "rejected": rejected}).encode())
        if self.counted.setdefault(id, body) != body:
            self.conflicts += 1
        if action == DROP_RESPONSE:
            return None
        reply = response(200, b'{"accepted": 1, "rejected": []}')
        return reply.removesuffix(b"[]}") + CUT if action == TORN else reply


def response(status: int, body: bytes, headers: dict[str, str] | None = None) -> bytes:
    extra = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    close = "Connection: close\r\n" if status >= 400 else ""
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n{extra}{close}\r\n".encode() + body
