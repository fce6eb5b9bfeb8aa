"""Published surveys: the list, the exact bytes that each fingerprint is the hash of, and rounds of a campaign.

Order      a round is published here once the previous round accepts no more reports, and only as its rule makes it
           from the tally that is stored here; each round once
Together   one result from all published rounds, for analysts, with the rounds and how many answered each
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice

import msgspec
from starlette.responses import Response

from deniable._files import parse_json
from deniable.collect.server.api import Answer, Call, Operation, Parameter, json_response
from deniable.collect.server.estimates import LEVEL, NOT_ENOUGH
from deniable.collect.server.ingest import SURVEY
from deniable.collect.server.problems import Problem
from deniable.collect.server.progress import taken
from deniable.collect.server.registry import Entry, Registry
from deniable.collect.server.service import Service
from deniable.collect.server.telemetry import log
from deniable.collect.stores.base import DELETED, OPEN, StoreError, SurveyDeleted
from deniable.collect.wire import JSON
from deniable.errors import MismatchError
from deniable.exact import canonical
from deniable.results import Document, View
from deniable.results.document import Trust
from deniable.surveys import Survey, SurveyTally
from deniable.surveys.campaign import check_round, combine, round_of
from deniable.surveys.diff import diff, weaker
from deniable.surveys.terms import write_time

IMMUTABLE = "public, max-age=31536000, immutable"


class Listed(msgspec.Struct):
    """One survey in the list."""

    fingerprint: str
    name: str
    owner: str
    purpose: str
    state: str
    """waiting, collecting, over, or closed by its owner."""
    opens: str
    expires: str
    questions: int
    epsilon: str
    """Epsilon of one submission, exactly."""
    lifetime_epsilon: str | None
    """Epsilon of everything that a device may send; null if no number holds, because repeated reports show changes."""
    open: bool
    """Whether a report of the current epoch is accepted now."""
    replaces: str | None
    """The fingerprint of the survey that this one replaces."""
    replaced_by: str | None
    """The fingerprint of the survey that replaces this one, if it is published here."""
    round: int | None
    rounds: int | None
    """The number of this round and of all rounds of the campaign; null if the survey is not part of a campaign."""
    next_round: str | None
    """The fingerprint of the next round, if it is published here."""
    results: str
    """Who may read the results: "public" for everybody, "private" for people with a token."""


class Surveys(msgspec.Struct):
    """A page of the list; send `next` as `after` for the next page."""

    surveys: list[Listed]
    next: str | None


class Publication(msgspec.Struct):
    """A survey and whether it accepts reports."""

    fingerprint: str
    state: str


async def listing(service: Service, entries: Iterable[Entry], now: float) -> list[Listed]:
    known = service.registry
    return [
        listed(
            one,
            now,
            await _is_open(service, one, now),
            known.successors.get(one.fingerprint),
            known.followers.get(one.fingerprint),
        )
        for one in entries
    ]


async def _is_open(service: Service, entry: Entry, now: float) -> bool:
    current = entry.terms.epochs.at(now)
    if entry.phase(now) != "collecting" or entry.terms.refusal(current, now) is not None:
        return False
    try:
        progress = await service.versions.recent(entry.fingerprint)
    except (Problem, StoreError):
        return True  # the calendar says so, and a list must not fail because a store is busy
    return current in taken(entry, progress, service.clock.bounds())


def listed(
    entry: Entry, now: float, is_open: bool, successor: str | None = None, follower: str | None = None
) -> Listed:
    """A survey's entry in the list; `successor` replaces it, `follower` is the next round of its campaign."""
    survey, terms = entry.survey, entry.terms
    place = terms.campaign
    return Listed(
        entry.fingerprint,
        survey.name,
        terms.owner,
        terms.purpose,
        entry.phase(now),
        write_time(terms.opens),
        write_time(terms.expires),
        len(survey),
        canonical(survey.epsilon),
        None if survey.lifetime_epsilon is None else canonical(survey.lifetime_epsilon),
        is_open,
        terms.replaces,
        successor,
        None if place is None else place.number,
        None if place is None else place.campaign.rounds,
        follower,
        terms.results,
    )


async def pages(call: Call) -> Response:
    after, limit = call.query["after"] or "", call.query["limit"]
    only = call.service.only_survey(call.headers)
    known = [one for one in call.service.registry.entries.values() if only is None or one.fingerprint == only]
    entries = (entry for entry in known if entry.fingerprint > after)
    page = list(islice(entries, limit + 1))
    now = call.service.now()
    more = page[limit - 1].fingerprint if len(page) > limit else None
    return json_response(Surveys(await listing(call.service, page[:limit], now), more))


