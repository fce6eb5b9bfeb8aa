"""The exact largest likelihood ratio of reports that are too many to list, from the structure of the code's runs.

`follow` runs the real code on symbols. From its runs, for every input:

Cases      bits that are known in every run of every input (a group, a cohort) split reports into cases: the ratio is
           the largest ratio of a case, with the case's own probabilities
Factors    bits that share no coin are independent. Two runs that differ in one factor are one run with a mixture there.
           The product rule: likelihoods of independent factors multiply, and each factor takes its worst outcome
           whatever the others do, so the largest ratio of two inputs is the product over their factors
Mixture    factors in which runs of one input differ, and which cannot be put together, are treated as one factor. Its
           outcomes are listed if they are at most 2^16. Else every run is uniform on the solutions of linear equations
           (a hash and its matrix): likelihoods then follow from the sizes of such sets, without listing them
Subsets    a run that draws a fixed number of members of each of some sets is uniform on the subsets with these numbers.
           The probability of a subset under two inputs depends on how many members it has in each piece that their sets
           cut out; these numbers are listed. For answers that are unknown sets, every size of the intersection of two
           sets is tried
Hidden     code that ran without looking at the number of an answer treats all numbers alike, up to a one-to-one map of
           the reports: then a few numbers stand for all
Streams    a device that keeps a state draws each report from the state, the answer and the epoch. All ways of a step
           are enumerated. Two streams of answers and the reports so far are then as likely as the states that they may
           have led to, up to a common factor: the pairs of such laws are followed from epoch to epoch, each once
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.randomness import exhaust
from deniable.randomness.symbolic import Choice, Run, Span, TooManyRuns, Unknown

Ratio = Fraction | float
"""A likelihood ratio; infinite as a float."""

MOST_LISTED = 1 << 16
_MOST_SPLIT = 1 << 8
_MOST_PAIRS = 1 << 18
_TRIED = 64
_MOST_WAYS = 1 << 14
_MOST_STEPS = 1 << 20


@dataclass(frozen=True)
class Worst:
    """The largest ratio of the reports of two inputs."""

    ratio: Ratio
    reached: bool
    """Whether two inputs reach it; else it is an upper bound."""
    pair: tuple[int, int] = (0, 0)
    rules: tuple[str, ...] = ()
    """What was used, for people."""


def largest_ratio(inputs: Sequence[Sequence[Run]]) -> Worst:
    """The largest ratio of all pairs of inputs, given the runs of the code on each.

    Raises `TooManyRuns` if the structure is too complex.
    """
    if len(inputs) < 2:
        return Worst(Fraction(1), True)
    worst = Worst(Fraction(1), True)
    rules: dict[str, None] = {}
    cases = _cases(inputs)
    if len(cases) > 1:
        rules[f"{len(cases):,} cases that a report tells apart"] = None
    for case in cases:
        missing = [place for place, runs in enumerate(case) if not runs]
        if missing:
            some = next(place for place, runs in enumerate(case) if runs)
            return Worst(math.inf, True, (some, missing[0]), ("a report of one input is impossible for another",))
        chosen = any(run.choices for runs in case for run in runs)
        found = _subsets(case) if chosen else _Case(case).worst()
        rules |= dict.fromkeys(found.rules)
        if found.ratio > worst.ratio:
            worst = found
    return Worst(worst.ratio, worst.reached, worst.pair, tuple(rules))


def _cases(inputs: Sequence[Sequence[Run]]) -> list[list[list[Run]]]:
    """The runs of each input, apart by length and by the bits that are known in all runs of all inputs."""
    known: dict[int, set[int]] = {}
    for run in (run for runs in inputs for run in runs):
        size = len(run.forms)
        sure = {place for place, form in enumerate(run.forms) if form < 2}
        for span in run.spans:
            sure -= set(range(8 * span.byte, 8 * (span.byte + span.width)))
        for choice in run.choices:
            sure -= set(range(8 * choice.byte, 8 * (choice.byte + choice.width)))
        known[size] = known[size] & sure if size in known else sure
    places = {size: sorted(sure) for size, sure in known.items()}
    cases: dict[tuple[int, ...], list[list[Run]]] = {}
    for number, runs in enumerate(inputs):
        for run in runs:
            size = len(run.forms)
            key = (size, *(run.forms[place] for place in places[size]))
            cases.setdefault(key, [[] for _ in inputs])[number].append(run)
    return list(cases.values())


@dataclass(frozen=True)
class _Affine:
    """The uniform law on offset + span(basis), bits of a factor as whole numbers; the basis is reduced."""

    basis: tuple[int, ...]
    offset: int

    @classmethod
    def of(cls, vectors: Iterable[int], offset: int) -> _Affine:
        basis: list[int] = []
        for vector in vectors:
            vector = _cleared(vector, basis)
            if vector:
                top = vector.bit_length() - 1
                basis = [one ^ vector if one >> top & 1 else one for one in basis] + [vector]
        basis.sort(reverse=True)
        return cls(tuple(basis), _cleared(offset, basis))

    @property
    def size(self) -> int:
        return 1 << len(self.basis)

    def meet(self, other: _Affine) -> _Affine | None:
        """The intersection; None if it is empty."""
        # offset + sum a_i b_i = offset' + sum a'_j b'_j: eliminate, remembering which of our vectors was used.
        rows: list[tuple[int, int]] = []  # (combination, what it uses of ours)
        kernel: list[int] = []
        for vector, mine in [*((one, one) for one in self.basis), *((one, 0) for one in other.basis)]:
            for row, uses in rows:
                if vector ^ row < vector:
                    vector, mine = vector ^ row, mine ^ uses
            if vector:
                rows.append((vector, mine))
                rows.sort(reverse=True)
            else:
                kernel.append(mine)
        gap, start = self.offset ^ other.offset, 0
        for row, uses in rows:
            if gap ^ row < gap:
                gap, start = gap ^ row, start ^ uses
        return None if gap else _Affine.of(kernel, self.offset ^ start)

    def listed(self) -> NDArray[np.int64]:
        found = np.array([self.offset], dtype=np.int64)
        for vector in self.basis:
            found = np.concatenate([found, found ^ vector])
        return found


def _cleared(vector: int, basis: Iterable[int]) -> int:
    for one in basis:
        if vector >> one.bit_length() - 1 & 1:
            vector ^= one
    return vector


FactorLaw = Fraction | _Affine | tuple[int, int]
"""The law of a factor in one run: the probability that its only bit is 1; uniform on an affine set, or on a range."""


@dataclass
class _Path:
    """A run, or several put together: its weight, and the number of the law of each factor."""

    weight: Fraction
    laws: NDArray[np.int64]


@dataclass
class _Case:
    """The runs of each input that send one of the reports of a case."""

    runs: list[list[Run]]
    laws: list[FactorLaw] = field(default_factory=list)
    numbers: dict[FactorLaw, int] = field(default_factory=dict)
    single: dict[tuple[int, int], int] = field(default_factory=dict)

    def worst(self) -> Worst:
        self.factors = self._factors()
        paths = [self._merged([self._path(run) for run in runs]) for runs in self.runs]
        self.mixed = self._differing(paths)
        alone = [np.delete(own[0].laws, self.mixed) for own in paths]
        same = all((one == alone[0]).all() for one in alone)
        if not self.mixed:
            weights = [sum((path.weight for path in own), Fraction(0)) for own in paths]
            if not same:
                return self._products(alone, weights)
            high, low = max(weights), min(weights)
            return Worst(high / low, True, (weights.index(high), weights.index(low)))
        if not same:
            raise TooManyRuns("factors differ beside a mixture")
        mixtures = [self._mixture(own) for own in paths]
        return self._listed(mixtures) if self._span <= MOST_LISTED else self._affine(mixtures)

    # -- factors -----------------------------------------------------------------------------------

    def _factors(self) -> list[list[int]]:
        """Bits of the report that share a coin or a range in some run, together."""
        every = [run for runs in self.runs for run in runs]
        parent = list(range(len(every[0].forms)))

        def root(place: int) -> int:
            while parent[place] != place:
                parent[place] = place = parent[parent[place]]
            return place

        used = set()
        for run in every:
            seen = shared = 0
            for place, form in enumerate(run.forms):
                if form > 1:
                    used.add(place)
                    shared |= seen & form
                    seen |= form
            shared &= ~1
            owners: dict[int, int] = {}
            for place, form in enumerate(run.forms if shared else ()):
                both = form & shared
                while both:
                    coin = both & -both
                    both ^= coin
                    parent[root(place)] = root(owners.setdefault(coin, place))
            for span in run.spans:
                first = 8 * span.byte
                used.update(range(first, first + 8 * span.width))
                for place in range(first, first + 8 * span.width):
                    parent[root(place)] = root(first)
        for place in range(len(parent)):
            if place not in used and len({run.forms[place] for run in every}) > 1:
                used.add(place)
        groups: dict[int, list[int]] = {}
        for place in sorted(used):
            groups.setdefault(root(place), []).append(place)
        return list(groups.values())

    def _path(self, run: Run) -> _Path:
        spans = {8 * span.byte: span for span in run.spans}
        return _Path(run.weight, np.array([self._law(run, places, spans) for places in self.factors], dtype=np.int64))

    def _law(self, run: Run, places: list[int], spans: dict[int, Span]) -> int:
        law: FactorLaw
        if places[0] in spans:
            span = spans[places[0]]
            law = (span.low, span.high)
        elif len(places) == 1:
            form = run.forms[places[0]]
            coin = form & ~1
            if coin and coin & (coin - 1) == 0:  # one coin: looked up by the object, for fractions are slow to compare
                key = id(run.coins[coin.bit_length() - 2]), form & 1
                if key not in self.single:
                    self.single[key] = self._number(run.chance(form))
                return self.single[key]
            law = Fraction(form) if form < 2 else run.chance(form)
        else:
            forms = [run.forms[place] for place in places]
            law = self._joint(run, forms)
        return self._number(law)

    def _joint(self, run: Run, forms: list[int]) -> _Affine:
        coins: dict[int, int] = {}
        offset = 0
        for place, form in enumerate(forms):
            offset |= (form & 1) << place
            rest = form & ~1
            while rest:
                coin = rest & -rest
                rest ^= coin
                coins[coin] = coins.get(coin, 0) | 1 << place
        if any(run.coins[coin.bit_length() - 2] * 2 != 1 for coin in coins):
            raise TooManyRuns("bits share a coin that is not fair")
        return _Affine.of(coins.values(), offset)

    def _number(self, law: FactorLaw) -> int:
        if law not in self.numbers:
            self.numbers[law] = len(self.laws)
            self.laws.append(law)
        return self.numbers[law]

    def _merged(self, paths: list[_Path]) -> list[_Path]:
        """Paths that differ in one factor of one bit, or in none, are one path."""
        changed = True
        while changed and len(paths) > 1:
            changed, kept = False, []
            while paths:
                path = paths.pop()
                for place, other in enumerate(paths):
                    differ = np.flatnonzero(path.laws != other.laws)
                    if differ.size > 1:
                        continue
                    if differ.size == 1:
                        a, b = self.laws[path.laws[differ[0]]], self.laws[other.laws[differ[0]]]
                        if not (isinstance(a, Fraction) and isinstance(b, Fraction)):
                            continue
                        total = path.weight + other.weight
                        laws = path.laws.copy()
                        laws[differ[0]] = self._number((a * path.weight + b * other.weight) / total)
                        path = _Path(total, laws)
                    else:
                        path = _Path(path.weight + other.weight, path.laws)
                    del paths[place]
                    paths.append(path)
                    changed = True
                    break
                else:
                    kept.append(path)
            paths = kept
        return paths

    @staticmethod
    def _differing(paths: list[list[_Path]]) -> list[int]:
        """The factors in which paths of one input differ."""
        found: set[int] = set()
        for own in paths:
            for other in own[1:]:
                found |= set(np.flatnonzero(own[0].laws != other.laws).tolist())
        return sorted(found)

    # -- inputs that are products ------------------------------------------------------------------

    def _products(self, alone: list[NDArray[np.int64]], weights: list[Fraction]) -> Worst:
        """The largest product over the factors; only factors in which two inputs differ count."""
        table = np.array(alone)
        usual = np.array([np.bincount(column).argmax() for column in table.T])
        odd = [
            dict(zip(np.flatnonzero(row != usual).tolist(), row[row != usual].tolist(), strict=True)) for row in table
        ]
        ratios: dict[tuple[int, int], Ratio] = {}
        best, pair = Fraction(1), (0, 0)
        known: dict[tuple[tuple[int, int], ...], Ratio] = {}
        for i, j in self._pairs(odd, usual, weights):
            own, other = odd[i], odd[j]
            sides = sorted((own.get(f, int(usual[f])), other.get(f, int(usual[f]))) for f in own.keys() | other.keys())
            for turn, (a, b) in enumerate(((i, j), (j, i))):
                key = tuple(sides) if not turn else tuple((second, first) for first, second in sides)
                if key not in known:
                    product: Ratio = Fraction(1)
                    for one in key:
                        if one not in ratios:
                            ratios[one] = self._bit_ratio(*one)
                        product = math.inf if math.inf in (product, ratios[one]) else product * ratios[one]
                    known[key] = product
                ratio = known[key]
                if ratio is not math.inf:
                    ratio = ratio * weights[a] / weights[b]
                if ratio > best:
                    best, pair = ratio, (a, b)  # type: ignore[assignment]
        return Worst(best, True, pair, (f"the product over {table.shape[1]:,} independent factors",))

    def _ends(self, odd: list[dict[int, int]], usual: int) -> tuple[int, int] | None:
        """Among inputs that differ in one bit alone: those that set it least often and most often."""
        laws = [self.laws[own.get(0, usual)] for own in odd]
        chances = [law for law in laws if isinstance(law, Fraction)]
        if len(chances) < len(laws):
            return None
        return chances.index(min(chances)), chances.index(max(chances))

    def _pairs(self, odd: list[dict[int, int]], usual: Any, weights: list[Fraction]) -> Iterator[tuple[int, int]]:
        """Pairs of inputs, one of each kind: what is unusual in different factors differs by its kind alone."""
        if sum(map(len, odd)) > len(set().union(*odd)):
            if len(usual) == 1 and len(set(weights)) == 1 and (ends := self._ends(odd, int(usual[0]))):
                yield ends
                return
            if len(odd) * (len(odd) - 1) <= _MOST_PAIRS:
                yield from combinations(range(len(odd)), 2)
                return
        wide = _overlapping(odd)
        if len(wide) * len(odd) > _MOST_PAIRS:
            raise TooManyRuns("too many pairs of inputs")
        yield from ((one, other) for one in wide for other in range(len(odd)) if other not in wide or one < other)
        kinds: dict[Any, list[int]] = {}
        for number, own in enumerate(odd):
            if number in wide:
                continue
            kind = (tuple(sorted((law, int(usual[place])) for place, law in own.items())), weights[number])
            kinds.setdefault(kind, []).append(number)
        for first, second in combinations(kinds.values(), 2):
            yield first[0], second[0]
        yield from ((alike[0], alike[1]) for alike in kinds.values() if len(alike) > 1)

    def _bit_ratio(self, one: int, other: int) -> Ratio:
        if one == other:
            return Fraction(1)
        a, b = self.laws[one], self.laws[other]
        if isinstance(a, Fraction) and isinstance(b, Fraction):
            if (b == 0 and a > 0) or (b == 1 and a < 1):
                return math.inf
            return max(a / b if b else Fraction(0), (1 - a) / (1 - b) if b < 1 else Fraction(0))
        if isinstance(a, _Affine) and isinstance(b, _Affine):
            common = a.meet(b)
            inside = common is not None and common.size == a.size
            return Fraction(b.size, a.size) if inside else math.inf
        if isinstance(a, tuple) and isinstance(b, tuple):
            inside = b[0] <= a[0] and a[1] <= b[1]
            return Fraction(b[1] - b[0], a[1] - a[0]) if inside else math.inf
        raise TooManyRuns("two inputs have a factor of different kinds")

    # -- inputs that are mixtures ------------------------------------------------------------------

    @property
    def _span(self) -> int:
        """How many values the bits of the mixture have."""
        ranges = [self.laws[n][1] for n in range(len(self.laws)) if isinstance(self.laws[n], tuple)]  # type: ignore[index]
        if ranges and len(self.mixed) == 1:
            return int(max(max(ranges), 1 << 8 * (max(ranges).bit_length() // 8)))
        return 1 << sum(len(self.factors[place]) for place in self.mixed)

    def _mixture(self, paths: list[_Path]) -> list[tuple[Fraction, _Affine | tuple[int, int]]]:
        """The laws of the mixed factors together, each path uniform on a set; loaded bits are split."""
        found = []
        for path in paths:
            for weight, law in self._split(path):
                found.append((weight, law))
        return found

    def _split(self, path: _Path) -> Iterator[tuple[Fraction, _Affine | tuple[int, int]]]:
        laws = [self.laws[path.laws[place]] for place in self.mixed]
        if len(laws) == 1 and isinstance(laws[0], tuple):
            yield path.weight, laws[0]
            return
        parts: list[tuple[Fraction, list[int], int]] = [(path.weight, [], 0)]
        shift = 0
        for place, law in zip(self.mixed, laws, strict=True):
            if isinstance(law, tuple):
                raise TooManyRuns("a range is mixed with other bits")
            if isinstance(law, _Affine):
                moved, base = [one << shift for one in law.basis], law.offset << shift
                parts = [(weight, [*vectors, *moved], at | base) for weight, vectors, at in parts]
            elif law * 2 == 1:
                parts = [(weight, [*vectors, 1 << shift], at) for weight, vectors, at in parts]
            else:
                each = [(chance, value) for chance, value in ((1 - law, 0), (law, 1)) if chance]
                parts = [(w * chance, v, at | value << shift) for w, v, at in parts for chance, value in each]
            if len(parts) > _MOST_SPLIT:
                raise TooManyRuns("too many bits of one report depend on each other")
            shift += len(self.factors[place])
        for weight, vectors, offset in parts:
            yield weight, _Affine.of(vectors, offset)

    def _listed(self, mixtures: list[list[tuple[Fraction, _Affine | tuple[int, int]]]]) -> Worst:
        """Every outcome: which inputs make it likeliest and least likely."""
        values: dict[Fraction, int] = {}
        rows: list[NDArray[np.int64]] = []
        size = self._span
        for laws in mixtures:
            marks = np.zeros(size, dtype=np.int64)
            if len(laws) > 62:
                marks = marks.astype(object)
            for number, (_, law) in enumerate(laws):
                where = slice(*law) if isinstance(law, tuple) else law.listed()
                marks[where] |= 1 << number
            sets, place = np.unique(marks, return_inverse=True)
            numbers = []
            for mark in sets.tolist():
                held = [laws[n] for n in range(len(laws)) if mark >> n & 1]
                value = sum((weight / _size(law) for weight, law in held), Fraction(0))
                numbers.append(values.setdefault(value, len(values)))
            rows.append(np.array(numbers, dtype=np.int64)[place])
        order = sorted(values)
        rank = np.empty(len(values), dtype=np.int64)
        rank[[values[value] for value in order]] = np.arange(len(order))
        ranked = [rank[row] for row in rows]
        high, low = ranked[0].copy(), ranked[0].copy()
        top, bottom = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        for number, row in enumerate(ranked[1:], 1):
            top[row > high], bottom[row < low] = number, number
            np.maximum(high, row, out=high)
            np.minimum(low, row, out=low)
        best, at = Fraction(1), 0
        pairs, first = np.unique(high * len(order) + low, return_index=True)
        for code, place in zip(pairs.tolist(), first.tolist(), strict=True):
            one, other = order[code // len(order)], order[code % len(order)]
            ratio = (math.inf if one else Fraction(1)) if not other else one / other
            if ratio > best:
                best, at = ratio, place  # type: ignore[assignment]
        return Worst(best, True, (int(top[at]), int(bottom[at])), (f"{size:,} outcomes of one factor listed",))

    def _affine(self, mixtures: list[list[tuple[Fraction, _Affine | tuple[int, int]]]]) -> Worst:
        """Bounds from each input's own largest and smallest likelihood; and whether some pair reaches them."""
        rules = ("a hash and its matrix: sets of solutions of linear equations, counted",)
        sets = [[(weight, law) for weight, law in laws if isinstance(law, _Affine)] for laws in mixtures]
        if any(len(own) != len(laws) or len(own) > 6 for own, laws in zip(sets, mixtures, strict=True)):
            raise TooManyRuns("a factor is too large to list")
        bits = sum(len(self.factors[place]) for place in self.mixed)
        likely = {key: _likelihoods([own], bits) for key, own in {repr(own): own for own in sets}.items()}
        each = [[pair[0] for pair in likely[repr(own)]] for own in sets]
        high, low = max(map(max, each)), min(map(min, each))
        top = [n for n, own in enumerate(each) if max(own) == high][:_TRIED]
        bottom = [n for n, own in enumerate(each) if min(own) == low][:_TRIED]
        bound: Ratio = math.inf if not low else high / low
        best: Ratio = Fraction(1)
        pair = (0, 0)
        for one, other in ((a, b) for a in top[:8] for b in bottom if a != b):
            for a, b in _likelihoods([sets[one], sets[other]], bits):
                ratio: Ratio = (math.inf if a else Fraction(1)) if not b else a / b
                if ratio > best:
                    best, pair = ratio, (one, other)
            if best == bound:
                break
        return Worst(bound, best == bound, pair, rules)


