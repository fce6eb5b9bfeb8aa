"""Pages for people, and the files that they are made of.

Front      who collects what, and where the specifications are: plain HTML without scripts
Policy     everything comes from this server, there are no inline scripts or styles, and no page may be framed, except
           public results, which any site may show, and the preview of a survey, which the builder shows
Caching    the path of the files contains a hash of all of them, so they never change; "current" is for sites that
           embed a survey, and is requested again each time
Size       each file is compressed once and held in memory
Loading    a page names all modules that it will import, so that they are fetched in parallel
Audit      a reviewer's view of a survey, computed once, in its own process: `surveys.audit_report`
Unknown    for unknown addresses people get an error page, and programs a problem document
Place      the folder `web` of the package, or of the repository if the package is installed editable; the words of each
           language are those that Python reads, too
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from posixpath import normpath

from starlette.responses import Response
from starlette.types import Receive, Scope

import deniable
from deniable import words
from deniable.audit.verdict import EXIT_CODES
from deniable.collect.server.api import Answer, Call, Handler, Operation, Parameter, Resource
from deniable.collect.server.problems import Problem, header, overloaded
from deniable.collect.server.registry import Entry
from deniable.collect.server.service import Service
from deniable.collect.server.surveys import IMMUTABLE, Listed, listing
from deniable.errors import DeniableError
from deniable.exact import epsilon_text
from deniable.surveys import Survey
from deniable.surveys.audit_report import POLICY as AUDIT_POLICY, report_html
from deniable.surveys.promises import band, kept, lifetime
from deniable.surveys.terms import PUBLIC

POLICY = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors {framed}; object-src 'none'"
ALONE = POLICY.format(framed="'none'")
CURRENT = "current"
TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".html": "text/html",
    ".json": "application/json",
}
WORDS = "words"
FOLDERS = ("", "pages", "vendor", WORDS)
SDK = "deniable.js"
DEEPEST = 8
"""Number of slashes in an address up to which relative links are written."""
HERE = Path(deniable.__file__).parent
_SCRIPT = re.compile(r'<script type="module" src="{web}/([^"]+)"')
_IMPORT = re.compile(r'^(?:import|export) .*from "(\.[^"]+)";$', re.MULTILINE)
FRONT_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
MOST = 200
PHASES = ("collecting", "waiting", "over", "closed")
"""Surveys that can be answered come first."""


@dataclass(frozen=True)
class File:
    """One file, ready to send."""

    kind: str
    plain: bytes
    packed: bytes
    tag: str

    @classmethod
    def of(cls, content: bytes, suffix: str) -> File:
        tag = hashlib.sha256(content).hexdigest()[:32]
        return cls(TYPES[suffix], content, gzip.compress(content, 9, mtime=0), tag)

    def response(self, call: Call, headers: dict[str, str]) -> Response:
        packed = b"gzip" in header(call.headers, b"accept-encoding")
        tag = f'"{self.tag}{"-gz" if packed else ""}"'
        headers = headers | {"ETag": tag, "Vary": "Accept-Encoding"}
        if tag.encode() in header(call.headers, b"if-none-match"):
            return Response(None, 304, headers)
        if packed:
            return Response(self.packed, 200, headers | {"Content-Encoding": "gzip"}, self.kind)
        return Response(self.plain, 200, headers, self.kind)


@dataclass(frozen=True)
class Files:
    """Everything that is served, by folder and name."""

    version: str
    files: dict[str, File]

    @classmethod
    def read(cls, root: Path) -> Files:
        found = {}
        for folder in FOLDERS:
            for path in sorted((words.HERE if folder == WORDS else root / folder).iterdir()):
                if path.suffix in TYPES and (folder or path.name == SDK):
                    content = words.with_names(path) if folder == WORDS else path.read_bytes()
                    found[f"{folder}/{path.name}" if folder else path.name] = File.of(content, path.suffix)
        hashed = hashlib.sha256("".join(f"{name} {file.tag}\n" for name, file in found.items()).encode())
        return cls(hashed.hexdigest()[:16], found)

    def page(self, name: str, depth: int) -> File:
        """A page for a path with `depth` slashes before its last part."""
        up = "../" * depth
        text = self.files[f"pages/{name}.html"].plain.decode()
        preload = "\n".join(f'<link rel="modulepreload" href="{{web}}/{name}">' for name in self.modules(text))
        text = text.replace("{preload}", preload)
        text = text.replace("{web}", f"{up}web/{self.version}").replace("{root}", up or "./")
        return File.of(text.encode(), ".html")

    def modules(self, page: str) -> list[str]:
        """Every module that the page's scripts import, directly or through others."""
        found: list[str] = []
        waiting = _SCRIPT.findall(page)
        while waiting:
            name = waiting.pop(0)
            if name not in found:
                found.append(name)
                text = self.files[name].plain.decode()
                waiting += [normpath(f"{name}/../{target}") for target in _IMPORT.findall(text)]
        return found


