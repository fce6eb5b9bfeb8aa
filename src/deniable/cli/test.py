"""`deniable test`: what reports say about hypotheses: laws, given shares, a given mean, or groups that are alike."""

from __future__ import annotations

import math
import os
from fractions import Fraction
from typing import Annotated, Any, cast

import typer

from deniable import exact
from deniable._files import parse_json
from deniable.channels import Channel
from deniable.channels.hypothesis import Decision, decide
from deniable.channels.laws import Laws, read_laws as as_laws
from deniable.cli import output
from deniable.cli.estimate import EpochRange, Few, FromService, Summed, sums
from deniable.cli.load_survey import questions, shown_enough
from deniable.cli.options import (
    STDIN,
    AnalystToken,
    Csv,
    Formulas,
    Json,
    is_json,
    named,
    new_app,
    one_format,
    only_one_stdin,
    read_text,
)
from deniable.cli.output import examples, shown
from deniable.cli.read_channels import Names, read_channel, read_laws, read_some, read_vector
from deniable.design import Certificate
from deniable.design.base import FORMAT
from deniable.domains import ListedDomain
from deniable.errors import LabelError, MismatchError, SpecError
from deniable.protocols.traits import needs_candidates
from deniable.results import Document, Result, SignificanceTest, compare
from deniable.results.document import plain
from deniable.results.render.csv import as_csv as csv_text
from deniable.results.render.text import cells
from deniable.surveys import Survey, SurveyTally
from deniable.surveys.results import ONCE, SAME_DEVICES, Repeats, find, part_id

app = new_app()

_SHARES, _NUMBERS = ("shares",), ("mean", "distribution")


