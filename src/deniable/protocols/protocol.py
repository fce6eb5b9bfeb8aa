"""The base class of all protocols: a frozen object that randomizes, counts and estimates, known by its fingerprint.

A kind of protocol is one file. It writes its `name` and at most these hooks:

draw           one encoded answer -> the bytes of its report; draws random bytes in the documented order. By default
               it runs the structure of the law (`structures.py`)
draw_many      the same for a column of encoded answers, in the fastest order
count          an array of reports -> the int64 counters of their tally
valid          which rows of bytes are reports of this protocol (range, padding); by default all of them
infer          a tally -> a result with error bars; of no reports, what is known before the first one
law            the record `Law` (`law.py`): what a report says about an answer, exactly. It holds the width of a report,
               the number of counters, the guarantee and its ratio, the inputs, the privacy blankets and the checks
worth          the record `Worth` (`worth.py`): what n people learn, and at what cost. It holds noise and error, cost,
               leverage and forgeries, and the truth that estimates are compared with
kernel         the record `Kernel` (`kernel.py`): faster forms of drawing, checking and counting, if there are any
traits         the record `Traits` (`traits.py`), a class attribute: which domains the kind takes, what it is read for,
               what the planner compares. It gives the fields that differ from those of its base classes
examples       small instances, on which the conformance suite runs
story          what chance does to an answer, for the person who gave it: ids and facts of the catalogue of words

`law`, `worth` and `kernel` take the record of the base class and change some fields: `super().law().but(width=...)`. A
kind with parameters of its own is a data class with these fields; `parameters` writes them into the spec.

Everything else (checking, packing, identity, registry, enumeration, planning) is inherited. Defining a class with a
`name` registers it; other packages register their kinds by an entry point (`deniable._extras`).
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from importlib import import_module
from inspect import getattr_static
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable._extras import load_plugins
from deniable._threads import one_thread
from deniable.channels import Channel
from deniable.domains import Domain, DomainLike, Records, as_domain, load_domain
from deniable.errors import ChannelError, DomainError, MismatchError, NumberError, ReportError, SpecError
from deniable.protocols.blanket import Blanket, of_laws
from deniable.protocols.kernel import Kernel, plain, without_stale_forms
from deniable.protocols.law import ANY, Guarantee, Kept, Law, Mixture
from deniable.protocols.record import KEPT, remembered
from deniable.protocols.reports import Bytes, Reports
from deniable.protocols.tally import Adder, Counter, Counts, Study, Tally, study
from deniable.protocols.traits import Traits, inherited
from deniable.protocols.worth import Cost, Worth
from deniable.randomness import SYSTEM, Bits, Counting, exhaust, source_of
from deniable.results import Misfit
from deniable.specs import fingerprint, parsed
from deniable.words import DEFAULT, Fact, Figure, Joined, Word, catalogue, word

Positions = NDArray[np.int64]

_COUNTED = 64
_MOST_LISTED = 1 << 12
_MANY = 1 << 14
_SHOWN = 12


class Step(NamedTuple):
    """One step of a report's life, in words."""

    text: str
    """What chance does, and how likely each outcome is."""
    outcome: str = ""
    """What came out, as far as the report shows it."""


_KINDS: dict[str, type[Protocol]] = {}


def as_rows(reports: Any) -> Bytes:
    """An array of bytes, from rows or from a list of single reports.

    No plain cast is used: numpy's exceptions may quote an answer, and numpy casts any number to a byte.
    """
    if isinstance(reports, bytes):
        raise ReportError("this is a single report: give a list of them, [report, ...]")
    if isinstance(reports, list | tuple) and reports and all(isinstance(one, bytes) for one in reports):
        # np.asarray of a list of bytes would drop zeros at the end.
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


_FINAL = {"report_bytes", "tally_size", "ratio", "guarantee", "realized_epsilon"}
"""Facts of the law that `Protocol` reads out; a kind gives them in its `law`."""

MOST_REPORT_BYTES = 1 << 22
MOST_COUNTERS = 1 << 28


