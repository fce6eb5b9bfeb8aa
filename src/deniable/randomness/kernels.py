"""Kernels that draw whole arrays of exact random values, with few random bytes and few passes over memory.

Bernoulli  decide on the first 16 bits of the 64-bit word; the one value in 65,536 that ties is settled by
           the other 48 bits, drawn only then
Uniform    multiply a 16- or 32-bit word by m and keep the upper half; exact by rejecting the few words
           that would make some results more frequent (Lemire 2019)
Packed     16 random bits index a table of the outcomes of 8 lanes; outcome o owns floor(2^16 P(o)) slots,
           the slots left over are drawn again from exactly the probability that the floors cut off

Work goes in blocks that stay in the cache. All laws are checked in integers by the tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import NumberError
from deniable.exact import WORD, WORD_BITS
from deniable.randomness.law import Law

if TYPE_CHECKING:
    from deniable.randomness.source import Bits

BLOCK = 1 << 15
_REST_BITS = 48
_REST = 1 << _REST_BITS
_SLOTS = 1 << 16

# Up to here a 16-bit word is rejected in at most one case of 16.
_SHORT = 1 << 12
_MIDDLE = 1 << 28


def bernoulli(bits: Bits, threshold: int, size: int) -> NDArray[np.bool_]:
    if threshold == WORD:
        return np.ones(size, dtype=np.bool_)
    out = np.empty(size, dtype=np.bool_)
    words = np.empty(min(size, BLOCK), dtype="<u2")
    for start in range(0, size, BLOCK):
        part = out[start : start + BLOCK]
        _bernoulli_block(bits, threshold, words[: part.size], part)
    return out


def _bernoulli_block(bits: Bits, threshold: int, words: NDArray[Any], out: NDArray[np.bool_]) -> None:
    high, rest = divmod(threshold, _REST)
    bits.fill(words.view(np.uint8))
    np.less(words, np.uint16(high), out=out)
    if rest:
        ties = np.flatnonzero(words == np.uint16(high))
        if ties.size:
            out[ties] = (bits.words(ties.size) >> np.uint64(WORD_BITS - _REST_BITS)) < np.uint64(rest)


def integers(bits: Bits, below: int, size: int) -> NDArray[np.int64]:
    if below > 1 << 63:
        raise NumberError("arrays of integers go up to 2^63: draw larger ones one at a time")
    if below == 1:
        return np.zeros(size, dtype=np.int64)
    out = np.empty(size, dtype=np.int64)
    if below > _MIDDLE:
        return _large_integers(bits, below, out)
    for start in range(0, size, BLOCK):
        part = out[start : start + BLOCK]
        part[:] = _lemire(bits, below, part.size)
    return out


def _lemire(bits: Bits, below: int, size: int) -> NDArray[Any]:
    """Uniform below a modest number; 16- or 32-bit words and rejection."""
    narrow: Any
    wide: Any
    narrow, wide, width = (np.uint16, np.uint32, 16) if below <= _SHORT else (np.uint32, np.uint64, 32)
    product = bits.uniform(size, narrow).astype(wide)
    product *= wide(below)
    surplus = (1 << width) % below
    if surplus:
        again = np.flatnonzero(product.astype(narrow) < narrow(surplus))
        while again.size:
            fresh = bits.uniform(again.size, narrow).astype(wide) * wide(below)
            product[again] = fresh
            again = again[fresh.astype(narrow) < narrow(surplus)]
    product >>= wide(width)
    return product


def _large_integers(bits: Bits, below: int, out: NDArray[np.int64]) -> NDArray[np.int64]:
    last = np.uint64(WORD - WORD % below - 1)
    todo = np.arange(out.size)
    while todo.size:
        words = bits.words(todo.size)
        good = words <= last
        out[todo[good]] = (words[good] % np.uint64(below)).astype(np.int64)
        todo = todo[~good]
    return out


def keep_or_uniform(bits: Bits, values: NDArray[Any], keep: int, below: int) -> NDArray[Any]:
    flat = np.ascontiguousarray(values).reshape(-1)
    if keep == WORD:
        return values.copy()
    if below > _MIDDLE:
        drawn = integers(bits, below, flat.size).astype(flat.dtype)
        return np.where(bernoulli(bits, keep, flat.size), flat, drawn).reshape(values.shape)
    out = np.empty_like(flat)
    block = min(flat.size, BLOCK)
    words = np.empty(block, dtype="<u2")
    kept = np.empty(block, dtype=np.bool_)
    for start in range(0, flat.size, BLOCK):
        part, source = out[start : start + BLOCK], flat[start : start + BLOCK]
        _bernoulli_block(bits, keep, words[: part.size], kept[: part.size])
        part[:] = _lemire(bits, below, part.size)
        # A branch-free choice: half the time of np.where, and its time does not depend on the answers.
        source = source ^ part
        source *= kept[: part.size]
        part ^= source
    return out.reshape(values.shape)


def packed_one(bits: Bits, threshold: int, lanes: int) -> NDArray[np.uint8]:
    """One report's lanes, in the documented order: the comparison of 64 numbers at a time, digit by digit."""
    blocks = bytearray()
    for start in range(0, lanes, WORD_BITS):
        undecided = (1 << min(WORD_BITS, lanes - start)) - 1
        true = undecided if threshold == WORD else 0
        digits = threshold % WORD
        # Once the digits of Q that remain are all zero, no undecided lane can fall below it.
        while undecided and digits:
            word = bits.word()
            if digits >> (WORD_BITS - 1):
                true |= undecided & ~word
                undecided &= word
            else:
                undecided &= ~word
            digits = (digits << 1) % WORD
        blocks += true.to_bytes(8, "little")
    return np.frombuffer(bytes(blocks[: -(-lanes // 8)]), dtype=np.uint8).copy()


@dataclass(frozen=True, slots=True)
class LaneTable:
    """Outcomes of eight lanes: 65,536 slots, of which those from `escapes` on mean "draw from `residual`"."""

    slots: NDArray[np.uint8]
    escapes: int
    residual: Law | None


@lru_cache(maxsize=32)
def lane_table(threshold: int) -> LaneTable:
    scale = WORD**8 // _SLOTS
    weights = [threshold**c * (WORD - threshold) ** (8 - c) for c in range(9)]
    ones = [outcome.bit_count() for outcome in range(256)]
    shares = [divmod(weights[c], scale) for c in ones]
    slots = np.zeros(_SLOTS, dtype=np.uint8)
    filled = np.repeat(np.arange(256, dtype=np.uint8), [count for count, _ in shares])
    slots[: filled.size] = filled
    residual = Law([rest for _, rest in shares]) if filled.size < _SLOTS else None
    return LaneTable(slots, filled.size, residual)


def packed(bits: Bits, threshold: int, lanes: int, size: int) -> NDArray[np.uint8]:
    width = -(-lanes // 8)
    out = np.empty((size, width), dtype=np.uint8)
    table = lane_table(threshold)
    flat = out.reshape(-1)
    words = np.empty(min(flat.size, BLOCK), dtype="<u2")
    escapes = []
    for start in range(0, flat.size, BLOCK):
        part = flat[start : start + BLOCK]
        index = words[: part.size]
        bits.fill(index.view(np.uint8))
        np.take(table.slots, index, out=part, mode="clip")
        if table.residual is not None:
            escapes.append(start + np.flatnonzero(index >= np.uint16(table.escapes)))
    if table.residual is not None and escapes:
        # All at once: a draw costs more in calls than in random numbers.
        escaped = np.concatenate(escapes)
        flat[escaped] = bits.draw(table.residual, escaped.size)
    if lanes % 8:
        out[:, -1] &= np.uint8((1 << lanes % 8) - 1)
    return out
