"""Traits: what holds for a whole kind of protocol; read by planner, drafts, conformance and risk.

What depends on the instance is in its `Law` or `Worth`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from deniable import exact
from deniable.domains import Domain, ListedDomain
from deniable.protocols.record import Record
from deniable.words import DEFAULT, Fact, catalogue

if TYPE_CHECKING:
    from deniable.protocols.protocol import Protocol

ALL, NAMED, FOUND = "all", "named", "found"


class Ask(NamedTuple):
    """What the planner asks a kind for."""

    domain: Domain
    """The possible answers."""
    epsilon: exact.Number
    """The epsilon of a report."""
    n: int | None = None
    """The number of people, if it is known."""
    forever: exact.Number | None = None
    """The epsilon of a state that devices keep over the epochs; the epsilon above is that of the first report."""
    epochs: int | None = None
    """The number of epochs whose reports have the epsilon together."""
    changes: int | None = None
    """How often an answer changes at most in these epochs."""


def one_each(kind: type[Protocol], ask: Ask) -> Iterator[Protocol]:
    """One instance, if the kind takes the domain."""
    if isinstance(ask.domain, kind.traits.takes):
        yield kind(ask.domain, ask.epsilon)


def not_offered(kind: type[Protocol], ask: Ask) -> Iterator[Protocol]:
    """No instance: people choose the kind themselves."""
    return iter(())


def _scaled(protocol: Any, factor: Fraction) -> Any:
    return replace(protocol, epsilon=protocol.epsilon * factor)


class Traits(Record):
    """What holds for a kind of protocol. A kind gives the fields that differ from those of its base classes.

    Args:
        **facts: The fields of the record, by name; those that are left out keep their defaults.
    """

    own: frozenset[str]
    """The fields that the kind itself gives."""

    takes: tuple[type[Domain], ...]
    """The kinds of domains that it takes; others are refused."""
    advice: str
    """What to use for other domains."""
    reads: tuple[str, ...]
    """What an estimate may be about: "shares" of answers, the "mean" of a number, its "distribution", ... `Worth.read`
    says which one it is for an instance."""
    serves: tuple[str, ...]
    """What else the estimates answer: see `Worth.answers`."""
    fresh: bool
    """Whether each report is drawn afresh from the answer, so that the epsilons of one device's reports add up."""
    local: bool
    """Whether a single report has the epsilon. If not, only surveys that name collectors may use the kind."""
    slow: bool
    """Whether building a candidate may take a tenth of a second: a curve over many epsilons then has few candidates."""
    candidates: Callable[[type[Protocol], Ask], Iterator[Protocol]]
    """(kind, ask) -> the instances that the planner compares. A kind that is not fresh also gets questions with a
    `forever` or `changes`. Raises ChannelError if no instance exists at this epsilon."""
    at_epsilon: Callable[[Any, Fraction], Any]
    """(protocol, factor) -> the same protocol with epsilon times a factor: the conformance suite must be able to
    distinguish the two."""
    waived: Mapping[str, str] | Callable[[Any], Mapping[str, str]]
    """Conformance checks that its protocols cannot pass, each with the reason (`conformance.WAIVABLE`); or a function,
    (protocol) -> these."""
    says: Callable[[Any, bytes], Fact]
    """(protocol, report) -> what a report says, for people: the answer that it is, or its bytes. A text, or an entry of
    the catalogue of words with its parameters."""
    answers: str
    """Which answers an estimate is about: "all"; "named", those that the analyst lists, if the domain is open; or
    "found", those that the reports show to be common."""

    defaults: ClassVar[Mapping[str, Any]] = {
        "takes": (Domain,),
        "advice": "",
        "reads": ("shares",),
        "serves": (),
        "fresh": True,
        "local": True,
        "slow": False,
        "candidates": one_each,
        "at_epsilon": _scaled,
        "waived": {},
        "says": lambda protocol, report: report.hex(),
        "answers": ALL,
    }

    def __init__(self, **facts: Any) -> None:
        super().__init__(**facts)
        vars(self).update(changed=frozenset(facts), own=frozenset(facts))


def inherited(kind: type) -> Traits:
    """The traits of a kind: the fields that it gives, and for the others those of its base classes."""
    facts: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        given = vars(base).get("traits")
        facts |= {name: getattr(given, name) for name in given.own} if isinstance(given, Traits) else {}
    made, given = Traits(**facts), vars(kind).get("traits")
    vars(made)["own"] = given.own if isinstance(given, Traits) else frozenset()
    return made


def offered(kind: type[Protocol], ask: Ask) -> Iterator[Protocol]:
    """The candidates of a kind. A kind with fresh reports keeps no state, and splits epsilon evenly over the epochs."""
    if kind.traits.fresh and ask.forever is not None:
        return iter(())
    if kind.traits.fresh and ask.epochs is not None:
        ask = Ask(ask.domain, exact.as_epsilon(ask.epsilon) / ask.epochs, ask.n)
    return kind.traits.candidates(kind, ask)


def scaled(protocol: Any, factor: Fraction) -> Any:
    """The same protocol with epsilon times a factor."""
    return protocol.traits.at_epsilon(protocol, factor)


def waived(protocol: Protocol) -> Mapping[str, str]:
    """Conformance checks that a protocol cannot pass, each with the reason."""
    given = protocol.traits.waived
    return given(protocol) if callable(given) else given


def says(protocol: Protocol, report: bytes, language: str = DEFAULT) -> str:
    """What a report says, for people."""
    return catalogue(language).text(protocol.traits.says(protocol, report))


def needs_candidates(protocol: Protocol) -> bool:
    """Whether an estimate needs a list of what to look for."""
    return protocol.traits.answers == NAMED and not isinstance(protocol.domain, ListedDomain)
