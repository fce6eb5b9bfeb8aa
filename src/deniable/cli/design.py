"""`deniable design`: compute the optimal mechanism, and check the proof of its optimality.

extremal     two hypotheses, inline or in a file, become a mechanism and a certificate; with a radius, the robust one
regimes      for which epsilons the binary mechanism and randomized response are optimal
several      any number of hypotheses: a CSV with a column for each, or one option per law
bayes        a prior and a loss become a mechanism and a certificate
compromise   several users share one mechanism: what that costs them
mean         the mechanism and read-out with the smallest worst-case variance of a mean
together     parties compute a function of their bits: how often each is right
information  how much a report of each protocol reveals, and the limit for all reports
profiles     profiles in CSV, with a header "profile" and the values (one column "p" for Bernoulli), and edges in CSV,
             two names per line below a header; or both in JSON, which may come from standard input. The epsilon is the
             exact largest log-ratio over the graph's edges, of the integers that are saved
verify       a certificate or a saved profile mechanism is checked without the solver

`DESIGNS` at the end has one row per command, and `_run` runs any of them. `read_designs` reads what they start from,
and `show_designs` prints what they find.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from deniable import design as designs, exact
from deniable._files import parse_json
from deniable.channels import Channel
from deniable.channels.divergences import DIVERGENCES
from deniable.cli import output, show_designs as show
from deniable.cli.options import Json, Plot, argument, errors_in, named, new_app, option, read_text, with_options
from deniable.cli.output import examples, ratio_words, save_figure, shown, solving
from deniable.cli.read_channels import as_floats, read_adjacency
from deniable.cli.read_designs import (
    TwoLaws,
    read_graph,
    read_loss,
    read_prior,
    read_priors,
    read_several_laws,
    read_two_laws,
    read_weights,
)
from deniable.design import Certificate, Design
from deniable.design.several import GOALS
from deniable.domains import Integers
from deniable.errors import LabelError, ShapeError, SpecError
from deniable.exact import epsilon_text, level_text
from deniable.planning import information as report_information
from deniable.protocols import load, profiles as mechanisms
from deniable.protocols.law import PROFILES
from deniable.protocols.profiles import ProfileGraph, ProfileMechanism
from deniable.protocols.profiles.table import ToldApart
from deniable.trace import Progress

app = new_app()

NAMES = ("smooth-one-bit", "one-bit-cluster", "smooth-categorical", "warner", "kary-response")

# Tolerance for the noise of a profile mechanism: solvers agree to many more digits.
_SOLVERS_DIFFER = 1e-6


@app.callback(
    epilog=examples(
        "deniable design extremal --p0 0.5,0.3,0.2 --p1 0.2,0.3,0.5 --epsilon 1",
        "deniable design extremal laws.csv --epsilon 1 --save proof.json",
        "deniable design several laws.csv --epsilon 1",
        "deniable design bayes 0.45,0.45,0.1 --epsilon 1",
        "deniable design mean --epsilon 3 --save proof.json",
        "deniable design information --answers 6 --epsilon 1",
        "deniable design profiles profiles.csv --edges edges.csv --epsilon 1",
        "deniable design verify proof.json",
    )
)
def design(ctx: typer.Context) -> None:
    """Compute optimal mechanisms, each with a certificate.

    Anybody can check a certificate, without the solver.
    """
    if ctx.invoked_subcommand is None:
        output.write(ctx.get_help() + "\n")


# -- what several designs share ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """A design as a command.

    Args:
        find: Computes it. Its name, parameters and docstring are those of the command. It returns a tuple, whose
            items are the arguments of the functions below.
        document: What --json prints.
        text: Prints it for people.
        examples: The lines at the end of the help.
        save: Writes it to the path that is its first argument; None if it has no file.
        saved: Help of --save.
        draw: Returns axes with a picture; None if it has none.
        needs: What --epsilon says, in the error if it is missing.
        holds: Whether a check succeeded; if not, the exit code is 1.
    """

    find: Callable[..., tuple[Any, ...]]
    document: Callable[..., dict[str, Any]]
    text: Callable[..., None]
    examples: tuple[str, ...]
    save: Callable[..., None] | None = None
    saved: str = "Write the certificate."
    draw: Callable[..., Any] | None = None
    needs: str = "how private a report has to be"
    holds: Callable[..., bool] = lambda *_: True


def _run(row: Row, as_json: bool, save: Path | None = None, plot: Path | None = None, **given: Any) -> None:
    """Compute a design, write its files and print it."""
    if given.get("epsilon", "") is None:
        raise SpecError(f"say {row.needs}: --epsilon 1, for example")
    found = row.find(**given)
    if save is not None and row.save is not None:
        row.save(save, *found)
    if plot is not None and row.draw is not None:
        save_figure(plot, partial(row.draw, *found))
    if as_json:
        output.document(row.document(*found))
    else:
        row.text(*found)
        output.files(saved=save, drawn=plot)
    if not row.holds(*found):
        raise typer.Exit(1)


def _register(row: Row) -> None:
    """Make a row a command, with the options that it can serve."""
    added: dict[str, tuple[Any, Any]] = {}
    if row.save is not None:
        added["save"] = Annotated[Path | None, option("FILE", row.saved)], None
    if row.draw is not None:
        added["plot"] = Plot, None
    added["as_json"] = Json, False
    command = with_options(partial(_run, row), row.find, after=added)
    app.command(row.find.__name__, help=row.find.__doc__, epilog=examples(*row.examples))(command)


Kind = Annotated[str, option("NAME", f"One of {', '.join(DIVERGENCES)}.", "--divergence", default=True)]
Hypotheses = Annotated[
    str | None,
    argument("[LAWS]", "Both hypotheses: CSV lines label,P0,P1, or JSON with p0, p1 and perhaps inputs; '-' is stdin."),
]
First = Annotated[str | None, option("LAW", "0.5,0.5 or yes=0.5,no=0.5", "--p0")]
Second = Annotated[str | None, option("LAW", "The other hypothesis.", "--p1")]
Epsilon = Annotated[str | None, option("EPSILON", "The privacy level of a report.", "--epsilon")]
Pairs = Annotated[str, option("PAIRS", "all, line, line:2, hamming, or a CSV of edges.", default=True)]


def _solve(solver: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """Call a solver and show its progress."""
    with solving() as progress:
        found = solver(*given, **options, progress=progress)
        if isinstance(found, Design):
            _ = found.certificate  # its computation is a part of the work that is shown
    return found


def _save_certificate(path: Path, found: Design, *_: Any) -> None:
    found.certificate.save(path)


def _draw_channel(found: Design, *_: Any) -> Any:
    return found.plot()


_certified = partial(Row, save=_save_certificate, draw=_draw_channel)


# -- extremal: tell two hypotheses apart ---------------------------------------------------------------


def extremal(
    source: Hypotheses = None,
    p0: First = None,
    p1: Second = None,
    epsilon: Epsilon = None,
    divergence: Kind = "kl",
    radius: Annotated[
        str | None,
        option("R", "The laws are known up to this total variation distance: 0.05, or 0.05,0.1 for P0 and P1."),
    ] = None,
) -> tuple[Design, TwoLaws]:
    """Distinguish two hypotheses as well as possible.

    Finds the mechanism whose reports have the largest divergence under the two. No other mechanism at this level has
    reports of a larger divergence: value and bound enclose the optimum. With a radius, the value is the smallest
    divergence over all laws that close, and no mechanism has a larger one.
    """
    laws = read_two_laws(source, p0, p1)
    if radius is None:
        return _solve(designs.extremal, laws.p0, laws.p1, epsilon, divergence, laws.inputs), laws
    near = [exact.fraction(piece, "the radius") for piece in radius.split(",")]
    given = near[0] if len(near) == 1 else near
    return _solve(designs.robust, laws.p0, laws.p1, epsilon, given, divergence, laws.inputs), laws


# -- regimes: where the classical mechanisms are optimal -----------------------------------------------


def regimes(
    source: Hypotheses = None,
    p0: First = None,
    p1: Second = None,
    divergence: Kind = "kl",
    epsilons: Annotated[
        str | None, option("LIST", "The epsilons to scan, as in 0.1,1,4.", default="49 from 0.01 to 16")
    ] = None,
) -> tuple[Any]:
    """Find where the classical mechanisms are optimal.

    For which epsilons the binary mechanism and randomized response are optimal. Each threshold is a bracket: on one
    side optimality is proved, on the other a better mechanism is known.
    """
    laws = read_two_laws(source, p0, p1)
    grid = None if epsilons is None else [float(exact.as_epsilon(piece)) for piece in epsilons.split(",")]
    return (_solve(designs.regimes, laws.p0, laws.p1, divergence, grid),)


# -- several: any number of hypotheses -----------------------------------------------------------------


def several(
    source: Annotated[
        str | None,
        argument(
            "[LAWS]", 'CSV with a column per law, or JSON {"laws": {name: [...]}, "inputs": [...]}; \'-\' is stdin.'
        ),
    ] = None,
    law: Annotated[list[str] | None, option("LAW", "0.5,0.5 or yes=0.5,no=0.5, once per law.")] = None,
    epsilon: Epsilon = None,
    prior: Annotated[
        str | None, option("PRIOR", "How likely each law is: 0.5,0.3,0.2 or name=0.5,...", default="all alike")
    ] = None,
    goal: Annotated[str, option("GOAL", f"One of {', '.join(GOALS)}: one report, or many.", default=True)] = "guess",
) -> tuple[Any, ...]:
    """Distinguish several hypotheses as well as possible.

    Finds the mechanism whose reports say best which of several laws the answers follow. guess: the probability that the
    best guess from one report is right. stein, chernoff: with many reports errors fall like e^(-n value), for the two
    laws that are hardest to tell apart.
    """
    laws, inputs = read_several_laws(source, law)
    weights = read_weights(prior, tuple(laws), "law")
    return _solve(designs.several, laws, epsilon, weights, goal, inputs), goal, laws


# -- bayes: least expected loss under a prior ----------------------------------------------------------


def bayes(
    prior: Annotated[str, argument("PRIOR", "0.5,0.5 or yes=0.5,no=0.5 or a file; '-' is stdin.", default=True)],
    epsilon: Epsilon = None,
    loss: Annotated[str | None, option("LOSS", "zero-one (as without), absolute, squared, or a matrix.")] = None,
    gain: Annotated[str | None, option("GAIN", "A gain instead: identity, or a matrix.")] = None,
    adjacency: Pairs = "all",
) -> tuple[Design]:
    """Minimize the expected loss of a user with a prior.

    Value and bound enclose what any mechanism at this level can reach; the channel's ratios hold exactly.
    """
    labels, weights = read_prior(prior)
    relation = read_adjacency(adjacency, Channel([[1]] * len(labels), inputs=labels))
    losses, guesses = read_loss(loss, labels)
    gains, named_gains = read_loss(gain, labels)
    found = _solve(
        designs.bayes, as_floats(weights, "prior"), losses, epsilon=epsilon, adjacency=relation, gain=gains,
        guesses=guesses or named_gains, inputs=labels,
    )  # fmt: skip
    return (found,)


# -- compromise: several users, one mechanism ----------------------------------------------------------


def compromise(
    user: Annotated[
        list[str] | None, option("PRIOR", "What a user believes: 0.5,0.5 or a file, once per user.")
    ] = None,
    loss: Annotated[
        list[str] | None,
        option("LOSS", "zero-one, absolute, squared or a matrix: for all users, or once per user.", default="zero-one"),
    ] = None,
    epsilon: Epsilon = None,
    adjacency: Pairs = "all",
) -> tuple[Design, Any]:
    """Find one mechanism for several users.

    Shows what each loses by sharing it. On a line nothing is lost; on graphs with cycles there are users whom no single
    mechanism serves best.
    """
    if not user:
        raise SpecError("say what each user believes: --user 0.5,0.5 --user 0.2,0.8, for example")
    losses = loss or ["zero-one"]
    if len(losses) not in (1, len(user)):
        raise ShapeError(
            f"give one --loss for all, or one per user: there are {len(user)} users and {len(losses)} losses"
        )
    labels, priors = read_priors(user)
    relation = read_adjacency(adjacency, Channel([[1]] * len(labels), inputs=labels))
    functions = [read_loss(name, labels)[0] for name in losses] * (len(user) if len(losses) == 1 else 1)
    pairs = [(as_floats(weights, "prior"), function) for weights, function in zip(priors, functions, strict=True)]
    found = _solve(designs.compromise, pairs, epsilon=epsilon, adjacency=relation, inputs=labels)
    return found.shared, found


# -- mean: the smallest worst-case variance ------------------------------------------------------------


def mean(
    epsilon: Epsilon = None,
    positions: Annotated[
        int | None, option("D", "Positions that numbers are rounded to at random.", default="by epsilon")
    ] = None,
    outputs: Annotated[int | None, option("M", "How many different reports there may be.", default="any")] = None,
) -> tuple[Any]:
    """Minimize the worst-case variance of a mean.

    Channel and unbiased read-out are found together. The variance is that of one report, of a number in [-1, 1]; on an
    interval of width w it is w^2 / 4 times as large. No mechanism on the same positions is below the bound.
    """
    return (_solve(designs.mean, epsilon, positions, outputs),)


# -- information: what a report tells ------------------------------------------------------------------


def information(
    answers: Annotated[int | None, option("D", "How many answers there are.")] = None,
    epsilon: Epsilon = None,
    prior: Annotated[str | None, option("PRIOR", "How the answers are distributed.", default="all alike")] = None,
) -> tuple[Any, int]:
    """Compare how much reports reveal, with the limit.

    One row per protocol, and what no report can exceed. Information and capacity are in nats per report. The spread,
    divided by the number of reports, is the smallest sum of variances that an unbiased estimate of the shares can have.
    """
    if answers is None or answers < 2:
        raise SpecError("say how many answers there are, at least two: --answers 6, for example")
    domain = Integers(0, answers - 1)
    weights = read_weights(prior, domain.labels, "answer")
    shares = None if weights is None else as_floats(weights, "prior")
    return report_information(domain, epsilon, shares), answers


# -- profiles: hide which profile the data come from ---------------------------------------------------


def profiles(
    source: Annotated[
        str, argument("PROFILES", "CSV, or JSON with profiles and edges; '-' reads JSON from stdin.", default=True)
    ],
    edges: Annotated[str | None, option("FILE", "CSV of the pairs that must look alike.")] = None,
    epsilon: Annotated[str | None, option("EPSILON", "The privacy level over the edges.")] = None,
    mechanism: Annotated[
        str | None, option("NAME", f"One of {', '.join(NAMES)}; without it, the smooth one with less noise.")
    ] = None,
) -> tuple[Any, ...]:
    """Find the least noise that hides profiles.

    Profiles that an edge joins must look alike. Only who has which profile is protected, and only between joined
    profiles: a profile without an edge reports in the clear.
    """
    if mechanism is not None and mechanism not in NAMES:
        raise LabelError(f"there is no mechanism {mechanism!r}; there are {', '.join(NAMES)}")
    graph = read_graph(source, edges)
    is_bit = graph.whole.width == 2
    if mechanism is None and is_bit:
        made, other = _solve(_quieter, graph, epsilon)
    else:
        made, other = _solve(_made, mechanism or "smooth-categorical", graph, epsilon), None
    return made, _made("warner" if is_bit else "kary-response", graph, epsilon), other


def _made(name: str, graph: ProfileGraph, epsilon: Any, progress: Progress | None = None) -> ProfileMechanism:
    """The mechanism of this name for a graph."""
    makers: dict[str, Callable[[ProfileGraph, Any], ProfileMechanism]] = {
        "smooth-one-bit": partial(mechanisms.SmoothOneBit, progress=progress),
        "one-bit-cluster": mechanisms.OneBitCluster,
        "smooth-categorical": partial(mechanisms.SmoothCategorical, progress=progress),
        "warner": mechanisms.Warner,
        "kary-response": mechanisms.KaryResponse,
    }
    return makers[name](graph, epsilon)


def _quieter(graph: ProfileGraph, epsilon: Any, progress: Progress | None) -> tuple[ProfileMechanism, ProfileMechanism]:
    """Compares one flip probability per profile with one channel per profile; returns the less noisy one first."""
    flips, channels = (_made(name, graph, epsilon, progress) for name in ("smooth-one-bit", "smooth-categorical"))
    # A channel must be better by more than the solvers' tolerance: a flip is simpler.
    return (channels, flips) if show.noise(channels) < show.noise(flips) * (1 - _SOLVERS_DIFFER) else (flips, channels)


# -- together: a function of everybody's bits ----------------------------------------------------------


def together(
    function: Annotated[
        str, argument("FUNCTION", "xor, and, or, majority, sum, or the values of the function.", default=True)
    ],
    epsilon: Annotated[str, option("EPSILON", "For all parties, or one for each: 0.5,1.")],
    parties: Annotated[int | None, option("N", "How many there are.", default="by the lists that are given")] = None,
    prior: Annotated[
        str, option("P", "How likely a bit is 1, for all or one for each: 0.5,0.2.", default=True)
    ] = "1/2",
    check: Annotated[
        bool, typer.Option("--check", help="For two parties: look for a better protocol of three messages on a grid.")
    ] = False,
) -> tuple[Any, float | None]:
    """Compute a function of the bits of several parties.

    From randomized bits: who is right how often, exactly. An outsider hears all published bits, a party also knows its
    own, and a curator is trusted with all bits.
    """
    many, each, ones = (given.split(",") if "," in given else given for given in (function, epsilon, prior))
    made = designs.together(many, each, parties, ones)
    if check and made.size != 2:
        raise SpecError("--check is for two parties")
    return made, designs.best_of_rounds(made.values, made.epsilons, (0, 1, 0), 8) if check else None


# -- verify: check what was saved ----------------------------------------------------------------------


def verify(
    source: Annotated[str, argument("FILE", "A certificate or a saved mechanism, or '-'.", default=True)],
) -> tuple[dict[str, Any]]:
    """Check a certificate again, without the solver.

    Rows and ratios are checked with integers, the bound with long decimals. For a profile mechanism rows and ratios are
    checked; it claims no bound. The exit code is 1 if any check fails.
    """
    content = parse_json(read_text(source), named(source))
    with errors_in(named(source)):
        if isinstance(content, dict) and content.get("kind") == "protocol":
            return (_verify_profiles(content),)
        certificate = Certificate.load(content if isinstance(content, dict) else {})
    verdict = certificate.verify()
    found = {
        "verified": bool(verdict),
        "rigor": verdict.rigor,
        "value": certificate.value,
        "bound": certificate.bound,
        "relative_gap": certificate.relative_gap,
        "checks": [asdict(check) for check in verdict.checks],
    }
    return (found,)


def _verify_profiles(content: dict[str, Any]) -> dict[str, Any]:
    """The checks of a saved mechanism, with integers."""
    try:
        table: Any = load(content)
        if table.guarantee.relation != PROFILES:
            raise SpecError("a saved protocol is verified where it is loaded; only profile mechanisms are shown here")
        verdict = table.worst_edge
    except ToldApart as wrong:
        verdict = wrong.verdict
    asked, first, second = exact.as_epsilon(content["epsilon"]), *map(shown, verdict.edge)
    detail = (
        f"{level_text(verdict.ratio)} over the edges, {'at most' if verdict else 'more than'} {epsilon_text(asked)}; "
        f"output {shown(verdict.output)} of {first} and {second} has a ratio of {ratio_words(verdict.ratio)}"
    )
    return {
        "verified": verdict.holds,
        "rigor": "proved",
        "mechanism": content["mechanism"],
        "epsilon": show.level_document(asked, verdict.epsilon, verdict.ratio),
        "checks": [
            {"name": "rows", "holds": True, "detail": "every row holds integers that sum to 2^64"},
            {"name": "epsilon", "holds": verdict.holds, "detail": detail},
        ],
    }


# -- all commands --------------------------------------------------------------------------------------


DESIGNS = (
    _certified(
        extremal,
        show.extremal_document,
        show.print_extremal,
        (
            "deniable design extremal --p0 0.5,0.3,0.2 --p1 0.2,0.3,0.5 --epsilon 1",
            "deniable design extremal --p0 never=0.5,once=0.3,often=0.2 --p1 never=0.2,once=0.3,often=0.5 --epsilon 1",
            "deniable design extremal laws.csv --epsilon 0.5 --divergence chi2 --save proof.json",
            "deniable design extremal laws.csv --epsilon 1 --radius 0.05",
            "(laws.csv has lines: label,P0,P1)",
        ),
    ),
    Row(
        regimes,
        show.regimes_document,
        show.print_regimes,
        (
            "deniable design regimes --p0 0.5,0.3,0.2 --p1 0.2,0.2,0.6",
            "deniable design regimes laws.csv --divergence chi2 --plot regimes.png",
            "(laws.csv has lines: label,P0,P1)",
        ),
        draw=lambda found: found.plot()[0],
    ),
    _certified(
        several,
        show.several_document,
        show.print_several,
        (
            "deniable design several --law 0.5,0.3,0.2 --law 0.2,0.5,0.3 --law 0.2,0.3,0.5 --epsilon 1",
            "deniable design several laws.csv --epsilon 1 --prior 0.5,0.3,0.2 --save proof.json",
            "deniable design several laws.csv --epsilon 1 --goal chernoff",
            "(laws.csv has a first row with the names of the laws, and lines label,P1,P2,P3 below it)",
        ),
    ),
    _certified(
        bayes,
        show.channel_document,
        show.print_bayes,
        (
            "deniable design bayes 0.45,0.45,0.1 --epsilon 1",
            "deniable design bayes 0=0.1,1=0.2,2=0.4,3=0.2,4=0.1 --loss absolute --adjacency line --epsilon 0.5",
            "deniable design bayes prior.csv --loss loss.csv --adjacency edges.csv --epsilon 1 --save proof.json",
            "(prior.csv has lines label,probability; loss.csv a row for each guess below a row of the true labels)",
        ),
    ),
    _certified(
        compromise,
        show.compromise_document,
        show.print_compromise,
        (
            "deniable design compromise --user 0.5,0,0.5,0 --user 0,0.5,0,0.5 --adjacency ring.csv --epsilon 1",
            "deniable design compromise --user 0.6,0.3,0.1 --user 0.1,0.3,0.6 --loss absolute --adjacency line "
            "--epsilon 1",
            "(ring.csv has one edge per line: a,b)",
        ),
    ),
    _certified(
        mean,
        show.mean_document,
        show.print_mean,
        (
            "deniable design mean --epsilon 3",
            "deniable design mean --epsilon 1 --positions 9 --save proof.json --plot mechanism.png",
            "deniable survey new draft.json --table hours=proof.json -o survey.json",
            '(the draft says which numbers: "answers": {"number": {"low": 0, "high": 24, "unit": "hours"}})',
        ),
    ),
    Row(
        information,
        show.information_document,
        show.print_information,
        (
            "deniable design information --answers 6 --epsilon 1",
            "deniable design information --answers 3 --epsilon 2 --prior 0.5,0.3,0.2 --json",
        ),
    ),
    Row(
        profiles,
        show.profiles_document,
        show.print_profiles,
        (
            "deniable design profiles profiles.csv --edges edges.csv --epsilon 1",
            "deniable design profiles profiles.csv --edges edges.csv --epsilon 1 --mechanism one-bit-cluster",
            "deniable design profiles graph.json --epsilon 0.5 --save mechanism.json --plot noise.png",
            "deniable design verify mechanism.json",
            "(profiles.csv has lines profile,p or profile,P(a),P(b),... and edges.csv two profiles; both have a "
            "header)",
        ),
        save=lambda path, made, *_: output.save_json(path, made.spec()),
        saved="Write the mechanism, in integers.",
        draw=show.draw_profiles,
        needs="how alike joined profiles have to look",
    ),
    Row(
        together,
        show.together_document,
        show.print_together,
        (
            "deniable design together xor --parties 2 --epsilon 1",
            "deniable design together majority --parties 5 --epsilon 0.5,0.5,1,1,2",
            "deniable design together 0,0,0,1 --epsilon 1                the values at 00, 01, 10 and 11",
            "deniable design together and --parties 2 --epsilon 1 --check",
        ),
    ),
    Row(
        verify,
        lambda found: found,
        show.print_verdict,
        ("deniable design verify proof.json", "deniable design verify proof.json --json"),
        holds=lambda found: found["verified"],
    ),
)
for _row in DESIGNS:
    _register(_row)
