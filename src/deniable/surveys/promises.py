"""Every sentence that a survey promises to a respondent, an operator or a reviewer.

One list     `promises(survey)` gives all of them by name; page and command line print nothing else about privacy.
             The sentences are in `words/en.json` and in the file of each other language. This file computes the facts
             that they are filled with, `web/pages/promises.js` computes them by itself, and a test compares the two
Line         answers are scrambled here before they are sent. It names what is sent in clear, and the number where
             guesses from one report are right in 75 of 100 cases or more and the report adds 10 or more. "Find out"
             is used from 90 on only, and only for a figure that is not a bound
Guess        how often somebody who thinks all answers equally likely guesses right, per question: without a report,
             with it, and after all that a device may send (`right_guesses`). Bounds are rounded up and say "at most"
Bands        by the question that is easiest to guess, from all that a device may send: weak from 90 right guesses of
             100, moderate from 75, strong below; and strong if the reports add less than 10. Reports that show
             changes, or reveal more with a probability above one in a million, are moderate at best
Sure         the worst case: the largest certainty of somebody who found two answers equally likely before, r / (1 + r)
             with r = e^epsilon, rounded up. It comes after the guesses, and always says "at most"
Storage      a note says what a browser may forget. It changes no band and no other sentence
Parts        of an answer with several parts one is reported, chosen by the coins of the device; everybody sees which
Clear        strata are sent as they are: every sentence that names a secret leaves them out, and one says so
About        what the numbers are about, by the relation of the survey: any two answers, or two joined profiles. With
             profiles the value itself is not hidden, and somebody who knows more about it than the profiles say may
             learn more; the sentences say both. With places the numbers are about neighbouring cells, and reports
             reveal more about places that are further apart; the sentences say that, too
Sums         with several collectors the numbers are about the sums that they publish together, and hold as long as
             they do not collude: the sentences name them, and say that together they can read an answer
Rare         what a delta leaves out of the promise, per report and in all; more than 1 in a million in all is weak
Number       memoizing several values shows changes and returns of answers: no number over all epochs is stated
Two stages   the number for all reports is `Survey.lifetime_epsilon`, which holds whatever the answers are. "changes"
             says what the smaller number that the ledger counts is about
Tests        each name has a test of the behaviour that its sentence claims (`tests/surveys/test_promises.py`)
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction

from deniable.exact import epsilon_text
from deniable.labels import text
from deniable.protocols import Protocol
from deniable.protocols.guessing import AT_MOST, Right
from deniable.protocols.law import PAIRS_NAMED
from deniable.surveys.right_guesses import Guessed, either, guesses
from deniable.surveys.survey import Survey
from deniable.surveys.terms import PUBLIC, Terms, host
from deniable.words import DEFAULT, Fact, Figure, Joined, Word, catalogue, duration, word

STRONG, MODERATE, WEAK = BANDS = ("strong", "moderate", "weak")
MODERATE_FROM, WEAK_FROM = 0.75, 0.9
"""The share of right guesses at which a band begins."""
ADDS_LITTLE = 0.1
"""What reports add to the share of right guesses at least, for a band below strong, and for a colour."""
RAISED, HIGH = "raised", "high"
"""The colours of a figure: from 75 and from 90 right guesses of 100."""

SHOWN = 12
"""Maximum number of parts that are named."""

DEVICE, BROWSER = "device", "browser"
"""What keeps the ledger."""
WATCHERS = word("watchers")
_RARE = Fraction(1, 10**6)
"""A larger delta is weak, whatever the epsilon."""
_A_MILLION = math.log(10**6)
_FAR = 5
"""Distances for an example, in cell sides."""
_RELATIONS = ("any", "profiles", "stream", "metric", "sum")


def _relation(survey: Survey) -> str:
    return survey.relation if survey.relation in _RELATIONS else "any"


def _about(what: str, survey: Survey) -> Word:
    """What the numbers of a survey are about, as a part of a sentence."""
    relation = _relation(survey)
    return word(f"{what}.{relation}{'.several' if len(survey) > 1 and relation in ('any', 'metric', 'sum') else ''}")


def _clear(survey: Survey) -> list[str]:
    """The attributes that are sent in clear."""
    return list(dict.fromkeys(name for question in survey for name in question.protocol.law().clear))


def promises(survey: Survey, here: str = DEVICE, lasting: bool = True, language: str = DEFAULT) -> dict[str, str]:
    """The sentences that hold for this survey, by name.

    `here` is what keeps the ledger: "device" or "browser". With `lasting=False` it has not promised to keep it; for a
    survey of several epochs a note says so.
    """
    found, place = guesses(survey), word(f"here.{here}")
    said = {
        "line": _line(survey, found),
        "guess": _guess(survey, found),
        "band": [_protection(survey, found)],
        "shows": [word("shows", watchers=WATCHERS)] if survey.shows_changes else [],
        "clear": _said_in_clear(survey),
        "profiles": _profiles(survey, place),
        "distance": _distance(survey),
        "parts": _parts(survey, place),
        "sure": [_sure(survey)],
        "factor": [_factor(survey)],
        "rare": _rare(survey),
        "changes": _changes(survey),
        "linked": _linked(survey, place),
        "lifetime": [_lifetime(survey)],
        "storage": [] if lasting or _epochs(survey) == 1 else [word("storage", here=place, n=_epochs(survey))],
    }
    if survey.terms is not None:
        said |= {
            "often": [_often(survey, place)],
            "round": _round(survey, place, lasting),
            "device": [_device(survey, place)],
            "kept": [_kept(survey)],
            "published": [word("public.promise", n=survey.terms.min_reports)] if survey.terms.results == PUBLIC else [],
            "leaving": [_leaving(survey)],
            "address": [_address(survey.terms, here)],
            "relay": _relay(survey.terms),
            "collectors": _collectors(survey),
        }
    words = catalogue(language)
    return {name: words.text(Joined(sentences, " ")) for name, sentences in said.items() if sentences}


_FIRST = (
    *(("line",), ("guess",), ("shows",), ("clear",), ("profiles",), ("distance",), ("parts",), ("often", "round")),
    *(("device",), ("address",), ("relay",), ("collectors",), ("published",)),
)
_WORST_CASE = (("band", "sure", "rare"), ("factor",), ("changes",), ("linked",))


def paragraphs(said: Mapping[str, str], worst_case: bool = False) -> list[str]:
    """What respondents read, in order; with `worst_case` also the sentences one level deeper."""
    order = (*_FIRST, *(_WORST_CASE if worst_case else ()))
    found = (" ".join(said[name] for name in names if name in said) for names in order)
    return [paragraph for paragraph in found if paragraph]


def summary(survey: Survey, language: str = DEFAULT) -> str:
    """What all that a device may send reveals, and how well an answer is protected, in one line for reviewers."""
    total = _lifetime(survey)
    bound = total if survey.shows_changes else word("summary.most", lifetime=total)
    sent = "summary.files" if survey.terms is None else "summary.device"
    return catalogue(language).say(sent, lifetime=bound, protection=_protection(survey, guesses(survey)))


# -- how much a report tells -----------------------------------------------------------------------------


def band(survey: Survey) -> str:
    """How well all that a device may send for the survey is protected, by the answer that is easiest to guess."""
    return _band(survey, guesses(survey))


def _band(survey: Survey, found: list[Guessed]) -> str:
    worst = max((_band_of(one) for one in found), key=BANDS.index)
    return MODERATE if worst == STRONG and (survey.shows_changes or survey.budget_delta > _RARE) else worst


def _protection(survey: Survey, found: list[Guessed]) -> Word:
    return word(f"promise.band.{_relation(survey)}", band=word(f"band.{_band(survey, found)}"))


def _band_of(one: Guessed) -> str:
    right = one.always.share + 1e-9
    if right < MODERATE_FROM or right - one.before < ADDS_LITTLE:
        return STRONG
    return MODERATE if right < WEAK_FROM else WEAK


def colour(one: Guessed) -> str:
    """The colour of a figure, by the guesses from one report; "" where it has none."""
    right = one.once.share + 1e-9
    if right < MODERATE_FROM or right - one.before < ADDS_LITTLE:
        return ""
    return RAISED if right < WEAK_FROM else HIGH


def _owner(survey: Survey) -> Fact:
    return word("line.whoever") if survey.terms is None else survey.terms.owner


def _line(survey: Survey, found: list[Guessed]) -> list[Word]:
    """What happens to the answers before they are sent, and what that leaves to those who ask."""
    relation, names = _relation(survey), _clear(survey)
    owner: dict[str, Fact] = {"owner": _owner(survey)}
    if relation == "sum":
        owner["hosts"] = _hosts(survey)
    begin = word(f"line.{relation}", **owner) if relation in ("profiles", "metric", "sum") else word("line.any")
    coloured = [one for one in found if colour(one)]
    if not coloured:
        rest = [] if relation in ("profiles", "metric", "sum") else [word("line.cannot", **owner)]
    else:
        worst = max(coloured, key=lambda one: one.once.share)
        finds = colour(worst) == HIGH and worst.once.how != AT_MOST
        rest = [word("line.high" if finds else "line.raised", owner=_owner(survey), right=of_100(worst.once))]
    clear = [word("line.clear", names=Joined(names), **owner)] if names else []
    return [begin, *rest, *clear]


def of_100(right: Right) -> Word:
    """A share of guesses as a number of 100; a bound is rounded up.

    >>> rights = Right(0.0288), Right(0.6899), Right(0.6821, AT_MOST), Right(0.00001)
    >>> [catalogue().text(of_100(right)) for right in rights]
    ['2.9', '69', 'at most 69', 'fewer than 0.1']
    """
    whole = right.share > 0.0995
    step = 1 if whole else 10
    scaled = 100 * step * right.share
    number = math.ceil(scaled - 1e-9) if right.how == AT_MOST else math.floor(scaled + 0.5 + 1e-9)
    if number == 0:
        return word("right.fewer", n=Figure("0.1"))
    if number == 100 and whole and right.share < 1 - 1e-12 and right.how != AT_MOST:
        return word("right.more", n=99)
    return word(f"right.{right.how}", n=Figure(f"{number / step:g}"))


def _guess(survey: Survey, found: list[Guessed]) -> list[Word]:
    """How often guesses are right, question by question."""
    source = "sum" if survey.relation == "sum" else "report"
    said = []
    for question, one in zip(survey, found, strict=True):
        facts: dict[str, Fact] = {"thinks": one.thinks, "yours": one.yours, "once": of_100(one.once)}
        more: dict[str, Fact] = {"always": of_100(one.always), "n": _epochs(survey)} if one.always != one.once else {}
        kind = f"guesses.{source}{'.more' if more else ''}"
        told = word(kind, before=of_100(Right(one.before)), **facts, **more)
        said.append(word("guesses.of", text=question.text, guesses=told) if len(survey) > 1 else told)
    return said


def sure(epsilon: Fraction) -> Word:
    """Largest certainty of somebody who found two cases equally likely: rounded up, never to certainty.

    >>> [catalogue().text(sure(Fraction(level))) for level in ("1/2", "1", "8", "70")]
    ['62.3 %', '73.2 %', '99.97 %', '100 %']
    """
    rest = 1 / (1 + math.exp(min(float(epsilon), 700.0)))
    for digits in range(1, 10):
        whole = math.floor(rest * 10 ** (2 + digits) + 1e-9)
        if whole:
            return word("percent", n=Figure(f"{100 - whole / 10**digits:.{digits}f}"))
    return word("percent", n=100)


def factor(epsilon: Fraction) -> Fact:
    r"""e^epsilon, rounded up: the promise is never better than the truth.

    >>> [ascii(catalogue().text(factor(Fraction(level)))) for level in (1, 5, 8, 40)]
    ["'2.72'", "'148.5'", "'2,981'", "'2.4 \\xd7 10\\xb9\\u2077'"]
    """
    if epsilon > _A_MILLION:
        tens = float(epsilon) / math.log(10)
        power = math.floor(tens)
        raised = str(power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
        scaled = Figure(f"{math.ceil(10 ** (tens - power + 1) - 1e-9) / 10:.1f}")
        return word("number.power", n=scaled, power=raised)
    value = math.exp(epsilon)
    step = 100 if value < 10 else 10 if value < 1000 else 1
    return Figure(f"{math.ceil(value * step - 1e-9) / step:.2f}".rstrip("0").rstrip("."))


def _level(epsilon: Fraction) -> Fact:
    """An epsilon as people read it: a decimal, or a fraction."""
    text = epsilon_text(epsilon)
    return Figure(text, grouped=False) if re.fullmatch(r"\d+(\.\d+)?", text) else text


def _sure(survey: Survey) -> Word:
    wavers, once = _about("wavers", survey), sure(survey.epsilon)
    if survey.shows_changes:
        return word("sure.changes", wavers=wavers, sure=once)
    if survey.lifetime_epsilon is not None and _adds_up(survey):
        in_all, every = sure(survey.lifetime_epsilon), either("every", _epochs(survey))
        return word("sure.again", wavers=wavers, sure=once, source=_source(survey), all=in_all, every=every)
    source = word("source.all") if _epochs(survey) > 1 else _source(survey, "source.yours")
    return word("sure.once", wavers=wavers, sure=once, source=source)


def _source(survey: Survey, report: str = "source.one") -> Word:
    """What numbers about one submission are computed from."""
    if survey.relation != "sum":
        return word(report)
    return word("source.sums" if _epochs(survey) == 1 else "source.period")


def _adds_up(survey: Survey) -> bool:
    """Whether all reports together may reveal more than one of them, and a number holds for that."""
    return not survey.shows_changes and (survey.draws > 1 or _is_two_stage(survey))


def _is_two_stage(survey: Survey) -> bool:
    return survey.terms is not None and survey.terms.longitudinal.is_two_stage


def _changes(survey: Survey) -> list[Word]:
    """Two stages with several kept answers: what the number that the ledger counts is about."""
    if not _is_two_stage(survey) or survey.draws == 1:
        return []
    return [word("changes", epsilon=_level(survey.budget_epsilon))]


def _linked(survey: Survey, here: Word) -> list[Word]:
    """Two stages whose states work as a cookie: what that means."""
    if survey.terms is None or not survey.terms.longitudinal.linkable:
        return []
    return [word("linked", here=here, watchers=WATCHERS)]


def _rare(survey: Survey) -> list[Word]:
    """What the promise leaves out if a table has a delta: P(S | one answer) <= e^epsilon P(S | other) + delta.

    For two answers with the laws p and q these are the cases of p beyond e^epsilon q, which have probability at most
    delta. What is left of both, min(p, e^epsilon q) and min(q, e^epsilon p), satisfies every bound.
    """
    if not survey.delta:
        return []
    once = int(1 / survey.delta)
    if survey.lifetime_epsilon is not None and survey.draws > 1:
        return [word("rare.all", n=once, all=int(1 / survey.budget_delta), draws=survey.draws)]
    return [word("rare.once", n=once)]


def _hosts(survey: Survey) -> Joined:
    assert survey.terms is not None
    return Joined([host(address) for address in survey.terms.collectors])


def _said_in_clear(survey: Survey) -> list[Word]:
    """What is not protected at all, and that no number is about it."""
    names = _clear(survey)
    if not names:
        return []
    several = "" if len(survey) == 1 else ".several"
    return [word(f"clear.{'one' if len(names) == 1 else 'more'}{several}", names=Joined(names), watchers=WATCHERS)]


def _profiles(survey: Survey, here: Word) -> list[Word]:
    """Answers with a profile: what stays here, and which profiles the numbers are about.

    Epsilons add up for values that are drawn anew from the profile, not for one value that is reported twice.
    """
    if survey.relation != "profiles":
        return []
    several = len(survey) > 1
    which = "profiles.over.of" if several else "profiles.over"
    said = [word(which, name=question.id, over=_joined_profiles(question.protocol)) for question in survey]
    together = [word("profiles.together")] if several or survey.draws > 1 else []
    return [word("profiles", here=here), *said, *together]


def _joined_profiles(protocol: Protocol) -> Fact:
    joined = protocol.guarantee.joined
    if not joined:
        return protocol.guarantee.over
    pairs = [word("profiles.pair", one=text(one), other=text(other)) for one, other in joined[:PAIRS_NAMED]]
    more = len(joined) - len(pairs)
    return word(
        "profiles.pairs", pairs=Joined([*pairs, *([word("profiles.pairs.more", n=more)] if more else [])], "; ")
    )


def _distance(survey: Survey) -> list[Word]:
    """Places: the numbers for places that are further apart."""
    if survey.relation != "metric":
        return []
    asked = [getattr(question.protocol, "inner", question.protocol) for question in survey]
    sizes = [getattr(protocol.domain, "cell", "") for protocol in asked]
    which = "distance.cell.of" if len(survey) > 1 else "distance.cell"
    said = [word(which, name=question.id, size=size) for question, size in zip(survey, sizes, strict=True) if size]
    return [*said, word("distance", n=_FAR, sure=sure(_FAR * survey.epsilon))]


def _parts(survey: Survey, here: Word) -> list[Word]:
    """What is reported of answers that have several parts."""
    said = []
    for question in survey:
        law, names = question.protocol.law(), [name for name in question.protocol.worth(1).parts if name]
        if not (law.one_part or law.several_parts) or law.clear:
            continue
        answer = word("parts.answer") if len(survey) == 1 else word("parts.answer.to", name=question.id)
        first, more = ", ".join(names[:SHOWN]), len(names) - SHOWN
        named = word("list.more", first=first, n=more) if more > 0 else first
        kind = "parts.some" if law.several_parts else "parts.one"
        said.append(word(kind, n=len(names), answer=answer, names=named, here=here, watchers=WATCHERS))
    return said


def _factor(survey: Survey) -> Word:
    odds, once, in_all = _about("odds", survey), factor(survey.epsilon), survey.lifetime_epsilon
    if survey.shows_changes:
        return word("factor.changes", odds=odds, factor=once)
    if in_all is not None and _is_two_stage(survey):
        return word("factor.stages", odds=odds, factor=once, all=factor(in_all))
    if in_all is not None and _adds_up(survey):
        return word("factor.again", odds=odds, factor=once, all=factor(in_all))
    return word("factor.all" if _epochs(survey) > 1 else "factor.once", odds=odds, factor=once)


def lifetime(survey: Survey) -> str:
    """For reviewers: the epsilon of all that a device may send."""
    return catalogue().text(_lifetime(survey))


def _lifetime(survey: Survey) -> Word:
    if survey.lifetime_epsilon is None:
        return word("lifetime.none")
    level = _level(survey.lifetime_epsilon)
    if survey.delta:
        return word("lifetime.delta", epsilon=level, delta=str(survey.budget_delta))
    return word("lifetime", epsilon=level)


# -- what is kept, where --------------------------------------------------------------------------------


def _address(terms: Terms, here: str) -> Word:
    seen_by = "collectors" if terms.collectors else "server" if terms.relay is None else "relay"
    length = duration(min(terms.epochs.seconds, terms.expires - terms.opens))
    return word(f"address.{seen_by}", length=length, more=word("address.browser") if here == BROWSER else "")


def _collectors(survey: Survey) -> list[Word]:
    """Who gets what if answers are split, and who must not collude."""
    if survey.terms is None or not survey.terms.collectors:
        return []
    return [word("collectors", n=len(survey.terms.collectors), hosts=_hosts(survey), enough=_enough(survey))]


def _enough(survey: Survey) -> int:
    """The number of people whose noise suffices for every question."""
    asked = [question.protocol.law().sum for question in survey]
    return max(one.enough for one in asked if one is not None)


def _relay(terms: Terms) -> list[Word]:
    """Who sees what if a relay mixes submissions, and who must not collude."""
    return [] if terms.relay is None else [word("relay", host=terms.relay.host, n=terms.relay.batch)]


def amplified(survey: Survey, delta: Fraction = Fraction(1, 10**8), language: str = DEFAULT) -> str:
    """What shuffling or summing proves, for a reviewer.

    Empty if neither relay nor collectors are named, or if reports can be linked over epochs.
    """
    from deniable.privacy import CannotShuffle, shuffled
    from deniable.privacy.shuffle import rounded_up

    terms = survey.terms
    if terms is not None and terms.collectors:
        said = word(
            "amplified.sum",
            n=_enough(survey),
            epsilon=_level(survey.epsilon),
            delta=_probability(survey.delta),
            hosts=_hosts(survey),
        )
        return catalogue(language).text(said)
    if terms is None or terms.relay is None or (terms.longitudinal.keeps and terms.longitudinal.epochs > 1):
        return ""
    try:
        crowd = shuffled([question.protocol for question in survey], terms.relay.batch, delta)
    except CannotShuffle:
        return ""
    said = word(
        "amplified.batch",
        n=crowd.n,
        central=Figure(rounded_up(crowd.epsilon), grouped=False),
        delta=_probability(delta),
        more=word("amplified.periods", n=_epochs(survey)) if _epochs(survey) > 1 else "",
        host=terms.relay.host,
        epsilon=_level(survey.epsilon),
    )
    return catalogue(language).text(said)


def _probability(delta: Fraction) -> Figure:
    return Figure(f"{float(delta):g}", grouped=False)


def _often(survey: Survey, here: Word) -> Word:
    assert survey.terms is not None
    rule = survey.terms.longitudinal
    if rule.epochs == 1:
        return word("often.once")
    if rule.rule == "none":
        return word("often.fresh.sum" if survey.terms.collectors else "often.fresh", n=rule.epochs)
    if rule.is_two_stage and rule.values == 1:
        return word("often.stages.one", n=rule.epochs, here=here)
    if rule.is_two_stage:
        return word("often.stages", n=rule.epochs, values=rule.values, here=here)
    if rule.is_evolving:
        return word("often.evolving", n=rule.epochs, changes=rule.changes or 0)
    if not survey.shows_changes:
        return word("often.repeated", n=rule.epochs)
    return word("often.memoized", n=rule.epochs, values=rule.values, here=here)


def _round(survey: Survey, here: Word, lasting: bool) -> list[Word]:
    """The number of this round and of all rounds, and what that means for the respondent."""
    place = survey.terms.campaign if survey.terms is not None else None
    if place is None:
        return []
    number, rounds = place.number, place.campaign.rounds
    rule = place.campaign.words or word(f"campaign.{place.campaign.kind}")
    return [
        word("round", round=number, rounds=rounds),
        *([word("round.from", before=number - 1)] if number > 1 else []),
        *([word("round.next", next=number + 1, rule=rule)] if number < rounds else []),
        word("round.one" if lasting else "round.one.remembers", here=here),
    ]


def _device(survey: Survey, here: Word) -> Word:
    assert survey.terms is not None
    rule = survey.terms.longitudinal
    if survey.terms.collectors:
        kind = "device.collectors"
    elif rule.is_evolving:
        kind = "device.evolving"
    elif rule.is_two_stage:
        kind = "device.stages"
    elif rule.keeps:
        kind = "device.repeats"
    else:
        kind = "device.erases.number" if survey.terms.retention == "reports" else "device.erases"
    return word(kind, here=here)


def kept(survey: Survey) -> str:
    """What the service keeps of a report."""
    return catalogue().text(_kept(survey))


def _kept(survey: Survey) -> Word:
    assert survey.terms is not None
    if survey.terms.delete_days is not None:
        return word("kept.files", days=duration(86_400 * survey.terms.delete_days))
    if survey.terms.collectors:
        return word("kept.parts")
    return word("kept.sums" if survey.terms.retention == "tally" else "kept.reports")


def _leaving(survey: Survey) -> Word:
    assert survey.terms is not None
    if survey.terms.delete_days is not None:
        return word("leaving.files")
    if survey.terms.collectors:
        return word("leaving.parts")
    return word("leaving.sums" if survey.terms.retention == "tally" else "leaving.reports")


def _epochs(survey: Survey) -> int:
    return 1 if survey.terms is None else survey.terms.longitudinal.epochs
