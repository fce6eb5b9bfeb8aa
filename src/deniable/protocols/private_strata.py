"""Private strata: results by an attribute that must be hidden, which is randomized together with the answer.

Law        stratum s of S and answer x of A are combination s A + x; a law of listed answers reports its number. Of a
           number, x is the position of K that chance rounds it to
Privacy    epsilon is that of the law, between any two pairs of stratum and answer: nothing is sent in clear
Error      of a share in a stratum that a part D of the people is in: with Z = (cell - R row), R the share, the variance
           is n Var(Z) / (n D)^2 in large samples, noise and sampling error together, both with the exact covariance of
           the cells; of a mean likewise, with positions in place of cells
Report     that of the law over S A combinations
Cost       that of the law; of a number one random word more
Source     the product domain of two attributes; ratio estimation

Choice     the one of randomized response, subset selection and local hashing with about the smallest variance; for a
           number, the K with the smallest worst-case error. Splitting epsilon between the stratum and the answer is
           never better: at epsilon 1 the variance is 13 times as large with 2 strata and 2 answers, and 48 times with
           10 and 10
Result     `Strata`: "all" together, how large the strata are, each stratum, and a test whether they differ
Few        a stratum is suppressed if its share is less than 4 standard errors above zero, or if it has fewer than 20
           people: intervals of a ratio hold if its denominator is clear of zero
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.domains import Domain, Integers, Interval, Records
from deniable.domains.listed import ListedDomain
from deniable.domains.records import RecordColumns
from deniable.errors import ChannelError, DomainError, NumberError, SpecError
from deniable.labels import text
from deniable.protocols.frequency.histogram import PureProtocol
from deniable.protocols.frequency.subset_selection import EXCHANGEABLE
from deniable.protocols.law import Law
from deniable.protocols.numeric.grid import OnGrid, quantity
from deniable.protocols.protocol import Protocol, load, speaks_for
from deniable.protocols.ranges.cells import best_protocol, law_of
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes
from deniable.protocols.stratified import stratum_names
from deniable.protocols.tally import Tally
from deniable.protocols.traits import Ask, Traits, scaled
from deniable.protocols.worth import WORD_BYTES, Worth
from deniable.protocols.wrapped import Through
from deniable.randomness import Bits
from deniable.results import Estimate, Floats, Mean, Result, Strata, few_people, quantile
from deniable.results.bounds import Numbers, Ratios
from deniable.results.several import ALL, LEAST
from deniable.words import Fact, Joined, word

MOST_COMBINATIONS = 2048
"""The most combinations of strata and answers, or positions: their covariance is computed in full."""

MANY_NUMBERS = 32
"""More whole numbers than these are read for their mean."""

_CLEAR = 4.0
"""The share of a stratum must be this many standard errors above zero before anything is published about it."""

_POSITIONS = range(2, 10)
_STEPS = 33


@dataclass(frozen=True)
class _GridNumber(OnGrid):
    """A number that is rounded to a position."""

    domain: Domain
    positions: int


@dataclass(frozen=True, init=False, repr=False)
class PrivateStrata(Through):
    """A question that is counted in each stratum, where the stratum is as private as the answer.

    The result has the shares of listed answers, or the mean of numbers, in each stratum.

    Args:
        domain: A record: the last column is the answer, those before it are the strata.
        epsilon: Largest epsilon of a report.
        positions: Number of positions of a numeric answer; the best number if None.

    >>> smoke = PrivateStrata({"sex": ["f", "m"], "smoke": ["yes", "no"]}, epsilon=2)
    >>> smoke.worth().strata, smoke.inner.name, smoke.inner.domain.size
    (('sex',), 'GRR', 4)
    >>> people = [{"sex": "f", "smoke": "yes"}, {"sex": "f", "smoke": "no"}, {"sex": "m", "smoke": "no"}] * 5_000
    >>> found = smoke.estimate(smoke.tally(smoke.privatize(people)))
    >>> low, high = found["f"].interval(0.999999)[0]
    >>> bool(low < 0.5 < high), found.differ().rejected(1e-6)
    (True, True)
    """

    name: ClassVar[str] = "PrivateStrata"
    traits: ClassVar[Traits] = Traits(
        takes=(Records,),
        advice="it needs a record whose last column is the answer: dn.Records({stratum: [...], answer: ...})",
        reads=("strata",),
        candidates=lambda kind, ask: kind._offered(ask),
        at_epsilon=lambda protocol, factor: protocol._scaled(factor),
        waived={"unbiased": "a figure of a stratum is a ratio of two estimates; that the cells are unbiased is tested"},
        says=lambda protocol, report: protocol._says(report),
    )

    domain: Records
    epsilon: Fraction
    inner: PureProtocol
    positions: int

    def __init__(self, domain: Any, epsilon: exact.Number, positions: int | None = None) -> None:
        self._set(Records(domain) if isinstance(domain, Mapping) else domain, epsilon, positions, None)

    def _set(self, domain: Domain, epsilon: Any, positions: int | None, law: Protocol | None) -> None:
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "epsilon", epsilon)
        self._settle()
        if len(self.domain.columns) < 2:
            raise SpecError("a record in strata has at least two columns: the last one is the answer")
        for name, values in self.domain.columns[:-1]:
            if not isinstance(values, ListedDomain):
                raise SpecError(f"stratum {name!r} needs a list of at least two values that are known beforehand")
        names = (ALL, self.sizes_name, *self.stratum_names)
        if len(set(names)) < len(names):
            raise SpecError(f"no stratum is called {ALL!r} or {self.sizes_name!r}, and no two are called the same")
        object.__setattr__(self, "positions", self._usable(positions))
        if (size := len(self.stratum_names) * self.answers) > MOST_COMBINATIONS:
            raise SpecError(
                f"strata and answers have {size:,} combinations, and at most {MOST_COMBINATIONS:,} are read: merge some"
            )
        found = best_protocol(size, self.epsilon) if law is None else law
        fits = isinstance(found, EXCHANGEABLE) and found.domain == Integers(0, size - 1)
        if not fits or found.epsilon != self.epsilon:
            kinds = ", ".join(kind.name for kind in EXCHANGEABLE)
            raise SpecError(
                f"strata and answers together need one of {kinds} over their combinations, at their epsilon"
            )
        self._take(found)

    def _usable(self, positions: int | None) -> int:
        """The positions of a number; none of listed answers."""
        _, asked = self.domain.columns[-1]
        if not isinstance(asked, Interval | Integers):
            if positions:
                raise NumberError("positions are those of a number, and these answers are listed")
            return 0
        if positions is None:
            if not isinstance(asked, Interval) and asked.size <= MANY_NUMBERS:
                return 0
            return _best_positions(len(self.stratum_names), self.epsilon)
        whole = isinstance(positions, int) and not isinstance(positions, bool)
        if not whole or not (2 <= positions <= MOST_COMBINATIONS or (positions == 0 and isinstance(asked, Integers))):
            raise NumberError(f"the number of positions is a whole number from 2 to {MOST_COMBINATIONS:,}")
        return positions

    @property
    def sizes_name(self) -> str:
        """What the part is called that tells how large the strata are."""
        return " & ".join(self.worth().strata)

    @cached_property
    def stratum_names(self) -> tuple[str, ...]:
        return stratum_names(self.domain)

    @cached_property
    def answers(self) -> int:
        """How many answers, or positions of a number, there are in a stratum."""
        return self.positions or self.domain.columns[-1][1].size  # type: ignore[attr-defined]

    @cached_property
    def _number(self) -> _GridNumber:
        return _GridNumber(self.domain.columns[-1][1], self.positions)

    def parameters(self) -> dict[str, Any]:
        return {"positions": self.positions, "law": self.inner.spec()}

    @classmethod
    def _from_parameters(cls, domain: Domain, epsilon: Any, parameters: Mapping[str, Any]) -> PrivateStrata:
        match parameters:
            case {"positions": int(positions), "law": Mapping() as law, **rest} if not rest:
                return cls._made(domain, epsilon, positions, load(dict(law)))
        raise SpecError("private strata need positions and the law of their combinations, and nothing else")

    @classmethod
    def _made(cls, domain: Domain, epsilon: Any, positions: int, law: Protocol) -> PrivateStrata:
        made = cls.__new__(cls)
        made._set(domain, epsilon, positions, law)
        return made

    @classmethod
    def _offered(cls, ask: Ask) -> Iterator[Protocol]:
        if isinstance(ask.domain, Records):
            with suppress(SpecError, NumberError):
                yield cls(ask.domain, ask.epsilon)

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls({"sex": ["f", "m"], "smoke": ["yes", "no", "rarely"]}, 1)
        yield cls({"sex": ["f", "m"], "smoker": [True, False], "sleep": Interval(0, 24, unit="hours")}, 2, positions=3)
        yield cls({"team": 2, "age": Integers(18, 99)}, 1)

    def _scaled(self, factor: Fraction) -> PrivateStrata:
        return self._made(self.domain, self.epsilon * factor, self.positions, scaled(self.inner, factor))

    # -- the law -----------------------------------------------------------------------------------

    def _stratum(self, places: Any) -> Any:
        """The number of a stratum, from places in the columns of the strata."""
        return np.ravel_multi_index(places, self._shape)

    @cached_property
    def _shape(self) -> tuple[int, ...]:
        return tuple(values.size for _, values in self.domain.columns[:-1])  # type: ignore[attr-defined]

    def draw(self, value: Any, bits: Bits) -> bytes:
        *places, answer = value
        cell = self._number._rounded(answer, bits) if self.positions else answer
        return self.inner.draw(int(self._stratum(places)) * self.answers + cell, bits)

    def _law_of(self, value: Any, bits: Bits) -> bytes:
        *places, cell = value
        return self.inner.law().sent(int(self._stratum(places)) * self.answers + cell, bits)

    def draw_many(self, values: RecordColumns, bits: Bits) -> Bytes:
        *places, answers = values.columns
        cells = self._number._rounded_many(np.asarray(answers), bits) if self.positions else np.asarray(answers)
        return self.inner.draw_many(self._stratum(tuple(places)) * self.answers + cells, bits)

    def _inputs(self) -> Iterator[tuple[Any, Any]]:
        """Strata with listed answers, or with positions: every other number is a mixture of two of those."""
        columns = [list(enumerate(values.labels)) for _, values in self.domain.columns[:-1]]  # type: ignore[attr-defined]
        for row in product(*columns, [(place, label) for label, place in self._cells()]):
            yield tuple(label for _, label in row), tuple(place for place, _ in row)

    def _cells(self) -> Iterator[tuple[Any, int]]:
        if self.positions:
            return self._number._inputs()
        return ((label, place) for place, label in enumerate(self.domain.columns[-1][1].labels))  # type: ignore[attr-defined]

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        *places, answer = encoded
        strata, name, size = ", ".join(self.worth().strata), self.domain.names[-1], self.law().input_count
        which, rounding = word("story.stratum.mark"), []
        if self.positions:
            rounding = [self._number._rounding_step(value.get(name), answer)]
        else:
            which = word("story.stratum.number", n=int(self._stratum(places)) * self.answers + answer)
        together = word("story.stratum", strata=strata, name=name, n=size, which=which)
        return [*rounding, together, *self.inner.story(None, None, report)]

    def _says(self, report: bytes) -> Fact:
        row = np.frombuffer(report, dtype=np.uint8).reshape(1, -1)
        speaks = np.flatnonzero(self.inner.support(row)[0]).tolist()
        cells: list[Fact] = [
            quantity(float(label), self.worth().unit) if self.positions else text(label) for label, _ in self._cells()
        ]
        names = [Joined([self.stratum_names[at // self.answers], " & ", cells[at % self.answers]], "") for at in speaks]
        return speaks_for(names, "says.combinations.none")

    # -- the read-out ------------------------------------------------------------------------------

    def estimate(self, tally: Tally) -> Strata:
        """The result of everybody, the sizes of the strata and the result of each of them, as parts of one table."""
        found: Strata = super().estimate(tally)
        return found

    def infer(self, tally: Tally) -> Strata:
        if not tally.n:
            return self._nothing()
        cells = self.inner.estimate(self._of_law(tally))
        return self._read(cells.frequencies.reshape(-1, self.answers), cells)

    def _nothing(self) -> Strata:
        return self._read(np.zeros((len(self.stratum_names), self.answers)), self.inner.infer(self.inner.empty()))

    def _read(self, shares: Floats, cells: Estimate, least: float = _CLEAR) -> Strata:
        """From the estimated shares of the combinations, one row per stratum."""
        n, count = cells.n, len(shares)
        truth = _distribution(shares)
        rows: Floats = np.kron(np.eye(count), np.ones(self.answers)).astype(np.float64)
        spread = partial(self._spread_of_sums, rows, self.answers)
        sizes = Estimate(self.stratum_names, n, n * shares.sum(axis=1), n * np.diagonal(spread(truth.sum(axis=1))),
                         self.name, law=spread) if n else Estimate.nothing(self.stratum_names, self.name)  # fmt: skip
        if n:
            sizes = replace(sizes, bounds=self._supported(sizes, self.answers))
        each: dict[str, Result] = {self.sizes_name: sizes}
        for place, name in enumerate(self.stratum_names):
            size, error = (float(sizes.frequencies[place]), float(sizes.stderr[place])) if n else (0.0, 0.0)
            heard = n > 0 and size > least * error and n * size >= (LEAST if least else 1)
            cut = max(least * error, LEAST / n) if least and n else -math.inf
            part = self._part(shares[place], truth, place, n if heard else 0, cut)
            each[name] = part if heard or not n else replace(part, said=(few_people(),))
        scores = self._points if self.positions else None
        whole = self._part(shares.sum(axis=0), truth, None, n)
        honest = partial(self._honest, shares, cells, least)
        return Strata(each, n, self.name, overall=whole, joint=cells, scores=scores, honest=honest)

    def _honest(self, shares: Floats, cells: Estimate, least: float, fakes: int) -> list[Strata]:
        """What the honest reports may say: the forged ones all support a stratum from some answer on, or up to it, or
        one answer of it, or all others. Ratios of what such reports add have their extremes there."""
        left = cells.n - fakes
        if left < 1 or cells.support is None:
            return [self._nothing()]
        p, q, steps = cells.support.p, cells.support.q, np.arange(self.answers)
        forms = np.unique(
            [form for at in steps for form in (steps == at, steps != at, steps >= at, steps <= at, steps < 0)], axis=0
        )
        found = []
        for stratum in (*range(len(shares)), slice(None)):  # one of them, or all
            for form in forms:
                said = np.full(shares.shape, -q / (p - q))
                said[stratum] += form / (p - q)
                rest = (cells.n * shares - fakes * said) / left
                known = replace(cells, n=left, counts=left * rest.reshape(-1), noise=cells.noise * left / cells.n)
                found.append(self._read(rest, known, least))
        return found

    def _supported(self, found: Estimate, cells: int) -> Numbers:
        """The numbers of shares that are sums over `cells` cells each, if a report mostly supports at most one cell."""
        p, q = float(self.inner.p), float(self.inner.q)
        return Numbers.between(-cells * q / (p - q), (1 - cells * q) / (p - q), found.frequencies, found.n)

    def _ratios(self, parts: Floats, scores: Floats, place: int, truth: Floats, n: int, cut: float) -> Ratios:
        """The ratios of weighted sums of a stratum's cells to its size: `scores` in [0, 1], one row per figure."""
        size, whole = float(parts[-1]), np.zeros((len(scores) + 1, *truth.shape))
        whole[:-1, place], whole[-1, place] = scores, 1.0
        noise = _covariance(self.inner, whole.reshape(len(whole), -1), truth.ravel()) / n
        held = min(1.0, max(0.0, size))
        row = _distribution(truth[place])
        means = scores @ row
        spread = scores**2 @ row - means**2 if self.positions else None

        def drawn(ratios: Floats) -> Floats:
            # For a share, its own variance; for a mean, that of the numbers of the stratum.
            if spread is None:
                return held * np.clip(ratios * (1 - ratios), 0.0, None) / n
            return np.full(ratios.shape, held * float(spread[0]) / n)

        variances = np.diagonal(noise)[:-1], noise[:-1, -1], float(noise[-1, -1])
        ends = self._number._ends if self.positions else (0.0, 1.0)
        return Ratios(parts[:-1], size, variances, drawn, held * (1 - held) / n, np.zeros(len(scores)), cut, ends)

    def _part(self, row: Floats, truth: Floats, place: int | None, n: int, cut: float = -math.inf) -> Result:
        """The figures of one stratum, or of everybody, from the shares of its cells; nothing without people.

        A stratum is shown because its size is above `cut`.
        """
        size = float(row.sum()) if place is not None else 1.0
        people = round(n * size)
        if self.positions:
            return self._mean(row / size if n else row, truth, place, people, n, cut, size)
        labels = self.domain.columns[-1][1].labels  # type: ignore[attr-defined]
        if not n:
            return Estimate.nothing(labels, self.name)
        shares = row / size
        law = partial(self._within, truth, place)
        noise = people * np.diagonal(law(_distribution(shares)))
        found = Estimate(labels, people, people * shares, noise, self.name, self._method(place), law=law)
        if place is None:
            return replace(found, bounds=self._supported(found, len(truth)))
        bounds = self._ratios(np.append(row, size), np.eye(self.answers), place, truth, n, cut)
        return replace(found, bounds=replace(bounds, errors=found.errors()))

    def _mean(
        self, shares: Floats, truth: Floats, place: int | None, people: int, n: int, cut: float, size: float
    ) -> Mean:
        ends, unit = self._number._ends, self._number._unit
        if not people:
            return Mean.nothing(ends, self.name, unit)
        points = self._points
        value = float(points @ shares)
        spread = self._within(truth, place, _distribution(shares), points[None, :])[0, 0]
        drawn = float(np.clip(points**2 @ shares - value**2, 0.0, (ends[1] - ends[0]) ** 2 / 4))
        rounding = min(drawn, (points[1] - points[0]) ** 2 / 4)
        stderr, noise = math.sqrt((spread + drawn) / people), math.sqrt((spread + rounding) / people)
        found = Mean(value, people, stderr, noise, ends, self.name, self._method(place), unit)
        if place is None:
            return found
        scores = (points - ends[0]) / (ends[1] - ends[0])
        bounds = self._ratios(size * np.array([scores @ shares, 1.0]), scores[None, :], place, truth, n, cut)
        return replace(found, bounds=replace(bounds, errors=np.array([stderr])))

    def _method(self, place: int | None) -> str:
        return "unbiased" if place is None else "ratio"

    @cached_property
    def _points(self) -> Floats:
        """The numbers at the positions."""
        return np.linspace(*self._number._ends, self.positions)

    def _within(self, truth: Floats, place: int | None, shares: Floats, scores: Floats | None = None) -> Floats:
        """What a report from a stratum adds to the covariance of its figures, if these are its shares.

        `place` is that of the stratum; None is everybody. Figures are the shares themselves, or scores of them.
        """
        score = np.eye(self.answers) if scores is None else scores
        whole = np.zeros((len(score), *truth.shape))
        if place is None:
            whole[:] = score[:, None, :]
            return _covariance(self.inner, whole.reshape(len(score), -1), (truth.sum(axis=1)[:, None] * shares).ravel())
        known, size = truth.copy(), float(truth[place].sum())
        known[place] = size * shares
        # A ratio moves with a cell by how far the cell's score is from the ratio.
        whole[:, place] = score - (score @ shares)[:, None]
        return _covariance(self.inner, whole.reshape(len(score), -1), known.ravel()) / max(size, 1e-300)

    def _spread_of_sums(self, rows: Floats, each: int, shares: Floats) -> Floats:
        """What one report adds to the covariance of sums of `each` cells, if these are the shares of the sums."""
        return _covariance(self.inner, rows, np.repeat(shares / each, each))

    # -- what to expect ----------------------------------------------------------------------------

    def _truth(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        """The figures of everybody, the shares of the strata, the figures of each; NaN of those without people."""
        cells = self._held(answers, people)
        sizes = cells.sum(axis=1)
        with np.errstate(invalid="ignore"):
            rows = np.vstack([cells.sum(axis=0), cells / sizes[:, None]])
        figures = rows @ self._points[:, None] if self.positions else rows
        return np.concatenate([figures[0], sizes, figures[1:].ravel()])

    def _held(self, answers: Any, people: Any = None) -> Floats:
        """The shares of the combinations among these people; a number counts at both positions around it."""
        *places, given = self.domain.encode(answers).columns
        stratum = np.asarray(self._stratum(tuple(places)))
        held = np.ones(len(stratum)) if people is None else np.asarray(people, dtype=np.float64)
        counts = np.zeros((len(self.stratum_names), self.answers))
        if self.positions:
            at = self._number._grid_places(np.asarray(given))
            below = np.minimum(np.floor(at).astype(np.int64), self.positions - 2)
            np.add.at(counts, (stratum, below), held * (1 - (at - below)))
            np.add.at(counts, (stratum, below + 1), held * (at - below))
        else:
            np.add.at(counts, (stratum, np.asarray(given)), held)
        return counts / float(held.sum())

    def _figure_variances(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        cells, n = self._held(answers, people), len(self.domain.encode(answers))
        n = n if people is None else int(np.sum(people))
        found = self._read(
            cells, Estimate(self.inner.domain.labels, n, n * cells.ravel(), cells.ravel(), self.name), 0.0
        )
        return np.square(found.table(population=False).stderr)

    def _figure_scales(self) -> NDArray[np.float64]:
        own = np.array([self.worth().scale]) if self.positions else np.ones(self.answers)
        count = len(self.stratum_names)
        return np.concatenate([own, np.ones(count), np.tile(own, count)])

    def _tests(self) -> int:
        figures = 1 if self.positions else self.answers
        return figures * (1 + len(self.stratum_names)) + len(self.stratum_names)

    def _parts(self, n: int) -> dict[str, tuple[Protocol, int]]:
        some = max(1, n // len(self.stratum_names))
        each: dict[str, tuple[Protocol, int]] = dict.fromkeys(self.stratum_names, (_PartOf.stratum(self), some))
        return {ALL: (_PartOf.of(self, ALL), n), self.sizes_name: (_PartOf.of(self, self.sizes_name), n)} | each

    def _remark(self, n: int, level: float = 0.95, population: bool = True) -> str:
        strata = len(self.stratum_names)
        reach = quantile(level) * self.worth(n, population=population).error
        figure = f"the mean within +-{reach:.3g} {self.worth().unit}".rstrip()
        if not self.positions:
            figure = f"any share within +-{100 * reach:.2g} percentage points"
        return (
            f"Each report is about {' and '.join(self.domain.names)} together, of which there are "
            f"{self.law().input_count:,} combinations ({self.inner.name}), so that epsilon protects all of it. With "
            f"{strata:,} strata of about equal size each gives {figure}; smaller strata have larger errors."
        )

    def __repr__(self) -> str:
        return f"PrivateStrata({self.domain!r}, epsilon={exact.literal(self.epsilon)}, positions={self.positions})"

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            formula_for="large samples",
            strata=lambda: self.domain.names[:-1],
            cost=lambda: self.inner.worth().cost._replace(
                random_bytes=self.inner.worth().cost.random_bytes + (WORD_BYTES if self.positions else 0)
            ),
            truth=self._truth,
            variances=self._figure_variances,
            scales=self._figure_scales,
            tests=self._tests,
            unit=lambda: self._number._unit if self.positions else "",
            scale=lambda: self._number._width if self.positions else 1.0,
            # In an average stratum: the noise of the share of an answer that nobody gave there, or of the mean in
            # the worst case.
            noise=lambda: _PartOf.stratum(self).worth(max(1, n // len(self.stratum_names))).noise,
            # In an average stratum: the error of the share of an answer, or of the mean, in the worst case.
            error=lambda: (
                _PartOf.stratum(self).worth(max(1, n // len(self.stratum_names)), population=population).error
            ),
            visible=lambda level=0.95: (
                None if self.positions else min(1.0, quantile(level, self.worth().tests) * self.worth(n).noise)
            ),
            leverage=lambda: self.inner.worth().leverage,
            # For an average stratum.
            moved=lambda: len(self.stratum_names) * self.worth().scale * self.inner.worth().moved,
            parts=lambda: self._parts(n),
            split=lambda tally: {name: (protocol, tally) for name, (protocol, _) in self._parts(1).items()},
            remark=lambda level=0.95: self._remark(n, level, population),
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            sent=self._law_of,
            inputs=self._inputs,
            input_count=lambda: len(self.stratum_names) * self.answers,
        )


@dataclass(frozen=True, init=False, repr=False)
class _PartOf(PrivateStrata):
    """One part of the result: how exact its figures are with a given number of people in it."""

    about: str

    @classmethod
    def of(cls, whole: PrivateStrata, about: str) -> _PartOf:
        made = cls.__new__(cls)
        made._set(whole.domain, whole.epsilon, whole.positions, whole.inner)
        object.__setattr__(made, "about", about)
        return made

    @classmethod
    def stratum(cls, whole: PrivateStrata) -> _PartOf:
        return cls.of(whole, "")

    @property
    def is_mean(self) -> bool:
        return bool(self.positions) and self.about != self.sizes_name

    def _variance(self, shares: Floats, scores: Floats) -> float:
        """What one report of the part adds, where its cells have these shares; all strata are alike."""
        count = len(self.stratum_names)
        if self.about == self.sizes_name:
            rows: Floats = np.kron(np.eye(count), np.ones(self.answers)).astype(np.float64)
            return float(self._spread_of_sums(rows[:1], self.answers, shares)[0, 0])
        truth = np.tile(shares / count, (count, 1))
        return float(self._within(truth, None if self.about else 0, shares, scores[None, :])[0, 0])

    def _ends(self, share: float, size: int) -> Floats:
        """A share of the people in the first of `size` cells, the others spread evenly over the rest."""
        return np.array([share, *[(1 - share) / (size - 1)] * (size - 1)])

    def _noise(self, n: int) -> float:
        if self.is_mean:
            return math.sqrt(_worst_noise(self) / n)
        size = self.worth().tests
        return math.sqrt(self._variance(self._ends(0.0, size), np.eye(size)[0]) / n)

    def _error(self, n: int, population: bool = True) -> float:
        if self.is_mean and not population:
            return self.worth(n).noise
        most, size = 0.0, self.answers if self.is_mean else self.worth().tests
        scores = self._points if self.is_mean else np.eye(size)[0]
        for share in np.linspace(0, 1, _STEPS):
            shares = self._ends(share, size)
            if self.is_mean:  # people at both ends differ most
                shares = np.zeros(size)
                shares[[0, -1]] = share, 1 - share
            drawn = self.worth().scale ** 2 * share * (1 - share) if population else 0.0
            most = max(most, self._variance(shares, scores) + drawn)
        return math.sqrt(most / n)

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            read=lambda: "mean" if self.is_mean else "shares",
            tests=lambda: (
                1 if self.is_mean else len(self.stratum_names) if self.about == self.sizes_name else self.answers
            ),
            unit=lambda: self._number._unit if self.is_mean else "",
            scale=lambda: self._number._width if self.is_mean else 1.0,
            moved=lambda: (
                (1 if self.about else len(self.stratum_names)) * self.worth().scale * self.inner.worth().moved
            ),
            noise=lambda: self._noise(n),
            error=lambda: self._error(n, population),
            visible=lambda level=0.95: (
                None if self.is_mean else min(1.0, quantile(level, self.worth().tests) * self.worth(n).noise)
            ),
        )


def _worst_noise(part: _PartOf) -> float:
    """The noise of the mean with one person in the part, rounding included, for the number where it is most."""
    most, points = 0.0, part._points
    for place in np.linspace(0, part.positions - 1, _STEPS):
        below = min(int(place), part.positions - 2)
        up = place - below
        shares = np.zeros(part.positions)
        shares[[below, below + 1]] = 1 - up, up
        most = max(most, part._variance(shares, points) + up * (1 - up) * (points[1] - points[0]) ** 2)
    return most


@lru_cache(maxsize=256)
def _best_positions(strata: int, epsilon: Fraction) -> int:
    """The positions whose mean has the smallest worst-case noise in a stratum of average size."""
    found: dict[int, float] = {}
    for positions in _POSITIONS:
        if strata * positions > MOST_COMBINATIONS and positions > 2:
            break
        with suppress(ChannelError, DomainError):
            unit = Records({"s": Integers(0, strata - 1), "x": Interval(0, 1)})
            found[positions] = _worst_noise(_PartOf.stratum(PrivateStrata(unit, epsilon, positions)))
    if not found:
        raise ChannelError(f"at epsilon {exact.shown(epsilon)} no protocol exists for {strata:,} strata: raise epsilon")
    return min(found, key=lambda positions: (found[positions], positions))


def _distribution(shares: Floats) -> Floats:
    """Estimated shares as a distribution, for the covariance that they imply."""
    known = np.clip(shares, 0.0, None)
    total = float(known.sum())
    return known / total if total > 0 else np.full(known.shape, 1 / known.size)


def _covariance(protocol: PureProtocol, weights: Floats, shares: Floats) -> Floats:
    """What one report adds to the covariance of weighted sums of estimated shares, one sum per row of weights."""
    law = law_of(protocol)
    total, held = weights.sum(axis=1), weights @ shares
    squares, own = weights @ weights.T, (weights * shares) @ weights.T
    crossed = np.outer(held, total) + np.outer(total, held)
    found: Floats = (
        law.own * own
        + law.other * (squares - own)
        + law.mixed * (crossed - 2 * own)
        + law.pair * (np.outer(total, total) - crossed + 2 * own - squares)
    ) / law.gap**2
    return found
