"""Simulated devices: every person of a table answers by their own request, as real devices would.

For demonstrations, tests and load: a crowd has no ledgers, so it repeats nothing and remembers nothing. Each person's
answers are privatized separately, get a random id and are sent alone, in random order, over connections that are kept
open; a request that fails is sent again with the same bytes.
"""

from __future__ import annotations

import random
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import msgspec

from deniable.collect import wire
from deniable.collect.http import Transport, Unreachable
from deniable.errors import DeniableError
from deniable.protocols import Protocol
from deniable.randomness import Bits, Tied, source_of
from deniable.surveys import Survey
from deniable.surveys.tables import chosen_columns, table_columns

TRIES = 20


class CrowdError(DeniableError, RuntimeError):
    """The service does not accept what the crowd sends."""


@dataclass(frozen=True)
class Sent:
    """What left one simulated device."""

    answers: Mapping[str, Any]
    body: bytes


def send_crowd(
    server: str,
    survey: Survey,
    people: Any,
    bits: Bits | None = None,
    connections: int = 32,
    progress: Callable[[int], None] | None = None,
    clock: Callable[[], float] = time.time,
) -> list[Sent]:
    """Everybody answers; `people` is a table in the form of `Survey.privatize`. Returns what was sent, in its order.

    Raises CrowdError if the survey is not open, or if the service rejects a submission or cannot be reached.
    """
    epoch, path = _epoch(survey, clock()), f"/v1/surveys/{survey.fingerprint}/reports"
    number = epoch - survey.terms.first + 1 if survey.terms is not None else 1
    ids = [question.id for question in survey]
    domains = {question.id: question.protocol.domain for question in survey}
    rows = _rows(table_columns(people, chosen_columns(ids, None), domains))
    lock = threading.Lock()
    done = 0

    def device(answers: Mapping[str, Any]) -> Sent:
        id, raw = secrets.token_bytes(wire.ID_BYTES), b""
        for question in survey:
            own = Tied(source_of(bits), wire.public_number(survey.fingerprint, question.id, id))
            raw += _report(question.protocol, answers[question.id], number, own)
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
    # The order must carry no information.
    order = random.SystemRandom().sample(crowd, len(crowd))
    with ThreadPoolExecutor(connections) as pool:
        for _ in pool.map(deliver, [order[i::connections] for i in range(connections)]):
            pass
    return crowd


def _report(protocol: Protocol, answer: Any, number: int, bits: Bits) -> bytes:
    """The first report of a new device, in the epoch of this number."""
    device = protocol.law().stream
    if device is not None:
        return device.step(device.begin(bits), answer, number, bits)[1]
    return protocol.report(answer, bits)


def _rows(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One dictionary per person; a record in several columns is also one dictionary."""
    each = [_rows(column) if isinstance(column, Mapping) else list(column) for column in columns.values()]
    if len({len(column) for column in each}) > 1:
        raise CrowdError("the columns of the table have different lengths")
    return [dict(zip(columns, row, strict=True)) for row in zip(*each, strict=True)]


def _epoch(survey: Survey, now: float) -> int:
    if survey.terms is None:
        raise CrowdError("this survey is for files only: it has no terms of a collection")
    epoch = survey.terms.epochs.at(now)
    if survey.terms.refusal(epoch, now):
        raise CrowdError("this survey is not open now")
    return epoch


def _post(line: Transport, path: str, body: bytes) -> None:
    """Send the same bytes until the service has accepted them."""
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
