"""The audit of a survey as one page that a reviewer can sign, and as JSON.

Contents   the survey and its fingerprint; the exact epsilon of each question and of all; what a device reveals over its
           lifetime, the band of protection and what respondents read about it; how often the best guess of an answer
           is right; what a forged report outweighs; what a relay proves; what each question would risk at other
           epsilons, in words, a table and a picture; what was tested, how, and what was not; versions, seed, and the
           command that reproduces the figures
Form       docs/audit.md names every field of the JSON
"""

from __future__ import annotations

import hashlib
import html
import json
import math
import platform
import time
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any

import cryptography
import numpy as np

from deniable.audit.verdict import UNDECIDED, VIOLATED, Audit
from deniable.exact import epsilon_text
from deniable.protocols.guessing import AT_MOST
from deniable.protocols.law import STREAM
from deniable.surveys.promises import amplified, lifetime, promises, summary
from deniable.surveys.results import three_digits, three_digits_up
from deniable.surveys.right_guesses import guessed
from deniable.surveys.risk import LEVELS, of_survey, percent, percent_up
from deniable.surveys.survey import Survey
from deniable.surveys.terms import write_time

NOT_TESTED = (
    "the code that draws whole columns of answers at once, but for some samples: a device draws one report at a time",
    "the device's operating system, its source of randomness and its clock",
    "whether the software on devices is this one",
    "what the connection of a device gives away, such as its address",
    "whether people answer truthfully",
)


def reviewed(
    survey: Survey,
    found: Audit,
    version: str,
    seed: int | None = None,
    levels: Sequence[Fraction] = LEVELS,
    samples: int = 20_000,
    level: float = 0.95,
) -> dict[str, Any]:
    """Everything that the page says, as JSON values.

    `version` is that of this package, `levels` are the epsilons of the table of risks, and `seed`, `samples` and
    `level` are the audit's own.
    """
    questions = []
    risked = of_survey(survey, levels=levels)
    for question, part in zip(survey, found.parts, strict=True):
        protocol = question.protocol
        guess = guessed(protocol)
        questions.append(
            {
                "id": question.id,
                "text": question.text,
                "protocol": protocol.name,
                "fingerprint": protocol.fingerprint,
                "guess": None if guess.once.how == AT_MOST else guess.once.share,
                "sure_from_half": risked[question.id].own.sure_from_half,
                "blind_guess": guess.before,
                "leverage": protocol.worth().leverage,
                "clear": list(protocol.law().clear),
                "audit": part.to_dict(),
                "risk": {
                    "words": risked[question.id].words,
                    "people": risked[question.id].people,
                    "reports": risked[question.id].reports,
                    "household": risked[question.id].household,
                    "unit": protocol.worth().unit,
                    "rows": [asdict(row) for row in risked[question.id].rows],
                },
            }
        )
    terms = survey.terms
    return {
        "kind": "audit",
        "version": 1,
        "survey": survey.name,
        "fingerprint": survey.fingerprint,
        "spec": survey.spec(),
        "audit": {key: value for key, value in found.to_dict().items() if key != "parts"},
        "questions": questions,
        "summary": summary(survey),
        "promises": promises(survey),
        "lifetime": None if terms is None else lifetime(survey),
        "budget": None if terms is None else epsilon_text(terms.budget.epsilon),
        "shuffler": _shuffler(survey),
        "not_tested": [*_not_tested(survey, found), *NOT_TESTED],
        "written": write_time(int(time.time())),
        "seed": seed,
        "samples": samples,
        "level": level,
        "versions": {
            "deniable": version,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "cryptography": cryptography.__version__,
        },
    }


def _not_tested(survey: Survey, found: Audit) -> list[str]:
    """What this audit leaves open, besides what no audit can see."""
    told = [
        f"{question.id}: the claim as a whole, because the audit is undecided"
        if part.verdict == UNDECIDED
        else f"{question.id}: other answers than those that were looked at"
        for question, part in zip(survey, found.parts, strict=True)
        if part.exact is None and part.verdict != VIOLATED
    ]
    if survey.terms is None:
        told.append("how often a device answers: the survey has no terms, and every further answer adds its epsilon")
    elif survey.terms.longitudinal.epochs > 1 and any(one.protocol.guarantee.relation != STREAM for one in survey):
        told.append(
            "whether a device keeps to its ledger: the lifetime is worked out from what was tested and from the terms"
        )
    return told


