"""Audits of the epsilon that a client claims: exact if its code can be followed, else from what it sends.

Enumeration  if report forms x inputs are at most 2^16: the law of the bytes, from the real code along every branch
Structure    beyond that: the real code runs on symbols, and the parts of a report that turn out to be independent are
             enumerated each by itself (`structure`). Statements about a law are not used, except `Law.structure`, and
             that only where it is the code of the device, or is checked against it (`hidden`)
Groups       a report that says which of several questions it is about: each question's own protocol by itself
Streams      what a device sends over all epochs: every step from each state that it may keep, enumerated one by one
Sets         answers that are sets, too many to list: the real code runs on a set with only its size known
Samples      for code that cannot be followed, and for any client in any language: the most telling event, chosen on one
             part of the samples and bounded on the other (`sampled`)
Verdict      "violated": the exact epsilon, or the lower bound, is above the claim. "cleared": the exact epsilon is not;
             or from samples, the bound is not, and the event explains most of the claim, so that a violation would
             show: the smallest one that would is stated. "undecided": neither, with the samples that would decide
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import combinations, islice
from os import PathLike
from typing import Any

import numpy as np

from deniable import exact
from deniable._sheets import Sheet, Shown
from deniable.audit.hidden import chosen_by, mapped_by, of_hidden, of_members
from deniable.audit.paths import disagreement, replayed
from deniable.audit.samples import Batches, Client, Command, Found, Function, check_sizes, search
from deniable.audit.structure import Ratio, Worst, largest_ratio, largest_ratio_of_streams
from deniable.channels import Channel
from deniable.channels.adjacency import related_factor
from deniable.domains import Interval, ListedDomain
from deniable.errors import ChannelError, DomainError, NumberError, SpecError
from deniable.exact import epsilon_text, exp_at_least
from deniable.protocols import Protocol
from deniable.protocols.law import ANY, STREAM
from deniable.protocols.structures import Choice, Mapped, Stages, Stream
from deniable.randomness import Simulation, exhaust
from deniable.randomness.symbolic import Run, Span, TooManyRuns, follow

CLEARED, VIOLATED, UNDECIDED = "cleared", "violated", "undecided"
EXIT_CODES = {CLEARED: 0, VIOLATED: 1, UNDECIDED: 3}

MOST_CELLS = 1 << 16
MOST_RUNS = 1 << 14
_QUICK_RUNS = 1 << 16
_SOME_INPUTS = 64
_EXPLAINED, _ENOUGH, _SEEN = 0.8, 0.5, 0.5
_AGREE = 16
_LONGEST = 200
_COLUMNS, _COLUMN_SAMPLES, _COLUMN_LEVEL = 3, 1000, 1 - 1e-6


Progress = Callable[[str, float | None], None]
"""Called with what an audit does, and the share that is finished where that is known."""


@dataclass(frozen=True)
class Audit(Shown):
    """What an audit found out.

    Args:
        subject: What was audited.
        epsilon: The claim.
        verdict: "cleared", "violated" or "undecided".
        method: "enumeration", "structure", "samples", or for a survey "questions".
        lower: The epsilon of the client is at least this: exactly, or with the confidence `level`.
        exact: The exact epsilon, where it is known; infinite where a report rules an input out.
        smallest_visible: The smallest epsilon that would have been found out; None if the audit has no power. From
            samples: by the event that was judged, in nine of ten audits. A client may reveal more by another event.
        rarest_visible: For a client that was cleared from samples: if one input sends reports that another input never
            sends, nine of ten audits would have found this from this share of the input's reports on.
        pair: The two inputs that are easiest to distinguish.
        event: The event that distinguishes them.
        level: Confidence level, if samples were drawn.
        samples: Samples of each of the two inputs.
        tried: The number of answers whose reports were tested, if not all of them were.
        answers: How many answers there are then; None if they cannot be listed.
        more: For an undecided audit: the number of samples per input that would decide it; None if no number would.
        notes: What was tested, and what was not.
        parts: The questions of a survey.
    """

    subject: str
    epsilon: float
    verdict: str
    method: str
    lower: float
    exact: float | None = None
    smallest_visible: float | None = None
    rarest_visible: float | None = None
    pair: tuple[str, str] | None = None
    event: str = ""
    level: float | None = None
    samples: int | None = None
    tried: int | None = None
    answers: int | None = None
    more: int | None = None
    notes: tuple[str, ...] = ()
    parts: tuple[Audit, ...] = field(default=(), repr=False)

    @property
    def exit_code(self) -> int:
        """The exit code of the command: 0 cleared, 1 violated, 3 undecided."""
        return EXIT_CODES[self.verdict]

    @property
    def words(self) -> str:
        """The verdict in one sentence."""
        claim = f"epsilon {self.epsilon:.6g}"
        if self.exact is not None:
            found = "infinite" if math.isinf(self.exact) else f"{self.exact:.6g}"
            return f"{self.verdict}: the exact epsilon is {found}, the claim is {claim} (by {self.method})"
        if self.verdict == VIOLATED and math.isinf(self.lower):
            return f"{self.verdict}: {self.event}; the claim is {claim}"
        if self.verdict == CLEARED and self.level is None:
            some = f"between {self._tried or 'the answers that were looked at'}"
            return (
                f"{self.verdict}: {some} the exact epsilon is {self.lower:.6g}, the claim is {claim} (by {self.method})"
            )
        sure = "" if self.level is None else f" with {100 * self.level:g} % confidence"
        said = f"{self.verdict}: epsilon is at least {self.lower:.4g}{sure}, the claim is {claim}"
        if self.verdict == CLEARED and self.smallest_visible is not None:
            said += f"; {self.smallest_visible:.4g} or more would have been found out by the event that was judged"
            if self.rarest_visible is not None:
                said += f", and reports that only one input sends from {100 * self.rarest_visible:.2g} % on"
        if self.verdict == UNDECIDED and self.more is not None:
            said += f"; {self.more:,} samples of each input would decide"
        elif self.verdict == UNDECIDED and self.level is not None:
            said += "; no power: no event was found that tells inputs apart as far as the claim allows"
        return f"{said}; {self._tried} were tried" if self._tried else said

    @property
    def _tried(self) -> str:
        """How many of how many answers were tried, where it is not all of them."""
        if self.tried is None:
            return ""
        whole = "more than can be listed" if self.answers is None else f"{self.answers:,} answers"
        return f"{self.tried:,} of {whole}"

    def to_dict(self) -> dict[str, Any]:
        """The audit as JSON values; infinities are "inf"."""

        def number(value: float | None) -> float | str | None:
            return "inf" if value is not None and math.isinf(value) else value

        return {
            "subject": self.subject,
            "words": self.words,
            "epsilon": number(self.epsilon),
            "verdict": self.verdict,
            "method": self.method,
            "exact": number(self.exact),
            "lower": number(self.lower),
            "smallest_visible": number(self.smallest_visible),
            "rarest_visible": self.rarest_visible,
            "pair": None if self.pair is None else list(self.pair),
            "event": self.event,
            "level": self.level,
            "samples": self.samples,
            "tried": self.tried,
            "answers": self.answers,
            "more": self.more,
            "notes": list(self.notes),
            "parts": [part.to_dict() for part in self.parts],
        }

    def sheet(self) -> Sheet:
        names = ("subject", "verdict", "epsilon", "exact", "lower", "method")
        rows = [[getattr(one, name) for name in names] for one in (*self.parts, self)]
        body = [
            ["-" if cell is None else cell if isinstance(cell, str) else f"{cell:.6g}" for cell in row] for row in rows
        ]
        columns = dict(zip(names, zip(*rows, strict=True), strict=True))
        head = ["subject", "verdict", "claimed epsilon", "exact", "at least", "method"]
        return Sheet([str(self)], head, body, self.notes, columns)

    def __str__(self) -> str:
        return f"{self.subject}: {self.words}"


def audit(
    target: Any,
    epsilon: exact.Number | None = None,
    samples: int = 20_000,
    *,
    inputs: Sequence[Any] | None = None,
    protocol: Protocol | None = None,
    stream: bool = False,
    level: float = 0.95,
    seed: int | None = None,
    processes: bool = True,
    progress: Progress | None = None,
) -> Audit:
    """Check a claimed epsilon: of a protocol, a channel, a survey, a Python function or a program.

    A program reads one value per line and writes one report in hexadecimal digits per line. The two inputs that are
    easiest to distinguish are judged.

    Args:
        target: A protocol, a channel, a survey, a spec, a Python function, or the command line of a program.
        epsilon: The claim; protocols, surveys and specs bring their own.
        samples: Number of reports per input, if reports are sampled.
        inputs: What a client may be given: answers, records, batches, or with `stream` the answers of one device over
            the epochs.
        protocol: The protocol that a client claims to follow; makes the audit sharper.
        stream: Whether the target makes a device that is called once per epoch.
        level: Confidence level.
        seed: Makes an audit by samples repeatable; fresh randomness if None.
        processes: Whether two processes are started first, to test whether they draw the same noise.
        progress: Called with what is being done and the share that is finished.

    Returns:
        The verdict, with the lower bound or the exact epsilon.

    >>> import deniable as dn
    >>> audit(dn.OUE(100, epsilon=1)).words
    'cleared: the exact epsilon is 1, the claim is epsilon 1 (by structure)'
    >>> audit(lambda answer: answer.encode(), epsilon=1, inputs=["yes", "no"], samples=1000, processes=False).verdict
    'violated'
    """
    check_sizes(samples, level)
    if hasattr(target, "questions") and target.kind == "protocol":
        target = target.questions[0].protocol
    if isinstance(target, Protocol):
        return _of_protocol(target, epsilon, samples, level, seed)
    if isinstance(target, Channel):
        return _of_channel(target, epsilon)
    if hasattr(target, "questions"):
        if epsilon is not None or inputs is not None:
            raise SpecError("a survey brings its own claims and answers")
        return _of_survey(target, samples, level, seed, progress)
    some = protocol is not None and inputs is None
    if protocol is not None:
        epsilon = protocol.epsilon if epsilon is None else epsilon
        inputs = _answers(protocol) if inputs is None else inputs
    if epsilon is None or inputs is None:
        raise SpecError("an audit of a client needs the claimed epsilon and the inputs that it may be given")
    claim = _claim(epsilon)
    client = _client(target, stream)
    if progress is not None and isinstance(client, Command):
        client.heard = _heard(progress, samples, inputs, stream)
    try:
        found = search(client, list(inputs), samples, level, protocol, processes, seed)
    finally:
        client.close()
    words = client.arguments if isinstance(client, Command) else None
    name = shlex.join(words) if words else getattr(target, "__name__", None) or type(target).__name__
    judged = _judged(str(name), claim, found, samples, level, len(inputs))
    return judged if protocol is None or not some else _of_some(judged, protocol, len(inputs))


def _heard(progress: Progress, samples: int, inputs: Sequence[Any], stream: bool) -> Callable[[int], None]:
    """Counts the lines that a program answers, out of the expected total: half of each input's, then that of two."""
    per_sample = 1 + max(map(len, inputs)) if stream else 1
    total, done = per_sample * samples * (len(inputs) + 2) / 2, 0

    def heard(lines: int) -> None:
        nonlocal done
        done += lines
        progress("asking the program", min(1.0, done / total))

    return heard


