"""`deniable demo`: a sensitive survey collected over HTTP on this machine, and what the crowd said after all."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from deniable._extras import require
from deniable.cli import output
from deniable.cli.bars import Bar, chart
from deniable.cli.demo_survey import demo_answers, demo_survey
from deniable.cli.options import Json, Seed, examples
from deniable.cli.output import heading, prose, shown, table
from deniable.cli.reports import bits_from
from deniable.cli.targets import level
from deniable.errors import NumberError
from deniable.protocols import Estimate
from deniable.surveys import Survey

EXAMPLES = examples(
    "deniable demo                    ends by itself in a pipe; on a terminal it goes on serving",
    "deniable demo --once             ends by itself",
    "deniable demo --people 1000      fewer people, wider error bars",
    "deniable story                   the idea without a service, on made-up people",
)

LEVEL = 0.95
_FEWEST, _MOST = 100, 6366


def demo(
    people: Annotated[
        int, typer.Option(metavar="N", min=_FEWEST, max=_MOST, help="How many of the 6366 people answer.")
    ] = _MOST,
    once: Annotated[bool, typer.Option("--once", help="End when the table is shown.")] = False,
    port: Annotated[
        int | None, typer.Option(metavar="PORT", help="Where the service listens.", show_default="any free port")
    ] = None,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Collect a real survey of extramarital affairs on this machine: devices, HTTP, store, estimate.

    Starts the service on an embedded store, publishes two questions, and lets thousands of simulated devices answer
    them over HTTP with the answers of a real survey. Then compares what the analyst sees with the truth.
    """
    require("starlette", "serve")
    require("uvicorn", "serve")
    if people < _FEWEST:
        raise NumberError(f"--people is at least {_FEWEST}")
    from deniable.cli.demo_service import running
    from deniable.collect.analyst import Analyst
    from deniable.collect.crowd import send_crowd

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
    return np.array([answers.count(str(label)) for label in estimate.labels]) / len(answers)


def _promise(survey: Survey, address: str) -> None:
    output.styled("Learn what a crowd thinks without learning what anyone said", "bold")
    output.write("\n")
    heading("1. The survey, published on this machine")
    output.facts(
        [
            ("service", address),
            ("survey", f"{survey.name}: {', '.join(question.text for question in survey)}"),
            ("fingerprint", survey.fingerprint),
            *((f"epsilon {q.id}", level(q.protocol)) for q in survey),
            ("epsilon in all", level(survey)),
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
    """What the bytes say, where they name an answer."""
    said, at = [], 0
    for question in survey:
        width = question.protocol.report_bytes
        part, at = raw[at : at + width], at + width
        named = question.protocol.name == "GRR"
        label = shown(question.protocol.domain.labels[int.from_bytes(part, "little")]) if named else part.hex()
        said.append(f"{question.id} = {label}")
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


def _keep_serving(survey: Survey, survey_file: Path, service: Any) -> None:
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
        ("deniable story", "how randomizing works, step by step"),
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
