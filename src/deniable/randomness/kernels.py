"""Exact draws: laws given by integers, kernels that draw whole arrays, and discrete noise.

A law chooses an outcome by one random number in [0, 1): outcome j of weights w_0 .. w_(m-1) is chosen when U lies in
[C_j, C_(j+1)) / D, with C the running sums and D their total. U is never rounded: its first 64 bits decide unless they
hit the very word in which a boundary falls (at most m - 1 words in 2^64), and then further words are drawn until they
do. So the law is exact for integers of any size, and one word is nearly always enough.

Kernels draw whole arrays of exact random values, with few random bytes and few passes over memory.

Bernoulli  decide on the first 16 bits of the 64-bit word; the one value in 65,536 that ties is settled by
           the other 48 bits, drawn only then
Uniform    multiply a 16- or 32-bit word by m and keep the upper half; exact by rejecting the few words
           that would make some results more frequent (Lemire 2019)
Packed     16 random bits index a table of the outcomes of 8 lanes; outcome o owns floor(2^16 P(o)) slots,
           the slots left over are drawn again from exactly the probability that the floors cut off

Rows       the same for the outcomes of one of several laws of integer weights: some bits index the table of its row

Work is done in blocks that stay in the cache. The tests check all laws in integers.

Exact draws of Bernoulli(e^-x) and of the discrete Laplace law, from uniform integers alone.

Bernoulli  for x in [0, 1]: the first K with U_K >= x / K; K is odd with probability e^-x
Laplace    z proportional to e^(-|z| s / t): U below t accepted with e^(-U / t), V failures of e^-1,
           z = +-floor((U + t V) / s), and "-0" drawn again
Source     Canonne, Kamath and Steinke 2020, algorithms 1 and 2
Order      one at a time: U, the coins of e^(-U / t), the coins of V, then the sign (`bernoulli(1/2)`, true is minus)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import NumberError, ProbabilityError
from deniable.exact import WORD, WORD_BITS, Dyadic

if TYPE_CHECKING:
    from deniable.randomness.source import Bits


# -- laws given by integers ---------------------------------------------------------------------------


class IntegerWeights:
    """Integer weights of the outcomes 0 .. m - 1.

    Args:
        weights: Non-negative integers, not all zero.

    Raises:
        ProbabilityError: A weight is negative, or all are zero.

    >>> law = IntegerWeights([3, 0, 1])
    >>> law.total, len(law)
    (4, 3)
    """

    __slots__ = ("_sums", "_thresholds", "_unsettled", "_words", "total", "weights")

    def __init__(self, weights: Sequence[int]) -> None:
        self.weights = tuple(int(w) for w in weights)
        if any(w < 0 for w in self.weights):
            raise ProbabilityError("a law has a negative weight")
        sums = list(accumulate(self.weights))
        if not sums or sums[-1] == 0:
            raise ProbabilityError("a law needs at least one positive weight")
        self.total = sums[-1]
        # The last boundary is 1 itself, which no U reaches.
        self._sums = sums[:-1]
        scaled = [divmod(s * WORD, self.total) for s in self._sums]
        # A boundary at 1 (trailing outcomes of weight zero) lies beyond every word.
        self._words = [min(word, WORD - 1) for word, _ in scaled]
        self._unsettled = [rest != 0 or word == WORD for word, rest in scaled]
        self._thresholds: NDArray[np.uint64] = np.array(self._words, dtype=np.uint64)

    def __len__(self) -> int:
        return len(self.weights)

    def choose(self, word: int, more: Callable[[], int]) -> int:
        """The outcome for a number that starts with `word`; `more` gives further words to break a tie."""
        outcome = bisect_right(self._words, word)
        if outcome and self._words[outcome - 1] == word and self._unsettled[outcome - 1]:
            return self._settle(word, more)
        return outcome

    def choose_many(self, words: NDArray[np.uint64], more: Callable[[], int]) -> NDArray[np.int64]:
        """`choose` for an array of first words."""
        outcomes = np.searchsorted(self._thresholds, words, side="right").astype(np.int64)
        if self._thresholds.size:
            before = np.maximum(outcomes - 1, 0)
            ties = np.flatnonzero((self._thresholds[before] == words) & (outcomes > 0))
            for i in ties:
                outcomes[i] = self.choose(int(words[i]), more)
        return outcomes

    def _settle(self, word: int, more: Callable[[], int]) -> int:
        digits, scale = word, WORD
        while True:
            # U lies in [digits, digits + 1) / scale: the outcome is known when no boundary is inside.
            low = digits * self.total // scale
            high = -(-(digits + 1) * self.total // scale)
            first, last = bisect_right(self._sums, low), bisect_left(self._sums, high)
            if first >= last:
                return first
            digits = (digits << WORD_BITS) | more()
            scale <<= WORD_BITS


class KnownBoundaries(IntegerWeights):
    """A law whose boundaries are known by their first words; its weights are built only to break a tie.

    `words` holds floor(2^64 C_j / D) for j = 1 .. m - 1, `unsettled` whether the floor cut something off.

    Args:
        words: First 64 bits of each boundary.
        unsettled: Whether a boundary has further bits.
        make: Returns the integer weights.
    """

    __slots__ = ("_flags", "_make", "_whole")

    def __init__(
        self, words: NDArray[np.uint64], unsettled: NDArray[np.bool_], make: Callable[[], Sequence[int]]
    ) -> None:
        self._thresholds = words
        self._flags = unsettled
        self._make = make
        self._whole: IntegerWeights | None = None

    def _exact(self) -> IntegerWeights:
        if self._whole is None:
            self._whole = IntegerWeights(self._make())
        return self._whole

    @property
    def weights(self) -> tuple[int, ...]:  # type: ignore[override]
        return self._exact().weights

    @property
    def total(self) -> int:  # type: ignore[override]
        return self._exact().total

    def __len__(self) -> int:
        return self._thresholds.size + 1

    def choose(self, word: int, more: Callable[[], int]) -> int:
        outcome = int(np.searchsorted(self._thresholds, np.uint64(word), side="right"))
        if outcome and int(self._thresholds[outcome - 1]) == word and self._flags[outcome - 1]:
            return self._exact()._settle(word, more)
        return outcome


# -- whole arrays -------------------------------------------------------------------------------------


BLOCK = 1 << 15
_REST_BITS = 48
_REST = 1 << _REST_BITS
_SLOTS = 1 << 16

# Up to here a 16-bit word is rejected with probability at most 1/16.
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


def coins_above(bits: Bits, words: NDArray[Any], used: int, threshold: int) -> NDArray[np.bool_]:
    """Bernoulli(threshold / 2^64), decided on the bits of random words above the lowest `used`.

    If these bits tie, further ones are drawn.
    """
    if threshold == WORD:
        return np.ones(words.size, dtype=np.bool_)
    kind, spare = words.dtype.type, 8 * words.itemsize - used
    high, rest = divmod(threshold, 1 << WORD_BITS - spare)
    coins = words >> kind(used)
    found: NDArray[np.bool_] = coins < kind(high)
    if rest:
        ties = rare(coins == kind(high))
        if ties.size:
            found[ties] = (bits.words(ties.size) >> np.uint64(spare)) < np.uint64(rest)
    return found


def rare(flags: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The positions of set flags, fast if very few are set: eight are checked together."""
    eights = flags.size // 8
    some = np.flatnonzero(flags[: 8 * eights].view(np.uint64))
    places = np.concatenate([(8 * some[:, None] + np.arange(8)).reshape(-1), np.arange(8 * eights, flags.size)])
    found: NDArray[np.intp] = places[flags[places]]
    return found


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