def web_folder() -> Path:
    """Where the files are."""
    for folder in (HERE / "web", HERE.parent.parent / "web"):
        if (folder / "pages").is_dir():
            return folder
    raise DeniableError("the files of the pages are not installed: install the wheel of deniable again")


@cache
def files() -> Files:
    return Files.read(web_folder())


@cache
def _page(name: str, depth: int) -> File:
    return files().page(name, depth)


def _handler(name: str, depth: int) -> Handler:
    async def handle(call: Call) -> Response:
        headers = {
            "Content-Security-Policy": POLICY.format(framed=_frames(name, call)) + _other_sources(call),
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cache-Control": "no-cache",
        }
        return _page(name, depth).response(call, headers)

    return handle


def _frames(name: str, call: Call) -> str:
    """Who may show the page in a frame: nobody, but of public results everybody, and of a preview the builder."""
    if name == "preview":
        return "'self'"
    entry = call.service.registry.get(call.path.get("survey", "")) if name == "results" else None
    return "*" if entry is not None and entry.terms.results == PUBLIC else "'none'"


def _other_sources(call: Call) -> str:
    """The relay, or the collectors, of the survey on this page: origins that the page may send to."""
    entry = call.service.registry.get(call.path.get("survey", ""))
    if entry is None:
        return ""
    addresses = (*entry.terms.collectors, *([] if entry.terms.relay is None else [entry.terms.relay.address]))
    origins = dict.fromkeys("/".join(address.split("/")[:3]) for address in addresses)
    return f"; connect-src 'self' {' '.join(origins)}" if origins else ""


def _file(folder: str) -> Handler:
    async def handle(call: Call) -> Response:
        version, name = call.path["version"], call.path["file"]
        known = files()
        file = known.files.get(f"{folder}/{name}" if folder else name)
        if file is None or version not in (CURRENT, known.version) or file.kind == TYPES[".html"]:
            raise Problem("notFound", "there is no such file in this version: load the page again")
        return file.response(call, {"Cache-Control": "no-cache" if version == CURRENT else IMMUTABLE})

    return handle


class Lost(Resource):
    """Every path that is not in the tables: a page for people, a problem document for programs."""

    def __init__(self, service: Service) -> None:
        super().__init__(service, ())

    async def _answer(self, operation: Operation | None, scope: Scope, receive: Receive) -> Response:
        first, *rest = scope["path"].removeprefix("/").split("/")
        asked = b"text/html" in header(scope["headers"], b"accept") and scope["method"] in ("GET", "HEAD")
        if not asked or first == "v1" or len(rest) > DEEPEST:
            raise Problem("notFound", "look at /openapi.json for what there is")
        headers = {"Content-Security-Policy": ALONE, "Vary": "Accept"}
        return Response(_page("nothing", len(rest)).plain, 404, headers, "text/html")


