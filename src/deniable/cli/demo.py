"""`deniable demo`: a sensitive survey collected over HTTP on this machine, and what the crowd really answered.

Data       6,366 real answers to questions that nobody likes to answer: the survey of extramarital affairs that
           *Redbook* magazine held in 1974, as used by Fair, "A Theory of Extramarital Affairs", Journal of Political
           Economy 86 (1978); counted from the table that statsmodels bundles as `statsmodels.datasets.fair`
Service    a separate process, on an embedded store in its own directory
Bars       solid up to where the interval begins, shaded where the truth may lie
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from deniable._extras import require
from deniable.cli import output
from deniable.cli.load_survey import epsilon_words
from deniable.cli.options import Json, Seed, bits_from, new_app, option
from deniable.cli.output import examples, heading, prose, shown, table
from deniable.collect.analyst import Analyst
from deniable.collect.crowd import send_crowd
from deniable.collect.stores import open_store
from deniable.collect.stores.base import Token
from deniable.collect.wire import hashed, new_token
from deniable.errors import DeniableError, NumberError
from deniable.protocols import Estimate
from deniable.protocols.traits import says
from deniable.surveys import Survey

app = new_app()

LEVEL = 0.95
PATIENCE = 60.0
"""Seconds within which the service must be ready."""

_FEWEST, _MOST = 100, 6366


@app.command(
    epilog=examples(
        "deniable demo                    ends by itself in a pipe; on a terminal it goes on serving",
        "deniable demo --once             ends by itself",
        "deniable demo --people 1000      fewer people, wider error bars",
    )
)
def demo(
    people: Annotated[
        int, option("N", "How many of the 6366 people answer.", default=True, min=_FEWEST, max=_MOST)
    ] = _MOST,
    once: Annotated[bool, typer.Option("--once", help="End when the table is shown.")] = False,
    port: Annotated[int | None, option("PORT", "Where the service listens.", default="any free port")] = None,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Collect a real survey on this machine, as an example.

    Starts the service on an embedded store, publishes two questions, and lets thousands of simulated devices answer
    them over HTTP with the answers of a real survey. Then compares what the analyst sees with the truth.
    """
    require("starlette", "serve")
    require("uvicorn", "serve")
    if people < _FEWEST:
        raise NumberError(f"--people is at least {_FEWEST}")
    bits = bits_from(seed)
    survey, answers = demo_survey(), demo_answers(people)
    with tempfile.TemporaryDirectory(prefix="deniable-demo-") as directory:
        survey_file = Path(directory) / "survey.json"
        survey.save(survey_file)
        with running(Path(directory), survey, port) as service:
            if not as_json:
                _promise(survey, service.address)
            with _progress(people, quiet=as_json) as advance:
                crowd = send_crowd(service.address, survey, answers, bits, progress=advance)
            with Analyst(service.address, service.analyst) as analyst:
                tally = analyst.tally(survey)
            estimates = {q.id: q.protocol.estimate(tally[q.id]) for q in survey}
            truth = {id: _shares(estimates[id], answers[id]) for id in answers}
            if as_json:
                output.document(_document(survey, estimates, truth, crowd[0].body))
                return
            _captured(survey, crowd[0].answers, crowd[0].body)
            _results(survey, estimates, truth)
            if not once and sys.stdout.isatty() and not os.environ.get("CI"):
                _keep_serving(survey, survey_file, service)
            else:
                _next_steps()


def _shares(estimate: Estimate, answers: list[str]) -> Any:
    """The true share of each answer."""
    return np.array([answers.count(str(label)) for label in estimate.labels]) / len(answers)


# -- what is shown -------------------------------------------------------------------------------------


