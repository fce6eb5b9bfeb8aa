"""Files: atomic writes, and strict reading of JSON and CSV.

Write      content goes to a temporary file in the same directory, is synced to disk, and is renamed in one step; an
           error or an interruption removes it. A device or a pipe cannot be renamed over and is written directly
JSON       no repeated keys, no NaN and no infinity; numbers with a decimal point become `Decimal`, digit for digit
CSV        comma, semicolon or tab, whichever is most frequent in the first line; blank lines do not count
Errors     one sentence that names the input, what is wrong and where
"""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from deniable._plain import plain_cell
from deniable.errors import DeniableError, SpecError

T = TypeVar("T")

_LARGEST_EXPONENT = 2000


# -- writing -------------------------------------------------------------------------------------------


@contextmanager
def atomic_write(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write; it replaces `path` when the block ends without an error."""
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as stream:
            yield stream
        return
    with atomic_path(path) as partial, open(partial, "wb") as file:
        yield file


@contextmanager
def atomic_path(path: str | Path, private: bool = False) -> Iterator[Path]:
    """An empty temporary file to fill; it replaces `path` when the block ends without an error.

    A replaced file keeps its mode; a `private` file is readable by its owner only, whatever was there before.
    Errors of the operating system name `path`.
    """
    # Follow a link, so that its target changes and not the link.
    target = Path(os.path.realpath(path))
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    partial = target.with_name(f".{secrets.token_hex(8)}.partial")
    try:
        with _named(partial, path):
            os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if private else 0o666))
            yield partial
            if target.exists() and not private:
                shutil.copymode(target, partial)
            _sync(partial, os.O_RDWR)
            os.replace(partial, target)
            sync_directory(target.parent)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _named(partial: Path, path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.filename in (None, str(partial), partial) and error.errno is not None:
            error.filename = str(path)
        raise


def sync_directory(path: Path) -> None:
    """Make new names in a directory durable, if directories can be opened and synced here."""
    if os.name != "posix":
        return
    try:
        _sync(path, os.O_RDONLY)
    except PermissionError:
        return  # the directory may be writable but not readable
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# -- reading -------------------------------------------------------------------------------------------


def read_json(path: str | Path) -> Any:
    """The value that a JSON file holds."""
    return parse_json(Path(path).read_bytes(), repr(str(path)))


def load_json(path: str | Path, read: Callable[[Any], T]) -> T:
    """The result of `read` for the content of a JSON file; its errors get the name of the file."""
    content = read_json(path)
    try:
        return read(content)
    except DeniableError as wrong:
        raise type(wrong)(f"{str(path)!r}: {wrong}") from None


def parse_json(content: str | bytes, where: str) -> Any:
    """The value of a JSON text; error messages call it `where`. Raises `SpecError`."""
    text = _decoded(content, where)

    def refuse(constant: str) -> Any:
        raise SpecError(f"{where} holds {constant}, which is not a number")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            raise SpecError(f"{where} has the key {next(key for key in keys if keys.count(key) > 1)!r} twice")
        return found

    def decimal(written: str) -> Decimal:
        value = Decimal(written)
        # Converted to an integer, 1e999999999 would fill the memory.
        if value and abs(value.adjusted()) > _LARGEST_EXPONENT:
            raise SpecError(f"{where} holds a number that is out of any sensible range")
        return value

    try:
        return json.loads(text, parse_float=decimal, parse_constant=refuse, object_pairs_hook=unique)
    except json.JSONDecodeError as wrong:
        raise SpecError(f"{where} is not JSON: {wrong.msg} in line {wrong.lineno}, column {wrong.colno}") from None
    except SpecError:
        raise
    except (ValueError, ArithmeticError, RecursionError):
        raise SpecError(f"{where} is not usable JSON: its numbers are too long or its lists too deep") from None


def parse_csv(content: str | bytes, where: str) -> list[tuple[int, list[str]]]:
    """The rows that are not blank, each with its line number; cells without surrounding spaces. Raises `SpecError`."""
    text = _decoded(content, where)
    first = text.lstrip("\r\n").partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True)
    try:
        rows = [
            (reader.line_num, [plain_cell(cell.strip()) for cell in row]) for row in reader if any(map(str.strip, row))
        ]
    except csv.Error as wrong:
        raise SpecError(f"{where} is not CSV: {wrong} in line {reader.line_num}") from None
    if not rows:
        raise SpecError(f"{where} is empty")
    return rows


def _decoded(content: str | bytes, where: str) -> str:
    try:
        text = content if isinstance(content, str) else content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SpecError(f"{where} is not UTF-8 text") from None
    if not text.strip():
        raise SpecError(f"{where} is empty")
    return text