def _page_operation(path: str, name: str, file: str, help: str) -> Operation:
    parameters: tuple[Parameter, ...] = ()
    if "{survey}" in path:
        parameters = (Parameter("survey", {"type": "string", "minLength": 1, "maxLength": 200}, "a fingerprint"),)
    if file in ("survey", "dashboard", "results", "new"):
        parameters += (Parameter("lang", {"type": "string", "maxLength": 35}, "the language of the page, such as de"),)
    return Operation(
        "GET",
        path,
        name,
        help,
        _handler(file, path.count("/") - 1),
        {
            200: Answer("A page.", {"text/html": {"type": "string"}}, {"ETag": "A hash of the page."}),
            304: Answer("The page has not changed."),
        },
        problems=("notFound",) if parameters else (),
        parameters=parameters,
    )


def _file_operation(folder: str) -> Operation:
    return Operation(
        "GET",
        f"/web/{{version}}/{folder}{'/' if folder else ''}{{file}}",
        f"get{folder.capitalize() or 'Web'}File",
        "A file of the pages. Sites that embed a survey load pages/embed.js of the version current.",
        _file(folder),
        {
            200: Answer(
                "The file.",
                {kind: {"type": "string"} for kind in TYPES.values() if kind != TYPES[".html"]},
                {"ETag": "A hash of the file."},
            ),
            304: Answer("The file has not changed."),
        },
        problems=("notFound",),
        parameters=(
            Parameter("version", {"type": "string", "pattern": "^(current|[0-9a-f]{16})$"}, "a hash, or current"),
            Parameter("file", {"type": "string", "pattern": r"^[A-Za-z][A-Za-z.-]{0,60}$"}, "a name of letters"),
        ),
        public=True,
    )


# -- the front page ---------------------------------------------------------------------------------


def foremost(entries: list[Entry], now: float) -> list[Entry]:
    return sorted(entries, key=lambda entry: (PHASES.index(entry.phase(now)), entry.survey.name))[:MOST]


def front_page(entries: list[Entry], shown: list[Listed], hidden: int, origin: str | None) -> str:
    """One section for each of these surveys; `hidden` is the number of surveys not shown."""
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
        "Privacy": f"epsilon {epsilon_text(entry.survey.epsilon)} per submission, "
        f"{_in_all(entry.survey)}; protection: {band(entry.survey)}",
        "Kept": escape(kept(entry.survey)),
        "Fingerprint": f"<code>{shown.fingerprint}</code>",
    }
    if shown.round is not None:
        facts["Round"] = f"{shown.round} of {shown.rounds}: a device answers one round"
    if shown.next_round is not None:
        facts["Next round"] = f'<a href="s/{shown.next_round}"><code>{shown.next_round[:12]}</code></a>'
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
    told = {
        "collecting": f"{'Open until' if shown.open else 'This period is closed; the survey ends:'} "
        f"{_moment(shown.expires)}",
        "waiting": f"Not open yet: opens on {_moment(shown.opens)}",
        "over": f"Over since {_moment(shown.expires)}",
        "closed": "Closed by its owner",
    }
    return f'<p class="state{" on" if shown.open else ""}">{told[shown.state]}</p>'


def _moment(text: str) -> str:
    """A time of a spec in the form that people write.

    >>> _moment("2026-11-01T00:00:00Z"), _moment("2026-11-01T09:30:00Z")
    ('2026-11-01', '2026-11-01 09:30 UTC')
    """
    day, _, time = text.partition("T")
    return day if time == "00:00:00Z" else f"{day} {time[:5]} UTC"


def _links(shown: Listed) -> str:
    """Only a survey that accepts reports now can be answered."""
    answer = f'<a class="button" href="s/{shown.fingerprint}">Answer</a>' if shown.open else ""
    results = f'<a href="r/{shown.fingerprint}">Results</a>' if shown.results == PUBLIC else ""
    return (
        f'{answer}{results}<a href="dashboard/{shown.fingerprint}">Dashboard</a>'
        f'<a href="v1/surveys/{shown.fingerprint}">Specification</a><a href="audit/{shown.fingerprint}">Audit</a>'
    )


