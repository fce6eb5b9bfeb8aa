"""Known ways to get a protocol wrong, most of them found in published packages: each is caught by a check."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pytest

from deniable.channels import Channel, RandomizedResponse
from deniable.conformance import ConformanceError, protocols as checks
from deniable.domains import Interval
from deniable.privacy import poisoning
from deniable.protocols import (
    GRR,
    LGRR,
    OUE,
    DBitFlip,
    Estimate,
    Evolving,
    HadamardResponse,
    Protocol,
    SubsetSelection,
    Table,
    Tally,
    Window,
    tally as tallies,
)
from deniable.protocols.kernel import Kernel
from deniable.protocols.law import Law
from deniable.protocols.tally import PlainAdder
from deniable.protocols.traits import Traits
from deniable.protocols.worth import Worth
from deniable.randomness import SYSTEM, Bits, Exhaustive, Secure
from deniable.results import Weights


def caught(check: Any, protocol: Protocol, reason: str) -> None:
    with pytest.raises(ConformanceError, match=reason):
        check(protocol)


@dataclass(frozen=True)
class TrueValueFirst(SubsetSelection):
    """Puts the true answer at the head of the list instead of sorting."""

    def draw(self, value: int, bits: Bits) -> bytes:
        members = list(super().draw(value, bits))
        return bytes([value] + [m for m in members if m != value]) if value in members else bytes(members)


def test_an_order_that_gives_the_answer_away() -> None:
    case = TrueValueFirst(20, 1, subset_size=2)
    caught(checks.check_level, case, "stated ratio")


@dataclass(frozen=True)
class LastBitPlain(OUE):
    """Never randomizes its last bit."""

    def draw(self, value: int, bits: Bits) -> bytes:
        row = super().draw(value, bits)[0] & 0b011
        return bytes([row | (0b100 if value == 2 else 0)])


def test_a_bit_that_is_never_randomized() -> None:
    case = LastBitPlain(3, 1)
    caught(checks.check_level, case, "stated ratio")
    caught(checks.check_positions, case, "gives answer")


@dataclass(frozen=True)
class TrueBitKept(OUE):
    """Forgets to reset the true bit: its chance is q + (1 - q) / 2."""

    def draw(self, value: int, bits: Bits) -> bytes:
        row = bits.packed(self.other_bit, self.domain.size)
        if bits.bernoulli(self.true_bit):
            row[0] |= np.uint8(1 << value)
        return row.tobytes()


def test_a_true_bit_that_is_not_reset() -> None:
    case = TrueBitKept(3, 1)
    caught(checks.check_level, case, "stated ratio")
    caught(checks.check_law, case, "another law")


def test_a_level_above_the_one_asked_for() -> None:
    @dataclass(frozen=True)
    class Greedy(GRR):
        @property
        def response(self) -> Any:  # type: ignore[override]
            return replace(super().response, keep=type(super().response.keep)(super().response.keep.numerator + 10))

    caught(checks.check_level, Greedy(3, 1), "exceeded")


@dataclass(frozen=True)
class OtherBatches(GRR):
    """Batches at another level than single reports."""

    def draw_many(self, values: Any, bits: Bits) -> Any:
        return GRR(self.domain, self.epsilon * Fraction(102, 100)).draw_many(values, bits)


def test_batches_that_differ_from_single_reports() -> None:
    caught(checks.check_law, OtherBatches(3, 1), "another law")


@dataclass(frozen=True)
class NominalQ(OUE):
    """An estimator that uses the textbook's probability instead of the realized one, here off by a lot."""

    def infer(self, tally: Tally) -> Estimate:
        good = super().infer(tally)
        return replace(good, counts=good.counts + 0.001 * tally.n)


def test_a_biased_estimator() -> None:
    caught(checks.check_unbiased, NominalQ(3, 1), "biased")


@dataclass(frozen=True)
class Clipping(GRR):
    """Clips behind the user's back."""

    def infer(self, tally: Tally) -> Estimate:
        good = super().infer(tally)
        return replace(good, counts=np.maximum(good.counts, 0))


def test_an_estimator_that_clips() -> None:
    caught(checks.check_unbiased, Clipping(3, 1), "sum of estimates")