def _overlapping(odd: Sequence[Mapping[int, int]]) -> set[int]:
    """Inputs without which no two others are unusual in the same factor; those that are unusual in most go first."""
    often = Counter(factor for own in odd for factor in own)
    shared, found = sum(count > 1 for count in often.values()), set[int]()
    for number in sorted(range(len(odd)), key=lambda number: -len(odd[number])):
        if not shared or len(found) * len(odd) > _MOST_PAIRS:
            break
        if any(often[factor] > 1 for factor in odd[number]):
            found.add(number)
            often.subtract(odd[number].keys())
            shared = sum(count > 1 for count in often.values())
    return found


# -- subsets -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Draw:
    """A run that draws a subset: its weight, the members that are known, and the number from each block."""

    weight: Fraction
    members: int
    blocks: tuple[tuple[int, int], ...]

    @property
    def share(self) -> Fraction:
        """The probability of each subset that it may draw."""
        return self.weight / math.prod(math.comb(among.bit_count(), count) for among, count in self.blocks)


def _subsets(case: Sequence[Sequence[Run]]) -> Worst:
    """The largest ratio between inputs whose reports are subsets and agree in all other bits."""
    every = [run for runs in case for run in runs]
    model = next(run.choices[0] for run in every if run.choices)
    draws = [[_drawn(run, model) for run in runs] for runs in case]
    if len(draws) * (len(draws) - 1) > _MOST_PAIRS:
        raise TooManyRuns("too many pairs of inputs")
    best, pair = Fraction(1), (0, 0)
    known: dict[Any, tuple[Ratio, Ratio]] = {}
    for one, other in combinations(range(len(draws)), 2):
        for a, b, ratio in _between(draws[one], draws[other], known, (one, other)):
            if ratio > best:
                best, pair = ratio, (a, b)  # type: ignore[assignment]
    return Worst(best, True, pair, ("subsets, by how many members they have in common with two inputs",))