def _promise(survey: Survey, address: str) -> None:
    output.styled("Learn what a crowd thinks without learning what anyone said", "bold")
    output.write("\n")
    heading("1. The survey, published on this machine")
    output.facts(
        [
            ("service", address),
            ("survey", f"{survey.name}: {', '.join(question.text for question in survey)}"),
            ("fingerprint", survey.fingerprint),
            *((f"epsilon {q.id}", epsilon_words(Survey.of(q.protocol))) for q in survey),
            ("epsilon in all", epsilon_words(survey)),
        ]
    )
    output.write("\n")
    each = float(survey.questions[0].protocol.ratio)
    prose(
        f"The promise: whatever you answer, anyone's odds about an answer of yours change by at most a factor of "
        f"{each:.2f} (both answers together: {float(survey.ratio):.2f}). It is computed from the integers that the "
        "device compares its random words with, and devices refuse any survey whose bytes have another fingerprint."
    )
    output.write("\n")


def _captured(survey: Survey, answers: Any, body: bytes) -> None:
    heading("2. One report, caught on the wire")
    head, id, raw = body[:8], body[8:24], body[24:]
    output.facts(
        [
            ("on the device", ", ".join(f"{key} = {shown(value)}" for key, value in answers.items())),
            ("left the device", f"{len(body)} bytes: {body.hex()}"),
            ("  header", f'{head.hex()}  "DNR1" and epoch {int.from_bytes(head[4:], "little")}'),
            ("  id", f"{id.hex()}  random, so that a repeat is not counted twice"),
            ("  answers", f"{raw.hex()}  {_spoken(survey, raw)}"),
        ]
    )
    output.write("\n")
    prose("That is all that anybody but this person ever sees, and it may be a lie.")
    output.write("\n")


def _spoken(survey: Survey, raw: bytes) -> str:
    """What the bytes mean, if a report names an answer."""
    said, at = [], 0
    for question in survey:
        width = question.protocol.report_bytes
        part, at = raw[at : at + width], at + width
        said.append(f"{question.id} = {shown(says(question.protocol, part))}")
    return ", ".join(said)


def _results(survey: Survey, estimates: dict[str, Estimate], truth: dict[str, Any]) -> None:
    heading("3. What the analyst sees, beside the truth")
    inside, total = 0, 0
    for question in survey:
        estimate, shares = estimates[question.id], truth[question.id]
        ends = estimate.interval(LEVEL, population=False)
        errors = estimate.errors(population=False)
        rows = [
            [
                shown(label),
                f"{shares[i]:.1%}",
                f"{estimate.frequencies[i]:.1%}",
                f"{errors[i]:.2%}",
                f"{ends[i, 0]:.1%} to {ends[i, 1]:.1%}",
            ]
            for i, label in enumerate(estimate.labels)
        ]
        output.write(f"{question.text} ({question.protocol.name}, n = {estimate.n:,})\n\n")
        table(["answer", "truth", "estimate", "stderr", f"{LEVEL:.0%} interval"], rows)
        output.write("\n")
        chart(
            [
                (
                    shown(label),
                    [
                        Bar("truth", float(shares[i]), "bright_black"),
                        Bar(
                            "estimate",
                            float(estimate.frequencies[i]),
                            "bright_blue",
                            (float(ends[i, 0]), float(ends[i, 1])),
                        ),
                    ],
                )
                for i, label in enumerate(estimate.labels)
            ]
        )
        output.write("\n")
        inside += int(((ends[:, 0] <= shares) & (shares <= ends[:, 1])).sum())
        total += len(shares)
    prose(
        f"{inside} of {total} intervals contain the truth; each misses it in one run of 20, by chance. They are about "
        "the shares among those who answered; for a population they would be a little wider. The truth is "
        "known here because the answers come from a survey that was held in the open (Redbook, 1974); the service "
        "never had them."
    )
    output.write("\n")


