"""`deniable survey next`, `rounds` and `verify-rounds`: the rounds of a campaign.

Steps      the operator closes a round, makes the next one from its tally, and publishes it. `next --publish` does all
           three at a service
Resume     finished steps stay finished: a closed round is not closed again, a file with the next round is used as it
           is, and a round that is already published is only reported. So a command that broke off can be repeated
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from deniable._files import parse_json
from deniable.cli import output
from deniable.cli.load_survey import find_round, questions, read_rounds, read_survey, read_target, service_rounds
from deniable.cli.options import AnalystToken, Json, Output, argument, named, new_app, only_one_stdin, option, read_text
from deniable.cli.output import examples, many, shown
from deniable.cli.survey import answers_of, campaign_words, print_survey
from deniable.collect.analyst import Analyst
from deniable.errors import DeniableError, SpecError
from deniable.surveys import Survey, SurveyTally
from deniable.surveys.campaign import check_round, next_round, round_of, verify as check_chain
from deniable.surveys.terms import read_time

app = new_app()

Service = Annotated[
    str | None, option("URL", "Take the tally from a service, once the round is closed there.", "--from", default=True)
]


@app.command(
    "next",
    epilog=examples(
        "deniable survey next round-1.json tally-1.json -o round-2.json",
        "deniable survey next round-1.json --from https://collect.example.org --days 14 -o round-2.json",
        "deniable survey next work --from https://collect.example.org --publish --yes -o round-2.json",
    ),
)
def following(
    source: Annotated[
        str, argument("SURVEY", "The survey of a round; with --from also its name at the service, or its fingerprint.")
    ],
    tally: Annotated[str | None, argument("[TALLY]", "The tally of that round, in JSON.")] = None,
    service: Service = None,
    token: AnalystToken = None,
    opens: Annotated[
        str | None, option("TIME", "When the next round opens.", default="the hour that has begun")
    ] = None,
    days: Annotated[int | None, option("N", "How long it is open.", default="as long as this round")] = None,
    publish: Annotated[
        bool,
        typer.Option(
            "--publish", help="Publish the next round at the service, too, with an admin's token. Needs -o FILE."
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="With --publish: close this round there if it can still be answered.")
    ] = False,
    to: Output = None,
) -> None:
    """Make the next round of a campaign from a tally.

    The questions follow from the counts by the campaign's rule: the same tally gives the same questions, so that
    anybody who has the tally can check them with deniable survey verify-rounds. Only the calendar is your choice. A
    tally of another survey is refused. The tally must be complete: close the round first, or let --publish --yes do it.

    A command that broke off is called again: a round that is made, closed or published stays as it is.
    """
    if publish and (service is None or to is None):
        raise SpecError("--publish goes with --from URL and -o FILE: the next round is kept before it is published")
    if to is not None and not os.access(to.parent, os.W_OK):
        raise SpecError(f"{str(to)!r} cannot be written: make its folder first, or give another -o FILE")
    if service is None:
        given, counts = _from_files(source, tally)
        _save(given, counts, _made(given, counts, opens, days, to), to)
        return
    if tally is not None:
        raise SpecError("the next round is made from a tally: give its file, or a service --from")
    with Analyst(service, token) as analyst:
        given = find_round(analyst, source)
        states = {one.fingerprint: one for one in analyst.surveys()}
        listed = states.get(given.fingerprint)
        after = None if listed is None else listed.next_round
        if after is not None:
            known = analyst.survey(after)
            if to is not None:
                known.save(to)
            output.write(f"round {round_of(known).number} is published already: {analyst.address(after)}\n")
            return
        kept = _kept(to)
        if kept is not None and kept.fingerprint == given.fingerprint and round_of(kept).number > 1:
            # A name means the last round, and the file holds that one: an earlier call of this command made it.
            output.write(f"round {round_of(kept).number} is published already: {analyst.address(kept.fingerprint)}\n")
            return
        place = round_of(given)
        if place.last:
            raise SpecError(f"round {place.number} of {place.campaign.rounds} is the last: no round comes after it")
        state = "unknown" if listed is None else listed.state
        if state not in ("closed", "over"):
            if not publish or not yes or listed is None:
                how = "say --yes if it is to be closed now" if publish else "close it first with deniable survey close"
                raise SpecError(f"round {round_of(given).number} is {state} there, so its tally may change: {how}")
            # All checks come before the round is closed.
            _refuse_other(given, kept, to)
            _made(given, analyst.tally(given), opens, days, to)
            analyst.close_survey(given.fingerprint)
            output.write(f"closed: {analyst.address(given.fingerprint)}\n")
        counts = analyst.tally(given)
        made = _made(given, counts, opens, days, to)
        _save(given, counts, made, to)
        if publish:
            analyst.publish(made)
            output.write(f"published: {analyst.address(made.fingerprint)}\n")
            output.write(f"answer: {service.rstrip('/')}/s/{made.fingerprint}\n")


def _from_files(source: str, tally: str | None) -> tuple[Survey, SurveyTally]:
    if tally is None:
        raise SpecError("the next round is made from a tally: give its file, or a service --from")
    only_one_stdin(source, tally)
    given = read_survey(source)
    round_of(given)
    content = parse_json(read_text(tally), named(tally))
    try:
        return given, SurveyTally.from_spec(content)
    except DeniableError as wrong:
        raise type(wrong)(f"{named(tally)}: {wrong}") from None


def _kept(to: Path | None) -> Survey | None:
    """The survey that the file already holds, for example from a command that broke off."""
    return read_target(str(to)) if to is not None and to.is_file() else None


def _refuse_other(given: Survey, kept: Survey | None, to: Path | None) -> None:
    place = None if kept is None or kept.terms is None else kept.terms.campaign
    if kept is not None and (place is None or place.before != given.fingerprint):
        raise SpecError(
            f"{str(to)!r} holds another survey than the round after round {round_of(given).number}: "
            "give another -o FILE"
        )


def _made(given: Survey, counts: SurveyTally, opens: str | None, days: int | None, to: Path | None) -> Survey:
    """The next round: the one that the file already holds, or a new one."""
    kept = _kept(to) if opens is None and days is None else None
    if kept is not None:
        _refuse_other(given, kept, to)
        check_round(given, counts, kept)
        return kept
    terms = given.terms
    assert terms is not None
    begins = int(time.time()) // 3600 * 3600 if opens is None else read_time(opens)
    length = terms.expires - terms.opens if days is None else 86_400 * days
    if length < 1:
        raise SpecError("the next round is open for one day at least: give --days 1 or more")
    return next_round(given, counts, begins, begins + length)


def _save(given: Survey, counts: SurveyTally, made: Survey, to: Path | None) -> None:
    if to is None:
        output.write(made.to_json())
        return
    made.save(to)
    print_survey(made)
    output.write("\n")
    told = round_of(made).campaign.told
    both = ((q.id, [given[q.id].protocol, q.protocol]) for q in made)
    rows = [[id, *(shown(told(one)) or answers_of(one.domain) for one in asked)] for id, asked in both]
    output.table(["question", "this round", "next round"], rows, left=3)
    output.write(f"\nmade from: {many(min(one.n for one in counts.tallies.values()), 'answer')}, {counts.digest}\n")
    output.write(f"saved: {to}\n")


@app.command("rounds", epilog=examples("deniable survey rounds work --from https://collect.example.org"))
def rounds(
    source: Annotated[str, argument("SURVEY", "Any round: a file, its name at the service, or its fingerprint.")],
    service: Annotated[str, option("URL", "The collection service.", "--from")],
    token: AnalystToken = None,
    as_json: Json = False,
) -> None:
    """Show the rounds of a campaign at a service.

    Each with how many answered it, and with the tally that it was made from.
    """
    with Analyst(service, token) as analyst:
        rounds, tallies = service_rounds(analyst, find_round(analyst, source))
        states = {one.fingerprint: one.state for one in analyst.surveys()}
    check_chain(rounds, tallies)
    rule = round_of(rounds[0])
    listed = [
        {
            "round": number,
            "fingerprint": one.fingerprint,
            "state": states.get(one.fingerprint, "unknown"),
            "n": min(tally[id].n for id in questions(one)),
            "made_from": round_of(one).tally,
        }
        for number, (one, tally) in enumerate(zip(rounds, tallies, strict=True), start=1)
    ]
    if as_json:
        head = {"name": rounds[0].name, "kind": rule.campaign.kind, "rounds": rule.campaign.rounds}
        output.document(head | {"published": listed})
        return
    output.facts([("campaign", f"{shown(rounds[0].name)}, {campaign_words(rule)}"), ("rounds", _so_far(rounds))])
    output.write("\n")
    cells = [[str(one["round"]), str(one["state"]), f"{one['n']:,}", one["fingerprint"]] for one in listed]
    output.table(["round", "state", "answers", "survey"], [list(map(str, row)) for row in cells], left=2)
    output.write("\nverified: each round follows from the tally of the one before\n" if len(rounds) > 1 else "")
    if not round_of(rounds[-1]).last:
        output.write(f"next: deniable survey next {rounds[-1].fingerprint[:12]} --from {service} -o FILE\n")


def _so_far(rounds: list[Survey]) -> str:
    return f"{len(rounds)} of {round_of(rounds[0]).campaign.rounds} published"


@app.command(
    "verify-rounds",
    epilog=examples(
        "deniable survey verify-rounds round-1.json tally-1.json round-2.json",
        "deniable survey verify-rounds round-1.json tally-1.json round-2.json tally-2.json",
    ),
)
def verify_rounds(
    sources: Annotated[
        list[str],
        argument(
            "FILES...", "The surveys of all rounds, and the tallies that the later ones were made from, in any order."
        ),
    ],
) -> None:
    """Check that each round follows from the one before.

    It was made from the tally of that round, and from nothing else. The exit code is 0 if it was, and 2 otherwise; then
    one sentence says what is wrong.
    """
    only_one_stdin(*sources)
    rounds, tallies = read_rounds(sources)
    check_chain(rounds, tallies)
    rule = round_of(rounds[0])
    rows = [[str(number), one.fingerprint, round_of(one).tally or "-"] for number, one in enumerate(rounds, start=1)]
    output.facts([("campaign", campaign_words(rule)), ("rounds so far", str(len(rounds)))])
    output.write("\n")
    output.table(["round", "survey", "made from the tally"], rows, left=3)
    output.write("\nverified: each round follows from the tally of the one before\n" if len(rounds) > 1 else "")
