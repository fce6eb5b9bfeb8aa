"""`deniable story`: from secret answers to the crowd's, in the terminal, on made-up people."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from deniable.channels.levels import level_text
from deniable.cli import output
from deniable.cli.bars import Bar, chart
from deniable.cli.options import Json, Seed, examples
from deniable.cli.output import heading, prose, shown, table
from deniable.cli.reports import bits_from
from deniable.cli.story_protocol import Thousand
from deniable.cli.story_studies import LEVEL, Life, Study, carry_out, exam, habits, toss
from deniable.errors import MissingExtra, NumberError

EXAMPLES = examples(
    "deniable story",
    "deniable story --seed 1 --people 2000       the same numbers every time, and wider error bars",
    "deniable story --plot story.svg",
)

_PLOT = Path("out/story.png")
_FEWEST, _MOST = 100, 5_000_000


def story(
    people: Annotated[
        int | None,
        typer.Option(metavar="N", help="How many people answer each question.", show_default="5000, 20000 and 200000"),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the picture goes.", show_default=str(_PLOT))
    ] = None,
    no_plot: Annotated[bool, typer.Option("--no-plot", help="Draw no picture.")] = False,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Watch the whole path: secret answers, noisy reports, and what the crowd thinks after all.

    Three made-up surveys run on this machine, with real cryptographic coins. Nothing is asked and nothing is sent.
    """
    if people is not None and not _FEWEST <= people <= _MOST:
        raise NumberError(f"--people lies between {_FEWEST} and {_MOST}, not at {people}")
    bits = bits_from(seed)
    lives = [toss("yes" if i in (1, 4) else "no", bits) for i in range(6)]
    first, second = carry_out(exam(people or 5_000), bits), carry_out(habits(people or 20_000), bits)
    third = Thousand(people or 200_000, bits)
    picture = None if no_plot or (as_json and plot is None) else _picture([first, second], plot)
    if as_json:
        studies = [first.to_dict(), second.to_dict()]
        output.document({"studies": studies, "thousand": third.to_dict(), "plot": picture and str(plot or _PLOT)})
        return
    output.styled("Learn what a crowd thinks without learning what anyone said", "bold")
    output.write("\n")
    _on_the_device(first, lives)
    _promise(first)
    _collected(first)
    _undone(first)
    _six_answers(second)
    _both(first, second)
    if picture:
        output.write(f"{picture}\n\n")
    third.tell()
    heading("What to try next")
    _next_steps(first)


def _on_the_device(study: Study, lives: list[Life]) -> None:
    heading("1. On the device")
    prose(
        f'"{study.survey.question}" {study.survey.people:,} students are asked, and nobody wants to say yes. So each '
        "lets a device toss a coin. Heads: tell the truth. Tails: toss again, and say yes on heads, no on tails. "
        "Six of them, seen from inside:"
    )
    output.write("\n")
    rows = [[str(i), life.truth, life.first, life.second or "-", life.said] for i, life in enumerate(lives, start=1)]
    table(["student", "truth", "first coin", "second coin", "leaves the device"], rows, left=5)
    output.write("\n")
    prose("Only the last column ever leaves. Whoever is confronted with a yes can say: that was the coin.")
    output.write("\n")


def _promise(study: Study) -> None:
    channel = study.survey.channel
    prior = study.survey.shares
    belief = float(channel.posterior(prior)[0, 0])
    heading("2. The promise")
    prose(
        f"Whatever you answer, anyone's odds about your answer change by at most a factor of {channel.ratio}. "
        f"(Epsilon is its logarithm, {level_text(channel.ratio, digits=5)}: computed from the exact law, not "
        "declared.) "
        f"Somebody who thought you a cheat with probability {prior[0]:.0%} and hears your yes may now think "
        f"{belief:.0%}, and no more."
    )
    output.write("\n")
    rows = [[shown(x), *map(str, (channel.probability(x, y) for y in channel.outputs))] for x in channel.inputs]
    table(["truth", *(f"says {shown(y)}" for y in channel.outputs)], rows)
    output.write("\n")


def _collected(study: Study) -> None:
    yes, no = study.reports
    heading("3. What the collector sees")
    prose(
        f"{yes:,} yes and {no:,} no. Taken at their word, {yes / study.survey.people:.1%} cheated: far too many, "
        "because the coins said yes for honest people too. But how often coins do that is known."
    )
    output.write("\n")


def _undone(study: Study) -> None:
    estimate, error = float(study.inverted.frequencies[0]), float(study.inverted.stderr[0])
    low, high = study.ends[0]
    heading("4. What the crowd did")
    prose("So the coins' share can be taken out again, on average, by inverting the matrix above:")
    output.write("\n")
    _results(study, with_ibu=False)
    prose("(The truth is known only because these students are made up. Shaded: the interval.)")
    output.write("\n")
    hit = "It contains the truth" if study.covered else "This time it misses the truth, as one in twenty does"
    prose(
        f"{estimate:.1%} cheated, give or take {error:.1%}; the {LEVEL:.0%} interval runs from {low:.1%} to "
        f"{high:.1%}. {hit}, {study.truth[0]:.1%}. The price of the coins is the error bar: it is as wide as if "
        f"{study.open_answers:,.0f} people had been asked in the open, and had been honest."
    )
    output.write("\n")


