"""The tree code: which long bit strings are common, from noisy counts of the cells of their prefixes.

Levels     level j has counts of the cells of the first l_j bits: the share x of a cell, with the standard error s. A
           cell is a public linear map of the prefix: its share is that of all prefixes that happen to fall into it
Evidence   of a prefix: the likelihood ratio of the share theta, or more, against none:
             theta x / s^2 - theta^2 / (2 s^2) where x < theta, x^2 / (2 s^2) above
           with s^2 + x unit / 3 for s^2, where one report more is worth `unit`: counts of few reports are skewed
           (Bernstein); less the logarithm of its mean where there is nothing, so that exp(evidence) has the mean 1
           there. At most ln(cells / common): a wrong prefix falls with that probability into one of the cells that
           hold something
Odds       score_j = min(0, score_(j-1)) + ln P(new bits | old bits) + evidence_j: the logarithm of the odds that a
           prefix is common. The minimum is there because nothing is more than certain: strong evidence for a prefix
           says nothing about what follows it. P is 2^-bits, or what the domain knows about its answers
Search     level by level: all continuations of the best prefixes, then the best of these, and so on
Clear      a second search, for strings of any spelling: from cells that stand out of the noise, instead of from likely
           continuations, to all prefixes in them. It keeps only those of its final strings that are needed to explain
           these cells
Accept     the best string first. Its share is then taken out of the cells that it is in, so that no other string is
           accepted for the prefix that the two have in common. The odds of the whole string are above e^ACCEPT, and
           those of each of its ends, given what comes before it, above e^BRANCH. What is left in the cells is searched
           again until nothing is accepted: with fewer cells that hold something, caps are higher
False      with nothing common, the expected number of accepted strings is at most e^-ACCEPT = 0.05: the odds are a
           prior times a product of ratios with mean 1, and the priors of all strings add up to one
Source     successive refinement as in Bassily and Smith 2015 and Wang, Li and Jha 2017 (prefix extending), decoded
           softly as a tree code
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.uint8]
Prior = Callable[[Rows, int], Floats]
"""Rows and the place of a byte -> the logarithms of the probabilities of its 256 values, one row each."""

ACCEPT = 3.0
BRANCH = 0.0

BEAM, LIKELY_BEAM = 1 << 15, 1 << 12
"""Prefixes that are carried from one level to the next; fewer where the domain knows which are likely."""
_FEW = 1 << 14
"""Prefixes that are carried over a byte whose evidence comes with the next one."""
_AT_ONCE = 1 << 22
"""Continuations that are looked at together."""
_CLEAR = 1.5
"""The factor by which one level may say more for a string than in the search, after earlier strings are taken out."""
_APART = 3.0
"""Standard errors by which a cell with other common strings in it stands out."""
_MOST_FOUND = 4096
_PLAIN = 1.2
"""The share of a clear cell, as a multiple of the one that is searched for, at least."""
_PASSES, _TINY = 200, 1e-100
_MOST_CLEAR, _CLEAR_BEAM = 256, 1 << 11
"""Cells of a level that stand out, and prefixes in such cells that are carried to the next level."""


class Level(NamedTuple):
    """What the people of one level reported."""

    length: int
    """Bits of the prefix."""
    shares: Floats
    """The share of each cell, unbiased."""
    error: float
    """The standard error of a cell with nothing in it."""
    unit: float
    """What one report adds to the share of a cell that it supports."""
    cells: Callable[[Rows], NDArray[np.int64]]
    """The cells of rows of bytes; bits behind the prefix count for nothing."""


class Beam(NamedTuple):
    """Strings, or prefixes of them, their scores and the logarithms of their priors, level by level."""

    rows: Rows
    scores: Floats
    priors: Floats


# -- evidence ------------------------------------------------------------------------------------------


def evidence(
    shares: Floats, error: Floats | float, theta: float, cap: Floats | float, unit: Floats | float = 0.0
) -> Floats:
    """The logarithm of how much likelier shares are with something common in the cell.

    >>> evidence(np.array([0.0, 0.01, 0.05]), 0.002, 0.01, 9.0).round(2).tolist()
    [-11.33, 10.17, 10.17]
    """
    spread, third = np.square(error), np.asarray(unit) / 3
    x, t = shares / np.sqrt(spread + np.maximum(shares, 0.0) * third), theta / np.sqrt(spread + theta * third)
    ratio = np.where(x < t, t * x - t * t / 2, np.square(np.maximum(x, 0.0)) / 2)
    found: Floats = np.minimum(ratio, cap) - np.log(_mean(t, np.asarray(cap)))
    return found


def _mean(t: Floats, cap: Floats) -> Floats:
    """The mean of the capped ratio where there is nothing: x is standard normal."""
    most = np.sqrt(2 * cap)
    edge = np.where(most > t, most, cap / t + t / 2)  # where the cap is reached
    between = np.maximum(most - t, 0.0) / math.sqrt(2 * math.pi)
    found: Floats = _below(np.minimum(edge - t, 0.0)) + between + np.exp(cap) * _below(-edge)
    return found


def _below(z: Floats) -> Floats:
    found: Floats = np.vectorize(lambda one: 0.5 * math.erfc(-one / math.sqrt(2)), otypes=[float])(z)
    return found


def crowd(levels: Sequence[Level]) -> int:
    """About how many cells of a level hold something common: twice those that stand out of the noise."""
    return 1 + 2 * max((_standing_out(level).size for level in levels), default=0)


def _caps(levels: Sequence[Level]) -> Floats:
    common = crowd(levels)
    return np.array([math.log(max(2.0, level.shares.size / common)) for level in levels])


# -- the search ----------------------------------------------------------------------------------------


def search(levels: Sequence[Level], width: int, theta: float, prior: Prior | None = None) -> Beam:
    """The strings of `width` bytes with the highest scores."""
    beam = BEAM if prior is None else LIKELY_BEAM
    found = Beam(np.zeros((1, width), dtype=np.uint8), np.zeros(1), np.zeros((1, 0)))
    done = 0
    for level, cap in zip(levels, _caps(levels).tolist(), strict=True):
        table = evidence(level.shares, level.error, theta, cap, level.unit)
        before = found.priors
        found = found._replace(scores=np.minimum(found.scores, 0.0), priors=np.zeros((len(found.rows), 1)))
        back = np.arange(len(found.rows))
        for end in _stops(done, level.length):
            last = end == level.length
            found, from_row = _extend(found, done, end, level if last else None, table, prior, beam if last else _FEW)
            back, done = back[from_row], end
        found = found._replace(priors=np.hstack([before[back], found.priors]))
    return found


def _stops(start: int, end: int) -> list[int]:
    """Where the new bits of a level end; those of several bytes are tried byte by byte."""
    if start % 8 or end % 8 or start in (0, end):
        return [end]
    return list(range(start + 8, end + 1, 8))


def _extend(
    found: Beam, start: int, end: int, level: Level | None, table: Floats, prior: Prior | None, most: int
) -> tuple[Beam, NDArray[np.intp]]:
    """The best continuations, and which row each comes from."""
    endings = _endings(start, end, found.rows.shape[1])
    own, above = (None, None) if level is None else (level.cells(endings), level.cells(found.rows))
    kept: list[tuple[Rows, Floats, Floats, NDArray[np.intp]]] = []
    at_once = max(1, _AT_ONCE // len(endings))
    for first in range(0, len(found.rows), at_once):
        part = slice(first, first + at_once)
        new = _log_priors(found.rows[part], start, end, prior)
        scores = found.scores[part, None] + new
        if own is not None and above is not None:
            scores = scores + table[above[part, None] ^ own[None, :]]
        elif scores.shape[1] == 1:
            scores = np.repeat(scores, len(endings), axis=1)
        best = _largest(scores.reshape(-1), most)
        parents, children = np.divmod(best, len(endings))
        costs = found.priors[part][parents] + np.broadcast_to(new, scores.shape).reshape(-1)[best][:, None]
        rows = found.rows[part][parents] | endings[children]
        kept.append((rows, scores.reshape(-1)[best], costs, parents + first))
    rows, scores, costs, back = (np.concatenate(column) for column in zip(*kept, strict=True))
    best = _largest(scores, most)
    return Beam(rows[best], scores[best], costs[best]), back[best]


def _largest(scores: Floats, most: int) -> NDArray[np.intp]:
    if scores.size <= most:
        return np.arange(scores.size)
    return np.argpartition(scores, scores.size - most)[-most:]


def _endings(start: int, end: int, width: int) -> Rows:
    """All values of the bits from `start` to before `end`, other bits zero."""
    count = end - start
    values = np.arange(1 << count, dtype=np.int64)
    rows = np.zeros((1 << count, 8 * width), dtype=np.uint8)
    rows[:, start:end] = (values[:, None] >> np.arange(count - 1, -1, -1)) & 1
    return np.packbits(rows, axis=1)


def _log_priors(rows: Rows, start: int, end: int, prior: Prior | None) -> Floats:
    """The logarithms of the probabilities of all endings after each row; one for all where all are as likely."""
    if prior is None:
        return np.full((len(rows), 1), -(end - start) * math.log(2))
    found = np.zeros((len(rows), 1))
    grown = rows[:, None, :]
    for place in range(start // 8, end // 8):
        step = prior(grown.reshape(-1, rows.shape[1]), place)
        size = grown.shape[1]
        found = (found[:, :, None] + step.reshape(len(rows), size, 256)).reshape(len(rows), -1)
        if place + 1 < end // 8:
            grown = np.repeat(grown, 256, axis=1)
            grown[:, :, place] = np.tile(np.arange(256, dtype=np.uint8), size)
    return found


def clear(levels: Sequence[Level], width: int, theta: float, prior: Prior) -> Beam:
    """The best strings all of whose prefixes fall into cells that stand out of the noise, however they are spelled."""
    found = Beam(np.zeros((1, width), dtype=np.uint8), np.zeros(1), np.zeros((1, 0)))
    done = 0
    for level, cap in zip(levels, _caps(levels).tolist(), strict=True):
        cells = _standing_out(level)
        cells = cells[level.shares[cells] > _PLAIN * theta]
        cells = cells[_largest(level.shares[cells], _MOST_CLEAR)]
        above, own = level.cells(found.rows), level.cells(endings := _endings(done, level.length, width))
        order = np.argsort(own, kind="stable")
        wanted = (above[:, None] ^ cells[None, :]).reshape(-1)
        first, end = (np.searchsorted(own[order], wanted, side) for side in ("left", "right"))
        many = end - first
        pairs = np.repeat(np.arange(wanted.size), many)
        places = np.arange(pairs.size) - np.repeat(np.cumsum(many) - many, many) + first[pairs]
        parents, which = np.divmod(pairs, max(1, cells.size))
        rows = found.rows[parents] | endings[order[places]]
        costs = _log_prior_of(rows, done, level.length, prior)
        ratios = evidence(level.shares[cells], level.error, theta, cap, level.unit)
        scores = np.minimum(found.scores, 0.0)[parents] + costs + ratios[which]
        best = _largest(scores, _CLEAR_BEAM)
        priors = np.hstack([found.priors[parents[best]], costs[best, None]])
        found = Beam(rows[best], scores[best], priors)
        done = level.length
    needed = _needed(levels, found.rows) > theta
    return Beam(found.rows[needed], found.scores[needed], found.priors[needed])


def _needed(levels: Sequence[Level], rows: Rows) -> Floats:
    """The shares with which strings together explain their cells best (EM).

    A wrong string is in the cells of several common ones, which explain these cells without it.
    """
    cells = [np.unique(level.cells(rows), return_inverse=True) for level in levels]
    seen = [np.maximum(level.shares[own], 0.0) for level, (own, _) in zip(levels, cells, strict=True)]
    shares = np.ones(len(rows))
    for _ in range(_PASSES):
        parts = [(own / np.bincount(which, shares))[which] for own, (_, which) in zip(seen, cells, strict=True)]
        shares = np.maximum(shares * np.mean(parts, axis=0), _TINY)
    return shares


def _standing_out(level: Level) -> NDArray[np.intp]:
    """The cells above a limit that about one cell would exceed if nothing were common."""
    limit = -NormalDist().inv_cdf(1 / max(4, level.shares.size))
    spread = level.error**2 + np.maximum(level.shares, 0.0) * level.unit / 3
    return np.flatnonzero(level.shares > limit * np.sqrt(spread))


def _log_prior_of(rows: Rows, start: int, end: int, prior: Prior) -> Floats:
    """The logarithm of the probability of the bits from `start` to before `end` of each row."""
    found = np.zeros(len(rows))
    for first in range(0, len(rows), _FEW):
        part = rows[first : first + _FEW]
        for place in range(start // 8, end // 8):
            found[first : first + _FEW] += prior(part, place)[np.arange(len(part)), part[:, place]]
    return found


def listed(levels: Sequence[Level], rows: Rows) -> Beam:
    """Strings that somebody expects, all of them equally likely, however long they are."""
    rows = np.unique(rows, axis=0)
    bits = np.unpackbits(rows, axis=1)
    priors, before = [], np.full(len(rows), len(rows))
    for level in levels:
        _, same, often = np.unique(bits[:, : level.length], axis=0, return_inverse=True, return_counts=True)
        now = often[same.reshape(-1)]
        priors.append(np.log(now / before))
        before = now
    return Beam(rows, np.zeros(len(rows)), np.stack(priors, axis=1))


def any_of(beams: Sequence[Beam], weights: Sequence[float] | None = None) -> Beam:
    """The strings of all; a string is as likely to be of one kind as of another, or of each kind with its weight."""
    weights = [1 / len(beams)] * len(beams) if weights is None else weights
    rows, scores, priors = (np.concatenate(column) for column in zip(*beams, strict=True))
    priors[:, 0] += np.repeat(np.log(weights), [len(beam.rows) for beam in beams])
    return Beam(rows, scores, priors)


# -- what is accepted ----------------------------------------------------------------------------------


def accept(levels: Sequence[Level], found: Beam, theta: float) -> tuple[NDArray[np.intp], list[Level]]:
    """Which of the strings are common, the clearest first, and the levels without them."""
    cells = np.stack([level.cells(found.rows) for level in levels], axis=1)
    shares = np.stack([level.shares[cells[:, place]] for place, level in enumerate(levels)], axis=1)
    errors = np.array([level.error for level in levels])
    units = np.array([level.unit for level in levels])
    caps = _CLEAR * _caps(levels)
    rest = [level._replace(shares=level.shares.copy()) for level in levels]
    chosen: list[int] = []
    left = np.ones(len(shares), dtype=np.bool_)
    while len(chosen) < _MOST_FOUND:
        gains = evidence(shares, errors, theta, caps, units) + found.priors
        ends = np.cumsum(gains[:, ::-1], axis=1)[:, ::-1]
        whole, branch = ends[:, 0] - ACCEPT, ends[:, 1:].min(axis=1, initial=np.inf) - BRANCH
        score = np.where(left, np.minimum(whole, branch), -np.inf)
        best = int(np.argmax(score)) if score.size else -1
        if best < 0 or score[best] <= 0:
            break
        chosen.append(best)
        left[best] = False
        own = _own_share(shares[best], errors)
        shares = shares - own * (cells == cells[best])
        for place, level in enumerate(rest):
            level.shares[cells[best, place]] -= own
    return np.array(chosen, dtype=np.intp), rest


def _own_share(shares: Floats, errors: Floats) -> float:
    """The share of one string, from its cells: the mean of the last levels, down to where others share its prefix.

    >>> _own_share(np.array([0.5, 0.11, 0.1, 0.09]), np.full(4, 0.01))
    0.1
    """
    weight, total = errors[-1] ** -2, errors[-1] ** -2 * shares[-1]
    for share, error in zip(shares[-2::-1], errors[-2::-1], strict=True):
        if share - total / weight > _APART * math.sqrt(error**2 + 1 / weight):
            break
        weight, total = weight + error**-2, total + error**-2 * share
    return float(total / weight)
