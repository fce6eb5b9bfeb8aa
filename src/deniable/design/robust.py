"""The robust extremal mechanism: two hypotheses that are known only up to a distance.

Problem    maximize, over all epsilon-LDP mechanisms, the smallest D_f(M0 || M1) over all laws within total variation r0
           of P0 and within r1 of P1
Answer     the extremal mechanism of one pair in these two balls, the least favourable one. Its likelihood ratio is that
           of P0 and P1, cut off below and above; it is the same pair for every f and every epsilon
Lower cut  c solves  sum over x of (c P1(x) - P0(x))+ = r0 + c r1. Where P0 < c P1, P0 gains r0 and P1 loses r1, both in
           proportion to c P1 - P0. The upper cut is the same with P0 and P1 exchanged
Bound      the pair is in the balls, so no mechanism does better than the best one for this pair (its certificate)
Value      against the mechanism no pair in the balls is worse: D_f falls fastest when P0 loses mass where M0 / M1 is
           largest and gains it where M0 / M1 is smallest, P1 the other way round, and that is how the pair was moved
Meeting    balls that meet (TV(P0, P1) <= r0 + r1) hold a common law, and no mechanism can distinguish the hypotheses
Source     Huber 1965; Huber and Strassen 1973
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from deniable import exact
from deniable.channels import Channel
from deniable.channels.divergences import FDivergence
from deniable.channels.laws import read_hypotheses
from deniable.design.base import Certificate, Check, Design, Verdict, read_number
from deniable.design.extremal import ExtremalCertificate, extremal
from deniable.design.partitions import (
    BlockResponse,
)
from deniable.design.tangents import Pair
from deniable.errors import InternalError, NumberError, SpecError
from deniable.specs import integer_text, read_integer
from deniable.trace import Progress

Masses = list[Fraction]


def robust(
    p0: ArrayLike | Sequence[Any] | Mapping[Any, Any],
    p1: ArrayLike | Sequence[Any] | Mapping[Any, Any],
    epsilon: Any,
    radius: Any,
    divergence: str | FDivergence = "kl",
    inputs: Iterable[Any] | None = None,
    progress: Progress | None = None,
) -> Design:
    """The mechanism with the largest divergence in the worst case, for laws within `radius` of `p0` and of `p1`.

    Otherwise as `extremal`.

    Args:
        p0: Law of the answers under the first hypothesis.
        p1: Law of the answers under the second hypothesis.
        epsilon: The guarantee.
        radius: Total variation distance, or two of them: (around p0, around p1).
        divergence: Name of the divergence, or an `FDivergence`.
        inputs: Labels of the answers; 0, 1, 2, ... if neither hypothesis names them.
        progress: Called with a description of the current work.

    Returns:
        The mechanism; its value is the smallest divergence over all laws in the two balls.

    >>> design = robust([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], epsilon=1, radius="0.05")
    >>> round(design.value, 9), design.relative_gap < 1e-9
    (0.017627208, True)
    """
    first, second, listed = read_hypotheses(p0, p1, inputs)
    centre, radii = Pair.read(first, second), read_radii(radius)
    laws = _least_favourable(centre, radii)
    worst = extremal(*laws, epsilon, divergence, listed, progress)
    law = _settled(worst.law, centre, laws)
    return replace(
        worst, name=f"robust {worst.name}", law=law, certify=partial(_certify_robust, centre, radii, worst, law)
    )


def least_favourable(
    p0: ArrayLike | Sequence[Any] | Mapping[Any, Any], p1: ArrayLike | Sequence[Any] | Mapping[Any, Any], radius: Any
) -> tuple[Masses, Masses]:
    """The two laws within `radius` of `p0` and of `p1` that are hardest to distinguish, as exact fractions.

    Args:
        p0: The first law.
        p1: The second law.
        radius: Total variation distance, or two of them: (around p0, around p1).

    Returns:
        The two laws.

    >>> [[str(share) for share in law] for law in least_favourable([0.8, 0.2], [0.2, 0.8], "0.1")]
    [['7/10', '3/10'], ['3/10', '7/10']]
    """
    return _least_favourable(Pair.read(*read_hypotheses(p0, p1)[:2]), read_radii(radius))


def read_radii(radius: Any) -> tuple[Fraction, Fraction]:
    """One radius for both hypotheses, or two."""
    given = radius if isinstance(radius, list | tuple) else (radius, radius)
    if len(given) != 2:
        raise NumberError(f"give one radius, or two (around the first law, around the second), not {len(given)}")
    found = [exact.fraction(value, "a radius") for value in given]
    if not all(0 <= value <= 1 for value in found):
        raise NumberError("a radius is a total variation distance: a number from 0 to 1")
    return found[0], found[1]


def _laws(pair: Pair) -> tuple[Masses, Masses]:
    n0, n1 = pair.totals
    return [Fraction(w, n0) for w in pair.weights0], [Fraction(w, n1) for w in pair.weights1]


def _distance(one: Masses, other: Masses) -> Fraction:
    return sum((abs(a - b) for a, b in zip(one, other, strict=True)), Fraction(0)) / 2


def _least_favourable(pair: Pair, radii: tuple[Fraction, Fraction]) -> tuple[Masses, Masses]:
    first, second = _laws(pair)
    (r0, r1), distance = radii, _distance(first, second)
    if distance <= r0 + r1:
        share = r0 / (r0 + r1) if r0 + r1 else Fraction(0)
        meeting = [a + share * (b - a) for a, b in zip(first, second, strict=True)]
        return meeting, meeting
    more0, less1 = _cut(first, second, r0, r1)
    more1, less0 = _cut(second, first, r1, r0)
    return (
        [p + up - down for p, up, down in zip(first, more0, less0, strict=True)],
        [p + up - down for p, up, down in zip(second, more1, less1, strict=True)],
    )


def _cut(first: Masses, second: Masses, added: Fraction, removed: Fraction) -> tuple[Masses, Masses]:
    """The gain of each symbol of a small first/second ratio in the first law, and its loss in the second."""
    size = len(first)
    nothing = [Fraction(0)] * size
    if not added and not removed:
        return nothing, nothing
    if not added:
        # Symbols that the first law excludes may lose mass without changing their ratio.
        free = sum((b for a, b in zip(first, second, strict=True) if not a), Fraction(0))
        if free >= removed:
            return nothing, [Fraction(0) if a else b * removed / free for a, b in zip(first, second, strict=True)]
    order = sorted((x for x in range(size) if second[x]), key=lambda x: first[x] / second[x])
    limit = top = bottom = Fraction(0)
    low: list[int] = []
    for x, following in zip(order, [*order[1:], None], strict=True):
        low.append(x)
        top, bottom = top + first[x], bottom + second[x]
        if bottom <= removed:
            continue
        limit = (top + added) / (bottom - removed)
        if following is None or limit * second[following] <= first[following]:
            break
    gaps, whole = nothing.copy(), added + limit * removed
    for x in low:
        gaps[x] = limit * second[x] - first[x]
    return [gap * added / whole for gap in gaps], [gap * removed / whole for gap in gaps]


def _settled(law: BlockResponse | Channel, centre: Pair, laws: tuple[Masses, Masses]) -> BlockResponse:
    """Move symbols that the least favourable pair has lost to the block on their side: other pairs still have them."""
    if not isinstance(law, BlockResponse):
        raise InternalError("an extremal mechanism is a response over blocks")
    before0, before1 = _laws(centre)
    places = [
        place if after0 or after1 or a == b else (law.outputs - 1 if a > b else 0)
        for place, a, b, after0, after1 in zip(law.block, before0, before1, *laws, strict=True)
    ]
    return replace(law, block=tuple(places))


def _certify_robust(
    centre: Pair, radii: tuple[Fraction, Fraction], worst: Design, law: BlockResponse
) -> RobustCertificate:
    found = worst.certificate
    if not isinstance(found, ExtremalCertificate):
        raise InternalError("a robust mechanism is an extremal one")
    return RobustCertificate(centre, radii, replace(found, law=law), found.value, found.bound)


@dataclass(frozen=True)
class RobustCertificate(Certificate):
    """Two laws, two radii, and the certificate of the least favourable pair: `value` holds for every pair in the balls,
    and no mechanism has more than `bound` for all of them.

    Args:
        centre: The two laws in the centres of the balls.
        radii: Radius of each ball, in total variation.
        worst: Certificate of the least favourable pair.
        value: Smallest divergence over all pairs in the balls.
        bound: Upper bound for every mechanism.
    """

    kind = "robust"

    centre: Pair
    radii: tuple[Fraction, Fraction]
    worst: ExtremalCertificate
    value: float
    bound: float

    @property
    def rigor(self) -> str:
        return self.worst.rigor

    @property
    def mechanism(self) -> Channel:
        return self.worst.mechanism

    def verify(self) -> Verdict:
        inner = self.worst.verify()
        checks = list(inner.checks)
        same = self.value <= self.worst.value and self.bound >= self.worst.bound
        checks.append(Check("claim", same, f"value {self.value:.12g} and bound {self.bound:.12g} of the pair"))
        fits = self.centre.size == self.worst.pair.size == len(self.worst.law.block)
        if not fits:
            return Verdict((*checks, Check("balls", False, "the pair has other symbols than the centres")), self.rigor)
        apart = [_distance(p, q) for p, q in zip(_laws(self.centre), _laws(self.worst.pair), strict=True)]
        inside = all(distance <= radius for distance, radius in zip(apart, self.radii, strict=True))
        shown = " and ".join(f"{float(d):.6g} of {float(r):.6g}" for d, r in zip(apart, self.radii, strict=True))
        checks.append(Check("balls", inside, f"the pair lies {shown} away from the centres"))
        if inner:
            checks.append(self._check_worst())
        return Verdict(tuple(checks), self.rigor)

    def _check_worst(self) -> Check:
        """Mass may move only between the outputs of the largest and the smallest ratio, as much as the radii allow."""
        law, pair = self.worst.law, self.worst.pair
        if law.outputs == 1:
            return Check("worst pair", True, "a constant answer serves all pairs alike")
        ratios = [a / b for a, b in zip(law.push(pair.weights0), law.push(pair.weights1), strict=True)]
        ends = (min(ratios), max(ratios))
        moved = []
        for which, (before, after) in enumerate(zip(_laws(self.centre), _laws(pair), strict=True)):
            change = [Fraction(0)] * law.outputs
            for x, place in enumerate(law.block):
                change[place] += after[x] - before[x]
            into, out_of = ends if which == 0 else ends[::-1]
            ordered = all(
                (step <= 0 or ratio == into) and (step >= 0 or ratio == out_of)
                for step, ratio in zip(change, ratios, strict=True)
            )
            moved.append(ordered and sum(step for step in change if step > 0) == self.radii[which])
        return Check("worst pair", all(moved), "no pair in the balls has reports that are closer together")

    def content(self) -> dict[str, Any]:
        return {
            "weights0": [integer_text(w) for w in self.centre.weights0],
            "weights1": [integer_text(w) for w in self.centre.weights1],
            "radii": [exact.canonical(radius) for radius in self.radii],
            "worst": self.worst.spec(),
            "value": repr(self.value),
            "bound": repr(self.bound),
        }

    @classmethod
    def read(cls, content: dict[str, Any]) -> RobustCertificate:
        worst = Certificate.load(content["worst"])
        if not isinstance(worst, ExtremalCertificate):
            raise SpecError('"worst" of a robust certificate is the certificate of an extremal mechanism')
        return cls(
            Pair(*(tuple(read_integer(w) for w in content[key]) for key in ("weights0", "weights1"))),
            read_radii([exact.fraction(radius, "a radius") for radius in content["radii"]]),
            worst,
            read_number(content["value"]),
            read_number(content["bound"]),
        )
