"""Reports that only one of two inputs sends: they may be rare, but they reveal the input.

Marks      what a report shows, as numbers: its length, the whole of it, a byte or two neighbouring ones at a place, a
           byte anywhere, a bit that is set; of a stream, the report of any epoch
Chosen     on one half of the choosing samples: for two inputs, the marks that one input showed at least a given number
           of times and the other never. On the other half: the inputs, the kind of mark and the number of times, by the
           bound that will judge them
Judged     a report with a mark of its own input is right, one with a mark of the other is wrong. If the client keeps
           epsilon, the number of right ones is binomial with odds of e^epsilon at most, however rare they are
Visible    the share of reports above which nine of ten audits find a mark that one input has and the other never has
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from deniable.audit.bounds import careful_odds, lower_bound_of_odds
from deniable.audit.events import Event, Feature, Held, Rows, Sample, spoken

Marks = NDArray[np.int64]

_NO_MARK = -1
_MOST_MARKS, _MOST_CELLS, _WIDEST, _NARROW = 1 << 12, 1 << 22, 256, 16
_AT_LEAST = (1, 2, 4, 8, 16, 32, 64)
_COMPARED = 2
NINE_OF_TEN = 0.9
_CAREFUL = 0.005
"""How rarely a bound is wrong by which marks are compared: less careful than with events, for marks are rare."""
_PARTS = (0x9E3779B97F4A7C15, 0x3F58476D1CE4E5B9)


@dataclass(frozen=True)
class Kind:
    """A kind of mark: what a row of reports shows, and a mark in words by where it stands in a report."""

    of: Callable[[Sample], Marks]
    words: Callable[[int, bytes, int], str]


@dataclass(frozen=True)
class Rare:
    """Two inputs with marks of their own, and the counts by which they were chosen."""

    pair: tuple[int, int]
    event: Event
    opposite: Event
    counts: tuple[int, int]
    """Reports that are right and wrong, among `compared` of each input."""
    compared: int

    def expected(self, judged: int) -> float:
        """A careful guess of the bound with `judged` samples of each input."""
        right, wrong = (round(count * judged / self.compared) for count in self.counts)
        return lower_bound_of_odds(right, wrong, _CAREFUL)


def kinds(width: int, steps: int, lengths: int) -> list[Kind]:
    """The kinds of marks of reports with `width` bytes, over `steps` epochs and with this number of lengths."""
    found = [Kind(_whole, lambda _, row, __: f"the report is {row.hex()[:32]}")]
    if lengths > 1:
        found.append(Kind(_length, lambda mark, _, __: f"the report has {mark} bytes"))
    if 1 < width <= _WIDEST:
        found += [
            Kind(_bytes, lambda _, row, at: f"byte {at} is {row[at]}"),
            Kind(_pairs, lambda _, row, at: f"bytes {at} and {at + 1} are {row[at : at + 2].hex()}"),
            Kind(_anywhere, lambda mark, _, __: f"some byte is {mark}"),
        ]
    if width <= _NARROW:
        found.append(Kind(_set_bits, lambda mark, _, __: f"bit {mark} is set"))
    if steps > 1 and width % steps == 0:
        found.append(Kind(partial(_epochs, steps), partial(_epoch_words, width // steps)))
    return found


def _epoch_words(each: int, _: int, row: bytes, at: int) -> str:
    return f"the report of some epoch is {row[at * each : (at + 1) * each].hex()[:32]}"


def _numbers(rows: Rows) -> Marks:
    """Equal numbers for equal rows; for different ones hardly ever, where they have more than eight bytes."""
    padded = np.zeros((len(rows), -(-rows.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : rows.shape[1]] = rows
    words = padded.view("<u8")
    found = words[:, 0].copy()
    for place in range(1, words.shape[1]):
        found = (found ^ found >> np.uint64(29)) * np.uint64(_PARTS[0]) + words[:, place] * np.uint64(_PARTS[1])
    return found.view(np.int64)


def _whole(sample: Sample) -> Marks:
    return (_numbers(sample.rows) * np.int64(_PARTS[1]) + sample.lengths)[:, None]


def _length(sample: Sample) -> Marks:
    return sample.lengths[:, None]


def _bytes(sample: Sample) -> Marks:
    return np.asarray(sample.rows + 256 * np.arange(sample.rows.shape[1]), dtype=np.int64)


def _pairs(sample: Sample) -> Marks:
    rows = sample.rows.astype(np.int64)
    return np.asarray(rows[:, :-1] + (rows[:, 1:] << 8) + (np.arange(rows.shape[1] - 1) << 16))


def _set_bits(sample: Sample) -> Marks:
    held = np.unpackbits(sample.rows, axis=1, bitorder="little").astype(np.bool_)
    return np.where(held, np.arange(held.shape[1]), _NO_MARK)


def _anywhere(sample: Sample) -> Marks:
    return _once(sample.rows.astype(np.int64))


def _epochs(steps: int, sample: Sample) -> Marks:
    parts = np.ascontiguousarray(sample.rows).reshape(len(sample) * steps, -1)
    return _once(_numbers(parts).reshape(-1, steps), order=False)


def _once(marks: Marks, order: bool = True) -> Marks:
    """Each mark of a report once. In order, or where they stand."""
    if order:
        marks = np.sort(marks, axis=1)
        marks[:, 1:][marks[:, 1:] == marks[:, :-1]] = _NO_MARK
        return marks
    for place in range(1, marks.shape[1]):
        marks[(marks[:, :place] == marks[:, place : place + 1]).any(axis=1), place] = _NO_MARK
    return marks


def found(samples: Sequence[Sample], steps: int) -> Rare | None:
    """The marks that distinguish two of the inputs best, if one input has marks that the other was never seen with.

    Different samples choose and compare them; otherwise the rarest reports would always look best.
    """
    half = len(samples[0]) // 2
    first, second = [sample.head(half) for sample in samples], [sample.tail(half) for sample in samples]
    width = samples[0].rows.shape[1]
    lengths = len(np.unique(np.concatenate([sample.lengths for sample in samples])))
    best: Rare | None = None
    for kind in kinds(width, steps, lengths):
        for rare in _of_kind(kind, first, second):
            if best is None or rare.expected(half) > best.expected(half):
                best = rare
    return best


def _of_kind(kind: Kind, first: Sequence[Sample], second: Sequence[Sample]) -> list[Rare]:
    shape = kind.of(first[0].head(1)).shape[1]
    most = max(1, _MOST_CELLS // (shape * len(first)))
    chosen = [kind.of(sample.head(most)) for sample in first]
    compared = [kind.of(sample.head(most)) for sample in second]
    marks, seen = _table(chosen)
    if not marks.size:
        return []
    again = np.stack([_counted(one, marks) for one in compared])
    best = []
    for least in _AT_LEAST:
        often, never = (seen >= least).astype(np.float32), (seen == 0).astype(np.float32)
        if not often.any():
            break
        right, wrong = (often * again) @ never.T, often @ (never * again).T
        np.fill_diagonal(right, 0)
        both = careful_odds(right + right.T, wrong + wrong.T, _CAREFUL)
        for place in np.argsort(-both, axis=None)[: 2 * _COMPARED : 2].tolist():
            one, other = divmod(place, len(first))
            if one == other or not math.isfinite(both[one, other]):
                continue
            own, theirs = (
                _event(kind, marks[(seen[a] >= least) & (seen[b] == 0)], first[a])
                for a, b in ((one, other), (other, one))
            )
            counts = spoken(own, theirs, second[one], second[other])
            best.append(Rare((one, other), own, theirs, counts, len(second[one])))
    return best


def _table(chosen: Sequence[Marks]) -> tuple[Marks, NDArray[np.float32]]:
    """The marks that some inputs have and others never had, in order, and how often each input had each of them."""
    most = 1 + max(int(one.max()) for one in chosen)
    if min(int(one.min()) for one in chosen) >= _NO_MARK and most * len(chosen) <= _MOST_CELLS:
        dense = np.stack([np.bincount(one.reshape(-1) + 1, minlength=most + 1)[1:] for one in chosen])
        known = np.flatnonzero((dense > 0).any(axis=0) & (dense == 0).any(axis=0))
        kept = _commonest(known, dense.max(axis=0))
        return kept, dense[:, kept].astype(np.float32)
    inputs = np.repeat(np.arange(len(chosen)), [one.size for one in chosen])
    every = np.concatenate([one.reshape(-1) for one in chosen])
    marks, places = np.unique(every, return_inverse=True)
    cells, counts = np.unique(places.reshape(-1) * len(chosen) + inputs, return_counts=True)
    of = cells // len(chosen)
    often = np.zeros(marks.size, dtype=np.int64)
    np.maximum.at(often, of, counts)
    known = np.flatnonzero((np.bincount(of, minlength=marks.size) < len(chosen)) & (marks != _NO_MARK))
    useful = _commonest(known, often)
    held = np.isin(of, useful)
    table = np.zeros((len(chosen), useful.size), dtype=np.float32)
    table[cells[held] % len(chosen), np.searchsorted(useful, of[held])] = counts[held]
    return marks[useful], table


def _commonest(known: Marks, often: Marks) -> Marks:
    """If there are too many marks, those that some input has most often, in order."""
    return np.sort(known[np.argsort(-often[known], kind="stable")[:_MOST_MARKS]])


def _counted(drawn: Marks, marks: Marks) -> NDArray[np.float32]:
    places = np.minimum(np.searchsorted(marks, drawn.reshape(-1)), marks.size - 1)
    held = marks[places] == drawn.reshape(-1)
    return np.bincount(places[held], minlength=marks.size).astype(np.float32)


def _event(kind: Kind, marks: Marks, seen: Sample) -> Event:
    """A report has one of these marks."""

    def holds(sample: Sample) -> Held:
        return np.asarray(np.isin(kind.of(sample), marks).any(axis=1))

    if not marks.size:
        return Event(((Feature("no report", holds), True),))
    shown = kind.of(seen)
    row, at = (int(place) for place in np.argwhere(np.isin(shown, marks))[0])
    words = kind.words(int(shown[row, at]), seen.rows[row].tobytes(), at)
    if marks.size > 1:
        words += f" (or has one of {marks.size - 1:,} more such marks)"
    return Event(((Feature(words, holds), True),))


def rarest_visible(choosing: int, judged: int, alpha: float, claim: float) -> float | None:
    """The share of one input's reports that, if the other input never sends them, nine of ten audits find.

    So many have to be seen that the bound is above the claim; and beforehand so many that they are judged at all.

    >>> round(rarest_visible(10_000, 10_000, 0.05, 1.0), 4)
    0.0026
    """
    from scipy.special import pdtrc

    half = choosing // 2
    needed, before = (math.ceil(math.log(part) / -math.log1p(math.exp(-claim))) for part in (alpha / 2, _CAREFUL))
    before = math.ceil(before * half / judged)

    def seen(share: float) -> float:
        return float(pdtrc(needed - 1, judged * share) * pdtrc(before - 1, half * share))

    if seen(1.0) < NINE_OF_TEN:
        return None
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if seen(middle) >= NINE_OF_TEN else (middle, high)
    return high
