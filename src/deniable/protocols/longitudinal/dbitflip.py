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
Estimate   counts(v) = G (C_v - n_g F) / (1 - 2 F), with n_g reports of the block of v, of which C_v have its bit set
Report     the block in ceil(log2(G) / 8) bytes, then the d bits, of which bucket v is bit v % d; the last block may
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
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable import exact
from deniable.domains import Domain, DomainLike, ListedDomain
from deniable.errors import ChannelError, NumberError
from deniable.exact import Dyadic
from deniable.labels import Label, text
from deniable.protocols.base import WORD_BYTES, Cost, Positions, Protocol, percent
from deniable.protocols.frequency.bit_rows import positional_popcount
from deniable.protocols.frequency.histogram import SPOKEN, ShareProtocol
from deniable.protocols.frequency.unary import packed_bytes, padding_is_zero, set_bits
from deniable.protocols.longitudinal.unary import second_flip
from deniable.protocols.memoized import FEW_FORMS, Memoized, Place, bit_linking, bit_parts
from deniable.protocols.reports import Bytes, from_bytes, to_bytes, width_of
from deniable.protocols.tally import Counts, Tally
from deniable.randomness import Bits
from deniable.results import Estimate, Floats, Weights
from deniable.results.significance import too_few, too_many

_USUAL_BITS = 16
"""Of very many answers, where no number of bits leaves few forms of a report."""


