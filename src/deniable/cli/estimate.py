"""`deniable estimate`: what the crowd thinks, from a tally or from reports."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from deniable._extras import require
from deniable._files import atomic_write
from deniable.cli import output
from deniable.cli.crosstabs import show as show_tables
from deniable.cli.load_survey import (
    find,
    find_round,
    questions,
    read_rounds,
    read_target,
    service_rounds,
    shown_enough,
)
from deniable.cli.options import AnalystToken, Csv, Formulas, Json, Plot, new_app, one_format, read_text
from deniable.cli.output import examples, save_figure, shown
from deniable.cli.tally import counted
from deniable.collect.analyst import Analyst, ServiceRefused, read_range
from deniable.domains import ListedDomain
from deniable.errors import LabelError, MismatchError, SpecError
from deniable.labels import load_label, numbers_first
from deniable.protocols import Protocol
from deniable.protocols.traits import needs_candidates
from deniable.results import ROWS_SHOWN, Document, Result, View, no_reports, quantile
from deniable.results.distribution import read_numbers
from deniable.results.document import plain
from deniable.results.models import METHODS
from deniable.results.render.csv import as_arrow, as_csv as csv_text, question_name
from deniable.results.render.text import cells, merged, unlisted
from deniable.results.smooth import USUAL, read_assumption
from deniable.surveys import Survey, SurveyTally
from deniable.surveys.campaign import combine, round_of
from deniable.surveys.results import (
    ONCE,
    SAME_DEVICES,
    UNKNOWN_EPOCHS,
    Repeats,
    documents,
    epochs_matter,
    find as find_result,
    part_id,
)
from deniable.surveys.terms import LAST_EPOCH

app = new_app()

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
FromService = Annotated[
    str | None,
    typer.Option("--from", metavar="URL", help="A collection service, instead of files.", show_default=False),
]
EpochRange = Annotated[
    str | None,
    typer.Option(
        "--epochs", metavar="A..B", help="Only these epochs of the service: 3..5, 3.., ..5 or 3.", show_default="all"
    ),
]

Robust = Annotated[
    int,
    typer.Option(
        metavar="M",
        min=0,
        help="Intervals that also hold for the honest reports if up to M of all reports are forged.",
    ),
]
Few = Annotated[bool, typer.Option("--few", help="Show estimates of fewer answers than the survey says are shown.")]

# Up to this many numbers, for example the ages of people, are all shown.
_NUMBERS_SHOWN = 200


@app.command(
    epilog=examples(
        "deniable estimate survey.json tally.json",
        "deniable estimate survey.json reports/*.parquet --consistent norm-sub --plot shares.png",
        "deniable estimate survey.json tally.json --question smoke --level 0.99 --csv",
        "deniable estimate survey.json --from https://collect.example.org --epochs 3..5",
        "deniable estimate survey.json tally.json --robust 50        if up to 50 reports may be forged",
        "deniable estimate survey.json tally.json --assume smooth    shorter intervals of quantiles, ranges and bins",
        "deniable estimate survey.json tally.json --question word --candidates words.txt",
        "deniable estimate survey.json tally.json --significant 0.01    of discovered answers, what nobody made up",
        "deniable estimate survey.json tally.json --associations     which columns of a record are associated",
        "deniable estimate survey.json tally.json --columns age,smoke    their table, unbiased",
        "deniable estimate survey.json tally.json --columns smoke --given age --model shrink",
        "deniable estimate --combined round-2.json round-1.json tally-1.json tally-2.json",
    )
)
def estimate(
    survey: Surveyed,
    inputs: Summed = None,
    service: FromService = None,
    token: AnalystToken = None,
    epochs: EpochRange = None,
    question: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="Only this question, or this part of a record (habits.age); may be repeated.",
            show_default="all questions",
        ),
    ] = None,
    level: Annotated[float, typer.Option(metavar="P", help="Confidence of the intervals.")] = 0.95,
    consistent: Annotated[
        str | None,
        typer.Option(
            metavar="METHOD",
            help="Make the shares consistent (norm-sub, power, base-cut, ...): biased, but the total error is smaller.",
            show_default="none: unbiased",
        ),
    ] = None,
    respondents: Annotated[
        bool,
        typer.Option(
            "--respondents",
            help="Errors and intervals among those who answered, not for everybody whom they were drawn from.",
        ),
    ] = False,
    simultaneous: Annotated[
        bool, typer.Option("--simultaneous", help="Intervals that hold for all answers of a question at once.")
    ] = False,
    candidates: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[ID=]FILE",
            help="The texts to look for in answers of open text, one per line; may be repeated. Where answers are "
            "discovered, these are found at smaller shares, and 200 or more help to find texts that are spelled alike.",
            show_default=False,
        ),
    ] = None,
    significant: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Of discovered answers: only those with small p-values. With probability P at most one of them was "
            "given by nobody; intervals allow for the choice.",
            show_default=False,
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B,...", help="The table of these columns of a record; may be repeated.", show_default=False
        ),
    ] = None,
    associations: Annotated[
        bool, typer.Option("--associations", help="Which columns of a record are associated, and how strongly.")
    ] = False,
    given: Annotated[
        str | None,
        typer.Option(
            metavar="C,...",
            help="With --columns and --model: shares among the people with each answer of these columns.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="METHOD",
            help=f"With --columns: from a model of whole records ({', '.join(METHODS)}); less noise, and its "
            "assumptions.",
            show_default="none: unbiased",
        ),
    ] = None,
    combined: Annotated[
        bool,
        typer.Option(
            "--combined",
            help="One result from all rounds of a campaign: give their surveys and tallies, or a service.",
        ),
    ] = False,
    robust: Robust = 0,
    few: Few = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Show and draw every answer, not only the most common.")
    ] = False,
    bins: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="For a distribution: about how many bins.",
            show_default="as many as stand out of the noise",
        ),
    ] = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="LOW..HIGH",
            help="For a distribution: the share of the numbers from one to another, both included; of two numbers "
            "LOW..HIGH,LOW..HIGH; may be repeated.",
            show_default=False,
        ),
    ] = None,
    assume: Annotated[
        str,
        typer.Option(
            metavar="smooth[:S]",
            help="For a distribution: shorter intervals, which hold if it is smooth. S is the least standard deviation "
            f"of a hump as a part of the range, {USUAL:g} where it is not given.",
            show_default="intervals hold for any distribution",
        ),
    ] = "",
    plot: Plot = None,
    parquet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the estimates as Parquet, too.", show_default=False)
    ] = None,
    as_json: Json = False,
    as_csv: Csv = False,
    formulas: Formulas = False,
) -> None:
    """Estimate how common each answer is, with error bars.

    Unbiased unless --consistent asks for more: a share may come out below zero, and then its interval says so.
    Errors and intervals are about the population that the respondents were drawn from.

    Answers that nobody listed are discovered by some of the respondents and counted by others: shares and intervals are
    not biased by the search. If nothing is common, the list is empty in 95 of 100 collections at least.

    --associations lists every pair of columns that was asked together: the p-value of independence, Cramér's V
    (strength, 0 to 1) and mutual information without what the noise adds, and the correlation of the answers' places.
    A table of --columns is unbiased; with --model it is that of a model, whose intervals hold the noise and not what
    the model assumes.
    """
    one_format(as_json, as_csv)
    quantile(level)
    whom = not respondents
    if columns or associations or given is not None or model is not None:
        others: dict[str, Any] = {
            "--consistent": consistent,
            "--respondents": respondents,
            "--simultaneous": simultaneous,
        }
        others |= {"--candidates": candidates, "--significant": significant, "--combined": combined}
        others |= {"--robust": robust, "--all": everything, "--bins": bins, "--range": ranges, "--assume": assume}
        _refuse_beside_tables(others | {"--parquet": parquet}, columns, associations, given, model, question)
        only = question[0] if question else None
        about = sums(survey, inputs, service, token, epochs)
        show_tables(*about, columns or [], given, model, only, level, few, plot, as_json, as_csv, formulas)
        return
    target: Survey
    if combined:
        for option, wanted in (
            ("--epochs", epochs),
            ("--consistent", consistent),
            ("--candidates", candidates),
            ("--significant", significant),
            ("--range", ranges),
            ("--robust", robust),
            ("--assume", assume),
        ):
            if wanted:
                raise SpecError(f"{option} is for one round: leave it out, or leave --combined out")
        view = View(level, simultaneous, whom)
        target, found = _combined(survey, inputs, service, token, question, view, few)
    else:
        target, total, repeats = sums(survey, inputs, service, token, epochs)
        asked = [read_numbers(one) for one in ranges or []]
        if assume:
            read_assumption(assume)
        view = View(level, simultaneous, whom, tuple(asked))
        how = Reading(view, consistent, repeats, bins, robust, assume, significant)
        found = _estimated(target, total, question, candidates or [], how, few)
    if not found:
        raise MismatchError("there are too few reports to estimate from")
    if plot is not None:
        save_figure(plot, lambda: draw(found, level, simultaneous, not respondents, everything))
    write_documents(target, [one.document for one in found.values()], parquet, as_json, as_csv, formulas, everything)
    if not (as_json or as_csv):
        output.files(saved=parquet, drawn=plot)


class Found(NamedTuple):
    """A result, and the document that shows it."""

    result: Result
    document: Document


class Reading(NamedTuple):
    """What is wanted of one round."""

    view: View
    consistent: str | None
    repeats: Repeats
    bins: int | None
    fakes: int
    assume: str
    significant: float | None


# -- one round, and all of them ------------------------------------------------------------------------


def _refuse_beside_tables(
    others: Mapping[str, Any],
    columns: list[str] | None,
    associations: bool,
    given: str | None,
    model: str | None,
    question: list[str] | None,
) -> None:
    """Refuse what does not go with tables of columns."""
    if associations and (columns or given is not None or model is not None):
        raise SpecError("--associations lists all pairs of columns: leave out --columns, --given and --model")
    if not associations and not columns:
        raise SpecError("--given and --model go with --columns")
    if given is not None and model is None:
        raise SpecError("--given goes with --columns and --model: unbiased tables are not divided by each other")
    wrong = next((option for option, value in others.items() if value or (option == "--bins" and value == 0)), None)
    if wrong is not None:
        raise SpecError(f"{wrong} is about answers: leave it out for tables of columns")
    if len(question or []) > 1:
        raise SpecError("tables of columns are those of one question: give --question once")


def _chosen(known: Mapping[str, tuple[str, Protocol]], question: list[str] | None) -> list[str]:
    """The requested questions, as a whole or by part; all without a choice."""
    whole = {part_id(id, part): id for id, (_, protocol) in known.items() for part in ["", *protocol.worth(1).parts]}
    for id in question or []:
        if id not in whole:
            raise LabelError(f"there is no question {id!r}; there are {', '.join(whole)}")
    wanted = {whole[id] for id in question or []}
    return [id for id in known if not question or id in wanted]


def _estimated(
    target: Survey,
    total: SurveyTally,
    question: list[str] | None,
    candidates: list[str],
    how: Reading,
    few: bool,
) -> dict[str, Found]:
    """The results of one round, by question, or by question and column."""
    known = questions(target)
    chosen = _chosen(known, question)
    if how.significant is not None and not any(known[id][1].traits.answers == "found" for id in chosen):
        raise SpecError('--significant is for discovered answers (in a draft, {"discover": {"bytes": 16}})')
    lists = read_candidates(known, candidates)
    tallies = total.tallies
    found: dict[str, Found] = {}
    for id in chosen:
        protocol = known[id][1]
        if tallies[id].n and not shown_enough(target, id, tallies[id].n, few):
            continue
        if needs_candidates(protocol) and id not in lists:
            needed = f"the answers to {id!r} are open text: give the texts to look for with --candidates FILE"
            if question or all(needs_candidates(other) for _, other in known.values()):
                raise SpecError(needed)
            output.note("note", f"{id!r} is left out, for {needed}")
            continue
        result = find_result(
            protocol,
            tallies[id],
            consistent=how.consistent,
            candidates=lists.get(id),
            repeats=how.repeats,
            bins=how.bins,
            fakes=how.fakes,
            assume=how.assume,
            significant=how.significant,
        )
        tests = len(lists[id]) if needs_candidates(protocol) else None
        shown_as = documents(protocol, tallies[id], result, how.view, how.repeats, id, known[id][0], tests)
        for part, own in result.parts.items():
            name, document = part_id(id, part), shown_as[part]
            if question and id not in question and name not in question:
                continue
            if not own.n:
                output.note("note", f"{name}: {own.notes[0]}")
            elif part and not shown_enough(target, name, int(own.n), few):
                continue
            found[name] = Found(own, document)
        _note_unused(id, tallies[id].n, list(shown_as.values()), how)
    return found


def _note_unused(id: str, n: int, shown_as: list[Document], how: Reading) -> None:
    """Print which options say nothing about a question, and the warning about its reports."""
    if how.consistent and not any(one.biased for one in shown_as):
        output.note("note", f"{id}: --consistent is about shares, and there are none")
    if how.view.ranges and all(one.section("ranges") is None for one in shown_as):
        output.note(
            "note",
            f"{id}: --range is about the distribution of a number, or of two (25..45,30..40), and not of this",
        )
    if how.assume and n and not any(one.assumed for one in shown_as):
        output.note("note", f"{id}: --assume is about the distribution of a number, and not of this")
    warning = shown_as[0].trust.warning
    if warning:
        output.note("warning", f"{id}: {warning}")


def _combined(
    survey: str,
    inputs: list[str] | None,
    service: str | None,
    token: str | None,
    question: list[str] | None,
    view: View,
    few: bool,
) -> tuple[Survey, dict[str, Found]]:
    """The last round of a campaign, and one result from all rounds, by question. The rounds are verified first."""
    if service is None:
        rounds, tallies = read_rounds([survey, *(inputs or [])])
        if len(tallies) < len(rounds):
            *rounds, later = rounds
            output.note("note", f"there is no tally of round {round_of(later).number} yet: it is left out")
    elif inputs:
        raise SpecError("estimates are made from files or from a service, not from both")
    else:
        with Analyst(service, token) as analyst:
            rounds, tallies = service_rounds(analyst, find_round(analyst, survey))
    last = rounds[-1]
    results = combine(rounds, tallies)
    found = {}
    for id in _chosen(questions(last), question):
        if id not in results:
            output.note("note", f"{id}: {no_reports()}")
        elif shown_enough(last, id, int(results[id].n), few):
            document = results[id].document(view)
            document.id, document.text = id, last[id].text
            found[id] = Found(results[id], document)
            for sentence in results[id].notes:
                output.note("note", f"{id}: {sentence}")
    return last, found


# -- what is looked for, shown and drawn ---------------------------------------------------------------


def read_candidates(known: dict[str, tuple[str, Protocol]], given: list[str]) -> dict[str, list[str]]:
    """The texts to look for, by question. A file that names no question is for all questions of open text."""
    lists: dict[str, list[str]] = {}
    open_text = [
        id
        for id, (_, protocol) in known.items()
        if protocol.traits.answers != "all" and not isinstance(protocol.domain, ListedDomain)
    ]
    for entry in given:
        id, equals, path = entry.partition("=")
        named_one = bool(equals) and id in known
        if named_one and id not in open_text:
            raise SpecError(f"the answers to {id!r} are {known[id][1].domain}: --candidates is for open text")
        # Spaces at the end of a line are not part of a word.
        if equals and not named_one and not os.path.exists(entry):
            raise LabelError(f"there is no question {id!r}; there are {', '.join(known)}")
        lines = [line.strip() for line in read_text(path if named_one else entry).splitlines()]
        texts = list(dict.fromkeys(line for line in lines if line))
        if not named_one and not open_text:
            raise SpecError("no question here takes open text, and --candidates is for nothing else: leave it out")
        lists |= dict.fromkeys([id] if named_one else open_text, texts)
    return lists


def write_documents(
    target: Survey,
    found: list[Document],
    parquet: Path | None,
    as_json: bool,
    as_csv: bool,
    formulas: bool,
    everything: bool,
) -> None:
    """The documents of some questions, as JSON, CSV or text."""
    if parquet is not None:
        writer = require("pyarrow.parquet", "files")
        table = as_arrow(found)
        with atomic_write(parquet) as file:
            writer.write_table(table, file)
    if as_json:
        head = {target.kind: target.fingerprint}
        output.document(head | {"questions": [plain(one) for one in found]})
    elif as_csv:
        output.data(csv_text(found, formulas))
    else:
        for place, one in enumerate(found):
            print_document(one, everything, first=place == 0)


def print_document(document: Document, everything: bool, first: bool) -> None:
    """The tables of a document, with its sentences."""
    if not first:
        output.write("\n")
    name = question_name(document)
    output.heading(f"{shown(name)}: {shown(document.text)}" if document.text else document.protocol)
    if document.headline:
        output.prose(document.headline.text)
        output.write("\n")
    method = document.method
    if document.biased:
        method += " (biased; intervals of the unbiased estimate, cut to [0, 1])"
    output.facts([("protocol", document.protocol), ("reports", str(document.n)), ("method", method)])
    output.write("\n")
    whole = merged(document)
    # Numbers are shown as a histogram without gaps; of many other answers only the most common are shown.
    is_range = numbers_first([load_label(row["label"]) for row in whole.rows]) > 0 and len(whole.rows) <= _NUMBERS_SHOWN
    head, body = cells(document, whole, math.inf if everything or is_range else ROWS_SHOWN)
    output.table(head, body)
    for section in document.sections:
        if section.further and section.picture != "curve":
            output.write("\n")
            own, lines = cells(document, section, math.inf if everything else ROWS_SHOWN)
            output.table([section.id, *own[1:]], lines)
    if len(body) < len(whole.rows):
        output.write(f"the {len(body)} largest of {len(whole.rows)} answers: --all shows every one\n")
    if document.decision is not None:
        output.prose(document.decision.verdict)
    for sentence in document.notes:
        if sentence == SAME_DEVICES:
            output.note("note", f"{name}: {sentence}")
        elif sentence not in (no_reports(), document.trust.warning):
            output.prose(sentence)
    if document.winner is not None:
        output.prose(document.winner.sentence)
    if document.n and document.facts.get("unlisted") is not None:
        output.prose(f"{document.remark}{'. ' if document.remark else ''}{unlisted(document)}")


def draw(found: Mapping[str, Found], level: float, simultaneous: bool, population: bool, everything: bool) -> Any:
    pyplot = require("matplotlib.pyplot", "plot")
    how: dict[str, Any] = {"level": level, "simultaneous": simultaneous, "population": population}
    if everything:
        how["most"] = max(len(one.document.rows) for one in found.values())
    if len(found) == 1:
        (only,) = found.values()
        return only.result.plot(**how)
    figure, axes = pyplot.subplots(len(found), 1, figsize=(9, 3.6 * len(found)))
    for ax, (id, one) in zip(axes, found.items(), strict=True):
        one.result.plot(ax=ax, **how)
        ax.set_title(f"{id}: {ax.get_title()}", fontsize="medium")
    figure.tight_layout()
    return axes[0]


# -- the sums that estimates are made from -------------------------------------------------------------


def sums(
    survey: str, inputs: list[str] | None, service: str | None, token: str | None, epochs: str | None
) -> tuple[Survey, SurveyTally, Repeats]:
    """What the estimates are about, the tallies, and how often one device may be counted in them.

    Prints what the errors allow for, and what they cannot.
    """
    if service is None:
        if epochs is not None:
            raise SpecError("--epochs goes with --from: files do not say their epochs")
        if not inputs:
            raise SpecError("there is nothing to estimate from: name files of reports or tallies, or a service --from")
        target = read_target(survey)
        if epochs_matter(target.terms):
            output.note("warning", UNKNOWN_EPOCHS)
        return target, counted(target, survey, inputs), ONCE
    if inputs:
        raise SpecError("estimates are made from files or from a service, not from both")
    first, last = (None, None) if epochs is None else read_range(epochs)
    with Analyst(service, token) as analyst:
        found = find(analyst, survey)
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
    """How often one device may be counted in the sum of several epochs."""
    epochs = analyst.status(survey.fingerprint)["epochs"]
    low, high = 0 if first is None else first, LAST_EPOCH if last is None else last
    return Repeats.of(survey.terms, [one["n"] for one in epochs if low <= one["epoch"] <= high])


def _note_outside(survey: Survey, first: int | None, last: int | None) -> None:
    """Print which epochs the survey has, if some requested ones are outside."""
    terms = survey.terms
    if terms is not None and any(end is not None and not terms.first <= end <= terms.last for end in (first, last)):
        output.note("note", f"the epochs of this survey are {terms.first} to {terms.last}: of others there is nothing")
