"""Bits for real respondents: ChaCha20 keyed by the operating system.

Keys       32 bytes from the OS; a new one after every MiB of output
Threads    each thread has its own key and reserve, so nothing is shared and nothing locks
Re-entry   a draw that interrupts another draw of its thread (in a signal handler or a finalizer) takes its bytes from
           the OS; a draw that ends in an exception (Ctrl-C) discards its key
Fork       a child process draws new keys before its first byte, and repeats a draw that the fork interrupted
Memory     bytes are overwritten in the reserve when handed out (Python may still hold copies elsewhere)
Cipher     `cryptography`'s ChaCha20 (RFC 8439) encrypts zeros, so its output is the keystream; it is written straight
           into the caller's memory

Reproducible bits for studies; never for a device, because anyone who knows the seed knows every bit.

Stream     ChaCha20 keyed by SHA-256("deniable-simulation-v1" + the seed in decimal), from its first byte on
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from array import array
from collections.abc import Sequence
from operator import length_hint
from struct import unpack_from
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import NumberError
from deniable.exact import WORD, Dyadic
from deniable.randomness.source import Bits, digits_of

# Long enough to hide the cost of a call, short enough to stay in the cache.
# -- the keystream under one key ----------------------------------------------------------------------


CHUNK = 1 << 17
_ZEROS = memoryview(bytes(CHUNK))
_ALL_ONES = (1 << 64) - 1
_LITTLE = sys.byteorder == "little"
_MOST_WORDS = 256


class Keystream:
    """Bytes of one ChaCha20 key, counter from zero, nonce zero: a key is used once."""

    __slots__ = ("_update_into",)

    def __init__(self, key: bytes) -> None:
        # Imported here: it costs as much time as all of `import deniable`.
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

        cipher: Any = Cipher(ChaCha20(key, bytes(16)), mode=None)
        self._update_into = cipher.encryptor().update_into

    def into(self, out: memoryview) -> None:
        for start in range(0, len(out), CHUNK):
            part = out[start : start + CHUNK]
            self._update_into(_ZEROS[: len(part)], part)


class Buffer:
    """A small reserve in front of a keystream, so that one word does not need a call to the cipher.

    Bytes come out in stream order, for requests of any sizes. Used bytes are overwritten. The position advances
    before the bytes are read: an exception in between (Ctrl-C) loses bytes and never returns them twice. Two draws
    must not run at once: the owner ensures that one ends before the next begins.
    """

    __slots__ = ("_at", "_bytes", "_produce", "_view", "_words")

    # A first draw should be cheap; a device draws a few hundred bytes.
    SIZE = 4096
    _LAST_PAIR = SIZE - 16

    def __init__(self, produce: Any) -> None:
        self._produce = produce
        self._bytes = bytearray(self.SIZE)
        self._view = memoryview(self._bytes)
        self._words = self._view.cast("Q")
        self._at = self.SIZE

    def take(self, count: int) -> bytes:
        if count > self.SIZE - self._at:
            out = np.empty(count, dtype=np.uint8)
            self.fill(out)
            return out.tobytes()
        start = self._at
        self._at = end = start + count
        taken = bytes(self._view[start:end])
        self._bytes[start:end] = bytes(count)
        return taken

    def word(self) -> int:
        """`take(8)` as an integer, but faster: a single report may draw hundreds of words."""
        if not _LITTLE:
            return int.from_bytes(self.take(8), "little")
        start = self._at
        if start & 7 or start > self.SIZE - 8:
            start = self._shift()
        self._at = start + 8
        value: int = self._words[start >> 3]
        self._words[start >> 3] = 0
        return value

    def pair(self) -> tuple[int, int]:
        """`word()` twice."""
        if not _LITTLE:
            return self.word(), self.word()
        start = self._at
        if start & 7 or start > self._LAST_PAIR:
            start = self._shift()
        self._at = start + 16
        words, place = self._words, start >> 3
        first, second = words[place], words[place + 1]
        words[place] = words[place + 1] = 0
        return first, second

    def lanes(self, digits: Sequence[int], count: int) -> int:
        """`count` bits, lane i is bit i, each set with the probability given by these binary digits.

        Blocks of 64 lanes, one word per digit until every lane of the block is decided: a lane is decided at the first
        digit that differs from its bit, and set if that digit is 1. The words are fetched in advance, more than needed,
        and the unused ones are given back at the end: an exception in between loses them.
        """
        masks = [_ALL_ONES] * (count // 64)
        if count % 64:
            masks.append((1 << count % 64) - 1)
        most = 9 * len(masks) if len(masks) > 1 else 64  # almost always enough
        if most > _MOST_WORDS:
            return self._in_halves(digits, count)
        start = self._at
        if start & 7 or start > self.SIZE - 8 * most:
            start = self._shift()
        self._at = end = start + 8 * most
        words = self._words[start >> 3 : end >> 3].tolist() if _LITTLE else unpack_from(f"<{most}Q", self._bytes, start)
        ahead, blocks = iter(words), array("Q")
        for undecided in masks:
            true = 0
            for digit, word in zip(digits, ahead, strict=False):
                if digit:
                    equal = undecided & word
                    true |= undecided ^ equal
                    undecided = equal
                else:
                    undecided &= ~word
                if not undecided:
                    break
            else:
                if len(masks) > 1 and not length_hint(ahead):
                    self._at = start
                    return self._in_halves(digits, count)
            blocks.append(true)
        used = 8 * (most - length_hint(ahead))
        self._bytes[start : start + used] = bytes(used)
        self._at = start + used
        if not _LITTLE:
            blocks.byteswap()
        return int.from_bytes(blocks.tobytes(), "little")

    def _in_halves(self, digits: Sequence[int], count: int) -> int:
        half = (count + 127) // 128 * 64
        return self.lanes(digits, half) | self.lanes(digits, count - half) << half

    def _shift(self) -> int:
        """Move the rest of the reserve to its front and fill up behind it: the reserve then begins at 0."""
        rest = bytes(self._view[self._at :])
        self._at = self.SIZE
        self._view[: len(rest)] = rest
        self._produce(self._view[len(rest) :])
        self._at = 0
        return 0

    def fill(self, out: NDArray[np.uint8]) -> None:
        target = memoryview(out.data).cast("B")
        ready = min(len(target), self.SIZE - self._at)
        if ready:
            target[:ready] = self.take(ready)
        rest = len(target) - ready
        if rest == 0:
            return
        # The reserve is empty now: large requests bypass it, the tail refills it.
        direct = rest - rest % self.SIZE
        if direct:
            self._produce(target[ready : ready + direct])
        if rest > direct:
            self._produce(self._view)
            self._at = 0
            target[ready + direct :] = self.take(rest - direct)


# -- sources ------------------------------------------------------------------------------------------


KEY_LIFE = 1 << 20

_forks = 0


def _after_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_after_fork)


class _Stream:
    """One thread's keystream, with regular changes of key."""

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
        """This thread's stream, marked as busy; None while another draw of this thread is running."""
        try:
            stream: _Stream | None = self._local.stream
        except AttributeError:  # the first draw of a thread
            stream = None
        if stream is None or stream.forks != _forks:
            stream = self._local.stream = _Stream()
        # An interruption between the check and the mark finishes its draw before this code continues.
        if stream.busy:
            return None
        stream.busy = True
        return stream

    def _release(self, stream: _Stream) -> bool:
        """End the draw; False if the process was forked meanwhile, because the other process has the same bytes."""
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

    def pair(self) -> tuple[int, int]:
        # Most single reports use this draw, so `_claim`, the reserve and `_release` are inlined here.
        try:
            stream = self._local.stream
            if stream.forks != _forks or stream.busy:
                return self.word(), self.word()
        except AttributeError:  # the first draw of a thread
            return self.word(), self.word()
        stream.busy = True
        try:
            found: tuple[int, int] = stream.buffer.pair()
        except BaseException:
            self._give_up()
            raise
        stream.busy = False
        return found if stream.forks == _forks else self.pair()

    def lanes(self, probability: Dyadic, count: int) -> int:
        if probability.numerator == WORD:
            return (1 << count) - 1
        stream = self._claim()
        if stream is None:
            return super().lanes(probability, count)
        try:
            drawn = stream.buffer.lanes(digits_of(probability.numerator), count)
        except BaseException:
            self._give_up()
            raise
        return drawn if self._release(stream) else self.lanes(probability, count)

    def __reduce__(self) -> tuple[type[Secure], tuple[()]]:
        # A copy is a new source: no two objects ever share a keystream.
        return (Secure, ())

    def __repr__(self) -> str:
        return "Secure()"


