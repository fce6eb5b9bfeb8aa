"""What estimates are made from: tallies and reports in files, or a collection service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from deniable.cli import output
from deniable.cli.published import find
from deniable.cli.tally import counted
from deniable.cli.targets import Target, many, read_target
from deniable.errors import SpecError
from deniable.protocols import Tally
from deniable.surveys import Survey, SurveyTally
from deniable.surveys.results import ONCE, UNKNOWN_EPOCHS, Repeats
from deniable.surveys.terms import LAST_EPOCH

if TYPE_CHECKING:
    from deniable.collect.analyst import Analyst

Surveyed = Annotated[
    str,
    typer.Argument(
        metavar="SURVEY",
        help="A survey file (or the spec of a protocol); with --from also the survey's name at the service, its "
        "fingerprint, or six or more digits with which that begins.",
        show_default=False,
    ),
]
Summed = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[INPUTS]...",
        help="Files of reports (Parquet, Arrow streams or text) and of tallies (JSON), directories, patterns and URLs, "
        "in any mixture; '-' for standard input.",
        show_default=False,
    ),
]
Service = Annotated[
    str | None,
    typer.Option("--from", metavar="URL", help="A collection service, instead of files.", show_default=False),
]
EpochRange = Annotated[
    str | None,
    typer.Option(
        "--epochs", metavar="A..B", help="Only these epochs of the service: 3..5, 3.., ..5 or 3.", show_default="all"
    ),
]

Few = Annotated[bool, typer.Option("--few", help="Show estimates of fewer answers than the survey says are shown.")]


def sums(
    survey: str, inputs: list[str] | None, service: str | None, token: str | None, epochs: str | None
) -> tuple[Target, SurveyTally | Tally, Repeats]:
    """What the estimates are about, the tallies, and by how much one device may stand in them several times.

    Says what the errors allow for, and what they cannot.
    """
    if service is None:
        if epochs is not None:
            raise SpecError("--epochs goes with --from: files do not say their epochs")
        if not inputs:
            raise SpecError("there is nothing to estimate from: name files of reports or tallies, or a service --from")
        target = read_target(survey)
        rule = target.terms.longitudinal if isinstance(target, Survey) and target.terms is not None else None
        if rule is not None and rule.rule == "memoize" and rule.epochs > 1:
            output.note("warning", UNKNOWN_EPOCHS)
        return target, counted(target, survey, inputs), ONCE
    if inputs:
        raise SpecError("estimates are made from files or from a service, not from both")
    from deniable.collect.analyst import Analyst, ServiceRefused, read_range

    first, last = (None, None) if epochs is None else read_range(epochs)
    with Analyst(service, token) as analyst:
        found = find(analyst, survey)
        if not isinstance(found, Survey):
            raise SpecError("a service collects surveys, not single protocols")
        if epochs is not None:
            _note_outside(found, first, last)
        try:
            tally = analyst.tally(found, first, last)
            repeats = _repeats(analyst, found, first, last)
        except ServiceRefused as refused:
            if refused.status != 401 or token:
                raise
            raise ServiceRefused(
                401, f"{refused}; give it in a file with --token-file, or in the variable DENIABLE_TOKEN"
            ) from None
    for sentence in repeats.notes:
        output.note("note", sentence)
    return found, tally, repeats


def _repeats(analyst: Analyst, survey: Survey, first: int | None, last: int | None) -> Repeats:
    epochs = analyst.status(survey.fingerprint)["epochs"]
    low, high = 0 if first is None else first, LAST_EPOCH if last is None else last
    return Repeats.of(survey.terms, [one["n"] for one in epochs if low <= one["epoch"] <= high])


def _note_outside(survey: Survey, first: int | None, last: int | None) -> None:
    terms = survey.terms
    if terms is not None and any(end is not None and not terms.first <= end <= terms.last for end in (first, last)):
        output.note("note", f"the epochs of this survey are {terms.first} to {terms.last}: of others there is nothing")


def shown_enough(target: Target, id: str, n: int, few: bool) -> bool:
    """Whether a survey lets an estimate of so many answers be shown; if not, says so."""
    terms = target.terms if isinstance(target, Survey) else None
    if terms is None or few or n >= terms.show_from:
        return True
    output.note(
        "note", f"{id!r} has {many(n, 'answer')}, and the survey shows estimates from {terms.show_from} on (--few)"
    )
    return False
