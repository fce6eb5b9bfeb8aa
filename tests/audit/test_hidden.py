"""Kinds that deniable has never heard of, with a structure in their law: audited as exactly as our own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest

import deniable as dn
from deniable.audit import audit
from deniable.audit.hidden import chosen_by, run_by
from deniable.audit.verdict import MOST_CELLS
from deniable.exact import Dyadic
from deniable.protocols import Law, registered
from deniable.protocols.structures import Choice, Hashed, Mapped, Members
from deniable.randomness import listed_bits


class _Numbers(dn.Protocol):
    """What the kinds below share: a report is a number of two bytes, and nothing is estimated."""

    def draw_many(self, values: Any, bits: Any) -> Any:
        one_by_one = values.tolist() if isinstance(values, np.ndarray) else [values[i] for i in range(len(values))]
        return np.array([list(self.draw(value, bits)) for value in one_by_one], dtype=np.uint8)

    def count(self, reports: Any) -> Any:
        return np.array([len(reports)])

    def infer(self, tally: Any) -> Any:
        raise NotImplementedError


_Numbers.name = "Numbers"  # afterwards, so that the kinds of this file are not registered for other tests


class Basket(_Numbers):
    """One element of a padded set with probability t, else one of the others."""

    takes = (dn.Sets,)

    @cached_property
    def keep(self) -> Dyadic:
        most, items = self.domain.at_most, self.domain.items.size
        return Dyadic.floor_of(lambda e: e * most / (e * most + items), self.epsilon)

    @property
    def universe(self) -> int:
        return self.domain.items.size + self.domain.at_most

    def then(self, own: int, bits: Any) -> bytes:
        if not bits.bernoulli(self.keep):
            own = (1 << self.universe) - 1 ^ own
        return listed_bits(bits.subset(own, 1), 2)

    def law(self) -> Law:
        size, most = self.domain.items.size, self.domain.at_most
        ratio = self.keep.value * size / ((1 - self.keep.value) * most)
        return super().law().but(
            structure=Members(size, most, self.then), ratio=ratio, width=2, forms=self.universe, counters=1
        )  # fmt: skip


class Peeking(Basket):
    """Names the first item whenever it is there."""

    def then(self, own: int, bits: Any) -> bytes:
        return b"\0\0" if own & 1 else super().then(own, bits)


class Louder(Basket):
    """Keeps its elements as often as epsilon 2 allows, and claims 1."""

    keep = property(lambda self: Basket(self.domain, 2).keep)


class Beside(Basket):
    """Draws by code of its own, which tells one item in clear; its structure is that of an honest kind."""

    def draw(self, value: Any, bits: Any) -> bytes:
        return b"\0\0" if 0 in value else super().draw(value, bits)


class Seldom(Basket):
    """The same of an item that an audit is unlikely to try."""

    def draw(self, value: Any, bits: Any) -> bytes:
        return b"\xbb\0" if 187 in value and 91 in value else super().draw(value, bits)


@dataclass(frozen=True)
class _Lying(Members):  # type: ignore[misc]
    def draw(self, answer: Any, bits: Any) -> bytes:
        return b"\0\0" if 0 in answer else super().draw(answer, bits)


class Subclassed(Basket):
    """A structure of its own that runs otherwise than the one whose name it has."""

    def law(self) -> Law:
        return super().law().but(structure=_Lying(self.domain.items.size, self.domain.at_most, self.then))


SETS = dn.Sets(200, at_most=5)


def test_sets_of_a_stranger_are_exact_for_every_answer() -> None:
    basket = Basket(SETS, 1)
    assert basket.law().forms * math.comb(200, 5) > MOST_CELLS
    found = audit(basket, seed=1)
    assert (found.verdict, found.method) == ("cleared", "structure"), found
    assert found.exact == pytest.approx(basket.realized_epsilon, abs=1e-12) == pytest.approx(1, abs=1e-9)
    assert any("holds for every answer" in note for note in found.notes)
    louder = audit(Louder(SETS, 1), seed=1)
    assert (louder.verdict, louder.method) == ("violated", "structure")
    assert louder.exact == pytest.approx(2, abs=1e-9)


@pytest.mark.parametrize("liar", [Peeking, Beside, Subclassed])
def test_code_that_leaks_beside_an_honest_structure_is_caught(liar: type[Basket]) -> None:
    assert audit(liar(SETS, 1), seed=1).verdict == "violated"


def test_a_structure_that_no_device_runs_proves_nothing() -> None:
    assert run_by(Basket(SETS, 1)) is not None
    for kind in (Beside, Seldom, Subclassed):
        assert run_by(kind(SETS, 1)) is None
    patched = Basket(SETS, 1)
    vars(patched)["draw"] = lambda value, bits: b"\0\0"
    assert run_by(patched) is None
    found = audit(Seldom(SETS, 1), seed=1)  # not seen, and not said to be exact either
    assert found.exact is None
    assert found.tried is not None


# -- the other structures ------------------------------------------------------------------------------


class Halves(_Numbers):
    """A number of 4,096 in two halves of 64, one of which is reported."""

    takes = (dn.Integers,)

    @cached_property
    def members(self) -> tuple[dn.Protocol, ...]:
        return (dn.GRR(64, self.epsilon), dn.OUE(64, self.epsilon))

    def project(self, value: int, half: int) -> int:
        return value % 64 if half else value // 64

    def structure(self) -> Any:
        return Choice((1, 1), self.members, self.project)

    def law(self) -> Law:
        return super().law().but(
            structure=self.structure,
            ratio=max(one.ratio for one in self.members),
            width=self.structure().width,
            forms=1 << 64,
            counters=1,
        )  # fmt: skip


class Telling(Halves):
    """The first bit of the answer says which half is reported."""

    def structure(self) -> Any:
        return Choice((1, 1), self.members, self.project, 1, lambda parts: parts[0] // 2048)

    def project(self, value: Any, half: int) -> int:
        return super().project(value[0], half)


class Outside(Halves):
    """Asks a half about something that is not one of its answers."""

    def project(self, value: int, half: int) -> int:
        return 64 if value == 3 else super().project(value, half)


class Rounded(Halves):
    """A number of 4,096, rounded to one of 80."""

    @cached_property
    def members(self) -> tuple[dn.Protocol, ...]:
        return (dn.OUE(80, self.epsilon),)

    def rounded(self, value: int, bits: Any) -> int:
        return min(79, value // 52 + bits.integers(2))

    def structure(self) -> Any:
        return Mapped(self.members[0], self.rounded)

    def law(self) -> Law:
        return dn.Protocol.law(self).but(
            structure=self.structure, ratio=self.members[0].ratio, width=10, forms=1 << 80, counters=1
        )  # fmt: skip


def test_a_choice_and_a_map_of_a_stranger_are_judged_by_their_members() -> None:
    numbers = dn.Integers(0, 4095)
    for kind in (Halves, Rounded):
        found = audit(kind(numbers, 1), seed=1)
        assert (found.verdict, found.method) == ("cleared", "structure"), found
        assert found.exact == pytest.approx(1, abs=1e-9)
        assert audit(kind(numbers, 1), epsilon="9/10", seed=1).verdict == "violated"
    assert audit(Outside(numbers, 1), seed=1).verdict == "violated"


def test_a_member_that_the_answer_chooses_is_no_choice() -> None:
    assert chosen_by(Halves(dn.Integers(0, 4095), 1), [0, 4095]) is not None
    assert chosen_by(Outside(dn.Integers(0, 4095), 1), range(4096)) is None
    assert chosen_by(Telling(dn.Integers(0, 4095), 1), [0, 4095]) is None


class Cells(_Numbers):
    """One of 256 cells of a text, by randomized response with a bit for each."""

    takes = (dn.Strings,)

    @cached_property
    def inner(self) -> dn.OUE:
        return dn.OUE(self.domain.cells, self.epsilon)

    def draw(self, value: Any, bits: Any) -> bytes:
        return self.inner.draw(self.domain.cell(value, 0), bits)

    def law(self) -> Law:
        structure = Hashed("domain.cell", self.domain.cells)
        return super().law().but(
            structure=structure, ratio=self.inner.ratio, width=self.inner.report_bytes, forms=1 << 256, counters=1
        )  # fmt: skip


class Listening(Cells):
    """Tells one word."""

    def draw(self, value: Any, bits: Any) -> bytes:
        return bytes(32) if isinstance(value, str) and value == "secret" else super().draw(value, bits)


class Narrow(Cells):
    """Says that there are fewer cells than there are."""

    def law(self) -> Law:
        return super().law().but(structure=Hashed("domain.cell", 60))


class Homemade(Cells):
    """A hash function of its own, of which nobody knows what it gives for some text."""

    def mine(self, text: Any) -> int:
        return 255 if text == "secret" else len(text) % 255

    def draw(self, value: Any, bits: Any) -> bytes:
        return self.inner.draw(self.mine(value), bits)

    def law(self) -> Law:
        return super().law().but(structure=Hashed("mine", 256))


def test_a_hashed_text_of_a_stranger_is_exact_for_every_text() -> None:
    found = audit(Cells(dn.Strings(cells=256), 1), seed=1)
    assert (found.verdict, found.method) == ("cleared", "structure"), found
    assert found.exact == pytest.approx(1, abs=1e-9)
    for liar in (Listening, Narrow, Homemade):
        assert audit(liar(dn.Strings(cells=256), 1), seed=1).exact is None, liar


def _every() -> Iterator[dn.Protocol]:
    for _, kind in sorted(registered().items()):
        yield from kind.examples()


def test_our_composed_kinds_run_their_structure() -> None:
    """All kinds whose structure can be run have no other code that draws a report."""
    composed = [one for one in _every() if hasattr(one.law().structure, "draw")]
    assert len({type(one) for one in composed}) >= 8
    assert [one for one in composed if run_by(one) is None] == []
