"""`deniable relay epsilon`: how much shuffled reports reveal, and how many people or which epsilon that needs."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any

from deniable import exact
from deniable.cli import output
from deniable.cli.load_survey import read_target
from deniable.cli.options import Json, argument, new_app, option
from deniable.cli.output import examples
from deniable.errors import SpecError
from deniable.privacy import Shuffled, fewest_people, largest_epsilon, shuffled
from deniable.privacy.shuffle import rounded_up
from deniable.protocols.traits import scaled

app = new_app()


@app.command(
    "epsilon",
    epilog=examples(
        "deniable relay epsilon --epsilon 2 --people 100000               any protocol of epsilon 2",
        "deniable relay epsilon survey.json --people 100000 --delta 1e-9  this survey, all questions together",
        "deniable relay epsilon survey.json --people 10000 --epochs 12    every month for a year, drawn afresh",
        "deniable relay epsilon --people 100000 --central 1               which epsilon each person may use",
        "deniable relay epsilon survey.json --central 1                   how many people it takes",
    ),
)
def shuffle(
    about: Annotated[
        str | None, argument("[SURVEY]", "A survey file, or the spec of a single protocol, in JSON.")
    ] = None,
    epsilon: Annotated[str | None, option("EPSILON", "The epsilon of one submission, for any protocol.")] = None,
    people: Annotated[int | None, option("N", "How many honest people are in a batch.")] = None,
    delta: Annotated[
        str, option("DELTA", "The probability up to which the central epsilon holds.", default=True)
    ] = "1e-8",
    central: Annotated[str | None, option("EPSILON", "The epsilon that all reports together should have.")] = None,
    epochs: Annotated[int, option("N", "How many epochs a person answers in.", default=True, min=1)] = 1,
    as_json: Json = False,
) -> None:
    """Bound what reports in random order reveal.

    Give --people, or --central, or both.

    A shuffler between people and collector takes away who sent what, so that each report hides among all others, and
    all of them together have a small epsilon. That holds if the shuffler and the collector do not work together, and
    counts honest people only. The bound is for the very protocols of the survey where their law is known, else for any
    protocol of that epsilon. The lower bound is an attack: no proof can go below it.
    """
    if about is not None and epsilon is not None:
        raise SpecError("give a survey or --epsilon, not both")
    if about is None and epsilon is None and (people is None or central is None):
        raise SpecError("give a survey or --epsilon; or both --people and --central, and the epsilon follows")
    if people is None and central is None:
        raise SpecError("give --people, for the central epsilon, or --central, for the number of people")
    if central is not None and epochs > 1:
        raise SpecError("--epochs goes with --people alone: the central epsilon over them follows")
    release: Any = epsilon if about is None else _release(about)
    if release is not None and central is not None and people is None:
        people = fewest_people(release, central, delta)
        _print(shuffled(release, people, delta), as_json, solved={"people": people}, central=central)
        return
    assert people is not None
    if central is not None:
        found = largest_epsilon(people, central, delta, None if release is None else _scaled(release))
        _print(found, as_json, solved={"epsilon_0": float(found.epsilon_0)}, central=central)
        return
    _print(shuffled(release, people, delta), as_json, epochs=epochs)


def _release(source: str) -> Any:
    """The protocols of one submission."""
    return [question.protocol for question in read_target(source)]


def _scaled(release: Any) -> Any:
    """The same release at another epsilon."""
    if isinstance(release, str):
        return None
    whole = sum((protocol.epsilon for protocol in release), Fraction(0))
    return lambda level: [scaled(protocol, level / whole) for protocol in release]


def _print(
    crowd: Shuffled,
    as_json: bool,
    solved: dict[str, Any] | None = None,
    epochs: int = 1,
    central: str | None = None,
) -> None:
    found: dict[str, Any] = {
        "people": crowd.n,
        "epsilon_0": float(crowd.epsilon_0),
        "delta": float(crowd.delta),
        "epsilon": crowd.epsilon,
        "method": crowd.method,
        "lower": crowd.lower,
        "any_protocol": crowd.clones,
    }
    if epochs > 1:
        found |= {"epochs": epochs, "epsilon_of_all": crowd.over(epochs).epsilon_at(crowd.delta)}
    if as_json:
        output.document(found | ({"solved": next(iter(solved))} if solved else {}))
        return
    if solved and "epsilon_0" in solved:
        output.prose(
            f"With a shuffler and {crowd.n:,} people you may use epsilon_0 = {solved['epsilon_0']:g} for a central "
            f"({central}, {float(crowd.delta):g})."
        )
    elif solved:
        output.prose(f"It takes {crowd.n:,} honest people.")
    output.prose(crowd.words)
    rows = [["epsilon, proven", rounded_up(crowd.epsilon), crowd.method]]
    if crowd.method != "clones":
        rows.append(["epsilon, any protocol", rounded_up(crowd.clones), "clones"])
    if crowd.lower:
        rows.append(["no epsilon below", f"{0.9995 * crowd.lower:.4g}", "an attack"])
    if epochs > 1:
        rows.append([f"epsilon, {epochs:,} epochs", rounded_up(found["epsilon_of_all"]), "composed"])
    output.write("\n")
    output.table(["bound", "value", "by"], rows)
    output.write("\n")
    output.prose(
        "It holds against a collector who does not work with the shuffler, for people who follow the protocol; without "
        f"a shuffler epsilon {exact.epsilon_text(crowd.epsilon_0, 4)} holds against everybody."
    )
