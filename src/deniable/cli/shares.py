"""`deniable survey sum-shares`: sum the shares of a survey that several collectors hold."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Annotated

from deniable.cli import output
from deniable.cli.load_survey import read_target
from deniable.cli.options import Json, Output, argument, new_app, option
from deniable.cli.output import examples
from deniable.collect.analyst import Analyst, add_up
from deniable.errors import SpecError
from deniable.surveys.terms import host

app = new_app()

TOKENS = "DENIABLE_TOKEN"


@app.command(
    "sum-shares",
    epilog=examples(
        "deniable survey sum-shares survey.json --epoch 0",
        "DENIABLE_TOKEN=dn_one...,dn_two... deniable survey sum-shares survey.json --epoch 0 -o tally.json",
    ),
)
def sum_shares(
    source: Annotated[str, argument("SURVEY", "The survey, which names its collectors.", default=True)],
    epoch: Annotated[int, option("N", "The epoch to close.", default=True, min=0)] = 0,
    to: Output = None,
    as_json: Json = False,
) -> None:
    """Secure aggregation: add up the shares of all collectors.

    A survey that names several collectors is answered in shares, one for each of them, which say nothing by
    themselves. Each collector runs deniable serve for the same survey. That protects people as long as the collectors
    do not work together, so they are run by different people.

    This closes an epoch at all collectors, adds up the people whom all of them have, and publishes the sums. The
    collectors close the epoch and tell the ids whose shares they have. Shares of people whom not all of them have are
    erased; then each adds up what is left and erases it, and the sums together are the tally of the epoch, here and at
    each collector. With more people missing than the survey allows there is no result, and all shares are erased. Sums
    that honest people cannot have given are refused in the same way: a share was wrong, or somebody cheated.

    What is done stays done: a command that broke off is called again. An admin's token of each collector is read from
    the environment variable DENIABLE_TOKEN, in the order of the survey, with commas between them; one token alone is
    for all of them.
    """
    survey = read_target(source)
    if survey.terms is None or not survey.terms.collectors:
        raise SpecError(f"{source!r} names no collectors: shares are added up of surveys that do")
    addresses = survey.terms.collectors
    tokens = [token.strip() for token in os.environ.get(TOKENS, "").split(",")]
    if len(tokens) == 1:
        tokens = tokens * len(addresses)
    if not all(tokens) or len(tokens) != len(addresses):
        hosts = ", ".join(host(address) for address in addresses)
        raise SpecError(f"this needs an admin's token of each collector, in {TOKENS}, with commas: {hosts}")
    with ExitStack() as opened:
        collectors = [opened.enter_context(Analyst(*one)) for one in zip(addresses, tokens, strict=True)]
        tally = add_up(survey, epoch, collectors)
    if to is not None:
        tally.save(to)
    people = next(iter(tally.tallies.values())).n
    found = {question.id: question.protocol.estimate(tally[question.id]) for question in survey}
    if as_json:
        named = [one.to_dict() | {"id": id, "text": survey[id].text} for id, one in found.items()]
        output.document({"survey": survey.fingerprint, "epoch": epoch, "n": people, "questions": named})
        return
    output.facts([("added up", f"{people:,} people"), ("collectors", ", ".join(map(host, addresses)))])
    for id, one in found.items():
        output.write(f"\n{id}: {one}\n")
    if to is not None:
        output.write(f"\nsaved: {to}\n")
