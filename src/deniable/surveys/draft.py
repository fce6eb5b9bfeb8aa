"""Drafts: what an author writes by hand, and from which a survey is made once.

    {"name": "habits", "epsilon": "1", "people": 20000, "questions": [
        {"id": "smoke", "text": "Do you smoke?", "answers": ["yes", "no"]},
        {"id": "age", "text": "How old are you?", "answers": {"low": 18, "high": 99}, "protocol": "OLH"}]}

answers    a list of labels, {"low": ..., "high": ...} (whole numbers), "text" for any text,
           {"number": {"low": 0, "high": 24, "unit": "hours"}, "read": "mean"} (the mean of a number; "distribution"
           for its quantiles and its histogram, also for whole numbers: {"low": 18, "high": 99, "read": "distribution"};
           "ranges" for the same and the share of any range with its exact error.
           More than 32 whole numbers are read in that way if the planner chooses and devices keep nothing; "shares"
           asks for the share of every single number),
           {"record": {"smoke": ["yes", "no"], ...}, "per_device": 1} (several parts; each device reports one of them;
           "per_device": "pairs", "triples", "best" or [["smoke", "age"], ...] for tables of parts together, numbers cut
           into "cells": {"age": 8}; "titles": {"age": "How old are you?"} for what people read; "read": "rectangles"
           for two numbers together; "regress": {"target": "age", "link":
           "linear"} for the coefficients of a regression on the other parts, "queries": {"both": {"times": ["age",
           ["smoke", "yes"]]}, ...} for means of products and of forms, see `Queries`),
           {"places": {"columns": 16, "rows": 12, "cell": "500 m"}} (a cell of a grid, {"north": 3, "east": 5}; epsilon
           is that of one cell side, and grows with the distance. With "read": "rectangles" it holds between any two
           cells),
           {"multiple": ["mail", "maps", ...], "at_most": 3} (any set of listed items; at most 3 of them are reported),
           {"keys": ["mail", ...], "low": 1, "high": 5, "unit": "stars", "at_most": 3} (a number for each of some keys),
           {"table": proof} (a mechanism that `deniable design` proved, with its proof; "hypotheses": [...] names the
           laws that it distinguishes; for a mean, "number": {...} says which numbers), {"table": channel} (any exact
           channel, such as `deniable channel show coin --save` writes; "delta": "1/4000" if its epsilon holds only with
           a delta), {"table": spec} (a saved table, such as a profile mechanism: its answers are records of profile and
           value, and "read" says whether the shares of "values" or of "profiles" are wanted), or the spec of a domain
other      the label for every answer that is not listed
missing    the label for every missing answer, for example "no answer"; without it an empty cell is refused. A range of
           numbers becomes a list of these numbers and the label. May also be given once for all questions
epsilon    of this question; the draft's own `epsilon` applies to the questions without one. If neither is given, a
           lifetime budget is divided: equally over the answers that a device may randomize, and over the questions
people     about how many will answer (per epoch, if a device may answer in several), for the planner and for what to
           expect
per_device of the whole draft, 1 or "pairs": each device reports one of the questions, or two together, chosen by its
           own coins, with the whole epsilon. The questions become the parts of one record, under their ids; their
           texts are the titles that people read
strata     {"country": ["de", "fr"]}: public attributes, of the whole draft. They are sent in clear with every report,
           which page and command line say, and each combination is counted separately. Attributes that must be
           hidden are written {"sex": {"private": ["f", "m"]}}: they are randomized together with each answer, and one
           epsilon protects both. Then the shares of listed answers and means of numbers can be asked for. The same
           for one question: {"record": {"sex": ["f", "m"], "smoke": ["yes", "no"]}, "read": "strata"}, the answer last
shape      what is known of numbers whose distribution or ranges are read: "smooth" if they are spread smoothly,
           "rough" if many people give the same few, or "unknown". The planner chooses by it
protocol   a name, "best" (the planner's choice for `people` respondents; the default), or a complete spec. In a survey
           that memoizes, "best" is the best protocol with few enough different reports
parameters of the named protocol, to override the defaults
language, translations   the code of the language of these texts, and the same texts in others (`translations`)

A draft for a collection over the network also has

owner, purpose   who asks, and what for; a draft with none of these keys is for files only
opens, expires   times such as "2026-11-01T00:00:00Z"; a draft without `opens` opens at the start of the current hour,
                 and may give `days`, the length of the collection, in place of `expires`
epochs           {"seconds": 86400} or {"days": 1}: length of an epoch. By default the whole collection is one epoch;
                 but a collection of more than a week, in which a device answers once and only sums are kept, has
                 epochs of a day, whose reports are accepted for three more days. So the service forgets ids within
                 days. A device counts its answers over all epochs, and may answer as often as before
longitudinal     {"rule": "none", "epochs": 7} or {"rule": "memoize", "epochs": 30, "values": 1}; one answer by default,
                 and no more epochs than there are. {"rule": "two-stage", "first": "1/2", "forever": "1", "values": 1,
                 "epochs": 30} takes the place of epsilon: `first` is that of one submission, `forever` that of all of
                 them from the same kept states, and both are divided equally over the questions
                 {"rule": "evolving", "changes": 2, "epochs": 30}: shares in every epoch if an answer changes at most
                 twice; epsilon is that of everything that a device sends, and "epochs" as many as there are
budget           {"group": "...", "epsilon": "4", "delta": "1/1000"}; by default a group with the survey's own name and
                 exactly what it needs
campaign         {"kind": "narrowing", "cells": 8}: this is the first of several rounds, whose rule asks the questions
                 in its own way (`campaign`); missing parameters have their defaults
relay            {"address": "https://relay.example.org", "key": "...", "batch": 1000}: submissions travel sealed, and
                 are mixed in batches; the key is the collector's, from `deniable relay key`
collectors       {"addresses": ["https://one.example.org", "https://two.example.org"], "missing": 50}: answers are
                 split between them, and only sums come out (`SecureSum`). Of `people`, the number `missing` may be
                 absent, by default a twentieth. A question is for shares, or for a "mean": {"low": 0, "high": 10,
                 "read": "mean"}
min_reports      estimates of fewer answers are not shown; by default as many as are needed to read one figure, that
                 is, until its 95 % interval is narrower than the whole range of the figure
retention, delete_days, replaces, results     as in `Terms`

"$schema" may name the JSON Schema of drafts, for editors (`deniable survey schema draft`); the survey is the same.

The choice is made when the survey is made and stored in full: a later planner changes no published survey.
"""

