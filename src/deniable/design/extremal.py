"""The extremal mechanism: of all epsilon-LDP mechanisms the one whose reports tell two hypotheses apart best.

Problem    maximize D_f(M0 || M1), the divergence of the laws of reports under P0 and P1
Answer     sort the symbols by P0/P1, cut them into blocks, answer with randomized response on the block; the best cut
           is optimal among all mechanisms, for every f and every epsilon
Value      sum over blocks of mu / (j + E - 1), mu = b f(a/b), a = 1 + (E-1) P0(block), b = 1 + (E-1) P1(block)
Privacy    that of randomized response over j blocks: exact, nothing to repair
Proof      the certificate: multipliers for the dual program, checked over all 2^k columns (see `dual`)
Cost       O(k^2) per step and about three steps: milliseconds for k = 100, seconds for k = 10,000
Source     Kairouz, Oh and Viswanath 2014; "Sort, Partition, Randomize", arXiv 2606.07443
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deniable import exact
from deniable.channels import Channel
from deniable.channels.divergences import DIVERGENCES, FDivergence
from deniable.channels.laws import Floats, Laws, read_hypotheses
from deniable.design.base import Certificate, Check, Design, Verdict, read_number
from deniable.design.blocks import BlockResponse, Partition, best_partition
from deniable.design.dual import multipliers, proven_value, upper_bound
from deniable.design.tangents import Curve, Pair, curve_of
from deniable.errors import SpecError
from deniable.labels import Label, as_labels, label_spec, load_label
from deniable.specs import integer_text, read_integer
from deniable.trace import Progress, Watch

# Of the multipliers' sum, for each symbol; moving all ends by three floats changes the bound by a twentieth of that.
_ROOM = 2e-14


def extremal(
    p0: ArrayLike | Sequence[Any] | Mapping[Any, Any],
    p1: ArrayLike | Sequence[Any] | Mapping[Any, Any],
    epsilon: Any,
    divergence: str | FDivergence = "kl",
    inputs: Iterable[Any] | None = None,
    progress: Progress | None = None,
) -> Design:
    """The mechanism that maximizes the divergence between reports under `p0` and reports under `p1`.

    Hypotheses as {label: probability} name the inputs. `progress` is called with what is being done, in the search and
    when the certificate is worked out.

    >>> design = extremal([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], epsilon=1)
    >>> design.law.block, round(design.value, 9), design.relative_gap < 1e-9
    ((1, 0, 0), 0.03999738, True)
    """
    began = time.perf_counter()
    first, second, listed = read_hypotheses(p0, p1, inputs)
    pair = Pair.read(first, second)
    level = exact.as_epsilon(epsilon)
    names = None if listed is None else as_labels(listed, pair.size, "input")
    curve = curve_of(divergence)
    odds = rise(level)
    watch = Watch(progress)
    partition = best_partition(*pair.prefixes, odds, curve, watch)
    law = block_law(pair, partition, level)
    value = realized_value(curve, pair, law, level)[0]
    certify = partial(_certify, pair, partition, law, level, curve.divergence, odds, value, names, progress)
    spent = time.perf_counter() - began
    laws = Laws.numbered([pair.weights0, pair.weights1], names)
    name, steps = f"extremal ({curve.divergence.name})", tuple(watch.steps)
    return Design(name, level, value, law, certify, names, steps, spent, hypotheses=laws)


def rise(epsilon: Fraction) -> float:
    """e^epsilon - 1 as a float, rounded up: what holds for slightly less privacy holds here."""
    above = exact.exp_ceil(epsilon) - 1
    nearest = float(above)
    return nearest if Fraction(nearest) >= above else math.nextafter(nearest, math.inf)


def block_law(pair: Pair, partition: Partition, epsilon: Fraction) -> BlockResponse:
    """Randomized response on the blocks of a partition of the groups."""
    blocks = np.repeat(np.arange(partition.blocks), np.diff(partition.cuts))
    return BlockResponse.at(blocks[pair.group].tolist(), epsilon)


def realized_value(curve: Curve, pair: Pair, law: BlockResponse, epsilon: Fraction) -> tuple[float, float]:
    """The divergence of the reports of the realized, rounded law: from below and from above."""
    m0, m1 = law.push(pair.weights0), law.push(pair.weights1)
    if curve.built_in:
        return proven_value(curve.divergence.name, m0, m1, epsilon)
    b = np.array([float(m) for m in m1])
    gap = np.array([float(a - m) for a, m in zip(m0, m1, strict=True)])
    value = math.fsum(curve.column(b, gap))
    return value * (1 - 1e-12), value * (1 + 1e-12)


def _certify(
    pair: Pair,
    partition: Partition,
    law: BlockResponse,
    epsilon: Fraction,
    divergence: FDivergence,
    odds: float,
    value: float,
    inputs: tuple[Label, ...] | None,
    progress: Progress | None,
) -> ExtremalCertificate:
    curve, watch = curve_of(divergence), Watch(progress)
    prices = multipliers(pair, partition, odds, curve, watch=watch)
    watch.say("proof: all columns, in long decimals")
    bound = _with_room(upper_bound(curve, pair, prices, epsilon), prices)
    return ExtremalCertificate(pair, epsilon, divergence, law, tuple(prices.tolist()), value, bound, inputs)


def _with_room(bound: float, prices: Floats) -> float:
    """A claim that another processor proves as well: it places the ends of the proof's intervals a few floats away."""
    if bound == 0:
        return bound
    return math.nextafter(bound + _ROOM * (prices.size + 50) * math.fsum(np.abs(prices)), math.inf)


