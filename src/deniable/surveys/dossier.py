"""The dossier of a survey: all that a reviewer needs to say yes or no, as one page and as JSON.

Contents   what is asked and why; the promises as respondents read them; the path of an answer, with a picture; what is
           kept where and for how long; who could learn what; the audit and how to repeat it; composition over the
           survey's life; open points of the threat model; fingerprints and versions; differences to the previous
           version; the record for the registry of deployments; a table by the topics of NIST SP 800-226
Numbers    come from the functions that audit, risk and promises use (`reviewed`, `guesses`, `promises`, `diff`)
Language   the promises are in the language of the respondents, the rest is in English
"""

from __future__ import annotations

import hashlib
import html
import json
import math
import textwrap
from base64 import b64encode
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from deniable.audit.verdict import Audit
from deniable.exact import epsilon_text
from deniable.protocols.guessing import AT_MOST, EXACT, Right
from deniable.protocols.law import ANY, STREAM, SUM
from deniable.surveys.audit_report import STYLE, reviewed
from deniable.surveys.diff import Edit, diff, weaker
from deniable.surveys.open_points import open_points
from deniable.surveys.promises import amplified, band, lifetime, paragraphs, promises, summary
from deniable.surveys.registry_record import registry_record, unknown_fields, variant
from deniable.surveys.results import three_digits
from deniable.surveys.right_guesses import guesses
from deniable.surveys.risk import percent, percent_up
from deniable.surveys.survey import Survey
from deniable.surveys.terms import host, span
from deniable.words import DEFAULT

WAYS = {EXACT: "exact", AT_MOST: "upper bound"}
LONGEST = 160
"""Maximum number of characters of a changed value on the page."""
Row = dict[str, str]


def dossier(
    survey: Survey,
    found: Audit,
    version: str,
    *,
    previous: Survey | None = None,
    language: str = DEFAULT,
    seed: int | None = None,
    samples: int = 20_000,
    level: float = 0.95,
) -> dict[str, Any]:
    """Everything that the page says, as JSON values.

    Args:
        survey: The survey.
        found: Its audit.
        version: Version of this package.
        previous: The version that this survey replaces.
        language: Language of the promises.
        seed: Seed of the audit.
        samples: Samples of the audit.
        level: Confidence level of the audit.
    """
    terms, record = survey.terms, registry_record(survey, version)
    audited = reviewed(survey, found, version, seed, levels=(), samples=samples, level=level)
    return {
        "kind": "dossier",
        "version": 1,
        "survey": survey.name,
        "fingerprint": survey.fingerprint,
        "summary": summary(survey),
        "guess": promises(survey)["guess"],
        "owner": None if terms is None else terms.owner,
        "purpose": None if terms is None else terms.purpose,
        "asked": _asked(survey),
        "language": language,
        "promises": paragraphs(promises(survey, language=language), worst_case=True),
        "flow": _flow(survey),
        "kept": _kept(survey),
        "learned": _learned(survey, audited),
        "composition": _composition(survey),
        "open_points": [point._asdict() for point in open_points(survey)],
        "previous": None if previous is None else _compared(previous, survey),
        "nist": _nist(survey, audited),
        "registry": record,
        "to_fill_in": list(unknown_fields(record)),
        "audit": audited,
    }


def _asked(survey: Survey) -> list[Row]:
    return [
        {
            "id": one.id,
            "text": one.text,
            "answers": str(one.protocol.domain),
            "protocol": one.protocol.name,
            "epsilon": epsilon_text(one.protocol.epsilon),
            "clear": ", ".join(one.protocol.law().clear),
            "fingerprint": one.protocol.fingerprint,
        }
        for one in survey
    ]


# -- where an answer goes, and what stays ------------------------------------------------------------------


def _row(where: str, what: str, until: str) -> Row:
    return {"where": where, "what": what, "until": until}


