"""One-bit mean in two stages: a number is rounded to a mark in the device's own way, and the mark's bit is kept.

Telemetry of a number that changes a little every day: rounding hides the small changes, and costs no accuracy at all.

Marks      m + 1 numbers, evenly spaced from end to end; m is `steps`
Rounding   alpha, uniform among A = `points`, is drawn once per device and never sent. With k the whole part of
           s = (x - low) m / (high - low) the number goes to the mark k + 1 if floor((s - k) A) + alpha >= A, else to k.
           So over devices a mark is x on average, to 1 / A of a step, and on one device a number near another one
           usually has the same mark
Law        the state of mark k is the high end with probability k / m, else the low end, flipped as LGRR of two answers
           does once; a report flips the state as LGRR does each time. One report is the one-bit mean at epsilon `first`
Privacy    that of LGRR of two answers at `first` and `forever`. For every alpha the reports are those of a stream of
           marks, so a mixture over alpha tells no more than two streams of marks do
States     one per mark that the device has met: at most m + 1. Numbers that stay between two marks of a device show
           nothing of their changes
Error      of one epoch: that of the one-bit mean at `first`, whatever the number of marks
Report     0 or 1, one byte; the state is alpha in 4 bytes, then the bit
Draws      once per device alpha = integers(A); per state integers(m), which is below k for the high end, then those of
           LGRR; per report those of LGRR
Cost       four random words for the first state, two per report; one addition per report and two counters
Source     Ding, Kulkarni and Yekhanin 2017 (1BitMean with memoization, alpha-point rounding and output perturbation)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.domains import DomainLike, Interval
from deniable.errors import NumberError
from deniable.protocols.law import Law
from deniable.protocols.longitudinal.lgrr import LGRR
from deniable.protocols.memoized import Memoized
from deniable.protocols.numeric.grid import marked
from deniable.protocols.numeric.window import OneBitMean
from deniable.protocols.protocol import Protocol, percent
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes, Reports
from deniable.protocols.traits import Ask
from deniable.protocols.worth import WORD_BYTES, Cost, Worth
from deniable.randomness import Bits, source_of, written_number
from deniable.words import Fact, Joined, word

MOST_POINTS = 1 << 32
_MOST_STEPS = 1 << 20
_HEAD = 4


@dataclass(frozen=True, init=False, repr=False)
class LOneBitMean(Memoized, OneBitMean):
    """The mean of a number over the epochs, one bit per report.

    Args:
        domain: The interval of the number.
        epsilon: Another name for `first`.
        forever: Epsilon of the kept state, and so of all reports drawn from it; twice `first` if None.
        steps: Number of steps between the marks that answers are rounded to.
        points: Number of possible offsets of the marks.
        first: Epsilon of one report.
        **window: Fields of `OneBitMean`, as `dataclasses.replace` passes them.

    Raises:
        NumberError: The number of steps or points is out of range.

    >>> minutes = LOneBitMean(Interval(0, 1440, unit="minutes"), first=1, forever=2, steps=6)
    >>> minutes.report_bytes, minutes.most_states, [round(level, 3) for level in minutes.levels(365)[:3]]
    (1, 7, [1.0, 2.0, 14.0])
    >>> round(minutes.worth(10_000).noise, 1)
    15.6
    """

    name: ClassVar[str] = "LOneBitMean"

    domain: Any
    forever: Fraction = None  # type: ignore[assignment]  # always set: it stands behind fields with defaults
    steps: int = 1
    points: int = MOST_POINTS

    def __init__(
        self,
        domain: DomainLike,
        epsilon: exact.Number | None = None,
        forever: exact.Number | None = None,
        steps: int = 1,
        points: int = MOST_POINTS,
        *,
        first: exact.Number | None = None,
        **window: Any,
    ) -> None:
        given = {"steps": (steps, _MOST_STEPS), "points": (points, MOST_POINTS)}
        for name, (number, most) in given.items():
            if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
                raise NumberError(f"the number of {name} is a whole number from 1 to {most:,}, not {number!r}")
            object.__setattr__(self, name, number)
        for name in window.keys() & {"positions", "width", "read"}:  # as `replace` gives them
            object.__setattr__(self, name, window.pop(name))
        if window:
            raise TypeError(f"LOneBitMean has no parameter {next(iter(window))!r}")
        super().__init__(domain, epsilon, forever, first=first)

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.inner.instant  # refuses levels that leave no second stage

    def parameters(self) -> dict[str, Any]:
        return Memoized.parameters(self) | {"steps": self.steps, "points": self.points}

    def __repr__(self) -> str:
        points = "" if self.points == MOST_POINTS else f", points={self.points}"
        return f"{super().__repr__()[:-1]}, steps={self.steps}{points})"

    @classmethod
    def _offered(cls, ask: Ask) -> Iterator[Protocol]:
        if ask.forever is not None and isinstance(ask.domain, Interval):
            yield cls(ask.domain, first=ask.epsilon, forever=ask.forever)

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(Interval(-1, 1), first="1/2", forever=1, points=3)
        yield cls(Interval(0, 2, unit="hours"), first=1, forever=3, steps=2, points=2)

    # -- the law -----------------------------------------------------------------------------------

    @cached_property
    def inner(self) -> LGRR:
        """The two stages of an end of the interval."""
        return LGRR(2, self.epsilon, self.forever)

    @property
    def kept(self) -> Fraction:
        return self.inner.kept

    @property
    def permanent_ratio(self) -> Fraction:
        return self.inner.permanent_ratio

    @property
    def instant_power(self) -> tuple[Fraction, int]:
        return self.inner.instant_power

    @property
    def most_states(self) -> int:
        return self.steps + 1

    @property
    def shared_bytes(self) -> int:
        return _HEAD

    def _cost(self) -> Cost:
        """The cost for a person who answers once; a report from a kept state takes two words."""
        rounding = (self.points > 1) + (self.steps > 1)
        return Cost(WORD_BYTES * (rounding + 4.0), 1)

    def _mark(self, value: float, alpha: int) -> int:
        """The mark of an encoded answer, on a device with this alpha."""
        low, high = self._ends
        place = min(((self._number(value) - low) * self.steps) / (high - low), float(self.steps))
        below = int(place)
        return below + bool(math.floor((place - below) * self.points) + alpha >= self.points)

    def marks(self, values: NDArray[Any], alphas: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same for arrays of encoded answers and of alphas."""
        low, high = self._ends
        places = np.minimum(((self._number(values) - low) * self.steps) / (high - low), float(self.steps))
        below = np.floor(places)
        up = np.floor((places - below) * self.points) + alphas >= self.points
        found: NDArray[np.int64] = (below + up).astype(np.int64)
        return found

    def _shared(self, bits: Bits) -> bytes:
        return bits.integers(self.points).to_bytes(_HEAD, "little")

    def _alpha(self, shared: bytes) -> int:
        return written_number(shared[:_HEAD])

    def _end_of(self, mark: int, bits: Bits) -> int:
        return int(bits.integers(self.steps) < mark)

    def _permanent(self, value: Any, shared: bytes, bits: Bits) -> bytes:
        return self.inner._permanent(self._end_of(self._mark(value, self._alpha(shared)), bits), b"", bits)

    def _instant(self, state: bytes, bits: Bits) -> bytes:
        return self.inner._instant(state[_HEAD:], bits)

    def _states(self, values: NDArray[Any], bits: Bits) -> Bytes:
        alphas = bits.integers(self.points, values.size)
        head = alphas.astype("<u4")[:, None].view(np.uint8)
        return np.hstack([head, self._mark_states(self.marks(values, alphas), bits)])

    def _mark_states(self, marks: NDArray[np.int64], bits: Bits) -> Bytes:
        ends = bits.integers(self.steps, marks.size) < marks
        return self.inner._states(ends.astype(np.int64), bits)

    def _instants(self, states: Bytes, bits: Bits) -> Bytes:
        return self.inner._instants(np.ascontiguousarray(states[:, _HEAD:]), bits)

    def _is_state(self, state: bytes) -> bool:
        return len(state) == _HEAD + 1 and self._alpha(state) < self.points and state[_HEAD] < 2

    def kept_under(self, encoded: Any, state: bytes) -> bytes:
        return b"\0" + self._mark(encoded, self._alpha(state)).to_bytes(8, "little")

    def _inputs(self) -> Iterator[tuple[Fraction, int]]:
        """The marks, whatever alpha is: the law of any number is a mixture of two of theirs."""
        step = (self._high - self._low) / self.steps
        return ((self._low + k * step, k) for k in range(self.steps + 1))

    def _row_of(self, answer: Any) -> int:
        return self._mark(self.domain.encode_one(answer), 0)

    def _law_state(self, value: int, bits: Bits) -> bytes:
        return bytes(_HEAD) + self.inner._permanent(self._end_of(value, bits), b"", bits)

    # -- several epochs ----------------------------------------------------------------------------

    def streams(self, values: Any, bits: Bits | None = None) -> tuple[list[Reports], NDArray[np.int64]]:
        """The reports of many devices in each epoch, and the mark of each device in each epoch; for simulations.

        `values` has one row per device and one column per epoch.

        >>> walks = LOneBitMean(Interval(0, 60, unit="minutes"), first=1, forever=2, steps=4)
        >>> reports, marks = walks.streams([[10, 12, 55], [0, 0, 60]])
        >>> len(reports), len(reports[0]), marks[1].tolist()
        (3, 2, [0, 0, 4])
        """
        source, table = source_of(bits), np.asarray(values)
        devices, epochs = table.shape
        encoded = self.domain.encode(table.reshape(-1)).reshape(table.shape)
        marks = self.marks(encoded, source.integers(self.points, devices)[:, None])
        owners = np.arange(devices)[:, None] * (self.steps + 1)
        met, place = np.unique(owners + marks, return_inverse=True)
        kept = self._mark_states(met % (self.steps + 1), source)[place.reshape(-1)].reshape(devices, epochs)
        spec = self.spec()
        sent = [self.inner._instants(np.ascontiguousarray(kept[:, [epoch]]), source) for epoch in range(epochs)]
        return [Reports(self.fingerprint, rows, spec) for rows in sent], marks

    def _kept_shares(self) -> tuple[float, float]:
        # On the scale from -1 to 1 a state has the variance 1 / t1^2 - x^2 around the number, a report 1 / t^2 - x^2.
        first, second = float(self.inner.response.keep), float(self.inner.instant.keep)
        both = (first * second) ** 2
        return second**2, both * (1 - first**2) / (first**2 * (1 - both))

    def floor(self, n: int) -> float:
        """The standard error of the mean among n devices that never change, after any number of epochs."""
        return math.sqrt(self.law().kept.noise) * self.worth(n).noise

    # -- for people --------------------------------------------------------------------------------

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        drawn = word("story.end.any")
        marks = marked(value, self._number(encoded), self._ends, self.steps, self._unit)
        return [
            Joined([*marks, word("story.end.round")], " "),
            word("story.end.keep", chance=percent(float(self.inner.response.keep))),
            drawn,
            word("story.twice.send", chance=percent(float(self.inner.instant.keep))),
            drawn,
        ]

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
            inputs=self._inputs,
            input_count=lambda: self.steps + 1,
            sent=lambda value, bits: self._instant(self._law_state(value, bits), bits),
            kept=base.kept.but(state_forms=2),
        )
