"""Where files are: local paths, directories, patterns, and URLs of every filesystem that pyarrow or fsspec knows.

Path       a file; a directory stands for all files below it, a pattern like day-*/*.parquet for those that match
URL        file://, s3://, gs://, hdfs://, abfs:// by pyarrow; every other scheme by fsspec
Hidden     names that begin with a dot or an underscore are no data (.part, _SUCCESS) and are passed over
Order      directories and patterns are sorted, so that the same inputs are the same list
"""

from __future__ import annotations

import errno
import fnmatch
import glob
import io
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit
from urllib.request import url2pathname

from deniable._extras import require
from deniable.errors import MismatchError, ReportError
from deniable.surveys.whole import whole

STDIN = "-"

_URL = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)
_MAGIC = re.compile(r"[*?\[]")
_BY_PYARROW = ("s3", "gs", "gcs", "hdfs", "viewfs", "abfs", "abfss")


@dataclass(frozen=True, slots=True)
class Place:
    """One file, as it was found."""

    name: str
    """A path or a URL, or "-"."""
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

    name: str
    error: Exception

    @property
    def reason(self) -> str:
        if isinstance(self.error, OSError):
            return self.error.strerror or str(self.error)
        return str(self.error)


def is_url(name: str) -> bool:
    return _URL.match(name) is not None


def plain(name: str | Path) -> str:
    """The name, without file:// where it has that."""
    text = str(name)
    parts = urlsplit(text) if text[:7].lower() == "file://" else None
    return text if parts is None else url2pathname(parts.path)


def filesystem(url: str) -> tuple[Any, str]:
    """The pyarrow filesystem of a URL, and the path in it."""
    fs = require("pyarrow.fs", "files")
    found = _URL.match(url)
    scheme = found[1].lower() if found else "file"
    if scheme == "file":
        return fs.LocalFileSystem(), plain(url)
    try:
        if scheme in _BY_PYARROW:
            found_fs, path = fs.FileSystem.from_uri(url)
            return found_fs, path
        fsspec = require("fsspec", "remote")
        spoken, path = fsspec.core.url_to_fs(url)
    except (ValueError, ImportError) as unknown:
        raise ReportError(f"{url!r} cannot be reached: {unknown}") from None
    return fs.PyFileSystem(fs.FSSpecHandler(spoken)), path


def open_url(url: str) -> tuple[Any, int]:
    """A seekable file, and its size."""
    files, path = filesystem(url)
    found = files.get_file_info(path)
    if not found.is_file:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), url)
    return files.open_input_file(path), found.size


def buffered(native: Any) -> BinaryIO:
    """An Arrow file as a Python one, with lines."""
    return io.BufferedReader(native, buffer_size=1 << 20)


@contextmanager
def written(name: str | Path) -> Iterator[BinaryIO]:
    """A file to write, here or elsewhere, that takes its name when the block ends without an error."""
    local = plain(name)
    if not is_url(local):
        with whole(local) as file:
            yield file
        return
    files, path = filesystem(local)
    partial = f"{path}.partial"
    stream = files.open_output_stream(partial)
    try:
        yield stream
        stream.close()
        files.move(partial, path)
    except BaseException:
        with suppress(Exception):
            stream.close()
        with suppress(Exception):
            files.delete_file(partial)
        raise


# -- from what was asked for to files ------------------------------------------------------------------


def expand(inputs: Iterable[str | Path]) -> list[Place | Refused]:
    """Files in order, each once; an input that gives none is refused."""
    found: list[Place | Refused] = []
    seen: dict[str, str] = {}
    for given in inputs:
        name = plain(given)
        try:
            places = _remote(name) if is_url(name) else _local(name)
        except (OSError, ReportError) as wrong:
            found.append(Refused(name, wrong))
            continue
        for place in places:
            real = place.name if place.name == STDIN or is_url(place.name) else os.path.realpath(place.name)
            if real in seen:
                raise MismatchError(f"{place.name!r} is the same file as {seen[real]!r}: it would be counted twice")
            seen[real] = place.name
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
    files, path = filesystem(url)
    # How the URL goes on before the path: scheme and, for some, a host.
    head = url[: len(url) - len(path)] if url.endswith(path) else f"{_scheme(url)}://"
    magic = _MAGIC.search(path)
    exact = files.get_file_info(path)
    if exact.type == fs.FileType.File:
        return [_place(head, exact)]
    if exact.type == fs.FileType.Directory:
        below, pattern = path, None
    elif magic:
        below, pattern = path[: magic.start()].rpartition("/")[0], path
    else:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), url)
    listed = files.get_file_info(fs.FileSelector(below, recursive=True, allow_not_found=True))
    chosen = [
        entry
        for entry in listed
        if entry.type == fs.FileType.File
        and not any(map(_hidden, entry.path[len(below) :].strip("/").split("/")))
        and (pattern is None or _matches(entry.path.strip("/").split("/"), pattern.strip("/").split("/")))
    ]
    if not chosen:
        raise ReportError(
            f"the directory {url!r} holds no files of reports" if pattern is None else f"no file matches {url!r}"
        )
    return [_place(head, entry) for entry in sorted(chosen, key=lambda entry: str(entry.path))]


def _matches(steps: list[str], pattern: list[str]) -> bool:
    """As the shell does it: a star stays within one step of the path, two go through any number."""
    if not pattern:
        return not steps
    if pattern[0] == "**":
        return any(_matches(steps[skipped:], pattern[1:]) for skipped in range(len(steps) + 1))
    return bool(steps) and fnmatch.fnmatchcase(steps[0], pattern[0]) and _matches(steps[1:], pattern[1:])


def _scheme(url: str) -> str:
    found = _URL.match(url)
    return found[1] if found else "file"


def _place(head: str, entry: Any) -> Place:
    return Place(f"{head}{entry.path}", entry.size, entry.mtime_ns)
