"""`deniable survey`: make a survey file from a draft, check it, compare it with another, publish it."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated, Any

import typer

from deniable import exact
from deniable.cli import output
from deniable.cli.files import named, only_one_stdin, parse_json, read_text
from deniable.cli.options import AdminToken, Json, examples
from deniable.cli.output import shown
from deniable.cli.targets import About, Output, level, read_target
from deniable.errors import DeniableError, SpecError
from deniable.surveys import Survey, Terms
from deniable.surveys.diff import diff, weaker
from deniable.surveys.terms import write_time

app = typer.Typer(rich_markup_mode=None, invoke_without_command=True)


@app.callback(
    epilog=examples(
        "deniable survey new draft.json -o survey.json",
        "deniable survey show survey.json",
        "deniable survey validate survey.json",
        "deniable survey diff last-year.json survey.json",
        "deniable survey publish survey.json --to https://collect.example.org",
    )
)
def survey(ctx: typer.Context) -> None:
    """Survey files: questions with their protocols, known by a fingerprint."""
    if ctx.invoked_subcommand is None:
        output.write(ctx.get_help() + "\n")


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
    made = _drafted(content, draft)
    if to is None:
        output.write(made.to_json())
        return
    made.save(to)
    print_survey(made)
    output.write(f"\nsaved: {to}\n")


@app.command(
    epilog=examples(
        "deniable survey show survey.json",
        "deniable survey show survey.json --json",
        "deniable survey show survey.json --canonical | sha256sum     (the fingerprint)",
    )
)
def show(
    source: About,
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
    source: About,
    at_most: Annotated[
        str | None,
        typer.Option(
            "--epsilon", metavar="E", help="The most that a device may give away in its lifetime.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a survey: every field, every protocol's exact level, and what a lifetime may give away."""
    made = _read(source)
    if as_json:
        output.document(describe(made))
    else:
        print_survey(made)
    if at_most is None:
        return
    limit = exact.fraction(at_most, "the epsilon")
    if made.lifetime_epsilon > limit:
        output.note("false", f"a lifetime may give away epsilon {made.lifetime_epsilon}, more than {limit}")
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
    """Say what changes for a respondent from one survey to the next; fail when privacy gets weaker."""
    only_one_stdin(before, after)
    old, new = _read(before), _read(after)
    changes = diff(old, new)
    worse = weaker(changes)
    if as_json:
        listed = [asdict(change) for change in changes]
        output.document({"old": old.fingerprint, "new": new.fingerprint, "weaker": worse, "changes": listed})
    elif not changes:
        output.write(f"the same survey: {old.fingerprint}\n")
    else:
        rows = [[shown(cell) for cell in (c.what, c.before, c.after, c.privacy)] for c in changes]
        output.table(["what", "old", "new", "privacy"], rows, left=4)
    if worse and not allowed:
        output.note("false", "privacy gets weaker: if that is meant, say --weaker-privacy")
        raise typer.Exit(1)


@app.command(
    epilog=examples(
        "deniable survey publish survey.json --to https://collect.example.org",
        "deniable survey publish draft.json --to http://127.0.0.1:8000 -o survey.json",
    )
)
def publish(
    source: Annotated[
        str, typer.Argument(metavar="SURVEY", help="A survey, or a draft of one, in JSON.", show_default=False)
    ],
    server: Annotated[str, typer.Option("--to", metavar="URL", help="The collection service.", show_default=False)],
    token: AdminToken = None,
    to: Output = None,
) -> None:
    """Publish a survey at a collection service. Of a draft, the planner's choices are made now and written down."""
    content = parse_json(read_text(source), named(source))
    made = _drafted(content, source) if is_draft(content) else _read_spec(content, source)
    if made.terms is None:
        raise SpecError(f"{named(source)} is for files only: a collection needs owner, purpose and an end")
    if is_draft(content) and to is None:
        raise SpecError("a published draft becomes a survey: say with -o FILE where it is to be kept")
    from deniable.collect.analyst import Analyst

    if to is not None:
        made.save(to)
    with Analyst(server, token) as service:
        fresh = service.publish(made)
    print_survey(made)
    output.write(f"\n{'published' if fresh else 'was published before'}: {service.address(made.fingerprint)}\n")
    output.write(f"answer: {server.rstrip('/')}/s/{made.fingerprint}\n")
    output.write(f"dashboard: {server.rstrip('/')}/dashboard/{made.fingerprint}\n")
    if to is not None:
        output.write(f"saved: {to}\n")


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


def _drafted(content: Any, source: str) -> Survey:
    try:
        return Survey.from_draft(content)
    except DeniableError as wrong:
        raise type(wrong)(f"{named(source)}: {wrong}") from None


def print_survey(survey: Survey) -> None:
    output.facts(
        [
            ("survey", shown(survey.name)),
            ("fingerprint", survey.fingerprint),
            ("questions", str(len(survey))),
            ("epsilon", f"{level(survey.epsilon, survey.realized_epsilon)}, all questions together"),
            ("report", f"{survey.report_bytes} bytes a person"),
            *(_terms(survey, survey.terms) if survey.terms is not None else []),
        ]
    )
    output.write("\n")
    rows = [
        [q.id, q.text, p.name, str(p.domain), str(p.epsilon), str(p.report_bytes)]
        for q, p in ((question, question.protocol) for question in survey)
    ]
    head = ["question", "text", "protocol", "answers", "epsilon", "bytes"]
    output.table(head, [[shown(cell) for cell in row] for row in rows], left=4)


def _terms(survey: Survey, terms: Terms) -> list[tuple[str, str]]:
    rule, epochs = terms.longitudinal, terms.epochs
    often = "once" if rule.epochs == 1 else f"once an epoch, {rule.epochs} times at most"
    if rule.rule == "memoize":
        often += f"; an answer is drawn once and repeated, for {rule.values} different at most"
    budget = f"{exact.canonical(terms.budget.epsilon)} for the group {terms.budget.group}"
    return [
        ("lifetime", f"epsilon {exact.canonical(survey.lifetime_epsilon)} at most, of a budget of {budget}"),
        ("answered", often),
        ("owner", shown(terms.owner)),
        ("purpose", shown(terms.purpose)),
        ("open", f"{write_time(terms.opens)} to {write_time(terms.expires)}, in epochs of {epochs.seconds} s"),
        ("kept", "tallies only" if terms.retention == "tally" else "reports"),
        ("shown from", f"{terms.show_from} answers on"),
        *([("replaces", terms.replaces)] if terms.replaces else []),
    ]


def describe(survey: Survey) -> dict[str, Any]:
    return {
        "name": survey.name,
        "fingerprint": survey.fingerprint,
        "epsilon": str(survey.epsilon),
        "realized_epsilon": survey.realized_epsilon,
        "ratio": str(survey.ratio),
        "lifetime_epsilon": str(survey.lifetime_epsilon),
        "realized_lifetime_epsilon": survey.realized_lifetime_epsilon,
        "terms": None if survey.terms is None else survey.terms.spec(),
        "questions": [
            {
                "id": question.id,
                "text": question.text,
                "source": survey.source(question.id),
                "protocol": question.protocol.spec(),
                "fingerprint": question.protocol.fingerprint,
                "realized_epsilon": question.protocol.realized_epsilon,
                "report_bytes": question.protocol.report_bytes,
                "tally_size": question.protocol.tally_size,
            }
            for question in survey
        ],
    }
