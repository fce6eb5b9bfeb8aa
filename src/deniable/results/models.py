"""Models of whole records: one distribution behind all tables, the source of any table and of synthetic records.

Every model starts from the unbiased tables and the exact variance of their cells.

independent    the product of the shares of the single columns
max-entropy    tables made consistent and non-negative, then the distribution with the largest entropy that has them
               (iterative proportional fitting): with all pairs this is CALM
shrink         the same, but first each interaction d (excess of a table over the product of its columns) is multiplied
               by max(0, 1 - freedom variance / |d|^2), so that a table that is all noise becomes independence
latent         sum_z pi_z prod_j P_j(x_j | z), fitted to the tables by weighted least squares. The number of classes has
               the smallest Cp = chi^2 + 2 parameters, because the variance of the noise is known
blend          tables halfway between those of shrink and those of latent, whose errors differ, then the distribution
               with the largest entropy that has them: the smallest error on the census table, on which it was chosen,
               and in most cases on others (docs/protocols/joint.md)

Source         consistency: Qardaji et al. 2014 (PriView), Zhang et al. 2018 (CALM); shrinkage: James and Stein 1961;
               Cp: Mallows 1973
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from deniable._threads import one_thread
from deniable.errors import MismatchError
from deniable.results.rows import Floats

MOST_CELLS = 1 << 18
"""Maximum number of cells of a distribution of whole records that is stored as one table."""
MOST_CLASSES = 24
_SWEEPS, _CLOSE = 60, 1e-6
_STARTS = 3

Axes = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Seen:
    """One requested table: unbiased shares, the variance of a cell, and the people."""

    view: Axes
    shares: Floats
    variance: float
    people: float


@dataclass(frozen=True, eq=False)
class Evidence:
    """All requested tables."""

    sizes: tuple[int, ...]
    tables: tuple[Seen, ...]

    @cached_property
    def singles(self) -> list[Floats]:
        """The shares of each column, from all tables that have it, by inverse variance; non-negative, with sum one.

        A column that no table has is uniform.
        """
        found = []
        for column, size in enumerate(self.sizes):
            total, weights = np.zeros(size), 0.0
            for seen in self.tables:
                if column in seen.view:
                    axis = seen.view.index(column)
                    rest = tuple(place for place in range(len(seen.view)) if place != axis)
                    weight = size / (seen.variance * seen.shares.size)
                    total += weight * seen.shares.sum(axis=rest)
                    weights += weight
            found.append(simplex(total / weights) if weights else np.full(size, 1 / size))
        return found


def simplex(values: Floats) -> Floats:
    """The nearest shares that are non-negative and sum to one.

    >>> simplex(np.array([0.7, 0.5, -0.1])).round(3).tolist()
    [0.6, 0.4, 0.0]
    """
    flat = values.reshape(-1)
    ordered = np.sort(flat)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, flat.size + 1)
    kept = int(np.flatnonzero(ordered > excess)[-1])
    found: Floats = np.maximum(flat - excess[kept], 0.0).reshape(values.shape)
    return found


def outer(shares: Sequence[Floats]) -> Floats:
    """The product of the shares of columns, one axis each."""
    found = np.ones(())
    for one in shares:
        found = np.multiply.outer(found, one)
    return np.asarray(found)


def effects(table: Floats) -> Iterator[tuple[tuple[int, ...], Floats]]:
    """The parts of a table that belong to each set of at least two of its axes: the means over the other axes, minus
    the parts of fewer axes. They are orthogonal to each other."""
    axes = range(table.ndim)
    means = {kept: table.mean(axis=tuple(a for a in axes if a not in kept), keepdims=True) for kept in _subsets(axes)}
    for kept in _subsets(axes):
        if len(kept) > 1:
            own = sum((-1) ** (len(kept) - len(some)) * means[some] for some in _subsets(kept))
            yield kept, np.broadcast_to(own, table.shape)


def _subsets(axes: Sequence[int]) -> list[tuple[int, ...]]:
    return [some for size in range(len(axes) + 1) for some in combinations(axes, size)]


def shrunk(seen: Seen, base: Floats, used: float = 0.0) -> Floats:
    """The table with its excess over `base` shrunk, one set of axes after the other, and the margins of `base`.

    `used` is the part of the noise that the base has already fitted.
    """
    found = base.copy()
    for kept, own in effects(seen.shares - base):
        freedom = math.prod(seen.shares.shape[axis] - 1 for axis in kept)
        size = float((own**2).sum())
        noise = (1 - used) * freedom * seen.variance
        found += max(0.0, 1 - noise / size) * own if size > 0 else 0.0
    return found


def consistent(tables: Sequence[tuple[Axes, Floats, float]]) -> list[Floats]:
    """Tables that agree wherever they overlap: the overlap of several is their mean by inverse variance.

    Overlaps of fewer columns first; each later step keeps the earlier ones. The third of each is the
    variance of a cell.
    """
    found = [shares.astype(np.float64).copy() for _, shares, _ in tables]
    views = [view for view, _, _ in tables]
    shared: set[frozenset[int]] = {frozenset(a) & frozenset(b) for a, b in combinations(views, 2)} | {frozenset()}
    while more := {a & b for a, b in combinations(shared, 2)} - shared:  # overlaps of overlaps as well
        shared |= more
    for common in sorted(map(sorted, shared), key=lambda one: (len(one), one)):
        having = [place for place, view in enumerate(views) if set(common) <= set(view)]
        rests = [tuple(axis for axis, column in enumerate(views[place]) if column not in common) for place in having]
        sums = [found[place].sum(axis=rest, keepdims=True) for place, rest in zip(having, rests, strict=True)]
        cells = [
            math.prod(found[place].shape[axis] for axis in rest) for place, rest in zip(having, rests, strict=True)
        ]
        weights = np.array([1 / (tables[place][2] * many) for place, many in zip(having, cells, strict=True)])
        flat = [one.reshape(-1) for one in sums]
        mean = np.average(flat, axis=0, weights=weights) if common else np.ones(1)
        for place, own, many in zip(having, sums, cells, strict=True):
            found[place] += (mean.reshape(own.shape) - own) / many
    return found


def fitted(start: Floats, targets: Sequence[tuple[Axes, Floats]], sweeps: int = _SWEEPS) -> Floats:
    """Iterative proportional fitting: the distribution nearest to `start` with the given margins.

    If no distribution has them all, the mean over the last sweep.
    """
    found = (start / start.sum()).reshape(-1)
    # The margin cell of each record: counting by these is several times faster than sums over axes.
    cells = [_cells_of(start.shape, view) for view, _ in targets]
    wanted = [target.reshape(-1) for _, target in targets]
    for _ in range(sweeps):
        worst = 0.0
        for own, target in zip(cells, wanted, strict=True):
            now = np.bincount(own, found, target.size)
            found = found * np.divide(target, now, out=np.zeros_like(now), where=now > 0).take(own)
            worst = max(worst, float(np.abs(now - target).sum()))
        if worst < _CLOSE:
            break
    found = found.reshape(start.shape)
    whole: Floats = found / found.sum()
    return whole


def _cells_of(shape: tuple[int, ...], view: Axes) -> NDArray[np.intp]:
    """The cell of a margin for each record, record by record."""
    found = np.zeros([1] * len(shape), dtype=np.intp)
    for axis in view:
        places = np.arange(shape[axis]).reshape([-1 if own == axis else 1 for own in range(len(shape))])
        found = found * shape[axis] + places
    return np.broadcast_to(found, shape).reshape(-1)


# -- latent classes ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Classes:
    """Shares of classes, and the answers of each class in each column."""

    weights: Floats
    answers: tuple[Floats, ...]
    """One per column: answers times classes."""

    @property
    def parameters(self) -> int:
        size = self.weights.size
        return size - 1 + size * sum(len(one) - 1 for one in self.answers)

    def marginal(self, view: Axes) -> Floats:
        """The shares of the combinations of some columns."""
        found = self.weights
        for column in view:
            found = found[..., None, :] * self.answers[column]
        summed: Floats = found.sum(axis=-1)
        return summed

    def sample(self, n: int, random: np.random.Generator) -> list[NDArray[np.intp]]:
        """Records of n people, column by column."""
        of = random.choice(self.weights.size, n, p=self.weights / self.weights.sum())
        found = []
        for one in self.answers:
            sums = np.cumsum(one, axis=0)
            drawn = random.random(n) * sums[-1, of]
            found.append(np.minimum((drawn[:, None] >= sums.T[of]).sum(axis=1), len(one) - 1))
        return found


class _Squares:
    """Weighted squared error of the classes on the tables, with its gradient; in unbounded coordinates (softmax)."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        starts = np.concatenate([[0], np.cumsum(evidence.sizes)])
        self.rows = [slice(a, b) for a, b in pairwise(starts.tolist())]
        total = int(starts[-1])
        self.pairs = all(len(seen.view) == 2 for seen in evidence.tables)
        # For pairs all tables are one matrix, answers times answers.
        self.wanted, self.trust = np.zeros((total, total)), np.zeros((total, total))
        for seen in evidence.tables if self.pairs else ():
            first, second = (self.rows[column] for column in seen.view)
            self.wanted[first, second] = seen.shares
            self.trust[first, second] = 1 / seen.variance

    def classes(self, x: Floats, size: int) -> Classes:
        weights, logits = x[:size], x[size:].reshape(-1, size)
        return Classes(_softmax(weights), tuple(_softmax(logits[rows]) for rows in self.rows))

    def __call__(self, x: Floats, size: int) -> tuple[float, Floats]:
        found = self.classes(x, size)
        stacked = np.concatenate(found.answers)
        if self.pairs:
            weighted = stacked * found.weights
            off = weighted @ stacked.T - self.wanted
            scaled = self.trust * off
            value = float((scaled * off).sum())
            both = 2 * (scaled + scaled.T)
            to_answers = both @ weighted
            to_weights = ((both @ stacked) * stacked).sum(axis=0) / 2
        else:
            value, to_answers, to_weights = 0.0, np.zeros_like(stacked), np.zeros(size)
            for seen in self.evidence.tables:
                off = found.marginal(seen.view) - seen.shares
                value += float((off * off).sum() / seen.variance)
                letters, each = "abcdefgh"[: len(seen.view)], [found.answers[column] for column in seen.view]
                for place, column in enumerate(seen.view):
                    others = [f"{letters[other]}z" for other in range(len(each)) if other != place]
                    given = [one for other, one in enumerate(each) if other != place]
                    form = f"{','.join([letters, *others])}->{letters[place]}z"
                    slope = np.einsum(form, 2 * off / seen.variance, *given, optimize=True)
                    to_answers[self.rows[column]] += slope * found.weights
                    if place == 0:
                        to_weights += (slope * each[0]).sum(axis=0)
        parts = [found.weights * (to_weights - (found.weights * to_weights).sum())]
        for rows, own in zip(self.rows, found.answers, strict=True):
            slope = to_answers[rows]
            parts.append((own * (slope - (own * slope).sum(axis=0))).reshape(-1))
        return value, np.concatenate(parts)


