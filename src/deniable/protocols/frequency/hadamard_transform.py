"""The fast Walsh-Hadamard transform of integers, exact: H[u, v] = (-1)^popcount(u & v)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_STRIP = 64


def walsh_hadamard(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """The transform along the first axis, whose length is a power of two.

    >>> walsh_hadamard(np.array([1, 0, 0, 2])).tolist()
    [3, -1, -1, 3]
    """
    size = len(table)
    if size & (size - 1) or size == 0:
        raise ValueError("a Walsh-Hadamard transform needs a length that is a power of two")
    # Nothing in the transform exceeds the sum of the magnitudes, so half the memory often does.
    narrow = int(np.abs(table).max(initial=0)) * size < 1 << 31 or int(np.abs(table).sum()) < 1 << 31
    data: NDArray[Any] = np.array(table, dtype=np.int32 if narrow else np.int64, order="C")
    if size <= 1 << 12 or data.ndim > 1:
        _butterflies(data.reshape(size, -1))
        return data.astype(np.int64)
    # Two passes over a square that fit in the cache, a few columns at a time.
    rows = 1 << (size.bit_length() - 1) // 2
    square = data.reshape(rows, -1)
    for _ in range(2):
        for start in range(0, square.shape[1], _STRIP):
            strip = np.ascontiguousarray(square[:, start : start + _STRIP])
            _butterflies(strip)
            square[:, start : start + _STRIP] = strip
        square = np.ascontiguousarray(square.T)
    return square.reshape(-1).astype(np.int64)


def _butterflies(block: NDArray[Any]) -> None:
    """The transform along the first axis, in place."""
    size = block.shape[0]
    half = 1
    while half < size:
        pairs = block.reshape(size // (2 * half), 2, half, -1)
        top, bottom = pairs[:, 0], pairs[:, 1]
        difference = top - bottom
        top += bottom
        bottom[:] = difference
        half *= 2
