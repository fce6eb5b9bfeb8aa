"""`deniable risk`: what an attacker, a forger and an analyst gain from a question, from epsilon 0.1 to 8."""

from __future__ import annotations

from typing import Annotated, Any

from deniable._extras import require
from deniable.cli import output
from deniable.cli.load_survey import read_target
from deniable.cli.options import About, Json, Plot, new_app, option
from deniable.cli.output import examples, save_figure, shown
from deniable.cli.tally import counted
from deniable.domains import ListedDomain
from deniable.errors import SpecError
from deniable.exact import epsilon_text, fraction
from deniable.labels import text
from deniable.protocols import Protocol
from deniable.surveys import Survey
from deniable.surveys.results import three_digits, three_digits_up
from deniable.surveys.risk import (
    LEVELS,
    YEAR,
    Known,
    Risk,
    Risks,
    estimated,
    of_survey,
    percent,
    percent_up,
    to_dict,
)

app = new_app()


@app.command(
    epilog=examples(
        "deniable risk survey.json                                   every question, from epsilon 0.1 to 8",
        "deniable risk survey.json --question smoke --plot risk.png  one of them, with a picture",
        "deniable risk survey.json --tally tally.json                somebody who knows the survey's own estimate",
        "deniable risk survey.json --people 2000 --reports 365       a small survey that asks every day",
        "deniable risk survey.json --question smoke --shares .2,.8   somebody who knows the shares",
        "deniable risk protocol.json --json                          the spec of a single protocol",
    )
)
def risk(
    about: About,
    question: Annotated[str | None, option("ID", "One question only; else all of them.")] = None,
    people: Annotated[int, option("N", "How many people answer.", default=True, min=1)] = 10_000,
    reports: Annotated[
        int | None,
        option(
            "N",
            "How many reports somebody sends in a year.",
            default=f"as the survey says, else {YEAR}",
            min=1,
            max=10_000,
        ),
    ] = None,
    household: Annotated[
        int, option("K", "How many people of a household share an answer.", default=True, min=1, max=1000)
    ] = 4,
    shares: Annotated[
        str | None,
        option(
            "P,P,...",
            "How common each answer is, in their order: also say how often somebody who knows that guesses right.",
        ),
    ] = None,
    tally: Annotated[
        list[str] | None,
        option(
            "FILE",
            "A tally, or reports, of this survey: the same for somebody who knows its own estimate. May be repeated.",
        ),
    ] = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Show what attackers, forgers and the analyst gain.

    For each question, at epsilon 0.1 to 8: sure from 1/2 and from 1/10 is how sure anybody becomes at most of an answer
    that was so likely before one report. guess is how often the best guess of an answer is right, if all were equally
    likely, and knowing shares if the attacker knows how common each is. year and household are how often the best guess
    between two equally likely answers is right after this many reports of one; a survey that repeats reports, or draws
    them from a kept state, is judged by that. error is the standard error of the headline figure, sampling included.
    leverage is how many honest reports one fake report outweighs. The row with a star is the question as it stands; the
    others are what the planner would choose at that epsilon.
    """
    target = read_target(about)
    if shares is not None and tally is not None:
        raise SpecError("--shares and --tally say the same: choose one")
    if question is not None and target.kind == "protocol":
        raise SpecError("--question goes with a survey, and this is a single protocol")
    asked = {one.id: one.protocol for one in (target if question is None else [target[question]])}
    if shares is not None and len(asked) > 1:
        raise SpecError("--shares are those of one question: choose it with --question")
    known = _known(target, about, asked, shares, tally)
    found = of_survey(target, people, reports, household, known, question=question)
    if target.kind == "protocol":
        (only,) = found.values()
        found = {"protocol": only}
    if plot is not None:
        save_figure(plot, lambda: _draw(found))
    if as_json:
        first = next(iter(found.values()))
        given = {"people": people, "reports": first.reports, "household": household}
        output.document(given | {"questions": to_dict(found)})
        return
    for name, one in found.items():
        output.heading(f"{shown(name)}: {one.protocol.name}, epsilon {epsilon_text(one.protocol.epsilon)}")
        output.write("\n")
        output.prose(" ".join(one.words))
        output.write("\n")
        output.table(_head(one), [_cells(row, one) for row in one.rows], left=2)
        output.write("\n")
    if len(target) > 1:
        output.prose(f"Who answers all questions gives away epsilon {epsilon_text(target.epsilon)} each time.")
    output.files(drawn=plot)


def _known(
    target: Survey, about: str, asked: dict[str, Protocol], shares: str | None, tally: list[str] | None
) -> dict[str, Known]:
    """What an attacker knows about each question beforehand, if something is given."""
    if shares is not None:
        ((name, protocol),) = asked.items()
        if not isinstance(protocol.domain, ListedDomain):
            raise SpecError(f"the answers of {shown(name)} are not listed, so they have no shares here")
        read = [float(fraction(part.strip(), "a share")) for part in shares.split(",")]
        labels = tuple(text(label) for label in protocol.domain.labels)
        if len(read) != len(labels) or min(read) < 0 or abs(sum(read) - 1) > 1e-6:
            raise SpecError(f"there are {len(labels)} answers: give as many shares, which sum to 1")
        return {name: Known(labels, tuple(read))}
    if tally is None:
        return {}
    counts = counted(target, about, tally)
    found = {name: estimated(protocol, counts[name]) for name, protocol in asked.items()}
    return {name: one for name, one in found.items() if one is not None}


def _head(found: Risks) -> list[str]:
    year = "year, one report" if found.reports == 1 else f"year, {found.reports:,} reports"
    together = [year, f"household of {found.household:,}"]
    guess = ["guess"] if found.known is None else ["guess", "knowing shares"]
    return ["epsilon", "protocol", "sure from 1/2", "from 1/10", *guess, *together, "error", "leverage"]


def _cells(row: Risk, found: Risks) -> list[str]:
    guesses = ["-" if row.guess is None else percent(row.guess)]
    if found.known is not None:
        about = "" if row.knowing_is_exact else "~ "
        guesses.append("-" if row.knowing is None else f"{about}{percent(row.knowing)}")
    several = ["-" if share is None else _at_most(share, row.exact) for share in (row.year, row.household)]
    return [
        f"{row.epsilon:.4g}{' *' if row.own else ''}",
        row.protocol,
        percent_up(row.sure_from_half),
        percent_up(row.sure_from_tenth),
        *guesses,
        *several,
        three_digits(row.error),
        "-" if row.leverage is None else three_digits_up(row.leverage),
    ]


def _at_most(share: float, is_exact: bool) -> str:
    return percent(share) if is_exact else f"<= {percent_up(share)}"


def _draw(found: dict[str, Risks]) -> Any:
    """What an attacker, an analyst and a forger gain against epsilon, one row of panels per question."""
    pyplot = require("matplotlib.pyplot", "plot")
    size = (13, 3.8 * len(found))
    _, panels = pyplot.subplots(len(found), 3, figsize=size, layout="constrained", squeeze=False)
    for (name, one), (left, middle, right) in zip(found.items(), panels, strict=True):
        curves = (
            ("sure_from_half", "sure at most, from 1/2"),
            ("sure_from_tenth", "sure at most, from 1/10"),
            ("guess", "best guess among all answers"),
            ("knowing", "best guess, knowing the shares"),
            ("year", f"between two, after {one.reports:,} reports"),
            ("household", f"between two, household of {one.household:,}"),
        )
        for attribute, label in curves:
            known = [(row.epsilon, 100 * getattr(row, attribute)) for row in one.rows if getattr(row, attribute)]
            if known:
                left.plot(*zip(*known, strict=True), marker=".", label=label)
        left.set(title=f"{name}: what an attacker knows", ylabel="%", ylim=(0, 101))
        left.legend(fontsize="small")
        middle.plot([row.epsilon for row in one.rows], [row.error for row in one.rows], marker=".", color="black")
        middle.set(title=f"what the analyst sees, {one.people:,} people", ylabel="standard error", yscale="log")
        forged = [(row.epsilon, row.leverage) for row in one.rows if row.leverage is not None]
        if forged:
            right.plot(*zip(*forged, strict=True), marker=".", color="C3")
        right.set(title="what a forger moves", ylabel="honest reports that one fake outweighs", yscale="log")
        for panel in (left, middle, right):
            panel.set(xscale="log", xlabel="epsilon of one report")
            panel.set_xticks([float(level) for level in LEVELS], [f"{float(level):g}" for level in LEVELS])
            panel.minorticks_off()
            panel.yaxis.set_major_formatter("{x:.3g}")
            panel.axvline(one.own.epsilon, color="0.6", linestyle=":")
    return panels.flat[0]
