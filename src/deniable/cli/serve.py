"""`deniable serve`: collect reports over HTTP and answer analysts.

Settings   each is a flag, a variable (DENIABLE_SERVE_ and the flag's name) or a line of a file in TOML. A flag
           overrides a variable, a variable overrides the file
Secrets    a password comes from a file or a variable, never from a flag, and is never printed
"""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any

import typer

from deniable._extras import require
from deniable.cli import output
from deniable.cli.load_survey import losses, read_survey, refuse_expired, refuse_uncollected
from deniable.cli.options import new_app, option, read_text, refuse_unknown_variables
from deniable.cli.output import examples, shown
from deniable.cli.store import DEFAULT, StoreUrl, has_password, is_made, without_password
from deniable.collect.http import is_loopback
from deniable.collect.stores import open_store
from deniable.collect.stores.base import REOPEN_SECONDS, StorageFull
from deniable.errors import SpecError
from deniable.surveys import Survey

app = new_app()

PREFIX = "DENIABLE_SERVE_"

Rate = Annotated[
    float | None,
    option("N", "The most submissions per second that a worker takes, or takes per ingest token.", default="no limit"),
]
SurveyRate = Annotated[float | None, option("N", "The same for each survey by itself.", default="no limit")]


class LogLevel(StrEnum):
    """Lines below this level are left out."""

    error = "error"
    warning = "warning"
    info = "info"


def _name(param: Any) -> str:
    """The name of a setting in files: its flag."""
    return str(max(param.opts, key=len)).removeprefix("--")


def _settings(ctx: typer.Context) -> dict[str, Any]:
    own = ("config", "print_config", "help")
    return {_name(param): param for param in ctx.command.params if param.name not in own}


def _read_config(ctx: typer.Context, path: str | None) -> str | None:
    """Use the settings in a file as defaults."""
    if path is None:
        return None
    try:
        found = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as wrong:
        raise SpecError(f"{path!r} is not TOML: {wrong}") from None
    known = _settings(ctx)
    for name in found:
        if name not in known:
            raise SpecError(f"{path!r} has the setting {name!r}, which there is not; there are {', '.join(known)}")
    if has_password(str(found.get("store", ""))) and os.name == "posix" and os.stat(path).st_mode & 0o077:
        raise SpecError(f"{path!r} holds a password, and others than its owner can read it: chmod 600 {path}")
    ctx.default_map = {known[name].name: value for name, value in found.items()}
    return path


def _shown(ctx: typer.Context) -> Iterator[str]:
    """The settings as lines of a file for --config, each with its origin."""
    words = {"COMMANDLINE": "flag", "ENVIRONMENT": "variable", "DEFAULT_MAP": "file"}
    for name, param in _settings(ctx).items():
        value, source = ctx.params[param.name or ""], ctx.get_parameter_source(param.name or "")
        said = words.get(source.name if source is not None else "", "default")
        if name == "store" and has_password(value):
            value, said = without_password(value), f"{said}; the password is left out"
        yield f"# {name} is not set" if value is None else f"{name} = {json.dumps(value)}  # {said}"


