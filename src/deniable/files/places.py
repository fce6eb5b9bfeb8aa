"""Local and remote files: found by name, opened, and written atomically.

Path       a file; a directory means all files below it, a pattern like day-*/*.parquet all files that match
URL        the same for remote files: file:// is a path; s3://, gs://, hdfs:// and abfs:// by pyarrow, whose options
           follow a question mark, which is then not a pattern; every other scheme by fsspec
Stdin      "-", which can be read once and not rewound
Hidden     names that begin with a dot or an underscore are not data (.part, _SUCCESS) and are skipped
Order      directories and patterns are sorted, so that the same inputs are the same list
Secrets    a URL may hold a password, and a signature or a token among its options: messages and manifests have the URL
           without user and options, and so have the errors of a filesystem
Whole      a written file gets its name when it is complete; until then its name begins with a dot
"""

from __future__ import annotations

import errno
import fnmatch
import glob
import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote, unquote, urlsplit

from deniable._extras import require
from deniable._files import atomic_write
from deniable.columns import kind
from deniable.errors import DeniableError, MismatchError, ReportError, SpecError

_URL = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)
_BY_PYARROW = ("s3", "gs", "gcs", "hdfs", "viewfs", "abfs", "abfss")
_CONTAINER_FIRST = ("abfs", "abfss")
# Characters that a URL may hold unescaped; blanks and letters beyond ASCII are percent-encoded.
_AS_IT_IS = "%/:@?&=#*+,;!$'()[]~"

STDIN = "-"

Progress = Callable[[int, float | None], None]
"""Called with the rows done and, if known, the completed share of the input."""

_MAGIC = re.compile(r"[*?\[]")

_LONGEST_LINE = 1 << 20
_PARQUET = b"PAR1"
_ARROW_STREAM = b"\xff\xff\xff\xff"


# -- URLs -----------------------------------------------------------------------------------------------


def is_url(name: str) -> bool:
    return _URL.match(name) is not None


def scheme_of(url: str) -> str:
    found = _URL.match(url)
    return found[1].lower() if found else "file"


def plain(name: str | Path) -> str:
    """The name, without a leading file://."""
    text = str(name)
    if text[:7].lower() != "file://":
        return text
    from urllib.request import url2pathname  # here, because it loads all of HTTP

    return url2pathname(urlsplit(text).path)


def split_options(url: str) -> tuple[str, str]:
    """The URL and its options, with the question mark; in a path, and in other schemes of fsspec, ? is a pattern."""
    if scheme_of(url) not in (*_BY_PYARROW, "http", "https"):
        return url, ""
    stem, mark, options = url.partition("?")
    return stem, mark + options


def loses_threads(url: str) -> bool:
    """Whether the library behind a URL has its own threads, which a forked process would lack."""
    return is_url(url) and scheme_of(url) in _BY_PYARROW


def shown(name: str) -> str:
    """The name for messages: a URL without user, password and options.

    >>> shown("s3://key:secret@bucket/day-1.parquet?region=eu-west-1"), shown("day-1.parquet")
    ('s3://bucket/day-1.parquet', 'day-1.parquet')
    >>> shown("abfss://container:secret@account.dfs.core.windows.net/day-1.parquet")
    'abfss://container@account.dfs.core.windows.net/day-1.parquet'
    """
    if not is_url(name):
        return name
    head, _, rest = split_options(name)[0].partition("://")
    host, slash, path = rest.partition("/")
    user, at, host = host.rpartition("@")
    kept = f"{user.partition(':')[0]}@" if at and head.lower() in _CONTAINER_FIRST and user[:1] != ":" else ""
    return f"{head}://{kept}{host}{slash}{path}"


def without_secrets(complaint: object, url: str) -> str:
    """Another library's message about a URL, without the parts that `shown` leaves out."""
    text = str(complaint).replace(url, shown(url))
    for secret in filter(None, (urlsplit(url).password, split_options(url)[1].removeprefix("?"))):
        text = text.replace(secret, "...").replace(unquote(secret), "...")
    return text