def _shuffler(survey: Survey) -> str:
    """Whether somebody mixes reports on their way, and what that proves."""
    if survey.terms is not None and survey.terms.collectors:
        return f"{amplified(survey)} Every figure is about these sums."
    if survey.terms is None or survey.terms.relay is None:
        return "No shuffler is assumed: every figure is about what the collector sees of each device."
    relay = survey.terms.relay
    proven = amplified(survey) or "What that proves beyond the figures here is not known for this survey."
    return (
        f"A relay ({relay.host}) mixes submissions in batches of {relay.batch:,} or more. {proven} Every other "
        "figure is about what relay and collector see together of each device."
    )


_PERCENT = "\u00a0%"  # on the line of its number
STYLE = """
body{font:16px/1.5 system-ui,sans-serif;color:#1b2733;max-width:60rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;width:100%}th,td{border-bottom:1px solid #d9dee3;padding:.35rem .6rem;text-align:left;
vertical-align:top}code{overflow-wrap:anywhere}.cleared{color:#2b6b3a}.violated{color:#b3261e}.undecided{color:#8a5a00}
.verdict{font-size:1.3rem;font-weight:600}.sign{margin-top:3rem;display:grid;grid-template-columns:2fr 2fr 1fr;gap:2rem}
.sign div{border-top:1px solid #1b2733;padding-top:.3rem}.wide{overflow-x:auto}.risk td{white-space:nowrap}
figure{margin:1rem 0}figure>svg{width:100%;max-width:30rem;height:auto;font:12px system-ui,sans-serif}
svg text{fill:currentColor}figcaption{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;font-size:.85rem}
figcaption svg{width:1.4rem;height:.7rem;margin-right:.4rem}.own td{font-weight:600}
pre{border:1px solid #d9dee3;padding:.6rem;max-height:24rem;overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere;
font-size:.8rem}
@media screen and (prefers-color-scheme:dark){body{color:#e6e9ec;background:#14181c}th,td,pre{border-color:#333c45}
.cleared{color:#7fd18f}.violated{color:#ff8a80}.undecided{color:#f0c36d}.sign div{border-color:#e6e9ec}}
@media print{body{font-size:10pt;max-width:none;margin:0;padding:0}.wide{overflow:visible}.risk td{white-space:normal}
table{font-size:8.5pt}th,td{padding:.2rem .35rem}pre{max-height:none;font-size:7.5pt}tr,figure,.sign{break-inside:avoid}
h2,h3{break-after:avoid}}
"""


