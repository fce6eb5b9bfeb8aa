"""Protocols of a number at their edges: small and large epsilon, a grid of one step, everybody at one end, nobody."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import deniable as dn
from deniable.channels.adjacency import related_factor
from deniable.domains import Integers, Interval
from deniable.protocols import MeanTable, Moments, OneBitMean, Protocol, Ranges, Window
from tests.documents import rows_of

UNIT = Interval(-1, 1)
KINDS: dict[str, Callable[[Any], Protocol]] = {
    "one bit": lambda e: OneBitMean(UNIT, e),
    "window": lambda e: Window(UNIT, e, positions=4, width=3),
    "window of one step": lambda e: Window(UNIT, e, positions=2, width=1),
    "three outputs": lambda e: Window.three_output(UNIT, e),
    "design": lambda e: MeanTable(dn.design.mean(e, positions=3), UNIT),
    "moments": lambda e: Moments.of(UNIT, [OneBitMean(UNIT, e), OneBitMean(Interval(0, 1), e)]),
    "distribution": lambda e: Window(Integers(0, 4), e, read="distribution", width=2),
    "distribution of one step": lambda e: Window(Integers(0, 1), e, read="distribution", width=1),
    "ranges": lambda e: Ranges(4, e, fanout=2),
    "ranges of one step": lambda e: Ranges(2, e),
}


@pytest.mark.parametrize("epsilon", ["0.01", "1/2", "2", "8"])
@pytest.mark.parametrize("kind", KINDS)
def test_whole_reports_keep_epsilon(kind: str, epsilon: str) -> None:
    protocol = KINDS[kind](epsilon)
    found = related_factor(protocol.channel(), protocol.law().related(), protocol.guarantee.delta)
    assert found == protocol.ratio
    assert protocol.realized_epsilon <= float(protocol.epsilon)
    stronger = KINDS[kind](str(float(protocol.epsilon) / 1.01))
    assert found > stronger.ratio, "a smaller epsilon is told apart"


@pytest.mark.parametrize("kind", KINDS)
def test_edges(kind: str) -> None:
    protocol, bits = KINDS[kind]("2"), dn.Simulation(1)
    low, high = float(protocol.domain.low), float(protocol.domain.high)  # type: ignore[attr-defined]
    nobody = protocol.estimate(protocol.empty())
    assert nobody.n == 0
    assert np.isnan(nobody.table().value).all()
    assert rows_of(nobody.to_dict())[0]["value"] is None
    one = protocol.estimate(protocol.tally(protocol.privatize([high], bits)))
    assert one.n == 1
    assert str(one)
    for end in (low, high):
        given = np.full(4000, end).astype(int) if isinstance(protocol.domain, Integers) else np.full(4000, end)
        found = protocol.estimate(protocol.tally(protocol.privatize(given, bits)))
        rows = found.table(0.999999)
        truth = protocol.worth().truth(given)
        inside = (rows.low - 1e-9 <= truth) & (truth <= rows.high + 1e-9)
        assert inside.all(), [name for name, held in zip(rows.names, inside, strict=True) if not held]
    for wrong in (math.nan, None, "s3cret", [1.0]):
        with pytest.raises(dn.errors.DomainError) as refused:
            protocol.report(wrong)
        assert "s3cret" not in str(refused.value)
    beyond = high + 1000
    if isinstance(protocol.domain, Integers):
        with pytest.raises(dn.errors.DomainError):
            protocol.report(beyond)
    else:
        assert len(protocol.report(beyond)) == protocol.report_bytes, "clipped"
