"""`deniable survey close`: the end of a survey that was published."""

from __future__ import annotations

from typing import Annotated

import typer

from deniable.cli import output
from deniable.cli.files import named
from deniable.cli.options import AdminToken, examples
from deniable.cli.output import shown
from deniable.cli.published import find
from deniable.errors import SpecError
from deniable.surveys import Survey

CLOSE_EXAMPLES = examples(
    "deniable survey close after-work --at https://collect.example.org --yes",
    "deniable survey close 3f2a91c0 --at http://127.0.0.1:8377 --yes",
)


def close(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SURVEY",
            help="A survey file, or the survey's name at the service, or the beginning of its fingerprint.",
            show_default=False,
        ),
    ],
    server: Annotated[str, typer.Option("--at", metavar="URL", help="The collection service.", show_default=False)],
    token: AdminToken = None,
    yes: Annotated[bool, typer.Option("--yes", help="Close a survey that can still be answered.")] = False,
) -> None:
    """End a survey for good: the service takes no more reports of it. What was collected stays, and can be read."""
    from deniable.collect.analyst import Analyst

    with Analyst(server, token) as service:
        given = find(service, source)
        states = {one.fingerprint: one.state for one in service.surveys()}
        state = states.get(given.fingerprint) if isinstance(given, Survey) else None
        if not isinstance(given, Survey) or state is None:
            raise SpecError(f"the service does not have the survey of {named(source)}")
        if state in ("waiting", "collecting") and not yes:
            raise SpecError(
                f"{shown(given.name)} is {state}: devices that answer after it is closed have spent their budget for "
                "nothing, and it cannot be opened again; if that is meant, say --yes"
            )
        service.close_survey(given.fingerprint)
    output.facts([("survey", shown(given.name)), ("fingerprint", given.fingerprint)])
    word = "was closed before" if state == "closed" else "closed"
    output.write(f"\n{word}: {service.address(given.fingerprint)}\n")