def _keep_serving(survey: Survey, survey_file: Path, service: DemoService) -> None:
    heading("Still serving: try it, and end with Ctrl-C")
    output.facts(
        [
            ("answer the survey", f"{service.address}/s/{survey.fingerprint}"),
            ("dashboard", f"{service.address}/dashboard/{survey.fingerprint}"),
            ("planner", f"{service.address}/plan"),
            ("API", f"{service.address}/openapi.json"),
            ("analyst's token", service.analyst),
            ("admin's token", service.admin),
        ]
    )
    output.write(f"\n  deniable answer {service.address} {survey.fingerprint}\n")
    output.write(f"  DENIABLE_TOKEN={service.analyst} deniable estimate {survey_file} --from {service.address}\n")
    sys.stdout.flush()
    try:
        service.wait()
    except KeyboardInterrupt:
        output.write("\nstopped\n")


def _next_steps() -> None:
    heading("What to try next")
    steps = [
        ("deniable demo", "on a terminal: the same, and it goes on serving"),
        ("deniable demo --people 1000", "fewer people, wider error bars"),
        ("deniable plan --categories 1000 --epsilon 1 --people 200000", "which protocol for a thousand answers"),
        ("deniable serve --help", "collect for real"),
    ]
    width = max(len(command) for command, _ in steps)
    for command, purpose in steps:
        output.write(f"  {command:<{width}}  {purpose}\n")


def _document(survey: Survey, estimates: dict[str, Estimate], truth: dict[str, Any], body: bytes) -> dict[str, Any]:
    questions = []
    for question in survey:
        estimate = estimates[question.id]
        questions.append(
            {
                "id": question.id,
                "n": estimate.n,
                "labels": [shown(label) for label in estimate.labels],
                "truth": truth[question.id].tolist(),
                "estimate": estimate.frequencies.tolist(),
                "level": LEVEL,
                "interval": estimate.interval(LEVEL, population=False).tolist(),
                "population": False,
            }
        )
    return {
        "survey": survey.fingerprint,
        "epsilon": str(survey.epsilon),
        "realized_epsilon": survey.realized_epsilon,
        "captured": body.hex(),
        "questions": questions,
    }


