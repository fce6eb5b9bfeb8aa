"""Shows what `deniable design` finds: as text for people, as JSON, and profile mechanisms as a picture.

Text   facts, and a table below them; only the beginning of a long table is printed
JSON   everything; the value with its bound and how it was found
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any

from deniable import exact
from deniable._extras import require
from deniable.cli import output
from deniable.cli.output import number, ratio_text, ratio_words, shown
from deniable.cli.read_designs import TwoLaws
from deniable.design import BlockResponse, Bracket, Design
from deniable.domains import Interval
from deniable.errors import InternalError
from deniable.exact import WORD, epsilon_text, level_text
from deniable.labels import label_spec
from deniable.protocols import OneBitMean, Window
from deniable.protocols.profiles import ProfileMechanism
from deniable.protocols.profiles.mechanism import off_diagonal
from deniable.results import finite
from deniable.trace import summary

# This much is printed; --json has all.
_MOST_LISTED = 8
_MOST_CELLS = 12
_MOST_PROFILES = 40


def level_document(asked: Fraction, realized: float, ratio: Fraction | float) -> dict[str, Any]:
    return {"asked": exact.canonical(asked), "realized": finite(realized), "ratio": ratio_text(ratio)}


def _proven(found: Design) -> dict[str, Any]:
    """What every design says about its value, as JSON."""
    return {
        "value": found.value,
        "bound": found.bound,
        "gap": found.gap,
        "relative_gap": found.relative_gap,
        "rigor": found.certificate.rigor,
        "seconds": found.seconds,
        "trace": [step.spec() for step in found.trace],
    }


def channel_document(found: Design) -> dict[str, Any]:
    return {
        "mechanism": found.name,
        "sense": found.sense,
        "epsilon": {"asked": exact.canonical(found.epsilon), "realized": found.realized_epsilon},
        **_proven(found),
        "channel": found.channel.spec(),
    }


def _facts(
    found: Design, mechanism: str, kind: str, value: str, level: str, *more: tuple[str, str]
) -> list[tuple[str, str]]:
    """What every design says about its value, for people."""
    return [
        ("mechanism", f"{found.name}{mechanism}"),
        (kind, value),
        ("bound", f"{number(found.bound)} ({found.certificate.rigor}; relative gap {found.relative_gap:.1e})"),
        ("epsilon", f"{level}, at most {epsilon_text(found.epsilon)} as asked"),
        *more,
        ("solver", summary(found.trace)),
    ]


def _print(
    facts: Sequence[tuple[str, str]], head: list[str], body: Sequence[Sequence[str]], left: int = 1, remark: str = ""
) -> None:
    """Facts, a table below them, and perhaps a remark in parentheses."""
    output.facts(facts)
    output.write("\n")
    output.table(head, body, left)
    if remark:
        output.write(f"\n({remark})\n")


def print_channel(found: Design, kind: str) -> None:
    channel = found.channel
    worst = channel.witness(channel.adjacency)
    mechanism = f" for {channel.adjacency}, {found.outputs} outputs in use"
    rows, columns = (min(side, _MOST_CELLS) for side in channel.shape)
    cut = (rows, columns) != channel.shape
    _print(
        _facts(found, mechanism, kind, number(found.value), level_text(worst.ratio, worst.distance)),
        ["input", *(shown(label) for label in channel.outputs[:columns])],
        [[shown(channel.inputs[x]), *(f"{channel.rows[x, y]:.4f}" for y in range(columns))] for x in range(rows)],
        remark=f"the first of {channel.shape[0]} inputs and {channel.shape[1]} outputs; --json has all" if cut else "",
    )


def _listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return ", ".join(names[:_MOST_LISTED]) + more


def _share(value: float, best: float) -> float:
    return value / best if best > 0 else 1.0


def _blocks_law(found: Design) -> BlockResponse:
    """The law of an extremal mechanism."""
    if not isinstance(found.law, BlockResponse):
        raise InternalError("an extremal mechanism is a response over blocks")
    return found.law


def print_extremal(found: Design, laws: TwoLaws) -> None:
    names = [shown(label) for label in laws.inputs or range(len(laws.p0))]
    law = _blocks_law(found)
    kind = f"randomized response over {found.outputs} blocks of symbols"
    report = f"the own block with probability {float(law.true):.6g}, each other with {float(law.false):.6g}"
    if found.outputs == 1:
        kind, report = "a constant answer, because nothing tells the hypotheses apart", "always the same"
    body = []
    for y in range(law.outputs):
        block = [x for x, own in enumerate(law.block) if own == y]
        shares = [float(sum(masses[x] for x in block) / sum(masses)) for masses in (laws.p0, laws.p1)]
        body.append([str(y), _listed([names[x] for x in block]), *(f"{share:.4f}" for share in shares)])
    level = level_text(found.ratio)
    facts = _facts(found, f": {kind}", "value", number(found.value), level, ("report", report))
    _print(facts, ["output", "symbols", "P0", "P1"], body, left=2)


def extremal_document(found: Design, laws: TwoLaws) -> dict[str, Any]:
    return {
        "mechanism": found.name,
        "epsilon": level_document(found.epsilon, found.realized_epsilon, found.ratio),
        **_proven(found),
        "inputs": None if laws.inputs is None else [label_spec(label) for label in laws.inputs],
        "law": _blocks_law(found).spec(),
    }


def regimes_document(found: Any) -> dict[str, Any]:
    return {
        "divergence": found.divergence.name,
        "binary": [found.binary.low, finite(found.binary.high)],
        "response": [found.response.low, finite(found.response.high)],
        "exceptions": {"binary": found.binary_exceptions, "response": found.response_exceptions},
        "scan": [asdict(at) for at in found.scan],
    }


def print_regimes(found: Any) -> None:
    exceptions = ", ".join(f"{value:.5g}" for value in found.binary_exceptions + found.response_exceptions)
    facts = [
        ("divergence", found.divergence.name),
        ("binary mechanism", f"optimal up to epsilon {_ends(found.binary)}"),
        ("randomized response", f"optimal from epsilon {_ends(found.response)} on"),
        ("exceptions", exceptions or "none in the scan"),
    ]
    body = []
    for at in found.scan[:: max(1, len(found.scan) // _MOST_CELLS)]:
        shares = [f"{_share(value, at.best):.4f}" for value in (at.binary, at.response)]
        body.append([f"{at.epsilon:.4g}", f"{at.best:.6g}", *shares, str(at.blocks)])
    remark = "binary and response as shares of the best"
    _print(facts, ["epsilon", "best", "binary", "response", "outputs"], body, left=0, remark=remark)


def _ends(bracket: Bracket) -> str:
    high = ", where the scan ends" if bracket.high == math.inf else f" to {bracket.high:.5g}"
    return f"{bracket.low:.5g}{high}"


def several_document(found: Design, goal: str, laws: dict[Any, Any]) -> dict[str, Any]:
    return {"goal": goal, "laws": [label_spec(name) for name in laws], **channel_document(found)}


def print_several(found: Design, goal: str, laws: dict[Any, Any]) -> None:
    print_channel(found, "right guesses" if goal == "guess" else "exponent")


def print_bayes(found: Design) -> None:
    print_channel(found, "expected loss" if found.sense == "min" else "expected gain")


def compromise_document(shared: Design, found: Any) -> dict[str, Any]:
    costs = {"least": found.least, "most": found.most}
    return {**channel_document(shared), "alone": [one.value for one in found.alone], "sharing": costs}


def print_compromise(shared: Design, found: Any) -> None:
    print_bayes(shared)
    output.write("\n")
    output.facts(
        [
            ("each alone", " + ".join(number(one.value) for one in found.alone)),
            ("sharing costs", f"between {found.least:.3g} and {max(found.most, 0.0):.3g}"),
        ]
    )


def mean_document(found: Any) -> dict[str, Any]:
    return {
        **channel_document(found),
        "positions": found.positions,
        "values": [str(value) for value in found.values],
        "rivals": mean_rivals(found.epsilon),
    }


def print_mean(found: Any) -> None:
    sizes = f", {found.positions} positions and {found.outputs} outputs"
    value = f"{number(found.value)} at most, of one report"
    rivals = mean_rivals(found.epsilon).items()
    _print(
        _facts(found, sizes, "variance", value, level_text(found.ratio)),
        ["in its place", "variance", "times as large"],
        [[name, number(worst), f"{worst / found.value:.3f}"] for name, worst in rivals],
    )


def mean_rivals(epsilon: Fraction) -> dict[str, float]:
    """The largest variance of other mechanisms for a mean on [-1, 1]; that of the hybrid one by its formula."""
    ends, e = Interval(-1, 1), math.exp(epsilon)
    root = math.exp(epsilon / 2)
    rivals = {kind.__name__: kind(ends, epsilon).worst_variance(1) for kind in (OneBitMean, Window)}
    hybrid = (root + 3) / (3 * root * (root - 1)) + (e + 1) ** 2 / (root * (e - 1) ** 2)
    # Below this epsilon the hybrid mechanism is the one-bit mean (Wang et al. 2019).
    return rivals | {"hybrid": rivals["OneBitMean"] if epsilon < Fraction(609352, 10**6) else hybrid}


def information_document(found: Any, answers: int) -> dict[str, Any]:
    return {
        "answers": answers,
        "epsilon": exact.canonical(found.epsilon),
        "protocols": [{**asdict(told), "spread": finite(told.spread)} for told in found.rows],
        "left_out": list(found.left_out),
        "optimum": {"value": found.best.value, "bound": found.best.bound},
    }


def print_information(found: Any, answers: int) -> None:
    body = [
        [told.name, f"{told.information:.5f}", f"{told.capacity:.5f}", f"{told.spread:.4g}",
         f"{_share(told.information, found.best.bound):.1%}"]
        for told in found.rows
    ]  # fmt: skip
    output.table(["protocol", "information", "capacity", "spread", "of the optimum"], body, left=1)
    output.write(
        f"\nno mechanism at epsilon {epsilon_text(found.epsilon)} tells more than {found.best.bound:.5f} nats\n"
    )
    if found.left_out:
        output.write(f"left out, because their reports have too many forms: {', '.join(found.left_out)}\n")


def noise(made: ProfileMechanism) -> float:
    """How often a report is not the value, on average over the profiles."""
    return math.fsum(_false(made)) / made.graph.size


def _false(made: ProfileMechanism) -> list[float]:
    """How often a report differs from the value, for each profile."""
    kept = (made.graph.whole.numerators * made.table.diagonal(axis1=1, axis2=2)).sum(axis=1)
    bottoms = made.graph.whole.denominators * WORD
    return [float(Fraction(int(bottom - top), int(bottom))) for top, bottom in zip(kept, bottoms, strict=True)]


def _largest(made: ProfileMechanism) -> list[float]:
    """The largest probability of one false report for one value, for each profile."""
    return [int(top) / WORD for top in off_diagonal(made.table).max(axis=1)]


def print_profiles(made: ProfileMechanism, baseline: ProfileMechanism, other: ProfileMechanism | None) -> None:
    graph, verdict = made.graph, made.verdict
    first, second = map(shown, verdict.edge)
    facts = [
        ("mechanism", f"{made.name} for {graph.size} profiles of {graph.whole.width} values, {len(graph.edges)} edges"),
        ("epsilon", f"{level_text(verdict.ratio)} over the edges, at most {epsilon_text(made.asked)} as asked"),
        ("worst", f"output {shown(verdict.output)} of {first} and {second}: ratio {ratio_words(verdict.ratio)}"),
        ("largest", f"{float(made.largest):.6g} for a false report; {baseline.name} {float(baseline.largest):.6g}"),
        ("solver", summary(made.trace)),
    ]
    if other is not None:
        chosen = f"{made.name} has {noise(made):.6g} false reports on average, {other.name} {noise(other):.6g}"
        facts.insert(1, ("chosen", chosen))
    if made.in_the_clear:
        facts.append(("in the clear", _listed([shown(label) for label in made.in_the_clear])))
    false, usual = _false(made), _false(baseline)
    if graph.whole.width == 2:
        # One flip probability, if both values of a bit are flipped equally often.
        flips = bool((made.table[:, 0, 1] == made.table[:, 1, 0]).all())
        head = ["profile", f"P({shown(graph.values[1])})", "reported", "flip" if flips else "false", baseline.name]
        columns = [graph.profiles[:, 1].tolist(), made.laws[:, 1].tolist(), false, usual]
    else:
        head = ["profile", "false", "largest", baseline.name]
        columns = [false, _largest(made), usual]
    count = min(graph.size, _MOST_PROFILES)
    body = [[shown(graph.labels[i]), *(f"{column[i]:.4f}" for column in columns)] for i in range(count)]
    remark = f"the first of {graph.size} profiles; --json has all" if count < graph.size else ""
    _print(facts, head, body, remark=remark)


def draw_profiles(made: ProfileMechanism, baseline: ProfileMechanism, other: ProfileMechanism | None) -> Any:
    _, axes = require("matplotlib.pyplot", "plot").subplots(layout="constrained")
    places = range(made.graph.size)
    axes.plot(places, _false(baseline), "--", color="#8a8f98", label=baseline.name)
    axes.plot(places, _false(made), "o", color="#2f6f9f", label=made.name)
    if made.graph.size <= _MOST_PROFILES:
        axes.set_xticks(places, [shown(label) for label in made.graph.labels], rotation=45, ha="right")
    axes.set_xlabel("profile")
    axes.set_ylabel("probability of a false report")
    axes.set_ylim(bottom=0)
    axes.set_title(f"epsilon {epsilon_text(made.asked)} over {len(made.graph.edges)} edges")
    axes.legend()
    return axes


def profiles_document(
    made: ProfileMechanism, baseline: ProfileMechanism, other: ProfileMechanism | None
) -> dict[str, Any]:
    verdict, labels = made.verdict, made.graph.labels
    rows = zip(labels, _false(made), _largest(made), _false(baseline), strict=True)
    return {
        "mechanism": made.name,
        "fingerprint": made.fingerprint,
        "epsilon": level_document(made.asked, verdict.epsilon, verdict.ratio),
        "worst": {"profiles": [label_spec(label) for label in verdict.edge], "output": label_spec(verdict.output)},
        "largest": str(made.largest),
        "trace": [step.spec() for step in made.trace],
        "in_the_clear": [label_spec(label) for label in made.in_the_clear],
        "baseline": {"mechanism": baseline.name, "largest": str(baseline.largest)},
        "noise": noise(made),
        "compared": None if other is None else {"mechanism": other.name, "noise": noise(other)},
        "profiles": [
            {"profile": label_spec(label), "false": false, "largest": largest, "baseline_false": usual}
            for label, false, largest, usual in rows
        ],
    }


def together_document(made: Any, best: float | None) -> dict[str, Any]:
    return {
        "function": made.name,
        "values": [label_spec(value) for value in made.values],
        "epsilons": list(map(exact.canonical, made.epsilons)),
        "priors": list(map(exact.canonical, made.priors)),
        "blind": float(made.blind),
        "outsider": float(made.outsider),
        "parties": list(map(float, made.parties)),
        "curator": {"value": made.curator.value, "bound": made.curator.bound},
    } | ({} if best is None else {"three_messages": best})


def print_together(made: Any, best: float | None) -> None:
    output.heading(str(made).split("\n")[0])
    output.table(["who guesses", "is right"], [[who, f"{value:.5f}"] for who, value in made.rows()])
    if best is not None:
        output.prose(f"The best protocol of three messages on a grid gives an outsider {best:.5f}.")


def print_verdict(found: dict[str, Any]) -> None:
    checks = [(one["name"], f"{'holds' if one['holds'] else 'FAILS'}: {one['detail']}") for one in found["checks"]]
    output.facts([*checks, ("verdict", f"{'verified' if found['verified'] else 'not verified'} ({found['rigor']})")])
