"""Wires that fail: between devices and a service, and between a service and its database."""

from __future__ import annotations

import select
import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path

DROP_REQUEST, DROP_RESPONSE, TEAR_REQUEST = "drop request", "drop response", "tear request"


class Wire:
    """Forwards connections to a port; the next one that carries a POST is treated as `next_fault` says."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.next_fault: str | None = None
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(0.05)
        self._stop = threading.Event()
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()
        self._threads: list[threading.Thread] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def close(self) -> None:
        self._stop.set()
        self._accepting.join()
        for thread in self._threads:
            thread.join()
        self._socket.close()

    def _accept(self) -> None:
        while not self._stop.is_set():
            try:
                device, _ = self._socket.accept()
            except TimeoutError:
                continue
            thread = threading.Thread(target=self._carry, args=(device,))
            self._threads.append(thread)
            thread.start()

    def _carry(self, device: socket.socket) -> None:
        with device, suppress(OSError):
            device.settimeout(10)
            request = _whole(device)
            fault, self.next_fault = (self.next_fault, None) if request.startswith(b"POST") else (None, self.next_fault)
            if not request or fault == DROP_REQUEST:
                return
            with socket.create_connection(("127.0.0.1", self._port), timeout=10) as service:
                if fault == TEAR_REQUEST:
                    service.sendall(request[:-3])
                    return
                # One request a connection, so that the end of the reply is the end of the stream.
                service.sendall(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
                reply = b""
                while piece := service.recv(65_536):
                    reply += piece
            if fault != DROP_RESPONSE:
                device.sendall(reply)


def _whole(device: socket.socket) -> bytes:
    """One request with its body."""
    raw = b""
    while True:
        head, found, body = raw.partition(b"\r\n\r\n")
        if found:
            lengths = [
                int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
            ]
            if len(body) >= (lengths[0] if lengths else 0):
                return raw
        piece = device.recv(65_536)
        if not piece:
            return b""
        raw += piece


class Proxy:
    """Forwards connections on a loopback port to a port or to a socket in a file, until it is told otherwise."""

    turns = 0
    """How often a client has spoken after an answer."""

    def __init__(self, target: int | Path) -> None:
        self._target, self._forwarding = target, threading.Event()
        self._alive: dict[object, tuple[socket.socket, socket.socket]] = {}
        self._lock, self._closed = threading.Lock(), False
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.speak()
        threading.Thread(target=self._accept, daemon=True).start()

    def fall_silent(self) -> None:
        """Connections stay open, and nothing comes through: what a lost route looks like."""
        self._forwarding.clear()

    def speak(self) -> None:
        self._forwarding.set()

    def swallow(self) -> None:
        """The connections of this moment stay open and carry nothing ever again; new ones work."""
        with self._lock:
            self._alive.clear()

    def cut(self) -> None:
        """Reset the connections of this moment."""
        with self._lock:
            for pair in self._alive.values():
                for one in pair:
                    with suppress(OSError):
                        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._closed = True
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _connect(self) -> socket.socket:
        if isinstance(self._target, int):
            return socket.create_connection(("127.0.0.1", self._target))
        server = socket.socket(socket.AF_UNIX)
        server.connect(str(self._target))
        return server

    def _forward(self, client: socket.socket) -> None:
        with client, suppress(OSError), self._connect() as server:
            key, last = object(), server
            with self._lock:
                self._alive[key] = client, server
            try:
                while not self._closed:
                    ready, _, _ = select.select([client, server], [], [], 0.05)
                    if not self._forwarding.is_set():
                        self._forwarding.wait(0.05)
                    elif key not in self._alive:
                        threading.Event().wait(0.05)
                    else:
                        for one in ready:
                            if not (data := one.recv(65_536)):
                                return
                            self.turns += one is client and last is server
                            last = one
                            (server if one is client else client).sendall(data)
            finally:
                with self._lock:
                    self._alive.pop(key, None)