def _drawn(run: Run, model: Choice) -> _Draw:
    region = range(8 * model.byte, 8 * (model.byte + model.width))
    if run.spans or len(run.choices) > 1 or any(f > 1 for p, f in enumerate(run.forms) if p not in region):
        raise TooManyRuns("a subset stands beside other draws")
    if run.choices:
        (own,) = run.choices
        if (own.byte, own.width, own.listed) != (model.byte, model.width, model.listed):
            raise TooManyRuns("subsets are written in different ways")
        if any(isinstance(among, Unknown) for among, _ in own.blocks):
            raise TooManyRuns("an answer is not known")
        return _Draw(run.weight, own.members, own.blocks)
    if any(run.forms[place] > 1 for place in region):
        raise TooManyRuns("a subset is written like other draws")
    sent = sum(run.forms[place] << place - region[0] for place in region)
    if not model.listed:
        return _Draw(run.weight, sent, ())
    step = 8 * model.listed
    places = [sent >> at & (1 << step) - 1 for at in range(0, 8 * model.width, step)]
    if places != sorted(set(places)):
        raise TooManyRuns("a list is written in another order")
    return _Draw(run.weight, sum(1 << place for place in places), ())


def _between(
    own: list[_Draw], other: list[_Draw], known: dict[Any, tuple[Ratio, Ratio]], names: tuple[int, int]
) -> Iterator[tuple[int, int, Ratio]]:
    """The largest ratio of two inputs, in both directions; those that look alike are worked out once."""
    pieces = [0]
    for draw in (*own, *other):
        for mask in (draw.members, *(among for among, _ in draw.blocks)):
            pieces[0] |= mask
    for mask in dict.fromkeys(m for d in (*own, *other) for m in (d.members, *(among for among, _ in d.blocks))):
        pieces = [part for piece in pieces for part in (piece & mask, piece & ~mask) if part]
    sizes = tuple(piece.bit_count() for piece in pieces)

    def cut(draw: _Draw) -> tuple[Any, ...]:
        inside = [tuple(n for n, piece in enumerate(pieces) if piece & among) for among, _ in draw.blocks]
        counts = [count for _, count in draw.blocks]
        full = tuple(n for n, piece in enumerate(pieces) if piece & draw.members)
        return draw.weight, draw.share, full, tuple(zip(inside, counts, strict=True))

    key = sizes, tuple(map(cut, own)), tuple(map(cut, other))
    if key not in known:
        known[key] = _cut_ratio(*key), _cut_ratio(key[0], key[2], key[1])
    yield (*names, known[key][0])
    yield (*names[::-1], known[key][1])


