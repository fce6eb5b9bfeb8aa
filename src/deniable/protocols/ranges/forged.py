"""Which nodes of a level one forged report can support together, and how far that moves a range.

Sets       for randomized response and subset selection, any set of a fixed number of nodes. For linear hashing with b
           bits, an affine set: the nodes whose numbers, as words of bits, have up to b given parities. A forger chooses
           them freely
Sum        what a set S says about the cells [begin, end) is F(end) - F(begin), with F(e) the sum over S of the weights
           of the prefix [0, e). So for one set, one pass over the prefixes compares all ranges (`climbed`)
Families   with fan-outs that are powers of two, the bits of a node's number are those of its digits, one digit per
           family from the root on. A parity is settled by the last digit that it has: r of them leave 2^-r of the
           children alive in each family that is alive itself. In the family on the way to e, where e has the digit d,
             g s (alive before d - d 2^-r + part (1 - 2^-r))
           is added to F(e): g is the weight of the family, s counts the nodes of S under a child that is alive, and
           part is how much of the child on the way lies before e. In two families of one depth, the parities have the
           same linear form, and offsets of the forger's choice. If the child on the way is not alive, an end at the
           border of one that is does as well: so both ways stay alive. The rest is a search over digits from the leaves
           up, which keeps the pairs (part, F) unless another one is better whatever a part is worth further up
           (`block_climb`)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from deniable.results import Floats

_AT_ONCE = 1 << 19
"""Sums that are held at once."""
_MOST_FORMS = 1 << 22
"""Sets of children of one family, times pairs of them, up to which `block_climb` is asked."""


def heaviest(weights: Floats, nodes: Floats, kept: int) -> Floats:
    """The largest sum of the weights of `kept` nodes, per row of weights; `nodes` is how many nodes have each weight.

    >>> heaviest(np.array([[0.5, 2.0, -1.0]]), np.array([[2.0, 1.0, 9.0]]), 2).tolist()
    [2.5]
    """
    found: Floats
    if kept == 1:
        found = np.where(nodes > 0, weights, -np.inf).max(axis=1)
        return found
    order = np.argsort(-weights, axis=1)
    ordered, many = np.take_along_axis(weights, order, axis=1), np.take_along_axis(nodes, order, axis=1)
    before = np.cumsum(many, axis=1) - many
    found = (ordered * np.clip(kept - before, 0, many)).sum(axis=1)
    return found


def climbed(sums: Floats) -> tuple[float, float]:
    """How far a later row lies above an earlier one at most, in one column, and how far below.

    >>> climbed(np.array([[0.0, 0.0], [3.0, 4.0], [1.0, -1.0], [2.0, 4.0]]))
    (5.0, 5.0)
    """
    low, high = sums[0].copy(), sums[0].copy()
    up, down = 0.0, 0.0
    for row in sums:
        up, down = max(up, float((row - low).max())), max(down, float((high - row).max()))
        np.minimum(low, row, out=low)
        np.maximum(high, row, out=high)
    return up, down


def any_nodes(fanouts: Sequence[int], gains: Sequence[float]) -> float:
    """A bound for the sum of the weights of any nodes, of all prefixes: in each family on the way to the end, the
    children before it."""
    nodes, found = 1, 0.0
    for fanout, gain in zip(reversed(fanouts), reversed(gains), strict=True):
        found += gain * nodes * (fanout // 2) * (fanout - fanout // 2) / fanout
        nodes *= fanout
    return found


def one_node(fanouts: Sequence[int], gains: Sequence[float]) -> float:
    """The largest weight of a node, over all ranges: of the range of this node alone, as the gains grow downwards."""
    part, found = 1.0, 0.0
    for fanout, gain in zip(reversed(fanouts), reversed(gains), strict=True):
        found += gain * part * (1 - 1 / fanout)
        part /= fanout
    return found


# -- affine sets ---------------------------------------------------------------------------------------


def set_count(nodes: int, parities: int) -> int:
    """How many sets `affine_sums` compares."""
    bits = _bits(nodes)
    return sum(space_count(bits, size) << size for size in range(1, min(parities, bits) + 1))


def affine_sums(spectrum: Floats, parities: int) -> Iterator[Floats]:
    """The sums of weights over all sets of numbers that up to `parities` parities of their bits choose, from the Walsh
    transform of the weights: one row each, one column per set; some sets at a time.

    The sum over such a set is a mean of values of the transform, over the space that the parities span, with signs: so
    those of all sets of one space are found by a small transform of these values.
    """
    rows, words = spectrum.shape
    yield spectrum[:, :1]
    for size in range(1, min(parities, _bits(words)) + 1):
        spaces, signs = subspaces(_bits(words), size), walsh(np.eye(1 << size)) / (1 << size)
        at_once = max(1, _AT_ONCE // (rows << size))
        for start in range(0, len(spaces), at_once):
            values = np.take(spectrum, spaces[start : start + at_once].T, axis=1)
            yield (signs @ values).reshape(rows, -1)


def extremes(spectrum: Floats, parities: int) -> Floats:
    """The largest and the smallest of these sums in each row.

    >>> extremes(walsh(np.array([[1.0, -1.0, 2.0, 0.0]])), 1).tolist()
    [[3.0], [-1.0]]
    """
    each = [(sums.max(axis=1), sums.min(axis=1)) for sums in affine_sums(spectrum, parities)]
    return np.stack([np.max([high for high, _ in each], axis=0), np.min([low for _, low in each], axis=0)])


def walsh(values: Floats) -> Floats:
    """The Walsh-Hadamard transform of each row, filled up with zeros.

    >>> walsh(np.array([[3.0, 1.0, 0.0]])).tolist()
    [[4.0, 2.0, 4.0, 2.0]]
    """
    rows, length = values.shape
    found: Floats = np.pad(values, ((0, 0), (0, (1 << _bits(length)) - length)))
    for place in range(_bits(length)):
        first, second = np.moveaxis(found.reshape(rows, -1, 2, 1 << place), 2, 0)
        first += second
        second *= -2
        second += first
    return found


def _bits(nodes: int) -> int:
    return max(1, (nodes - 1).bit_length())


def space_count(bits: int, size: int) -> int:
    """The number of spaces of `size` dimensions in the words of `bits` bits.

    >>> space_count(6, 2), space_count(6, 3)
    (651, 1395)
    """
    count = 1
    for place in range(size):
        count = count * ((1 << bits - place) - 1) // ((1 << place + 1) - 1)
    return count


@lru_cache(maxsize=64)
def subspaces(bits: int, size: int) -> NDArray[np.int64]:
    """All spaces of `size` dimensions of words of bits, each with its words: one row each, in the order of a basis.

    Each has one basis of words whose highest bits, all different, no other word of the basis has.

    >>> subspaces(2, 1).tolist(), len(subspaces(6, 2)), len(subspaces(6, 3))
    ([[0, 1], [0, 2], [0, 3]], 651, 1395)
    """
    found = []
    for highest in combinations(range(bits), size):
        spaces = np.zeros((1, 1), dtype=np.int64)
        for place in highest:
            words = np.array([1 << place])
            for lower in sorted(set(range(place)) - set(highest)):
                words = np.concatenate([words, words | 1 << lower])
            other = (spaces[:, None] ^ words[:, None]).reshape(-1, spaces.shape[1])
            spaces = np.hstack([np.repeat(spaces, words.size, axis=0), other])
        found.append(spaces)
    return np.concatenate(found)


# -- families of powers of two -------------------------------------------------------------------------

_Points = dict[int, Floats]
"""By the number of parities: parts and values, two rows."""


def has_blocks(fanouts: Sequence[int], parities: int) -> bool:
    """Whether `block_climb` can be asked: all fan-outs but the first are powers of two, and none is large."""
    forms = sum(fanout**2 * (1 + set_count(fanout, parities)) for fanout in set(fanouts))
    return forms <= _MOST_FORMS and all(fanout & fanout - 1 == 0 for fanout in fanouts[1:])


def block_climb(
    fanouts: Sequence[int], gains: Sequence[float], parities: int, used: float, rising: bool = True
) -> float:
    """How far F(end) lies above F(begin) at most, over all sets that up to `parities` parities choose, and all
    begin < end <= used, in nodes of the last level. Not `rising`: over end < begin, of all nodes.

    >>> round(block_climb([4, 4], [0.2, 1.0], 2, 16), 6)
    2.2
    """
    limits, rest = _digits(fanouts, used), used % 1.0
    # Both ends are in two nodes, with the parts before the end and behind the begin; or in one, with the part between.
    # The second of each: if the end is in the last node that is used.
    two: list[_Points] = [{0: np.array([[part], [0.0]])} for part in (2.0, 1.0 + rest)]
    one: list[_Points] = [{0: np.array([[part], [0.0]])} for part in ((1.0, rest) if rising else (0.0, 0.0))]
    nodes = 1
    for fanout, gain, limit in zip(reversed(fanouts), reversed(gains), reversed(limits), strict=True):
        ends = [[(0, fanout)], [(0, limit), (limit, limit + 1)] if rising else [(0, fanout)]]
        made = [_family(fanout, gain * nodes, parities, two, one, each, rising) for each in ends]
        two, one = [each[0] for each in made], [each[1] for each in made]
        nodes *= fanout
    return max(float(values.max()) for _, values in one[1].values())


def _family(
    fanout: int,
    gain: float,
    most: int,
    two: list[_Points],
    one: list[_Points],
    ends: list[tuple[int, int]],
    rising: bool,
) -> tuple[_Points, _Points]:
    """Both ends in two families of one depth, and in one, from what is known of the children at which they are; those
    of the end are given for each way to go on there."""
    apart: dict[int, list[Floats]] = {}
    together: dict[int, list[Floats]] = {}
    for parities in range(min(most, _bits(fanout)) + 1):
        for (low, high), wide, narrow in zip(ends, two, one, strict=False):
            for slope, pairs, single in _forms(fanout, parities, low, min(high, fanout), rising):
                for left in (known for known in wide if known + parities <= most):
                    scale = gain / (1 << left)

                    def higher(digits: Floats, points: Floats, scale: float = scale, slope: float = slope) -> Floats:
                        parts = (digits[0][:, None] + points[0]) / fanout
                        values = scale * (digits[1][:, None] + slope * points[0]) + points[1]
                        return np.stack([parts, values]).reshape(2, -1)

                    behind = wide[left] - [[1.0], [0.0]]
                    apart.setdefault(left + parities, []).append(higher(pairs, wide[left]))
                    together.setdefault(left + parities, []).append(higher(single, behind))
                    together[left + parities].append(higher(np.zeros((2, 1)), narrow[left]))
    found = [{size: _frontier(np.hstack(each)) for size, each in known.items()} for known in (apart, together)]
    return found[0], found[1]


@lru_cache(maxsize=256)
def _forms(fanout: int, parities: int, low: int, high: int, rising: bool) -> list[tuple[float, Floats, Floats]]:
    """What `parities` parities can do among the children of a family, by the part of them that is not alive.

    Points of two digits, with how many children before the end are alive, more than on average, less those before the
    begin: with both ends in two families (of the begin both are counted from behind), and in one. The end has a digit
    from low to high.
    """
    place = np.arange(fanout)
    later = place[:, None] > place if rising else place[:, None] < place
    inside = (place >= low) & (place < high)
    pairs: dict[int, list[Floats]] = {}
    single: dict[int, list[Floats]] = {}
    for words in subspaces(_bits(fanout), parities) if parities else np.zeros((1, 1), dtype=np.int64):
        signs = np.bitwise_count(place[:, None] & words) & 1
        alike = (signs[:, None] == signs[None]).all(axis=2)
        alive = alike.sum(axis=1)
        before = np.tril(alike, -1).sum(axis=1) - place * alive / fanout
        for many in set(alive[inside].tolist()):
            ends = (inside & (alive == many))[:, None]
            end, begin = np.nonzero(ends & (alive == many))
            pairs.setdefault(many, []).append(np.stack([end + begin, before[end] + before[begin]]))
            end, begin = np.nonzero(ends & alike & later)
            single.setdefault(many, []).append(np.stack([end - begin, before[end] - before[begin]]))
    return [
        (1 - many / fanout, _frontier(np.hstack(pairs[many])), _frontier(np.hstack(single[many]))) for many in pairs
    ]


def _frontier(points: Floats) -> Floats:
    """The points that have the largest value + c part for some c >= 0."""
    order = np.lexsort((-points[1], -points[0]))
    part, value = points[:, order]
    kept = np.append(True, value[1:] > np.maximum.accumulate(value)[:-1])[: value.size]
    hull: list[tuple[float, float]] = []
    for x, y in zip(part[kept].tolist(), value[kept].tolist(), strict=True):
        while len(hull) > 1 and _is_below(hull[-2], hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    return np.array(hull).reshape(-1, 2).T


def _is_below(first: tuple[float, float], middle: tuple[float, float], last: tuple[float, float]) -> bool:
    """Whether the middle one of three points, with falling parts, is not above the line between the others."""
    return (middle[1] - first[1]) * (first[0] - last[0]) <= (last[1] - first[1]) * (first[0] - middle[0])


def _digits(fanouts: Sequence[int], number: float) -> list[int]:
    """The digits of a whole number, the first one without a limit."""
    found, whole = [], int(number)
    for fanout in reversed(fanouts[1:]):
        whole, digit = divmod(whole, fanout)
        found.append(digit)
    return [whole, *reversed(found)]
