"""Two stages for answers that repeat: a state drawn once per answer and kept, then a report drawn afresh from it.

A kind of memoized protocol writes its two laws:

_permanent     one encoded answer -> the bytes of its state; draws random bytes in the documented order
_shared        what a device draws once whatever it answers, such as its hash function: the head of all its states
_law_state     the state of one of `_inputs`, if these are not answers
_instant       a state -> the bytes of a report, in the same way
_states        `_permanent` for a column of encoded answers
_instants      `_instant` for many states
_is_state      whether bytes are a valid state
permanent_ratio, instant_power    the exact largest likelihood ratios of the two stages
_places        the independent parts of its reports, if there are several: exact levels are found part by part

Epsilon    the protocol's `epsilon` (`first`) is that of one report, both stages together. `forever` is that of the
           state: all reports that are ever drawn from one state reveal no more than the state itself
Levels     four numbers, each about other pairs of streams (a stream is a device's answers over the epochs):
           first          one report: the composition of the two stages, exact
           same_value     two answers that never change: the level of the state, approached as reports add up
           same_pattern   two streams where epochs i and j share a state in one exactly if they do in the other: the
                          level of the state for each state. Changes at the same times are not enough: a, b, a against
                          a, b, c grows with every epoch
           any            any two streams of T epochs: `first` for the first report, the level of the second stage for
                          each later one. Proof: given the reports so far, the next one is a mixture of rows of the
                          second stage in both streams, and the ratio of two mixtures is at most that of two rows. With
                          one state per device it is the level of the state
Parts      the bits of a bitmap are drawn independently in both stages. So the likelihood of a stream of reports is a
           product over the bits, and its largest ratio the product of the largest ratios of the bits: exact without
           listing the 2^d states
Cap        a device keeps at most `values` states; an answer beyond them is reported from the first one. So its stream
           is one with at most `values` different answers
Shared     what does not depend on an answer, such as a hash function or a cohort, is the same in all states of a
           device: a new one would show that the answer changed. All levels are given the shared part
Linking    reports from one state resemble each other, so that a state works as a cookie in time. How well T reports of
           a device fit T others of the same device: LR = P(both from one state) / (P(one) P(other)), among devices
           with the same answer. Its mean over pairs of one device, `linking(T)`, is 1 if nothing can be linked, and
           grows to the number of states. For a state of independent bits it is a product of 1 + c^2, with c the share
           of the variance of a bit that T reports explain: c = sum_k P(k) (P(set | k) - P(set))^2 / (P(set) P(clear)),
           k the number of reports in which the bit is set. It is a float: refusals and words depend on it, no level
           does
Source     Erlingsson, Pihur and Korolova 2014 (RAPPOR); Ding, Kulkarni and Yekhanin 2017; Arcolezi et al. 2022
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np

from deniable import exact
from deniable._sheets import Sheet
from deniable.channels import Channel
from deniable.domains import DomainLike
from deniable.errors import ChannelError, EpsilonError, MismatchError, NumberError, ReportError
from deniable.exact import Dyadic
from deniable.protocols.law import Law
from deniable.protocols.protocol import Protocol, as_rows, sealed
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes, Reports
from deniable.protocols.structures import Stages, Structure
from deniable.protocols.tally import Tally
from deniable.protocols.traits import Ask, Traits
from deniable.randomness import Bits, exhaust, source_of
from deniable.results import Difference

FEW_FORMS = 1 << 10
"""The most forms of a repeated report: a rarer form would identify its device. With two stages, the largest factor by
which reports of one device fit each other better than those of two devices."""

MOST_STREAMS = 1 << 17
"""How many different cases are enumerated for exact levels."""


class Level(float):
    """An epsilon, as a float, with the exact likelihood ratio behind it and the pairs of streams that it is about.

    Args:
        factors: The ratio as a product of powers, (base, exponent).
        over: The pairs of streams that the level is about, in words.
        is_exact: Whether two such streams reach it at this horizon; else it is an upper bound.
    """

    over: str
    is_exact: bool
    factors: tuple[tuple[Fraction, int], ...]

    def __new__(cls, factors: Iterable[tuple[Fraction, int]], over: str, is_exact: bool) -> Self:
        parts = tuple(factors)
        level = super().__new__(cls, sum(times * exact.log(ratio) for ratio, times in parts))
        level.over, level.is_exact, level.factors = over, is_exact, parts
        return level

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.factors, self.over, self.is_exact

    @property
    def ratio(self) -> Fraction:
        """The likelihood ratio: exact, or an upper bound."""
        return math.prod((ratio**times for ratio, times in self.factors), start=Fraction(1))

    @property
    def words(self) -> str:
        """For people.

        >>> Level([(Fraction(3), 2)], "any two streams", False).words
        'any two streams: at most 2.197'
        """
        return f"{self.over}: {'' if self.is_exact else 'at most '}{self:.4g}"


class Levels(NamedTuple):
    """What a number of reports of one device reveal, in four senses.

    Args:
        first: Level of one report.
        same_value: Level of all reports, between two constant answers.
        same_pattern: Level between two streams whose epochs share states in the same pattern.
        any: Level between any two streams.
    """

    first: Level
    same_value: Level
    same_pattern: Level
    any: Level

    def _repr_html_(self) -> str:
        """The four levels in a notebook."""
        body = [[one.over, f"{'' if one.is_exact else 'at most '}{one:.4g}"] for one in self]
        return Sheet([], ["between", "epsilon"], body).html()


@dataclass(frozen=True, init=False, repr=False)
class Memoized(Protocol):
    """A protocol in two stages: `permanent(answer)` gives the state to keep, `report_from(state)` a report to send.

    Args:
        domain: The possible answers.
        epsilon: Another name for `first`.
        forever: Epsilon of the kept state, and so of all reports drawn from it; twice `first` if None.
        first: Epsilon of one report.

    Raises:
        EpsilonError: `first` and `epsilon` are both given or both missing, or `first` is not below `forever`.
    """

    traits: ClassVar[Traits] = Traits(
        fresh=False,
        candidates=lambda kind, ask: kind._offered(ask),
        at_epsilon=lambda protocol, factor: protocol._scaled(factor),
    )

    forever: Fraction

    def __init__(
        self,
        domain: DomainLike,
        epsilon: exact.Number | None = None,
        forever: exact.Number | None = None,
        *,
        first: exact.Number | None = None,
    ) -> None:
        if (epsilon is None) == (first is None):
            raise EpsilonError("give the epsilon of the first report once, as `first` or as `epsilon`")
        level = exact.as_epsilon(first if epsilon is None else epsilon)
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "epsilon", level)
        object.__setattr__(self, "forever", min(2 * level, exact.LARGEST_EPSILON) if forever is None else forever)
        self.__post_init__()

    def __post_init__(self) -> None:
        self._settle()
        object.__setattr__(self, "forever", exact.as_epsilon(self.forever))
        if self.first >= self.forever:
            raise EpsilonError(
                f"the first report has epsilon {exact.shown(self.first)} and the kept state "
                f"{exact.shown(self.forever)}, but the second stage must take something away: give a larger `forever` "
                "or a smaller `first`"
            )
        super().__post_init__()

    @property
    def first(self) -> Fraction:
        """The epsilon of one report."""
        return self.epsilon

    def parameters(self) -> dict[str, Any]:
        return {"forever": exact.canonical(self.forever)}

    def __repr__(self) -> str:
        levels = f"first={exact.literal(self.first)}, forever={exact.literal(self.forever)}"
        return f"{self.name}({self.domain!r}, {levels})"

    def _scaled(self, factor: Fraction) -> Self:
        return replace(self, epsilon=self.epsilon * factor, forever=self.forever * factor)

    @classmethod
    def _offered(cls, ask: Ask) -> Iterator[Protocol]:
        # A second stage is of no use to people who answer once.
        if ask.forever is not None and isinstance(ask.domain, cls.traits.takes):
            yield cls(ask.domain, first=ask.epsilon, forever=ask.forever)

    # -- the two laws ------------------------------------------------------------------------------

    @property
    @abstractmethod
    def permanent_ratio(self) -> Fraction:
        """The exact largest ratio of a state's probabilities under two answers."""

    @property
    @abstractmethod
    def instant_power(self) -> tuple[Fraction, int]:
        """The exact largest ratio of a report's probabilities under two states: that of a part, and how many parts."""

    @property
    def instant_ratio(self) -> Fraction:
        """The exact largest ratio of a report's probabilities under two states."""
        ratio, parts = self.instant_power
        return ratio**parts

    @abstractmethod
    def _permanent(self, value: Any, shared: bytes, bits: Bits) -> bytes: ...

    @property
    def shared_bytes(self) -> int:
        """The number of bytes at the head of a state that hold what a device drew once."""
        return 0

    def _shared(self, bits: Bits) -> bytes:
        """What a device draws once, whatever it answers; levels hold even if every report shows it in clear."""
        return b""

    def _state(self, value: Any, bits: Bits, like: bytes | None = None) -> bytes:
        shared = self._shared(bits) if like is None else like[: self.shared_bytes]
        return shared + self._permanent(value, shared, bits)

    @abstractmethod
    def _instant(self, state: bytes, bits: Bits) -> bytes: ...

    @abstractmethod
    def _states(self, values: Any, bits: Bits) -> Bytes: ...

    @abstractmethod
    def _instants(self, states: Bytes, bits: Bits) -> Bytes: ...

    @abstractmethod
    def _is_state(self, state: bytes) -> bool: ...

    def draw(self, value: Any, bits: Bits) -> bytes:
        return self._instant(self._state(value, bits), bits)

    def draw_many(self, values: Any, bits: Bits) -> Bytes:
        return self._instants(self._states(values, bits), bits)

    # -- the device --------------------------------------------------------------------------------

    @final
    @sealed("_permanent")
    def permanent(self, value: Any, bits: Bits | None = None, like: bytes | None = None) -> bytes:
        """The state of an answer, drawn once and then kept, beside the answer; it never leaves the device.

        `like` is another state of the same device, if it has one: what does not depend on an answer is taken from it.
        """
        return self.permanent_encoded(self.domain.encode_one(value), bits, like)

    @final
    @sealed("_permanent")
    def permanent_encoded(self, encoded: Any, bits: Bits | None = None, like: bytes | None = None) -> bytes:
        """The same for an answer that `domain.encode_one` has read already."""
        if like is not None and not self._is_state(like):
            raise ReportError("the other state of this device is not valid")
        return self._state(encoded, source_of(bits), like)

    def kept_under(self, encoded: Any, state: bytes) -> bytes:
        """Under which key a device with this state keeps that of an answer; answers of one key share a state."""
        return self.domain.answer_key(encoded)

    @final
    @sealed("_permanent and kept_under")
    def kept_state(
        self, encoded: Any, known: Sequence[tuple[bytes, bytes]], values: int | None = None, bits: Bits | None = None
    ) -> tuple[bytes, bytes | None]:
        """The state to report an answer from, and the key to keep it under where it was drawn now.

        `known` is what the device keeps: keys and states in the order in which they were drawn. `values` is the largest
        number of states. Raises ReportError if a kept state is not a valid state.
        """
        first = known[0][1] if known else None
        if first is not None:
            if not self._is_state(first):
                raise ReportError("a kept state of this device is not valid")
            key = self.kept_under(encoded, first)
            for kept, state in known:
                if kept == key:
                    return state, None
            if values is not None and len(known) >= values:
                return first, None
        drawn = self.permanent_encoded(encoded, bits, first)
        return drawn, self.kept_under(encoded, drawn)

    @final
    @sealed("_permanent and _instant")
    def stream(self, answers: Sequence[Any], values: int | None = None, bits: Bits | None = None) -> list[bytes]:
        """All reports of one device over the epochs, with these answers; for simulations and proofs.

        >>> from deniable.protocols import LGRR
        >>> len(LGRR(["yes", "no"], first="1/2", forever=1).stream(["yes", "yes", "no"]))
        3
        """
        source, sent = source_of(bits), []
        known: list[tuple[bytes, bytes]] = []
        for answer in answers:
            state, key = self.kept_state(self.domain.encode_one(answer), known, values, source)
            if key is not None:
                known.append((key, state))
            sent.append(self.report_from(state, source))
        return sent

    @final
    @sealed("_instant")
    def report_from(self, state: bytes, bits: Bits | None = None) -> bytes:
        """A fresh report from a kept state. Raises ReportError for what is no state, such as an answer."""
        if not isinstance(state, bytes) or not self._is_state(state):
            raise ReportError(
                f"a report of {self.name} is drawn from the state that permanent(answer) gave, as bytes; for people "
                "who answer once, privatize(answers) does both"
            )
        return self._instant(state, source_of(bits))

    @final
    @sealed("_states")
    def permanents(self, values: Any, bits: Bits | None = None) -> Bytes:
        """The states of a column of answers, one row of bytes per device; for simulations."""
        return self._states(self.domain.encode(values), source_of(bits))

    @final
    @sealed("_instants")
    def reports(self, states: Bytes, bits: Bits | None = None) -> Reports:
        """Fresh reports from a column of states: one epoch of as many devices."""
        rows = as_rows(states)
        if rows.ndim != 2 or not all(self._is_state(row.tobytes()) for row in rows[:1]):
            raise ReportError("reports are drawn from the rows that permanents(answers) gave")
        return Reports(self.fingerprint, self._instants(rows, source_of(bits)), self.spec())

    # -- what it promises --------------------------------------------------------------------------

    @property
    def most_states(self) -> int | None:
        """The largest number of different states that a device may keep; None if there is no limit."""
        try:
            return self.law().input_count
        except ChannelError:
            return None

    @cached_property
    def instant_epsilon(self) -> Fraction:
        """The level of the second stage, rounded up to a thousandth for each part."""
        ratio, parts = self.instant_power
        return exact.log_ceil(ratio) * parts

    def _lifetime(self, epochs: int, values: int | None = None) -> Fraction:
        """Upper bound on what `epochs` reports from at most `values` states reveal, for any two streams of answers.

        >>> from deniable.protocols import LGRR
        >>> coin = LGRR(["yes", "no"], first="1/2", forever=1)
        >>> coin.law().kept.lifetime(30, values=1), float(coin.law().kept.lifetime(30, values=2))
        (Fraction(1, 1), 34.749)
        """
        if values == 1:
            return self.forever
        return self.first + (epochs - 1) * self.instant_epsilon

    def levels(self, epochs: int, values: int | None = None, enumerated: bool = False) -> Levels:
        """What `epochs` reports of one device reveal, in four senses: see the head of this file.

        `values` is how many states a device keeps at most, any number by default. Upper bounds unless `enumerated`:
        then every pair of streams is looked at, which takes few epochs and answers; others raise ChannelError.

        >>> from deniable.protocols import LGRR
        >>> coin = LGRR(["yes", "no"], first="1/2", forever=1)
        >>> [round(level, 3) for level in coin.levels(8)]
        [0.5, 1.0, 2.0, 8.762]
        >>> [round(level, 3) for level in coin.levels(8, enumerated=True)]
        [0.5, 1.0, 1.959, 4.333]
        """
        for number, what in ((epochs, "epochs"), (1 if values is None else values, "values")):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise NumberError(f"the number of {what} is a positive whole number, not {number!r}")
        cap = min(epochs, self.most_states or epochs, epochs if values is None else values)
        over = (
            *("one report", "two answers that never change", f"two streams of the same pattern, up to {cap} states"),
            f"any two streams of {epochs} epochs",
        )
        if enumerated:
            found = self._enumerated(epochs, cap)
            return Levels(*(Level([(ratio, 1)], words, True) for ratio, words in zip(found, over, strict=True)))
        state, report = self.permanent_ratio, self.ratio
        if epochs == 1:
            return Levels(*(Level([(report, 1)], words, True) for words in over))
        second, parts = self.instant_power
        apart = [(state, 1)] if cap == 1 else [(report, 1), (second, parts * (epochs - 1))]
        return Levels(
            Level([(report, 1)], over[0], True),
            Level([(state, 1)], over[1], False),
            Level([(state, cap)], over[2], False),
            Level(apart, over[3], False),
        )

    # -- several epochs ----------------------------------------------------------------------------

    @property
    def _supports_kept(self) -> tuple[Fraction, Fraction, Fraction, Fraction] | None:
        """P(a state supports the true answer), P(it supports another), and the same of a report; None if unknown."""
        return None

    def _kept_shares(self) -> tuple[float, float]:
        """The share of a report's noise that comes from its state: for the true answer, and for another one."""
        found = self._supports_kept
        if found is None:
            return 1.0, 0.0
        p1, q1, p, q = map(float, found)
        passed = ((p - q) / (p1 - q1)) ** 2
        return passed * p1 * (1 - p1) / (p * (1 - p)), passed * q1 * (1 - q1) / (q * (1 - q))

    def floor(self, n: int) -> float:
        """The standard error of a share that nobody has, among n devices that never change, after any number of epochs.

        >>> from deniable.protocols import LGRR
        >>> weekly = LGRR(["yes", "no"], first="1/2", forever=1)
        >>> round(weekly.worth(10_000).noise, 4), round(weekly.floor(10_000), 4)
        (0.0198, 0.0096)
        """
        return math.sqrt(self._kept_shares()[1]) * self.worth(n).noise

    def change(self, before: Tally, after: Tally, changed: float) -> Difference:
        """How shares have changed between two epochs in which the same people answered.

        `changed` is the share of the people whose answers differ at most. The others report from the same states, whose
        noise cancels: the error is smaller than that of two groups. The test for any difference keeps the larger one.

        >>> from deniable.protocols import LGRR
        >>> from deniable.randomness import Simulation
        >>> weekly, bits = LGRR(["yes", "no"], first="1/2", forever=1), Simulation(1)
        >>> states = weekly.permanents(["yes", "no"] * 5000, bits)
        >>> one, two = (weekly.tally(weekly.reports(states, bits)) for _ in range(2))
        >>> apart, same = weekly.estimate(two) - weekly.estimate(one), weekly.change(one, two, changed=0)
        >>> round(float(apart.stderr[0]), 4), round(float(same.stderr[0]), 4)
        (0.0289, 0.0245)
        """
        if not 0 <= changed <= 1:
            raise NumberError("the share of the people whose answers changed lies between 0 and 1")
        if before.n != after.n:
            raise MismatchError(
                f"{before.n:,} reports before and {after.n:,} after cannot be the same people: subtract the estimates"
            )
        first, second = self.estimate(before), self.estimate(after)
        found: Difference = second - first
        if not before.n:
            return found
        noise = sum(one.table(population=False).stderr ** 2 for one in (first, second))
        kept = min(self._kept_shares())
        spread = noise * (1 - (1 - changed) * kept) + changed * self.worth().scale ** 2 / before.n
        return replace(found, stderr=np.minimum(np.sqrt(spread), found.stderr))

    # -- what can be linked ------------------------------------------------------------------------

    def _linking(self, epochs: int) -> float:
        """How many times better `epochs` reports of a device fit `epochs` others of the same device than of another.

        On average, among devices with the same answer: 1 says that nothing can be linked. An upper bound, exact for
        bitmaps. It grows to the number of states.

        >>> from deniable.protocols import LGRR, LOSUE
        >>> LGRR(5, first="1/2", forever=1).law().kept.linking(1000)
        5.0
        >>> [round(LOSUE(20, first="1/2", forever=1).law().kept.linking(epochs)) for epochs in (1, 2, 4)]
        [3, 21, 696]
        """
        second = float(exact.log(self.instant_power[0])) * self.instant_power[1]
        # Given one state or another, no report is likelier by more than the second stage's ratio.
        return (
            float(self.law().kept.state_forms)
            if epochs * second > math.log(self.law().kept.state_forms)
            else math.exp(epochs * second)
        )

    def likeness(self, one: bytes, other: bytes, answer: Any) -> Fraction:
        """How much likelier two reports are from one device than from two devices, all with this answer: exact.

        For few states; bitmaps may have any number of bits.

        >>> from deniable.protocols import LGRR
        >>> coin = LGRR(["yes", "no"], first=1, forever=2)
        >>> [round(float(coin.likeness(bytes([a]), bytes([b]), "yes")), 3) for a, b in ((0, 0), (0, 1), (1, 1))]
        [1.072, 0.803, 1.534]
        """
        first, second = self.stages
        row = first.numerators[first.inputs.index(answer)]
        chances = [second.numerators[:, second.outputs.index(report.hex())] for report in (one, other)]
        together = sum(int(s) * int(a) * int(b) for s, a, b in zip(row, *chances, strict=True))
        alone = [sum(int(s) * int(a) for s, a in zip(row, each, strict=True)) for each in chances]
        return Fraction(together * first.denominator, alone[0] * alone[1])

    # -- exact enumeration -------------------------------------------------------------------------

    def _law_state(self, value: Any, bits: Bits) -> bytes:
        """The state of one of `_inputs`."""
        return self._state(value, bits)

    def _row_of(self, answer: Any) -> int:
        """Which of `_inputs` an answer is."""
        return int(self.domain.encode_one(answer))

    @cached_property
    def stages(self) -> tuple[Channel, Channel]:
        """The exact channels from answers to states and from states to reports, by running both along every branch."""
        laws = [
            (label, exhaust(lambda bits, v=value: self._law_state(v, bits)).law)  # type: ignore[misc]
            for label, value in self.law().inputs()
        ]
        states = sorted({state for _, law in laws for state in law})
        second = [exhaust(lambda bits, s=state: self._instant(s, bits)).law for state in states]  # type: ignore[misc]
        outputs = sorted({report for law in second for report in law})
        names = [state.hex() for state in states]
        return (
            Channel(
                [[law.get(s, Fraction(0)) for s in states] for _, law in laws], [label for label, _ in laws], names
            ),
            Channel([[law.get(y, Fraction(0)) for y in outputs] for law in second], names, [y.hex() for y in outputs]),
        )

    def between(self, one: Sequence[Any], other: Sequence[Any], values: int | None = None) -> Fraction:
        """The exact largest likelihood ratio of all reports of two streams of answers; small ones only.

        >>> from deniable.protocols import LGRR
        >>> coin = LGRR(["yes", "no"], first="1/2", forever=1)
        >>> round(exact.log(coin.between(["yes"] * 8, ["yes", "no"] * 4)), 3)
        4.101
        """
        if len(one) != len(other) or not one:
            raise NumberError("two streams have the same number of epochs, and at least one")
        read = [[self._row_of(answer) for answer in stream] for stream in (one, other)]
        largest = Fraction(0)
        for place in self._places(sorted({*read[0], *read[1]})):
            table: EpochCounts = {}
            for cell in zip(*(_stored(place, stream, values) for stream in read), strict=True):
                table[cell] = table.get(cell, 0) + 1
            turned = {(w, v): count for (v, w), count in table.items()}
            largest = max(largest, place.largest(table), place.largest(turned))
        return largest

    def _places(self, values: Sequence[int]) -> Iterator[Place]:
        """The laws of reports about these answers, one for each outcome of what is drawn independently of them."""
        yield Place({value: value for value in values}, [Part(*self.stages, 1)])

    def _enumerated(self, epochs: int, cap: int) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """The exact ratios. Reports from one state may change places, so only numbers of epochs matter, not times."""
        same_value = same_pattern = anything = Fraction(1)
        for place in self._places(range(self.law().input_count)):
            keys = sorted(set(place.keys.values()))
            cells = [(v, w) for v in keys for w in keys]
            outputs = max(part.second.shape[1] for part in place.parts)
            if math.comb(epochs + len(cells) * outputs - 1, epochs) * len(place.parts) > MOST_STREAMS:
                raise ChannelError(
                    f"too many streams of {epochs} epochs over {len(keys)} answers to look at all of them: leave "
                    "`enumerated` out for bounds, or compare two streams by `between`"
                )
            for counts in _compositions(epochs, len(cells)):
                table = {cell: count for cell, count in zip(cells, counts, strict=True) if count}
                rows, columns = {v for v, _ in table}, {w for _, w in table}
                if max(len(rows), len(columns)) > cap:
                    continue
                ratio = place.largest(table)
                anything = max(anything, ratio)
                if len(table) == len(rows) == len(columns):
                    same_pattern = max(same_pattern, ratio)
                    same_value = max(same_value, ratio) if len(table) == 1 else same_value
        return self.ratio, same_value, same_pattern, anything

    def _structure(self, answer: Structure | None) -> Stages:
        return Stages(
            forever=self.forever,
            ratio=self.permanent_ratio,
            state=self._state,
            report=self._instant,
            device=self,
            shared_bytes=self.shared_bytes,
            key=self.kept_under,
            levels=self.levels,
            channels=lambda: self.stages,
            answer=answer,
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            structure=lambda: self._structure(base.structure),
            # States are spent, not reports: between streams of one pattern it does not matter how often one is sent.
            kept=base.kept.but(
                spent=lambda draws: self.forever * draws,
                lifetime=self._lifetime,
                noise=lambda: max(self._kept_shares()),
                linking=self._linking,
            ),
        )