@dataclass(frozen=True)
class Bragging(GRR):
    """Claims a smaller variance."""

    def variance(self, n: int, frequency: Any = 0.0, population: bool = True) -> Any:
        return 0.9 * super().variance(n, frequency, population)


def test_a_variance_that_is_too_small() -> None:
    caught(checks.check_unbiased, Bragging(3, 1), "variance")


@dataclass(frozen=True)
class Lenient(GRR):
    """Counts reports that no device sends."""

    def valid(self, reports: Any) -> Any:
        return np.ones(len(reports), dtype=bool)


def test_malformed_reports_that_pass() -> None:
    caught(checks.check_refusals, Lenient(3, 1), "wrong about a report")


@dataclass(frozen=True)
class Forgetful(SubsetSelection):
    """Leaves the subset size out of its spec."""

    def parameters(self) -> dict[str, Any]:
        return {}


def test_a_spec_that_leaves_something_out() -> None:
    with pytest.raises(ValueError, match="canonical"):
        checks.check_identity(Forgetful(20, 1, subset_size=2))


@dataclass(frozen=True)
class Averaging(GRR):
    """A tally that does not add up."""

    def count(self, reports: Any) -> Any:
        return super().count(reports) // 2


def test_a_tally_that_does_not_add_up() -> None:
    caught(checks.check_monoid, Averaging(3, 1), "add up")


@dataclass(frozen=True)
class Secretive(GRR):
    """Waives the check that would find it out."""

    traits = Traits(waived={"level": "trust me"})


def test_a_waiver_of_what_is_about_privacy() -> None:
    caught(checks.check_waivers, Secretive(3, 1), "cannot be waived")


@pytest.mark.parametrize("name", ["report", "report_encoded", "privatize"])
def test_what_devices_call_cannot_be_changed(name: str) -> None:
    """Neither in a class nor in another base of it; one that is put into an object is found."""

    def truth(self: Protocol, value: Any, bits: Bits | None = None) -> bytes:
        return bytes([0])

    with pytest.raises(TypeError, match=rf"changes {name}\(\).*writes .*draw"):
        type("Plain", (GRR,), {name: truth})
    with pytest.raises(TypeError, match=rf"changes {name}\(\)"):
        type("Mixed", (type("Other", (), {name: truth}), GRR), {})
    with pytest.raises(TypeError, match="__getattribute__"):
        type("Hooked", (GRR,), {"__getattribute__": lambda self, asked: object.__getattribute__(self, asked)})
    case = GRR(3, 1)
    vars(case)[name] = truth
    caught(checks.check_order, case, "not the one that every device calls")


def test_what_devices_call_over_the_epochs_cannot_be_changed() -> None:
    for kind, name, hook in (
        (LGRR, "report_from", "_instant"),
        (LGRR, "permanent_encoded", "_permanent"),
        (LGRR, "kept_state", "kept_under"),
        (Evolving, "step_encoded", "_stepped"),
        (Evolving, "begin", "_begun"),
    ):
        with pytest.raises(TypeError, match=rf"changes {name}\(\).*{hook}"):
            type("Changed", (kind,), {name: lambda *given: b""})


@dataclass(frozen=True)
class ForTheSystem(GRR):
    """Honest, unless the bits are those of a device."""

    def draw(self, value: int, bits: Bits) -> bytes:
        return bytes([value]) if isinstance(bits, Secure) else super().draw(value, bits)


@dataclass(frozen=True)
class ForTheSystemOnly(GRR):
    """The same, unless it is the very object that devices draw from."""

    def draw(self, value: int, bits: Bits) -> bytes:
        return bytes([value]) if bits is SYSTEM else super().draw(value, bits)


@dataclass(frozen=True)
class ColumnsForTheSystem(GRR):
    """Columns are sent as they are, from the bits of a device."""

    def draw_many(self, values: Any, bits: Bits) -> Any:
        return values.astype(np.uint8)[:, None] if type(bits) is Secure else super().draw_many(values, bits)


def test_code_that_asks_whose_bits_it_gets() -> None:
    for kind in (ForTheSystem, ForTheSystemOnly, ColumnsForTheSystem):
        caught(checks.check_order, kind(3, 1), "from the system's bits")


@dataclass(frozen=True)
class WhenFollowed(GRR):
    """Honest only while every branch is taken."""

    def draw(self, value: int, bits: Bits) -> bytes:
        return super().draw(value, bits) if isinstance(bits, Exhaustive) else bytes([value])


