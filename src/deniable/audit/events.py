"""Events in the bytes of reports; an audit looks for the most telling one.

Features   bits, bytes, values that occur anywhere, common reports, thresholds of the report as a number, and counts
           over the epochs of a stream
Event      up to three features at once; each must be present, or must be absent
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.uint8]
Floats = NDArray[np.float64]
Held = NDArray[np.bool_]

MOST_VALUES = 256


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

    def tail(self, start: int) -> Sample:
        return Sample(self.rows[start:], self.lengths[start:])


@dataclass(frozen=True)
class Feature:
    """Something that is so or not so of a report, in words and as a function of samples."""

    words: str
    holds: Callable[[Sample], NDArray[np.bool_]]


@dataclass(frozen=True)
class Event:
    """Some features at once; each must be present, or must be absent."""

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
        """The number of samples where it holds and another event does not."""
        held = self.holds(sample)
        return int((held if without is None else held & ~without.holds(sample)).sum())


def spoken(event: Event, opposite: Event, here: Sample, there: Sample) -> tuple[int, int]:
    """How many reports speak for their input, and how many against it; the first event goes before the other."""
    own, back = event.count(here), event.count(there)
    mine, theirs = (opposite.count(sample, event) for sample in (here, there))
    return own + theirs, back + mine


def features(samples: Sequence[Sample], steps: int = 1) -> list[Feature]:
    """What can be seen in the bytes of reports like these."""
    rows = np.concatenate([sample.rows for sample in samples])
    lengths = np.unique(np.concatenate([sample.lengths for sample in samples])).tolist()
    width = rows.shape[1]
    found = []
    if len(lengths) > 1:
        found += [Feature(f"the report has {one} bytes", partial(_has_length, one)) for one in lengths[:MOST_VALUES]]
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
        for one, count in Counter(whole.tolist()).most_common(MOST_VALUES // 4):
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
    order = np.argsort(-counts)[:MOST_VALUES]
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
