"""A source that plays back chosen bytes, to check kernels word by word."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.randomness import Bits


class Scripted(Bits):
    """Each `fill` or `take` plays the next item of the script, which must have the length asked for."""

    def __init__(self, *items: bytes | NDArray[np.generic]) -> None:
        self.items = [item if isinstance(item, bytes) else item.tobytes() for item in items]
        self.requests: list[int] = []

    def take(self, count: int) -> bytes:
        self.requests.append(count)
        item = self.items.pop(0)
        assert len(item) == count, f"asked for {count} bytes, the script has {len(item)}"
        return item

    def fill(self, out: NDArray[np.uint8]) -> None:
        out[:] = np.frombuffer(self.take(out.size), dtype=np.uint8)


def words(*values: int) -> list[bytes]:
    """64-bit words, one item each."""
    return [int(value).to_bytes(8, "little") for value in values]