@app.command(
    "test",
    epilog=examples(
        "deniable test survey.json tally.json",
        "deniable test survey.json reports.parquet --question effect --level 0.01 --json",
        "deniable test survey.json --from https://collect.example.org",
        "deniable test proof.json --counts 290,210",
        "deniable test coin --counts yes=290,no=210 --law yes=0.5,no=0.5 --law yes=0.8,no=0.2",
        "deniable test channel.json --counts counts.csv --laws laws.csv --csv",
        "deniable test survey.json tally.json --question smoke --shares yes=0.25,no=0.75",
        "deniable test survey.json tally.json --question sleep --mean 7.5",
        "deniable test survey.json spring.json --against autumn.json",
        "deniable test survey.json tally.json --strata",
        "(laws.csv has a first row with the names of the laws, and lines label,P0,P1 below it)",
    ),
)
def decide_between(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SURVEY",
            help="A survey file, the spec of a protocol or, with --from, a survey's name there. With --counts: a "
            "channel (a file, or a closed form such as coin), or a proof of deniable design.",
            show_default=False,
        ),
    ],
    inputs: Summed = None,
    counts: Annotated[
        str | None,
        typer.Option(
            metavar="COUNTS",
            help="How often each output of a channel came: 620,380 or yes=620,no=380, or a file (CSV or JSON).",
            show_default=False,
        ),
    ] = None,
    laws: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help='The hypotheses: CSV with a column per law, or JSON {"laws": {name: [...]}, "inputs": [...]}.',
            show_default="those that the question was designed for",
        ),
    ] = None,
    law: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LAW", help="One hypothesis: 0.5,0.5 or yes=0.5,no=0.5; once per law.", show_default=False
        ),
    ] = None,
    level: Annotated[
        str, typer.Option(metavar="P", help="The verdict is wrong with this probability at most.")
    ] = "0.05",
    question: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Only this question, or this part of a record (habits.age).",
            show_default="all with hypotheses",
        ),
    ] = None,
    shares: Annotated[
        str | None,
        typer.Option(
            metavar="SHARES",
            help="Test whether the shares of the answers are these: yes=0.25,no=0.75. Answers left out: none; where "
            "several may be given, or any text, they are not tested.",
            show_default=False,
        ),
    ] = None,
    mean: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="Test whether the mean of a number is this one.", show_default=False),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Reports or a tally of another group: test whether the groups are alike; once per group.",
            show_default=False,
        ),
    ] = None,
    strata: Annotated[
        bool, typer.Option("--strata", help="Test whether the strata of a survey, such as its countries, differ.")
    ] = False,
    service: FromService = None,
    token: AnalystToken = None,
    epochs: EpochRange = None,
    few: Few = False,
    as_json: Json = False,
    as_csv: Csv = False,
    formulas: Formulas = False,
) -> None:
    """Test hypotheses, shares, a mean or groups, with p-values.

    With --shares, --mean or --against a chi-square test uses the noise of the protocol and the error of having asked
    these people and not others.

    Without them the hypotheses are the laws that a question was designed for. A law is rejected if its p-value is at
    most the level; the verdict is the likeliest one, if all others are rejected. If not, nothing is decided, and the
    output says about how many more people would decide.

    The number of reports has to be fixed beforehand: who looks several times goes by the p-values for any number of
    looks, which laws have.
    """
    one_format(as_json, as_csv)
    only_one_stdin(source, counts, laws, *(inputs or []))
    target: Survey | None
    given = [shares is not None, mean is not None, bool(against), strata]
    if any(given):
        if sum(given) > 1 or laws is not None or law or counts:
            raise SpecError("give one hypothesis: --shares, --mean, --against, --strata, --laws or --law")
        target, total, repeats = sums(source, inputs, service, token, epochs)
        others = [sums(source, [one], None, None, None)[1] for one in against or []]
        tested = (
            _tested_strata(target, total, repeats, question)
            if strata
            else _tested(target, total, repeats, others, shares, mean, question, few)
        )
        _write_tests(target, tested, exact.fraction(level, "the level"), as_json, as_csv, formulas)
        return
    if laws is not None and law:
        raise SpecError("give the hypotheses in a file with --laws, or one by one with --law, not both")
    if counts is not None:
        if inputs or service is not None or epochs is not None or question is not None:
            raise SpecError("--counts goes with a channel: a survey's reports are files, or come --from a service")
        found = {"": _of_counts(source, counts, laws, law, level)}
        target = None
    else:
        target, found = _of_reports(source, inputs, laws, law, level, question, service, token, epochs, few)
    if as_json:
        output.document(_document(target, found))
    elif as_csv:
        _write_csv(target, found, formulas)
    else:
        texts = {} if target is None else questions(target)
        for place, (id, decision) in enumerate(found.items()):
            _print(id, texts[id.partition(".")[0]][0] if texts else "", decision, first=place == 0)


def _of_counts(source: str, counts: str, laws: str | None, law: list[str] | None, level: str) -> Decision:
    channel, own = _mechanism(source)
    names = Names.of(channel.inputs, "input")
    between = _hypotheses(laws, law, names) or own
    if between is None:
        raise SpecError("there are no hypotheses: give them in a file with --laws, or with --law, once per law")
    return decide(channel, between, read_vector(counts, Names.of(channel.outputs, "output"), "counts"), level)


def _mechanism(source: str) -> tuple[Channel, Laws | None]:
    """A channel, and the hypotheses that it was designed for if it comes from a proof."""
    if source != STDIN and os.path.isfile(source):
        content = read_text(source)
        if is_json(content):
            value = parse_json(content, named(source))
            if isinstance(value, dict) and value.get("format") == FORMAT:
                proof = Certificate.load(value)
                return proof.mechanism, proof.hypotheses
            if isinstance(value, dict) and value.get("kind") in ("survey", "protocol"):
                raise SpecError(f"{named(source)} is a {value['kind']}, and --counts goes with a channel")
    return read_channel(source), None


