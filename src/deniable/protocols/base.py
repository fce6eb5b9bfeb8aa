"""What all protocols share: one frozen object that randomizes, adds up and estimates, known by its fingerprint.

A kind of protocol writes its law and its read-out, in one file:

_one           one encoded answer -> the bytes of its report, consuming random bytes in the documented order
_many          the same for encoded answers in bulk, in whatever order is fastest
_count         an array of reports -> the int64 vector of their tally
_adder         the same for batches, where something is cheaper to carry on than to finish each time
_valid         which rows of bytes are reports of this protocol at all (range, padding)
_many_numbers, _count_numbers, _valid_numbers
               the same for reports as numbers, where they have at most 8 bytes and that is faster
halves         how the reports of several groups are counted together, where they can be (`tally.py`)
_estimate      a tally of at least one report -> a result with error bars
_nothing       the result before the first report, where that is no mean of the domain
ratio          the exact largest likelihood ratio of a report, between the inputs that the guarantee relates
guarantee      between which inputs, and up to which probability; `related` lists the pairs for the conformance suite,
               and `distance` says how far apart inputs are where the guarantee grows with that
noise, error   the standard error of the headline figure, in the question's unit
cost, leverage what a report costs, and what a forged one can move; `forgeries`, which report does
truth          what an estimate is about, from the answers themselves: for simulations and the conformance suite
blankets       what a report has in common for all answers, behind which a shuffler hides people
examples       small instances, on which the conformance suite runs

Everything else (checking, packing, identity, registry, enumeration, planning) is inherited. A class with a `name` is
registered by being defined; a package of somebody else's registers by an entry point (`deniable._extras`).
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from importlib import import_module
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable._extras import load_plugins
from deniable._threads import one_thread
from deniable.channels import Channel
from deniable.domains import Domain, DomainLike, Records, as_domain, load_domain
from deniable.errors import ChannelError, DomainError, MismatchError, NumberError, ReportError, SpecError
from deniable.labels import Label
from deniable.protocols.blanket import Blanket, of_laws
from deniable.protocols.reports import Bytes, Reports, from_bytes, to_bytes
from deniable.protocols.tally import Adder, Counter, Counts, Halves, PlainAdder, Study, Tally, study
from deniable.randomness import SYSTEM, Bits, Counting, exhaust, source_of
from deniable.results import Mean, Misfit, Result
from deniable.specs import fingerprint, parsed

Positions = NDArray[np.int64]

WORD_BYTES = 8
"""Bytes of a random word."""

_COUNTED = 64
_MOST_LISTED = 1 << 12
_MANY = 1 << 14


class Cost(NamedTuple):
    """What one report costs."""

    random_bytes: float
    """Random bytes that the device draws on average, in the documented order of a single report."""
    operations: float
    """Word operations that add the report to the tally."""


class Figures(NamedTuple):
    """How exact the figure is that a question is planned by."""

    noise: Callable[[int], float]
    """The standard error that the protocol adds, with n people."""
    error: Callable[[int, bool], float]
    """Noise and sampling error, or the first alone among those who answered."""
    unit: str = ""
    share: Callable[[int, float, bool], float] | None = None
    """The same error for an answer of this share; None where the figure is not the share of an answer."""
    total: Callable[[int, bool], float] | None = None
    """The root mean square of the errors of all answers, if all are equally common; None without a list of answers."""


ANY, METRIC, PROFILES, EDGE, STREAM, SUM = RELATIONS = ("any", "metric", "profiles", "edge", "stream", "sum")
"""Between which inputs a guarantee holds: any two answers, answers by their distance, laws of answers, ...; a sum is
about any two answers of one person, for those who see no more than what several collectors publish together."""


class Guarantee(NamedTuple):
    """What a report promises: between which inputs, and how much. Levels of different relations are never added."""

    relation: str
    """Between which inputs, one of `RELATIONS`."""
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    over: str = "any two answers"
    """The relation in words."""


Mixture = Mapping[int, Fraction]
"""Rows of a channel with their weights, which add up to one."""


class Step(NamedTuple):
    """One step of a report's life, in words."""

    text: str
    """What is done by chance, and how likely each outcome is."""
    outcome: str = ""
    """What came out, as far as the report shows it."""


_KINDS: dict[str, type[Protocol]] = {}

_OTHER_FORMS = (
    ("_many", "_many_numbers"),
    ("_count", "_count_numbers"),
    ("_valid", "_valid_numbers"),
    ("_count", "halves"),
    ("_valid", "halves"),
)


