"""What all protocols share: one frozen object that randomizes, adds up and estimates.

A family's file writes the law only:

_one          one answer -> the bytes of its report, consuming random bytes in the documented order
_many         the same for an array of answers, in whatever order is fastest
_count        an array of reports -> the int64 vector of their tally
_adder        the same for batches, where something is cheaper to carry on than to finish each time
_valid        which rows of bytes are reports of this protocol at all (range, padding)
_estimate     a tally -> unbiased counts with their variances
_support      which answers each report speaks for: P(report | v) is `ratio` times as large for those
ratio         the exact largest likelihood ratio of a report

Everything else (checking, packing, identity, enumeration, error bars) is inherited.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable import exact
from deniable.channels import Channel
from deniable.channels.inference.em import Model
from deniable.channels.inference.misfit import Misfit
from deniable.domains import Domain, DomainLike, Strings, as_domain
from deniable.errors import ChannelError, DomainError, MismatchError, ReportError
from deniable.protocols import mle
from deniable.protocols.counter import Adder, Counter, PlainAdder
from deniable.protocols.estimate import Estimate
from deniable.protocols.reports import Bytes, Reports
from deniable.protocols.simulate import Study, study
from deniable.protocols.tally import Counts, Tally
from deniable.randomness import Bits, exhaust, source_of
from deniable.specs import fingerprint

Positions = NDArray[np.int64]


def as_rows(reports: Any) -> Bytes:
    """An array of bytes. Not by a cast: numpy's exceptions may quote an answer, and it makes bytes of any number."""
    array = None
    with suppress(ValueError):  # rows of different lengths
        array = np.asarray(reports)
    whole = array is not None and (array.dtype.kind in "iu" or array.size == 0)
    if array is None or not whole or (array.dtype != np.uint8 and ((array < 0) | (array > 255)).any()):
        raise ReportError("reports are rows of bytes; answers have to be privatized first")
    return np.ascontiguousarray(array, dtype=np.uint8)


