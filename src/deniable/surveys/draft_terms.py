"""The terms of a draft: what an author leaves out is filled in, once, and stored in full."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from deniable.errors import SpecError
from deniable.surveys.strict import keys, short
from deniable.surveys.survey import Survey
from deniable.surveys.terms import Budget, Epochs, Longitudinal, Terms, read_time, span, write_time

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
    "show_from",
    "replaces",
    "campaign",
)

_DAY, _HOUR = 86_400, 3_600


def draft_terms(given: Mapping[str, Any], survey: Survey, now: float | None = None) -> Terms:
    """The terms in full, for the questions of this survey."""
    missing = [key for key in ("owner", "purpose") if key not in given]
    if missing:
        raise SpecError(f"a collection needs {' and '.join(missing)}: who asks, and what for")
    opens = read_time(given["opens"]) if "opens" in given else _this_hour(now)
    expires, rule = _expires(given, opens), draft_rule(given)
    wanted = _part(given, "budget", ("group", "epsilon", "delta"))
    budget = Budget(
        wanted.get("group", _group(survey.name)),
        wanted.get("epsilon", survey.epsilon * rule.draws),
        wanted.get("delta", survey.delta * rule.draws),
        survey.relation,
    )
    options = {key: given[key] for key in ("retention", "show_from", "replaces") if key in given}
    epochs = _epochs(given, opens, expires)
    terms = Terms(given["owner"], given["purpose"], epochs, rule, budget, opens, expires, **options)
    _check_calendar(terms)
    return terms


def draft_rule(given: Mapping[str, Any]) -> Longitudinal:
    """How answers hang together; one answer if the draft does not say."""
    return Longitudinal(**_part(given, "longitudinal", ("rule", "epochs", "values")))


def _check_calendar(terms: Terms) -> None:
    """Refuse what is a slip of the author's. Published surveys are not asked: they keep loading."""
    length, whole = terms.epochs.seconds, terms.expires - terms.opens
    if length > whole:
        # Reports of a late epoch are taken for as long as an epoch: long after the end, in this case.
        raise SpecError(
            f"an epoch of {span(length)} is longer than the collection of {span(whole)}: "
            'shorten it, or leave "epochs" out, which makes the whole collection one epoch'
        )
    if terms.longitudinal.epochs > terms.count:
        raise SpecError(
            f"a device cannot answer in {terms.longitudinal.epochs} epochs: the collection of {span(whole)} has "
            f'{terms.count} of {span(length)}; give shorter "epochs", or fewer in "longitudinal"'
        )


def _this_hour(now: float | None) -> int:
    """The hour that has begun, so that a survey is open at once and its times are easy to read."""
    return int(time.time() if now is None else now) // _HOUR * _HOUR


def _expires(given: Mapping[str, Any], opens: int) -> int:
    if ("days" in given) == ("expires" in given):
        raise SpecError('a collection has an end: give either "expires" or "days"')
    expires = read_time(given["expires"]) if "expires" in given else opens + _days(given["days"])
    if expires <= opens:
        raise SpecError(f"the collection ends at {write_time(expires)}, before it opens at {write_time(opens)}")
    return expires


def _epochs(given: Mapping[str, Any], opens: int, expires: int) -> Epochs:
    wanted = dict(_part(given, "epochs", ("origin", "seconds", "days", "early", "late")))
    if "days" in wanted:
        wanted["seconds"] = _days(wanted.pop("days"))
    wanted.setdefault("seconds", expires - opens)
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
