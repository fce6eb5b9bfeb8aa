"""Likelihoods of local-hashing reports without the table of reports x answers.

The answers that a report (A, y) supports are the solutions of A v = y, so for any vector x
    sum of x over them = 2^-r sum over u of (-1)^(u . y) X[A^T u],   X the Walsh-Hadamard transform of x
and the transposed sum, over the reports that support v, is the transform of a table as for the tally. Either takes
g = 2^r additions per report and one transform, instead of d additions per report.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.protocols.frequency.mle import NEWTON_LIMIT, SupportModel

Floats = NDArray[np.float64]

_BLOCK = 1 << 15


@dataclass(frozen=True, eq=False)
class HashModel(SupportModel):
    """Row j of `fields` holds, for each report, row j of A with bit j of y above it."""

    fields: NDArray[np.int64]
    index_bits: int

    @property
    def newton(self) -> bool:
        # An update costs g here, not d, so a Newton step is dear: it pays for few answers only.
        return self.supports.protocol.domain.size <= NEWTON_LIMIT // 8

    def _combinations(self, part: slice) -> Iterator[NDArray[np.int64]]:
        """A^T u with u . y above it, for u != 0 in the order of a Gray code."""
        fields = self.fields[:, part]
        combination = np.zeros_like(fields[0])
        for u in range(1, 1 << len(fields)):
            combination ^= fields[(u & -u).bit_length() - 1]
            yield combination

    def _parts(self) -> Iterator[slice]:
        return (slice(start, start + _BLOCK) for start in range(0, self.fields.shape[1], _BLOCK))

    def _table(self, point: Floats) -> Floats:
        """The transform of x, and below it its negative: the bit above the index is the sign."""
        padded = np.zeros(1 << self.index_bits)
        padded[: point.size] = point
        transform = _transform(padded)
        return np.concatenate([transform, -transform]) / (1 << len(self.fields))

    def _held(self, table: Floats, part: slice) -> Floats:
        held = np.full(self.fields[0, part].shape, table[0])
        for combination in self._combinations(part):
            held += table[combination]
        return held

    def mix(self, point: Floats) -> Floats:
        table = self._table(point)
        held = np.concatenate([self._held(table, part) for part in self._parts()])
        mixture: Floats = point.sum() + self.contrast * held
        return mixture

    def update(self, point: Floats, share: Floats) -> tuple[Floats, Floats]:
        size = 1 << self.index_bits
        table, total = self._table(point), point.sum()
        mixture = np.empty(self.fields.shape[1])
        signed = np.zeros(2 * size)
        for part in self._parts():
            mixture[part] = total + self.contrast * self._held(table, part)
            weights = share[part] / mixture[part]
            signed[0] += weights.sum()
            for combination in self._combinations(part):
                signed += np.bincount(combination, weights, 2 * size)
        backed = _transform(signed[:size] - signed[size:])[: point.size] / (1 << len(self.fields))
        return mixture, (share / mixture).sum() + self.contrast * backed


def _transform(vector: Floats) -> Floats:
    """The Walsh-Hadamard transform in floats."""
    data, half = vector.copy(), 1
    while half < data.size:
        pairs = data.reshape(-1, 2, half)
        data = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        half *= 2
    return data
