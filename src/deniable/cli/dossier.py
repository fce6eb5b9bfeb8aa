"""`deniable dossier`: one page about a survey for a reviewer, and its record for the registry of deployments."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated

import typer

import deniable
from deniable._files import atomic_write
from deniable.audit.verdict import audit as judge
from deniable.cli import output
from deniable.cli.load_survey import read_survey
from deniable.cli.options import Json, Language, Output, argument, new_app, only_one_stdin, option
from deniable.cli.output import examples, shown
from deniable.surveys.dossier import dossier as collected, dossier_html
from deniable.surveys.registry_record import registry_yaml

app = new_app()


@app.command(
    epilog=examples(
        "deniable dossier survey.json -o dossier.html                       one page that a reviewer can sign",
        "deniable dossier survey.json --previous old.json -o dossier.html   with what changed for respondents",
        "deniable dossier survey.json --registry record.yaml                for the registry of deployments",
        "deniable dossier survey.json --json                                for programs",
    )
)
def dossier(
    survey: Annotated[str, argument("SURVEY", "A survey file, in JSON.")],
    to: Output = None,
    previous: Annotated[str | None, option("FILE", "The version that this survey replaces.")] = None,
    registry: Annotated[
        Path | None, option("FILE", "Write the record for the registry of differential privacy deployments, in YAML.")
    ] = None,
    language: Language = "en",
    samples: Annotated[
        int, option("N", "Samples of each input, where the audit takes samples.", default=True)
    ] = 20_000,
    level: Annotated[float, option("P", "Confidence of bounds from samples.", default=True)] = 0.95,
    seed: Annotated[
        int | None, option("N", "Seed of the audit's samples.", default="a new one, which the page names")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write one page about a survey that a reviewer can sign.

    It says what is asked and why, what respondents read, where an answer goes, what is kept, who could learn what, what
    the audit found, and what changed. It loads nothing and prints well. The exit code is that of the audit: 0 if the
    claim is cleared, 1 if it is violated, 3 if it is undecided. A previous version with more privacy does not change
    it: deniable survey diff fails for that.
    """
    only_one_stdin(survey, previous or "")
    asked = read_survey(survey)
    before = None if previous is None else read_survey(previous)
    seed = secrets.randbits(32) if seed is None else seed
    with output.solving() as progress:
        found = judge(asked, samples=samples, level=level, seed=seed, progress=progress)
    content = collected(
        asked,
        found,
        deniable.__version__,
        previous=before,
        language=language,
        seed=seed,
        samples=samples,
        level=level,
    )
    if to is not None:
        with atomic_write(to) as file:
            file.write(dossier_html(content).encode())
    if registry is not None:
        with atomic_write(registry) as file:
            file.write(registry_yaml(content["registry"]).encode())
        output.note("to be filled in", ", ".join(content["to_fill_in"]))
    if as_json:
        output.document(content)
    elif to is None and registry is None:
        output.data(dossier_html(content))
    else:
        output.heading(shown(asked.name))
        output.prose(f"{found.words}. {content['summary']}")
        output.files(written=to, registered=registry)
    raise typer.Exit(found.exit_code)