POLICY = (
    f"default-src 'none'; style-src 'sha256-{b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The server's security policy for the page: nothing is loaded, no script is run."""


def report_html(content: dict[str, Any], note: str = "") -> str:
    """The page: one file, nothing is loaded. `note` says who made it, if that matters."""
    found = content["audit"]
    rows = "".join(_row(question) for question in content["questions"])
    tested = "".join(_tested(question) for question in content["questions"])
    missing = "".join(f"<li>{_text(note)}</li>" for note in content["not_tested"])
    in_all = (
        "This survey is for files: it says nothing about how often a device answers."
        if content["lifetime"] is None
        else f"All that a device may ever send: {_text(content['lifetime'])}. The budget of its ledger is epsilon "
        f"{_text(content['budget'])}."
    )
    versions = ", ".join(f"{name} {number}" for name, number in content["versions"].items())
    seeded = "" if content["seed"] is None else f" --seed {content['seed']}"
    seed = "samples from the system's generator" if content["seed"] is None else f"samples of seed {content['seed']}"
    again = f"deniable audit survey.json --samples {content['samples']} --level {content['level']:g}{seeded}"
    risk = "".join(_risk(question) for question in content["questions"])
    data = json.dumps(content, ensure_ascii=False).replace("<", "\\u003c")
    words = str(found["words"])
    told = " ".join(content["promises"][name] for name in ("line", "guess", "sure"))
    written = _text(json.dumps(content["spec"], indent=1, ensure_ascii=False))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Audit of {_text(content["survey"])}</title><style>{STYLE}</style></head><body>
<h1>Audit of {_text(content["survey"])}</h1>
<p class="verdict {_text(found["verdict"])}">{_text(words[0].upper() + words[1:])}. {_text(content["summary"])}</p>
<p>Respondents read: {_text(told)}</p>
<p>{_text(". ".join(note[0].upper() + note[1:] for note in found["notes"]))}. {in_all} {_text(content["shuffler"])}</p>
<p>Fingerprint <code>{_text(content["fingerprint"])}</code>. Written {_text(content["written"])} with
{_text(versions)}, {seed}. The specification below, saved as survey.json, gives the same figures again:
<code>{_text(again)} --report audit.html</code></p>
{f"<p>{_text(note)}</p>" if note else ""}<h2>Questions</h2>
<div class="wide" role="region" aria-label="Verdicts by question" tabindex="0">
<table><thead><tr><th>question</th><th>protocol</th><th>verdict</th><th>exact epsilon</th>
<th>claim</th><th>best guess</th><th>one forged report outweighs</th></tr></thead><tbody>{rows}</tbody></table></div>
<p>The best guess is how often an attacker is right who sees one report, knows the protocol and holds every answer
equally likely beforehand; in brackets, without the report. A number counts as right within a tenth of its range; of
text one of two is guessed, and of a set whether one item is in it. Where no such figure is known, it is how sure
anybody becomes at most of one of two answers that were equally likely.</p>
<h2 id="risk">What it risks, and at other epsilons</h2>
<p>Sure is how sure anybody becomes at most of something that was as likely as not, or had one chance in ten. A guess
is among all answers; year and household are between two. The bold row is the question as it stands; the others are what
the planner would choose.</p>{risk}
<h2>What was tested</h2>{tested}
<h2>What was not tested</h2><ul>{missing}</ul>
<h2>Specification</h2><p>The survey as it is published:</p>
<pre role="region" aria-label="Specification" tabindex="0"><code>{written}</code></pre>
<div class="sign"><div>Reviewed by</div><div>Signature</div><div>Date</div></div>
<script type="application/json" id="audit">{data}</script>
</body></html>
"""


def _row(question: dict[str, Any]) -> str:
    found = question["audit"]
    exact = _number(found["exact"]) if found["exact"] is not None else f"at least {_number(found['lower'])}"
    blind = f" ({percent(question['blind_guess'])})" if question["blind_guess"] is not None else ""
    sure = f"between two at most {percent_up(question['sure_from_half'])} (50 %)".replace(" %", _PERCENT)
    guess = sure if question["guess"] is None else f"{percent(question['guess'])}{blind}".replace(" %", _PERCENT)
    moved = (
        "any number" if question["leverage"] is None else f"up to {three_digits_up(question['leverage'])} honest ones"
    )
    clear = f"<br>sent in clear: {_text(', '.join(question['clear']))}" if question["clear"] else ""
    return (
        f"<tr><td>{_text(question['text'])}<br><small>{_text(question['id'])}</small></td>"
        f"<td>{_text(question['protocol'])}{clear}</td>"
        f"<td class='{_text(found['verdict'])}'>{_text(found['verdict'])}, by {_text(found['method'])}</td>"
        f"<td>{exact}</td><td>{_number(found['epsilon'])}</td><td>{guess}</td><td>{moved}</td></tr>"
    )


def _tested(question: dict[str, Any]) -> str:
    """How one question was tested."""
    found = question["audit"]
    said = [] if found["pair"] is None else [f"told apart best: {found['pair'][0]} | {found['pair'][1]}"]
    said += [f"by: {found['event']}"] if found["event"] else []
    notes = "".join(f"<li>{_text(note)}</li>" for note in (*said, *found["notes"]))
    return f"<h3>{_text(question['text'])}</h3><p>{_text(found['words'])}</p><ul>{notes}</ul>"


def _risk(question: dict[str, Any]) -> str:
    """What one question risks: words, a picture and a table."""
    own = question["risk"]
    head = (
        *("epsilon", "protocol", "sure from 1/2", "from 1/10", "guess"),
        *("year, one report" if own["reports"] == 1 else f"year, {own['reports']:,} reports",),
        f"household of {own['household']:,}",
        f"error{' in ' if own['unit'] else ''}{own['unit']}, {own['people']:,} people",
        "one forged report outweighs",
    )
    rows = "".join(
        f"<tr{' class=own' if row['own'] else ''}>{''.join(f'<td>{_text(cell)}</td>' for cell in _cells(row))}</tr>"
        for row in own["rows"]
    )
    return (
        f"<h3>{_text(question['text'])}</h3><p>{_text(' '.join(own['words']))}</p>{_picture(own['rows'])}"
        f'<div class="wide risk" role="region" aria-label="Risk: {_text(question["text"])}" tabindex="0">'
        f"<table><thead><tr>{''.join(f'<th>{_text(name)}</th>' for name in head)}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _cells(row: dict[str, Any]) -> list[str]:
    def at_most(share: float) -> str:
        return percent(share) if row["exact"] else f"≤ {percent_up(share)}"

    several = ["-" if row[name] is None else at_most(row[name]) for name in ("year", "household")]
    return [
        f"{row['epsilon']:.4g}",
        row["protocol"],
        percent_up(row["sure_from_half"]),
        percent_up(row["sure_from_tenth"]),
        "-" if row["guess"] is None else percent(row["guess"]),
        *several,
        three_digits(row["error"]),
        "-" if row["leverage"] is None else three_digits_up(row["leverage"]),
    ]


_CURVES = (
    ("sure_from_half", "#2f6f9f", "sure at most, from 1/2"),
    ("sure_from_tenth", "#7aa6c8", "sure at most, from 1/10"),
    ("guess", "#5b8c3e", "best guess among all answers"),
    ("year", "#d08a2e", "between two, after a year"),
    ("household", "#9a4f6d", "between two, a household"),
)


def _picture(rows: Sequence[dict[str, Any]]) -> str:
    """What an attacker knows against epsilon, in percent."""
    low, high = (math.log(float(end)) for end in (LEVELS[0], LEVELS[-1]))

    def at(epsilon: float, share: float) -> str:
        x = 40 + 330 * (min(max(math.log(epsilon), low), high) - low) / (high - low)
        return f"{x:.1f},{190 - 170 * share:.1f}"

    lines: list[str] = []
    names: list[str] = []
    for key, color, name in _CURVES:
        points = [at(row["epsilon"], row[key]) for row in rows if row[key] is not None]
        if len(points) > 1:
            lines.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{color}" stroke-width="2"/>')
            names.append(
                f'<span><svg viewBox="0 0 20 10" aria-hidden="true"><line x1="0" x2="20" y1="5" y2="5" '
                f'stroke="{color}" stroke-width="3"/></svg>{name}</span>'
            )
    if not lines:
        return ""
    marks = "".join(
        f'<text x="{at(float(level), 0).split(",")[0]}" y="206" text-anchor="middle">{float(level):g}</text>'
        for level in LEVELS
    )
    grid = "".join(
        f'<line x1="40" x2="370" y1="{y}" y2="{y}" stroke="#8885"/>'
        f'<text x="34" y="{y + 4}" text-anchor="end">{share}</text>'
        for share, y in ((0, 190), (50, 105), (100, 20))
    )
    own = next(row["epsilon"] for row in rows if row["own"])
    here = at(own, 0).split(",")[0]
    return (
        '<figure><svg viewBox="0 0 380 226" role="img" aria-label="What an attacker knows in percent, against the '
        f'epsilon of one report">{grid}<line x1="{here}" x2="{here}" y1="20" y2="190" stroke="#888" '
        'stroke-dasharray="3 3"/>'
        f'{"".join(lines)}{marks}<text x="205" y="221" text-anchor="middle">epsilon of one report</text></svg>'
        f"<figcaption>{''.join(names)}</figcaption></figure>"
    )


def _number(value: float | str | None) -> str:
    return "infinite" if value == "inf" else f"{value:.6g}"


def _text(value: Any) -> str:
    return html.escape(str(value))
