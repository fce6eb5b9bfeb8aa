"""A wire between devices and a service that loses what it is told to lose."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

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
