"""What the protocols for open text share: reports of hashed strings, decoded with a dictionary given afterwards.

Each device draws a cohort, and each cohort has its own public hash functions. The cohort is drawn independently of
the answer and says nothing about it, so the privacy is that of the rest of the report, at the full epsilon.

Device     draws the cohort, hashes its text as that cohort does, randomizes the result
Report     the cohort, little-endian in 1 or 2 bytes, then the randomized hash
Tally      the number of reports of each cohort, then one block of counters per cohort
Estimate   of the candidates that the analyst names: `protocol.estimate(tally, candidates=[...])`

Strings that nobody thought of cannot be read back from the reports, but they are counted: `unlisted` is what the
candidates leave over. A closed domain may be given as well (its labels are hashed and are the candidates); then
text stands for itself, and a number or truth value for its JSON form.
"""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable.channels import Channel
from deniable.domains import Categories, DomainLike, ListedDomain, Strings, Texts
from deniable.errors import DomainError
from deniable.exact import Number
from deniable.labels import Label, as_labels, label_spec
from deniable.postprocess import apply, named
from deniable.protocols.frequency.histogram import FrequencyProtocol
from deniable.protocols.kernel import Kernel
from deniable.protocols.law import Law
from deniable.protocols.protocol import Positions, Protocol
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes, Reports, from_bytes, width_of
from deniable.protocols.tally import Counts, Tally
from deniable.protocols.traits import NAMED, Ask, Traits
from deniable.protocols.worth import Worth
from deniable.randomness import Bits
from deniable.results import Estimate, no_reports
from deniable.results.significance import too_far, too_few, too_many
from deniable.words import Figure, Word, said, word

MOST_COUNTERS = 1 << 28

_FEW = 8
"""Reports in a cohort, on average, up to which cohorts are counted together."""
_LANES = 1 << 22
"""Counters that are kept at a time then."""

ENOUGH = 2.0
"""How many standard errors an estimate must reach to count as seen."""


_FORGED_COHORTS = 16
"""Cohorts that are tried for the report that says most for some texts."""


def cohort_step(cohorts: int, cells: int, kept: bool = False) -> Word:
    """The first step of every report about a text; the hash function may be kept for all reports."""
    return word("story.cohort.kept" if kept else "story.cohort", cohorts=cohorts, cells=cells)


@dataclass(frozen=True, eq=False, repr=False)
class TextEstimate(Estimate):
    """An estimate of listed strings, with what they leave over.

    Args:
        unlisted_noise: The standard error of `unlisted` for the respondents as they are.
    """

    is_whole: ClassVar[bool] = False

    unlisted_noise: float = 0.0

    @property
    def unlisted(self) -> float:
        """Estimated share of the people whose string is not a candidate."""
        return float(1 - (self.raw or self).frequencies.sum())

    @property
    def unlisted_stderr(self) -> float:
        """The standard error of `unlisted`: noise and sampling error."""
        if not self.n:
            return math.nan
        share = min(max(self.unlisted, 0.0), 1.0)
        return math.sqrt(self.unlisted_noise**2 + float(np.max(self.people)) * share * (1 - share) / self.n)

    @property
    def facts(self) -> dict[str, float]:
        return {"unlisted": self.unlisted, "unlisted_stderr": self.unlisted_stderr}

    def consistent(self, method: str = "norm-sub") -> TextEstimate:
        """Shares that are a distribution together with the unlisted rest, which is one more answer here."""
        raw = self.raw or self
        if not raw.n:
            return replace(self, method=named(method), raw=raw)
        shares = np.append(raw.frequencies, 1 - raw.frequencies.sum())
        errors = np.append(raw.errors(population=False), self.unlisted_noise)
        return replace(self, counts=apply(method, shares, errors, raw.n)[:-1] * raw.n, method=method, raw=raw)

    def repeated(self, noise: float, people: float) -> Self:
        return replace(super().repeated(noise, people), unlisted_noise=math.sqrt(noise) * self.unlisted_noise)

    @property
    def enough(self) -> NDArray[np.bool_]:
        """Which candidates stand out of the noise: at least 2 standard errors above zero, with an interval above zero.

        None does where the noise would hide even an answer that everybody gave. Of candidates that nobody holds, one
        in 44 passes by chance, and more while popular strings are missing from the list (one in 27 was the most seen
        in simulations): their collisions only ever add, so the errors lean to that side. With many candidates use
        `interval(simultaneous=True)`.
        """
        unbiased = self.raw or self
        hidden = ENOUGH * unbiased.errors(population=False)  # an answer that nobody gives has no sampling error
        return (unbiased.frequencies >= hidden) & (hidden < 1) & (unbiased.interval()[:, 0] > 0)

    @property
    def verdict(self) -> str:
        """Whether there is enough data, in a sentence."""
        if not self.n:
            return no_reports()
        seen, listed = int(self.enough.sum()), len(self.labels)
        if seen:
            return said("result.seen.some" if seen < listed else "result.seen.all", seen=seen, of=listed)
        share = ENOUGH * float((self.raw or self).errors(population=False).min())
        least = Figure(f"{100 * share:.2f}", False)
        hidden = word("result.hides.shares", share=least) if share < 1 else word("result.hides.all")
        return said("result.seen.none", of=listed, hidden=hidden)

    @property
    def remark(self) -> str:
        return self.verdict if self.n else ""


