"""Law: what a report says about an answer, exactly; read by audit, conformance, attacks, shuffling and composition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.protocols.blanket import Blanket
from deniable.protocols.record import Record
from deniable.protocols.reports import Bytes
from deniable.protocols.structures import Choice, Stages, Stream, Structure, Sum

ANY, METRIC, PROFILES, EDGE, STREAM, SUM = RELATIONS = ("any", "metric", "profiles", "edge", "stream", "sum")
"""Between which inputs a guarantee holds: any two answers, answers by their distance, laws of answers, ... "sum" is
about any two answers of one person, against those who see only what several collectors publish together."""


PAIRS_NAMED = 6
"""The most pairs of profiles that a sentence lists."""


class Guarantee(NamedTuple):
    """What a report promises: between which inputs, and how much. Epsilons of different relations are never added.

    Args:
        relation: Between which inputs, one of `RELATIONS`.
        epsilon: The epsilon.
        delta: The delta.
        over: The relation in words.
        joined: The pairs of profiles between which it holds.
    """

    relation: str
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    over: str = "any two answers"
    joined: tuple[tuple[Any, Any], ...] = ()


Mixture = Mapping[int, Fraction]
"""Rows of a channel with their weights, which add up to one."""


class Kept(Record):
    """What a device keeps between its reports, and what several of its reports reveal together.

    Args:
        **facts: The fields of the record, by name; those that are left out keep their defaults.
    """

    state_forms: int
    """The number of different states that a device may keep; with one stage, the number of different reports."""
    noise: float
    """Upper bound on the share of a report's variance that repeats in each report from the same state."""
    linking: Callable[[int], float]
    """(epochs) -> how many times better repeated reports of a device fit each other than those of two devices."""
    spent: Callable[[int], Fraction]
    """(draws) -> upper bound on the epsilon of this number of fresh reports of one device."""
    lifetime: Callable[..., Fraction | None]
    """(epochs, values=None) -> upper bound on the epsilon of the reports of all epochs, whatever the streams of
    answers; None: no bound. With `values`, a device repeats the report of an answer and keeps at most this number of
    reports."""
    ratio: Fraction
    """The exact ratio of what the guarantee is about: one report, or all reports of a device."""
    streams: Callable[[], Mapping[tuple[Any, ...], Mapping[bytes, Fraction]]]
    """If the guarantee is about streams: the exact law of all reports, for each stream; only small protocols."""
    reports: int
    """The number of reports that one person sends; errors hold for people who send all of them."""

    defaults: ClassVar[Mapping[str, Any]] = dict.fromkeys(
        ("state_forms", "linking", "spent", "lifetime", "ratio"), None
    ) | {"noise": 1.0, "streams": dict, "reports": 1}
    lazy: ClassVar[frozenset[str]] = frozenset(("state_forms", "noise", "ratio", "reports"))


class PureSupport(NamedTuple):
    """For a pure protocol: a report is `ratio` times as likely for every answer that it supports as for any other."""

    p: Fraction
    """P(the report supports the true answer)."""
    q: Fraction
    """P(the report supports some other given answer)."""
    third: Fraction | None
    """P(the report supports one of two given answers and not the other), each way, where a third one is true."""
    size: int | None
    """The number of answers that a report supports, if that is always the same."""
    independent: bool
    """Whether the supports of different answers are independent, given the true answer."""
    of: Callable[[Any], NDArray[np.bool_]]
    """Reports -> a matrix of truth values: which answers each report supports."""


