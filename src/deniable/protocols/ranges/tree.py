"""A tree of counts over ordered cells: consistent by least squares, and what any range of cells is worth.

Tree       the root is everybody; a node of level l - 1 has `fanouts[l - 1]` children, cells are the nodes of the last
           level. Each level was asked of people of its own: `Level` has the unbiased shares of its nodes
Up         z = a y + (1 - a) (the children's z): a is the best weight, from the variances of y and of that sum
Down       u = z + (the parent's u - all siblings' z) / fanout, from a root of 1: the least-squares solution
           (Hay et al. 2010), in which every parent is the sum of its children
Positive   of levels with up to 2^9 nodes by a fit (`fit.py`); from there on down, the children's u become the
           nearest shares that are not negative and add up to the parent
Range      cells [a, b) add up to a linear function of all y. Its weights differ within the families on the way to a and
           to b alone: O(fanout x levels) per range, whatever the number of cells
Error      of one report of level l with weights w over its nodes, given the answer x, with T the sum of w and Q of w^2:
             (own w_x^2 + other (Q - w_x^2) + pair ((T - w_x)^2 - (Q - w_x^2)) + mixed 2 w_x (T - w_x)) / gap^2
           averaged over the answers it needs only the sums of w f and w^2 f, with f the shares of the nodes. Sampling
           errors of all levels are in it: of them, the part that those who answered do not have is taken out
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.protocols.ranges.fit import Seen, fitted
from deniable.results import Floats
from deniable.results.distribution import Readings

UNHEARD = 1e12
"""The variance of a share of which nobody has reported: so large that its weight vanishes."""


MOST_FITTED = 1 << 9
"""Nodes of a level, up to which it is fitted."""
_SEARCHED, _MOST_BITS = 1 << 24, 8
"""Sums up to which all reports are compared, and bits of nodes up to which."""
_AT_ONCE = 1 << 16
"""Ranges times fan-out that are worked on at once."""


class Law(NamedTuple):
    """Variances and covariances of what one report supports, given its answer."""

    own: float
    """Of the answer itself: p (1 - p)."""
    other: float
    """Of another answer: q (1 - q)."""
    pair: float
    """Between two other answers."""
    mixed: float
    """Between the answer and another one."""
    gap: float
    """p - q."""
    other_rate: float
    """q."""

    kept: int | None = None
    """How many nodes a report supports, where that is always the same number."""
    hash_bits: int | None = None
    """Of linear hashing: a report supports the nodes that up to so many parities of their numbers choose."""

    def compared(self, rows: int, nodes: int) -> float:
        """How many sums `supported` compares, for so many rows of weights of so many nodes."""
        if self.kept is not None:
            return rows * nodes
        bits = max(1, (nodes - 1).bit_length())
        if self.hash_bits is None or bits > _MOST_BITS:
            return math.inf
        return rows * sum(space_count(bits, size) << size for size in range(1, min(self.hash_bits, bits) + 1))

    def is_searched(self, rows: int, nodes: int) -> bool:
        """Whether all reports are compared."""
        return self.compared(rows, nodes) <= _SEARCHED

    def supported(self, weights: Floats) -> Floats:
        """The largest and the smallest sum of weights that one report supports, one row of weights each.

        Exact: of nodes that are always so many, the heaviest and the lightest; of linear hashing, over all sets that
        parities choose (`affine_sums`). A forger chooses its parities freely, and they may depend on each other.
        """
        if self.kept is None:
            assert self.hash_bits is not None
            return affine_sums(weights, self.hash_bits)
        ordered = np.sort(weights, axis=1)
        return np.stack([ordered[:, -self.kept :].sum(axis=1), ordered[:, : self.kept].sum(axis=1)])

    def moved(
        self, total: Floats, size: Floats, mean: Floats, ends: tuple[Floats, Floats], weights: Floats | None = None
    ) -> Floats:
        """How far one report can lower and raise a weighted sum of shares.

        Of the weights: the sum, the sum of their sizes, that with the shares, the smallest and the largest. Exact where
        a report supports one node, and with the `weights` themselves where all reports can be compared; else at most so
        far.
        """
        above, below = (size + total) / 2, (size - total) / 2
        if weights is not None and self.is_searched(*weights.shape):
            above, below = self.supported(weights)
            below = -below
        elif self.kept is not None:
            above = np.minimum(above, self.kept * np.maximum(ends[1], 0.0))
            below = np.minimum(below, self.kept * np.maximum(-ends[0], 0.0))
        down = (above - self.other_rate * total) / self.gap - mean
        found: Floats = np.stack([down, (below + self.other_rate * total) / self.gap + mean])
        return found


def affine_sums(weights: Floats, parities: int) -> Floats:
    """Over all sets of numbers that up to so many parities of their bits choose: the largest and the smallest sum.

    The sum over such a set is a mean of values of the Walsh transform, over the space that the parities span, with
    signs: so those of all sets of one space are found by a small transform of these values.

    >>> affine_sums(np.array([[1.0, -1.0, 2.0, 0.0]]), 1).tolist()
    [[3.0], [-1.0]]
    """
    rows, bits = len(weights), max(1, (weights.shape[1] - 1).bit_length())
    padded = np.zeros((rows, 1 << bits))
    padded[:, : weights.shape[1]] = weights
    spectrum = walsh(padded)
    found: Floats = np.stack([spectrum[:, 0], spectrum[:, 0]])
    for size in range(1, min(parities, bits) + 1):
        space = subspaces(bits, size)
        at_once = max(1, _AT_ONCE // space.size)
        for start in range(0, rows, at_once):
            some = slice(start, start + at_once)
            sums = walsh(spectrum[some][:, space]) / space.shape[1]
            found[0, some] = np.maximum(found[0, some], sums.max(axis=(1, 2)))
            found[1, some] = np.minimum(found[1, some], sums.min(axis=(1, 2)))
    return found


def walsh(values: Floats) -> Floats:
    """The Walsh-Hadamard transform along the last axis."""
    signs = np.ones((1, 1))
    while len(signs) < values.shape[-1]:
        signs = np.block([[signs, signs], [signs, -signs]])
    found: Floats = values @ signs
    return found


def space_count(bits: int, size: int) -> int:
    """How many spaces of so many dimensions words of bits have.

    >>> space_count(6, 2), space_count(6, 3)
    (651, 1395)
    """
    count = 1
    for place in range(size):
        count = count * ((1 << bits - place) - 1) // ((1 << place + 1) - 1)
    return count


@lru_cache(maxsize=64)
def subspaces(bits: int, size: int) -> NDArray[np.int64]:
    """All spaces of so many dimensions of words of bits, each with its words: one row each, in the order of a basis.

    >>> subspaces(2, 1).tolist(), len(subspaces(6, 2)), len(subspaces(6, 3))
    ([[0, 1], [0, 2], [0, 3]], 651, 1395)
    """
    found: list[tuple[int, ...]] = [(0,)]
    for _ in range(size):
        longer: dict[tuple[int, ...], tuple[int, ...]] = {}
        for words in found:
            inside = set(words)
            for more in range(1, 1 << bits):
                if more not in inside:
                    both = (*words, *(word ^ more for word in words))
                    longer.setdefault(tuple(sorted(both)), both)
                    inside.update(both)
        found = list(longer.values())
    return np.array(found, dtype=np.int64)


class Level(NamedTuple):
    """What the people of one level said."""

    people: int
    shares: Floats
    """Unbiased, one per node; of no matter where nobody reported."""
    law: Law

    @property
    def variance(self) -> float:
        """Of the share of a node, if all nodes are equally common."""
        share, law = 1 / self.shares.size, self.law
        one = (share * law.own + (1 - share) * law.other) / law.gap**2 + share * (1 - share)
        return one / self.people if self.people else UNHEARD


@dataclass(frozen=True, eq=False)
class Tree:
    """The levels of one collection, made consistent.

    >>> law = Law(0.2, 0.2, 0.0, 0.0, 0.5, 0.25)
    >>> halves, quarters = Level(100, np.array([0.5, 0.5]), law), Level(100, np.array([0.1, 0.3, 0.3, 0.3]), law)
    >>> tree = Tree((2, 2), (halves, quarters))
    >>> tree.cells.round(3).tolist(), tree.ranges([0], [2]).value.round(3).tolist()
    ([0.133, 0.333, 0.267, 0.267], [0.465])
    """

    fanouts: tuple[int, ...]
    levels: tuple[Level, ...]
    at: Floats | None = None
    """The shares of the cells at which variances are taken; None: the least-squares ones."""

    @cached_property
    def people(self) -> int:
        return sum(level.people for level in self.levels)

    @property
    def leaves(self) -> int:
        return math.prod(self.fanouts)

    @cached_property
    def _spans(self) -> list[int]:
        """Cells under a node of each level."""
        return [math.prod(self.fanouts[place + 1 :]) for place in range(len(self.fanouts))]

    # -- least squares -----------------------------------------------------------------------------

    @cached_property
    def weights(self) -> list[float]:
        """How much of z is y, in each level."""
        found: list[float] = []
        below = math.inf
        for place in reversed(range(len(self.fanouts))):
            variance = self.levels[place].variance
            weight = 1.0 if math.isinf(below) else below / (below + variance)
            found.append(weight)
            below = self.fanouts[place] * weight * variance
        return found[::-1]

    @cached_property
    def nodes(self) -> list[Floats]:
        """The least-squares shares of the nodes of each level."""
        up: list[Floats] = []
        for place in reversed(range(len(self.levels))):
            level = self.levels[place]
            shares = level.shares if level.people else np.zeros_like(level.shares)
            if up:
                below = up[-1].reshape(-1, self.fanouts[place + 1]).sum(axis=1)
                shares = self.weights[place] * shares + (1 - self.weights[place]) * below
            up.append(shares)
        above, found = np.ones(1), []
        for fanout, shares in zip(self.fanouts, reversed(up), strict=True):
            families = shares.reshape(-1, fanout)
            above = (families + ((above - families.sum(axis=1)) / fanout)[:, None]).reshape(-1)
            found.append(above)
        return found

    @property
    def cells(self) -> Floats:
        """The least-squares shares of the cells: unbiased, and they add up to one."""
        return self.nodes[-1]

    def positive(self, used: int) -> Floats:
        """Shares of the cells that are not negative; cells from `used` on have none."""
        seen = Seen(
            self.fanouts,
            tuple(level.shares for level in self.levels),
            tuple(1 / level.variance for level in self.levels),
            (np.arange(self.leaves) < used).astype(np.float64),
        )
        while seen.sizes.size > MOST_FITTED and len(seen.fanouts) > 1:
            seen = seen.folded()
        above, depth = fitted(seen), len(seen.fanouts)
        for shares, fanout, span in zip(self.nodes[depth:], self.fanouts[depth:], self._spans[depth:], strict=True):
            inside = np.arange(shares.size) * span < used
            above = _shared(np.where(inside, shares, -np.inf).reshape(-1, fanout), above).reshape(-1)
        return above

    # -- ranges ------------------------------------------------------------------------------------

    @cached_property
    def _sums(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.cells)])

    @cached_property
    def _known(self) -> Floats:
        return self._sums if self.at is None else np.concatenate([[0.0], np.cumsum(self.at)])

    def ranges(self, begin: Sequence[int] | NDArray[np.int64], end: Sequence[int] | NDArray[np.int64]) -> Readings:
        """The shares of the cells from each `begin` to before each `end`."""
        first = np.asarray(begin, dtype=np.int64)
        last = np.maximum(first, np.asarray(end, dtype=np.int64))
        at_once = max(1, _AT_ONCE // max(self.fanouts))
        found = [self._spread(first[i : i + at_once], last[i : i + at_once]) for i in range(0, first.size, at_once)]
        everything, most, down, up = np.hstack([np.zeros((4, 0)), *found])
        share = self._known[last] - self._known[first]
        people = np.clip(share * (1 - share), 0.0, None) / max(1, self.people)
        value = self._sums[last] - self._sums[first]
        return Readings(value, np.maximum(0.0, everything - people), people, most, down, up)

    def thinned(self, fakes: int) -> float:
        return thinned(self.levels, fakes)

    def _spread(self, begin: NDArray[np.int64], end: NDArray[np.int64]) -> Floats:
        """The variances of the shares of some ranges, and how far one report can move them.

        As in `_levels`, for the families on the way to either end; of all other nodes only sums are kept, as their
        weights are those of the nodes above them.
        """
        ends = np.minimum(np.stack([begin, end], axis=1), self.leaves - 1)
        carried = np.zeros(ends.shape)
        part = np.repeat(((end - begin) / self.leaves)[:, None], 2, axis=1)
        total, square, mean, spread, size = np.zeros((5, begin.size))
        everything, most = np.zeros((2, begin.size))
        moved, smallest, largest = np.zeros((2, begin.size)), np.zeros(begin.size), np.zeros(begin.size)
        for place, (fanout, level) in enumerate(zip(self.fanouts, self.levels, strict=True)):
            span, weight = self._spans[place], self.weights[place]
            family = ends // (span * fanout)
            nodes = family[..., None] * fanout + np.arange(fanout)
            left = nodes * span
            cells = np.minimum(end[:, None, None], left + span) - np.maximum(begin[:, None, None], left)
            parts = np.maximum(0, cells) / span
            own = (carried - part)[..., None] + parts
            shares = self._known[left + span] - self._known[left]
            once = np.ones(nodes.shape)
            once[family[:, 0] == family[:, 1], 1] = 0.0
            way = ends // span
            off = once * (nodes != way[:, :1, None]) * (nodes != way[:, 1:, None])

            def added(kept: Floats, own: Floats = own, shares: Floats = shares) -> list[Floats]:
                terms = (own, own**2, own * shares, own**2 * shares, np.abs(own))
                return [(kept * term).sum(axis=(1, 2)) for term in terms]

            total, square, size = fanout * total, fanout * square, fanout * size
            rest = (total, square, mean, spread, size)
            here = [old + new for old, new in zip(rest, added(once), strict=True)]
            powers = (weight, weight**2, weight, weight**2, weight)
            sums = [power * one for power, one in zip(powers, here, strict=True)]
            crossed = 2 * sums[0] * sums[2]
            everything += covariance_of(level, sums[1], sums[3], sums[0] ** 2, crossed, sums[2] ** 2)
            most = np.maximum(most, sums[4] / (level.law.gap * max(1, level.people)))
            ends_of = (
                weight * np.minimum(smallest, (once * own).min(axis=(1, 2))),
                weight * np.maximum(largest, (once * own).max(axis=(1, 2))),
            )
            moved = np.maximum(moved, level.law.moved(sums[0], sums[4], sums[2], ends_of) / max(1, level.people))
            left_over = 1 - weight
            smallest = left_over * np.minimum(smallest, (off * own).min(axis=(1, 2)))
            largest = left_over * np.maximum(largest, (off * own).max(axis=(1, 2)))
            powers = (left_over, left_over**2, left_over, left_over**2, left_over)
            beyond = zip(powers, rest, added(off), strict=True)
            total, square, mean, spread, size = (power * (old + new) for power, old, new in beyond)
            child = (way - family * fanout)[..., None]
            carried = left_over * np.take_along_axis(own, child, axis=2)[..., 0]
            part = np.take_along_axis(parts, child, axis=2)[..., 0]
        return np.stack([everything, most, *moved])

    def most_moved(self, used: int) -> tuple[float, float] | None:
        """How far one report raises the share of any range of the first cells at most, and how far its two extremes are
        apart, over all ranges and reports; None where there are too many.

        Between the boundaries of a level's nodes, what a report of that level says about a range is linear in its ends,
        and the largest of linear functions is convex: so the worst range ends at boundaries.
        """
        sizes = [level.shares.size for level in self.levels]
        known = zip(self.levels, sizes, strict=True)
        if not all(level.law.is_searched(size * (size + 1) // 2, size) for level, size in known):
            return None
        raised, apart = 0.0, 0.0
        for place, (level, span) in enumerate(zip(self.levels, self._spans, strict=True)):
            edges = np.unique(np.minimum(np.arange(0, self.leaves + span, span), used))
            first, last = (edges[ends][:, None] for ends in np.triu_indices(edges.size, 1))
            left = span * np.arange(level.shares.size)
            covered = np.minimum(last, left + span) - np.maximum(first, left)
            above, below = level.law.supported(self._of_level(np.maximum(0, covered) / span, place))
            scale = self.people / (level.law.gap * max(1, level.people))
            raised = max(raised, scale * float(above.max()))
            apart = max(apart, scale * float((above - below).max()))
        return raised, apart

    def _of_level(self, covered: Floats, place: int) -> Floats:
        """The weights of a level's nodes in functions that cover so much of each of them."""
        rows, parts = len(covered), [covered]
        for fanout in reversed(self.fanouts[: place + 1]):
            parts.append(parts[-1].reshape(rows, -1, fanout).mean(axis=2))
        parts.reverse()
        carried = np.zeros((rows, 1))
        for number, fanout in enumerate(self.fanouts[: place + 1]):
            own = np.repeat(carried - parts[number], fanout, axis=1) + parts[number + 1]
            carried = own * (1 - self.weights[number])
        found: Floats = own * self.weights[place]
        return found

    # -- anything linear ---------------------------------------------------------------------------

    def read(self, wanted: Floats) -> Readings:
        """Linear functions of the shares of the cells, one row of weights each."""
        shares = np.diff(self._known)
        people = np.maximum(0.0, wanted**2 @ shares - (wanted @ shares) ** 2) / max(1, self.people)
        each = [self._levels(row[None, :]) for row in wanted]
        everything = np.array([float(sum(_covariance(*level)[0, 0] for level in one)) for one in each])
        moved = np.array([np.max([_moved(*level) for level in one], axis=0) for one in each]).reshape(-1, 3).T
        return Readings(wanted @ self.cells, np.maximum(0.0, everything - people), people, *moved)

    def covariance(self, wanted: Floats) -> Floats:
        """Of such functions: noise and sampling error."""
        found: Floats = np.sum([_covariance(*level) for level in self._levels(wanted)], axis=0)
        return found

    def _levels(self, wanted: Floats) -> list[tuple[Level, Floats, Floats]]:
        """The same functions as weights of the shares of each level, and those shares."""
        rows = len(wanted)
        parts, sums = [wanted], [np.diff(self._known)]
        for fanout in reversed(self.fanouts):
            parts.append(parts[-1].reshape(rows, -1, fanout).mean(axis=2))
            sums.append(sums[-1].reshape(-1, fanout).sum(axis=1))
        parts.reverse()
        sums.reverse()
        carried, found = np.zeros((rows, 1)), []
        for place, (fanout, level) in enumerate(zip(self.fanouts, self.levels, strict=True)):
            above = np.repeat(carried - parts[place], fanout, axis=1)
            own = above + parts[place + 1]
            weights = own * self.weights[place]
            carried = own - weights
            found.append((level, weights, sums[place + 1]))
        return found


