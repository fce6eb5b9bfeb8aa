"""Environments for other packages, made when first asked for, in `.venv-peers/` of the project's root.

They are apart from the project's own because the pins that a package still works with contradict ours. The pins
are complete, and nothing else is installed. An environment is made again when its pins or the interpreter change.
One process a package does all that is asked of it, and ends with this one.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.registry import Task, UnavailableError

HERE = Path(__file__).parent
WORKER = HERE / "worker.py"
ROOT = HERE.parents[1]
ENVIRONMENTS = ROOT / ".venv-peers"
STAMP = ".ready"


def task(package: str, what: str, count: int, unit: str, oracle: str = "") -> Task:
    """A task of another package; raises `UnavailableError` where the package cannot be installed."""
    python = interpreter(package)

    def once() -> float:
        return float(call(package, python, what, count, oracle)["seconds"])

    return Task(once, count, unit)


def frequencies(package: str, oracle: str, count: int) -> list[float]:
    """What the package's own estimates are for so many answers."""
    found: list[float] = call(package, interpreter(package), "estimate", count, oracle)["frequencies"]
    return found


def version(package: str) -> str:
    """The version that was timed."""
    return str(call(package, interpreter(package), "version")["version"])


def interpreter(package: str) -> Path:
    """The Python of the package's environment."""
    found = _attempt(package)
    if isinstance(found, str):
        raise UnavailableError(found)
    return found


def call(package: str, python: Path, what: str, count: int = 0, oracle: str = "") -> dict[str, Any]:
    worker = _worker(HERE / f"run_{package.replace('-', '_')}.py", python)
    request = {"what": what, "count": count, "oracle": oracle}
    answer = worker.ask(json.dumps(request))
    if not answer:
        raise UnavailableError(f"{package} does not run: {worker.last_words()}")
    found: dict[str, Any] = json.loads(answer)
    return found


class Worker:
    """The process of a package; it ends when its input does."""

    def __init__(self, script: Path, python: Path) -> None:
        self._errors = tempfile.TemporaryFile(mode="w+", encoding="utf-8")  # noqa: SIM115  (as long as the process)
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._errors}
        self._process = subprocess.Popen([python, "-I", WORKER, script], text=True, **pipes)

    def ask(self, request: str) -> str:
        """One line for one line; nothing if the process has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(request + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return ""
        return str(self._process.stdout.readline())

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            # A process that failed leaves its last request unread.
            with suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()
        self._process.wait()

    def last_words(self) -> str:
        self._process.wait()
        self._errors.seek(0)
        return _last_line(self._errors.read())


_workers: dict[tuple[Path, Path], Worker] = {}


def _worker(script: Path, python: Path) -> Worker:
    if (script, python) not in _workers:
        _workers[script, python] = Worker(script, python)
    return _workers[script, python]


@atexit.register
def close_workers() -> None:
    while _workers:
        _workers.popitem()[1].close()


@cache  # a failed installation is not tried again in the same run
def _attempt(package: str) -> Path | str:
    """The interpreter, or the reason why there is none."""
    folder, requirements = ENVIRONMENTS / package, HERE / f"{package}.txt"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
    ready = folder / STAMP
    if ready.exists() and ready.read_text() == stamp:
        return python
    print(f"installing {package} in {ENVIRONMENTS.name} (once)", file=sys.stderr)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    steps = [
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        [*pip, "install", "--no-deps", "--only-binary", ":all:", "-r", str(requirements)],
    ]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True)
        if done.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            return f"{package} cannot be installed: {_last_line(done.stderr or done.stdout)}"
    ready.write_text(stamp)
    return python


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason was given"
