"""Batches as a store writes them: by survey and epoch, each id once, in ascending order.

Order      ascending ids everywhere: neighbours in the index, no two workers that wait for each other, and nothing left
           of the order of arrival
Repeats    of an id within a group the first submission stands, and the others are duplicates
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from deniable.collect.stores.base import Added, Batch
from deniable.collect.wire import ID_BYTES
from deniable.errors import ReportError
from deniable.protocols.reports import Bytes

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Group:
    """The distinct submissions of one survey and epoch, by ascending id."""

    survey: str
    epoch: int
    ids: list[bytes]
    answers: Bytes
    batch: NDArray[np.int64]
    """Which batch each of them came in."""
    batches: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass
class Outcome:
    """What becomes of each batch while its groups are written."""

    batches: Sequence[Batch]
    added: list[Added] = field(init=False)

    def __post_init__(self) -> None:
        self.added = [Added()] * len(self.batches)

    def closed(self, group: Group) -> None:
        for place in group.batches:
            self.added[place] = Added(closed=True)

    def counted(self, group: Group, fresh: Flags) -> int:
        """Note which of a group's submissions were new; the number of duplicates."""
        new = np.bincount(group.batch[fresh], minlength=len(self.batches)).tolist()
        duplicates = 0
        for place in group.batches:
            self.added[place] = Added(new[place], len(self.batches[place].ids) - new[place])
            duplicates += self.added[place].duplicates
        return duplicates


def grouped(batches: Sequence[Batch]) -> Iterator[Group]:
    """The groups by survey and epoch, in an order that all workers share.

    >>> ids = np.arange(48, dtype=np.uint8).reshape(3, 16)[[2, 0, 2]]
    >>> group, = grouped([Batch("s", 0, ids, np.array([[7], [8], [9]], dtype=np.uint8))])
    >>> [id[0] for id in group.ids], group.answers.tolist()
    ([0, 32], [[8], [7]])
    """
    members: dict[tuple[str, int], list[int]] = {}
    for place, batch in enumerate(batches):
        if batch.ids.shape != (len(batch.answers), ID_BYTES) or batch.answers.ndim != 2:
            raise ReportError(f"a batch has an id of {ID_BYTES} bytes and the answers for each submission")
        members.setdefault((batch.survey, batch.epoch), []).append(place)
    for survey, epoch in sorted(members):
        yield _group(survey, epoch, batches, members[survey, epoch])


def _group(survey: str, epoch: int, batches: Sequence[Batch], places: list[int]) -> Group:
    ids = np.concatenate([batches[place].ids for place in places])
    answers = np.concatenate([batches[place].answers for place in places])
    batch = np.repeat(places, [len(batches[place].ids) for place in places]).astype(np.int64)
    high, low = np.ascontiguousarray(ids).view(">u8").reshape(-1, 2).T
    # Stable, so that of equal ids the first to come stays first.
    order = np.lexsort((low, high))
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (high[order[1:]] != high[order[:-1]]) | (low[order[1:]] != low[order[:-1]])
    order = order[first]
    return Group(survey, epoch, rows(ids[order]), answers[order], batch[order], tuple(places))


def rows(array: Bytes) -> list[bytes]:
    """Each row's bytes."""
    raw, width = array.tobytes(), array.shape[1]
    return [raw[at : at + width] for at in range(0, len(raw), width)]


def joined(parts: Sequence[bytes], width: int) -> Bytes:
    """Rows of bytes as an array again."""
    return np.frombuffer(b"".join(parts), dtype=np.uint8).reshape(-1, width)
