"""`deniable estimate`: what the crowd thinks, from a tally or from reports."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable._extras import require
from deniable._files import atomic_write
from deniable.cli import output
from deniable.cli.load_survey import Target, find, find_round, questions, read_rounds, read_target, service_rounds
from deniable.cli.options import AnalystToken, Csv, Formulas, Json, Plot, new_app, one_format, read_text
from deniable.cli.output import examples, many, save_figure, shown
from deniable.cli.tally import counted
from deniable.collect.analyst import Analyst, ServiceRefused, read_range
from deniable.domains import ListedDomain
from deniable.errors import LabelError, MismatchError, SpecError
from deniable.labels import numbers_first
from deniable.protocols import Protocol, Tally
from deniable.protocols.frequency.open_text import TextEstimate
from deniable.results import NOTHING, ROWS_SHOWN, Estimate, Floats, quantile
from deniable.results.base import Rows, decimals
from deniable.results.distribution import read_numbers
from deniable.surveys import Survey, SurveyTally
from deniable.surveys.campaign import combine, round_of
from deniable.surveys.results import COLUMNS, ONCE, UNKNOWN_EPOCHS, Finding, Repeats, part_id
from deniable.surveys.results import find as find_result
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

# Of up to so many numbers, the ages of people say, all are shown.
_NUMBERS_SHOWN = 200


@app.command(
    epilog=examples(
        "deniable estimate survey.json tally.json",
        "deniable estimate survey.json reports/*.parquet --consistent norm-sub --plot shares.png",
        "deniable estimate survey.json tally.json --question smoke --level 0.99 --csv",
        "deniable estimate survey.json --from https://collect.example.org --epochs 3..5",
        "deniable estimate survey.json tally.json --robust 50        if up to 50 reports may be forged",
        "deniable estimate survey.json tally.json --question word --candidates words.txt",
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
            help="The texts to look for in answers of open text, one per line; may be repeated.",
            show_default=False,
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
            help="Of a distribution: about how many bins.",
            show_default="as many as stand out of the noise",
        ),
    ] = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="LOW..HIGH",
            help="Of a distribution: the share of the numbers from one to another, both included; of two numbers "
            "LOW..HIGH,LOW..HIGH; may be repeated.",
            show_default=False,
        ),
    ] = None,
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
    """
    one_format(as_json, as_csv)
    quantile(level)
    whom = not respondents
    target: Target
    if combined:
        for option, given in (
            ("--epochs", epochs),
            ("--consistent", consistent),
            ("--candidates", candidates),
            ("--range", ranges),
            ("--robust", robust),
        ):
            if given:
                raise SpecError(f"{option} is for one round: leave it out, or leave --combined out")
        target, found = _combined(survey, inputs, service, token, question, level, simultaneous, whom, few)
    else:
        target, total, repeats = sums(survey, inputs, service, token, epochs)
        asked = [read_numbers(one) for one in ranges or []]
        how = (level, consistent, simultaneous, whom, repeats, bins, asked, robust)
        found = _estimated(target, total, question, candidates or [], how, few)
    if not found:
        raise MismatchError("there are too few reports to estimate from")
    known = questions(target)
    if plot is not None:
        save_figure(plot, lambda: draw(found, level, simultaneous, not respondents, everything))
    if parquet is not None:
        write_parquet(parquet, found)
    if as_json:
        output.document(described(target, found))
    elif as_csv:
        output.csv_table([COLUMNS, *(row for id, one in found.items() for row in one.rows(id))], formulas)
    else:
        for i, (id, one) in enumerate(found.items()):
            print_finding(id, known[id.partition(".")[0]][0], one, everything, first=i == 0)
        output.files(saved=parquet, drawn=plot)


# -- one round, and all of them ------------------------------------------------------------------------


def _chosen(known: Mapping[str, tuple[str, Protocol]], question: list[str] | None) -> list[str]:
    """The questions that are asked for, as a whole or for a part; all without a choice."""
    whole = {part_id(id, part): id for id, (_, protocol) in known.items() for part in ["", *protocol.parts(1)]}
    for id in question or []:
        if id not in whole:
            raise LabelError(f"there is no question {id!r}; there are {', '.join(whole)}")
    wanted = {whole[id] for id in question or []}
    return [id for id in known if not question or id in wanted]


