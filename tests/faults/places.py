"""Where a trial's submissions are kept: how to make such a place, to break it, and to read what it has."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

from deniable.collect.stores import open_store
from deniable.collect.stores.segments import SegmentStore, frames, runs
from deniable.collect.wire import ID_BYTES
from deniable.files import count_files, read_batches
from deniable.files.reports import ID
from deniable.surveys import SurveyTally
from tests.collect.postgres import PostgresServer, database_of, through
from tests.collect.server.live import Process, prepare
from tests.collect.surveys import mixed
from tests.collect.wire_faults import Proxy

KEY = f"S{ID_BYTES}"


class Place:
    """One store, from its making to `close`."""

    name: str
    url: str
    survey = mixed()

    def prepare(self, url: str) -> str:
        with open_store(url) as store:
            prepare(store, self.survey)
        return url

    @property
    def replica(self) -> str:
        """Where a second service keeps what it takes."""
        return self.url

    def ids(self) -> Any:
        """Which submissions the store knows."""
        with tempfile.TemporaryDirectory() as folder, open_store(self.url) as store:
            store.backup(Path(folder, "copy.db"))
            return ids_of(Path(folder, "copy.db"))

    def tally(self) -> SurveyTally:
        """The sum, when no service runs."""
        with open_store(self.url) as store:
            return store.tally(self.survey.fingerprint)

    def check(self) -> list[str]:
        return _checked(self.url)

    def backup(self, to: Path, service: Process) -> None:
        """A copy, made while the service runs if that is possible."""
        deniable("store", "backup", str(to), "--store", self.url)

    def restore(self, copy: Path) -> None:
        """Put a copy in the place of what is there; no service runs."""
        raise NotImplementedError

    def revive(self) -> None:
        """What an operator does when the disk has room again."""

    def close(self) -> None:
        """Remove it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SqlitePlace(Place):
    name = "SQLite"

    def __init__(self, directory: Path) -> None:
        self._path = directory / "store.db"
        self.url = f"sqlite:///{self._path}"

    def restore(self, copy: Path) -> None:
        for name in ("store.db", "store.db-wal", "store.db-shm"):
            self._path.with_name(name).unlink(missing_ok=True)
        deniable("store", "restore", str(copy), "--store", self.url)


class FilesPlace(Place):
    """Nodes that share nothing: each has a directory, and what both took is counted once."""

    name = "files"
    survey = mixed(retention="reports")

    def __init__(self, directory: Path) -> None:
        self._nodes = [directory / "node"]
        self.url = f"files:///{self._nodes[0]}"

    @property
    def replica(self) -> str:
        self._nodes.append(self._nodes[0].with_name("other"))
        return self.prepare(f"files:///{self._nodes[1]}")

    def ids(self) -> Any:
        return np.concatenate([self._ids(node) for node in self._nodes])

    def _ids(self, node: Path) -> Any:
        """Of what is in logs, waits to be a part, or is one."""
        with SegmentStore(node) as store, store._alone(wait=True):
            logs = sorted((node / "segments").glob("[!.]*"))
            found = [rows[:, :ID_BYTES] for log in logs for frame in frames(log) for _, _, rows in runs(frame)]
            for part in (node / "parts").rglob("*.parquet"):
                found += [batch[ID] for batch in read_batches(part, self.survey, ids=True)]
        every = np.concatenate([np.empty((0, ID_BYTES), dtype=np.uint8), *found])
        return np.ascontiguousarray(every).view(KEY).reshape(-1)

    def tally(self) -> SurveyTally:
        for node in self._nodes:
            # A service that has no more time when it ends leaves the rest to the next.
            with SegmentStore(node) as store, store._alone(wait=True):
                store._finish(everything=True)
        reports = [node / "parts" / self.survey.fingerprint / "reports" for node in self._nodes]
        return count_files(self.survey, reports, dedupe=True).tally

    def check(self) -> list[str]:
        return [problem for node in self._nodes for problem in _checked(f"files:///{node}")]

    def backup(self, to: Path, service: Process) -> None:
        assert service.stop() == 0
        shutil.copytree(self._nodes[0], to)
        service.start()

    def restore(self, copy: Path) -> None:
        shutil.rmtree(self._nodes[0])
        shutil.move(copy, self._nodes[0])


class PostgresPlace(Place):
    """A database of its own in a server that may be shared with other trials, one after the other."""

    def __init__(self, server: PostgresServer, version: int) -> None:
        self.name, self.server = f"PostgreSQL {version}", server
        self.url = server.new_database()

    def behind(self, proxy: Proxy) -> str:
        return through(proxy, self.url)

    def restore(self, copy: Path) -> None:
        self.server.drop_database(self.url)
        self.server.new_database(database_of(self.url))
        deniable("store", "restore", str(copy), "--store", self.url)

    def revive(self) -> None:
        self.server.revive()

    def close(self) -> None:
        self.server.drop_database(self.url)


def deniable(*arguments: str) -> None:
    done = subprocess.run([sys.executable, "-m", "deniable", *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def _checked(url: str) -> list[str]:
    with open_store(url) as store:
        return store.check()


def ids_of(copy: Path) -> Any:
    with closing(sqlite3.connect(copy)) as file:
        return np.frombuffer(b"".join(raw for (raw,) in file.execute("SELECT ids FROM seen")), dtype=KEY)


class Disk:
    """A small disk in memory that can be filled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self) -> None:
        with (self.path / "filler").open("wb", buffering=0) as file, suppress(OSError):
            for size in (1 << 20, 4096, 1):
                with suppress(OSError):
                    while file.write(bytes(size)) == size:
                        pass

    def make_room(self) -> None:
        (self.path / "filler").unlink()


@contextmanager
def small_disk(megabytes: int) -> Iterator[Disk]:
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        call = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", name]
        if os.geteuid() != 0 or subprocess.run(call, capture_output=True).returncode:
            pytest.skip("a small disk cannot be mounted here: run as root")
        try:
            yield Disk(Path(name))
        finally:
            subprocess.run(["umount", name], check=True)
