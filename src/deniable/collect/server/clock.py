"""Trusted time: a wall clock that is believed only after it has kept step with the monotonic clock.

A wall clock that jumps must not end a survey: an epoch that closes too early refuses honest reports for good.

Steady     the wall clock is within `TOLERANCE` seconds of the time that the monotonic clock counts on, and, where the
           store has a clock of its own (PostgreSQL), of that
Settled    it was steady for `steady_seconds`, or an operator has confirmed it. Only then are epochs closed
In doubt   after a start and after a jump. The time may then be any that one of the clocks shows: the wall clock, the
           time before the jump counted on, the store's clock. A report is refused by its epoch only if all of them
           refuse it; that is safe, because an epoch that is not closed remembers its ids
Restart    the store notes the time while it is settled, so that a start during a jump does not forget it. A new store
           notes the first time that it sees
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from deniable.collect.stores.base import TOLERANCE, StoredTime

STARTED = "the service has started"
JUMPED = "the clock has jumped"
DISAGREES = "the clock and that of the database disagree"
SETTLED = "the time is trusted"


@dataclass(frozen=True)
class Bounds:
    """What the time is: between these two moments, with a best guess."""

    earliest: float
    guess: float
    latest: float
    doubt: str | None
    """Why the time is not settled, for an operator; None if it is, and then all three are the wall clock's."""


@dataclass(frozen=True)
class _Known:
    """What is known of the clocks. An offset plus the monotonic clock is a time."""

    trusted: float
    """Offset of the time that was trusted last."""
    wall: float
    """Offset of the wall clock since `since`."""
    since: float
    """When the wall clock began to be steady, by the monotonic clock."""
    settled: bool
    why: str
    """Why it is not settled, or was not."""
    store: float | None = None
    """Offset of the store's clock."""


class TrustedClock:
    """The time for a service. Any thread may ask; one of them calls `check` every second or so.

    >>> wall, monotonic = [1000.0], [0.0]
    >>> clock = TrustedClock(lambda: wall[0], lambda: monotonic[0], steady_seconds=3600)
    >>> clock.bounds().doubt
    'the service has started'
    >>> wall[0], monotonic[0] = 4700.0, 3700.0
    >>> clock.check(), clock.bounds().doubt
    (['the time is trusted'], None)
    >>> wall[0] += 40 * 86_400
    >>> clock.bounds()
    Bounds(earliest=4700.0, guess=4700.0, latest=3460700.0, doubt='the clock has jumped')
    """

    def __init__(self, wall: Callable[[], float], monotonic: Callable[[], float], steady_seconds: float) -> None:
        self._wall, self._monotonic, self._steady = wall, monotonic, steady_seconds
        self._confirmed: int | None = None
        self._asked_store = False
        now = monotonic()
        offset = wall() - now
        self._known = _Known(offset, offset, now, False, STARTED)

    def bounds(self) -> Bounds:
        known, now, wall = self._known, self._monotonic(), self._wall()
        jumped = abs(wall - (known.wall + now)) > TOLERANCE
        if known.settled and not jumped:
            return Bounds(wall, wall, wall, None)
        trusted = known.trusted + now
        times = sorted([wall, trusted] + ([] if known.store is None else [known.store + now]))
        if len(times) == 3:
            guess = times[1]
        else:
            # Nobody knows for how long the service was stopped, but no clock goes back.
            guess = wall if known.why == STARTED and not jumped and wall > trusted - TOLERANCE else trusted
        return Bounds(times[0], guess, times[-1], JUMPED if jumped else known.why)

    def check(self, stored: StoredTime | None = None) -> list[str]:
        """Learn how the clocks have gone on, given what the store has. Returns what is new, for the log."""
        known, now, wall = self._known, self._monotonic(), self._wall()
        news = []
        if stored is not None:
            if stored.trusted is not None and not self._asked_store:
                known = replace(known, trusted=stored.trusted - now)
            if stored.clock is not None:
                known = replace(known, store=stored.clock - now)
            self._asked_store = True
        if abs(wall - (known.wall + now)) > TOLERANCE:
            known = replace(known, wall=wall - now, since=now, settled=False, why=JUMPED)
            news.append(JUMPED)
        if known.store is not None and abs(wall - (known.store + now)) > TOLERANCE:
            if known.why != DISAGREES or known.settled:
                news.append(DISAGREES)
            known = replace(known, since=now, settled=False, why=DISAGREES)
        elif now - known.since >= self._steady or self._is_confirmed(stored, wall):
            if not known.settled:
                news.append(SETTLED)
            # A clock that is slowly set right is followed.
            known = replace(known, trusted=wall - now, wall=wall - now, since=now, settled=True)
        self._known = known
        return news

    def _is_confirmed(self, stored: StoredTime | None, wall: float) -> bool:
        """Whether an operator has said, a moment ago, that the time is what this clock shows."""
        if stored is None or stored.confirmed is None or stored.confirmed == self._confirmed:
            return False
        self._confirmed = stored.confirmed
        return abs(wall - stored.confirmed) <= TOLERANCE
