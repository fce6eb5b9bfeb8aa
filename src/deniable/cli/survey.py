"""`deniable survey`: propose a draft, make a survey file of it, check, compare, publish and end it."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable import exact
from deniable.channels.levels import epsilon_text
from deniable.cli import output
from deniable.cli.closing import CLOSE_EXAMPLES, close
from deniable.cli.files import named, only_one_stdin, parse_json, read_text
from deniable.cli.options import AdminToken, Json, examples
from deniable.cli.output import shown
from deniable.cli.publishing import losses, refuse_expired, refuse_uncollected
from deniable.cli.survey_advice import advice, print_division, print_expected
from deniable.cli.survey_facts import describe, print_plans, print_survey, print_valid
from deniable.cli.targets import Output, read_target
from deniable.errors import DeniableError, SpecError
from deniable.surveys import Survey
from deniable.surveys.diff import diff, weaker
from deniable.surveys.promises import lifetime
from deniable.surveys.whole import whole

if TYPE_CHECKING:
    from deniable.planning import Plan

Given = Annotated[str, typer.Argument(metavar="SURVEY", help="A survey file, in JSON.", show_default=False)]

app = typer.Typer(rich_markup_mode=None, invoke_without_command=True)


@app.callback(
    epilog=examples(
        "deniable survey draft answers.csv -o draft.json",
        "deniable survey new draft.json -o survey.json",
        "deniable survey show survey.json",
        "deniable survey validate survey.json",
        "deniable survey diff last-year.json survey.json",
        "deniable survey publish survey.json --to https://collect.example.org",
        "deniable survey close after-work --at https://collect.example.org --yes",
    )
)
def survey(ctx: typer.Context) -> None:
    """Survey files: questions with their protocols, known by a fingerprint."""
    if ctx.invoked_subcommand is None:
        output.write(ctx.get_help() + "\n")


@app.command(
    "draft",
    epilog=examples(
        "deniable survey draft answers.csv -o draft.json",
        "deniable survey draft answers.parquet --at-least 50 --epsilon 1/2 -o draft.json",
    ),
)
def draft_from(
    answers: Annotated[
        str,
        typer.Argument(
            metavar="ANSWERS", help="CSV with a header, or Parquet; '-' for CSV on standard input.", show_default=False
        ),
    ],
    to: Output = None,
    epsilon: Annotated[str, typer.Option(metavar="E", help="Of every question.")] = "1",
    at_least: Annotated[
        int, typer.Option(metavar="N", help="Answers of fewer people are not listed: they count as other.")
    ] = 10,
) -> None:
    """Propose a draft for a file of answers: a question per column, to be read and corrected before it is used.

    Few different values become a list, whole numbers a range, everything else open text. Columns that look like ids,
    names or dates are left out. The labels of a survey are public, and these come from true data.
    """
    from deniable.engines.proposal import propose

    exact.as_epsilon(epsilon)
    found = propose(answers, epsilon, at_least)
    for name, reason in found.left_out.items():
        output.note("left out", f"{shown(name)}: {reason}")
    if not found.draft["questions"]:
        raise SpecError(f"no column of {named(answers)} can be a question as it is: the reasons are above")
    content = json.dumps(found.draft, indent=2, ensure_ascii=False) + "\n"
    if to is None:
        output.write(content)
    else:
        with whole(to) as file:
            file.write(content.encode())
        questions = found.draft["questions"]
        rows = [[one["id"], _kind(one["answers"], one), shown(found.columns[one["id"]])] for one in questions]
        output.table(["question", "answers", "column"], rows, left=3)
        _print_next(found.columns, answers, to)
    if len(found.columns) > 1:
        total = epsilon_text(exact.as_epsilon(epsilon) * len(found.columns))
        output.note("note", f"one row gives away epsilon {total} in all: keep only the questions that you need")
    if found.folded:
        output.note(
            "note", f"answers of fewer than {at_least} people count as other in {', '.join(found.folded)} (--at-least)"
        )
    output.note(
        "warning",
        "the listed answers and ranges were taken from true data, and everybody can read a survey: take out what could "
        "identify a person, and correct the texts, before it is published",
    )


def _kind(answers: Any, question: dict[str, Any]) -> str:
    if isinstance(answers, list):
        what = ", ".join(shown(label) for label in answers[:4]) + (", ..." if len(answers) > 4 else "")
    else:
        what = "any text" if answers == "text" else f"{answers['low']} to {answers['high']}"
    return what + "".join(f", {question[key]}" for key in ("other", "missing") if key in question)


def _print_next(columns: dict[str, str], answers: str, to: Path) -> None:
    named_otherwise = "".join(f" --column {shlex.quote(f'{id}={name}')}" for id, name in columns.items() if id != name)
    output.write(f"\nsaved: {to}\nnext:\n  deniable survey new {shlex.quote(str(to))} -o survey.json\n")
    output.write(f"  deniable privatize survey.json {shlex.quote(answers)}{named_otherwise} -o reports.parquet\n")


@app.command(
    epilog=examples(
        "deniable survey new draft.json -o survey.json",
        """echo '{"name": "habits", "epsilon": "1", "questions": [{"id": "smoke", "text": "Do you smoke?",""",
        """      "answers": ["yes", "no"], "protocol": "GRR"}]}' | deniable survey new - -o survey.json""",
    )
)
def new(
    draft: Annotated[
        str,
        typer.Argument(
            metavar="DRAFT", help="A draft in JSON: questions with answers, epsilon and protocol.", show_default=False
        ),
    ],
    to: Output = None,
) -> None:
    """Make a survey from a draft: fill in each question's protocol, by name or by the planner's choice."""
    content = parse_json(read_text(draft), named(draft))
    made, plans = _drafted(content, draft)
    if to is None:
        output.write(made.to_json())
    else:
        made.save(to)
        _print_made(made, plans, content)
        output.write(f"\nsaved: {to}\n")
    _advise(made, content)