def _flow(survey: Survey) -> list[Row]:
    """The parties on the path of an answer: what each does and what it sees."""

    def party(name: str, does: str, sees: str) -> Row:
        return {"party": name, "does": does, "sees": sees}

    size = f"{survey.report_bytes:,} {'byte' if survey.report_bytes == 1 else 'bytes'}"
    terms = survey.terms
    if terms is None:
        return [
            party("The holder of the answers", "randomizes the file of answers", "true answers"),
            party("Whoever gets the reports", "adds them up", f"randomized reports of {size} per person"),
            party("Readers", "read estimates with error bars", "sums and estimates"),
        ]
    device = party("The device", "randomizes the answer, debits its ledger, then sends", "the true answer")
    reader = party(
        "Analysts and readers", f"read estimates from {terms.min_reports:,} reports on", "sums and estimates"
    )
    if terms.collectors:
        names = ", ".join(map(host, terms.collectors))
        return [
            device,
            party(
                f"Collectors: {names}", "add up their shares", f"random numbers, {size} of shares to each; addresses"
            ),
            reader,
        ]
    sent = f"a random id, the epoch and {size} of randomized answers"
    if terms.relay is None:
        return [device, party("The service", "checks, counts once, acknowledges", f"{sent}; the address"), reader]
    batch = f"mixes batches of {terms.relay.batch:,} or more"
    return [
        device,
        party(f"The relay: {terms.relay.host}", batch, "sealed submissions and addresses"),
        party("The service", "opens, checks and counts once", f"{sent}; no address"),
        reader,
    ]


def _kept(survey: Survey) -> list[Row]:
    """What each party keeps, and for how long; the sentences for respondents say the same."""
    terms = survey.terms
    if terms is None:
        whole = "this survey has no terms: whoever holds the files decides"
        return [_row("Files", "true answers, randomized reports and tallies", whole)]
    rule, late = terms.longitudinal, span(terms.epochs.seconds)
    rows = [
        _row("Device", "the randomized submission", "until the service has accepted it"),
        _row("Device", "debits and the list of answered epochs", "as long as the ledger exists"),
    ]
    if rule.is_two_stage or rule.is_evolving:
        rows.append(_row("Device", "states that further reports are drawn from", "until it leaves the survey"))
    elif rule.keeps:
        rows.append(_row("Device", "memoized answers and their reports, in the clear", "until it leaves the survey"))
    if terms.relay is not None:
        rows.append(_row("Relay", "sealed submissions", f"until {terms.relay.batch:,} wait, or the epoch ends"))
    if terms.collectors:
        rows.append(_row("Each collector", "its shares", "until the epoch has ended and all have summed"))
    elif terms.retention == "reports":
        rows.append(_row("Service", "randomized reports under random ids", "until the operator deletes them"))
        rows.append(_row("Device", "the random ids of its reports", "until they can no longer be deleted there"))
    elif terms.delete_days is not None:
        limit = f"at most {terms.delete_days:,} days after the last report of an epoch ({late}) could come"
        rows.append(_row("Service", "randomized reports in files", limit))
    rows.append(_row("Service", "random ids, to count each submission once", "until three days after the epoch closes"))
    rows.append(_row("Service", "sums per epoch", "until the operator deletes the survey"))
    rows.append(_row("Service", "addresses, times and headers", "never stored by the service"))
    return rows


# -- who could learn what ----------------------------------------------------------------------------------


def right_of_100(survey: Survey) -> int:
    """Right guesses of 100, of the answer that is easiest to guess, from all reports; a bound is rounded up."""
    right = max((one.always for one in guesses(survey)), key=lambda one: one.share)
    if right.how == AT_MOST:
        return math.ceil(100 * right.share - 1e-9)
    return min(math.floor(100 * right.share + 0.5 + 1e-9), 100 if right.share > 1 - 1e-12 else 99)


def _right(right: Right) -> tuple[str, str]:
    shown = f"≤ {percent_up(right.share)}" if right.how == AT_MOST else percent(right.share)
    return shown, WAYS.get(right.how, "approximate")


_SEEN = {SUM: "the published sums", STREAM: "all reports of a device"}
_ANY_FORGERY = "One forged report can outweigh any number of honest ones."


