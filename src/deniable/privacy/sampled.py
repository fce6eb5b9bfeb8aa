"""How much a client tells at least, from what it sends: for any client in any language, without its source.

Chosen     on one part of the samples: the two inputs and the event that tell them apart best. Events are about the
           bytes of a report: bits, bytes, values that occur anywhere, common reports, thresholds of the report as a
           number, counts over the epochs of a stream; and up to three of them together. With a spec at hand there
           is one more: "the report supports this answer and not that one", and a tenth of the samples finds the answers
Bounded    on the other part, where nothing is chosen, in one of two ways; the first part says which promises more
           One way    ln(p / p') from both counts, with Clopper and Pearson's bounds made as sharp as their order allows
                      (Buehler). Nine tenths of the error goes to the event, one tenth to the best event of the
                      opposite direction
           Both ways  an event that speaks for the first input, and another one for the second. A coin per sample says
                      which input it is of. If the client keeps epsilon, reports speak for their input at most
                      e^epsilon times as often as against it: P(A | v) + P(B | w) <= e^epsilon (P(A | w) + P(B | v)). So
                      among those that speak the number that is right is binomial, and one bound of Clopper and
                      Pearson's with all of the error is enough. Every sample counts twice
Visible    the smallest epsilon of a client that would be found out in nine of ten audits of this size, by this event
Power      an audit that finds no event with at least half of the claimed epsilon has no power: it clears nobody
Client     a function of an input; with `stream=True` a function that makes a device, which is called once per epoch;
           or a command, which reads one value per line and writes one report per line in hexadecimal digits. Of
           streams an empty line begins the next device, and is answered by an empty line
Source     Clopper and Pearson 1934; Buehler 1957; Berger and Boos 1994; Jagielski, Ullman and Oprea 2020; Arcolezi and
           Gambs 2024 (LDP-Auditor); Bichsel et al. 2021 (DP-Sniper)
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
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import NumberError, ReportError
from deniable.protocols import Protocol, Reports
from deniable.randomness import Bits

Rows = NDArray[np.uint8]
Floats = NDArray[np.float64]
Held = NDArray[np.bool_]

MOST_SAMPLES = 10**8
_PATIENCE = 30.0
_HEX = frozenset("0123456789abcdefABCDEF")
_MOST_VALUES, _LITERALS, _BEAM, _PAIRS, _DEPTH = 256, 48, 4, 4, 3
_GLANCE, _KEPT = 2000, 160
"""Samples of each input on which features are looked at first, and how many features are then counted on all."""
_SURE = 4.0
"""Standard errors that are taken off before events are compared, because the best of thousands is chosen."""
_CHUNK = 512
_OTHERS = 4
_SAME = 64
_OPPOSITE, _WORTH = 0.1, 0.1
"""The part of the error that the opposite event gets; and the guess from which on both ways are looked at together."""
NINE_OF_TEN = 1.2816
_CELLS, _BLOCKS, _STEP = 96, 512, 2.0**-13
"""Parts of the interval of a probability that are tried, parts of the counts, and how exactly a bound is found."""


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
            with suppress(OSError, ValueError):  # if the process has gone, whoever reads finds out
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
    """Refuse a process that has more to say than it was asked: its answers would be taken for those of other values."""
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


@dataclass(frozen=True)
class Sample:
    """Reports of one input, as rows of equal length."""

    rows: Rows
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, sent: list[bytes] | Rows, width: int) -> Sample:
        if isinstance(sent, np.ndarray):
            return cls(sent, np.full(len(sent), sent.shape[1]))
        lengths = np.array([len(one) for one in sent], dtype=np.int64)
        joined = b"".join(one[:width].ljust(width, b"\0") for one in sent)
        return cls(np.frombuffer(joined, dtype=np.uint8).reshape(len(sent), width), lengths)

    def __len__(self) -> int:
        return len(self.rows)

    def head(self, count: int) -> Sample:
        return Sample(self.rows[:count], self.lengths[:count])


# -- events --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Feature:
    """Something that is so or not so of a report, in words and as a function of samples."""

    words: str
    holds: Callable[[Sample], NDArray[np.bool_]]


@dataclass(frozen=True)
class Event:
    """Some features at once, each of which has to be so, or has to be not so."""

    literals: tuple[tuple[Feature, bool], ...]

    @property
    def words(self) -> str:
        return " and ".join(feature.words if wanted else f"not ({feature.words})" for feature, wanted in self.literals)

    def holds(self, sample: Sample) -> Held:
        held = np.ones(len(sample), dtype=np.bool_)
        for feature, wanted in self.literals:
            held &= feature.holds(sample) == wanted
        return held

    def count(self, sample: Sample, without: Event | None = None) -> int:
        """Of how many samples it holds, where another event does not."""
        held = self.holds(sample)
        return int((held if without is None else held & ~without.holds(sample)).sum())


def features(samples: Sequence[Sample], steps: int = 1) -> list[Feature]:
    """What can be seen in the bytes of reports like these."""
    rows = np.concatenate([sample.rows for sample in samples])
    lengths = np.unique(np.concatenate([sample.lengths for sample in samples])).tolist()
    width = rows.shape[1]
    found = []
    if len(lengths) > 1:
        found += [Feature(f"the report has {one} bytes", partial(_has_length, one)) for one in lengths[:_MOST_VALUES]]
    ones = np.bincount(np.unpackbits(rows, axis=1, bitorder="little").nonzero()[1], minlength=8 * width)
    for bit in np.flatnonzero((ones > 0) & (ones < len(rows))).tolist():
        found.append(Feature(f"bit {bit} is set", partial(_has_bit, bit)))
    for at in range(width if width <= 16 else 0):
        for value in _common(np.bincount(rows[:, at], minlength=256)):
            found.append(Feature(f"byte {at} is {value}", partial(_has_byte, at, value)))
    if width > 1:
        ordered = np.sort(rows, axis=1)
        first = np.hstack([np.ones((len(rows), 1), dtype=np.bool_), ordered[:, 1:] != ordered[:, :-1]])
        held = np.bincount(ordered[first], minlength=256)
        for value in _common(held * (held < len(rows))):
            found.append(Feature(f"some byte is {value}", partial(_has_somewhere, value)))
        whole = np.ascontiguousarray(rows).view(f"V{width}")[:, 0]
        for one, count in Counter(whole.tolist()).most_common(_MOST_VALUES // 4):
            if count > 9:
                found.append(Feature(f"the report is {one.hex()[:32]}", partial(_is_report, one)))
    found += _thresholds(rows)
    if steps > 1 and width % steps == 0:
        found += _counts(rows, steps)
    return found


def _has_length(length: int, sample: Sample) -> Held:
    return np.asarray(sample.lengths == length)


def _has_bit(bit: int, sample: Sample) -> Held:
    return np.asarray(sample.rows[:, bit // 8] >> np.uint8(bit % 8) & np.uint8(1) == 1)


def _has_byte(at: int, value: int, sample: Sample) -> Held:
    return np.asarray(sample.rows[:, at] == value)


def _has_somewhere(value: int, sample: Sample) -> Held:
    return np.asarray((sample.rows == value).any(axis=1))


def _is_report(report: bytes, sample: Sample) -> Held:
    return np.asarray((sample.rows == np.frombuffer(report, dtype=np.uint8)).all(axis=1))


def _is_above(read: Callable[[Rows], Floats], cut: float, sample: Sample) -> Held:
    return np.asarray(read(sample.rows) >= cut)


def _common(counts: NDArray[np.int64]) -> list[int]:
    order = np.argsort(-counts)[:_MOST_VALUES]
    return [int(place) for place in order if counts[place] > 9]


def _thresholds(rows: Rows) -> list[Feature]:
    """Quantiles of the reports as numbers."""
    width = rows.shape[1]
    kinds: dict[str, Callable[[Rows], Floats]] = {}
    if 1 < width <= 8:
        kinds = {"little-endian": _number, "big-endian": _turned}
    if width == 8:
        kinds["floating-point"] = _real
    found = []
    for name, read in kinds.items():
        for cut in np.unique(np.quantile(read(rows), np.arange(1, 32) / 32)).tolist():
            found.append(Feature(f"the {name} number is at least {cut:.6g}", partial(_is_above, read, cut)))
    return found


def _number(rows: Rows) -> Floats:
    padded = np.zeros((len(rows), 8), dtype=np.uint8)
    padded[:, : rows.shape[1]] = rows
    return padded.view("<u8")[:, 0].astype(np.float64)


def _turned(rows: Rows) -> Floats:
    return _number(rows[:, ::-1])


def _real(rows: Rows) -> Floats:
    return np.nan_to_num(np.ascontiguousarray(rows).view("<f8")[:, 0].astype(np.float64))


def _counts(rows: Rows, steps: int) -> list[Feature]:
    """How often something occurs over the epochs of a stream: bits, bytes, and what was sent first."""
    each = rows.shape[1] // steps
    tests: list[tuple[str, Callable[[Rows], NDArray[Any]]]] = []
    for bit in range(min(8 * each, 64)):
        tests.append((f"bit {bit} is set", partial(_bit_of, bit)))
    for value in _common(np.bincount(rows.reshape(-1), minlength=256))[:32]:
        tests.append((f"a byte is {value}", partial(_byte_of, value)))
    tests.append(("the report is the first one", _as_first))
    found = []
    for words, test in tests:
        for least in np.unique(_times(test, steps, rows))[1:][:33].tolist():
            said = f"{words} in at least {least} of {steps} epochs"
            found.append(Feature(said, partial(_is_above, partial(_times, test, steps), least)))
    return found


def _times(test: Callable[[Rows], NDArray[Any]], steps: int, rows: Rows) -> Floats:
    """In how many epochs of each row."""
    parts = np.ascontiguousarray(rows).reshape(len(rows), steps, -1)
    return np.asarray(test(parts).sum(axis=1), dtype=np.float64)


def _bit_of(bit: int, parts: Rows) -> NDArray[Any]:
    return np.asarray(parts[:, :, bit // 8] >> np.uint8(bit % 8) & np.uint8(1))


def _byte_of(value: int, parts: Rows) -> NDArray[Any]:
    return np.asarray((parts == value).any(axis=2))


def _as_first(parts: Rows) -> NDArray[Any]:
    return np.asarray((parts == parts[:, :1]).all(axis=2))


# -- bounds --------------------------------------------------------------------------------------------


def clopper_pearson(count: int, n: int, alpha: float, upper: bool) -> float:
    """A bound of a probability that is wrong with probability alpha at most.

    >>> round(clopper_pearson(0, 1000, 0.05, upper=True), 6)
    0.002991
    """
    from scipy.special import betaincinv

    if upper:
        return 1.0 if count >= n else float(betaincinv(count + 1, n - count, 1 - alpha))
    return 0.0 if count <= 0 else float(betaincinv(count, n - count + 1, alpha))


def _spread(p: Any, n: float) -> Any:
    """The standard error of the logarithm of a share."""
    return np.sqrt((1 - p) / (n * p))


def split_error(p: float, q: float, n: int, alpha: float) -> tuple[float, float]:
    """How to give the error to the bounds of p and q, so that the bound of ln(p / q) is largest."""
    from scipy.special import ndtri

    shares = np.linspace(0.02, 0.98, 97)
    cost = -ndtri(alpha * shares) * _spread(p, n) - ndtri(alpha * (1 - shares)) * _spread(q, n)
    share = float(shares[np.argmin(cost)])
    return alpha * share, alpha * (1 - share)


def lower_bound(count: int, other: int, n: int, alpha: float, split: tuple[float, float] | None = None) -> float:
    """ln(p / q) at least, from two counts of n; wrong with probability alpha at most.

    Clopper and Pearson's bounds of p and q, one of which is wrong with probability alpha at most, put all pairs of
    counts into an order. Buehler's bound is the smallest ln(p / q) under which as high a place in that order is not
    too seldom, whatever q is: never below theirs, and the best of this order. As in Berger and Boos, q is looked for
    in an interval that holds it but for a fiftieth of alpha. Between two values of q that are tried p is taken at the
    upper one and q at the lower one, which makes high places likelier; so nothing between them is missed.

    >>> round(lower_bound(3655, 1345, 10_000, 0.05), 3)
    0.95
    """
    first, second = split or (alpha / 2, alpha / 2)
    low, high = clopper_pearson(count, n, first, False), clopper_pearson(other, n, second, True)
    if low <= 0:
        return -math.inf
    from scipy.special import bdtr, betainc, betaincinv

    spare = alpha / 50
    ends = clopper_pearson(other, n, spare / 2, False), clopper_pearson(other, n, spare / 2, True)
    grid = np.geomspace(max(ends[0], 1e-9 / n), ends[1], _CELLS + 1)
    below, above = (np.r_[0.0, grid[1:-1]], grid[1:]) if ends[0] == 0 else (grid[:-1], grid[1:])
    # Counts of the second input in blocks, each of which is taken for its smallest one.
    first_count, last_count = _usual(n, below[0], above[-1])
    counts = np.unique(np.linspace(first_count, last_count, _BLOCKS + 1).astype(np.int64))
    held = np.diff(np.where(counts > 0, bdtr(np.maximum(counts - 1.0, 0), n, below[:, None]), 0.0), axis=1)
    missing = 1 - held.sum(axis=1)  # beyond the counts that were looked at: as if always high
    counts = counts[:-1]
    # From which count of the first input on a pair is at least as high as the one that was seen.
    uppers = np.where(counts < n, betaincinv(counts + 1.0, np.maximum(n - counts, 1e-9), 1 - second), 1.0)
    goals = np.minimum(low / high * uppers, 1.0)
    least, most = np.zeros(counts.size, dtype=np.int64), np.full(counts.size, n + 1)
    while (most - least > 1).any():
        middle = (least + most) // 2
        enough = betainc(middle, n - middle + 1.0, goals) <= first * (1 + 1e-12)
        least, most = np.where(enough, least, middle), np.where(enough, middle, most)
    held, lies = held[:, most <= n], n - most[most <= n].astype(np.float64)

    def seldom(size: float) -> bool:
        rows = below * math.exp(size) <= 1  # else p would be above 1
        p = np.minimum(1.0, above[rows] * math.exp(size))
        high_places = (held[rows] * bdtr(lies, n, 1 - p[:, None])).sum(axis=1) + missing[rows]
        return bool(high_places.max(initial=0.0) + spare <= alpha)

    known, unknown = math.log(low / high), math.log((count + 0.5) / (other + 0.5))
    while unknown - known > _STEP:
        middle = (known + unknown) / 2
        known, unknown = (middle, unknown) if seldom(middle) else (known, middle)
    return known


def _usual(n: int, low: float, high: float) -> tuple[int, int]:
    """Outside of these counts there is next to nothing, for any share between two."""
    first, last = n * low - 6 * math.sqrt(n * low) - 20, n * high + 6 * math.sqrt(n * high) + 20
    return max(0, int(first)), min(n, int(last)) + 1


def lower_bound_of_odds(right: int, wrong: int, alpha: float) -> float:
    """The logarithm of the odds at least, from how many of a binomial number are right and wrong.

    >>> round(lower_bound_of_odds(7310, 2690, 0.05), 3)
    0.962
    """
    share = clopper_pearson(right, right + wrong, alpha, False) if right else 0.0
    return math.log(share / (1 - share)) if share else -math.inf


def expected_lower(p: float, q: float, n: float, alpha: float, spare: float = 0.0, both: bool = False) -> float:
    """About what the bound will be with n samples of each input, less `spare` standard errors.

    With `both` p and q are the shares of samples that speak for and against their input.
    """
    from scipy.special import ndtri

    spread = math.sqrt((1 / p + 1 / q) / (2 * n)) if both else math.hypot(float(_spread(p, n)), float(_spread(q, n)))
    return math.log(p / q) + (float(ndtri(alpha)) - spare) * spread


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
    """The least of what other inputs were told apart by, carefully: where it is small the audit is blind for some."""

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
        """With how many samples of each input some client above the claim would be found out."""
        times = 1
        while (times := 2 * times) * self.judged <= MOST_SAMPLES:
            own, other = self.counts
            more = replace(self, counts=(times * own, times * other), judged=times * self.judged)
            if more.visible(claim) is not None:
                return 2 * times * self.judged
        return None

    def needed(self, goal: float) -> int | None:
        """With how many samples of each input the bound would reach a goal, if the shares are as they were seen."""
        n = self.judged
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
    (first, second), event, opposite, weakest = chosen.pair, chosen.event, chosen.opposite, chosen.weakest
    judged = samples - choosing
    both_ways = opposite is not None and _speaks(event, opposite, drawn[first], drawn[second])
    taken = int(np.random.default_rng(seed).binomial(2 * judged, 0.5)) if both_ways else judged
    more = [client.sample(inputs[one], size) for one, size in ((first, taken), (second, 2 * judged - taken))]
    if protocol is not None:
        _check_form(protocol, more)
    here, there = (Sample.of(one, max(1, width)) for one in more)
    if both_ways and opposite is not None:
        counts = _spoken(event, opposite, here, there)
        lower, pair = max(0.0, lower_bound_of_odds(*counts, alpha)), (inputs[first], inputs[second])
        words = f"{event.words}; for the other input, {opposite.words}"
        return Found(lower, pair, words, counts, judged, alpha, both=True, weakest=weakest)
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
    return Found(max(0.0, best), pair, event.words, counts, judged, alpha * (1 - _OPPOSITE), weakest=weakest)


def _check_form(protocol: Protocol, sent: Sequence[list[bytes] | Rows]) -> None:
    """Refuse reports that are none of the spec that a client says it follows."""
    width = protocol.report_bytes
    for some in sent:
        lengths = {some.shape[1]} if isinstance(some, np.ndarray) else set(map(len, some))
        for odd in lengths - {width}:
            raise ReportError(f"the client sends reports of {odd} bytes, and those of {protocol.name} have {width}")
        rows = Sample.of(some, width).rows
        if not protocol.valid(rows).all():
            shown = rows[~protocol.valid(rows)][0].tobytes().hex()[:32]
            raise ReportError(f"the client sends {shown}, which is no report of {protocol.name}: follow its spec")


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
    one_way = _scores(event.count(here), event.count(there), len(here))
    return bool(_scores(*_spoken(event, opposite, here, there), 2 * len(here)) > max(float(one_way), _WORTH))


def _spoken(event: Event, opposite: Event, here: Sample, there: Sample) -> tuple[int, int]:
    """How many reports speak for their input, and how many against it; the first event goes before the other."""
    own, back = event.count(here), event.count(there)
    mine, theirs = (opposite.count(sample, event) for sample in (here, there))
    return own + theirs, back + mine


def _from_spec(protocol: Any, inputs: Sequence[Any], drawn: list[Sample]) -> _Chosen:
    """The pair of answers, and the event that one is supported and the other is not."""
    labels = [protocol.domain.encode_one(value) for value in inputs]

    def supported(sample: Sample) -> NDArray[np.bool_]:
        held: NDArray[np.bool_] = protocol.support(np.ascontiguousarray(sample.rows))[:, labels]
        return held

    held = [supported(sample) for sample in drawn]
    n, size = len(held[0]), len(inputs)
    own = np.array([[(one[:, v] & ~one[:, w]).sum() for w in range(size)] for v, one in enumerate(held)])
    other = np.array([[(held[w][:, v] & ~held[w][:, w]).sum() for w in range(size)] for v in range(size)])
    scores = np.maximum(_scores(own, other, n), _scores(own + own.T, other + other.T, 2 * n))
    np.fill_diagonal(scores, -math.inf)
    v, w = np.unravel_index(int(scores.argmax()), scores.shape)

    def event(v: int, w: int) -> Event:
        def holds(sample: Sample) -> NDArray[np.bool_]:
            found = supported(sample)
            both: NDArray[np.bool_] = found[:, v] & ~found[:, w]
            return both

        return Event(((Feature(f"the report supports {inputs[v]!r} and not {inputs[w]!r}", holds), True),))

    weakest = float(np.log((own + 0.5) / (other + 0.5)).max(axis=1).min())
    return _Chosen((int(v), int(w)), event(int(v), int(w)), event(int(w), int(v)), weakest, float(scores[v, w]))


def _scores(counts: Any, others: Any, n: int) -> Any:
    """A careful guess of ln(p / q): few counts make it small."""
    p, q = (np.asarray(counts) + 0.5) / (n + 1), (np.asarray(others) + 0.5) / (n + 1)
    return np.log(p / q) - _SURE * (np.sqrt((1 - p) / (n * p)) + np.sqrt((1 - q) / (n * q)))


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
    table = np.stack([counts, n - counts], axis=2).reshape(len(drawn), -1)
    p = (table + 0.5) / (n + 1)
    wide = _SURE * np.sqrt((1 - p) / (n * p))
    return np.log(p) - wide, np.log(p) + wide


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
            scores = _scores(mine @ own, theirs @ other, n)
            scores[list(chosen)] = -math.inf
            for place in np.argsort(-scores)[:_BEAM].tolist():
                grown.append(((*chosen, place), mine * own[:, place], theirs * other[:, place], float(scores[place])))
        grown.sort(key=lambda one: -one[3])
        beam = grown[:_BEAM]
        if not beam or beam[0][3] <= best[3]:
            break
        best = beam[0]
    return best[3], Event(tuple(literals[place] for place in best[0]))
