"""Drafts: what an author writes by hand, from which a survey is made once.

    {"name": "habits", "epsilon": "1", "people": 20000, "questions": [
        {"id": "smoke", "text": "Do you smoke?", "answers": ["yes", "no"]},
        {"id": "age", "text": "How old are you?", "answers": {"low": 18, "high": 99}, "protocol": "OLH"}]}

answers    a list of labels, {"low": ..., "high": ...}, "text" for any text, or the spec of a domain
other      the label for every answer that is not listed
epsilon    of this question; the draft's own `epsilon` stands for the questions without one
protocol   a name, "best" (the planner's choice for `people` respondents; the default), or a spec in full
parameters of the named protocol, where the default is not wanted

A draft for a collection over the network also has

owner, purpose   who asks, and what for; without both the survey is for files only
opens, expires   times such as "2026-11-01T00:00:00Z"; or `days`, the length of the collection, from `opens` or from now
epochs           {"seconds": 86400} or {"days": 1}: how long an epoch is; one epoch for the whole collection by default
longitudinal     {"rule": "none", "epochs": 7} or {"rule": "memoize", "epochs": 30, "values": 1}; one answer by default
budget           {"group": "...", "epsilon": "4"}; by default a group of the survey's own name with just what it needs
retention, show_from, replaces     as in `Terms`

The choice is made when the survey is made and stored in full: a later planner changes no published survey.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deniable.domains import Categories, Domain, Integers, Strings, load_domain
from deniable.errors import DeniableError, SpecError
from deniable.labels import load_label
from deniable.protocols import PROTOCOLS, Protocol
from deniable.surveys.draft_terms import TERMS, draft_terms
from deniable.surveys.strict import keys
from deniable.surveys.survey import Question, Survey, load_protocol, question_name

BEST = "best"

_SHARED = ("epsilon", "protocol", "people")


def from_draft(draft: Any, now: float | None = None) -> Survey:
    """The survey that a draft describes; `now` is when a collection opens whose draft does not say."""
    if not isinstance(draft, Mapping):
        raise SpecError("a draft is an object with a name and questions")
    if draft.get("kind") == "survey":
        raise SpecError("this is a survey already, not a draft of one")
    keys(draft, ("name", "questions"), "the draft", optional=(*_SHARED, *TERMS))
    if not isinstance(draft["questions"], list):
        raise SpecError('"questions" is not a list')
    shared = {key: draft[key] for key in _SHARED if key in draft}
    questions = [_question(entry, place, shared, draft["name"]) for place, entry in enumerate(draft["questions"], 1)]
    plain = Survey(draft["name"], questions)
    given = {key: draft[key] for key in TERMS if key in draft}
    return Survey(plain.name, questions, draft_terms(given, plain, now)) if given else plain


def _question(entry: Any, place: int, shared: Mapping[str, Any], name: Any) -> Question:
    if not isinstance(entry, Mapping):
        raise SpecError(f"question {place} is not an object with id, text and answers")
    where = question_name(entry, place)
    try:
        if isinstance(entry.get("protocol"), Mapping):
            keys(entry, ("id", "text", "protocol"), "it")
            protocol = load_protocol(entry["protocol"])
        else:
            keys(entry, ("id", "text", "answers"), "it", optional=(*_SHARED, "other", "parameters"))
            protocol = _protocol(_domain(entry, name), {**shared, **entry})
    except DeniableError as wrong:
        raise SpecError(f"{where}: {wrong}") from None
    return Question(entry["id"], entry["text"], protocol)


def _domain(entry: Mapping[str, Any], name: Any) -> Domain:
    answers, other = entry["answers"], entry.get("other")
    if isinstance(answers, list):
        labels = [load_label(answer) for answer in answers]
        return Categories(labels, None if other is None else load_label(other))
    if other is not None:
        raise SpecError('"other" goes with a list of answers only')
    if answers == "text":
        # Each question has hash functions of its own, so that two surveys' sketches say nothing about each other.
        return Strings(key=f"{name}/{entry['id']}")
    if isinstance(answers, Mapping) and set(answers) == {"low", "high"}:
        return Integers(answers["low"], answers["high"])
    if isinstance(answers, Mapping) and "kind" in answers:
        return load_domain(answers)
    raise SpecError('the answers are a list, {"low": ..., "high": ...}, "text" or the spec of a domain')


def _protocol(domain: Domain, wanted: Mapping[str, Any]) -> Protocol:
    name = wanted.get("protocol", BEST)
    parameters = wanted.get("parameters", {})
    if "epsilon" not in wanted:
        raise SpecError("epsilon is missing: give it in the question, or once for all questions")
    if not isinstance(parameters, Mapping):
        raise SpecError("the parameters are an object")
    if name == BEST:
        if parameters:
            raise SpecError("parameters need a protocol by name")
        return _planned(domain, wanted["epsilon"], wanted.get("people"))
    if not isinstance(name, str) or name not in PROTOCOLS:
        raise SpecError(f"there is no protocol {name!r}; there are {BEST}, {', '.join(sorted(PROTOCOLS))}")
    try:
        return PROTOCOLS[name](domain, wanted["epsilon"], **parameters)
    except TypeError:
        raise SpecError(f"{name} does not have these parameters: {', '.join(map(str, parameters))}") from None


def _planned(domain: Domain, epsilon: Any, people: Any) -> Protocol:
    from deniable.planning import plan

    if isinstance(people, bool) or not isinstance(people, int):
        raise SpecError('the planner needs "people", about how many will answer: give it, or name a protocol')
    best: Protocol = plan(domain, epsilon=epsilon, n=people).best
    return best
