"""`deniable plan`: which protocol, how many people, which epsilon."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from deniable import planning
from deniable._extras import require
from deniable._files import parse_json
from deniable.cli import output
from deniable.cli.options import Json, Plot, Record, is_json, named, new_app, read_text
from deniable.cli.output import examples, save_figure
from deniable.domains import (
    PLACES_ARE_READ_AS,
    RECORDS_ARE_READ_AS,
    Domain,
    Grid,
    Interval,
    KeyNumbers,
    Records,
    Sets,
    Strings,
    as_domain,
    read_discovered,
    read_record,
)
from deniable.errors import SpecError
from deniable.planning import COLUMNS, Plan
from deniable.protocols import Queries
from deniable.results.base import quantile

app = new_app()

READS = {
    "number": ("mean", "distribution", "ranges"),
    "record": RECORDS_ARE_READ_AS,
    "places": PLACES_ARE_READ_AS,
}


@app.command(
    epilog=examples(
        "deniable plan --categories 1024 --epsilon 1 --people 100000          which protocol, how exact",
        "deniable plan --categories never,once,often --epsilon 1 --within 0.01    how many people",
        "deniable plan --categories 50 --people 20000 --within 0.02           which epsilon",
        "deniable plan --categories 50 --people 20000 --within 0.01 --objective 0.1    for answers of about 10 %",
        "deniable plan --text --epsilon 4 --people 1000000 --save protocol.json",
        "deniable plan --categories yes,no --epsilon 0.5 --forever 1 --people 20000    asked again and again",
        "deniable plan --categories 100 --epsilon 1 --forever 2 --epochs 52 --people 20000    every week, for a year",
        "deniable plan --categories yes,no --epsilon 2 --epochs 52 --changes 2 --people 20000    hide changes",
        "deniable plan --number 0..24 --unit hours --epsilon 1 --within 0.5    how many people for a mean",
        "deniable plan --number 0..24 --unit hours --read distribution --epsilon 1 --people 20000    and its shape",
        "deniable plan --record parts.json --epsilon 1 --people 20000         one part of a record per person",
        "deniable plan --categories 30 --at-most 4 --epsilon 1 --people 20000    several of 30 items",
        "deniable plan --categories 30 --at-most 4 --number 1..5 --epsilon 1 --people 20000    ratings of them",
        "deniable plan --categories 50 --epsilon 1 --people 100000 --shuffled 1e-8    what a shuffler would gain",
        "deniable plan --record two.json --read rectangles --epsilon 1 --people 50000    two numbers together",
        "deniable plan --record parts.json --read pairs --epsilon 1 --people 50000    tables of two parts each",
        "deniable plan --record parts.json --read strata --epsilon 2 --people 50000    the last part by private strata",
        "deniable plan --discover 16 --epsilon 4 --people 100000    words that nobody listed, of up to 16 bytes",
        """deniable plan --record parts.json --queries '{"old": {"times": ["age"]}}' --epsilon 1 --people 20000""",
        "deniable plan --discover 64bits --epsilon 4 --people 1000000 --memory 16    identifiers, a tally of 16 MB",
        "deniable plan --places 16x12 --epsilon 1 --people 20000              places on a grid",
    )
)
def plan(
    categories: Annotated[
        str | None,
        typer.Option(metavar="N|A,B,...", help="How many possible answers, or the answers.", show_default=False),
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="Any text may be an answer.")] = False,
    discover: Annotated[
        str | None,
        typer.Option(
            metavar="BYTES|BITS",
            help="Find common texts that nobody listed, of up to so many bytes (16), or identifiers (64bits).",
            show_default=False,
        ),
    ] = None,
    number: Annotated[
        str | None,
        typer.Option(metavar="LOW..HIGH", help="The mean of a number between these.", show_default=False),
    ] = None,
    read: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="What to estimate of the number: mean, distribution or ranges; of a record pairs or triples of "
            "its parts, or strata, the last part by the others; of two numbers, or of places with a promise between "
            "any two of them, rectangles.",
            show_default="mean",
        ),
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option(
            metavar="SHAPE",
            help="What is known of the numbers: smooth, or rough where many people give the same few, or unknown.",
            show_default="unknown",
        ),
    ] = None,
    record: Record = None,
    queries: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|JSON",
            help='With --record: the error of each of these figures, as in a draft: {"old": {"times": ["age"]}}.',
            show_default=False,
        ),
    ] = None,
    places: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNSxROWS",
            help="Cells of a grid of places; epsilon is that of one cell side, unless --read rectangles.",
            show_default=False,
        ),
    ] = None,
    at_most: Annotated[
        int | None,
        typer.Option(
            metavar="M",
            help="Several of --categories may be an answer; so many of them are reported at most. With --number, each "
            "has a number.",
            show_default=False,
        ),
    ] = None,
    unit: Annotated[str, typer.Option(metavar="UNIT", help="The unit of the number.", show_default=False)] = "",
    epsilon: Annotated[
        str | None, typer.Option(metavar="EPSILON", help="The epsilon of one answer.", show_default=False)
    ] = None,
    forever: Annotated[
        str | None,
        typer.Option(
            metavar="EPSILON",
            help="For protocols in two stages: the epsilon of what a device keeps; --epsilon is that of one report.",
            show_default=False,
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="With --forever: compare only what cannot be recognized as one device's reports in so many epochs. "
            "With --changes: how many epochs --epsilon is for.",
            show_default=False,
        ),
    ] = None,
    changes: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            help="With --epochs: answers change K times at most, and --epsilon is that of all reports of a device.",
            show_default=False,
        ),
    ] = None,
    people: Annotated[int | None, typer.Option(metavar="N", help="How many will answer.", show_default=False)] = None,
    within: Annotated[
        str | None,
        typer.Option(
            metavar="W",
            help="How far the interval of a share may reach to either side, 0.01 is +- 1 percentage point; of a mean, "
            "in its unit.",
            show_default=False,
        ),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            metavar="FIGURE",
            help="What to compare protocols by, and what --within is about: zero (an answer that nobody gave), worst "
            "(the share where the error is largest), a share such as 0.1, or total (an answer on average).",
            show_default="worst with --within, else zero",
        ),
    ] = None,
    respondents: Annotated[
        bool,
        typer.Option(
            "--respondents", help="Plan for shares among those who answer, not in the population they are drawn from."
        ),
    ] = False,
    level: Annotated[float, typer.Option(metavar="P", help="Confidence of the intervals.")] = 0.95,
    shuffled: Annotated[
        str | None,
        typer.Option(
            metavar="DELTA",
            help="Also say which epsilon each person may use if a shuffler stands between, for --epsilon as the "
            "central one up to this probability.",
            show_default=False,
        ),
    ] = None,
    memory: Annotated[
        float | None,
        typer.Option(metavar="MB", help="How large a tally may be, in millions of bytes.", show_default=False),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the chosen protocol's spec; privatize, tally and estimate take it for a survey.",
            show_default=False,
        ),
    ] = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Compare the protocols for a question, and choose one. Give two of --epsilon, --people and --within.

    With --within the answer is the smallest epsilon, or the fewest people, over all protocols; without it the protocol
    with the least noise. --objective names another figure.

    noise is the standard error of the share of an answer that nobody gave; within is how far the interval of a share
    reaches to either side, whatever the share, and includes the error of asking so many people; a visible share stands
    out when all answers are looked at together; leverage is how many honest reports one fake report outweighs; attack
    is how often the best guess of one person's answer is right. For --number, noise and within
    are about the mean, in its unit; with --read distribution about the median, and with --read ranges
    about the share of a typical range, if all numbers are equally common, or with --read rectangles, of a record of two
    numbers, about that of a typical rectangle. For --places about that of a typical rectangle of cells. For
    --record they are those of the part where they are largest, a mean's as a share
    of its range, and the last line compares with splitting epsilon over all parts. --read pairs, or triples, asks for
    tables of so many parts together.
    For --discover a visible share is found nine times out of ten, whatever the identifier or the word is; texts
    that are spelled like no word take a larger share.
    """
    if at_most is None:
        domain = _domain(categories, text, number, unit, record, discover, places)
    elif categories is None:
        raise SpecError("--at-most goes with --categories, of which several may be an answer")
    else:
        listed = _domain(categories, text, None, "", record, discover, places)
        domain = (
            Sets(listed, at_most) if number is None else KeyNumbers(listed, Interval.between(number, unit), at_most)
        )
    if sum(given is not None for given in (epsilon, people, within)) != 2:
        raise SpecError("give two of --epsilon, --people and --within: the third follows")
    if forever is not None and epsilon is None:
        raise SpecError("--forever goes with --epsilon, the epsilon of one report")
    if epochs is not None and forever is None and changes is None:
        raise SpecError(
            "--epochs goes with --forever, the epsilon of what a device keeps over the epochs, or with --changes, how "
            "often an answer changes"
        )
    if changes is not None and (epochs is None or forever is not None):
        raise SpecError("--changes goes with --epochs, and not with --forever: --epsilon is that of all reports")
    kind = "number" if number and at_most is None else "record" if record else "places" if places else ""
    if read is not None and read not in READS.get(kind, ()):
        raise SpecError(
            "--read is mean, distribution or ranges with --number, pairs, triples, strata or rectangles with --record, "
            "and rectangles with --places"
        )
    if queries is not None:
        if not isinstance(domain, Records) or epsilon is None or people is None or read is not None or plot is not None:
            raise SpecError("--queries goes with --record, --epsilon and --people, and without --read and --plot")
        asked = Queries(domain, epsilon, people, queries=parse_json(*_given(queries, "--queries")))
        _figures(asked, people, level, not respondents, as_json)
        if save is not None:
            output.save_json(save, asked.spec(), indent=2)
            output.files(saved=save)
        return
    wanted: dict[str, Any] = {"level": level, "population": not respondents, "forever": forever, "read": read}
    wanted |= {"objective": objective, "shape": shape, "epochs": epochs, "changes": changes}
    wanted |= {"memory": None if memory is None else _bytes(memory)}
    made = planning.plan(domain, epsilon=epsilon, n=people, within=within, **wanted)
    if save is not None:
        output.save_json(save, made.best.spec(), indent=2)
    if plot is not None:
        save_figure(plot, lambda: _draw(made))
    gained = None if shuffled is None else made.with_shuffler(shuffled)
    if as_json:
        output.document(made.to_dict() | ({} if gained is None else {"with_shuffler": gained}))
        return
    _print(made)
    if gained is not None:
        output.prose(gained)
    output.files(saved=save, drawn=plot)


