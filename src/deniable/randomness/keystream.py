"""The ChaCha20 keystream under one key, written straight into the caller's memory.

Source     RFC 8439; the cipher is `cryptography`'s. Zeros are encrypted, so the output is the keystream.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Long enough to hide the cost of a call, short enough to stay in the cache.
CHUNK = 1 << 17
_ZEROS = memoryview(bytes(CHUNK))
_EIGHT = bytes(8)


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

    __slots__ = ("_at", "_bytes", "_produce", "_view")

    # A first draw should be cheap; a device draws a few hundred bytes.
    SIZE = 1024

    def __init__(self, produce: Any) -> None:
        self._produce = produce
        self._bytes = bytearray(self.SIZE)
        self._view = memoryview(self._bytes)
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
        end = start + 8
        if end > self.SIZE:
            return int.from_bytes(self.take(8), "little")
        self._at = end
        value = int.from_bytes(self._view[start:end], "little")
        self._bytes[start:end] = _EIGHT
        return value

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