from __future__ import annotations

import math
import re
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from deniable import exact
from deniable.answers import read_answers
from deniable.channels import Channel
from deniable.domains import Domain, Integers
from deniable.errors import DeniableError, NumberError, SpecError
from deniable.labels import load_label
from deniable.protocols import Evolving, Protocol, SecureSum, Table, registered
from deniable.protocols.memoized import FEW_FORMS, all_linking
from deniable.protocols.stratified import private_strata, stratify
from deniable.results import quantile
from deniable.specs import as_text, fingerprint, keys, short
from deniable.surveys.campaign import load_campaign
from deniable.surveys.question import TOO_MANY_FORMS, Question, load_protocol, question_name
from deniable.surveys.terms import (
    TWO_STAGE,
    Budget,
    Epochs,
    Longitudinal,
    Terms,
    read_collectors,
    read_relay,
    read_time,
    span,
    write_time,
)
from deniable.surveys.translations import of_draft

if TYPE_CHECKING:
    from deniable.planning import Plan
    from deniable.surveys.survey import Survey


BEST = "best"

MANY_NUMBERS = 32
"""More whole numbers than this are read as a distribution, unless a draft says something else."""

_SHARED = ("epsilon", "protocol", "people", "missing")


@dataclass(frozen=True)
class _Open:
    """What the planner needs to choose a protocol."""

    domain: Domain
    epsilon: Fraction
    people: int
    where: str
    forever: Fraction | None = None
    """The epsilon of a kept state, if there are two stages."""
    read: str | None = None
    """What to estimate, if the draft says it."""
    shape: str | None = None
    """What is known of the shape of a distribution, if the draft says it."""

    @property
    def asked(self) -> tuple[Domain, Fraction]:
        return self.domain, self.epsilon


