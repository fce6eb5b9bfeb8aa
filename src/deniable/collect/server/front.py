"""The front page: who collects what, and where the specifications are. Plain HTML without scripts."""

from __future__ import annotations

import base64
import hashlib
from html import escape

from starlette.responses import Response

from deniable.collect.server.api import Answer, Call, Operation
from deniable.collect.server.registry import Entry
from deniable.collect.server.surveys import listed

STYLE = (
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "section{border-top:1px solid;padding:1rem 0}dt{font-weight:600}dd{margin:0 0 .5rem}code{overflow-wrap:anywhere}"
)
_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
MOST = 200


def page(entries: list[Entry], now: float, origin: str | None) -> str:
    sections = "".join(_section(entry, now) for entry in entries[:MOST])
    more = f"<p>And {len(entries) - MOST} more: see the list.</p>" if len(entries) > MOST else ""
    where = f"<p>Address: <code>{escape(origin)}</code></p>" if origin else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Surveys collected here</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{STYLE}</style></head><body><main><h1>Surveys collected here</h1>"
        "<p>Answers are randomized on the device of whoever gives them, before they are sent. This service adds up the "
        "randomized answers and cannot tell what anybody said. It keeps no addresses.</p>"
        f"{where}{sections or '<p>No survey is published yet.</p>'}{more}"
        '<footer><p><a href="v1/surveys">All surveys</a>, <a href="openapi.json">interface</a></p></footer>'
        "</main></body></html>\n"
    )


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
    link = f'<a href="v1/surveys/{shown.fingerprint}">specification</a> <code>{shown.fingerprint}</code>'
    return f"<section><h2>{escape(shown.name)}</h2><dl>{rows}</dl><p>{link}</p></section>"


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
