"""Every sentence that a survey promises to a respondent, an operator or a reviewer.

One list     `promises(survey)` gives all of them by name; page and command line print nothing else about privacy.
             `web/pages/promises.js` has the same names and sentences, and a test compares the two
Guess        how often somebody who thinks all answers equally likely guesses an answer right, without and with the
             reports: of each question, of all together, from one report and from all that a device may send
             (`right_guesses`). Exact figures are rounded, and bounds are rounded up and say "at most"
Bands        by the question that is easiest to guess, from all that a device may send: weak from 90 right guesses of
             100, moderate from 75, strong below; and strong where the reports add less than 10. Reports that show
             changes, or tell more with a probability above one in a million, are moderate at best
Seen         "can find out" is said in the weak band alone, and "may be able to" where the figure is a bound. "Nobody
             gets to see" is said only where the reports add less than 25 right guesses of 100
Sure         the worst case: how sure somebody can become at most who found two answers equally likely before,
             r / (1 + r) with r = e^epsilon, rounded up. It stands behind the guesses, and always says "at most"
Picture      of 100 guesses, how many are right; one meaning everywhere
Storage      what a browser may forget is a note. It changes no band and no other sentence
Parts        of an answer with several parts one is reported, which the coins of the device choose; everybody sees which
Clear        strata are sent as they are: every sentence that names a secret leaves them out, and one says so
About        what the numbers are about, by the relation of the survey: any two answers, or two joined profiles. Of
             profiles the value itself is not hidden, and whoever knows more about it than the profiles say may learn
             more; the sentences say both. Of places they are about cells side by side, and more is told about places
             that are further apart; the sentences say that, too
Sums         with several collectors the numbers are about the sums that they publish together, and hold as long as
             they do not work together: the sentences say who that is, and that together they can read an answer
Rare         what a delta leaves out of the promise, per report and in all; more than 1 in a million in all is weak
Number       memoizing several values shows changes and returns of answers: no number over all epochs is stated
Two stages   the number for all reports is `Survey.lifetime_epsilon`, which holds whatever the answers are. "changes"
             says what the smaller number that the ledger counts is about
Tests        each name has a test of the behaviour that its sentence claims (`tests/surveys/test_promises.py`)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from deniable.exact import epsilon_text
from deniable.protocols import SecureSum
from deniable.surveys.right_guesses import AT_MOST, Guessed, Right, everyone, guesses, roughest
from deniable.surveys.survey import Survey
from deniable.surveys.terms import Terms, host, span

STRONG, MODERATE, WEAK = BANDS = ("strong", "moderate", "weak")
MODERATE_FROM, WEAK_FROM = 0.75, 0.9
"""The share of right guesses from which a band begins."""
ADDS_LITTLE, ADDS_SOME = 0.1, 0.25
"""What reports add to the share of right guesses: less leaves protection strong, and nobody sees an answer."""

SHOWN = 12
"""Parts that are named."""

WATCHERS = "those who ask, whoever runs the server and whoever listens on the way"
_RARE = Fraction(1, 10**6)
"""A larger delta is weak, whatever the epsilon."""
_A_MILLION = math.log(10**6)
CAREFUL = "Answer only what you would also say openly."


class _About(NamedTuple):
    """What the numbers of a survey are about, in words for its sentences."""

    protection: str
    wavers: str
    odds: str
    secret: str
    beside: str = ""


_UNKNOWING = "knows no more of your value than the profiles say"
_PROFILES = _About(
    "Protection of your profile",
    f"Somebody who finds two joined profiles equally likely, and {_UNKNOWING},",
    f"Whatever your profile is, the odds that somebody who {_UNKNOWING} gives to one of two joined profiles",
    "which profile is yours",
    " Your value itself is not hidden, and profiles that are not joined can be told apart.",
)


_STREAMS = _About(
    "Protection",
    "Somebody who finds two courses of your answers over time equally likely",
    "Whatever you answer, and however your answers change, the odds that anybody gives to them",
    "what you chose or whether you have changed your mind",
)


_NEAR = "one cell side apart"
_PLACES = _About(
    "Protection of your exact place",
    f"Somebody who finds two places {_NEAR} equally likely",
    f"Whatever your place is, the odds that anybody gives to one of two places {_NEAR}",
    "in which cell you are",
    " Roughly where you are is not hidden: places that are far apart can be told apart.",
)
_SEVERAL_PLACES = _PLACES._replace(
    wavers=f"Somebody who finds two sets of your places equally likely, each place {_NEAR} from the other at most,",
    odds=f"Whatever your places are, the odds that anybody gives to one of two sets of them, each {_NEAR} from the "
    "other at most,",
)
_FAR = 5
"""Cell sides, for an example."""


_SUMS = _About(
    "Protection if the collectors do not work together",
    "Somebody who sees the published sums, and finds two possible answers equally likely,",
    "Whatever you answer, the odds that somebody who sees the published sums gives to your answer",
    "what you chose",
)


def _about(survey: Survey) -> _About:
    if survey.relation == "profiles":
        return _PROFILES
    several = len(survey) > 1
    if survey.relation == "sum":
        return _SUMS._replace(
            wavers=_SUMS.wavers.replace("possible answers", "possible sets of answers") if several else _SUMS.wavers,
            odds=_SUMS.odds.replace("your answer", "your answers") if several else _SUMS.odds,
        )
    if survey.relation == "metric":
        return _SEVERAL_PLACES if several else _PLACES
    if survey.relation == "stream":
        return _STREAMS
    return _About(
        "Protection",
        f"Somebody who finds two {'possible sets of answers' if several else 'possible answers'} equally likely",
        f"Whatever you answer, the odds that anybody gives to {'your answers' if several else 'your answer'}",
        "what you chose" + (f" beside your {_listed(clear)}" if (clear := _clear(survey)) else ""),
    )


def _clear(survey: Survey) -> list[str]:
    """The attributes that are sent as they are."""
    return list(dict.fromkeys(name for question in survey for name in question.protocol.clear))


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def promises(survey: Survey, here: str = "this device", lasting: bool = True) -> dict[str, str]:
    """The sentences that hold for this survey, by name.

    `here` is what keeps the ledger: a device or a browser. With `lasting=False` it has not promised to keep it, which a
    note says for a survey of several epochs.
    """
    found = guesses(survey)
    said = {
        "band": f"{_about(survey).protection}: {_band(survey, found)}.",
        "guess": _guess(survey, found),
        "people": _people(survey, found),
        "seen": _seen(survey, found),
        "clear": _said_in_clear(survey),
        "profiles": _profiles(survey, here),
        "distance": _distance(survey),
        "parts": _parts(survey, here),
        "sure": _sure(survey),
        "factor": _factor(survey),
        "rare": _rare(survey),
        "changes": _changes(survey),
        "linked": _linked(survey, here),
        "questions": _questions(survey, found),
        "lifetime": lifetime(survey),
        "storage": "" if lasting or _epochs(survey) == 1 else _storage(survey, here),
    }
    if survey.terms is not None:
        said |= {
            "often": _often(survey, here),
            "round": _round(survey, here, lasting),
            "device": _device(survey, here),
            "kept": kept(survey),
            "leaving": _leaving(survey),
            "address": _address(survey.terms, here),
            "relay": _relay(survey.terms),
            "collectors": _collectors(survey),
        }
    return {name: sentence for name, sentence in said.items() if sentence}


_FIRST = (
    *(("band", "guess"), ("seen",), ("clear",), ("profiles",), ("distance",), ("parts",), ("often", "round")),
    *(("device",), ("address",), ("relay",), ("collectors",)),
)
_WORST_CASE = (("sure", "rare"), ("factor",), ("questions",), ("changes",), ("linked",))


def paragraphs(said: Mapping[str, str], worst_case: bool = False) -> list[str]:
    """What respondents read, in its order; with `worst_case` also what stands one level deeper."""
    order = (*_FIRST, *(_WORST_CASE if worst_case else ()))
    found = (" ".join(said[name] for name in names if name in said) for names in order)
    return [paragraph for paragraph in found if paragraph]


def summary(survey: Survey) -> str:
    """What all that a device may send gives away, and how well an answer is protected, in a line for reviewers."""
    bound = "" if survey.shows_changes else " at most"
    sent = "All that a device may send" if survey.terms is not None else "A survey for files that is answered once"
    told = f"{sent}: {lifetime(survey)}{bound}."
    return f"{told} {_about(survey).protection}: {band(survey)}."


# -- how much a report tells -----------------------------------------------------------------------------


def band(survey: Survey) -> str:
    """How well all that a device may send for the survey is protected, by the answer that is easiest to guess."""
    return _band(survey, guesses(survey))


def _band(survey: Survey, found: list[Guessed]) -> str:
    worst = max((_band_of(one) for one in found), key=BANDS.index)
    return MODERATE if worst == STRONG and (survey.shows_changes or survey.budget_delta > _RARE) else worst


def _band_of(one: Guessed) -> str:
    right = one.always.share + 1e-9
    if right < MODERATE_FROM or right - one.before < ADDS_LITTLE:
        return STRONG
    return MODERATE if right < WEAK_FROM else WEAK


def _is_known(one: Guessed, worst: str) -> bool:
    """Whether guesses are in truth so often right, and not only at most."""
    known = [right for right in (one.once, one.always) if right.how != AT_MOST]
    return any(_band_of(one._replace(always=right)) == worst for right in known)


def easiest(found: list[Guessed]) -> int:
    """The question that is easiest to guess."""
    return max(range(len(found)), key=lambda place: round(found[place].always.share, 9))


def right_of_100(survey: Survey) -> int:
    """Of 100 guesses of the answer that is easiest to guess, from all reports, how many are right."""
    found = guesses(survey)
    right = found[easiest(found)].always
    if right.how == AT_MOST:
        return math.ceil(100 * right.share - 1e-9)
    return min(math.floor(100 * right.share + 0.5 + 1e-9), 100 if right.share > 1 - 1e-12 else 99)


def of_100(right: Right) -> str:
    """A share of guesses as a number of 100; a bound is rounded up.

    >>> of_100(Right(0.0288)), of_100(Right(0.6899)), of_100(Right(0.6821, "at most ")), of_100(Right(0.00001))
    ('2.9', '69', 'at most 69', 'fewer than 0.1')
    """
    whole = right.share > 0.0995
    step = 1 if whole else 10
    scaled = 100 * step * right.share
    number = math.ceil(scaled - 1e-9) if right.how == AT_MOST else math.floor(scaled + 0.5 + 1e-9)
    if number == 0:
        return "fewer than 0.1"
    if number == 100 and whole and right.share < 1 - 1e-12 and right.how != AT_MOST:
        return "more than 99"
    return f"{right.how}{number / step:g}"


def _guess(survey: Survey, found: list[Guessed]) -> str:
    """How often guesses are right, without and with the reports."""
    epochs, more = _epochs(survey), any(one.always != one.once for one in found)
    source = _what(survey, "one report" if more else "your report" if epochs == 1 else "all your reports")
    stays = f" if your answer{'s stay' if len(found) > 1 else ' stays'} the same"
    sums = survey.relation == "sum"
    together = f"from {_every(epochs)} together{'' if sums else stays}"
    without = "it" if source == "your report" else "any" if more else "them"
    if len(found) == 1:
        (one,) = found
        said = f"Somebody who {one.thinks} guesses {one.yours} right in {of_100(one.once)} of 100 cases from {source}"
        if more:
            said += f", in {of_100(one.always)} {together}"
        elif survey.shows_changes:
            said += stays
        return f"{said}, and in {of_100(Right(one.before))} without {without}."
    first, name = found[easiest(found)], survey.questions[easiest(found)].id
    said = (
        f"Somebody who thinks all answers equally likely guesses the one that is easiest to guess ({name}) right in "
        f"{of_100(first.once)} of 100 cases from {source}{stays if survey.shows_changes else ''}, and "
        f"{everyone(len(found), 'answers')} in {of_100(_product([one.once for one in found]))}; without {without} in "
        f"{of_100(Right(first.before))} and {of_100(_product([Right(one.before) for one in found]))}."
    )
    if more:
        every = of_100(_product([one.always for one in found]))
        said += f" {_capital(together)} it is {of_100(first.always)} and {every}."
    return said


def _product(found: list[Right]) -> Right:
    return Right(math.prod(one.share for one in found), roughest(found))


def _people(survey: Survey, found: list[Guessed]) -> str:
    """The picture in words."""
    one = found[easiest(found)]
    right, many = of_100(one.always), _epochs(survey) > 1
    source = {"sum": "the sums of all periods" if many else "the published sums"}.get(
        survey.relation, "all reports of one person" if many else "a report like yours"
    )
    are = "is" if right.endswith(" 1") or right == "1" else "are"
    said = f"Of 100 such guesses, made from {source}, {right} {are} right."
    return f"{said} Without {_them(survey)} {of_100(Right(one.before))} are."


def sure(epsilon: Fraction) -> str:
    """How sure somebody can become at most who found two cases equally likely: rounded up, never to certainty.

    >>> sure(Fraction(1, 2)), sure(Fraction(1)), sure(Fraction(8)), sure(Fraction(70))
    ('62.3 %', '73.2 %', '99.97 %', '100 %')
    """
    rest = 1 / (1 + math.exp(min(float(epsilon), 700.0)))
    for digits in range(1, 10):
        whole = math.floor(rest * 10 ** (2 + digits) + 1e-9)
        if whole:
            return f"{100 - whole / 10**digits:.{digits}f} %"
    return "100 %"


def factor(epsilon: Fraction) -> str:
    r"""e^epsilon, rounded up: what is promised is never better than the truth.

    >>> factor(Fraction(1)), factor(Fraction(5)), factor(Fraction(8)), ascii(factor(Fraction(40)))
    ('2.72', '148.5', '2,981', "'2.4 \\xd7 10\\xb9\\u2077'")
    """
    if epsilon > _A_MILLION:
        tens = float(epsilon) / math.log(10)
        power = math.floor(tens)
        raised = str(power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f"{math.ceil(10 ** (tens - power + 1) - 1e-9) / 10:.1f} \u00d7 10{raised}"
    value = math.exp(epsilon)
    step = 100 if value < 10 else 10 if value < 1000 else 1
    return f"{math.ceil(value * step - 1e-9) / step:,.2f}".rstrip("0").rstrip(".")


def _sure(survey: Survey) -> str:
    wavers = _about(survey).wavers.replace("Somebody", "somebody", 1)
    said = f"In the worst case, {wavers} can become at most {sure(survey.epsilon)} sure of one of them"
    if survey.shows_changes:
        return f"{said} from one report. For all reports together no number holds."
    if survey.lifetime_epsilon is not None and _adds_up(survey):
        all_of_them = f"at most {sure(survey.lifetime_epsilon)} sure from {_every(_epochs(survey))} together"
        return f"{said} from {_what(survey)}, and {all_of_them}."
    source = "all your reports" if _epochs(survey) > 1 else _what(survey, "your report")
    return f"{said} from {source}."


def _what(survey: Survey, report: str = "one report") -> str:
    """What numbers about one submission are read from."""
    if survey.relation != "sum":
        return report
    return "these sums" if _epochs(survey) == 1 else "the sums of one period"


def _adds_up(survey: Survey) -> bool:
    """Whether all reports together may tell more than one of them, and a number holds for that."""
    return not survey.shows_changes and (survey.draws > 1 or _is_two_stage(survey))


def _is_two_stage(survey: Survey) -> bool:
    return survey.terms is not None and survey.terms.longitudinal.is_two_stage


def _changes(survey: Survey) -> str:
    """Of two stages with several kept answers: what the number is about that the ledger counts."""
    if not _is_two_stage(survey) or survey.draws == 1:
        return ""
    return (
        f"What is counted, epsilon {epsilon_text(survey.budget_epsilon)}, bounds what all reports tell about your "
        "answers to somebody who knows already in which periods they were the same. In which periods they were the "
        "same is protected by the number for all reports together only."
    )


def _linked(survey: Survey, here: str) -> str:
    """Of two stages whose states work as a cookie: what that means."""
    if survey.terms is None or not survey.terms.longitudinal.linkable:
        return ""
    return (
        f"All your reports are drawn from what {here} keeps, and resemble each other. {_capital(WATCHERS)} can "
        "recognize in time that they come from the same person, as by a cookie. This tells nothing more about your "
        "answers than the numbers here."
    )


def _rare(survey: Survey) -> str:
    """What the promise leaves out where a table has a delta: P(S | one answer) <= e^epsilon P(S | other) + delta.

    Of two answers with the laws p and q it is the cases of p beyond e^epsilon q, which have the probability delta at
    most. What is left of both, min(p, e^epsilon q) and min(q, e^epsilon p), keeps every bound.
    """
    if not survey.delta:
        return ""
    said = f"The worst case leaves out cases whose probability is at most 1 in {int(1 / survey.delta):,} per report"
    if survey.lifetime_epsilon is not None and survey.draws > 1:
        return f"{said}, and 1 in {int(1 / survey.budget_delta):,} for all {survey.draws:,} together."
    return f"{said}."


def _seen(survey: Survey, found: list[Guessed]) -> str:
    about, worst = _about(survey), max((_band_of(one) for one in found), key=BANDS.index)
    which = [place for place, one in enumerate(found) if _band_of(one) == worst]
    told = [found[place] for place in which]
    may = "can" if all(_is_known(one, worst) for one in told) else "may be able to"
    secret = about.secret
    if len(found) > len(which):
        secret = f"{secret} for {_listed([survey.questions[place].id for place in which])}"
    who, does = _capital(WATCHERS), "Your report does" if _epochs(survey) == 1 else "Your reports do"
    if survey.relation == "sum":
        assert survey.terms is not None
        hosts = _listed([host(address) for address in survey.terms.collectors])
        each = f"{hosts} each get numbers that tell nothing by themselves. Together they could read what you chose. "
        who, does = f"{each}Whoever sees the published sums", f"{each}The published sums do"
    nobody = ": not those who ask, not whoever runs the server, not whoever listens on the way"
    rare = survey.budget_delta > _RARE
    except_for = f", except in at most 1 of {int(1 / survey.budget_delta):,} cases" if rare else ""
    if worst == WEAK:
        said = f"{who} {may} find out {secret}, or nearly so.{about.beside} {CAREFUL}"
    elif worst == MODERATE:
        guess = "whoever sees them" if survey.relation == "sum" else WATCHERS
        said = f"{does} not prove {secret}, but {guess} {may} make a good guess.{about.beside}"
    elif any(one.always.share - one.before >= ADDS_SOME for one in told):
        said = f"{does} not prove {secret}, but guesses are better with {_them(survey)} than without.{about.beside}"
    elif survey.relation == "sum":
        said = f"{does} not tell {secret}{except_for}.{about.beside}"
    else:
        said = f"Nobody gets to see {secret}{except_for}{nobody}.{about.beside}"
    if survey.shows_changes:
        said += f" {_capital(WATCHERS)} can see when your answer changes and when an earlier one returns."
    return said


def _them(survey: Survey) -> str:
    return "it" if _epochs(survey) == 1 and survey.relation != "sum" else "them"


def _said_in_clear(survey: Survey) -> str:
    """What is not protected at all, and that no number is about it."""
    names = _clear(survey)
    if not names:
        return ""
    them = "It is" if len(names) == 1 else "They are"
    return (
        f"Your {_listed(names)} {'is' if len(names) == 1 else 'are'} not protected. {them} sent as written beside each "
        f"report, and {WATCHERS} can read that. All numbers here are about your "
        f"{'answer' if len(survey) == 1 else 'answers'} to the rest."
    )


def _profiles(survey: Survey, here: str) -> str:
    """Of answers with a profile: what stays here, and which profiles the numbers are about.

    That levels add up holds for values that are drawn anew from the profile, not for one value that is reported twice.
    """
    if survey.relation != "profiles":
        return ""
    said = []
    for question in survey:
        which = f"of {question.id} " if len(survey) > 1 else ""
        said.append(f"The numbers {which}are about {question.protocol.guarantee.over}.")
    if len(survey) > 1 or survey.draws > 1:
        alone = "each value comes from your profile independently of the others"
        said.append(f"Numbers for several values together hold if {alone}.")
    return (
        f"Your profile does not leave {here}: it decides how chance changes your value, and what comes out is sent. "
        f"{' '.join(said)}"
    )


def _distance(survey: Survey) -> str:
    """Of places: what the numbers are for places that are further apart."""
    if survey.relation != "metric":
        return ""
    asked = [getattr(question.protocol, "inner", question.protocol) for question in survey]
    sizes = [getattr(protocol.domain, "cell", "") for protocol in asked]
    which = [f" of {question.id}" if len(survey) > 1 else "" for question in survey]
    said = [f"One cell side{name} is {size}. " for name, size in zip(which, sizes, strict=True) if size]
    return (
        f"{''.join(said)}Epsilon grows with the distance: of places {_FAR} cell sides apart somebody who finds both "
        f"equally likely can become at most {sure(_FAR * survey.epsilon)} sure of one of them from one report."
    )


def _parts(survey: Survey, here: str) -> str:
    """What is reported of answers that have several parts."""
    said = []
    for question in survey:
        protocol = question.protocol
        names = [name for name in protocol.parts(1) if name]
        if not (protocol.chooses or protocol.combines) or protocol.clear:
            continue
        whose = "your answer" if len(survey) == 1 else f"your answer to {question.id}"
        named = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
        if protocol.combines:
            said.append(
                f"A report is about some parts of {whose} together ({named}). {_capital(here)} chooses them by chance, "
                f"whatever you answer. {_capital(WATCHERS)} can see which parts they are; nothing about the others is "
                "in the report."
            )
            continue
        said.append(
            f"A report is about one of the {len(names)} parts of {whose} ({named}). {_capital(here)} "
            f"chooses it by chance, whatever you answer. {_capital(WATCHERS)} can see which part it is; nothing about "
            "the other parts is in the report."
        )
    return " ".join(said)


def _factor(survey: Survey) -> str:
    said = f"{_about(survey).odds} change by at most a factor of {factor(survey.epsilon)}"
    if survey.shows_changes:
        return f"{said} from one report; for all reports together no factor holds."
    if survey.lifetime_epsilon is not None and _is_two_stage(survey):
        return f"{said} from one report, and {factor(survey.lifetime_epsilon)} in all, however often you take part."
    if survey.lifetime_epsilon is not None and _adds_up(survey):
        return f"{said} each time, and {factor(survey.lifetime_epsilon)} in all, however often you take part."
    return f"{said}{' in all, however often you take part' if _epochs(survey) > 1 else ''}."


def _questions(survey: Survey, found: list[Guessed]) -> str:
    """One question after the other, where there are several."""
    if len(survey) == 1:
        return ""
    said = []
    for question, one in zip(survey, found, strict=True):
        right = f"{of_100(one.once)} of 100" + (f", in all {of_100(one.always)}" if one.always != one.once else "")
        odds = factor(question.protocol.epsilon)
        said.append(f"{question.id} {right}, without a report {of_100(Right(one.before))} (factor {odds})")
    return f"Right guesses, question by question: {'; '.join(said)}. The factors of all questions multiply."


def lifetime(survey: Survey) -> str:
    """For reviewers: the level of all that a device may send."""
    level = survey.lifetime_epsilon
    if level is not None:
        return f"epsilon {epsilon_text(level)}" + (f" and delta {survey.budget_delta}" if survey.delta else "")
    return "no epsilon bounds all reports together, because repeated reports show when an answer changes or returns"


# -- what is kept, where --------------------------------------------------------------------------------


def _address(terms: Terms, here: str) -> str:
    more = ", and what a browser tells of itself" if "browser" in here else ""
    length = span(min(terms.epochs.seconds, terms.expires - terms.opens))
    server, sees, its = ("server" if terms.relay is None else "relay"), "sees", "its program keeps"
    if terms.collectors:
        server, sees, its = "collectors", "see", "their programs keep"
    return (
        f"A report holds no name, no address, no cookie and no time but its period, which lasts {length}. The {server} "
        f"still {sees} the network address that it comes from, and when{more}, as with every web page; {its} "
        "none of this."
    )


def _collectors(survey: Survey) -> str:
    """Who gets what where answers are split, and who must not work together."""
    terms, asked = survey.terms, [one.protocol for one in survey if isinstance(one.protocol, SecureSum)]
    if terms is None or not terms.collectors:
        return ""
    hosts = _listed([host(address) for address in terms.collectors])
    most = max(asked, key=lambda one: one.enough)
    return (
        f"Your answer gets a little noise and is split into {len(terms.collectors)} parts, one for each of {hosts}. "
        "When a period is over they add up the parts of the same people, erase them, and put only their sums together. "
        f"This protects you as long as {hosts} do not work together, and as long as at least {most.enough:,} of these "
        f"people, you among them, add their noise. If fewer than {most.enough:,} people answer in a period, nothing "
        "comes out."
    )


def _relay(terms: Terms) -> str:
    """Who sees what where a relay mixes submissions, and who must not work together."""
    if terms.relay is None:
        return ""
    host, batch = terms.relay.host, terms.relay.batch
    return (
        f"Your answer is sealed and sent to a relay, {host}, which cannot read it. The relay passes answers on in "
        f"random order, at least {batch:,} of one period at a time, so that those who ask do not learn whose they are. "
        f"This protects you as long as {host} and those who ask do not work together, and as long as the other answers "
        f"are not made up by them. If fewer than {batch:,} people answer in a period, their answers are discarded."
    )


def amplified(survey: Survey, delta: Fraction = Fraction(1, 10**8)) -> str:
    """What mixing or adding up proves, for a reviewer.

    Empty where neither relay nor collectors are named, or where reports can be linked over epochs.
    """
    from deniable.privacy import CannotShuffle, shuffled
    from deniable.privacy.shuffle import rounded_up

    terms = survey.terms
    if terms is not None and terms.collectors:
        enough = max(one.protocol.enough for one in survey if isinstance(one.protocol, SecureSum))
        return (
            f"The sums of at least {enough:,} honest people have a central epsilon of {epsilon_text(survey.epsilon)} "
            f"up to a probability of {float(survey.delta):g}, as long as the collectors "
            f"({_listed([host(address) for address in terms.collectors])}) do not work together; all of them together "
            "can read every answer."
        )
    if terms is None or terms.relay is None or (terms.longitudinal.keeps and terms.longitudinal.epochs > 1):
        return ""
    try:
        crowd = shuffled([question.protocol for question in survey], terms.relay.batch, delta)
    except CannotShuffle:
        return ""
    more = f", in each of up to {_epochs(survey):,} periods" if _epochs(survey) > 1 else ""
    return (
        f"A batch of {crowd.n:,} honest submissions in random order has a central epsilon of "
        f"{rounded_up(crowd.epsilon)} up to a probability of {float(delta):g}{more}, as long as the relay "
        f"({terms.relay.host}) and the collector do not work together; against both together it is "
        f"{epsilon_text(survey.epsilon)}."
    )


def _often(survey: Survey, here: str) -> str:
    assert survey.terms is not None
    rule = survey.terms.longitudinal
    if rule.epochs == 1:
        return "You can answer once."
    times = f"You can answer {rule.epochs:,} times at most, once in each period"
    if rule.rule == "none":
        what = "sums" if survey.terms.collectors else "reports"
        return f"{times}. Each answer is randomized afresh, and what the {what} tell adds up."
    if rule.is_two_stage and rule.values == 1:
        return (
            f"{times}. Your first answer is randomized once, and {here} keeps the outcome. Every report is drawn from "
            "that outcome, whatever you answer later."
        )
    if rule.is_two_stage:
        return (
            f"{times}. Each different answer, up to {rule.values:,} of them, is randomized once, and {here} keeps the "
            "outcome; later ones use that of your first answer. Every report is drawn from the outcome that belongs to "
            "your answer. Whoever links many of your reports, for example by your network address, can find out when "
            "your answer changes and which earlier answer returns."
        )
    if rule.is_evolving:
        return (
            f"{times}, whether or not your answer has changed. Chance picks the one change that is reported: your "
            f"first answer or a later change, of which up to {rule.changes:,} count. One report tells about it, "
            "changed by chance, and all others are coins."
        )
    if not survey.shows_changes:
        return f"{times}. All reports repeat the first one, whatever you answer later: they tell nothing more."
    return (
        f"{times}. The same answer repeats the same report, for up to {rule.values:,} different answers; after those "
        f"{here} repeats the first report. Whoever links your reports, for example by your network address, sees when "
        "your answer changes and which earlier answer returns."
    )


def _round(survey: Survey, here: str, lasting: bool) -> str:
    """Which round of how many this is, and what that means for whoever answers."""
    place = survey.terms.campaign if survey.terms is not None else None
    if place is None:
        return ""
    number, rounds = place.number, place.campaign.rounds
    said = [f"This is round {number} of {rounds} of one collection."]
    if number > 1:
        names = f"The survey names the sums of round {number - 1} that it was made from"
        said.append(f"{names}, so that whoever has them can check it.")
    if number < rounds:
        decide = f"The sums of this round decide what round {number + 1} asks, by a published rule"
        said.append(f"{decide}: {place.campaign.words}.")
    memory = "" if lasting else ", as far as it remembers"
    said.append(
        f"{_capital(here)} answers one round{memory}: once it has made a report for one, it makes none for another."
    )
    return " ".join(said)


def _storage(survey: Survey, here: str) -> str:
    return (
        f"{_capital(here)} has not promised to keep the data of this site. If it deletes them, it forgets what was "
        f"sent and begins anew, with up to {_epochs(survey):,} more reports. What is said here about all reports "
        "together is about those that it remembers."
    )


def _device(survey: Survey, here: str) -> str:
    assert survey.terms is not None
    if survey.terms.collectors:
        return (
            f"{_capital(here)} does not keep your answer. It keeps the parts until all collectors have taken theirs, "
            f"and whoever can read the data of {here} until then can read your answer from them. Then they are erased; "
            "what stays is that you answered, for which period, and what it cost."
        )
    if survey.terms.longitudinal.is_evolving:
        return (
            f"{_capital(here)} keeps whether your last answer was the one that it follows, to notice a change. Whoever "
            f"can read the data of {here} can read that. Leaving deletes it."
        )
    if survey.terms.longitudinal.is_two_stage:
        return (
            f"{_capital(here)} keeps your answer and what it was randomized to, because all reports are drawn from "
            f"that. Whoever can read the data of {here} can read your answer. Leaving deletes both."
        )
    if survey.terms.longitudinal.keeps:
        return (
            f"{_capital(here)} keeps your answer and its randomized report, because it must repeat the report. Whoever "
            f"can read the data of {here} can read your answer. Leaving deletes both."
        )
    number = ""
    if survey.terms.retention == "reports":
        number = "; and, while the server can delete the report, its random number"
    return (
        f"{_capital(here)} does not keep your answer. It keeps the randomized report until the server has taken it, "
        f"and then erases it; what stays is that you answered, for which period, and what it cost{number}."
    )


def kept(survey: Survey) -> str:
    """What the service keeps of a report."""
    assert survey.terms is not None
    if survey.terms.delete_days is not None:
        days = span(86_400 * survey.terms.delete_days)
        return (
            f"sums only; reports wait in files to be counted, and are deleted at most {days} after the last report of "
            "their period can arrive"
        )
    if survey.terms.collectors:
        return "the parts until the period is over and added up, then sums only"
    if survey.terms.retention == "tally":
        return "sums only; no report is kept once it is counted"
    return "every randomized report, to be analysed again later"


def _leaving(survey: Survey) -> str:
    assert survey.terms is not None
    if survey.terms.delete_days is not None:
        return "What was sent is counted: the server does not take single reports out of its files or out of the sums."
    if survey.terms.collectors:
        return "What was sent is counted: the collectors do not take single parts out again."
    if survey.terms.retention == "tally":
        return "What was counted stays in the sums: the server keeps no report that could be taken out again."
    return (
        "The server keeps your randomized reports. It can be asked to delete those of periods that it has not closed; "
        "the request shows it the network address behind those reports."
    )


def _every(count: int) -> str:
    return "both" if count == 2 else f"all {count:,}"


def _epochs(survey: Survey) -> int:
    return 1 if survey.terms is None else survey.terms.longitudinal.epochs


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
