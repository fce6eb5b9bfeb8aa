"""Every registered protocol passes every check, and none is missing from the register."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from deniable.protocols import PROTOCOLS
from tests.conformance.protocol_checks import PROTOCOL_CHECKS
from tests.conformance.protocol_registry import PROTOCOL_CASES, ProtocolCase


@pytest.mark.parametrize("case", PROTOCOL_CASES, ids=str)
@pytest.mark.parametrize("check", PROTOCOL_CHECKS, ids=lambda check: check.__name__)
def test_protocol(case: ProtocolCase, check: Callable[[ProtocolCase], None]) -> None:
    check(case)


def test_no_protocol_escapes() -> None:
    assert {case.build(Fraction(1)).name for case in PROTOCOL_CASES} >= set(PROTOCOLS) - {
        "CMS",
        "HCMS",
        "OLHSketch",
        "RAPPOR",
    }
