"""A published survey as a store works with it, and blocks of counters as the bytes that it keeps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.collect.counting import BLOCK, Blocks, Counter
from deniable.collect.stores.base import StoreError
from deniable.errors import SpecError
from deniable.protocols.tally import Counts
from deniable.surveys import Survey

MOST = 1 << 16
"""Answers read at a time, at most."""
WIDTHS = {kind: (np.iinfo(kind).min, np.iinfo(kind).max) for kind in ("<i1", "<i2", "<i4", "<i8")}
"""How a block's counters are written: in the narrowest of these that holds all of them."""


@dataclass(frozen=True)
class Entry:
    """A published survey: the key that its rows have, and how it is counted."""

    key: int
    survey: Survey
    counter: Counter

    @classmethod
    def read(cls, key: int, canonical: bytes) -> Entry:
        survey = Survey.from_spec(json.loads(canonical))
        return cls(key, survey, Counter(survey))

    @property
    def keeps(self) -> bool:
        """Whether reports are kept beside the tally."""
        return self.survey.terms is not None and self.survey.terms.retention == "reports"

    @property
    def page(self) -> int:
        """How many answers are read at a time: some megabytes."""
        return max(1, min(MOST, (1 << 24) // self.counter.width))

    def zero(self) -> Counts:
        return np.zeros(self.counter.size, dtype=np.int64)

    def _cells(self, place: int) -> int:
        """Counters of a block; the last may have fewer."""
        return min(BLOCK, self.counter.size - place * BLOCK)

    def packed(self, blocks: Blocks) -> list[bytes]:
        """Each block as bytes."""
        low, high = blocks.rows.min(axis=1), blocks.rows.max(axis=1)
        if len(blocks.rows) == 1:  # nearly all surveys, many times a second
            kind = next(kind for kind, (least, most) in WIDTHS.items() if least <= low[0] and high[0] <= most)
            return [blocks.rows[0, : self._cells(int(blocks.places[0]))].astype(kind).tobytes()]
        found = [b""] * len(blocks.places)
        left = np.ones(len(found), dtype=np.bool_)
        for kind, (least, most) in WIDTHS.items():
            fits = np.flatnonzero(left & (low >= least) & (high <= most))
            left[fits] = False
            raw, width = blocks.rows[fits].astype(kind).tobytes(), int(kind[-1])
            for at, which in enumerate(fits.tolist()):
                begin = at * BLOCK * width
                found[which] = raw[begin : begin + self._cells(int(blocks.places[which])) * width]
        return found

    def add_packed(self, total: Counts, rows: Sequence[int], places: Sequence[int], raws: Sequence[bytes]) -> None:
        """Add the bytes of blocks, each place once, to these rows of `total`."""
        kinds: dict[int, list[int]] = {}
        whole = self.counter.size // BLOCK
        for which, (place, raw) in enumerate(zip(places, raws, strict=True)):
            cells = BLOCK if place < whole else self._cells(place)
            width, rest = divmod(len(raw), cells) if cells > 0 else (0, 1)
            if rest or width not in (1, 2, 4, 8):
                raise StoreError(
                    f"a tally of survey {self.survey.fingerprint} has a block of the wrong size: "
                    "the store is damaged, restore a backup"
                )
            if len(raws) == 1:
                total[rows[0], :cells] += np.frombuffer(raw, dtype=f"<i{width}")
                return
            kinds.setdefault(width, []).append(which)
        for width, some in kinds.items():
            raw = b"".join(raws[which].ljust(BLOCK * width, b"\0") for which in some)
            total[[rows[which] for which in some]] += np.frombuffer(raw, dtype=f"<i{width}").reshape(-1, BLOCK)


def collected(survey: Survey) -> Survey:
    """The survey, if it can be published."""
    if survey.terms is None:
        raise SpecError("a survey for files only cannot be published: add owner, purpose, epochs and the other terms")
    return survey


def unknown(fingerprint: str) -> StoreError:
    return StoreError(f"no survey {fingerprint} is published in this store: publish it first")


def still_open(epoch: int) -> StoreError:
    return StoreError(f"epoch {epoch} is open and its reports are needed: close it first")
