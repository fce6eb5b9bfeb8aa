"""What changes for a respondent when one survey replaces another.

Weaker     a promise gets worse: more epsilon or delta, another relation (two cannot be compared), asked more often, one
           more question, a part of an answer sent in clear, reports kept, another budget (of another owner or group),
           fewer answers needed before estimates are shown, results that anybody can read, several memoized answers,
           whose repeats show changes
Stronger   the opposite
Neutral    anything else; a changed answer list or protocol at the same epsilon is no weaker, but it is a new question

Every change is a new fingerprint, and devices pin fingerprints: nothing changes for anybody without their consent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from deniable.domains import Domain
from deniable.exact import epsilon_text
from deniable.surveys.question import Question
from deniable.surveys.survey import Survey
from deniable.surveys.terms import FRESH, PUBLIC, RETENTION, Longitudinal, Terms, host, span, write_time
from deniable.surveys.translations import positions

WEAKER, STRONGER, NEUTRAL = "weaker", "stronger", "neutral"
LIFETIME, NO_BOUND = "epsilon of a lifetime", "no number"


@dataclass(frozen=True)
class Edit:
    """One difference, and its effect on privacy."""

    what: str
    before: Fraction | str
    """Epsilons are exact; everything else is in words."""
    after: Fraction | str
    privacy: str = NEUTRAL


def diff(before: Survey, after: Survey) -> list[Edit]:
    """All changes from one survey to the next; an empty list if they are the same."""
    if before.fingerprint == after.fingerprint:
        return []
    return [
        *_compared("name", before.name, after.name),
        *_questions(before, after),
        *_languages(before, after),
        *_compared("relation of the levels", before.relation, after.relation, privacy=WEAKER),
        *_compared("epsilon of a submission", before.epsilon, after.epsilon, less_is=STRONGER),
        *_compared("delta of a submission", before.delta, after.delta, less_is=STRONGER),
        *_lifetime(before.lifetime_epsilon, after.lifetime_epsilon),
        *_terms(before.terms, after.terms),
    ]


def weaker(changes: list[Edit]) -> list[Edit]:
    """The changes that weaken privacy."""
    return [change for change in changes if change.privacy == WEAKER]


def _lifetime(before: Fraction | None, after: Fraction | None) -> Iterator[Edit]:
    """A lifetime without a bound is weaker than any with one."""
    if before != after:
        old, new = (NO_BOUND if level is None else level for level in (before, after))
        if before is None or after is None:
            yield Edit(LIFETIME, old, new, WEAKER if after is None else STRONGER)
        else:
            yield Edit(LIFETIME, old, new, _direction(before, after, STRONGER))


def _questions(before: Survey, after: Survey) -> Iterator[Edit]:
    old, new = ({question.id: question for question in survey} for survey in (before, after))
    for id in old:
        if id not in new:
            yield Edit(f"question {id}", _described(old[id]), "not asked", STRONGER)
    for id, question in new.items():
        if id not in old:
            yield Edit(f"question {id}", "not asked", _described(question), WEAKER)
        else:
            yield from _question(old[id], question)
    if list(old) != list(new) and set(old) == set(new):
        yield Edit("order of the questions", ", ".join(old), ", ".join(new))


def _question(old: Question, new: Question) -> Iterator[Edit]:
    where = f"question {old.id}"
    yield from _compared(f"{where}: text", old.text, new.text)
    yield from _answers(where, old.protocol.domain, new.protocol.domain)
    yield from _compared(f"{where}: epsilon", old.protocol.epsilon, new.protocol.epsilon, less_is=STRONGER)
    hidden, shown = [", ".join(one.law().clear) or "nothing" for one in (old.protocol, new.protocol)]
    more = set(new.protocol.law().clear) - set(old.protocol.law().clear)
    yield from _compared(f"{where}: sent in clear", hidden, shown, privacy=WEAKER if more else STRONGER)
    yield from _compared(f"{where}: protocol", old.protocol.name, new.protocol.name)
    mine, other = old.protocol.spec(), new.protocol.spec()
    for key in sorted((mine.keys() | other.keys()) - {"protocol", "domain", "epsilon"}):
        yield from _compared(f"{where}: {key}", mine.get(key, "none"), other.get(key, "none"))


def _answers(where: str, old: Domain, new: Domain) -> Iterator[Edit]:
    extras = {"other": "unlisted answers", "missing": "missing answers"}
    before, after = old.spec(), new.spec()
    if any(before.get(key) != after.get(key) for key in (before | after).keys() - extras.keys()):
        yield Edit(f"{where}: answers", str(old), str(new))
    for key, what in extras.items():
        if before.get(key) != after.get(key):
            kept = (f"count as {spec[key]}" if key in spec else "refused" for spec in (before, after))
            yield Edit(f"{where}: {what}", *kept)


def _languages(before: Survey, after: Survey) -> Iterator[Edit]:
    """Languages that come or go, and translations that differ, by their positions."""
    yield from _compared("language", before.language or "none", after.language or "none")
    for code in sorted({*before.translations, *after.translations}):
        if code not in after.translations or code not in before.translations:
            was, now = ("translated" if code in survey.translations else "none" for survey in (before, after))
            yield Edit(f"translation {code}", was, now)
            continue
        old, new = (dict(positions(survey.translations[code])) for survey in (before, after))
        for where in sorted({*old, *new}):
            yield from _compared(f"translation {code}: {where}", old.get(where, "none"), new.get(where, "none"))


def _terms(old: Terms | None, new: Terms | None) -> Iterator[Edit]:
    if old is None or new is None:
        if old is not None:
            yield Edit("collection", "over the network", "from files only")
        elif new is not None:
            yield Edit("collection", "from files only", "over the network")
        return
    # A budget belongs to an owner's group: spending in another group does not count in the new one.
    yield from _compared("owner", old.owner, new.owner, privacy=WEAKER)
    yield from _compared("purpose", old.purpose, new.purpose)
    if old.budget.group != new.budget.group:
        yield Edit("budget group", old.budget.group, new.budget.group, WEAKER)
    yield from _compared("lifetime budget", old.budget.epsilon, new.budget.epsilon, less_is=STRONGER)
    yield from _compared("delta of the budget", old.budget.delta, new.budget.delta, less_is=STRONGER)
    yield from _rules(old, new)
    kept = _direction(RETENTION.index(old.retention), RETENTION.index(new.retention), STRONGER)
    yield from _compared("retention", old.retention, new.retention, privacy=kept)
    yield from _days(old, new)
    yield from _compared("shown from n", old.min_reports, new.min_reports, less_is=WEAKER)
    private = WEAKER if new.results == PUBLIC else STRONGER
    yield from _compared("results", old.results, new.results, privacy=private)
    yield from _compared("opens", write_time(old.opens), write_time(new.opens))
    yield from _compared("expires", write_time(old.expires), write_time(new.expires))
    yield from _compared("length of an epoch", span(old.epochs.seconds), span(new.epochs.seconds))
    for key in ("origin", "early", "late"):
        yield from _compared(f"epochs: {key}", old.epochs.spec()[key], new.epochs.spec()[key])
    yield from _compared("replaces", old.replaces or "none", new.replaces or "none")
    yield from _compared("campaign", _round(old), _round(new))
    yield from _relays(old, new)
    # With fewer collectors, fewer have to collude; from none or to none the relation changes as well.
    were, are = (", ".join(map(host, terms.collectors)) or "one" for terms in (old, new))
    less = len(new.collectors) < len(old.collectors)
    yield from _compared("collectors", were, are, privacy=WEAKER if less else NEUTRAL)


def _relays(old: Terms, new: Terms) -> Iterator[Edit]:
    """Who mixes submissions, and how many at least; another key is another collector."""
    before, after = old.relay, new.relay
    if before is None or after is None:
        was, now = (
            "none" if relay is None else f"{relay.host}, batches of {relay.batch:,}" for relay in (before, after)
        )
        yield from _compared("relay", was, now, privacy=WEAKER if after is None else STRONGER)
        return
    yield from _compared("relay", before.address, after.address)
    yield from _compared("smallest batch of the relay", before.batch, after.batch, less_is=WEAKER)
    yield from _compared("key of the collector", before.key, after.key)


def _days(old: Terms, new: Terms) -> Iterator[Edit]:
    """How long reports wait to be counted; 0 if they are counted as they come."""
    before, after = (terms.delete_days or 0 for terms in (old, new))
    if "reports" not in (old.retention, new.retention):
        yield from _compared("days until reports are deleted", before, after, less_is=STRONGER)


def _round(terms: Terms) -> str:
    """Round and campaign in words; a device answers one round of a campaign, whichever survey that is."""
    place = terms.campaign
    if place is None:
        return "none"
    parameters = "".join(f", {name} {value}" for name, value in sorted(place.campaign.parameters().items()))
    return f"round {place.number} of {place.campaign.rounds}, {place.campaign.kind}{parameters}"


def _rules(old: Terms, new: Terms) -> Iterator[Edit]:
    before, after = old.longitudinal, new.longitudinal
    if before.rule != after.rule:
        (shown_before, old_rule), (shown_after, new_rule) = _shows(before), _shows(after)
        yield Edit("longitudinal rule", old_rule, new_rule, _direction(shown_before, shown_after, STRONGER))
    else:
        yield from _compared("values that a device memoizes", before.values, after.values, less_is=STRONGER)
        yield from _compared("changes of an answer that count", before.changes, after.changes)
    (less, old_promise), (more, new_promise) = before.promise, after.promise
    held = _direction(less, more, STRONGER)
    yield from _compared("between what the debited epsilon holds", old_promise, new_promise, privacy=held)
    if before.forever is not None and after.forever is not None:
        yield from _compared("epsilon of a kept answer", before.forever, after.forever, less_is=STRONGER)
    if before.linkable != after.linkable:
        linked, unlinked = "a device's reports can be recognized", "they cannot"
        was, now = (linked if rule.linkable else unlinked for rule in (before, after))
        yield Edit("linking of reports", was, now, WEAKER if after.linkable else STRONGER)
    yield from _compared("epochs that a device answers", before.epochs, after.epochs)


def _shows(rule: Longitudinal) -> tuple[int, str]:
    """How much a rule shows besides its epsilons, and the rule in words."""
    if rule.rule == FRESH:
        return 1, FRESH
    if rule.is_evolving:
        return 0, f"one of up to {rule.changes} changes is reported"
    if rule.is_two_stage:
        return (
            (0, "two stages, the first answer kept")
            if rule.values == 1
            else (1, f"two stages, {rule.values} answers kept")
        )
    if rule.values == 1:
        return 0, "memoize the first answer"
    return 2, f"memoize {rule.values} answers, which shows changes and returns"


def _compared(what: str, old: Any, new: Any, less_is: str | None = None, privacy: str = NEUTRAL) -> Iterator[Edit]:
    if old != new:
        before, after = (value if isinstance(value, Fraction) else str(value) for value in (old, new))
        yield Edit(what, before, after, privacy if less_is is None else _direction(old, new, less_is))


def _direction(old: Any, new: Any, less_is: str) -> str:
    if new == old:
        return NEUTRAL
    return less_is if new < old else (WEAKER if less_is == STRONGER else STRONGER)


def _described(question: Question) -> str:
    return f"{question.text} (epsilon {epsilon_text(question.protocol.epsilon)})"
