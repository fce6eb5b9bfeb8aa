"""A channel that was designed for a mean, as a protocol: round to a position, then draw from the position's row.

Law        the number is rounded at random to one of D positions (see `grid`); the report is drawn from the row of that
           position, integer weights drawn exactly
Privacy    the largest ratio in a column of the rows, exact; never above the epsilon that the spec states
Error      of a mean, worst case over the interval: worst_variance(n)
Report     the output's index, ceil(log2(m) / 8) bytes for m outputs
Cost       two random words per report (rounding, drawing), more only on a tie; m counters
Source     `design.mean`; where the rows come from there, the spec carries the fingerprint of the certificate

Read-out   every output has a value, on a scale from -1 at the low end to 1 at the high end: the mean of the values of
           the reports is unbiased for the mean of the numbers. That it is so at every position is checked with
           integers when the protocol is made
Error bar  from the spread of the reports themselves, but never below what the law adds at least. The part of it that is
           noise follows from a second read-out, of squares, where the rows determine one
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.answers import read_answers
from deniable.channels import Channel
from deniable.domains import Domain, DomainLike, Interval, as_domain
from deniable.errors import ChannelError, DomainError, SpecError
from deniable.protocols.law import Law
from deniable.protocols.numeric.grid import OnGrid
from deniable.protocols.protocol import Protocol, first_of, percent
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes, to_bytes
from deniable.protocols.table import MOST_CELLS, Table, epsilon_above, rank
from deniable.protocols.tally import Tally
from deniable.protocols.traits import Ask, Traits
from deniable.protocols.worth import WORD_BYTES, Cost, Worth
from deniable.randomness import Bits
from deniable.results import Floats, Mean, Weights
from deniable.results.bounds import Numbers
from deniable.specs import integer_text, keys, read_integer
from deniable.words import Fact, word

_HEX = frozenset("0123456789abcdef")

# What the planner compares. At a smaller epsilon no mechanism is better than the one-bit mean by more than
# epsilon^2 / 4 of its variance; at a larger one so few positions are worse than a window with more.
_POSITIONS = 9
_LEAST, _MOST = Fraction(2, 5), Fraction(6)

_READ = "mean"
_TIGHT = 1e-9

MOST_DIGITS = 2000
"""The most digits of a value of the read-out."""


@dataclass(frozen=True, init=False, repr=False)
class MeanTable(OnGrid, Table):
    """The mean of a number from a table of positions and outputs, such as `design.mean` finds.

    Args:
        mechanism: A design of a mean or its certificate, or a channel from positions to outputs.
        domain: The interval of the number.
        epsilon: Epsilon of a report; that of the design if None, or the smallest that holds, rounded up in the twelfth
            digit.
        certificate: Fingerprint of the proof that no private mechanism is better, if there is one.
        values: Number that each output stands for, from -1 at the low end of the interval to 1 at the high end; those
            of the design if None.

    Raises:
        ChannelError: The channel reveals more than epsilon allows, or the read-out is biased.

    >>> from deniable.channels import Channel
    >>> rows = Channel([["5/10", "3/10", "1/10", "1/10"], ["1/10", "1/10", "3/10", "5/10"]])
    >>> hours = MeanTable(rows, Interval(0, 24, unit="hours"), epsilon="1.61", values=[-2, -1, 1, 2])
    >>> hours.ratio, hours.positions, hours.report_bytes
    (Fraction(5, 1), 2, 1)
    >>> hours.estimate(hours.tally(hours.privatize([7.5] * 100))).unit
    'hours'
    """

    name: ClassVar[str] = "MeanTable"
    traits: ClassVar[Traits] = Traits(
        reads=(_READ,),
        slow=True,
        candidates=lambda kind, ask: kind._offered(ask),
        at_epsilon=lambda protocol, factor: protocol._scaled(factor),
        waived=lambda protocol: protocol._waived(),
    )

    domain: Domain  # type: ignore[assignment]
    values: tuple[Fraction, ...] = ()

    def __new__(
        cls,
        mechanism: Any = None,
        domain: DomainLike | None = None,
        epsilon: exact.Number | None = None,
        certificate: str | None = None,
        values: Sequence[exact.Number] | None = None,
    ) -> Self:
        return super().__new__(cls)

    def __init__(
        self,
        mechanism: Any,
        domain: DomainLike,
        epsilon: exact.Number | None = None,
        certificate: str | None = None,
        values: Sequence[exact.Number] | None = None,
    ) -> None:
        channel = mechanism if isinstance(mechanism, Channel) else getattr(mechanism, "channel", None)
        given = getattr(mechanism, "values", None) if values is None else values
        if not isinstance(channel, Channel) or given is None:
            raise ChannelError(
                f"a table for a mean is made of design.mean, or of a channel and the values of its outputs, not of a "
                f"{type(mechanism).__name__}"
            )
        if epsilon is None and channel is not mechanism:
            epsilon = getattr(mechanism, "epsilon", None)
        rows = [[int(entry) for entry in row] for row in channel.numerators]
        self._fill(as_domain(domain), epsilon, rows, [exact.fraction(value, "a value") for value in given], certificate)

    def _fill(
        self, domain: Domain, epsilon: Any, rows: list[list[int]], values: list[Fraction], proof: str | None
    ) -> None:
        from deniable.design.readout import bias

        if not isinstance(domain, self.traits.takes):
            raise DomainError(f"{self.name} cannot ask for {domain}: {self.traits.advice}")
        if len(rows) < 2 or len(values) < 2 or any(len(row) != len(values) for row in rows):
            raise ChannelError("a table for a mean has a row for each of at least 2 positions, with a weight per value")
        if len(rows) * len(values) > MOST_CELLS:
            raise ChannelError(f"a table has at most {MOST_CELLS:,} cells, not {len(rows) * len(values):,}")
        if len({sum(row) for row in rows}) != 1 or any(entry < 0 for row in rows for entry in row):
            raise ChannelError("the rows of a table are weights that are not negative and have one sum")
        if proof is not None and (not isinstance(proof, str) or len(proof) != 64 or not set(proof) <= _HEX):
            raise SpecError("the certificate of a table is a fingerprint of 64 hexadecimal digits")
        common = math.gcd(*(entry for row in rows for entry in row))
        fields = {
            "domain": domain,
            "outputs": tuple(range(len(values))),
            "rows": tuple(tuple(entry // common for entry in row) for row in rows),
            "values": tuple(values),
            "certificate": proof,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        if bias(self.rows, self.values):
            raise ChannelError(
                "the read-out of this table is biased: at every position the mean of the values has to be the position"
            )
        ratio = self.ratio
        stated = epsilon_above(ratio) if epsilon is None else exact.as_epsilon(epsilon)
        if not exact.exp_at_least(stated, ratio):
            raise ChannelError(
                f"between any two numbers this channel has epsilon {exact.log(ratio):.6g}, more than "
                f"{exact.shown(stated)}: state a larger one"
            )
        object.__setattr__(self, "epsilon", stated)

    def parameters(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            "rows": [[integer_text(entry) for entry in row] for row in self.rows],
            "values": [str(value) for value in self.values],
        }
        return content if self.certificate is None else content | {"certificate": self.certificate}

    @classmethod
    def _from_parameters(cls, domain: Domain, epsilon: Any, parameters: Mapping[str, Any]) -> MeanTable:
        match parameters:
            case {"rows": list(rows), "values": list(values), **rest} if set(rest) <= {"certificate"}:
                if all(isinstance(value, str) and len(value) <= MOST_DIGITS for value in values):
                    try:
                        weights = [[read_integer(entry) for entry in row] for row in rows]
                    except (TypeError, ValueError):
                        raise SpecError("the rows of a table for a mean hold whole numbers as text") from None
                    made = cls.__new__(cls)
                    read = [exact.fraction(value, "a value") for value in values]
                    made._fill(domain, epsilon, weights, read, rest.get("certificate"))
                    return made
        raise SpecError(
            "a table for a mean needs rows of whole numbers and values, both as text, and nothing else but a "
            "certificate"
        )

    @classmethod
    def of_proof(cls, proof: Any, epsilon: Any, certificate: str, asked: Mapping[str, Any]) -> MeanTable:
        """The question says which numbers: {"number": {"low": 0, "high": 24, "unit": "hours"}, "table": proof}."""
        keys(asked, ("number",), "answers with the proof of a mean", optional=("read",))
        if not isinstance(asked["number"], Mapping) or asked.get("read", _READ) != _READ:
            raise SpecError('with the proof of a mean, "number" has a low end, a high end and perhaps a unit')
        return cls(proof, read_answers(dict(asked)), epsilon, certificate)

    @classmethod
    def _offered(cls, ask: Ask) -> Iterator[Protocol]:
        """A design that takes a tenth of a second; none where it cannot be 5 percent better than a window."""
        if isinstance(ask.domain, Interval) and _LEAST <= exact.as_epsilon(ask.epsilon) <= _MOST:
            from deniable.design.mean import mean

            yield cls(mean(ask.epsilon, positions=_POSITIONS), ask.domain)

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        three = Channel.from_integers([[5, 3, 1, 1], [3, 2, 2, 3], [1, 1, 3, 5]], 10, range(3), range(4))
        yield cls(three, Interval(0, 1), values=[-2, -1, 1, 2])
        two = Channel.from_integers([[4, 1, 1], [2, 1, 3]], 6, range(2), range(3))
        yield cls(two, Interval(-10, 30, unit="degrees"), values=["-5/2", "1/2", "7/2"], certificate="0" * 64)

    def _waived(self) -> Mapping[str, str]:
        if float(self.epsilon) - self.realized_epsilon < _TIGHT:
            return {}
        return {"tight": "the author of the rows states their epsilon, which may be more than they need"}

    def _scaled(self, factor: Fraction) -> MeanTable:
        """With more or less of the rows' mean mixed in, and values that are unbiased again."""
        size, total = len(self.rows), sum(self.rows[0])
        means = [sum(column) for column in zip(*self.rows, strict=True)]  # over size times total
        part = 1 - factor
        rows = [[(1 - part) * size * w + part * m for w, m in zip(row, means, strict=True)] for row in self.rows]
        common = math.lcm(*(Fraction(entry).denominator for row in rows for entry in row))
        middle = sum((m * v for m, v in zip(means, self.values, strict=True)), Fraction(0)) / (size * total)
        made = type(self).__new__(type(self))
        values = [(value - part * middle) / (1 - part) for value in self.values]
        made._fill(self.domain, None, [[int(entry * common) for entry in row] for row in rows], values, None)
        return made

    # -- the law -----------------------------------------------------------------------------------

    @property
    def positions(self) -> int:
        return len(self.rows)

    @cached_property
    def matrix(self) -> Channel:
        """The exact channel from positions to outputs."""
        return Channel.from_integers(self.rows, sum(self.rows[0]), range(self.positions), range(len(self.outputs)))

    def draw(self, value: Any, bits: Bits) -> bytes:
        return self.law().sent(self._rounded(value, bits), bits)

    def draw_many(self, values: NDArray[Any], bits: Bits) -> Bytes:
        return to_bytes(self.matrix.sample_indices(self._rounded_many(values, bits), bits), self.report_bytes)

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        low, high = self._ends
        place = (self._number(encoded) - low) * (self.positions - 1) / (high - low)
        row = self.rows[min(math.floor(place), self.positions - 1)]
        total = sum(row)
        chances = (
            word("story.table.number", n=str(i), chance=percent(10**9 * weight // total / 1e9))
            for i, weight in enumerate(row, 1)
        )
        drawn = word("story.table.mark", n=len(row), chances=first_of(chances, len(row)))
        return [self._rounding_step(value, encoded), drawn]

    def _says(self, report: bytes) -> Fact:
        return word("says.output", n=str(int.from_bytes(report, "little") + 1), of=str(len(self.outputs)))

    # -- the read-out ------------------------------------------------------------------------------

    @property
    def _middle(self) -> Fraction:
        return (self._low + self._high) / 2

    @property
    def _half(self) -> Fraction:
        return (self._high - self._low) / 2

    def contribution(self, output: int) -> Fraction:
        """What a report with this output adds to the mean of n, times n: unbiased for the respondent's number."""
        return self._middle + self._half * self.values[output]

    @cached_property
    def _floats(self) -> Floats:
        return np.array([float(value) for value in self.values])

    @cached_property
    def _moments(self) -> Floats:
        """The mean of the squared value at each position."""
        moments: Floats = self.matrix.rows @ self._floats**2
        return moments

    @cached_property
    def _grid(self) -> Floats:
        return np.linspace(-1.0, 1.0, self.positions)

    @cached_property
    def _noise_range(self) -> tuple[float, float]:
        """The smallest and the largest variance of a report's value, over all numbers."""
        return float((self._moments - self._grid**2).min()), _largest(self._grid, self._moments)

    @cached_property
    def _of_squares(self) -> Floats | None:
        """A value per output whose mean is the square of the position, where the rows determine one."""
        rows = self.matrix.rows
        if len(self.rows) > len(self.outputs) or rank(self.rows) < len(self.rows):
            return None
        scale = np.sqrt(rows.mean(axis=0))
        found: Floats = (np.linalg.pinv(rows / scale) @ self._grid**2) / scale
        return found

    def estimate(self, tally: Tally) -> Mean:  # type: ignore[override]
        """The mean with its error, in the question's unit."""
        found: Mean = super().estimate(tally)  # type: ignore[assignment]
        return found

    def infer(self, tally: Tally) -> Mean:  # type: ignore[override]
        if not tally.n:
            return self._nothing()
        n, counts = tally.n, [int(count) for count in tally.counts]
        total = sum((value * count for value, count in zip(self.values, counts, strict=True)), Fraction(0)) / n
        shares = tally.counts / n
        centre = float(total)
        spread = float(shares @ (self._floats - centre) ** 2)
        least, most = self._noise_range
        everything = max(spread * n / (n - 1), least) if n > 1 else most + max(0.0, 1 - min(1.0, abs(centre)) ** 2)
        noise = most
        if self._of_squares is not None and n > 1:
            noise = float(shares @ self._floats**2 - shares @ self._of_squares)
        noise = min(everything, max(noise, least))
        half = float(self._half)
        value = float(self._middle + self._half * total)
        stderr, alone = (half * math.sqrt(variance / n) for variance in (everything, noise))
        middle = float(self._middle)
        weights = Weights(middle + half * float(self._floats.min()), middle + half * float(self._floats.max()))
        numbers = Numbers(middle + half * self._floats, tally.counts.astype(np.float64), stderr)
        return Mean(value, n, stderr, alone, self._ends, self.name, unit=self._unit, weights=weights, bounds=numbers)

    def _nothing(self) -> Mean:  # type: ignore[override]
        return Mean.nothing(self._ends, self.name, self._unit)

    def _figure_variances(self, answers: Any, people: Any = None) -> Floats:
        """The variance of the mean of exactly these numbers."""
        place = self._grid_places(self.domain.encode(answers))
        x = 2 * place / (self.positions - 1) - 1
        each = np.interp(place, np.arange(self.positions), self._moments) - x**2
        n = len(place) if people is None else int(np.sum(people))
        return np.array([float(np.average(each, weights=people)) * float(self._half) ** 2 / n])

    def worst_variance(self, n: int) -> float:
        """The largest variance that the protocol adds to the mean of n people, in the square of the unit."""
        return self._noise_range[1] * float(self._half) ** 2 / n

    def _error(self, n: int, population: bool = True) -> float:
        """For the population: the error for the people whose own spread and noise have the largest sum."""
        if not population:
            return self.worth(n).noise
        return math.sqrt(_largest(*_hull(self._grid, self._moments)) / n) * float(self._half)

    def __repr__(self) -> str:
        return f"MeanTable({self.positions} positions to {len(self.outputs)} outputs, epsilon={self.epsilon})"

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            formula_for="",
            tests=1,
            guess=lambda: None,
            cost=Cost(2.0 * WORD_BYTES, 1),
            variances=self._figure_variances,
            spreads=lambda answers: np.array([np.var(self.domain.encode(answers))]),
            noise=lambda: math.sqrt(self.worst_variance(n)),
            error=lambda: self._error(n, population),
            visible=lambda level=0.95: None,
            # How many honest people at one end a forged report of the largest value outweighs.
            leverage=lambda: float(np.abs(self._floats).max()),
            # m forged reports among n move the mean by at most m / n times this, in the unit.
            moved=lambda: float(np.ptp(self._floats)) * float(self._half),
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            sent=lambda value, bits: bits.draw(self.matrix._law(value)).to_bytes(self.report_bytes, "little"),
        )


def _largest(x: Floats, moments: Floats) -> float:
    """The largest f(x) - x^2, for f linear between the given points."""
    slope = np.diff(moments) / np.diff(x)
    at = np.clip(slope / 2, x[:-1], x[1:])
    return float((moments[:-1] + slope * (at - x[:-1]) - at**2).max())


def _hull(x: Floats, moments: Floats) -> tuple[Floats, Floats]:
    """The least concave function that is nowhere below: what people of a given mean can have at most."""
    kept: list[int] = []
    for i in range(len(x)):
        while len(kept) > 1:
            a, b = kept[-2:]
            if (moments[b] - moments[a]) * (x[i] - x[a]) > (moments[i] - moments[a]) * (x[b] - x[a]):
                break
            kept.pop()
        kept.append(i)
    return x[kept], moments[kept]