def _cut_ratio(sizes: tuple[int, ...], own: tuple[Any, ...], other: tuple[Any, ...]) -> Ratio:
    best: Ratio = Fraction(1)
    for _, _, full, blocks in own:
        for counts in _numbers(sizes, full, blocks):
            mine, theirs = (
                sum((share for _, share, f, b in side if _fits(counts, sizes, f, b)), Fraction(0))
                for side in (own, other)
            )
            ratio: Ratio = mine / theirs if theirs else math.inf
            best = max(best, ratio)
    return best


def _numbers(sizes: tuple[int, ...], full: tuple[int, ...], blocks: tuple[Any, ...]) -> Iterator[tuple[int, ...]]:
    """How many members a subset of these blocks may have in each piece."""
    start = [sizes[piece] if piece in full else 0 for piece in range(len(sizes))]
    found = [start]
    for inside, count in blocks:
        ways: list[list[int]] = [[]]
        for piece in inside:
            ways = [[*way, n] for way in ways for n in range(min(sizes[piece], count - sum(way)) + 1)]
            if len(ways) * len(found) > _MOST_WAYS:
                raise TooManyRuns("too many ways to have members in common")
        filled = []
        for counts in found:
            for way in (way for way in ways if sum(way) == count):
                new = list(counts)
                for piece, n in zip(inside, way, strict=True):
                    new[piece] = n
                filled.append(new)
        found = filled
    yield from map(tuple, found)


