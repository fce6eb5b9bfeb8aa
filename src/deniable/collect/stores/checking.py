"""What can be wrong with a store, found by counting again.

Surveys    the published bytes have the fingerprint that they are listed under
Open       n and the deleted ones are the number of ids
Closed     the tally has the hash that was written when it was closed, and its ids are gone
Kept       reports that are kept give the tally again (deep)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deniable.collect.counting import digest
from deniable.collect.stores.base import CLOSED
from deniable.collect.stores.entry import Entry
from deniable.collect.stores.reading import SqlReader
from deniable.errors import DeniableError
from deniable.protocols.tally import Counts


def complaints(store: SqlReader, deep: bool) -> Iterator[str]:
    """One sentence for each thing that is wrong."""
    for published in store.surveys():
        name = published.fingerprint
        try:
            entry = Entry.read(0, published.canonical)
        except (DeniableError, ValueError):
            yield f"the bytes of survey {name} are not a survey any more"
            continue
        if entry.survey.fingerprint != name:
            yield f"the bytes of survey {name} have the fingerprint {entry.survey.fingerprint}"
            continue
        known = store._entry(name)
        for (epoch,) in store._query("SELECT epoch FROM epoch WHERE survey = ? ORDER BY epoch", known.key):
            try:
                with store._reading():
                    found = _epoch(store, known, epoch, deep)
            except DeniableError as error:
                found = [str(error)]
            yield from (f"survey {name}, epoch {epoch}: {problem}" for problem in found)


def _epoch(store: SqlReader, entry: Entry, epoch: int, deep: bool) -> list[str]:
    select = "SELECT state, sha256 FROM epoch WHERE survey = ? AND epoch = ?"
    ((state, sha256),) = store._query(select, entry.key, epoch)
    n, deleted, counts = store._total(entry, epoch, epoch)
    ids = store._remembered(entry, epoch)
    found = []
    if state != CLOSED and ids != n + deleted:
        besides = f" and {deleted} were deleted" if deleted else ""
        found.append(f"{n} submissions are in the tally{besides}, but there are {ids} ids")
    if state == CLOSED and digest(n, counts) != sha256:
        found.append("the tally is not the one that was closed")
    if state == CLOSED and not entry.keeps and ids:
        found.append(f"it is closed, but {ids} ids are still there: close it again")
    if state == CLOSED and entry.keeps and ids not in (0, n):
        found.append(f"of {n} reports {ids} are kept")
    complete = ids == (n if state == CLOSED else n + deleted)
    if deep and entry.keeps and complete and not np.array_equal(_recounted(store, entry, epoch), counts):
        found.append("the reports that are kept do not give the tally")
    return found


def _recounted(store: SqlReader, entry: Entry, epoch: int) -> Counts:
    total = entry.zero()
    for batch in store.reports(entry.survey.fingerprint, epoch, epoch):
        total += entry.counter.count(batch.answers)
    return total