def _hypotheses(laws: str | None, law: list[str] | None, names: Names) -> Laws | None:
    """The given laws, in the order of the answers."""
    if law:
        return Laws.numbered([_weights(read_vector(one, names, f"law {i}")) for i, one in enumerate(law)])
    if laws is None:
        return None
    read, inputs = read_laws(laws)
    if inputs is None:
        return as_laws(read)
    places = [names.place(str(label), f"{named(laws)}: ") for label in inputs]
    if sorted(places) != list(range(len(names.labels))):
        raise LabelError(f"{named(laws)} needs one line for each of the {len(names.labels)} {names.what}s")
    return as_laws({name: [share for _, share in sorted(zip(places, one, strict=True))] for name, one in read.items()})


def _weights(law: list[Fraction]) -> tuple[int, ...]:
    return as_laws([law, law]).weights[0]


def _of_reports(
    source: str,
    inputs: list[str] | None,
    laws: str | None,
    law: list[str] | None,
    level: str,
    question: str | None,
    service: str | None,
    token: str | None,
    epochs: str | None,
    few: bool,
) -> tuple[Survey, dict[str, Decision]]:
    target, total, repeats = sums(source, inputs, service, token, epochs)
    tallies = total.tallies
    # A record's parts are decided one by one, each from its own reports.
    known = {
        part_id(id, part): own
        for id, (_, protocol) in questions(target).items()
        for part, own in protocol.worth().split(tallies[id]).items()
    }
    if question is not None and question not in known:
        raise LabelError(f"there is no question {question!r}; there are {', '.join(known)}")
    given = laws is not None or bool(law)
    asked = [id for id, (one, _) in known.items() if one.worth().hypotheses or (given and one.worth().takes_laws)]
    if question is not None:
        if question not in asked:
            raise SpecError(
                f"question {question!r} was not designed for hypotheses: a table of deniable design is, and --laws "
                "names the hypotheses of any other table"
            )
        asked = [question]
    if not asked:
        raise SpecError("no question here was designed for hypotheses (deniable design, deniable survey new --table)")
    if given and len(asked) > 1:
        raise SpecError(f"say with --question which one the laws are about: {', '.join(asked)}")
    if repeats != ONCE:
        raise MismatchError(f"{SAME_DEVICES} (--epochs 3)")
    decisions = {}
    for id in asked:
        table, tally = known[id]
        if tally.n and not shown_enough(target, id, tally.n, few):
            continue
        answers = cast(ListedDomain, table.domain)  # a table's answers are listed
        own = _hypotheses(laws, law, Names.of(tuple(answers.labels), "answer"))
        decisions[id] = table.worth().decide(tally, level, own)
    if not decisions:
        raise MismatchError("there are too few reports to decide from")
    return target, decisions


# -- given shares, a mean, other groups ---------------------------------------------------------------------


def _parts(target: Survey, total: SurveyTally, repeats: Repeats, question: str | None = None) -> dict[str, Result]:
    """The results of the questions that need no further input, by question and part; or of one of them."""
    tallies = total.tallies
    found: dict[str, Result] = {}
    known = questions(target)
    only = None if question is None else question.partition(".")[0]
    for id, (_, protocol) in known.items():
        if not needs_candidates(protocol) and (only not in known or id == only):
            whole = find(protocol, tallies[id], repeats=repeats)
            found |= {part_id(id, part): one for part, one in whole.parts.items()}
    return found


def _tested(
    target: Survey,
    total: SurveyTally,
    repeats: Repeats,
    others: list[SurveyTally],
    shares: str | None,
    mean: float | None,
    question: str | None,
    few: bool,
) -> dict[str, SignificanceTest]:
    own = _parts(target, total, repeats, question)
    if question is not None and question not in own:
        raise LabelError(f"there is no question {question!r}; there are {', '.join(own)}")
    groups = [own, *(_parts(target, one, ONCE, question) for one in others)]
    given = shares is not None or mean is not None
    fits = [id for id, one in own.items() if one.family in (_NUMBERS if shares is None else _SHARES)]
    asked = [question] if question is not None else fits if given else list(own)
    if given and len(asked) != 1:
        raise SpecError(f"say with --question which one is tested: {', '.join(asked) or 'there is none of this kind'}")
    found = {}
    for id in asked:
        each = [group[id] for group in groups]
        if not all(shown_enough(target, id, int(one.n), few) for one in each if one.n):
            continue
        if shares is not None:
            first: Any = each[0]
            if first.family not in _SHARES:
                raise SpecError(f"question {id!r} is not about shares of answers: --mean tests the mean of a number")
            known = Names.of(tuple(first.labels), "answer")
            left_out = 0.0 if first.is_whole else math.nan
            written = read_some(shares, known, "shares")
            found[id] = first.test([left_out if one is None else float(one) for one in written])
        elif mean is not None:
            if each[0].family not in _NUMBERS:
                raise SpecError(
                    f"question {id!r} is not about a number whose mean is read: test its shares with --shares"
                )
            found[id] = each[0].test(mean)
        else:
            found[id] = compare(*each)
    if not found:
        raise MismatchError("there are too few reports to test")
    return found


