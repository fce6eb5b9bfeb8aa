"""A lower bound on a client's epsilon from what it sends: for any client in any language, without its source.

Chosen     on one part of the samples: the two inputs and the event that distinguishes them best. Events are about the
           bytes of a report (`events`), and are compared by the bound that will judge them, far beyond chance. With a
           spec there is one more event: "the report supports this answer and not that one", and a tenth of the samples
           finds the answers
Bounded    on the other part, where nothing is chosen, in one of two ways; the first part says which promises more
           One way    ln(p / p') from both counts. Nine tenths of the error goes to the event, one tenth to the best
                      event of the opposite direction
           Both ways  an event that speaks for the first input, and another one for the second. A coin per sample says
                      which input it is of. If the client keeps epsilon, reports speak for their input at most
                      e^epsilon times as often as against it: P(A | v) + P(B | w) <= e^epsilon (P(A | w) + P(B | v)). So
                      among those that speak the number that is right is binomial, and one bound of Clopper and
                      Pearson's with all of the error is enough. Every sample counts twice
Rare       reports that only one input was seen to send (`rare`): where they promise more than the event, they are
           bounded as well, on samples of their own; each of the two gets half of the error
Visible    the smallest epsilon of a client that would be found out in nine of ten audits of this size, by this event;
           and how rare a report may be that only one input sends
Power      an audit that finds no event with at least half of the claimed epsilon has no power: it clears nobody
Client     a function of an input; with `stream=True` a function that makes a device, which is called once per epoch;
           or a command, which reads one value per line and writes one report per line in hexadecimal digits. With
           streams, an empty line begins the next device, and is answered by an empty line
Source     Jagielski, Ullman and Oprea 2020; Arcolezi and Gambs 2024 (LDP-Auditor); Bichsel et al. 2021 (DP-Sniper)
"""

from __future__ import annotations

import math
import os
import signal
import struct
import subprocess
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deniable.audit import rare
from deniable.audit.bounds import (
    careful_ends,
    careful_odds,
    careful_ratio,
    expected_lower,
    lower_bound,
    lower_bound_of_odds,
    split_error,
)
from deniable.audit.events import Event, Feature, Floats, Held, Rows, Sample, features, spoken
from deniable.errors import NumberError, ReportError
from deniable.protocols import Protocol, Reports
from deniable.randomness import Bits

MOST_SAMPLES = 10**8
_PATIENCE = 30.0
_HEX = frozenset("0123456789abcdefABCDEF")
_LITERALS, _BEAM, _PAIRS, _DEPTH = 48, 4, 4, 3
_GLANCE, _KEPT = 2000, 160
"""Samples of each input on which features are looked at first, and how many features are then counted on all."""
_CHUNK = 512
_OTHERS = 4
_SAME = 64
_OPPOSITE, _WORTH = 0.1, 0.1
"""The part of the error that the opposite event gets; and the guess from which on both ways are looked at together."""
_DOUBT = 0.1
"""An honest client sends what looks as bad as this with this probability at most: too often to accuse anybody."""
NINE_OF_TEN = 1.2816


# -- clients -------------------------------------------------------------------------------------------


class Client(ABC):
    """Something that sends a report for an input."""

    steps: int = 1
    """How many reports of equal length one sample is made of, where that is known."""

    @abstractmethod
    def sample(self, value: Any, count: int) -> list[bytes] | Rows:
        """So many reports of one input, each by a device of its own."""

    def twice(self, value: Any, count: int) -> tuple[list[bytes], list[bytes]] | None:
        """What two processes send that begin at the same time; None where that cannot be tried."""
        return None

    def close(self) -> None:  # noqa: B027  # most clients start nothing
        """End what was started."""


