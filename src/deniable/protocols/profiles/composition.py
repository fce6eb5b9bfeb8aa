"""Several releases together, as computed statements: what adds up, what does not, and by how much it fails.

Observation 3   a function of the output tells no more than the output
Observation 4   two independent samples of one profile: the levels add
Observation 5   two profiles chosen independently: each choice keeps the larger level
Otherwise       (one sample released twice, or profiles chosen in dependence) there is no bound, and `compose` refuses;
                `same_sample` and `linked_profiles` compute what really happens, which can be anything up to infinity
Exact           joint laws are integers, so each `realized` level is the level of the joint release, not a bound
Source          Geumlek and Chaudhuri 2019, section 4 and figure 1
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from deniable import exact
from deniable.channels import Channel
from deniable.errors import ChannelError, MismatchError, ProbabilityError, ShapeError
from deniable.labels import Label
from deniable.protocols.profiles.graph import Integers
from deniable.protocols.profiles.mechanism import ProfileMechanism
from deniable.protocols.profiles.verifier import Verdict, verify, worst

_SAMPLES = ("independent", "same", "dependent")
_PROFILES = ("same", "independent", "dependent")


@dataclass(frozen=True, slots=True)
class Composition:
    """Two releases seen together."""

    case: str
    bound: Fraction | float
    """No ratio of the joint release may exceed this; `math.inf` where nothing is promised."""
    ratio: Fraction | float
    """The exact largest ratio of the joint release over the graph's edges."""
    edge: tuple[Label, Label]

    @property
    def epsilon_bound(self) -> float:
        return _log(self.bound)

    @property
    def epsilon(self) -> float:
        """The exact level of the joint release."""
        return _log(self.ratio)

    @property
    def holds(self) -> bool:
        return self.ratio <= self.bound


def post_process(mechanism: ProfileMechanism, function: Channel) -> Verdict:
    """Observation 3: the level after any function of the output, randomized or not, that does not see the secret."""
    if function.shape[0] != mechanism.graph.whole.width:
        raise ShapeError(f"the function takes {function.shape[0]} inputs, the mechanism has {mechanism.table.shape[2]}")
    tables = [Channel.from_integers(rows, int(rows[0].sum())) for rows in mechanism.table.dot(function.numerators)]
    return verify(mechanism.graph, tables, mechanism.asked)


def compose(
    first: ProfileMechanism, second: ProfileMechanism, samples: str = "independent", profiles: str = "same"
) -> Composition:
    """The level of both releases together, where there is one; otherwise a refusal that says why.

    `samples` are "independent", the "same" observation twice, or otherwise "dependent"; `profiles` are the "same" for
    both releases, or chosen in two "independent" or "dependent" steps.
    """
    if samples not in _SAMPLES or profiles not in _PROFILES:
        raise ChannelError(f"samples are one of {', '.join(_SAMPLES)}; profiles one of {', '.join(_PROFILES)}")
    if profiles == "dependent":
        raise ChannelError(
            "profiles chosen in dependence do not compose: whoever knows the dependence learns about one choice from "
            "the other's release (linked_profiles computes how much)"
        )
    if samples != "independent":
        raise ChannelError(
            "releases of one sample, or of dependent ones, do not compose: the noise averages out and the data stay "
            "the same (same_sample computes how much that tells); release once, and reuse the output"
        )
    return independent_samples(first, second) if profiles == "same" else independent_profiles(first, second)


def independent_samples(first: ProfileMechanism, second: ProfileMechanism) -> Composition:
    """Observation 4: two independent samples of one profile; the levels add, the ratios multiply."""
    _same_graph(first, second)
    laws = _outer(first._laws, second._laws)
    found = _worst(first, laws, first._bottoms * second._bottoms)
    return Composition("independent samples", _times(first.ratio, second.ratio), *found)


def independent_profiles(first: ProfileMechanism, second: ProfileMechanism) -> Composition:
    """Observation 5: two profiles chosen independently; the other release says nothing about this choice."""
    ratio = max(first.ratio, second.ratio)
    worse = first if first.ratio == ratio else second
    return Composition("independent profiles", ratio, ratio, worse.verdict.edge)


def same_sample(first: ProfileMechanism, second: ProfileMechanism) -> Composition:
    """One observation released twice: the exact level, which no bound in the two levels covers."""
    _same_graph(first, second)
    whole = first.graph.whole
    laws = np.array(
        [
            (whole.numerators[i][:, None, None] * a[:, :, None] * b[:, None, :]).sum(axis=0).ravel()
            for i, (a, b) in enumerate(zip(first.table, second.table, strict=True))
        ],
        dtype=object,
    )
    bottoms = whole.denominators * (int(first.table[0, 0].sum()) * int(second.table[0, 0].sum()))
    return Composition("one sample twice", math.inf, *_worst(first, laws, bottoms))


def linked_profiles(first: ProfileMechanism, second: ProfileMechanism, following: Any) -> Composition:
    """Profiles chosen in dependence: following[i][j] is the chance that profile j (of `second`) comes after i."""
    chances = [[exact.fraction(entry, "a chance") for entry in row] for row in following]
    sizes = first.graph.size, second.graph.size
    if len(chances) != sizes[0] or any(len(row) != sizes[1] for row in chances):
        raise ShapeError(f"the chances of what follows are a {sizes[0]} x {sizes[1]} matrix")
    if any(min(row) < 0 or sum(row) != 1 for row in chances):
        raise ProbabilityError("each row of the chances of what follows is not negative and sums to 1")
    width = second.graph.whole.width
    seconds = [
        [Fraction(int(entry), int(bottom)) for entry in law]
        for law, bottom in zip(second._laws, second._bottoms, strict=True)
    ]
    after = [
        [sum((chance * law[y] for chance, law in zip(row, seconds, strict=True)), Fraction(0)) for y in range(width)]
        for row in chances
    ]
    bottoms = [math.lcm(*(entry.denominator for entry in row)) for row in after]
    tops = np.array(
        [[int(entry * bottom) for entry in row] for row, bottom in zip(after, bottoms, strict=True)], object
    )
    found = _worst(first, _outer(first._laws, tops), first._bottoms * np.array(bottoms, dtype=object))
    return Composition("linked profiles", math.inf, *found)


def _outer(first: Integers, second: Integers) -> Integers:
    joint: Integers = (first[:, :, None] * second[:, None, :]).reshape(len(first), -1)
    return joint


def _worst(mechanism: ProfileMechanism, laws: Integers, bottoms: Integers) -> tuple[Any, tuple[Label, Label]]:
    ratio, (i, j), _ = worst(laws, bottoms, mechanism.graph.whole.edges)
    return ratio, (mechanism.graph.labels[i], mechanism.graph.labels[j])


def _same_graph(first: ProfileMechanism, second: ProfileMechanism) -> None:
    if first.graph != second.graph:
        raise MismatchError("releases of one person's profile compose over one graph: these mechanisms have two")


def _times(first: Fraction | float, second: Fraction | float) -> Fraction | float:
    return math.inf if isinstance(first, float) or isinstance(second, float) else first * second


def _log(ratio: Fraction | float) -> float:
    return math.inf if isinstance(ratio, float) else exact.log(ratio)
