"""URLs: files that are elsewhere, on every filesystem that pyarrow or fsspec knows.

Schemes    file:// is a path; s3://, gs://, hdfs://, abfs:// by pyarrow, whose options follow a question mark; every
           other by fsspec
Secrets    a URL may hold a password, and a signature or a token among its options: messages and manifests have the URL
           without user and options, and so has what a filesystem complains
Whole      what is written takes its name when it is complete; until then its name begins with a dot
"""

from __future__ import annotations

import errno
import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote, unquote, urlsplit

from deniable._extras import require
from deniable._files import atomic_write
from deniable.errors import DeniableError, ReportError

_URL = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)
_BY_PYARROW = ("s3", "gs", "gcs", "hdfs", "viewfs", "abfs", "abfss")
_CONTAINER_FIRST = ("abfs", "abfss")
# What a URL may hold as it is; blanks and letters beyond ASCII are written as their bytes.
_AS_IT_IS = "%/:@?&=#*+,;!$'()[]~"


def is_url(name: str) -> bool:
    return _URL.match(name) is not None


def scheme_of(url: str) -> str:
    found = _URL.match(url)
    return found[1].lower() if found else "file"


def plain(name: str | Path) -> str:
    """The name, without file:// where it has that."""
    text = str(name)
    if text[:7].lower() != "file://":
        return text
    from urllib.request import url2pathname  # here, because it loads all of HTTP

    return url2pathname(urlsplit(text).path)


def split_options(url: str) -> tuple[str, str]:
    """The URL and its options, question mark included; in a path, and in other schemes of fsspec, ? is a pattern."""
    if scheme_of(url) not in (*_BY_PYARROW, "http", "https"):
        return url, ""
    stem, mark, options = url.partition("?")
    return stem, mark + options


def loses_threads(url: str) -> bool:
    """Whether the library behind a URL has threads of its own, which a forked process would lack."""
    return is_url(url) and scheme_of(url) in _BY_PYARROW


def shown(name: str) -> str:
    """How messages call it: a URL without user, password and options.

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
    """What somebody else said about a URL, without what `shown` leaves out."""
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
    """The URL of what is at a path, as a filesystem gives it, below a URL; with the same options."""
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
    """Whatever a filesystem raises becomes an error of the system or of ours, without secrets."""
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
    except Exception as wrong:  # fsspec passes on what its libraries raise
        complaint = without_secrets(": ".join(filter(None, (type(wrong).__name__, str(wrong)))), url)
        raise ReportError(f"{shown(url)!r} cannot be reached: {complaint}") from None


def buffered(native: Any) -> BinaryIO:
    """An Arrow file as a Python one, with lines."""
    return io.BufferedReader(native, buffer_size=1 << 20)


@contextmanager
def written(name: str | Path) -> Iterator[BinaryIO]:
    """A file to write, here or elsewhere, that takes its name when the block ends without an error."""
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
