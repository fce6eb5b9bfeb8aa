"""One attribute of several, or several together: each device reports one view of its record, chosen by coins.

Law        view g with probability w_g / W, whatever the record is; then a report of the view's own protocol. A view is
           one column, or some columns together: then the report is about the combination of their cells
Privacy    the largest epsilon of a view, for the whole record: one view is reported, and the choice does not depend on
           the record
Error      of a view: its protocol's with n w_g / W people. Splitting epsilon over G views instead asks everybody
           for everything at epsilon / G: the noise variance is about G^2 times as large for the same people, against
           G times here
Report     the view's number, its report, zeros up to the longest one
Cost       one random word more than the view's report
Source     Nguyen et al. 2016; Wang et al. 2019 (numbers); Arcolezi et al. 2021 (sampling against splitting); views of
           several attributes: Zhang et al. 2018 (CALM)

Views      `ask=1`: each column; "pairs" or "triples": all of them; or a public list of columns and combinations
Cells      for a list of answers, each answer. More than 16 whole numbers, and intervals, are cut into 8 cells of equal
           width, unless `cells` is given. Combinations are numbered row by row, the last column first
Choice     for one column, what the planner would choose for its share of the people; for several, the one of
           randomized response, subset selection and local hashing with the smallest exact variance. The weights make
           the largest standard errors of the views about equal, each divided by the width of the figure's range (1 for
           a share): w_g is proportional to the variance of one report. They are stored in the spec
Result     `Several`: one part per view, about the population, although another group of people answered each. With
           combinations it is a `Joint`, which also has tables of any columns, models and synthetic records
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.domains import Domain, Integers, Interval, ListedDomain, Records
from deniable.domains.records import RecordColumns
from deniable.errors import ChannelError, DomainError, NumberError, SpecError
from deniable.protocols.choice import build, choose
from deniable.protocols.frequency import GRR
from deniable.protocols.frequency.subset_selection import EXCHANGEABLE
from deniable.protocols.groups import Group, Groups
from deniable.protocols.law import Law
from deniable.protocols.protocol import Protocol
from deniable.protocols.ranges.cells import Cells, best_protocol
from deniable.protocols.record import remembered
from deniable.protocols.tally import Tally
from deniable.protocols.traits import Ask, Traits, scaled
from deniable.protocols.worth import Worth
from deniable.results import Crosstab, Joint, Several, quantile
from deniable.words import Fact, Word, word

_PEOPLE = 10_000
"""The number of people per view for which a protocol is chosen, if it is not given."""

_FORMS = 1 << 10

_STEPS = 4
"""The weight of the view with the smallest variance, before weights are divided by what they have in common."""

VIEWS = {"pairs": 2, "triples": 3}
MOST_VIEWS = 1 << 12
MOST_CELLS = 1 << 16
"""Combinations of one view."""
_MANY_NUMBERS, _USUAL_CELLS = 16, 8
_SLACK = 1.01
"""Variances this close count as equal: then the shortest report wins."""

Views = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, init=False, repr=False)
class Attributes(Groups):
    """Several questions to one person; chance chooses one of them to be answered, or several together.

    `Attributes.of` takes protocols of the columns that are chosen already.

    Args:
        domain: `Records`, or domains by name.
        epsilon: Largest epsilon of a report.
        people: Expected number of respondents, for the choice of the protocols.
        ask: What a report is about: 1 column, "pairs" or "triples" of columns, the "best" of these two for tables of
            three columns, or a list of names and of tuples of names.
        cells: Number of cells of numeric columns, by name.

    >>> people = Records({"smoke": ["yes", "no"], "sleep": Interval(0, 24, unit="hours")})
    >>> protocol = Attributes(people, epsilon=1)
    >>> [(group.weight, group.protocol.name) for group in protocol.groups], protocol.report_bytes
    ([(1, 'GRR'), (1, 'MeanTable')], 2)
    >>> found = protocol.estimate(protocol.tally(protocol.privatize([{"smoke": "no", "sleep": 7.5}] * 1000)))
    >>> found.shares("smoke").labels, found.shares("sleep").unit
    (('yes', 'no'), 'hours')
    >>> both = Attributes(people, epsilon=1, ask="pairs", cells={"sleep": 4})
    >>> both.group_names, both.groups[0].protocol.domain.size
    (('smoke & sleep',), 8)
    """

    name: ClassVar[str] = "Attributes"
    traits: ClassVar[Traits] = Traits(
        takes=(Records,),
        advice="it needs dn.Records({name: domain, ...})",
        reads=("attributes", *VIEWS, "views"),
        slow=True,
        candidates=lambda kind, ask: kind._offered(ask),
        at_epsilon=lambda protocol, factor: protocol._scaled(factor),
        waived={"unbiased": "each column divides by the number of its own reports, which chance decides"},
    )

    domain: Records
    views: Views = ()
    """The columns that each group is about, by place."""
    cells: tuple[int, ...] = ()

    def __init__(
        self,
        domain: Any,
        epsilon: exact.Number,
        people: int | None = None,
        ask: int | str | Sequence[Any] = 1,
        cells: Mapping[str, int] | None = None,
    ) -> None:
        self._settle_record(domain, epsilon, people)
        if isinstance(ask, str) and ask == "best":
            ask = _pairs_or_triples(type(self), self.domain, self.epsilon, people, cells)
        views = _views(self.domain, ask)
        counts = _counts(self.domain, views, cells)
        groups = _chosen(self.domain, self.epsilon, people, views, counts)
        self._set(self.domain, groups, self.epsilon, views, counts)

    @classmethod
    def of(cls, protocols: Mapping[str, Protocol], weights: Mapping[str, int] | None = None) -> Attributes:
        """From the protocols of the columns, by name; each column has the same weight unless `weights` says more.

        >>> from deniable.protocols import OUE
        >>> Attributes.of({"smoke": OUE(["yes", "no"], 1), "age": OUE(80, 1)}, {"smoke": 1, "age": 4}).chances
        (Fraction(1, 5), Fraction(4, 5))
        """
        given = dict.fromkeys(protocols, 1) if weights is None else dict(weights)
        if set(given) != set(protocols):
            raise SpecError("the weights have other names than the protocols")
        return cls._made(
            Records({name: protocol.domain for name, protocol in protocols.items()}),
            [(given[name], protocol) for name, protocol in protocols.items()],
            None,
        )

    @classmethod
    def _made(
        cls, domain: Domain, groups: Any, epsilon: Any, views: Views | None = None, cells: tuple[int, ...] = ()
    ) -> Attributes:
        made = cls.__new__(cls)
        made._set(domain, groups, epsilon, views, cells)
        return made

    def _set(
        self, domain: Domain, groups: Any, epsilon: Any, views: Views | None = None, cells: tuple[int, ...] = ()
    ) -> None:
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "groups", tuple(Group(weight, protocol) for weight, protocol in groups))
        self._check_groups()
        largest = max(group.protocol.epsilon for group in self.groups)
        object.__setattr__(self, "epsilon", largest if epsilon is None else epsilon)
        self._settle()
        if self.epsilon != largest:
            raise SpecError("epsilon is not the largest one of the groups")
        object.__setattr__(self, "views", _alone(self.domain) if views is None else views)
        object.__setattr__(self, "cells", cells)
        if len(self.groups) != len(self.views):
            raise SpecError(f"there is one group per {'column' if views is None else 'view'}")
        for view, (_, protocol) in zip(self.views, self.groups, strict=True):
            if len(view) == 1:
                name, column = self.domain.columns[view[0]]
                if protocol.domain != column:
                    raise SpecError(f"the answers of the group of column {name!r} are not those of the column")
            elif not isinstance(protocol, EXCHANGEABLE) or protocol.domain != Integers(0, self._size(view) - 1):
                names = ", ".join(kind.name for kind in EXCHANGEABLE)
                raise SpecError(f"columns together need one of {names} over the numbers of their combinations")
        if len(set(self.group_names)) < len(self.group_names):
            raise SpecError("two groups are called the same: rename a column, or ask for each combination once")
        relations = {group.protocol.guarantee.relation for group in self.groups}
        if len(relations) > 1:
            raise SpecError(f"the columns have different guarantees ({', '.join(sorted(relations))}): use one kind")

    def _size(self, view: tuple[int, ...]) -> int:
        return math.prod(self.cells[column] for column in view)

    def parameters(self) -> dict[str, Any]:
        if self.views == _alone(self.domain):
            return super().parameters()
        return {"views": [list(view) for view in self.views], "cells": list(self.cells)} | super().parameters()

    @classmethod
    def _from_parameters(cls, domain: Domain, epsilon: Any, parameters: Mapping[str, Any]) -> Attributes:
        match parameters:
            case {"groups": list(groups), **rest} if not rest:
                return cls._made(domain, cls._written(groups), epsilon)
            case {"groups": list(groups), "views": list(views), "cells": list(cells), **rest} if not rest:
                if not isinstance(domain, Records):
                    raise SpecError(f"{cls.name} cannot ask for {domain}: {cls.traits.advice}")
                if not all(isinstance(view, list) for view in views):
                    raise SpecError("a view is a list of the places of its columns")
                places = _checked_views(domain, [tuple(view) for view in views])
                if len(cells) != len(domain.columns):
                    raise SpecError("there is one number of cells per column")
                named = dict(zip(domain.names, cells, strict=True))
                counts = _counts(domain, places, named)
                return cls._made(domain, cls._written(groups), epsilon, places, counts)
        raise SpecError(
            "attributes need groups, each with a weight and a protocol, perhaps views and cells, and no more"
        )

    @classmethod
    def _offered(cls, ask: Ask) -> Iterator[Protocol]:
        if not isinstance(ask.domain, Records):
            return
        yield cls(ask.domain, ask.epsilon, ask.n)
        # Where reports repeat, they may have few forms: first a share of a usual limit per column, then the fewest.
        for forms in (_FORMS // len(ask.domain.columns), 0):
            with suppress(DomainError):
                level = exact.as_epsilon(ask.epsilon)
                yield cls._made(ask.domain, _chosen(ask.domain, level, ask.n, _alone(ask.domain), (), forms), level)
        for read, size in VIEWS.items():
            if size <= len(ask.domain.columns):
                with suppress(DomainError, NumberError):
                    yield cls(ask.domain, ask.epsilon, ask.n, ask=read)

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        from deniable.protocols.frequency import OUE
        from deniable.protocols.numeric import OneBitMean, Window

        smoke, age = ["yes", "no"], Integers(1, 3)
        yield cls.of({"smoke": GRR(smoke, 1), "age": OUE(age, 1)}, {"smoke": 1, "age": 2})
        yield cls.of({"warm": Window(Interval(0, 1), 1, positions=3, width=2), "wet": OneBitMean(Interval(0, 1), 1)})
        some = ["smoke", ("warm", "age"), ("smoke", "warm")]
        yield cls({"smoke": smoke, "age": Integers(0, 6), "warm": Interval(0, 1)}, 1, None, some, {"age": 3, "warm": 2})

    def _scaled(self, factor: Fraction) -> Attributes:
        groups = [(weight, scaled(protocol, factor)) for weight, protocol in self.groups]
        return self._made(self.domain, groups, None, self.views, self.cells)

    def _truth(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        """The figures of all views, one after the other."""
        each = zip(self._asked(answers), self.groups, strict=True)
        return np.concatenate([group.protocol.worth().truth(own, people) for own, group in each])

    def _figure_variances(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        """The noise of the people that a view gets, and the error of having heard only them of all who answered."""
        found = []
        for own, chance, (_, protocol) in zip(self._asked(answers), map(float, self.chances), self.groups, strict=True):
            noise = protocol.worth().variances(own) / chance
            found.append(noise + (1 - chance) / chance * protocol.worth().spreads(own) / len(own))
        return np.concatenate(found)

    def _asked(self, answers: Any) -> Iterator[Any]:
        """What each view is about, of these answers: a column of answers, or numbers of combinations."""
        columns = self.domain.split(answers)
        encoded = self.domain.encode(answers) if self.law().several_parts else None
        for group, view in enumerate(self.views):
            if len(view) == 1:
                yield columns[self.domain.names[view[0]]]
            else:
                assert encoded is not None
                yield self.project_many(encoded, group, np.arange(len(encoded)))

    # -- the law -----------------------------------------------------------------------------------

    @cached_property
    def _axes(self) -> tuple[Cells, ...]:
        each = zip(self.domain.columns, self.cells, strict=True)
        return tuple(Cells(column, count) for (_, column), count in each)

    @property
    def group_names(self) -> tuple[str, ...]:
        names = self.domain.names
        return tuple(" & ".join(names[column] for column in view) for view in self.views)

    def project(self, value: Any, group: int) -> Any:
        view = self.views[group]
        if len(view) == 1:
            return value[view[0]]
        place = 0
        for column in view:
            place = place * self.cells[column] + self._axes[column].of(value[column])
        return place

    def part(self, value: Any, group: int) -> Any:
        view = self.views[group]
        # For several columns, the number of their combination takes the place of the answer.
        alone = len(view) == 1
        return value.get(self.domain.names[view[0]]) if alone else self.project(self.domain.encode_one(value), group)

    def project_many(self, values: RecordColumns, group: int, rows: NDArray[np.intp]) -> Any:
        view = self.views[group]
        if len(view) == 1:
            return values.columns[view[0]].take(rows)
        places = np.zeros(len(rows), dtype=np.int64)
        for column in view:
            own = self._axes[column].of_many(np.asarray(values.columns[column]).take(rows))
            places = places * self.cells[column] + own
        return places

    def _inputs(self) -> Iterator[tuple[Any, Any]]:
        each = product(*(list(self._column_inputs(column)) for column in range(len(self.domain.columns))))
        return ((tuple(label for label, _ in row), tuple(value for _, value in row)) for row in each)

    def _column_inputs(self, column: int) -> Iterator[tuple[Any, Any]]:
        """Answers of one column whose laws are those of all."""
        name, domain = self.domain.columns[column]
        alone = [group.protocol for view, group in zip(self.views, self.groups, strict=True) if view == (column,)]
        together = any(column in view and len(view) > 1 for view in self.views)
        if not together or (alone and isinstance(domain, ListedDomain)):
            return alone[0].law().inputs() if alone else iter([(domain.example, domain.encode_one(domain.example))])
        if alone:
            raise ChannelError(f"number {name!r} is asked alone and with others: there is no short list of its answers")
        return self._axes[column].inputs()

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        group = int.from_bytes(report[: self._head], "little")
        choice, *rest = super().story(value, encoded, report)
        if len(self.views[group]) == 1:
            return [choice, *rest]
        place, size = self.project(encoded, group), self.groups[group].protocol.domain.size  # type: ignore[attr-defined]
        return [choice, word("story.combination", n=size, place=place), *rest]

    def _choice(self) -> Word:
        return super()._choice()._replace(id="story.parts" if self.law().several_parts else "story.part")

    def _says(self, report: bytes) -> Fact:
        group = int.from_bytes(report[: self._head], "little")
        said = super()._says(report)
        return said if len(self.views[group]) == 1 else word("says.combinations", report=said)

    def _attack(self) -> float | None:
        """How often a guess is right for the column where that is easiest.

        A report about another column leaves only a guess. None if reports are about several columns together, because
        such a report says something about each of them.
        """
        if self.law().several_parts:
            return None
        found: list[float] = []
        for chance, (_, protocol) in zip(self.chances, self.groups, strict=True):
            if protocol.worth().guess is None or not isinstance(protocol.domain, ListedDomain):
                return None
            found.append(float(chance) * protocol.worth().guess + float(1 - chance) / protocol.domain.size)
        return max(found)

    # -- the read-out ------------------------------------------------------------------------------

    def estimate(self, tally: Tally) -> Any:
        """One result per view, as parts of one table: a `Several`, and with combinations a `Joint`."""
        found: Several = super().estimate(tally)
        return found

    def infer(self, tally: Tally) -> Several:
        parts = {}
        axes = (
            {name: axis for (name, _), axis in zip(self.domain.columns, self._axes, strict=True)} if self.cells else {}
        )
        for name, view, (_, protocol), own in zip(
            self.group_names, self.views, self.groups, self.tallies(tally), strict=True
        ):
            found = protocol.estimate(own)
            if len(view) > 1:
                columns = [self.domain.names[column] for column in view]
                found = Crosstab.of(found, {column: axes[column].labels for column in columns})
            parts[name] = found.sampled(Fraction(own.n, max(1, tally.n)))
        if not self.law().several_parts:
            return Several(parts, tally.n, self.name)
        labels = {name: tuple(axis.labels) for name, axis in axes.items()}
        return Joint(
            parts, tally.n, self.name, axes=labels, answers={name: axis.answers for name, axis in axes.items()}
        )

    def split_error(self, n: int, population: bool = True) -> float:
        """`error` if everybody were asked for every view, with an equal part of epsilon each."""
        level = self.epsilon / len(self.groups)
        each = [
            _best(self.domain.columns[view[0]][1], level, n)
            if len(view) == 1
            else best_protocol(self._size(view), level, _SLACK)
            for view in self.views
        ]
        return max(protocol.worth(n, population=population).error / protocol.worth().scale for protocol in each)

    def table_distance(self, n: int) -> float:
        """The average distance of tables of three columns from the truth with n people, as total variation.

        Noise and sampling are exact for people whose combinations are all equally common. A triple that is asked for is
        read directly; else it is put together from its pairs, whose errors add up, and what is only in the triple is
        lost: 0.016, as in the census table of 1994. Infinite where neither is asked for.
        """
        people = dict(zip(self.views, self.people(n), strict=True))
        variances = {
            view: float(protocol.variance(people[view], 1 / self._size(view))) / people[view] ** 2  # type: ignore[attr-defined]
            for view, (_, protocol) in zip(self.views, self.groups, strict=True)
            if len(view) > 1
        }
        triples = list(combinations(range(len(self.domain.columns)), 3))
        found = []
        for triple in triples[:: 1 + len(triples) // _MOST_TRIPLES]:
            size, lost = self._size(triple), 0.0
            if triple in variances:
                spread = variances[triple]
            else:
                pairs = list(combinations(triple, 2))
                spread = sum(variances.get(pair, math.inf) * (self._size(pair) / size) ** 2 for pair in pairs)
                lost = _LOST
            found.append(size * math.sqrt(2 / math.pi * spread) / 2 + lost)
        return float(np.mean(found)) if found else math.inf

    def _remark(self, n: int, level: float = 0.95, population: bool = True) -> str:
        """How exact each view is, and how exact the views would be if epsilon were split over all of them."""
        z, size, of_all = quantile(level), len(self.groups), "combinations" if self.law().several_parts else "columns"
        each = []
        for name, (protocol, people) in list(self.worth(n).parts.items())[:_SHOWN]:
            unit = f" {protocol.worth().unit}" if protocol.worth().unit else ""
            reach = z * protocol.worth(people, population=population).error
            each.append(f"{name} by {protocol.name} from about {people:,} people within +-{reach:.3g}{unit}")
        more = f"; and {size - _SHOWN:,} more" if size > _SHOWN else ""
        said = f"Each person reports 1 of {size} {of_all}, with the whole epsilon: {'; '.join(each)}{more}."
        if size == 1:
            return said
        sampled, split = z * self.worth(n, population=population).error, z * self.split_error(n, population)
        return (
            f"{said} The widest interval reaches {sampled:.3g} of its range to either side; with epsilon split over "
            f"all {size} {of_all}, and everybody reporting each, it would be {split:.3g}.{self._further(n)}"
        )

    @cached_property
    def _read(self) -> str:
        most = max(map(len, self.views))
        return next((name for name, size in VIEWS.items() if size == most), "attributes" if most == 1 else "views")

    def _further(self, n: int) -> str:
        """For pairs and triples: how exact tables of three columns are."""
        if self._read not in VIEWS or len(self.domain.columns) < 3:
            return ""
        far = self.table_distance(n)
        return f" Tables of three columns are about {far:.2g} from the truth (total variation) without a model."

    def __repr__(self) -> str:
        inner = ", ".join(
            f"{name}: {group.protocol.name} x{group.weight}"
            for name, group in zip(self.group_names, self.groups, strict=True)
        )
        return f"Attributes({inner}, epsilon={self.epsilon})"

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            read=lambda: self._read,
            truth=self._truth,
            variances=self._figure_variances,
            scales=lambda: np.concatenate(
                [np.full(group.protocol.worth().tests, group.protocol.worth().scale) for group in self.groups]
            ),
            guess=self._attack,
            remark=lambda level=0.95: self._remark(n, level, population),
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            several_parts=lambda: any(len(view) > 1 for view in self.views),
            inputs=self._inputs,
            input_count=lambda: math.prod(
                sum(1 for _ in self._column_inputs(column)) for column in range(len(self.domain.columns))
            ),
        )


_MOST_TRIPLES, _LOST = 400, 0.016
_SHOWN = 12


def _alone(domain: Records) -> Views:
    return tuple((column,) for column in range(len(domain.columns)))


def _pairs_or_triples(
    kind: type[Attributes], domain: Records, epsilon: Fraction, people: int | None, cells: Mapping[str, int] | None
) -> str:
    """The combinations for which tables of three columns are nearer to the truth with this number of people."""
    found = {}
    for ask in VIEWS:
        with suppress(NumberError):
            made = kind(domain, epsilon, people, ask, cells)
            found[ask] = made.table_distance(_PEOPLE * len(made.groups) if people is None else people)
    return min(found, key=lambda ask: found[ask]) if found else "pairs"


def _views(domain: Records, ask: Any) -> Views:
    """What `ask` says, as places of columns."""
    columns = range(len(domain.columns))
    if isinstance(ask, str) and ask in VIEWS:
        ask = VIEWS[ask]
    if isinstance(ask, int) and not isinstance(ask, bool) and ask >= 1:
        if ask > len(columns):
            raise NumberError(f"a record of {len(columns)} columns has no {ask} of them")
        if math.comb(len(columns), ask) > MOST_VIEWS:
            raise NumberError(
                f"there are {math.comb(len(columns), ask):,} combinations of {ask} columns, more than {MOST_VIEWS:,}: "
                "list those to ask for"
            )
        return tuple(combinations(columns, ask))
    if isinstance(ask, str | int | float) or not isinstance(ask, Sequence):
        raise NumberError(f'a report is about 1 column, "pairs" or "triples", or a list of names, not {ask!r}')
    places = {name: place for place, name in enumerate(domain.names)}
    found = []
    for view in ask:
        names = (view,) if isinstance(view, str) else tuple(view)
        for name in names:
            if name not in places:
                raise DomainError(f"there is no column {name!r}; there are {', '.join(domain.names)}")
        found.append(tuple(sorted(places[name] for name in names)))
    return _checked_views(domain, found)


def _checked_views(domain: Records, views: Sequence[tuple[Any, ...]]) -> Views:
    if not 1 <= len(views) <= MOST_VIEWS:
        raise SpecError(f"there are 1 to {MOST_VIEWS:,} views, not {len(views)}")
    for view in views:
        rising = all(isinstance(one, int) and not isinstance(one, bool) for one in view) and bool(view)
        if not rising or sorted(set(view)) != list(view) or not 0 <= view[0] <= view[-1] < len(domain.columns):
            raise SpecError("a view has different columns of the record, in their order")
    if len(set(views)) < len(views):
        raise SpecError("two views are about the same columns")
    return tuple(views)


def _counts(domain: Records, views: Views, cells: Mapping[str, int] | None) -> tuple[int, ...]:
    """The numbers of cells of the columns, given or default; empty if no columns are asked together."""
    if views == _alone(domain):
        if cells is not None:
            raise NumberError("columns that are asked alone have no cells: leave them out")
        return ()
    given = dict(cells or {})
    counts = []
    for name, column in domain.columns:
        size = column.size if isinstance(column, ListedDomain) else None
        if size is None and not isinstance(column, Interval):
            raise DomainError(f"column {name!r} cannot be asked with others: it needs a list of answers or a number")
        few = size is not None and (size <= _MANY_NUMBERS or not isinstance(column, Integers))
        found = given.pop(name, size if few else _USUAL_CELLS)
        if (
            isinstance(found, bool)
            or not isinstance(found, int)
            or not 2 <= found <= min(size or MOST_CELLS, MOST_CELLS)
        ):
            raise NumberError(f"column {name!r} cannot be cut into {found!r} cells")
        if size is not None and found != size and not isinstance(column, Integers):
            raise NumberError(f"the answers of column {name!r} are no numbers: each is a cell")
        counts.append(found)
    if given:
        raise DomainError(f"there is no column {next(iter(given))!r}; there are {', '.join(domain.names)}")
    for view in views:
        if len(view) > 1 and math.prod(counts[column] for column in view) > MOST_CELLS:
            names = " & ".join(domain.names[column] for column in view)
            raise NumberError(f"{names} have more than {MOST_CELLS:,} combinations: cut their numbers into fewer cells")
    return tuple(counts)


def _chosen(
    domain: Records,
    epsilon: Fraction,
    people: int | None,
    views: Views,
    cells: tuple[int, ...],
    forms: int | None = None,
) -> Iterator[tuple[int, Protocol]]:
    """A weight and a protocol per view; `forms` limits the number of different reports, if that is possible."""
    each = _PEOPLE if people is None else max(1, int(people) // len(views))
    found = [
        _best(domain.columns[view[0]][1], epsilon, each, forms)
        if len(view) == 1
        else best_protocol(math.prod(cells[column] for column in view), epsilon, _SLACK)
        for view in views
    ]
    return zip(_weights(found, each), found, strict=True)


def _best(domain: Domain, epsilon: Fraction, n: int, forms: int | None = None) -> Protocol:
    protocols = build(domain, epsilon, None if forms is None else max(forms, domain.least_forms), n)
    return protocols[choose(protocols, n)]


def _weights(protocols: list[Protocol], n: int) -> list[int]:
    """In proportion to the variance of one report: then all columns have about the same error."""
    variances = [(protocol.worth(n).error / protocol.worth().scale) ** 2 for protocol in protocols]
    rounded = [max(1, round(_STEPS * one / min(variances))) for one in variances]
    common = math.gcd(*rounded)
    return [weight // common for weight in rounded]
