"""`deniable survey`: make a survey file from a draft, and look at one."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from deniable.cli import output
from deniable.cli.files import named, parse_json, read_text
from deniable.cli.options import Json, examples
from deniable.cli.output import shown
from deniable.cli.targets import About, Output, level, read_target
from deniable.errors import DeniableError, SpecError
from deniable.surveys import Survey

app = typer.Typer(rich_markup_mode=None, invoke_without_command=True)


@app.callback(epilog=examples("deniable survey new draft.json -o survey.json", "deniable survey show survey.json"))
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
    try:
        made = Survey.from_draft(content)
    except DeniableError as wrong:
        raise type(wrong)(f"{named(draft)}: {wrong}") from None
    if to is None:
        output.write(made.to_json())
        return
    made.save(to)
    _print(made)
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
    given = read_target(source)
    if not isinstance(given, Survey):
        raise SpecError(f"{named(source)} is the spec of a protocol, not a survey")
    if canonical:
        sys.stdout.buffer.write(b"deniable-survey-v1\0" + given.canonical)
    elif as_json:
        output.document(_description(given))
    else:
        _print(given)


def _print(survey: Survey) -> None:
    output.facts(
        [
            ("survey", shown(survey.name)),
            ("fingerprint", survey.fingerprint),
            ("questions", str(len(survey))),
            ("epsilon", f"{level(survey.epsilon, survey.realized_epsilon)}, all questions together"),
            ("report", f"{sum(question.protocol.report_bytes for question in survey)} bytes a person"),
        ]
    )
    output.write("\n")
    rows = [
        [q.id, q.text, p.name, str(p.domain), str(p.epsilon), str(p.report_bytes)]
        for q, p in ((question, question.protocol) for question in survey)
    ]
    head = ["question", "text", "protocol", "answers", "epsilon", "bytes"]
    output.table(head, [[shown(cell) for cell in row] for row in rows], left=4)


def _description(survey: Survey) -> dict[str, Any]:
    return {
        "name": survey.name,
        "fingerprint": survey.fingerprint,
        "epsilon": str(survey.epsilon),
        "realized_epsilon": survey.realized_epsilon,
        "ratio": str(survey.ratio),
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