def test_code_that_asks_whether_it_is_followed() -> None:
    caught(checks.check_law, WhenFollowed(3, 1), "single reports have another law")


@dataclass(frozen=True)
class Rounded(Window):
    """Forgets that t is less than one: estimates are drawn to the middle."""

    def infer(self, tally: Tally) -> Any:
        good = super().infer(tally)
        return replace(good, value=0.5 + (good.value - 0.5) * 0.99)


@dataclass(frozen=True)
class Sure(Window):
    """Error bars of a mean that are too small."""

    def infer(self, tally: Tally) -> Any:
        good = super().infer(tally)
        return replace(good, stderr=0.9 * good.stderr)


@dataclass(frozen=True)
class Promising(Window):
    """Tells the planner less noise than there is."""

    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(error=lambda: 0.9 * base.error)


@dataclass(frozen=True)
class Studied(Window):
    """Compares simulations with a formula that is too small."""

    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(variances=lambda answers, people=None: 0.9 * base.variances(answers, people))


def test_means_that_are_wrong() -> None:
    window = Interval(0, 1), 1, 3, 2
    checks.check_unbiased(Window(*window))
    caught(checks.check_unbiased, Rounded(*window), "biased")
    caught(checks.check_unbiased, Sure(*window), "variance")
    caught(checks.check_unbiased, Promising(*window), "error")
    caught(checks.check_unbiased, Studied(*window), "figure_variances")


class Neighbours(Table):
    """Hides an answer among its neighbours only."""

    def law(self) -> Law:
        return super().law().but(ratio=Fraction(2), related=self._pairs)

    def _pairs(self) -> Any:
        return iter([({0: Fraction(1)}, {1: Fraction(1)}), ({1: Fraction(1)}, {2: Fraction(1)})])


class Halves(Neighbours):
    """The same for the first answer, against one of the last two by the toss of a coin: a ratio of 8/3."""

    def _pairs(self) -> Any:
        return iter([({0: Fraction(1)}, {1: Fraction(1, 2), 2: Fraction(1, 2)})])


def test_a_guarantee_is_checked_between_the_inputs_that_it_is_about() -> None:
    line = [["4/7", "2/7", "1/7"], ["2/7", "3/7", "2/7"], ["1/7", "2/7", "4/7"]]
    channel = Channel(line, ["a", "b", "c"], ["a", "b", "c"])
    assert channel.ratio == 4
    checks.check_level(Neighbours(channel, 1))
    checks.check_level(Table(channel, 2))
    caught(checks.check_level, Halves(channel, 1), "stated ratio")


class Nobody(Table):
    """Hides an answer from nobody."""

    def law(self) -> Law:
        return super().law().but(ratio=Fraction(1), related=lambda: iter(()))


def test_a_guarantee_about_no_inputs() -> None:
    clear = Channel([["1", "0"], ["0", "1"]], ["yes", "no"], ["yes", "no"])
    caught(checks.check_level, Nobody(clear, 1), "relates no two inputs")


class Leaky(Table):
    """Says that a delta which is too small is enough for its epsilon."""

    def law(self) -> Law:
        return super().law().but(ratio=Fraction(2))


def test_a_delta_that_is_exceeded() -> None:
    # Beyond a ratio of 2 the first output is likelier by 3/4 - 2/4 = 1/4.
    coin = Channel([["3/4", "1/4"], ["1/4", "3/4"]], ["yes", "no"], ["yes", "no"])
    checks.check_level(Leaky(coin, "0.7", delta="1/4"))
    caught(checks.check_level, Leaky(coin, "0.7", delta="24/100"), "stated ratio")


class LouderState(LGRR):
    """Keeps a state that tells more than `forever`; one report is as it should be."""

    @cached_property
    def response(self) -> RandomizedResponse:
        return RandomizedResponse.at(self.domain.size, self.forever + 1)


class RememberedAnswer(LGRR):
    """Draws reports from a fresh state each time, as if the answer were asked anew: no state is kept."""

    def _permanent(self, value: int, shared: bytes, bits: Bits) -> bytes:
        return bytes([value])

    def _instant(self, state: bytes, bits: Bits) -> bytes:
        return super()._instant(super()._permanent(state[0], b"", bits), bits)


