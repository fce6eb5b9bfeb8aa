"""The ids of an epoch, as sorted runs: few pages are written per commit, and no row tells an order.

Pool       a commit merges its new ids into the pool, a sorted row that is written anew: whoever reads the table sees
           ids in the order of their bytes, and not which of them came last
Runs       a full pool keeps half of its ids, chosen at random; the others become a run that is never changed. Sixteen
           runs of about the same size are merged into one, until they are large. What can be told of an id is its run:
           that it came in a period of some hundred or thousand submissions, later of some hundred thousand
Chunks     a run lies in rows of many ids, found by their first id: 17 bytes per id in all
Filter     what is in no run is told from memory, 4 to 12 bytes per id; only the others are looked for in the table. A
           filter knows all ids of its runs and perhaps more, so it is wrong in one direction only
Others     what another connection wrote is noticed by the table's version, and its runs are read then
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from deniable.collect.stores.batches import Flags, Keys, found
from deniable.collect.wire import ID_BYTES

Words = NDArray[np.uint64]

RATIO = 16
"""So many runs of a size are merged into one."""
_FIRST_FILTER = 1 << 16
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
    def sizes(self) -> dict[int, int]:
        """How many ids each run has; the pool is none."""

    @abstractmethod
    def read(self, run: int) -> list[bytes]:
        """The rows of a run, ascending; of the pool if it is `POOL`."""

    @abstractmethod
    def known(self, ids: list[bytes], runs: Collection[int]) -> set[bytes]:
        """Which of these ids are in these runs."""

    @abstractmethod
    def drop(self, run: int) -> None: ...

    @abstractmethod
    def write(self, run: int, chunks: Iterable[tuple[bytes, bytes]]) -> None:
        """Add the rows of a run: first id and ids."""

    @abstractmethod
    def write_pool(self, ids: bytes) -> None:
        """Put the pool in the place of the one that is there."""


POOL = 0
"""The pool's number; a run has a random one."""


class Filter:
    """Which ids may be known: a Bloom filter with six bits per id in one word, for so many ids.

    >>> ids = np.frombuffer(bytes(range(160)), dtype="S16")
    >>> filter = Filter(10)
    >>> filter.add(ids[:5])
    >>> bool(filter.may_hold(ids[:5]).all()), bool(filter.may_hold(ids[5:]).all())
    (True, False)
    """

    def __init__(self, capacity: int) -> None:
        self._bits = max(4, (capacity * 32 // 64 - 1).bit_length())
        self._words: Words = np.zeros(1 << self._bits, dtype=np.uint64)
        # Random, so that nobody can make up ids that fall on each other.
        self._factors = [np.uint64(secrets.randbits(64) | 1) for _ in range(2)]
        self.left = capacity

    def _places(self, ids: Keys) -> tuple[Words, Words]:
        high, low = np.ascontiguousarray(ids).view(">u8").reshape(-1, 2).astype(np.uint64).T
        place = (high ^ low) * self._factors[0] >> np.uint64(64 - self._bits)
        chosen = (high + low) * self._factors[1]
        mask = np.zeros_like(chosen)
        for shift in (58, 52, 46, 40, 34, 28):
            mask |= np.uint64(1) << (chosen >> np.uint64(shift) & np.uint64(63))
        return place, mask

    def add(self, ids: Keys) -> None:
        for at in range(0, len(ids), _SLICE):
            place, mask = self._places(ids[at : at + _SLICE])
            np.bitwise_or.at(self._words, place, mask)
        self.left -= len(ids)

    def may_hold(self, ids: Keys) -> Flags:
        place, mask = self._places(ids)
        return (self._words[place] & mask) == mask  # type: ignore[no-any-return]


class SortedRuns:
    """The ids of one survey and epoch, for one connection."""

    def __init__(self, table: RunTable) -> None:
        self._table = table
        self._version: object = None
        self._pool: Keys = np.empty(0, dtype=_KIND)
        self._sizes: dict[int, int] = {}
        self._filters = [Filter(_FIRST_FILTER)]
        self._filtered: set[int] = set()

    def claim(self, ids: Keys) -> Flags:
        """Insert ids, which ascend; returns which of them were new. Nobody else claims until the transaction ends."""
        self.catch_up()
        fresh = ~self._known(ids)
        new = ids if fresh.all() else ids[fresh]
        if len(new):
            self._remember(new)
            self._put_pool(np.sort(np.concatenate([self._pool, new]), kind="stable"))
            self._merge()
            self._version = self._table.version()
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
        self._sizes = self._table.sizes()
        self._pool = self._read(POOL)
        self._remember(self._pool)
        for run in self._sizes.keys() - self._filtered:
            self._remember(self._read(run))
        self._filtered = set(self._sizes)
        self._version = version

    def _maybe(self, ids: Keys) -> Flags:
        maybe = np.zeros(len(ids), dtype=np.bool_)
        for filter in self._filters:
            maybe |= filter.may_hold(ids)
        return maybe

    def _remember(self, ids: Keys) -> None:
        ids = ids[~self._maybe(ids)]
        if self._filters[-1].left < len(ids):
            self._filters.append(Filter(max(2 * len(ids), _FIRST_FILTER << len(self._filters))))
        self._filters[-1].add(ids)

    def _known(self, ids: Keys) -> Flags:
        known = np.zeros(len(ids), dtype=np.bool_)
        which = np.flatnonzero(self._maybe(ids))
        known[which] = found(self._pool, ids[which])
        left = which[~known[which]]
        if left.size and self._sizes:
            wanted = [ids[place : place + 1].tobytes() for place in left.tolist()]
            # The smallest first: what comes again mostly came not long ago.
            held = self._table.known(wanted, sorted(self._sizes, key=self._sizes.__getitem__))
            known[left] = [id in held for id in wanted]
        return known

    # -- writing -----------------------------------------------------------------------------------

    def _put_pool(self, pool: Keys) -> None:
        if len(pool) >= 2 * self._table.pool:
            stays = np.zeros(len(pool), dtype=np.bool_)
            stays[np.random.default_rng().permutation(len(pool))[: self._table.pool]] = True
            self._put_run(pool[~stays])
            pool = pool[stays]
        self._table.write_pool(pool.tobytes())
        self._pool = pool

    def _put_run(self, ids: Keys) -> None:
        run = secrets.randbits(62) + 1
        self._table.write(run, chunks(ids, self._table.chunk))
        self._sizes[run] = len(ids)
        self._filtered.add(run)

    def _merge(self) -> None:
        while len(some := self._alike()) >= RATIO:
            merged = np.sort(np.concatenate([self._read(run) for run in some]), kind="stable")
            # Before the merged ones are written, which then take their pages.
            for run in some:
                self._table.drop(run)
                del self._sizes[run]
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


def chunks(ids: Keys, size: int) -> Iterator[tuple[bytes, bytes]]:
    """The rows of ids that ascend: the first, and all."""
    raw = ids.tobytes()
    for at in range(0, len(raw), size * ID_BYTES):
        yield raw[at : at + ID_BYTES], raw[at : at + size * ID_BYTES]
