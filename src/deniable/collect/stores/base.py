"""Where a collection is kept: one small interface, and what every store promises.

Once        one transaction per group of batches: ids are inserted, only those that were not there are counted, and
            their sum is added to the tally; so n equals the number of distinct ids, whatever is sent again or killed
Durable     what `add` has returned survives kill -9 and power loss
Sums        where reports are not kept, a submission leaves its id and its part of a sum, and nothing else
Order       nothing says in what order submissions came: ids lie among others in groups that are sorted by id. Earlier
            states of a group, which a database keeps below its tables, are gone after `tidy`
Closing     an epoch's tally is hashed, later reports of it are refused, and then its ids are dropped: the only safe way
            to forget them, because a replay is refused by its epoch
Reopening   is possible as long as the ids are there, so they may be kept for some time after closing
Identity    ids are remembered by survey and epoch, as a replay repeats both
Shares      of a survey with several collectors each submission is a share, kept by its id and added to no tally. Once
            the epoch is closed and all collectors have the same people, `sum_shares` leaves their sum alone, and
            `settle_shares` puts the sum of all collectors into the tally: only what is settled is read
Deleting    kept reports are deleted by closed epochs: sums stay, and such an epoch cannot be opened again. A survey is
            deleted with all that was collected; its fingerprint stays, so that it is never published here again
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from deniable.errors import DeniableError, SpecError
from deniable.protocols.reports import Bytes
from deniable.protocols.tally import Counts
from deniable.surveys import Survey, SurveyTally

ROLES = ("admin", "analyst", "ingest")
OPEN, CLOSED, DELETED = "open", "closed", "deleted"
SUMMED, SETTLED = "summed", "settled"
"""Of shares, after they are closed: their sum is here; and it is in the tally with those of the other collectors."""
REOPEN_SECONDS = 3 * 86_400.0
"""How long the ids of a closed epoch are kept, so that it can be opened again."""
TOLERANCE = 60.0
"""Seconds by which two clocks may differ that agree."""


class StoreError(DeniableError, RuntimeError):
    """A store that cannot be used: unreachable, of another version, damaged."""

    code: str | None = None
    """What the database calls it: an SQLSTATE, or the name of SQLite's error."""


class VersionError(StoreError):
    """A store that another version of deniable writes, or whose tables are of another version."""


class TakenError(StoreError):
    """Something that others hold, perhaps not for long."""


class InUse(StoreError):
    """Something that cannot go yet, because something else needs it."""


class SurveyDeleted(StoreError):
    """A survey that was here, and of which only the fingerprint is left."""

    def __init__(self, fingerprint: str) -> None:
        super().__init__(
            f"survey {fingerprint} was deleted with all that was collected, and is not collected here again: make "
            "a new survey, with other dates for example"
        )


class StorageFull(StoreError):
    """No room for what was to be written; nothing of it was."""


class CountedElsewhere(DeniableError):
    """Sums were asked of a store that keeps reports for others to count; says what to run."""


class NoShares(DeniableError, RuntimeError):
    """Shares that are not there, not yet to be added up, or not any more."""


@dataclass(frozen=True)
class Batch:
    """Submissions of one survey and epoch, checked and plausible; ids may repeat."""

    survey: str
    epoch: int
    ids: Bytes
    answers: Bytes


@dataclass(frozen=True)
class Added:
    """What became of a batch."""

    fresh: int = 0
    duplicates: int = 0
    """Ids that were counted before, or are counted now with another submission: never again."""
    conflicts: int = 0
    """Those of the duplicates that had other answers, as far as the first ones were at hand: in the same call, or
    because reports are kept."""
    closed: bool = False
    """The epoch was closed before: nothing was counted."""


@dataclass(frozen=True)
class Epoch:
    """One epoch of a survey as the store has it."""

    epoch: int
    state: str
    n: int
    sha256: str | None = None
    """Of the final tally, once closed."""
    deleted: int = 0
    """Submissions that were counted and then deleted by whoever had sent them; not in `n`."""
    forget: int | None = None
    """Until when, in seconds since 1970, the ids of a closed epoch are kept; None if it is open or they are gone."""
    reopened: int = 0
    """How often it was opened again."""
    dropped: bool = False
    """Whether its kept reports were deleted. Until then a survey that keeps reports has all `n` of them."""


@dataclass(frozen=True)
class Shares:
    """The shares of an epoch: OPEN while others may come, CLOSED, SUMMED or SETTLED."""

    state: str
    n: int
    """Of how many people."""
    ids: Bytes
    """Of those people where CLOSED, ascending; where SUMMED one row, `share_digest` of them."""
    counts: Counts
    """The sum over all collectors where SETTLED."""


@dataclass(frozen=True)
class Published:
    """A survey as it was published: the very bytes."""

    fingerprint: str
    canonical: bytes
    state: str
    """"open", or "closed" by its owner."""