class Function(Client):
    """A Python function: `function(value)`, or of streams `make()(value)` once per epoch."""

    def __init__(self, function: Callable[..., Any], stream: bool = False) -> None:
        self.function, self.stream = function, stream

    def _one(self, value: Any) -> bytes:
        if not self.stream:
            return as_bytes(self.function(value))
        device = self.function()
        sent = [as_bytes(device(one)) for one in value]
        self.steps = len(sent)
        return b"".join(sent)

    def sample(self, value: Any, count: int) -> list[bytes]:
        return [self._one(value) for _ in range(count)]

    def twice(self, value: Any, count: int) -> tuple[list[bytes], list[bytes]] | None:
        if not hasattr(os, "fork"):
            return None
        pipes = []
        for _ in range(2):
            reading, writing = os.pipe()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if child == 0:
                try:
                    sent = "\n".join(one.hex() for one in self.sample(value, count))
                    os.write(writing, sent.encode()[: 1 << 15])
                finally:
                    os._exit(0)
            os.close(writing)
            pipes.append((child, reading))
        found = []
        for child, reading in pipes:
            with os.fdopen(reading, "rb") as file:
                found.append([bytes.fromhex(line) for line in file.read().decode().split("\n")[:-1]])
            os.waitpid(child, 0)
        return found[0], found[1]


class Batches(Client):
    """A protocol of this package, privatizing whole columns."""

    def __init__(self, protocol: Protocol, bits: Bits | None = None) -> None:
        self.protocol, self.bits = protocol, bits

    def sample(self, value: Any, count: int) -> Rows:
        return self.protocol.privatize([value] * count, self.bits).array


class Command(Client):
    """A program that stays: one value per line in, one report in hexadecimal digits per line out, flushed."""

    def __init__(
        self,
        arguments: Sequence[str],
        stream: bool = False,
        patience: float = _PATIENCE,
        heard: Callable[[int], None] | None = None,
    ) -> None:
        self.arguments, self.stream, self.patience = list(arguments), stream, patience
        self.heard = heard
        """Called with the number of lines of each piece that was answered."""
        self._process: subprocess.Popen[str] | None = None

    def _start(self) -> subprocess.Popen[str]:
        try:
            return subprocess.Popen(
                self.arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                bufsize=-1,
                start_new_session=True,  # what it starts itself is ended with it
            )
        except (OSError, ValueError) as wrong:
            why = getattr(wrong, "strerror", None) or wrong
            raise ReportError(f"{self.arguments[0]!r} cannot be started: {why}") from None

    def _asked(self, process: subprocess.Popen[str], lines: list[str]) -> list[str]:
        """The lines that a process answers, one for each."""
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, answers = process.stdin, []

        def write() -> None:
            with suppress(OSError, ValueError):  # if the process has ended, the reader finds out
                for start in range(0, len(lines), _CHUNK):
                    stdin.write("".join(line + "\n" for line in lines[start : start + _CHUNK]))
                    stdin.flush()

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        try:
            with _Watch(process, self.patience) as watch:
                for number in range(len(lines)):
                    line = process.stdout.readline()
                    watch.last = time.monotonic()
                    if not line:
                        why = self._why(process, watch)
                        raise ReportError(f"the client answered {number:,} of {len(lines):,} lines, {why}")
                    answers.append(line.strip())
                    if self.heard is not None and len(answers) % _CHUNK == 0:
                        self.heard(_CHUNK)
        except BaseException:
            _kill(process)  # it may wait with a full pipe, and the writer with it
            raise
        writer.join()
        return answers

    def _why(self, process: subprocess.Popen[str], watch: _Watch) -> str:
        """Why a process answers no more."""
        if watch.late:
            empty = ", an empty one by an empty line" if self.stream else ""
            return (
                f"and then nothing for {self.patience:g} s: every line is answered at once{empty}; flush the output, "
                "and do not read ahead"
            )
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(1)
            return f"and then ended {f'with exit status {code}' if code >= 0 else f'by signal {-code}'}"
        return "and then closed its output"

    def _sampled(self, process: subprocess.Popen[str], value: Any, count: int) -> list[bytes]:
        device = [_line(one) for one in value] if self.stream else [_line(value)]
        if self.stream:
            self.steps = len(device)
            device.append("")
        answers = self._asked(process, device * count)
        for number, (given, answer) in enumerate(zip(device * count, answers, strict=True), 1):
            if bool(answer) != bool(given) or len(answer) % 2 or not _HEX.issuperset(answer):
                said = f"{answer[:40]!r}" if answer else "empty"
                wanted = "a report is an even number of hexadecimal digits, and nothing else is written"
                if not given:
                    wanted = "an empty line, which begins the next device, is answered by an empty line"
                raise ReportError(f"line {number:,} of the client is {said}: {wanted}")
        return [bytes.fromhex("".join(answers[at : at + len(device)])) for at in range(0, len(answers), len(device))]

    def sample(self, value: Any, count: int) -> list[bytes]:
        if self._process is None:
            self._process = self._start()
        return self._sampled(self._process, value, count)

    def twice(self, value: Any, count: int) -> tuple[list[bytes], list[bytes]] | None:
        both: list[subprocess.Popen[str]] = []
        try:
            both = [self._start(), self._start()]
            first, second = (self._sampled(process, value, count) for process in both)
            for process in both:
                _check_silent(process)
        finally:
            for process in both:
                _end(process)
        return first, second

    def close(self) -> None:
        if self._process is not None:
            _end(self._process)
            self._process = None