def as_rows(reports: Any) -> Bytes:
    """An array of bytes, from rows or from a list of single reports.

    Not by a cast: numpy's exceptions may quote an answer, and it makes bytes of any number.
    """
    if isinstance(reports, bytes):
        raise ReportError("this is a single report: give a list of them, [report, ...]")
    if isinstance(reports, list | tuple) and reports and all(isinstance(one, bytes) for one in reports):
        # By numpy's own reading zeros at the end would be lost.
        odd = next((place for place, one in enumerate(reports) if len(one) != len(reports[0])), None)
        if odd is not None:
            raise ReportError(f"report {odd} has {len(reports[odd])} bytes, and those before it {len(reports[0])}")
        return np.frombuffer(b"".join(reports), dtype=np.uint8).reshape(len(reports), -1)
    array = None
    with suppress(ValueError):  # rows of different lengths
        array = np.asarray(reports)
    whole = array is not None and (array.dtype.kind in "iu" or array.size == 0)
    if array is None or not whole or (array.dtype != np.uint8 and ((array < 0) | (array > 255)).any()):
        raise ReportError("reports are rows of bytes; answers have to be privatized first")
    return np.ascontiguousarray(array, dtype=np.uint8)


MOST_REPORT_BYTES = 1 << 22
MOST_COUNTERS = 1 << 28


class _Bounded(ABCMeta):
    """Refuses a protocol, when it is made, whose reports or tallies nobody could draw or keep."""

    @property
    def __signature__(cls) -> inspect.Signature:
        """How a kind is called, for help and editors: they would find `__call__` below."""
        new: Any = cls.__new__
        made = inspect.signature(cls.__init__ if new is object.__new__ else new)  # type: ignore[misc]
        return made.replace(parameters=list(made.parameters.values())[1:], return_annotation=made.empty)

    def __call__(cls, *args: Any, **more: Any) -> Any:
        made = super().__call__(*args, **more)
        if made.report_bytes > MOST_REPORT_BYTES:
            raise ChannelError(
                f"a report of this {made.name} would have {made.report_bytes:,} bytes, and {MOST_REPORT_BYTES:,} are "
                "the most: ask for fewer answers, or with a protocol that hashes them, such as OLH"
            )
        if made.tally_size > MOST_COUNTERS:
            raise ChannelError(
                f"a tally of this {made.name} would have {made.tally_size:,} counters, and {MOST_COUNTERS:,} (2 GiB) "
                "are the most: ask for fewer answers, or for text (Strings), whose answers are counted by candidates"
            )
        return made


Method = TypeVar("Method", bound=Callable[..., Any])


def sealed(hook: str) -> Callable[[Method], Method]:
    """A method that devices call and no kind may change, so that what is audited is what is sent.

    `hook` is what a kind writes instead. A class that changes it is refused when it is defined.
    """

    def mark(method: Method) -> Method:
        vars(method)["__hook__"] = hook
        return method

    return mark


def unsealed(subject: Any) -> dict[str, str]:
    """The sealed methods that a kind, or one instance of it, has changed, with what it should write instead."""
    kind = subject if isinstance(subject, type) else type(subject)
    found = {}
    if getattr_static(kind, "__getattribute__") is not vars(object)["__getattribute__"]:
        found["__getattribute__"] = "methods that have a name"
    for base in kind.__mro__:
        for name, method in vars(base).items():
            hook = getattr(method, "__hook__", None)
            if hook is not None and getattr_static(subject, name) is not method:
                found[name] = hook
    return found