def _learned(survey: Survey, audited: dict[str, Any]) -> list[dict[str, Any]]:
    """For each question: attackers by what they see and know, how often their best guess is right, and how we know."""
    epochs = 1 if survey.terms is None else survey.terms.longitudinal.epochs
    all_found = []
    for question, guess, entry in zip(survey, guesses(survey), audited["questions"], strict=True):
        risk = entry["risk"]
        own = next(row for row in risk["rows"] if row["own"])
        promised, before = question.protocol.guarantee, percent(guess.before)
        one = _SEEN.get(promised.relation, "one report")
        rows = [("Anybody on the way, and the operator", one, before, *_right(guess.once))]
        if epochs > 1:
            seen = f"all that a device may send in {epochs:,} epochs, linked"
            rows.append(("The operator, if reports of a device can be linked", seen, before, *_right(guess.always)))
        for prior, share in (("50 %", own["sure_from_half"]), ("10 %", own["sure_from_tenth"])):
            two = "two answers" if promised.relation == ANY else f"two ({promised.over})"
            who = f"Somebody who gave one of {two} a chance of {prior}"
            rows.append((who, one, prior, f"≤ {percent_up(share)}", "upper bound"))
        if own["household"] is not None:
            shown, how = _right(Right(own["household"], EXACT if own["exact"] else AT_MOST))
            who = f"Somebody who knows that {risk['household']:,} people share the answer"
            rows.append((who, "one report of each", "50 %", shown, how))
        all_found.append(
            {
                "question": question.id,
                "rows": [dict(zip(("who", "sees", "before", "after", "how"), row, strict=True)) for row in rows],
                "words": [*risk["words"], *([] if own["leverage"] is not None else [_ANY_FORGERY])],
            }
        )
    return all_found


