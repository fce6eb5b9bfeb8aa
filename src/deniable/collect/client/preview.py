"""What would leave a device, without a ledger: recorded and sent nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deniable.collect import wire
from deniable.collect.client import report_ids
from deniable.collect.client.answers import check_questions, checked
from deniable.surveys import Survey


def preview(survey: Survey, epoch: int, answers: Mapping[str, Any]) -> bytes:
    """A body like the one that `Client.answer` would send."""
    check_questions(survey, answers)
    given = checked(survey, answers)
    reports = b"".join(asked.protocol.privatize([given[asked.id]]).to_bytes() for asked in survey)
    return wire.encode(epoch, report_ids.random_id(), reports, survey.report_bytes)
