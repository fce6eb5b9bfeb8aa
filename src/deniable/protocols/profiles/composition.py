"""Several releases together, as computed statements: what adds up, what does not, and by how much it fails.

Observation 3   a function of the output tells no more than the output
Observation 4   independent samples of one profile: the epsilons add
Observation 5   profiles chosen independently: each choice keeps the largest epsilon
Otherwise       (one sample released twice, or profiles chosen in dependence) there is no bound, and `compose` refuses;
                `same_sample` and `linked_profiles` compute what really happens, which can be anything up to infinity
Exact           laws are integers, so `epsilon` is that of the joint release, not a bound. Of independent samples the
                worst joint output is the worst of each, edge by edge: any number of releases costs their sum
Source          Geumlek and Chaudhuri 2019, section 4 and figure 1
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from deniable import exact
from deniable.channels import Channel
from deniable.errors import ChannelError, MismatchError, ProbabilityError, ShapeError
from deniable.labels import Label
from deniable.protocols.profiles.graph import Integers, ProfileGraph, Verdict, edge_ratios, verify, worst
from deniable.protocols.profiles.mechanism import ProfileMechanism

# The most cells of the joint outputs of one sample: this many integers are still fast.
MOST_CELLS = 1 << 20

_SAMPLES = ("independent", "same", "dependent")
_PROFILES = ("same", "independent", "dependent")


@dataclass(frozen=True, slots=True)
class Composition:
    """Releases seen together.

    Args:
        case: Which observation applies.
        bound: No ratio of the joint release may exceed this; `math.inf` where nothing is promised.
        ratio: The exact largest ratio of the joint release over the graph's edges.
        edge: The pair of profiles with the largest ratio.
    """

    case: str
    bound: Fraction | float
    ratio: Fraction | float
    edge: tuple[Label, Label]

    @property
    def epsilon_bound(self) -> float:
        return _log(self.bound)

    @property
    def epsilon(self) -> float:
        """The exact epsilon of the joint release."""
        return _log(self.ratio)

    @property
    def holds(self) -> bool:
        return self.ratio <= self.bound


def post_process(mechanism: ProfileMechanism, function: Channel) -> Verdict:
    """Observation 3: the epsilon after any function of the output, randomized or not, that does not see the secret.

    Args:
        mechanism: The mechanism.
        function: A channel from the mechanism's outputs.

    Returns:
        The largest ratio after the function.

    Raises:
        ShapeError: The function takes other inputs.
    """
    if function.shape[0] != mechanism.graph.whole.width:
        raise ShapeError(f"the function takes {function.shape[0]} inputs, the mechanism has {mechanism.table.shape[2]}")
    tables = [Channel.from_integers(rows, int(rows[0].sum())) for rows in mechanism.table.dot(function.numerators)]
    return verify(mechanism.graph, tables, mechanism.asked)


def compose(*releases: ProfileMechanism, samples: str = "independent", profiles: str = "same") -> Composition:
    """The epsilon of all releases together, where there is one; otherwise a refusal that says why.

    Args:
        *releases: The mechanisms.
        samples: "independent", the "same" observation each time, or "dependent".
        profiles: The "same" for all releases, or chosen in "independent" or "dependent" steps.

    Returns:
        The joint guarantee.

    Raises:
        ChannelError: There is no guarantee for this case.
    """
    if samples not in _SAMPLES or profiles not in _PROFILES:
        raise ChannelError(f"samples are one of {', '.join(_SAMPLES)}; profiles one of {', '.join(_PROFILES)}")
    if profiles == "dependent":
        raise ChannelError(
            "profiles chosen in dependence do not compose: an observer who knows the dependence learns about one "
            "choice from the other's release (linked_profiles computes how much)"
        )
    if samples != "independent":
        raise ChannelError(
            "releases of one sample, or of dependent ones, do not compose: the noise averages out and the data stay "
            "the same (same_sample computes how much that tells); release once, and reuse the output"
        )
    return independent_samples(*releases) if profiles == "same" else independent_profiles(*releases)


def independent_samples(*releases: ProfileMechanism) -> Composition:
    """Observation 4: independent samples of one profile; the epsilons add, the ratios multiply.

    Args:
        *releases: Mechanisms on the same graph.

    Returns:
        The joint guarantee.
    """
    graph = _one_graph(releases)
    bound = reduce(_times, (release.ratio for release in releases))
    # A joint output is an output of each release, so the largest joint ratio of two profiles is the product of the
    # largest of each, in one direction.
    ratio: Fraction | float = Fraction(0)
    i = j = 0
    parts = [edge_ratios(release._laws, release._bottoms, graph.whole.edges) for release in releases]
    for place, ends in enumerate(graph.whole.edges.tolist()):
        for direction in (0, 1):
            joint = reduce(_times, (part[place][direction] for part in parts))
            if joint > ratio:
                ratio, (i, j) = joint, ends if direction == 0 else ends[::-1]
    return Composition("independent samples", bound, ratio, (graph.labels[i], graph.labels[j]))


def independent_profiles(*releases: ProfileMechanism) -> Composition:
    """Observation 5: profiles chosen independently; the other releases say nothing about this choice.

    Args:
        *releases: The mechanisms.

    Returns:
        The joint guarantee.

    Raises:
        ChannelError: There are no releases.
    """
    if not releases:
        raise ChannelError("there is nothing to compose: give at least one release")
    worse = max(releases, key=lambda release: release.ratio)
    return Composition("independent profiles", worse.ratio, worse.ratio, worse.verdict.edge)


def same_sample(*releases: ProfileMechanism) -> Composition:
    """One observation released several times: the exact epsilon, which no bound in the single ones covers.

    Args:
        *releases: Mechanisms on the same graph.

    Returns:
        The exact joint guarantee.

    Raises:
        ChannelError: There are too many joint outputs.
    """
    whole = _one_graph(releases).whole
    forms = math.prod(release.table.shape[2] for release in releases)
    if forms * whole.width * len(whole.numerators) > MOST_CELLS:
        raise ChannelError(
            f"{len(releases)} releases of one sample have {forms:,} joint outputs, for {len(whole.numerators):,} "
            f"profiles of {whole.width} symbols more than {MOST_CELLS:,} cells: compose fewer"
        )
    laws = np.array([_joint(whole.numerators[i], [r.table[i] for r in releases]) for i in range(len(whole.numerators))])
    bottoms = whole.denominators * math.prod(int(release.table[0, 0].sum()) for release in releases)
    case = "one sample twice" if len(releases) == 2 else f"one sample {len(releases)} times"
    return Composition(case, math.inf, *_worst(releases[0], laws.astype(object), bottoms))


def _joint(profile: Integers, tables: list[Integers]) -> Integers:
    """The law of the outputs of several channels that see the same symbol, all outputs in one row."""
    paths = profile[:, None]
    for table in tables:
        paths = (paths[:, :, None] * table[:, None, :]).reshape(len(profile), -1)
    law: Integers = paths.sum(axis=0)
    return law


def linked_profiles(first: ProfileMechanism, second: ProfileMechanism, following: Any) -> Composition:
    """Profiles chosen in dependence: `following[i][j]` is the chance that profile j (of `second`) comes after i.

    Args:
        first: The first release.
        second: The second release.
        following: `following[i][j]` is the probability that profile j of `second` comes after profile i.

    Returns:
        The exact joint guarantee.

    Raises:
        ShapeError: The matrix does not fit the graphs.
        ProbabilityError: A row is not a distribution.
    """
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


def _one_graph(releases: tuple[ProfileMechanism, ...]) -> ProfileGraph:
    if not releases:
        raise ChannelError("there is nothing to compose: give at least one release")
    if any(release.graph != releases[0].graph for release in releases):
        raise MismatchError("releases of one person's profile compose over one graph: these mechanisms have two")
    return releases[0].graph


def _times(first: Fraction | float, second: Fraction | float) -> Fraction | float:
    return math.inf if isinstance(first, float) or isinstance(second, float) else first * second


def _log(ratio: Fraction | float) -> float:
    return math.inf if isinstance(ratio, float) else exact.log(ratio)