def _estimated(
    target: Target,
    total: SurveyTally | Tally,
    question: list[str] | None,
    candidates: list[str],
    how: tuple[float, str | None, bool, bool, Repeats, int | None, list[tuple[float, ...]], int],
    few: bool,
) -> dict[str, Finding]:
    """The results of one round, by question, or by question and column."""
    level, consistent, simultaneous, whom, repeats, bins, ranges, fakes = how
    known = questions(target)
    chosen = _chosen(known, question)
    lists = read_candidates(known, candidates)
    tallies = dict(total.tallies) if isinstance(total, SurveyTally) else {"report": total}
    found: dict[str, Finding] = {}
    for id in chosen:
        protocol = known[id][1]
        if tallies[id].n and not shown_enough(target, id, tallies[id].n, few):
            continue
        if protocol.needs_candidates and id not in lists:
            needed = f"the answers to {id!r} are open text: give the texts to look for with --candidates FILE"
            if question or all(other.needs_candidates for _, other in known.values()):
                raise SpecError(needed)
            output.note("note", f"{id!r} is left out, for {needed}")
            continue
        whole = find_result(
            protocol,
            tallies[id],
            level,
            consistent,
            lists.get(id),
            simultaneous,
            whom,
            repeats,
            bins,
            ranges,
            fakes=fakes,
        )
        for part, one in whole.parts.items():
            if question and id not in question and part_id(id, part) not in question:
                continue
            if not one.result.n:
                output.note("note", f"{part_id(id, part)}: {one.result.notes[0]}")
            elif part and not shown_enough(target, part_id(id, part), int(one.result.n), few):
                continue
            found[part_id(id, part)] = one
        if consistent and not any(isinstance(one.result, Estimate) for one in whole.parts.values()):
            output.note("note", f"{id}: --consistent is about shares, and there are none")
        if ranges and all(one.ranges is None for one in whole.parts.values()):
            output.note(
                "note",
                f"{id}: --range is about the distribution of a number, or of two (25..45,30..40), and not of this",
            )
        misfit = whole.result.misfit
        if misfit is not None and misfit.message:
            output.note("warning", f"{id}: {misfit.message}")
    return found


def _combined(
    survey: str,
    inputs: list[str] | None,
    service: str | None,
    token: str | None,
    question: list[str] | None,
    level: float,
    simultaneous: bool,
    population: bool,
    few: bool,
) -> tuple[Survey, dict[str, Finding]]:
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
            output.note("note", f"{id}: {NOTHING}")
        elif shown_enough(last, id, int(results[id].n), few):
            found[id] = Finding(results[id], results[id].table(level, simultaneous, population))
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
        if protocol.takes_candidates and not isinstance(protocol.domain, ListedDomain)
    ]
    for entry in given:
        id, equals, path = entry.partition("=")
        named_one = bool(equals) and id in known
        if named_one and id not in open_text:
            raise SpecError(f"the answers to {id!r} are {known[id][1].domain}: --candidates is for open text")
        # Spaces at the end of a line belong to no word.
        if equals and not named_one and not os.path.exists(entry):
            raise LabelError(f"there is no question {id!r}; there are {', '.join(known)}")
        lines = [line.strip() for line in read_text(path if named_one else entry).splitlines()]
        texts = list(dict.fromkeys(line for line in lines if line))
        if not named_one and not open_text:
            raise SpecError("no question here takes open text, and --candidates is for nothing else: leave it out")
        lists |= dict.fromkeys([id] if named_one else open_text, texts)
    return lists


def print_finding(id: str, question: str, finding: Finding, everything: bool, first: bool) -> None:
    result, rows = finding.result, finding.table
    if not first:
        output.write("\n")
    output.heading(f"{shown(id)}: {shown(question)}" if question else result.protocol)
    method = result.method
    if isinstance(result, Estimate) and result.raw is not None:
        method += " (biased; intervals of the unbiased estimate, cut to [0, 1])"
    if result.headline:
        output.prose(result.headline)
        output.write("\n")
    output.facts([("protocol", result.protocol), ("reports", str(result.n)), ("method", method)])
    output.write("\n")
    size = len(rows)
    # Numbers are read as a histogram, which has no gaps: of many other answers the most common are shown.
    whole_range = numbers_first(rows.labels) > 0 and size <= _NUMBERS_SHOWN
    order = range(size) if everything or whole_range else rows.order(ROWS_SHOWN)
    common = _digits(rows.stderr)
    counts, p_values = rows.more.get("count"), rows.more.get("p_value")
    body = []
    for i in order:
        # Rows of different units have errors of different sizes, and each the decimals of its own.
        digits = decimals(rows.stderr[i]) if rows.units else common
        own = f" {shown(rows.units[i])}" if rows.units and rows.units[i] else ""
        body.append(
            [
                shown(rows.names[i] if rows.groups else rows.labels[i]),
                *([] if counts is None else [f"{counts[i]:.1f}"]),
                *("-" if math.isnan(one) else f"{one:.{digits}f}" for one in (rows.value[i], rows.stderr[i])),
                f"[{rows.low[i]:.{digits}f}, {rows.high[i]:.{digits}f}]{own}",
                *([] if p_values is None else [_p_text(float(p_values[i]))]),
            ]
        )
    interval = f"{100 * rows.level:g}% interval{'s' if rows.simultaneous else ''}{rows.qualifiers}"
    value = result.heading + (f", {shown(rows.unit)}" if rows.unit and not rows.units else "")
    head = ["answer", *([] if counts is None else ["count"]), value, "stderr", interval]
    output.table([*head, *([] if p_values is None else ["p-value"])], body)
    if finding.ranges is not None:
        output.write("\n")
        output.table(["range", "share", "stderr", interval], _ranges(finding.ranges))
    for name, further in result.further(rows.level, rows.population).items():
        output.write("\n")
        lift = further.more.get("lift")
        told = _ranges(further)
        if lift is not None:
            told = [[*row, f"{one:.3g}" if math.isfinite(one) else "-"] for row, one in zip(told, lift, strict=True)]
        heads = [name, "share", "stderr", interval, *([] if lift is None else ["lift"])]
        output.table(heads, told if everything else told[:ROWS_SHOWN])
    if len(body) < size:
        output.write(f"the {len(body)} largest of {size} answers: --all shows every one\n")
    if finding.decision is not None:
        output.prose(finding.decision.notes[0])
    misfit = result.misfit
    warned = {NOTHING} | ({misfit.message} if misfit is not None else set())
    for sentence in result.notes:
        if sentence not in warned:
            output.prose(sentence)
    for remark in finding.remarks:
        output.note("note", f"{id}: {remark}")
    if finding.winner is not None:
        output.prose(str(finding.winner))
    if isinstance(result, TextEstimate) and result.n:
        output.prose(f"{result.verdict}. Unlisted: {result.unlisted:.4f}, stderr {result.unlisted_stderr:.4f}")