EpochCounts = dict[tuple[int, int], int]
"""In how many epochs one stream reports the state of v while the other reports that of w."""


class Part(NamedTuple):
    """One of the independent parts of a report, such as a bit, with how many parts have the same law."""

    first: Channel
    """From the answers to the states of the part."""
    second: Channel
    """From these to the part of a report."""
    times: int


class Place(NamedTuple):
    """What a report may be about once everything is known that does not depend on an answer."""

    keys: dict[int, int]
    """The row of the parts for each answer, by its position; answers of one row share a state."""
    parts: list[Part]

    def largest(self, table: EpochCounts) -> Fraction:
        """The largest ratio of the reports' likelihood in one stream to that in the other, over all reports."""
        ratios = (_largest(part.first, part.second, table) ** part.times for part in self.parts)
        return math.prod(ratios, start=Fraction(1))


def bit_parts(marks: Sequence[frozenset[int]], lanes: int, own: Dyadic, other: Dyadic, flip: Dyadic) -> list[Part]:
    """The parts of a bitmap, for answers with these bits of their own; all bits that no answer has are alike."""
    patterns = Counter(tuple(lane in mark for mark in marks) for lane in set().union(*marks))
    patterns[(False,) * len(marks)] = lanes - patterns.total()
    second = _coins([flip, flip.complement])
    return [
        Part(_coins([own if marked else other for marked in pattern]), second, times)
        for pattern, times in patterns.items()
        if times
    ]


