"""`deniable plan`: which protocol, how many people, which epsilon."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from deniable import planning
from deniable._extras import require
from deniable._files import parse_json
from deniable.answers import from_options, read_answers, reading, readings
from deniable.cli import output
from deniable.cli.options import Json, Plot, Record, is_json, named, new_app, option, read_text
from deniable.cli.output import examples, save_figure
from deniable.domains import Records
from deniable.errors import SpecError
from deniable.planning import COLUMNS, Plan
from deniable.protocols import Queries
from deniable.results.base import quantile

app = new_app()


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
        """deniable plan --answers '{"low": 0, "high": 99, "read": "ranges"}' --epsilon 1 --people 20000""",
        "deniable plan --places 16x12 --epsilon 1 --people 20000              places on a grid",
    )
)
def plan(
    answers: Annotated[
        str | None,
        option(
            "FILE|JSON",
            'What can be answered, as in a draft: ["yes", "no"], {"low": 0, "high": 9}, ... The options below are '
            "short forms.",
        ),
    ] = None,
    categories: Annotated[str | None, option("N|A,B,...", "How many possible answers, or the answers.")] = None,
    text: Annotated[bool, typer.Option("--text", help="Any text may be an answer.")] = False,
    discover: Annotated[
        str | None,
        option(
            "BYTES|BITS",
            "Find common texts that nobody listed, up to so long in bytes (16), or identifiers (64bits).",
        ),
    ] = None,
    number: Annotated[str | None, option("LOW..HIGH", "The mean of a number between these.")] = None,
    read: Annotated[
        str | None,
        option(
            "WHAT",
            "What to estimate of the number: mean, distribution or ranges; of a record pairs or triples of "
            "its parts, or strata, the last part by the others; of two numbers, or of places with a promise between "
            "any two of them, rectangles.",
            default="mean",
        ),
    ] = None,
    shape: Annotated[
        str | None,
        option(
            "SHAPE",
            "What is known of the numbers: smooth, or rough where many people give the same few, or unknown.",
            default="unknown",
        ),
    ] = None,
    record: Record = None,
    queries: Annotated[
        str | None,
        option(
            "FILE|JSON",
            'With --record: the error of each of these figures, as in a draft: {"old": {"times": ["age"]}}.',
        ),
    ] = None,
    places: Annotated[
        str | None,
        option(
            "COLUMNSxROWS", "Cells of a grid of places; epsilon is that of one cell side, unless --read rectangles."
        ),
    ] = None,
    at_most: Annotated[
        int | None,
        option(
            "M",
            "Several of --categories may be an answer; at most this many are reported. With --number, each "
            "has a number.",
        ),
    ] = None,
    unit: Annotated[str, option("UNIT", "The unit of the number.")] = "",
    epsilon: Annotated[str | None, option("EPSILON", "The epsilon of one answer.")] = None,
    forever: Annotated[
        str | None,
        option(
            "EPSILON",
            "For protocols in two stages: the epsilon of what a device keeps; --epsilon is that of one report.",
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        option(
            "N",
            "With --forever: compare only what cannot be recognized as one device's reports in this many epochs. "
            "With --changes: how many epochs --epsilon is for.",
        ),
    ] = None,
    changes: Annotated[
        int | None,
        option("K", "With --epochs: answers change K times at most, and --epsilon is that of all reports of a device."),
    ] = None,
    people: Annotated[int | None, option("N", "How many will answer.")] = None,
    within: Annotated[
        str | None,
        option(
            "W",
            "How far the interval of a share may reach to either side, 0.01 is +- 1 percentage point; of a mean, "
            "in its unit.",
        ),
    ] = None,
    objective: Annotated[
        str | None,
        option(
            "FIGURE",
            "What to compare protocols by, and what --within is about: zero (an answer that nobody gave), worst "
            "(the share where the error is largest), a share such as 0.1, or total (an answer on average).",
            default="worst with --within, else zero",
        ),
    ] = None,
    respondents: Annotated[
        bool,
        typer.Option(
            "--respondents", help="Plan for shares among those who answer, not in the population they are drawn from."
        ),
    ] = False,
    level: Annotated[float, option("P", "Confidence of the intervals.", default=True)] = 0.95,
    shuffled: Annotated[
        str | None,
        option(
            "DELTA",
            "Also say which epsilon each person may use if a shuffler stands between, for --epsilon as the "
            "central one up to this probability.",
        ),
    ] = None,
    memory: Annotated[float | None, option("MB", "How large a tally may be, in millions of bytes.")] = None,
    save: Annotated[
        Path | None,
        option("FILE", "Write the chosen protocol's spec; privatize, tally and estimate take it for a survey."),
    ] = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Compare the protocols for a question, and choose one. Give two of --epsilon, --people and --within.

    With --within the answer is the smallest epsilon, or the fewest people, over all protocols; without it the protocol
    with the least noise. --objective names another figure.

    noise is the standard error of the share of an answer that nobody gave; within is how far the interval of a share
    reaches to either side, whatever the share, with the sampling error of that many people; a visible share stands
    out when all answers are looked at together; leverage is how many honest reports one fake report outweighs; attack
    is how often the best guess of one person's answer is right. For --number, noise and within
    are about the mean, in its unit; with --read distribution about the median, and with --read ranges
    about the share of a typical range, if all numbers are equally common, or with --read rectangles, of a record of two
    numbers, about that of a typical rectangle. For --places about that of a typical rectangle of cells. For
    --record they are those of the part where they are largest, a mean's as a share
    of its range, and the last line compares with splitting epsilon over all parts. --read pairs, or triples, asks for
    tables of two or three columns together.
    For --discover a visible share is found nine times out of ten, whatever the identifier or the word is; texts
    that are spelled like no word take a larger share.
    """
    given = from_options(
        categories=categories,
        text=text,
        number=number,
        unit=unit,
        record=None if record is None else parse_json(*_given(record, "--record")),
        discover=discover,
        places=places,
        at_most=at_most,
        answers=None if answers is None else parse_json(*_given(answers, "--answers")),
        spell=lambda name: f"--{name.replace('_', '-')}",
    )
    domain = read_answers(given)
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
    if read is not None and (categories is not None or read not in readings(given)):
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
    wanted: dict[str, Any] = {"level": level, "population": not respondents, "forever": forever}
    wanted |= {"read": read or reading(given)}
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