@contextmanager
def _progress(people: int, quiet: bool) -> Iterator[Callable[[int], None] | None]:
    """A bar on a terminal; in a pipe one line when it is done."""
    if quiet:
        yield None
        return
    if not sys.stdout.isatty():
        yield None
        output.write(f"{people:,} simulated devices answered, each by a request of its own.\n\n")
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("devices answering"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task("", total=people)
        yield lambda done: bar.update(task, completed=done)


# -- the survey and what was answered ------------------------------------------------------------------


AFFAIR, MARRIAGE = "affair", "marriage"
RATINGS = ("very poor", "poor", "fair", "good", "very good")
COUNTS = {"yes": (74, 221, 547, 724, 487), "no": (25, 127, 446, 1518, 2197)}  # by affair, then by rating
DRAFT: dict[str, Any] = {
    "name": "Marriage and affairs",
    "owner": "deniable demo",
    "purpose": "to show on one machine how a sensitive survey is collected without learning what anyone said",
    "days": 30,
    "epsilon": "1",
    "people": 6366,
    "min_reports": 100,
    "questions": [
        {"id": AFFAIR, "text": "Have you had an affair in this marriage?", "answers": ["yes", "no"]},
        {"id": MARRIAGE, "text": "How do you rate your marriage?", "answers": list(RATINGS)},
    ],
}


def demo_survey() -> Survey:
    """The survey, open from now on."""
    return Survey.from_draft(DRAFT)


def demo_answers(people: int | None = None) -> dict[str, list[str]]:
    """What the women of 1974 said, one column per question; the first `people` of them.

    The order of the people is ours: every kind is spread evenly, so that the first few have the shares of all.
    """
    women = [
        (Fraction(2 * i + 1, 2 * count), affair, rating)
        for affair, counts in COUNTS.items()
        for rating, count in zip(RATINGS, counts, strict=True)
        for i in range(count)
    ]
    women = sorted(women)[:people]
    return {AFFAIR: [affair for _, affair, _ in women], MARRIAGE: [rating for _, _, rating in women]}


# -- a service in a process of its own -----------------------------------------------------------------


class ServiceError(DeniableError, RuntimeError):
    """The service did not start."""


@dataclass(frozen=True)
class DemoService:
    """A running service, with a token for each role."""

    address: str
    store: str
    admin: str
    analyst: str
    process: subprocess.Popen[bytes]

    def wait(self) -> None:
        """Wait until somebody stops the service."""
        self.process.wait()


@contextmanager
def running(directory: Path, survey: Survey, port: int | None = None) -> Iterator[DemoService]:
    """A service that has published the survey, stopped at the end of the block."""
    file = directory / "demo.db"
    store = f"sqlite:///{file}"
    admin, analyst = new_token(), new_token()
    with open_store(store) as opened:
        opened.publish(survey)
        opened.add_token(Token(hashed(admin), "admin", "demo"))
        opened.add_token(Token(hashed(analyst), "analyst", "demo"))
    chosen = _free_port() if port is None else port
    command = [sys.executable, "-m", "deniable", "serve", "--store", store, "--port", str(chosen)]
    with open(directory / "service.log", "wb") as log:
        # A separate session, so that Ctrl-C reaches the demo first and the service is stopped in order.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=dict(os.environ), start_new_session=True
        )
        try:
            address = f"http://127.0.0.1:{chosen}"
            _await(address, process, directory / "service.log")
            yield DemoService(address, store, admin, analyst, process)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _free_port() -> int:
    """A port of this machine that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _await(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the service is ready. Raises `ServiceError` if it ends or takes too long."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if process.poll() is not None:
            last = log.read_text(errors="replace").strip().splitlines()[-1:]
            raise ServiceError(f"the service did not start: {' '.join(last) or 'it said nothing'}")
        try:
            with urllib.request.urlopen(f"{address}/readyz", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise ServiceError(f"the service was not ready in {PATIENCE:.0f} seconds")


# -- bars made of characters ---------------------------------------------------------------------------


Inks = tuple[str, str, str]
BLOCKS: Inks = ("█", "▓", "░")
LETTERS: Inks = ("#", "=", "-")

_NARROWEST, _WIDEST = 10, 40


@dataclass(frozen=True, slots=True)
class Bar:
    """A share to draw, with the ends of its interval if it has one."""

    name: str
    value: float
    style: str
    ends: tuple[float, float] | None = None


def chart(groups: Sequence[tuple[str, Sequence[Bar]]]) -> None:
    """One group of bars per label, all on one scale."""
    top = max(max(bar.value, bar.ends[1] if bar.ends else 0.0) for _, bars in groups for bar in bars)
    left = max(len(label) for label, _ in groups)
    middle = max(len(bar.name) for _, bars in groups for bar in bars)
    width = min(max(output.width() - left - middle - 13, _NARROWEST), _WIDEST)
    for label, bars in groups:
        for i, bar in enumerate(bars):
            head = label if i == 0 else ""
            drawn = draw(bar, top, width, _inks())
            output.styled(f"  {head:<{left}}  {bar.name:<{middle}}  {drawn:<{width}}  {bar.value:6.1%}", bar.style)


def draw(bar: Bar, top: float, width: int, inks: Inks = BLOCKS) -> str:
    """The bar itself: `inks` are solid, before the value and after it.

    >>> draw(Bar("estimate", 0.5, "", ends=(0.25, 0.75)), top=1.0, width=8, inks=("#", "=", "-"))
    '##==--'
    """
    solid, before, after = inks

    def cells(value: float) -> int:
        return round(min(max(value / top, 0.0), 1.0) * width)

    value = cells(bar.value)
    low, high = (value, value) if bar.ends is None else map(cells, bar.ends)
    return solid * min(low, value) + before * max(0, value - low) + after * max(0, high - value)


def _inks() -> Inks:
    try:
        "".join(BLOCKS).encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return LETTERS
    return BLOCKS
