"""Protocols that are made of others: how they keep the promises of the protocols that they wrap.

A wrapper maps the records (`law`, `traits`) of the protocol that it wraps. If a field is about privacy and the wrapper
does not map it, the inner protocol must have the plain value there, or its promise would be lost. `check_wrapped`
enforces this for every wrapper when it is built, and for every protocol of a question, whatever package it comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import SpecError
from deniable.protocols.kernel import Kernel
from deniable.protocols.law import ANY, Guarantee, Law
from deniable.protocols.protocol import Protocol
from deniable.protocols.record import KEPT, remembered
from deniable.protocols.reports import Bytes
from deniable.protocols.tally import Counts, Tally
from deniable.protocols.traits import Traits, needs_candidates

FACTS: Mapping[str, str] = {
    "guarantee": "its guarantee has a delta, or is not about any two answers",
    "related": "its guarantee is not about any two answers",
    "distance": "its guarantee grows with the distance of two answers",
    "kept": "a device keeps something from which it draws its reports, or sends several that are promised together",
    "clear": "a part of its answers is sent in clear",
    "clear_bytes": "a part of its answers is sent in clear",
    "public": "its reports have public coins that are checked",
    "plausible": "some of its valid reports are not counted",
}
"""Fields of `Law` with a default that says something about privacy, and what another value means."""

OTHERS: tuple[str, ...] = (
    *("ratio", "width", "counters"),  # every kind gives them
    *("forms", "inputs", "input_count", "sent", "blankets", "checks", "likeliest", "wrong_answer", "any_reports"),
    *("one_part", "several_parts", "broken", "structure", "support"),
)
"""The other fields: required of every kind, or with a default that says less than is true, or about the reading."""

if missing := set(Law.defaults) ^ {*FACTS, *OTHERS}:
    raise TypeError(f"say in FACTS or OTHERS what wrappers do with {', '.join(sorted(missing))}")

TRAITS: Mapping[str, tuple[Callable[[Protocol], bool], str]] = {
    "local": (
        lambda inner: inner.traits.local,
        "a report of it keeps no epsilon by itself: only the sums of several collectors do",
    ),
    "fresh": (
        lambda inner: inner.traits.fresh,
        "its reports are drawn from a state that a device keeps over the epochs",
    ),
    "answers": (
        lambda inner: not needs_candidates(inner),
        "its estimates need a list of what to look for",
    ),
}
"""The same for `Traits`: whether an inner protocol has the plain value."""

OTHER_TRAITS: tuple[str, ...] = (
    *("takes", "advice", "reads", "serves", "slow", "candidates", "at_epsilon", "waived", "says"),
)
"""The other traits: each kind has its own, whatever it is made of."""

if missing := set(Traits.defaults) ^ {*TRAITS, *OTHER_TRAITS}:
    raise TypeError(f"say in TRAITS or OTHER_TRAITS what wrappers do with {', '.join(sorted(missing))}")


def wrapped(protocol: Protocol) -> Iterator[Protocol]:
    """The direct parts of a protocol, each once; not the parts of its parts."""
    seen = {id(protocol)}
    waiting: list[Any] = [value for name, value in vars(protocol).items() if not name.startswith(KEPT)]
    while waiting:
        one = waiting.pop()
        if isinstance(one, tuple | list):
            waiting += one
        elif isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, Protocol) and id(one) not in seen:
            seen.add(id(one))
            yield one


def check_wrapped(protocol: Protocol) -> None:
    """Raise SpecError if a protocol is made of others and would lose what one of them says about its privacy."""
    for inner in wrapped(protocol):
        check_wrapped(inner)
        for fact, (plain, reason) in TRAITS.items():
            if fact not in protocol.traits.changed and not plain(inner):
                raise SpecError(f"{protocol.name} cannot be made of {inner.name}: {reason}")
        for fact, reason in FACTS.items():
            if fact not in protocol.law().changed and not _is_plain(inner, fact):
                raise SpecError(f"{protocol.name} cannot be made of {inner.name}: {reason}")


def _is_plain(protocol: Protocol, fact: str) -> bool:
    """Whether a field of the law of a protocol is what it is by default."""
    law = protocol.law()
    if fact not in law.changed:
        return True
    if fact == "guarantee":
        return law.guarantee == Guarantee(ANY, protocol.epsilon)
    return bool(getattr(law, fact) == Law.defaults[fact])


class Through(Protocol):
    """Transforms the answer, then reports it with an inner protocol, `law`.

    A family writes `draw` and `draw_many`, which hand to the law's, and the read-out.
    """

    inner: Protocol
    """The protocol that reports; a kind says which it takes."""

    def _take(self, law: Protocol) -> None:
        """Keep the law; raises SpecError for one whose promises this kind would not keep."""
        object.__setattr__(self, "inner", law)
        check_wrapped(self)

    def valid(self, reports: Bytes) -> NDArray[np.bool_]:
        return self.inner.valid(reports)

    def count(self, reports: Bytes) -> Counts:
        return self.inner.count(reports)

    @remembered
    def kernel(self) -> Kernel:
        inner = self.inner.kernel()
        return super().kernel().but(adder=inner.adder, pieces=inner.pieces)

    def _of_law(self, tally: Tally) -> Tally:
        """The same counters as a tally of the law."""
        return Tally(self.inner.fingerprint, tally.n, tally.counts)

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            guarantee=lambda: self.inner.guarantee,
            ratio=lambda: self.inner.ratio,
            blankets=lambda: self.inner.law().blankets,
            width=lambda: self.inner.report_bytes,
            forms=lambda: self.inner.law().forms,
            counters=lambda: self.inner.tally_size,
            plausible=lambda reports: self.inner.law().plausible(self._rows(reports)),
            public=self.inner.law().public,
            any_reports=lambda count, bits: self.inner.law().any_reports(count, bits),
            likeliest=lambda: self.inner.law().likeliest,
            checks=lambda tally, worth: self.inner.law().checks(self._of_law(tally), worth),
        )
