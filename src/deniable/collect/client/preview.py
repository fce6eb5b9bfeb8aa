"""What would leave a device, without a ledger: drawn with throw-away randomness, recorded and sent nowhere.

It must not be drawn with the device's own secret: the bytes of a rehearsal would be those of the real submission.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from deniable.collect import wire
from deniable.collect.client import memo
from deniable.collect.client.answers import check_questions, checked
from deniable.surveys import Survey


def preview(survey: Survey, epoch: int, answers: Mapping[str, Any]) -> bytes:
    """A body like the one that `Client.answer` would send."""
    check_questions(survey, answers)
    given, key = checked(survey, answers), secrets.token_bytes(memo.SECRET_BYTES)
    scope = memo.in_epoch(epoch)
    reports = b"".join(memo.draw(key, survey.fingerprint, asked, scope, given[asked.id]) for asked in survey)
    return wire.encode(epoch, memo.report_id(key, survey.fingerprint, epoch), reports, survey.report_bytes)