class _Watch:
    """Ends a process that has been silent for too long."""

    def __init__(self, process: subprocess.Popen[str], patience: float) -> None:
        self.process, self.patience = process, patience
        self.last, self.late = time.monotonic(), False
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._done.wait(min(0.25, self.patience / 4)):
            if time.monotonic() - self.last > self.patience:
                self.late = True
                _kill(self.process)
                return

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


def _check_silent(process: subprocess.Popen[str]) -> None:
    """Refuse a process that writes more lines than it was asked for: they would be taken as answers to other values."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(OSError):
        process.stdin.close()
    with _Watch(process, 1.0):
        more = process.stdout.readline()
    if more:
        raise ReportError(
            f"the client writes more lines than it is given, such as {more.strip()[:40]!r}: one per value"
        )


def _kill(process: subprocess.Popen[str]) -> None:
    """End a process and all that it has started."""
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _end(process: subprocess.Popen[str]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    try:
        process.wait(1)
    except subprocess.TimeoutExpired:
        _kill(process)
        process.wait()


def _line(value: Any) -> str:
    text = str(value)
    if not text or "\n" in text or "\r" in text:
        raise ReportError("a value for a command is one line of text that is not empty")
    return text


def as_bytes(sent: Any) -> bytes:
    """Whatever a client returns, as bytes: equal for equal reports."""
    if isinstance(sent, bytes | bytearray | memoryview):
        return bytes(sent)
    if isinstance(sent, Reports):
        return sent.to_bytes()
    if isinstance(sent, bool | np.bool_):
        return bytes([int(sent)])
    if isinstance(sent, int | np.integer):
        number = int(sent)
        return number.to_bytes(max(1, -(-(number.bit_length() + (number < 0)) // 8)), "little", signed=number < 0)
    if isinstance(sent, float | np.floating):
        return struct.pack("<d", float(sent))
    if isinstance(sent, str):
        return sent.encode()
    if isinstance(sent, np.ndarray):
        return np.ascontiguousarray(sent).tobytes()
    if isinstance(sent, list | tuple):
        parts = [as_bytes(one) for one in sent]
        even = len({len(part) for part in parts}) == 1
        return b"".join(part if even else len(part).to_bytes(4, "little") + part for part in parts)
    raise ReportError(f"a client returns bytes, numbers, text or lists of them, not {type(sent).__name__}")


# -- the audit -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """What the samples show."""

    lower: float
    """The client's epsilon is at least this, with the stated confidence; 0 where nothing is seen."""
    pair: tuple[Any, Any]
    event: str
    counts: tuple[int, int]
    judged: int
    """Samples of each of the two inputs on which the event was bounded."""
    alpha: float
    same: bool = False
    """Whether two processes sent the same reports."""
    both: bool = False
    """Whether the counts are those of reports that speak for and against their input, of both inputs."""
    weakest: float = math.inf
    """The smallest careful bound between other inputs: if it is small, the audit is blind to some of them."""
    choosing: int = 0
    """Samples of each input on which the event was chosen."""
    is_rare: bool = False
    """Whether it is about reports that only one input was seen to send beforehand."""
    beside: Found | None = None
    """What else was judged on samples of its own: rare reports beside the most telling event, or the other way."""

    @property
    def common(self) -> Found:
        """What the most telling event shows, whatever rare reports do."""
        return self.beside if self.is_rare and self.beside is not None else self

    def doubt(self, claim: float) -> Found | None:
        """Rare reports that speak against a client but are too few to accuse it; None if it has no such reports."""
        seldom = self if self.is_rare else self.beside
        return seldom if seldom is not None and lower_bound_of_odds(*seldom.counts, _DOUBT) > claim else None

    def rarest(self, claim: float, alpha: float) -> float | None:
        """The share of reports from which on nine of ten such audits find those that only one input sends."""
        return rare.rarest_visible(self.choosing, self.judged, alpha, claim)

    @property
    def guess(self) -> float:
        """The logarithm of the ratio of the two shares."""
        return _guess(*self.counts)

    @property
    def trials(self) -> int:
        """Samples that each of the two counts is of."""
        return 2 * self.judged if self.both else self.judged

    def visible(self, claim: float) -> float | None:
        """The smallest epsilon that nine of ten such audits would find out; None where there is no power."""
        n = self.judged
        p, q = (max(count, 1) / self.trials for count in self.counts)
        most = -math.log(q) if q < 1 else 0.0
        if p <= q:
            return None
        low, high = claim, min(most, 64.0) - 1e-9
        if high <= low or expected_lower(q * math.exp(high), q, n, self.alpha, NINE_OF_TEN, self.both) < claim:
            return None
        for _ in range(50):
            middle = (low + high) / 2
            seen = expected_lower(q * math.exp(middle), q, n, self.alpha, NINE_OF_TEN, self.both) >= claim
            low, high = (low, middle) if seen else (middle, high)
        return high

    def to_see(self, claim: float) -> int | None:
        """The number of samples of each input that would find out some client above the claim."""
        times = 1
        while (times := 2 * times) * self.judged <= MOST_SAMPLES:
            own, other = self.counts
            more = replace(self, counts=(times * own, times * other), judged=times * self.judged)
            if more.visible(claim) is not None:
                return 2 * times * self.judged
        return None

    def needed(self, goal: float) -> int | None:
        """The number of samples of each input for the bound to reach a goal, if the shares are the observed ones."""
        n = self.judged
        if self.is_rare:
            right, wrong = self.counts
            while lower_bound_of_odds(right, wrong, self.alpha) <= goal and n < MOST_SAMPLES:
                right, wrong, n = 2 * right, 2 * wrong, 2 * n
            return 2 * n if n < MOST_SAMPLES else None
        p, q = (max(count, 0.5) / self.trials for count in self.counts)
        p = min(p, 1 - 0.5 / self.trials)
        if self.counts[1] == 0:  # never seen: the bound grows with the logarithm of the samples
            more = math.exp(min(goal + 1.3 - math.log(p), 100.0))
            return int(2 * more) if more < 1e15 else None
        if math.log(p / q) <= goal * 1.0001:
            return None
        while n < MOST_SAMPLES**2:
            n *= 2
            if expected_lower(p, q, n, self.alpha, both=self.both) > goal:
                return 2 * n
        return None