def _covariance(level: Level, weights: Floats, shares: Floats) -> Floats:
    """Of weighted sums of a level's shares, one row of weights each."""
    total, mean = weights.sum(axis=1), weights @ shares
    square, spread = weights @ weights.T, (weights * shares) @ weights.T
    crossed = np.outer(total, mean) + np.outer(mean, total)
    return covariance_of(level, square, spread, np.outer(total, total), crossed, np.outer(mean, mean))


def covariance_of(
    level: Level, square: Floats, spread: Floats, totals: Floats, crossed: Floats, means: Floats
) -> Floats:
    """The covariance of two such sums: from the sums of w w', w w' f, and products of the sums of w and of w f."""
    if not level.people:
        nothing: Floats = UNHEARD * square
        return nothing
    law = level.law
    noise = law.own * spread + law.other * (square - spread)
    noise = noise + law.pair * (totals - crossed + 2 * spread - square)
    noise = noise + law.mixed * (crossed - 2 * spread)
    found: Floats = (noise / law.gap**2 + spread - means) / level.people
    return found


def _moved(level: Level, weights: Floats, shares: Floats) -> Floats:
    """How far one report can move such a sum, and how far it can lower and raise it, at most."""
    total, size = weights.sum(axis=1), np.abs(weights).sum(axis=1)
    ends = weights.min(axis=1), weights.max(axis=1)
    moved = level.law.moved(total, size, weights @ (level.shares if level.people else shares), ends, weights)
    found: Floats = np.concatenate([size / level.law.gap, moved[0], moved[1]]) / max(1, level.people)
    return found


def thinned(levels: Sequence[Level], fakes: int) -> float:
    """`Evidence.thinned`, where all forged reports may be in the level with the fewest people."""
    fewest = min((level.people for level in levels if level.people), default=0)
    return fewest / (fewest - fakes) if fakes < fewest else math.inf


def _shared(families: Floats, totals: Floats) -> Floats:
    """The nearest shares to each row that are not negative and add up to its total; none where a row is -infinity."""
    size = families.shape[1]
    largest = -np.sort(-families, axis=1)
    finite = np.where(np.isfinite(largest), largest, 0.0)
    excess = (np.cumsum(finite, axis=1) - totals[:, None]) / np.arange(1, size + 1)
    kept = np.maximum(1, (largest > excess).sum(axis=1))
    found: Floats = np.maximum(0.0, families - excess[np.arange(len(families)), kept - 1][:, None])
    return found
