"""`deniable relay`: mix sealed submissions on their way to the collector, and make the collector's key."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

from deniable._extras import require
from deniable.cli import output
from deniable.cli.load_survey import read_survey
from deniable.cli.options import argument, new_app, option, refuse_unknown_variables
from deniable.cli.output import examples
from deniable.collect.http import is_loopback
from deniable.collect.sealing import CollectorKey
from deniable.errors import SpecError

app = new_app()


@app.callback(
    epilog=examples(
        "deniable relay key collector.pem                 the collector: make a key for surveys",
        "deniable serve --relay-key collector.pem ...     the collector: open what the relay brings",
        "deniable relay serve survey.json --collector https://collect.example.org    somebody else: mix",
        "deniable relay epsilon survey.json --people 100000    what mixing gains",
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
    path: Annotated[Path, argument("FILE", "The new file, for the collector only.", default=True)],
) -> None:
    """Make the collector's key in a new file.

    Prints what stands in a draft. Put the printed text into the draft of the survey: "relay": {"address": ..., "key":
    ..., "batch": ...}.
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
    surveys: Annotated[list[str], argument("SURVEY...", "Surveys whose terms name this relay.", default=True)],
    collector: Annotated[str, option("URL", "Where batches go.")],
    store: Annotated[
        str, option("URL", "The queue: a SQLite file, made if it is new.", default=True)
    ] = "sqlite:///relay.db",
    host: Annotated[str, option("ADDRESS", "The address to listen at.", default=True)] = "127.0.0.1",
    port: Annotated[int, option("N", "The port; 0 takes a free one.", default=True, min=0, max=65_535)] = 8378,
    operator_port: Annotated[
        int | None, option("N", "A port for probes and metrics, without a token.", default="none", min=0, max=65_535)
    ] = None,
    operator_host: Annotated[str, option("ADDRESS", "Where that port is.", default=True)] = "127.0.0.1",
    most_waiting: Annotated[
        int, option("N", "Sealed submissions on the disk; more are refused for the time.", default=True, min=1)
    ] = 5_000_000,
    steady_seconds: Annotated[
        float,
        option(
            "S", "How long the clock is watched after a start or a jump before epochs end by it.", default=True, min=0
        ),
    ] = 3600.0,
) -> None:
    """Take sealed submissions, and pass them on in random order.

    Batches are as large as the surveys promise. Addresses and times are not kept. An epoch with fewer submissions than
    one batch is discarded and counted. An ingest token of the collector, if it asks for one, is read from the
    environment variable DENIABLE_RELAY_TOKEN. The log goes to standard error, one JSON object per line.
    """
    refuse_unknown_variables(())
    for module in ("starlette", "uvicorn"):
        require(module, "serve")
    from deniable.collect.server.relay import RelaySettings, serve as run

    if not store.startswith("sqlite:///"):
        raise SpecError("the queue of a relay is a SQLite file: write sqlite:///name.db")
    if not is_loopback(host):
        output.note("warning", "this address can be reached without encryption: put a proxy with TLS in front of it")
    if operator_port is not None and not is_loopback(operator_host):
        output.note("warning", "anyone who reaches the operator's port can read when somebody answers: keep it private")
    found = [read_survey(path) for path in surveys]
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
