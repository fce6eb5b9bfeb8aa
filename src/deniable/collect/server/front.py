"""The front page: who collects what, and where the specifications are. Plain HTML without scripts."""

from __future__ import annotations

from html import escape

from starlette.responses import Response

from deniable.collect.server.api import Answer, Call, Operation
from deniable.collect.server.pages import files
from deniable.collect.server.registry import Entry
from deniable.collect.server.surveys import listed

POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
MOST = 200


def page(entries: list[Entry], now: float, origin: str | None) -> str:
    sections = "".join(_section(entry, now) for entry in entries[:MOST])
    more = f"<p>And {len(entries) - MOST} more: see the list.</p>" if len(entries) > MOST else ""
    where = f"<p>Address: <code>{escape(origin)}</code></p>" if origin else ""
    content = f"{where}{sections or '<p>No survey is published yet.</p>'}{more}"
    return files().page("index", 0).plain.decode().replace("{surveys}", content)


def _section(entry: Entry, now: float) -> str:
    shown = listed(entry, now)
    facts = {
        "Who asks": shown.owner,
        "Why": shown.purpose,
        "State": f"{shown.state}, {shown.opens} to {shown.expires}",
        "Questions": "; ".join(question.text for question in entry.survey),
        "Privacy": f"epsilon {shown.epsilon} a submission, {shown.lifetime_epsilon} in all",
        "Kept": "sums only" if entry.terms.retention == "tally" else "the randomized reports",
    }
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts.items())
    rows += f"<dt>Fingerprint</dt><dd><code>{shown.fingerprint}</code></dd>"
    links = (
        f'<a href="s/{shown.fingerprint}">Answer</a> · <a href="dashboard/{shown.fingerprint}">Dashboard</a> · '
        f'<a href="v1/surveys/{shown.fingerprint}">Specification</a>'
    )
    return f'<section class="card"><h2>{escape(shown.name)}</h2><dl class="facts">{rows}</dl><p>{links}</p></section>'


async def front(call: Call) -> Response:
    service = call.service
    content = page(list(service.registry.entries.values()), service.now(), service.settings.origin)
    return Response(content, 200, {"Content-Security-Policy": POLICY}, "text/html")


OPERATIONS = (
    Operation(
        "GET",
        "/",
        "frontPage",
        "Who collects what, for people.",
        front,
        {200: Answer("A page.", {"text/html": {"type": "string"}})},
    ),
)
