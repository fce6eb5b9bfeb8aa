"""Limit linear algebra to one thread while small matrices are fitted.

OpenBLAS splits every product among all cores and lets them spin between two products. The matrices of a fit have a
few hundred rows, so this takes several times as long as one thread. The command line sets one thread before numpy is
loaded. In a notebook numpy is loaded first, and the limit must be set in the library itself.

Libraries  the OpenBLAS in the wheels of numpy and scipy, through its own functions; any other library through
           threadpoolctl, if that is installed; else nothing is changed
Scope      the limit applies to the whole process: it is reset when the last block ends, in whatever thread
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator, suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

_NAMES = [
    (f"{prefix}openblas_get_num_threads{suffix}", f"{prefix}openblas_set_num_threads{suffix}")
    for prefix in ("scipy_", "")
    for suffix in ("64_", "")
]
_ONLY_IF_LOADED = getattr(os, "RTLD_NOLOAD", 0)

Library = tuple[Callable[[], int], Callable[[int], Any]]


class _OneThread(ContextDecorator):
    """A context manager and decorator that gives linear algebra one thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._before: list[tuple[Callable[[int], Any], int]] = []
        self._known: dict[str, Library] = {}

    def __enter__(self) -> None:
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                self._before = [(put, get()) for get, put in self._libraries()]
                for put, _ in self._before:
                    put(1)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                for put, threads in self._before:
                    put(threads)

    def _libraries(self) -> list[Library]:
        """The libraries that are loaded now; scipy may be loaded later than numpy."""
        for path in _bundled():
            if path not in self._known:
                with suppress(OSError, StopIteration):
                    library = ctypes.CDLL(path, mode=_ONLY_IF_LOADED)
                    self._known[path] = next(
                        (getattr(library, get), getattr(library, put)) for get, put in _NAMES if hasattr(library, get)
                    )
        if not self._known:
            with suppress(ImportError):
                self._known[""] = _by_threadpoolctl()
        return list(self._known.values())


def _bundled() -> Iterator[str]:
    """The OpenBLAS files in the wheels of the loaded packages."""
    for package in ("numpy", "scipy"):
        place = getattr(sys.modules.get(package), "__file__", None)
        if place is not None:
            yield from _files(package, place)


@cache
def _files(package: str, place: str) -> tuple[str, ...]:
    """The OpenBLAS files of one package; estimates are made too often to look for them each time."""
    folder = Path(place).parent
    folders = folder.with_name(f"{package}.libs"), folder / ".dylibs"
    return tuple(str(path) for libraries in folders for path in libraries.glob("*openblas*"))


def _by_threadpoolctl() -> Library:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-not-found, unused-ignore]

    found = ThreadpoolController().select(user_api="blas").lib_controllers

    def put(threads: int) -> None:
        for library in found:
            library.set_num_threads(threads)

    return (lambda: max((library.get_num_threads() for library in found), default=1)), put


one_thread = _OneThread()
