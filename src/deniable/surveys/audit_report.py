"""The audit of a survey as one page that a reviewer can sign, and as JSON.

Contents   the survey and its fingerprint; the exact epsilon of each question and of all; what a device gives away over
           its lifetime; how often the best guess of an answer is right; what a forged report outweighs; what was
           tested, how, and what was not; versions
"""

from __future__ import annotations

import html
import json
import platform
import time
from typing import Any

import numpy as np

from deniable.exact import epsilon_text
from deniable.privacy.audit import Audit
from deniable.surveys.promises import lifetime
from deniable.surveys.survey import Survey
from deniable.surveys.terms import write_time

NOT_TESTED = (
    "the device's operating system, its source of randomness and its clock",
    "whether the software on devices is this one",
    "what the connection of a device gives away, such as its address",
    "whether people answer truthfully",
)


def reviewed(survey: Survey, found: Audit, version: str) -> dict[str, Any]:
    """Everything that the page says, as JSON values; `version` is that of this package."""
    questions = []
    for question, part in zip(survey, found.parts, strict=True):
        protocol = question.protocol
        size = getattr(protocol.domain, "size", None)
        questions.append(
            {
                "id": question.id,
                "text": question.text,
                "protocol": protocol.name,
                "fingerprint": protocol.fingerprint,
                "guess": protocol.attack,
                "blind_guess": 1 / size if isinstance(size, int) and size > 0 else None,
                "leverage": protocol.leverage,
                "clear": list(protocol.clear),
                "audit": part.to_dict(),
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
        "lifetime": None if terms is None else lifetime(survey),
        "budget": None if terms is None else epsilon_text(terms.budget.epsilon),
        "shuffler": "no shuffler is assumed: every figure is about what the collector sees of each device",
        "not_tested": list(NOT_TESTED),
        "written": write_time(int(time.time())),
        "versions": {"deniable": version, "python": platform.python_version(), "numpy": np.__version__},
    }


_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;color:#1b2733;max-width:60rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;width:100%}th,td{border-bottom:1px solid #d9dee3;padding:.35rem .6rem;text-align:left;
vertical-align:top}code{overflow-wrap:anywhere}.cleared{color:#2b6b3a}.violated{color:#b3261e}.undecided{color:#8a5a00}
.verdict{font-size:1.3rem;font-weight:600}.sign{margin-top:3rem;display:grid;grid-template-columns:1fr 1fr;gap:2rem}
.sign div{border-top:1px solid #1b2733;padding-top:.3rem}
@media(prefers-color-scheme:dark){body{color:#e6e9ec;background:#14181c}th,td{border-color:#333c45}
.cleared{color:#7fd18f}.violated{color:#ff8a80}.undecided{color:#f0c36d}.sign div{border-color:#e6e9ec}}
"""


def report_html(content: dict[str, Any]) -> str:
    """The page: one file, nothing is loaded."""
    found = content["audit"]
    rows = "".join(_row(question) for question in content["questions"])
    notes = [note for question in content["questions"] for note in question["audit"]["notes"]]
    tested = "".join(f"<li>{_text(note)}</li>" for note in dict.fromkeys([*found["notes"], *notes]))
    missing = "".join(f"<li>{_text(note)}</li>" for note in content["not_tested"])
    in_all = (
        "This survey is for files: it says nothing about how often a device answers."
        if content["lifetime"] is None
        else f"All that a device may ever send: {_text(content['lifetime'])}. The budget of its ledger is epsilon "
        f"{_text(content['budget'])}."
    )
    exact = _number(found["exact"]) if found["exact"] is not None else f"at least {_number(found['lower'])}"
    versions = ", ".join(f"{name} {number}" for name, number in content["versions"].items())
    data = json.dumps(content, ensure_ascii=False).replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Audit of {_text(content["survey"])}</title><style>{_STYLE}</style></head><body>
<h1>Audit of {_text(content["survey"])}</h1>
<p class="verdict {_text(found["verdict"])}">{_text(found["verdict"]).capitalize()}: epsilon {exact}, claimed
{_number(found["epsilon"])}</p>
<p>Fingerprint <code>{_text(content["fingerprint"])}</code>. Written {_text(content["written"])} with
{_text(versions)}.</p>
<p>{in_all} {_text(content["shuffler"]).capitalize()}.</p>
<h2>Questions</h2>
<table><thead><tr><th>question</th><th>protocol</th><th>verdict</th><th>epsilon, claimed</th><th>best guess</th>
<th>one forged report outweighs</th></tr></thead><tbody>{rows}</tbody></table>
<p>The best guess is how often an attacker is right who sees one report, knows the protocol and holds every answer
equally likely beforehand; in brackets, without the report.</p>
<h2>What was tested</h2><ul>{tested}</ul>
<h2>What was not tested</h2><ul>{missing}</ul>
<h2>Specification</h2><details><summary>the survey as it is published</summary>
<pre><code>{_text(json.dumps(content["spec"], indent=1, ensure_ascii=False))}</code></pre></details>
<div class="sign"><div>Reviewed by</div><div>Date</div></div>
<script type="application/json" id="audit">{data}</script>
</body></html>
"""


def _row(question: dict[str, Any]) -> str:
    found = question["audit"]
    exact = _number(found["exact"]) if found["exact"] is not None else f"at least {_number(found['lower'])}"
    blind = f" ({question['blind_guess']:.1%})" if question["blind_guess"] is not None else ""
    guess = "not computed" if question["guess"] is None else f"{question['guess']:.1%}{blind}"
    moved = "not computed" if question["leverage"] is None else f"{question['leverage']:.3g} honest ones"
    clear = f"<br>sent in clear: {_text(', '.join(question['clear']))}" if question["clear"] else ""
    return (
        f"<tr><td>{_text(question['text'])}<br><small>{_text(question['id'])}</small></td>"
        f"<td>{_text(question['protocol'])}{clear}</td>"
        f"<td class='{_text(found['verdict'])}'>{_text(found['verdict'])}, by {_text(found['method'])}</td>"
        f"<td>{exact}, {_number(found['epsilon'])}</td><td>{guess}</td><td>{moved}</td></tr>"
    )


def _number(value: float | str | None) -> str:
    return "infinite" if value == "inf" else f"{value:.6g}"


def _text(value: Any) -> str:
    return html.escape(str(value))
