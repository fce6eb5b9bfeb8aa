"""Files that appear whole or not at all.

Content goes to a file of another name in the same directory, reaches the disk, and then takes its name in one step; an
error or an interruption removes it. A device or a pipe has no name to take and is written straight.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of `path` when the block ends without an error."""
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as stream:
            yield stream
        return
    # Behind a link, so that the file changes and not the link.
    target = Path(os.path.realpath(path))
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    partial = target.with_name(f".{secrets.token_hex(8)}.partial")
    try:
        with _named(partial, path), open(partial, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, partial)
        os.replace(partial, target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


@contextmanager
def _named(partial: Path, path: str | Path) -> Iterator[None]:
    """Errors name the file that was asked for."""
    try:
        yield
    except OSError as error:
        if error.filename in (None, str(partial), partial) and error.errno is not None:
            error.filename = str(path)
        raise
