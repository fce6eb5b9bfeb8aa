"""Bits for real respondents: ChaCha20 keyed by the operating system.

Keys       32 bytes from the OS; a new one after every MiB of output
Threads    each thread has its own key and reserve, so nothing is shared and nothing locks
Re-entry   a draw that interrupts another one of its thread (in a signal handler or a finalizer) takes its bytes from
           the OS; a draw that ends in an exception (Ctrl-C) gives up its key
Fork       a child process draws new keys before its first byte, and repeats a draw that the fork interrupted
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

    __slots__ = ("_left", "_stream", "buffer", "busy", "forks")

    def __init__(self) -> None:
        self.forks = _forks
        self.busy = False
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
    """Cryptographically secure bits; safe across threads, signal handlers and forks.

    >>> bits = Secure()
    >>> 0 <= bits.integers(6) < 6
    True
    """

    __slots__ = ("_local",)

    def __init__(self) -> None:
        self._local = threading.local()

    def _claim(self) -> _Stream | None:
        """This thread's stream, marked as busy; None while another draw of this thread is under way."""
        stream: _Stream | None = getattr(self._local, "stream", None)
        if stream is None or stream.forks != _forks:
            stream = self._local.stream = _Stream()
        # An interruption between the question and the mark draws to its end before this goes on.
        if stream.busy:
            return None
        stream.busy = True
        return stream

    def _release(self, stream: _Stream) -> bool:
        """The draw is over; False if the process was forked meanwhile, and the other one has the same bytes."""
        stream.busy = False
        return stream.forks == _forks

    def _give_up(self) -> None:
        self._local.stream = None

    def fill(self, out: NDArray[np.uint8]) -> None:
        stream = self._claim()
        if stream is None:
            out[...] = np.frombuffer(os.urandom(out.nbytes), dtype=np.uint8).reshape(out.shape)
            return
        try:
            stream.buffer.fill(out)
        except BaseException:
            self._give_up()
            raise
        if not self._release(stream):
            self.fill(out)

    def take(self, count: int) -> bytes:
        stream = self._claim()
        if stream is None:
            return os.urandom(count)
        try:
            taken = stream.buffer.take(count)
        except BaseException:
            self._give_up()
            raise
        return taken if self._release(stream) else self.take(count)

    def word(self) -> int:
        stream = self._claim()
        if stream is None:
            return int.from_bytes(os.urandom(8), "little")
        try:
            value = stream.buffer.word()
        except BaseException:
            self._give_up()
            raise
        return value if self._release(stream) else self.word()

    def __reduce__(self) -> tuple[type[Secure], tuple[()]]:
        # A copy is a new source: no two objects ever share a keystream.
        return (Secure, ())

    def __repr__(self) -> str:
        return "Secure()"


SYSTEM = Secure()
"""The source that is used where none is named. It holds no seed and cannot be set."""


def source_of(bits: Bits | None) -> Bits:
    """The given source, or SYSTEM; a bare number is refused, because a seed must be given as `Simulation(seed)`."""
    if bits is None:
        return SYSTEM
    if not isinstance(bits, Bits):
        seed = bits if isinstance(bits, int) else 1
        raise NumberError(f"{bits!r} is no source of random bits: for a study that repeats give dn.Simulation({seed})")
    return bits
