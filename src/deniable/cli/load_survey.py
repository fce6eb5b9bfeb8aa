"""Loads the survey of a command: from a file or a service, with the checks before publishing.

Protocols    the spec of a protocol is read as a survey of one question, `Survey.of`, which is not published
Rounds       the surveys of a campaign and their tallies, in any order, or from a service
By name      a published survey is found by its name, or by the beginning of its fingerprint
Files only   a survey without terms is not published
Expired      nobody could answer it, so it is not published
Replaces     the survey that is replaced must be published; a replacement with less privacy is published only if that
             is explicitly allowed
"""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from deniable._files import parse_json
from deniable.cli import output
from deniable.cli.options import STDIN, named, read_text
from deniable.cli.output import many, shown
from deniable.errors import DeniableError, LabelError, MismatchError, SpecError
from deniable.exact import epsilon_text, level_text
from deniable.protocols import Protocol
from deniable.specs import is_fingerprint
from deniable.surveys import Survey, SurveyTally
from deniable.surveys.campaign import round_of
from deniable.surveys.diff import diff, weaker
from deniable.surveys.question import load_protocol
from deniable.surveys.terms import read_time, write_time

if TYPE_CHECKING:
    from deniable.collect.analyst import Analyst
    from deniable.collect.stores import Store

SHORTEST = 6
_MOST_LISTED = 10
_BEGINNING = re.compile(rf"[0-9a-f]{{{SHORTEST},64}}")


def read_target(source: str) -> Survey:
    """The survey in a file, or the one question of a protocol's spec."""
    content, where = parse_json(read_text(source), named(source)), named(source)
    kind = content.get("kind") if isinstance(content, dict) else None
    try:
        if kind == "protocol":
            return Survey.of(load_protocol(content))
        if kind is None and isinstance(content, dict) and "questions" in content:
            raise SpecError("this is a draft: make it a survey with deniable survey new")
        return Survey.from_spec(content)
    except DeniableError as wrong:
        raise type(wrong)(f"{where}: {wrong}") from None


def read_survey(source: str) -> Survey:
    """The survey in a file. Raises `SpecError` for the spec of a protocol."""
    found = read_target(source)
    if found.kind == "protocol":
        raise SpecError(f"{named(source)} is the spec of a protocol, not a survey")
    return found


def read_rounds(sources: Sequence[str]) -> tuple[list[Survey], list[SurveyTally]]:
    """The rounds of a campaign, the first round first, and the tallies that belong to them, from files in any order.

    Raises `SpecError` for a file that is neither, and for a tally that belongs to none of the surveys.
    """
    surveys: dict[str, Survey] = {}
    tallies: dict[str, SurveyTally] = {}
    for source in sources:
        content, where = parse_json(read_text(source), named(source)), named(source)
        try:
            if isinstance(content, dict) and content.get("kind") == "survey-tally":
                tally = SurveyTally.from_spec(content)
                tallies[tally.survey] = tallies[tally.survey] + tally if tally.survey in tallies else tally
            else:
                survey = Survey.from_spec(content)
                round_of(survey)
                surveys[survey.fingerprint] = survey
        except DeniableError as wrong:
            raise type(wrong)(f"{where}: {wrong}") from None
    if not surveys:
        raise SpecError("there is no survey among these files: give the surveys of all rounds, and their tallies")
    strange = [fingerprint for fingerprint in tallies if fingerprint not in surveys]
    if strange:
        raise MismatchError(f"there is a tally of survey {strange[0]}, but not the survey: add its file")
    rounds = sorted(surveys.values(), key=lambda one: round_of(one).number)
    numbers = [round_of(one).number for one in rounds]
    if numbers != list(range(1, len(rounds) + 1)):
        raise SpecError(f"these are the rounds {', '.join(map(str, numbers))}: give each round once, from the first on")
    missing = [number for number, one in enumerate(rounds[:-1], 1) if one.fingerprint not in tallies]
    if missing:
        raise SpecError(f"the tally of round {missing[0]} is missing: the next round was made from it")
    return rounds, [tallies[one.fingerprint] for one in rounds if one.fingerprint in tallies]


def service_rounds(analyst: Analyst, survey: Survey) -> tuple[list[Survey], list[SurveyTally]]:
    """All rounds of the survey's campaign that the service has published, and their tallies."""
    rounds = [survey]
    while (before := round_of(rounds[0]).before) is not None:
        rounds.insert(0, analyst.survey(before))
    following = {one.fingerprint: one.next_round for one in analyst.surveys()}
    while (after := following.get(rounds[-1].fingerprint)) is not None:
        rounds.append(analyst.survey(after))
    return rounds, [analyst.tally(one) for one in rounds]


def read_first(source: str, others: list[str], command: str) -> Survey:
    """The survey in the first argument. If one of the others holds a survey instead, the error says so."""
    try:
        return read_target(source)
    except (DeniableError, OSError):
        found = next((other for other in others if _is_target(other)), None)
        if found is None:
            raise
    order = f"{shlex.quote(found)} {shlex.quote(source)}"
    raise SpecError(f"{source!r} is no survey, and {found!r} is one: did you mean deniable {command} {order} ...?")


def _is_target(source: str) -> bool:
    try:
        with open(source, "rb") as file:
            if file.read(16).lstrip()[:1] != b"{":
                return False
        read_target(source)
    except (DeniableError, OSError):
        return False
    return True


def questions(target: Survey) -> dict[str, tuple[str, Protocol]]:
    """Text and protocol of each question, by its column in a file of reports."""
    return {question.id: (question.text, question.protocol) for question in target}


