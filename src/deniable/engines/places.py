"""Which files are meant: local paths, directories, patterns, and URLs.

Path       a file; a directory stands for all files below it, a pattern like day-*/*.parquet for those that match
URL        the same elsewhere (`urls`); where a question mark begins the options, it is no pattern
Hidden     names that begin with a dot or an underscore are no data (.part, _SUCCESS) and are passed over
Order      directories and patterns are sorted, so that the same inputs are the same list
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deniable._extras import require
from deniable.columns import kind
from deniable.engines.urls import below, filesystem, is_url, nowhere, plain, said_of, shown, split_options
from deniable.errors import MismatchError, ReportError, SpecError

STDIN = "-"

_MAGIC = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Place:
    """One file, as it was found."""

    name: str
    """A path or a URL, with all that it takes to open it, or "-"."""
    size: int | None = None
    """Bytes; None for what can be read only once, like a pipe."""
    modified: int | None = None
    """Nanoseconds."""

    @property
    def once(self) -> bool:
        return self.size is None


@dataclass(frozen=True, slots=True)
class Refused:
    """What was not counted, and why."""

    place: str
    """The name of its place."""
    error: Exception

    @property
    def name(self) -> str:
        """How messages call it."""
        return shown(self.place)

    @property
    def complaint(self) -> str:
        """The reason with the name, which most reasons have."""
        name = repr(self.name)
        return self.reason if name in self.reason else f"{name}: {self.reason}"

    @property
    def reason(self) -> str:
        if isinstance(self.error, OSError):
            return self.error.strerror or str(self.error)
        return str(self.error)


# -- from what was asked for to files ------------------------------------------------------------------


def expand(inputs: str | Path | Iterable[str | Path]) -> list[Place | Refused]:
    """Files in order, each once; an input that gives none is refused."""
    found: list[Place | Refused] = []
    seen: dict[str, str] = {}
    for given in [inputs] if isinstance(inputs, str | Path) else inputs:
        if not isinstance(given, str | Path):
            raise SpecError(f"inputs are given by the names of their files, not as {kind(given)}")
        name = plain(given)
        try:
            places = _remote(name) if is_url(name) else _local(name)
        except (OSError, ReportError) as wrong:
            found.append(Refused(name, wrong))
            continue
        for place in places:
            real = place.name if place.name == STDIN or is_url(place.name) else os.path.realpath(place.name)
            if real in seen:
                first, second = seen[real], shown(place.name)
                raise MismatchError(f"{second!r} is the same file as {first!r}: it would be counted twice")
            seen[real] = shown(place.name)
        found += places
    return found


def _local(name: str) -> list[Place]:
    if name == STDIN:
        return [Place(STDIN)]
    if os.path.isdir(name):
        below = []
        for folder, folders, files in os.walk(name):
            folders[:] = [inner for inner in folders if not _hidden(inner)]
            below += [os.path.join(folder, file) for file in files if not _hidden(file)]
        if not below:
            raise ReportError(f"the directory {name!r} holds no files of reports")
        return [_stat(path) for path in sorted(below)]
    magic = _MAGIC.search(name)
    if magic and not os.path.exists(name):
        # How many steps of the path come before the first that is a pattern.
        steps = len(Path(f"{name[: magic.start()]}x").parts) - 1
        matches = sorted(
            path
            for path in glob.glob(name, recursive=True)
            if os.path.isfile(path) and not any(map(_hidden, Path(path).parts[steps:]))
        )
        if not matches:
            raise ReportError(f"no file matches {name!r}")
        return [_stat(path) for path in matches]
    return [_stat(name)]


def _hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _stat(path: str) -> Place:
    facts = os.stat(path)
    return Place(path, facts.st_size, facts.st_mtime_ns) if os.path.isfile(path) else Place(path)


def _remote(url: str) -> list[Place]:
    fs = require("pyarrow.fs", "files")
    with said_of(url):
        files, path = filesystem(url)
        exact = files.get_file_info(path)
        if exact.type == fs.FileType.File:
            return [_place(url, exact)]
        pattern = None
        if exact.type != fs.FileType.Directory:
            stem, options = split_options(url)
            # From here on the directory above the first step that is a pattern.
            pattern, path, url = path.removesuffix(options), _above(path.removesuffix(options)), _above(stem) + options
            if pattern == path:
                raise nowhere(url)
        listed = files.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
    chosen = {
        relative: entry
        for entry in listed
        if entry.type == fs.FileType.File
        and not any(map(_hidden, (relative := entry.path[len(path) :].strip("/")).split("/")))
        and (pattern is None or _matches(entry.path.strip("/").split("/"), pattern.strip("/").split("/")))
    }
    if not chosen:
        raise ReportError(
            f"the directory {shown(url)!r} holds no files of reports"
            if pattern is None
            else f"no file matches {pattern.rpartition('/')[2]!r} below {shown(url)!r}"
        )
    with said_of(url):
        # A listing may lack the sizes.
        entries = {
            relative: entry if entry.size is not None else files.get_file_info(entry.path)
            for relative, entry in chosen.items()
        }
    return [_place(below(url, relative), entries[relative]) for relative in sorted(entries)]


def _above(path: str) -> str:
    """The directory above the first step that is a pattern; all of a path without one."""
    magic = _MAGIC.search(path)
    return path[: magic.start()].rpartition("/")[0] if magic else path


def _matches(steps: list[str], pattern: list[str]) -> bool:
    """As the shell does it: a star stays within one step of the path, two go through any number."""
    if not pattern:
        return not steps
    if pattern[0] == "**":
        return any(_matches(steps[skipped:], pattern[1:]) for skipped in range(len(steps) + 1))
    return bool(steps) and fnmatch.fnmatchcase(steps[0], pattern[0]) and _matches(steps[1:], pattern[1:])


def _place(url: str, entry: Any) -> Place:
    return Place(url, entry.size, entry.mtime_ns)
