"""The front page: who collects what, and where the specifications are. Plain HTML without scripts."""

from __future__ import annotations

from html import escape

from starlette.responses import Response

from deniable.channels.levels import epsilon_text
from deniable.collect.server.api import Answer, Call, Operation
from deniable.collect.server.pages import files
from deniable.collect.server.registry import Entry
from deniable.collect.server.surveys import Listed, listing
from deniable.surveys import Survey
from deniable.surveys.promises import band, kept, lifetime

POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
MOST = 200
PHASES = ("collecting", "waiting", "over", "closed")
"""Those that can be answered come first."""


def foremost(entries: list[Entry], now: float) -> list[Entry]:
    return sorted(entries, key=lambda entry: (PHASES.index(entry.phase(now)), entry.survey.name))[:MOST]


def page(entries: list[Entry], shown: list[Listed], hidden: int, origin: str | None) -> str:
    """A section for each of these surveys, of which there are `hidden` more."""
    sections = "".join(map(_section, entries, shown))
    more = f'<p>And {hidden} more: see <a href="v1/surveys">the list of all</a>.</p>' if hidden > 0 else ""
    where = f"<p>Address: <code>{escape(origin)}</code></p>" if origin else ""
    content = f"{where}{sections or '<p>No survey is published yet.</p>'}{more}"
    return files().page("index", 0).plain.decode().replace("{surveys}", content)


def _section(entry: Entry, shown: Listed) -> str:
    facts = {
        "Who asks": escape(shown.owner),
        "Why": escape(shown.purpose),
        "Questions": _questions([question.text for question in entry.survey]),
        "Privacy": f"epsilon {epsilon_text(entry.survey.epsilon)} a submission, "
        f"{_in_all(entry.survey)}; protection: {band(entry.survey)}",
        "Kept": escape(kept(entry.survey)),
        "Fingerprint": f"<code>{shown.fingerprint}</code>",
    }
    if shown.replaced_by is not None:
        facts["Replaced by"] = f'<a href="s/{shown.replaced_by}"><code>{shown.replaced_by[:12]}</code></a>'
    rows = "".join(f"<dt>{name}</dt><dd>{content}</dd>" for name, content in facts.items())
    return (
        f'<section class="card"><h2>{escape(shown.name)}</h2>{_state(shown)}<dl class="facts">{rows}</dl>'
        f'<p class="row">{_links(shown)}</p></section>'
    )


def _in_all(survey: Survey) -> str:
    level = survey.lifetime_epsilon
    return lifetime(survey) if level is None else f"{epsilon_text(level)} in all"


def _questions(texts: list[str]) -> str:
    return escape(texts[0]) if len(texts) == 1 else f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"


def _state(shown: Listed) -> str:
    words = {
        "collecting": f"{'Open until' if shown.open else 'This period is closed; the survey ends:'} "
        f"{_moment(shown.expires)}",
        "waiting": f"Not open yet: opens on {_moment(shown.opens)}",
        "over": f"Over since {_moment(shown.expires)}",
        "closed": "Closed by its owner",
    }
    return f'<p class="state{" on" if shown.open else ""}">{words[shown.state]}</p>'


def _moment(text: str) -> str:
    """A time of a spec as people write it.

    >>> _moment("2026-11-01T00:00:00Z"), _moment("2026-11-01T09:30:00Z")
    ('2026-11-01', '2026-11-01 09:30 UTC')
    """
    day, _, time = text.partition("T")
    return day if time == "00:00:00Z" else f"{day} {time[:5]} UTC"


def _links(shown: Listed) -> str:
    """Only a survey that takes reports of this period can be answered."""
    answer = f'<a class="button" href="s/{shown.fingerprint}">Answer</a>' if shown.open else ""
    return (
        f'{answer}<a href="dashboard/{shown.fingerprint}">Dashboard</a>'
        f'<a href="v1/surveys/{shown.fingerprint}">Specification</a>'
    )


async def front(call: Call) -> Response:
    service, now = call.service, call.service.now()
    entries = list(service.registry.entries.values())
    first = foremost(entries, now)
    shown = await listing(service, first, now)
    content = page(first, shown, len(entries) - len(first), service.settings.origin)
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
