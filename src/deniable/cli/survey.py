"""`deniable survey`: propose a draft, make a survey file from it, check, compare, publish and end it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable import exact
from deniable._files import parse_json, read_json
from deniable.channels.hypothesis import Decision
from deniable.cli import output
from deniable.cli.load_survey import (
    between_words,
    epsilon_words,
    find,
    losses,
    read_survey,
    refuse_expired,
    refuse_uncollected,
)
from deniable.cli.options import AdminToken, Json, Output, argument, named, new_app, only_one_stdin, option, read_text
from deniable.cli.output import examples, many, shown
from deniable.collect.analyst import Analyst
from deniable.collect.wire import HEADER_BYTES, ID_BYTES
from deniable.design.base import FORMAT
from deniable.domains import Categories, Domain
from deniable.errors import DeniableError, SpecError
from deniable.exact import epsilon_text
from deniable.files.proposal import propose
from deniable.labels import text
from deniable.planning import Plan
from deniable.surveys import Survey, Terms, schemas
from deniable.surveys.campaign import Round
from deniable.surveys.diff import diff, weaker
from deniable.surveys.draft import as_one_record, crowds, divided, has_epsilon, plan_draft
from deniable.surveys.expected import LEVEL, LISTED, SHARE, UNIT, Expected, expected
from deniable.surveys.promises import amplified, band, kept, lifetime, paragraphs, promises
from deniable.surveys.results import part_id
from deniable.surveys.terms import PRIVATE, PUBLIC, span, write_time
from deniable.words import DEFAULT, LANGUAGES, without_marks

Given = Annotated[str, argument("SURVEY", "A survey file, in JSON.")]

app = new_app()

_MOST_ANSWERS = 80
"""Maximum number of characters of the possible answers in a table."""
_READERS = {PRIVATE: "people with a token", PUBLIC: "everybody"}
WIDE = 0.1
"""Intervals with a larger half-width than this say little."""


@app.callback(
    epilog=examples(
        "deniable survey draft answers.csv -o draft.json",
        "deniable survey new draft.json -o survey.json",
        "deniable survey show survey.json",
        "deniable survey validate survey.json",
        "deniable survey diff last-year.json survey.json",
        "deniable survey publish survey.json --to https://collect.example.org",
        "deniable survey close after-work --at https://collect.example.org --yes",
        "deniable survey next round-1.json tally-1.json -o round-2.json",
        "deniable survey sum-shares survey.json --epoch 0 -o tally.json",
    )
)
def survey(ctx: typer.Context) -> None:
    """Make, check, compare and publish surveys and their rounds.

    A survey file holds questions with their protocols, and is known by its fingerprint.
    """
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
    answers: Annotated[str, argument("ANSWERS", "CSV with a header, or Parquet; '-' for CSV on standard input.")],
    to: Output = None,
    epsilon: Annotated[str, option("E", "Of every question.", default=True)] = "1",
    at_least: Annotated[
        int, option("N", "Answers of fewer people are not listed: they count as other.", default=True)
    ] = 10,
) -> None:
    """Propose a draft for a file of answers.

    It has a question per column. Read and correct it before it is used. Few different values become a list, whole
    numbers a range, everything else open text. Columns that look like ids, names or dates are left out. The labels of a
    survey are public, and these come from true data.
    """
    exact.as_epsilon(epsilon)
    found = propose(answers, epsilon, at_least)
    for name, reason in found.left_out.items():
        output.note("left out", f"{shown(name)}: {reason}")
    if not found.draft["questions"]:
        raise SpecError(f"no column of {named(answers)} can be a question as it is: the reasons are above")
    if to is None:
        output.document(found.draft)
    else:
        output.save_json(to, found.draft, indent=2)
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
    """The answers of a question, in a few words."""
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
        "deniable survey new draft.json --table effect=proof.json -o survey.json",
        """echo '{"name": "habits", "epsilon": "1", "questions": [{"id": "smoke", "text": "Do you smoke?",""",
        """      "answers": ["yes", "no"], "protocol": "GRR"}]}' | deniable survey new - -o survey.json""",
    )
)
def new(
    draft: Annotated[str, argument("DRAFT", "A draft in JSON: questions with answers, epsilon and protocol.")],
    tables: Annotated[
        list[str] | None,
        option(
            "[ID=]PROOF",
            "A proof that deniable design saved, or a channel: it asks this question, or the only one without "
            "answers; may be repeated.",
            "--table",
        ),
    ] = None,
    to: Output = None,
) -> None:
    """Make a survey from a draft.

    Fills in the protocol of each question, by name or by the planner's choice. A mechanism of deniable design asks a
    question with --table, or as "answers": {"table": "proof.json"} in the draft.
    """
    content = parse_json(read_text(draft), named(draft))
    if isinstance(content, dict) and content.get("format") == FORMAT:
        raise SpecError(
            f"{named(draft)} is a proof, not a draft: give a draft with the question, and the proof with --table"
        )
    content = _with_proofs(_with_tables(content, tables or []), Path(draft).parent)
    made, plans = _drafted(content, draft)
    if to is None:
        output.write(made.to_json())
    else:
        made.save(to)
        _print_made(made, plans, content)
        output.write(f"\nsaved: {to}\n")
    _advise(made, content)