@app.command(
    context_settings={"auto_envvar_prefix": PREFIX.rstrip("_")},
    epilog=examples(
        "deniable serve --store sqlite:///collect.db --publish survey.json",
        "deniable serve --store postgresql://user@host/collect --workers 2 --origin https://collect.example.org",
        "deniable store token create --role analyst --store sqlite:///collect.db   meanwhile: a token to read with",
        "deniable estimate survey.json --from http://127.0.0.1:8377          and what it reads",
    ),
)
def serve(
    ctx: typer.Context,
    store: StoreUrl = DEFAULT,
    host: Annotated[str, option("ADDRESS", "Where to listen.", default=True)] = "127.0.0.1",
    port: Annotated[int, option("N", "The port; 0 takes a free one.", default=True, min=0, max=65_535)] = 8377,
    workers: Annotated[
        int, option("N", "Processes; more than one needs PostgreSQL or files.", default=True, min=1, max=64)
    ] = 1,
    publish: Annotated[list[str] | None, option("SURVEY", "A survey file to publish; may be repeated.")] = None,
    origin: Annotated[str | None, option("URL", "The address that the public knows, for the front page.")] = None,
    needs_token: Annotated[
        bool,
        typer.Option(
            "--ingest-key", envvar="DENIABLE_SERVE_INGEST_KEY", help="Take reports only with an ingest token."
        ),
    ] = False,
    relay_key: Annotated[
        str | None,
        option(
            "FILE", "The collector's key, for surveys whose submissions come sealed through a relay.", default="none"
        ),
    ] = None,
    rate: Rate = None,
    survey_rate: SurveyRate = None,
    operator_port: Annotated[
        int | None,
        option(
            "N",
            "A port for probes and metrics of all workers, without a token; 0 takes a free one.",
            default="none",
            min=0,
            max=65_535,
        ),
    ] = None,
    operator_host: Annotated[str, option("ADDRESS", "Where that port is.", default=True)] = "127.0.0.1",
    otel: Annotated[
        bool,
        typer.Option(
            "--otel", help="Push the metrics of --operator-port by OpenTelemetry, too: OTEL_EXPORTER_OTLP_ENDPOINT."
        ),
    ] = False,
    log_level: Annotated[
        LogLevel, typer.Option(help="What the log holds; the signal SIGUSR1 changes it to the next.")
    ] = LogLevel.info,
    plans: Annotated[bool, typer.Option("--plans/--no-plans", help="Whether anybody may have plans made here.")] = True,
    steady_seconds: Annotated[
        float,
        option(
            "N", "How long the clock is watched after a start or a jump before epochs close by it.", default=True, min=0
        ),
    ] = 3600.0,
    reopen_seconds: Annotated[
        float, option("N", "How long after it closes an epoch can be opened again.", default=True, min=0)
    ] = REOPEN_SECONDS,
    config: Annotated[
        str | None,
        option(
            "FILE",
            "A file in TOML with these settings, by the names of their flags.",
            is_eager=True,
            callback=_read_config,
        ),
    ] = None,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print all settings in the form of that file, and end.")
    ] = False,
) -> None:
    """Collect reports over HTTP, add them up, answer analysts.

    A store that does not exist is made. The log goes to standard error, one JSON object per line, and says nothing
    about respondents.
    """
    refuse_unknown_variables(f"{PREFIX}{name.replace('-', '_').upper()}" for name in _settings(ctx))
    if print_config:
        output.write("".join(f"{line}\n" for line in _shown(ctx)))
        return
    for module in ("starlette", "uvicorn"):
        require(module, "serve")
    from deniable.collect.server import Settings, serve as run
    from deniable.collect.server.otel import check_installed
    from deniable.collect.server.run import refuse_workers

    if otel:
        if operator_port is None:
            raise SpecError("--otel pushes what --operator-port shows: give both")
        check_installed()
    if workers > 1:
        refuse_workers(store)
    surveys = {path: _collected(path) for path in publish or []}
    if not is_loopback(host):
        output.note("warning", "this address can be reached without encryption: put a proxy with TLS in front of it")
    if operator_port is not None and not is_loopback(operator_host):
        output.note("warning", "anyone who reaches the operator's port can read when somebody answers: keep it private")
    settings = Settings(
        store=store,
        host=host,
        port=port,
        origin=origin,
        needs_token=needs_token,
        relay_key=relay_key,
        rate=rate,
        survey_rate=survey_rate,
        plans=plans,
        log_level=log_level.value,
        operator_host=operator_host,
        operator_port=operator_port,
        otel=otel,
        steady_seconds=steady_seconds,
        reopen_seconds=reopen_seconds,
    )

    def announce(address: str, operator: str | None) -> None:
        for survey in surveys.values():
            output.write(f"published: {shown(survey.name)}\n")
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
    """Create the store if it is new, and publish the surveys."""
    _check(store, surveys)
    with open_store(store) as opened:
        try:
            opened.ping()
        except StorageFull as full:
            output.note("warning", f"{full}; until then nothing is taken")
        for survey in surveys.values():
            opened.publish(survey)
    yield


def _check(store: str, surveys: Mapping[str, Survey]) -> None:
    """Refuse what `deniable survey publish` would refuse. A survey that is already published may have expired."""
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
    """A survey from a file; it must have terms, so that it can be collected."""
    survey = read_survey(path)
    refuse_uncollected(survey, path)
    return survey
