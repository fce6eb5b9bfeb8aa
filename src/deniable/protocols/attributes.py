"""One attribute of several: each device reports one column of its record, chosen by coins, with the whole epsilon.

Law        column g with probability w_g / W, whatever the record is; then a report of the column's own protocol
Privacy    the largest epsilon of a column: one column is reported, and the choice does not depend on the record
Error      of a column: its protocol's with n w_g / W people. Splitting epsilon over G columns instead asks everybody
           for everything at epsilon / G: the noise variance is about G^2 times as large for the same people, against
           G times here
Report     the column's number, its report, zeros up to the longest one
Cost       one random word more than the column's report
Source     Nguyen et al. 2016; Wang et al. 2019 (numbers); Arcolezi et al. 2021 (sampling against splitting)

Choice     for each column what the planner would choose for its share of the people. The weights make the largest
           standard errors of the columns about equal, each as a part of the width of what the figure can be (1 for a
           share): w_g is in proportion to the variance of one report. They are stored in the spec
Result     `Several`: one part per column, about the population, although another group of people answered each
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.domains import Domain, Integers, Interval, ListedDomain, Records
from deniable.domains.records import RecordColumns
from deniable.errors import DomainError, NumberError, SpecError
from deniable.protocols.base import Protocol
from deniable.protocols.choice import build, choose
from deniable.protocols.frequency import GRR
from deniable.protocols.groups import Group, Groups
from deniable.protocols.tally import Tally
from deniable.results import Several, quantile

_PEOPLE = 10_000
"""People per column for whom a protocol is chosen where nobody says how many there are."""

_FORMS = 1 << 10

_STEPS = 4
"""The weight of the column with the smallest variance, before weights are divided by what they have in common."""


@dataclass(frozen=True, init=False, repr=False)
class Attributes(Groups):
    """Several questions to one person, of which chance chooses one to be answered.

    `people` is about how many will answer, for the choice of the protocols. `ask` is how many columns a report is
    about: 1. `Attributes.of` takes protocols that are chosen already.

    >>> people = Records({"smoke": ["yes", "no"], "sleep": Interval(0, 24, unit="hours")})
    >>> protocol = Attributes(people, epsilon=1)
    >>> [(group.weight, group.protocol.name) for group in protocol.groups], protocol.report_bytes
    ([(1, 'GRR'), (1, 'MeanTable')], 2)
    >>> found = protocol.estimate(protocol.tally(protocol.privatize([{"smoke": "no", "sleep": 7.5}] * 1000)))
    >>> found.shares("smoke").labels, found.shares("sleep").unit
    (('yes', 'no'), 'hours')
    """

    name: ClassVar[str] = "Attributes"
    slow_to_build: ClassVar[bool] = True
    takes: ClassVar[tuple[type[Domain], ...]] = (Records,)
    advice: ClassVar[str] = "it needs dn.Records({name: domain, ...})"

    domain: Records

    def __init__(self, domain: Any, epsilon: exact.Number, people: int | None = None, ask: int = 1) -> None:
        if isinstance(ask, bool) or ask != 1:
            raise NumberError(f"a report is about one column: ask=1, not {ask!r}")
        object.__setattr__(self, "domain", Records(domain) if isinstance(domain, Mapping) else domain)
        object.__setattr__(self, "epsilon", epsilon)
        self._settle()
        if people is not None and (isinstance(people, bool) or not isinstance(people, int | np.integer) or people < 1):
            raise NumberError(f"the number of people is a positive whole number, not {people!r}")
        self._set(self.domain, _chosen(self.domain, self.epsilon, people), self.epsilon)

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
    def _made(cls, domain: Domain, groups: Any, epsilon: Any) -> Attributes:
        made = cls.__new__(cls)
        made._set(domain, groups, epsilon)
        return made

    def _set(self, domain: Domain, groups: Any, epsilon: Any) -> None:
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "groups", tuple(Group(weight, protocol) for weight, protocol in groups))
        self._check_groups()
        largest = max(group.protocol.epsilon for group in self.groups)
        object.__setattr__(self, "epsilon", largest if epsilon is None else epsilon)
        self._settle()
        if self.epsilon != largest:
            raise SpecError("epsilon is not the largest one of the groups")
        if len(self.groups) != len(self.domain.columns):
            raise SpecError("there is one group per column")
        for (name, column), (_, protocol) in zip(self.domain.columns, self.groups, strict=True):
            if protocol.domain != column:
                raise SpecError(f"the answers of the group of column {name!r} are not those of the column")
        relations = {group.protocol.guarantee.relation for group in self.groups}
        if len(relations) > 1:
            raise SpecError(f"the columns have different guarantees ({', '.join(sorted(relations))}): use one kind")

    @classmethod
    def _from_parameters(cls, domain: Domain, epsilon: Any, parameters: Mapping[str, Any]) -> Attributes:
        match parameters:
            case {"groups": list(groups), **rest} if not rest:
                return cls._made(domain, cls._written(groups), epsilon)
        raise SpecError("attributes need groups, each with a weight and a protocol, and nothing else")

    @classmethod
    def candidates(cls, domain: Domain, epsilon: exact.Number, n: int | None = None) -> Iterator[Protocol]:
        if not isinstance(domain, Records):
            return
        yield cls(domain, epsilon, n)
        # Where reports repeat, they may have few forms: first a share of a usual limit per column, then the fewest.
        for forms in (_FORMS // len(domain.columns), 0):
            with suppress(DomainError):
                level = exact.as_epsilon(epsilon)
                yield cls._made(domain, _chosen(domain, level, n, forms), level)

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        from deniable.protocols.frequency import OUE
        from deniable.protocols.numeric import OneBitMean, Window

        smoke, age = ["yes", "no"], Integers(1, 3)
        yield cls.of({"smoke": GRR(smoke, 1), "age": OUE(age, 1)}, {"smoke": 1, "age": 2})
        yield cls.of({"warm": Window(Interval(0, 1), 1, positions=3, width=2), "wet": OneBitMean(Interval(0, 1), 1)})

    @property
    def reads(self) -> str:
        return "attributes"

    @property
    def waived(self) -> Mapping[str, str]:
        return {"unbiased": "each column divides by the number of its own reports, which chance decides"}

    def scaled(self, factor: Fraction) -> Attributes:
        return self._made(self.domain, [(weight, protocol.scaled(factor)) for weight, protocol in self.groups], None)

    def truth(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        """The figures of all columns, one after the other."""
        columns, named = self.domain.split(answers), zip(self.group_names, self.groups, strict=True)
        return np.concatenate([group.protocol.truth(columns[name], people) for name, group in named])

    def figure_variances(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        """The noise of the people that a column gets, and the error of having heard only them of all who answered."""
        columns, found = self.domain.split(answers), []
        for name, chance, (_, protocol) in zip(self.group_names, map(float, self.chances), self.groups, strict=True):
            column = columns[name]
            noise = protocol.figure_variances(column) / chance
            found.append(noise + (1 - chance) / chance * protocol.figure_spreads(column) / len(column))
        return np.concatenate(found)

    @property
    def figure_scales(self) -> NDArray[np.float64]:
        return np.concatenate([np.full(group.protocol.tests, group.protocol.scale) for group in self.groups])

    # -- the law -----------------------------------------------------------------------------------

    @property
    def group_names(self) -> tuple[str, ...]:
        return self.domain.names

    def project(self, value: Any, group: int) -> Any:
        return value[group]

    def part(self, value: Any, group: int) -> Any:
        return value.get(self.group_names[group])

    def project_many(self, values: RecordColumns, group: int, rows: NDArray[np.intp]) -> Any:
        return values.columns[group].take(rows)

    def _inputs(self) -> Iterator[tuple[Any, Any]]:
        each = product(*(group.protocol._inputs() for group in self.groups))
        return ((tuple(label for label, _ in row), tuple(value for _, value in row)) for row in each)

    def _input_count(self) -> int:
        return math.prod(group.protocol._input_count() for group in self.groups)

    @property
    def attack(self) -> float | None:
        """Of the column where that is easiest: a report about another column leaves only a guess."""
        found = []
        for chance, (_, protocol) in zip(self.chances, self.groups, strict=True):
            if protocol.attack is None or not isinstance(protocol.domain, ListedDomain):
                return None
            found.append(float(chance) * protocol.attack + float(1 - chance) / protocol.domain.size)
        return max(found)

    # -- the read-out ------------------------------------------------------------------------------

    def estimate(self, tally: Tally) -> Several:
        """One result per column, as parts of one table."""
        found: Several = super().estimate(tally)
        return found

    def _estimate(self, tally: Tally) -> Several:
        parts = {}
        for name, (_, protocol), own in zip(self.group_names, self.groups, self.tallies(tally), strict=True):
            parts[name] = protocol.estimate(own).sampled(Fraction(own.n, max(1, tally.n)))
        return Several(parts, tally.n, self.name)

    def _nothing(self) -> Several:
        return self._estimate(self.empty())

    def split_error(self, n: int, population: bool = True) -> float:
        """`error` if everybody were asked for every column, with an equal part of epsilon each."""
        level = self.epsilon / len(self.groups)
        each = [_best(column, level, n) for _, column in self.domain.columns]
        return max(protocol.error(n, population) / protocol.scale for protocol in each)

    def remark(self, n: int, level: float = 0.95, population: bool = True) -> str:
        """How exact each column is, and how exact the columns would be if epsilon were split over all of them."""
        z, size = quantile(level), len(self.groups)
        each = []
        for name, (protocol, people) in self.parts(n).items():
            unit = f" {protocol.unit}" if protocol.unit else ""
            reach = z * protocol.error(people, population)
            each.append(f"{name} by {protocol.name} from about {people:,} people within +-{reach:.3g}{unit}")
        said = f"Each person reports 1 of {size} columns, with the whole epsilon: {'; '.join(each)}."
        if size == 1:
            return said
        sampled, split = z * self.error(n, population), z * self.split_error(n, population)
        return (
            f"{said} The widest interval reaches {sampled:.3g} of its range to either side; with epsilon split over "
            f"all {size} columns, and everybody reporting each, it would be {split:.3g}."
        )

    def __repr__(self) -> str:
        inner = ", ".join(
            f"{name}: {group.protocol.name} x{group.weight}"
            for name, group in zip(self.group_names, self.groups, strict=True)
        )
        return f"Attributes({inner}, epsilon={self.epsilon})"


def _chosen(
    domain: Records, epsilon: Fraction, people: int | None, forms: int | None = None
) -> Iterator[tuple[int, Protocol]]:
    """A weight and a protocol per column; with `forms`, protocols with so many different reports, or the fewest."""
    each = _PEOPLE if people is None else max(1, int(people) // len(domain.columns))
    found = [_best(column, epsilon, each, forms) for _, column in domain.columns]
    return zip(_weights(found, each), found, strict=True)


def _best(domain: Domain, epsilon: Fraction, n: int, forms: int | None = None) -> Protocol:
    protocols = build(domain, epsilon, None if forms is None else max(forms, domain.least_forms), n)
    return protocols[choose(protocols, n)]


def _weights(protocols: list[Protocol], n: int) -> list[int]:
    """In proportion to the variance of one report: then all columns have about the same error."""
    variances = [(protocol.error(n) / protocol.scale) ** 2 for protocol in protocols]
    rounded = [max(1, round(_STEPS * one / min(variances))) for one in variances]
    common = math.gcd(*rounded)
    return [weight // common for weight in rounded]
