"""Local hashing with linear hash functions: a few bytes a report, and a tally of fixed size.

The device draws a random r x L bit matrix A and hashes its answer v, an L-bit number, to the r bits A v (all
arithmetic modulo 2). Two different answers collide with probability exactly 2^-r, so this is a universal family.
The hash is then kept with probability t, else replaced by r random bits.

BLH   r = 1: one bit
OLH   the r with the smallest variance, g = 2^r near e^epsilon + 1

Law        with g = 2^r: p = t + (1 - t) / g, q = 1 / g exactly; t = floor(2^64 (e - 1) / (e + g - 1)) / 2^64
Privacy    P(y | A, v) is p or (1 - t) / g, and A does not depend on v: the ratio is at most e = e^epsilon
Error      of a count, f -> 0: n (e + g - 1)^2 / ((e - 1)^2 (g - 1)), within 8 % of the best real g
Report     r fields of L + 1 bits, little-endian: row j of A in the lower L bits, bit j of the hash above them
Cost       3 bytes for d = 1024 at epsilon 1; g additions a report and one Walsh-Hadamard transform on the server
Tally      T[w], the sum over reports and u in 0 .. g - 1 of (-1)^(u . y) at w = A^T u; the number of reports that
           support v is the Walsh-Hadamard transform of T at v, divided by g
Source     Wang et al. 2017; linear hashing as in Bassily and Smith 2015 and Feldman and Talwar 2021
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.channels import RandomizedResponse
from deniable.errors import NumberError
from deniable.exact import as_epsilon
from deniable.protocols.base import Positions
from deniable.protocols.frequency.hadamard_transform import walsh_hadamard
from deniable.protocols.pure import PureProtocol
from deniable.protocols.reports import Bytes
from deniable.protocols.tally import Counts
from deniable.randomness import Bits

_MOST_ROWS = 10
_BLOCK = 1 << 15


@dataclass(frozen=True)
class LocalHashing(PureProtocol):
    """Local hashing to `hash_bits` bits; the base of BLH and OLH."""

    hash_bits: int = 0

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
    def ratio(self) -> Fraction:
        return self.response.ratio

    @property
    def _fields_bits(self) -> int:
        return self.hash_bits * (self.index_bits + 1)

    @property
    def report_bytes(self) -> int:
        return -(-self._fields_bits // 8)

    @property
    def tally_size(self) -> int:
        return 1 << self.index_bits

    def _one(self, value: int, bits: Bits) -> bytes:
        length, rows = self.index_bits, self.hash_bits
        matrix = [bits.integers(1 << length) for _ in range(rows)]
        kept, drawn = bits.bernoulli(self.response.keep), bits.integers(1 << rows)
        report = 0
        for j, row in enumerate(matrix):
            bit = (row & value).bit_count() & 1 if kept else drawn >> j & 1
            report |= (row | bit << length) << j * (length + 1)
        return report.to_bytes(self.report_bytes, "little")

    def _many(self, values: Positions, bits: Bits) -> Bytes:
        # The keystream is the matrix, and where the hash is not kept, the random bits as well: only the hash bits
        # of kept reports are overwritten.
        out = np.empty((values.size, self.report_bytes), dtype=np.uint8)
        for start in range(0, values.size, _BLOCK):
            part = out[start : start + _BLOCK]
            self._fill(part, values[start : start + _BLOCK].astype(np.uint64), bits)
        return out

    def _fill(self, out: Bytes, values: NDArray[np.uint64], bits: Bits) -> None:
        bits.fill(out.reshape(-1))
        if self._fields_bits % 8:
            out[:, -1] &= np.uint8((1 << self._fields_bits % 8) - 1)
        kept = bits.bernoulli(self.response.keep, len(out)).astype(np.uint64)
        words = _words(out)
        length, step = np.uint64(self.index_bits), self.index_bits + 1
        mask = np.uint64((1 << self.index_bits) - 1)
        for j in range(self.hash_bits):
            field = _field(words, j * step, step)
            parity = np.bitwise_count(field & mask & values) & np.uint8(1)
            # Flip the random bit where it differs from the hash and the hash is kept.
            wrong = ((field >> length) ^ parity) & kept
            _flip(words, j * step + self.index_bits, wrong)
        out[:] = words.view(np.uint8).reshape(len(out), -1)[:, : self.report_bytes]

    def _valid(self, reports: Bytes) -> NDArray[np.bool_]:
        if self._fields_bits % 8 == 0:
            return np.ones(len(reports), dtype=np.bool_)
        valid: NDArray[np.bool_] = reports[:, -1] >> np.uint8(self._fields_bits % 8) == 0
        return valid

    def _count(self, reports: Bytes) -> Counts:
        length, step = self.index_bits, self.index_bits + 1
        signed = np.zeros(1 << step, dtype=np.int64)
        for start in range(0, len(reports), _BLOCK):
            words = _words(reports[start : start + _BLOCK])
            fields = [_field(words, j * step, step).astype(np.int64) for j in range(self.hash_bits)]
            combination = np.zeros(len(words), dtype=np.int64)
            # u runs through a Gray code, so that each combination of rows is one XOR away from the last; the
            # hash bits ride along above the index and come out as the sign.
            for u in range(1, 1 << self.hash_bits):
                combination ^= fields[(u & -u).bit_length() - 1]
                signed += np.bincount(combination, minlength=1 << step)
        table = signed[: 1 << length] - signed[1 << length :]
        table[0] += len(reports)
        return table

    def _support_counts(self, counts: Counts) -> Counts:
        return walsh_hadamard(counts)[: self.domain.size] >> self.hash_bits

    def _support(self, reports: Bytes) -> NDArray[np.bool_]:
        step = self.index_bits + 1
        words = _words(reports)
        answers = np.arange(self.domain.size, dtype=np.uint64)
        supported = np.ones((len(reports), self.domain.size), dtype=np.bool_)
        for j in range(self.hash_bits):
            field = _field(words, j * step, step)[:, None]
            parity = np.bitwise_count(field & answers) & np.uint8(1)
            supported &= parity == (field >> np.uint64(self.index_bits))
        return supported


def _words(rows: Bytes) -> NDArray[np.uint64]:
    """Rows of bytes as rows of 64-bit words, padded with zeros."""
    count, width = rows.shape
    padded = np.zeros((count, -(-width // 8) * 8), dtype=np.uint8)
    padded[:, :width] = rows
    return padded.view("<u8")


def _field(words: NDArray[np.uint64], start: int, length: int) -> NDArray[np.uint64]:
    """`length` bits of each row from bit `start` on."""
    word, shift = divmod(start, 64)
    field = words[:, word] >> np.uint64(shift)
    if shift + length > 64:
        field = field | words[:, word + 1] << np.uint64(64 - shift)
    return field & np.uint64((1 << length) - 1)


def _flip(words: NDArray[np.uint64], place: int, where: NDArray[np.uint64]) -> None:
    word, shift = divmod(place, 64)
    words[:, word] ^= where << np.uint64(shift)


def best_hash_bits(epsilon: float) -> int:
    """The number of bits with the smallest variance; kept in the spec, so its rounding binds nobody."""
    odds = math.exp(epsilon)
    return min(range(1, _MOST_ROWS + 1), key=lambda r: (odds + 2**r - 1) ** 2 / (2**r - 1))


@dataclass(frozen=True)
class OLH(LocalHashing):
    """Optimized local hashing.

    >>> protocol = OLH(1024, epsilon=1)
    >>> protocol.hash_bits, protocol.report_bytes, protocol.response.keep.numerator
    (2, 3, 5543047035272007536)
    """

    name: ClassVar[str] = "OLH"


@dataclass(frozen=True)
class BLH(LocalHashing):
    """Binary local hashing: one hash bit."""

    name: ClassVar[str] = "BLH"

    def __post_init__(self) -> None:
        if self.hash_bits not in (0, 1):
            raise NumberError("binary local hashing has one hash bit: use OLH for more")
        super().__post_init__()

    @staticmethod
    def _default_bits(epsilon: float) -> int:
        return 1

    def parameters(self) -> dict[str, Any]:
        return {}
