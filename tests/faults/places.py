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
from deniable.collect.wire import ID_BYTES
from deniable.surveys import Survey, SurveyTally
from tests.collect.postgres import PostgresServer, through
from tests.collect.server.live import prepare
from tests.collect.wire_faults import Proxy

KEY = f"S{ID_BYTES}"


class Place:
    """One store, from its making to `close`."""

    name: str
    url: str

    def prepare(self, survey: Survey) -> None:
        with open_store(self.url) as store:
            prepare(store, survey)

    def ids(self, survey: Survey) -> Any:
        """Which submissions the store knows."""
        with tempfile.TemporaryDirectory() as folder, open_store(self.url) as store:
            store.backup(Path(folder, "copy.db"))
            return ids_of(Path(folder, "copy.db"))

    def tally(self, survey: Survey) -> SurveyTally:
        with open_store(self.url) as store:
            return store.tally(survey.fingerprint)

    def check(self) -> list[str]:
        with open_store(self.url) as store:
            return store.check()

    def backup(self, to: Path) -> None:
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
        for name in ("store.db-wal", "store.db-shm"):
            self._path.with_name(name).unlink(missing_ok=True)
        shutil.move(copy, self._path)


class PostgresPlace(Place):
    """A database of its own in a server that may be shared with other trials, one after the other."""

    def __init__(self, server: PostgresServer, version: int) -> None:
        self.name, self.server = f"PostgreSQL {version}", server
        self.url = server.new_database()

    def behind(self, proxy: Proxy) -> str:
        return through(proxy, self.url)

    def restore(self, copy: Path) -> None:
        raise NotImplementedError

    def revive(self) -> None:
        self.server.revive()

    def close(self) -> None:
        self.server.drop_database(self.url)


def deniable(*arguments: str) -> None:
    done = subprocess.run([sys.executable, "-m", "deniable", *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


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
