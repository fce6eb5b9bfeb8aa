"""d-bit flip in two stages: a device says a bit for each of d buckets, and nothing about the others.

The k answers are cut into G = ceil(k / d) blocks of d. The device draws one block, once, and names it in every report.
With one block it is LSUE; with more, reports are shorter and a device is harder to recognize, for more noise.

Law        the block, uniform among G, is kept for all reports. In the state every bit of the block is flipped with f1:
           1 for the answer's bucket, 0 for the others; a report flips each bit of the state with r, so that in all a
           bit is flipped with F = f1 + (1 - 2 f1) r
Privacy    two answers of one block differ in h = 2 bits, with one bit per report in h = 1: of a state
           ((1 - f1) / f1)^h <= e^forever, of one report the same with F, <= e^first; f1 and r are rounded up. The block
           does not depend on the answer
States     one per bucket of the block, and one that all other answers share: at most d + 1. Microsoft keeps one bit per
           bucket for "mine" and one for "not mine". Then a new answer changes two bits and leaves the rest, which tells
           more than is stated here of two streams of one pattern; so every state here has bits of its own
Error      of a count, f -> 0: n G s / (s - 1)^2 with s = e^(first / h); a share f adds n f (G - 1)
Estimate   counts(v) = G (C_v - n_g F) / (1 - 2 F), with n_g reports of the block of v; C_v of them have its bit set
Report     the block in ceil(log2(G) / 8) bytes, then the d bits: bucket v is bit v % d; the last block may
           have bits that are nobody's. The state has the same form
Draws      once per device the block; per state packed(f1) over the d bits, then one bernoulli(1 - f1) if the answer is
           in the block; per report packed(r) over the d bits
Cost       about 2 random bits per bit for the state, and again for each report; G + k counters
Source     Ding, Kulkarni and Yekhanin 2017 (dBitFlip); there the d buckets are drawn freely, here from a public list of
           blocks, because a rare choice of buckets would be a cookie
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable import exact
from deniable.domains import DomainLike, ListedDomain
from deniable.errors import ChannelError, NumberError
from deniable.exact import Dyadic
from deniable.labels import text
from deniable.protocols.frequency.bit_rows import positional_popcount
from deniable.protocols.frequency.histogram import ShareProtocol
from deniable.protocols.frequency.unary import packed_bytes, padding_is_zero, set_bits
from deniable.protocols.law import Law
from deniable.protocols.longitudinal.unary import second_flip
from deniable.protocols.memoized import FEW_FORMS, Memoized, Place, bit_linking, bit_parts
from deniable.protocols.protocol import Positions, Protocol, percent, speaks_for
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes, from_bytes, to_bytes, width_of
from deniable.protocols.tally import Counts, Tally
from deniable.protocols.traits import Traits
from deniable.protocols.worth import WORD_BYTES, Cost, Worth
from deniable.randomness import Bits
from deniable.results import Estimate, Floats, Weights
from deniable.results.bounds import Numbers
from deniable.results.significance import too_few, too_many
from deniable.words import Fact, word

_USUAL_BITS = 16
"""The number of bits for very many answers, if no number of bits leaves few forms of a report."""


@dataclass(frozen=True, init=False, repr=False)
class DBitFlip(Memoized, ShareProtocol):
    """d-bit flip: a device reports about some of the answers only.

    Args:
        domain: The possible answers: a list of categories, their number, or a listed domain.
        epsilon: Another name for `first`.
        forever: Epsilon of the kept state, and so of all reports drawn from it; twice `first` if None.
        bits: Number of answers that a device reports about; the best number with few forms of a report if None.
        first: Epsilon of one report.

    >>> daily = DBitFlip(24, first=1, forever=2)
    >>> daily.bits, daily.blocks, daily.report_bytes, daily.law().kept.linking(10_000) < 1024
    (8, 3, 2, True)
    >>> [round(level, 3) for level in daily.levels(365)[:3]]
    [1.0, 2.0, 18.0]
    """

    name: ClassVar[str] = "DBitFlip"
    traits: ClassVar[Traits] = Traits(
        takes=(ListedDomain,),
        advice="it needs a list of answers; cut a number into ranges, dn.Integers(0, 23)",
        says=lambda protocol, report: protocol._says(report),
    )

    domain: Any
    bits: int = 0

    def __init__(
        self,
        domain: DomainLike,
        epsilon: exact.Number | None = None,
        forever: exact.Number | None = None,
        bits: int | None = None,
        *,
        first: exact.Number | None = None,
    ) -> None:
        object.__setattr__(self, "bits", bits)
        super().__init__(domain, epsilon, forever, first=first)

    def _settle(self) -> None:
        super()._settle()
        size = self.domain.size
        if self.bits is None:
            object.__setattr__(self, "bits", best_bits(size, float(self.first)))
        if isinstance(self.bits, bool) or not isinstance(self.bits, int) or not 1 <= self.bits <= size:
            raise NumberError(
                f"a device speaks about 1 to {size:,} of the {size:,} answers, not {self.bits!r}: give `bits`"
            )

    def __post_init__(self) -> None:
        super().__post_init__()
        if 2 * self.sent_flip >= 1:
            raise ChannelError(f"at epsilon {float(self.epsilon):.3g} rounding leaves nothing to learn: raise epsilon")

    def parameters(self) -> dict[str, Any]:
        return super().parameters() | {"bits": self.bits}

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, bits={self.bits})"

    # -- the law -----------------------------------------------------------------------------------

    @property
    def blocks(self) -> int:
        """G: how many blocks of buckets there are."""
        return -(-int(self.domain.size) // self.bits)

    @property
    def _differ(self) -> int:
        """h: in how many bits two answers of one block differ."""
        return min(2, self.bits)

    @cached_property
    def flip(self) -> Dyadic:
        """P(a bit of the state is another than that of the answer)."""
        return Dyadic.ceil_of(lambda s: 1 / (s + 1), self.forever / self._differ)

    @cached_property
    def second(self) -> Dyadic:
        """P(a bit of a report is another than that of the state)."""
        return second_flip(self.flip, self.first / self._differ, self.first, self.forever)

    @property
    def sent_flip(self) -> Fraction:
        """F: P(a bit of a report is another than that of the answer)."""
        return self.flip.value + (1 - 2 * self.flip.value) * self.second.value

    @property
    def permanent_ratio(self) -> Fraction:
        return (self.flip.complement.value / self.flip.value) ** self._differ

    @property
    def instant_power(self) -> tuple[Fraction, int]:
        return self.second.complement.value / self.second.value, self.bits

    @property
    def _head(self) -> int:
        return width_of(self.blocks)

    @property
    def shared_bytes(self) -> int:
        return self._head

    @property
    def most_states(self) -> int:
        return min(int(self.domain.size), self.bits + (self.blocks > 1))

    def _cost(self) -> Cost:
        """The cost for a person who answers once; a report from a kept state takes about half of the random bytes."""
        own = WORD_BYTES * min(1.0, self.bits / self.domain.size)
        return Cost(WORD_BYTES * (self.blocks > 1) + own + 2 * packed_bytes(self.bits), 1.0)

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(["never", "once", "often"], first="1/2", forever=1, bits=2)
        yield cls([True, False], first=1, forever=3, bits=1)

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        sizes = {"n": self.domain.size, "blocks": self.blocks, "width": self.bits}
        once = "story.block.bits" if self.blocks > 1 else "story.block.bits.all"
        return [
            *([word("story.block.pick", **sizes)] if self.blocks > 1 else []),
            word(once, n=self.bits, chance=percent(float(self.flip))),
            word("story.flips", chance=percent(float(self.second))),
        ]

    def _says(self, report: bytes) -> Fact:
        block, lanes = int.from_bytes(report[: self._head], "little"), int.from_bytes(report[self._head :], "little")
        start = block * self.bits
        own = range(start, min(start + self.bits, self.domain.size))
        said = speaks_for([text(self.domain.labels[place]) for place in own if lanes >> (place - start) & 1])
        blocks = str(self.blocks)
        return said if self.blocks == 1 else word("says.block", n=str(block + 1), blocks=blocks, report=said)

    def _forgeries(self, answers: Any) -> Bytes:
        """A forger chooses the block: the bits of these answers in each of theirs."""
        found = []
        for block in np.unique(np.asarray(answers) // self.bits).tolist():
            own = [int(one) - block * self.bits for one in answers if one // self.bits == block]
            lanes = sum(1 << place for place in set(own))
            width = self.report_bytes - self._head
            found.append(block.to_bytes(self._head, "little") + lanes.to_bytes(width, "little"))
        return np.frombuffer(b"".join(found), dtype=np.uint8).reshape(len(found), -1)

    # -- the device --------------------------------------------------------------------------------

    def _shared(self, bits: Bits) -> bytes:
        return bits.integers(self.blocks).to_bytes(self._head, "little")

    def _lane(self, value: int, shared: bytes) -> int:
        """The place of an answer in the block; `bits` for all answers outside it."""
        lane = value - int.from_bytes(shared[: self._head], "little") * self.bits
        return lane if 0 <= lane < self.bits else self.bits

    def _permanent(self, value: int, shared: bytes, bits: Bits) -> bytes:
        row, lane = bits.lanes(self.flip, self.bits), self._lane(value, shared)
        if lane < self.bits:
            row |= 1 << lane
            if not bits.bernoulli(self.flip.complement):
                row ^= 1 << lane
        return row.to_bytes(-(-self.bits // 8), "little")

    def _instant(self, state: bytes, bits: Bits) -> bytes:
        head = self._head
        return state[:head] + bits.flipped(state[head:], self.second, self.bits)

    def _states(self, values: Positions, bits: Bits) -> Bytes:
        blocks = bits.integers(self.blocks, values.size)
        rows = bits.packed(self.flip, self.bits, values.size)
        lanes = values - blocks * self.bits
        inside = np.flatnonzero((lanes >= 0) & (lanes < self.bits))
        if inside.size:
            own = rows[inside]
            set_bits(own, lanes[inside], bits.bernoulli(self.flip.complement, inside.size))
            rows[inside] = own
        return np.hstack([to_bytes(blocks, self._head), rows])

    def _instants(self, states: Bytes, bits: Bits) -> Bytes:
        rows = bits.packed(self.second, self.bits, len(states))
        rows ^= states[:, self._head :]
        return np.hstack([states[:, : self._head], rows])

    def _is_state(self, state: bytes) -> bool:
        return len(state) == self.report_bytes and bool(self.valid(np.frombuffer(state, dtype=np.uint8)[None])[0])

    def kept_under(self, encoded: Any, state: bytes) -> bytes:
        return b"\0" + self._lane(encoded, state).to_bytes(8, "little")

    def _places(self, values: Sequence[int]) -> Iterator[Place]:
        for block in range(self.blocks):
            lanes = [self._lane(value, block.to_bytes(self._head, "little")) for value in values]
            rows = {lane: row for row, lane in enumerate(dict.fromkeys(lanes))}
            marks = [frozenset([lane]) if lane < self.bits else frozenset() for lane in rows]
            keys = {value: rows[lane] for value, lane in zip(values, lanes, strict=True)}
            yield Place(keys, bit_parts(marks, self.bits, self.flip.complement, self.flip, self.second))

    # -- the collector -----------------------------------------------------------------------------

    def valid(self, reports: Bytes) -> NDArray[np.bool_]:
        return padding_is_zero(reports, self.bits) & (from_bytes(reports[:, : self._head]) < self.blocks)

    def count(self, reports: Bytes) -> Counts:
        blocks, rows = from_bytes(reports[:, : self._head]).astype(np.int64), reports[:, self._head :]
        people = np.bincount(blocks, minlength=self.blocks)
        if self.bits <= 8:  # there are few forms: count each
            forms = np.bincount(blocks << 8 | rows[:, 0], minlength=self.blocks << 8).reshape(self.blocks, 256)
            each = forms @ (np.arange(256)[:, None] >> np.arange(self.bits) & 1)
        else:
            order = np.argsort(blocks, kind="stable")
            parts = np.split(np.ascontiguousarray(rows[order]), np.cumsum(people)[:-1])
            each = np.stack([positional_popcount(part)[: self.bits] for part in parts])
        return np.concatenate([people, each.reshape(-1)[: self.domain.size]])

    def _misfits(self, tally: Tally, worth: float) -> list[float]:
        people, seen = tally.counts[: self.blocks] * worth, tally.counts[self.blocks :] * worth
        even, n, flip = 1 / self.blocks, tally.n * worth, float(self.sent_flip)
        found = []
        if self.blocks > 1:
            found += [
                too_few(float(people.min()), n, even, self.blocks),
                too_many(float(people.max()), n, even, self.blocks),
            ]
        asked = np.repeat(people, self.bits)[: seen.size]
        rates = np.divide(seen, asked, out=np.full(seen.size, 0.5), where=asked > 0)
        for place, test, rate in ((int(rates.argmin()), too_few, flip), (int(rates.argmax()), too_many, 1 - flip)):
            if asked[place]:
                found.append(test(float(seen[place]), float(asked[place]), rate, seen.size))
        return found

    # -- the analyst -------------------------------------------------------------------------------

    def infer(self, tally: Tally) -> Estimate:
        if not tally.n:
            return self._nothing()
        people, seen = tally.counts[: self.blocks], tally.counts[self.blocks :]
        flip = float(self.sent_flip)
        asked = np.repeat(people, self.bits)[: seen.size]
        counts = self.blocks * (seen - asked * flip) / (1 - 2 * flip)
        noise = self.variance(tally.n, np.clip(counts / tally.n, 0.0, 1.0), population=False)
        weights = Weights(self.worth().leverage - self.worth().moved, self.worth().leverage)
        found = Estimate(
            self.domain.labels, tally.n, counts, noise, self.name, law=self._noise_covariance, weights=weights
        )
        # A report about another block adds nothing; one about this block adds one of two numbers.
        values = np.array([weights.lowest, 0.0, weights.highest])
        said = np.stack([asked - seen, tally.n - asked, seen], axis=1).astype(np.float64)
        return replace(found, bounds=Numbers(values, said, found.errors()))

    def variance(self, n: int, frequency: ArrayLike = 0.0, population: bool = True) -> Any:
        f = np.asarray(frequency, dtype=np.float64)
        spread = n * (self.blocks * self._bit_noise(self.sent_flip) + f * (self.blocks - 1))
        if population:
            spread = spread + n * f * (1 - f)
        return float(spread) if np.ndim(spread) == 0 else spread

    @staticmethod
    def _bit_noise(flip: Fraction) -> float:
        return float(flip * (1 - flip) / (1 - 2 * flip) ** 2)

    def _noise_covariance(self, shares: Floats) -> Floats:
        # Bits are independent, and of two buckets at most one is the answer's: no two counts vary together.
        return np.diag(np.asarray(self.variance(1, shares, population=False)))

    def _kept_shares(self) -> tuple[float, float]:
        # Which block a device speaks about is kept, too: it is all of the noise that grows with the share.
        kept, sent = (self.blocks * self._bit_noise(flip) for flip in (self.flip.value, self.sent_flip))
        return (kept + self.blocks - 1) / (sent + self.blocks - 1), kept / sent

    def _leverage(self) -> float:
        """How far one forged report can raise the estimated count of one answer."""
        flip = float(self.sent_flip)
        return self.blocks * (1 - flip) / (1 - 2 * flip)

    def _attack(self) -> float:
        """Guess any answer whose bit is set; if none is, one outside the block."""
        flip, size = float(self.sent_flip), int(self.domain.size)
        outside = 1.0 if self.blocks > 1 else flip / (1 - flip)

        def right(own: int) -> float:
            none = (1 - flip) ** own
            return (1 - none) * (1 - flip) / flip + none * outside

        found = (self.blocks - 1) * right(self.bits) + right(size - (self.blocks - 1) * self.bits)
        return found / (self.blocks * size)

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            cost=self._cost,
            forgeries=self._forgeries,
            leverage=self._leverage,
            # m forged reports among n move a share by at most m / n times this.
            moved=lambda: self.blocks / (1 - 2 * float(self.sent_flip)),
            guess=self._attack,
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            ratio=lambda: ((1 - self.sent_flip) / self.sent_flip) ** self._differ,
            width=lambda: self._head + -(-self.bits // 8),
            forms=lambda: self.blocks << self.bits,
            counters=lambda: self.blocks + int(self.domain.size),
            inputs=lambda: ((label, place) for place, label in enumerate(self.domain.labels)),
            input_count=lambda: int(self.domain.size),
            checks=self._misfits,
            kept=base.kept.but(
                state_forms=lambda: self.law().forms,
                linking=lambda epochs: self.blocks * bit_linking([(self.flip, self.bits)], self.second, epochs),
            ),
        )


def best_bits(size: int, first: float) -> int:
    """The number of bits with the least noise among those with few forms of a report; the fewest among equals.

    >>> [best_bits(size, 1.0) for size in (2, 10, 24, 100, 500, 5000)]
    [1, 10, 8, 5, 1, 16]
    """

    def noise(bits: int) -> float:
        odds = math.exp(min(first, 40.0) / min(2, bits))
        return -(-size // bits) * odds / (odds - 1) ** 2

    few = [bits for bits in range(1, min(size, 10) + 1) if -(-size // bits) << bits <= FEW_FORMS]
    return min(few, key=lambda bits: (round(noise(bits), 9), bits)) if few else min(size, _USUAL_BITS)
