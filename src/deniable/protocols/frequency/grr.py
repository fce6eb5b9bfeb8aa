"""Generalized randomized response: keep the answer with some probability, else draw any answer.

Also called GRR, k-RR, direct encoding and the flat mechanism.

Law        kept with probability t, else uniform over all d: p = t + (1 - t) / d, q = (1 - t) / d
Privacy    p / q <= e^epsilon; t is rounded down to a multiple of 2^-64, so the ratio is never exceeded
Error      n q (1 - q) / (p - q)^2 + n f (1 - p - q) / (p - q), for an answer of frequency f
Report     the answer's position, little-endian, ceil(log2(d) / 8) bytes
Cost       two random words on the device; one addition a report and d counters on the server
Source     Warner 1965; Kairouz, Oh and Viswanath 2014; Wang et al. 2017
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable.channels import RandomizedResponse
from deniable.channels.inference.estimators import response_mle
from deniable.exact import Dyadic
from deniable.labels import text
from deniable.protocols.frequency.histogram import PureProtocol
from deniable.protocols.kernel import Kernel
from deniable.protocols.law import Law
from deniable.protocols.protocol import Positions, percent
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes, Reports, from_bytes, histogram, narrow_type, to_bytes, width_of
from deniable.protocols.tally import Counts, Halves, Tally, kept_or_uniform, spread_evenly
from deniable.protocols.worth import WORD_BYTES, Cost, Worth
from deniable.randomness import Bits
from deniable.results import Estimate, Fit, Support
from deniable.results.significance import too_far
from deniable.words import Fact, word


class GRR(PureProtocol):
    """Generalized randomized response.

    Args:
        domain: The possible answers: a list of categories, their number, or a listed domain.
        epsilon: Largest epsilon of a report.

    >>> protocol = GRR(["yes", "no"], epsilon="1.0986122886681098")
    >>> protocol.channel().rows.round(2).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """

    name: ClassVar[str] = "GRR"

    @cached_property
    def response(self) -> RandomizedResponse:
        return RandomizedResponse.at(self.domain.size, self.epsilon)

    @property
    def p(self) -> Fraction:
        return self.response.true

    @property
    def q(self) -> Fraction:
        return self.response.false

    def _says(self, report: bytes) -> Fact:
        return text(self.domain.labels[int.from_bytes(report, "little")])

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        return [
            word("story.keep", chance=percent(float(self.response.keep))),
            word("story.replace", n=self.domain.size),
        ]

    @property
    def _third(self) -> Fraction | None:
        return self.q if self.domain.size > 2 else None

    @property
    def _support_size(self) -> int:
        return 1

    @classmethod
    def examples(cls) -> Iterator[GRR]:
        yield cls([True, False], 1)
        yield cls(5, 1)

    def draw(self, value: int, bits: Bits) -> bytes:
        keep, size, width = self._single
        kept, drawn = bits.kept_and_drawn(keep, size)
        return (value if kept else drawn).to_bytes(width, "little")

    @cached_property
    def _single(self) -> tuple[Dyadic, int, int]:
        """What a single report needs, looked up once."""
        return self.response.keep, self.domain.size, self.report_bytes

    def draw_many(self, values: Positions, bits: Bits) -> Bytes:
        return to_bytes(GRR._many_numbers(self, values, bits), self.report_bytes)

    def _many_numbers(self, values: Positions, bits: Bits) -> NDArray[Any]:
        narrow = values.astype(narrow_type(self.report_bytes))
        return bits.keep_or_uniform(narrow, self.response.keep, self.domain.size)

    def valid(self, reports: Bytes) -> NDArray[np.bool_]:
        if self.domain.size == 256**self.report_bytes:
            return np.ones(len(reports), dtype=np.bool_)
        return GRR._valid_numbers(self, from_bytes(reports))

    def _valid_numbers(self, numbers: NDArray[Any]) -> NDArray[np.bool_]:
        valid: NDArray[np.bool_] = numbers < self.domain.size
        return valid

    def count(self, reports: Bytes) -> Counts:
        return GRR._count_numbers(self, from_bytes(reports))

    def _count_numbers(self, numbers: NDArray[Any]) -> Counts:
        return histogram(numbers.astype(narrow_type(self.report_bytes), copy=False), self.domain.size)

    def _halves(self) -> Halves:
        size = self.domain.size

        def read(found: list[Counts]) -> Counts | None:
            lower, upper = found[:2]
            return None if lower[size:].any() or upper[1:].any() else lower[:size]

        return Halves((size - 1).bit_length(), read)

    def _support(self, reports: Bytes) -> NDArray[np.bool_]:
        supported: NDArray[np.bool_] = from_bytes(reports)[:, None] == np.arange(self.domain.size)
        return supported

    def _simulate(self, truth: Counts, runs: int, random: np.random.Generator) -> Counts:
        kept, rest = kept_or_uniform(truth, float(self.response.keep), runs, random)
        return kept + spread_evenly(rest, self.domain.size, random)

    def _misfits(self, tally: Tally, worth: float) -> list[float]:
        p, q = float(self.p), float(self.q)
        counts = tally.counts.astype(np.float64) * worth
        return [*super().law().checks(tally, worth), too_far(counts, q + (p - q) * response_mle(counts, p, q))]

    def mle(
        self,
        reports: Reports | Bytes | Tally,
        tolerance: float = 1e-9,
        max_iterations: int = 10_000,
        progress: bool = False,
    ) -> Estimate:
        """The shares under which the reports are most likely, in closed form; a tally will do.

        The variance is that of the unbiased estimate at these shares, which is also what Fisher information gives.
        """
        tally = reports if isinstance(reports, Tally) else self.tally(reports)
        self._check_tally(tally)
        if not tally.n:
            return replace(self.estimate(tally), method="mle")
        shares = response_mle(tally.counts.astype(np.float64), float(self.p), float(self.q))
        noise = self.variance(tally.n, shares, population=False)
        support = Support(tally.counts, tally.n, float(self.p), float(self.q), self._support_size)
        labels, counts, fit = self.domain.labels, shares * tally.n, Fit(0, 0.0, True, self.estimate(tally))
        return Estimate(labels, tally.n, counts, noise, self.name, "mle", support, fit=fit)

    @remembered
    def kernel(self) -> Kernel:
        return (
            super()
            .kernel()
            .but(
                draw_numbers=self._many_numbers,
                count_numbers=self._count_numbers,
                valid_numbers=self._valid_numbers,
                halves=self._halves,
                simulate=self._simulate,
            )
        )

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            cost=Cost(2 * WORD_BYTES, 1),
            # The report is the best guess.
            guess=lambda: float(self.p),
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            ratio=lambda: self.response.ratio,
            wrong_answer=lambda: 1 - self.p,
            width=lambda: width_of(self.domain.size),
            forms=lambda: self.domain.size,
            counters=lambda: self.domain.size,
            checks=self._misfits,
        )