def _fits(counts: tuple[int, ...], sizes: tuple[int, ...], full: tuple[int, ...], blocks: tuple[Any, ...]) -> bool:
    covered = set(full)
    if any(counts[piece] != sizes[piece] for piece in full):
        return False
    for inside, count in blocks:
        covered |= set(inside)
        if sum(counts[piece] for piece in inside) != count:
            return False
    return all(not n or piece in covered for piece, n in enumerate(counts))


def largest_ratio_of_sets(runs: dict[int, Sequence[Run]], universe: int) -> Worst:
    """The largest ratio between any two sets from `universe` elements, from the runs on an unknown set of each size.

    The code did not look at the set, so only the sizes of two sets and of what they have in common matter.
    """
    best: Ratio = Fraction(1)
    known: dict[Any, tuple[Ratio, Ratio]] = {}
    model = next((run.choices[0] for own in runs.values() for run in own if run.choices), None)
    if model is None:
        raise TooManyRuns("nothing is drawn from the set")
    sizes = sorted(runs)
    for one, other in ((a, b) for a in sizes for b in sizes if a <= b):
        for common in range(max(0, one + other - universe), one + 1):
            first = (1 << one) - 1
            second = (1 << other) - 1 << one - common
            own, others = (
                [_given(run, held, model) for run in runs[size]] for size, held in ((one, first), (other, second))
            )
            for _, _, ratio in _between(own, others, known, (0, 1)):
                best = max(best, ratio)
    return Worst(best, True, (0, 1), ("sets: for every size of what two of them have in common",))


