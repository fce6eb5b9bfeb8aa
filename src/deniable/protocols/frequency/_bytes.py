"""Whole numbers in as few little-endian bytes as they need."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.protocols.reports import Bytes


def width_of(size: int) -> int:
    """Bytes that hold the numbers below `size`."""
    return max(1, -(-(size - 1).bit_length() // 8))


def narrow_type(width: int) -> np.dtype[Any]:
    """The smallest unsigned type of at least that many bytes."""
    return np.dtype(f"<u{next(size for size in (1, 2, 4, 8) if size >= width)}")


def to_bytes(numbers: NDArray[Any], width: int) -> Bytes:
    """One row of `width` bytes per number."""
    whole = numbers.astype(narrow_type(width), copy=False)
    return np.ascontiguousarray(whole[:, None].view(np.uint8)[:, :width])


def from_bytes(rows: Bytes) -> NDArray[Any]:
    """The numbers in rows of bytes."""
    count, width = rows.shape
    kind = narrow_type(width)
    if kind.itemsize == width:
        return np.ascontiguousarray(rows).view(kind)[:, 0]
    padded = np.zeros((count, kind.itemsize), dtype=np.uint8)
    padded[:, :width] = rows
    return padded.view(kind)[:, 0]


_BLOCK = 1 << 16
_PAIRS = 1 << 18
_FEW = 8


def histogram(numbers: NDArray[Any], size: int) -> NDArray[np.int64]:
    """How often each number below `size` comes; all of them are.

    `bincount` makes 64-bit numbers of what it is given, so it gets as much as then stays in the cache, and single
    bytes two at a time, as if they were one number. It waits for itself where few counters take turns: then it is
    faster to look for one number after the other.
    """
    if numbers.itemsize == 1 and size <= _FEW:
        return _one_by_one(numbers, size)
    if numbers.itemsize == 1 and numbers.size >= _PAIRS and numbers.flags.c_contiguous:
        even = numbers.size // 2 * 2
        table = histogram(numbers[:even].view("<u2"), 1 << 16).reshape(256, 256)
        both: NDArray[np.int64] = (table.sum(axis=0) + table.sum(axis=1))[:size]
        return both + np.bincount(numbers[even:], minlength=size)
    block = max(_BLOCK, 4 * size)
    total = np.bincount(numbers[:block], minlength=size)
    for start in range(block, numbers.size, block):
        total += np.bincount(numbers[start : start + block], minlength=size)
    return total


def _one_by_one(numbers: NDArray[Any], size: int) -> NDArray[np.int64]:
    total = np.zeros(size, dtype=np.int64)
    for start in range(0, numbers.size, _BLOCK):
        block = numbers[start : start + _BLOCK]
        total += [np.count_nonzero(block == number) for number in range(size)]
    return total