def _composition(survey: Survey) -> dict[str, Any]:
    """What one submission and all of them reveal."""
    terms, total = survey.terms, survey.lifetime_epsilon
    found: dict[str, Any] = {
        "submission": epsilon_text(survey.epsilon),
        "delta": str(survey.delta),
        "lifetime": None if total is None else epsilon_text(total),
        "lifetime_words": lifetime(survey),
        "realized": survey.realized_lifetime_epsilon,
        "band": band(survey),
        "right_of_100": right_of_100(survey),
        "amplified": amplified(survey),
    }
    if terms is None:
        return found | {"between": "any two answers, if a person answers once", "debits": []}
    epochs = terms.longitudinal.epochs
    some = sorted({1, max(1, epochs // 2), epochs})
    return found | {
        "between": terms.longitudinal.promise[1],
        "debits": [{"epochs": n, "epsilon": epsilon_text(survey.debit * min(n, survey.draws))} for n in some],
        "budget": epsilon_text(terms.budget.epsilon),
        "group": terms.budget.group,
    }


def _compared(before: Survey, after: Survey) -> dict[str, Any]:
    """What changes for a respondent, and what it does to privacy."""
    changes = diff(before, after)

    def text(value: Fraction | str) -> str:
        return epsilon_text(value) if isinstance(value, Fraction) else value

    def edit(one: Edit) -> Row:
        return {"what": one.what, "before": text(one.before), "after": text(one.after), "privacy": one.privacy}

    def effect(survey: Survey) -> dict[str, Any]:
        return {"lifetime": lifetime(survey), "band": band(survey), "right_of_100": right_of_100(survey)}

    return {
        "fingerprint": before.fingerprint,
        "weaker": bool(weaker(changes)),
        "changes": [edit(one) for one in changes],
        "effect": {"before": effect(before), "after": effect(after)},
    }


def _nist(survey: Survey, audited: dict[str, Any]) -> list[Row]:
    """The topics of NIST SP 800-226 by its chapters, and where the dossier answers them."""
    local = survey.terms is None or not (survey.terms.relay or survey.terms.collectors)
    who = "local: randomized before it is sent" if local else str(audited["shuffler"])
    unit = "all that a device may send" if survey.terms is not None else "one answer of one person"
    clear = ", ".join(sorted({name for one in survey for name in one.protocol.law().clear}))
    few = "none" if survey.terms is None else f"from {survey.terms.min_reports:,} reports on"
    rows = (
        ("2", "Privacy parameters", f"{lifetime(survey)}; {audited['audit']['words']}", "composition"),
        ("2", "Unit of privacy", f"{unit}; {_between(survey)}", "composition"),
        ("2", "Variant of the definition", variant(survey), "composition"),
        ("2", "Releases beside the protected ones", f"sent in clear: {clear or 'nothing'}", "asked"),
        ("3", "Mechanisms", ", ".join(dict.fromkeys(one.protocol.name for one in survey)), "asked"),
        ("3", "Accuracy", _accuracy(audited), "learned"),
        ("4", "Trust model", who, "flow"),
        ("4", "Implementation: floats, randomness", "integer thresholds; the real code is audited", "audit"),
        ("4", "Implementation: side channels", "timing is not analysed", "open"),
        ("4", "Security of data, access", f"estimates are shown: {few}", "kept"),
        ("4", "Exposure when data are collected", "see what each party sees and keeps", "flow"),
    )
    return [dict(zip(("chapter", "topic", "answer", "section"), row, strict=True)) for row in rows]


def _accuracy(audited: dict[str, Any]) -> str:
    """The standard error of each question's headline figure, sampling included."""
    told = []
    for one in audited["questions"]:
        risk = one["risk"]
        error = three_digits(next(row for row in risk["rows"] if row["own"])["error"])
        unit = f" {risk['unit']}" if risk["unit"] else ""
        told.append(f"{one['id']}: standard error {error}{unit} with {risk['people']:,} people")
    return "\n".join(told)


def _between(survey: Survey) -> str:
    return f"between {_composition(survey)['between']}"


# -- the page ----------------------------------------------------------------------------------------------

_OWN_STYLE = (
    STYLE
    + """
td{white-space:pre-line}td:last-child{overflow-wrap:anywhere;min-width:8rem}
nav ol{columns:2;padding-left:1.4rem}.lead{font-size:1.15rem}td.weaker,.bad{color:#b3261e;font-weight:600}
td.stronger{color:#2b6b3a}svg .box{fill:none;stroke:currentColor}svg .small{font-size:11px}
blockquote{margin:1rem 0;border-left:3px solid #2f6f9f;padding:.1rem 1rem}nav a,td a{color:inherit}
@media screen and (max-width:40rem){nav ol{columns:1}}
@media screen and (prefers-color-scheme:dark){td.weaker,.bad{color:#ff8a80}td.stronger{color:#7fd18f}}
@media print{nav{display:none}h2{break-before:auto}}
"""
)


def whole_page(title: str, body: str, language: str = DEFAULT) -> str:
    """One HTML file that loads nothing and runs nothing; its own policy forbids both."""
    digest = b64encode(hashlib.sha256(_OWN_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return f"""<!doctype html>
<html lang="{_text(language)}"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>{_text(title)}</title><style>{_OWN_STYLE}</style></head><body>
{body}</body></html>
"""


SECTIONS = {
    "asked": "What is asked, and why",
    "promises": "What respondents read",
    "flow": "Where an answer goes",
    "kept": "What is kept, where and how long",
    "learned": "Who could learn what",
    "audit": "Audit",
    "composition": "Over the life of the survey",
    "open": "Open points of the threat model",
    "changes": "Differences to the previous version",
    "nist": "By the topics of NIST SP 800-226",
    "registry": "Record for the registry of deployments",
    "versions": "Fingerprints and versions",
}


def dossier_html(content: dict[str, Any]) -> str:
    """The page: one file, nothing is loaded, and it prints well."""
    parts = {name: _RENDERED[name](content) for name in SECTIONS}
    listed = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in SECTIONS.items())
    sections = "".join(
        f'<section id="{name}"><h2>{title}</h2>{parts[name]}</section>\n' for name, title in SECTIONS.items()
    )
    verdict = content["audit"]["audit"]["verdict"]
    data = json.dumps(content, ensure_ascii=False).replace("<", "\\u003c")
    body = f"""<h1>Dossier: {_text(content["survey"])}</h1>
<p class="lead">{_text(content["summary"])} {_text(content["guess"])}
Audit: <span class="{_text(verdict)}">{_text(verdict)}</span>.</p>
<p>Fingerprint <code>{_text(content["fingerprint"])}</code></p>
<nav aria-label="Sections"><ol>{listed}</ol></nav>
{sections}<div class="sign"><div>Reviewed by</div><div>Signature</div><div>Date</div></div>
<script type="application/json" id="dossier">{data}</script>
"""
    return whole_page(f"Dossier: {content['survey']}", body)


def _text(value: Any) -> str:
    return html.escape(str(value))


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], label: str) -> str:
    """A table that scrolls on a narrow screen; a cell is a text, or a class and a text."""

    def cell(value: Any) -> str:
        kind, shown = value if isinstance(value, tuple) else ("", value)
        return f"<td{f' class={kind}' if kind else ''}>{_text(shown)}</td>"

    titles = "".join(f"<th>{_text(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    return (
        f'<div class="wide" role="region" aria-label="{_text(label)}" tabindex="0"><table>'
        f"<thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _html_asked(content: dict[str, Any]) -> str:
    why = (
        "<p>A survey for files: it names neither an owner nor a purpose.</p>"
        if content["owner"] is None
        else f"<p><strong>{_text(content['owner'])}</strong> asks. Purpose: {_text(content['purpose'])}</p>"
    )
    rows = [
        (one["text"], one["answers"], one["protocol"], one["epsilon"], one["clear"] or "nothing")
        for one in content["asked"]
    ]
    return why + table(("question", "answers", "protocol", "epsilon", "sent in clear"), rows, "Questions")


def _html_promises(content: dict[str, Any]) -> str:
    said = "".join(f"<p>{_text(one)}</p>" for one in content["promises"])
    return f'<blockquote lang="{_text(content["language"])}">{said}</blockquote>'


def _html_flow(content: dict[str, Any]) -> str:
    rows = [(one["party"], one["does"], one["sees"]) for one in content["flow"]]
    return _picture(content["flow"]) + table(("party", "does", "sees"), rows, "Parties")


def _picture(flow: Sequence[Row]) -> str:
    """The path of an answer from top to bottom; the true answer stays above the dashed line."""
    drawn, top = [], 8
    for place, one in enumerate(flow):
        lines = [line for text in (one["does"], f"sees {one['sees']}") for line in textwrap.wrap(text, 58)]
        high = 34 + 16 * len(lines)
        texts = "".join(
            f'<text class="small" x="24" y="{top + 41 + 16 * n}">{_text(line)}</text>' for n, line in enumerate(lines)
        )
        drawn.append(
            f'<rect class="box" x="10" y="{top}" width="400" height="{high}" rx="8"/>'
            f'<text x="24" y="{top + 21}" font-weight="600">{_text(one["party"])}</text>{texts}'
        )
        top += high
        if place < len(flow) - 1:
            drawn.append(f'<path d="M210 {top}v26m-5 -7l5 7 5 -7" fill="none" stroke="currentColor"/>')
            top += 28
        if place == 0:
            line = f'x1="10" x2="410" y1="{top - 14}" y2="{top - 14}"'
            drawn.append(f'<line {line} stroke="#b3261e" stroke-dasharray="5 4"/>')
    label = "The path of an answer: " + "; ".join(f"{one['party']} sees {one['sees']}" for one in flow)
    return (
        f'<figure><svg viewBox="0 0 420 {top + 8}" role="img" aria-label="{_text(label)}">{"".join(drawn)}</svg>'
        "<figcaption>True answers stay above the dashed line.</figcaption></figure>"
    )


def _html_kept(content: dict[str, Any]) -> str:
    rows = [(one["where"], one["what"], one["until"]) for one in content["kept"]]
    return table(("where", "what", "how long"), rows, "What is kept")


def _html_learned(content: dict[str, Any]) -> str:
    shown = [
        "<p>How often the best guess is right, without and with what the attacker sees. All attackers know the "
        "protocol. Unless a row says otherwise, they hold all answers equally likely beforehand.</p>"
    ]
    for one in content["learned"]:
        rows = [(row["who"], row["sees"], row["before"], row["after"], row["how"]) for row in one["rows"]]
        head = ("attacker", "sees", "right before", "right after", "figure")
        shown.append(f"<h3>{_text(one['question'])}</h3>{table(head, rows, one['question'])}")
        shown.append(f"<p>{_text(' '.join(one['words']))}</p>")
    return "".join(shown)


def _number(value: float | str) -> str:
    return "infinite" if value == "inf" else f"{float(value):.6g}"


def _html_audit(content: dict[str, Any]) -> str:
    audited = content["audit"]
    rows = []
    for one in audited["questions"]:
        part = one["audit"]
        known = _number(part["exact"]) if part["exact"] is not None else f"at least {_number(part['lower'])}"
        rows.append((one["id"], (part["verdict"], part["verdict"]), part["method"], _number(part["epsilon"]), known))
    missing = "".join(f"<li>{_text(note)}</li>" for note in audited["not_tested"])
    seeded = "" if audited["seed"] is None else f" --seed {audited['seed']}"
    again = f"deniable audit survey.json --samples {audited['samples']} --level {audited['level']:g}{seeded}"
    notes = "".join(
        f"<li>{_text(one['id'])}: {_text(note)}</li>" for one in audited["questions"] for note in one["audit"]["notes"]
    )
    return (
        f"<p>{_text(audited['audit']['words'])}.</p>"
        f"{table(('question', 'verdict', 'method', 'claim', 'exact epsilon'), rows, 'Audit')}"
        "<p>Enumeration runs the real code along every branch. Structure runs it on symbols. Samples bound the epsilon "
        f"of code that cannot be followed. To repeat the audit: <code>{_text(again)}</code></p>"
        f"{f'<ul>{notes}</ul>' if notes else ''}<h3>Not tested</h3><ul>{missing}</ul>"
    )


def _html_composition(content: dict[str, Any]) -> str:
    found = content["composition"]
    rows = [("one submission, all questions", f"epsilon {found['submission']}")]
    rows += [("one submission", f"delta {found['delta']}")] if found["delta"] != "0" else []
    rows += [
        (f"the ledger's debits after {one['epochs']:,} epochs", f"epsilon {one['epsilon']}") for one in found["debits"]
    ]
    rows.append(("all that a device may send", found["lifetime_words"]))
    if found["realized"] is not None:
        rows.append(("the same, of the bytes that leave", f"epsilon {found['realized']:.6g}"))
    rows.append(("it holds between", found["between"]))
    rows.append(("protection", found["band"]))
    if "budget" in found:
        rows.append((f"lifetime budget of the group {found['group']}", f"epsilon {found['budget']}"))
    more = f"<p>{_text(found['amplified'])}</p>" if found["amplified"] else ""
    return table(("what", "how much"), rows, "Composition") + more


def _html_open(content: dict[str, Any]) -> str:
    rows = [(one["title"], one["words"]) for one in content["open_points"]]
    return table(("open point", "what it means"), rows, "Open points")


def _html_changes(content: dict[str, Any]) -> str:
    found = content["previous"]
    if found is None:
        return "<p>No previous version was given.</p>"
    if not found["changes"]:
        return f"<p>The previous version is the same survey, <code>{_text(found['fingerprint'])}</code>.</p>"
    rows = [
        (one["what"], _cut(one["before"]), _cut(one["after"]), (one["privacy"], one["privacy"]))
        for one in found["changes"]
    ]
    worse = '<span class="bad">Privacy gets weaker.</span>' if found["weaker"] else "Nothing gets weaker."
    sides = [found["effect"][side] for side in ("before", "after")]
    effect = [(name, *(side[key] for side in sides)) for name, key in _EFFECTS]
    return (
        f"<p>{worse} Previous version: <code>{_text(found['fingerprint'])}</code></p>"
        f"{table(('effect', 'before', 'after'), effect, 'Effect on privacy')}"
        f"{table(('what', 'before', 'after', 'privacy'), rows, 'Changes')}"
    )


def _cut(text: str) -> str:
    """The beginning of a long value: the integers of a table fill pages, and are in the JSON."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


_EFFECTS = (
    ("all that a device may send", "lifetime"),
    ("protection", "band"),
    ("right guesses of 100", "right_of_100"),
)


def _html_nist(content: dict[str, Any]) -> str:
    rows = [(one["chapter"], one["topic"], one["answer"], SECTIONS[one["section"]]) for one in content["nist"]]
    return table(("chapter", "topic", "here", "section of this page"), rows, "NIST SP 800-226")


def _html_registry(content: dict[str, Any]) -> str:
    missing = ", ".join(content["to_fill_in"])
    return (
        "<p>The fields of the public registry of differential privacy deployments that this survey knows; "
        f"<code>--registry FILE</code> writes them as YAML. To be filled in by a person: {_text(missing)}.</p>"
        f"{table(('field', 'value'), _fields(content['registry']['deployment']), 'Registry')}"
    )


def _fields(values: dict[str, Any], path: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in values.items():
        if isinstance(value, dict):
            found += _fields(value, f"{path}{key}.")
        else:
            found.append((f"{path}{key}", ", ".join(value) if isinstance(value, list) else str(value)))
    return found


def _html_versions(content: dict[str, Any]) -> str:
    audited = content["audit"]
    rows = [
        ("survey", content["fingerprint"]),
        *((f"question {one['id']}", one["fingerprint"]) for one in content["asked"]),
    ]
    rows += [(name, number) for name, number in audited["versions"].items()]
    spec = _text(json.dumps(audited["spec"], ensure_ascii=False))
    return (
        f"{table(('what', 'fingerprint or version'), rows, 'Versions')}<p>Written {_text(audited['written'])}. The "
        f'survey as published:</p><pre role="region" aria-label="Specification" tabindex="0"><code>{spec}</code></pre>'
    )


_RENDERED = {
    "asked": _html_asked,
    "promises": _html_promises,
    "flow": _html_flow,
    "kept": _html_kept,
    "learned": _html_learned,
    "audit": _html_audit,
    "composition": _html_composition,
    "open": _html_open,
    "changes": _html_changes,
    "nist": _html_nist,
    "registry": _html_registry,
    "versions": _html_versions,
}
