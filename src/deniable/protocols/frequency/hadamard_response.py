"""Hadamard response: report one column in which the answer's row of a Hadamard matrix is positive.

Answers are dealt into B blocks; block a has the b outputs (a, j), and answer i of a block (numbered from 1) is
supported by those with (-1)^popcount(i & j) = 1, half of its block.

Law        with probability t uniform over the b / 2 outputs that support the answer, else uniform over all B b;
           t = floor(2^64 (e - 1) / (e + 2 B - 1)) / 2^64, e = e^epsilon
Privacy    1 + 2 B t / (1 - t) <= e
Estimate   counts(v) = (supporting outputs - other outputs of v's block) / t: exactly unbiased
Error      of a count: n_own s + n_other (1 - t) / B - n_v t^2, over t^2, with s = t + (1 - t) / B and n_own, n_other
           the people inside and outside v's block; about twice the best possible
Report     the output's number a b + j, little-endian
Cost       two random words on the device; one addition a report, one Walsh-Hadamard transform on the server
Source     Acharya, Sun and Zhang 2019; Chen, Kairouz and Ozgur 2020
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.channels import RandomizedResponse
from deniable.domains import DomainLike
from deniable.errors import NumberError
from deniable.exact import Number, as_epsilon
from deniable.protocols.blanket import Blanket, supporting
from deniable.protocols.frequency.histogram import FrequencyProtocol
from deniable.protocols.kernel import Kernel
from deniable.protocols.law import Law
from deniable.protocols.protocol import Positions, Protocol, percent
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes, from_bytes, to_bytes, width_of
from deniable.protocols.tally import Counts, Tally, even_columns, kept_or_uniform, spread_evenly
from deniable.protocols.worth import WORD_BYTES, Cost, Worth
from deniable.randomness import Bits
from deniable.results import Estimate, Weights
from deniable.results.bounds import Numbers
from deniable.results.significance import too_few, too_many
from deniable.words import Fact, word


@dataclass(frozen=True)
class HadamardResponse(FrequencyProtocol):
    """Hadamard response; without a number of blocks, the one with the smallest error.

    Args:
        domain: The possible answers: a list of categories, their number, or a listed domain.
        epsilon: Largest epsilon of a report.
        blocks: Number of blocks, a power of two; the best number if 0.

    >>> protocol = HadamardResponse(1000, epsilon=3)
    >>> protocol.blocks, protocol.block_size, protocol.report_bytes
    (8, 128, 2)
    """

    name: ClassVar[str] = "HadamardResponse"

    blocks: int = 0

    if TYPE_CHECKING:

        def __init__(self, domain: DomainLike, epsilon: Number, blocks: int = 0) -> None: ...

    def __post_init__(self) -> None:
        self._settle()
        size = self.domain.size
        blocks = self.blocks or best_blocks(size, float(as_epsilon(self.epsilon)))
        whole = isinstance(blocks, int) and not isinstance(blocks, bool)
        if not whole or not 1 <= blocks <= size or blocks & (blocks - 1):
            raise NumberError(f"the number of blocks is a power of two up to {size}")
        object.__setattr__(self, "blocks", blocks)
        super().__post_init__()

    def parameters(self) -> dict[str, Any]:
        return {"blocks": self.blocks}

    @property
    def block_size(self) -> int:
        # Row 0 of the matrix is all ones and supports everything, so it names no answer.
        return 1 << (-(-self.domain.size // self.blocks)).bit_length()

    @cached_property
    def response(self) -> RandomizedResponse:
        """The choice between "my half block" and "any of the 2 B half blocks"."""
        return RandomizedResponse.at(2 * self.blocks, self.epsilon)

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        return [
            word("story.output", n=self.domain.size, outputs=self.tally_size),
            word("story.output.move", chance=percent(float(self.response.keep))),
        ]

    def _blankets(self) -> tuple[Blanket, ...]:
        # Two answers of one block have a quarter of its outputs in common, and column 0 supports them all; answers of
        # different blocks have none.
        rest = 1 - self.response.keep.value
        common = (rest / 4, rest / self.block_size) if self.blocks == 1 else ()
        return (supporting(rest, self.ratio, *common),)

    def _attack(self) -> float:
        """Guess any answer that the output supports; in a block of one or two answers some columns support none."""
        blocks, width, keep = self.blocks, self.block_size, float(self.response.keep)
        lie = (1 - keep) / (blocks * width)
        full, longer = divmod(self.domain.size, blocks)
        # With one answer (row 1) half of the columns are odd, with two (rows 1 and 2) a quarter is odd for both, and
        # with three no column is odd for all, because row 3 is the sum of the other two.
        empty = {1: width / 2, 2: width / 4}
        without = longer * empty.get(full + 1, 0.0) + (blocks - longer) * empty.get(full, 0.0)
        return ((blocks * width - without) * (2 * keep / width + lie) + without * lie) / self.domain.size

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(3, 1, blocks=1)
        yield cls(5, 1, blocks=2)

    def draw(self, value: int, bits: Bits) -> bytes:
        kept, output = bits.kept_and_drawn(self.response.keep, self.tally_size)
        if kept:
            block, row = value % self.blocks, value // self.blocks + 1
            column = output % self.block_size
            if (row & column).bit_count() & 1:
                column ^= row & -row  # flips the sign, and pairs each wrong column with a right one
            output = block * self.block_size + column
        return output.to_bytes(self.report_bytes, "little")

    def draw_many(self, values: Positions, bits: Bits) -> Bytes:
        kept = bits.bernoulli(self.response.keep, values.size)
        outputs = bits.integers(self.tally_size, values.size)
        rows = values // self.blocks + 1
        columns = outputs & (self.block_size - 1)
        wrong = np.bitwise_count(rows & columns) & 1
        columns ^= (rows & -rows) * wrong
        outputs = np.where(kept, (values % self.blocks) * self.block_size + columns, outputs)
        return to_bytes(outputs, self.report_bytes)

    def valid(self, reports: Bytes) -> NDArray[np.bool_]:
        return from_bytes(reports) < self.tally_size

    def count(self, reports: Bytes) -> Counts:
        return np.bincount(from_bytes(reports), minlength=self.tally_size)

    def _support(self, reports: Bytes) -> NDArray[np.bool_]:
        outputs = from_bytes(reports).astype(np.int64)[:, None]
        answers = np.arange(self.domain.size)
        rows = answers // self.blocks + 1
        even = np.bitwise_count(rows & outputs & (self.block_size - 1)) & 1 == 0
        same = outputs // self.block_size == answers % self.blocks
        supported: NDArray[np.bool_] = same & even
        return supported

    def _distinct_reports(self, tally: Tally) -> Bytes:
        return to_bytes(np.arange(self.tally_size), self.report_bytes)

    def _simulate(self, truth: Counts, runs: int, random: np.random.Generator) -> Counts:
        kept, rest = kept_or_uniform(truth, float(self.response.keep), runs, random)
        answers = np.arange(self.domain.size)
        people = np.zeros((runs, self.blocks, self.block_size), dtype=np.int64)
        people[:, answers % self.blocks, answers // self.blocks + 1] = kept
        return even_columns(people, random).reshape(runs, -1) + spread_evenly(rest, self.tally_size, random)

    def infer(self, tally: Tally) -> Estimate:
        if not tally.n:
            return self._nothing()
        keep = float(self.response.keep)
        table = walsh_hadamard(tally.counts.reshape(self.blocks, self.block_size).T)
        # Row i, column a: supporting minus other outputs for answer i of block a; row 0 counts the block.
        answers = np.arange(self.domain.size)
        counts = table[answers // self.blocks + 1, answers % self.blocks] / keep
        elsewhere = (1 - keep) / self.blocks
        people = np.clip((table[0] - tally.n * elsewhere) / keep, 0, tally.n)[answers % self.blocks]
        own = np.clip(counts, 0, people)
        spread = people * (keep + elsewhere) + (tally.n - people) * elsewhere - own * keep**2
        found = Estimate(
            self.domain.labels,
            tally.n,
            counts,
            spread / keep**2,
            self.name,
            law=self._noise_covariance,
            weights=Weights(-self.worth().leverage, self.worth().leverage),
        )
        block, difference = table[0, answers % self.blocks], table[answers // self.blocks + 1, answers % self.blocks]
        said = np.stack([(block - difference) / 2, tally.n - block, (block + difference) / 2], axis=1)
        numbers = Numbers(np.array([-1.0, 0.0, 1.0]) * self.worth().leverage, said, found.errors())
        return replace(found, bounds=numbers)

    def _noise_covariance(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        # The signs of two answers of a block multiply to that of a third one, which comes oftener if people hold it.
        keep, answers = float(self.response.keep), np.arange(self.domain.size)
        block, row = answers % self.blocks, answers // self.blocks + 1
        signs = np.zeros((self.blocks, self.block_size))
        signs[block, row] = keep * shares
        signs[:, 0] = keep * np.bincount(block, shares, self.blocks) + (1 - keep) / self.blocks
        together = np.where(block == block[:, None], signs[block, row ^ row[:, None]], 0.0)
        found: NDArray[np.float64] = together / keep**2 - np.diag(shares)
        return found

    def _misfits(self, tally: Tally, worth: float) -> list[float]:
        # Half a block comes with at least `least` and, where everybody holds its answer, with `keep` more. People with
        # other answers of the block put half of theirs into the half that does not support this one.
        keep, n, size = float(self.response.keep), tally.n * worth, self.domain.size
        table = walsh_hadamard(tally.counts.reshape(self.blocks, self.block_size).T)
        answers = np.arange(size)
        block = table[0, answers % self.blocks]
        difference = table[answers // self.blocks + 1, answers % self.blocks]
        even, odd = (block + difference) / 2 * worth, (block - difference) / 2 * worth
        least = (1 - keep) / (2 * self.blocks)
        near = keep / 2 if size > self.blocks else 0.0
        return [
            too_few(float(even.min()), n, least, size),
            too_few(float(odd.min()), n, least, size),
            too_many(float(even.max()), n, least + keep, size),
            too_many(float(odd.max()), n, least + near, size),
        ]

    def variance(self, n: int, frequency: ArrayLike = 0.0, population: bool = True) -> Any:
        """The variance of an estimated count if all others are spread evenly over the other answers; largest block."""
        f = np.asarray(frequency, dtype=np.float64)
        keep = float(self.response.keep)
        elsewhere = (1 - keep) / self.blocks
        near, others = -(-self.domain.size // self.blocks) - 1, self.domain.size - 1
        inside = f + (1 - f) * (near / others if others else 0.0)
        spread = n * (inside * (keep + elsewhere) + (1 - inside) * elsewhere - f * keep**2) / keep**2
        if population:
            spread = spread + n * f * (1 - f)
        return float(spread) if spread.ndim == 0 else spread

    def _figure_variances(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        """Answers v, v + B, ... are in one block, and its people weigh more than the others."""
        shares, keep = self.worth().truth(answers, people), float(self.response.keep)
        block = np.arange(shares.size) % self.blocks
        inside = np.bincount(block, shares)[block]
        n = len(answers) if people is None else int(np.sum(people))
        spread: NDArray[np.float64] = (inside * keep + (1 - keep) / self.blocks - shares * keep**2) / keep**2 / n
        return spread

    def _worst_variance(self, n: int, frequency: float = 0.0, population: bool = True) -> float:
        """When everybody's answer is in the same block, if a block has more than one answer."""
        keep = float(self.response.keep)
        inside = 1.0 if self.domain.size > self.blocks else frequency
        drawn = frequency * (1 - frequency) if population else 0.0
        return n * ((inside * keep + (1 - keep) / self.blocks) / keep**2 - frequency + drawn)

    @remembered
    def kernel(self) -> Kernel:
        return super().kernel().but(simulate=self._simulate)

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            cost=Cost(2 * WORD_BYTES, 1),
            leverage=lambda: 1 / float(self.response.keep),
            # An output is counted for an answer or against it.
            moved=lambda: 2 * self.worth().leverage,
            guess=self._attack,
            variances=self._figure_variances,
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            ratio=lambda: self.response.ratio,
            blankets=self._blankets,
            width=lambda: width_of(self.tally_size),
            forms=lambda: self.tally_size,
            counters=lambda: self.blocks * self.block_size,
            checks=self._misfits,
        )


