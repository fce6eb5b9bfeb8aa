"""Every registered protocol passes every check on its examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from deniable.conformance.checks import ConformanceError, Duty
from deniable.conformance.protocols import (
    PROTOCOL_CHECKS,
    WAIVABLE,
    protocol_duties,
    registered_examples,
)
from deniable.protocols import registered

EXAMPLES = registered_examples()

# The statistical check of these takes so many reports that it is left to `make test-slow`.
SLOW = {
    *("Attributes 2", "CMS 1", "CollisionSets 2", "Discovery 2", "Evolving 1", "HCMS 1", "ItemSets 2", "KeyValue 2"),
    *("Moments 2", "OLHSketch 1", "OLHSketch 2", "RAPPOR 1", "RAPPOR 2", "Rectangles 2", "Stratified 2"),
    "SubsetSelection 3",
}


def duties() -> Iterator[Any]:
    for duty in protocol_duties(EXAMPLES):
        if not duty.waived:
            slow = duty.check == "law" and duty.subject in SLOW
            yield pytest.param(duty, id=str(duty), marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize("duty", list(duties()))
def test_protocol(duty: Duty) -> None:
    duty.call()


def test_no_protocol_escapes() -> None:
    assert {protocol.name for _, protocol in EXAMPLES} == set(registered())


def test_no_check_is_waived_without_need() -> None:
    names = {check.__name__.removeprefix("check_") for check in PROTOCOL_CHECKS}
    assert set(WAIVABLE) <= names
    needless = []
    for duty in protocol_duties(EXAMPLES):
        if duty.waived:
            try:
                duty.call()
            except (ConformanceError, ValueError):
                continue
            needless.append(str(duty))
    assert needless == []