def _claim(epsilon: exact.Number) -> Fraction:
    claim = exact.fraction(epsilon, "epsilon")
    if claim < 0:
        raise NumberError(f"no client keeps epsilon {epsilon_text(claim)}: a claim is not negative")
    return claim


def _client(target: Any, stream: bool) -> Client:
    if isinstance(target, Client):
        return target
    if isinstance(target, str | PathLike):
        return Command(command_words(str(target)), stream)
    if isinstance(target, list | tuple) and target and all(isinstance(word, str) for word in target):
        return Command(target, stream)
    if callable(target):
        return Function(target, stream)
    raise SpecError(
        f"an audit is of a protocol, a channel, a survey, a function or a command, not {type(target).__name__}"
    )


def command_words(line: str) -> list[str]:
    """The words of a command line."""
    try:
        words = shlex.split(line)
    except ValueError as wrong:
        raise SpecError(f"the command {line!r} cannot be read: {str(wrong).lower()}") from None
    if not words:
        raise SpecError("a program is a command line, and this one is empty")
    return words


def _judged(
    subject: str, claim: Fraction, found: Found, samples: int, level: float, count: int, notes: tuple[str, ...] = ()
) -> Audit:
    """The verdict on what samples show."""
    epsilon, alpha = float(claim), 1 - level
    common, doubt = found.common, None if found.same else found.doubt(epsilon)
    powerful = common.guess >= _EXPLAINED * epsilon and common.weakest >= _SEEN * epsilon
    visible = None if found.same or not powerful else common.visible(epsilon)
    rarest = None if found.same else common.rarest(epsilon, alpha)
    more: int | None = None
    if found.lower > epsilon:
        verdict = VIOLATED
    elif doubt is not None:
        verdict, found, more = UNDECIDED, doubt, doubt.needed(epsilon)
    elif common.lower >= _ENOUGH * epsilon and visible is not None:
        verdict, found = CLEARED, common
    else:
        verdict, found = UNDECIDED, common
        goal = _ENOUGH if common.counts[1] else _EXPLAINED
        more = common.needed(goal * epsilon) if powerful or common.counts[1] == 0 else None
        if powerful and common.lower >= _ENOUGH * epsilon:  # honest, as it seems, but no liar would show
            more = common.to_see(epsilon)
    said = [
        f"{count:,} inputs were tried with {samples:,} samples each of the two that are easiest to distinguish",
        *notes,
    ]
    if verdict == VIOLATED and not found.same:
        said.append(
            f"chance alone finds at most {100 * (1 - level):.3g} of 100 honest clients guilty: another audit, or a "
            "higher confidence level, tells a slight excess from chance"
        )
    if verdict != VIOLATED and doubt is not None:
        right, wrong = doubt.counts
        said.append(
            f"reports that only one input was seen to send speak for their input {right:,} times, and against it "
            f"{wrong:,} times: too few to accuse anybody, and too many to clear"
        )
    if common.weakest < _SEEN * epsilon:
        said.append("for some inputs no telling event was found: the audit is blind for them")
    return Audit(
        subject,
        epsilon,
        verdict,
        "samples",
        found.lower,
        smallest_visible=visible,
        rarest_visible=rarest if verdict == CLEARED else None,
        pair=(_shown(found.pair[0]), _shown(found.pair[1])),
        event=found.event,
        level=level,
        samples=samples,
        more=more,
        notes=tuple(said),
    )


