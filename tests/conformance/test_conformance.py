"""Every registered mechanism passes every check."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.checks import CHECKS, check_sampler
from tests.conformance.registry import MECHANISMS, SAMPLERS, Mechanism, Sampler


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_mechanism(mechanism: Mechanism, check: Callable[[Mechanism], None]) -> None:
    check(mechanism)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
def test_sampler(sampler: Sampler) -> None:
    check_sampler(sampler)
