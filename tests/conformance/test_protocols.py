"""Every registered protocol passes every check on its examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from deniable.conformance.checks import ConformanceError
from deniable.conformance.protocols import (
    PROTOCOL_CHECKS,
    WAIVABLE,
    protocol_duties,
    registered_examples,
)
from deniable.protocols import registered

EXAMPLES = registered_examples()

# The statistical check of these takes so many reports that it is left to `make test-all`.
SLOW = {
    *("CMS 1", "DBitFlip 1", "Evolving 1", "HCMS 1", "OLHSketch 1", "OLHSketch 2", "RAPPOR 1", "RAPPOR 2"),
    "SubsetSets 1",
}


DUTIES = {name: [duty for duty in protocol_duties([(name, example)]) if not duty.waived] for name, example in EXAMPLES}


def laws() -> Iterator[Any]:
    """One example of each kind in the plain run."""
    for name in DUTIES:
        kind, number = name.split(" ")
        first = "2" if f"{kind} 1" in SLOW else "1"
        yield pytest.param(name, marks=[pytest.mark.slow] if name in SLOW or number != first else [])


@pytest.mark.parametrize("name", list(laws()))
def test_law(name: str) -> None:
    """The statistical check, which takes most of the time."""
    (law,) = [duty for duty in DUTIES[name] if duty.check == "law"]
    law.call()


def gains() -> Iterator[Any]:
    """The first example of each kind in the plain run, except where a read-out takes long."""
    for name in DUTIES:
        kind, number = name.split(" ")
        marks = [pytest.mark.slow] if kind in LONG or number != "1" else []
        yield pytest.param(name, marks=marks)


LONG = {
    *("CollisionSets", "DBitFlip", "LRAPPOR", "PlanarLaplace", "PrivateStrata", "RAPPOR", "Ranges", "Rectangles"),
    "Stratified",
}


@pytest.mark.parametrize("name", list(gains()))
def test_gains(name: str) -> None:
    """What forged reports do, against theory."""
    (found,) = [duty for duty in DUTIES[name] if duty.check == "gains"]
    found.call()


@pytest.mark.parametrize("name", DUTIES)
def test_protocol(name: str) -> None:
    """All other checks of one example; the traceback of a failure names the check."""
    done = [duty for duty in DUTIES[name] if duty.check not in ("law", "gains")]
    for duty in done:
        duty.call()
    assert len(done) >= len(PROTOCOL_CHECKS) - 2 - len(WAIVABLE)


def test_no_protocol_escapes() -> None:
    local = {name for name, kind in registered().items() if kind.traits.local}
    assert {protocol.name for _, protocol in EXAMPLES} == local


@pytest.mark.parametrize("number", [1, *(pytest.param(number, marks=pytest.mark.slow) for number in range(2, 9))])
def test_no_check_is_waived_without_need(number: int) -> None:
    names = {check.__name__.removeprefix("check_") for check in PROTOCOL_CHECKS}
    assert set(WAIVABLE) <= names
    needless = []
    for duty in protocol_duties(example for example in EXAMPLES if example[0].endswith(f" {number}")):
        if duty.waived:
            try:
                duty.call()
            except (ConformanceError, ValueError):
                continue
            needless.append(str(duty))
    assert needless == []
