"""Real Spark processes for tests: a standalone cluster with two workers, and a Connect server."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.collect.server.live import free_port

HOST = "127.0.0.1"


def need_spark() -> None:
    """Skips with the reason where Spark cannot run; in CI that is a failure."""
    missing = [name for name in ("pyspark", "pyarrow") if find_spec(name) is None]
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        missing.append("Java 17")
    if missing:
        reason = f"needs {' and '.join(missing)}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path, seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) == 0:
                return
        assert process.poll() is None, log.read_text()
        time.sleep(0.2)
    raise AssertionError(f"nothing listens at {port}: {log.read_text()[-2000:]}")


class Daemons:
    """Processes of Spark, each in a group of its own so that its children end with it."""

    def __init__(self, folder: Path) -> None:
        import pyspark

        self._home = Path(pyspark.__file__).parent
        self._folder = folder
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, *command: str) -> tuple[subprocess.Popen[bytes], Path]:
        log = self._folder / f"{name}.log"
        environment = {
            **os.environ,
            "SPARK_HOME": str(self._home),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": HOST,
            "SPARK_NO_DAEMONIZE": "1",
        }
        with open(log, "wb") as out:
            process = subprocess.Popen(
                [str(self._home / "bin" / command[0]), *command[1:]],
                stdout=out,
                stderr=out,
                env=environment,
                start_new_session=True,
                cwd=self._folder,
            )
        self._running.append(process)
        return process, log

    def stop(self) -> None:
        for process in reversed(self._running):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Cluster:
    """A master and two workers with one core each."""

    def __init__(self, daemons: Daemons, folder: Path) -> None:
        port = free_port()
        master, log = daemons.start(
            "master", "spark-class", "org.apache.spark.deploy.master.Master",
            "--host", HOST, "--port", str(port), "--webui-port", str(free_port()),
        )  # fmt: skip
        wait_for(port, master, log)
        self.url = f"spark://{HOST}:{port}"
        self._log = log
        self.workers = [self._worker(daemons, folder, i) for i in range(2)]
        end = time.monotonic() + 90
        while log.read_text().count("Registering worker") < 2:
            assert time.monotonic() < end, log.read_text()[-2000:]
            time.sleep(0.2)

    def _worker(self, daemons: Daemons, folder: Path, number: int) -> subprocess.Popen[bytes]:
        process, _ = daemons.start(
            f"worker-{number}", "spark-class", "org.apache.spark.deploy.worker.Worker",
            "--host", HOST, "--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work-{number}"),
            "--webui-port", str(free_port()), self.url,
        )  # fmt: skip
        return process

    def kill_worker(self, which: int) -> None:
        """kill -9 of a worker and of the executors that it started."""
        os.killpg(self.workers[which].pid, signal.SIGKILL)


SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.ui.enabled": "false",
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
}


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    daemons = Daemons(folder)
    try:
        yield Cluster(daemons, folder)
    finally:
        daemons.stop()


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """The URL of a Spark Connect server on two cores."""
    daemons, port = Daemons(folder), free_port()
    try:
        process, log = daemons.start(
            "connect", "spark-submit", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
            "--master", "local[2]", "--conf", f"spark.connect.grpc.binding.port={port}",
            "--conf", "spark.ui.enabled=false", "--conf", f"spark.driver.host={HOST}", "spark-internal",
        )  # fmt: skip
        wait_for(port, process, log)
        yield f"sc://{HOST}:{port}"
    finally:
        daemons.stop()
