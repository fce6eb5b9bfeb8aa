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
    """One row of `width` bytes a number."""
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