def check_sizes(samples: int, level: float) -> None:
    """Refuse a number of samples or a confidence level that no audit works with."""
    if not 100 <= samples <= MOST_SAMPLES:
        raise NumberError(f"an audit takes from 100 to {MOST_SAMPLES:,} samples per input, not {samples}")
    if not 0.5 <= level < 1:
        raise NumberError("the confidence level of an audit lies between 0.5 and 1")


def search(
    client: Client,
    inputs: Sequence[Any],
    samples: int,
    level: float = 0.95,
    protocol: Protocol | None = None,
    processes: bool = False,
    seed: int | None = None,
) -> Found:
    """The best event between two of the inputs, bounded on samples that did not choose it.

    `seed` is that of the coins which say how many samples of either input are taken.
    """
    if len(inputs) < 2:
        raise NumberError("an audit compares inputs: give at least two")
    check_sizes(samples, level)
    both = client.twice(inputs[0], _SAME) if processes else None
    alpha = 1 - level
    if both is not None and both[0] == both[1] and len(set(both[0])) > 1 and len(both[0]) >= _SAME // 2:
        words = f"two processes that begin at the same time send the same {len(both[0])} reports"
        return Found(math.inf, (inputs[0], inputs[0]), words, (len(both[0]), 0), len(both[0]), alpha, same=True)
    known = protocol is not None and hasattr(protocol, "support")
    choosing = samples // 10 if known else samples // 2
    sent = [client.sample(value, choosing) for value in inputs]
    if protocol is not None:
        _check_form(protocol, sent)
    width = max(max(map(len, one), default=0) if isinstance(one, list) else one.shape[1] for one in sent)
    drawn = [Sample.of(one, max(1, width)) for one in sent]
    chosen = _best(drawn, _telling([sample.head(_GLANCE) for sample in drawn], client.steps))
    if known:  # a client may leak by other events than those of its spec: whatever tells more is bounded
        chosen = max(_from_spec(protocol, inputs, drawn), chosen, key=lambda one: one.score)
    random = np.random.default_rng(seed)
    judged = samples - choosing

    def again(pair: tuple[int, int], coins: bool) -> tuple[Sample, Sample]:
        """New samples of two inputs: a coin per sample chooses the input, or both have the same number."""
        taken = int(random.binomial(2 * judged, 0.5)) if coins else judged
        more = [client.sample(inputs[one], size) for one, size in zip(pair, (taken, 2 * judged - taken), strict=True)]
        if protocol is not None:
            _check_form(protocol, more)
        here, there = (Sample.of(one, max(1, width)) for one in more)
        return here, there

    seldom = rare.found(drawn, client.steps)
    if seldom is None or seldom.expected(judged) <= _expected(chosen, drawn, judged, alpha):
        return _common(chosen, drawn, inputs, again, judged, alpha)
    common = _common(chosen, drawn, inputs, again, judged, alpha / 2)
    counts = spoken(seldom.event, seldom.opposite, *again(seldom.pair, coins=True))
    found = replace(
        common,
        lower=max(0.0, lower_bound_of_odds(*counts, alpha / 2)),
        pair=(inputs[seldom.pair[0]], inputs[seldom.pair[1]]),
        event=f"{seldom.event.words}; for the other input, {seldom.opposite.words}",
        counts=counts,
        alpha=alpha / 2,
        both=True,
        is_rare=True,
    )
    return replace(found, beside=common) if found.lower > common.lower else replace(common, beside=found)


