"""Protocols that are made of others: what they keep of the promises of what they wrap.

Every member of `Protocol` in `FACTS` has a default that says something about privacy. A wrapper that inherits the
default must not be made of a protocol that says something else: the promise of the inner protocol would be lost. So a
wrapper defines such a member itself, from what it wraps, or whatever it wraps is plain in it. `check_wrapped` holds
every wrapper to that when it is made, and every protocol of a question, whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import SpecError
from deniable.protocols.base import Guarantee, Protocol
from deniable.protocols.blanket import Blanket
from deniable.protocols.reports import Bytes, Reports
from deniable.protocols.tally import Adder, Counts, Tally
from deniable.randomness import Bits

FACTS: Mapping[str, str] = {
    "local": "a report of it keeps no epsilon by itself: only the sums of several collectors do",
    "fresh": "its reports are drawn from a state that a device keeps over the epochs",
    "guarantee": "its guarantee has a delta, or is not about any two answers",
    "related": "its guarantee is not about any two answers",
    "distance": "its guarantee grows with the distance of two answers",
    "whole_ratio": "its guarantee is about all reports of a device together",
    "stream_laws": "its guarantee is about streams of answers",
    "reports_each": "a device sends several reports of it",
    "spent": "several reports of it cost something else than the sum of their epsilons",
    "lifetime": "the reports of several epochs cost something else than the sum of their epsilons",
    "state_forms": "a device keeps something else than its report",
    "kept_noise": "a device keeps something else than its report",
    "linking": "a device keeps something else than its report",
    "clear": "a part of its answers is sent in clear",
    "clear_bytes": "a part of its answers is sent in clear",
    "is_tied": "its reports have public coins that are checked",
    "tied": "its reports have public coins that are checked",
    "plausible": "some of its valid reports are not counted",
    "needs_candidates": "its estimates need a list of what to look for",
}
"""Members of `Protocol` with a default that says something about privacy, and what another value means.

A member that is not here is required of every kind (`ratio`), says less than it could by default (`attack`,
`likeliest`, `another`), follows from others, or is about the reading.
"""


def wrapped(protocol: Protocol) -> Iterator[Protocol]:
    """The protocols that one is made of, each once; not those that they are made of."""
    seen = {id(protocol)}
    waiting: list[Any] = list(vars(protocol).values())
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
    kept = _special(type(protocol))
    for inner in wrapped(protocol):
        check_wrapped(inner)
        for fact in FACTS:
            if fact not in kept and not _is_plain(inner, fact):
                raise SpecError(f"{protocol.name} cannot be made of {inner.name}: {FACTS[fact]}")


@cache
def _special(kind: type[Protocol]) -> frozenset[str]:
    """The facts that a kind does not leave to `Protocol`."""
    return frozenset(fact for fact in FACTS if getattr(kind, fact) is not getattr(Protocol, fact))


def _is_plain(protocol: Protocol, fact: str) -> bool:
    """Whether a protocol says by this member what `Protocol` says by default."""
    if fact not in _special(type(protocol)) and fact not in vars(protocol):
        return True
    default = getattr(Protocol, fact)
    if callable(default):
        return False
    usual = default.__get__(protocol) if isinstance(default, property) else default
    return bool(getattr(protocol, fact) == usual)


class Through(Protocol):
    """Transforms the answer, then reports it with an inner protocol, `law`.

    A family writes `_one` and `_many`, which hand to the law's, and the read-out.
    """

    law: Protocol
    """The protocol that reports; a kind says which it takes."""

    def _take(self, law: Protocol) -> None:
        """Keep the law; raises SpecError for one whose promises this kind would not keep."""
        object.__setattr__(self, "law", law)
        check_wrapped(self)

    @property
    def guarantee(self) -> Guarantee:
        return self.law.guarantee

    @property
    def ratio(self) -> Fraction:
        return self.law.ratio

    def blankets(self) -> tuple[Blanket, ...]:
        return self.law.blankets()

    @property
    def report_bytes(self) -> int:
        return self.law.report_bytes

    @property
    def report_forms(self) -> int:
        return self.law.report_forms

    @property
    def tally_size(self) -> int:
        return self.law.tally_size

    def _valid(self, reports: Bytes) -> NDArray[np.bool_]:
        return self.law._valid(reports)

    def plausible(self, reports: Reports | Bytes) -> NDArray[np.bool_]:
        return self.law.plausible(self._rows(reports))

    @property
    def is_tied(self) -> bool:
        return self.law.is_tied

    def tied(self, reports: Bytes, publics: NDArray[np.uint64]) -> NDArray[np.bool_]:
        return self.law.tied(reports, publics)

    def _count(self, reports: Bytes) -> Counts:
        return self.law._count(reports)

    def pieces(self, reports: Reports | Bytes) -> Iterator[tuple[int, Counts]]:
        return self.law.pieces(self._rows(reports))

    def _adder(self) -> Adder:
        return self.law._adder()

    def any_reports(self, count: int, bits: Bits) -> Bytes:
        return self.law.any_reports(count, bits)

    @property
    def likeliest(self) -> float | None:
        return self.law.likeliest

    def _of_law(self, tally: Tally) -> Tally:
        """The same counters as a tally of the law."""
        return Tally(self.law.fingerprint, tally.n, tally.counts)

    def _misfits(self, tally: Tally, worth: float) -> list[float]:
        return self.law._misfits(self._of_law(tally), worth)
