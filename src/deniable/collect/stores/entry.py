"""A published survey as a store works with it, and counters as the bytes that it keeps."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from deniable.collect.counting import Counter
from deniable.collect.stores.base import StoreError
from deniable.errors import SpecError
from deniable.protocols.tally import Counts
from deniable.surveys import Survey

SMALL_TALLY = 1 << 16
"""Up to so many bytes the counters are rewritten with each group; beyond, answers wait to be added up together."""

FEWEST, MOST = 1 << 10, 1 << 16
"""Bounds on how many answers wait."""


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
    def waits(self) -> bool:
        """Whether answers wait to be added up."""
        return 8 * self.counter.size > SMALL_TALLY

    @property
    def enough(self) -> int:
        """How many answers wait at most: about as many bytes as the tally has, so that adding up is no dearer."""
        return min(MOST, max(FEWEST, 8 * self.counter.size // self.counter.width))

    @property
    def page(self) -> int:
        """How many answers are read at a time: some megabytes."""
        return max(1, min(MOST, (1 << 24) // self.counter.width))

    def zero(self) -> Counts:
        return np.zeros(self.counter.size, dtype=np.int64)

    def counts(self, raw: bytes) -> Counts:
        counts = np.frombuffer(raw, dtype="<i8")
        if counts.size != self.counter.size:
            raise StoreError(
                f"a tally of survey {self.survey.fingerprint} has {counts.size} counters, not {self.counter.size}: "
                "the store is damaged, restore a backup"
            )
        return counts


def to_bytes(counts: Counts) -> bytes:
    return counts.astype("<i8", copy=False).tobytes()


def collected(survey: Survey) -> Survey:
    """The survey, if it can be published."""
    if survey.terms is None:
        raise SpecError("a survey for files only cannot be published: add owner, purpose, epochs and the other terms")
    return survey


def unknown(fingerprint: str) -> StoreError:
    return StoreError(f"no survey {fingerprint} is published in this store: publish it first")


def still_open(epoch: int) -> StoreError:
    return StoreError(f"epoch {epoch} is open and its reports are needed: close it first")
