"""The interface of stores, and what every store promises.

Once        one transaction per group of batches: ids are inserted, only the new ones are counted, and their sum is
            added to the tally; so n equals the number of distinct ids, whatever is sent again or killed
Durable     what `add` has returned survives kill -9 and power loss
Sums        if reports are not kept, a submission leaves its id and its part of a sum, and nothing else
Order       nothing shows in what order submissions came: ids lie among others in groups that are sorted by id. Earlier
            states of a group, which a database keeps below its tables, are gone after `tidy`
Closing     an epoch's tally is hashed, later reports of it are refused, and then its ids are dropped: the only safe way
            to forget them, because a replay is refused by its epoch
Reopening   is possible as long as the ids are there, so they may be kept for some time after closing
Identity    ids are remembered by survey and epoch, as a replay repeats both
Shares      in a survey with several collectors each submission is a share, kept by its id and added to no tally. Once
            the epoch is closed and all collectors have the same people, `sum_shares` keeps only their sum, and
            `settle_shares` puts the sum of all collectors into the tally: only settled sums are read
Deleting    kept reports are deleted by closed epochs: sums stay, and such an epoch cannot be reopened. A survey is
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
"""States of shares after closing: their sum is here; their sum with the other collectors' is in the tally."""
REOPEN_SECONDS = 3 * 86_400.0
"""How long the ids of a closed epoch are kept, so that it can be reopened."""
TOLERANCE = 60.0
"""Maximum difference, in seconds, between two clocks that agree."""


class StoreError(DeniableError, RuntimeError):
    """The store cannot be used: it is unreachable, damaged, or of another version."""

    code: str | None = None
    """The database's name for the error: an SQLSTATE, or the name of SQLite's error."""


class VersionError(StoreError):
    """Another version of deniable writes the store, or its tables have another version."""


class TakenError(StoreError):
    """Other processes hold something, perhaps not for long."""


class InUse(StoreError):
    """Something cannot be deleted yet, because something else needs it."""


class SurveyDeleted(StoreError):
    """The survey was deleted; only its fingerprint is left.

    Args:
        fingerprint: Fingerprint of the survey.
    """

    def __init__(self, fingerprint: str) -> None:
        super().__init__(
            f"survey {fingerprint} was deleted with all that was collected, and is not collected here again: make "
            "a new survey, with other dates for example"
        )


class StorageFull(StoreError):
    """There is no room for the data; none of it was written."""


class CountedElsewhere(DeniableError):
    """Sums were requested from a store that keeps reports for other programs to count; says what to run."""


class NoShares(DeniableError, RuntimeError):
    """The shares do not exist, cannot be summed yet, or no longer exist."""


@dataclass(frozen=True)
class Batch:
    """Submissions of one survey and epoch, checked and plausible; ids may repeat.

    Args:
        survey: Fingerprint of the survey.
        epoch: The epoch.
        ids: One row of 16 bytes per submission.
        answers: One row of report bytes per submission.
    """

    survey: str
    epoch: int
    ids: Bytes
    answers: Bytes


@dataclass(frozen=True)
class Added:
    """The outcome of a batch.

    Args:
        fresh: Number of submissions that were counted.
        duplicates: Ids that were counted before, or are counted now with another submission: never again.
        conflicts: Duplicates that had other answers, as far as the first answers were available: in the same call, or
            because reports are kept.
        closed: The epoch was already closed: nothing was counted.
    """

    fresh: int = 0
    duplicates: int = 0
    conflicts: int = 0
    closed: bool = False


@dataclass(frozen=True)
class Epoch:
    """One epoch of a survey in the store.

    Args:
        epoch: Its number.
        state: "open" or "closed".
        n: Number of submissions counted.
        sha256: Hash of the final tally, once closed.
        deleted: Submissions that were counted and then deleted by their senders; not in `n`.
        forget: Until when, in seconds since 1970, the ids of a closed epoch are kept; None if it is open or they are
            gone.
        reopened: How often it was reopened.
        dropped: Whether its kept reports were deleted. Until then a survey that keeps reports has all `n` of them.
    """

    epoch: int
    state: str
    n: int
    sha256: str | None = None
    deleted: int = 0
    forget: int | None = None
    reopened: int = 0
    dropped: bool = False


@dataclass(frozen=True)
class Shares:
    """The shares of an epoch: OPEN while more may come, CLOSED, SUMMED or SETTLED."""

    state: str
    n: int
    """Number of people."""
    ids: Bytes
    """CLOSED: the ids of those people, ascending. SUMMED: one row, `share_digest` of the ids."""
    counts: Counts
    """SETTLED: the sum over all collectors."""


@dataclass(frozen=True)
class Published:
    """A survey as it was published, byte for byte.

    Args:
        fingerprint: Fingerprint of the survey.
        canonical: Its canonical JSON.
        state: "open", or "closed" by its owner.
    """

    fingerprint: str
    canonical: bytes
    state: str


@dataclass(frozen=True)
class Token:
    """A person's or program's key to the service; only its hash is stored.

    Args:
        sha256: Hash of the token.
        role: "admin", "analyst" or "ingest".
        label: A name for people.
        survey: The fingerprint of the only survey that it is valid for.
        expires: When it expires, in seconds since 1970.
    """

    sha256: str
    role: str
    label: str
    survey: str | None = None
    expires: int | None = None


@dataclass(frozen=True)
class StoredTime:
    """What a store knows of the time, in seconds since 1970."""

    trusted: int | None
    """The last time that a service trusted."""
    confirmed: int | None
    """The last time that an operator confirmed."""
    clock: float | None = None
    """The time of the database's own clock, if it has one."""