def _softmax(logits: Floats) -> Floats:
    raised = np.exp(logits - logits.max(axis=0))
    found: Floats = raised / raised.sum(axis=0)
    return found


def latent(evidence: Evidence, classes: int | None = None, seed: int = 0, start: Classes | None = None) -> Classes:
    """The classes with the smallest Cp, or a given number of them; starting from `start`, if given."""
    from scipy.optimize import minimize

    squares, random = _Squares(evidence), np.random.default_rng(seed)

    def solved(x: Floats, size: int) -> tuple[float, Classes]:
        done = minimize(squares, x, (size,), "L-BFGS-B", jac=True, options={"maxiter": 200, "maxcor": 20, "ftol": 1e-7})
        return float(done.fun), squares.classes(done.x, size)

    if start is not None:
        return solved(_coordinates(start), start.weights.size)[1]
    one = Classes(np.ones(1), tuple(single[:, None] for single in evidence.singles))
    best, least, worse = one, math.inf, 0
    current = one
    for size in range(1, (classes or MOST_CLASSES) + 1):
        if size == 1:
            chi2, current = solved(_coordinates(one), 1)
        else:
            tried = [solved(_coordinates(_split(current, random)), size) for _ in range(_STARTS)]
            chi2, current = min(tried, key=lambda done: done[0])
        score = chi2 + 2 * current.parameters
        if score < least or classes is not None:
            best, least, worse = current, score, 0
        else:
            worse += 1
            if worse == 2:
                break
    return best