SYSTEM = Secure()
"""The default source. It has no seed and cannot be replaced."""


def source_of(bits: Bits | None) -> Bits:
    """The given source, or SYSTEM; a bare number is refused, because a seed must be given as `Simulation(seed)`.

    Args:
        bits: A source, or None.

    Returns:
        The source; SYSTEM if None.

    Raises:
        NumberError: It is not a source.
    """
    if bits is None:
        return SYSTEM
    if not isinstance(bits, Bits):
        seed = bits if isinstance(bits, int) else 1
        raise NumberError(f"{bits!r} is no source of random bits: for a study that repeats give dn.Simulation({seed})")
    return bits


# -- reproducible bits for studies --------------------------------------------------------------------


class Simulation(Bits):
    """Reproducible bits for simulation and tests.

    Args:
        seed: Any integer; equal seeds give equal bits.

    Raises:
        NumberError: The seed is not an integer.

    >>> Simulation(7).words(3).tolist() == Simulation(7).words(3).tolist()
    True
    """

    __slots__ = ("_buffer", "_busy", "_lock", "seed")

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
            raise NumberError(f"the seed of a simulation is an integer, not a {type(seed).__name__}")
        self.seed = int(seed)
        key = hashlib.sha256(b"deniable-simulation-v1" + str(self.seed).encode()).digest()
        self._buffer = Buffer(Keystream(key).into)
        self._lock = threading.RLock()
        self._busy = False

    def fill(self, out: NDArray[np.uint8]) -> None:
        with self._lock:
            if self._busy:
                raise _interrupted()
            self._busy = True
            try:
                self._buffer.fill(out)
            finally:
                self._busy = False

    def take(self, count: int) -> bytes:
        with self._lock:
            if self._busy:
                raise _interrupted()
            self._busy = True
            try:
                return self._buffer.take(count)
            finally:
                self._busy = False

    def word(self) -> int:
        with self._lock:
            if self._busy:
                raise _interrupted()
            self._busy = True
            try:
                return self._buffer.word()
            finally:
                self._busy = False

    def lanes(self, probability: Dyadic, count: int) -> int:
        if probability.numerator == WORD:
            return (1 << count) - 1
        with self._lock:
            if self._busy:
                raise _interrupted()
            self._busy = True
            try:
                return self._buffer.lanes(digits_of(probability.numerator), count)
            finally:
                self._busy = False

    def __reduce__(self) -> tuple[type[Simulation], tuple[int]]:
        # A copy starts over: the seed is the whole state.
        return (Simulation, (self.seed,))

    def __repr__(self) -> str:
        return f"Simulation({self.seed})"


class Counting(Simulation):
    """Bits that count how many are used, for cost tables.

    Args:
        seed: Seed of the bits.
    """

    __slots__ = ("bytes_taken",)

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.bytes_taken = 0

    def fill(self, out: NDArray[np.uint8]) -> None:
        self.bytes_taken += out.nbytes
        super().fill(out)

    def take(self, count: int) -> bytes:
        self.bytes_taken += count
        return super().take(count)

    def word(self) -> int:
        self.bytes_taken += 8
        return super().word()

    lanes = Bits.lanes  # word by word


def _interrupted() -> NumberError:
    # Other threads wait for the lock; the same thread passes it only when it interrupts its own draw.
    return NumberError(
        "a signal handler or finalizer draws from the simulation whose draw it interrupts: "
        "give it a simulation of its own, or the study does not repeat"
    )
