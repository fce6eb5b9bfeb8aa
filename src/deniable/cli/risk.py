"""`deniable risk`: what an attacker, a forger and an analyst gain from a question, from epsilon 0.1 to 8."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Annotated, Any

import typer

from deniable import planning
from deniable._extras import require
from deniable.cli import output
from deniable.cli.load_survey import read_target
from deniable.cli.options import About, Json, Plot, new_app
from deniable.cli.output import examples, save_figure, shown
from deniable.errors import DeniableError, SpecError
from deniable.exact import epsilon_text, fraction
from deniable.privacy import attack, averaging, surest
from deniable.privacy.composition import CannotCompose
from deniable.protocols import Protocol
from deniable.protocols.base import ANY
from deniable.surveys import Survey

app = new_app()

LEVELS = tuple(Fraction(level) for level in ("0.1", "0.25", "0.5", "1", "2", "4", "8"))


@dataclass(frozen=True)
class Risk:
    """One question at one epsilon; None where something is not known."""

    epsilon: float
    protocol: str
    own: bool
    """Whether this is the question as it stands, and not what the planner would choose."""
    sure_from_half: float
    sure_from_tenth: float
    guess: float | None
    """How often the best guess is right, every answer being equally likely."""
    knowing: float | None
    """How often it is right for somebody who knows how common each answer is, where --shares says that."""
    year: float | None
    household: float | None
    exact: bool
    """Whether `year` and `household` are those of the law itself; else they are so at most."""
    error: float
    leverage: float | None


@app.command(
    epilog=examples(
        "deniable risk survey.json                                   every question, from epsilon 0.1 to 8",
        "deniable risk survey.json --question smoke --plot risk.png  one of them, with a picture",
        "deniable risk survey.json --people 2000 --reports 365       a small survey that asks every day",
        "deniable risk survey.json --question smoke --shares .2,.8  somebody who knows the shares",
        "deniable risk protocol.json --json                          the spec of a single protocol",
    )
)
def risk(
    about: About,
    question: Annotated[
        str | None, typer.Option(metavar="ID", help="One question only; else all of them.", show_default=False)
    ] = None,
    people: Annotated[int, typer.Option(metavar="N", help="How many people answer.", min=1)] = 10_000,
    reports: Annotated[
        int, typer.Option(metavar="N", help="How many fresh reports somebody sends in a year.", min=1, max=10_000)
    ] = 12,
    household: Annotated[
        int, typer.Option(metavar="K", help="How many people of a household share an answer.", min=1, max=1000)
    ] = 4,
    shares: Annotated[
        str | None,
        typer.Option(
            metavar="P,P,...",
            help="How common each answer is, in their order, such as an estimate's: also say how often somebody who "
            "knows that guesses right.",
            show_default=False,
        ),
    ] = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Say what an attacker, a forger and the analyst gain from each question, at epsilon 0.1 to 8.

    sure from 1/2 and from 1/10 is how sure anybody becomes at most of an answer that was so likely before one report.
    guess is how often the best guess of an answer is right, if all were equally likely. year and household are how
    often the best guess between two such answers is right after so many fresh reports of one. error is the
    standard error of the headline figure, sampling included. leverage is how many honest reports one fake report
    outweighs. The row with a star is the question as it stands; the others are what the planner would choose at that
    epsilon.
    """
    target = read_target(about)
    asked = _asked(target, question)
    if shares is not None and len(asked) > 1:
        raise SpecError("--shares are those of one question: choose it with --question")
    known = None if shares is None else _shares(shares)
    found = {name: _rows(protocol, people, reports, household, known) for name, protocol in asked.items()}
    if plot is not None:
        save_figure(plot, lambda: _draw(found, people, reports, household))
    if as_json:
        given = {"people": people, "reports": reports, "household": household}
        output.document(given | {"questions": {name: [asdict(row) for row in rows] for name, rows in found.items()}})
        return
    for name, rows in found.items():
        output.heading(f"{shown(name)}: {asked[name].name}, epsilon {epsilon_text(asked[name].epsilon)}")
        output.write("\n")
        output.prose(_words(next(row for row in rows if row.own), asked[name], people, reports, household, known))
        output.write("\n")
        output.table(_head(reports, household, known), [_cells(row, known) for row in rows], left=2)
        output.write("\n")
    if isinstance(target, Survey) and target.terms is not None and target.terms.longitudinal.rule != "none":
        output.prose(
            "This survey repeats what a device drew, so the column of a year does not apply to it: deniable survey "
            "show says what all its reports tell."
        )
    if isinstance(target, Survey) and len(target) > 1:
        output.prose(f"Who answers all questions gives away epsilon {epsilon_text(target.epsilon)} each time.")
    output.files(drawn=plot)


