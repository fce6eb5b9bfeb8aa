"""Simulated devices: every person of a table answers by a request of their own, as real devices would.

For demonstrations, tests and load: a crowd has no ledgers, so it repeats nothing and remembers nothing. Each person's
answers are privatized by themselves, get a random id and are sent alone, in random order, over connections that are
kept open; a request that fails is sent again with the same bytes.
"""

from __future__ import annotations

import random
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import msgspec

from deniable.collect import wire
from deniable.collect.http import Transport, Unreachable
from deniable.errors import DeniableError
from deniable.randomness import Bits, Tied, source_of
from deniable.surveys import Survey

TRIES = 20


class CrowdError(DeniableError, RuntimeError):
    """A service that does not take what the crowd sends."""


@dataclass(frozen=True)
class Sent:
    """What left one simulated device."""

    answers: Mapping[str, Any]
    body: bytes


def send_crowd(
    server: str,
    survey: Survey,
    people: Mapping[str, Sequence[Any]],
    bits: Bits | None = None,
    connections: int = 32,
    progress: Callable[[int], None] | None = None,
    clock: Callable[[], float] = time.time,
) -> list[Sent]:
    """Everybody answers; `people` has one column of answers per question. Returns what left, in the order of the table.

    Raises CrowdError if the survey is not open, or if the service rejects a submission or cannot be reached.
    """
    epoch, path = _epoch(survey, clock()), f"/v1/surveys/{survey.fingerprint}/reports"
    columns = [people[question.id] for question in survey]
    ids = [question.id for question in survey]
    rows = [dict(zip(ids, row, strict=True)) for row in zip(*columns, strict=True)]
    lock = threading.Lock()
    done = 0

    def device(answers: Mapping[str, Any]) -> Sent:
        id, raw = secrets.token_bytes(wire.ID_BYTES), b""
        for question in survey:
            own = Tied(source_of(bits), wire.public_number(survey.fingerprint, question.id, id))
            raw += question.protocol.report(answers[question.id], own)
        return Sent(answers, wire.encode(epoch, id, raw, survey.report_bytes))

    def deliver(part: list[Sent]) -> None:
        nonlocal done
        with Transport(server, insecure=True) as line:
            for sent in part:
                _post(line, path, sent.body)
                with lock:
                    done += 1
                    if progress is not None:
                        progress(done)

    crowd = [device(answers) for answers in rows]
    # Nothing may follow from who comes when.
    order = random.SystemRandom().sample(crowd, len(crowd))
    with ThreadPoolExecutor(connections) as pool:
        for _ in pool.map(deliver, [order[i::connections] for i in range(connections)]):
            pass
    return crowd


def _epoch(survey: Survey, now: float) -> int:
    if survey.terms is None:
        raise CrowdError("this survey is for files only: it has no terms of a collection")
    epoch = survey.terms.epochs.at(now)
    if survey.terms.refusal(epoch, now):
        raise CrowdError("this survey is not open now")
    return epoch


def _post(line: Transport, path: str, body: bytes) -> None:
    """Send the same bytes until the service has taken them."""
    for attempt in range(TRIES):
        try:
            reply = line.post(path, body, {"Content-Type": wire.BINARY})
        except Unreachable:
            time.sleep(min(0.05 * 2**attempt, 5))
            continue
        if reply.status in (429, 503):
            time.sleep(float(reply.headers.get("Retry-After", "1")))
            continue
        if reply.status != 200:
            raise CrowdError(f"the service answered {reply.status} to a submission")
        if msgspec.json.decode(reply.body).get("rejected"):
            raise CrowdError("the service rejected a submission")
        return
    raise CrowdError(f"the service could not be reached in {TRIES} tries")