COLLIDES = {"unbiased": "a fixed hash collides: the estimate is unbiased over redrawn keys"}
"""The check that protocols with a fixed hash waive."""


@dataclass(frozen=True)
class TextProtocol(FrequencyProtocol):
    """Cohorts, texts and candidates; a subclass writes what is done with one cohort's hash.

    Args:
        domain: `Strings` for any text, or a list of answers.
        epsilon: Largest epsilon of a report.
    """

    domain: Any

    if TYPE_CHECKING:

        def __init__(self, domain: DomainLike, epsilon: Number) -> None: ...

    traits: ClassVar[Traits] = Traits(
        takes=(ListedDomain, Strings),
        advice="it needs text or a list of answers",
        answers=NAMED,
        candidates=lambda kind, ask: kind._offered(ask),
        waived=COLLIDES,
    )

    @classmethod
    def _offered(cls, ask: Ask) -> Iterator[Protocol]:
        if isinstance(ask.domain, Strings):  # a list of answers is better served without hashing
            yield cls(ask.domain, ask.epsilon)

    def _figure_variances(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        """With the other answers of these people, which collide."""
        shares = self.worth().truth(answers, people)
        n = len(answers) if people is None else int(np.sum(people))
        others = np.square(shares).sum() - np.square(shares)
        return np.asarray(self.variance(n, shares, population=False, others=others)) / n**2

    @abstractmethod
    def variance(
        self, n: int, frequency: ArrayLike = 0.0, population: bool = True, others: ArrayLike | None = None
    ) -> Any: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.domain, Categories):
            texts = [as_text(label) for label in self.domain.labels]
            if len(set(texts)) < len(texts):
                raise DomainError("two categories are the same text, like 1 and '1', and would be counted as one")

    @property
    def is_open(self) -> bool:
        return isinstance(self.domain, Strings)

    # -- written by each protocol ------------------------------------------------------------------

    @property
    @abstractmethod
    def cohort_count(self) -> int: ...

    @property
    @abstractmethod
    def _block(self) -> int:
        """Counters per cohort."""

    @abstractmethod
    def _one_text(self, text: str, cohort: int, bits: Bits) -> bytes:
        """The report, without its cohort."""

    @abstractmethod
    def _many_texts(self, labels: Sequence[Label], which: Positions, cohorts: Positions, bits: Bits) -> Bytes:
        """The same for labels[which[i]] in cohorts[i]."""

    @abstractmethod
    def _valid_rest(self, reports: Bytes) -> NDArray[np.bool_]: ...

    @abstractmethod
    def _count_rest(self, reports: Bytes) -> Counts:
        """The counters of one cohort."""

    @property
    def _has_lanes(self) -> bool:
        """Whether a report is one bit for each counter of its cohort."""
        return False

    @abstractmethod
    def _supports(self, reports: Bytes, cohorts: Positions, labels: Sequence[Label]) -> NDArray[np.bool_]: ...

    @property
    @abstractmethod
    def _extremes(self) -> tuple[float, float]:
        """The smallest and the largest probability with which a report enters one of `_binomials`."""

    @abstractmethod
    def _binomials(self, block: Counts) -> Counts:
        """Counts of one cohort; each count by itself is binomial."""

    @abstractmethod
    def _decode(self, tally: Tally, labels: Sequence[Label]) -> TextEstimate: ...

    # -- the device --------------------------------------------------------------------------------

    @property
    def _cohort_bytes(self) -> int:
        return width_of(self.cohort_count)

    def draw(self, value: Any, bits: Bits) -> bytes:
        return self._report(value if self.is_open else as_text(self.domain.labels[value]), bits)

    def draw_many(self, values: Any, bits: Bits) -> Bytes:
        if isinstance(values, Texts):
            return self._reports(values.entries, values.which, bits)
        return self._reports(self.domain.labels, values, bits)

    def _report(self, text: str, bits: Bits) -> bytes:
        cohort = bits.integers(self.cohort_count)
        return cohort.to_bytes(self._cohort_bytes, "little") + self._one_text(text, cohort, bits)

    def _reports(self, labels: Sequence[Label], which: Positions, bits: Bits) -> Bytes:
        cohorts = bits.integers(self.cohort_count, which.size)
        head = cohorts.astype("<u2")[:, None].view(np.uint8)[:, : self._cohort_bytes]
        return np.hstack([head, self._many_texts(labels, which, cohorts, bits)])

    # -- the collector -----------------------------------------------------------------------------

    def _split(self, reports: Bytes) -> tuple[Positions, Bytes]:
        width = self._cohort_bytes
        return from_bytes(reports[:, :width]).astype(np.int64), np.ascontiguousarray(reports[:, width:])

    def valid(self, reports: Bytes) -> NDArray[np.bool_]:
        cohorts, rest = self._split(reports)
        valid: NDArray[np.bool_] = (cohorts < self.cohort_count) & self._valid_rest(rest)
        return valid

    def count(self, reports: Bytes) -> Counts:
        cohorts, rest = self._split(reports)
        counts = np.zeros(self.tally_size, dtype=np.int64)
        sizes, blocks = self._parts(counts)
        sizes[:] = np.bincount(cohorts, minlength=self.cohort_count)
        self._fill(blocks, cohorts, rest)
        return counts

    def _pieces(self, reports: Bytes) -> Iterator[tuple[int, Counts]]:
        self._check_valid(reports)
        cohorts, rest = self._split(reports)
        present, own = np.unique(cohorts, return_inverse=True)
        blocks = np.zeros((present.size, self._block), dtype=np.int64)
        self._fill(blocks, own, rest)
        yield 0, np.bincount(cohorts, minlength=self.cohort_count)
        for cohort, block in zip(present.tolist(), blocks, strict=True):
            yield self.cohort_count + cohort * self._block, block

    def _fill(self, blocks: Counts, cohorts: Positions, rest: Bytes) -> None:
        """Count each report in the block of its cohort; the blocks are zero before."""
        sizes = np.bincount(cohorts, minlength=len(blocks))
        order = np.argsort(cohorts, kind="stable")
        ends, present = np.cumsum(sizes), np.flatnonzero(sizes)
        if self._has_lanes and len(rest) < _FEW * present.size and sizes.max() < 256:
            starts = ends[present] - sizes[present]
            some = max(1, _LANES // self._block)
            for at in range(0, present.size, some):
                self._fill_few(blocks, rest, order, present[at : at + some], starts[at : at + some], sizes)
            return
        for cohort in present:
            own = order[ends[cohort] - sizes[cohort] : ends[cohort]]
            blocks[cohort] = self._count_rest(rest[own])

    def _fill_few(
        self, blocks: Counts, rest: Bytes, order: Positions, cohorts: Positions, starts: Positions, sizes: Counts
    ) -> None:
        """Many cohorts with a few reports each: the first report of all of them at once, then the second, and so on."""
        total = np.zeros((cohorts.size, self._block), dtype=np.uint8)
        for place in range(int(sizes[cohorts].max())):
            some = np.flatnonzero(sizes[cohorts] > place)
            own = rest[order[starts[some] + place]]
            total[some] += np.unpackbits(own, axis=1, count=self._block, bitorder="little")
        blocks[cohorts] = total

    def _forgeries(self, answers: Any) -> Bytes:
        """A forger chooses the cohort: what it would send in some of them."""
        known = None if self.is_open else self.domain.labels
        texts = [as_text(answers[i] if known is None else known[answers[i]]) for i in range(len(answers))]
        found = []
        for cohort in range(min(self.cohort_count, _FORGED_COHORTS)):
            head = np.frombuffer(cohort.to_bytes(self._cohort_bytes, "little"), dtype=np.uint8)
            rest = self._forged_rest(texts, cohort)
            found.append(np.hstack([np.tile(head, (len(rest), 1)), rest]))
        return np.vstack(found)

    @abstractmethod
    def _forged_rest(self, texts: Sequence[str], cohort: int) -> Bytes:
        """What says most for these texts in a cohort: reports without it."""

    def _any_reports(self, count: int, bits: Bits) -> Bytes:
        cohorts = bits.integers(self.cohort_count, count)
        head = cohorts.astype("<u2")[:, None].view(np.uint8)[:, : self._cohort_bytes]
        return np.hstack([head, self._any_rest(count, bits)])

    @abstractmethod
    def _any_rest(self, count: int, bits: Bits) -> Bytes:
        """Reports without their cohorts, each form equally likely."""

    def _parts(self, counts: Counts) -> tuple[Counts, Counts]:
        """Reports per cohort, and the blocks of counters: views."""
        return counts[: self.cohort_count], counts[self.cohort_count :].reshape(self.cohort_count, -1)

    def support(self, reports: Reports | Bytes, candidates: Any = None) -> NDArray[np.bool_]:
        """A matrix of truth values: which candidates each report supports."""
        cohorts, rest = self._split(self._rows(reports))
        return self._supports(rest, cohorts, self._candidates(candidates))

    def _support(self, reports: Bytes) -> NDArray[np.bool_]:
        return self.support(reports)

    # -- the analyst -------------------------------------------------------------------------------

    def estimate(self, tally: Tally, candidates: Any = None) -> TextEstimate:
        """Counts of the candidates, with error bars; a closed domain's answers are its candidates."""
        self._check_tally(tally)
        return replace(self.infer(tally, candidates), check=partial(self.misfit, tally))

    def infer(self, tally: Tally, candidates: Any = None) -> TextEstimate:
        labels = self._candidates(candidates)
        return self._decode(tally, labels) if tally.n else TextEstimate.nothing(labels, self.name)

    def _misfits(self, tally: Tally, worth: float) -> list[float]:
        # Cohorts are drawn evenly; within one, every count is binomial between two known probabilities.
        sizes, blocks = self._parts(tally.counts)
        least, most = self._extremes
        few, many = 1.0, 1.0
        for cohort in np.flatnonzero(sizes):
            counts, n = self._binomials(blocks[cohort]) * worth, float(sizes[cohort]) * worth
            tests = self.cohort_count * counts.size
            few = min(few, too_few(float(counts.min()), n, least, tests))
            many = min(many, too_many(float(counts.max()), n, most, tests))
        even = np.full(self.cohort_count, 1 / self.cohort_count)
        return [few, many, too_far(sizes.astype(np.float64) * worth, even)]

    def _candidates(self, candidates: Any) -> Sequence[Label]:
        if candidates is None:
            if self.is_open:
                raise DomainError("open text is read with a dictionary: name the strings to look for, candidates=[...]")
            known: Sequence[Label] = self.domain.labels
            return known
        if isinstance(candidates, str):
            raise DomainError("the candidates are one text: give a list of strings")
        listed = list(candidates)
        if not listed:
            raise DomainError("the list of candidates is empty: name the strings to look for")
        if isinstance(self.domain, Strings):
            column = self.domain.encode(listed)
            labels: list[Label] = [column[i] for i in range(len(column))]
        else:
            labels = [self.domain.labels[i] for i in self.domain.index(listed)]
        return as_labels(labels, len(labels), "candidate")

    def channel(self, max_cells: int = 1 << 22, candidates: Any = None) -> Channel:
        """The exact law of the report bytes, for the candidates as inputs."""
        if candidates is None and not self.is_open:
            return super().channel(max_cells)
        return self._closed(self._candidates(candidates)).channel(max_cells)

    @abstractmethod
    def _closed(self, labels: Sequence[Label]) -> TextProtocol:
        """The same law for a closed list of answers."""

    @remembered
    def kernel(self) -> Kernel:
        return super().kernel().but(pieces=self._pieces)

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            variances=self._figure_variances,
            tests=lambda: 1 if self.is_open else int(self.domain.size),
            forgeries=self._forgeries,
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            inputs=lambda: self._no_inputs() if self.is_open else base.inputs(),
            counters=lambda: self.cohort_count * (1 + self._block),
            any_reports=self._any_reports,
            checks=self._misfits,
        )


def as_text(label: Label) -> str:
    """What is hashed for a label: text is itself, a number or truth value its JSON form."""
    return label if isinstance(label, str) else json.dumps(label_spec(label))