def _asked(target: Survey | Protocol, question: str | None) -> dict[str, Protocol]:
    """The protocols by question; guarantees that are not between any two answers have no such table."""
    if isinstance(target, Protocol):
        if question is not None:
            raise SpecError("--question goes with a survey, and this is a single protocol")
        asked = {"protocol": target}
    else:
        chosen = list(target) if question is None else [target[question]]
        asked = {one.id: one.protocol for one in chosen}
    for name, protocol in asked.items():
        if protocol.guarantee.relation != ANY or protocol.guarantee.delta:
            raise SpecError(
                f"{shown(name)} does not promise epsilon between any two answers, so this table is not for it: choose "
                "others with --question"
            )
    return asked


def _rows(
    protocol: Protocol, people: int, reports: int, household: int, shares: list[float] | None = None
) -> list[Risk]:
    levels = [level for level in LEVELS if level != protocol.epsilon]
    others = [other for level in levels if (other := _at(protocol, level, people)) is not None]
    found = [_risk(one, people, reports, household, shares, own=one is protocol) for one in (protocol, *others)]
    return sorted(found, key=lambda row: row.epsilon)


def _at(protocol: Protocol, level: Fraction, people: int) -> Protocol | None:
    """What the planner would choose for the question, else the same kind; None where neither exists at this epsilon."""
    try:
        return planning.build_one(protocol.domain, level, people, protocol.reads)
    except DeniableError:
        pass
    try:
        other = protocol.scaled(level / protocol.epsilon)
    except DeniableError:
        return None
    return other if other.epsilon == level else None


def _risk(protocol: Protocol, people: int, reports: int, household: int, shares: list[float] | None, own: bool) -> Risk:
    try:
        several = [averaging(protocol, reports), averaging(protocol, household, how="group")]
    except CannotCompose:
        several = []
    year, home = (one.success for one in several) if several else (None, None)
    return Risk(
        epsilon=float(protocol.epsilon),
        protocol=protocol.name,
        own=own,
        sure_from_half=surest(protocol.ratio),
        sure_from_tenth=surest(protocol.ratio, "1/10"),
        guess=attack(protocol).success if protocol.attack is None else protocol.attack,
        knowing=None if shares is None else attack(protocol, shares).success,
        year=year,
        household=home,
        exact=bool(several) and all(one.is_exact for one in several),
        error=protocol.error(people),
        leverage=protocol.leverage,
    )


def _shares(given: str) -> list[float]:
    """
    >>> _shares("0.7,0.2,0.1")
    [0.7, 0.2, 0.1]
    """
    return [float(fraction(part.strip(), "a share")) for part in given.split(",")]


