"""Every registered protocol passes every check, and none is missing from the register."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest

from deniable.protocols import registered
from tests.conformance.protocol_checks import PROTOCOL_CHECKS, check_law
from tests.conformance.protocol_registry import PROTOCOL_CASES, ProtocolCase


def duties() -> Iterator[Any]:
    for check in PROTOCOL_CHECKS:
        for case in PROTOCOL_CASES:
            if check.__name__ not in case.waived:
                marks = [pytest.mark.slow] if case.slow and check is check_law else []
                yield pytest.param(case, check, id=f"{check.__name__}-{case.name}", marks=marks)


@pytest.mark.parametrize(("case", "check"), list(duties()))
def test_protocol(case: ProtocolCase, check: Callable[[ProtocolCase], None]) -> None:
    check(case)


def test_no_protocol_escapes() -> None:
    assert {case.build(Fraction(1)).name for case in PROTOCOL_CASES} == set(registered())


def test_no_check_is_waived_without_a_reason() -> None:
    names = {check.__name__ for check in PROTOCOL_CHECKS} | {"check_number_is_refused"}
    waived = {case.name: set(case.waived) for case in PROTOCOL_CASES if case.waived}
    assert waived == {
        "CMS": {"check_unbiased"},
        "HCMS": {"check_unbiased"},
        "OLH sketch": {"check_unbiased"},
        "OLH sketch, numbers": {"check_unbiased"},
        "table": {"check_unbiased", "check_support"},
        "window": {"check_unbiased", "check_support", "check_number_is_refused"},
        "window of 4 positions": {"check_unbiased", "check_support", "check_number_is_refused"},
        "one-bit mean": {"check_unbiased", "check_support", "check_number_is_refused"},
        "attributes": {"check_unbiased", "check_support"},
        "attributes with numbers": {"check_unbiased", "check_support"},
        "RAPPOR, 1 hash": {"check_unbiased"},
        "RAPPOR, 2 hashes": {"check_unbiased", "check_support"},
    }
    assert all(set(case.waived) <= names and all(case.waived.values()) for case in PROTOCOL_CASES)
