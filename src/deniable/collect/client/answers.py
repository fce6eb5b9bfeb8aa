"""From an answer as a person or a program gives it to the bytes of its report.

Once       drawing a report reads the answer once: what is no answer is refused there, before anything is recorded
Messages   name questions and choices, never the answer: messages may be logged or sent anywhere
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from deniable.collect import wire
from deniable.domains import Domain
from deniable.errors import DomainError, LabelError
from deniable.surveys import Question, Survey
from deniable.surveys.strict import short

_MOST_IDS = 8


def check_questions(survey: Survey, answers: Mapping[str, Any]) -> None:
    """Refuse answers that leave out a question or name another one: what is left out would tell something."""
    if not isinstance(answers, Mapping):
        raise LabelError("answers are given by question: {id: answer, ...}")
    ids = [question.id for question in survey]
    for id in answers:
        check_id(survey, id)
    missing = [id for id in ids if id not in answers]
    if missing:
        raise LabelError(
            f"there is no answer to {listed(missing)}: every question of the survey ({listed(ids)}) needs one, since "
            "silence would tell something"
        )


def check_id(survey: Survey, id: Any) -> None:
    """Refuse an id that no question of the survey has."""
    ids = [question.id for question in survey]
    if id not in ids:
        raise LabelError(f"the survey has no question {short(id)}: its questions are {listed(ids)}")


def listed(names: Iterable[str]) -> str:
    """Names with commas, the first few of many.

    >>> listed("abc"), listed("abcdefghijk")
    ('a, b, c', 'a, b, c, d, e, f, g, h, ...')
    """
    first = list(names)
    return ", ".join(first[:_MOST_IDS] + (["..."] if len(first) > _MOST_IDS else []))


def drawn(question: Question, answer: Any) -> bytes:
    """The report of an answer, from the system's generator; raises DomainError for what is no answer."""
    with _named(question):
        protocol = question.protocol
        return protocol.report_encoded(protocol.domain.encode_one(answer))


def encoded(question: Question, answer: Any, typed: bool = False) -> Any:
    """An answer as its protocol takes it; raises DomainError for what is no answer.

    The message has the choices, never the answer; who `typed` it need not be told that it is text.
    """
    with _named(question, typed):
        return question.protocol.domain.encode_one(answer)


@contextmanager
def _named(question: Question, typed: bool = False) -> Iterator[None]:
    """Complaints about an answer as complaints about the answer to this question."""
    try:
        yield
    except DomainError as wrong:
        complaint = str(wrong).replace("value 0", "the answer", 1)
        if typed:
            complaint = re.sub(r"^the answer, an? \w+,", "the answer", complaint)
        raise DomainError(f"question {question.id!r}: {complaint}") from None


def from_text(domain: Domain, entry: str) -> Any:
    """The answer that a person has typed: as it is written in a CSV, 1 or "1", true or "True"."""
    return domain.reader(typed=False)(entry)


def preview(survey: Survey, epoch: int, answers: Mapping[str, Any]) -> bytes:
    """A body like the one that `Client.answer` would send, without a ledger: recorded and sent nowhere."""
    check_questions(survey, answers)
    reports = b"".join(drawn(question, answers[question.id]) for question in survey)
    return wire.encode(epoch, secrets.token_bytes(wire.ID_BYTES), reports, survey.report_bytes)
