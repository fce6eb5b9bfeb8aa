"""One thread for linear algebra around fits of small matrices.

OpenBLAS shares every product among all cores and lets them spin between two. The matrices of a fit have some hundred
rows, so that this takes several times as long as one thread. The command line sets one thread before numpy is loaded.
In a notebook numpy is there first, and only the library itself can be told.

Libraries  the OpenBLAS that the wheels of numpy and scipy bring along, by its own functions; any other one by
           threadpoolctl, where that is installed; else nothing is changed
Scope      the number is that of the process: it is set back when the last of all blocks ends, in whatever thread
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator, suppress
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
    """A block, or a decorator of a function, in which linear algebra has one thread."""

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
        """What is loaded by now; scipy comes later than numpy."""
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
    """The files of OpenBLAS in the wheels of the packages that are loaded."""
    for package in ("numpy", "scipy"):
        place = getattr(sys.modules.get(package), "__file__", None)
        if place is not None:
            folder = Path(place).parent
            for libraries in (folder.with_name(f"{package}.libs"), folder / ".dylibs"):
                yield from (str(path) for path in libraries.glob("*openblas*"))


def _by_threadpoolctl() -> Library:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-not-found, unused-ignore]

    found = ThreadpoolController().select(user_api="blas").lib_controllers

    def put(threads: int) -> None:
        for library in found:
            library.set_num_threads(threads)

    return (lambda: max((library.get_num_threads() for library in found), default=1)), put


one_thread = _OneThread()