async def one(call: Call) -> Response:
    entry = await call.entry()
    tag = f'"{entry.fingerprint}"'
    headers = {"ETag": tag, "Cache-Control": IMMUTABLE}
    for name, value in call.headers:
        if name == b"if-none-match" and (value.strip() == b"*" or tag.encode() in value):
            return Response(None, 304, headers)
    return Response(entry.canonical, 200, headers, JSON)


async def publish(call: Call) -> Response:
    service = call.service
    if service.writer.stopping:
        raise Problem("overloaded", "the service is being restarted", {"Retry-After": "1"})
    content = await call.json(msgspec.Raw)
    survey = await service.readers.compute(lambda: _parsed(bytes(content)))
    await service.registry.refresh()
    if survey.fingerprint in service.registry.deleted:
        raise Problem("surveyDeleted", str(SurveyDeleted(survey.fingerprint)))
    if not call.query["weaker_privacy"]:
        _refuse_weaker(service, survey)
    await refuse_early(service, survey)
    new = await service.writer.run(lambda store: store.publish(survey))
    await service.registry.refresh()
    if new:
        log("published", survey=survey.fingerprint)
    entry = service.registry.get(survey.fingerprint)
    where = {"Location": f"/v1/surveys/{survey.fingerprint}"}
    return json_response(Publication(survey.fingerprint, entry.state if entry else OPEN), 201 if new else 200, where)


def _parsed(content: bytes) -> Survey:
    survey = Survey.from_spec(parse_json(content, "the body"))
    if survey.terms is None:
        raise Problem("malformed", "a survey that is collected has terms: owner, purpose, epochs, budget and so on")
    # What is served later must parse to what was accepted now.
    Survey.from_spec(json.loads(survey.canonical))
    return survey


def _refuse_weaker(service: Service, survey: Survey) -> None:
    """Refuse a new survey that replaces one with more privacy, or one that is not here."""
    before = survey.terms.replaces if survey.terms is not None else None
    if before is None or service.registry.get(survey.fingerprint) is not None:
        return
    entry = service.registry.get(before)
    if entry is None:
        raise Problem("malformed", f'it replaces {before}, which is not published here: correct its "replaces"')
    lost = ", ".join(change.what for change in weaker(diff(entry.survey, survey)))
    if lost:
        raise Problem("weakerPrivacy", f"{lost}: if that is meant, publish it with weaker_privacy=true")


async def close(call: Call) -> Response:
    service, entry = call.service, await call.entry()
    # Deleting the ids takes long, and the writer has other requests to serve.
    await service.change(lambda store: store.close_survey(entry.fingerprint))
    await service.registry.refresh()
    log("closed survey", survey=entry.fingerprint)
    return json_response(Publication(entry.fingerprint, "closed"))


async def delete(call: Call) -> Response:
    service, entry = call.service, await call.entry()
    if entry.phase(service.clock.bounds().earliest) not in ("closed", "over"):
        raise Problem("inUse", "the survey still takes reports: close it first")
    # Another client may have deleted it at the same time: that is fine.
    with suppress(SurveyDeleted):
        await service.change(lambda store: store.delete_survey(entry.fingerprint))
    service.untidy()
    await service.registry.refresh()
    log("deleted survey", survey=entry.fingerprint)
    return json_response(Publication(entry.fingerprint, DELETED))


class PublishedRound(msgspec.Struct):
    """One round."""

    round: int
    fingerprint: str
    state: str
    """waiting, collecting, over, or closed by its owner."""
    opens: str
    expires: str
    n: int
    """The number of counted answers."""
    made_from: str | None
    """The digest of the previous round's tally, from which this round was made; null for the first round."""


class CampaignReading(msgspec.Struct):
    """A campaign so far: its rounds, and one result from all of them."""

    kind: str
    rounds: int
    """The planned number of rounds."""
    published: list[PublishedRound]
    questions: list[Document]


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
    """Raise a Problem unless this survey may be published now: a round must follow the previous one."""
    place = None if survey.terms is None else survey.terms.campaign
    if place is None or place.before is None or service.registry.get(survey.fingerprint) is not None:
        return
    before = service.registry.get(place.before)
    if before is None:
        raise Problem("wrongRound", f"round {place.number} comes after {place.before}, which is not published here")
    same = [one for one in rounds_of(service.registry, before) if round_of(one.survey).number == place.number]
    if same:
        raise Problem("wrongRound", f"round {place.number} is published already, as {same[0].fingerprint}")
    if before.phase(service.clock.bounds().earliest) not in ("closed", "over"):
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
            round_of(one.survey).tally,
        )
        for one, tally in zip(chain, tallies, strict=True)
    ]
    rule = entry.terms.campaign.campaign
    return json_response(CampaignReading(rule.kind, rule.rounds, listed, questions))


