"""Environments for other packages, made when first asked for, in `.venv-peers/` of the project's root.

They are apart from the project's own because the pins that a package still works with contradict ours. An
environment is made again when its requirements file or the interpreter changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from benchmarks.registry import Task, UnavailableError

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ENVIRONMENTS = ROOT / ".venv-peers"
STAMP = ".ready"


def task(package: str, what: str, count: int, unit: str) -> Task:
    """A task of another package; raises `UnavailableError` where the package cannot be installed."""
    python = interpreter(package)

    def once() -> float:
        return float(call(package, python, what, count)["seconds"])

    return Task(once, count, unit)


def version(package: str) -> str:
    """The version that was timed."""
    return str(call(package, interpreter(package), "version", 0)["version"])


def interpreter(package: str) -> Path:
    """The Python of the package's environment."""
    found = _attempt(package)
    if isinstance(found, str):
        raise UnavailableError(found)
    return found


def call(package: str, python: Path, what: str, count: int) -> dict[str, str | float]:
    script = HERE / f"run_{package.replace('-', '_')}.py"
    done = subprocess.run([python, "-I", script, what, str(count)], capture_output=True, text=True)
    if done.returncode:
        raise UnavailableError(f"{package} does not run: {_last_line(done.stderr)}")
    answer: dict[str, str | float] = json.loads(done.stdout)
    return answer


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
        [*pip, "install", "--only-binary", ":all:", "-r", str(requirements)],
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