class _Bounded(ABCMeta):
    """Refuses to build a protocol whose reports or tallies are too large to draw or to keep."""

    @property
    def __signature__(cls) -> inspect.Signature:
        """The signature of a kind's constructor, for help and editors: without it they would show `__call__` below."""
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
    """Mark a method that devices call and no kind may override, so that what is audited is what is sent.

    `hook` is what a kind writes instead. A class that overrides the method is refused when it is defined.
    """

    def mark(method: Method) -> Method:
        vars(method)["__hook__"] = hook
        return method

    return mark


def unsealed(subject: Any) -> dict[str, str]:
    """The sealed methods that a kind, or one instance of it, overrides, with what it should write instead."""
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
    """Both sides of the collection of one question. Immutable; equal protocols have equal fingerprints.

    Args:
        domain: The possible answers; may be given as a list of categories or as a number of answers.
        epsilon: Largest epsilon of a report; may be given as an int, float, str or Decimal.
    """

    domain: Domain
    epsilon: Fraction

    name: ClassVar[str]
    """What the protocol is called in a spec."""

    traits: ClassVar[Traits] = Traits()
    """What holds for the kind; a subclass gives the fields that differ, and inherits the others."""

    if TYPE_CHECKING:
        # The constructor takes more types than the fields keep, which a data class cannot express. A subclass with
        # fields of its own repeats this; one without needs no decorator.
        def __init__(self, domain: DomainLike, epsilon: exact.Number) -> None: ...

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        for changed, hook in unsealed(cls).items():
            raise TypeError(
                f"{cls.__name__} changes {changed}(), which every device calls and every audit relies on: a kind of "
                f"protocol writes {hook} instead"
            )
        for name in _FINAL & set(cls.__dict__):
            raise TypeError(
                f"{cls.__name__} changes {name}, which reads the law of a report: change the field in law()"
            )
        kernel = without_stale_forms(cls)
        if kernel is not None:
            cls.kernel = kernel  # type: ignore[method-assign]
        cls.traits = inherited(cls)
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

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out the remembered records, which hold functions: copies and other processes build them again."""
        return {name: value for name, value in vars(self).items() if not name.startswith(KEPT)}

    def _settle(self) -> None:
        """Convert domain and epsilon to the form that is kept; a subclass that needs them early calls it first."""
        domain = as_domain(self.domain)
        takes, advice = self.traits.takes, self.traits.advice
        if not isinstance(domain, takes):
            raise DomainError(f"{self.name} cannot ask for {domain}{advice and ': ' + advice}")
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "epsilon", exact.as_epsilon(self.epsilon))

    def _settle_record(self, domain: Any, epsilon: exact.Number, people: int | None) -> None:
        """The same for a kind that asks for records: takes columns by name, and checks `people`."""
        object.__setattr__(self, "domain", Records(domain) if isinstance(domain, Mapping) else domain)
        object.__setattr__(self, "epsilon", epsilon)
        self._settle()
        if people is not None and (isinstance(people, bool) or not isinstance(people, int | np.integer) or people < 1):
            raise NumberError(f"the number of people is a positive whole number, not {people!r}")

    # -- the registry ------------------------------------------------------------------------------

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        """Small instances whose reports can all be listed: the conformance suite runs on them."""
        yield from ()

    # -- the law, written by each protocol ---------------------------------------------------------

    def explain(self, value: Any, report: bytes, language: str = DEFAULT) -> list[Step]:
        """Explain a report to the person whose answer it is: what chance did to the answer, and what the report says.

        The last step has the outcome. A report does not contain the single coins, so nobody can show them. Raises
        DomainError if `value` is not an answer, ReportError if `report` is not a report, and KeyError if there is no
        catalogue of the `language`, a code such as "de".

        >>> from deniable.protocols import GRR
        >>> *steps, said = GRR(["yes", "no"], epsilon=1).explain("yes", bytes([1]))
        >>> len(steps), said
        (2, Step(text='What the report says:', outcome='no'))
        """
        encoded = self.domain.encode_one(value)
        if not self.valid(self._rows([report]))[0]:
            raise ReportError("these bytes are no report of this protocol")
        words = catalogue(language)
        said = Step(words.say("story.says"), words.text(self.traits.says(self, report)))
        return [*(Step(words.text(step)) for step in self.story(value, encoded, report)), said]

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        """What chance does to an answer, one fact per step: an entry of the catalogue of words with its parameters.

        A text is a fact, too: it is the same in every language. `deniable.words.sentence` has its own texts for each.
        """
        return [word("story.any", name=self.name, ratio=Figure(f"{float(self.ratio):.4g}", grouped=False))]

    def draw(self, value: Any, bits: Bits) -> bytes:
        """The report of one encoded answer; the order of its random words is part of the format.

        A kind whose law has a structure that can be run need not write this.
        """
        report: bytes = self._kept_draw(value, bits)
        return report

    @cached_property
    def _kept_draw(self) -> Callable[[Any, Bits], bytes]:
        """What draws a report of a kind that has no code of its own for it."""
        draw: Callable[[Any, Bits], bytes] | None = getattr(self.law().structure, "draw", None)
        if draw is None:
            raise TypeError(f"{type(self).__name__} draws no report: write draw, or give its law a structure")
        return draw

    @abstractmethod
    def draw_many(self, values: Any, bits: Bits) -> Bytes:
        """The reports of a column of encoded answers, one per row, with the same law."""

    @abstractmethod
    def count(self, reports: Bytes) -> Counts:
        """The counters of the tally of valid reports, given as rows of bytes."""

    @abstractmethod
    def infer(self, tally: Tally) -> Any:
        """The result of a tally of this protocol, with error bars; of no reports, what is known before the first one.

        A kind may take more options, such as the answers to look for.
        """

    def valid(self, reports: Bytes) -> NDArray[np.bool_]:
        """Which rows of bytes could be reports of this protocol; the others must not be counted."""
        return np.ones(len(reports), dtype=np.bool_)

    @remembered
    def kernel(self) -> Kernel:
        """Faster forms of the hooks above; see `Kernel`."""
        return plain(self)

    def parameters(self) -> dict[str, Any]:
        """What the spec holds beyond domain and epsilon."""
        return {}

    @classmethod
    def _from_parameters(cls, domain: Domain, epsilon: Any, parameters: Mapping[str, Any]) -> Self:
        return cls(domain, epsilon, **parameters)

    # -- the law -----------------------------------------------------------------------------------

    @remembered
    def law(self) -> Law:
        """What a report says about an answer, exactly; see `Law`."""
        return Law(
            guarantee=lambda: Guarantee(ANY, self.epsilon),
            ratio=self._enumerated_ratio,
            forms=lambda: 1 << 8 * self.report_bytes,
            inputs=self._no_inputs,
            input_count=lambda: sum(1 for _ in self.law().inputs()),
            sent=self.draw,
            related=self._any_two,
            blankets=self._enumerated_blankets,
            plausible=lambda reports: self.valid(self._rows(reports)),
            any_reports=self._accepted_bytes,
            kept=Kept(
                state_forms=lambda: self.law().forms,
                linking=self._repeated_linking,
                spent=lambda draws: self.epsilon * draws,
                lifetime=self._repeated_lifetime,
                ratio=lambda: self.ratio,
            ),
        )

    @cached_property
    def report_bytes(self) -> int:
        """The width of a report."""
        return self.law().width

    @cached_property
    def tally_size(self) -> int:
        """The number of counters in a tally."""
        return self.law().counters

    @cached_property
    def ratio(self) -> Fraction:
        """The exact largest likelihood ratio of a report, between the inputs that the guarantee relates."""
        return self.law().ratio

    @cached_property
    def guarantee(self) -> Guarantee:
        """Between which inputs the epsilon holds."""
        return self.law().guarantee

    def _enumerated_ratio(self) -> Fraction:
        channel = self.channel(max_cells=_MOST_LISTED)
        if isinstance(channel.ratio, float):
            raise ChannelError(
                f"a report of this {self.name} is impossible under one answer and possible under another"
            )
        return channel.ratio

    def _no_inputs(self) -> Iterator[tuple[Any, Any]]:
        raise ChannelError(f"the answers of {self.domain} cannot be listed, so {self.name} has no matrix here")

    def _any_two(self) -> Iterator[tuple[Mixture, Mixture]]:
        size = self.law().input_count
        return (({i: Fraction(1)}, {j: Fraction(1)}) for i in range(size) for j in range(size) if i != j)

    def _enumerated_blankets(self) -> tuple[Blanket, ...]:
        try:
            channel = self.channel(max_cells=_MOST_LISTED)
        except ChannelError:
            return ()
        return of_laws([[int(entry) for entry in row] for row in channel.numerators], self.law().related())

    def _accepted_bytes(self, count: int, bits: Bits) -> Bytes:
        """Draws bytes until they are reports; if few strings of bytes are, honest reports of the domain's example."""
        found, tries = np.empty((0, self.report_bytes), dtype=np.uint8), 0
        while len(found) < count and tries < _MANY:
            drawn = np.empty((max(256, count), self.report_bytes), dtype=np.uint8)
            bits.fill(drawn.reshape(-1))
            found, tries = np.vstack([found, drawn[self.valid(drawn)]]), tries + 1 + (not len(found)) * 1000
        if len(found) < count:
            return self.draw_many(self.domain.encode([self.domain.example] * count), bits)
        return found[:count]

    def _repeated_linking(self, epochs: int) -> float:
        """With one stage, the repeated report itself is the link."""
        least = self.domain.least_forms  # no protocol has fewer; with many answers the exact number would take long
        forms = least if least > _MANY else self.law().forms
        return float(forms) if forms < 1 << 1000 else math.inf

    def _repeated_lifetime(self, epochs: int, values: int | None = None) -> Fraction | None:
        if values is None:
            return self.law().kept.spent(epochs)
        return self.epsilon if min(epochs, values) == 1 else None

    # -- what it is worth --------------------------------------------------------------------------

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        """What an analyst learns from n people, and at what cost; see `Worth`.

        Args:
            n: The number of people who answer.
            read: What the question is read for; by default what the protocol is made for.
            population: Whether errors are about the population, or about those who answered.
        """
        return Worth(
            read=lambda: self.traits.reads[0],
            answers=lambda: read is None or read == self.worth().read,
            parts=lambda: {"": (self, n)},
            split=lambda tally: {"": (self, tally)},
            cost=self._counted_cost,
            forgeries=self._some_reports,
            truth=self._no_truth,
            variances=self._worst_variances,
            spreads=lambda answers: np.array([np.var(self.domain.encode(answers))]),
            strata=lambda: self.law().clear,
        )

    def _counted_cost(self) -> Cost:
        """What some reports of the domain's example cost."""
        answer = self.domain.encode_one(self.domain.example)
        counted = Counting()
        for _ in range(_COUNTED):
            self.draw(answer, counted)
        return Cost(counted.bytes_taken / _COUNTED, float(self.tally_size))

    def _some_reports(self, answers: Any) -> Bytes:
        """All forms of a report if there are few, else some honest reports of these encoded answers."""
        if self.report_bytes <= 2 and self.law().forms <= _MANY:
            forms = np.arange(1 << 8 * self.report_bytes, dtype="<u2").view(np.uint8).reshape(-1, 2)
            listed = np.ascontiguousarray(forms[:, : self.report_bytes])
            return listed[self.valid(listed)]
        some = [answers[place % len(answers)] for place in range(_COUNTED)]
        return as_rows([list(self.draw(one, SYSTEM)) for one in some])

    def _no_truth(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        raise ChannelError(f"{self.name} does not say what its figures are without noise: give its worth a truth")

    def _worst_variances(self, answers: Any, people: Any = None) -> NDArray[np.float64]:
        """The worst case over all people."""
        n = len(answers) if people is None else int(np.sum(people))
        return np.array([self.worth(n).noise ** 2])

    # -- the device --------------------------------------------------------------------------------

    @final
    @sealed("draw_many for columns and draw for single answers")
    def privatize(self, values: Any, bits: Bits | None = None) -> Reports:
        """Randomize one answer or a column of answers."""
        answers = self.domain.encode(values)
        source = source_of(bits)
        if len(answers) == 1:
            one = answers[0].item() if isinstance(answers, np.ndarray) else answers[0]
            array = np.frombuffer(self.report_encoded(one, source), dtype=np.uint8).reshape(1, -1)
        else:
            array = self.draw_many(answers, source)
        return Reports(self.fingerprint, array, self.spec())

    @final
    @sealed("draw")
    def report(self, value: Any, bits: Bits | None = None) -> bytes:
        """Randomize one answer into the bytes of one report: the fastest way for a single answer, without a `Reports`.

        >>> from deniable.protocols import GRR
        >>> len(GRR(["yes", "no"], epsilon=1).report("yes"))
        1
        """
        return self.report_encoded(self.domain.encode_one(value), bits)

    @final
    @sealed("draw")
    def report_encoded(self, encoded: Any, bits: Bits | None = None) -> bytes:
        """The same for an answer that is encoded already (`domain.encode_one`), as in a ledger that remembers answers.

        Every single report is drawn here.
        """
        return self.draw(encoded, SYSTEM if bits is None else source_of(bits))

    # -- the collector -----------------------------------------------------------------------------

    def tally(self, reports: Reports | Bytes | Sequence[bytes], source: str | None = None) -> Tally:
        """Add up reports; refuses the whole batch if one is malformed, so that nothing is half-counted.

        `source` says where the reports come from, such as a question of a survey; reports of another one are refused.

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
        kernel = self.kernel()
        if kernel.add is None:
            self._check_valid(reports)
            return self.count(reports)
        adder = kernel.adder()
        kernel.add(adder, reports)
        return adder.counts()

    def _add_checked(self, adder: Adder, reports: Bytes) -> None:
        """Add reports to an adder of this protocol; raises ReportError if one is malformed, and adds none then."""
        add = self.kernel().add
        if add is not None:
            add(adder, reports)
        else:
            self._check_valid(reports)
            adder.add(reports)

    def counter(self, source: str | None = None) -> Counter:
        """A counter that takes batches of reports and gives one tally of them all."""
        return Counter(self, source)

    def _check_valid(self, reports: Bytes) -> None:
        valid = self.valid(reports)
        if not valid.all():
            bad = int((~valid).sum())
            raise ReportError(
                f"{bad} of {len(reports)} reports are malformed, the first at {int(np.argmin(valid))}: "
                "nothing was counted (protocol.valid(reports.array) tells them apart)"
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
        """The message about two fingerprints, with what their specs disagree on if both are known."""
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
        return replace(self.infer(tally), check=partial(self.misfit, tally))

    def misfit(self, tally: Tally, repeats: float = 1.0) -> Misfit:
        """Whether any population could have produced this tally: a p-value that is valid for every population.

        `repeats` is the number of reports that one device may send with the same noise.

        >>> from deniable.protocols import GRR
        >>> coin = GRR(["yes", "no"], epsilon=1)
        >>> coin.misfit(Tally(coin.fingerprint, 1005, [5, 1000])).suspicious
        True
        """
        self._check_tally(tally)
        return Misfit.of(self.law().checks(tally, 1 / repeats) if tally.n else [])

    def _check_tally(self, tally: Tally) -> None:
        if not isinstance(tally, Tally):
            raise MismatchError(
                f"estimates are made from a tally, not from {type(tally).__name__}: protocol.tally(reports)"
            )
        if tally.fingerprint != self.fingerprint:
            raise MismatchError(self._difference("a tally", tally.fingerprint, None))
        if tally.counts.size != self.tally_size:
            raise MismatchError(f"this tally has {tally.counts.size} counters, not {self.tally_size}")
        if broken := self.law().broken(tally):
            raise MismatchError(broken)

    # -- what it promises --------------------------------------------------------------------------

    def simulate(self, values: Any = None, runs: int = 1, seed: int = 0, *, counts: Any = None) -> Study:
        """Repeat the whole collection `runs` times with the same people; for studies, not devices.

        GRR, SUE, OUE, THE and HadamardResponse draw tallies from their joint law: a billion people in milliseconds. The
        others draw every report, which for a billion takes from half a minute (OLH) to hours; `method` says which.

        Args:
            values: One answer per person; with `counts`, the answers that they count.
            runs: The number of collections.
            seed: The same seed gives the same tallies.
            counts: How many people hold each value; without `values`, each answer of the domain in its order.

        >>> from deniable.protocols import GRR
        >>> coin = GRR(["yes", "no"], epsilon=1)
        >>> coin.simulate(["yes", "no", "no"], runs=2)
        <2 runs of GRR with 3 people, drawn from the law of the tally>
        >>> coin.simulate(counts=[600, 400], runs=3)
        <3 runs of GRR with 1,000 people, drawn from the law of the tally>
        """
        return study(self, values, counts, runs, seed)

    @property
    def realized_epsilon(self) -> float:
        """The exact epsilon that the guarantee is about: never above `epsilon`."""
        return exact.log(self.law().kept.ratio)

    def channel(self, max_cells: int = 1 << 22) -> Channel:
        """The exact law of the report bytes, found by running `privatize` along every branch.

        For small domains: a report of b bytes has up to 256^b forms. `max_cells` bounds inputs x outputs.
        """
        law = self.law()
        inputs, forms, size = law.inputs(), law.forms, law.input_count
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
            row = exhaust(lambda bits, value=value: law.sent(value, bits), most_runs=max(1, max_cells)).law  # type: ignore[misc]
            labels.append(label)
            rows.append(row)
            outputs.update(dict.fromkeys(row))
            if len(outputs) * size > max_cells:
                raise ChannelError(f"the channel has more than {max_cells} cells: ask for a smaller domain")
        order = sorted(outputs)
        matrix = [[row.get(output, Fraction(0)) for output in order] for row in rows]
        return Channel(matrix, labels, [output.hex() for output in order])

    # -- identity ----------------------------------------------------------------------------------

    def spec(self) -> dict[str, Any]:
        """JSON from which `deniable.load(spec)` builds this protocol again."""
        head = {"kind": "protocol", "version": 1, "protocol": self.name}
        return head | {"domain": self.domain.spec(), "epsilon": exact.canonical(self.epsilon)} | self.parameters()

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint("protocol", self.spec())

    def __repr__(self) -> str:
        """The expression that builds it, without the settings that have their default value.

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


def percent(share: float, digits: int = 2) -> Word:
    """A probability for people, with the unit on the same line.

    >>> catalogue("en").text(percent(0.46211)).replace("\N{NO-BREAK SPACE}", " ")
    '46.21 %'
    """
    return word("percent.line", n=Figure(f"{100 * share:.{digits}f}", grouped=False))


def first_of(parts: Iterable[Fact], n: int) -> Fact:
    """The first of `n` parts of a sentence, and how many more there are."""
    first = Joined(list(islice(parts, _SHOWN)), ", ")
    return word("list.more", first=first, n=n - _SHOWN) if n > _SHOWN else first


def speaks_for(answers: Sequence[Fact], none: str = "report.none") -> Word:
    """That a report speaks for these answers; `none` is the id of the sentence for no answer."""
    return word("says.speaks", answers=first_of(answers, len(answers)) if answers else word(none))


FAMILIES = (
    *("frequency", "numeric", "table", "ranges", "sets", "discovery", "records", "stratified"),
    *("private_strata", "longitudinal", "profiles"),
)
"""The modules of `deniable.protocols` that define kinds, most common first; each is loaded when it is needed."""


def registered(family: str | None = None) -> Mapping[str, type[Protocol]]:
    """Every kind that a spec or a draft may name, in the order of the names, with those of installed packages.

    Args:
        family: Name of a family; only its kinds and those of other packages are loaded.

    Returns:
        The kinds by name.
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
    """The kind with this name in a spec; loads no more families than it takes to find it."""
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
    """The protocol of a spec, given as a dictionary or as JSON text.

    Args:
        spec: A dictionary, or JSON text.

    Returns:
        The protocol.

    Raises:
        SpecError: It is not the spec of a known protocol.

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