def _given(run: Run, own: int, model: Choice) -> _Draw:
    """The run for one set."""
    choices = tuple(
        replace(choice, blocks=tuple((a.among(own) if isinstance(a, Unknown) else a, n) for a, n in choice.blocks))
        for choice in run.choices
    )
    return _drawn(replace(run, choices=choices), model)


# -- answers that the code did not look at -------------------------------------------------------------


def largest_ratio_of_hidden(inputs: Sequence[Sequence[Run]]) -> Worst:
    """The largest ratio between any two answers, from the runs on some hidden numbers that stand for all.

    Rows: any two numbers but zero are as 1 and 2 are, after a change of basis of the rows: it maps reports to reports,
    and in every run the rows are coins that are free. So 0, 1 and 2 stand for all. Lanes: any two places, or sets of
    places in their order, are as any other two of the same order are, if lanes change places: in every run those that
    are not set are alike. Raises `TooManyRuns` where a run is otherwise.
    """
    used = {run.hidden for runs in inputs for run in runs if run.hidden is not None}
    if len(used) != 1 or len({tuple(run.weight for run in runs) for runs in inputs}) != 1:
        raise TooManyRuns("a hidden answer is used in several ways, or not at all")
    ((kind, places),) = used
    for run in (run for runs in inputs for run in runs if run.hidden is None):
        here = [run.forms[place] for row in places for place in row]
        coins = 0
        for form in run.forms:
            if coins & form & ~1:
                raise TooManyRuns("bits of a report share a coin where a hidden answer is not used")
            coins |= form
        chances = {run.chance(form) if form > 1 else form for form in here}
        if len(chances) != 1 or (kind == "rows" and chances != {Fraction(1, 2)}):
            raise TooManyRuns("bits of a report differ where a hidden answer is not used")
    return largest_ratio(inputs)