def plan_draft(kind: type[Survey], draft: Any, now: float | None = None) -> tuple[Survey, dict[str, Plan]]:
    """The survey that a draft describes, and the plans of the questions whose protocol the planner chose, by id.

    `kind` is the class of the survey; `now` is when a collection opens if the draft does not say.
    """
    if not isinstance(draft, Mapping):
        raise SpecError("a draft is an object with a name and questions")
    if draft.get("kind") == "survey":
        raise SpecError("this is a survey already, not a draft of one")
    known = (*_SHARED, *TERMS, "strata", "per_device", "language", "translations", "$schema")
    keys(draft, ("name", "questions"), "the draft", optional=known)
    spoken = draft.get("language"), of_draft(draft, WHOLE)
    draft = with_private_strata(as_one_record(draft))
    entries = draft["questions"]
    if not isinstance(entries, list):
        raise SpecError('"questions" is not a list')
    if not entries:
        raise SpecError("a survey needs at least one question")
    shared = {key: draft[key] for key in _SHARED if key in draft}
    given = {key: draft[key] for key in TERMS if key in draft}
    share, rule = divided(draft), draft_rule(given)
    if share is not None:
        shared["epsilon"] = share
    if rule.is_two_stage:
        shared |= _stage_shares(draft, rule)
    wanted = [_wanted(entry, place, shared, draft["name"]) for place, entry in enumerate(entries, 1)]
    if rule.changes is not None:
        wanted = [Evolving(*one.asked, rule.epochs, rule.changes) if isinstance(one, _Open) else one for one in wanted]
    if "collectors" in given:
        wanted = [_summed(one, given["collectors"]) if isinstance(one, _Open) else one for one in wanted]
    plans = _plans(wanted, rule)
    protocols = [plans[place].best if isinstance(one, _Open) else one for place, one in enumerate(wanted)]
    if "strata" in draft:
        if "campaign" in given:
            raise SpecError(_NO_ROUNDS)
        ids = [entry["id"] for entry in entries]
        protocols = [stratify(draft["strata"], one, id) for one, id in zip(protocols, ids, strict=True)]
    questions = [Question(entry["id"], entry["text"], one) for entry, one in zip(entries, protocols, strict=True)]
    terms = draft_terms(given, draft["name"], questions, now) if given else None
    survey = kind(draft["name"], questions, terms, *spoken)
    if "campaign" in given:
        return _first_round(given["campaign"], survey), {}
    return survey, {questions[place].id: plan for place, plan in plans.items()}


