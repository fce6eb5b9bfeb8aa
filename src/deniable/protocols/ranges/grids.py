"""Grids of counts over two ordered numbers: consistent by least squares, and what any rectangle is worth.

Grids      each axis is cut into more and more parts, every cut inside the one before: 1, 4, 8, ... A grid takes one cut
           of each axis; 4 x 4, 8 x 8, or 80 x 1, the numbers of one axis alone. Each grid has people of its own
Details    the functions on an axis fall apart into what each cut adds to the one before. So do rectangles: the detail
           (a, b) of one is a product of two. A grid knows the details up to its own cuts, and all grids that know one
           have independent errors of equal size in it: least squares is their average, by inverse variance, in each
           detail by itself. That everybody is somewhere is known without error
Rectangle  a linear function of the shares of all grids, whose weights follow from this; its variance is the exact one
           of the grids' protocols (`tree.py` has the formula). A rectangle whose ends no grid knows lies between the
           largest one inside and the smallest one around it that are known
Fit        shares that are not negative: of all distributions the one with the smallest
             10 KL(shares | even) + 1/2 sum over the grids' nodes of (seen - fitted)^2 / variance
           which is as even as the reports allow, like maximum entropy. It is a product of one factor per node of each
           grid, so that a million cells need not be written down; found through its dual, a smooth problem with one
           variable per node
Source     grids under local privacy and the uniformity in their cells: Yang et al. 2020 (TDG, HDG); regularized
           maximum entropy: Dudik, Phillips and Schapire 2007
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable._threads import one_thread
from deniable.protocols.ranges.tree import MOST_COMPARED, Level, covariance_of, thinned
from deniable.results import Floats
from deniable.results.distribution import Readings

EVENLY = 10.0
"""The fit is as even as if this many more people were spread evenly and reported without noise."""

_AT_ONCE = 1 << 21
"""Rectangles times nodes that are worked on at once."""
_STEPS = 3000
_LISTED = 1 << 13
"""Rectangles that are listed."""


@dataclass(frozen=True)
class Axis:
    """One number, and the cuts of it that grids take."""

    cells: int
    sizes: tuple[int, ...]
    """How many parts each cut has: 1 first, and each divides the next."""

    @property
    def span(self) -> int:
        """Cells in a part of the finest cut."""
        return -(-self.cells // self.sizes[-1])

    @property
    def length(self) -> int:
        """Cells, with those beyond the last one, in which nobody is."""
        return self.span * self.sizes[-1]

    def steps(self, cut: NDArray[np.int64]) -> NDArray[np.int64]:
        """Cells in a part of a cut."""
        return self.length // np.array(self.sizes)[cut]

    def covered(self, begin: Floats, end: Floats) -> Floats:
        """Which share of each part of the finest cut some ranges of cells cover."""
        left = self.span * np.arange(self.sizes[-1])
        both = np.minimum(end[:, None], left + self.span) - np.maximum(begin[:, None], left)
        found: Floats = np.maximum(0.0, both) / self.span
        return found

    def details(self, begin: Floats, end: Floats) -> list[Floats]:
        """What each cut adds to the one before, of ranges of cells: one row per range, one column per part."""
        covered = self.covered(begin, end)
        means = [covered.reshape(len(covered), size, -1).mean(axis=2) for size in self.sizes]
        found = [means[0]]
        for size, before, mean in zip(self.sizes[1:], means, means[1:], strict=False):
            found.append(mean - np.repeat(before, size // before.shape[1], axis=1))
        return found

    def typical(self) -> Floats:
        """How much of a range with uniform ends each detail holds, in squares of cells; and, last, the whole range."""
        random = np.random.default_rng(1)
        ends = np.sort(random.integers(0, self.cells + 1, size=(_SAMPLE, 2)), axis=1).astype(float)
        begin, end = ends[:, 0], np.where(ends[:, 1] == self.cells, float(self.length), ends[:, 1])
        each = zip(self.sizes, self.details(begin, end), strict=True)
        squares = [float((one**2).sum(axis=1).mean()) * self.length / size for size, one in each]
        return np.array([*squares, float((end - begin).mean())])


_SAMPLE = 256


@dataclass(frozen=True)
class Layout:
    """Which grids there are: pairs of cuts, by their places among the sizes of the axes."""

    axes: tuple[Axis, Axis]
    cuts: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, cells: Sequence[int], grids: Sequence[tuple[int, int]]) -> Layout:
        axes = tuple(
            Axis(count, tuple(sorted({1} | {grid[place] for grid in grids}))) for place, count in enumerate(cells)
        )
        cuts = tuple((axes[0].sizes.index(rows), axes[1].sizes.index(columns)) for rows, columns in grids)
        return cls((axes[0], axes[1]), cuts)

    @property
    def grids(self) -> list[tuple[int, int]]:
        return [(self.axes[0].sizes[rows], self.axes[1].sizes[columns]) for rows, columns in self.cuts]

    @property
    def shape(self) -> tuple[int, int]:
        """How many details there are."""
        return len(self.axes[0].sizes), len(self.axes[1].sizes)

    def knows(self, grid: int) -> NDArray[np.bool_]:
        """Which details a grid knows."""
        rows, columns = self.cuts[grid]
        found: NDArray[np.bool_] = (np.arange(self.shape[0]) <= rows)[:, None] & (np.arange(self.shape[1]) <= columns)
        return found

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = np.any([self.knows(grid) for grid in range(len(self.cuts))], axis=0)
        return found

    @cached_property
    def plane(self) -> tuple[int, int]:
        """The cuts of the finest grid of both numbers."""
        both = [(rows, columns) for rows, columns in self.cuts if rows and columns]
        return max(both, key=lambda cut: self.axes[0].sizes[cut[0]] * self.axes[1].sizes[cut[1]])

    def precisions(self, variances: Sequence[float]) -> tuple[Floats, Floats]:
        """One over the variance of a unit of each detail: of each grid by itself, and of all together."""
        each = [
            self.knows(grid) / (variance * rows * columns)
            for grid, ((rows, columns), variance) in enumerate(zip(self.grids, variances, strict=True))
        ]
        return np.array(each), np.sum(each, axis=0)

    def typical(self, variances: Sequence[float]) -> tuple[float, float, float]:
        """The variance of the share of a rectangle with uniform ends; and how much of it no grid knows, as a share of
        the plane: where both numbers matter, and where one of them does."""
        first, second = (axis.typical() for axis in self.axes)
        sizes, whole = np.outer(first[:-1], second[:-1]), first[-1] * second[-1]
        area = self.axes[0].length * self.axes[1].length
        known = self.known.copy()
        known[0, 0] = False
        _, precision = self.precisions(variances)
        variance = float((sizes[known] / precision[known]).sum()) / area
        unknown = max(0.0, float(whole - sizes[self.known].sum())) / area
        alone = (first[-1] - first[:-1][self.known[:, 0]].sum()) * second[0]
        alone += (second[-1] - second[:-1][self.known[0]].sum()) * first[0]
        return variance, max(0.0, unknown - float(alone) / area), max(0.0, float(alone)) / area

    @cached_property
    def rectangles(self) -> Floats | None:
        """All rectangles that are known: of the finest grid of both numbers, and of each number alone; None where there
        are too many."""
        alone = [int(np.flatnonzero(one)[-1]) for one in (self.known[:, 0], self.known[0])]
        counts = [[math.comb(self._edges(side, cut[side]).size, 2) for side in range(2)] for cut in (self.plane, alone)]
        if math.prod(counts[0]) + sum(counts[1]) > _LISTED:
            return None
        sides = [self._spans(side, self.plane[side]) for side in range(2)]
        first, second = (one.ravel() for one in np.meshgrid(*map(np.arange, map(len, sides)), indexing="ij"))
        found = [np.hstack([sides[0][first], sides[1][second]])]
        for side, cut in enumerate(alone):
            spans = self._spans(side, cut)
            whole = np.tile([0.0, float(self.axes[1 - side].length)], (len(spans), 1))
            found.append(np.hstack([spans, whole] if side == 0 else [whole, spans]))
        return np.vstack(found)

    @property
    def corners(self) -> list[tuple[int, Floats]]:
        """Known rectangles that begin at the first cells, of both numbers and of each alone, and how many of them, with
        signs, make any other."""
        sides = [self._edges(side, self.plane[side])[1:] for side in range(2)]
        first, second = (one.ravel() for one in np.meshgrid(*sides, indexing="ij"))
        zero = np.zeros_like(first)
        found = [(4, np.stack([zero, first, zero, second], axis=1))]
        for side, alone in enumerate((self.known[:, 0], self.known[0])):
            ends = self._edges(side, int(np.flatnonzero(alone)[-1]))[1:]
            zero, whole = np.zeros_like(ends), np.full_like(ends, self.axes[1 - side].length)
            pairs = [zero, ends, zero, whole] if side == 0 else [zero, whole, zero, ends]
            found.append((2, np.stack(pairs, axis=1)))
        return found

    def _spans(self, side: int, cut: int) -> Floats:
        """All ranges of parts of a cut, in cells."""
        edges = self._edges(side, cut)
        first, last = np.triu_indices(edges.size, 1)
        return np.stack([edges[first], edges[last]], axis=1)

    def _edges(self, side: int, cut: int) -> Floats:
        """Where the parts of a cut begin and end, in cells; the last ends where the axis does."""
        axis = self.axes[side]
        edges = np.arange(0, axis.length + 1, axis.length // axis.sizes[cut])
        return np.append(edges[edges < axis.cells], axis.length).astype(np.float64)

    def around(self, ends: Floats) -> tuple[Floats, Floats]:
        """The known rectangles inside and around some: `ends` are rows of (begin, end, begin, end) in cells.

        An end at the last cell is moved to the end of the axis, beyond which nobody is.
        """
        given = np.array(ends, dtype=float)
        lengths = [axis.length for axis in self.axes]
        for side, axis in enumerate(self.axes):
            given[:, 2 * side + 1] = np.where(given[:, 2 * side + 1] >= axis.cells, axis.length, given[:, 2 * side + 1])
        whole = [(given[:, 2 * side] <= 0) & (given[:, 2 * side + 1] >= lengths[side]) for side in range(2)]
        inner, outer = given.copy(), given.copy()
        for side, axis in enumerate(self.axes):
            alone = self.known[:, 0] if side == 0 else self.known[0]
            step = axis.steps(np.where(whole[1 - side], int(np.flatnonzero(alone)[-1]), self.plane[side]))
            begin, end = given[:, 2 * side] / step, given[:, 2 * side + 1] / step
            begin, end = (np.where(np.abs(one - np.round(one)) < 1e-9, np.round(one), one) for one in (begin, end))
            inner[:, 2 * side], inner[:, 2 * side + 1] = np.ceil(begin) * step, np.floor(end) * step
            outer[:, 2 * side], outer[:, 2 * side + 1] = np.floor(begin) * step, np.ceil(end) * step
        empty = (inner[:, 0] >= inner[:, 1]) | (inner[:, 2] >= inner[:, 3])
        inner[empty] = 0.0
        return inner, outer


@dataclass(frozen=True, eq=False)
class Fit:
    """Shares that are not negative: the share of a cell is rows x plane x columns."""

    layout: Layout
    rows: Floats
    """One factor per part of the finest cut of the first number."""
    plane: Floats
    """One factor per node of the finest cuts that grids of both numbers take."""
    columns: Floats

    def shares(self, ends: Floats) -> Floats:
        """The shares of rectangles, rows of (begin, end, begin, end) in cells; people are spread evenly in a part."""
        sides = []
        for side, (axis, factors) in enumerate(zip(self.layout.axes, (self.rows, self.columns), strict=True)):
            edges = np.minimum(axis.span * np.arange(axis.sizes[-1] + 1), axis.cells)
            blocks = np.minimum(
                axis.length // self.plane.shape[side] * np.arange(self.plane.shape[side] + 1), axis.cells
            )
            inside = np.clip(ends[:, 2 * side, None], blocks[:-1], blocks[1:])
            upto = np.clip(ends[:, 2 * side + 1, None], blocks[:-1], blocks[1:])
            used = np.concatenate([[True], np.diff(edges) > 0])
            total = np.concatenate([[0.0], np.cumsum(factors)])[used]
            sides.append(np.interp(upto, edges[used], total) - np.interp(inside, edges[used], total))
        found: Floats = np.clip(np.einsum("qr,rc,qc->q", sides[0], self.plane, sides[1], optimize=True), 0.0, 1.0)
        return found

    def grid(self, rows: int, columns: int) -> Floats:
        """The shares of the nodes of a grid, row by row."""
        first, second = (
            axis.length // size * np.arange(size + 1.0)
            for axis, size in zip(self.layout.axes, (rows, columns), strict=True)
        )
        ends = np.stack(
            [
                np.repeat(first[:-1], columns),
                np.repeat(first[1:], columns),
                np.tile(second[:-1], rows),
                np.tile(second[1:], rows),
            ],
            axis=1,
        )
        at_once = max(1, _AT_ONCE // sum(self.plane.shape))
        found = [self.shares(ends[start : start + at_once]) for start in range(0, len(ends), at_once)]
        return np.concatenate(found)


@dataclass(frozen=True, eq=False)
class Grids:
    """What the people of each grid said."""

    layout: Layout
    levels: tuple[Level, ...]

    @cached_property
    def people(self) -> int:
        return sum(level.people for level in self.levels)

    @cached_property
    def _parts(self) -> Floats:
        """Which part of each detail is each grid's."""
        each, total = self.layout.precisions([level.variance for level in self.levels])
        found: Floats = each / np.where(total > 0, total, 1.0)
        found[:, 0, 0] = 0.0  # that everybody is somewhere is known
        return found

    @cached_property
    def fit(self) -> Fit:
        return _Dual(self.layout, self.levels).solve()

    def fitted(self, ends: Floats) -> Floats:
        return self.fit.shares(ends)

    def bracket(self, ends: Floats, sharp: bool = False) -> tuple[Readings, Readings]:
        """The readings of the known rectangles inside and around these."""
        inner, outer = self.layout.around(ends)
        below = self.rectangles(inner)
        return below, below if np.array_equal(inner, outer) else self.rectangles(outer)

    @cached_property
    def _fitted(self) -> list[Floats]:
        return [self.fit.grid(rows, columns) for rows, columns in self.layout.grids]

    def rectangles(self, ends: Floats) -> Readings:
        """The shares of known rectangles, rows of (begin, end, begin, end) in cells, by least squares.

        Of what no grid knows, nothing is added: it is as if people were spread evenly there.
        """
        given = np.asarray(ends, dtype=float)
        value, everything, most, down, up = self._read_all(given)
        share = self.fit.shares(given)
        people = share * (1 - share) / max(1, self.people)
        return Readings(value, np.maximum(0.0, everything - people), people, most, down, up)

    def thinned(self, fakes: int) -> float:
        return thinned(self.levels, fakes)

    def moves(self, ends: Floats) -> tuple[Floats, Floats]:
        """How far one report lowers and raises the shares of such rectangles."""
        _, _, _, down, up = self._read_all(ends)
        return down, up

    def _read_all(self, ends: Floats) -> Floats:
        at_once = max(1, _AT_ONCE // max(level.shares.size for level in self.levels))
        found = [self.read(ends[start : start + at_once]) for start in range(0, len(ends), at_once)]
        return np.hstack([np.zeros((5, 0)), *found])

    @one_thread
    def read(self, ends: Floats) -> Floats:
        """Value, variance, and how far one report moves, lowers and raises it; of one rectangle per row."""
        details = [axis.details(*ends[:, 2 * side : 2 * side + 2].T) for side, axis in enumerate(self.layout.axes)]
        value = details[0][0][:, 0] * details[1][0][:, 0]
        everything, most = np.zeros((2, len(ends)))
        moved = np.zeros((2, len(ends)))
        for level, part, fitted, (rows, columns) in zip(
            self.levels, self._parts, self._fitted, self.layout.cuts, strict=True
        ):
            first, second = (
                np.stack([np.repeat(one, own[cut].shape[1] // one.shape[1], axis=1) for one in own[: cut + 1]], axis=1)
                for own, cut in zip(details, (rows, columns), strict=True)
            )
            mixed = np.einsum("qar,ab->qbr", first, part[: rows + 1, : columns + 1])
            weights = np.einsum("qbr,qbc->qrc", mixed, second, optimize=True).reshape(len(ends), -1)
            shares = level.shares if level.people else np.zeros_like(level.shares)
            value = value + weights @ shares
            total, mean = weights.sum(axis=1), weights @ fitted
            square, spread = (weights**2).sum(axis=1), weights**2 @ fitted
            everything += covariance_of(level, square, spread, total**2, 2 * total * mean, mean**2)
            size = np.abs(weights).sum(axis=1)
            most = np.maximum(most, size / (level.law.gap * max(1, level.people)))
            one = level.law.moved(weights, weights @ shares, sets=MOST_COMPARED / len(ends))
            moved = np.maximum(moved, one / max(1, level.people))
        return np.stack([value, everything, most, *moved])


class EvenGrids(Grids):
    """Grids whose nodes are all equally common, without a fit."""

    @property
    def _fitted(self) -> list[Floats]:
        return [level.shares for level in self.levels]


class _Dual:
    """The fit as a smooth problem: one variable t per node of each grid, and shares in proportion to exp(sum of t)."""

    def __init__(self, layout: Layout, levels: Sequence[Level]) -> None:
        self.layout = layout
        heard = [place for place, level in enumerate(levels) if level.people]
        both = [layout.grids[place] for place, cut in enumerate(layout.cuts) if cut[0] and cut[1]]
        self.plane = max(rows for rows, _ in both), max(columns for _, columns in both)
        self.grids = [layout.grids[place] for place in heard]
        self.seen = np.concatenate([levels[place].shares for place in heard])
        self.variance = np.concatenate([np.full(levels[place].shares.size, levels[place].variance) for place in heard])
        self.ends = np.cumsum([0, *(levels[place].shares.size for place in heard)])
        self.real = [
            np.clip(axis.cells - axis.span * np.arange(axis.sizes[-1]), 0, axis.span).astype(float)
            for axis in layout.axes
        ]

    @one_thread
    def solve(self) -> Fit:
        from scipy.optimize import minimize

        scale = np.sqrt(EVENLY * self.variance)  # in this scale no direction is flatter than the penalty

        def dual(scaled: Floats) -> tuple[float, Floats]:
            at = scaled / scale
            value, fitted, _ = self._at(at)
            slope = fitted - self.seen + at * scale**2
            return value - float(at @ self.seen) + float(scaled @ scaled) / 2, slope / scale

        # In this scale the slope is how far fitted nodes are from where they end, in about three standard errors.
        how: dict[str, Any] = {"maxiter": _STEPS, "maxfun": 2 * _STEPS, "maxcor": 20, "ftol": 1e-13, "gtol": 1e-3}
        found = minimize(dual, np.zeros(self.seen.size), jac=True, method="L-BFGS-B", options=how)
        return self._at(found.x / scale)[2]

    def _at(self, t: Floats) -> tuple[float, Floats, Fit]:
        """The logarithm of the sum of all exponentials, the shares of the nodes, and the fit."""
        sides: list[Floats] = [np.zeros(one.size) for one in self.real]
        plane: Floats = np.zeros(self.plane)
        for begin, end, (rows, columns) in zip(self.ends[:-1], self.ends[1:], self.grids, strict=True):
            own = t[begin:end].reshape(rows, columns)
            if rows > self.plane[0] or columns > self.plane[1]:  # of one number alone, finer than the plane
                side = 0 if columns == 1 else 1
                sides[side] += np.repeat(own.reshape(-1), sides[side].size // own.size)
            else:
                plane += np.repeat(np.repeat(own, self.plane[0] // rows, axis=0), self.plane[1] // columns, axis=1)
        factors, logs = [], []
        for real, own, blocks in zip(self.real, sides, self.plane, strict=True):
            there = np.where(real > 0, own, -np.inf).reshape(blocks, -1)
            top = there.max(axis=1)
            top = np.where(np.isfinite(top), top, 0.0)
            factor = real.reshape(blocks, -1) * np.exp(there - top[:, None])
            total = factor.sum(axis=1)
            factors.append((factor / np.where(total > 0, total, 1.0)[:, None]).reshape(-1))
            with np.errstate(divide="ignore"):
                logs.append(top + np.log(total))
        power = plane + logs[0][:, None] + logs[1][None, :]
        largest = float(power.max())
        mass = np.exp(power - largest)
        whole = float(mass.sum())
        mass /= whole
        found = Fit(self.layout, factors[0], mass, factors[1])
        return math.log(whole) + largest, np.concatenate([self._sums(found, grid) for grid in self.grids]), found

    def _sums(self, fit: Fit, grid: tuple[int, int]) -> Floats:
        rows, columns = grid
        found: Floats
        if rows > self.plane[0]:
            each = fit.rows * np.repeat(fit.plane.sum(axis=1), fit.rows.size // self.plane[0])
            found = each.reshape(rows, -1).sum(axis=1)
        elif columns > self.plane[1]:
            each = fit.columns * np.repeat(fit.plane.sum(axis=0), fit.columns.size // self.plane[1])
            found = each.reshape(columns, -1).sum(axis=1)
        else:
            blocks = fit.plane.reshape(rows, self.plane[0] // rows, columns, self.plane[1] // columns)
            found = blocks.sum(axis=(1, 3)).reshape(-1)
        return found
