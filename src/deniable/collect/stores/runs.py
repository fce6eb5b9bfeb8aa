"""The ids of an epoch, as sorted runs: few pages are written per commit, and no row tells an order.

Pool       a commit merges its new ids into the pool, a sorted row that is written anew: whoever reads the table sees
           ids in the order of their bytes, and not which of them came last
Runs       a full pool keeps half of its ids, chosen at random; the others become a run that is never changed. Sixteen
           runs of about the same size are merged into one, until they are large. What can be told of an id is its run:
           that it came in a period of some hundred or thousand submissions, later of some hundred thousand
Chunks     a run lies in rows of many ids, found by their first id: 17 bytes per id in all
Filter     what is not in a run is told from memory, 4 bytes per id; only the rest is looked for in the table. A filter
           knows all ids of its runs and a few others, so it is wrong in one direction only. Sixteen large runs share
           one, so that there are few to ask
Others     what another connection wrote is noticed by the table's version, and its runs are read then
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from deniable.collect.stores.batches import Flags, Keys, found
from deniable.collect.wire import ID_BYTES

Words = NDArray[np.uint64]

RATIO = 16
"""So many runs of a size are merged into one."""
_SLICE = 1 << 14
"""Ids at a time: their words fit into the processor's cache."""
_KIND = f"S{ID_BYTES}"


class RunTable(ABC):
    """The rows of one survey and epoch in a database; every call is within a transaction of whoever calls."""

    pool: int
    """Ids that stay in the pool when it is full, which it is with twice as many."""
    chunk: int
    """Ids of a row, at most."""
    largest: int
    """Runs from this size on are not merged: a merge holds up commits."""

    @abstractmethod
    def version(self) -> object:
        """Another one whenever another connection has changed something."""

    @abstractmethod
    def runs(self) -> set[int]:
        """The numbers of all runs; the pool is none."""

    @abstractmethod
    def read(self, run: int) -> list[bytes]:
        """The rows of a run, ascending; of the pool if it is `POOL`."""

    @abstractmethod
    def known(self, ids: list[bytes], runs: list[int]) -> set[bytes]:
        """Which of these ids are in one of these runs."""

    @abstractmethod
    def drop(self, run: int) -> None: ...

    @abstractmethod
    def write(self, run: int, chunks: Iterable[tuple[bytes, bytes]]) -> None:
        """Add the rows of a run: first id and ids."""

    @abstractmethod
    def write_pool(self, ids: bytes) -> object:
        """Put the pool in the place of the one that is there; returns the table's version from then on."""


POOL = 0
"""The pool's number; a run has a random one."""


class Hashes:
    """Where filters look for ids: two places, each as a fraction of 2^32, and four bits at each.

    The factors are random, so that nobody can make up ids that fall on each other.
    """

    def __init__(self, ids: Keys, factors: Words) -> None:
        high, low = np.ascontiguousarray(ids).view(">u8").reshape(-1, 2).astype(np.uint64).T
        self.places, self.masks = [], []
        for factor in factors:
            mixed = (high * factor[0] + low) * factor[1]
            mixed = (mixed ^ mixed >> np.uint64(29)) * factor[2]
            mask = np.zeros_like(mixed)
            for shift in (26, 20, 14, 8):
                mask |= np.uint64(1) << (mixed >> np.uint64(shift) & np.uint64(63))
            self.places.append(mixed >> np.uint64(32))
            self.masks.append(mask)

    @staticmethod
    def factors() -> Words:
        return np.frombuffer(secrets.token_bytes(48), dtype=np.uint64).reshape(2, 3) | np.uint64(1)


class Filter:
    """Which ids may be in some runs: a Bloom filter with room for so many ids, of four bytes per id.

    >>> ids, factors = np.frombuffer(bytes(range(160)), dtype="S16"), Hashes.factors()
    >>> filter = Filter(5)
    >>> filter.add(1, ids[:5], factors)
    >>> filter.may_hold(Hashes(ids[:5], factors)).tolist(), len(filter.may_hold(Hashes(ids[5:], factors))) < 5
    ([0, 1, 2, 3, 4], True)
    """

    def __init__(self, room: int) -> None:
        size = room * 16 // 64 + 4
        self._size = np.uint64(size)
        self._words = np.zeros((2, size), dtype=np.uint64)
        self.room = room
        self.runs: set[int] = set()

    def add(self, run: int, ids: Keys, factors: Words) -> None:
        self.runs.add(run)
        self.room -= len(ids)
        for at in range(0, len(ids), _SLICE):
            hashes = Hashes(ids[at : at + _SLICE], factors)
            for words, place, mask in zip(self._words, hashes.places, hashes.masks, strict=True):
                np.bitwise_or.at(words, self._at(place), mask)

    def _at(self, places: Words) -> Words:
        return places * self._size >> np.uint64(32)

    def may_hold(self, hashes: Hashes) -> NDArray[np.intp]:
        """The places of the ids that may be in one of the runs."""
        (first, second), masks = self._words, hashes.masks
        which = np.flatnonzero((first[self._at(hashes.places[0])] & masks[0]) == masks[0])
        if which.size:
            mask = masks[1][which]
            which = which[(second[self._at(hashes.places[1][which])] & mask) == mask]
        return which


