"""A folder that many write together: its files appear when all are written, or none does.

Empty      a folder that holds files is refused: two runs in one folder would be counted as one
Hidden     until the end a name begins with a dot and the run's own mark, which readers pass over, so that neither a
           failure nor an executor or driver that is killed leaves anything that looks like reports
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from deniable._extras import require
from deniable.engines.urls import filesystem, is_url, plain, said_of, shown
from deniable.errors import ReportError


@contextmanager
def new_files(folder: str) -> Iterator[tuple[str, str, Callable[[list[str]], None]]]:
    """The folder by its full name, what hidden names begin with, and a function that shows files by their last names.

    An error in the block removes what was written.
    """
    place = plain(folder)
    place = place if is_url(place) else os.path.abspath(place)
    with said_of(place):
        files, path = filesystem(place)
        path = path.rstrip("/")
        if any(not _last(entry).startswith((".", "_")) for entry in _inside(files, path)):
            raise ReportError(f"{shown(place)!r} is not empty: reports of two runs would be mixed, name a new folder")
        if not is_url(place):
            files.create_dir(path, recursive=True)
    run = f".{secrets.token_hex(8)}-"
    moved: list[str] = []

    def show(names: list[str]) -> None:
        with said_of(place):
            for name in names:
                moved.append(name)
                files.move(f"{path}/{run}{name}", f"{path}/{name}")

    try:
        yield place, run, show
    except BaseException:
        for name in moved:
            with suppress(Exception):
                files.delete_file(f"{path}/{name}")
        raise
    finally:
        with suppress(Exception):
            for entry in _inside(files, path):
                if _last(entry).startswith(run):
                    files.delete_file(entry.path)


def _inside(files: Any, path: str) -> list[Any]:
    fs = require("pyarrow.fs", "files")
    return list(files.get_file_info(fs.FileSelector(path, allow_not_found=True)))


def _last(entry: Any) -> str:
    return str(entry.path).rstrip("/").rpartition("/")[2]