@dataclass(frozen=True, init=False, repr=False)
class DBitFlip(Memoized, ShareProtocol):
    """d-bit flip; `bits` is how many buckets a device speaks about, by default the best with few forms of a report.

    >>> daily = DBitFlip(24, first=1, forever=2)
    >>> daily.bits, daily.blocks, daily.report_bytes, daily.linking(10_000) < 1024
    (8, 3, 2, True)
    >>> [round(level, 3) for level in daily.levels(365)[:3]]
    [1.0, 2.0, 18.0]
    """

    name: ClassVar[str] = "DBitFlip"
    takes: ClassVar[tuple[type[Domain], ...]] = (ListedDomain,)
    advice: ClassVar[str] = "it needs a list of answers; cut a number into ranges, dn.Integers(0, 23)"

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
    def ratio(self) -> Fraction:
        return ((1 - self.sent_flip) / self.sent_flip) ** self._differ

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
    def report_bytes(self) -> int:
        return self._head + -(-self.bits // 8)

    @property
    def report_forms(self) -> int:
        return self.blocks << self.bits

    @property
    def state_forms(self) -> int:
        return self.report_forms

    @property
    def most_states(self) -> int:
        return min(int(self.domain.size), self.bits + (self.blocks > 1))

    @property
    def tally_size(self) -> int:
        return self.blocks + int(self.domain.size)

    @property
    def cost(self) -> Cost:
        """Of somebody who answers once; a report from a kept state takes about half of the random bytes."""
        own = WORD_BYTES * min(1.0, self.bits / self.domain.size)
        return Cost(WORD_BYTES * (self.blocks > 1) + own + 2 * packed_bytes(self.bits), 1.0)

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(["never", "once", "often"], first="1/2", forever=1, bits=2)
        yield cls([True, False], first=1, forever=3, bits=1)

    def _steps(self, value: Any, encoded: Any, report: bytes) -> list[str]:
        first, second = percent(float(self.flip)), percent(float(self.second))
        choice = (
            f"The {self.domain.size:,} answers are cut into {self.blocks:,} blocks of {self.bits:,}. One block is drawn"
            " once and kept for all your reports, each with the same probability. Your reports are about the answers of"
            " this block alone."
        )
        once, which = "once per answer", f"the {self.bits:,} answers"
        if self.blocks > 1:
            once, which = f"{once} of the block, and once for all others", f"{which} of the block"
        return [
            *([choice] if self.blocks > 1 else []),
            f"First stage, {once}: there is one bit for each of {which}, set for yours and clear for the others. Then "
            f"every bit is flipped with probability {first}, one coin each.",
            f"Second stage, for every report: every bit of what came out is flipped with probability {second}, one "
            "coin each.",
        ]

    def spoken(self, report: bytes) -> str:
        block, lanes = int.from_bytes(report[: self._head], "little"), int.from_bytes(report[self._head :], "little")
        start = block * self.bits
        own = range(start, min(start + self.bits, self.domain.size))
        speaks = [text(self.domain.labels[place]) for place in own if lanes >> (place - start) & 1]
        more = f" and {len(speaks) - SPOKEN:,} more" if len(speaks) > SPOKEN else ""
        about = "" if self.blocks == 1 else f"about block {block + 1} of {self.blocks}: "
        return f"{about}it speaks for {', '.join(speaks[:SPOKEN]) or 'no answer'}{more}"

    def forgeries(self, answers: Any) -> Bytes:
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
        return len(state) == self.report_bytes and bool(self._valid(np.frombuffer(state, dtype=np.uint8)[None])[0])

    def kept_under(self, encoded: Any, state: bytes) -> bytes:
        return b"\0" + self._lane(encoded, state).to_bytes(8, "little")

    def linking(self, epochs: int) -> float:
        return self.blocks * bit_linking([(self.flip, self.bits)], self.second, epochs)

    def _places(self, values: Sequence[int]) -> Iterator[Place]:
        for block in range(self.blocks):
            lanes = [self._lane(value, block.to_bytes(self._head, "little")) for value in values]
            rows = {lane: row for row, lane in enumerate(dict.fromkeys(lanes))}
            marks = [frozenset([lane]) if lane < self.bits else frozenset() for lane in rows]
            keys = {value: rows[lane] for value, lane in zip(values, lanes, strict=True)}
            yield Place(keys, bit_parts(marks, self.bits, self.flip.complement, self.flip, self.second))

    def _inputs(self) -> Iterator[tuple[Label, int]]:
        return ((label, place) for place, label in enumerate(self.domain.labels))

    def _input_count(self) -> int:
        return int(self.domain.size)

    # -- the collector -----------------------------------------------------------------------------

    def _valid(self, reports: Bytes) -> NDArray[np.bool_]:
        return padding_is_zero(reports, self.bits) & (from_bytes(reports[:, : self._head]) < self.blocks)

    def _count(self, reports: Bytes) -> Counts:
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

    def _estimate(self, tally: Tally) -> Estimate:
        people, seen = tally.counts[: self.blocks], tally.counts[self.blocks :]
        flip = float(self.sent_flip)
        asked = np.repeat(people, self.bits)[: seen.size]
        counts = self.blocks * (seen - asked * flip) / (1 - 2 * flip)
        noise = self.variance(tally.n, np.clip(counts / tally.n, 0.0, 1.0), population=False)
        weights = Weights(self.leverage - self.poisoning, self.leverage)
        return Estimate(
            self.domain.labels, tally.n, counts, noise, self.name, law=self.noise_covariance, weights=weights
        )

    def variance(self, n: int, frequency: ArrayLike = 0.0, population: bool = True) -> Any:
        f = np.asarray(frequency, dtype=np.float64)
        spread = n * (self.blocks * self._bit_noise(self.sent_flip) + f * (self.blocks - 1))
        if population:
            spread = spread + n * f * (1 - f)
        return float(spread) if np.ndim(spread) == 0 else spread

    @staticmethod
    def _bit_noise(flip: Fraction) -> float:
        return float(flip * (1 - flip) / (1 - 2 * flip) ** 2)

    def noise_covariance(self, shares: Floats) -> Floats:
        # Bits are independent, and of two buckets at most one is the answer's: no two counts vary together.
        return np.diag(np.asarray(self.variance(1, shares, population=False)))

    def _kept_shares(self) -> tuple[float, float]:
        # Which block a device speaks about is kept, too: it is all of the noise that grows with the share.
        kept, sent = (self.blocks * self._bit_noise(flip) for flip in (self.flip.value, self.sent_flip))
        return (kept + self.blocks - 1) / (sent + self.blocks - 1), kept / sent

    @property
    def leverage(self) -> float:
        """By how much one forged report can raise the estimated count of one answer."""
        flip = float(self.sent_flip)
        return self.blocks * (1 - flip) / (1 - 2 * flip)

    @property
    def poisoning(self) -> float:
        """m forged reports among n move a share by at most m / n times this."""
        return self.blocks / (1 - 2 * float(self.sent_flip))

    @property
    def attack(self) -> float:
        """Guess any answer whose bit is set; if none is, one outside the block."""
        flip, size = float(self.sent_flip), int(self.domain.size)
        outside = 1.0 if self.blocks > 1 else flip / (1 - flip)

        def right(own: int) -> float:
            none = (1 - flip) ** own
            return (1 - none) * (1 - flip) / flip + none * outside

        found = (self.blocks - 1) * right(self.bits) + right(size - (self.blocks - 1) * self.bits)
        return found / (self.blocks * size)


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