def _size(law: _Affine | tuple[int, int]) -> int:
    return law[1] - law[0] if isinstance(law, tuple) else law.size


def _likelihoods(sides: list[list[tuple[Fraction, _Affine]]], bits: int) -> set[tuple[Fraction, ...]]:
    """The likelihoods of one outcome under each of some mixtures, for every outcome that there is.

    An outcome is in some of the sets and in no other: how many there are is found by inclusion and exclusion.
    """
    members = [(side, weight / law.size, law) for side, own in enumerate(sides) for weight, law in own]
    everything = _Affine.of([1 << place for place in range(bits)], 0)
    meets: dict[frozenset[int], int] = {}

    def size(chosen: frozenset[int]) -> int:
        if chosen not in meets:
            common: _Affine | None = everything
            for number in sorted(chosen):
                common = common.meet(members[number][2]) if common is not None else None
            meets[chosen] = common.size if common is not None else 0
        return meets[chosen]

    found = set()
    every = range(len(members))
    for count in range(len(members) + 1):
        for inside in combinations(every, count):
            outside = [number for number in every if number not in inside]
            exactly = 0
            for more in range(len(outside) + 1):
                for added in combinations(outside, more):
                    exactly += (-1) ** more * size(frozenset(inside + added))
            if exactly:
                totals = [Fraction(0)] * len(sides)
                for number in inside:
                    totals[members[number][0]] += members[number][1]
                found.add(tuple(totals))
    return found


