"""Longitudinal generalized randomized response: GRR once per answer, kept; then GRR on what was kept, each time.

Law        the state is the answer with probability t1, else uniform over all d; the report is the state with
           probability t2, else uniform over all d. One report is GRR that keeps the answer with probability t1 t2
Privacy    of a state (1 + (d - 1) t1) / (1 - t1) <= e^forever; of one report the same with t1 t2, <= e^first. t1 and t2
           are rounded down to multiples of 2^-64, t2 after t1, so that neither is exceeded
Error      of one epoch: that of GRR with t = t1 t2
Report     the position of an answer, little-endian, ceil(log2(d) / 8) bytes; the state has the same form
Cost       two random words for the state, two per report; one addition per report and d counters on the server
Source     Arcolezi, Couchot, Al Bouna and Xiao 2022, with exact chaining: the published second stage is right for two
           answers only, and wastes level beyond them
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from deniable.channels import RandomizedResponse
from deniable.domains import ListedDomain
from deniable.errors import ChannelError, EpsilonError
from deniable.exact import WORD, Dyadic, floor_of, shown
from deniable.protocols.base import WORD_BYTES, Cost, Positions, percent
from deniable.protocols.frequency.grr import GRR
from deniable.protocols.memoized import Memoized
from deniable.protocols.reports import Bytes, from_bytes, narrow_type, to_bytes
from deniable.protocols.tally import Counts, kept_or_uniform, spread_evenly
from deniable.randomness import Bits


class LGRR(Memoized, GRR):
    """Longitudinal generalized randomized response.

    >>> weekly = LGRR(["yes", "no"], first="1/2", forever=1)
    >>> state = weekly.permanent("yes")  # once, and kept
    >>> len(weekly.report(state))  # every week
    1
    >>> [round(level, 3) for level in weekly.levels(52, values=1)]
    [0.5, 1.0, 1.0, 1.0]
    """

    name: ClassVar[str] = "LGRR"

    domain: ListedDomain

    @cached_property
    def response(self) -> RandomizedResponse:
        """The first stage, whose outcome is kept."""
        return RandomizedResponse.at(self.domain.size, self.forever)

    @cached_property
    def instant(self) -> RandomizedResponse:
        """The second stage, drawn for each report."""
        size, kept = self.domain.size, self.response.keep.value
        keep = floor_of(lambda e: WORD * (e - 1) / (e + size - 1) / kept, self.first)
        if keep >= WORD:  # t1 was rounded down
            raise EpsilonError(f"`first` is too close to `forever`, {shown(self.forever)}: lower it")
        if keep == 0:
            raise ChannelError(f"at these levels an answer among {size} would never be kept: raise `first`")
        return RandomizedResponse(size, Dyadic(keep))

    def _steps(self, value: Any, encoded: Any, report: bytes) -> list[str]:
        return self._told("answers")

    def _told(self, noun: str) -> list[str]:
        first, second = percent(float(self.response.keep)), percent(float(self.instant.keep))
        one = noun.removesuffix("s")
        drawn = (
            f"One of the {self.domain.size:,} {noun} is drawn, each with the same probability. It counts only after "
            "“replace”."
        )
        return [
            f"First stage, once per {one}: a coin decides whether your {one} is kept. It says “keep” with probability "
            f"{first}.",
            drawn,
            "Second stage, for every report: another coin decides whether the outcome of the first stage is sent. It "
            f"says “send” with probability {second}.",
            drawn,
        ]

    @cached_property
    def kept(self) -> Fraction:
        """The probability t1 t2 that a report is the answer because both stages kept it."""
        return self.response.keep.value * self.instant.keep.value

    @property
    def p(self) -> Fraction:
        return self.kept + self.q

    @property
    def q(self) -> Fraction:
        return (1 - self.kept) / self.domain.size

    @property
    def ratio(self) -> Fraction:
        return self.p / self.q

    @property
    def permanent_ratio(self) -> Fraction:
        return self.response.ratio

    @property
    def instant_power(self) -> tuple[Fraction, int]:
        return self.instant.ratio, 1

    @property
    def _supports_kept(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        return self.response.true, self.response.false, self.p, self.q

    @property
    def state_forms(self) -> int:
        return self.domain.size

    @property
    def cost(self) -> Cost:
        """Of somebody who answers once; a report from a kept state takes half of the random bytes."""
        return Cost(4 * WORD_BYTES, 1)

    @classmethod
    def examples(cls) -> Iterator[LGRR]:
        yield cls([True, False], first="1/2", forever=1)
        yield cls(3, first=1, forever=3)

    def _permanent(self, value: int, shared: bytes, bits: Bits) -> bytes:
        kept, drawn = bits.bernoulli(self.response.keep), bits.integers(self.domain.size)
        return (value if kept else drawn).to_bytes(self.report_bytes, "little")

    def _instant(self, state: bytes, bits: Bits) -> bytes:
        kept, drawn = bits.bernoulli(self.instant.keep), bits.integers(self.domain.size)
        return state if kept else drawn.to_bytes(self.report_bytes, "little")

    def _states(self, values: Positions, bits: Bits) -> Bytes:
        narrow = values.astype(narrow_type(self.report_bytes))
        return to_bytes(bits.keep_or_uniform(narrow, self.response.keep, self.domain.size), self.report_bytes)

    def _instants(self, states: Bytes, bits: Bits) -> Bytes:
        drawn = bits.keep_or_uniform(from_bytes(states), self.instant.keep, self.domain.size)
        return to_bytes(drawn, self.report_bytes)

    def _is_state(self, state: bytes) -> bool:
        return len(state) == self.report_bytes and int.from_bytes(state, "little") < self.domain.size

    def _simulate(self, truth: Counts, runs: int, random: np.random.Generator) -> Counts:
        kept, rest = kept_or_uniform(truth, float(self.kept), runs, random)
        return kept + spread_evenly(rest, self.domain.size, random)