def _expected(chosen: _Chosen, drawn: Sequence[Sample], judged: int, alpha: float) -> float:
    """About what the bound of an event will be."""
    here, there = (drawn[one] for one in chosen.pair)
    times = judged / len(here)
    if chosen.opposite is not None and _speaks(chosen.event, chosen.opposite, here, there):
        right, wrong = spoken(chosen.event, chosen.opposite, here, there)
        return lower_bound_of_odds(round(times * right), round(times * wrong), alpha)
    own, other = (round(times * chosen.event.count(sample)) for sample in (here, there))
    return float(careful_ratio(own, other, judged, alpha / 2))


def _common(
    chosen: _Chosen,
    drawn: Sequence[Sample],
    inputs: Sequence[Any],
    again: Callable[[tuple[int, int], bool], tuple[Sample, Sample]],
    judged: int,
    alpha: float,
) -> Found:
    """The chosen event, bounded on new samples."""
    (first, second), event, opposite, weakest = chosen.pair, chosen.event, chosen.opposite, chosen.weakest
    choosing = len(drawn[first])
    both_ways = opposite is not None and _speaks(event, opposite, drawn[first], drawn[second])
    here, there = again(chosen.pair, both_ways)
    pair = (inputs[first], inputs[second])
    if both_ways and opposite is not None:
        counts = spoken(event, opposite, here, there)
        lower = max(0.0, lower_bound_of_odds(*counts, alpha))
        words = f"{event.words}; for the other input, {opposite.words}"
        return Found(lower, pair, words, counts, judged, alpha, both=True, weakest=weakest, choosing=choosing)
    best = -math.inf
    counts = (0, 0)
    for one, a, b, share, turned in (
        (event, here, there, 1 - _OPPOSITE, False),
        (opposite, there, here, _OPPOSITE, True),
    ):
        if one is None:
            continue
        # How the error is split is chosen on the first part as well.
        expected = [(one.count(sample) + 0.5) / (choosing + 1) for sample in (drawn[first], drawn[second])]
        p, q = expected[::-1] if turned else expected
        found = one.count(a), one.count(b)
        if turned and _guess(*found) <= best:  # a bound is never above the guess
            continue
        lower = lower_bound(*found, judged, alpha * share, split_error(p, q, judged, alpha * share))
        if lower > best or not turned:
            best, counts, event = lower, found, one
            pair = (inputs[second], inputs[first]) if turned else (inputs[first], inputs[second])
    part = alpha * (1 - _OPPOSITE)
    return Found(max(0.0, best), pair, event.words, counts, judged, part, weakest=weakest, choosing=choosing)