def _bytes(memory: float) -> int:
    if not 0 < memory < 1e6:
        raise SpecError(f"--memory is a number of millions of bytes, such as 16, not {memory:g}")
    return round(memory * 1e6)


def _domain(
    categories: str | None,
    text: bool,
    number: str | None,
    unit: str,
    record: str | None,
    discover: str | None,
    places: str | None,
) -> Domain:
    if sum([text, *(given is not None for given in (categories, number, record, discover, places))]) != 1:
        raise SpecError(
            "give one of --categories (a number, or the answers with commas between them), --text, "
            "--number LOW..HIGH, --record FILE, --discover BYTES and --places COLUMNSxROWS"
        )
    if discover is not None:
        if unit:
            raise SpecError("--unit goes with --number")
        return read_discovered(discover)
    if places is not None:
        return Grid.parse(places)
    if record is not None:
        return read_record(parse_json(*_given(record, "--record")))
    if number is not None:
        return Interval.between(number, unit)
    if unit:
        raise SpecError("--unit goes with --number")
    if categories is None:
        return Strings()
    listed: Any = int(categories) if categories.strip().isdecimal() else categories.split(",")
    return as_domain(listed)


def _given(what: str, option: str) -> tuple[str, str]:
    """Text that is JSON or in a file, and what to call it."""
    return (what, option) if is_json(what) else (read_text(what), named(what))


