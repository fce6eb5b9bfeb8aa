"""Bits for real respondents: ChaCha20 keyed by the operating system.

Keys       32 bytes from the OS; a new one after every MiB of output
Threads    each thread has its own key and reserve, so nothing is shared and nothing locks
Fork       a child process draws new keys before its first byte
Memory     bytes are overwritten in the reserve when handed out (Python may still hold copies elsewhere)
"""

from __future__ import annotations

import os
import threading

import numpy as np
from numpy.typing import NDArray

from deniable.errors import NumberError
from deniable.randomness.keystream import CHUNK, Buffer, Keystream
from deniable.randomness.source import Bits

KEY_LIFE = 1 << 20

_forks = 0


def _after_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_after_fork)


class _Stream:
    """One thread's keystream, which changes its key as it goes."""

    __slots__ = ("_left", "_stream", "buffer", "forks")

    def __init__(self) -> None:
        self.forks = _forks
        self._left = 0
        self.buffer = Buffer(self._produce)

    def _produce(self, out: memoryview) -> None:
        start = 0
        while start < len(out):
            if self._left == 0:
                self._stream = Keystream(os.urandom(32))
                self._left = KEY_LIFE
            part = out[start : start + min(self._left, CHUNK)]
            self._stream.into(part)
            self._left -= len(part)
            start += len(part)


class Secure(Bits):
    """Cryptographically secure bits; safe across threads and forks.

    >>> bits = Secure()
    >>> 0 <= bits.integers(6) < 6
    True
    """

    __slots__ = ("_local",)

    def __init__(self) -> None:
        self._local = threading.local()

    def _buffer(self) -> Buffer:
        stream: _Stream | None = getattr(self._local, "stream", None)
        if stream is None or stream.forks != _forks:
            stream = self._local.stream = _Stream()
        return stream.buffer

    def fill(self, out: NDArray[np.uint8]) -> None:
        self._buffer().fill(out)

    def take(self, count: int) -> bytes:
        return self._buffer().take(count)

    def word(self) -> int:
        return self._buffer().word()

    def __reduce__(self) -> tuple[type[Secure], tuple[()]]:
        # A copy is a new source: no two objects ever share a keystream.
        return (Secure, ())

    def __repr__(self) -> str:
        return "Secure()"


SYSTEM = Secure()
"""The source that is used where none is named. It holds no seed and cannot be set."""


def source_of(bits: Bits | None) -> Bits:
    """The given source, or SYSTEM; a number is refused, because a seed by itself would not say that it is one."""
    if bits is None:
        return SYSTEM
    if not isinstance(bits, Bits):
        seed = bits if isinstance(bits, int) else 1
        raise NumberError(f"{bits!r} is no source of random bits: for a study that repeats give dn.Simulation({seed})")
    return bits