def _summed(asked: _Open, spec: Any) -> Protocol:
    """The question as a sum across collectors."""
    keys(_object(spec), ("addresses",), '"collectors"', optional=("missing",))
    missing = spec.get("missing", asked.people // 20)
    read = "shares" if asked.read is None else asked.read
    try:
        return SecureSum(*asked.asked, asked.people, missing, len(read_collectors(spec["addresses"])), read)
    except DeniableError as wrong:
        raise SpecError(f"{asked.where}: {wrong}") from None


def _object(spec: Any) -> Mapping[str, Any]:
    if not isinstance(spec, Mapping):
        raise SpecError('"collectors" is an object with "addresses", and how many people may be "missing"')
    return spec


WHOLE = "answers"
"""The name of the one question that contains all questions of a draft as parts."""


def as_one_record(draft: Mapping[str, Any]) -> Mapping[str, Any]:
    """The draft with its questions as parts of one record, if it says that only some of them are asked."""
    if "per_device" not in draft:
        return draft
    entries = draft["questions"]
    if not isinstance(entries, list) or len(entries) < 2:
        raise SpecError('"per_device" chooses among at least two questions')
    parts = {}
    for place, entry in enumerate(entries, 1):
        if not isinstance(entry, Mapping):
            raise SpecError(f"question {place} is not an object with id, text and answers")
        where = question_name(entry, place)
        keys(entry, ("id", "text", "answers"), where)
        if entry["id"] in parts:
            raise SpecError(f"{where}: there are two questions of this id")
        parts[entry["id"]] = entry["answers"]
    titles = {entry["id"]: entry["text"] for entry in entries}
    answers = {"record": parts, "titles": titles, "per_device": draft["per_device"]}
    asked = {"id": WHOLE, "text": draft["name"], "answers": answers}
    rest = {key: value for key, value in draft.items() if key not in ("per_device", "questions")}
    return {**rest, "questions": [asked]}


_NO_ROUNDS = 'rounds of a campaign are not counted in strata: leave "strata" or "campaign" out'


def with_private_strata(draft: Mapping[str, Any]) -> Mapping[str, Any]:
    """The draft with questions for records of private strata and the answer, if it has such strata."""
    strata = private_strata(draft["strata"]) if "strata" in draft else {}
    entries = draft["questions"]
    if not strata or not isinstance(entries, list):
        return draft
    if "campaign" in draft:
        raise SpecError(_NO_ROUNDS)
    asked = []
    for place, entry in enumerate(entries, 1):
        if not isinstance(entry, Mapping) or "answers" not in entry or "id" not in entry:
            raise SpecError(f"question {place} is not an object with id, text and answers")
        where = question_name(entry, place)
        if entry.get("protocol", draft.get("protocol", BEST)) != BEST:
            raise SpecError(f"{where}: a private stratum and the answer have a protocol of their own: leave it out")
        if entry["id"] in strata:
            raise SpecError(f"{where}: it is called like a stratum: rename one of them")
        record = {**strata, entry["id"]: entry["answers"]}
        asked.append({**entry, "answers": {"record": record, "read": "strata"}})
    return {**{key: value for key, value in draft.items() if key != "strata"}, "questions": asked}


def _first_round(wanted: Any, survey: Survey) -> Survey:
    """The first round of the campaign that a draft names."""
    if not isinstance(wanted, Mapping) or "kind" not in wanted:
        raise SpecError('"campaign" is an object with the kind of the campaign, and its parameters')
    return load_campaign(wanted["kind"], {key: value for key, value in wanted.items() if key != "kind"}).begin(survey)


def _stage_shares(draft: Mapping[str, Any], rule: Longitudinal) -> dict[str, Fraction]:
    """The epsilons of both stages for each question without a complete protocol: equal parts of what is left."""
    entries = [entry if isinstance(entry, Mapping) else {} for entry in draft["questions"]]
    if "epsilon" in draft or any("epsilon" in entry for entry in entries):
        raise SpecError('of two stages "first" and "forever" say the levels, and take the place of "epsilon"')
    whole = [load_protocol(entry["protocol"]) for entry in entries if isinstance(entry.get("protocol"), Mapping)]
    rest = len(entries) - len(whole)
    shares = {}
    for key, name, level in (("epsilon", "first", rule.first), ("forever", "forever", rule.forever)):
        left = (level or 0) - sum((getattr(protocol, name, protocol.epsilon) for protocol in whole), Fraction(0))
        if rest and left <= 0:
            raise SpecError(
                f'the questions with a protocol of their own take all of "{name}": nothing is left to divide'
            )
        shares[key] = Fraction(left / rest) if rest else Fraction(0)
    return shares


def divided(draft: Mapping[str, Any]) -> Fraction | None:
    """Epsilon of each question without one, if it follows from the budget; None if the draft names it."""
    draft = as_one_record(draft)
    budget, entries = draft.get("budget"), draft["questions"]
    if draft_rule(draft).is_two_stage:
        return None
    if "epsilon" in draft or not isinstance(budget, Mapping) or "epsilon" not in budget:
        return None
    shared = {key: draft[key] for key in _SHARED if key in draft}
    named = [
        _wanted(entry, place, shared, draft["name"]).epsilon
        for place, entry in enumerate(entries, 1)
        if has_epsilon(entry)
    ]
    if len(named) == len(entries):
        return None
    whole = exact.fraction(budget["epsilon"], "the lifetime epsilon")
    left = whole / draft_rule(draft).draws - sum(named, Fraction(0))
    if left <= 0:
        raise SpecError("the questions with an epsilon of their own take the whole budget: nothing is left to divide")
    return left / (len(entries) - len(named))


def has_epsilon(entry: Any) -> bool:
    """Whether a question has its own epsilon."""
    if not isinstance(entry, Mapping):
        return False
    answers = entry.get("answers")
    designed = isinstance(answers, Mapping) and "table" in answers
    return designed or "epsilon" in entry or isinstance(entry.get("protocol"), Mapping)


def crowds(draft: Mapping[str, Any]) -> dict[str, int]:
    """About how many will answer each question, by id, as far as a valid draft says it."""
    draft = as_one_record(draft)
    given = {entry["id"]: _people(entry.get("people", draft.get("people"))) for entry in draft["questions"]}
    return {id: people for id, people in given.items() if people is not None}


def _people(value: Any) -> int | None:
    if value is None:
        return None
    try:
        people = exact.whole(value, "it")
    except NumberError:
        people = 0
    if people < 1:
        raise SpecError(f'"people" is a positive whole number such as 1500, not {short(value)}')
    return people


def _plans(wanted: Sequence[Protocol | _Open], rule: Longitudinal) -> dict[int, Plan]:
    """The planner's choices, by position.

    If answers are repeated, the number of different reports of all questions together is limited: in the order of the
    questions, each has the best protocol that leaves the others enough. GRR needs the least, as many forms as there are
    answers. With two stages the open questions share evenly what the others leave of `linking`, unless the survey is
    linkable.
    """
    from deniable.planning import plan

    repeats, stages = rule.repeats, rule.is_two_stage and not rule.linkable
    forms = [_fewest(one) for one in wanted] if repeats else []
    if math.prod(forms) > FEW_FORMS:
        raise SpecError(TOO_MANY_FORMS)
    left = FEW_FORMS / all_linking([one for one in wanted if isinstance(one, Protocol)], rule.epochs) if stages else 0.0
    waiting = sum(not isinstance(one, Protocol) for one in wanted)
    plans = {}
    for place, one in enumerate(wanted):
        if isinstance(one, Protocol):
            continue
        room: float | None = FEW_FORMS // math.prod(forms[:place] + forms[place + 1 :]) if repeats else None
        if stages:
            room = left ** (1 / waiting)
        try:
            read = one.read or (None if rule.keeps else _usual_read(one.domain))
            plans[place] = plan(
                *(one.domain, one.epsilon, one.people),
                forms=room,
                forever=one.forever,
                read=read,
                epochs=rule.epochs if stages else None,
                shape=one.shape,
            )
        except DeniableError as wrong:
            raise SpecError(f"{one.where}: {wrong}") from None
        if repeats:
            forms[place] = _fewest(plans[place].best)
        elif stages:
            left, waiting = left / plans[place].best.law().kept.linking(rule.epochs), waiting - 1
    return plans


def _usual_read(domain: Domain) -> str | None:
    """Among many whole numbers, noise hides the shares of single ones; their distribution is more useful."""
    return "distribution" if isinstance(domain, Integers) and domain.size > MANY_NUMBERS else None


def _fewest(one: Protocol | _Open) -> int:
    return one.law().forms if isinstance(one, Protocol) else one.domain.least_forms


def _wanted(entry: Any, place: int, shared: Mapping[str, Any], name: Any) -> Protocol | _Open:
    if not isinstance(entry, Mapping):
        raise SpecError(f"question {place} is not an object with id, text and answers")
    where = question_name(entry, place)
    try:
        if isinstance(entry.get("protocol"), Mapping):
            keys(entry, ("id", "text", "protocol"), "it")
            return load_protocol(entry["protocol"])
        keys(entry, ("id", "text", "answers"), "it", optional=(*_SHARED, "other", "parameters", "shape"))
        if isinstance(entry["answers"], Mapping) and "table" in entry["answers"]:
            return _table(entry)
        return _protocol(_domain({**shared, **entry}, name), {**shared, **entry}, where)
    except DeniableError as wrong:
        raise SpecError(f"{where}: {wrong}") from None


def _table(entry: Mapping[str, Any]) -> Protocol:
    """The mechanism that `deniable design` wrote, with its own epsilon, unless the question states more.

    That is a proof with its mechanism, a channel, or the spec of a table, such as that of a profile mechanism.
    """
    from deniable.design import Certificate

    proof = entry["answers"]["table"]
    if not isinstance(proof, dict):
        raise SpecError('{"table": ...} holds a proof of deniable design, or on the command line its file')
    if extra := [key for key in ("protocol", "parameters", "other", "missing") if key in entry]:
        raise SpecError(f"a table brings its own mechanism: leave {', '.join(extra)} out")
    if proof.get("kind") == "protocol":
        return _stored_table(proof, entry)
    if proof.get("kind") == "channel":
        keys(entry["answers"], ("table",), "answers", optional=("delta",))
        return Table(Channel.load(proof), entry.get("epsilon"), delta=entry["answers"].get("delta", 0))
    known = Certificate.load(proof)
    verdict = known.verify()
    if not verdict:
        failed = "; ".join(f"{check.name}: {check.detail}" for check in verdict.checks if not check.holds)
        raise SpecError(f"the proof does not hold: {failed}")
    asked = {key: value for key, value in entry["answers"].items() if key != "table"}
    level = entry.get("epsilon", getattr(known, "epsilon", None))
    kind: Any = registered()[known.table_kind]
    made: Protocol = kind.of_proof(known, level, fingerprint("proof", proof), asked)
    return made


def _stored_table(spec: Mapping[str, Any], entry: Mapping[str, Any]) -> Protocol:
    """A table that was saved as a spec; a question may read it in another way than the spec says."""
    keys(entry["answers"], ("table",), "answers", optional=("read",))
    if "epsilon" in entry:
        raise SpecError("a saved table has its own epsilon: leave it out")
    table = load_protocol(spec)
    reading: Callable[[str], Protocol] | None = getattr(table, "reading", None)
    if reading is None:
        raise SpecError(f'{{"table": ...}} holds a proof or the spec of a table, not of {table.name}')
    return table if "read" not in entry["answers"] else reading(entry["answers"]["read"])


def _domain(entry: Mapping[str, Any], name: Any) -> Domain:
    labels: dict[str, Any] = {key: load_label(entry[key]) for key in ("other", "missing") if entry.get(key) is not None}
    # Each question has its own hash functions, so that two surveys' sketches say nothing about each other.
    return read_answers(entry["answers"], **labels, key=f"{name}/{entry['id']}")


def _protocol(domain: Domain, wanted: Mapping[str, Any], where: str) -> Protocol | _Open:
    name = wanted.get("protocol", BEST)
    parameters = wanted.get("parameters", {})
    if "epsilon" not in wanted:
        raise SpecError(
            "epsilon is missing: give it in the question, or once for all questions, or give a budget to be divided"
        )
    if not isinstance(parameters, Mapping):
        raise SpecError("the parameters are an object")
    people = _people(wanted.get("people"))
    answers = wanted["answers"] if isinstance(wanted["answers"], Mapping) else {}
    read = answers.get("read")
    if "record" in answers and (asked := {key: answers[key] for key in ("queries", "regress") if key in answers}):
        if name not in (BEST, "Queries") or {"per_device", "read", "cells"} & set(answers):
            raise SpecError('"queries" and "regress" say what is asked: leave "per_device", "read" and "cells" out')
        name, parameters = "Queries", {"people": people, **asked, **parameters}
    if "record" in answers and answers.get("per_device", 1) != 1:
        given = {"ask": answers["per_device"], **({"cells": answers["cells"]} if "cells" in answers else {})}
        if "read" in answers:
            raise SpecError('"per_device" and "read" say two things about the record: leave one out')
        if name != BEST or set(given) > {"ask"} or given["ask"] not in ("pairs", "triples"):
            name, parameters = ("Attributes" if name == BEST else name), {"people": people, **given, **parameters}
        else:
            read = given["ask"]
    if name == BEST:
        if parameters:
            raise SpecError("parameters need a protocol by name")
        if people is None:
            raise SpecError('the planner needs "people", about how many will answer: give it, or name a protocol')
        how = wanted.get("forever"), read, wanted.get("shape")
        return _Open(domain, exact.as_epsilon(wanted["epsilon"]), people, where, *how)
    if "shape" in wanted:
        raise SpecError('"shape" chooses among protocols, and here one is named: leave one of them out')
    known = registered()
    if not isinstance(name, str) or name not in known:
        raise SpecError(f"there is no protocol {name!r}; there are {BEST}, {', '.join(sorted(known))}")
    if "forever" in wanted:
        if "forever" not in {field.name for field in fields(known[name])}:
            raise SpecError(f'{name} has one stage: the rule "{TWO_STAGE}" needs a protocol with two, such as LGRR')
        parameters = {**parameters, "forever": wanted["forever"]}
    try:
        made = known[name](domain, wanted["epsilon"], **parameters)
        if read is None or made.worth().read == read:
            return made
        parameters = {"read": read, **parameters}  # for protocols that can be read in several ways
        return known[name](domain, wanted["epsilon"], **parameters)
    except TypeError:
        raise SpecError(f"{name} does not have these parameters: {', '.join(map(str, parameters))}") from None


# -- the terms: what an author leaves out is filled in, once, and stored in full ----------------------


TERMS = (
    "owner",
    "purpose",
    "opens",
    "expires",
    "days",
    "epochs",
    "longitudinal",
    "budget",
    "retention",
    "delete_days",
    "min_reports",
    "replaces",
    "campaign",
    "relay",
    "collectors",
    "results",
)

_DAY, _HOUR = 86_400, 3_600
_LONG = 7 * _DAY
"""Collections longer than this have epochs of a day, unless the draft says otherwise."""
_LATE = 3
"""Number of such epochs that are accepted late, for devices that were offline."""


def draft_terms(given: Mapping[str, Any], name: Any, questions: Sequence[Question], now: float | None = None) -> Terms:
    """The complete terms, for these questions."""
    missing = [key for key in ("owner", "purpose") if key not in given]
    if missing:
        raise SpecError(f"a collection needs {' and '.join(missing)}: who asks, and what for")
    opens = read_time(given["opens"]) if "opens" in given else _this_hour(now)
    expires, rule = _expires(given, opens), draft_rule(given)
    wanted = _part(given, "budget", ("group", "epsilon", "delta"))
    levels = [question.protocol.guarantee for question in questions]
    epsilon, delta = (sum(one, Fraction(0)) for one in zip(*((g.epsilon, g.delta) for g in levels), strict=True))
    budget = Budget(
        wanted.get("group", _group(as_text(name, "the name of a survey"))),
        wanted.get("epsilon", (rule.forever or epsilon) * rule.draws),
        wanted.get("delta", delta * rule.draws),
        levels[0].relation,
    )
    plain = ("retention", "delete_days", "min_reports", "replaces", "results")
    options = {key: given[key] for key in plain if key in given}
    options.setdefault("min_reports", min(_readable_from(question.protocol) for question in questions))
    if "relay" in given:
        options["relay"] = read_relay(given["relay"])
    if "collectors" in given:
        options["collectors"] = read_collectors(_object(given["collectors"]).get("addresses"))
    # If an answer may be repeated, an epoch is how often: its author must say it. Kept reports have ids anyway, and
    # their senders may have them deleted as long as the epoch is open.
    # An epoch of shares has a result only if enough people answer in it.
    sums = options.get("retention", "tally") == "tally" and "collectors" not in options
    short = expires - opens > _LONG and rule.epochs == 1 and sums
    default = {"seconds": _DAY, "late": _LATE} if short else {"seconds": expires - opens}
    epochs = _epochs(given, opens, default)
    terms = Terms(given["owner"], given["purpose"], epochs, rule, budget, opens, expires, **options)
    _check_calendar(terms)
    return terms


def _readable_from(protocol: Protocol) -> int:
    """The fewest answers with which the 95 % interval of a figure is narrower than the whole range of the figure."""

    def reads(n: int) -> bool:
        return 2 * quantile(0.95) * protocol.worth(n).error < protocol.worth().scale

    most = next((1 << power for power in range(40) if reads(1 << power)), None)
    if most is None:
        return 1  # no number of answers makes it readable, so there is nothing to wait for
    return bisect_left(range(most // 2 + 1, most), True, key=reads) + most // 2 + 1


def draft_rule(given: Mapping[str, Any]) -> Longitudinal:
    """How a device's answers relate across epochs; one answer if the draft does not say."""
    names = ("rule", "epochs", "values", "first", "forever", "linkable", "changes")
    return Longitudinal(**_part(given, "longitudinal", names))


def _check_calendar(terms: Terms) -> None:
    """Refuse likely mistakes of the author. Published surveys are not checked: they keep loading."""
    length, whole = terms.epochs.seconds, terms.expires - terms.opens
    if length > whole:
        # Reports of a late epoch are accepted for as long as an epoch: long after the end, in this case.
        raise SpecError(
            f"an epoch of {span(length)} is longer than the collection of {span(whole)}: "
            'shorten it, or leave "epochs" out'
        )
    if terms.longitudinal.epochs > terms.count:
        raise SpecError(
            f"a device cannot answer in {terms.longitudinal.epochs} epochs: the collection of {span(whole)} has "
            f'{terms.count} of {span(length)}; give shorter "epochs", or fewer in "longitudinal"'
        )


def _this_hour(now: float | None) -> int:
    """The start of the current hour, so that a survey is open at once and its times are easy to read."""
    return int(time.time() if now is None else now) // _HOUR * _HOUR


def _expires(given: Mapping[str, Any], opens: int) -> int:
    if ("days" in given) == ("expires" in given):
        raise SpecError('a collection has an end: give either "expires" or "days"')
    expires = read_time(given["expires"]) if "expires" in given else opens + _days(given["days"])
    if expires <= opens:
        raise SpecError(f"the collection ends at {write_time(expires)}, before it opens at {write_time(opens)}")
    return expires


def _epochs(given: Mapping[str, Any], opens: int, default: Mapping[str, int]) -> Epochs:
    wanted = dict(_part(given, "epochs", ("origin", "seconds", "days", "early", "late")))
    if "days" in wanted:
        wanted["seconds"] = _days(wanted.pop("days"))
    if "seconds" not in wanted:
        wanted = {**default, **wanted}
    origin = read_time(wanted.pop("origin")) if "origin" in wanted else opens
    return Epochs(origin, **wanted)


def _part(given: Mapping[str, Any], key: str, known: tuple[str, ...]) -> dict[str, Any]:
    part = given.get(key, {})
    if not isinstance(part, Mapping):
        raise SpecError(f'"{key}" is an object with {", ".join(known)}')
    keys(part, (), f'"{key}"', optional=known)
    return dict(part)


def _days(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= 36_600:
        raise SpecError(f"days are a whole number from 1 to 36600, not {short(value)}")
    return value * _DAY


def _group(name: str) -> str:
    """A group for a survey that names none."""
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-")[:64] or "survey"
