"""Positional popcount: how many reports have each bit set, at the speed of reading them a few times.

Reports go through a carry-save adder: three slices of bits become one slice of sums and one of carries,
64 lanes an instruction. Plane j holds bit j of a counter for every position of a slice. At the end the planes are
folded: the halves of a plane are two slices for the same adders, so that some rows of each are left, and only these
are unpacked and added. Exact for any number of reports that fits in 63 bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.protocols.reports import Bytes
from deniable.protocols.tally import Counts

# Slices this large stay in the cache together with their planes.
_SLICE_BYTES = 1 << 16
_FEW_ROWS = 16

Words = NDArray[np.uint64]


def positional_popcount(reports: Bytes) -> Counts:
    """Sum of each bit over the rows; bit v of a report is bit v % 8 of byte v // 8."""
    count, width = reports.shape
    rows = max(8, _SLICE_BYTES // width // 8 * 8)  # whole words whatever the width
    slices = count // rows
    if slices < 4:
        return _unpacked(reports)
    flat = np.ascontiguousarray(reports[: slices * rows]).reshape(-1).view(np.uint64).reshape(slices, -1)
    total = _unpacked(reports[slices * rows :])
    for weight, plane in _folded(_planes(flat), width):
        total += weight * _unpacked(plane.view(np.uint8).reshape(-1, width))
    return total


def _folded(planes: list[tuple[int, Words]], width: int) -> list[tuple[int, Words]]:
    """Shorter planes with the same weighted sum of rows."""
    size = planes[0][1].size
    while size * 8 > _FEW_ROWS * width and size * 4 % (8 * width) == 0:
        size //= 2
        levels: dict[int, list[Words]] = {}
        for weight, plane in planes:
            levels.setdefault(weight, []).extend((plane[:size], plane[size:]))
        planes, weight = [], 1
        while levels:
            same = levels.pop(weight, [])
            while len(same) >= 3:
                a, b, c = same.pop(), same.pop(), same.pop()
                mixed, carry = a ^ b, a & b
                same.append(mixed ^ c)
                mixed &= c
                carry |= mixed
                levels.setdefault(2 * weight, []).append(carry)
            planes += [(weight, plane) for plane in same]
            weight *= 2
    return planes


def _planes(slices: NDArray[np.uint64]) -> list[tuple[int, Words]]:
    """Vertical counters: planes with their weights, whose weighted sum is the sum of the slices."""
    size = slices.shape[1]
    sums: list[Words] = []
    waiting: list[Words | None] = []
    spare: list[Words] = []
    mixed = np.empty(size, dtype=np.uint64)
    for incoming in slices:
        level, carry, owned = 0, incoming, False
        while True:
            if level == len(sums):
                sums.append(np.zeros(size, dtype=np.uint64))
                waiting.append(None)
            partner = waiting[level]
            if partner is None:
                # A slice of the input is only looked at; a carry is a buffer of ours.
                waiting[level] = carry
                break
            out = spare.pop() if spare else np.empty(size, dtype=np.uint64)
            _full_adder(sums[level], partner, carry, out, mixed)
            if level:
                spare.append(partner)
            if owned:
                spare.append(carry)
            waiting[level] = None
            level, carry, owned = level + 1, out, True
    planes = [(1 << level, plane) for level, plane in enumerate(sums)]
    return planes + [(1 << level, left) for level, left in enumerate(waiting) if left is not None]


def _full_adder(total: Words, a: Words, b: Words, carry: Words, mixed: Words) -> None:
    """total + a + b -> total (sum bit) and carry."""
    np.bitwise_xor(total, a, out=mixed)
    np.bitwise_and(total, a, out=carry)
    np.bitwise_xor(mixed, b, out=total)
    np.bitwise_and(mixed, b, out=mixed)
    np.bitwise_or(carry, mixed, out=carry)


def _unpacked(reports: Bytes) -> Counts:
    """The plain way, 255 rows at a time so that bytes do not overflow."""
    count, width = reports.shape
    total = np.zeros(8 * width, dtype=np.int64)
    for start in range(0, count, 255):
        lanes = np.unpackbits(reports[start : start + 255], axis=1, bitorder="little")
        total += np.add.reduce(lanes, axis=0, dtype=np.uint8)
    return total
