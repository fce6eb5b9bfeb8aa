"""`deniable telemetry`: what an application with a survey collects, and whether it would collect here."""

from __future__ import annotations

import html
from typing import Annotated

import typer

from deniable._files import atomic_write
from deniable.cli import output
from deniable.cli.load_survey import read_survey
from deniable.cli.options import Json, Language, LedgerFile, Output, argument, new_app
from deniable.cli.output import examples, shown
from deniable.collect.client.telemetry import explained, why_off
from deniable.surveys.dossier import whole_page
from deniable.words import catalogue

app = new_app()


@app.callback(
    epilog=examples(
        "deniable telemetry explain survey.json",
        "deniable telemetry explain survey.json --language de -o telemetry.html",
        "deniable telemetry status",
    )
)
def telemetry(ctx: typer.Context) -> None:
    """Explain what an application collects, and whether it would."""
    if ctx.invoked_subcommand is None:
        output.write(ctx.get_help() + "\n")


@app.command()
def explain(
    survey: Annotated[str, argument("SURVEY", "The survey that the application collects, in JSON.")],
    to: Output = None,
    ledger: LedgerFile = None,
    language: Language = "en",
    as_json: Json = False,
) -> None:
    """Say what is recorded, what is sent and how to stop it.

    With -o it is one HTML page that loads nothing, which an application can ship or publish.
    """
    asked = read_survey(survey)
    sections = explained(asked, language, None if ledger is None else ledger.absolute())
    title = catalogue(language).say("telemetry.title", name=asked.name)
    if to is not None:
        body = "".join(
            f"<h2>{html.escape(heading)}</h2>{''.join(f'<p>{html.escape(one)}</p>' for one in said)}\n"
            for heading, said in sections
        )
        with atomic_write(to) as file:
            file.write(whole_page(title, f"<h1>{html.escape(title)}</h1>\n{body}", language).encode())
    if as_json:
        parts = [{"heading": heading, "sentences": said} for heading, said in sections]
        output.document({"survey": asked.fingerprint, "title": title, "sections": parts})
    elif to is not None:
        output.files(written=to)
    else:
        output.heading(shown(title))
        for heading, said in sections:
            output.write("\n")
            output.heading(heading)
            for one in said:
                output.prose(shown(one))


@app.command()
def status(as_json: Json = False) -> None:
    """Say whether telemetry is on in this environment, and why."""
    off = why_off()
    if as_json:
        output.document({"on": off is None, "variable": off})
    elif off is None:
        output.write("on: neither DO_NOT_TRACK nor the variable of a build server is set\n")
    else:
        output.write(f"off: the environment has {off}\n")