def _given(what: str, option: str) -> tuple[str, str]:
    """JSON text, inline or from a file, and its name in messages."""
    return (what, option) if is_json(what) else (read_text(what), named(what))


def _figures(asked: Queries, n: int, level: float, population: bool, as_json: bool) -> None:
    from deniable.surveys.results import outweighs  # surveys take a while to load, and other plans do not need them

    people, reach = asked.people(n), quantile(level)
    each = list(zip(people, asked.errors(n, population).items(), strict=True))
    if as_json:
        found = [
            {"query": name, "people": own, "stderr": error, "within": reach * error} for own, (name, error) in each
        ]
        head = {"epsilon": str(asked.epsilon), "people": n, "level": level, "leverage": asked.worth().leverage}
        output.document(head | {"queries": found})
        return
    output.heading(f"{len(each)} queries, epsilon {asked.epsilon}, {n:,} people, each asked for one")
    rows = [[name, f"{own:,}", f"{error:.3g}", f"{reach * error:.3g}"] for own, (name, error) in each]
    output.table(["query", "people", "stderr", "within"], rows)
    output.prose(
        "Numbers are on a scale from -1, their low end, to 1, and an answer of a list is 1 or 0. Errors are those of "
        f"the worst case, {'with the error of asking so many people' if population else 'about those who answer'}. "
        f"{outweighs(asked.worth().leverage)}"
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
