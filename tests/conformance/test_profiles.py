"""Every profile mechanism passes the suite of all protocols, in the relation of its profiles, and broken ones fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from deniable.conformance import protocols as checks
from deniable.conformance.checks import Duty
from deniable.protocols import Law, Protocol, Table
from deniable.protocols.profiles import (
    MECHANISMS,
    KaryResponse,
    OneBitCluster,
    ProfileGraph,
    ProfileMechanism,
    ProfileTable,
    SmoothCategorical,
    SmoothOneBit,
    Warner,
)

BITS = ProfileGraph.chain({"north": "1/8", "south": "7/8"})
CLUSTERS = ProfileGraph.clusters({"n": {"A": "1/8", "B": "1/2"}, "s": {"C": "5/8", "D": 1}})
JOBS = ProfileGraph.chain(
    {"clerk": ["3/4", "1/8", "1/8"], "engineer": ["1/8", "1/8", "3/4"], "guest": ["1/8", "3/4", "1/8"]},
    values=["idle", "print", "compute"],
)
DESIGNS: dict[str, Callable[[], ProfileMechanism]] = {
    "Warner": lambda: Warner(BITS, 1),
    "one bit cluster": lambda: OneBitCluster(BITS, 1),
    "smooth one bit": lambda: SmoothOneBit(BITS, 1),
    "smooth one bit, two components": lambda: SmoothOneBit(CLUSTERS, "1/2"),
    "k-ary response": lambda: KaryResponse(JOBS, 1),
    "smooth categorical": lambda: SmoothCategorical(JOBS, 1),
}
SOFT = {"Warner", "k-ary response"}
"""These profiles overlap, and randomized response would hide even profiles that do not: it wastes some epsilon."""


def duties(name: str, table: Protocol) -> list[Duty]:
    return [duty for duty in checks.protocol_duties([(name, table)]) if not duty.waived]


@pytest.mark.parametrize("name", DESIGNS)
def test_a_designed_mechanism_passes_the_suite_of_all_protocols(name: str) -> None:
    table = Table(DESIGNS[name]())
    assert isinstance(table, ProfileTable)
    skipped = {"law"}  # the sampler is that of the examples
    if not table.is_invertible:  # without an estimate there is nothing that reports could move
        skipped |= {"refusals", "forging", "gains"}
    done = [duty for duty in duties(name, table) if duty.check not in skipped]
    for duty in done:
        duty.call()
    assert {"level", "order", "identity", "positions"} <= {duty.check for duty in done}
    if name not in SOFT:
        checks.check_tight(table)


def test_no_mechanism_escapes() -> None:
    assert {DESIGNS[name]().name for name in DESIGNS} == set(MECHANISMS)


# -- broken tables, each caught --------------------------------------------------------------------------


def caught(check: Callable[[Any], None], table: type[ProfileTable], design: ProfileMechanism, reason: str) -> None:
    check(ProfileTable(design))
    with pytest.raises(AssertionError, match=reason):
        check(table(design))


class OtherBatches(ProfileTable):
    """Batches at another level than single reports."""

    def draw_many(self, values: Any, bits: Any) -> Any:
        return Warner(BITS, "1.02").protocol.draw_many(values, bits)


class InTheClear(ProfileTable):
    """Forgets the noise for single values."""

    def draw(self, value: Any, bits: Any) -> bytes:
        return bytes([value[1]])


class Lenient(ProfileTable):
    """Counts reports that no device sends."""

    def valid(self, reports: Any) -> Any:
        return np.ones(len(reports), dtype=np.bool_)


class Biased(ProfileTable):
    def values(self, tally: Any) -> Any:
        good = super().values(tally)
        return replace(good, counts=good.counts + 0.001 * tally.n)


class Bragging(ProfileTable):
    """Error bars that are too small."""

    def values(self, tally: Any) -> Any:
        good = super().values(tally)
        return replace(good, noise=0.9 * good.noise)


class ProfileLast(ProfileTable):
    """Appends who it was."""

    def law(self) -> Law:
        return super().law().but(width=2, forms=4)

    def draw(self, value: Any, bits: Any) -> bytes:
        return super().draw(value, bits)[:1] + bytes([value[0]])


class OtherEdges(ProfileTable):
    """States the level of an edge that tells less than the worst one."""

    def law(self) -> Law:
        base = super().law()
        return base.but(ratio=1 + (base.ratio - 1) / 2)


def test_broken_tables_are_caught() -> None:
    warner, cluster, jobs = Warner(BITS, 1), OneBitCluster(BITS, 1), KaryResponse(JOBS, 1)
    caught(checks.check_law, OtherBatches, warner, "another law")
    caught(checks.check_level, InTheClear, cluster, "stated ratio")
    caught(checks.check_level, OtherEdges, cluster, "stated ratio")
    caught(checks.check_refusals, Lenient, jobs, "wrong about a report")
    caught(checks.check_unbiased, Biased, warner, "biased")
    caught(checks.check_unbiased, Bragging, warner, "variance")
    caught(checks.check_level, ProfileLast, warner, "stated ratio")