def _p_text(p: float) -> str:
    return "-" if math.isnan(p) else "<1e-15" if p < 1e-15 else f"{p:.2g}"


def _ranges(rows: Rows) -> list[list[str]]:
    body = []
    for i, label in enumerate(rows.labels):
        digits = decimals(rows.stderr[i])
        ends = f"[{rows.low[i]:.{digits}f}, {rows.high[i]:.{digits}f}]"
        own = (rows.value[i], rows.stderr[i])
        body.append([str(label), *("-" if math.isnan(one) else f"{one:.{digits}f}" for one in own), ends])
    return body


def _digits(errors: Floats) -> int:
    """Enough decimals for two digits of the smallest error."""
    smallest = float(errors[errors > 0].min(initial=1.0))
    return min(12, max(4, 2 - math.floor(math.log10(smallest))))


def draw(found: dict[str, Finding], level: float, simultaneous: bool, population: bool, everything: bool) -> Any:
    pyplot = require("matplotlib.pyplot", "plot")
    how: dict[str, Any] = {"level": level, "simultaneous": simultaneous, "population": population}
    if everything:
        how["most"] = max(len(one.table.labels) for one in found.values())
    if len(found) == 1:
        (only,) = found.values()
        return only.result.plot(**how)
    figure, axes = pyplot.subplots(len(found), 1, figsize=(9, 3.6 * len(found)))
    for ax, (id, one) in zip(axes, found.items(), strict=True):
        one.result.plot(ax=ax, **how)
        ax.set_title(f"{id}: {ax.get_title()}", fontsize="medium")
    figure.tight_layout()
    return axes[0]


def write_parquet(path: Path, found: dict[str, Finding]) -> None:
    pa, parquet = require("pyarrow", "files"), require("pyarrow.parquet", "files")
    rows = [row for id, one in found.items() for row in one.rows(id)]
    columns = {name: list(column) for name, column in zip(COLUMNS, zip(*rows, strict=True), strict=True)}
    columns["label"] = list(map(str, columns["label"]))
    table = pa.table(
        columns | {name: pa.array(columns[name], pa.float64()) for name in ("count", "unlisted", "p_value")}
    )
    with atomic_write(path) as file:
        parquet.write_table(table, file)


def described(target: Target, found: dict[str, Finding]) -> dict[str, Any]:
    head = {"survey" if isinstance(target, Survey) else "protocol": target.fingerprint}
    texts = questions(target)
    listed = []
    for name, one in found.items():
        id, _, part = name.partition(".")
        listed.append(one.description(id, texts[id][0], part) | {"simultaneous": one.table.simultaneous})
    return head | {"questions": listed}


# -- the sums that estimates are made from -------------------------------------------------------------


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
        if rule is not None and rule.keeps and not rule.is_evolving and rule.epochs > 1:
            output.note("warning", UNKNOWN_EPOCHS)
        return target, counted(target, survey, inputs), ONCE
    if inputs:
        raise SpecError("estimates are made from files or from a service, not from both")
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
    """How often one device may stand in the sum of several epochs."""
    epochs = analyst.status(survey.fingerprint)["epochs"]
    low, high = 0 if first is None else first, LAST_EPOCH if last is None else last
    return Repeats.of(survey.terms, [one["n"] for one in epochs if low <= one["epoch"] <= high])


def _note_outside(survey: Survey, first: int | None, last: int | None) -> None:
    """Say which epochs the survey has, if some that were asked for are outside."""
    terms = survey.terms
    if terms is not None and any(end is not None and not terms.first <= end <= terms.last for end in (first, last)):
        output.note("note", f"the epochs of this survey are {terms.first} to {terms.last}: of others there is nothing")


def shown_enough(target: Target, id: str, n: int, few: bool) -> bool:
    """Whether the survey allows an estimate of so few answers to be shown; if not, say so."""
    terms = target.terms if isinstance(target, Survey) else None
    if terms is None or few or n >= terms.show_from:
        return True
    output.note(
        "note", f"{id!r} has {many(n, 'answer')}, and the survey shows estimates from {terms.show_from} on (--few)"
    )
    return False
