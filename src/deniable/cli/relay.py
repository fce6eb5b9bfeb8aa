"""`deniable relay`: mix sealed submissions on their way to the collector, and make the collector's key."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from deniable._extras import require
from deniable.cli import output
from deniable.cli.load_survey import read_target
from deniable.cli.options import new_app, refuse_unknown_variables
from deniable.cli.output import examples
from deniable.collect.http import is_loopback
from deniable.collect.sealing import CollectorKey
from deniable.errors import SpecError
from deniable.surveys import Survey

app = new_app()


@app.callback(
    epilog=examples(
        "deniable relay key collector.pem                 the collector: make a key for surveys",
        "deniable serve --relay-key collector.pem ...     the collector: open what the relay brings",
        "deniable relay serve survey.json --collector https://collect.example.org    somebody else: mix",
    ),
    no_args_is_help=True,
)
def relay() -> None:
    """Mix sealed submissions on their way to the collector.

    A survey that names a relay is sent to it alone, sealed for the collector. The relay sees addresses and no answers;
    the collector sees answers and no addresses. That protects people as long as the two do not work together, so a
    relay is run by somebody else than the collector.
    """


@app.command(epilog=examples("deniable relay key collector.pem"))
def key(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The new file, for the collector only.")],
) -> None:
    """Make the collector's key in a new file, and print what stands in a draft.

    Put the printed text into the draft of the survey: "relay": {"address": ..., "key": ..., "batch": ...}.
    """
    try:
        made = CollectorKey.make(path)
    except FileExistsError:
        raise SpecError(f"{str(path)!r} exists: a key is never overwritten") from None
    output.write(f"{made.public}\n")


@app.command(
    epilog=examples(
        "deniable relay serve survey.json --collector https://collect.example.org",
        "deniable relay serve survey.json --collector http://127.0.0.1:8377 --port 8378 --store sqlite:///relay.db",
    )
)
def serve(
    surveys: Annotated[list[str], typer.Argument(metavar="SURVEY...", help="Surveys whose terms name this relay.")],
    collector: Annotated[str, typer.Option(metavar="URL", help="Where batches go.", show_default=False)],
    store: Annotated[
        str, typer.Option(metavar="URL", help="The queue: a SQLite file, made if it is new.")
    ] = "sqlite:///relay.db",
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65_535, help="The port; 0 takes a free one.")] = 8378,
    operator_port: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, max=65_535, help="A port for probes and metrics, without a token.", show_default="none"
        ),
    ] = None,
    operator_host: Annotated[str, typer.Option(metavar="ADDRESS", help="Where that port is.")] = "127.0.0.1",
    most_waiting: Annotated[
        int, typer.Option(metavar="N", min=1, help="Sealed submissions on the disk; more are refused for the time.")
    ] = 5_000_000,
    steady_seconds: Annotated[
        float,
        typer.Option(
            metavar="S", min=0, help="How long the clock is watched after a start or a jump before epochs end by it."
        ),
    ] = 3600.0,
) -> None:
    """Take sealed submissions, and pass them on in random order, in batches as large as the surveys promise.

    Addresses and times are not kept. An epoch with fewer submissions than one batch is discarded and counted. An ingest
    token of the collector, if it asks for one, is read from the environment variable DENIABLE_RELAY_TOKEN. The log
    goes to standard error, one JSON object per line.
    """
    refuse_unknown_variables(())
    for module in ("starlette", "uvicorn"):
        require(module, "serve")
    from deniable.collect.server.relay import RelaySettings
    from deniable.collect.server.relay import serve as run

    if not store.startswith("sqlite:///"):
        raise SpecError("the queue of a relay is a SQLite file: write sqlite:///name.db")
    if not is_loopback(host):
        output.note("warning", "this address can be reached without encryption: put a proxy with TLS in front of it")
    if operator_port is not None and not is_loopback(operator_host):
        output.note("warning", "whoever reaches the operator's port can read when somebody answers: keep it private")
    found = []
    for path in surveys:
        survey = read_target(path)
        if not isinstance(survey, Survey):
            raise SpecError(f"{path!r} is the spec of a protocol, not a survey")
        found.append(survey)
    settings = RelaySettings(
        store=store,
        host=host,
        port=port,
        operator_host=operator_host,
        operator_port=operator_port,
        collector=collector,
        surveys=tuple(found),
        token=os.environ.get("DENIABLE_RELAY_TOKEN"),
        most_waiting=most_waiting,
        steady_seconds=steady_seconds,
    )

    def announce(address: str, operator: str | None) -> None:
        if operator is not None:
            output.write(f"operator: {operator}/\n")
        output.write(f"relaying: {address}/\n")
        sys.stdout.flush()

    run(settings, announce)