def _with_tables(draft: Any, tables: list[str]) -> Any:
    """The draft with the mechanisms of --table as the answers of their questions."""
    entries = draft.get("questions") if isinstance(draft, dict) else None
    asked = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    for table in tables:
        id, equals, path = table.partition("=")
        known = [entry for entry in asked if equals and entry.get("id") == id]
        if not known:
            path = table
            known = [entry for entry in asked if "answers" not in entry and "protocol" not in entry]
            if equals and not os.path.exists(path):
                named = ", ".join(str(entry.get("id")) for entry in asked)
                raise SpecError(f"there is no question {id!r} in the draft; there are {named}")
        if len(known) != 1:
            listed = ", ".join(str(entry.get("id")) for entry in asked)
            raise SpecError(f"say which question {table!r} is for, as --table ID=PROOF; there are {listed}")
        given = known[0].get("answers", {})
        if not isinstance(given, dict) or set(given) - {"number", "read"}:  # for a mean, the draft says which numbers
            raise SpecError(f"question {id!r} has answers in the draft already: leave them out, the table has its own")
        known[0]["answers"] = given | {"table": read_json(path)}
    return draft


def _with_proofs(draft: Any, folder: Path) -> Any:
    """The draft with the file names of proofs of `deniable design` replaced by the proofs."""
    entries = draft.get("questions") if isinstance(draft, dict) else None
    for entry in entries if isinstance(entries, list) else []:
        answers = entry.get("answers") if isinstance(entry, dict) else None
        if isinstance(answers, dict) and isinstance(answers.get("table"), str):
            answers["table"] = read_json(folder / answers["table"])
    return draft


@app.command(
    epilog=examples(
        "deniable survey schema draft -o draft.schema.json",
        """echo '{"$schema": "draft.schema.json", "name": ""}' > draft.json      (an editor completes the rest)""",
    )
)
def schema(
    kind: Annotated[str, argument("KIND", f"The kind of file: {', '.join(schemas.KINDS)}.")],
    to: Output = None,
) -> None:
    """Write the JSON Schema of a kind of file.

    Editors complete and check drafts by it, and programs in other languages read results by it.
    """
    if kind not in schemas.KINDS:
        raise SpecError(f"there is no schema of {kind!r}: there are {', '.join(schemas.KINDS)}")
    if to is None:
        output.data(schemas.stored(kind))
    else:
        to.write_text(schemas.stored(kind), encoding="utf-8")
        output.files(written=to)


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
        bool, typer.Option("--canonical", help="Write the bytes whose SHA-256 is the fingerprint.")
    ] = False,
    language: Annotated[
        str | None, option("CODE", "Show the texts and the promises in this language of the survey.", "--language")
    ] = None,
) -> None:
    """Show a survey, and what it promises.

    Its fingerprint, its questions, what one submission gives away, and what respondents read.
    """
    given = read_survey(source)
    if canonical:
        sys.stdout.buffer.write(b"deniable-survey-v1\0" + given.canonical)
    elif as_json:
        output.document(_describe(given))
    else:
        print_survey(given, language)
        output.write("\n")
        output.heading("what respondents read")
        spoken = language if language in LANGUAGES else DEFAULT
        for paragraph in paragraphs(promises(given, language=spoken), worst_case=True):
            output.prose(shown(without_marks(paragraph)))