def _coordinates(classes: Classes) -> Floats:
    parts = [classes.weights, *(one.reshape(-1) for one in classes.answers)]
    found: Floats = np.log(np.maximum(np.concatenate(parts), 1e-6))
    return found


def _split(classes: Classes, random: np.random.Generator) -> Classes:
    """One more class: a class, more often a large one, is split into two that differ at random."""
    size = classes.weights.size
    chosen = int(random.choice(size, p=classes.weights / classes.weights.sum()))
    weights = np.append(classes.weights, classes.weights[chosen] / 2)
    weights[chosen] /= 2
    answers = []
    for one in classes.answers:
        both = np.concatenate([one, one[:, chosen : chosen + 1]], axis=1)
        both[:, [chosen, size]] *= np.exp(random.normal(0, 0.7, (len(one), 2)))
        answers.append(both / both.sum(axis=0))
    return Classes(weights, tuple(answers))


# -- models --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Whole:
    """A distribution of whole records as one table."""

    shares: Floats
    classes: Classes | None = None
    """The distribution that it was blended with."""

    def marginal(self, view: Axes) -> Floats:
        rest = tuple(axis for axis in range(self.shares.ndim) if axis not in view)
        order = np.argsort(np.argsort(view))
        found: Floats = np.transpose(self.shares.sum(axis=rest), order)
        return found

    def sample(self, n: int, random: np.random.Generator) -> list[NDArray[np.intp]]:
        sums = np.cumsum(self.shares.reshape(-1))
        drawn = np.searchsorted(sums, random.random(n) * sums[-1], side="right")
        return list(np.unravel_index(np.minimum(drawn, sums.size - 1), self.shares.shape))