@dataclass(frozen=True)
class ExtremalCertificate(Certificate):
    """Hypotheses, mechanism and multipliers: `value <= divergence <= optimum <= bound`."""

    kind = "extremal"

    pair: Pair
    epsilon: Fraction
    divergence: FDivergence
    law: BlockResponse
    multipliers: tuple[float, ...]
    value: float
    bound: float
    inputs: tuple[Label, ...] | None = None
    """Names of the symbols, where the design had any."""

    @property
    def rigor(self) -> str:
        return "proved" if DIVERGENCES.get(self.divergence.name) is self.divergence else "numeric"

    @property
    def mechanism(self) -> Channel:
        return self.law.channel(self.inputs)

    @property
    def hypotheses(self) -> Laws:
        return Laws.numbered([self.pair.weights0, self.pair.weights1], self.inputs)

    def verify(self) -> Verdict:
        curve = curve_of(self.divergence)
        row = self.law.true + (self.law.outputs - 1) * self.law.false
        # Without a chance of every output some marginal would be zero, and the ratio infinite.
        fits = len(self.law.block) == self.pair.size == len(self.multipliers) and row == 1 and self.law.false > 0
        fits = fits and (self.inputs is None or len(self.inputs) == self.pair.size)
        checks = [
            Check("rows", fits, f"{len(self.law.block)} rows of {self.law.outputs} outputs sum to {row}"),
            Check(
                "ratios",
                self.law.satisfies(self.epsilon),
                f"largest ratio has logarithm {self.law.epsilon:.12g}, asked {exact.shown(self.epsilon)}",
            ),
        ]
        if fits:
            low, high = realized_value(curve, self.pair, self.law, self.epsilon)
            # A smaller claim would be true as well, but it would not be this mechanism's value.
            holds = self.value <= high and self.value >= low - 1e-9 * abs(low)
            checks.append(Check("value", holds, f"{low:.12g} where {self.value:.12g} is claimed"))
            least = upper_bound(curve, self.pair, np.array(self.multipliers), self.epsilon)
            # The claimed bound may be generous, never tighter than the multipliers prove.
            proves = least <= self.bound + (0.0 if self.rigor == "proved" else 1e-12 * abs(least))
            checks.append(Check("bound", proves, f"the multipliers prove {least:.12g}, {self.bound:.12g} is claimed"))
        return Verdict(tuple(checks), self.rigor)

    def content(self) -> dict[str, Any]:
        named = {} if self.inputs is None else {"inputs": [label_spec(label) for label in self.inputs]}
        return named | {
            "divergence": self.divergence.name,
            "rigor": self.rigor,
            "epsilon": exact.canonical(self.epsilon),
            "weights0": [integer_text(w) for w in self.pair.weights0],
            "weights1": [integer_text(w) for w in self.pair.weights1],
            "mechanism": self.law.spec(),
            "multipliers": [repr(m) for m in self.multipliers],
            "value": repr(self.value),
            "bound": repr(self.bound),
        }

    @classmethod
    def read(cls, content: dict[str, Any], divergence: FDivergence | None = None) -> ExtremalCertificate:
        """From JSON; a user's own divergence has to be given again."""
        name = content["divergence"]
        known = divergence or (DIVERGENCES.get(name) if content["rigor"] == "proved" else None)
        if known is None:
            raise SpecError(
                f"the certificate is about the divergence {name!r}, which is not built in: "
                "ExtremalCertificate.read(content, divergence) takes it"
            )
        return cls(
            Pair(*(tuple(read_integer(w) for w in content[key]) for key in ("weights0", "weights1"))),
            exact.as_epsilon(content["epsilon"]),
            known,
            BlockResponse.load(content["mechanism"]),
            tuple(read_number(m) for m in content["multipliers"]),
            read_number(content["value"]),
            read_number(content["bound"]),
            None if content.get("inputs") is None else _labels(content["inputs"]),
        )


def _labels(written: Any) -> tuple[Label, ...]:
    if not isinstance(written, list):
        raise SpecError('"inputs" of a certificate is a list of labels')
    return as_labels([load_label(label) for label in written], len(written), "input")