class Law(Record):
    """The law of one report, and what it promises.

    Args:
        **facts: The fields of the record, by name; those that are left out keep their defaults.
    """

    guarantee: Guarantee
    """Between which inputs the epsilon holds."""
    ratio: Fraction
    """The exact largest ratio of a report's probabilities under two inputs that the guarantee relates.

    With a delta: the smallest r with P(S) <= r P'(S) + delta for every set S of reports."""
    width: int
    """Bytes of a report."""
    forms: int
    """The largest number of different reports: a report that few devices send would identify its device."""
    counters: int
    """The number of counters in a tally."""
    inputs: Callable[[], Iterator[tuple[Any, Any]]]
    """Labels and encoded answers whose laws are the whole channel: the law of any other input is a mixture of them."""
    input_count: int
    sent: Callable[[Any, Any], bytes]
    """(encoded input, bits) -> its report; for inputs that are not encoded answers."""
    related: Callable[[], Iterator[tuple[Mixture, Mixture]]]
    """The pairs of inputs of the guarantee, each in both orders. An input is a set of weights of rows of the channel:
    one row for an answer, several for a law of answers."""
    distance: Callable[[Any, Any], Fraction]
    """The distance of two inputs of the channel, if the guarantee grows with it ("metric"); rounded down."""
    blankets: tuple[Blanket, ...]
    """The privacy blanket: the input-independent part of a report, behind which a shuffler hides people. One for each
    of some pairs of answers, and the worst pair is among them; empty if it is not known."""
    checks: Callable[[Any, float], list[float]]
    """(tally, weight) -> p-values of tests whose law is known whatever the answers; a report counts `weight` times."""
    plausible: Callable[[Any], NDArray[np.bool_]]
    """Which reports a collector should count: valid, and not so unlikely that no crowd would ever send them. An honest
    device's report is refused with probability 2^-60 at most."""
    public: Callable[[Bytes, NDArray[np.uint64]], NDArray[np.bool_]] | None
    """Which valid reports have the public coins, such as a hash function, that follow from their public numbers
    (`randomness.Tied`); None if there are no such coins."""
    likeliest: float | None
    """Upper bound on the probability of any single report, whatever the answer; None if not known."""
    wrong_answer: Fraction | None
    """Probability that the report names a wrong answer; None if reports are not answers."""
    one_part: bool
    """Whether chance chooses which part of an answer a report is about, and the report says which."""
    several_parts: bool
    """Whether a report is about several parts of an answer together."""
    clear: tuple[str, ...]
    """The parts of an answer that a report sends without noise."""
    clear_bytes: int
    """The number of bytes at the head of a report that hold them."""
    broken: Callable[[Any], str]
    """(tally) -> why no reports give it, as a sentence; "" if its counters agree with each other."""
    any_reports: Callable[[int, Any], Bytes]
    """(count, bits) -> valid reports, each form equally likely: from a sender who knows only the format."""
    kept: Kept
    structure: Structure | None
    """How a report is drawn, as data that can be run (`structures`). An audit compares it with the code."""
    support: PureSupport | None
    """Which answers reports support, for pure protocols over listed answers."""

    @property
    def choice(self) -> Choice | None:
        """The structure, if a report is one of several protocols."""
        return self.structure if isinstance(self.structure, Choice) else None

    @property
    def stages(self) -> Stages | None:
        """The structure, if a device keeps a state per answer."""
        return self.structure if isinstance(self.structure, Stages) else None

    @property
    def stream(self) -> Stream | None:
        """The structure, if each report changes the state of a device."""
        return self.structure if isinstance(self.structure, Stream) else None

    @property
    def sum(self) -> Sum | None:
        """The structure, if reports are added up before anybody reads them."""
        return self.structure if isinstance(self.structure, Sum) else None

    defaults: ClassVar[Mapping[str, Any]] = dict.fromkeys(
        ("guarantee", "ratio", "width", "forms", "counters", "inputs", "input_count", "sent", "related", "blankets")
    ) | {
        "distance": lambda one, other: Fraction(1),
        "checks": lambda tally, weight: [],
        "plausible": None,
        "public": None,
        "likeliest": None,
        "wrong_answer": None,
        "one_part": False,
        "several_parts": False,
        "clear": (),
        "clear_bytes": 0,
        "broken": lambda tally: "",
        "any_reports": None,
        "kept": None,
        "structure": None,
        "support": None,
    }
    lazy: ClassVar[frozenset[str]] = frozenset(
        ("guarantee", "ratio", "width", "forms", "counters", "input_count", "blankets", "likeliest", "wrong_answer")
    ) | {"one_part", "several_parts", "clear", "clear_bytes", "structure", "support"}
