"""Answers that change: each device reports one of its changes, in one part of a tree over the epochs.

Also called the tree of differences, or frequency tracking.

Law        a device draws once, and never tells apart from public coins: one answer to follow (of two answers always the
           second), one level h of the tree, and one of its changes: the first answer with weight 1, each of the
           `changes` later ones with weight 2. In the last epoch of each part of 2^h epochs it sends a bit: a fair coin,
           but if the chosen change came since its last bit, whether that was towards the followed answer, kept with
           probability p = e^epsilon / (1 + e^epsilon), else inverted. In all other epochs it sends "nothing yet"
Privacy    of everything that a device ever sends, between any two streams of answers: at most one bit of a stream is
           no fair coin, so the ratio is p / (1 - p) <= e^epsilon, and streams with enough changes reach it; p is
           rounded down. Which answer and level a device follows are coins that do not depend on its answers
Error      scale^2 / n of each part with n reports, scale = (changes + 1/2) / (2 p - 1); shares over the epochs by least
           squares over all parts. Exact for every combination of parts, up to a term that only lowers it
Report     followed answer, part of the tree and bit as one number, little-endian; the same width in every epoch
Cost       three random words to begin, one per bit; one addition per report and 4 d epochs counters on the server
Source     Erlingsson, Feldman, Mironov, Raghunathan, Talwar and Thakurta 2019. Theirs begins at zero, so that a first
           answer costs as much as a change; half of that is enough. Their epsilon / 2 per bit is not needed: the whole
           stream has exactly the level of one bit (enumerated)
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.domains import DomainLike, ListedDomain
from deniable.errors import ChannelError, DomainError, NumberError, ReportError
from deniable.exact import WORD, Dyadic
from deniable.labels import text
from deniable.protocols.law import Guarantee, Law
from deniable.protocols.memoized import Level, Levels
from deniable.protocols.protocol import Positions, Protocol, percent, sealed
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes, Reports, from_bytes, narrow_type, to_bytes
from deniable.protocols.structures import Stream
from deniable.protocols.tally import Counts, Tally
from deniable.protocols.traits import Ask, Traits
from deniable.protocols.worth import WORD_BYTES, Cost, Worth
from deniable.randomness import Bits, exhaust, source_of
from deniable.results import Floats
from deniable.results.several import Series
from deniable.words import Fact, word

MOST_EPOCHS = 1024
MOST_ANSWERS = 256
MOST_CHANGES = 1000

_STATE = struct.Struct("<HBHHBB")
_FAIR = Dyadic(WORD // 2)
_UNSET, _OTHER, _FOLLOWED = range(3)
_NONE, _TOWARDS, _AWAY = range(3)


class _State(NamedTuple):
    """What a device keeps between its reports."""

    followed: int
    """The answer that it follows, as its place among the followed ones."""
    level: int
    slot: int
    """Which of its changes it reports; 1 is the first answer."""
    seen: int
    """How many changes there were, the first answer included."""
    holds: int
    """Whether its answer was the followed one; later changes than are allowed do not count."""
    pending: int
    """The chosen change, until it is reported."""


@dataclass(frozen=True)
class Evolving(Protocol):
    """Shares of answers in every epoch, if an answer changes at most `changes` times over `epochs` epochs.

    Args:
        domain: The possible answers: a list of categories, their number, or a listed domain.
        epsilon: Largest epsilon of all reports of a device together.
        epochs: Number of epochs.
        changes: Maximum number of changes of an answer over all epochs.

    >>> weekly = Evolving(["no", "yes"], epsilon=1, epochs=8, changes=2)
    >>> state, sent = weekly.begin(), []
    >>> for week, answer in enumerate(["no", "no", "yes", "yes", "yes", "no", "no", "no"], start=1):
    ...     state, report = weekly.step(state, answer, week)  # the state is kept, the report sent
    ...     sent.append(report)
    >>> {len(report) for report in sent}
    {1}
    """

    name: ClassVar[str] = "Evolving"
    traits: ClassVar[Traits] = Traits(
        takes=(ListedDomain,),
        advice="it needs a list of answers",
        reads=("series",),
        fresh=False,
        candidates=lambda kind, ask: kind._offered(ask),
        waived={"unbiased": "each part of the tree divides by the number of its own reports, which chance decides"},
        says=lambda protocol, report: protocol._says(report),
    )

    epochs: int = 8
    changes: int = 1

    if TYPE_CHECKING:
        domain: ListedDomain

        def __init__(self, domain: DomainLike, epsilon: exact.Number, epochs: int = 8, changes: int = 1) -> None: ...

    def __post_init__(self) -> None:
        self._settle()
        if not 2 <= self.domain.size <= MOST_ANSWERS:
            raise DomainError(f"answers that change are 2 to {MOST_ANSWERS} different ones, not {self.domain.size}")
        for number, least, most, what in (
            (self.epochs, 1, MOST_EPOCHS, "epochs"),
            (self.changes, 0, MOST_CHANGES, "changes"),
        ):
            if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
                raise NumberError(f"the number of {what} is a whole number from {least} to {most}, not {number!r}")
        if self.keep.numerator <= _FAIR.numerator:
            raise ChannelError("at this epsilon a bit would be a fair coin: raise it")

    @classmethod
    def _offered(cls, ask: Ask) -> Iterator[Protocol]:
        if ask.epochs is None or ask.changes is None:
            return  # people who answer once have nothing that changes
        if isinstance(ask.domain, ListedDomain) and ask.domain.size <= MOST_ANSWERS:
            yield cls(ask.domain, ask.epsilon, ask.epochs, ask.changes)

    @classmethod
    def examples(cls) -> Iterator[Evolving]:
        yield cls(["no", "yes"], 1, epochs=4, changes=1)
        yield cls(3, 2, epochs=2, changes=0)

    def parameters(self) -> dict[str, Any]:
        return {"epochs": self.epochs, "changes": self.changes}

    # -- the law -----------------------------------------------------------------------------------

    @cached_property
    def keep(self) -> Dyadic:
        """The probability that a bit says what happened."""
        return Dyadic.floor_of(lambda e: e / (1 + e), self.epsilon)

    @property
    def followed(self) -> int:
        """How many answers are followed, by a part of the devices each; of two answers the second."""
        return 1 if self.domain.size == 2 else self.domain.size

    @property
    def depth(self) -> int:
        """How many levels the tree has."""
        return self.epochs.bit_length()

    @property
    def weight(self) -> int:
        """All changes together, where the first answer counts 1 and a later change 2."""
        return 1 + 2 * self.changes

    @cached_property
    def offsets(self) -> list[int]:
        """Where the parts of each level begin in the list of all parts."""
        sizes = [self.epochs >> level for level in range(self.depth)]
        return [sum(sizes[:level]) for level in range(self.depth)]

    @property
    def parts_of_tree(self) -> int:
        return self.offsets[-1] + (self.epochs >> (self.depth - 1))

    @cached_property
    def edges(self) -> NDArray[np.int64]:
        """The epochs after which each part begins and ends, one row per part."""
        rows = [
            (place << level, (place + 1) << level)
            for level in range(self.depth)
            for place in range(self.epochs >> level)
        ]
        return np.array(rows, dtype=np.int64)

    def _ratio(self) -> Fraction:
        """The ratio of one report if the answer never changes; `whole_ratio` is that of all reports of any streams."""
        kept, rest = self.keep.value, Fraction(self.weight - 1, 2)
        return (kept + rest) / (1 - kept + rest)

    def _guarantee(self) -> Guarantee:
        over = f"any two streams of answers over {self.epochs} epochs with at most {self.changes} changes"
        return Guarantee("stream", self.epsilon, over=over)

    def levels(self, epochs: int | None = None, values: int | None = None) -> Levels:
        """What the reports of one device tell, in the four senses of `Memoized.levels`: at most epsilon.

        >>> [round(level, 3) for level in Evolving(["no", "yes"], epsilon=1, epochs=8, changes=2).levels()]
        [0.374, 0.185, 1.0, 1.0]
        """
        kept, chosen = self.keep.value, min(2, self.weight)
        rest = Fraction(self.weight - chosen, 2)
        first = (chosen * kept + rest) / (chosen * (1 - kept) + rest)
        whole, streams = [(self.law().kept.ratio, 1)], f"any two streams of {self.epochs} epochs"
        return Levels(
            Level([(first, 1)], "one report", False),
            Level([(self.ratio, 1)], "two answers that never change", True),
            Level(whole, "two streams of the same pattern", False),
            Level(whole, streams, False),
        )

    # -- the device --------------------------------------------------------------------------------

    @final
    @sealed("_begun")
    def begin(self, bits: Bits | None = None) -> bytes:
        """The state of a device before its first report; `step` gives the next one, to be kept."""
        source = source_of(bits)
        return _STATE.pack(*self._begun(source))

    @final
    @sealed("_stepped")
    def step(self, state: bytes, value: Any, epoch: int, bits: Bits | None = None) -> tuple[bytes, bytes]:
        """The new state and the report of an epoch, 1 to `epochs`; epochs may be left out, and never repeated."""
        return self.step_encoded(state, self.domain.encode_one(value), epoch, bits)

    @final
    @sealed("_stepped")
    def step_encoded(self, state: bytes, encoded: int, epoch: int, bits: Bits | None = None) -> tuple[bytes, bytes]:
        """The same for an answer that `domain.encode_one` has read already."""
        if not 1 <= epoch <= self.epochs:
            raise NumberError(f"this is about the epochs 1 to {self.epochs}")
        known, report = self._stepped(self._state(state), encoded, epoch, source_of(bits))
        return _STATE.pack(*known), report.to_bytes(self.report_bytes, "little")

    def _state(self, state: Any) -> _State:
        if isinstance(state, bytes) and len(state) == _STATE.size:
            known = _State(*_STATE.unpack(state))
            slots = self.changes + 1
            if (
                known.followed < self.followed
                and known.level < self.depth
                and 1 <= known.slot <= slots
                and known.seen <= slots
                and max(known.holds, known.pending) < 3
            ):
                return known
        raise ReportError(f"a report of {self.name} is drawn from the state that begin() or the last step() gave")

    def _begun(self, bits: Bits) -> _State:
        followed = bits.integers(self.followed)
        level = bits.integers(self.depth)
        chosen = bits.integers(self.weight)
        return _State(followed, level, 1 + (chosen + 1) // 2, 0, _UNSET, _NONE)

    def _stepped(self, state: _State, encoded: int, epoch: int, bits: Bits) -> tuple[_State, int]:
        now = _FOLLOWED if encoded == self._target(state.followed) else _OTHER
        if now != state.holds and state.seen <= self.changes:
            seen = state.seen + 1
            pending = (_TOWARDS if now == _FOLLOWED else _AWAY) if seen == state.slot else state.pending
            state = state._replace(seen=seen, holds=now, pending=pending)
        if epoch % (1 << state.level):
            return state, self.tally_size - 1
        law = {_NONE: _FAIR, _TOWARDS: self.keep, _AWAY: self.keep.complement}[state.pending]
        part = self.offsets[state.level] + (epoch >> state.level) - 1
        bit = bits.bernoulli(law)
        return state._replace(pending=_NONE), 2 * (state.followed * self.parts_of_tree + part) + int(bit)

    def _target(self, followed: int) -> int:
        """The position of an answer that is followed."""
        return 1 if self.domain.size == 2 else followed

    # A report of its own is that of a device whose answer never changes, in an epoch that chance picks.

    def draw(self, value: int, bits: Bits) -> bytes:
        epoch = 1 + bits.integers(self.epochs)
        state = self._begun(bits)
        # Until its first bit nothing is drawn, and every earlier bit is drawn by itself.
        first = 1 << state.level
        if epoch > first:
            state = state._replace(seen=1, holds=_FOLLOWED if value == self._target(state.followed) else _OTHER)
        return self._stepped(state, value, epoch, bits)[1].to_bytes(self.report_bytes, "little")

    def draw_many(self, values: Positions, bits: Bits) -> Bytes:
        n = len(values)
        epoch = 1 + bits.integers(self.epochs, n)
        followed, level, slot = self._begun_many(n, bits)
        towards = values == (np.ones(n, dtype=np.int64) if self.followed == 1 else followed)
        # The chosen change is the first answer, and this is the part in which it is reported.
        told = (slot == 1) & (epoch <= 1 << level)
        pending = np.where(told, np.where(towards, _TOWARDS, _AWAY), _NONE)
        return self._sent(followed, level, pending, epoch, bits)

    def _begun_many(self, n: int, bits: Bits) -> tuple[Positions, Positions, Positions]:
        followed, level = bits.integers(self.followed, n), bits.integers(self.depth, n)
        return followed, level, 1 + (bits.integers(self.weight, n) + 1) // 2

    def _sent(self, followed: Positions, level: Positions, pending: Positions, epoch: Any, bits: Bits) -> Bytes:
        kept, fair = bits.bernoulli(self.keep, len(level)), bits.bernoulli(_FAIR, len(level))
        bit = np.where(pending == _NONE, fair, (pending == _TOWARDS) == kept)
        part = np.array(self.offsets)[level] + (epoch >> level) - 1
        number = np.where(
            epoch % (1 << level) == 0, 2 * (followed * self.parts_of_tree + part) + bit, self.tally_size - 1
        )
        return to_bytes(number.astype(narrow_type(self.report_bytes)), self.report_bytes)

    def streams(self, values: Any, bits: Bits | None = None) -> list[Reports]:
        """The reports of many devices in every epoch, for simulations and files: one `Reports` per epoch.

        `values` has a row of answers per device, one per epoch.

        >>> daily = Evolving(["no", "yes"], epsilon=1, epochs=2, changes=1)
        >>> [len(reports) for reports in daily.streams([["no", "yes"], ["yes", "yes"], ["no", "no"]])]
        [3, 3]
        """
        rows = np.asarray(values, dtype=object) if isinstance(values, Sequence) else np.asarray(values)
        if rows.ndim != 2 or rows.shape[1] != self.epochs:
            raise NumberError(f"streams are rows of {self.epochs} answers, one row per device")
        source, n = source_of(bits), len(rows)
        followed, level, slot = self._begun_many(n, source)
        target = np.ones(n, dtype=np.int64) if self.followed == 1 else followed
        seen, holds = np.zeros(n, dtype=np.int64), np.full(n, _UNSET)
        pending = np.full(n, _NONE)
        sent = []
        for epoch in range(1, self.epochs + 1):
            now = np.where(self.domain.encode(rows[:, epoch - 1]) == target, _FOLLOWED, _OTHER)
            changed = (now != holds) & (seen <= self.changes)
            seen += changed
            pending = np.where(changed & (seen == slot), np.where(now == _FOLLOWED, _TOWARDS, _AWAY), pending)
            holds = np.where(changed, now, holds)
            array = self._sent(followed, level, pending, np.full(n, epoch), source)
            pending[epoch % (1 << level) == 0] = _NONE
            sent.append(Reports(self.fingerprint, array, self.spec()))
        return sent

    # -- the collector -----------------------------------------------------------------------------

    def valid(self, reports: Bytes) -> NDArray[np.bool_]:
        return from_bytes(reports) < self.tally_size

    def count(self, reports: Bytes) -> Counts:
        return np.bincount(from_bytes(reports), minlength=self.tally_size).astype(np.int64)

    @property
    def stretch(self) -> float:
        """The factor that turns the mean of the bits, -1 and 1, into the mean change in a part."""
        return self.weight / 2 / float(2 * self.keep.value - 1)

    def infer(self, tally: Tally) -> Series:
        bits = tally.counts[:-1].reshape(self.followed, self.parts_of_tree, 2)
        found = [self._followed_shares(pairs[:, 0], pairs[:, 1]) for pairs in bits]
        if self.followed == 1:
            share, spread = found[0]
            found = [(1 - share, spread), (share, spread)]

        def moved(fakes: int) -> Floats:
            each = [
                self._moved(pairs.sum(axis=1), share, fakes)
                for pairs, (share, _) in zip(bits, found[-len(bits) :], strict=True)
            ]
            # Where one answer is followed, the other one is the rest, and falls where this one rises.
            whole = [each[0][[1, 0, 2]], each[0]] if self.followed == 1 else each
            return np.stack(whole, axis=1)

        return Series(
            [text(label) for label in self.domain.labels],
            np.stack([share for share, _ in found]),
            np.stack([spread for _, spread in found]),
            tally.n,
            self.name,
            moved=moved,
        )

    def _moved(self, n: Counts, share: Floats, fakes: int) -> Floats:
        """How far the share of each epoch, and their mean, falls and rises without `fakes` reports of one part.

        By the rank-one update of least squares: without m reports of part e that say s, shares change by
        m u_e (x_e - s) / (1 - m c_e), with u_e what a unit on the part moves, c_e what it moves the part's own change,
        and x_e that change.
        """
        nothing = np.zeros((3, self.epochs + 1))
        nothing[2] = np.inf
        known = self._connected(n > 0)
        places = np.flatnonzero(known[1:])
        if not places.size:
            return nothing
        number = np.cumsum(known) - 1
        used = np.flatnonzero((n > 0) & known[self.edges[:, 0]])
        begin, end = (number[self.edges[used, side]] for side in (0, 1))
        inverse = np.zeros((places.size + 1, places.size + 1))
        inverse[1:, 1:] = np.linalg.inv(_grounded(begin, end, n[used].astype(np.float64), places.size + 1))
        unit = inverse[:, end] - inverse[:, begin]
        parts = np.arange(used.size)
        left = 1 - fakes * (unit[end, parts] - unit[begin, parts])
        if left.min() <= 1e-9:
            return nothing
        at = np.concatenate([[0.0], share[places] - 0.5])
        rows = np.vstack([unit[1:], unit[1:].mean(axis=0)])
        both = [rows * (fakes * (at[end] - at[begin] - said) / left) for said in (self.stretch, -self.stretch)]
        moves = np.hstack(both)
        found = nothing.copy()
        where = np.append(places, self.epochs)
        found[0, where] = np.maximum(0.0, -moves.min(axis=1))
        found[1, where] = np.maximum(0.0, moves.max(axis=1))
        found[2, where] = 1 / left.min()
        return found

    def _followed_shares(self, away: Counts, towards: Counts) -> tuple[Floats, Floats]:
        """The share after each epoch and the covariance matrix; NaN where nothing is known."""
        n = (away + towards).astype(np.float64)
        known = self._connected(n > 0)
        share, spread = np.full(self.epochs, math.nan), np.full((self.epochs, self.epochs), math.nan)
        places = np.flatnonzero(known[1:])
        if not places.size:
            return share, spread
        number = np.cumsum(known) - 1  # of each connected epoch; 0 is before the first
        used = np.flatnonzero((n > 0) & known[self.edges[:, 0]])
        begin, end = (number[self.edges[used, side]] for side in (0, 1))
        inverse = np.linalg.inv(_grounded(begin, end, n[used], places.size + 1))
        change = self.stretch * (towards - away)[used]
        push = np.zeros(places.size + 1)
        np.add.at(push, end, change)
        np.add.at(push, begin, -change)
        share[places] = 0.5 + inverse @ push[1:]
        spread[np.ix_(places, places)] = self.stretch**2 * inverse
        return share, spread

    def _connected(self, seen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which epochs are linked to the beginning by parts that have reports; 0 is before the first epoch."""
        known = np.zeros(self.epochs + 1, dtype=np.bool_)
        known[0] = True
        edges = self.edges[seen]
        while True:
            more = known.copy()
            more[edges[known[edges[:, 0]], 1]] = True
            more[edges[known[edges[:, 1]], 0]] = True
            if (more == known).all():
                return known
            known = more

    @cached_property
    def _unit_variances(self) -> Floats:
        """The variance of each epoch, with one report in every part of the tree."""
        begin, end = self.edges.T
        inverse = np.linalg.inv(_grounded(begin, end, np.ones(len(begin)), self.epochs + 1))
        variances: Floats = self.stretch**2 * np.diag(inverse)
        return variances

    def _figure_variances(self, answers: Any, people: Any = None) -> Floats:
        n = len(answers) if people is None else int(np.sum(people))
        each = self._unit_variances * self.depth * self.followed * self.epochs / n
        return np.tile(np.append(each, each.max()), self.domain.size)

    def _truth(self, answers: Any, people: Any = None) -> Floats:
        """The truth for people whose answers never change: the same shares in every epoch, and over all of them."""
        counts = np.bincount(self.domain.encode(answers), people, minlength=self.domain.size)
        return np.repeat(counts / counts.sum(), self.epochs + 1)

    @cached_property
    def _most_moved(self) -> float:
        """What one unit on a part moves the share of an epoch at most, with as many reports in all parts."""
        begin, end = self.edges.T
        inverse = np.zeros((self.epochs + 1, self.epochs + 1))
        inverse[1:, 1:] = np.linalg.inv(_grounded(begin, end, np.ones(len(begin)), self.epochs + 1))
        return float(np.abs(inverse[:, end] - inverse[:, begin]).max())

    # -- whole streams -----------------------------------------------------------------------------

    def _stream_laws(self) -> dict[tuple[int, ...], dict[bytes, Fraction]]:
        """The exact law of everything that a device sends, for each stream of answers with few enough changes."""
        found = {}
        for stream in product(range(self.domain.size), repeat=self.epochs):
            if sum(a != b for a, b in pairwise(stream)) <= self.changes:
                found[stream] = exhaust(lambda bits, stream=stream: self._whole(stream, bits)).law  # type: ignore[misc]
        return found

    def _whole(self, stream: Sequence[int], bits: Bits) -> bytes:
        state, sent = self.begin(bits), b""
        for epoch, value in enumerate(stream, start=1):
            state, report = self.step_encoded(state, value, epoch, bits)
            sent += report
        return sent

    # -- for people --------------------------------------------------------------------------------

    def _says(self, report: bytes) -> Fact:
        number = int.from_bytes(report, "little")
        if number == self.tally_size - 1:
            return word("says.later")
        place, bit = divmod(number, 2)
        followed, part = divmod(place, self.parts_of_tree)
        begin, end = self.edges[part]
        answer = text(self.domain.labels[self._target(followed)])
        way = "says.change.towards" if bit else "says.change.away"
        return word(way, answer=answer, first=str(begin + 1), last=str(end))

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        return [
            word("story.stream", chance=percent(1 / self.weight)),
            word("story.stream.bit", chance=percent(float(self.keep))),
        ]

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            scale=lambda: 1.0,
            tests=lambda: self.domain.size * self.epochs,
            # The standard error of a share in the worst epoch, with n people who report in every epoch.
            noise=lambda: math.sqrt(float(self._unit_variances.max()) * self.depth * self.followed / n),
            # The same: chance decides for everybody which change a device reports, so sampling adds nothing.
            error=lambda: self.worth(n).noise,
            variances=self._figure_variances,
            truth=self._truth,
            cost=lambda: Cost((4 + (self.followed > 1)) * WORD_BYTES, 1),
            # One forged bit moves a share most if it is about the part that matters most. One in `epochs` of the
            # reports of a device is about each part of its level, and one level and answer is chosen.
            leverage=lambda: self._most_moved * self.stretch * self.epochs * self.depth * self.followed,
            # Between the two bits.
            moved=lambda: 2 * self.worth().leverage,
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            structure=lambda: Stream(self.epochs, self.changes, self.begin, self.step, self.step_encoded, self.streams),
            counters=lambda: 2 * self.followed * self.parts_of_tree + 1,
            width=lambda: max(1, ((self.tally_size - 1).bit_length() + 7) // 8),
            forms=lambda: self.tally_size,
            ratio=self._ratio,
            guarantee=self._guarantee,
            inputs=lambda: ((label, place) for place, label in enumerate(self.domain.labels)),
            kept=base.kept.but(  # What tells devices apart over the epochs: the answer and the level that one follows.
                state_forms=lambda: (
                    self.followed * self.depth
                ),  # A device follows one answer at one level for ever; bits of two devices with the same are equally
                # coins.
                linking=lambda epochs: float(
                    self.law().kept.state_forms
                ),  # The ratio of everything that a device sends, between any two streams of answers.
                ratio=lambda: self.keep.value / (1 - self.keep.value),
                spent=lambda draws: self.epsilon if draws else Fraction(0),
                lifetime=lambda epochs, values=None: self.epsilon,
                reports=lambda: self.epochs,
                streams=self._stream_laws,
            ),
        )


def _grounded(begin: Any, end: Any, weight: Floats, size: int) -> Floats:
    """The matrix of the least squares for differences of epochs, without the epoch before the first."""
    matrix = np.zeros((size, size))
    np.add.at(matrix, (begin, begin), weight)
    np.add.at(matrix, (end, end), weight)
    np.add.at(matrix, (begin, end), -weight)
    np.add.at(matrix, (end, begin), -weight)
    return matrix[1:, 1:]