def _combined(chain: Sequence[Entry], tallies: Sequence[SurveyTally], level: float) -> list[Document]:
    """One document per question, from all rounds."""
    surveys = [one.survey for one in chain]
    found = combine(surveys, tallies)
    documents = []
    for question in surveys[-1]:
        n = sum(tally[question.id].n for tally in tallies)
        result = found.get(question.id)
        if result is None or n < chain[-1].terms.min_reports:
            document = Document(
                kind=question.protocol.worth().read,
                protocol=question.protocol.name,
                method="",
                n=n,
                level=level,
                simultaneous=False,
                population=True,
                enough=False,
                message=NOT_ENOUGH,
                trust=Trust(),
                sections=[],
            )
        else:
            document = result.document(View(level))
            document.n = n
        document.id, document.text = question.id, question.text
        documents.append(document)
    return documents


OPERATIONS = (
    Operation(
        "GET",
        "/v1/surveys",
        "listSurveys",
        "List the surveys that are collected here, by fingerprint; with a token of one survey, that one only.",
        pages,
        {200: Answer("A page of surveys.", {JSON: Surveys})},
        parameters=(
            Parameter("after", {"type": "string", "pattern": "^[0-9a-f]{0,64}$"}, "a fingerprint: those after it"),
            Parameter(
                "limit", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}, "a number from 1 to 1000"
            ),
        ),
        public=True,
    ),
    Operation(
        "GET",
        "/v1/surveys/{fingerprint}",
        "getSurvey",
        "The survey's canonical bytes. SHA-256 of 'deniable-survey-v1', a zero byte and these is the fingerprint.",
        one,
        {
            200: Answer("The survey.", {JSON: {"type": "object"}}, {"ETag": "The fingerprint."}),
            304: Answer("The survey has not changed; it never does."),
        },
        parameters=(SURVEY,),
        public=True,
    ),
    Operation(
        "POST",
        "/v1/surveys",
        "publishSurvey",
        "Publish a survey in full form, as deniable survey new writes it. One that replaces another is refused if "
        "privacy gets weaker, unless this is explicitly allowed. A later round of a campaign is published once "
        "the round before is closed, and only as it follows from the sums that were collected here.",
        publish,
        {
            200: Answer("The survey was published before.", {JSON: Publication}),
            201: Answer("The survey is published.", {JSON: Publication}, {"Location": "Where it is."}),
        },
        role="admin",
        problems=("weakerPrivacy", "wrongRound", "surveyDeleted", "countedElsewhere"),
        parameters=(
            Parameter(
                "weaker_privacy",
                {"type": "boolean", "default": False},
                "whether the survey may have less privacy than the one that it replaces: true or false",
            ),
        ),
        bodies={JSON: {"type": "object"}},
    ),
    Operation(
        "POST",
        "/v1/surveys/{fingerprint}/close",
        "closeSurvey",
        "Take no more reports of this survey; closes its epochs.",
        close,
        {200: Answer("The survey is closed.", {JSON: Publication})},
        role="admin",
        parameters=(SURVEY,),
    ),
    Operation(
        "DELETE",
        "/v1/surveys/{fingerprint}",
        "deleteSurvey",
        "Delete a survey that takes no more reports, with all that was collected: its specification, sums, ids and "
        "kept reports. Its fingerprint is remembered: from then on it is answered with 410, and the same survey is not "
        "published here again. A round that a later round of its campaign was made from can be deleted after that one.",
        delete,
        {200: Answer("The survey is deleted.", {JSON: Publication})},
        role="admin",
        problems=("inUse", "storageFull"),
        parameters=(SURVEY,),
    ),
    Operation(
        "GET",
        "/v1/surveys/{fingerprint}/campaign",
        "getCampaign",
        "All published rounds of the survey's campaign, and one result from all of them.",
        campaign,
        {200: Answer("The rounds and the result.", {JSON: CampaignReading})},
        role="analyst",
        problems=("noCampaign", "countedElsewhere"),
        parameters=(SURVEY, LEVEL),
        beyond=True,
    ),
)