def _words(row: Risk, protocol: Protocol, people: int, reports: int, household: int, shares: list[float] | None) -> str:
    most = "" if row.exact else " of all cases at most"
    told = [
        f"Who thought an answer as likely as not becomes {_percent(row.sure_from_half)} sure of it at most by one "
        f"report, and who gave it one chance in ten {_percent(row.sure_from_tenth)}."
    ]
    if row.guess is not None:
        told.append(
            f"If all answers were equally likely, the best guess is right in {_percent(row.guess)} of all cases."
        )
    if shares is not None and row.knowing is not None:
        told.append(
            f"Somebody who knows how common each answer is guesses right in {_percent(max(shares))} of all cases "
            f"without a report, and in {_percent(row.knowing)} with one."
        )
    elif shares is not None:
        told.append(
            "How much one helps somebody who knows how common each answer is cannot be listed for this protocol."
        )
    if protocol.clear:
        told.append(f"All this is about the rest of an answer: {', '.join(protocol.clear)} is told as it is.")
    if row.year is not None and row.household is not None:
        told.append(
            f"Between two equally likely answers the best guess is right in {_percent(row.year)}{most} after "
            f"{reports:,} fresh reports of one person, and in {_percent(row.household)}{most} if {household:,} people "
            "of a household share the answer and each report once."
        )
    unit = f" {protocol.unit}" if protocol.unit else ""
    told.append(f"With {people:,} people the analyst has a standard error of {row.error:.3g}{unit}.")
    if row.leverage is not None:
        told.append(f"One fake report outweighs {row.leverage:.3g} honest ones.")
    return " ".join(told)


def _head(reports: int, household: int, shares: list[float] | None) -> list[str]:
    together = [f"year, {reports:,} reports", f"household of {household:,}"]
    guess = ["guess"] if shares is None else ["guess", "knowing shares"]
    return ["epsilon", "protocol", "sure from 1/2", "from 1/10", *guess, *together, "error", "leverage"]


def _cells(row: Risk, shares: list[float] | None) -> list[str]:
    guesses = [row.guess] if shares is None else [row.guess, row.knowing]
    several = ["-" if share is None else _at_most(share, row.exact) for share in (row.year, row.household)]
    return [
        f"{row.epsilon:.4g}{' *' if row.own else ''}",
        row.protocol,
        _percent(row.sure_from_half),
        _percent(row.sure_from_tenth),
        *("-" if share is None else _percent(share) for share in guesses),
        *several,
        f"{row.error:.3g}",
        "-" if row.leverage is None else f"{row.leverage:.3g}",
    ]


def _percent(share: float) -> str:
    """
    >>> _percent(0.7311), _percent(0.99999), _percent(1.0)
    ('73.1 %', '> 99.9 %', '> 99.9 %')
    """
    return f"{100 * share:.1f} %" if share < 0.9995 else "> 99.9 %"


def _at_most(share: float, is_exact: bool) -> str:
    return _percent(share) if is_exact else f"<= {_percent(share) if share < 0.9995 else '100 %'}"


def _draw(found: dict[str, list[Risk]], people: int, reports: int, household: int) -> Any:
    """What an attacker and an analyst see against epsilon, one row of panels per question."""
    pyplot = require("matplotlib.pyplot", "plot")
    size = (10, 3.8 * len(found))
    _, panels = pyplot.subplots(len(found), 2, figsize=size, layout="constrained", squeeze=False)
    curves = (
        ("sure_from_half", "sure at most, from 1/2"),
        ("sure_from_tenth", "sure at most, from 1/10"),
        ("guess", "best guess among all answers"),
        ("year", f"between two, after {reports:,} reports"),
        ("household", f"between two, household of {household:,}"),
    )
    for (name, rows), (left, right) in zip(found.items(), panels, strict=True):
        own = next(row.epsilon for row in rows if row.own)
        for attribute, label in curves:
            known = [
                (row.epsilon, 100 * getattr(row, attribute)) for row in rows if getattr(row, attribute) is not None
            ]
            if known:
                left.plot(*zip(*known, strict=True), marker=".", label=label)
        left.set(title=f"{name}: what an attacker knows", ylabel="%", ylim=(0, 101))
        left.legend(fontsize="small")
        right.plot([row.epsilon for row in rows], [row.error for row in rows], marker=".", color="black")
        right.set(title=f"what the analyst sees, {people:,} people", ylabel="standard error", yscale="log")
        for panel in (left, right):
            panel.set(xscale="log", xlabel="epsilon of one report")
            panel.set_xticks([float(level) for level in LEVELS], [f"{float(level):g}" for level in LEVELS])
            panel.minorticks_off()
            panel.yaxis.set_major_formatter("{x:.3g}")
            panel.axvline(own, color="0.6", linestyle=":")
    return panels.flat[0]