@app.command(
    epilog=examples(
        "deniable survey show survey.json",
        "deniable survey show survey.json --json",
        "deniable survey show survey.json --canonical | sha256sum     (the fingerprint)",
    )
)
def show(
    source: Given,
    as_json: Json = False,
    canonical: Annotated[
        bool, typer.Option("--canonical", help="Write the very bytes whose SHA-256 is the fingerprint.")
    ] = False,
) -> None:
    """Show a survey: its fingerprint, its questions, and what one submission gives away at most."""
    given = _read(source)
    if canonical:
        sys.stdout.buffer.write(b"deniable-survey-v1\0" + given.canonical)
    elif as_json:
        output.document(describe(given))
    else:
        print_survey(given)


@app.command(
    epilog=examples(
        "deniable survey validate survey.json",
        "deniable survey validate survey.json --epsilon 4        fails if a lifetime may give away more",
    )
)
def validate(
    source: Given,
    at_most: Annotated[
        str | None,
        typer.Option(
            "--epsilon", metavar="E", help="The most that a device may give away in its lifetime.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a survey: every field, every protocol's exact epsilon, and what a lifetime may give away.

    The exit code is 0 if the survey is valid, 1 if it is and a lifetime may give away more than --epsilon, 2 if the
    file is no valid survey; then one sentence says why.
    """
    made = _read(source)
    limit = None if at_most is None else exact.fraction(at_most, "the epsilon")
    most = made.lifetime_epsilon
    within = None if limit is None else most is not None and most <= limit
    if as_json:
        output.document({"valid": True, "within": within} | describe(made))
    elif within is not False:
        print_valid(made)
    if limit is not None and not within:
        asked = epsilon_text(limit)
        given = (
            f"a lifetime may give away epsilon {epsilon_text(most)}, more than {asked}"
            if most is not None
            else lifetime(made)
        )
        output.note("over the limit", given)
        raise typer.Exit(1)


@app.command(
    "diff",
    epilog=examples(
        "deniable survey diff old.json new.json",
        "deniable survey diff old.json new.json --weaker-privacy        a change for the worse is meant",
    ),
)
def compare(
    before: Annotated[str, typer.Argument(metavar="OLD", help="The survey as it was.", show_default=False)],
    after: Annotated[str, typer.Argument(metavar="NEW", help="The survey as it would be.", show_default=False)],
    allowed: Annotated[bool, typer.Option("--weaker-privacy", help="Do not fail when privacy gets weaker.")] = False,
    as_json: Json = False,
) -> None:
    """Say what changes for a respondent from one survey to the next; fail when privacy gets weaker.

    The exit code is 0 if nothing gets weaker or --weaker-privacy says that it is meant, 1 if privacy gets weaker, 2 if
    a file is no valid survey.
    """
    only_one_stdin(before, after)
    old, new = _read(before), _read(after)
    changes = diff(old, new)
    worse = weaker(changes)
    if as_json:
        listed = [asdict(change) | {"before": str(change.before), "after": str(change.after)} for change in changes]
        output.document({"old": old.fingerprint, "new": new.fingerprint, "weaker": bool(worse), "changes": listed})
    elif not changes:
        output.write(f"the same survey: {old.fingerprint}\n")
    else:
        rows = [[shown(c.what), _words(c.before), _words(c.after), c.privacy] for c in changes]
        output.table(["what", "old", "new", "privacy"], rows, left=4)
    if worse and not allowed:
        what = ", ".join(change.what for change in worse)
        output.note("privacy gets weaker", f"{what} (if that is meant, say --weaker-privacy)")
        raise typer.Exit(1)


@app.command(
    epilog=examples(
        "deniable survey publish survey.json --to https://collect.example.org",
        "deniable survey publish draft.json --to http://127.0.0.1:8377 -o survey.json",
    )
)
def publish(
    source: Annotated[
        str, typer.Argument(metavar="SURVEY", help="A survey, or a draft of one, in JSON.", show_default=False)
    ],
    server: Annotated[str, typer.Option("--to", metavar="URL", help="The collection service.", show_default=False)],
    token: AdminToken = None,
    to: Output = None,
    allowed: Annotated[
        bool, typer.Option("--weaker-privacy", help="Replace a survey by one with less privacy than it has.")
    ] = False,
) -> None:
    """Publish a survey at a collection service. Of a draft, the planner's choices are made now and written down.

    A survey that has expired is refused; one that opens later is not. What is published cannot be changed: a survey of
    the same name that the service has already stays there, and is pointed out. One that it replaces must be there; if
    privacy gets weaker by that, nothing is published and the exit code is 1.
    """
    content = parse_json(read_text(source), named(source))
    made, plans = _drafted(content, source) if is_draft(content) else (_read_spec(content, source), {})
    refuse_uncollected(made, source)
    refuse_expired(made, source)
    if is_draft(content) and to is None:
        raise SpecError("a published draft becomes a survey: say with -o FILE where it is to be kept")
    from deniable.collect.analyst import Analyst

    with Analyst(server, token) as service:
        published = {one.fingerprint: one for one in service.surveys()}
        lost = losses(made, source, published, service.survey)
        if lost and not allowed:
            output.note("privacy gets weaker", f"{lost} (if that is meant, say --weaker-privacy)")
            raise typer.Exit(1)
        if to is not None:
            made.save(to)
        fresh = service.publish(made, weaker_privacy=allowed)
    namesakes = [one for id, one in published.items() if one.name == made.name and id != made.fingerprint]
    if is_draft(content):
        _print_made(made, plans, content)
    else:
        print_survey(made)
    output.write(f"\n{'published' if fresh else 'was published before'}: {service.address(made.fingerprint)}\n")
    output.write(f"answer: {server.rstrip('/')}/s/{made.fingerprint}\n")
    output.write(f"dashboard: {server.rstrip('/')}/dashboard/{made.fingerprint}\n")
    if to is not None:
        output.write(f"saved: {to}\n")
    for one in namesakes:
        output.note("note", f"the service also has {one.fingerprint}, {one.state}, of the same name {shown(one.name)}")
    if is_draft(content):
        _advise(made, content)


app.command(epilog=CLOSE_EXAMPLES)(close)


def _print_made(made: Survey, plans: dict[str, Plan], draft: Any) -> None:
    """A survey that was made of a draft: what it promises, how that came, and how exact it will be."""
    print_survey(made)
    print_division(made, draft)
    print_plans(made, plans)
    print_expected(made, draft)


def _advise(made: Survey, draft: Any) -> None:
    for kind, message in advice(made, draft):
        output.note(kind, message)


def _words(value: Fraction | str) -> str:
    return epsilon_text(value) if isinstance(value, Fraction) else shown(value)


def is_draft(content: Any) -> bool:
    return isinstance(content, dict) and "kind" not in content and "questions" in content


def _read(source: str) -> Survey:
    given = read_target(source)
    if not isinstance(given, Survey):
        raise SpecError(f"{named(source)} is the spec of a protocol, not a survey")
    return given


def _read_spec(content: Any, source: str) -> Survey:
    try:
        return Survey.from_spec(content)
    except DeniableError as wrong:
        raise type(wrong)(f"{named(source)}: {wrong}") from None


def _drafted(content: Any, source: str) -> tuple[Survey, dict[str, Plan]]:
    from deniable.surveys.draft import plan_draft

    try:
        return plan_draft(content)
    except DeniableError as wrong:
        raise type(wrong)(f"{named(source)}: {wrong}") from None
