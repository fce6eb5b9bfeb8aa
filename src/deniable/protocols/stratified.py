"""Strata: public attributes such as country or version go along in clear, and each stratum has a tally of its own.

Law        the number of the stratum, as it is; then a report of the answer's own protocol, the same in every stratum
Privacy    that of the answer's protocol, between any two answers in one stratum. The stratum itself is not protected:
           it is for what the collector knows or may know anyway, and respondents can see this
Error      of a stratum: the protocol's with its people; of all strata together: the protocol's with everybody
Report     the number of the stratum, ceil(log2(S) / 8) bytes; the report of the answer
Cost       that of the answer's report; S counters and S tallies
Source     post-stratification; a separate collection per stratum, in one survey

Tally      one counter per stratum, then the tallies of the strata one after the other: one vector that adds
Result     `Strata`: "all" together, each stratum, and a test whether they differ
Private    an attribute that must be hidden is randomized together with the answer: `PrivateStrata`
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.domains import Categories, Domain, Records
from deniable.domains.listed import DomainLike, ListedDomain, as_domain
from deniable.domains.records import RecordColumns
from deniable.errors import DomainError, SpecError
from deniable.labels import text
from deniable.protocols.groups import Group, Groups
from deniable.protocols.law import Guarantee, Law, Mixture
from deniable.protocols.protocol import Protocol, load
from deniable.protocols.record import remembered
from deniable.protocols.structures import Choice
from deniable.protocols.tally import Tally
from deniable.protocols.traits import Traits, needs_candidates, not_offered, scaled, waived
from deniable.protocols.worth import Cost, Worth
from deniable.randomness import Bits
from deniable.results.several import ALL, Strata
from deniable.words import Fact, word

MOST_STRATA = 1024
"""Combinations of the strata; each has a tally."""

ANSWER = "answer"
"""The default name of the column of the answer."""


@dataclass(frozen=True, init=False, repr=False)
class Stratified(Groups):
    """A question that is counted in each stratum by itself; the stratum is sent in clear.

    Args:
        strata: The public attributes with their values.
        protocol: The protocol of the answer.
        answer: Name of the answer in a record.

    Raises:
        SpecError: The strata are not a dictionary, or the answer has the name of a stratum.

    >>> from deniable.protocols import GRR
    >>> smoke = Stratified({"country": ["de", "fr"]}, GRR(["yes", "no"], epsilon=1), answer="smoke")
    >>> smoke.domain.names, smoke.report_bytes, smoke.group_names
    (('country', 'smoke'), 2, ('de', 'fr'))
    >>> smoke.report({"country": "fr", "smoke": "yes"})[0]
    1
    """

    name: ClassVar[str] = "Stratified"
    traits: ClassVar[Traits] = Traits(
        takes=(Records,),
        candidates=not_offered,  # people say what is public, not the planner
        at_epsilon=lambda protocol, factor: protocol._scaled(factor),
        waived=lambda protocol: protocol._waived(),
    )

    domain: Records

    def __init__(self, strata: Mapping[str, DomainLike], protocol: Protocol, answer: str = ANSWER) -> None:
        if not isinstance(strata, Mapping) or not strata:
            raise SpecError('strata are a dictionary of public attributes with their values, {"country": ["de", "fr"]}')
        if not isinstance(protocol, Protocol):
            raise SpecError(f"the answer of a stratum needs a protocol, not a {type(protocol).__name__}")
        if answer in strata:
            raise SpecError(f"{answer!r} is a stratum and the answer: call one of them differently")
        columns: dict[str, Domain] = {}
        for name, values in strata.items():
            columns[name] = domain = as_domain(values)
            if not isinstance(domain, ListedDomain) or domain.size < 2:
                raise SpecError(f"stratum {name!r} needs a list of at least two values that are known beforehand")
        if not protocol.domain.is_column:
            raise DomainError(f"answers that are {protocol.domain} cannot be counted in strata: ask for one part")
        if isinstance(protocol, Stratified) or needs_candidates(protocol):
            raise SpecError(f"{protocol.name} cannot be counted in strata")
        self._set(Records({**columns, answer: protocol.domain}), protocol)

    def _set(self, domain: Records, protocol: Protocol) -> None:
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "epsilon", protocol.epsilon)
        self._settle()
        count = math.prod(self._sizes)
        if count > MOST_STRATA:
            raise SpecError(f"the strata have {count:,} combinations, and {MOST_STRATA:,} can be counted: merge some")
        object.__setattr__(self, "groups", (Group(1, protocol),) * count)
        self._check_groups()
        if ALL in self.group_names or len(set(self.group_names)) < count:
            raise SpecError(f"no stratum is called {ALL!r}, and no two are called the same")

    @property
    def inner(self) -> Protocol:
        """What asks for the answer."""
        return self.groups[0].protocol

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(domain.size for _, domain in self.domain.columns[:-1] if isinstance(domain, ListedDomain))

    @cached_property
    def group_names(self) -> tuple[str, ...]:
        return stratum_names(self.domain)

    def parameters(self) -> dict[str, Any]:
        return {"inner": self.inner.spec()}

    @classmethod
    def _from_parameters(cls, domain: Domain, epsilon: Any, parameters: Mapping[str, Any]) -> Stratified:
        match parameters:
            case {"inner": Mapping() as written, **rest} if not rest and isinstance(domain, Records):
                *strata, (answer, asked) = domain.columns
                inner = load(written)
                if inner.domain != asked:
                    raise SpecError("the protocol is for other answers than the last column has")
                return cls(dict(strata), inner, answer)
        raise SpecError("strata need a record, whose last column is the answer, and the answer's protocol")

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        from deniable.domains import Interval
        from deniable.protocols.frequency import GRR
        from deniable.protocols.numeric import Window

        yield cls({"country": ["de", "fr", "pl"]}, GRR(["yes", "no"], 1))
        strata = {"version": Categories(["1", "2"]), "beta": Categories([True, False])}
        yield cls(strata, Window(Interval(0, 1), 1, positions=3, width=2), "load")

    def _waived(self) -> Mapping[str, str]:
        return {**waived(self.inner), "unbiased": "each stratum divides by the number of its own reports"}

    def _scaled(self, factor: Fraction) -> Stratified:
        return self.asking(scaled(self.inner, factor))

    def asking(self, protocol: Protocol) -> Stratified:
        """The same strata, with another protocol for the answer."""
        return type(self)(dict(self.domain.columns[:-1]), protocol, self.domain.names[-1])

    # -- the law -----------------------------------------------------------------------------------

    def project(self, value: Any, group: int) -> Any:
        return value[-1]

    def part(self, value: Any, group: int) -> Any:
        return value.get(self.domain.names[-1])

    def project_many(self, values: RecordColumns, group: int, rows: NDArray[np.intp]) -> Any:
        return values.columns[-1].take(rows)

    def _stratum(self, strata: Any) -> int:
        return int(np.ravel_multi_index(strata, self._sizes))

    def _structure(self) -> Choice:
        return replace(super()._structure(), clear=len(self._sizes), place=self._stratum, asking=self.asking)

    def _choose_many(self, values: RecordColumns, bits: Bits) -> NDArray[Any]:
        return np.asarray(np.ravel_multi_index(values.columns[:-1], self._sizes))

    def _guarantee(self) -> Guarantee:
        """The stratum is not protected."""
        inner = self.inner.guarantee
        return inner._replace(over=f"{inner.over} with the same {' and '.join(self.law().clear)}, sent in clear")

    def _related(self) -> Iterator[tuple[Mixture, Mixture]]:
        """Pairs in the same stratum only."""
        size = self.inner.law().input_count
        for first in range(0, size * len(self.groups), size):
            for one, other in self.inner.law().related():
                yield {first + i: w for i, w in one.items()}, {first + i: w for i, w in other.items()}

    def _inputs(self) -> Iterator[tuple[Any, Any]]:
        listed = [domain.labels for _, domain in self.domain.columns[:-1] if isinstance(domain, ListedDomain)]
        for places in np.ndindex(*self._sizes):
            names = tuple(labels[place] for labels, place in zip(listed, places, strict=True))
            for label, encoded in self.inner.law().inputs():
                yield (*names, label), (*places, encoded)

    @cached_property
    def _cost(self) -> Cost:
        return self.inner.worth().cost._replace(operations=1 + self.inner.worth().cost.operations)

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        clear = [word("story.clear", name=name, value=_named(value.get(name))) for name in self.law().clear]
        inner = report[self._head : self._head + self.inner.report_bytes]
        return [*clear, *self.inner.story(value.get(self.domain.names[-1]), encoded[-1], inner)]

    # -- the read-out ------------------------------------------------------------------------------

    def _truth(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        """The figures of all people, then those of each stratum; NaN of strata without people."""
        records = self.domain.encode(answers)
        which = self._choose_many(records, None)  # type: ignore[arg-type]
        given = np.asarray(self.domain.split(answers)[self.domain.names[-1]], dtype=object)
        held = np.ones(len(which), dtype=np.int64) if people is None else np.asarray(people)
        own = [np.flatnonzero(which == group) for group in range(len(self.groups))]
        whole = self.inner.worth().truth(given.tolist(), held)
        each = [
            self.inner.worth().truth(given[rows].tolist(), held[rows])
            if held[rows].sum()
            else np.full_like(whole, np.nan)
            for rows in own
        ]
        return np.concatenate([whole, *each])

    def _figure_variances(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        records = self.domain.encode(answers)
        which = self._choose_many(records, None)  # type: ignore[arg-type]
        given = np.asarray(self.domain.split(answers)[self.domain.names[-1]], dtype=object)
        held = np.ones(len(which), dtype=np.int64) if people is None else np.asarray(people)
        own = [np.flatnonzero(which == group) for group in range(len(self.groups))]
        whole = self.inner.worth().variances(given.tolist(), held)
        each = [
            self.inner.worth().variances(given[rows].tolist(), held[rows])
            if held[rows].sum()
            else np.full_like(whole, np.nan)
            for rows in own
        ]
        return np.concatenate([whole, *each])

    def together(self, tally: Tally) -> Tally:
        """The tally of all strata as one."""
        each = self.tallies(tally)
        return Tally(self.inner.fingerprint, tally.n, np.sum([one.counts for one in each], axis=0))

    def estimate(self, tally: Tally) -> Strata:
        """The result of each stratum and of all of them, as parts of one table."""
        found: Strata = super().estimate(tally)
        return found

    def infer(self, tally: Tally) -> Strata:
        strata = {
            name: self.inner.estimate(own) for name, own in zip(self.group_names, self.tallies(tally), strict=True)
        }
        return Strata(strata, tally.n, self.inner.name, overall=self.inner.estimate(self.together(tally)))

    def _misfits(self, tally: Tally, worth: float) -> list[float]:
        own: list[float] = []
        for inner in self.tallies(tally):
            own += self.inner.law().checks(inner, worth) if inner.n else []
        return own

    def __repr__(self) -> str:
        return f"Stratified({', '.join(self.law().clear)}: {len(self.groups)} strata, {self.inner!r})"

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            read=lambda: self.inner.worth().read,
            cost=lambda: self._cost,
            # The guess of the answer; the stratum is known.
            guess=lambda: self.inner.worth().guess,
            truth=self._truth,
            variances=self._figure_variances,
            scales=lambda: np.tile(self.inner.worth().scales, 1 + len(self.groups)),
            parts=lambda: {ALL: (self.inner, n), **base.parts},
            split=lambda tally: {ALL: (self.inner, self.together(tally)), **base.split(tally)},
            # Noise and error of all strata together.
            noise=lambda: self.inner.worth(n).noise,
            error=lambda: self.inner.worth(n, population=population).error,
            visible=lambda level=0.95: self.inner.worth(n, population=population).visible(level),
            unit=lambda: self.inner.worth().unit,
            scale=lambda: self.inner.worth().scale,
            leverage=lambda: self.inner.worth().leverage,
            moved=lambda: self.inner.worth().moved,
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            clear=lambda: self.domain.names[:-1],
            # Those of the answer's protocol: a report hides among those of its stratum, which is sent in clear.
            blankets=lambda: self.inner.law().blankets,
            clear_bytes=lambda: self._head,
            guarantee=self._guarantee,
            related=self._related,
            inputs=self._inputs,
            input_count=lambda: len(self.groups) * self.inner.law().input_count,
            wrong_answer=lambda: self.inner.law().wrong_answer,
            checks=self._misfits,
        )


def _named(label: Any) -> str:
    """A value of a stratum, as both languages write it."""
    return str(label).lower() if isinstance(label, bool) else text(label)


def stratum_names(domain: Records) -> tuple[str, ...]:
    """What the combinations of all columns but the last are called."""
    listed = [values.labels for _, values in domain.columns[:-1] if isinstance(values, ListedDomain)]
    return tuple(", ".join(map(_named, labels)) for labels in product(*listed))


def stratify(strata: Any, protocol: Protocol, answer: str) -> Stratified:
    """The protocol of a question of a draft whose `strata` are {name: [values]}; refuses what is not public."""
    for name, values in read_strata(strata).items():
        if not isinstance(values, Sequence) or isinstance(values, str):
            raise SpecError(
                f"stratum {name!r} is sent in clear, so it is a list of values that are public: an attribute that must "
                f'be hidden is written {{"private": [...]}}, and is randomized together with the answer'
            )
    return Stratified(strata, protocol, answer)


def read_strata(strata: Any) -> Mapping[str, Any]:
    """The strata of a draft, if they are an object of attributes with their values."""
    if not isinstance(strata, Mapping) or not strata:
        raise SpecError('"strata" is an object of attributes with their values: {"country": ["de", "fr"]}')
    return strata


def private_strata(strata: Any) -> dict[str, Any]:
    """The private strata of a draft, {name: {"private": [values]}}, with their values.

    Raises SpecError if some strata are private and others are not.
    """
    given = read_strata(strata)
    found = {
        name: values["private"]
        for name, values in given.items()
        if isinstance(values, Mapping) and set(values) == {"private"}
    }
    if found and (public := [name for name in given if name not in found]):
        raise SpecError(
            f"strata are all private or all public, and {' and '.join(map(repr, public))} would be sent in clear: "
            f'write {{"{public[0]}": {{"private": [...]}}}}, too, or leave it out'
        )
    return found