Rejections = Mapping[tuple[str, int, str], int]
"""(survey, day since 1970, reason) -> count."""


class Store(ABC):
    """One connection to a store; not shared between threads. A worker's tallies go to its own `shard`."""

    has_sums = True
    """Whether it counts reports; if not, they are kept for other programs to count."""
    trouble: str | None = None
    """Why work is left after the last epoch was closed; `tidy` tries it again."""
    reconnects = False
    """Whether a closed store reconnects when it is used again; what it knows of ids is then kept."""

    # -- surveys -----------------------------------------------------------------------------------

    @abstractmethod
    def publish(self, survey: Survey) -> bool:
        """Add a survey; False if it already existed. Raises SurveyDeleted if it was deleted."""

    @abstractmethod
    def surveys(self) -> list[Published]: ...

    @abstractmethod
    def close_survey(self, fingerprint: str) -> None:
        """Accept no more reports of this survey; closes its open epochs."""

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

        Returns one `Added` per batch, in order. Two batches may share survey, epoch and ids. Batches of a deleted
        survey are `closed`.
        """

    @abstractmethod
    def delete(self, fingerprint: str, id: bytes) -> bool:
        """Delete the kept report of this id, and subtract it from the tally; False if no open epoch holds it.

        The id itself stays until the epoch closes, so that the same submission sent again is not counted again.
        """

    @abstractmethod
    def close_epoch(self, fingerprint: str, epoch: int, forget: float | None = None) -> Epoch:
        """Refuse later reports, hash the tally, forget the ids; closing again changes nothing.

        The ids are kept until `forget_ids` is called with the time `forget`, in seconds since 1970; without `forget`
        they are forgotten at once.
        """

    @abstractmethod
    def forget_ids(self, now: float) -> None:
        """Forget the ids of closed epochs that were to be kept until this time at the latest.

        Also removes what should have gone earlier but was in use.
        """

    @abstractmethod
    def reopen_epoch(self, fingerprint: str, epoch: int) -> Epoch:
        """Accept reports of a closed epoch again; its tally and ids are unchanged.

        Raises StoreError if it is not closed, its ids are gone, its reports were dropped or its survey is closed.
        """

    @abstractmethod
    def drop_reports(self, fingerprint: str, first: int = 0, last: int | None = None) -> int:
        """Delete the kept reports of closed epochs, both ends included; returns how many there were.

        The tallies stay, and the ids go. Raises InUse, and changes nothing, if one of the epochs is open: senders may
        still have their reports of it removed from the tally.
        """

    # -- shares ------------------------------------------------------------------------------------

    def shares(self, fingerprint: str, epoch: int) -> Shares:
        """The state of an epoch's shares on the way to a sum."""
        raise self._no_shares()

    def leave_out(self, fingerprint: str, epoch: int, ids: Bytes) -> int:
        """Erase the shares of these ids in a closed epoch; returns how many there were."""
        raise self._no_shares()

    def sum_shares(self, fingerprint: str, epoch: int, digest: bytes, least: int) -> Counts:
        """Sum all remaining shares, and erase them; a repeated call for the same people returns the same.

        `digest` names the people on whom all collectors have agreed (`share_digest`). Raises NoShares for other people,
        for fewer than `least`, and for an epoch that is open or has been settled.
        """
        raise self._no_shares()

    def settle_shares(self, fingerprint: str, epoch: int, n: int, counts: Counts) -> Epoch:
        """Put the sum over all collectors into the tally, and erase what is left here; n = 0 means no result.

        Repeating the call changes nothing; another result raises NoShares.
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
        """Kept reports by epoch and id, in bounded batches; nothing if retention is "tally"."""

    @abstractmethod
    def rejections(self, fingerprint: str) -> list[tuple[int, str, int]]:
        """(day, reason, count)."""

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
        """Record a trusted time; `first` changes nothing if a time is already recorded."""

    @abstractmethod
    def confirm_time(self, time: float) -> None:
        """Record the time that an operator confirms."""

    # -- care --------------------------------------------------------------------------------------

    @abstractmethod
    def tidy(self) -> bool:
        """Remove the earlier states that the database itself keeps: deleted data, and traces of order.

        Ingest goes on meanwhile. False if readers blocked it, so that it must be repeated.
        """

    @abstractmethod
    def check(self, deep: bool = True) -> list[str]:
        """What is wrong with the store, one sentence each; an empty list means that nothing is wrong.

        Compares tallies with ids (open epochs), kept reports with tallies, hashes of closed epochs, and the database.
        """

    @abstractmethod
    def backup(self, path: Path) -> None:
        """A consistent copy, taken while the service runs."""

    @abstractmethod
    def software(self) -> str:
        """The version of deniable that writes."""

    @abstractmethod
    def upgrade(self) -> None:
        """From now on let only this version of deniable write: processes of other versions are refused."""

    def impatient(self) -> AbstractContextManager[None]:
        """Inside this context, wait only briefly for what another process holds; then raise `TakenError`."""
        return nullcontext()

    def size(self) -> int:
        """The size of the store in bytes, as far as it is known."""
        return 0

    def keep_reserve(self) -> None:  # noqa: B027
        """For a process that serves the store: reserve some room for when the disk is full, if the store can."""

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
    """Why an epoch cannot be reopened, given its survey's state and its own; None if it can."""
    if survey != OPEN:
        return "its survey is closed"
    if state != CLOSED:
        return "it is not closed"
    if dropped:
        return "its kept reports were deleted, and nobody could take one out of the tally"
    return "the ids of its submissions are forgotten, and replays would be counted" if forget is None else None


def refuse_shares(epoch: int, state: str | None) -> None:
    """Raise NoShares unless the epoch is closed and its shares wait to be summed."""
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