def filesystem(url: str) -> tuple[Any, str]:
    """The pyarrow filesystem of a URL, and the path in it."""
    fs = require("pyarrow.fs", "files")
    if scheme_of(url) == "file":
        return fs.LocalFileSystem(), plain(url)
    try:
        if scheme_of(url) in _BY_PYARROW:
            found, path = fs.FileSystem.from_uri(quote(url, safe=_AS_IT_IS))
            return found, path
        fsspec = require("fsspec", "remote")
        spoken, path = fsspec.core.url_to_fs(url)
    except (ValueError, ImportError) as unknown:
        raise ReportError(f"{shown(url)!r} cannot be reached: {without_secrets(unknown, url)}") from None
    return fs.PyFileSystem(fs.FSSpecHandler(spoken)), path


def below(url: str, relative: str) -> str:
    """The URL of a path, as a filesystem gives it, below a URL; with the same options."""
    stem, options = split_options(url)
    exact = quote(relative) if scheme_of(url) in _BY_PYARROW else relative
    return f"{stem.rstrip('/')}/{exact}{options}"


def open_url(url: str) -> tuple[Any, int]:
    """A seekable file, and its size."""
    with said_of(url):
        files, path = filesystem(url)
        found = files.get_file_info(path)
        if not found.is_file:
            raise nowhere(url)
        return files.open_input_file(path), found.size


def nowhere(url: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shown(url))


@contextmanager
def said_of(url: str) -> Iterator[None]:
    """Errors of a filesystem become `OSError` or `ReportError`, without secrets."""
    if not is_url(url):
        yield
        return
    try:
        yield
    except DeniableError:
        raise
    except OSError as wrong:
        if wrong.errno is not None:
            name = without_secrets(wrong.filename or url, url)
            raise OSError(wrong.errno, without_secrets(wrong.strerror, url), name) from None
        raise OSError(without_secrets(wrong, url)) from None
    except Exception as wrong:  # fsspec passes on the errors of its libraries
        complaint = without_secrets(": ".join(filter(None, (type(wrong).__name__, str(wrong)))), url)
        raise ReportError(f"{shown(url)!r} cannot be reached: {complaint}") from None


def buffered(native: Any) -> BinaryIO:
    """An Arrow file as a Python file, with lines."""
    return io.BufferedReader(native, buffer_size=1 << 20)


@contextmanager
def written(name: str | Path) -> Iterator[BinaryIO]:
    """A file to write, local or remote, that gets its name when the block ends without an error."""
    local = plain(name)
    if not is_url(local):
        with atomic_write(local) as file:
            yield file
        return
    with said_of(local):
        files, path = filesystem(local)
        folder, slash, last = path.rpartition("/")
        partial = f"{folder}{slash}.{last}.partial"
        stream = files.open_output_stream(partial)
    try:
        yield stream
        with said_of(local):
            stream.close()
            files.move(partial, path)
    except BaseException:
        with suppress(Exception):
            stream.close()
        with suppress(Exception):
            files.delete_file(partial)
        raise


# -- files as they were found ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """One file, as it was found."""

    name: str
    """A path or a URL, with everything needed to open it, or "-"."""
    size: int | None = None
    """Bytes; None for inputs that can be read only once, like a pipe."""
    modified: int | None = None
    """Nanoseconds."""

    @property
    def once(self) -> bool:
        return self.size is None


@dataclass(frozen=True, slots=True)
class Refused:
    """An input that was not counted, and why."""

    place: str
    """The name of its place."""
    error: Exception

    @property
    def name(self) -> str:
        """The name for messages."""
        return shown(self.place)

    @property
    def complaint(self) -> str:
        """The reason with the name, which most reasons contain."""
        name = repr(self.name)
        return self.reason if name in self.reason else f"{name}: {self.reason}"

    @property
    def reason(self) -> str:
        if isinstance(self.error, OSError):
            return self.error.strerror or str(self.error)
        return str(self.error)


# -- from inputs to files -------------------------------------------------------------------------------


def expand(inputs: str | Path | Iterable[str | Path]) -> list[Place | Refused]:
    """Files in order, each once; an input without files is refused."""
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
        # Number of path components before the first pattern.
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
            # From here on the directory above the first component that is a pattern.
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
    """The directory above the first component that is a pattern; the whole path if there is no pattern."""
    magic = _MAGIC.search(path)
    return path[: magic.start()].rpartition("/")[0] if magic else path


