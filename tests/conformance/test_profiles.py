"""Every profile mechanism passes every check, none is missing, and broken ones are caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from deniable.conformance import profiles as checks
from deniable.conformance.findings import Duty
from deniable.conformance.profiles import BITS, JOBS, PROFILE_CASES, ProfileCase, profile_duties
from deniable.protocols.profiles import MECHANISMS, OneBitCluster, SmoothCategorical, Warner
from deniable.protocols.reports import Reports


@pytest.mark.parametrize("duty", [duty for duty in profile_duties() if not duty.waived], ids=str)
def test_profile_mechanism(duty: Duty) -> None:
    duty.call()


def test_no_mechanism_escapes() -> None:
    assert {case.build(Fraction(1)).name for case in PROFILE_CASES} == set(MECHANISMS)


def test_no_check_is_waived_without_need() -> None:
    for duty in profile_duties():
        if duty.waived:
            with pytest.raises((AssertionError, ValueError)):
                duty.call()


# -- broken mechanisms, each caught ----------------------------------------------------------------------


def caught(check: Callable[[ProfileCase], None], build: Any, reason: str | None = None) -> None:
    with pytest.raises(AssertionError, match=reason):
        check(ProfileCase("broken", build))


class OtherBatches(OneBitCluster):
    """Batches at another level than single reports."""

    def _draw(self, values: Any, profiles: Any, bits: Any) -> Any:
        good = super()._draw
        wrong = OneBitCluster(self.graph, self.asked * Fraction(102, 100))._draw
        return (good if np.size(values) == 1 else wrong)(values, profiles, bits)


class InTheClear(OneBitCluster):
    """Forgets the noise for single values."""

    def _draw(self, values: Any, profiles: Any, bits: Any) -> Any:
        return self.graph.domain.index(values) if np.size(values) == 1 else super()._draw(values, profiles, bits)


class Lenient(SmoothCategorical):
    """Counts reports that no device sends."""

    def valid(self, reports: Any) -> Any:
        return np.ones(len(self._rows(reports)), dtype=np.bool_)


class Biased(Warner):
    def estimate(self, tally: Any) -> Any:
        good = super().estimate(tally)
        return replace(good, counts=good.counts + 0.001 * tally.n)


class Bragging(Warner):
    """Error bars that are too small."""

    def estimate(self, tally: Any) -> Any:
        good = super().estimate(tally)
        return replace(good, noise=0.9 * good.noise)


class ProfileLast(Warner):
    """Appends who it was."""

    def report(self, values: Any, profiles: Any, bits: Any = None) -> Any:
        good = super().report(values, profiles, bits)
        which = np.broadcast_to(self.graph.names.index(profiles), len(good))
        return Reports(self.fingerprint, np.column_stack([good.array, which.astype(np.uint8)]))


def test_broken_mechanisms_are_caught() -> None:
    caught(checks.check_law, lambda e: OtherBatches(BITS, e), "another law")
    caught(checks.check_enumeration, lambda e: InTheClear(BITS, e), "another law")
    caught(checks.check_level, lambda e: InTheClear(BITS, e), "stated ratio")
    caught(checks.check_tight, lambda e: OneBitCluster(BITS, e / 2), "wasted")
    caught(checks.check_refusals, lambda e: Lenient(JOBS, e), "wrong about a report")
    caught(checks.check_unbiased, lambda e: Biased(BITS, e), "biased")
    caught(checks.check_unbiased, lambda e: Bragging(BITS, e), "variance")
    with pytest.raises((AssertionError, KeyError)):
        checks.check_level(ProfileCase("the profile leaks", lambda e: ProfileLast(BITS, e)))
    caught(checks.check_identity, lambda e: Warner(BITS, 1))
