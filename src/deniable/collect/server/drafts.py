"""Surveys from drafts over HTTP, for the builder in the browser: what the command `deniable survey new` makes of them.

Open       to everyone, as the planner is: nothing is stored, and the work is limited. Publishing needs a token
Limits     drafts whose questions take long to check are refused here, with the command that takes them
Expected   the precision of each question for the number of people in the draft
Changes    what differs from the survey that the draft replaces, and what this does to privacy
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from deniable._files import parse_json
from deniable.answers import read_answers
from deniable.collect.server.api import Answer, Call, Operation
from deniable.collect.server.plan import refuse_large
from deniable.collect.server.problems import Problem
from deniable.collect.wire import JSON
from deniable.errors import SpecError
from deniable.exact import epsilon_text
from deniable.surveys import Survey
from deniable.surveys.diff import Edit, diff
from deniable.surveys.draft import crowds, plan_draft
from deniable.surveys.expected import expected
from deniable.surveys.question import question_name

MOST_QUESTIONS = 30
MOST_BYTES = 200_000
HOUR = 3600
"""A draft that does not say when it opens gives the same survey for an hour."""
_ELSEWHERE = "the command deniable survey new makes a survey of it"


class ExpectedFigure(msgspec.Struct):
    """The expected precision of a question, or of a part of its answers."""

    id: str
    protocol: str
    people: int
    half_width: float | None
    """Half-width of its 95 % interval; null if the reports do not determine the figure."""
    scale: str
    """What that is a part of: a "share", the "range" of a query, or none: a number in its "unit"."""
    unit: str
    visible: float | None
    """The smallest share that can be distinguished from zero."""


class Changed(msgspec.Struct):
    """One difference to the survey that the draft replaces."""

    what: str
    before: str
    after: str
    privacy: str
    """weaker, stronger or neutral."""


class Made(msgspec.Struct):
    """A survey that was made from a draft. It is not published yet."""

    fingerprint: str
    survey: str
    """The survey in its canonical form, to be published as it is."""
    expected: list[ExpectedFigure]
    changes: list[Changed]


def _refuse_slow(draft: Any) -> None:
    """Raise SpecError for a draft that takes too long here; what else is wrong is found later."""
    questions = draft.get("questions") if isinstance(draft, Mapping) else None
    if not isinstance(questions, list):
        return
    if len(questions) > MOST_QUESTIONS or "campaign" in draft:
        raise SpecError(f"a draft has at most {MOST_QUESTIONS} questions here, and no campaign: {_ELSEWHERE}")
    for place, entry in enumerate(questions, 1):
        if not isinstance(entry, Mapping) or "answers" not in entry:
            continue
        answers, where = entry["answers"], question_name(entry, place)
        if isinstance(entry.get("protocol"), Mapping) or (
            isinstance(answers, Mapping) and {"table", "kind", "queries", "regress"} & set(answers)
        ):
            raise SpecError(f"{where}: specs, tables and queries are not read here: {_ELSEWHERE}")
        try:
            refuse_large(read_answers(answers))
        except SpecError as wrong:
            raise SpecError(f"{where}: {wrong}") from None


def made(draft: Any, now: float, before: Survey | None) -> Made:
    """The survey that a draft describes, at this moment."""
    survey, _ = plan_draft(Survey, draft, now)
    if survey.terms is None:
        raise SpecError("a survey that is collected has an owner and a purpose: who asks, and what for")
    figures = [
        ExpectedFigure(one.id, one.protocol.name, one.people, one.half_width, one.scale, one.unit, one.visible)
        for one in expected(survey, crowds(draft))
    ]
    changes = [] if before is None else [_changed(edit) for edit in diff(before, survey)]
    return Made(survey.fingerprint, survey.canonical.decode(), figures, changes)


def _changed(edit: Edit) -> Changed:
    before, after = (one if isinstance(one, str) else epsilon_text(one) for one in (edit.before, edit.after))
    return Changed(edit.what, before, after, edit.privacy)


async def make(call: Call) -> Response:
    service = call.service
    if not service.settings.plans:
        raise Problem("notFound", "this service makes no plans: the command deniable survey new makes the same survey")
    content = bytes(await call.json(msgspec.Raw))
    if len(content) > MOST_BYTES:
        raise Problem("tooLarge", f"a draft has at most {MOST_BYTES:,} bytes here: {_ELSEWHERE}")
    draft, now = parse_json(content, "the draft"), service.now()
    replaced = draft.get("replaces") if isinstance(draft, dict) else None
    entry = service.registry.get(replaced) if isinstance(replaced, str) else None
    if replaced is not None and entry is None:
        raise Problem("malformed", "it replaces a survey that is not published here: choose another one, or none")

    def work() -> bytes:
        _refuse_slow(draft)
        return msgspec.json.encode(made(draft, now, None if entry is None else entry.survey))

    return Response(await service.side_work.answer((content, int(now // HOUR)), work), 200, None, JSON)


OPERATIONS = (
    Operation(
        "POST",
        "/v1/drafts",
        "makeSurvey",
        "The survey that a draft describes, as deniable survey new makes it, with its expected precision and what "
        "differs from the survey that it replaces. Nothing is stored: publish the survey as it is.",
        make,
        {200: Answer("The survey.", {JSON: Made})},
        problems=("notFound", "overloaded"),
        bodies={JSON: {"type": "object"}},
    ),
)
