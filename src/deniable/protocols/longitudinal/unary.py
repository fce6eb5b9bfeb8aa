"""Bitmaps in two stages: drawn once per answer and kept; then every bit flipped by chance, each time.

LSUE    symmetric: the kept bits are those of SUE at epsilon `forever`, a report has the law of SUE at `first`
LOSUE   optimized: the kept bits are those of OUE at epsilon `forever`, a report has the law of OUE at `first`
LRAPPOR the bits are those of a Bloom filter; its sheet stands at the class

Law        in the state the true bit is set with p1, every other bit with q1; a report flips each bit of the state with
           r. So its bits are independent, set with p = p1 + (1 - 2 p1) r and q = q1 + (1 - 2 q1) r. LSUE: p1 = 1 - q1
           and p = 1 - q; LOSUE: p1 = p = 1/2
Privacy    of a state p1 (1 - q1) / (q1 (1 - p1)) <= e^forever, of one report the same with p and q, <= e^first. q1 is
           rounded up to a multiple of 2^-64, then r, so that neither is exceeded. Two states may differ in all d bits:
           the second stage alone has ((1 - r) / r)^d
Error      of one epoch: that of SUE or OUE at epsilon `first`
Report     a bitmap of d bits: answer v is bit v % 8 of byte v // 8, padding zero; the state has the same form
Cost       about 2 random bits per bit for the state, and again for each report; a carry-save adder on the server
Source     Erlingsson, Pihur and Korolova 2014; Arcolezi, Couchot, Al Bouna and Xiao 2022
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from deniable import exact
from deniable.domains import DomainLike, ListedDomain, Strings
from deniable.errors import EpsilonError
from deniable.exact import WORD, Dyadic, ceil_of, shown
from deniable.protocols.frequency.open_text import TextProtocol, as_text, cohort_step
from deniable.protocols.frequency.rappor import RAPPOR
from deniable.protocols.frequency.unary import (
    OUE,
    SUE,
    UnaryProtocol,
    bitmap_operations,
    packed_bytes,
    padding_is_zero,
)
from deniable.protocols.kernel import Kernel
from deniable.protocols.law import Law
from deniable.protocols.memoized import Memoized, Place, bit_linking, bit_parts
from deniable.protocols.protocol import Positions, Protocol, percent
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes
from deniable.protocols.traits import Ask
from deniable.protocols.worth import WORD_BYTES, Cost, Worth
from deniable.randomness import Bits
from deniable.words import Fact, Joined, word


def second_flip(other: Dyadic, target: Fraction, first: Fraction, forever: Fraction) -> Dyadic:
    """The r with which bits that are set with q1 come out set with 1 / (e^target + 1), rounded up.

    `first` and `forever` are the levels in the refusal.
    """
    stored = other.value
    flip = ceil_of(lambda e: WORD * (1 / (e + 1) - stored) / (1 - 2 * stored), target)
    if flip < 1:  # q1 was rounded up
        raise EpsilonError(f"`first`, {shown(first)}, is too close to `forever`, {shown(forever)}: lower it")
    return Dyadic(flip)


class LongitudinalUnary(Memoized, UnaryProtocol):
    """A bitmap whose bits are kept, and flipped for each report; `true_bit` and `other_bit` are those of the state."""

    domain: ListedDomain

    @property
    @abstractmethod
    def _target(self) -> Fraction:
        """The x with q = 1 / (e^x + 1) in a report."""

    @cached_property
    def flip(self) -> Dyadic:
        """P(a report has another bit than the state)."""
        return second_flip(self.other_bit, self._target, self.first, self.forever)

    def _sent(self, kept: Dyadic) -> Fraction:
        """P(a bit is set in a report) of one that is set in the state with this probability."""
        return kept.value + (1 - 2 * kept.value) * self.flip.value

    @property
    def p(self) -> Fraction:
        return self._sent(self.true_bit)

    @property
    def q(self) -> Fraction:
        return self._sent(self.other_bit)

    @property
    def permanent_ratio(self) -> Fraction:
        own, other = self.true_bit.value, self.other_bit.value
        return own * (1 - other) / (other * (1 - own))

    @property
    def instant_power(self) -> tuple[Fraction, int]:
        return self.flip.complement.value / self.flip.value, self.domain.size

    @property
    def _supports_kept(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        return self.true_bit.value, self.other_bit.value, self.p, self.q

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls([True, False], first="1/2", forever=1)

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        others, own = self._told("answers")
        first = Joined([word("story.first.answer"), others], " ")
        return [first, own, word("story.flips", chance=percent(float(self.flip)))]

    def _permanent(self, value: int, shared: bytes, bits: Bits) -> bytes:
        return UnaryProtocol.draw(self, value, bits)

    def _states(self, values: Positions, bits: Bits) -> Bytes:
        return UnaryProtocol.draw_many(self, values, bits)

    def _instant(self, state: bytes, bits: Bits) -> bytes:
        return bits.flipped(state, self.flip, self.domain.size)

    def _instants(self, states: Bytes, bits: Bits) -> Bytes:
        rows = bits.packed(self.flip, self.domain.size, len(states))
        rows ^= states
        return rows

    def _is_state(self, state: bytes) -> bool:
        whole = len(state) == self.report_bytes
        return whole and bool(padding_is_zero(np.frombuffer(state, dtype=np.uint8)[None], self.domain.size)[0])

    def likeness(self, one: bytes, other: bytes, answer: Any) -> Fraction:
        ratio, own = Fraction(1), self.domain.encode_one(answer)
        flips = [self.flip.value, self.flip.complement.value]
        for lane in range(self.domain.size):
            kept = (self.true_bit if lane == own else self.other_bit).value
            bits = [int(report[lane >> 3] >> (lane & 7) & 1) for report in (one, other)]
            set_, clear = [flips[bit] for bit in bits], [flips[1 - bit] for bit in bits]
            together = kept * set_[0] * set_[1] + (1 - kept) * clear[0] * clear[1]
            alone = [kept * a + (1 - kept) * b for a, b in zip(set_, clear, strict=True)]
            ratio *= together / (alone[0] * alone[1])
        return ratio

    def _places(self, values: Sequence[int]) -> Iterator[Place]:
        marks = [frozenset([value]) for value in values]
        parts = bit_parts(marks, self.domain.size, self.true_bit, self.other_bit, self.flip)
        yield Place({value: row for row, value in enumerate(values)}, parts)

    @remembered
    def kernel(self) -> Kernel:
        # Its two stages together set each bit by itself, too, with other probabilities.
        return super().kernel().but(simulate=self._simulate)

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            # For a person who answers once; a report from a kept state takes half of the random bytes.
            cost=lambda: Cost(2 * packed_bytes(self.domain.size) + WORD_BYTES, bitmap_operations(self.domain.size)),
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            kept=base.kept.but(
                state_forms=lambda: 1 << self.domain.size,
                linking=lambda epochs: bit_linking(
                    [(self.true_bit, 1), (self.other_bit, self.domain.size - 1)], self.flip, epochs
                ),
            ),
        )


class LSUE(LongitudinalUnary):
    """Longitudinal symmetric unary encoding, the two stages of RAPPOR without its filter.

    Args:
        domain: The possible answers: a list of categories, their number, or a listed domain.
        epsilon: Another name for `first`.
        forever: Epsilon of the kept state, and so of all reports drawn from it; twice `first` if None.
        first: Epsilon of one report.

    >>> weekly = LSUE(["never", "once", "often"], first="1/2", forever=1)
    >>> [round(level, 3) for level in weekly.levels(52, values=1)]
    [0.5, 1.0, 1.0, 1.0]
    """

    name: ClassVar[str] = "LSUE"

    @cached_property
    def other_bit(self) -> Dyadic:
        return SUE(self.domain, self.forever).other_bit

    @property
    def true_bit(self) -> Dyadic:
        return self.other_bit.complement

    @property
    def _target(self) -> Fraction:
        return self.first / 2


class LOSUE(LongitudinalUnary):
    """Longitudinal optimized unary encoding: one report is OUE at epsilon `first`.

    Args:
        domain: The possible answers: a list of categories, their number, or a listed domain.
        epsilon: Another name for `first`.
        forever: Epsilon of the kept state, and so of all reports drawn from it; twice `first` if None.
        first: Epsilon of one report.

    >>> weekly = LOSUE(["never", "once", "often"], first="1/2", forever=1)
    >>> float(weekly.p), abs(float(weekly.q) - float(OUE(3, "1/2").q)) < 1e-15
    (0.5, True)
    """

    name: ClassVar[str] = "LOSUE"

    @cached_property
    def other_bit(self) -> Dyadic:
        return OUE(self.domain, self.forever).other_bit

    @property
    def true_bit(self) -> Dyadic:
        return Dyadic(WORD // 2)

    @property
    def _target(self) -> Fraction:
        return self.first


@dataclass(frozen=True, init=False, repr=False)
class LRAPPOR(Memoized, RAPPOR):
    """RAPPOR in full: a Bloom filter that is flipped once and kept, then flipped again for each report.

    `dn.RAPPOR(domain, first=..., forever=...)` builds it; without the two levels it is the one-time RAPPOR.

    Law        the cohort is drawn once per device. In the state each of the B bits of the text's filter is flipped with
               f1 = ceil(2^64 / (s + 1)) / 2^64, s = e^(forever / (2 h)); a report flips each bit of the state with r,
               so that in all a bit is flipped with F = f1 + (1 - 2 f1) r
    Privacy    of a state ((1 - f1) / f1)^(2 h) <= e^forever, of one report the same with F, <= e^first; r is rounded up
    Error      that of one-time RAPPOR at epsilon `first`, whose decoder it is
    Report     the cohort in 1 or 2 bytes, then the bitmap, as one-time RAPPOR; the state has the same form
    Draws      once per device the cohort; per text packed(f1) over the B bits, then one bernoulli(1 - f1) for each of
               its positions; per report packed(r) over the B bits
    Paper      its f is 2 f1, and its q and p are the probabilities 1 - r and r that a set and a clear bit of the state
               are reported as set: here they add up to one. Its h is `hashes`, its k bits `bloom_bits`, its m `cohorts`
    Linking    a state of 128 bits works as a cookie from the first epochs on: a survey has to say "linkable"
    Source     Erlingsson, Pihur and Korolova 2014

    Args:
        domain: `Strings` for any text, or a list of answers.
        epsilon: Another name for `first`.
        bloom_bits: Size of the Bloom filter.
        hashes: Number of hash functions.
        cohorts: Number of sets of hash functions.
        first: Epsilon of one report.
        forever: Epsilon of the kept state, and so of all reports drawn from it; twice `first` if None.
        key: Selects the hash functions for a list of answers; open text brings its own.

    >>> daily = RAPPOR(Strings(), first=2, forever=4)
    >>> [round(level, 2) for level in daily.levels(365, values=1)]
    [2.0, 4.0, 4.0, 4.0]
    """

    name: ClassVar[str] = "LRAPPOR"

    domain: Any
    forever: Fraction = None  # type: ignore[assignment]  # always set: it stands behind fields with defaults

    def __init__(
        self,
        domain: DomainLike,
        epsilon: exact.Number | None = None,
        bloom_bits: int = 128,
        hashes: int = 2,
        cohorts: int = 8,
        *,
        first: exact.Number | None = None,
        forever: exact.Number | None = None,
        key: str | None = None,
    ) -> None:
        sizes = {"bloom_bits": bloom_bits, "hashes": hashes, "cohorts": cohorts, "key": key}
        for name, value in sizes.items():
            object.__setattr__(self, name, value)
        super().__init__(domain, epsilon, forever, first=first)

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.second  # refuses levels that leave no second stage

    def parameters(self) -> dict[str, Any]:
        return RAPPOR.parameters(self) | Memoized.parameters(self)

    def __repr__(self) -> str:
        levels = f"first={exact.literal(self.first)}, forever={exact.literal(self.forever)}"
        sizes = f"bloom_bits={self.bloom_bits}, hashes={self.hashes}, cohorts={self.cohorts}"
        return f"RAPPOR({self.domain!r}, {levels}, {sizes})"

    @classmethod
    def _offered(cls, ask: Ask) -> Iterator[Protocol]:
        # A list of answers is better served without hashing.
        if ask.forever is not None and isinstance(ask.domain, Strings):
            yield cls(ask.domain, first=ask.epsilon, forever=ask.forever)

    @cached_property
    def flip(self) -> Dyadic:
        """P(a bit of the state is another than that of the filter)."""
        return Dyadic.ceil_of(lambda s: 1 / (s + 1), self.forever / (2 * self.hashes))

    @cached_property
    def second(self) -> Dyadic:
        """P(a bit of a report is another than that of the state)."""
        return second_flip(self.flip, self.first / (2 * self.hashes), self.first, self.forever)

    @property
    def sent_flip(self) -> Fraction:
        return self.flip.value + (1 - 2 * self.flip.value) * self.second.value

    @property
    def permanent_ratio(self) -> Fraction:
        return (self.flip.complement.value / self.flip.value) ** (2 * self.hashes)

    @property
    def instant_power(self) -> tuple[Fraction, int]:
        return self.second.complement.value / self.second.value, self.bloom_bits

    @property
    def most_states(self) -> int | None:
        return None if self.is_open else int(self.domain.size)

    @property
    def shared_bytes(self) -> int:
        return self._cohort_bytes

    def _cost(self) -> Cost:
        """The cost for a person who answers once; a report from a kept state takes about half of the random bytes."""
        once = RAPPOR.cost.fget(self)  # type: ignore[attr-defined]
        return Cost(once.random_bytes + packed_bytes(self.bloom_bits), once.operations)

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(["rye", "sourdough"], bloom_bits=2, hashes=1, cohorts=2, first="1/2", forever=1)

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        return [
            cohort_step(self.cohorts, self.bloom_bits, kept=True),
            Joined([word("story.first.text"), self._filter_step()], " "),
            word("story.flips", chance=percent(float(self.second))),
        ]

    def _shared(self, bits: Bits) -> bytes:
        return bits.integers(self.cohorts).to_bytes(self._cohort_bytes, "little")

    def _permanent(self, value: Any, shared: bytes, bits: Bits) -> bytes:
        text = value if self.is_open else as_text(self.domain.labels[value])
        return self._one_text(text, int.from_bytes(shared, "little"), bits)

    def _instant(self, state: bytes, bits: Bits) -> bytes:
        head = self._cohort_bytes
        return state[:head] + bits.flipped(state[head:], self.second, self.bloom_bits)

    def _states(self, values: Any, bits: Bits) -> Bytes:
        return TextProtocol.draw_many(self, values, bits)

    def _instants(self, states: Bytes, bits: Bits) -> Bytes:
        head = self._cohort_bytes
        rows = bits.packed(self.second, self.bloom_bits, len(states))
        rows ^= states[:, head:]
        return np.hstack([states[:, :head], rows])

    def _is_state(self, state: bytes) -> bool:
        return len(state) == self.report_bytes and bool(self.valid(np.frombuffer(state, dtype=np.uint8)[None])[0])

    def _linking(self, epochs: int) -> float:
        lanes = [(self.flip.complement, self.hashes), (self.flip, self.bloom_bits - self.hashes)]
        return self.cohorts * bit_linking(lanes, self.second, epochs)

    def _places(self, values: Sequence[int]) -> Iterator[Place]:
        keys = {value: row for row, value in enumerate(values)}
        for cohort in range(self.cohorts):
            marks = [frozenset(self.positions(as_text(self.domain.labels[value]), cohort)) for value in values]
            yield Place(keys, bit_parts(marks, self.bloom_bits, self.flip.complement, self.flip, self.second))

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            cost=self._cost,
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            kept=base.kept.but(state_forms=lambda: self.cohorts << self.bloom_bits, linking=self._linking),
        )
