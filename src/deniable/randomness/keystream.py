"""The ChaCha20 keystream under one key, written straight into the caller's memory.

Source     RFC 8439; the cipher is `cryptography`'s. Zeros are encrypted, so the output is the keystream.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from operator import length_hint
from struct import unpack_from
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Long enough to hide the cost of a call, short enough to stay in the cache.
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
    """A small reserve in front of a keystream, so that one word does not cost a call to the cipher.

    Bytes come out in stream order, whatever sizes are asked for. What was handed out is overwritten. The position moves
    on before the bytes are read: an exception in between (Ctrl-C) loses bytes and never gives them twice. Two draws
    must not run at once: the owner ensures that one ends before the next begins.
    """

    __slots__ = ("_at", "_bytes", "_produce", "_view", "_words")

    # A first draw should be cheap; a device draws a few hundred bytes.
    SIZE = 4096

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
        if start & 7 or start > self.SIZE - 16:
            start = self._shift()
        self._at = start + 16
        words, place = self._words, start >> 3
        first, second = words[place], words[place + 1]
        words[place] = words[place + 1] = 0
        return first, second

    def lanes(self, digits: Sequence[int], count: int) -> int:
        """So many bits, lane i is bit i, each set with the probability of these binary digits.

        Blocks of 64 lanes, one word per digit until every lane of the block is decided: a lane is decided at the first
        digit that differs from its bit, and set if that digit is 1. More words than that takes are taken at once, and
        those that were not used are given back in the end: an exception in between loses them.
        """
        masks = [_ALL_ONES] * (count // 64)
        if count % 64:
            masks.append((1 << count % 64) - 1)
        most = 9 * len(masks) if len(masks) > 1 else 64  # hardly ever too few
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
        """Move what is left of the reserve to its front and fill the rest: it begins at 0 then."""
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