@dataclass(frozen=True)
class Protocol(ABC, metaclass=_Bounded):
    """Both sides of one question's collection. Immutable; equal protocols have equal fingerprints."""

    domain: Domain
    """A list of categories or a number of answers will do to build one."""
    epsilon: Fraction
    """An int, float, str or Decimal will do to build one."""

    name: ClassVar[str]
    """What the protocol is called in a spec."""

    takes: ClassVar[tuple[type[Domain], ...]] = (Domain,)
    """The kinds of domains that it is for; others are refused."""

    advice: ClassVar[str] = ""
    """What to use for other domains."""

    fresh: ClassVar[bool] = True
    """Whether each report is drawn afresh from the answer, so that the epsilons of one device's reports add up."""

    local: ClassVar[bool] = True
    """Whether a report by itself keeps the epsilon. Where it does not, only surveys that name collectors may ask."""

    slow_to_build: ClassVar[bool] = False
    """Whether a candidate may take a tenth of a second: a curve over many epsilons has few of them."""

    if TYPE_CHECKING:
        # What may be given is wider than what is kept, which a data class cannot say. A subclass with fields of its
        # own says it again; one without needs no decorator.
        def __init__(self, domain: DomainLike, epsilon: exact.Number) -> None: ...

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        for changed, hook in unsealed(cls).items():
            raise TypeError(
                f"{cls.__name__} changes {changed}(), which every device calls and every audit relies on: a kind of "
                f"protocol writes {hook} instead"
            )
        for plain, other in _OTHER_FORMS:
            # Who changes what a report is does not inherit another form of what it was.
            if plain in cls.__dict__ and other not in cls.__dict__:
                setattr(cls, other, getattr(Protocol, other))
        if "name" in cls.__dict__:
            known = _KINDS.setdefault(cls.name, cls)
            if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
                raise SpecError(f"there are two protocols called {cls.name!r}: rename one")
            _KINDS[cls.name] = cls
        # The decorator of data classes writes a representation only where a class has none of its own.
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = cls.__repr__  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        self._settle()

    def _settle(self) -> None:
        """Domain and epsilon in the form that is kept; a subclass that needs them early calls it first."""
        domain = as_domain(self.domain)
        if not isinstance(domain, self.takes):
            raise DomainError(f"{self.name} cannot ask for {domain}{self.advice and ': ' + self.advice}")
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "epsilon", exact.as_epsilon(self.epsilon))

    def _settle_record(self, domain: Any, epsilon: exact.Number, people: int | None) -> None:
        """The same for a kind that asks for records: columns by name will do, and `people` is checked."""
        object.__setattr__(self, "domain", Records(domain) if isinstance(domain, Mapping) else domain)
        object.__setattr__(self, "epsilon", epsilon)
        self._settle()
        if people is not None and (isinstance(people, bool) or not isinstance(people, int | np.integer) or people < 1):
            raise NumberError(f"the number of people is a positive whole number, not {people!r}")

    # -- the registry ------------------------------------------------------------------------------

    @classmethod
    def candidates(cls, domain: Domain, epsilon: exact.Number, n: int | None = None) -> Iterator[Protocol]:
        """The instances that the planner compares for a domain; none where the protocol is for other domains.

        Raises ChannelError where none exists at this epsilon.
        """
        if isinstance(domain, cls.takes):
            yield cls(domain, epsilon)

    @classmethod
    def two_stage_candidates(
        cls, domain: Domain, first: exact.Number, forever: exact.Number, n: int | None = None
    ) -> Iterator[Protocol]:
        """The instances that the planner compares where devices keep a state of epsilon `forever` over the epochs."""
        yield from ()

    @classmethod
    def stream_candidates(
        cls, domain: Domain, epsilon: Fraction, epochs: int, changes: int, n: int | None = None
    ) -> Iterator[Protocol]:
        """The instances that the planner compares where all reports of `epochs` epochs have this epsilon together.

        Between any two streams of answers with at most so many changes; here a fresh report of epsilon / epochs each.
        """
        yield from cls.candidates(domain, epsilon / epochs, n)

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        """Small instances, all of whose reports can be listed: the conformance suite runs on them."""
        yield from ()

    @property
    def reads(self) -> str:
        """What an estimate of it is about: "shares" of answers, the "mean" of a number, its "distribution", ..."""
        return "shares"

    serves: ClassVar[tuple[str, ...]] = ()
    """What else a question may be read for that it answers: see `figures`."""

    def figures(self, read: str) -> Figures | None:
        """How exact it is where a question is read in this way; None where its estimates do not answer that.

        Several protocols may answer one question: a planner compares them by the figure of that question.
        """
        return Figures(self.noise, self.error, self.unit) if read == self.reads else None

    @property
    def waived(self) -> Mapping[str, str]:
        """Conformance checks that this protocol cannot pass, each with the reason; see `conformance.WAIVABLE`."""
        return {}

    def scaled(self, factor: Fraction) -> Protocol:
        """The same protocol at an epsilon that is larger by a factor: the conformance suite must tell the two apart."""
        return replace(self, epsilon=self.epsilon * factor)

    def truth(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        """The figures that an estimate of these people's answers is about, in the order of its table, without noise.

        `people` is how many hold each of the answers, one by default.
        """
        raise ChannelError(f"{self.name} does not say what its figures are without noise: write its truth(answers)")

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
    def state_forms(self) -> int:
        """How many different things a device may keep to report from: the reports, where there is one stage."""
        return self.report_forms

    @property
    def kept_noise(self) -> float:
        """How much of the noise of a report comes again in each report from the same state, in variance, at most."""
        return 1.0

    def linking(self, epochs: int) -> float:
        """How many times better repeated reports of a device fit each other than those of two devices: see `Memoized`.

        Where there is one stage, the repeated report itself is the link.
        """
        least = self.domain.least_forms  # no protocol has fewer, and of many answers the number itself would take long
        forms = least if least > _MANY else self.report_forms
        return float(forms) if forms < 1 << 1000 else math.inf

    @property
    @abstractmethod
    def tally_size(self) -> int:
        """The number of counters in a tally."""

    @property
    @abstractmethod
    def ratio(self) -> Fraction:
        """The exact largest ratio of a report's probabilities under two inputs that the guarantee relates.

        Where it has a delta: the smallest r with P(S) <= r P'(S) + delta for every set S of reports.
        """

    @property
    def another(self) -> Fraction | None:
        """How likely a report is another answer than the true one; None where a report is no answer."""
        return None

    def spoken(self, report: bytes) -> str:
        """What one report says, for people: the answer that it is, or its bytes."""
        return report.hex()

    def explain(self, value: Any, report: bytes) -> list[Step]:
        """The life of a report, for the person whose answer it is: what chance did to it, and what the report says.

        The last step has the outcome. What the single coins said is not in a report, and nobody can tell it. Raises
        DomainError for what is no answer, and ReportError for what is no report.

        >>> from deniable.protocols import GRR
        >>> *steps, said = GRR(["yes", "no"], epsilon=1).explain("yes", bytes([1]))
        >>> len(steps), said
        (2, Step(text='What the report says:', outcome='no'))
        """
        encoded = self.domain.encode_one(value)
        if not self.valid(as_rows([list(report)]))[0]:
            raise ReportError("these bytes are no report of this protocol")
        said = Step("What the report says:", self.spoken(report))
        return [*(Step(text) for text in self._steps(value, encoded, report)), said]

    def _steps(self, value: Any, encoded: Any, report: bytes) -> list[str]:
        """What chance does to an answer, in sentences; those of the browser's pages, word for word."""
        return [
            f"{self.name} changes the answer by chance: no report is more than {float(self.ratio):.4g} times as likely "
            "under one answer as under another."
        ]

    @abstractmethod
    def _one(self, value: Any, bits: Bits) -> bytes: ...

    @abstractmethod
    def _many(self, values: Any, bits: Bits) -> Bytes: ...

    @abstractmethod
    def _count(self, reports: Bytes) -> Counts: ...

    @abstractmethod
    def _estimate(self, tally: Tally) -> Any: ...

    @abstractmethod
    def noise(self, n: int) -> float:
        """The standard error that the protocol adds to its headline figure with n people, in the worst case."""

    @abstractmethod
    def error(self, n: int, population: bool = True) -> float:
        """The standard error of the headline figure with n people, in the worst case, in the question's unit.

        Noise and sampling error; `population=False` leaves the second out.
        """

    takes_candidates: ClassVar[bool] = False
    """Whether `estimate(tally, candidates)` looks for texts that the analyst names."""

    finds: ClassVar[bool] = False
    """Whether the reports decide which answers a result is about; `estimate_of` says which."""

    def estimate_of(self, tally: Tally, values: Sequence[str]) -> Any:
        """The estimate of these answers, for a protocol that finds answers; others have all answers in any case."""
        return self.estimate(tally)

    @property
    def needs_candidates(self) -> bool:
        """Whether an estimate needs a list of what to look for."""
        return False

    @property
    def clear(self) -> tuple[str, ...]:
        """The parts of an answer that a report says as they are, without noise; none, unless a protocol says so."""
        return ()

    @property
    def clear_bytes(self) -> int:
        """How many bytes at the head of a report say them."""
        return 0

    @property
    def strata(self) -> tuple[str, ...]:
        """The parts of an answer that results are told apart by, in clear or randomized; none, unless one says so."""
        return self.clear

    @property
    def chooses(self) -> bool:
        """Whether chance chooses which part of an answer a report is about, and the report says which."""
        return False

    @property
    def combines(self) -> bool:
        """Whether a report is about several parts of an answer together."""
        return False

    @property
    def unreadable(self) -> str:
        """Why nothing can be estimated from the reports; empty where it can. A question refuses such a protocol."""
        return ""

    @property
    def tests(self) -> int:
        """How many figures an estimate has, which are looked at together."""
        return 1

    @property
    def unit(self) -> str:
        """The unit of the headline figure; "" for a share."""
        return ""

    @property
    def scale(self) -> float:
        """The width of what the headline figure can be, in its unit: 1 for a share."""
        return 1.0

    @cached_property
    def cost(self) -> Cost:
        """What a report costs; unless a protocol knows better, counted on some reports of its domain's example."""
        answer = self.domain.encode_one(self.domain.example)
        counted = Counting()
        for _ in range(_COUNTED):
            self._one(answer, counted)
        return Cost(counted.bytes_taken / _COUNTED, float(self.tally_size))

    @property
    def leverage(self) -> float | None:
        """How many honest reports one forged report outweighs, for the figure that it favours, if that is known."""
        return None

    @property
    def poisoning(self) -> float | None:
        """By how many times its share of all reports a forger moves the headline figure at most, if that is known.

        In the question's unit.
        """
        return None

    def forgeries(self, answers: Any) -> Bytes:
        """Reports among which the one is that says most for these encoded answers together: what a forger sends.

        Here all forms where there are few, else some honest reports.
        """
        if self.report_bytes <= 2 and self.report_forms <= _MANY:
            forms = np.arange(1 << 8 * self.report_bytes, dtype="<u2").view(np.uint8).reshape(-1, 2)
            listed = np.ascontiguousarray(forms[:, : self.report_bytes])
            return listed[self._valid(listed)]
        some = [answers[place % len(answers)] for place in range(_COUNTED)]
        return as_rows([list(self._one(one, SYSTEM)) for one in some])

    def any_reports(self, count: int, bits: Bits) -> Bytes:
        """Valid reports, each form equally likely, as somebody sends who knows nothing but the format.

        Where few strings of bytes are reports, honest ones of the domain's example instead.
        """
        found, tries = np.empty((0, self.report_bytes), dtype=np.uint8), 0
        while len(found) < count and tries < _MANY:
            drawn = np.empty((max(256, count), self.report_bytes), dtype=np.uint8)
            bits.fill(drawn.reshape(-1))
            found, tries = np.vstack([found, drawn[self._valid(drawn)]]), tries + 1 + (not len(found)) * 1000
        if len(found) < count:
            return self._many(self.domain.encode([self.domain.example] * count), bits)
        return found[:count]

    @property
    def likeliest(self) -> float | None:
        """How likely one form of a report is at most, whatever the answer; None where that is not known."""
        return None

    @property
    def attack(self) -> float | None:
        """How often the best guess of one person's answer is right, given the report and nothing else.

        Every answer being equally likely beforehand; None where that is not known.
        """
        return None

    def visible(self, n: int, level: float = 0.95, population: bool = True) -> float | None:
        """The smallest figure that stands out of the noise, where there is such a thing."""
        return None

    def resolves(self, n: int) -> bool:
        """Whether n people make each single number stand out of the noise, so that a fitted shape gains nothing."""
        return False

    def parts(self, n: int) -> dict[str, tuple[Protocol, int]]:
        """The protocols of the parts of an answer, and about how many of n people each gets.

        A protocol whose answers have no parts is the only one, under no name.
        """
        return {"": (self, n)}

    def part_tallies(self, tally: Tally) -> dict[str, tuple[Protocol, Tally]]:
        """The protocols of the parts of an answer, and the tally of each part's own reports."""
        return {"": (self, tally)}

    def remark(self, n: int, level: float = 0.95, population: bool = True) -> str:
        """Why to use it, for a plan in which there is nothing else to choose from; "" leaves that to the planner."""
        return ""

    def _adder(self) -> Adder:
        return PlainAdder(self)

    def _valid(self, reports: Bytes) -> NDArray[np.bool_]:
        return np.ones(len(reports), dtype=np.bool_)

    # Reports of at most eight bytes are also little-endian numbers: numpy handles those much faster than rows of bytes.

    def _many_numbers(self, values: Any, bits: Bits) -> NDArray[Any]:
        """`_many`, of any unsigned type that holds the numbers."""
        return from_bytes(self._many(values, bits))

    def _count_numbers(self, numbers: NDArray[Any]) -> Counts:
        return self._count(to_bytes(numbers, self.report_bytes))

    def _valid_numbers(self, numbers: NDArray[Any]) -> NDArray[np.bool_]:
        """Of numbers that fit in the bytes of a report."""
        return self._valid(to_bytes(numbers, self.report_bytes))

    @property
    def halves(self) -> Halves | None:
        """How reports are counted by their halves, where they can be: then those of several groups are, together."""
        return None

    def parameters(self) -> dict[str, Any]:
        """What the spec holds beyond domain and epsilon."""
        return {}

    @classmethod
    def _from_parameters(cls, domain: Domain, epsilon: Any, parameters: Mapping[str, Any]) -> Self:
        return cls(domain, epsilon, **parameters)

    # -- the device --------------------------------------------------------------------------------

    @final
    @sealed("_many for columns and _one for single answers")
    def privatize(self, values: Any, bits: Bits | None = None) -> Reports:
        """Randomize one answer or a column of answers."""
        answers = self.domain.encode(values)
        source = source_of(bits)
        if len(answers) == 1:
            one = answers[0].item() if isinstance(answers, np.ndarray) else answers[0]
            array = np.frombuffer(self.report_encoded(one, source), dtype=np.uint8).reshape(1, -1)
        else:
            array = self._many(answers, source)
        return Reports(self.fingerprint, array, self.spec())

    @final
    @sealed("_one")
    def report(self, value: Any, bits: Bits | None = None) -> bytes:
        """Randomize one answer into the bytes of one report: the fastest way for one, without a `Reports` around it.

        >>> from deniable.protocols import GRR
        >>> len(GRR(["yes", "no"], epsilon=1).report("yes"))
        1
        """
        return self.report_encoded(self.domain.encode_one(value), bits)

    @final
    @sealed("_one")
    def report_encoded(self, encoded: Any, bits: Bits | None = None) -> bytes:
        """The same for an answer that `domain.encode_one` has read already, as a ledger that remembers answers does.

        Every single report of an answer goes this way.
        """
        return self._one(encoded, SYSTEM if bits is None else source_of(bits))

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

    @property
    def is_tied(self) -> bool:
        """Whether a report has public coins, a hash function say, that can follow from a public number."""
        return False

    def tied(self, reports: Bytes, publics: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which valid reports have the public coins that follow from their public numbers (`randomness.Tied`)."""
        return np.ones(len(reports), dtype=np.bool_)

    def tally(self, reports: Reports | Bytes | Sequence[bytes], source: str | None = None) -> Tally:
        """Add up reports; refuses the whole batch if one is malformed, so that nothing is half-counted.

        `source` is what the tally is of, such as a question of a survey; reports of another source are refused.

        >>> from deniable.protocols import GRR
        >>> coin = GRR(["yes", "no"], epsilon=1)
        >>> coin.tally([coin.report("yes"), coin.report("no")]).n
        2
        """
        array = self._rows(reports)
        own = reports.source if isinstance(reports, Reports) else None
        if own is not None and source is not None and own != source:
            raise MismatchError(f"these reports are of {own}, not of {source}: tally them with their own survey")
        return Tally(self.fingerprint, len(array), self._count_checked(array), own if source is None else source)

    def _count_checked(self, reports: Bytes) -> Counts:
        """The counters of reports; raises ReportError if one is malformed."""
        self._check_valid(reports)
        return self._count(reports)

    def _add_checked(self, adder: Adder, reports: Bytes) -> None:
        """Add reports to an adder of this protocol; raises ReportError if one is malformed, and adds none then."""
        self._check_valid(reports)
        adder.add(reports)

    def pieces(self, reports: Reports | Bytes) -> Iterator[tuple[int, Counts]]:
        """The counters of `tally` in pieces: where each begins, and its counters. Those in no piece are zero."""
        yield 0, self._count(self._valid_rows(reports))

    def counter(self, source: str | None = None) -> Counter:
        """Something to add batches of reports to, for one tally of them all."""
        return Counter(self, source)

    def _valid_rows(self, reports: Reports | Bytes) -> Bytes:
        array = self._rows(reports)
        self._check_valid(array)
        return array

    def _check_valid(self, reports: Bytes) -> None:
        valid = self._valid(reports)
        if not valid.all():
            bad = int((~valid).sum())
            raise ReportError(
                f"{bad} of {len(reports)} reports are malformed, the first at {int(np.argmin(valid))}: "
                "nothing was counted (protocol.valid(reports) tells them apart)"
            )

    def empty(self, source: str | None = None) -> Tally:
        """The tally of no reports."""
        return Tally(self.fingerprint, 0, np.zeros(self.tally_size, dtype=np.int64), source)

    def _rows(self, reports: Reports | Bytes | Sequence[bytes]) -> Bytes:
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

    # -- the analyst -------------------------------------------------------------------------------

    @one_thread
    def estimate(self, tally: Tally) -> Any:
        """What the reports say, with error bars."""
        self._check_tally(tally)
        found = self._estimate(tally) if tally.n else self._nothing()
        return replace(found, check=partial(self.misfit, tally))

    def _nothing(self) -> Any:
        """What is known before the first report: here that a mean is between the ends of the domain."""
        low, high = (getattr(self.domain, end, None) for end in ("low", "high"))
        if low is None or high is None:
            raise MismatchError("this tally is empty: there is nothing to estimate from")
        return Mean.nothing((float(low), float(high)), self.name, self.unit)

    def misfit(self, tally: Tally, repeats: float = 1.0) -> Misfit:
        """Whether any population could have produced this tally: a p-value that is valid for every one of them.

        `repeats` says in how many reports one device may stand with the same noise.

        >>> from deniable.protocols import GRR
        >>> coin = GRR(["yes", "no"], epsilon=1)
        >>> coin.misfit(Tally(coin.fingerprint, 1005, [5, 1000])).suspicious
        True
        """
        self._check_tally(tally)
        return Misfit.of(self._misfits(tally, 1 / repeats) if tally.n else [])

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

    @property
    def hypotheses(self) -> tuple[Label, ...]:
        """The names of the hypotheses that the question was designed for, if it was for any."""
        return ()

    def verdict(self, tally: Tally, level: exact.Number = Fraction(1, 20)) -> Result | None:
        """The decision between the `hypotheses`; None where there are none."""
        return None

    # -- what it promises --------------------------------------------------------------------------

    @property
    def guarantee(self) -> Guarantee:
        """Between which inputs the epsilon holds."""
        return Guarantee(ANY, self.epsilon)

    def figure_variances(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        """The variance of each figure among these people, as in `truth`; here the worst case over all people."""
        n = len(answers) if people is None else int(np.sum(people))
        return np.array([self.noise(n) ** 2])

    def figure_spreads(self, answers: Any) -> NDArray[np.float64]:
        """By how much these people differ in what each figure is about, in variance; here of their numbers."""
        return np.array([np.var(self.domain.encode(answers))])

    @property
    def figure_scales(self) -> NDArray[np.float64]:
        """What errors of the figures are divided by before a study averages them: figures of one unit by nothing."""
        return np.ones(1)

    formula_for: ClassVar[str] = "the worst case"
    """What `figure_variances` is about, where it is not about these very people."""

    def simulate(self, values: Any = None, runs: int = 1, seed: int = 0, *, counts: Any = None) -> Study:
        """Repeat the whole collection `runs` times with the same people; for studies, not devices.

        GRR, SUE, OUE, THE and HadamardResponse draw tallies from their joint law: a billion people in milliseconds. The
        others draw every report, which for a billion takes from half a minute (OLH) to hours; `method` says which.

        Args:
            values: One answer per person; with `counts`, the answers that they count.
            runs: How many collections.
            seed: The same seed gives the same tallies.
            counts: How many people hold each of the values; of all answers in their order, if there are no values.

        >>> from deniable.protocols import GRR
        >>> coin = GRR(["yes", "no"], epsilon=1)
        >>> coin.simulate(["yes", "no", "no"], runs=2)
        <2 runs of GRR with 3 people, drawn from the law of the tally>
        >>> coin.simulate(counts=[600, 400], runs=3)
        <3 runs of GRR with 1,000 people, drawn from the law of the tally>
        """
        return study(self, values, counts, runs, seed)

    def _simulate(self, truth: Counts, runs: int, random: np.random.Generator) -> Counts | None:
        """Tallies drawn from their joint law without drawing reports, one per row, where there is a way.

        `truth` is how many people hold each answer.
        """
        return None

    def related(self) -> Iterator[tuple[Mixture, Mixture]]:
        """The pairs of inputs that the guarantee speaks of, each in both orders; any two answers by default.

        An input is the weights of rows of `channel()`: one row for an answer, several for a law of answers.
        """
        size = self._input_count()
        return (({i: Fraction(1)}, {j: Fraction(1)}) for i in range(size) for j in range(size) if i != j)

    def blankets(self) -> tuple[Blanket, ...]:
        """What a report has in common for all answers, for pairs of answers of which one is the worst.

        What `privacy.shuffled` hides people behind. Here found by listing the law; none where it is too large.
        """
        try:
            channel = self.channel(max_cells=_MOST_LISTED)
        except ChannelError:
            return ()
        return of_laws([[int(entry) for entry in row] for row in channel.numerators], self.related())

    def distance(self, one: Any, other: Any) -> Fraction:
        """How far two inputs of the channel are apart, where the guarantee grows with that ("metric"); rounded down."""
        return Fraction(1)

    def spent(self, draws: int) -> Fraction:
        """What so many fresh reports of one device give away in all, at most."""
        return self.epsilon * draws

    @property
    def whole_ratio(self) -> Fraction:
        """The exact ratio of all that the guarantee is about: of one report, or of all reports of a device."""
        return self.ratio

    def stream_laws(self) -> Mapping[tuple[Any, ...], Mapping[bytes, Fraction]]:
        """Where the guarantee is about streams: the exact law of all reports, for each stream; small ones only."""
        return {}

    @property
    def reports_each(self) -> int:
        """How many reports one person sends, where errors are told for people who send all of them."""
        return 1

    def lifetime(self, epochs: int, values: int | None = None) -> Fraction | None:
        """What the reports of `epochs` epochs tell at most, whatever the two streams of answers are; None: no bound.

        With `values`, a device repeats the report of an answer, and keeps so many of them at most.
        """
        if values is None:
            return self.spent(epochs)
        return self.epsilon if min(epochs, values) == 1 else None

    @property
    def realized_epsilon(self) -> float:
        """The exact epsilon of what the guarantee is about: never above `epsilon`."""
        return exact.log(self.whole_ratio)

    def channel(self, max_cells: int = 1 << 22) -> Channel:
        """The exact law of the report bytes, found by running `privatize` along every branch.

        For small domains: a report of b bytes has up to 256^b forms. `max_cells` bounds inputs x outputs.
        """
        inputs = self._inputs()
        forms, size = self.report_forms, self._input_count()
        if forms * size > max_cells:
            number = f"{forms:,}" if forms < 10**12 else f"at least 2^{forms.bit_length() - 1}"
            raise ChannelError(
                f"the channel of this {self.name} has {number} forms of a report for each of {size:,} answers, more "
                f"than {max_cells:,} cells: list fewer answers or raise max_cells; ratio and error need no matrix"
            )
        rows: list[dict[bytes, Fraction]] = []
        outputs: dict[bytes, None] = {}
        labels = []
        for label, value in inputs:
            law = exhaust(lambda bits, value=value: self._law_of(value, bits), most_runs=max(1, max_cells)).law  # type: ignore[misc]
            labels.append(label)
            rows.append(law)
            outputs.update(dict.fromkeys(law))
            if len(outputs) * size > max_cells:
                raise ChannelError(f"the channel has more than {max_cells} cells: ask for a smaller domain")
        order = sorted(outputs)
        matrix = [[law.get(output, Fraction(0)) for output in order] for law in rows]
        return Channel(matrix, labels, [output.hex() for output in order])

    def _inputs(self) -> Iterator[tuple[Any, Any]]:
        """Labels and encoded answers whose laws are the whole channel: every other input's law is a mixture of them."""
        raise ChannelError(f"the answers of {self.domain} cannot be listed, so {self.name} has no matrix here")

    def _input_count(self) -> int:
        return sum(1 for _ in self._inputs())

    def _law_of(self, value: Any, bits: Bits) -> bytes:
        return self._one(value, bits)

    # -- identity ----------------------------------------------------------------------------------

    def spec(self) -> dict[str, Any]:
        """JSON that gives this protocol again, anywhere: `deniable.load(spec)`."""
        head = {"kind": "protocol", "version": 1, "protocol": self.name}
        return head | {"domain": self.domain.spec(), "epsilon": exact.canonical(self.epsilon)} | self.parameters()

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint("protocol", self.spec())

    def __repr__(self) -> str:
        """What one would write to build it; settings that are left at their defaults are left out.

        >>> from deniable.protocols import OLH
        >>> OLH(["yes", "no"], epsilon=0.5)
        OLH(Categories(['yes', 'no']), epsilon='1/2', hash_bits=1)
        """
        given: dict[str, Any] = {"epsilon": self.epsilon}
        for name, written in self.parameters().items():
            value = getattr(self, name, written)
            if value != getattr(type(self), name, None):
                given[name] = value
        words = (
            f"{name}={exact.literal(one) if isinstance(one, Fraction) else repr(one)}" for name, one in given.items()
        )
        return f"{type(self).__name__}({self.domain!r}, {', '.join(words)})"


def percent(share: float, digits: int = 2) -> str:
    """A probability for people, with the unit on the same line.

    >>> percent(0.46211).replace("\N{NO-BREAK SPACE}", " ")
    '46.21 %'
    """
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"


FAMILIES = (
    *("frequency", "numeric", "table", "ranges", "places", "sets", "discovery", "attributes", "stratified"),
    *("private_strata", "queries", "longitudinal", "profiles", "secure_sum"),
)
"""The modules of `deniable.protocols` that define kinds, the most common first: each is loaded when it is needed."""


def registered(family: str | None = None) -> Mapping[str, type[Protocol]]:
    """Every protocol that a spec or a draft may name, those of installed packages included; in the order of the names.

    With a `family` of ours, only its kinds and those of others: the rest is not loaded.
    """
    load_plugins()
    wanted = FAMILIES if family is None else (family,)
    for module in wanted:
        import_module(f"deniable.protocols.{module}")

    def asked_for(kind: type[Protocol]) -> bool:
        package, _, module = kind.__module__.partition(".protocols.")
        return package != "deniable" or module.partition(".")[0] in wanted

    return {name: kind for name, kind in sorted(_KINDS.items()) if asked_for(kind)}


def kind_named(name: Any) -> type[Protocol]:
    """The protocol that a spec calls so; loads no more families than it takes to find it."""
    for module in FAMILIES:
        if name in _KINDS:
            break
        import_module(f"deniable.protocols.{module}")
    kinds = _KINDS if isinstance(name, str) and name in _KINDS else registered()
    if not isinstance(name, str) or name not in kinds:
        raise SpecError(f"there is no protocol {name!r}; there are {', '.join(sorted(kinds))}")
    return kinds[name]


_HEAD = {"kind", "version", "protocol", "domain", "epsilon"}


def load(spec: Any) -> Protocol:
    """The protocol of a spec, given as a dictionary or as JSON text; unknown kinds are refused by name.

    >>> from deniable.protocols import OLH
    >>> load(OLH(1024, epsilon=1).spec()) == OLH(1024, epsilon=1)
    True
    """
    spec = parsed(spec)
    if not isinstance(spec, dict) or spec.get("kind") != "protocol":
        raise SpecError('this is not the spec of a protocol: it needs "kind": "protocol"')
    if spec.get("version") != 1:
        raise SpecError(f"protocol specs of version {spec.get('version')!r} are unknown here: only 1 is")
    name = spec.get("protocol")
    kind = kind_named(name)
    missing = _HEAD - set(spec)
    if missing:
        raise SpecError(f"the spec misses {', '.join(sorted(missing))}")
    if not isinstance(spec["epsilon"], str):
        raise SpecError('epsilon stands in a spec as text, like "1" or "1/2"')
    parameters = {key: value for key, value in spec.items() if key not in _HEAD}
    try:
        protocol = kind._from_parameters(load_domain(spec["domain"]), spec["epsilon"], parameters)
    except TypeError:
        raise SpecError(f"the spec gives {name} parameters that it does not have: {', '.join(parameters)}") from None
    if protocol.spec() != spec:
        raise SpecError("the spec is not in canonical form: load and write it again")
    return protocol