@dataclass(frozen=True)
class Token:
    """Someone's key to the service, of which only the hash is kept."""

    sha256: str
    role: str
    label: str
    survey: str | None = None
    """The fingerprint of the only survey that it is good for."""
    expires: int | None = None
    """When it ends, in seconds since 1970."""


@dataclass(frozen=True)
class StoredTime:
    """What a store knows of the time, in seconds since 1970."""

    trusted: int | None
    """The last time that a service has trusted."""
    confirmed: int | None
    """The last time that an operator has confirmed."""
    clock: float | None = None
    """What the database's own clock shows, if it has one."""


Rejections = Mapping[tuple[str, int, str], int]
"""(survey, day since 1970, reason) -> how many."""


class Store(ABC):
    """One connection to a store; not shared between threads. A worker's tallies go to its own `shard`."""

    has_sums = True
    """Whether it counts; else reports are kept for others to count."""
    trouble: str | None = None
    """Why something is left to do after the last epoch was closed; it is tried again by `tidy`."""
    reconnects = False
    """Whether a store that was closed connects anew when it is used again; what it knows of ids is then kept."""

    # -- surveys -----------------------------------------------------------------------------------

    @abstractmethod
    def publish(self, survey: Survey) -> bool:
        """Add a survey; False if it was there already. Raises SurveyDeleted if it was deleted."""

    @abstractmethod
    def surveys(self) -> list[Published]: ...

    @abstractmethod
    def close_survey(self, fingerprint: str) -> None:
        """Take no more reports of this survey; closes its open epochs."""

    @abstractmethod
    def delete_survey(self, fingerprint: str) -> None:
        """Forget a survey: its specification, sums, ids, kept reports and counts of refusals.

        Its fingerprint stays among `deleted`. Raises InUse if a later round was made from its sums.
        """

    @abstractmethod
    def deleted(self) -> list[str]:
        """The fingerprints of surveys that were deleted, ascending."""

    # -- ingest ------------------------------------------------------------------------------------

    @abstractmethod
    def add(self, batches: Sequence[Batch], rejected: Rejections | None = None) -> list[Added]:
        """Count each submission that was not counted before, all or nothing, in one durable transaction.

        Returns one `Added` per batch, in order. Two batches may share survey, epoch and ids. Those of a survey that was
        deleted are `closed`.
        """

    @abstractmethod
    def delete(self, fingerprint: str, id: bytes) -> bool:
        """Forget the kept report of this id, and take it out of the tally; False if no open epoch holds one.

        The id itself stays until the epoch closes, so that the same submission sent again is not counted again.
        """

    @abstractmethod
    def close_epoch(self, fingerprint: str, epoch: int, forget: float | None = None) -> Epoch:
        """Refuse later reports, hash the tally, forget the ids; closing again changes nothing.

        The ids are kept until `forget_ids` is called with the time `forget`, in seconds since 1970; without it they are
        forgotten at once.
        """

    @abstractmethod
    def forget_ids(self, now: float) -> None:
        """Forget the ids of closed epochs that were to be kept until this time at the latest.

        Also what was to go before, and could not go because somebody was in the way.
        """

    @abstractmethod
    def reopen_epoch(self, fingerprint: str, epoch: int) -> Epoch:
        """Take reports of a closed epoch again, whose tally and ids are as they were.

        Raises StoreError if it is not closed, its ids are gone, its reports were dropped or its survey is closed.
        """

    @abstractmethod
    def drop_reports(self, fingerprint: str, first: int = 0, last: int | None = None) -> int:
        """Forget the kept reports of closed epochs, both ends included; returns how many there were.

        The tallies stay, and the ids go. Raises InUse, and changes nothing, if one of the epochs is open: whoever has
        sent a report of it may still have it taken out of the tally.
        """

    # -- shares ------------------------------------------------------------------------------------

    def shares(self, fingerprint: str, epoch: int) -> Shares:
        """How far the shares of an epoch are on their way to a sum."""
        raise self._no_shares()

    def leave_out(self, fingerprint: str, epoch: int, ids: Bytes) -> int:
        """Erase the shares of these ids in a closed epoch; returns how many there were."""
        raise self._no_shares()

    def sum_shares(self, fingerprint: str, epoch: int, digest: bytes, least: int) -> Counts:
        """Add up all shares that are left, and erase them; the same again for the same people.

        `digest` names the people whom all collectors have agreed on (`share_digest`). Raises NoShares for others, for
        fewer than `least`, and for an epoch that is open or has been settled.
        """
        raise self._no_shares()

    def settle_shares(self, fingerprint: str, epoch: int, n: int, counts: Counts) -> Epoch:
        """Put the sum over all collectors into the tally, and erase what is left here; n = 0 is no result.

        The same again changes nothing; another result raises NoShares.
        """
        raise self._no_shares()

    def _no_shares(self) -> NoShares:
        return NoShares("this store keeps no shares: a collector of shares needs sqlite:/// or postgresql://")

    # -- reading -----------------------------------------------------------------------------------

    @abstractmethod
    def epochs(self, fingerprint: str) -> list[Epoch]:
        """Every epoch with reports or closed, ascending."""

    @abstractmethod
    def tally(self, fingerprint: str, first: int = 0, last: int | None = None) -> SurveyTally:
        """The sum over these epochs, both included; consistent as of one moment."""

    @abstractmethod
    def reports(self, fingerprint: str, first: int = 0, last: int | None = None) -> Iterator[Batch]:
        """Kept reports by epoch and id, in bounded batches; nothing where retention is "tally"."""

    @abstractmethod
    def rejections(self, fingerprint: str) -> list[tuple[int, str, int]]:
        """(day, reason, how many)."""

    @abstractmethod
    def duplicates(self, fingerprint: str) -> int:
        """How many submissions came again and were not counted."""

    # -- tokens ------------------------------------------------------------------------------------

    @abstractmethod
    def add_token(self, token: Token) -> None: ...

    @abstractmethod
    def tokens(self) -> list[Token]: ...

    @abstractmethod
    def remove_token(self, sha256: str) -> bool: ...

    # -- time --------------------------------------------------------------------------------------

    @abstractmethod
    def time(self) -> StoredTime: ...

    @abstractmethod
    def note_time(self, trusted: float, first: bool = False) -> None:
        """Note a trusted time; `first` changes nothing if one is noted already."""

    @abstractmethod
    def confirm_time(self, time: float) -> None:
        """Note what an operator says the time is."""

    # -- care --------------------------------------------------------------------------------------

    @abstractmethod
    def tidy(self) -> bool:
        """Remove what the database itself keeps of earlier states: what was deleted, and what tells an order.

        Ingest goes on meanwhile. False if others who read were in the way, so that it has to be done again.
        """

    @abstractmethod
    def check(self, deep: bool = True) -> list[str]:
        """What is wrong with the store, one sentence each; an empty list is good news.

        Tallies against ids (open epochs), kept reports against tallies, hashes of closed epochs, the database itself.
        """

    @abstractmethod
    def backup(self, path: Path) -> None:
        """A consistent copy, taken while the service runs."""

    @abstractmethod
    def software(self) -> str:
        """The version of deniable that writes."""

    @abstractmethod
    def upgrade(self) -> None:
        """Let this version of deniable write from now on, and no other: processes of another are refused."""

    def impatient(self) -> AbstractContextManager[None]:
        """Within this, what another process holds is waited for only shortly; then `TakenError` is raised."""
        return nullcontext()

    def size(self) -> int:
        """How many bytes the store takes, as far as it knows."""
        return 0

    def keep_reserve(self) -> None:  # noqa: B027
        """Keep some room for when the disk is full, as far as the store can: for whoever serves it."""

    @abstractmethod
    def ping(self) -> None:
        """Raise `StoreError` unless the store can be written, `StorageFull` if it has no room."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def collected(survey: Survey) -> Survey:
    """The survey, if it can be published; else raises SpecError."""
    if survey.terms is None:
        raise SpecError("a survey for files only cannot be published: add owner, purpose, epochs and the other terms")
    return survey


def unknown(fingerprint: str) -> StoreError:
    return StoreError(f"no survey {fingerprint} is published in this store: publish it first")


def not_reopened(epoch: int, why: str) -> StoreError:
    return StoreError(f"epoch {epoch} cannot be opened again: {why}")


def why_not_reopened(survey: str, state: str | None, forget: int | None, dropped: bool) -> str | None:
    """Why an epoch cannot be opened again, given its survey's state and its own; None if it can."""
    if survey != OPEN:
        return "its survey is closed"
    if state != CLOSED:
        return "it is not closed"
    if dropped:
        return "its kept reports were deleted, and nobody could take one out of the tally"
    return "the ids of its submissions are forgotten, and replays would be counted" if forget is None else None


def refuse_shares(epoch: int, state: str | None) -> None:
    """Raise NoShares unless the epoch is closed and its shares wait to be added up."""
    if state in (None, OPEN):
        raise NoShares(f"epoch {epoch} is open, so others may still send shares: close it first")
    if state == SETTLED:
        raise NoShares(f"the shares of epoch {epoch} have been added up and erased")


def still_open(epoch: int) -> InUse:
    return InUse(f"epoch {epoch} is open and its reports are needed: close it first")


def refuse_needed(fingerprint: str, published: Sequence[Published]) -> None:
    """Raise InUse if a later round of a campaign was made from the sums of this survey."""
    for one in published:
        campaign = json.loads(one.canonical).get("campaign") or {}
        if campaign.get("before") == fingerprint:
            raise InUse(
                f"round {campaign.get('round')} of its campaign, {one.fingerprint}, was made from the sums of this "
                "survey, and nobody could verify that without them: delete the later round first"
            )
