"""Run one page in a process of its own, unless nothing that it read has changed since it ran last.

`execute.py` starts this for each page: `rendered.py SOURCE FILE`, with the page's text on standard input. FILE then
holds JSON: the text that replaces the page, its images, and a digest of each file and each folder's list of names that
was read. A page that starts a program depends on all files of the project, because nobody sees what it reads.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
STARTS = ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.system")
READS = ("open", "os.listdir", "os.scandir")
EVERYTHING = ("src", "web", "docs/_hooks", "tests/strangers", "examples", "benchmarks")
UNTOLD = {"__pycache__", ".venv", ".git", ".docs_cache", "site"}


def key_of(markdown: str) -> str:
    """What a page depends on besides files of the project: its text, the interpreter and the installed packages."""
    packages = sorted(f"{one.name} {one.version}" for one in distributions())
    return _digest("\0".join([markdown, platform.python_version(), *packages]).encode())


def digest_of(path: Path) -> str | None:
    """Digest of a file's bytes or of the names in a folder; None if there is no such path."""
    if path.is_dir():
        return _digest("\0".join(sorted({entry.name for entry in path.iterdir()} - UNTOLD)).encode())
    return _digest(path.read_bytes()) if path.is_file() else None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def still_true(entry: dict[str, Any], key: str) -> bool:
    return entry["key"] == key and all(digest_of(ROOT / path) == digest for path, digest in entry["read"].items())


class Reading:
    """The paths of the project that this process reads, from the interpreter's own audit events."""

    def __init__(self) -> None:
        self.paths: set[Path] = set()
        self.everything = False
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in STARTS:
            self.everything = True
        elif event in READS and isinstance(arguments[0], str | bytes | os.PathLike):
            self.paths.add(Path(os.path.abspath(os.fsdecode(arguments[0]))))

    def digests(self) -> dict[str, str | None]:
        modules = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        found = {*self.paths, *(Path(name) for name in modules if name)}
        if self.everything:
            found |= {path for name in EVERYTHING for path in (ROOT / name, *(ROOT / name).rglob("*"))}
        return {str(path): digest_of(ROOT / path) for path in sorted(_of_the_project(found))}


def _of_the_project(paths: Iterable[Path]) -> set[Path]:
    inside = {path.relative_to(ROOT) for path in paths if path.is_relative_to(ROOT)}
    return {path for path in inside if not UNTOLD & set(path.parts) and path.suffix != ".pyc"}


def render(markdown: str, source: str, run: Callable[[str, str, Callable[[str, bytes], str]], str]) -> dict[str, Any]:
    """What `execute.run_page` makes of a page: its text and images, with all that was read for it."""
    images: dict[str, str] = {}

    def save(name: str, image: bytes) -> str:
        if name in images:
            raise ValueError(f"the figure {name!r} was already drawn on this page: give it another name")
        images[name] = base64.b64encode(image).decode()
        return os.path.relpath(f"assets/generated/{os.path.splitext(source)[0]}/{name}", os.path.dirname(source) or ".")

    return {"markdown": run(markdown, source, save), "images": images}


def main(source: str, name: str) -> None:
    sys.stdin.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    markdown, file = sys.stdin.read(), Path(name)
    key = key_of(markdown)
    if file.exists() and still_true(json.loads(file.read_text(encoding="utf-8")), key):
        return
    reading = Reading()
    from execute import run_page
    from mkdocs.exceptions import PluginError

    try:
        entry = render(markdown, source, run_page)
    except (PluginError, ValueError) as error:
        sys.exit(str(error) if isinstance(error, PluginError) else f"{source}: {error}")
    file.write_text(json.dumps({"key": key, "read": reading.digests(), **entry}), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