class RepeatedReport(LGRR):
    """Says the state itself."""

    def _instant(self, state: bytes, bits: Bits) -> bytes:
        return state


def test_stages_that_tell_more_than_they_state() -> None:
    caught(checks.check_stages, LouderState(3, first=1, forever=2), "more than `forever`")
    checks.check_level(LouderState(3, first=1, forever=2))  # the first report alone says nothing about it
    caught(checks.check_stages, RememberedAnswer(2, first=1, forever=2), "stated ratio of a state")
    caught(checks.check_stages, RepeatedReport(2, first=1, forever=2), "is impossible from another")


class Understated(HadamardResponse):
    """Says that a forged report does half of what it does."""

    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(leverage=lambda: base.leverage / 2)


class HalfWidened(DBitFlip):
    """Has the right leverage, and intervals that allow for half of it."""

    def infer(self, tally: Tally) -> Any:
        found = super().infer(tally)
        assert found.weights is not None
        return replace(found, weights=Weights(found.weights.lowest / 2, found.weights.highest / 2))


def test_an_interval_that_forged_reports_leave() -> None:
    for honest, broken in (
        (HadamardResponse(3, 4), Understated(3, 4)),
        (DBitFlip(3, first=1, forever=2), HalfWidened(3, first=1, forever=2)),
    ):
        checks.check_forging(honest)
        caught(checks.check_forging, broken, "not widened by enough")


@dataclass(frozen=True)
class Stretched(GRR):
    """Divides by less than the gap of its law."""

    def infer(self, tally: Tally) -> Any:
        found = super().infer(tally)
        return replace(found, counts=1.1 * found.counts)


def test_gains_that_are_not_those_of_theory(monkeypatch: pytest.MonkeyPatch) -> None:
    checks.check_gains(GRR(3, 1))
    caught(checks.check_gains, Stretched(3, 1), "wrong weights")
    whole = poisoning.forge

    def half(protocol: Protocol, favour: Any, reports: int, how: str, bits: Bits) -> Any:
        """Every other forged report is an honest one."""
        found = whole(protocol, favour, reports, how, bits)
        if reports != 200:
            return found
        honest = protocol.privatize([0, 1] * 50, bits)
        return replace(found, array=np.vstack([found.array[::2], honest.array]))

    monkeypatch.setattr(poisoning, "forge", half)
    caught(checks.check_gains, OUE(3, 1), "(targeted|maximal) reports do not move")


CODE = GRR(5, 1)
WRONG_FORMS = {
    "draw_numbers": (lambda answers, bits: CODE.kernel().draw_numbers(4 - answers, bits), "draw_numbers gives other"),
    "count_numbers": (lambda numbers: np.bincount(numbers, minlength=5)[::-1], "count_numbers differs"),
    "valid_numbers": (lambda numbers: numbers <= 5, "valid_numbers differs"),
    "halves": (tallies.Halves(3, lambda found: found[1][:5]), "halves differ"),
    "adder": (lambda: PlainAdder(Averaging(5, 1)), "the adder differs"),
    "add": (lambda adder, reports: adder.add(reports[reports[:, 0] < 5]), "a malformed report was added"),
    "pieces": (lambda reports: iter([(0, CODE.tally(reports).counts[:4])]), "the pieces differ"),
    "simulate": (lambda people, runs, random: random.multinomial(people.sum(), [0.2] * 5, runs), "another law"),
}


@pytest.mark.parametrize("form", Kernel.defaults)
def test_a_faster_form_that_differs_from_the_plain_one(form: str) -> None:
    wrong, reason = WRONG_FORMS[form]

    class Faster(GRR):
        def kernel(self) -> Kernel:
            return super().kernel().but(**{form: wrong})

    checks.check_kernel(CODE)
    caught(checks.check_kernel, Faster(5, 1), reason)


def test_simulated_tallies_that_vary_too_little() -> None:
    class Smooth(GRR):
        def kernel(self) -> Kernel:
            def simulate(people: Any, runs: int, random: Any) -> Any:
                mean = people @ self.channel().rows
                return np.rint(mean + random.standard_normal((runs, mean.size)))

            return super().kernel().but(simulate=simulate)

    caught(checks.check_kernel, Smooth(5, 1), "vary otherwise")
