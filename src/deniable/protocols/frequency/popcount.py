"""Positional popcount: how many reports have each bit set, at the speed of reading them a few times.

Reports go through a carry-save adder: three slices of bits become one slice of sums and one of carries,
64 lanes an instruction. Plane j holds bit j of a counter for every position of a slice, and stays from one batch of
reports to the next. At the end the planes are folded: the halves of a plane are two slices for the same adders, so that
some rows of each are left, and only these are unpacked and added. Exact for any number of reports that fits in 63 bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.protocols.reports import Bytes
from deniable.protocols.tally import Counts

# Slices this large stay in the cache together with their planes.
_SLICE_BYTES = 1 << 16
_FEW_ROWS = 16
_WORTH_SLICES = 4

Words = NDArray[np.uint64]


def positional_popcount(reports: Bytes) -> Counts:
    """Sum of each bit over the rows; bit v of a report is bit v % 8 of byte v // 8."""
    counter = BitCounter(reports.shape[1])
    if len(reports) < _WORTH_SLICES * counter.rows:
        return _unpacked(reports)
    counter.add(reports)
    return counter.counts()


class BitCounter:
    """The sum of each bit over reports that come in batches; `lanes` leaves out the padding at their end."""

    def __init__(self, width: int, lanes: int | None = None) -> None:
        self._width, self._lanes = width, lanes
        # A power of two, so that planes can be halved; eight rows are whole words whatever the width.
        self.rows = max(8, 1 << max(1, _SLICE_BYTES // width).bit_length() - 1)
        self._size = self.rows * width // 8
        self._rest = np.zeros(8 * width, dtype=np.int64)
        self._sums: list[Words] = []
        self._waiting: list[Words | None] = []
        self._spare: list[Words] = []
        self._mixed = np.empty(self._size, dtype=np.uint64)

    def add(self, reports: Bytes) -> None:
        slices = len(reports) // self.rows
        whole = np.ascontiguousarray(reports[: slices * self.rows]).reshape(-1).view(np.uint64)
        for incoming in whole.reshape(slices, self._size):
            self._add_slice(incoming)
        if slices and self._waiting[0] is not None:
            self._waiting[0] = self._waiting[0].copy()  # what was given is not ours to keep
        if slices * self.rows < len(reports):
            self._rest += _unpacked(reports[slices * self.rows :])

    def counts(self) -> Counts:
        total = self._rest.copy()
        for weight, plane in _folded(self._planes(), self._width):
            total += weight * _unpacked(plane.view(np.uint8).reshape(-1, self._width))
        return total[: self._lanes]

    def _planes(self) -> list[tuple[int, Words]]:
        """With their weights, whose weighted sum is the sum of the slices."""
        planes = [(1 << level, plane) for level, plane in enumerate(self._sums)]
        return planes + [(1 << level, left) for level, left in enumerate(self._waiting) if left is not None]

    def _add_slice(self, incoming: Words) -> None:
        level, carry = 0, incoming
        while True:
            if level == len(self._sums):
                self._sums.append(np.zeros(self._size, dtype=np.uint64))
                self._waiting.append(None)
            partner = self._waiting[level]
            if partner is None:
                self._waiting[level] = carry
                return
            out = self._spare.pop() if self._spare else np.empty(self._size, dtype=np.uint64)
            _full_adder(self._sums[level], partner, carry, out, self._mixed)
            if level:
                # A slice of the input is only looked at; a carry is a buffer of ours.
                self._spare += (partner, carry)
            self._waiting[level] = None
            level, carry = level + 1, out


def _folded(planes: list[tuple[int, Words]], width: int) -> list[tuple[int, Words]]:
    """Shorter planes with the same weighted sum of rows."""
    size = planes[0][1].size if planes else 0
    while size * 8 > _FEW_ROWS * width:
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


def _full_adder(total: Words, a: Words, b: Words, carry: Words, mixed: Words) -> None:
    """total + a + b -> total (sum bit) and carry."""
    # The place of a result as an argument, not a keyword, takes a few per cent less time.
    np.bitwise_xor(total, a, mixed)
    np.bitwise_and(total, a, carry)
    np.bitwise_xor(mixed, b, total)
    np.bitwise_and(mixed, b, mixed)
    np.bitwise_or(carry, mixed, carry)


def _unpacked(reports: Bytes) -> Counts:
    """The plain way, 255 rows at a time so that bytes do not overflow."""
    count, width = reports.shape
    total = np.zeros(8 * width, dtype=np.int64)
    for start in range(0, count, 255):
        lanes = np.unpackbits(reports[start : start + 255], axis=1, bitorder="little")
        total += np.add.reduce(lanes, axis=0, dtype=np.uint8)
    return total
