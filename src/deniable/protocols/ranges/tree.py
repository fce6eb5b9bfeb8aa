"""A tree of counts over ordered cells: consistent by least squares, and what any range of cells is worth.

Tree       the root is everybody; a node of level l - 1 has `fanouts[l - 1]` children, cells are the nodes of the last
           level. Each level was asked of people of its own: `Level` has the unbiased shares of its nodes
Up         z = a y + (1 - a) (the children's z): a is the best weight, from the variances of y and of that sum
Down       u = z + (the parent's u - all siblings' z) / fanout, from a root of 1: the least-squares solution
           (Hay et al. 2010), in which every parent is the sum of its children
Positive   of levels with up to 2^9 nodes by a fit (`fit.py`); from there on down, the children's u become the
           nearest shares that are not negative and add up to the parent
Range      cells [a, b) add up to a linear function of all y. Its weights differ within the families on the way to a and
           to b alone: O(levels) different ones per level, whatever the number of cells
Forged     how far one report can move a range, and any of them: from what it can support (`forged.py`)
Error      of one report of level l with weights w over its nodes, given the answer x, with T the sum of w and Q of w^2:
             (own w_x^2 + other (Q - w_x^2) + pair ((T - w_x)^2 - (Q - w_x^2)) + mixed 2 w_x (T - w_x)) / gap^2
           averaged over the answers it needs only the sums of w f and w^2 f, with f the shares of the nodes. Sampling
           errors of all levels are in it: of them, the part that those who answered do not have is taken out
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.protocols.ranges.fit import Seen, fitted
from deniable.protocols.ranges.forged import (
    affine_sums,
    any_nodes,
    block_climb,
    climbed,
    extremes,
    has_blocks,
    heaviest,
    one_node,
    set_count,
    walsh,
)
from deniable.results import Floats
from deniable.results.distribution import Readings
from deniable.results.smooth import MOST_CELLS as MOST_LINEAR, Linear

UNHEARD = 1e12
"""The variance of a share that nobody has reported about: so large that its weight vanishes."""


MOST_FITTED = 1 << 9
"""Nodes of a level, up to which it is fitted."""
_MOST_SETS, MOST_COMPARED = 1 << 14, 1 << 25
"""Sets of nodes that are compared for one range, and sums over sets that are compared at once."""
_MOST_PAIRED, _MOST_LISTED, _MOST_PREFIXES = 1 << 6, 300_000, 1 << 16
"""Nodes of a level up to which each range is compared with each set; ranges up to which all are listed; and nodes up to
which those from the first cell on are."""
_MOST_DENSE, _MOST_WEIGHTS = 1 << 12, 1 << 21
"""Nodes of a level up to which their weights are transformed, and weights of nodes in all prefixes up to which."""
_AT_ONCE, _FORGED_AT_ONCE = 1 << 13, 1 << 8
"""Ranges that are worked on at once."""


class SupportLaw(NamedTuple):
    """Variances and covariances of what one report supports, given its answer."""

    own: float
    """The variance for the answer itself: p (1 - p)."""
    other: float
    """The variance for another answer: q (1 - q)."""
    pair: float
    """The covariance between two other answers."""
    mixed: float
    """The covariance between the answer and another one."""
    gap: float
    """p - q."""
    other_rate: float
    """q."""

    kept: int | None = None
    """The number of nodes that a report supports, if it is fixed."""
    hash_bits: int | None = None
    """For linear hashing: a report supports the nodes that up to this many parities of their numbers choose."""

    def is_compared(self, nodes: int, sets: float) -> bool:
        """Whether a report of hashes can support at most `sets` different sets of `nodes` nodes."""
        return self.hash_bits is not None and set_count(nodes, self.hash_bits) <= sets

    def supported(self, weights: Floats, nodes: Floats | None = None, sets: float = _MOST_SETS) -> Floats:
        """The largest and the smallest sum of weights that one report supports, one row of weights each.

        nodes  how many nodes have each weight; by default one
        sets   for linear hashing: up to this number of sets, all are compared

        Exact for a fixed number of nodes, and where all sets are compared. Else a bound: the sum over an affine set is
        a mean of signed values of the Walsh transform (`affine_sums`), and it is not beyond that of any nodes.
        """
        if self.kept is not None:
            many = np.ones_like(weights) if nodes is None else nodes
            return np.stack([heaviest(weights, many, self.kept), -heaviest(-weights, many, self.kept)])
        each = weights if nodes is None else nodes * weights
        found: Floats = np.stack([np.maximum(each, 0.0).sum(axis=1), np.minimum(each, 0.0).sum(axis=1)])
        if nodes is not None or self.hash_bits is None or weights.shape[1] > _MOST_DENSE:
            return found
        spectrum = walsh(weights)
        if self.is_compared(weights.shape[1], sets):
            some = [slice(start, start + _FORGED_AT_ONCE) for start in range(0, len(weights), _FORGED_AT_ONCE)]
            return np.hstack([extremes(spectrum[rows], self.hash_bits) for rows in some])
        total, part = spectrum[:, 0], 0.5**self.hash_bits
        reach = (1 - part) * np.abs(spectrum[:, 1:]).max(axis=1)
        found[0] = np.minimum(found[0], np.maximum(total, part * total + reach))
        found[1] = np.maximum(found[1], np.minimum(total, part * total - reach))
        return found

    def moved(self, weights: Floats, mean: Floats, nodes: Floats | None = None, sets: float = _MOST_SETS) -> Floats:
        """How far one report can lower and raise a weighted sum of shares, which is `mean` now: at most, and exactly so
        far where `supported` is exact."""
        above, below = self.supported(weights, nodes, sets)
        total = self.other_rate * (weights if nodes is None else nodes * weights).sum(axis=1)
        found: Floats = np.stack([(above - total) / self.gap - mean, (total - below) / self.gap + mean])
        return found


class Level(NamedTuple):
    """What the people of one level said."""

    people: int
    shares: Floats
    """Unbiased, one per node; of no matter where nobody reported."""
    law: SupportLaw

    @property
    def variance(self) -> float:
        """The variance of the share of a node, if all nodes are equally common."""
        share, law = 1 / self.shares.size, self.law
        one = (share * law.own + (1 - share) * law.other) / law.gap**2 + share * (1 - share)
        return one / self.people if self.people else UNHEARD


@dataclass(frozen=True, eq=False)
class Tree:
    """The levels of one collection, made consistent.

    >>> law = SupportLaw(0.2, 0.2, 0.0, 0.0, 0.5, 0.25)
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

    def ranges(
        self,
        begin: Sequence[int] | NDArray[np.int64],
        end: Sequence[int] | NDArray[np.int64],
        forged: bool = False,
    ) -> Readings:
        """The shares of the cells from each `begin` to before each `end`. With `forged` also how far one report can
        lower and raise them; else that is nan."""
        first = np.asarray(begin, dtype=np.int64)
        last = np.maximum(first, np.asarray(end, dtype=np.int64))
        at_once = _FORGED_AT_ONCE if forged else _AT_ONCE
        parts = [slice(start, start + at_once) for start in range(0, first.size, at_once)]
        found = [self._spread(first[some], last[some], forged) for some in parts]
        everything, most, down, up = np.hstack([np.zeros((4, 0)), *found])
        share = self._known[last] - self._known[first]
        people = np.clip(share * (1 - share), 0.0, None) / max(1, self.people)
        value = self._sums[last] - self._sums[first]
        return Readings(value, np.maximum(0.0, everything - people), people, most, down, up)

    def thinned(self, fakes: int) -> float:
        return thinned(self.levels, fakes)

    def _spread(self, begin: NDArray[np.int64], end: NDArray[np.int64], forged: bool) -> Floats:
        """The variances of the shares of some ranges, and how far one report can move, lower and raise them."""
        everything, most = np.zeros((2, begin.size))
        moved = np.full((2, begin.size), 0.0 if forged else np.nan)
        for place, (weights, nodes, shares) in enumerate(self._pieces(begin, end)):
            level, law = self.levels[place], self.levels[place].law
            total, mean = (nodes * weights).sum(axis=1), (weights * shares).sum(axis=1)
            square, spread = (nodes * weights**2).sum(axis=1), (weights**2 * shares).sum(axis=1)
            everything += covariance_of(level, square, spread, total**2, 2 * total * mean, mean**2)
            size = (nodes * np.abs(weights)).sum(axis=1)
            most = np.maximum(most, size / (law.gap * max(1, level.people)))
            if forged and law.hash_bits is not None and level.shares.size <= _MOST_DENSE:
                each = self._prefixes(end, place) - self._prefixes(begin, place)
                moved = np.maximum(moved, law.moved(each, mean) / max(1, level.people))
            elif forged:
                moved = np.maximum(moved, law.moved(weights, mean, nodes) / max(1, level.people))
        return np.stack([everything, most, *moved])

    def _pieces(self, begin: NDArray[np.int64], end: NDArray[np.int64]) -> Iterator[tuple[Floats, Floats, Floats]]:
        """For each level: the weights that its nodes have in some ranges, how many nodes have each, and their shares.

        As in `_levels`. On the way to either end, one node per level is cut; what lies under its siblings has the
        weights of these siblings. Only four of these weights are different: before the begin, behind it, before the end
        and behind it. So a few weights describe all nodes.
        """
        ends = np.minimum(np.stack([begin, end], axis=1), self.leaves - 1)
        carried = np.zeros(ends.shape)
        part = np.repeat(((end - begin) / self.leaves)[:, None], 2, axis=1)
        weights, nodes, shares = np.zeros((3, begin.size, 0))
        for fanout, span, weight in zip(self.fanouts, self._spans, self.weights, strict=True):
            way = ends // span
            first, last = way.T
            eldest = way - way % fanout
            one = eldest[:, 0] == eldest[:, 1]
            lows = [eldest[:, 0], first + 1, np.where(one, last, eldest[:, 1]), last + 1]
            highs = [first, np.where(one, last, eldest[:, 0] + fanout), last, eldest[:, 1] + fanout]
            low = np.stack([*lows, first, last], axis=1)
            high = np.maximum(low, np.stack([*highs, first + 1, last + (first < last)], axis=1))
            left = way * span
            inside = np.minimum(end[:, None], left + span) - np.maximum(begin[:, None], left)
            below = np.maximum(0, inside) / span
            own = (carried - part)[:, [0, 0, 1, 1, 0, 1]] + np.hstack([np.tile([0.0, 1, 1, 0], (begin.size, 1)), below])
            weights, nodes = np.hstack([weights, own]), np.hstack([nodes * fanout, high - low])
            shares = np.hstack([shares, self._known[high * span] - self._known[low * span]])
            yield weight * weights, nodes, shares
            carried, part = (1 - weight) * own[:, 4:], below
            weights, nodes, shares = (1 - weight) * weights[:, :-2], nodes[:, :-2], shares[:, :-2]

    # -- forged reports ----------------------------------------------------------------------------

    def most_moved(self, used: int) -> tuple[float, float]:
        """How far one report raises the share of any range of the first cells at most, in honest reports, and how far
        its two extremes are apart: over all ranges and reports.

        Between the boundaries of a level's nodes, what a report of that level says about a range is linear in its ends,
        and the largest of linear functions is convex: so the worst range ends at boundaries.
        """
        found = [self._most(place, used) for place in range(len(self.levels))]
        return max(raised for raised, _ in found), max(apart for _, apart in found)

    def _most(self, place: int, used: int) -> tuple[float, float]:
        """The same of reports of one level."""
        level = self.levels[place]
        raised, apart = self._most_hashed(place, used) or self._most_listed(place, used)
        scale = self.people / (level.law.gap * max(1, level.people))
        return scale * raised, scale * apart

    def _most_hashed(self, place: int, used: int) -> tuple[float, float] | None:
        """For reports of hashes, if a search is short: how far a report raises a range, exactly. Its two extremes are
        compared range by range if nodes are few; else they are at most as far apart as it can raise one range and
        lower another. (With one hash bit this is exact: what a report does not support, another one does.)
        """
        law, size = self.levels[place].law, self.levels[place].shares.size
        fanouts, gains, bits = self.fanouts[: place + 1], self._gains(place), law.hash_bits
        if bits is None:
            return None
        edges = self._edges(place, used)
        if size <= _MOST_PAIRED and law.is_compared(size, 2 * MOST_COMPARED / edges.size**2):
            prefixes = self._prefixes(edges, place)
            begin, end = np.triu_indices(edges.size, 1)
            above, below = law.supported(prefixes[end] - prefixes[begin], sets=MOST_COMPARED)
            return float(above.max()), float((above - below).max())
        if has_blocks(fanouts, bits):
            up = block_climb(fanouts, gains, bits, used / self._spans[place])
            down = max(block_climb(fanouts, gains, bits, size, rising) for rising in (False, True))
            return up, up + down
        if edges.size * size <= _MOST_WEIGHTS and law.is_compared(size, MOST_COMPARED / edges.size):
            each = [climbed(sums) for sums in affine_sums(walsh(self._prefixes(edges, place)), bits)]
            up, down = (max(ways) for ways in zip(*each, strict=True))
            return up, up + down
        return None

    def _most_listed(self, place: int, used: int) -> tuple[float, float]:
        """Over a list of ranges: exact where a report supports a fixed number of nodes; else a bound, of any nodes.

        Ranges that siblings in another order, or all nodes from behind, make out of each other have the same weights.
        So of each family on the way to the first cell, the begin is in the first child alone, and at least as far from
        its end as the end is from where its own child begins. If these ranges are too many, each is the difference of
        two from the first cell on, and that is a bound. If even those are too many, so is what single nodes or families
        say at most; of one node it is exact how far it is raised.
        """
        law, size = self.levels[place].law, self.levels[place].shares.size
        fanouts, gains = self.fanouts[: place + 1], self._gains(place)
        if law.kept is None:
            most = 2 * any_nodes(fanouts, gains)
        else:
            most = min(law.kept, size - law.kept) * one_node(fanouts, gains)
        if size > _MOST_PREFIXES:
            return most, 2 * most
        edges, within, some, terms = self._edges(place, used), self.leaves, [], 1
        for span in self._spans[: place + 1]:
            begin, end = edges[edges < span], edges[(edges >= min(span, used)) & (edges <= within)]
            if begin.size * end.size > _MOST_LISTED:
                some, terms = [np.stack([np.zeros_like(edges), edges])], 2
                break
            first, last = (each.reshape(-1) for each in np.meshgrid(begin, end))
            chosen = (first < last) & ((span - first >= last % span) | (last == used))
            some.append(np.stack([first, last])[:, chosen])
            within = span
        ranges = np.hstack(some)
        up, down, apart = 0.0, 0.0, 0.0
        for start in range(0, ranges.shape[1], _AT_ONCE):
            weights, nodes, _ = next(islice(self._pieces(*ranges[:, start : start + _AT_ONCE]), place, None))
            above, below = law.supported(weights, nodes)
            up, down = max(up, float(above.max())), max(down, -float(below.min()))
            apart = max(apart, float((above - below).max()))
        return min(most, up if terms == 1 else up + down), min(2 * most, terms * apart)

    def _edges(self, place: int, used: int) -> NDArray[np.int64]:
        """Where the nodes of a level begin among the first cells, and where these end."""
        return np.append(np.arange(0, used, self._spans[place]), used)

    def _gains(self, place: int) -> list[float]:
        """What the families on the way to a node of a level count there, from the root on."""
        left = [1 - weight for weight in self.weights[:place]]
        return [self.weights[place] * math.prod(left[top:]) for top in range(place + 1)]

    def _prefixes(self, ends: NDArray[np.int64], place: int) -> Floats:
        """The weights of a level's nodes in the ranges from the first cell to some ends."""
        nodes = np.arange(self.levels[place].shares.size)
        return self._of_level(np.clip(ends[:, None] / self._spans[place] - nodes, 0.0, 1.0), place)

    def _of_level(self, covered: Floats, place: int) -> Floats:
        """The weights of a level's nodes in functions that cover the part `covered` of each node."""
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

    def linear(self, cells: int) -> Linear:
        """The shares of the nodes of all levels; of levels with too many nodes, those of the nodes above them."""
        finest = max(place for place, level in enumerate(self.levels) if level.shares.size <= MOST_LINEAR or not place)
        span = self._spans[finest]
        edges = np.minimum(np.arange(-(-cells // span) + 1) * span, cells)
        parts, shares = [], np.diff(self._known)
        for level, own in zip(self.levels, self._spans, strict=True):
            wide = max(own, span)
            used = -(-cells // wide)
            sums = (level.shares if level.people else np.zeros_like(level.shares)).reshape(-1, wide // own).sum(axis=1)
            inside = (edges[:-1] // wide == np.arange(used)[:, None]).astype(np.float64)
            parts.append((inside, sums[:used], np.full(used, wide / own * level.variance)))
        chances, seen, variance = (np.concatenate(one) for one in zip(*parts, strict=True))
        ends = np.cumsum([len(one[0]) for one in parts])[:-1]

        def moved(weights: Floats, forged: bool) -> Floats:
            found = np.zeros((4, len(weights)))
            for level, own, each in zip(self.levels, self._spans, np.split(weights, ends, axis=1), strict=True):
                whole = np.zeros((len(each), level.shares.size))
                repeated = np.repeat(each, max(own, span) // own, axis=1)
                whole[:, : repeated.shape[1]] = repeated
                total, mean = whole.sum(axis=1), whole @ shares.reshape(level.shares.size, -1).sum(axis=1)
                square, spread = (whole**2).sum(axis=1), whole**2 @ shares.reshape(level.shares.size, -1).sum(axis=1)
                found[0] += covariance_of(level, square, spread, total**2, 2 * total * mean, mean**2)
                people = max(1, level.people)
                found[1] = np.maximum(found[1], np.abs(whole).sum(axis=1) / (level.law.gap * people))
                if forged:
                    found[2:] = np.maximum(found[2:], level.law.moved(whole, mean) / people)
            return found

        return Linear(edges, chances, seen, variance, moved, self.people)

    def read(self, wanted: Floats) -> Readings:
        """Linear functions of the shares of the cells, one row of weights each."""
        shares = np.diff(self._known)
        people = np.maximum(0.0, wanted**2 @ shares - (wanted @ shares) ** 2) / max(1, self.people)
        each = [self._levels(row[None, :]) for row in wanted]
        everything = np.array([float(sum(_covariance(*level)[0, 0] for level in one)) for one in each])
        moved = np.array([np.max([_moved(*level) for level in one], axis=0) for one in each]).reshape(-1, 3).T
        return Readings(wanted @ self.cells, np.maximum(0.0, everything - people), people, *moved)

    def covariance(self, wanted: Floats) -> Floats:
        """The covariance of such functions: noise and sampling error."""
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
    """The covariance of weighted sums of a level's shares, one row of weights each."""
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
    size = np.abs(weights).sum(axis=1)
    moved = level.law.moved(weights, weights @ (level.shares if level.people else shares))
    found: Floats = np.concatenate([size / level.law.gap, *moved]) / max(1, level.people)
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
