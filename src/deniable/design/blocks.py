"""Blocks of symbols: randomized response on them, and the best way to cut a sorted list into them.

Law        symbol x belongs to block B(x); the report is B(x) with probability t + (1 - t) / j, any other block with
           (1 - t) / j each; a single block is the constant answer
Privacy    that of j-ary randomized response: t is rounded down, every ratio is 1 or the same number <= e^epsilon
Best cut   V = max over cuts 0 = c_0 < ... < c_j = k of  sum of mu(c_{i-1}, c_i) / (j + E - 1), by the iteration of
           Dinkelbach (1967): at a guess V, the path that maximizes the sum of (mu - V); its own value is the next
           guess, and no guess falls; when the value stays the same, it is the maximum
Cost       one table of k block numbers; the matrix, k x j integers, is built only when asked for. The search takes
           O(k^2) per step and about three steps; beyond 1,500 groups the table is recomputed in strips of 2 MiB
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.channels import Channel, RandomizedResponse
from deniable.channels.compose import MOST_CELLS
from deniable.channels.laws import Floats
from deniable.design.tangents import LEAST, Curve, quick_columns
from deniable.errors import ChannelError, InternalError, ShapeError, SpecError
from deniable.exact import WORD, Dyadic
from deniable.randomness import Bits, source_of
from deniable.specs import integer_text, read_integer
from deniable.trace import Step, Watch

Cuts = NDArray[np.int64]
Column = Callable[[Floats, Floats], Floats]

_STRIP = 1 << 18
_KEPT = 1500
_MOST_STEPS = 100
# Above this e^epsilon - 1 the cancellation of the quick formulas is harmless: it can only cost a tie.
_QUICK_FROM = 1e-3


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


# -- the best cut -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Partition:
    """Cut positions 0 = c_0 < ... < c_j = k, their value, and the values on the way."""

    cuts: Cuts
    value: float
    steps: tuple[float, ...]

    @property
    def blocks(self) -> int:
        return len(self.cuts) - 1


def best_partition(lower: Floats, gaps: Floats, odds: float, curve: Curve, watch: Watch | None = None) -> Partition:
    """The optimum for prefix sums of P1 and of P0 - P1 (with the leading zero), e^epsilon - 1 = `odds`."""
    groups, seen = len(lower) - 1, watch or Watch()
    if groups == 1:
        return Partition(np.array([0, 1]), 0.0, (0.0,))
    quick = quick_columns(curve.divergence.name) if curve.built_in and odds > _QUICK_FROM else None
    column = quick or curve.column
    if groups > _KEPT:
        coarse = np.unique(np.linspace(0, groups, _KEPT // 3).astype(np.int64))
        cuts = coarse[best_partition(lower[coarse], gaps[coarse], odds, curve, seen).cuts]
        strips: list[Floats] | None = None
    else:
        # Prefix sums of P0 - P1 fall as long as P0 < P1: the binary mechanism is a good start.
        middle = min(max(int(np.argmin(gaps)), 1), groups - 1)
        cuts = np.array([0, middle, groups])
        strips = list(_strips(lower, gaps, odds, column))
    steps = [partition_value(cuts, lower, gaps, odds, curve)]
    for _ in range(_MOST_STEPS):
        began = time.perf_counter()
        table = _strips(lower, gaps, odds, column) if strips is None else iter(strips)
        following = _longest_path(table, groups, steps[-1], seen, f"step {len(steps)} of the search, {groups:,} groups")
        value = partition_value(following, lower, gaps, odds, curve)
        settled = value <= steps[-1] * (1 + 4e-16)
        seen.add(_step(groups, time.perf_counter() - began, settled, max(value, steps[-1])))
        if settled:
            return Partition(cuts, steps[-1], tuple(steps))
        cuts = following
        steps.append(value)
    raise InternalError("the search for the best partition did not settle")


def _step(groups: int, seconds: float, settled: bool, value: float) -> Step:
    arcs = groups * (groups + 1) // 2
    return Step("longest path", "optimal" if settled else "better", 1, seconds, groups + 1, arcs, 2 * arcs, value)


def partition_value(cuts: Cuts, lower: Floats, gaps: Floats, odds: float, curve: Curve) -> float:
    b, gap = 1 + odds * np.diff(lower[cuts]), odds * np.diff(gaps[cuts])
    return math.fsum(curve.column(b, gap)) / (len(cuts) - 1 + odds)


def _strips(lower: Floats, gaps: Floats, odds: float, column: Column) -> Iterator[Floats]:
    """mu(l, i) in strips of consecutive i, for all l below the strip's last i; what lies beyond l = i is unused."""
    groups = len(lower) - 1
    height = max(1, min(groups, _STRIP // (groups + 1)))
    for first in range(1, groups + 1, height):
        last = min(first + height, groups + 1)
        b = np.maximum(1 + odds * (lower[first:last, None] - lower[None, : last - 1]), 1.0)
        gap = odds * (gaps[first:last, None] - gaps[None, : last - 1])
        # The unused corner has negative masses; any number will do there.
        np.maximum(gap, LEAST * b, out=gap)
        with np.errstate(all="ignore"):
            yield column(b, gap)


def _longest_path(strips: Iterator[Floats], groups: int, toll: float, watch: Watch, what: str) -> Cuts:
    best = np.zeros(groups + 1)
    back = np.zeros(groups + 1, dtype=np.int64)
    i = 1
    for strip in strips:
        for row in strip:
            through = row[:i] + best[:i]
            back[i] = place = int(through.argmax())
            best[i] = through[place] - toll
            i += 1
        # The triangle of arcs grows with the square of its height.
        watch.say(what, ((i - 1) / groups) ** 2)
    cuts = [groups]
    while cuts[-1] > 0:
        cuts.append(int(back[cuts[-1]]))
    return np.array(cuts[::-1])
