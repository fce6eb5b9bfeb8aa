"""The service of the demo: a process of its own on an embedded store in a directory of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deniable.collect.stores import open_store
from deniable.collect.stores.base import Token
from deniable.collect.tokens import hashed, new_token
from deniable.errors import DeniableError
from deniable.surveys import Survey

PATIENCE = 60.0


class ServiceError(DeniableError, RuntimeError):
    """A service that did not start."""


@dataclass(frozen=True)
class Service:
    """A running service, with a token for each role."""

    address: str
    store: str
    admin: str
    analyst: str
    process: subprocess.Popen[bytes]

    def wait(self) -> None:
        """Until somebody stops it."""
        self.process.wait()


@contextmanager
def running(directory: Path, survey: Survey, port: int | None = None) -> Iterator[Service]:
    """A service that has published the survey, stopped at the end of the block."""
    file = directory / "demo.db"
    store = f"sqlite:///{file}"
    admin, analyst = new_token(), new_token()
    with open_store(store) as opened:
        opened.publish(survey)
        opened.add_token(Token(hashed(admin), "admin", "demo"))
        opened.add_token(Token(hashed(analyst), "analyst", "demo"))
    chosen = _free_port() if port is None else port
    command = [sys.executable, "-m", "deniable", "serve", "--store", store, "--port", str(chosen)]
    with open(directory / "service.log", "wb") as log:
        # A session of its own, so that Ctrl-C reaches the demo first and the service is stopped in order.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=dict(os.environ), start_new_session=True
        )
        try:
            address = f"http://127.0.0.1:{chosen}"
            _await(address, process, directory / "service.log")
            yield Service(address, store, admin, analyst, process)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _await(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if process.poll() is not None:
            last = log.read_text(errors="replace").strip().splitlines()[-1:]
            raise ServiceError(f"the service did not start: {' '.join(last) or 'it said nothing'}")
        try:
            with urllib.request.urlopen(f"{address}/readyz", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise ServiceError(f"the service was not ready in {PATIENCE:.0f} seconds")
