"""Bits for studies that must repeat; never for a device, because anyone who knows the seed knows every bit.

Stream     ChaCha20 keyed by SHA-256("deniable-simulation-v1" + the seed in decimal), from its first byte on
"""

from __future__ import annotations

import hashlib
import threading

import numpy as np
from numpy.typing import NDArray

from deniable.errors import NumberError
from deniable.randomness.keystream import Buffer, Keystream
from deniable.randomness.source import Bits


class Simulation(Bits):
    """Reproducible bits for simulation and tests.

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

    def __reduce__(self) -> tuple[type[Simulation], tuple[int]]:
        # A copy starts over: the seed is all that a simulation is.
        return (Simulation, (self.seed,))

    def __repr__(self) -> str:
        return f"Simulation({self.seed})"


class Counting(Simulation):
    """Bits that count how many of them are taken, for cost tables."""

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


def _interrupted() -> NumberError:
    # Other threads wait for the lock; the same thread gets past it only when it interrupts its own draw.
    return NumberError(
        "a signal handler or finalizer draws from the simulation whose draw it interrupts: "
        "give it a simulation of its own, or the study does not repeat"
    )