MOST_EXPLAINED = 100_000
"""Epochs after which every bit of a state is taken as known."""


def bit_linking(lanes: Iterable[tuple[Dyadic, int]], flip: Dyadic, epochs: int) -> float:
    """`linking` of a bitmap: the probabilities that bits are set in the state, each with how many bits have it."""
    each = ((count, _explained(float(kept), float(flip), epochs)) for kept, count in lanes)
    return _capped_exp(sum(count * math.log1p(explained**2) for count, explained in each))


def _capped_exp(exponent: float) -> float:
    return math.exp(exponent) if exponent < 700 else math.inf


def _explained(kept: float, flip: float, epochs: int) -> float:
    """The share of the variance of a bit of a state that `epochs` reports explain."""
    if epochs > MOST_EXPLAINED:
        return 1.0
    seen = np.arange(epochs + 1)
    steps = np.log(np.arange(1, epochs + 1))
    ways = np.concatenate([[0.0], np.cumsum(steps[::-1] - steps)])  # logarithms of binomial coefficients
    set_, clear = math.log1p(-flip), math.log(flip)
    on = ways + seen * set_ + (epochs - seen) * clear + math.log(kept)
    off = ways + seen * clear + (epochs - seen) * set_ + math.log1p(-kept)
    likely = np.exp(np.logaddexp(on, off))
    posterior = 1 / (1 + np.exp(np.clip(off - on, -700, 700)))
    return min(1.0, float((likely * (posterior - kept) ** 2).sum()) / (kept * (1 - kept)))


