"""Rounds of a campaign at the service: published one after the other, and read together.

Order      a round is published here once the round before takes no more reports, and only as its rule makes it from
           the tally that is stored here; each round once
Together   one result from all rounds that are published, for analysts, with the rounds and how many answered each
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from starlette.responses import Response

from deniable.collect.server.api import Answer, Call, Operation, json_response
from deniable.collect.server.estimates import LEVEL, NOT_ENOUGH, Row
from deniable.collect.server.ingest import SURVEY
from deniable.collect.server.problems import Problem
from deniable.collect.server.registry import Entry, Registry
from deniable.collect.server.service import Service
from deniable.collect.wire import JSON
from deniable.errors import MismatchError
from deniable.surveys import Survey, SurveyTally
from deniable.surveys.campaign import check_round, combine, round_of
from deniable.surveys.results import Finding
from deniable.surveys.terms import write_time


class PublishedRound(msgspec.Struct):
    """One round."""

    round: int
    fingerprint: str
    state: str
    """waiting, collecting, over, or closed by its owner."""
    opens: str
    expires: str
    n: int
    """How many answers were counted."""


class CombinedQuestion(msgspec.Struct, kw_only=True):
    """What all rounds together say about one question."""

    id: str
    text: str
    kind: str
    method: str
    n: int
    level: float
    enough: bool
    message: str | None = None
    """Why there are no figures here, if there are none."""
    rows: list[Row]
    notes: list[str]


class CampaignReading(msgspec.Struct):
    """A campaign so far: its rounds, and one result from all of them."""

    kind: str
    rounds: int
    """How many there will be."""
    published: list[PublishedRound]
    questions: list[CombinedQuestion]


def rounds_of(registry: Registry, entry: Entry) -> list[Entry]:
    """All published rounds of this survey's campaign, the first round first."""
    identity = round_of(entry.survey).identity(entry.fingerprint)
    found = [
        one
        for one in registry.entries.values()
        if one.terms.campaign is not None and one.terms.campaign.identity(one.fingerprint) == identity
    ]
    return sorted(found, key=lambda one: round_of(one.survey).number)


async def refuse_early(service: Service, survey: Survey) -> None:
    """Raise a Problem unless this survey may be published now: a round of a campaign comes after the one before."""
    place = None if survey.terms is None else survey.terms.campaign
    if place is None or place.before is None or service.registry.get(survey.fingerprint) is not None:
        return
    before = service.registry.get(place.before)
    if before is None:
        raise Problem("wrongRound", f"round {place.number} comes after {place.before}, which is not published here")
    same = [one for one in rounds_of(service.registry, before) if round_of(one.survey).number == place.number]
    if same:
        raise Problem("wrongRound", f"round {place.number} is published already, as {same[0].fingerprint}")
    if before.phase(service.now()) not in ("closed", "over"):
        raise Problem(
            "wrongRound", f"round {place.number - 1} still takes reports, so its tally may change: close it first"
        )
    tally = await _tally(service, before)
    try:
        await service.readers.compute(lambda: check_round(before.survey, tally, survey))
    except MismatchError as wrong:
        raise Problem("wrongRound", str(wrong)) from None


async def _tally(service: Service, entry: Entry) -> SurveyTally:
    return await service.readers.run(lambda store: store.tally(entry.fingerprint, 0, None))


async def campaign(call: Call) -> Response:
    service, entry = call.service, await call.entry()
    if entry.terms.campaign is None:
        raise Problem("noCampaign", "this survey is collected in one round")
    chain, level = rounds_of(service.registry, entry), call.query["level"]
    tallies = [await _tally(service, one) for one in chain]
    questions = await service.readers.compute(lambda: _combined(chain, tallies, level))
    now = service.now()
    listed = [
        PublishedRound(
            round_of(one.survey).number,
            one.fingerprint,
            one.phase(now),
            write_time(one.terms.opens),
            write_time(one.terms.expires),
            next(iter(tally.tallies.values())).n,
        )
        for one, tally in zip(chain, tallies, strict=True)
    ]
    rule = entry.terms.campaign.campaign
    return json_response(CampaignReading(rule.kind, rule.rounds, listed, questions))


def _combined(chain: Sequence[Entry], tallies: Sequence[SurveyTally], level: float) -> list[CombinedQuestion]:
    surveys = [one.survey for one in chain]
    found = combine(surveys, tallies)
    said = []
    for question in surveys[-1]:
        n = sum(tally[question.id].n for tally in tallies)
        result = found.get(question.id)
        if result is None or n < chain[-1].terms.show_from:
            method, kind, rows, notes = "", question.protocol.reads, [], []
        else:
            content = Finding(result, result.table(level)).description(question.id, question.text)
            method, kind, notes = result.method, result.kind, content["notes"]
            rows = [Row(**row) for row in content["rows"]]
        said.append(
            CombinedQuestion(
                id=question.id,
                text=question.text,
                kind=kind,
                method=method,
                n=n,
                level=level,
                enough=bool(rows),
                message=None if rows else NOT_ENOUGH,
                rows=rows,
                notes=notes,
            )
        )
    return said


OPERATIONS = (
    Operation(
        "GET",
        "/v1/surveys/{fingerprint}/campaign",
        "getCampaign",
        "All published rounds of the survey's campaign, and one result from all of them.",
        campaign,
        {200: Answer("The rounds and the result.", {JSON: CampaignReading})},
        role="analyst",
        problems=("noCampaign",),
        parameters=(SURVEY, LEVEL),
    ),
)