async def front(call: Call) -> Response:
    service, now = call.service, call.service.now()
    entries = list(service.registry.entries.values())
    first = foremost(entries, now)
    shown = await listing(service, first, now)
    content = front_page(first, shown, len(entries) - len(first), service.settings.origin)
    return Response(content, 200, {"Content-Security-Policy": FRONT_POLICY}, "text/html")


AUDIT_SAMPLES, AUDIT_SECONDS, AUDIT_PATIENCE = 2_000, 300.0, 20.0
"""Samples per input, for protocols that are audited by sampling; seconds for an audit, and for a visitor's wait."""
MADE_HERE = (
    "This page was made by the service that collects the reports, with the software that it runs. Whoever does not "
    "want to trust it saves the specification and makes the page again: deniable audit survey.json --report audit.html."
)


_IN_THE_BACK = (
    "import os, runpy; hasattr(os, 'nice') and os.nice(10); runpy.run_module('deniable', run_name='__main__')"
)


async def audited(call: Call) -> Response:
    service = call.service
    if not service.settings.plans:
        raise Problem("notFound", "this service makes no audits: deniable audit survey.json makes the same page")
    entry = await service.registry.find(call.path["survey"])

    def work() -> bytes:
        found = _aside(["audit", "-", "--json", "--samples", str(AUDIT_SAMPLES)], entry.canonical, service)
        return report_html(json.loads(found), MADE_HERE).encode()

    try:
        content = await asyncio.wait_for(service.audits.answer(entry.fingerprint, work), AUDIT_PATIENCE)
    except TimeoutError:  # the work goes on, and its result is cached
        raise overloaded("this audit is still being made: load the page again in a minute", 30.0) from None
    return Response(content, 200, {"Content-Security-Policy": AUDIT_POLICY, "Cache-Control": "no-cache"}, "text/html")


def _aside(arguments: list[str], given: bytes, service: Service) -> bytes:
    """The output of a command, run in its own process with a low priority and ended when the service ends."""
    command = [sys.executable, "-c", _IN_THE_BACK, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        waited, sent = 0.0, given
        while waited < AUDIT_SECONDS and not service.stopping:
            try:
                printed, _ = running.communicate(sent, timeout=0.25)
            except subprocess.TimeoutExpired:
                waited, sent = waited + 0.25, b""
                continue
            if running.returncode in EXIT_CODES.values():
                return printed
            break
        running.kill()
    raise overloaded("the audit could not be made here: deniable audit survey.json makes the same page")


OPERATIONS = (
    Operation(
        "GET",
        "/",
        "frontPage",
        "Who collects what, for people.",
        front,
        {200: Answer("A page.", {"text/html": {"type": "string"}})},
    ),
    _page_operation("/s/{survey}", "surveyPage", "survey", "A form that answers the survey of this fingerprint."),
    _page_operation("/r/{survey}", "resultsPage", "results", "The results of a survey that makes them public."),
    _page_operation("/dashboard", "dashboardPage", "dashboard", "What was collected, for analysts with a token."),
    _page_operation("/dashboard/{survey}", "surveyDashboardPage", "dashboard", "The same for one survey."),
    _page_operation("/new", "newPage", "new", "The survey builder, for operators."),
    _page_operation("/new/preview", "previewPage", "preview", "A survey before it is published, inside the builder."),
    _page_operation("/plan", "planPage", "new", "The planner, a part of the builder."),
    Operation(
        "GET",
        "/audit/{survey}",
        "auditPage",
        "The audit of the survey and what it risks, for people and reviewers.",
        audited,
        {200: Answer("A page.", {"text/html": {"type": "string"}})},
        problems=("notFound", "unknownSurvey", "surveyDeleted", "overloaded"),
        parameters=(Parameter("survey", {"type": "string", "pattern": "^[0-9a-f]{64}$"}, "a fingerprint"),),
    ),
    *(_file_operation(folder) for folder in FOLDERS),
)