@dataclass(frozen=True)
class Protocol(ABC):
    """Both sides of one question's collection. Immutable; equal protocols have equal fingerprints."""

    domain: Domain
    """A list of categories or a number of answers will do to build one."""
    epsilon: Fraction
    """An int, float, str or Decimal will do to build one."""

    name: ClassVar[str]
    """What the protocol is called in a spec."""

    takes_text: ClassVar[bool] = False
    """Whether the domain may be `Strings`, which lists no answers."""

    if TYPE_CHECKING:
        # What may be given is wider than what is kept, which a data class cannot say. A subclass with fields of its
        # own says it again; one without needs no decorator.
        def __init__(self, domain: DomainLike, epsilon: exact.Number) -> None: ...

    def __post_init__(self) -> None:
        domain = as_domain(self.domain)
        if isinstance(domain, Strings) and not self.takes_text:
            raise DomainError(f"{self.name} needs a list of answers: for any text use CMS, HCMS, OLHSketch or RAPPOR")
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "epsilon", exact.as_epsilon(self.epsilon))

    # -- the law, written by each protocol ---------------------------------------------------------

    @property
    @abstractmethod
    def report_bytes(self) -> int:
        """The width of a report."""

    @property
    def report_forms(self) -> int:
        """How many different reports there can be, at most: a form that few share would tell its device apart."""
        return 1 << 8 * self.report_bytes

    @property
    @abstractmethod
    def tally_size(self) -> int:
        """The number of counters in a tally."""

    @property
    @abstractmethod
    def ratio(self) -> Fraction:
        """The exact largest ratio of a report's probabilities under two answers."""

    @property
    def another(self) -> Fraction | None:
        """How likely a report is another answer than the true one; None where a report is no answer."""
        return None

    @abstractmethod
    def _one(self, value: int, bits: Bits) -> bytes: ...

    @abstractmethod
    def _many(self, values: Positions, bits: Bits) -> Bytes: ...

    @abstractmethod
    def _count(self, reports: Bytes) -> Counts: ...

    @abstractmethod
    def _estimate(self, tally: Tally) -> Estimate: ...

    @abstractmethod
    def _support(self, reports: Bytes) -> NDArray[np.bool_]: ...

    @abstractmethod
    def variance(self, n: int, frequency: ArrayLike = 0.0, population: bool = True) -> Any:
        """The variance of an estimated count with n people, for an answer of that frequency.

        Noise and sampling error; `population=False` leaves the second out, for the count among those who answered.
        """

    def worst_variance(self, n: int, frequency: float = 0.0, population: bool = True) -> float:
        """The variance of the count of an answer of that frequency, whatever the others gave."""
        return float(self.variance(n, frequency, population))

    def _adder(self) -> Adder:
        return PlainAdder(self)

    def _valid(self, reports: Bytes) -> NDArray[np.bool_]:
        return np.ones(len(reports), dtype=np.bool_)

    def _likelihoods(self, reports: Bytes) -> Model:
        """How likely each report is under each answer; a subclass may know a faster form."""
        return mle.SupportModel(mle.Supports.of(self, reports), float(self.ratio - 1))

    def _distinct_reports(self, tally: Tally) -> Bytes | None:
        """The reports behind each counter, where a tally is a list of how often each report came."""
        return None

    def _simulate(self, truth: Counts, runs: int, random: np.random.Generator) -> Counts | None:
        """Tallies drawn from their joint law without drawing reports, one a row, where there is a way."""
        return None

    def parameters(self) -> dict[str, Any]:
        """What the spec holds beyond domain and epsilon."""
        return {}

    # -- the device --------------------------------------------------------------------------------

    def privatize(self, values: Any, bits: Bits | None = None) -> Reports:
        """Randomize one answer or a column of answers."""
        positions = self.domain.index(values)
        source = source_of(bits)
        if positions.size == 1:
            array = np.frombuffer(self._one(int(positions[0]), source), dtype=np.uint8).reshape(1, -1)
        else:
            array = self._many(positions, source)
        return Reports(self.fingerprint, array, self.spec())

    # -- the collector -----------------------------------------------------------------------------

    def valid(self, reports: Reports | Bytes) -> NDArray[np.bool_]:
        """Which reports could have come from this protocol; the others must not be counted."""
        array = self._rows(reports)
        return self._valid(array)

    def plausible(self, reports: Reports | Bytes) -> NDArray[np.bool_]:
        """Which reports a collector should count: valid, and not so unlikely that no crowd would ever send them.

        An honest device's report is refused with probability 2^-60 at most.
        """
        return self.valid(reports)

    def tally(self, reports: Reports | Bytes, source: str | None = None) -> Tally:
        """Add up reports; refuses the whole batch if one is malformed, so that nothing is half-counted."""
        array = self._valid_rows(reports)
        return Tally(self.fingerprint, len(array), self._count(array), source)

    def pieces(self, reports: Reports | Bytes) -> Iterator[tuple[int, Counts]]:
        """The counters of `tally` in pieces: where each begins, and its counters. Those in no piece are zero."""
        yield 0, self._count(self._valid_rows(reports))

    def counter(self, source: str | None = None) -> Counter:
        """Something to add batches of reports to, for one tally of them all."""
        return Counter(self, source)

    def _valid_rows(self, reports: Reports | Bytes) -> Bytes:
        array = self._rows(reports)
        valid = self._valid(array)
        if not valid.all():
            bad = int((~valid).sum())
            raise ReportError(
                f"{bad} of {len(array)} reports are malformed, the first at {int(np.argmin(valid))}: "
                "nothing was counted (protocol.valid(reports) tells them apart)"
            )
        return array

    def empty(self, source: str | None = None) -> Tally:
        """The tally of no reports."""
        return Tally(self.fingerprint, 0, np.zeros(self.tally_size, dtype=np.int64), source)

    def _rows(self, reports: Reports | Bytes) -> Bytes:
        if isinstance(reports, Reports):
            if reports.fingerprint != self.fingerprint:
                raise MismatchError(self._difference("reports", reports.fingerprint, reports.spec))
            array = reports.array
        else:
            array = as_rows(reports)
        if array.ndim != 2 or array.shape[1] != self.report_bytes:
            raise ReportError(f"a report of this protocol has {self.report_bytes} bytes, not {array.shape[-1]}")
        return array

    def _difference(self, what: str, other: str, spec: dict[str, Any] | None) -> str:
        """Two fingerprints, and what their specs disagree on where both are known."""
        mine = self.spec()
        known = spec or {}
        keys = [key for key in mine if key in known and mine[key] != known[key]]
        detail = "; ".join(f"{key}: {mine[key]!r} here, {known[key]!r} there" for key in keys)
        return f"{what} of protocol {other[:16]} cannot be used here: this is {self.fingerprint[:16]}" + (
            f" ({detail})" if detail and len(detail) < 400 else ""
        )

    def support(self, reports: Reports | Bytes) -> NDArray[np.bool_]:
        """A matrix of truth values: which answers each report supports."""
        return self._support(self._rows(reports))

    # -- the analyst -------------------------------------------------------------------------------

    def estimate(self, tally: Tally) -> Estimate:
        """Unbiased counts with error bars."""
        self._check_tally(tally)
        return replace(self._estimate(tally), check=partial(self.misfit, tally))

    def misfit(self, tally: Tally, repeats: float = 1.0) -> Misfit:
        """Whether any population could have produced this tally: a p-value that is valid for every one of them.

        `repeats` says in how many reports one device may stand with the same noise.

        >>> from deniable.protocols import GRR
        >>> coin = GRR(["yes", "no"], epsilon=1)
        >>> coin.misfit(Tally(coin.fingerprint, 1005, [5, 1000])).suspicious
        True
        """
        self._check_tally(tally)
        return Misfit.of(self._misfits(tally, 1 / repeats))

    def _misfits(self, tally: Tally, worth: float) -> list[float]:
        """p-values of tests whose law is known whatever the answers; each report counts as so many independent ones."""
        return []

    def _check_tally(self, tally: Tally) -> None:
        if not isinstance(tally, Tally):
            raise MismatchError(
                f"estimates are made from a tally, not from {type(tally).__name__}: protocol.tally(reports)"
            )
        if tally.fingerprint != self.fingerprint:
            raise MismatchError(self._difference("a tally", tally.fingerprint, None))
        if tally.counts.size != self.tally_size:
            raise MismatchError(f"this tally has {tally.counts.size} counters, not {self.tally_size}")
        if tally.n == 0:
            raise MismatchError("this tally is empty: there is nothing to estimate from")

    def mle(
        self,
        reports: Reports | Bytes | Tally,
        tolerance: float = 1e-9,
        max_iterations: int = 10_000,
        progress: bool = False,
    ) -> Estimate:
        """The shares under which the reports are most likely: a distribution, more accurate than `estimate`.

        Needs the reports themselves, except for GRR and HadamardResponse, whose tally says as much. Stops when no
        distribution is better by more than `tolerance` nats a report; `Estimate.fit` says how it went.
        """
        if isinstance(reports, Tally):
            self._check_tally(reports)
            forms = self._distinct_reports(reports)
            if forms is None:
                raise ReportError(f"a tally of {self.name} is too little for maximum likelihood: give the reports")
            seen = reports.counts > 0
            return mle.fit(self, forms[seen], reports.counts[seen], tolerance, max_iterations, progress)
        rows, often = mle.distinct(self._valid_rows(reports))
        return mle.fit(self, rows, often, tolerance, max_iterations, progress)

    def simulate(self, counts: ArrayLike, runs: int = 1, seed: int = 0) -> Study:
        """Repeat the whole collection: `counts` people with each answer, `runs` times; for studies, not devices.

        GRR, SUE, OUE, THE and HadamardResponse draw tallies from their joint law: a billion people in milliseconds.
        The others draw every report, which for a billion takes from half a minute (OLH) to hours; `method` says which.
        """
        return study(self, counts, runs, seed)

    # -- what it promises --------------------------------------------------------------------------

    @property
    def realized_epsilon(self) -> float:
        """The exact epsilon of the reports: never above `epsilon`."""
        return exact.log(self.ratio)

    def channel(self, max_cells: int = 1 << 22) -> Channel:
        """The exact law of the report bytes, found by running `privatize` along every branch.

        For small domains: a report of b bytes has up to 256^b forms. `max_cells` bounds inputs x outputs.
        """
        forms, size = self.report_forms, self.domain.size
        if forms * size > max_cells:
            number = f"{forms:,}" if forms < 10**12 else f"at least 2^{forms.bit_length() - 1}"
            raise ChannelError(
                f"the channel of this {self.name} has {number} forms of a report for each of {size:,} answers, more "
                f"than {max_cells:,} cells: list fewer answers or raise max_cells; ratio and variance need no matrix"
            )
        rows: list[dict[bytes, Fraction]] = []
        outputs: dict[bytes, None] = {}
        most_runs = max(1, max_cells)
        for value in range(self.domain.size):
            law = exhaust(lambda bits, value=value: self._one(value, bits), most_runs=most_runs).law  # type: ignore[misc]
            rows.append(law)
            outputs.update(dict.fromkeys(law))
            if len(outputs) * self.domain.size > max_cells:
                raise ChannelError(f"the channel has more than {max_cells} cells: ask for a smaller domain")
        order = sorted(outputs)
        matrix = [[law.get(output, Fraction(0)) for output in order] for law in rows]
        return Channel(matrix, list(self.domain.labels), [output.hex() for output in order])

    # -- identity ----------------------------------------------------------------------------------

    def spec(self) -> dict[str, Any]:
        """JSON that gives this protocol again, anywhere: `deniable.load(spec)`."""
        head = {"kind": "protocol", "version": 1, "protocol": self.name}
        return head | {"domain": self.domain.spec(), "epsilon": exact.canonical(self.epsilon)} | self.parameters()

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint("protocol", self.spec())
