"""Reports that come in batches, counted as if they had come at once.

A tally of each batch could be added up as well; a family whose counters are cheaper to carry on than to finish says so
by an adder of its own (`Protocol._adder`).
"""

from __future__ import annotations

import typing

import numpy as np

from deniable.protocols.reports import Bytes, Reports
from deniable.protocols.tally import Counts, Tally

if typing.TYPE_CHECKING:
    from deniable.protocols.base import Protocol


class Adder(typing.Protocol):
    """The counters of a tally while reports still come."""

    def add(self, reports: Bytes) -> None:
        """Count these too; the array may be reused afterwards."""

    def counts(self) -> Counts:
        """The counters so far."""


class PlainAdder:
    """Counts each batch by itself, and sums."""

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol
        self._total = np.zeros(protocol.tally_size, dtype=np.int64)

    def add(self, reports: Bytes) -> None:
        self._total += self._protocol._count(reports)

    def counts(self) -> Counts:
        return self._total.copy()


class Counter:
    """Adds up batches of reports; `tally` is what `Protocol.tally` of all of them would be.

    >>> from deniable.protocols import OUE
    >>> protocol = OUE(8, epsilon=1)
    >>> counter = protocol.counter()
    >>> for answers in ([0, 1], [7]):
    ...     counter.add(protocol.privatize(answers))
    >>> counter.tally().n
    3
    """

    def __init__(self, protocol: Protocol, source: str | None = None) -> None:
        self._protocol, self._source = protocol, source
        self._adder, self._n = protocol._adder(), 0

    def add(self, reports: Reports | Bytes) -> None:
        """Count a batch, or refuse all of it."""
        array = self._protocol._valid_rows(reports)
        self._adder.add(array)
        self._n += len(array)

    def tally(self) -> Tally:
        return Tally(self._protocol.fingerprint, self._n, self._adder.counts(), self._source)
