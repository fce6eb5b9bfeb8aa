"""`deniable serve`: collect reports over HTTP and answer analysts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated

import typer

from deniable._extras import require
from deniable.cli import output
from deniable.cli.load_survey import losses, read_target, refuse_expired, refuse_uncollected
from deniable.cli.options import new_app
from deniable.cli.output import examples
from deniable.cli.store_url import DEFAULT, StoreUrl, is_made
from deniable.collect.http import is_loopback
from deniable.collect.stores import open_store
from deniable.errors import SpecError
from deniable.surveys import Survey

app = new_app()

Rate = Annotated[
    float | None,
    typer.Option(metavar="N", help="The most submissions per second that a worker takes.", show_default="no limit"),
]
SurveyRate = Annotated[
    float | None,
    typer.Option(metavar="N", help="The same for each survey by itself.", show_default="no limit"),
]


class LogLevel(StrEnum):
    """Lines below are left out."""

    error = "error"
    warning = "warning"
    info = "info"


@app.command(
    epilog=examples(
        "deniable serve --store sqlite:///collect.db --publish survey.json",
        "deniable serve --store postgresql://user@host/collect --workers 2 --origin https://collect.example.org",
        "deniable token create --role analyst --store sqlite:///collect.db   meanwhile: a token to read with",
        "deniable estimate survey.json --from http://127.0.0.1:8377          and what it reads",
    )
)
def serve(
    store: StoreUrl = DEFAULT,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65_535, help="The port; 0 takes a free one.")] = 8377,
    workers: Annotated[
        int, typer.Option(metavar="N", min=1, max=64, help="Processes; more than one needs PostgreSQL.")
    ] = 1,
    publish: Annotated[
        list[str] | None,
        typer.Option(metavar="SURVEY", help="A survey file to publish; may be repeated.", show_default=False),
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The address that the public knows, for the front page.", show_default=False),
    ] = None,
    keyed: Annotated[bool, typer.Option("--ingest-key", help="Take reports only with an ingest token.")] = False,
    rate: Rate = None,
    survey_rate: SurveyRate = None,
    operator_port: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=65_535,
            help="A port for probes and metrics of all workers, without a token; 0 takes a free one.",
            show_default="none",
        ),
    ] = None,
    operator_host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where that port is.")] = "127.0.0.1",
    log_level: Annotated[
        LogLevel, typer.Option(help="What the log holds; the signal SIGUSR1 changes it to the next.")
    ] = LogLevel.info,
    plans: Annotated[bool, typer.Option("--plans/--no-plans", help="Whether anybody may have plans made here.")] = True,
) -> None:
    """Collect reports over HTTP, add them up, and answer analysts. A store that does not exist is made.

    The log goes to standard error, one JSON object per line, and says nothing about respondents.
    """
    for module in ("starlette", "uvicorn"):
        require(module, "serve")
    from deniable.collect.server import Settings
    from deniable.collect.server import serve as run
    from deniable.collect.server.run import refuse_workers

    if store.startswith("memory:"):
        raise SpecError("a store in memory is lost with its process: write sqlite:///name.db")
    if workers > 1:
        refuse_workers(store)
    surveys = {path: _collected(path) for path in publish or []}
    if not is_loopback(host):
        output.note("warning", "this address can be reached without encryption: put a proxy with TLS in front of it")
    if operator_port is not None and not is_loopback(operator_host):
        output.note("warning", "whoever reaches the operator's port can read when somebody answers: keep it private")
    settings = Settings(
        store=store,
        host=host,
        port=port,
        origin=origin,
        keyed=keyed,
        rate=rate,
        survey_rate=survey_rate,
        plans=plans,
        log_level=log_level.value,
        operator_host=operator_host,
        operator_port=operator_port,
    )

    def announce(address: str, operator: str | None) -> None:
        for survey in surveys.values():
            output.write(f"survey: {address}/v1/surveys/{survey.fingerprint}\n")
            output.write(f"answer: {address}/s/{survey.fingerprint}\n")
            output.write(f"dashboard: {address}/dashboard/{survey.fingerprint}\n")
        if operator is not None:
            output.write(f"operator: {operator}/\n")
        output.write(f"serving: {address}/\n")
        sys.stdout.flush()

    run(settings, workers, announce, _prepared(store, surveys))


@contextmanager
def _prepared(store: str, surveys: Mapping[str, Survey]) -> Iterator[None]:
    """Make the store if it is new, and publish the surveys."""
    _check(store, surveys)
    with open_store(store) as opened:
        opened.ping()
        for survey in surveys.values():
            opened.publish(survey)
    yield


def _check(store: str, surveys: Mapping[str, Survey]) -> None:
    """Refuse what `deniable survey publish` would refuse. A survey that is published already may have expired."""
    published: dict[str, bytes] = {}
    if surveys and is_made(store):
        with open_store(store) as opened:
            published = {one.fingerprint: one.canonical for one in opened.surveys()}
    for path, survey in surveys.items():
        if survey.fingerprint not in published:
            refuse_expired(survey, path)
            place = survey.terms.campaign if survey.terms is not None else None
            if place is not None and place.before is not None:
                raise SpecError(
                    f"{path!r} is round {place.number} of a campaign, which a running service checks against the tally "
                    "of the round before: publish it with deniable survey publish"
                )
        lost = losses(survey, path, published, lambda known: Survey.from_spec(json.loads(published[known])))
        if lost:
            raise SpecError(
                f"{path!r} has less privacy than the survey that it replaces ({lost}): if that is meant, publish it "
                "with deniable survey publish --weaker-privacy"
            )
        published[survey.fingerprint] = survey.canonical


def _collected(path: str) -> Survey:
    """A survey file whose survey can be collected."""
    survey = read_target(path)
    if not isinstance(survey, Survey):
        raise SpecError(f"{path!r} is the spec of a protocol, not a survey")
    refuse_uncollected(survey, path)
    return survey
