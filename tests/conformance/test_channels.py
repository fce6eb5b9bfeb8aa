"""Every closed form of `channels` passes every check."""

from __future__ import annotations

import pytest

from deniable.conformance.channels import channel_duties
from deniable.conformance.checks import Duty


@pytest.mark.parametrize("duty", list(channel_duties()), ids=str)
def test_mechanism(duty: Duty) -> None:
    assert not duty.waived
    duty.call()