@dataclass(frozen=True, eq=False)
class Local:
    """Tables of some columns, each set fitted separately if whole records have too many combinations."""

    singles: tuple[Floats, ...]
    tables: tuple[tuple[Axes, Floats], ...]
    classes: Classes | None = None

    def marginal(self, view: Axes) -> Floats:
        inside = [(own, table) for own, table in self.tables if set(own) <= set(view)]
        order = sorted(view)
        targets = [(tuple(order.index(column) for column in own), table) for own, table in inside]
        found = fitted(outer([self.singles[column] for column in order]), targets)
        return np.transpose(found, [order.index(column) for column in view])

    def sample(self, n: int, random: np.random.Generator) -> list[NDArray[np.intp]]:
        raise MismatchError("whole records have too many combinations for this model: draw them from model('latent')")


Core = Whole | Local | Classes


def _independent(evidence: Evidence) -> Core:
    return Classes(np.ones(1), tuple(single[:, None] for single in evidence.singles))


def _entropic(evidence: Evidence, whole: bool = True) -> Core:
    even = consistent([(seen.view, seen.shares, seen.variance) for seen in evidence.tables])
    tables = [(seen.view, simplex(own)) for seen, own in zip(evidence.tables, even, strict=True)]
    return _made(evidence, [np.full(size, 1 / size) for size in evidence.sizes], tables, whole)


def _shrink(evidence: Evidence, whole: bool = True) -> Core:
    return _made(evidence, evidence.singles, _shrunk_tables(evidence), whole)


def _shrunk_tables(evidence: Evidence) -> list[tuple[Axes, Floats]]:
    singles = evidence.singles
    return [
        (seen.view, simplex(shrunk(seen, outer([singles[column] for column in seen.view])))) for seen in evidence.tables
    ]


def _blend(evidence: Evidence, whole: bool = True, start: Classes | None = None) -> Core:
    found = latent(evidence, start=start)
    tables = [(view, (own + found.marginal(view)) / 2) for view, own in _shrunk_tables(evidence)]
    return _made(evidence, evidence.singles, tables, whole, found)


def _made(
    evidence: Evidence,
    singles: list[Floats],
    tables: list[tuple[Axes, Floats]],
    whole: bool,
    classes: Classes | None = None,
) -> Core:
    if whole and math.prod(evidence.sizes) <= MOST_CELLS:
        return Whole(fitted(outer(singles), tables), classes)
    return Local(tuple(singles), tuple(tables), classes)


METHODS = ("independent", "max-entropy", "shrink", "latent", "blend")


@one_thread
def core_of(evidence: Evidence, method: str, classes: int | None = None) -> Core:
    """The distribution of a method for the tables."""
    if method == "independent" or not evidence.tables:
        return _independent(evidence)
    if method == "latent":
        return latent(evidence, classes)
    return {"max-entropy": _entropic, "shrink": _shrink, "blend": _blend}[method](evidence)


@one_thread
def core_like(core: Core, method: str, evidence: Evidence) -> Core:
    """The same kind of distribution for other tables, found faster: from these classes on, or column by column."""
    if isinstance(core, Classes):
        return latent(evidence, start=core) if method == "latent" else _independent(evidence)
    if core.classes is not None:
        return _blend(evidence, False, core.classes)
    return (_entropic if method == "max-entropy" else _shrink)(evidence, False)


def given_last(table: Floats, first: int) -> Floats:
    """Shares among the people with each combination of the axes from `first` on; uniform if there is nobody."""
    if first == table.ndim:
        return table
    whole = table.sum(axis=tuple(range(first)), keepdims=True)
    even = np.full_like(table, 1 / math.prod(table.shape[:first]))
    found: Floats = np.divide(table, whole, out=even, where=whole > 1e-12)
    return found