@app.command(
    epilog=examples(
        "deniable survey validate survey.json",
        "deniable survey validate survey.json --epsilon 4        fails if a lifetime may give away more",
    )
)
def validate(
    source: Given,
    at_most: Annotated[
        str | None, option("E", "The most that a device may give away in its lifetime.", "--epsilon")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check every field and every epsilon of a survey.

    Also what a lifetime may give away. The exit code is 0 if the survey is valid, 1 if it is and a lifetime may give
    away more than --epsilon, 2 if the file is no valid survey; then one sentence says why.
    """
    made = read_survey(source)
    limit = None if at_most is None else exact.fraction(at_most, "the epsilon")
    most = made.lifetime_epsilon
    within = None if limit is None else most is not None and most <= limit
    if as_json:
        output.document({"valid": True, "within": within} | _describe(made))
    elif within is not False:
        _print_valid(made)
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
    before: Annotated[str, argument("OLD", "The survey as it was.")],
    after: Annotated[str, argument("NEW", "The survey as it would be.")],
    allowed: Annotated[bool, typer.Option("--weaker-privacy", help="Do not fail when privacy gets weaker.")] = False,
    as_json: Json = False,
) -> None:
    """Show what changes from one survey to the next.

    That is, for a respondent. Fails when privacy gets weaker. The exit code is 0 if nothing gets weaker or --weaker-
    privacy says that it is meant, 1 if privacy gets weaker, 2 if a file is no valid survey.
    """
    only_one_stdin(before, after)
    old, new = read_survey(before), read_survey(after)
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
    source: Annotated[str, argument("SURVEY", "A survey, or a draft of one, in JSON.")],
    server: Annotated[str, option("URL", "The collection service.", "--to")],
    token: AdminToken = None,
    to: Output = None,
    allowed: Annotated[
        bool, typer.Option("--weaker-privacy", help="Replace a survey by one with less privacy than it has.")
    ] = False,
) -> None:
    """Publish a survey at a collection service. For a draft, the planner chooses the protocols now.

    A survey that has expired is refused; one that opens later is not. A published survey cannot be changed: if the
    service already has a survey of the same name, that one stays, and a note says so. A survey that this one replaces
    must be published; if privacy gets weaker, nothing is published and the exit code is 1.
    """
    content = parse_json(read_text(source), named(source))
    made, plans = _drafted(content, source) if is_draft(content) else (_read_spec(content, source), {})
    refuse_uncollected(made, source)
    refuse_expired(made, source)
    if is_draft(content) and to is None:
        raise SpecError("a published draft becomes a survey: say with -o FILE where it is to be kept")
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


@app.command(
    epilog=examples(
        "deniable survey close after-work --at https://collect.example.org --yes",
        "deniable survey close 3f2a91c0 --at http://127.0.0.1:8377 --yes",
    )
)
def close(
    source: Annotated[
        str,
        argument("SURVEY", "A survey file, or the survey's name at the service, or the beginning of its fingerprint."),
    ],
    server: Annotated[str, option("URL", "The collection service.", "--at")],
    token: AdminToken = None,
    yes: Annotated[bool, typer.Option("--yes", help="Close a survey that can still be answered.")] = False,
) -> None:
    """End a survey for good.

    The service takes no more reports of it. What was collected stays, and can be read.
    """
    with Analyst(server, token) as service:
        given = find(service, source)
        states = {one.fingerprint: one.state for one in service.surveys()}
        state = states.get(given.fingerprint)
        if state is None:
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


# -- drafts and files ----------------------------------------------------------------------------------


def _print_made(made: Survey, plans: dict[str, Plan], draft: Any) -> None:
    """Show a survey that was made from a draft: its promises, their origin, and how precise it will be."""
    print_survey(made)
    _print_division(made, draft)
    _print_plans(made, plans)
    _print_expected(made, draft)
    _print_decisions(made)
    said = promises(made)
    output.write("\n")
    output.heading("what respondents read first")
    for name in ("line", "guess"):
        output.prose(shown(said[name]))


def _print_decisions(made: Survey) -> None:
    """Questions that were designed for hypotheses: how many people are needed to decide between them."""
    for question in made:
        for part, (protocol, nobody) in question.protocol.worth().split(question.protocol.empty()).items():
            start = protocol.worth().decide(nobody)
            if not isinstance(start, Decision):
                continue
            *rest, last = (shown(name) for name in start.names)
            names = f"{', '.join(rest)} and {last}"
            who = "people who report this part" if part else "people"
            enough = "no number of people decides" if start.people is None else f"about {start.people:,} {who} decide"
            id, level = part_id(question.id, part), exact.shown(start.level)
            output.write(f"\n{id}: {enough} between {names}, at level {level} nine times in ten\n")


def _advise(made: Survey, draft: Any) -> None:
    """Print the notes and warnings about a survey."""
    for kind, message in _advice(made, draft):
        output.note(kind, message)


def _words(value: Fraction | str) -> str:
    return epsilon_text(value) if isinstance(value, Fraction) else shown(value)


def is_draft(content: Any) -> bool:
    """Whether a JSON document is a draft."""
    return isinstance(content, dict) and "kind" not in content and "questions" in content


def _read_spec(content: Any, source: str) -> Survey:
    try:
        return Survey.from_spec(content)
    except DeniableError as wrong:
        raise type(wrong)(f"{named(source)}: {wrong}") from None


def _drafted(content: Any, source: str) -> tuple[Survey, dict[str, Plan]]:
    try:
        return plan_draft(Survey, content)
    except DeniableError as wrong:
        raise type(wrong)(f"{named(source)}: {wrong}") from None


# -- a survey in words, in a table and in JSON ---------------------------------------------------------


def print_survey(survey: Survey, language: str | None = None) -> None:
    """Show a survey and its questions, in its own or in another of its languages."""
    texts = survey.texts(language)
    output.facts(
        [
            ("survey", shown(texts["name"])),
            ("fingerprint", survey.fingerprint),
            ("questions", str(len(survey))),
            *([("languages", ", ".join(survey.languages))] if survey.languages else []),
            ("epsilon", _level(survey)),
            ("report", _sizes(survey)),
            *(_terms(survey, survey.terms, texts["purpose"]) if survey.terms is not None else []),
        ]
    )
    output.write("\n")
    rows = [
        [id, said["text"], p.name, answers_of(p.domain.translated(said)), epsilon_text(p.epsilon), str(p.report_bytes)]
        for id, said, p in ((one.id, texts["questions"][one.id], one.protocol) for one in survey)
    ]
    head = ["question", "text", "protocol", "answers", "epsilon", "bytes"]
    output.table(head, [[shown(cell) for cell in row] for row in rows], left=4)
    if said := amplified(survey):
        output.write("\n")
        output.prose(said)


def _print_valid(survey: Survey) -> None:
    """Say that a survey is valid, and what it promises."""
    output.facts(
        [
            ("valid", shown(survey.name)),
            ("fingerprint", survey.fingerprint),
            ("epsilon", _level(survey)),
            ("lifetime", _lifetime(survey)),
            ("protection", band(survey)),
        ]
    )
    if said := amplified(survey):
        output.prose(said)


def _print_plans(survey: Survey, plans: Mapping[str, Plan]) -> None:
    """Say why the planner chose each protocol."""
    if not plans:
        return
    rule = None if survey.terms is None else survey.terms.longitudinal
    few = ""
    if rule is not None and rule.keeps:
        few = ", of those with few enough different reports to be memoized"
    if rule is not None and rule.is_two_stage:
        few = ", of those with two stages and few enough states"
    output.write(f"\nthe planner's choice{few}:\n")
    for id, plan in plans.items():
        output.write(f"  {id}: {plan.reason}\n")


def _level(survey: Survey) -> str:
    return f"{epsilon_words(survey)}, all questions together{between_words(survey)}"


def _lifetime(survey: Survey) -> str:
    if survey.terms is None:
        return f"epsilon {epsilon_text(survey.epsilon)} if answered once: a survey for files keeps no count"
    budget = survey.terms.budget
    bound = f"{lifetime(survey)}{'' if survey.shows_changes else ' at most'}"
    delta = f" and delta {budget.delta}" if budget.delta else ""
    return f"{bound}; a budget of {epsilon_text(budget.epsilon)}{delta} for the group {budget.group}"


def _sizes(survey: Survey) -> str:
    answers = f"randomized answers {many(survey.report_bytes, 'byte')}"
    if survey.terms is None:
        return answers
    whole = HEADER_BYTES + ID_BYTES + survey.report_bytes
    if survey.terms.collectors:
        shares = f"{many(survey.report_bytes, 'byte')} of shares"
        return f"{shares}, {whole} to each of {len(survey.terms.collectors)} collectors"
    return f"{answers}, {whole} sent in all"


def answers_of(domain: Domain) -> str:
    """The possible answers, in full unless that would be a very long line.

    >>> answers_of(Categories(["yes", "no"]))
    'the 2 categories (yes, no)'
    >>> answers_of(Categories([f"city number {place}" for place in range(42)]))[-41:]
    'city number 3, city number 4 and 37 more)'
    """
    if not isinstance(domain, Categories):
        return str(domain)
    names = [text(value) for value in domain.values[:_MOST_ANSWERS]]
    lengths = accumulate(len(name) + 2 for name in names)
    fit = max(1, sum(length <= _MOST_ANSWERS + 2 for length in lengths))
    more = f" and {domain.size - fit} more" if domain.size > fit else ""
    return f"the {domain.size} categories ({', '.join(names[:fit])}{more})"


def _epochs(terms: Terms) -> str:
    if terms.count == 1:
        return f"one epoch of {span(min(terms.epochs.seconds, terms.expires - terms.opens))}"
    return f"{terms.count} epochs of {span(terms.epochs.seconds)}{''.join(f', {cut}' for cut in _cut_epochs(terms))}"


def _cut_epochs(terms: Terms) -> list[str]:
    """The first and the last epoch, if they are shorter than the others."""
    first = terms.epochs.start(terms.first + 1) - terms.opens
    last = terms.expires - terms.epochs.start(terms.last)
    ends = (("first", first), ("last", last)) if terms.count > 1 else ()
    return [f"the {name} of {span(length)}" for name, length in ends if length < terms.epochs.seconds]


def _clocks(terms: Terms) -> list[tuple[str, str]]:
    ends = (("early", terms.epochs.early), ("late", terms.epochs.late))
    said = [f"{many(count, 'epoch')} {name}" for name, count in ends if count]
    return [("accepted", f"answers up to {' and '.join(said)}")] if said else []


def _terms(survey: Survey, terms: Terms, purpose: str) -> list[tuple[str, str]]:
    """The terms of a survey, as names and values."""
    rule = terms.longitudinal
    often = "once" if rule.epochs == 1 else f"once per epoch, {rule.epochs} times at most"
    if rule.is_evolving:
        often += f"; one of up to {rule.changes} changes is reported, in one of these epochs"
    elif rule.is_two_stage:
        which = "the first answer is" if rule.values == 1 else f"up to {rule.values} different answers are"
        often += f"; {which} randomized once and kept, and every report is drawn from that"
    elif rule.keeps and rule.values == 1:
        often += "; the first answer is randomized once and repeated"
    elif rule.keeps:
        often += f"; up to {rule.values} different answers are randomized, each once, and repeated"
    counted = promises(survey).get("changes")
    return [
        ("lifetime", _lifetime(survey)),
        *([("counted", counted)] if counted else []),
        ("protection", band(survey)),
        ("answered", often),
        ("owner", shown(terms.owner)),
        ("purpose", shown(purpose)),
        ("open", f"{write_time(terms.opens)} to {write_time(terms.expires)}, {_epochs(terms)}"),
        *_clocks(terms),
        ("kept", kept(survey)),
        ("shown from", f"{many(terms.min_reports, 'answer')} on, to {_READERS[terms.results]}"),
        *([("replaces", terms.replaces)] if terms.replaces else []),
        *_place(terms),
    ]


def _place(terms: Terms) -> list[tuple[str, str]]:
    place = terms.campaign
    if place is None:
        return []
    words = f"{place.number} of {place.campaign.rounds}, {campaign_words(place)}; a device answers one round"
    said = [("round", words)]
    if place.before is not None and place.tally is not None:
        said += [("after", place.before), ("made from", f"the tally {place.tally}")]
    return said


def campaign_words(place: Round) -> str:
    """The kind of a campaign, with its parameters."""
    parameters = place.campaign.parameters().items()
    return f"{place.campaign.kind} ({', '.join(f'{name} {value}' for name, value in parameters)})"


def _describe(survey: Survey) -> dict[str, Any]:
    """A survey as JSON."""
    return {
        "name": survey.name,
        "fingerprint": survey.fingerprint,
        "epsilon": str(survey.epsilon),
        "delta": str(survey.delta),
        "relation": survey.relation,
        "realized_epsilon": survey.realized_epsilon,
        "ratio": str(survey.ratio),
        "protection": band(survey),
        "promises": promises(survey),
        "lifetime_epsilon": None if survey.lifetime_epsilon is None else str(survey.lifetime_epsilon),
        "budget_epsilon": str(survey.budget_epsilon),
        "realized_lifetime_epsilon": survey.realized_lifetime_epsilon,
        "terms": None if survey.terms is None else survey.terms.spec(),
        "language": survey.language,
        "translations": dict(survey.translations),
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


# -- how exact it will be, and what looks like a slip --------------------------------------------------


def _print_division(survey: Survey, draft: Mapping[str, Any]) -> None:
    """Say how epsilon follows from the budget, if it does."""
    share = divided(draft)
    if share is None or survey.terms is None:
        return
    named = sum(map(has_epsilon, as_one_record(draft)["questions"]))
    what = "round" if survey.terms.longitudinal.rule == "none" else "memoized answer"
    rest = ", after those that the draft names" if named else ""
    output.write("\n")
    output.prose(
        f"epsilon {epsilon_text(share)} per question: the budget of {epsilon_text(survey.terms.budget.epsilon)}, "
        f"divided equally over {many(survey.draws, what)} and {many(len(survey) - named, 'question')}{rest}"
    )


def _print_expected(survey: Survey, draft: Mapping[str, Any]) -> None:
    """Show how precise the result will be, for each question."""
    people = crowds(draft)
    if not people:
        return
    found = list(expected(survey, people))
    rows = [[shown(one.id), f"{one.people:,}", _interval(one), _visible(one)] for one in found]
    output.write(f"\nexpected{_each(survey)}:\n")
    output.table(["question", "people", f"{100 * LEVEL:g}% interval", "smallest visible share"], rows)
    if any(one.protocol.worth().read == "regression" for one in found):
        output.write("\n")
        output.prose(
            "A regression asks for means of queries, and reads the coefficients from them: how exact these are depends "
            "on how the columns hang together, and stands beside them in the result."
        )


def _interval(one: Expected) -> str:
    if one.half_width is None:  # different shares of the answers give the same reports
        return "not determined"
    if one.scale == UNIT:
        return f"+-{one.half_width:.3g} {shown(one.unit)}".rstrip()
    scale = "points" if one.scale == SHARE else "% of a query's range"
    return f"+-{_percent(one.half_width)} {scale}"


def _visible(one: Expected) -> str:
    if one.scale != SHARE or one.half_width is None or one.protocol.worth().read not in LISTED:
        return "-"
    return "none" if one.visible is None else f"{_percent(one.visible)} %"


def _advice(survey: Survey, draft: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Notes and warnings about a survey, each with its kind."""
    if survey.terms is not None and "epochs" in draft:
        for cut in _cut_epochs(survey.terms):
            yield "note", f"the epochs do not divide the collection: {cut} will have fewer answers than the others"
    yield from _too_wide(survey, crowds(draft))


def _too_wide(survey: Survey, people: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """A warning about questions whose intervals will be wide."""
    needed = {}
    for one in expected(survey, people):
        if one.protocol.worth().read not in ("shares", "series") or one.half_width is None:
            continue  # the necessary precision depends on what the figure is
        wide = one.half_width / WIDE
        if wide > 1:
            needed[one.id] = people[one.id.partition(".")[0]] * wide**2  # errors shrink with the root of the people
    if not needed:
        return
    again = survey.draws > 1 and survey.terms is not None and survey.terms.longitudinal.rule == "none"
    fewer = [what for what, some in (("questions", len(survey) > 1), ("rounds", again)) if some]
    sooner = f" (fewer {' or '.join(fewer)} leave more for each)" if fewer else ""
    memoize = (
        '. For answers that seldom change, the rule "memoize" takes epsilon for each different answer and not for each '
        "round, and so may allow a larger one"
    )
    yield (
        "warning",
        f"the intervals of {', '.join(needed)} are wider than +-{100 * WIDE:g} points: for these, ask about "
        f"{_round(max(needed.values())):,} people{_each(survey)}, or raise epsilon{sooner}{memoize if again else ''}",
    )


def _each(survey: Survey) -> str:
    return " in each epoch" if survey.terms is not None and survey.terms.longitudinal.epochs > 1 else ""


def _percent(share: float) -> str:
    """
    >>> _percent(0.16912), _percent(0.001234)
    ('16.9', '0.12')
    """
    return f"{100 * share:.1f}" if share >= 0.01 else f"{100 * share:.2g}"


def _round(value: float) -> int:
    """Rounded up to two digits.

    >>> _round(4301.0), _round(99.5), _round(4300.0)
    (4400, 100, 4300)
    """
    unit = int(10 ** max(0, len(str(int(value))) - 2))
    return -int(-value // unit) * unit