class SortedRuns:
    """The ids of one survey and epoch, for one connection."""

    def __init__(self, table: RunTable) -> None:
        self._table = table
        self._version: object = None
        self._pool: Keys = np.empty(0, dtype=_KIND)
        self._sizes: dict[int, int] = {}
        self._factors = Hashes.factors()
        self._filters: list[Filter] = []

    def claim(self, ids: Keys) -> Flags:
        """Insert ids, which ascend; returns which of them were new. Nobody else claims until the transaction ends."""
        self.catch_up()
        fresh = ~self._known(ids)
        new = ids if fresh.all() else ids[fresh]
        if len(new):
            self._put_pool(np.sort(np.concatenate([self._pool, new]), kind="stable"))
            self._merge()
        return fresh

    def undone(self) -> None:
        """The transaction was rolled back: what is known here may not be so."""
        self._version = None

    # -- finding -----------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Read what others have written."""
        version = self._table.version()
        if version == self._version:
            return
        runs = self._table.runs()
        self._pool = self._read(POOL)
        for run in self._sizes.keys() - runs:
            self._forget(run)
        for run in runs - self._sizes.keys():
            self._remember(run, self._read(run))
        self._version = version

    def _known(self, ids: Keys) -> Flags:
        known, hashes = found(self._pool, ids), Hashes(ids, self._factors)
        for filter in self._filters:
            maybe = filter.may_hold(hashes)
            maybe = maybe[~known[maybe]]
            if maybe.size:
                wanted = [ids[place : place + 1].tobytes() for place in maybe.tolist()]
                held = self._table.known(wanted, sorted(filter.runs))
                known[maybe] = [id in held for id in wanted]
        return known

    # -- writing -----------------------------------------------------------------------------------

    def _put_pool(self, pool: Keys) -> None:
        if len(pool) >= 2 * self._table.pool:
            stays = np.zeros(len(pool), dtype=np.bool_)
            stays[np.random.default_rng().permutation(len(pool))[: self._table.pool]] = True
            self._put_run(pool[~stays])
            pool = pool[stays]
        self._version = self._table.write_pool(pool.tobytes())
        self._pool = pool

    def _put_run(self, ids: Keys) -> None:
        run = secrets.randbits(62) + 1
        self._table.write(run, chunks(ids, self._table.chunk))
        self._remember(run, ids)

    def _remember(self, run: int, ids: Keys) -> None:
        large = len(ids) >= self._table.largest
        with_room = (filter for filter in self._filters if filter.room >= len(ids)) if large else iter(())
        filter = next(with_room, None)
        if filter is None:
            filter = Filter(len(ids) * RATIO if large else len(ids))
            self._filters.append(filter)
        filter.add(run, ids, self._factors)
        self._sizes[run] = len(ids)

    def _forget(self, run: int) -> None:
        del self._sizes[run]
        for filter in self._filters:
            filter.runs.discard(run)
        self._filters = [filter for filter in self._filters if filter.runs]

    def _merge(self) -> None:
        while len(some := self._alike()) >= RATIO:
            merged = np.sort(np.concatenate([self._read(run) for run in some]), kind="stable")
            # Before the merged ones are written, which then take their pages.
            for run in some:
                self._table.drop(run)
                self._forget(run)
            self._put_run(merged)

    def _alike(self) -> list[int]:
        """The runs of the size that has most of them, the largest excepted."""
        alike: dict[int, list[int]] = {}
        for run, size in self._sizes.items():
            if size < self._table.largest:
                level, least = 0, self._table.pool * RATIO
                while size >= least:
                    level, least = level + 1, least * RATIO
                alike.setdefault(level, []).append(run)
        return max(alike.values(), key=len, default=[])

    def _read(self, run: int) -> Keys:
        return np.frombuffer(b"".join(self._table.read(run)), dtype=_KIND)


def select_runs(table: str, where: str = "true") -> str:
    """The numbers of all runs: from one to the next by the index, because there are far more rows."""
    following = f"SELECT MIN(run) FROM {table} WHERE {where} AND run > "
    others = f"SELECT ({following} known.run) FROM known WHERE known.run IS NOT NULL"
    walk = f"WITH RECURSIVE known (run) AS ({following} {POOL} UNION ALL {others})"
    return f"{walk} SELECT run FROM known WHERE run IS NOT NULL"


def chunks(ids: Keys, size: int) -> Iterator[tuple[bytes, bytes]]:
    """The rows of ids that ascend: the first, and all."""
    raw = ids.tobytes()
    for at in range(0, len(raw), size * ID_BYTES):
        yield raw[at : at + ID_BYTES], raw[at : at + size * ID_BYTES]