def epsilon_words(target: Survey) -> str:
    """The requested epsilon, and the one that is computed from the law; delta, if there is one."""
    return f"{epsilon_text(target.epsilon)} ({level_text(target.ratio)} realized)" + (
        f", with delta {target.delta}" if target.delta else ""
    )


def between_words(target: Survey) -> str:
    """The inputs between which epsilon holds; empty if these are any two answers."""
    protocol = target.questions[0].protocol
    return "" if protocol.guarantee.relation == "any" else f", between {protocol.guarantee.over}"


def meant(given: str, fingerprint: str, name: str) -> bool:
    """Whether a text is the name of a survey, or the beginning of its fingerprint.

    >>> meant("habits", "ab12" * 16, "habits"), meant("AB12ab", "ab12" * 16, "habits"), meant("ab12", "ab12" * 16, "")
    (True, True, False)
    """
    beginning = given.lower()
    return given == name or (_BEGINNING.fullmatch(beginning) is not None and fingerprint.startswith(beginning))


def chosen_in(store: Store, given: str | None) -> Survey:
    """The survey with this name or fingerprint in a store; without an argument, the only survey."""
    published = {one.fingerprint: parse_json(one.canonical, "the stored survey") for one in store.surveys()}
    names = {fingerprint: str(content["name"]) for fingerprint, content in published.items()}
    return Survey.from_spec(published[choose(given, names, "choose with --survey one of")])


def choose(given: str | None, published: Mapping[str, str], how: str) -> str:
    """The fingerprint of the matching survey; without `given`, of the only one.

    `published` has the names by fingerprint, and `how` precedes the list of them in an error. Raises `SpecError` if
    nothing is published, and `LabelError` if no survey or several surveys match.
    """
    if not published:
        raise SpecError("no survey is published there")
    found = [one for one, name in published.items() if given is None or meant(given, one, name)]
    if len(found) == 1:
        return found[0]
    if given is None:
        problem = "there are several surveys"
    elif found:
        problem, how = (
            f"{given!r} stands for several surveys",
            "give (more of) the fingerprint of the one that is meant:",
        )
    else:
        problem = f"no survey there is called {given!r} or has a fingerprint that begins so ({SHORTEST} digits or more)"
    some = sorted(found or published)[:_MOST_LISTED]
    listed = ", ".join(f"{shown(published[one])} ({one[:12]})" for one in some)
    more = ", ..." if len(found or published) > len(some) else ""
    raise LabelError(f"{problem}: {how} {listed}{more}")


def find(analyst: Analyst, given: str) -> Survey:
    """The survey in a file, or the one that the service has under this name or fingerprint."""
    if is_fingerprint(given.lower()):
        return analyst.survey(given.lower())
    if given == STDIN or os.path.exists(given):
        found = read_target(given)
        if found.kind == "protocol":
            raise SpecError("a service collects surveys, not single protocols")
        return found
    listed = {one.fingerprint: one.name for one in analyst.surveys()}
    found = analyst.survey(choose(given, listed, "there is no such file either; give a file or one of"))
    if not meant(given, found.fingerprint, found.name):
        raise MismatchError(f"the service says that {found.fingerprint} is {given!r}, which it is not")
    return found


def find_round(analyst: Analyst, source: str) -> Survey:
    """The matching round: a name means the last round of that name."""
    try:
        found = find(analyst, source)
    except DeniableError:
        same = [one for one in analyst.surveys() if one.name == source]
        last = [one for one in same if one.next_round is None]
        if len(same) < 2 or len(last) != 1:
            raise
        found = analyst.survey(last[0].fingerprint)
    round_of(found)
    return found


def refuse_uncollected(survey: Survey, source: str) -> None:
    """Refuse a survey that is for files only."""
    if survey.terms is None:
        raise SpecError(f"{named(source)} is for files only: a collection needs terms (owner, purpose and an end)")


def refuse_expired(survey: Survey, source: str) -> None:
    """Refuse a survey that nobody could answer any more."""
    if survey.terms is not None and survey.terms.expires <= time.time():
        ended = write_time(survey.terms.expires)
        raise SpecError(f"{named(source)} expired at {ended}, so nobody could answer it: give it a later end")


def losses(survey: Survey, source: str, published: Collection[str], read: Callable[[str], Survey]) -> str:
    """What a respondent loses compared with the survey that this one replaces, in words; empty if nothing gets weaker.

    `published` has the fingerprints at the service, and `read` returns the survey of one. Raises `SpecError` if the
    replaced survey is not published.
    """
    before = survey.terms.replaces if survey.terms is not None else None
    if before is None or survey.fingerprint in published:
        return ""
    if before not in published:
        raise SpecError(
            f'{named(source)} replaces {before}, which is not published there: correct its "replaces", or leave it out'
        )
    return ", ".join(change.what for change in weaker(diff(read(before), survey)))


def read_moment(text: str) -> int:
    """Seconds since 1970 of a day or a time in UTC.

    >>> read_moment("1970-01-02"), read_moment("1970-01-01T00:01:00Z")
    (86400, 60)
    """
    try:
        return read_time(f"{text}T00:00:00Z" if "T" not in text else text)
    except SpecError:
        raise SpecError(f"a date is written 2026-10-01, or 2026-10-01T12:00:00Z, in UTC, not {text!r}") from None


def shown_enough(target: Survey, id: str, n: int, few: bool) -> bool:
    """Whether the survey allows showing an estimate from n answers; if not, print the reason."""
    terms = target.terms
    if terms is None or few or n >= terms.min_reports:
        return True
    output.note(
        "note", f"{id!r} has {many(n, 'answer')}, and the survey shows estimates from {terms.min_reports} on (--few)"
    )
    return False
