"""Reports that are rows of bits: counted by position, drawn as subsets, and judged by their number of ones.

Positional popcount: how many reports have each bit set, at the speed of reading them a few times.

Reports go through a carry-save adder: three slices of bits become one slice of sums and one of carries,
64 lanes per instruction. Plane j holds bit j of a counter for every position of a slice, and stays from one batch of
reports to the next. At the end the planes are folded: the halves of a plane are two slices for the same adders, so that
some rows of each are left, and only these are unpacked and added. Exact for any number of reports that fits in 63 bits.

Uniform random subsets of a given size.

One        `Bits.subset`
Many       independent bits at a coarse rate below w / d, then uniform positions join until the size is right. Given
           its size, a set of independent bits is uniform, and adding uniform new members keeps it so; sets that
           start too large are drawn again, which depends on their size alone. So the result is exactly uniform

How many ones an honest bitmap has: outside these bounds a report is made up.

A fake report that sets every bit pushes every answer at once; one that keeps to a usual number of ones cannot push more
than an honest device by luck. The number of ones is a binomial variable of m bits at q, plus at most `more` others, so
by Chernoff's bound P(ones >= k) <= exp(-m KL(k / m || q)), and likewise below.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from deniable.protocols.protocol import Positions
from deniable.protocols.reports import Bytes
from deniable.protocols.tally import Counts
from deniable.randomness import Bits

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


# -- uniform random subsets of a given size -----------------------------------------------------------


# Large enough that the last few rows to be topped up do not cost a call each, small enough for the cache.
_BLOCK_BYTES, _BLOCK_ROWS = 1 << 22, 1 << 16
_RATE_BITS = 4
_LEFT = 0.85
"""The part of the rows that still lack members, below which the others are left out."""


def random_subsets(bits: Bits, size: int, count: int, values: Positions, held: NDArray[np.bool_]) -> Bytes:
    """Bitmaps of `count` members below `size`, one per value, which is a member exactly where `held`."""
    width = -(-size // 8)
    out = np.empty((values.size, width), dtype=np.uint8)
    block = max(1, min(_BLOCK_ROWS, _BLOCK_BYTES // width))
    for start in range(0, values.size, block):
        end = start + block
        _fill(bits, size, count, values[start:end], held[start:end], out[start:end])
    return out


def _fill(bits: Bits, size: int, count: int, values: Positions, held: NDArray[np.bool_], out: Bytes) -> None:
    # The value's own bit is set throughout, so that nothing lands on it, and cleared at the end where it is not
    # to be a member: then one more of the others is needed.
    target = count + (~held).astype(np.int64)
    rate = _coarse_rate(size, count)
    _coarse_bits(bits, rate, size, out)
    _set(out, np.arange(values.size), values)
    weight = row_weights(out)
    heavy = np.flatnonzero(weight > target)
    while heavy.size:
        rows = np.empty((heavy.size, out.shape[1]), dtype=np.uint8)
        _coarse_bits(bits, rate, size, rows)
        _set(rows, np.arange(heavy.size), values[heavy])
        out[heavy], weight[heavy] = rows, row_weights(rows)
        heavy = heavy[weight[heavy] > target[heavy]]
    _top_up(bits, size, out, target - weight)
    away = np.flatnonzero(~held)
    out[away, values[away] >> 3] &= ~(np.uint8(1) << (values[away] & 7).astype(np.uint8))


def row_weights(rows: Bytes) -> NDArray[np.int64]:
    """How many bits are set in each row."""
    size = next(size for size in (8, 4, 2, 1) if rows.shape[1] % size == 0)
    words = np.ascontiguousarray(rows).view(f"<u{size}")
    if words.shape[1] == 1:
        alone: NDArray[np.int64] = np.bitwise_count(words[:, 0]).astype(np.int64)
        return alone
    weights: NDArray[np.int64] = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    return weights


def _coarse_rate(size: int, count: int) -> int:
    """The largest rate / 2^4 that overshoots in about one case of six: drawing again is cheaper than topping up."""
    for rate in range(1 << _RATE_BITS - 1, 0, -1):
        share = rate / (1 << _RATE_BITS)
        if share * size + (share * (1 - share) * size) ** 0.5 + 1 <= count:
            return rate
    return 0


def _coarse_bits(bits: Bits, rate: int, size: int, rows: Bytes) -> None:
    """Fill rows with independent bits, each set with probability rate / 2^4, from as few random bits as that takes."""
    flat = rows.reshape(-1)
    if not rate:
        flat[:] = 0
        return
    lowest = (rate & -rate).bit_length() - 1
    bits.fill(flat)
    fresh = np.empty_like(flat) if lowest < _RATE_BITS - 1 else flat
    # Digits of the rate from above the lowest 1: OR with random bits at a 1, AND at a 0 (Horner's rule, halved).
    for place in range(lowest + 1, _RATE_BITS):
        bits.fill(fresh)
        mix = np.bitwise_or if rate >> place & 1 else np.bitwise_and
        mix(flat, fresh, out=flat)
    if size % 8:
        rows[:, -1] &= np.uint8((1 << size % 8) - 1)


def _top_up(bits: Bits, size: int, rows: Bytes, missing: NDArray[np.int64]) -> None:
    """Add uniform new members to each row until none is missing."""
    flat, width = rows.reshape(-1), rows.shape[1]
    needy = np.flatnonzero(missing)
    starts, lack = needy * width, missing[needy].astype(np.int32)
    while starts.size:
        where = bits.integers(size, starts.size)
        new = np.uint8(1) << (where & 7).astype(np.uint8)
        where >>= 3
        where += starts
        old = flat.take(where)
        new &= ~old
        new *= lack > 0  # rows that are full stay for a while: to leave them out costs as much as to go on
        old |= new
        flat[where] = old
        lack -= new > 0
        if np.count_nonzero(lack) <= _LEFT * lack.size:
            rest = np.flatnonzero(lack)
            starts, lack = starts.take(rest), lack.take(rest)


def _set(rows: Bytes, which: Positions, places: Positions) -> None:
    rows[which, places >> 3] |= np.uint8(1) << (places & 7).astype(np.uint8)


# -- how many ones an honest bitmap has ---------------------------------------------------------------


SELDOM = 61 * math.log(2)  # 2^-61 on either side


@lru_cache(maxsize=1024)
def usual_weights(m: int, q: float, more: int = 0) -> tuple[int, int]:
    """The smallest and the largest number of ones that are taken; an honest one lies outside with at most 2^-60.

    >>> usual_weights(1023, 0.27, more=1)
    (154, 413)
    >>> usual_weights(4, 0.27, more=1)
    (0, 5)
    """
    mean = m * q
    high = bisect_left(range(m + 1), SELDOM, lo=math.ceil(mean), key=lambda k: _exponent(k, m, q))
    low = bisect_left(range(m + 1), SELDOM, lo=math.ceil(m - mean), key=lambda k: _exponent(k, m, 1 - q))
    # The first unlikely weight upwards, and the first unlikely number of zeros.
    return m - low + 1 if low <= m else 0, high - 1 + more if high <= m else m + more


def _exponent(k: int, m: int, q: float) -> float:
    share = k / m if m else 0.0
    ones = share * math.log(share / q) if share else 0.0
    zeros = (1 - share) * math.log((1 - share) / (1 - q)) if share < 1 else 0.0
    return m * (ones + zeros)