def best_blocks(size: int, epsilon: float) -> int:
    """The power of two with the smallest average error; kept in the spec, so its rounding binds nobody."""
    odds = math.exp(epsilon)
    choices = [1 << k for k in range(size.bit_length()) if 1 << k <= size]
    return min(choices, key=lambda blocks: (odds + 2 * blocks - 1) ** 2 / blocks)


# -- the Walsh-Hadamard transform ---------------------------------------------------------------------


_FACTOR, _PIECE = 4, 1 << 10
_EXACT = float(1 << 52)
"""Below this, sums of floats that are whole numbers are exact, and a sum that is not is near."""


def walsh_hadamard(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """The transform along the first axis, whose length is a power of two.

    >>> walsh_hadamard(np.array([1, 0, 0, 2])).tolist()
    [3, -1, -1, 3]
    """
    size = len(table)
    if size & (size - 1) or size == 0:
        raise ValueError("a Walsh-Hadamard transform needs a length that is a power of two")
    # Nothing in the transform exceeds the sum of the magnitudes, so half the memory often does, and floats are exact.
    floats = table.astype(np.float64)
    other = np.abs(floats)
    most = float(other.sum())
    if table.ndim > 1 or most >= _EXACT:
        data: NDArray[Any] = np.array(table, dtype=np.int32 if most < 1 << 30 else np.int64, order="C")
        _butterflies(data.reshape(size, -1))
        return data.astype(np.int64)
    return _by_products(floats, other)


def _by_products(data: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.int64]:
    """The transform of whole numbers, a few bits of the index at a time: the first ones become the last.

    Each time a product of matrices, in pieces so small that no library takes several threads for them. Both arrays are
    used up: of large ones, new memory costs more time than what is done with it.
    """
    left = data.size.bit_length() - 1
    while left:
        bits = min(_FACTOR, left)
        index = np.arange(1 << bits)
        signs = 1.0 - 2.0 * (np.bitwise_count(index[:, None] & index) & 1)
        given, found = data.reshape(1 << bits, -1), other.reshape(-1, 1 << bits)
        for start in range(0, given.shape[1], _PIECE):
            np.matmul(given[:, start : start + _PIECE].T, signs, out=found[start : start + _PIECE])
        data, other, left = other, data, left - bits
    whole: NDArray[np.int64] = other.view(np.int64)
    np.copyto(whole, data, casting="unsafe")
    return whole


def _butterflies(block: NDArray[Any]) -> None:
    """The transform along the first axis, in place."""
    size = block.shape[0]
    half = 1
    while half < size:
        pairs = block.reshape(size // (2 * half), 2, half, -1)
        top, bottom = pairs[:, 0], pairs[:, 1]
        difference = top - bottom
        top += bottom
        bottom[:] = difference
        half *= 2