def _matches(steps: list[str], pattern: list[str]) -> bool:
    """Like the shell: a star stays within one component of the path, two stars match any number."""
    if not pattern:
        return not steps
    if pattern[0] == "**":
        return any(_matches(steps[skipped:], pattern[1:]) for skipped in range(len(steps) + 1))
    return bool(steps) and fnmatch.fnmatchcase(steps[0], pattern[0]) and _matches(steps[1:], pattern[1:])


def _place(url: str, entry: Any) -> Place:
    return Place(url, entry.size, entry.mtime_ns)


# -- an open input --------------------------------------------------------------------------------------


@dataclass
class Source:
    """An open input, with its first line read ahead.

    Args:
        name: The name for messages.
        head: The first line.
        rest: The rest of the file.
        path: The path of a local file.
        size: Size in bytes, if it is known.
        taken: Number of bytes read.
        url: The URL of a remote file.
        tail: The last bytes that were read.
        epoch: Epoch of the reports, if the file names it and is being read.
    """

    name: str
    head: bytes
    rest: BinaryIO
    path: str | None
    size: int | None
    taken: int = field(default=0)
    url: str | None = None
    tail: bytes = b""
    epoch: int | None = None

    @classmethod
    def open(cls, given: str | Path) -> Source:
        if str(given) == STDIN:
            stream = sys.stdin.buffer
            return cls("standard input", _first_line(stream), stream, None, None)
        name = plain(given)
        if is_url(name):
            native, bytes_in_all = open_url(name)
            stream = buffered(native)
            return cls(repr(shown(name)), _first_line(stream), stream, None, bytes_in_all, url=name)
        file = open(name, "rb")  # noqa: SIM115
        size = os.fstat(file.fileno()).st_size if os.path.isfile(name) else None
        return cls(repr(name), _first_line(file), file, name, size)

    def seekable(self) -> Any:
        """The argument for a Parquet reader: a path, or an open file; None for inputs that can be read only once."""
        return self.path if self.url is None else open_url(self.url)[0]

    @property
    def is_parquet(self) -> bool:
        return self.head.startswith(_PARQUET)

    @property
    def is_arrow(self) -> bool:
        return self.head.startswith(_ARROW_STREAM)

    @property
    def is_json(self) -> bool:
        return self.head.lstrip()[:1] in (b"{", b"[")

    @property
    def is_empty(self) -> bool:
        return not self.head.strip()

    def stream(self) -> BinaryIO:
        """Everything from the beginning."""
        return io.BufferedReader(_Rejoined(self), buffer_size=1 << 20)

    def close(self) -> None:
        if self.path is not None or self.url is not None:
            self.rest.close()


class _Rejoined(io.RawIOBase):
    """The head, then the rest, counting the bytes read."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._source = source
        self._head = source.head

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        size = len(buffer)
        data = self._head[:size] or self._source.rest.read(size)
        self._head = self._head[size:]
        buffer[: len(data)] = data
        self._source.taken += len(data)
        self._source.tail = (self._source.tail + data[-8:])[-8:]
        return len(data)


def _first_line(stream: BinaryIO) -> bytes:
    """Everything up to the first non-blank line, as a CSV reader sees it."""
    head = b""
    while True:
        line = stream.readline(_LONGEST_LINE)
        head += line
        if line.strip() or not line or len(head) >= _LONGEST_LINE:
            return head


# -- Parquet --------------------------------------------------------------------------------------------


@contextmanager
def opened(source: Source, **options: Any) -> Iterator[Any]:
    """The file for reading in batches; a damaged file raises `ReportError`."""
    pa, parquet = require("pyarrow", "files"), require("pyarrow.parquet", "files")
    where = source.seekable()
    if where is None:
        raise ReportError("Parquet cannot be read from standard input: give the file's name")
    try:
        with parquet.ParquetFile(
            where, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True, **options
        ) as file:
            # From here on the source counts rows.
            source.size, source.taken = file.metadata.num_rows, 0
            yield file
    except pa.ArrowException:
        raise _damaged(source) from None
    except OSError as error:
        # The operating system's own errors have a number, the reader's do not.
        if error.errno is not None:
            raise
        raise _damaged(source) from None


def _damaged(source: Source) -> ReportError:
    return ReportError(f"{source.name} is not a whole Parquet file: it is truncated or damaged")
