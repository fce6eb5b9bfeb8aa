"""The interface of a source of random bits, its draws, and the source that explores every branch.

A *single* draw consumes bytes in this order, which clients in other languages follow:

word              8 bytes, little-endian
bernoulli(T)      one word w; true iff w < T (T / 2^64 is the probability)
integers(m)       the fewest words that hold m values, first word lowest; values at or above the largest
                  multiple of m are rejected and drawn again, then value mod m; m = 1 draws nothing
packed(Q, d)      blocks of 64 lanes, lane i is bit i; digits of Q from the top, one word per digit, until
                  every lane of the block is decided (a lane is true once its digit is 0 where Q's is 1)
draw(law)         one word, compared with the law's boundaries; further words only on a tie
keep_or_uniform   bernoulli(keep), then integers(m), always both
subset(S, k)      k of the m bits that are set in S, by Floyd's algorithm: for j from m - k up to m - 1 draw
                  t = integers(j + 1); bit number t of them joins, lowest first, or number j if t is there already

kept_and_drawn    the same as a truth value and a number, for one value
integer_list      integers(m), `count` times
flipped           a row of bits xor packed(Q, d)

An array is drawn in the fastest order; its law is the same.

Proofs run the real code once along every branch, with exact weights (`exhaust`). A sampler asks for one of several
outcomes. `Exhaustive` returns each of them in turn and records the probability; the probabilities of equal results
are added as fractions. Code that may loop without end (rejection) is followed until a branch weighs less than
`smallest`; the mass of the other branches is reported.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from deniable.errors import NumberError
from deniable.exact import WORD, WORD_BITS, Dyadic
from deniable.randomness import kernels
from deniable.randomness.kernels import IntegerWeights

_FEW_BITS = 64


@lru_cache(maxsize=64)
def digits_of(threshold: int) -> tuple[int, ...]:
    """The binary digits of threshold / 2^64 from the top, up to the last 1: no later digit can make a lane true."""
    digits = f"{threshold:064b}".rstrip("0")
    return tuple(map(int, digits))


def floyd(integers: Callable[[int], int], size: int, count: int) -> list[int]:
    """`count` different numbers below `size`, uniformly; one bounded draw for each.

    Args:
        integers: Draws a uniform number below its argument.
        size: The numbers are below this.
        count: How many are drawn.

    Returns:
        The numbers, in the order of the draws.
    """
    chosen: dict[int, None] = {}
    for last in range(size - count, size):
        drawn = integers(last + 1)
        chosen[last if drawn in chosen else drawn] = None
    return list(chosen)


def set_bits(number: int) -> list[int]:
    """The positions of the set bits, ascending."""
    if number.bit_count() > _FEW_BITS:
        held = np.frombuffer(number.to_bytes(-(-number.bit_length() // 8), "little"), dtype=np.uint8)
        return np.flatnonzero(np.unpackbits(held, bitorder="little")).tolist()
    found = []
    while number:
        low = number & -number
        found.append(low.bit_length() - 1)
        number ^= low
    return found


def with_ranks(number: int, ranks: Sequence[int]) -> int:
    """The set bits of a number with the given ranks (0 is the lowest), as a number."""
    width = number.bit_length()
    if width - number.bit_count() <= _FEW_BITS:  # few bits are zero: skip them
        gaps, found = set_bits(number ^ (1 << width) - 1), 0
        for place in ranks:
            for gap in gaps:
                place += place >= gap
            found |= 1 << place
        return found
    places = set_bits(number)
    return sum(1 << places[rank] for rank in ranks)


def listed_bits(number: int, width: int) -> bytes:
    """The positions of the set bits, ascending, each in `width` bytes.

    Args:
        number: A number whose set bits are listed.
        width: Bytes per position.

    Returns:
        The positions, little-endian.
    """
    if not isinstance(number, int):  # a symbol in place of a number
        sent: bytes = number.listed(width)
        return sent
    return b"".join(place.to_bytes(width, "little") for place in set_bits(number))


def written_number(row: bytes) -> int:
    """The number in little-endian bytes: `int.from_bytes`, for symbols as well.

    Args:
        row: The bytes.

    Returns:
        The number.
    """
    if isinstance(row, bytes):
        return int.from_bytes(row, "little")
    number: int = row.number()
    return number


class Bits(ABC):
    """Random bits with exact samplers; `size=None` draws one value, a number draws an array."""

    __slots__ = ()

    @property
    def public(self) -> int | None:
        """A public number that determines public coins, such as a hash function, instead of a draw: see `Tied`."""
        return None

    @abstractmethod
    def fill(self, out: NDArray[np.uint8]) -> None:
        """Overwrite a contiguous byte array with the next bytes of the stream."""

    @abstractmethod
    def take(self, count: int) -> bytes:
        """The next few bytes of the stream."""

    def word(self) -> int:
        return int.from_bytes(self.take(8), "little")

    def pair(self) -> tuple[int, int]:
        """`word()` twice."""
        return self.word(), self.word()

    def words(self, count: int) -> NDArray[np.uint64]:
        return self.uniform(count, np.uint64)

    def uniform(self, count: int, dtype: Any) -> NDArray[Any]:
        """Uniform unsigned integers of the given type."""
        out = np.empty(count, dtype=np.dtype(dtype).newbyteorder("<"))
        self.fill(out.view(np.uint8))
        return out

    @overload
    def bernoulli(self, probability: Dyadic) -> bool: ...
    @overload
    def bernoulli(self, probability: Dyadic, size: int) -> NDArray[np.bool_]: ...
    def bernoulli(self, probability: Dyadic, size: int | None = None) -> bool | NDArray[np.bool_]:
        """True with exactly the given probability."""
        if size is None:
            return self.word() < probability.numerator
        return kernels.bernoulli(self, probability.numerator, size)

    @overload
    def integers(self, below: int) -> int: ...
    @overload
    def integers(self, below: int, size: int) -> NDArray[np.int64]: ...
    def integers(self, below: int, size: int | None = None) -> int | NDArray[np.int64]:
        """Exactly uniform on 0 .. below - 1."""
        if below < 1:
            raise NumberError(f"there is no integer from 0 up to, but not including, {below}")
        if size is not None:
            return kernels.integers(self, below, size)
        if below == 1:
            return 0
        if below <= WORD:
            limit = WORD - WORD % below
            while (word := self.word()) >= limit:
                pass
            return word % below
        count = -(-(below - 1).bit_length() // WORD_BITS)
        span = 1 << (count * WORD_BITS)
        limit = span - span % below
        while True:
            value = int.from_bytes(self.take(8 * count), "little")
            if value < limit:
                return value % below

    def integer_list(self, below: int, count: int) -> list[int]:
        """`integers(below)`, `count` times in sequence."""
        if below & (below - 1) or not 1 < below <= WORD:
            return [self.integers(below) for _ in range(count)]
        mask = below - 1
        found: list[int] = []
        for _ in range(count // 2):
            first, second = self.pair()
            found += (first & mask, second & mask)
        return [*found, self.word() & mask] if count % 2 else found

    def packed(self, probability: Dyadic, lanes: int, size: int | None = None) -> NDArray[np.uint8]:
        """Independent bits, each set with the given probability, packed eight per byte (padding is zero).

        Shape (bytes,) for one report, (size, bytes) for many.
        """
        if size is None:
            drawn = self.lanes(probability, lanes).to_bytes(-(-lanes // 8), "little")
            return np.frombuffer(drawn, dtype=np.uint8).copy()
        return kernels.packed(self, probability.numerator, lanes, size)

    def lanes(self, probability: Dyadic, count: int) -> int:
        """`packed` for one report, as an integer: lane i is bit i."""
        threshold, drawn = probability.numerator, 0
        if threshold == WORD:
            return (1 << count) - 1
        for start in range(0, count, WORD_BITS):
            undecided, true = (1 << min(WORD_BITS, count - start)) - 1, 0
            for digit in digits_of(threshold):
                word = self.word()
                if digit:
                    true |= undecided & ~word
                    undecided &= word
                else:
                    undecided &= ~word
                if not undecided:
                    break
            drawn |= true << start
        return drawn

    def flipped(self, row: bytes, probability: Dyadic, lanes: int) -> bytes:
        """A row of bits whose first `lanes` bits are each flipped with the given probability: xor with `lanes`."""
        return (int.from_bytes(row, "little") ^ self.lanes(probability, lanes)).to_bytes(len(row), "little")

    def kept_and_drawn(self, keep: Dyadic, below: int) -> tuple[bool, int]:
        """`bernoulli(keep)`, then `integers(below)`; always both."""
        if below == 1:
            return self.bernoulli(keep), 0
        first, second = self.pair()
        if second >= WORD - below:  # very rare: it may have to be drawn again
            limit = WORD - WORD % below
            while second >= limit:
                second = self.word()
        return first < keep.numerator, second % below

    @overload
    def draw(self, law: IntegerWeights) -> int: ...
    @overload
    def draw(self, law: IntegerWeights, size: int) -> NDArray[np.int64]: ...
    def draw(self, law: IntegerWeights, size: int | None = None) -> int | NDArray[np.int64]:
        """An outcome of a law of integer weights."""
        if size is None:
            return law.choose(self.word(), self.word)
        return law.choose_many(self.words(size), self.word)

    def keep_or_uniform(self, values: NDArray[Any], keep: Dyadic, below: int) -> NDArray[Any]:
        """Each value kept with probability `keep`, else replaced by a uniform one (perhaps the same)."""
        if values.size == 1:
            kept, drawn = self.bernoulli(keep), self.integers(below)
            return values.copy() if kept else np.full_like(values, drawn)
        return kernels.keep_or_uniform(self, values, keep.numerator, below)

    def subset(self, among: int, count: int) -> int:
        """A subset of `count` of the bits set in a number, all subsets equally likely."""
        return with_ranks(among, floyd(self.integers, among.bit_count(), count))

    @overload
    def bernoulli_exp(self, x: Fraction) -> bool: ...
    @overload
    def bernoulli_exp(self, x: Fraction, size: int) -> NDArray[np.bool_]: ...
    def bernoulli_exp(self, x: Fraction, size: int | None = None) -> bool | NDArray[np.bool_]:
        """True with probability exactly e^-x, for a rational x >= 0."""
        if x < 0:
            raise NumberError("e^-x is a probability for x >= 0 only")
        return kernels.bernoulli_exp(self, x) if size is None else kernels.bernoulli_exp_array(self, x, size)

    @overload
    def discrete_laplace(self, scale: Fraction) -> int: ...
    @overload
    def discrete_laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]: ...
    def discrete_laplace(self, scale: Fraction, size: int | None = None) -> int | NDArray[np.int64]:
        """An integer z with probability proportional to e^(-|z| / scale): the two-sided geometric law."""
        if scale <= 0:
            raise NumberError("the scale of a discrete Laplace law must be positive")
        return (
            kernels.discrete_laplace(self, scale) if size is None else kernels.discrete_laplace_array(self, scale, size)
        )


class Tied(Bits):
    """The bits of another source, for a report whose public coins are derived from a public number.

    Args:
        bits: The other source.
        public: The public number.
    """

    __slots__ = ("_bits", "_public")

    def __init__(self, bits: Bits, public: int) -> None:
        self._bits, self._public = bits, public

    @property
    def public(self) -> int | None:
        return self._public

    def fill(self, out: NDArray[np.uint8]) -> None:
        self._bits.fill(out)

    def take(self, count: int) -> bytes:
        return self._bits.take(count)

    # A source may have its own way to draw, like the one that explores every branch.
    def bernoulli(self, *given: Any) -> Any:
        return self._bits.bernoulli(*given)

    def integers(self, *given: Any) -> Any:
        return self._bits.integers(*given)

    def draw(self, *given: Any) -> Any:
        return self._bits.draw(*given)

    def kept_and_drawn(self, keep: Dyadic, below: int) -> tuple[bool, int]:
        return self._bits.kept_and_drawn(keep, below)


# -- every branch, with its weight ---------------------------------------------------------------------

T = TypeVar("T", bound=Hashable)


class Impossible(Exception):
    """The branch weighs less than the smallest weight that is followed."""


@dataclass(frozen=True, slots=True)
class Enumeration:
    """The exact law of a function's result, and the mass of the branches that were not followed.

    Args:
        law: Exact probability of each result.
        missing: Probability of the branches that were not followed.
        runs: Number of branches that were followed.
    """

    law: dict[Any, Fraction]
    missing: Fraction
    runs: int


_MOST_OUTCOMES = 1 << 20


class Exhaustive(Bits):
    """One branch of the exploration; created by `exhaust` and passed to the code under test.

    Args:
        path: (outcome, number of outcomes) of each choice; extended during the run.
        smallest: Branches less likely than this are not followed.
    """

    __slots__ = ("_depth", "_path", "_smallest", "down", "up")

    def __init__(self, path: list[tuple[int, int]], smallest: Fraction) -> None:
        self._path = path  # (outcome taken, number of outcomes) at each choice
        self._smallest = smallest
        self._depth = 0
        self.up, self.down = 1, 1  # the weight, not reduced: many runs are summed

    @property
    def weight(self) -> Fraction:
        return Fraction(self.up, self.down)

    def _turn(self, options: int) -> int:
        """The outcome that this run explores; the first one where the path is new."""
        if self._depth == len(self._path):
            self._path.append((0, options))
        outcome, known = self._path[self._depth]
        if options != known:
            raise NumberError("the code does not depend on its random bits alone: a replay took another turn")
        self._depth += 1
        return outcome

    def _weigh(self, share: int, total: int) -> None:
        self.up *= share
        self.down *= total
        # Impossible outcomes are never followed, whatever `smallest` is.
        if not share or (self._smallest and self.weight <= self._smallest):
            raise Impossible

    def _branch(self, weights: Sequence[int], total: int) -> int:
        """One of several outcomes, weighted by these parts of a total."""
        outcome = self._turn(len(weights))
        self._weigh(weights[outcome], total)
        return outcome

    def _uniform(self, below: int) -> int:
        if below == 1:
            return 0
        if below > _MOST_OUTCOMES:
            raise NumberError(f"a draw has {below:,} outcomes: too many to follow each of them")
        outcome = self._turn(below)
        self._weigh(1, below)
        return outcome

    def _coin(self, probability: Dyadic) -> bool:
        return self._branch((WORD - probability.numerator, probability.numerator), WORD) == 1

    def fill(self, out: NDArray[np.uint8]) -> None:
        for i in range(out.size):
            out[i] = self._uniform(256)

    def take(self, count: int) -> bytes:
        return bytes(self._uniform(256) for _ in range(count))

    def bernoulli(self, probability: Dyadic, size: int | None = None) -> Any:
        if size is None:
            return self._coin(probability)
        return np.array([self._coin(probability) for _ in range(size)], dtype=np.bool_)

    def integers(self, below: int, size: int | None = None) -> Any:
        if below < 1:
            raise NumberError(f"there is no integer from 0 up to, but not including, {below}")
        if size is None:
            return self._uniform(below)
        return np.array([self._uniform(below) for _ in range(size)], dtype=np.int64)

    def integer_list(self, below: int, count: int) -> list[int]:
        return [self._uniform(below) for _ in range(count)]

    def kept_and_drawn(self, keep: Dyadic, below: int) -> tuple[bool, int]:
        return self.bernoulli(keep), self._uniform(below)

    def lanes(self, probability: Dyadic, count: int) -> int:
        return sum(self._coin(probability) << lane for lane in range(count))

    def packed(self, probability: Dyadic, lanes: int, size: int | None = None) -> NDArray[np.uint8]:
        rows = [self.bernoulli(probability, lanes) for _ in range(1 if size is None else size)]
        packed = np.packbits(np.array(rows, dtype=np.bool_).reshape(len(rows), lanes), axis=1, bitorder="little")
        return packed[0] if size is None else packed

    def draw(self, law: IntegerWeights, size: int | None = None) -> Any:
        if size is None:
            return self._branch(law.weights, law.total)
        return np.array([self._branch(law.weights, law.total) for _ in range(size)], dtype=np.int64)

    def keep_or_uniform(self, values: NDArray[Any], keep: Dyadic, below: int) -> NDArray[Any]:
        kept = self.bernoulli(keep, values.size).reshape(values.shape)
        drawn = self.integers(below, values.size).reshape(values.shape)
        return np.where(kept, values, drawn).astype(values.dtype)


def exhaust(function: Callable[[Bits], T], smallest: Fraction = Fraction(0), most_runs: int = 1_000_000) -> Enumeration:
    """The exact law of `function(bits)`.

    Args:
        function: Called with a source of bits, once per branch.
        smallest: Branches less likely than this are not followed.
        most_runs: Maximum number of branches.

    Returns:
        The exact law, and the probability that is missing.

    Raises:
        NumberError: There are too many branches, or the function uses other randomness.

    >>> exhaust(lambda bits: bits.integers(2) + bits.integers(2)).law
    {0: Fraction(1, 4), 1: Fraction(1, 2), 2: Fraction(1, 4)}
    """
    sums: dict[T, dict[int, int]] = {}  # for each result, the sum of numerators per denominator
    missing = Fraction(0)
    path: list[tuple[int, int]] = []
    for run in range(1, most_runs + 1):
        bits = Exhaustive(path, smallest)
        try:
            result = function(bits)
        except Impossible:
            missing += bits.weight
        else:
            if bits._depth != len(path):
                raise NumberError("the code does not depend on its random bits alone: a replay ended early")
            parts = sums.setdefault(result, {})
            parts[bits.down] = parts.get(bits.down, 0) + bits.up
        while path and path[-1][0] + 1 == path[-1][1]:
            path.pop()
        if not path:
            return Enumeration({result: total_weight(parts) for result, parts in sums.items()}, missing, run)
        outcome, options = path[-1]
        path[-1] = (outcome + 1, options)
    raise NumberError(f"more than {most_runs} branches: enumerate something smaller, or set `smallest`")


def total_weight(parts: dict[int, int]) -> Fraction:
    """The sum of fractions, given the sum of numerators for each denominator."""
    return sum((Fraction(up, down) for down, up in parts.items()), Fraction(0))