def linking_horizon(protocols: Sequence[Protocol], most: float = FEW_FORMS) -> int | None:
    """The number of epochs for which devices that answer all of these stay hard to recognize; None if forever.

    >>> from deniable.protocols import LGRR, LOSUE
    >>> linking_horizon([LGRR(5, first="1/2", forever=1)])
    >>> linking_horizon([LOSUE(20, first="1/2", forever=1)])
    4
    """

    def links(epochs: int) -> bool:
        return all_linking(protocols, epochs) > most

    if not links(MOST_EXPLAINED + 1):
        return None
    low, high = 0, 1
    while not links(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if links(middle) else (middle, high)
    return low


def all_linking(protocols: Sequence[Protocol], epochs: int) -> float:
    """`linking` of the answers to several questions together."""
    product = 1.0
    for protocol in protocols:
        product *= protocol.law().kept.linking(epochs)
    return product


def _coins(chances: Sequence[Dyadic]) -> Channel:
    """A bit that is set with one of several probabilities."""
    rows = [[exact.WORD - chance.numerator, chance.numerator] for chance in chances]
    return Channel.from_integers(rows, exact.WORD, range(len(rows)), range(2))


def _stored(place: Place, answers: Sequence[int], values: int | None) -> list[int]:
    """Whose state is reported in each epoch, as rows of the parts: beyond the cap, that of the first."""
    read = [place.keys[answer] for answer in answers]
    known = list(dict.fromkeys(read))[:values]
    return [key if key in known else known[0] for key in read]


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write `total` as an ordered sum of `parts` numbers.

    >>> list(_compositions(2, 2))
    [(0, 2), (1, 1), (2, 0)]
    """
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, parts - 1):
            yield first, *rest


def _largest(first: Channel, second: Channel, table: EpochCounts) -> Fraction:
    """The same of one part."""
    rows, columns = ([list(map(int, row)) for row in channel.numerators] for channel in (first, second))
    known: dict[tuple[int, tuple[int, ...]], int] = {}

    def block(value: int, seen: tuple[int, ...]) -> int:
        """The probability, times a constant, of the reports from one answer's state; `seen` counts each report."""
        if (value, seen) not in known:
            likely = (
                math.prod(chance**often for chance, often in zip(column, seen, strict=True)) for column in columns
            )
            known[value, seen] = sum(weight * each for weight, each in zip(rows[value], likely, strict=True))
        return known[value, seen]

    outputs = len(columns[0])
    choices = [list(_compositions(count, outputs)) for count in table.values()]
    largest = Fraction(0)
    for seen in product(*choices):
        likelihood = [1, 1]
        for side in (0, 1):
            sums: dict[int, tuple[int, ...]] = {}
            for cell, counts in zip(table, seen, strict=True):
                before = sums.get(cell[side], (0,) * outputs)
                sums[cell[side]] = tuple(map(sum, zip(before, counts, strict=True)))
            likelihood[side] = math.prod(block(value, total) for value, total in sums.items())
        largest = max(largest, Fraction(*likelihood))
    # Each state divides by the denominator of the first stage; a stream may have more states than the other.
    more = len({w for _, w in table}) - len({v for v, _ in table})
    return largest * Fraction(first.denominator) ** more