def _check_form(protocol: Protocol, sent: Sequence[list[bytes] | Rows]) -> None:
    """Refuse reports that do not fit the spec that a client says it follows."""
    width = protocol.report_bytes
    for some in sent:
        lengths = {some.shape[1]} if isinstance(some, np.ndarray) else set(map(len, some))
        for odd in lengths - {width}:
            raise ReportError(f"the client sends reports of {odd} bytes, and those of {protocol.name} have {width}")
        rows = Sample.of(some, width).rows
        if not protocol.valid(rows).all():
            shown = rows[~protocol.valid(rows)][0].tobytes().hex()[:32]
            raise ReportError(f"the client sends {shown}, which is not a report of {protocol.name}: follow its spec")


@dataclass(frozen=True)
class _Chosen:
    """Two inputs and the event that tells them apart, with that of the opposite direction."""

    pair: tuple[int, int]
    event: Event
    opposite: Event | None
    weakest: float
    score: float
    """A careful guess of what it tells."""


def _speaks(event: Event, opposite: Event, here: Sample, there: Sample) -> bool:
    """Whether reports that speak for either input tell more than those that speak for the first one."""
    one_way = careful_ratio(event.count(here), event.count(there), len(here))
    return bool(careful_odds(*spoken(event, opposite, here, there)) > max(float(one_way), _WORTH))


def _from_spec(protocol: Any, inputs: Sequence[Any], drawn: list[Sample]) -> _Chosen:
    """The pair of answers, and the event that one is supported and the other is not."""
    labels = [protocol.domain.encode_one(value) for value in inputs]

    def supported(sample: Sample) -> Held:
        held: Held = protocol.support(np.ascontiguousarray(sample.rows))[:, labels]
        return held

    held = [supported(sample) for sample in drawn]
    n, size = len(held[0]), len(inputs)
    own = np.array([[(one[:, v] & ~one[:, w]).sum() for w in range(size)] for v, one in enumerate(held)])
    other = np.array([[(held[w][:, v] & ~held[w][:, w]).sum() for w in range(size)] for v in range(size)])
    scores = np.maximum(careful_ratio(own, other, n), careful_odds(own + own.T, other + other.T))
    np.fill_diagonal(scores, -math.inf)
    v, w = np.unravel_index(int(scores.argmax()), scores.shape)

    def event(v: int, w: int) -> Event:
        def holds(sample: Sample) -> Held:
            found = supported(sample)
            both: Held = found[:, v] & ~found[:, w]
            return both

        return Event(((Feature(f"the report supports {inputs[v]!r} and not {inputs[w]!r}", holds), True),))

    weakest = float(np.log((own + 0.5) / (other + 0.5)).max(axis=1).min())
    return _Chosen((int(v), int(w)), event(int(v), int(w)), event(int(w), int(v)), weakest, float(scores[v, w]))