def _tested_strata(
    target: Survey, total: SurveyTally, repeats: Repeats, question: str | None
) -> dict[str, SignificanceTest]:
    tallies = total.tallies
    known = {id: one for id, (_, one) in questions(target).items() if one.worth().strata}
    if not known:
        raise SpecError(
            "nothing here was asked in strata: what results are told apart by is asked beside the answer, and a draft "
            'says so with "strata"'
        )
    if question is not None and question not in known:
        raise LabelError(f"question {question!r} has no strata; those that have are {', '.join(known)}")
    found = {}
    for id in [question] if question is not None else known:
        result: Any = find(known[id], tallies[id], repeats=repeats)
        found[id] = result.differ()
    return found


def _write_tests(
    target: Survey,
    found: dict[str, SignificanceTest],
    level: Fraction,
    as_json: bool,
    as_csv: bool,
    formulas: bool,
) -> None:
    texts = {id: text for id, (text, _) in questions(target).items()}
    if as_json:
        head = {target.kind: target.fingerprint}
        tests = [
            {"id": id, "text": texts[id.partition(".")[0]], "test": one.to_dict() | {"level": float(level)}}
            for id, one in found.items()
        ]
        output.document(head | {"questions": tests})
        return
    if as_csv:
        names = ("hypothesis", "p_value", "statistic", "freedom", "method", "sentence")
        rows = [[id, *(one.to_dict()[name] for name in names), sum(one.n)] for id, one in found.items()]
        output.csv_table([["question", *names, "n"], *rows], formulas)
        return
    for place, (id, one) in enumerate(found.items()):
        if place:
            output.write("\n")
        output.heading(f"{id}: {shown(texts[id.partition('.')[0]])}")
        output.prose(one.sentence(float(level)))
        output.facts(
            [("method", one.method), ("statistic", f"{one.statistic:.4g}"), ("degrees of freedom", str(one.freedom))]
        )


# -- forms ------------------------------------------------------------------------------------------------


def _print(id: str, question: str, decision: Decision, first: bool) -> None:
    if not first:
        output.write("\n")
    output.heading(f"{id}: {shown(question)}" if question else decision.protocol)
    output.facts([("reports", f"{decision.n:,}"), ("method", decision.method)])
    output.write("\n")
    document = decision.document()
    output.table(*cells(document, document.sections[0]))
    for note in decision.notes:
        output.prose(f"{note}.")


def _documents(target: Survey | None, found: dict[str, Decision]) -> list[Document]:
    texts = {} if target is None else questions(target)
    documents = []
    for name, one in found.items():
        document = one.document()
        document.id, _, document.part = name.partition(".")
        document.text = texts[document.id][0] if texts else ""
        documents.append(document)
    return documents


def _document(target: Survey | None, found: dict[str, Decision]) -> dict[str, Any]:
    listed = [plain(one) for one in _documents(target, found)]
    if target is None:
        return listed[0]
    head = {target.kind: target.fingerprint}
    return head | {"questions": listed}


def _write_csv(target: Survey | None, found: dict[str, Decision], formulas: bool) -> None:
    output.data(csv_text(_documents(target, found), formulas))
