"""The ChaCha20 keystream under one key, written straight into the caller's memory.

Source     RFC 8439; the cipher is `cryptography`'s. Zeros are encrypted, so the output is the keystream.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from operator import length_hint
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Long enough to hide the cost of a call, short enough to stay in the cache.
CHUNK = 1 << 17
_ZEROS = memoryview(bytes(CHUNK))
_ALL_ONES = (1 << 64) - 1
_LITTLE = sys.byteorder == "little"


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
        start = self._at
        if start & 7 or not _LITTLE:
            return int.from_bytes(self.take(8), "little")
        if start == self.SIZE:
            self._produce(self._view)
            start = 0
        self._at = start + 8
        value: int = self._words[start >> 3]
        self._words[start >> 3] = 0
        return value

    def pair(self) -> tuple[int, int]:
        """`word()` twice."""
        start = self._at
        if start & 7 or start > self.SIZE - 16 or not _LITTLE:
            return self.word(), self.word()  # at the end of the reserve, too
        self._at = start + 16
        words, place = self._words, start >> 3
        first, second = words[place], words[place + 1]
        words[place] = words[place + 1] = 0
        return first, second

    def lanes(self, digits: Sequence[int], count: int) -> int:
        """So many bits, lane i is bit i, each set with the probability of these binary digits.

        Blocks of 64 lanes, one word per digit until every lane of the block is decided: a lane is decided at the first
        digit that differs from its bit, and set if that digit is 1. About as many words as that takes are taken at
        once, and those that were not used are given back in the end: an exception in between loses them.
        """
        if not digits:
            return 0
        total = block = 0
        start, words = self._claim(1 + count // 8)
        ahead = iter(words)
        while block < count:
            undecided = _ALL_ONES if count - block >= 64 else (1 << count - block) - 1
            true, left_digits = 0, digits
            while left_digits:
                ready = length_hint(ahead)
                for digit, word in zip(left_digits, ahead, strict=False):
                    if digit:
                        equal = undecided & word
                        true |= undecided ^ equal
                        undecided = equal
                    else:
                        undecided &= ~word
                    if not undecided:
                        break
                if not undecided or ready >= len(left_digits):
                    break
                # There were too few words, or the reserve came to its end within the block.
                left_digits = left_digits[ready:]
                self._overwrite(start, len(words))
                start, words = self._claim(16)
                ahead = iter(words)
            total |= true << block
            block += 64
        used = len(words) - length_hint(ahead)
        self._overwrite(start, used)
        if start >= 0:
            self._at = start + 8 * used
        return total

    def _claim(self, most: int) -> tuple[int, list[int]]:
        """Up to so many words, at least one, and where they stand; between two words it is one, and the place is -1."""
        start = self._at
        if start & 7 or not _LITTLE:
            return -1, [self.word()]
        if start == self.SIZE:
            self._produce(self._view)
            start = 0
        end = min(start + 8 * most, self.SIZE)
        self._at = end
        words: list[int] = self._words[start >> 3 : end >> 3].tolist()
        return start, words

    def _overwrite(self, start: int, words: int) -> None:
        if start >= 0:
            self._bytes[start : start + 8 * words] = bytes(8 * words)

    def align(self) -> None:
        """Drop bytes up to the next whole word, where nobody can tell."""
        odd = self._at & 7
        if odd:
            self.take(8 - odd)

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