def _shown(value: Any) -> str:
    """An input in words.

    >>> _shown({"sex": "f", "age": Fraction(20)}), _shown(frozenset()), _shown(["yes", "no"]), _shown(24 / 17)
    ('sex=f, age=20', 'none of them', 'yes, no', '1.41176')
    """
    text = _in_words(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _in_words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={_in_words(one)}" for key, one in value.items()) or "none of them"
    if isinstance(value, set | frozenset):
        return " and ".join(sorted(map(_in_words, value))) or "none of them"
    if isinstance(value, list | tuple):
        return ", ".join(map(_in_words, value))
    if isinstance(value, float | np.floating) or (isinstance(value, Fraction) and value.denominator > 1):
        return f"{float(value):.6g}"
    return str(value)


# -- protocols -----------------------------------------------------------------------------------------


def _answers(protocol: Protocol) -> list[Any]:
    """The answers of a protocol's domain that an audit tries: all of them where they are few enough."""
    return list(islice(_every_answer(protocol), _SOME_INPUTS))


def _of_some(found: Audit, protocol: Protocol, tried: int) -> Audit:
    """An audit that says of how many of a protocol's answers it is."""
    domain = protocol.domain
    size = domain.size if isinstance(domain, ListedDomain) else None
    if size is None and _can_list(protocol):
        size = protocol.law().input_count
    return found if size is not None and tried >= size else replace(found, tried=tried, answers=size)


def _every_answer(protocol: Protocol) -> Iterator[Any]:
    """Every answer, as the domain lists them, not as the protocol says; of what cannot be listed, some."""
    domain = protocol.domain
    if isinstance(domain, ListedDomain):
        yield from domain.labels
        return
    if isinstance(domain, Interval):  # numbers between two positions, too
        low, high = domain.ends
        yield from (low + (high - low) * part / 17 for part in range(1, 17))
    try:
        yield from (domain.answer(label) for label, _ in protocol.law().inputs())
    except ChannelError:
        yield from _made_up(domain)


def _made_up(domain: Any) -> Iterator[Any]:
    """Some answers of a domain that cannot be listed."""
    yield domain.example
    for number in range(256):
        for made in (f"value {number}", number, *(format(number, "02x") * width for width in (1, 2, 4, 8, 16, 32))):
            try:
                domain.encode_one(made)
            except DomainError:
                continue
            yield made
    items = getattr(domain, "items", None)
    if isinstance(items, ListedDomain):  # sets
        for size in (1, 2, 3):
            for chosen in islice(combinations(items.labels[:_SOME_INPUTS], size), _SOME_INPUTS):
                with suppress(DomainError):
                    domain.encode_one(list(chosen))
                    yield list(chosen)


def _of_protocol(
    protocol: Protocol, epsilon: exact.Number | None, samples: int, level: float, seed: int | None
) -> Audit:
    claim = protocol.epsilon if epsilon is None else _claim(epsilon)
    subject = f"{protocol.name} for {protocol.domain.short}"
    promise = protocol.guarantee
    if promise.relation != ANY or promise.delta or protocol.law().clear:
        return _of_relation(protocol, claim, subject, samples, level, seed)
    listed = list(islice(_every_answer(protocol), MOST_RUNS + 1))
    whole = isinstance(protocol.domain, ListedDomain) or _can_list(protocol)
    complete = whole and len(listed) <= MOST_RUNS
    answers = listed if complete else listed[:_SOME_INPUTS]
    odd = disagreement(protocol, answers)
    if odd:
        return Audit(subject, float(claim), VIOLATED, "samples", math.inf, event=odd)
    few = complete and protocol.law().forms * len(answers) <= MOST_CELLS
    sets = of_members(protocol)
    choice = chosen_by(protocol, answers)
    mapped = mapped_by(protocol, answers) if sets is None else None
    if choice is not None and not few:
        return _of_choice(protocol, choice, claim, subject, answers, samples, level, seed)
    if mapped is not None and not few:
        return _of_mapped(protocol, mapped, claim, subject, answers, samples, level, seed)
    notes = ["the report of one answer was followed through the code, byte by byte"]
    if not complete:
        notes.append(f"{len(answers):,} answers were looked at; the others were not")
    elif isinstance(protocol.domain, Interval):
        notes.append(f"{len(answers):,} numbers were looked at, with both ends; those between them were not")
    try:
        every: Worst | None = None
        if not few:
            every = of_hidden(protocol, listed, MOST_RUNS) if sets is None else sets()
        if every is not None:
            method, ratio, reached, pair, rules = "structure", every.ratio, every.reached, every.pair, every.rules
            complete, notes = True, []
        else:
            method, ratio, reached, pair, rules = _followed(protocol, answers)
    except DomainError as wrong:
        event = f"an answer of its domain is refused: {wrong}"
        return Audit(subject, float(claim), VIOLATED, "samples", math.inf, event=event)
    except TooManyRuns as why:
        if choice is not None:
            return _of_choice(protocol, choice, claim, subject, answers, samples, level, seed)
        if mapped is not None:
            return _of_mapped(protocol, mapped, claim, subject, answers, samples, level, seed)
        leak = _leak(protocol, answers, claim, subject, seed)
        if leak is not None:
            return leak
        bits = None if seed is None else Simulation(seed)
        spec = protocol if complete and hasattr(protocol, "support") else None
        tried = answers[:_SOME_INPUTS]
        found = search(Batches(protocol, bits), tried, samples, level, spec, seed=seed)
        judged = _judged(subject, claim, found, samples, level, len(tried), (f"exact was not possible: {why}",))
        return _of_some(judged, protocol, len(tried))
    known = math.inf if isinstance(ratio, float) else exact.log(ratio)
    over = isinstance(ratio, float) or not exp_at_least(claim, ratio)
    said = ""
    if not over:
        leak = _leak(protocol, answers, claim, subject, seed)
        if leak is not None:
            return leak
        said = (
            f"whole columns of answers are drawn by faster code: {_COLUMN_SAMPLES:,} samples of it per answer, and of "
            "single reports from the system's source, do not contradict the claim, and `deniable conformance` compares "
            "its law"
        )
    match protocol.law().structure:
        case Stages() as stages:
            state = _of_state(protocol, stages, subject, answers)
            if state.verdict == VIOLATED:
                return state
            rules = (*rules, *state.notes)
    verdict = CLEARED if not over else VIOLATED if reached else UNDECIDED
    found_out = Audit(
        subject,
        float(claim),
        verdict,
        method,
        known if reached else 0.0,
        exact=known if reached and complete else None,
        smallest_visible=float(claim) if complete else None,
        pair=(_shown(answers[pair[0]]), _shown(answers[pair[1]])) if notes else None,
        notes=(*notes, *rules, *([said] if said else [])),
    )
    return found_out if complete else _of_some(found_out, protocol, len(answers))


def _of_state(protocol: Protocol, stages: Stages, subject: str, answers: Sequence[Any]) -> Audit:
    """What a device keeps, from which it draws all its reports: a value that never changes tells no more than that."""
    claim = stages.forever
    try:
        method, ratio, reached, pair, _ = _followed(protocol, answers, stages.state, protocol.law().kept.state_forms)
    except TooManyRuns as why:
        said = f"what a device keeps could not be followed, so `forever` ({epsilon_text(claim)}) was not tested: {why}"
        return Audit(subject, float(claim), UNDECIDED, "structure", 0.0, notes=(said,))
    known = math.inf if isinstance(ratio, float) else exact.log(ratio)
    over = isinstance(ratio, float) or not exp_at_least(claim, ratio)
    said = (
        "what a device keeps, and draws all reports of an answer from, was followed as well: its "
        f"{'exact epsilon is' if reached else 'epsilon is at most'} {known:.6g}, and `forever` is {epsilon_text(claim)}"
    )
    return Audit(
        subject,
        float(claim),
        CLEARED if not over else VIOLATED if reached else UNDECIDED,
        method,
        known if reached else 0.0,
        exact=known if reached else None,
        pair=(_shown(answers[pair[0]]), _shown(answers[pair[1]])),
        event="" if not over else "what a device keeps, and draws all its reports from, tells more than `forever`",
        notes=(said,),
    )


def _can_list(protocol: Protocol) -> bool:
    try:
        return protocol.law().input_count >= 0
    except ChannelError:
        return False


def _followed(
    protocol: Protocol,
    answers: Sequence[Any],
    drawn: Callable[[Any, Any], Any] | None = None,
    forms: int | None = None,
) -> tuple[str, Ratio, bool, tuple[int, int], tuple[str, ...]]:
    """The exact ratio between these answers: by enumeration where that is small, else by structure.

    The ratio of one report, or of something else that is `drawn` for an answer and has `forms` forms.
    """
    draw = protocol.draw if drawn is None else drawn

    def sent(answer: Any) -> Callable[[Any], Any]:
        return partial(draw, protocol.domain.encode_one(answer))

    def enumerated(most: int) -> tuple[str, Ratio, bool, tuple[int, int], tuple[str, ...]]:
        laws, left = [], most
        for answer in answers:
            found = exhaust(sent(answer), most_runs=min(left, MOST_CELLS))
            left -= found.runs
            laws.append(found.law)
        return "enumeration", *_largest(laws), ()

    few = (protocol.law().forms if forms is None else forms) * len(answers) <= MOST_CELLS
    with suppress(NumberError):  # more forms than it says, or many ways to the same ones: structure is faster then
        if few:
            return enumerated(_QUICK_RUNS)
    try:
        return _by_structure([sent(answer) for answer in answers])
    except TooManyRuns as why:
        if not few:
            raise
        try:
            return enumerated(len(answers) * MOST_CELLS)
        except NumberError:
            raise why from None


def _by_structure(
    devices: Sequence[Callable[[Any], Any]],
) -> tuple[str, Ratio, bool, tuple[int, int], tuple[str, ...]]:
    runs: list[list[Run]] = []
    left = MOST_RUNS
    for device in devices:
        try:
            runs.append(follow(device, left))
        except (TypeError, IndexError, AttributeError, NumberError) as wrong:
            raise TooManyRuns(f"it does with a draw what symbols do not allow ({type(wrong).__name__})") from None
        left -= len(runs[-1])
        if left < 1:
            raise TooManyRuns(f"the code has more than {MOST_RUNS:,} ways through it")
    worst = largest_ratio(runs)
    return "structure", worst.ratio, worst.reached, worst.pair, worst.rules


def _of_choice(
    protocol: Protocol,
    choice: Choice,
    claim: Fraction,
    subject: str,
    answers: Sequence[Any],
    samples: int,
    level: float,
    seed: int | None,
) -> Audit:
    """Audit a protocol whose report says its group: each group's protocol is judged, and the largest ratio counts."""
    if choice.place is not None:  # what is sent in clear distinguishes answers, so only answers that agree in it count
        heads = [tuple(protocol.domain.encode_one(answer)[: choice.clear]) for answer in answers]
        answers = [answer for answer, head in zip(answers, heads, strict=True) if head == heads[-1]]
    said = (
        f"{len(choice.members):,} {'group' if len(choice.members) == 1 else 'groups'}: "
        "the report begins with the number of one, "
        + (
            "which is drawn before the answer is looked at"
            if choice.place is None
            else "which says what is sent in clear"
        )
        + ", and goes on with a report of its own protocol. This is the code of `Choice`, which the kind does not "
        "change; so the largest ratio is that of a group"
    )
    return _of_inner(protocol, choice.members, said, claim, subject, answers, samples, level, seed)


def _of_mapped(
    protocol: Protocol,
    mapped: Mapped,
    claim: Fraction,
    subject: str,
    answers: Sequence[Any],
    samples: int,
    level: float,
    seed: int | None,
) -> Audit:
    """Audit a protocol that computes an answer of another one: that one is judged."""
    said = (
        f"any answer becomes one of {mapped.inner.name}, which draws the report. This is the code of `Mapped`, which "
        "the kind does not change; so the largest ratio is that of this protocol, if each of its answers can come up"
    )
    return _of_inner(protocol, [mapped.inner], said, claim, subject, answers, samples, level, seed)


def _of_inner(
    protocol: Protocol,
    members: Sequence[Protocol],
    said: str,
    claim: Fraction,
    subject: str,
    answers: Sequence[Any],
    samples: int,
    level: float,
    seed: int | None,
) -> Audit:
    """Audit a protocol by those that draw its reports."""
    inner = {member.fingerprint: member for member in members}
    parts = [_of_protocol(one, claim, samples, level, seed) for one in inner.values()]
    verdicts = {part.verdict for part in parts}
    verdict = VIOLATED if VIOLATED in verdicts else UNDECIDED if UNDECIDED in verdicts else CLEARED
    known = [part.exact for part in parts if part.exact is not None]
    complete = len(known) == len(parts)
    methods = dict.fromkeys(["structure", *("samples" for part in parts if "samples" in part.method)])
    leak = _leak(protocol, answers, claim, subject, seed)
    if leak is not None:
        return leak
    seen = [part.smallest_visible for part in parts if part.smallest_visible is not None]
    return Audit(
        subject,
        float(claim),
        verdict,
        " and ".join(methods),
        max(part.lower for part in parts),
        exact=max(known) if complete else None,
        smallest_visible=max(seen) if len(seen) == len(parts) else None,
        level=None if complete else level,
        samples=None if complete else samples,
        more=max((part.more for part in parts if part.more is not None), default=None),
        notes=(said, *(_of_part(part) for part in parts)),
    )


def _of_part(part: Audit) -> str:
    """The verdict on a group, with the rules that were used."""
    rules = [note for note in part.notes if note and not note.startswith(("the report of one", "columns of"))]
    return f"{part}{': ' if rules else ''}{'; '.join(rules)}"


def _largest(laws: Sequence[Mapping[bytes, Fraction]]) -> tuple[Ratio, bool, tuple[int, int]]:
    best: Ratio = Fraction(1)
    pair = (0, 0)
    for report in set().union(*laws):
        column = [law.get(report, Fraction(0)) for law in laws]
        high, low = max(column), min(column)
        ratio: Ratio = high / low if low else math.inf
        if ratio > best:
            best, pair = ratio, (column.index(high), column.index(low))
    return best, True, pair


def _leak(protocol: Protocol, answers: Sequence[Any], claim: Fraction, subject: str, seed: int | None) -> Audit | None:
    """What columns of answers show, which other code draws, and single reports: a large leak would be seen at once."""
    bits = None if seed is None else Simulation(seed)
    some = [answers[0], *answers[1 :: max(1, len(answers) // _COLUMNS)][: _COLUMNS - 1]]
    for words, client in (("single reports", Devices(protocol, bits)), ("whole columns", Batches(protocol, bits))):
        found = search(client, some, _COLUMN_SAMPLES, _COLUMN_LEVEL, seed=seed)
        if found.lower > float(claim):
            return _judged(subject, claim, found, _COLUMN_SAMPLES, _COLUMN_LEVEL, len(some), (f"of {words}",))
    return None


class Devices(Client):
    """Devices that draw one report each, from the system's source; with a simulation its bytes are those of that."""

    def __init__(self, protocol: Protocol, bits: Simulation | None = None) -> None:
        self.protocol, self.bits = protocol, bits

    def sample(self, value: Any, count: int) -> list[bytes]:
        with nullcontext() if self.bits is None else replayed(self.bits):
            return [self.protocol.report(value) for _ in range(count)]


def _of_relation(
    protocol: Protocol, claim: Fraction, subject: str, samples: int, level: float, seed: int | None
) -> Audit:
    """Guarantees about other pairs than any two answers, or with a delta: from the whole channel, or whole streams."""
    over = protocol.guarantee.over
    method = "enumeration"
    ratio: Ratio
    rules: tuple[str, ...] = ()
    answers = list(islice(_every_answer(protocol), _SOME_INPUTS))
    odd = disagreement(protocol, answers)
    if odd:
        return Audit(subject, float(claim), VIOLATED, "samples", math.inf, event=odd)
    if protocol.guarantee.relation == STREAM:
        try:
            method, ratio, rules = _of_streams(protocol)
        except (TooManyRuns, NumberError) as why:
            return Audit(subject, float(claim), UNDECIDED, "enumeration", 0.0, notes=(str(why),))
    else:
        try:
            if next(iter(protocol.law().related()), None) is None:
                none = f"the guarantee relates no two inputs ({over}), so that there is nothing to compare"
                return Audit(subject, float(claim), UNDECIDED, "enumeration", 0.0, notes=(none,))
            ratio = related_factor(_channel(protocol), protocol.law().related(), protocol.guarantee.delta)
        except ChannelError as why:
            some = list(islice(_every_answer(protocol), MOST_RUNS))
            choice = chosen_by(protocol, some)
            if protocol.law().clear and not protocol.guarantee.delta and choice is not None:
                found = _of_choice(protocol, choice, claim, subject, some, samples, level, seed)
                return replace(found, notes=(*found.notes, f"sent in clear: {', '.join(protocol.law().clear)}"))
            return Audit(subject, float(claim), UNDECIDED, "enumeration", 0.0, notes=(str(why),))
    known = math.inf if isinstance(ratio, float) else exact.log(ratio)
    kept = not isinstance(ratio, float) and exp_at_least(claim, ratio)
    verdict = CLEARED if kept else VIOLATED
    notes = [f"the pairs are those of its guarantee: {over}", *rules]
    if protocol.law().clear:
        notes.append(f"sent in clear, without noise: {', '.join(protocol.law().clear)}")
    return Audit(subject, float(claim), verdict, method, known, known, float(claim), notes=tuple(notes))


def _of_streams(protocol: Protocol) -> tuple[str, Ratio, tuple[str, ...]]:
    """The ratio of a device's reports over all epochs, and of a report by `privatize`, which other code draws."""
    domain = protocol.domain
    match protocol.law().structure:
        case Stream() as device if isinstance(domain, ListedDomain):
            labels = domain.labels
        case _:
            raise TooManyRuns("its law does not say how a device goes from epoch to epoch (`Stream`)")
    for seed in range(_AGREE):
        values = [(seed + epoch * epoch // 3) % len(labels) for epoch in range(1, device.epochs + 1)]
        expected = _steps(device, values, device.step_encoded, Simulation(seed))
        answers = [labels[value] for value in values]
        if _steps(device, answers, device.step, Simulation(seed)) != expected:
            raise TooManyRuns("step() sends other bytes than step_encoded()")
        with replayed(Simulation(seed)):
            if _steps(device, values, device.step_encoded, None) != expected:
                raise TooManyRuns("step_encoded() sends other bytes from the system's bits than from equal bits")
    worst = largest_ratio_of_streams(device.begin, device.step_encoded, len(labels), device.epochs, device.changes)
    return "structure", max(worst.ratio, _followed(protocol, labels)[1]), worst.rules


def _steps(device: Stream, given: Sequence[Any], step: Callable[..., Any], bits: Simulation | None) -> list[Any]:
    """What a device keeps and sends over the epochs."""
    state, sent = device.begin(bits), []
    for epoch, one in enumerate(given, 1):
        sent.append(step(state, one, epoch, bits))
        state = sent[-1][0]
    return sent


def _channel(protocol: Protocol) -> Channel:
    """The law of every answer. What is drawn and not looked at makes no branches here, which some laws need."""
    laws: list[dict[str, Fraction]] = []
    labels = []
    for label, value in protocol.law().inputs():
        try:
            runs = follow(partial(protocol.law().sent, value), MOST_RUNS)
        except (TypeError, IndexError, AttributeError, NumberError):
            return protocol.channel()
        if any(run.choices or len(run.spans) > 1 or any(form > 1 for form in run.forms) for run in runs):
            return protocol.channel()
        law: dict[str, Fraction] = {}
        for run in runs:
            sent, size = sum(form << place for place, form in enumerate(run.forms)), len(run.forms) // 8
            for span in run.spans or (Span(0, 0, 0, 1),):
                for drawn in range(span.low, span.high):
                    report = (sent | drawn << 8 * span.byte).to_bytes(size, "little").hex()
                    share = run.weight if span.high - span.low == 1 else run.weight / (span.high - span.low)
                    law[report] = law.get(report, Fraction(0)) + share
        laws.append(law)
        labels.append(label)
    outputs = sorted(set().union(*laws))
    return Channel([[law.get(output, Fraction(0)) for output in outputs] for law in laws], labels, outputs)


def _of_channel(channel: Channel, epsilon: exact.Number | None) -> Audit:
    if epsilon is None:
        raise SpecError("an audit of a channel needs the claimed epsilon")
    claim = _claim(epsilon)
    ratio = channel.ratio
    kept = not isinstance(ratio, float) and exp_at_least(claim, ratio)
    known = channel.epsilon
    return Audit("channel", float(claim), CLEARED if kept else VIOLATED, "enumeration", known, known, float(claim))


# -- surveys -------------------------------------------------------------------------------------------


def _of_survey(survey: Any, samples: int, level: float, seed: int | None, progress: Progress | None) -> Audit:
    """Each question, and all of them together: a submission answers every question, so epsilons add up."""
    parts = []
    for place, question in enumerate(survey.questions):
        if progress is not None:
            progress(f"checking {question.id}", place / len(survey.questions))
        found = _of_protocol(question.protocol, None, samples, level, seed)
        parts.append(_renamed(found, f"{question.id}: {found.subject}"))
    verdicts = {part.verdict for part in parts}
    verdict = VIOLATED if VIOLATED in verdicts else UNDECIDED if UNDECIDED in verdicts else CLEARED
    known = [part.exact for part in parts]
    total = None if any(one is None for one in known) else float(np.sum([one for one in known if one is not None]))
    claim = sum((question.protocol.epsilon for question in survey.questions), Fraction(0))
    methods = " and ".join(dict.fromkeys(part.method for part in parts))
    return Audit(
        f"survey {survey.name}",
        float(claim),
        verdict,
        methods,
        float(sum(part.lower for part in parts)),
        exact=total,
        smallest_visible=float(claim) if total is not None else None,
        notes=(f"one submission answers every question, so their epsilons add up to {epsilon_text(claim)}",),
        parts=tuple(parts),
    )


def _renamed(found: Audit, subject: str) -> Audit:
    return replace(found, subject=subject)
