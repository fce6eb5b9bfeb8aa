"""Uniform random subsets of a given size.

One        Floyd's algorithm: for j from d - w up to d - 1, draw t below j + 1; t joins, or j if t is there already
Many       independent bits at a coarse rate below w / d, then uniform positions join until the size is right. Given
           its size, a set of independent bits is uniform, and adding uniform new members keeps it so; sets that
           start too large are drawn again, which depends on their size alone. So the result is exactly uniform
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.protocols.base import Positions
from deniable.protocols.reports import Bytes
from deniable.randomness import Bits

# Large enough that the last few rows to be topped up do not cost a call each, small enough for the cache.
_BLOCK_BYTES, _BLOCK_ROWS = 1 << 23, 1 << 16
_RATE_BITS = 4


def random_subset(bits: Bits, size: int, count: int) -> list[int]:
    """`count` different positions below `size`, uniformly; one draw of `integers` each."""
    chosen: dict[int, None] = {}
    for last in range(size - count, size):
        drawn = bits.integers(last + 1)
        chosen[last if drawn in chosen else drawn] = None
    return list(chosen)


def random_subsets(bits: Bits, size: int, count: int, values: Positions, held: NDArray[np.bool_]) -> Bytes:
    """Bitmaps of `count` members below `size`, one a value, which is a member exactly where `held`."""
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
    todo = np.arange(values.size)
    weight = np.empty(values.size, dtype=np.int64)
    while todo.size:
        rows = _coarse_bits(bits, rate, size, todo.size)
        _set(rows, np.arange(todo.size), values[todo])
        weights = row_weights(rows)
        good = weights <= target[todo]
        out[todo[good]] = rows[good]
        weight[todo[good]] = weights[good]
        todo = todo[~good]
    _top_up(bits, size, out, target - weight)
    away = np.flatnonzero(~held)
    out[away, values[away] >> 3] &= ~(np.uint8(1) << (values[away] & 7).astype(np.uint8))


def row_weights(rows: Bytes) -> NDArray[np.int64]:
    """How many bits are set in each row."""
    words = rows.view(np.uint64) if rows.shape[1] % 8 == 0 else rows
    weights: NDArray[np.int64] = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    return weights


def _coarse_rate(size: int, count: int) -> int:
    """The largest rate / 2^4 that overshoots in about one case of six: drawing again is cheaper than topping up."""
    for rate in range(1 << _RATE_BITS - 1, 0, -1):
        share = rate / (1 << _RATE_BITS)
        if share * size + (share * (1 - share) * size) ** 0.5 + 1 <= count:
            return rate
    return 0


def _coarse_bits(bits: Bits, rate: int, size: int, count: int) -> Bytes:
    """Rows of independent bits, each set with probability rate / 2^4, from as few random bits as that takes."""
    width = -(-size // 8)
    rows = np.zeros((count, width), dtype=np.uint8)
    flat = rows.reshape(-1)
    fresh = np.empty_like(flat)
    # Digits of the rate from the lowest 1 up: OR with random bits at a 1, AND at a 0 (Horner's rule, halved).
    for place in range(_RATE_BITS):
        if rate % (1 << place + 1) == 0:
            continue
        bits.fill(fresh)
        if rate >> place & 1:
            np.bitwise_or(flat, fresh, out=flat)
        else:
            np.bitwise_and(flat, fresh, out=flat)
    if size % 8:
        rows[:, -1] &= np.uint8((1 << size % 8) - 1)
    return rows


def _top_up(bits: Bits, size: int, rows: Bytes, missing: NDArray[np.int64]) -> None:
    """Add uniform new members to each row until none is missing."""
    flat, width = rows.reshape(-1), rows.shape[1]
    needy = np.flatnonzero(missing)
    lack = missing[needy]
    while needy.size:
        drawn = bits.integers(size, needy.size)
        where = needy * width + (drawn >> 3)
        mask = np.uint8(1) << (drawn & 7).astype(np.uint8)
        old = flat[where]
        flat[where] = old | mask
        lack -= (old & mask) == 0
        if not lack.all():
            needy, lack = needy[lack > 0], lack[lack > 0]


def _set(rows: Bytes, which: Positions, places: Positions) -> None:
    rows[which, places >> 3] |= np.uint8(1) << (places & 7).astype(np.uint8)
