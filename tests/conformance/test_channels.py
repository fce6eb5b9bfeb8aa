"""Every closed form of `channels` passes every check."""

from __future__ import annotations

from itertools import groupby

import pytest

from deniable.conformance.channels import channel_duties
from deniable.conformance.checks import Duty

MECHANISMS = {name: list(duties) for name, duties in groupby(channel_duties(), key=lambda duty: duty.subject)}


@pytest.mark.parametrize("duties", MECHANISMS.values(), ids=MECHANISMS)
def test_mechanism(duties: list[Duty]) -> None:
    for duty in duties:
        assert not duty.waived
        duty.call()