def _figures(asked: Queries, n: int, level: float, population: bool, as_json: bool) -> None:
    from deniable.surveys.results import outweighs  # surveys take a while to load, and other plans need none

    people, reach = asked.people(n), quantile(level)
    each = list(zip(people, asked.errors(n, population).items(), strict=True))
    if as_json:
        found = [
            {"query": name, "people": own, "stderr": error, "within": reach * error} for own, (name, error) in each
        ]
        head = {"epsilon": str(asked.epsilon), "people": n, "level": level, "leverage": asked.leverage}
        output.document(head | {"queries": found})
        return
    output.heading(f"{len(each)} queries, epsilon {asked.epsilon}, {n:,} people, each asked for one")
    rows = [[name, f"{own:,}", f"{error:.3g}", f"{reach * error:.3g}"] for own, (name, error) in each]
    output.table(["query", "people", "stderr", "within"], rows)
    output.prose(
        "Numbers are on a scale from -1, their low end, to 1, and an answer of a list is 1 or 0. Errors are those of "
        f"the worst case, {'with the error of asking so many people' if population else 'about those who answer'}. "
        f"{outweighs(asked.leverage)}"
    )


def _draw(made: Plan) -> Any:
    # Logarithmic axes write powers as formulas, and nobody's labels are in this picture.
    require("matplotlib", "plot").rcParams["text.parse_math"] = True
    return made.plot().flat[0]


def _print(made: Plan) -> None:
    output.heading(str(made).partition("\n")[0])
    output.write("\n")
    head = [heading for heading, _, _ in COLUMNS]
    rows = made.cells()
    rows[made.table.index(made.choice)][0] += " *"
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    shown = 1 + output.fitting_columns(widths[0], widths[1:])
    output.table(head[:shown], [row[:shown] for row in rows])
    if shown < len(head):
        output.write(f"(on a wider terminal, or with --json: {', '.join(head[shown:])})\n")
    output.write("\n")
    output.prose(f"* {made.reason}")