def integers_below(bits: Bits, limits: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Uniform below limits of at most 2^16, one limit per draw, as in `_lemire`."""
    product = bits.uniform(limits.size, np.uint16) * limits
    again = rare(product.astype(np.uint16) < limits)  # candidates only: the remainder decides
    while again.size:
        again = again[product[again].astype(np.uint16) < _SLOTS % limits[again]]
        if again.size:
            product[again] = bits.uniform(again.size, np.uint16) * limits[again]
    product >>= np.uint32(16)
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
        # A branch-free choice: twice as fast as np.where, and its time does not depend on the answers.
        source = source ^ part
        source *= kept[: part.size]
        part ^= source
    return out.reshape(values.shape)


@dataclass(frozen=True, slots=True)
class RowTables:
    """Outcomes of several laws: 2^`bits` slots per row; a slot with `escape` means a draw from the residual law.

    Outcome o of weight w owns q = floor(2^bits w / total) slots of its row, and the remainder is its weight in the
    residual law: q / 2^bits + escapes / 2^bits x remainder / sum of remainders = w / total.
    """

    bits: int
    slots: NDArray[Any]
    escape: int
    residuals: tuple[IntegerWeights | None, ...]

    def draw(self, bits: Bits, size: int) -> NDArray[Any]:
        """Outcomes of the law in the only row."""
        found = np.take(self.slots, bits.uniform(size, np.uint16) >> np.uint16(16 - self.bits), mode="clip")
        escaped = rare(found == self.escape)
        if escaped.size and self.residuals[0] is not None:
            found[escaped] = bits.draw(self.residuals[0], escaped.size)
        return found

    def choose_many(self, bits: Bits, given: NDArray[Any]) -> NDArray[Any]:
        """An outcome of the law of each given row."""
        out = np.empty(given.size, dtype=self.slots.dtype)
        escapes = []
        for start in range(0, given.size, BLOCK):
            part = out[start : start + BLOCK]
            index = given[start : start + BLOCK] << self.bits
            index |= bits.uniform(part.size, np.uint16) >> np.uint16(16 - self.bits)
            np.take(self.slots, index, out=part, mode="clip")
            escapes.append(start + np.flatnonzero(part == self.escape))
        escaped = np.concatenate(escapes) if escapes else np.empty(0, dtype=np.int64)
        rows = given[escaped]
        for row, residual in enumerate(self.residuals):
            if residual is not None:
                places = escaped[rows == row]
                out[places] = bits.draw(residual, places.size)
        return out


_MOST_SLOTS, _MOST_WEIGHTS = 1 << 21, 1 << 14


def row_tables(rows: Sequence[Sequence[int]]) -> RowTables | None:
    """Tables of laws given by integer weights with equal sums; None if they would be large."""
    total, escape = sum(map(int, rows[0])), len(rows[0])
    bits = min(16, escape.bit_length() + 7)
    if len(rows) << bits > _MOST_SLOTS or len(rows) * escape > _MOST_WEIGHTS or escape >= _SLOTS:
        return None
    slots = np.full((len(rows), 1 << bits), escape, dtype=np.uint8 if escape < 256 else np.uint16)
    residuals = []
    for row, own in zip(rows, slots, strict=True):
        shares = [divmod(int(weight) << bits, total) for weight in row]
        filled = np.repeat(np.arange(escape), [count for count, _ in shares])
        own[: filled.size] = filled
        residuals.append(IntegerWeights([rest for _, rest in shares]) if filled.size < own.size else None)
    return RowTables(bits, slots.reshape(-1), escape, tuple(residuals))


@dataclass(frozen=True, slots=True)
class LaneTable:
    """Outcomes of eight lanes: 65,536 slots; slots from `escapes` on mean "draw from `residual`"."""

    slots: NDArray[np.uint8]
    escapes: int
    residual: IntegerWeights | None


@lru_cache(maxsize=32)
def lane_table(threshold: int) -> LaneTable:
    scale = WORD**8 // _SLOTS
    weights = [threshold**c * (WORD - threshold) ** (8 - c) for c in range(9)]
    ones = [outcome.bit_count() for outcome in range(256)]
    shares = [divmod(weights[c], scale) for c in ones]
    slots = np.zeros(_SLOTS, dtype=np.uint8)
    filled = np.repeat(np.arange(256, dtype=np.uint8), [count for count, _ in shares])
    slots[: filled.size] = filled
    residual = IntegerWeights([rest for _, rest in shares]) if filled.size < _SLOTS else None
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
        # All at once: the calls of a draw cost more than its random numbers.
        escaped = np.concatenate(escapes)
        flat[escaped] = bits.draw(table.residual, escaped.size)
    if lanes % 8:
        out[:, -1] &= np.uint8((1 << lanes % 8) - 1)
    return out


# -- Bernoulli(e^-x) and the discrete Laplace law, one at a time and in arrays ------------------------


# -- discrete noise -----------------------------------------------------------------------------------


HALF = Dyadic(WORD // 2)
_ONE = Fraction(1)

# Beyond this the products below would leave 63 bits; such scales are drawn one at a time.
_LARGEST_SCALE = 1 << 40


def bernoulli_exp(bits: Bits, x: Fraction) -> bool:
    while x > 1:
        if not bernoulli_exp(bits, _ONE):
            return False
        x -= 1
    trial = 1
    while bits.integers(x.denominator * trial) < x.numerator:
        trial += 1
    return trial % 2 == 1


def bernoulli_exp_array(bits: Bits, x: Fraction, size: int) -> NDArray[np.bool_]:
    if x.denominator > _LARGEST_SCALE:
        return np.array([bernoulli_exp(bits, x) for _ in range(size)], dtype=np.bool_)
    alive = np.arange(size)
    while x > 1:
        alive = alive[_coins(bits, np.ones(alive.size, dtype=np.int64), 1)]
        x -= 1
    out = np.zeros(size, dtype=np.bool_)
    out[alive] = _coins(bits, np.full(alive.size, x.numerator, dtype=np.int64), x.denominator)
    return out


def _coins(bits: Bits, tops: NDArray[np.int64], bottom: int) -> NDArray[np.bool_]:
    """Bernoulli(e^-(top / bottom)) for each top in 0 .. bottom."""
    odd = np.ones(tops.size, dtype=np.bool_)
    active = np.arange(tops.size)
    trial = 1
    while active.size:
        active = active[bits.integers(bottom * trial, active.size) < tops[active]]
        odd[active] ^= True
        trial += 1
    return odd


def discrete_laplace(bits: Bits, scale: Fraction) -> int:
    t, s = scale.numerator, scale.denominator
    while True:
        offset = bits.integers(t)
        if not bernoulli_exp(bits, Fraction(offset, t)):
            continue
        rounds = 0
        while bernoulli_exp(bits, _ONE):
            rounds += 1
        magnitude = (offset + t * rounds) // s
        minus = bits.bernoulli(HALF)
        if minus and magnitude == 0:
            continue
        return -magnitude if minus else magnitude


def discrete_laplace_array(bits: Bits, scale: Fraction, size: int) -> NDArray[np.int64]:
    t, s = scale.numerator, scale.denominator
    if max(t, s) > _LARGEST_SCALE:
        return np.array([discrete_laplace(bits, scale) for _ in range(size)], dtype=np.int64)
    out = np.empty(size, dtype=np.int64)
    todo = np.arange(size)
    while todo.size:
        offsets = bits.integers(t, todo.size)
        accepted = _coins(bits, offsets, t)
        offsets = offsets[accepted]
        rounds = _rounds(bits, offsets.size)
        magnitude = (offsets + t * rounds) // s
        minus = bits.bernoulli(HALF, magnitude.size)
        good = ~(minus & (magnitude == 0))
        places = todo[accepted]
        out[places[good]] = np.where(minus, -magnitude, magnitude)[good]
        todo = np.concatenate([todo[~accepted], places[~good]])
    return out


def _rounds(bits: Bits, size: int) -> NDArray[np.int64]:
    """Number of successes of Bernoulli(e^-1) before the first failure."""
    rounds = np.zeros(size, dtype=np.int64)
    active = np.arange(size)
    while active.size:
        active = active[_coins(bits, np.ones(active.size, dtype=np.int64), 1)]
        rounds[active] += 1
    return rounds
