"""Places on a grid of cells: the planar Laplace mechanism, in whole numbers. Near places are hard to tell apart.

Law        a place moves by k = (north, east) cells with a weight of V(k) = max(W(k), c), and lies then on a plane that
           reaches R cells beyond the grid on all sides; whatever left the grid is moved to its edge.
             W(k) = floor(2^64 e^(-epsilon q / (2^16 + 2))),  q = ceil(2^16 |k|),  c = the same with q = 2^16 R
           |k| is the Euclidean length. Drawn as: an offset of length below R with the weight W(k) - c, else any cell
           of the plane, each with the weight c; so all weights have one sum wherever the place is
Privacy    d-privacy: between two cells whose centres are d cell sides apart, no report is more than e^(epsilon d) times
           as likely under one as under the other. epsilon is that of one cell side. For any k and s, the length of
           k + s is at most |k| + |s|, so q grows by at most 2^16 |s| + 1, and the exponent by epsilon |s| less at least
           epsilon / (2^16 + 2); rounding W down takes away a part of 2^-64 e^(24) = 2^-29 at most, which is less (for
           epsilon R <= 24). max(W, c) keeps that, and so does everything that is done to a report afterwards. Between
           any two cells at all epsilon R holds as well
Error      of a move: `radius(level)`. For the share of a rectangle: half its interval divided by z, for rectangles with
           uniform ends, if all cells are equally common
Report     the number of the cell, north first, ceil(log2(rows columns) / 8) bytes
Cost       two random words per report; one counter per cell
Source     Andres et al. 2013 (geo-indistinguishability); Chatzikokolakis et al. 2013 (d-privacy)

Reach      R is the smallest value for which at most 1 report in 1,000 is any cell of the plane, at most 64 cells
Read-out   shares of cells by maximum likelihood (EM), never negative. Intervals come from unbiased figures: the share
           of a rectangle lies between the means of two functions. One is 1 inside and falls to 0 over some cells beyond
           the rectangle's edge, the other does so within. Sharp edges add noise, wide edges widen the bracket: the
           width with the shorter expected interval is used, for each end separately
Sectors    the channel commutes with both reflections of the grid, so it splits into four blocks, for the functions that
           are even or odd in each direction: a quarter of the size, and inverted in a sixteenth of the time
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.domains import Domain, Grid
from deniable.domains.records import RecordColumns
from deniable.errors import ChannelError, NumberError
from deniable.protocols.law import Guarantee, Law, Mixture
from deniable.protocols.numeric.density import Unbiased, most_likely
from deniable.protocols.protocol import Protocol, percent
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes, from_bytes, to_bytes, width_of
from deniable.protocols.tally import Counts, Tally
from deniable.protocols.traits import Traits
from deniable.protocols.worth import WORD_BYTES, Cost, Worth
from deniable.randomness import Bits
from deniable.randomness.kernels import BLOCK, IntegerWeights, RowTables, rare, row_tables
from deniable.results import Floats, quantile
from deniable.results.distribution import Readings
from deniable.results.ranges import RectangleShares, Side
from deniable.results.significance import too_few, too_many
from deniable.words import Fact, word

PLACES = "places"
EM = "maximum likelihood (EM), not negative"
MOST_REACH = 64
MOST_EXPONENT = 24
"""The largest value of epsilon times the reach."""

_STEPS = 1 << 16
"""Parts of a cell side, to which lengths are rounded up."""
_SLACK = 2
_SELDOM = Fraction(1, 1000)
_BLOCKS = (1024, 512, 256, 128, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1)
"""Sides of the blocks of cells in a table."""
_MOST_SHOWN = 8
_SAMPLE = 48
_FORGED_AMONG = 100_000


class Weights(NamedTuple):
    """The integers of the law."""

    offsets: NDArray[np.int64]
    """The moves of length below R, north and east, in the order of their rows."""
    above: tuple[int, ...]
    """W - c of each."""
    floor: int
    """c."""


@dataclass(frozen=True)
class PlanarLaplace(Protocol):
    """Where people are, on a grid; near places are hard to tell apart, far ones are not.

    Args:
        domain: The grid of cells.
        epsilon: Epsilon of one cell side; the guarantee grows with the distance.
        reach: Distance in cells up to which near cells are likelier; if 0, the smallest one at which at most 1 report
            in 1,000 is any cell.

    Raises:
        ChannelError: Epsilon is too large for the grid's cells.
        NumberError: The reach is out of range.

    >>> town = PlanarLaplace(Grid(16, 12, cell="500 m"), epsilon=1)
    >>> town.reach, round(town.radius(0.95), 2)
    (13, 5.0)
    >>> people = [{"north": 3, "east": 4}, {"north": 9, "east": 14}] * 10_000
    >>> found = town.estimate(town.tally(town.privatize(people)))
    >>> low, high = found.rectangle((1, 6), (1, 8)).interval(0.999999)
    >>> low < 0.5 < high
    True
    """

    name: ClassVar[str] = "PlanarLaplace"
    traits: ClassVar[Traits] = Traits(
        takes=(Grid,),
        advice='it needs a grid of places, dn.Grid(columns, rows, cell="500 m")',
        reads=(PLACES,),
        slow=True,
        waived={
            "tight": "lengths are rounded up, which takes 2^-15 of epsilon, and at the edges several reports are one",
            "unbiased": "maximum likelihood is not linear; that its unbiased figures are is tested by itself",
        },
        says=lambda protocol, report: protocol._says(report),
    )

    domain: Grid
    reach: int = 0

    if TYPE_CHECKING:

        def __init__(self, domain: Domain, epsilon: exact.Number, reach: int | None = None) -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        most = math.floor(MOST_EXPONENT / self.epsilon)
        if most < 1:
            raise ChannelError(
                f"epsilon is that of one cell side, and at most {MOST_EXPONENT}: with {exact.shown(self.epsilon)} a "
                "report would be the place itself"
            )
        reach = usual_reach(self.domain.shape, self.epsilon) if not self.reach else self.reach
        if isinstance(reach, bool) or not isinstance(reach, int) or not 1 <= reach <= min(most, MOST_REACH):
            raise NumberError(f"the reach is a whole number of cells, here 1 to {min(most, MOST_REACH)}, not {reach!r}")
        object.__setattr__(self, "reach", reach)

    def parameters(self) -> dict[str, Any]:
        return {"reach": self.reach}

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(Grid(3, 2), 1, reach=1)
        yield cls(Grid(2, 4, cell="1/2 km"), "1/2", reach=2)

    # -- the law -----------------------------------------------------------------------------------

    @cached_property
    def weights(self) -> Weights:
        return planar_weights(self.epsilon, self.reach)

    @property
    def plane(self) -> tuple[int, int]:
        """Rows and columns of the plane that places move on."""
        rows, columns = self.domain.shape
        return rows + 2 * self.reach, columns + 2 * self.reach

    @cached_property
    def _law(self) -> IntegerWeights:
        """One outcome per offset, then "anywhere"."""
        return IntegerWeights([*self.weights.above, self.weights.floor * math.prod(self.plane)])

    def _guarantee(self) -> Guarantee:
        over = f"two places {self.domain.side} apart, and so much more for places that are further apart"
        return Guarantee("metric", self.epsilon, over=over)

    def _distance(self, one: Any, other: Any) -> Fraction:
        """The Euclidean distance between the centres of two cells, (north, east), in cell sides, rounded down."""
        square = sum((a - b) ** 2 for a, b in zip(one, other, strict=True))
        return Fraction(math.isqrt(square << 64), 1 << 32)

    def _related(self) -> Iterator[tuple[Mixture, Mixture]]:
        """Cells side by side; what is further apart is promised in proportion, and checked by `distance`."""
        rows, columns = self.domain.shape
        for row, column in product(range(rows), range(columns)):
            here = row * columns + column
            for there in [here + columns] * (row + 1 < rows) + [here + 1] * (column + 1 < columns):
                yield {here: Fraction(1)}, {there: Fraction(1)}
                yield {there: Fraction(1)}, {here: Fraction(1)}

    @cached_property
    def _ratio(self) -> Fraction:
        lumps = _lumps(self.domain.shape, self.reach, self.weights, exactly=True)
        largest = Fraction(1)
        for table, states, across in (
            (lumps.table, lumps.states[0], lumps.states[1]),
            (lumps.table.T, lumps.states[1], lumps.states[0]),
        ):
            pairs = {(int(a), int(b)) for a, b in zip(states[:-1].flat, states[1:].flat, strict=True)}
            seen = np.unique(across)
            for a, b in pairs:
                for one, other in zip(table[a, seen], table[b, seen], strict=True):
                    high, low = max(one, other), min(one, other)
                    if high * largest.denominator > largest.numerator * low:
                        largest = Fraction(high, low)
        return largest

    def radius(self, level: float = 0.95) -> float:
        """How far a report lies from the place at most, with this probability, in cell sides, on an endless plane.

        Infinite where reports may be anywhere with a larger probability than is left.
        """
        if not 0 < level < 1:
            raise NumberError(f"a confidence level lies between 0 and 1, not {level!r}")
        lengths = np.hypot(*self.weights.offsets.T)
        shares = (np.array(self.weights.above, dtype=float) + float(self.weights.floor)) / float(self._law.total)
        order = np.argsort(lengths, kind="stable")
        upto = np.cumsum(shares[order])
        found = int(np.searchsorted(upto, level))
        return float(lengths[order[found]]) if found < upto.size else math.inf

    @property
    def anywhere(self) -> Fraction:
        """How likely a report is any cell of the plane."""
        return Fraction(self._law.weights[-1], self._law.total)

    def draw(self, value: Any, bits: Bits) -> bytes:
        drawn, far = bits.draw(self._law), bits.integers(math.prod(self.plane))
        rows, columns = self.domain.shape
        if drawn < len(self.weights.above):
            north, east = (int(a) + int(b) for a, b in zip(value, self.weights.offsets[drawn], strict=True))
        else:
            north, east = (one - self.reach for one in divmod(far, self.plane[1]))
        cell = min(max(north, 0), rows - 1) * columns + min(max(east, 0), columns - 1)
        return cell.to_bytes(self.report_bytes, "little")

    def draw_many(self, values: RecordColumns, bits: Bits) -> Bytes:
        rows, columns = self.domain.shape
        near, plane = len(self.weights.above), math.prod(self.plane)
        moves = np.vstack([self.weights.offsets, np.zeros((1, 2), dtype=np.int64)]).T.astype(np.int16)
        cells = np.empty(len(values), dtype=np.int16)
        for start in range(0, len(values), BLOCK):
            here = slice(start, start + BLOCK)
            north, east = (np.asarray(column[here]).astype(np.int16) for column in values.columns)
            drawn = self._draw(bits, north.size)
            north += moves[0].take(drawn)
            east += moves[1].take(drawn)
            lost = rare(drawn == near)
            far = bits.integers(plane, lost.size)
            north[lost], east[lost] = far // self.plane[1] - self.reach, far % self.plane[1] - self.reach
            for moved, size in ((north, rows), (east, columns)):
                np.maximum(moved, np.int16(0), out=moved)
                np.minimum(moved, np.int16(size - 1), out=moved)
            north *= np.int16(columns)
            np.add(north, east, out=cells[here])
        return to_bytes(cells, self.report_bytes)

    def _draw(self, bits: Bits, size: int) -> NDArray[Any]:
        return bits.draw(self._law, size) if self._tables is None else self._tables.draw(bits, size)

    @cached_property
    def _tables(self) -> RowTables | None:
        return row_tables([self._law.weights])

    def valid(self, reports: Bytes) -> NDArray[np.bool_]:
        return from_bytes(reports) < self.domain.cells

    def count(self, reports: Bytes) -> Counts:
        return np.bincount(from_bytes(reports), minlength=self.domain.cells)

    def _inputs(self) -> Iterator[tuple[Any, Any]]:
        rows, columns = self.domain.shape
        return (((row + 1, column + 1), (row, column)) for row, column in product(range(rows), range(columns)))

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        total, stays, anywhere = self._law.total, max(self.weights.above), self._law.weights[-1]
        return [
            word("story.place.move", n=self.reach, chance=percent(10**9 * stays // total / 1e9)),
            word("story.place.any", chance=percent(10**9 * anywhere // total / 1e9), n=math.prod(self.plane)),
            word("story.place.edge"),
        ]

    def _says(self, report: bytes) -> Fact:
        north, east = divmod(int.from_bytes(report, "little"), self.domain.shape[1])
        return word("place", north=str(north + 1), east=str(east + 1))

    # -- the read-out ------------------------------------------------------------------------------

    @cached_property
    def linear(self) -> PlaneLaw:
        return _plane_law(self.domain.shape, self.reach, self.epsilon)

    def estimate(self, tally: Tally) -> RectangleShares:
        """The share of any rectangle of cells."""
        found: RectangleShares = super().estimate(tally)
        return found

    def infer(self, tally: Tally) -> RectangleShares:
        if not tally.n:
            return self._nothing()
        return self._result(tally.n, Seen(self.linear, most_likely(self.linear, tally.counts), tally.n, tally.counts))

    def _nothing(self) -> RectangleShares:
        return self._result(0, None)

    def _result(self, n: int, evidence: Seen | None) -> RectangleShares:
        unit = f"cells of {self.domain.cell}" if self.domain.cell else ""
        north, east = (
            Side(name, 1.0, 1.0, size, unit, True)
            for name, size in zip(self.domain.names, self.domain.shape, strict=True)
        )
        return RectangleShares((north, east), n, evidence, self._edges(n), self._shown, self.name, EM)

    @cached_property
    def _shown(self) -> tuple[tuple[Floats, Floats], ...]:
        """The edges of grids of blocks, from coarse to fine; the last row and column may be narrower."""
        found = []
        for side in _BLOCKS:
            if side < max(self.domain.shape):
                north, east = (np.append(np.arange(0, size, side), size).astype(float) for size in self.domain.shape)
                found.append((north, east))
        return tuple(found)

    @lru_cache(maxsize=64)  # noqa: B019  # a protocol is a small frozen value
    def _edges(self, n: int) -> tuple[Floats, Floats]:
        """The edges of the most blocks whose even share can be distinguished from zero with n people."""
        best = self._shown[0]
        if not n:
            return best
        for north, east in self._shown:
            if max(north.size, east.size) > _MOST_SHOWN + 1:
                break
            middle = [(edges.size - 1) // 2 for edges in (north, east)]
            ends = [[north[middle[0]], north[middle[0] + 1], east[middle[1]], east[middle[1] + 1]]]
            low, high = self._even_intervals(np.array(ends), n, True)
            if low[0] > 0 or high[0] - low[0] <= 2 * math.prod(1 / (edges.size - 1) for edges in (north, east)):
                best = north, east
        return best

    def _even_intervals(self, ends: Floats, n: int, population: bool) -> tuple[Floats, Floats]:
        """The intervals of rectangles if all cells are equally common, without noise."""
        even = np.full(self.domain.cells, 1 / self.domain.cells)
        below, above = Seen(self.linear, even, n, n * self.linear.mix(even)).bracket(ends)
        z = quantile(0.95)
        spreads = [np.sqrt(one.noise + (one.people if population else 0.0)) for one in (below, above)]
        return below.value - z * spreads[0], above.value + z * spreads[1]

    def _truth(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        """The shares of the rectangles of the table, of these places."""
        north, east = self.domain.encode(answers).columns
        held = np.ones(len(north)) if people is None else np.asarray(people, dtype=float)
        counted, _, _ = np.histogram2d(north, east, self._edges(int(held.sum())), weights=held)
        found: Floats = counted.reshape(-1) / held.sum()
        return found

    # -- what it is worth --------------------------------------------------------------------------

    @lru_cache(maxsize=64)  # noqa: B019
    def _typical(self, n: int, population: bool) -> float:
        random = np.random.default_rng(1)
        sides = [np.sort(random.integers(0, size + 1, size=(_SAMPLE, 2)), axis=1) for size in self.domain.shape]
        low, high = self._even_intervals(np.hstack(sides).astype(float), max(1, n), population)
        return float(np.mean(np.minimum(high, 1.0) - np.maximum(low, 0.0))) / (2 * quantile(0.95))

    @cached_property
    def _forged(self) -> tuple[float, float]:
        """What one report does to the share of a typical rectangle at most, times n: raised, and between extremes."""
        random, n = np.random.default_rng(1), _FORGED_AMONG
        sides = [np.sort(random.integers(0, size + 1, size=(_SAMPLE, 2)), axis=1) for size in self.domain.shape]
        even = np.full(self.domain.cells, 1 / self.domain.cells)
        found = Seen(self.linear, even, n, n * self.linear.mix(even)).bracket(np.hstack(sides).astype(float))
        return n * max(float(one.down.max()) for one in found), n * max(float(one.most.max()) for one in found)

    @cached_property
    def _extremes(self) -> tuple[Floats, Floats]:
        """How likely each report is at least and at most, over all places."""
        lumps = _lumps(self.domain.shape, self.reach, self.weights, exactly=False)
        least, most = [], []
        for row in range(self.domain.shape[0]):
            each = lumps.table[lumps.states[0][:, row]][:, lumps.states[1]]
            least.append(each.min(axis=(0, 1)))
            most.append(each.max(axis=(0, 1)))
        return np.concatenate(least), np.concatenate(most)

    def _misfits(self, tally: Tally, worth: float) -> list[float]:
        counts, n, size = tally.counts * worth, tally.n * worth, self.domain.cells
        least, most = self._extremes
        few = int(np.argmin((counts - n * least) / np.sqrt(least)))
        many = int(np.argmax((counts - n * most) / np.sqrt(most)))
        return [
            too_few(float(counts[few]), n, float(least[few]), size),
            too_many(float(counts[many]), n, float(most[many]), size),
        ]

    def _remark(self, n: int, level: float = 0.95, population: bool = True) -> str:
        """How far reports lie from the places, and how exact rectangles are."""
        reach, away = quantile(level) * self.worth(n, population=population).error, self.radius(0.95)
        side = f" of {self.domain.cell}" if self.domain.cell else ""
        where = f"within {away:.2g} cells{side} of the place" if math.isfinite(away) else "nearly anywhere"
        return (
            f"95 % of the reports lie {where}. The share of a rectangle comes within +-{100 * reach:.2g} percentage "
            "points, if all cells are equally common. Epsilon is that of one cell side: read “rectangles” for a "
            "promise between any two places."
        )

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            cost=Cost(2.0 * WORD_BYTES, 1),
            truth=self._truth,
            # For the share of a typical rectangle.
            noise=lambda: self._typical(n, False),
            error=lambda: self._typical(n, population),
            # For the typical rectangle that one report can raise most, if all cells are equally common.
            leverage=lambda: self._forged[0],
            moved=lambda: self._forged[1],
            guess=lambda: float(self._extremes[1].sum()) / self.domain.cells,
            remark=lambda level=0.95: self._remark(n, level, population),
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            guarantee=self._guarantee,
            distance=self._distance,
            related=self._related,
            ratio=lambda: self._ratio,
            width=lambda: width_of(self.domain.cells),
            forms=lambda: self.domain.cells,
            counters=lambda: self.domain.cells,
            inputs=self._inputs,
            input_count=lambda: self.domain.cells,
            checks=self._misfits,
        )


# -- the weights ---------------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def planar_weights(epsilon: Fraction, reach: int) -> Weights:
    """The integers of the law: see the head of this file.

    >>> found = planar_weights(Fraction(1), 1)
    >>> found.offsets.tolist(), found.floor / 2**64
    ([[0, 0]], 0.3678...)
    """
    rate = epsilon / (_STEPS + _SLACK)
    floor = exact.floor_of(lambda e: exact.WORD / e, rate * _STEPS * reach)
    known: dict[int, int] = {0: exact.WORD - floor}
    offsets, above = [], []
    for north, east in product(range(-reach, reach + 1), repeat=2):
        square = north * north + east * east
        if square >= reach * reach:
            continue
        if square not in known:
            length = 1 + math.isqrt(square * _STEPS**2 - 1)  # rounded up
            known[square] = exact.floor_of(lambda e: exact.WORD / e, rate * length) - floor
        if known[square] > 0:
            offsets.append((north, east))
            above.append(known[square])
    return Weights(np.array(offsets, dtype=np.int64), tuple(above), floor)


@lru_cache(maxsize=64)
def usual_reach(shape: tuple[int, int], epsilon: Fraction) -> int:
    """The smallest reach with which few reports are anywhere."""
    most = min(MOST_REACH, math.floor(MOST_EXPONENT / epsilon))
    rate = float(epsilon)
    offsets = np.arange(-MOST_REACH, MOST_REACH + 1)
    lengths = np.hypot(offsets[:, None], offsets[None, :])
    for reach in range(1, most):
        floor = math.exp(-rate * reach)
        near = float(np.maximum(np.exp(-rate * lengths) - floor, 0.0).sum())
        far = floor * math.prod(size + 2 * reach for size in shape)
        if far <= float(_SELDOM) * (near + far):
            return reach
    return most


class _Lumps(NamedTuple):
    """How likely a report is: `table[states[0][from north, to north], states[1][from east, to east]]`."""

    table: NDArray[Any]
    states: tuple[NDArray[np.intp], NDArray[np.intp]]


def _lumps(shape: tuple[int, int], reach: int, weights: Weights, exactly: bool) -> _Lumps:
    """Whole numbers, or probabilities. Cells at an edge collect what lies beyond them."""
    half = max(reach, *shape)
    plane: NDArray[Any] = np.zeros((2 * half + 1, 2 * half + 1), dtype=object if exactly else np.float64)
    north, east = weights.offsets.T + half
    plane[north, east] = [value if exactly else float(value) for value in weights.above]
    states, many = [], []
    for size in shape:
        below = np.cumsum(plane, axis=0)  # what lies south of an offset, and at it
        beyond = np.cumsum(plane[::-1], axis=0)[::-1]
        begin, end = np.arange(size)[:, None], np.arange(size)[None, :]
        inside = end - begin + half
        edges = np.where(end == 0, len(plane) + inside, 2 * len(plane) + inside)
        states.append(np.where((end == 0) | (end == size - 1), edges, inside))
        many.append(np.repeat([1, reach + 1, reach + 1], len(plane)))
        plane = np.vstack([plane, below, beyond]).T
    table = plane + (weights.floor if exactly else float(weights.floor)) * np.outer(
        many[0].astype(plane.dtype), many[1].astype(plane.dtype)
    )
    if not exactly:
        total = sum(weights.above) + weights.floor * math.prod(size + 2 * reach for size in shape)
        table = table / float(total)
    return _Lumps(table, (states[0], states[1]))


# -- the channel as a linear map -----------------------------------------------------------------------


@lru_cache(maxsize=8)
def _plane_law(shape: tuple[int, int], reach: int, epsilon: Fraction) -> PlaneLaw:
    """Shared by equal protocols: it is large."""
    return PlaneLaw(shape, _lumps(shape, reach, planar_weights(epsilon, reach), exactly=False))


class PlaneLaw:
    """From the shares of the cells to those of the reports, and back, in the four sectors of reflections."""

    def __init__(self, shape: tuple[int, int], lumps: _Lumps) -> None:
        self.shape, self.positions = shape, math.prod(shape)
        self._lumps = lumps

    @cached_property
    def _sectors(self) -> list[tuple[tuple[int, int], Floats]]:
        """The signs of both reflections, and the map of functions of the reports to their means at the places."""
        north, east = self._lumps.states
        found: list[tuple[tuple[int, int], Floats]] = []
        for signs in product((1, -1), (1, -1)):
            kept = [_half(size, sign) for size, sign in zip(self.shape, signs, strict=True)]
            if not all(kept):
                continue
            each = self._lumps.table[north[: kept[0]][:, None, :, None], east[: kept[1]][None, :, None, :]]
            each = _folded(_folded(each, 2, signs[0]), 3, signs[1])
            found.append((signs, each.reshape(math.prod(kept), -1)))
        return found

    @cached_property
    def _inverses(self) -> list[Floats]:
        return [np.linalg.inv(matrix).astype(np.float64) for _, matrix in self._sectors]

    def _apply(self, functions: Floats, matrices: list[Floats]) -> Floats:
        """Matrices of the sectors, applied to functions on the grid, one per row."""
        given = functions.reshape(-1, *self.shape)
        out = np.zeros_like(given)
        for (signs, _), matrix in zip(self._sectors, matrices, strict=True):
            part = _folded(_folded(given, 1, signs[0]), 2, signs[1]) / self._orbits(signs)
            there = (part.reshape(len(given), -1) @ matrix.T).reshape(part.shape)
            out += _unfolded(_unfolded(there, 1, signs[0], self.shape[0]), 2, signs[1], self.shape[1])
        return out.reshape(functions.shape)

    def _orbits(self, signs: tuple[int, int]) -> Floats:
        """How many cells each one stands for."""
        north, east = (
            np.where(np.arange(_half(size, sign)) == size - 1 - np.arange(_half(size, sign)), 1.0, 2.0)
            for size, sign in zip(self.shape, signs, strict=True)
        )
        return np.outer(north, east)

    @cached_property
    def _forward(self) -> list[Floats]:
        return [matrix for _, matrix in self._sectors]

    @cached_property
    def _backward(self) -> list[Floats]:
        """For shares instead of functions: transposed, with the cells that each one stands for."""
        found = []
        for signs, matrix in self._sectors:
            orbits = self._orbits(signs).reshape(-1)
            found.append(matrix.T * orbits[None, :] / orbits[:, None])
        return found

    def mix(self, point: Floats) -> Floats:
        """The law of the report of somebody drawn from `point`."""
        return np.maximum(self._apply(point, self._backward), 1e-300)

    def expected(self, weights: Floats) -> Floats:
        """The mean of weights of the reports, for each place."""
        return self._apply(weights, self._forward)

    def weights(self, wanted: Floats) -> Floats:
        """Weights of the reports, one row per row of `wanted`, whose mean is that of `wanted` at every place."""
        return self._apply(wanted, self._inverses)


def _half(size: int, sign: int) -> int:
    """How many values a function has that is even or odd under the reflection."""
    return (size + 1) // 2 if sign > 0 else size // 2


def _folded(values: NDArray[Any], axis: int, sign: int) -> NDArray[Any]:
    """Each value plus or minus its reflection; one in the middle stays as it is, or vanishes."""
    size = values.shape[axis]
    first = np.take(values, range(size // 2), axis=axis)
    last = np.take(values, range(size - 1, size - 1 - size // 2, -1), axis=axis)
    folded: NDArray[Any] = first + sign * last
    if size % 2 and sign > 0:
        folded = np.concatenate([folded, np.take(values, [size // 2], axis=axis)], axis=axis)
    return folded


def _unfolded(values: NDArray[Any], axis: int, sign: int, size: int) -> NDArray[Any]:
    """The function whose first half this is."""
    first = np.take(values, range(size // 2), axis=axis)
    middle = np.take(values, range(size // 2, values.shape[axis]), axis=axis)
    if size % 2 and sign < 0:
        middle = np.zeros_like(np.take(values, [0], axis=axis))
    return np.concatenate([first, middle, sign * np.flip(first, axis=axis)], axis=axis)


@dataclass(frozen=True, eq=False)
class Seen(Unbiased):
    """What a tally says about rectangles of cells."""

    law: PlaneLaw  # type: ignore[assignment]

    def weights(self, wanted: Floats) -> Floats:
        return self.law.weights(wanted)

    def fitted(self, ends: Floats) -> Floats:
        """The shares under the fitted distribution; within a cell people are spread evenly."""
        rows, columns = self.law.shape
        upto = np.zeros((rows + 1, columns + 1))
        upto[1:, 1:] = np.cumsum(np.cumsum(self.shares.reshape(rows, columns), axis=0), axis=1)
        (south, north), (west, east) = ends[:, :2].T, ends[:, 2:].T
        corners = [_between(upto, *at) for at in ((north, east), (south, east), (north, west), (south, west))]
        return np.clip(corners[0] - corners[1] - corners[2] + corners[3], 0.0, 1.0)

    def bracket(self, ends: Floats, sharp: bool = False) -> tuple[Readings, Readings]:
        """Figures below and above the shares of rectangles, as near as noise and play allow."""
        given = np.asarray(ends, dtype=float)
        return self._nearest(given, -1, sharp), self._nearest(given, 1, sharp)

    def _nearest(self, ends: Floats, side: int, sharp: bool) -> Readings:
        up, down = (np.ceil, np.floor) if side < 0 else (np.floor, np.ceil)
        cut = np.stack([up(ends[:, 0]), down(ends[:, 1]), up(ends[:, 2]), down(ends[:, 3])], axis=1)
        widths = [0] if sharp else [0, *(1 << k for k in range((max(self.law.shape) - 1).bit_length()))]
        found = []
        for width in widths:
            north, east = (
                _ramp(cut[:, 2 * axis], cut[:, 2 * axis + 1], size, width, side)
                for axis, size in enumerate(self.law.shape)
            )
            wanted = (north[:, :, None] * east[:, None, :]).reshape(len(ends), -1)
            one = self.read(wanted)
            found.append((side * (wanted @ self.shares) + quantile(0.95) * np.sqrt(one.noise + one.people), one))
        best = np.argmin([cost for cost, _ in found], axis=0)
        picked = (np.choose(best, [one[place] for _, one in found]) for place in range(len(Readings._fields)))
        return Readings(*picked)


def _ramp(begin: Floats, end: Floats, size: int, width: int, side: int) -> Floats:
    """A function of the cells that is 1 in a range and 0 outside, but for ramps of some cells within or beyond it.

    Where the range ends with the grid there is nobody beyond, and no ramp.
    """
    cells = np.arange(size)[None, :]
    first, last = begin[:, None], end[:, None] - 1
    if side < 0:
        rise = np.where(first <= 0, 1.0, (cells - first + 1) / (width + 1))
        fall = np.where(last >= size - 1, 1.0, (last - cells + 1) / (width + 1))
        inside = (cells >= first) & (cells <= last)
        return np.where(inside, np.minimum(1.0, np.minimum(rise, fall)), 0.0)
    outside = np.maximum(0, np.maximum(first - cells, cells - last))
    return np.where(last < first, 0.0, np.maximum(0.0, 1 - outside / (width + 1)))


def _between(upto: Floats, north: Floats, east: Floats) -> Floats:
    """A cumulative table at any point, linear in each cell."""
    rows, columns = (
        np.minimum(np.floor(at).astype(int), size - 2) for at, size in zip((north, east), upto.shape, strict=True)
    )
    a, b = north - rows, east - columns
    found: Floats = (1 - a) * ((1 - b) * upto[rows, columns] + b * upto[rows, columns + 1]) + a * (
        (1 - b) * upto[rows + 1, columns] + b * upto[rows + 1, columns + 1]
    )
    return found
