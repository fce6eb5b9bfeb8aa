"""Local hashing with linear hash functions: a few bytes per report, and a tally of fixed size.

The device draws a random r x L bit matrix A and hashes its answer v, an L-bit number, to the r bits A v (all
arithmetic modulo 2). Two different answers collide with probability exactly 2^-r, so this is a universal family.
The hash is then kept with probability t, else replaced by r random bits.

BLH   r = 1: one bit
OLH   the r with the smallest variance, g = 2^r near e^epsilon + 1

Law        with g = 2^r: p = t + (1 - t) / g, q = 1 / g exactly; t = floor(2^64 (e - 1) / (e + g - 1)) / 2^64
Privacy    P(y | A, v) is p or (1 - t) / g, and A does not depend on v: the ratio is at most e = e^epsilon
Error      of a count, f -> 0: n (e + g - 1)^2 / ((e - 1)^2 (g - 1)), within 8 % of the best real g
Report     r fields of L + 1 bits, little-endian: row j of A in the lower L bits, bit j of the hash above them
Cost       3 bytes for d = 1024 at epsilon 1; g additions per report and one Walsh-Hadamard transform on the server
Tally      T[w], the sum over reports and u in 0 .. g - 1 of (-1)^(u . y) at w = A^T u; the number of reports that
           support v is the Walsh-Hadamard transform of T at v, divided by g
Source     Wang et al. 2017; linear hashing as in Bassily and Smith 2015 and Feldman and Talwar 2021

Likelihoods of local-hashing reports without the table of reports x answers.

The answers that a report (A, y) supports are the solutions of A v = y, so for any vector x
    sum of x over them = 2^-r sum over u of (-1)^(u . y) X[A^T u],   X the Walsh-Hadamard transform of x
and the transposed sum, over the reports that support v, is the transform of a table as for the tally. Either takes
g = 2^r additions per report and one transform, instead of d additions per report.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.channels import RandomizedResponse
from deniable.domains import DomainLike, Integers
from deniable.errors import NumberError
from deniable.exact import Dyadic, Number, as_epsilon
from deniable.protocols.frequency.hadamard_response import walsh_hadamard
from deniable.protocols.frequency.histogram import NEWTON_LIMIT, PureProtocol, SupportModel, Supports, in_order
from deniable.protocols.kernel import Kernel
from deniable.protocols.law import Law
from deniable.protocols.protocol import Positions, Protocol, percent
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes, to_bytes
from deniable.protocols.tally import Counts, Halves
from deniable.protocols.worth import WORD_BYTES, Cost, Worth
from deniable.randomness import Bits
from deniable.randomness.kernels import coins_above
from deniable.words import Fact, word

_MOST_ROWS = 10
_BLOCK = 1 << 15

# Bytes behind the last report, so that a word can be read from where its last field starts.
_SLACK = 8

# No 32-bit counter can leave its range before this many additions.
_ROOM = 1 << 31
_SMALL = 13
"""Bits of an index, up to which counters stay in the cache."""
_COIN = 8
"""Random bits for a coin at least: it is tossed again where they do not decide."""


@dataclass(frozen=True)
class LocalHashing(PureProtocol):
    """Local hashing to `hash_bits` bits; the base of BLH and OLH."""

    hash_bits: int = 0

    if TYPE_CHECKING:

        def __init__(self, domain: DomainLike, epsilon: Number, hash_bits: int = 0) -> None: ...

    def __post_init__(self) -> None:
        rows = self.hash_bits or self._default_bits(float(as_epsilon(self.epsilon)))
        if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= _MOST_ROWS:
            raise NumberError(f"a hash has between 1 and {_MOST_ROWS} bits")
        object.__setattr__(self, "hash_bits", rows)
        super().__post_init__()

    @staticmethod
    def _default_bits(epsilon: float) -> int:
        return best_hash_bits(epsilon)

    def parameters(self) -> dict[str, Any]:
        return {"hash_bits": self.hash_bits}

    def _attack(self) -> float:
        """Guess any answer with the reported hash; of the 2^r hashes, those of no answer are a smaller number.

        The linear hashes do a few percent better for the respondent than random ones; the count is theirs.
        """
        g, lie = 1 << self.hash_bits, float(self.response.false)
        used = mean_image(self.domain.size, self.hash_bits)
        return (float(self.p) * used + lie * (g - used)) / self.domain.size

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        return self._told("answers")

    def _told(self, noun: str) -> Sequence[Fact]:
        groups, size = 1 << self.hash_bits, self.domain.size
        each = math.floor(max(1.0, size / groups) + 0.5)
        return [
            word(f"story.hash.{noun}", n=size, groups=str(groups), each=each),
            word("story.hash.keep", chance=percent(float(self.response.keep))),
        ]

    @property
    def index_bits(self) -> int:
        """L: how many bits number the answers."""
        return (self.domain.size - 1).bit_length()

    @cached_property
    def response(self) -> RandomizedResponse:
        return RandomizedResponse.at(1 << self.hash_bits, self.epsilon)

    @property
    def p(self) -> Fraction:
        return self.response.true

    @property
    def q(self) -> Fraction:
        return Fraction(1, 1 << self.hash_bits)

    @property
    def _everyone(self) -> Fraction:  # type: ignore[override]
        """The matrix of zeros with a hash of zeros: the only report with the hash of every answer."""
        return self.response.false / (1 << self.hash_bits * self.index_bits)

    @property
    def _third(self) -> Fraction | None:
        # The hashes of three answers are independent unless one is the sum of the others: from four answers on there
        # are three such answers.
        return self.q * (1 - self.q) if self.domain.size > 3 else None

    @property
    def _fields_bits(self) -> int:
        return self.hash_bits * (self.index_bits + 1)

    def draw(self, value: int, bits: Bits) -> bytes:
        length, keep, width = self._single
        matrix = bits.integer_list(1 << length, self.hash_bits)
        kept, drawn = bits.kept_and_drawn(keep, 1 << self.hash_bits)
        report = place = 0
        for row in matrix:
            bit = (row & value).bit_count() & 1 if kept else drawn & 1
            report |= (row | bit << length) << place
            drawn >>= 1
            place += length + 1
        return report.to_bytes(width, "little")

    @cached_property
    def _single(self) -> tuple[int, Dyadic, int]:
        """What a single report needs, looked up once."""
        return self.index_bits, self.response.keep, self.report_bytes

    def draw_many(self, values: Positions, bits: Bits) -> Bytes:
        # The keystream is the matrix, and where the hash is not kept, the random bits as well: only the hash bits
        # of kept reports are overwritten.
        width = self.report_bytes
        if width <= WORD_BYTES:
            return to_bytes(LocalHashing._many_numbers(self, values, bits), width)
        flat = np.empty(values.size * width + _SLACK, dtype=np.uint8)
        for start in range(0, values.size, _BLOCK):
            part = values[start : start + _BLOCK]
            self._fill(flat[start * width : (start + part.size) * width + _SLACK], part, bits)
        return flat[: values.size * width].reshape(-1, width)

    def _many_numbers(self, values: Positions, bits: Bits) -> NDArray[Any]:
        """The same in words that are longer than the report where that costs little: the rest of a word is the coin."""
        used = self._fields_bits
        words = np.empty(values.size, dtype=f"<u{next(size for size in (2, 4, 8) if 8 * size >= used)}")
        for start in range(0, values.size, _BLOCK):
            self._fill_words(words[start : start + _BLOCK], values[start : start + _BLOCK], bits)
        return words

    def _fill_words(self, words: NDArray[Any], values: Positions, bits: Bits) -> None:
        used, length, keep, kind = self._fields_bits, self.index_bits, self.response.keep, words.dtype.type
        bits.fill(words.view(np.uint8))
        if 8 * words.itemsize - used >= _COIN:
            kept = coins_above(bits, words, used, keep.numerator).view(np.uint8)
        else:
            kept = bits.bernoulli(keep, words.size).view(np.uint8)
        # The parity of the matrix row and the answer, with the random bit above them thrown in, is 1 where the random
        # bit is not the hash; there it is flipped if the hash is kept.
        answers = values.astype(words.dtype)
        answers |= kind(1 << length)
        for place in range(0, used, length + 1):
            wrong = _parities(words & answers)
            wrong &= kept
            words ^= wrong.astype(words.dtype) << kind(place + length)
            answers <<= kind(length + 1)
        words &= kind((1 << used) - 1)

    def _fill(self, flat: Bytes, values: Positions, bits: Bits) -> None:
        length, width = self.index_bits, self.report_bytes
        rows = flat[: flat.size - _SLACK].reshape(-1, width)
        bits.fill(rows.reshape(-1))
        if self._fields_bits % 8:
            rows[:, -1] &= np.uint8((1 << self._fields_bits % 8) - 1)
        kept = bits.bernoulli(self.response.keep, len(rows)).view(np.uint8)
        for j in range(self.hash_bits):
            field = self._field(flat, len(rows), j)
            place = j * (length + 1) + length
            # The parity of the matrix row and the answer, with the random bit above them thrown in, is 1 where the
            # random bit is not the hash; there it is flipped if the hash is kept.
            answers = values.astype(field.dtype) | field.dtype.type(1 << length)
            wrong = np.bitwise_count(field & answers) & np.uint8(1) & kept
            rows[:, place // 8] ^= wrong << np.uint8(place % 8)

    def _field(self, flat: Bytes, count: int, j: int) -> NDArray[Any]:
        """Row j of every matrix, with its hash bit above it: one unaligned load a report."""
        step = self.index_bits + 1
        kind = np.dtype("<u4" if step <= 25 else "<u8")
        start, shift = divmod(j * step, 8)
        words: NDArray[Any] = np.ndarray((count,), kind, flat, start, (self.report_bytes,))
        field: NDArray[Any] = words >> kind.type(shift) & kind.type((1 << step) - 1)
        return field

    def _valid_numbers(self, numbers: NDArray[Any]) -> NDArray[np.bool_]:
        valid: NDArray[np.bool_] = numbers <= numbers.dtype.type((1 << self._fields_bits) - 1)
        return valid

    def valid(self, reports: Bytes) -> NDArray[np.bool_]:
        if self._fields_bits % 8 == 0:
            return np.ones(len(reports), dtype=np.bool_)
        valid: NDArray[np.bool_] = reports[:, -1] >> np.uint8(self._fields_bits % 8) == 0
        return valid

    def _forgeries(self, answers: Any) -> Bytes:
        """A matrix that gives these answers one hash and as few others as possible; and that of zeros, which gives it
        to all. Up to L - r + 1 answers fit into one of rank r."""
        first, *others = {int(one): None for one in answers}
        rows = _orthogonal([one ^ first for one in others], self.index_bits, self.hash_bits)
        report = 0
        for place, row in enumerate(rows):
            report |= (row | ((row & first).bit_count() & 1) << self.index_bits) << place * (self.index_bits + 1)
        listed = np.frombuffer(report.to_bytes(self.report_bytes, "little"), dtype=np.uint8)
        return np.stack([listed, np.zeros_like(listed)])

    def count(self, reports: Bytes) -> Counts:
        return self._count_fields(self._fields(reports), len(reports))

    def _count_numbers(self, numbers: NDArray[Any]) -> Counts:
        return self._count_fields(self._fields_of_numbers(numbers), numbers.size)

    def _halves(self) -> Halves | None:
        """A field is a half."""
        if self.hash_bits > 2:
            return None
        size, kinds = 2 << self.index_bits, (1 << self.hash_bits) - 1

        def read(found: list[Counts]) -> Counts | None:
            beyond = found[1][size if self.hash_bits == 2 else 1 :]
            both = found[0][:size].copy()
            for other in found[1:kinds]:
                both += other[:size]
            return None if beyond.any() else self._signed(both, int(found[0].sum()))

        return Halves(self.index_bits + 1, read, mixed=self.hash_bits == 2)

    def _signed(self, both: Counts, n: int) -> Counts:
        """The counters, from how often n reports had each index with either sign."""
        small: Counts = both[: 1 << self.index_bits] - both[1 << self.index_bits :]
        small[0] += n
        return small

    def _fields_of_numbers(self, numbers: NDArray[Any]) -> Iterator[list[NDArray[Any]]]:
        kind, step = numbers.dtype.type, self.index_bits + 1
        for start in range(0, numbers.size, _BLOCK):
            part = numbers[start : start + _BLOCK]
            yield [part >> kind(j * step) & kind((1 << step) - 1) for j in range(self.hash_bits)]

    def _count_fields(self, blocks: Iterator[list[NDArray[Any]]], n: int) -> Counts:
        length = self.index_bits
        if length <= _SMALL:
            # One counter per index and sign, which all stay in the cache.
            both = np.zeros(2 << length, dtype=np.int64)
            for fields in blocks:
                for combination in self._combinations([field.astype(np.int64) for field in fields]):
                    both += np.bincount(combination, minlength=2 << length)
            return self._signed(both, n)
        total = np.zeros(1 << length, dtype=np.int64)
        # 32-bit counters halve the memory that random additions touch; they are emptied before they can overflow.
        table = np.zeros(1 << length, dtype=np.int32)
        room = _ROOM >> self.hash_bits
        added = 0
        for fields in blocks:
            if added + fields[0].size > room:
                total += table
                table[:] = 0
                added = 0
            added += fields[0].size
            for combination in self._combinations([field.astype(np.int64) for field in fields]):
                signs = (1 - 2 * (combination >> length)).astype(np.int32)
                np.add.at(table, combination & (1 << length) - 1, signs)
        total += table
        total[0] += n
        return total

    def _combinations(self, fields: list[NDArray[Any]]) -> Iterator[NDArray[Any]]:
        """Every combination of rows but the empty one; the hash bits ride along above the index, and are the sign."""
        combination = np.zeros_like(fields[0])
        for u in range(1, 1 << self.hash_bits):  # through a Gray code: each is one XOR away from the last
            combination ^= fields[(u & -u).bit_length() - 1]
            yield combination

    def _fields(self, reports: Bytes) -> Iterator[list[NDArray[Any]]]:
        """The fields of all reports, a block at a time."""
        scratch = np.zeros(min(len(reports), _BLOCK) * self.report_bytes + _SLACK, dtype=np.uint8)
        for start in range(0, len(reports), _BLOCK):
            part = reports[start : start + _BLOCK]
            scratch[: part.size] = part.reshape(-1)
            yield [self._field(scratch, len(part), j) for j in range(self.hash_bits)]

    def _support_counts(self, counts: Counts) -> Counts:
        found = walsh_hadamard(counts)[: self.domain.size]
        found >>= self.hash_bits
        return found

    def _support(self, reports: Bytes) -> NDArray[np.bool_]:
        supported = np.ones((len(reports), self.domain.size), dtype=np.bool_)
        start = 0
        for fields in self._fields(reports):
            part = supported[start : start + fields[0].size]
            start += len(part)
            answers = np.arange(self.domain.size, dtype=fields[0].dtype) | fields[0].dtype.type(1 << self.index_bits)
            for field in fields:
                part &= np.bitwise_count(field[:, None] & answers) & np.uint8(1) == 0
        return supported

    def _likelihoods(self, reports: Bytes) -> HashModel:
        blocks = [np.stack(fields).astype(np.int64) for fields in self._fields(reports)]
        fields = np.concatenate(blocks, axis=1) if blocks else np.empty((self.hash_bits, 0), dtype=np.int64)
        return HashModel(Supports(self, reports, None), float(self.ratio - 1), fields, self.index_bits)

    @remembered
    def kernel(self) -> Kernel:
        return (
            super()
            .kernel()
            .but(
                draw_numbers=self._many_numbers,
                count_numbers=self._count_numbers,
                valid_numbers=self._valid_numbers,
                halves=self._halves,
            )
        )

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            cost=lambda: Cost(float(WORD_BYTES * (self.hash_bits + 2)), float((1 << self.hash_bits) - 1)),
            guess=self._attack,
            forgeries=self._forgeries,
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            ratio=lambda: self.response.ratio,
            width=lambda: -(-self._fields_bits // 8),
            forms=lambda: 1 << self._fields_bits,
            counters=lambda: 1 << self.index_bits,
            likeliest=lambda: float(self.p) / 2.0 ** (self.hash_bits * self.index_bits),
        )


def _parities(words: NDArray[Any]) -> NDArray[np.uint8]:
    """Numbers that are odd where a word has an odd number of ones; the words are used up."""
    if words.itemsize == 2:  # whose ones numpy counts slowly, other than those of bytes
        words ^= words >> np.uint16(8)
        words = words.astype(np.uint8)
    odd: NDArray[np.uint8] = np.bitwise_count(words)
    return odd


def _orthogonal(vectors: list[int], length: int, most: int) -> list[int]:
    """Up to `most` independent bit vectors that have even overlap with all of the given ones.

    >>> _orthogonal([0b01, 0b11], 2, 1), _orthogonal([0b01], 2, 2), _orthogonal([], 3, 2)
    ([], [2], [1, 2])
    """
    pivots: dict[int, int] = {}  # of a reduced basis, by its lowest bit
    for vector in vectors:
        for low, other in pivots.items():
            vector ^= other if vector & low else 0
        if vector:
            low = vector & -vector
            pivots = {at: other ^ vector if other & low else other for at, other in pivots.items()} | {low: vector}
    free = [1 << place for place in range(length) if 1 << place not in pivots]
    return [one | sum(low for low, other in pivots.items() if other & one) for one in free[:most]]


def best_hash_bits(epsilon: float) -> int:
    """The number of bits with the smallest variance; kept in the spec, so its rounding binds nobody."""
    odds = math.exp(epsilon)
    return min(range(1, _MOST_ROWS + 1), key=lambda r: (odds + 2**r - 1) ** 2 / (2**r - 1))


def mean_image(size: int, rows: int) -> float:
    """The mean number of different hashes A v of v = 0 .. size - 1, for a uniform bit matrix A with `rows` rows.

    One bit of v at a time, from the lowest: `chance[m]` is the probability that the columns so far span m dimensions,
    `image[m]` the mean number of hashes of 0 .. (size mod 2^k) - 1 in that case. Where bit k of the size is set, all
    2^m values of the span are hashes, and the next column adds a shifted copy of those so far if it leaves the span.

    >>> mean_image(2, 1), mean_image(16, 2), mean_image(5, 2)
    (1.5, 3.63671875, 3.015625)
    """
    chance, image = [1.0] + [0.0] * rows, [0.0] * (rows + 1)
    for k in range(size.bit_length()):
        lit = size >> k & 1
        next_chance, next_image = [0.0] * (rows + 1), [0.0] * (rows + 1)
        for m in range(rows + 1):
            inside = 2.0 ** (m - rows)
            spanned = 2.0**m * chance[m]
            next_chance[m] += inside * chance[m]
            next_image[m] += inside * (spanned if lit else image[m])
            if m < rows:
                next_chance[m + 1] += (1 - inside) * chance[m]
                next_image[m + 1] += (1 - inside) * (spanned * lit + image[m])
        chance, image = next_chance, next_image
    return math.fsum(image)


class OLH(LocalHashing):
    """Optimized local hashing.

    Args:
        domain: The possible answers: a list of categories, their number, or a listed domain.
        epsilon: Largest epsilon of a report.
        hash_bits: Number of bits of the hash; the best number if 0.

    Raises:
        NumberError: The number of bits is out of range.

    >>> protocol = OLH(1024, epsilon=1)
    >>> protocol.hash_bits, protocol.report_bytes, protocol.response.keep.numerator
    (2, 3, 5543047035272007536)
    """

    name: ClassVar[str] = "OLH"

    def _in_order(self, n: int, read: str | None, population: bool) -> dict[str, Any]:
        """Shares of numbers also add up to those of ranges: the flat oracle."""
        if not isinstance(self.domain, Integers):
            return {}
        return in_order(self, n, read, self.domain.size - 1, population=population) or {}

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        return super().worth(n, read, population).but(**self._in_order(n, read, population))

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(3, 1, hash_bits=1)
        yield cls(4, 1, hash_bits=2)


class BLH(LocalHashing):
    """Binary local hashing: one hash bit.

    Args:
        domain: The possible answers: a list of categories, their number, or a listed domain.
        epsilon: Largest epsilon of a report.
        hash_bits: 1, or 0 for the same.

    Raises:
        NumberError: There is more than one hash bit.
    """

    name: ClassVar[str] = "BLH"

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(5, 1)

    def __post_init__(self) -> None:
        if self.hash_bits not in (0, 1):
            raise NumberError("binary local hashing has one hash bit: use OLH for more")
        super().__post_init__()

    @staticmethod
    def _default_bits(epsilon: float) -> int:
        return 1

    def parameters(self) -> dict[str, Any]:
        return {}


# -- likelihoods of reports, without the table of reports x answers -----------------------------------


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HashModel(SupportModel):
    """Row j of `fields` holds, for each report, row j of A with bit j of y above it."""

    fields: NDArray[np.int64]
    index_bits: int

    @property
    def newton(self) -> bool:
        # An update costs g here, not d, so a Newton step is dear: it pays for few answers only.
        return self.supports.protocol.domain.size <= NEWTON_LIMIT // 8

    def _combinations(self, part: slice) -> Iterator[NDArray[np.int64]]:
        """A^T u with u . y above it, for u != 0 in the order of a Gray code."""
        fields = self.fields[:, part]
        combination = np.zeros_like(fields[0])
        for u in range(1, 1 << len(fields)):
            combination ^= fields[(u & -u).bit_length() - 1]
            yield combination

    def _parts(self) -> Iterator[slice]:
        return (slice(start, start + _BLOCK) for start in range(0, self.fields.shape[1], _BLOCK))

    def _table(self, point: Floats) -> Floats:
        """The transform of x, and below it its negative: the bit above the index is the sign."""
        padded = np.zeros(1 << self.index_bits)
        padded[: point.size] = point
        transform = _transform(padded)
        return np.concatenate([transform, -transform]) / (1 << len(self.fields))

    def _held(self, table: Floats, part: slice) -> Floats:
        held = np.full(self.fields[0, part].shape, table[0])
        for combination in self._combinations(part):
            held += table[combination]
        return held

    def mix(self, point: Floats) -> Floats:
        table = self._table(point)
        held = np.concatenate([self._held(table, part) for part in self._parts()])
        mixture: Floats = point.sum() + self.contrast * held
        return mixture

    def update(self, point: Floats, share: Floats) -> tuple[Floats, Floats]:
        size = 1 << self.index_bits
        table, total = self._table(point), point.sum()
        mixture = np.empty(self.fields.shape[1])
        signed = np.zeros(2 * size)
        for part in self._parts():
            mixture[part] = total + self.contrast * self._held(table, part)
            weights = share[part] / mixture[part]
            signed[0] += weights.sum()
            for combination in self._combinations(part):
                signed += np.bincount(combination, weights, 2 * size)
        backed = _transform(signed[:size] - signed[size:])[: point.size] / (1 << len(self.fields))
        return mixture, (share / mixture).sum() + self.contrast * backed


def _transform(vector: Floats) -> Floats:
    """The Walsh-Hadamard transform in floats."""
    data, half = vector.copy(), 1
    while half < data.size:
        pairs = data.reshape(-1, 2, half)
        data = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        half *= 2
    return data
