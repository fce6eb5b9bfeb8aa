"""Randomized response on blocks of symbols: the compact form of an extremal mechanism.

Law        symbol x belongs to block B(x); the report is B(x) with probability t + (1 - t) / j, any other block with
           (1 - t) / j each; a single block is the constant answer
Privacy    that of j-ary randomized response: t is rounded down, every ratio is 1 or the same number <= e^epsilon
Cost       one table of k block numbers; the matrix, k x j integers, is built only when asked for
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.channels import Channel, RandomizedResponse
from deniable.channels.compose import MOST_CELLS
from deniable.errors import ChannelError, ShapeError, SpecError
from deniable.exact import WORD, Dyadic
from deniable.randomness import Bits, source_of
from deniable.specs import integer_text, read_integer


@dataclass(frozen=True)
class BlockResponse:
    """Which block each symbol belongs to, and the randomized response over the blocks.

    >>> law = BlockResponse.at([0, 0, 1], epsilon=1)
    >>> law.channel().rows.round(4).tolist()
    [[0.7311, 0.2689], [0.7311, 0.2689], [0.2689, 0.7311]]
    """

    block: tuple[int, ...]
    outputs: int
    keep: Dyadic

    def __post_init__(self) -> None:
        if not self.block or sorted(set(self.block)) != list(range(self.outputs)):
            raise ShapeError("blocks are numbered from 0 and none is empty")

    @classmethod
    def at(cls, block: Iterable[int], epsilon: Any) -> BlockResponse:
        places = tuple(int(b) for b in block)
        count = max(places, default=-1) + 1
        keep = RandomizedResponse.at(count, epsilon).keep if count > 1 else Dyadic(0)
        return cls(places, count, keep)

    @property
    def true(self) -> Fraction:
        """Probability that the own block is reported."""
        return self.keep.value + self.false

    @property
    def false(self) -> Fraction:
        """Probability of each other block."""
        return (1 - self.keep.value) / self.outputs

    @property
    def ratio(self) -> Fraction | float:
        """The largest column ratio, exactly."""
        if self.outputs == 1:
            return Fraction(1)
        return self.true / self.false if self.false else float("inf")

    @property
    def epsilon(self) -> float:
        ratio = self.ratio
        return float("inf") if isinstance(ratio, float) else exact.log(ratio)

    def satisfies(self, epsilon: Any) -> bool:
        """Whether no ratio exceeds e^epsilon: decided with integers."""
        ratio = self.ratio
        return not isinstance(ratio, float) and exact.exp_at_least(exact.as_epsilon(epsilon), ratio)

    def push(self, weights: Iterable[int]) -> list[Fraction]:
        """The exact law of reports when symbols have these integer weights."""
        sums = [0] * self.outputs
        for place, weight in zip(self.block, weights, strict=True):
            sums[place] += weight
        total = sum(sums)
        return [self.keep.value * Fraction(own, total) + self.false for own in sums]

    def sample_indices(self, symbols: Any, bits: Bits | None = None) -> NDArray[np.int64]:
        """Randomize symbols given as positions."""
        blocks = np.array(self.block, dtype=np.int64)[np.asarray(symbols, dtype=np.int64)]
        return blocks if self.outputs == 1 else source_of(bits).keep_or_uniform(blocks, self.keep, self.outputs)

    def channel(self, inputs: Iterable[Any] | None = None) -> Channel:
        """The exact matrix."""
        if len(self.block) * self.outputs > MOST_CELLS:
            raise ChannelError(
                f"the matrix would have {len(self.block) * self.outputs} cells: use the blocks, which say the same"
            )
        lie = WORD - self.keep.numerator
        rows = np.full((self.outputs, self.outputs), lie, dtype=object)
        rows[np.diag_indices(self.outputs)] = self.keep.numerator * self.outputs + lie
        return Channel.from_integers(rows[list(self.block)], WORD * self.outputs, inputs)

    def spec(self) -> dict[str, Any]:
        return {
            "kind": "blocks",
            "block": list(self.block),
            "outputs": self.outputs,
            "keep": integer_text(self.keep.numerator),
        }

    @classmethod
    def load(cls, spec: Any) -> BlockResponse:
        try:
            block, outputs = [int(b) for b in spec["block"]], int(spec["outputs"])
            return cls(tuple(block), outputs, Dyadic(read_integer(spec["keep"])))
        except (KeyError, TypeError):
            raise SpecError("a block response needs block, outputs and keep") from None