def _telling(drawn: list[Sample], steps: int) -> list[Feature]:
    """The features that tell inputs apart best, at a glance."""
    known = features(drawn, steps)
    low, high = _ends(drawn, known)
    best = (low.max(axis=0) - high.min(axis=0)).reshape(-1, 2).max(axis=1)
    return [known[place] for place in np.argsort(-best)[:_KEPT].tolist()]


def _ends(drawn: list[Sample], known: list[Feature]) -> tuple[Floats, Floats]:
    """For each input, and for each feature and its opposite: careful bounds of the logarithm of their share."""
    n = len(drawn[0])
    counts = np.array([[int(feature.holds(sample).sum()) for feature in known] for sample in drawn])
    return careful_ends(np.stack([counts, n - counts], axis=2).reshape(len(drawn), -1), n)


def _best(drawn: list[Sample], known: list[Feature]) -> _Chosen:
    """The two inputs and the event with the largest careful guess, and the best event of the opposite direction."""
    if not known:
        return _Chosen((0, 1), Event(()), None, 0.0, 0.0)
    low, high = _ends(drawn, known)
    best = low.max(axis=0) - high.min(axis=0)
    pairs: dict[tuple[int, int], None] = {}
    for place in np.argsort(-best).tolist():
        one, other = int(low[:, place].argmax()), int(high[:, place].argmin())
        if one == other:
            one, other = (0, 1)
        pairs[one, other] = None
        if len(pairs) == _PAIRS:
            break
    found = [(*_conjunction(drawn[a], drawn[b], known, low[a] - high[b]), (a, b)) for a, b in pairs]
    score, event, pair = max(found, key=lambda one: one[0])
    back = _conjunction(drawn[pair[1]], drawn[pair[0]], known, low[pair[1]] - high[pair[0]])[1]
    weakest = math.inf
    others = [place for place in range(len(drawn)) if place not in pair]
    for place in others[:: max(1, len(others) // _OTHERS)][:_OTHERS]:
        told = [_conjunction(drawn[place], drawn[end], known, low[place] - high[end])[0] for end in pair]
        weakest = min(weakest, max(told))
    return _Chosen(pair, event, back, weakest, score)


def _guess(count: int, other: int) -> float:
    return math.log((count + 0.5) / (other + 0.5))


def _conjunction(here: Sample, there: Sample, known: list[Feature], single: Floats) -> tuple[float, Event]:
    """The best event of up to three literals, by a beam search over the best single ones."""
    n = len(here)
    order = np.argsort(-single)[:_LITERALS].tolist()
    literals = [(known[place // 2], place % 2 == 0) for place in order]
    own, other = (
        np.stack([feature.holds(sample) == wanted for feature, wanted in literals], axis=1).astype(np.float32)
        for sample in (here, there)
    )
    beam: list[Any] = [((place,), own[:, place], other[:, place], float(single[order[place]])) for place in range(_BEAM)
            if place < len(order)]  # fmt: skip
    best = beam[0]
    for _ in range(_DEPTH - 1):
        grown = []
        for chosen, mine, theirs, _ in beam:
            scores = careful_ratio(mine @ own, theirs @ other, n)
            scores[list(chosen)] = -math.inf
            for place in np.argsort(-scores)[:_BEAM].tolist():
                grown.append(((*chosen, place), mine * own[:, place], theirs * other[:, place], float(scores[place])))
        grown.sort(key=lambda one: -one[3])
        beam = grown[:_BEAM]
        if not beam or beam[0][3] <= best[3]:
            break
        best = beam[0]
    return best[3], Event(tuple(literals[place] for place in best[0]))
