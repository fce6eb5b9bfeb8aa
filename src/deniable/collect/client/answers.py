"""Answers as a person or a program gives them: complete, and of the survey's domains. No message contains one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deniable.collect.client.memo import encode_value
from deniable.domains import Categories, Domain, Integers
from deniable.errors import DomainError, LabelError
from deniable.labels import WHOLE_NUMBER, written
from deniable.surveys import Question, Survey


def check_questions(survey: Survey, answers: Mapping[str, Any]) -> None:
    """Every question and no other is answered: what is left out would tell something."""
    if not isinstance(answers, Mapping):
        raise LabelError("answers are given by question: {id: answer, ...}")
    ids = [question.id for question in survey]
    if any(id not in ids for id in answers):
        raise LabelError(f"the survey has no such question; it has {', '.join(ids)}")
    missing = [id for id in ids if id not in answers]
    if missing:
        raise LabelError(f"every question needs an answer, since silence would tell something: {', '.join(missing)}")


def checked(survey: Survey, answers: Mapping[str, Any]) -> Mapping[str, Any]:
    """The answers, each refused if its question does not have it."""
    for question in survey:
        check_answer(question, answers[question.id])
    return answers


def check_answer(question: Question, answer: Any) -> None:
    try:
        encode_value(question.protocol.domain, answer)
    except DomainError as wrong:
        kind = str(wrong).replace("value 0", "the answer", 1)
        raise DomainError(f"question {question.id!r}: {kind}") from None


def from_text(domain: Domain, entry: str) -> Any:
    """The answer that a person has typed: as it is written in a CSV, 1 or "1", true or "True"."""
    if isinstance(domain, Integers):
        return int(entry) if WHOLE_NUMBER.fullmatch(entry) else entry
    if not isinstance(domain, Categories):
        return entry
    found = [label for label in domain.labels if entry in written(label)]
    if len(found) > 1:
        raise DomainError("two answers of this question are written alike: they cannot be told apart as text")
    return found[0] if found else entry