# -- streams -------------------------------------------------------------------------------------------

Weights = tuple[tuple[bytes, int], ...]
"""How likely each state of a device is together with the reports so far, up to a factor."""
_Side = tuple[int | None, int, Weights]
"""One stream so far: its last answer, how often it has changed, and the states."""
_Step = Callable[[bytes, int, int, Any], tuple[bytes, bytes]]


def largest_ratio_of_streams(
    begin: Callable[[Any], bytes], step: _Step, answers: int, epochs: int, changes: int
) -> Worst:
    """The largest ratio of all that a device sends, between two streams with at most `changes` changes of the answer.

    `step(state, answer, epoch, bits)` gives the next state and a report. Epochs may be left out, the same ones in both
    streams. Raises `TooManyRuns` where that is too much to follow.
    """
    (first,) = _whole_numbers({None: exhaust(lambda bits: (begin(bits), b"")).law}).values()
    start: Weights = tuple(sorted((state, weight) for state, _, weight in first))
    pairs: set[tuple[_Side, _Side]] = {((None, 0, start), (None, 0, start))}
    states = {state for state, _ in start}
    again: list[tuple[Callable[[Any], Any], dict[Any, Fraction]]] = []
    done = 0
    for epoch in range(1, epochs + 1):
        laws = {}
        for state in sorted(states):
            for answer in range(answers):
                code = partial(step, state, answer, epoch)
                laws[state, answer] = exhaust(code).law
                again.append((code, laws[state, answer]))
        steps = _whole_numbers(laws)
        states |= {after for law in steps.values() for after, _, _ in law}
        moved: dict[_Side, list[tuple[int, int, dict[bytes, Weights]]]] = {}
        found = set(pairs)
        for pair in pairs:
            for side in pair:
                if side not in moved:
                    moved[side] = _moved(side, steps, answers, changes)
            for (v, i, mine), (w, j, theirs) in product(moved[pair[0]], moved[pair[1]]):
                for report, own in mine.items():
                    if report not in theirs:
                        return Worst(math.inf, True, (v, w), ("a report of one stream is impossible for another",))
                    other = theirs[report]
                    common = math.gcd(*(weight for _, weight in (*own, *other)))
                    one, two = (tuple((state, weight // common) for state, weight in side) for side in (own, other))
                    found.add(((v, i, one), (w, j, two)))
                done += len(mine)
            if done > _MOST_STEPS:
                raise TooManyRuns(f"streams of {epochs} epochs have too many ways to be told apart")
        pairs = found
    if any(exhaust(code).law != law for code, law in again[:: max(1, len(again) // _TRIED)]):
        raise TooManyRuns("a device keeps something beside its state")
    best: Ratio = Fraction(1)
    ends = (0, 0)
    for (v_last, _, mine_now), (w_last, _, theirs_now) in pairs:
        ratio = Fraction(sum(weight for _, weight in mine_now), sum(weight for _, weight in theirs_now))
        if ratio > best:
            best, ends = ratio, (v_last or 0, w_last or 0)
    said = (
        f"every step of a device was enumerated in {epochs:,} epochs, {len(again):,} in all, and {len(pairs):,} pairs "
        "of laws of its state were followed, also where both streams leave the same epochs out"
    )
    return Worst(best, True, ends, (said,))


def _whole_numbers(laws: dict[Any, dict[Any, Fraction]]) -> dict[Any, list[tuple[bytes, bytes, int]]]:
    """Laws of a state and a report, in parts of one common denominator."""
    whole = math.lcm(*(share.denominator for law in laws.values() for share in law.values()))
    return {
        key: [(state, report, share.numerator * (whole // share.denominator)) for (state, report), share in law.items()]
        for key, law in laws.items()
    }


def _moved(
    side: _Side, steps: dict[Any, Any], answers: int, changes: int
) -> list[tuple[int, int, dict[bytes, Weights]]]:
    """A stream with each next answer that it may have: the answer, how often it has changed, the states by report."""
    last, changed, held = side
    found = []
    for answer in range(answers):
        now = changed + (last not in (None, answer))
        if now > changes:
            continue
        after: dict[bytes, dict[bytes, int]] = {}
        for state, weight in held:
            for next_state, report, chance in steps[state, answer]:
                law = after.setdefault(report, {})
                law[next_state] = law.get(next_state, 0) + weight * chance
        found.append((answer, now, {report: tuple(sorted(law.items())) for report, law in after.items()}))
    return found