def _six_answers(study: Study) -> None:
    channel = study.survey.channel
    kept, other = float(channel.rows[0, 0]), float(channel.rows[0, 1])
    heading("5. More than two answers")
    prose(
        f'"{study.survey.question}" {study.survey.people:,} people, {len(channel.inputs)} answers, epsilon '
        f"{level_text(channel.ratio, digits=4)}: the device reports the true answer with probability {kept:.1%} and "
        f"each other one with {other:.1%}, so that no report changes anyone's odds by more than a factor of "
        f"{float(channel.ratio):.2f}."
    )
    output.write("\n")
    _results(study, with_ibu=True)
    agrees = np.allclose(study.likeliest.frequencies, study.inverted.frequencies, atol=1e-4)
    prose(
        f"{study.covered} of the {len(channel.inputs)} intervals contain the truth. IBU, the iterative Bayesian "
        f"update, finds the most likely crowd given the counts, in {study.likeliest.iterations} updates. "
        + (
            "It agrees with the inversion, as it must while no estimate is negative."
            if agrees
            else "It differs from the inversion, because that one is not a distribution: a share is negative."
        )
    )
    output.write("\n")


def _results(study: Study, with_ibu: bool) -> None:
    labels = [shown(label) for label in study.survey.channel.inputs]
    noisy = study.reports / study.survey.people
    estimate, error, likeliest = study.inverted.frequencies, study.inverted.stderr, study.likeliest.frequencies
    rows = []
    for i, label in enumerate(labels):
        low, high = study.ends[i]
        cells = [f"{study.truth[i]:.1%}", f"{noisy[i]:.1%}", f"{estimate[i]:.1%}", f"{error[i]:.2%}"]
        rows.append([label, *cells, f"{low:.1%} to {high:.1%}", *([f"{likeliest[i]:.1%}"] if with_ibu else [])])
    head = ["answer", "truth", "reported", "estimate", "stderr", f"{LEVEL:.0%} interval"]
    table([*head, "IBU"] if with_ibu else head, rows)
    output.write("\n")
    chart(
        [
            (
                label,
                [
                    Bar("truth", float(study.truth[i]), "bright_black"),
                    Bar("reported", float(noisy[i]), "yellow"),
                    Bar(
                        "estimate",
                        float(estimate[i]),
                        "bright_blue",
                        (float(study.ends[i, 0]), float(study.ends[i, 1])),
                    ),
                ],
            )
            for i, label in enumerate(labels)
        ]
    )
    output.write("\n")


def _both(first: Study, second: Study) -> None:
    together = math.prod(float(study.survey.channel.ratio) for study in (first, second))
    prose(
        f"Someone who answers both questions gives away more: the factors multiply, to {together:.1f}. Privacy "
        "is a budget, and this one is counted."
    )
    output.write("\n")


def _picture(studies: list[Study], wanted: Path | None) -> str | None:
    """Where the picture was put, or why there is none. A place that was asked for must work."""
    from deniable.cli.pictures import save_figure

    path = wanted or _PLOT
    try:
        if wanted is None:
            path.parent.mkdir(exist_ok=True)
        save_figure(path, lambda: _draw(studies))
    except MissingExtra as missing:
        if wanted is not None:
            raise
        return f"No picture was drawn: {missing}"
    except OSError as refused:
        if wanted is not None:
            raise
        return f"No picture was drawn, because {path} cannot be written ({refused.strerror})"
    return f"The picture of all this: {path}"


def _draw(studies: list[Study]) -> Any:
    import matplotlib.pyplot as plt

    widths = [2 + len(study.survey.shares) for study in studies]
    _, axes = plt.subplots(1, len(studies), figsize=(12, 4.2), width_ratios=widths, layout="constrained")
    for study, ax in zip(studies, np.atleast_1d(axes), strict=True):
        study.inverted.plot(truth=study.truth, level=LEVEL, ax=ax)
        level = level_text(study.survey.channel.ratio, digits=3)
        ax.set_title(f"{study.survey.question}\n{study.survey.people:,} people, epsilon {level}")
        ax.spines[["top", "right"]].set_visible(False)
    return axes[0]


def _next_steps(study: Study) -> None:
    yes, no = study.reports
    steps = [
        (f"deniable channel infer coin yes={yes},no={no}", "that estimate, from the counts alone"),
        ("deniable channel sample coin yes", "answer the first question yourself"),
        ("deniable channel show coin", "the law behind it, and its level"),
        ("deniable channel epsilon coin --at-most 1", "check a claim that is false"),
        ("deniable channel list", "other mechanisms"),
        ("deniable plan --categories 1000 --epsilon 1 --people 200000", "how part 6 was planned"),
        ("deniable story --people 500", "fewer people, wider error bars"),
    ]
    width = max(len(command) for command, _ in steps)
    for command, purpose in steps:
        output.write(f"  {command:<{width}}  {purpose}\n")
