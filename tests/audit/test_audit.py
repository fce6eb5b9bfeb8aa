"""Audits: every known defect is caught, everything of ours is cleared, and bounds hold."""

from __future__ import annotations

import math
import random
import sys
import textwrap
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest

import deniable as dn
from deniable.audit import audit
from deniable.audit.paths import replayed
from deniable.audit.rare import rarest_visible
from deniable.audit.samples import Batches, Command, Function, lower_bound, lower_bound_of_odds, search
from deniable.audit.structure import largest_ratio, largest_ratio_of_hidden
from deniable.audit.verdict import MOST_CELLS
from deniable.errors import ReportError, SpecError
from deniable.exact import Dyadic
from deniable.protocols import registered
from deniable.protocols.law import SUM
from deniable.protocols.sets import CollisionSets, SubsetSets
from deniable.randomness import SYSTEM, Exhaustive, listed_bits
from deniable.randomness.symbolic import Hidden, Run, TooManyRuns, follow

AUDIT = sys.modules["deniable.audit.verdict"]
SURE = 1 - 1e-6
"""For clients with a seed of their own: with 8,000 samples an honest one is not cleared about as rarely."""
"""The confidence of audits of honest clients whose noise is not seeded: one in a million is called a liar."""
EVERY = [(kind.name, example) for _, kind in sorted(registered().items()) for example in kind.examples()]


@pytest.mark.parametrize(("name", "protocol"), EVERY, ids=[f"{name}-{i}" for i, (name, _) in enumerate(EVERY)])
def test_everything_of_ours_is_cleared(name: str, protocol: dn.Protocol) -> None:
    found = audit(protocol, seed=1)
    if protocol.guarantee.relation == SUM:  # a report alone promises nothing: the sum of many does
        assert found.verdict == "undecided"
        return
    assert found.verdict == "cleared", found
    assert found.exact is not None
    assert found.exact == pytest.approx(protocol.realized_epsilon, abs=1e-12)


LARGE = {
    "independent bits": dn.OUE(60, 1),
    "bits in two stages": dn.LOSUE(40, first="1/2", forever=1),
    "hash and response": dn.OLH(80, 1),
    "one hash bit": dn.BLH(200, 2),
    "blocks of signs": dn.HadamardResponse(260, 1),
    "window": dn.Window(dn.Integers(0, 259), 1, read="distribution"),
    "cohorts of bits": dn.RAPPOR(list("abcdef"), 2),
    "response": dn.GRR(260, 1),
    "subsets": dn.SubsetSelection(30, 1),
    "listed subsets": dn.SubsetSelection(40, "5/2"),
}


@pytest.mark.parametrize("protocol", LARGE.values(), ids=LARGE)
def test_large_reports_are_exact_by_structure(protocol: dn.Protocol) -> None:
    assert protocol.law().forms * protocol.domain.size > MOST_CELLS
    found = audit(protocol, seed=1)
    assert (found.verdict, found.method) == ("cleared", "structure"), found
    assert found.exact == pytest.approx(protocol.realized_epsilon, abs=1e-12)


class _Skipped(dn.OUE):
    """Says what OUE says of its law, but never randomizes its last bit."""

    def draw(self, value, bits):  # type: ignore[no-untyped-def]
        row = int.from_bytes(bytes(super().draw(value, bits)), "little") if self.domain.size < 12 else 0
        last = self.domain.size - 1
        if self.domain.size >= 12:
            sent = bits.lanes(self.other_bit, last) | (value == last) << last
            return sent.to_bytes(self.report_bytes, "little")
        return (row & ~(1 << last) | (value == last) << last).to_bytes(self.report_bytes, "little")

    def draw_many(self, values, bits):  # type: ignore[no-untyped-def]
        return np.array([list(self.draw(int(value), bits)) for value in values], dtype=np.uint8)


class _Correlated(dn.OUE):
    """Claims independent bits, but bit 0 is the truth's own coin again."""

    def draw(self, value, bits):  # type: ignore[no-untyped-def]
        row = bits.lanes(self.other_bit, self.domain.size) & ~(1 << value) & ~1
        if bits.bernoulli(self.true_bit):
            row |= 1 << value | 1
        return row.to_bytes(self.report_bytes, "little")


class _Smaller(dn.OLH):
    """A hash that is kept too often, and a stated ratio that hides it."""

    def draw(self, value, bits):  # type: ignore[no-untyped-def]
        return dn.OLH(self.domain, 3, hash_bits=self.hash_bits).draw(value, bits)

    def law(self):  # type: ignore[no-untyped-def]
        return super().law().but(ratio=Fraction(2))


class _Column(dn.GRR):
    """Single reports are right; columns are sent as they are."""

    def draw_many(self, values, bits):  # type: ignore[no-untyped-def]
        return values.astype(np.uint8)[:, None]


def _patched(protocol: dn.Protocol, name: str, method) -> dn.Protocol:  # type: ignore[no-untyped-def]
    """An instance whose method was changed behind the back of its class."""
    vars(protocol)[name] = method
    return protocol


@pytest.mark.parametrize(
    "liar",
    [_Skipped(5, 1), _Skipped(40, 1), _Correlated(40, 1), _Smaller(60, 1), _Column(300, 1)],
    ids=lambda one: f"{type(one).__name__}-{one.domain.size}",
)
def test_a_class_that_lies_about_its_structure_is_caught(liar: dn.Protocol) -> None:
    found = audit(liar, seed=1)
    assert found.verdict == "violated"
    if isinstance(liar, _Smaller):
        assert found.exact == pytest.approx(3, abs=1e-9)


class _ForSecure(dn.OUE):
    """Sends the answer in clear where the bits are those of a device."""

    def draw(self, value, bits):  # type: ignore[no-untyped-def]
        if isinstance(bits, dn.Secure):
            return (1 << value).to_bytes(self.report_bytes, "little")
        return super().draw(value, bits)


class _Seldom(dn.OUE):
    """The same, and for one device in a hundred only."""

    def draw(self, value, bits):  # type: ignore[no-untyped-def]
        sent = super().draw(value, bits)
        clear = isinstance(bits, dn.Secure) and sum(sent) % 100 == 7
        return (1 << value).to_bytes(self.report_bytes, "little") if clear else sent


class _WhenFollowed(dn.OUE):
    """Honest while it is followed, in clear from any other bits."""

    def draw(self, value, bits):  # type: ignore[no-untyped-def]
        if isinstance(bits, Exhaustive):
            return super().draw(value, bits)
        return (1 << value).to_bytes(self.report_bytes, "little")


def test_what_is_audited_is_what_a_device_sends() -> None:
    """The very object that devices draw from gives the bits of a simulation for so long."""
    for liar in (_ForSecure(40, 1), _Seldom(40, 1), _WhenFollowed(40, 1)):
        assert audit(liar, seed=1).verdict == "violated", type(liar)
    for name in ("report", "report_encoded", "privatize"):
        found = audit(_patched(dn.GRR(3, 1), name, lambda value, bits=None: b"\0"), seed=1)
        assert (found.verdict, name in found.event) == ("violated", True)
    with replayed(dn.Simulation(7)):
        assert dn.GRR(3, 1).report(2) == dn.GRR(3, 1).report(2, dn.Simulation(7))
        drawn = SYSTEM.take(64)
    assert drawn != SYSTEM.take(64)


class _Kept(dn.LOneBitMean):
    """Keeps the end itself: the first stage adds no noise."""

    def _permanent(self, value, shared, bits):  # type: ignore[no-untyped-def]
        return bytes([self._end_of(self._mark(value, self._alpha(shared)), bits)])


class _Alpha(dn.LOneBitMean):
    """Looks at what is drawn once per device, beside rounding: a device in a thousand sends its end."""

    def _permanent(self, value, shared, bits):  # type: ignore[no-untyped-def]
        alpha = self._alpha(shared)
        if alpha < self.points // 1000:
            return bytes([self._end_of(self._mark(value, alpha), bits)])
        return super()._permanent(value, shared, bits)


def test_a_state_of_many_points_is_followed_without_listing_them() -> None:
    levels = {"first": "1/2", "forever": 1}
    for steps in (1, 20):
        found = audit(dn.LOneBitMean(dn.Interval(0, 24), **levels, steps=steps), seed=1)
        assert (found.verdict, found.method) == ("cleared", "structure"), found
        assert found.exact == pytest.approx(0.5, abs=1e-9)
    for liar in (_Kept, _Alpha):
        assert audit(liar(dn.Interval(0, 24), **levels), seed=1).verdict == "violated"


class _Twice(dn.Evolving):
    """Tells the change of the sixth epoch once more: each bit alone is right."""

    def _stepped(self, state, encoded, epoch, bits):  # type: ignore[no-untyped-def]
        after, report = super()._stepped(state, encoded, epoch, bits)
        return (after._replace(pending=state.pending) if epoch == 6 else after), report

    def law(self):  # type: ignore[no-untyped-def]
        base = super().law()
        return base.but(kept=base.kept.but(streams=lambda: {(0,): {b"": Fraction(1)}}))


class _Remembers(dn.Evolving):
    """Keeps the last answer in the object, beside its state, and sends it."""

    def _stepped(self, state, encoded, epoch, bits):  # type: ignore[no-untyped-def]
        before, vars(self)["last"] = vars(self).get("last", encoded), encoded
        after, report = super()._stepped(state, encoded, epoch, bits)
        return after, report ^ before if epoch == 5 else report


class _Alone(dn.Evolving):
    """Streams are right; a report by itself is the truth."""

    def draw(self, value, bits):  # type: ignore[no-untyped-def]
        return bytes([value])


def test_streams_of_many_epochs_are_exact_from_step_to_step() -> None:
    answers = ["no", "yes"]
    for protocol in (dn.Evolving(answers, 1, epochs=16), dn.Evolving(answers, 1, epochs=5, changes=2)):
        found = audit(protocol)
        assert (found.verdict, found.method) == ("cleared", "structure"), found
        assert found.exact == pytest.approx(1, abs=1e-9)
    assert audit(_Twice(answers, 1, epochs=8)).verdict == "violated"
    assert audit(_Alone(answers, 1, epochs=4)).verdict == "violated"
    assert audit(_Remembers(answers, 1, epochs=8)).verdict != "cleared"


@pytest.mark.parametrize("protocol", [*dn.Evolving.examples()], ids=str)
def test_steps_and_whole_streams_give_the_same_ratio(protocol: dn.Evolving) -> None:
    laws = list(protocol.law().kept.streams().values())
    ratios = [one[sent] / other[sent] for one in laws for other in laws for sent in one]
    assert audit(protocol).exact == pytest.approx(math.log(max(ratios)), abs=1e-12)


LAW_OF_SETS = {
    "subsets": SubsetSets(dn.Sets(50, at_most=4), 1),
    "one element": SubsetSets(dn.Sets(1000, at_most=8), 1, 1),
    "collisions": CollisionSets(dn.Sets(10**6, at_most=8), 1),
    "items and pairs": dn.ItemSets(dn.Sets(20, at_most=4), 1),
    "keys and values": dn.KeyValue(1000, dn.Interval(1, 5), 1, at_most=8),
}


@pytest.mark.parametrize("protocol", LAW_OF_SETS.values(), ids=LAW_OF_SETS)
def test_sets_that_cannot_be_listed_are_exact_for_every_answer(protocol: dn.Protocol) -> None:
    found = audit(protocol, seed=1)
    assert (found.verdict, found.method) == ("cleared", "structure"), found
    assert found.exact == pytest.approx(protocol.realized_epsilon, abs=1e-12)


def test_a_claim_below_the_exact_epsilon_is_violated() -> None:
    assert audit(LAW_OF_SETS["one element"], epsilon="9/10", seed=1).verdict == "violated"
    assert audit(dn.Evolving(["no", "yes"], 1, epochs=5, changes=2), epsilon="99/100").verdict == "violated"


class _Often(SubsetSets):
    """Meets the set as often as epsilon 2 allows, and says 1."""

    meets = property(lambda self: SubsetSets(self.domain, 2, self.subset_size).meets)

    def law(self):  # type: ignore[no-untyped-def]
        return super().law().but(ratio=Fraction(2))


class _Looks(SubsetSets):
    """Tells by the first member whether the first item is there."""

    def _one_own(self, own, bits):  # type: ignore[no-untyped-def]
        return self.subsets.written(1) if own & 1 else super()._one_own(own, bits)


class _Fewer(CollisionSets):
    """Takes a set with few cells for one with as many as there may be: they come up too often."""

    def _one_own(self, own, bits):  # type: ignore[no-untyped-def]
        chance = Dyadic(self.domain.at_most * self.own_cell.numerator)
        own = own if bits.bernoulli(chance) else (1 << self.cells) - 1 ^ own
        return listed_bits(bits.subset(own, 1), 1)


@pytest.mark.parametrize(
    "liar",
    [
        _Often(dn.Sets(50, at_most=4), 1),
        _Looks(dn.Sets(50, at_most=4), 1, 1),
        _Fewer(dn.Sets(50, at_most=4), 1),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_law_of_sets_that_lies_is_caught(liar: dn.Protocol) -> None:
    assert audit(liar, samples=1000, seed=1).verdict == "violated"


def test_subsets_are_uniform_by_enumeration() -> None:
    """Of few bits and of many, by symbols as by branches."""
    from deniable.randomness import exhaust

    for among, count in ((0b1011, 2), ((1 << 70) - 1 ^ 1 << 3, 1), (0b111 | 1 << 90, 3)):
        law = exhaust(lambda bits, among=among, count=count: bits.subset(among, count)).law  # type: ignore[misc]
        size = math.comb(among.bit_count(), count)
        assert set(law.values()) == {Fraction(1, size)}
        assert len(law) == size
        assert all(one & ~among == 0 and one.bit_count() == count for one in law)
        (run,) = follow(lambda bits, among=among, count=count: bits.subset(among, count).to_bytes(12, "little"))  # type: ignore[misc]
        assert run.choices[0].blocks == ((among, count),)


def test_symbols_and_enumeration_give_the_same_law() -> None:
    """A product, a parity, a comparison and an index of draws, whose law is also listed branch by branch."""
    from deniable.exact import WORD, Dyadic
    from deniable.randomness import exhaust

    def code(bits):  # type: ignore[no-untyped-def]
        row = bits.lanes(Dyadic(WORD // 4), 3)
        drawn = bits.integers(5)
        spun = bits.integers(4)
        if drawn >= 2:
            row ^= 1
        parity = (spun & 3).bit_count() & 1
        listed = [7, 9][bits.integers(2)]
        return (
            (row | parity << 3).to_bytes(1, "little")
            + (drawn + listed).to_bytes(1, "little")
            + spun.to_bytes(1, "little")
        )

    assert _law_of(follow(code)) == exhaust(code).law

    def divided(bits):  # type: ignore[no-untyped-def]
        whole = bits.integers(12)
        north, east = divmod(whole, 4)
        again = divmod(whole, 4)[1].to_bytes(1, "little")
        cell = min(max(north - 1, 0), 1) * 2 + min(max(east - 1, 0), 1)
        return cell.to_bytes(1, "little") + (again if north < 1 else whole.to_bytes(1, "little"))

    assert _law_of(follow(divided)) == exhaust(divided).law


def _law_of(runs: list[Run]) -> dict[bytes, Fraction]:
    """Every outcome of the coins and ranges of every run."""
    law: dict[bytes, Fraction] = {}
    for run in runs:
        coins = range(len(run.coins))
        for number in range(1 << len(run.coins)):
            outcome = [number >> coin & 1 for coin in coins]
            weight = run.weight * math.prod((c if on else 1 - c) for c, on in zip(run.coins, outcome, strict=True))
            mask = 1 | number << 1
            word = sum(((form & mask).bit_count() & 1) << place for place, form in enumerate(run.forms))
            for values in product(*(range(span.low, span.high) for span in run.spans)):
                sent = word | sum(value << 8 * span.byte for value, span in zip(values, run.spans, strict=True))
                key = sent.to_bytes(len(run.forms) // 8, "little")
                ways = math.prod(span.high - span.low for span in run.spans)
                law[key] = law.get(key, Fraction(0)) + weight / ways
    return law


# -- defects of published clients, each re-created as a small broken one -------------------------------


def _odds(epsilon: float) -> float:
    return math.exp(epsilon)


def _response(rng: random.Random, value: int, size: int, epsilon: float) -> int:
    keep = (_odds(epsilon) - 1) / (_odds(epsilon) + size - 1)
    return value if rng.random() < keep else rng.randrange(size)


def _truth_first(rng: random.Random):  # type: ignore[no-untyped-def]
    """Subset selection whose report begins with the true value, where that is in it."""

    def client(value: int) -> bytes:
        others = [v for v in range(8) if v != value]
        held = rng.random() < 2 * _odds(1) / (2 * _odds(1) + 6)
        return bytes(([value] if held else []) + rng.sample(others, 1 if held else 2))

    return client


def _skipped_bit(rng: random.Random):  # type: ignore[no-untyped-def]
    def client(value: int) -> int:
        flip = 1 / (math.exp(0.5) + 1)
        return sum(((v == value) ^ (v < 7 and rng.random() < flip)) << v for v in range(8))

    return client


def _never_before(rng: random.Random):  # type: ignore[no-untyped-def]
    """A subset that never has the value before the truth."""

    def client(value: int) -> int:
        others = [v for v in range(6) if v not in (value, (value - 1) % 6)]
        return 1 << value | 1 << rng.choice(others) if rng.random() < 0.5 else 1 << rng.choice(others)

    return client


def _one_dummy(rng: random.Random):  # type: ignore[no-untyped-def]
    """Padding and sampling with one dummy symbol instead of two: epsilon ln(2 (e - 1) + 1) instead of 1."""

    def client(items: tuple[int, ...]) -> int:
        padded = [*items, *([4] * (2 - len(items)))]
        return _response(rng, rng.choice(padded), 5, math.log(2 * (_odds(1) - 1) + 1))

    return client


def _uncounted_hashes(rng: random.Random):  # type: ignore[no-untyped-def]
    """A Bloom filter of two hashes at the noise of one."""
    bits = {0: 0b000011, 1: 0b001100, 2: 0b110000}

    def client(value: int) -> int:
        flip = 1 / (math.exp(0.5) + 1)
        return bits[value] ^ sum((rng.random() < flip) << place for place in range(6))

    return client


def _fake_data(rng: random.Random):  # type: ignore[no-untyped-def]
    """RS+FD: one of three attributes at an amplified epsilon, the others made up; the tuple has 1.82."""

    def client(record: tuple[int, ...]) -> tuple[int, ...]:
        chosen, amplified = rng.randrange(3), math.log(3 * (_odds(1) - 1) + 1)
        return tuple(
            _response(rng, value, 2, amplified) if place == chosen else rng.randrange(2)
            for place, value in enumerate(record)
        )

    return client


def _without_replacement(rng: random.Random):  # type: ignore[no-untyped-def]
    """Of a batch of four exactly one answer is turned: whoever knows three answers knows the fourth."""

    def client(batch: tuple[int, ...]) -> tuple[int, ...]:
        turned = rng.randrange(4)
        return tuple(value ^ (place == turned) for place, value in enumerate(batch))

    return client


SETS = [(), (0,), (1,), (0, 1), (2, 3)]
RECORDS = [(0, 0, 0), (1, 1, 1), (0, 1, 0)]
DEFECTS = {
    "skipped bit": (_skipped_bit, range(8), 1, 4000),
    "truth in position 0": (_truth_first, range(8), 1, 4000),
    "never before the truth": (_never_before, range(6), 2, 4000),
    "one dummy": (_one_dummy, SETS, 1, 8000),
    "hashes not counted": (_uncounted_hashes, range(3), 1, 4000),
    "fake data": (_fake_data, RECORDS, 1, 8000),
    "without replacement": (_without_replacement, [(0, 0, 0, 0), (0, 0, 0, 1)], 1, 4000),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_every_published_defect_is_caught_as_a_black_box(defect: str) -> None:
    make, inputs, epsilon, samples = DEFECTS[defect]
    found = audit(make(random.Random(1)), epsilon, samples, inputs=list(inputs), processes=False, seed=1)
    assert found.verdict == "violated", found


def test_a_client_without_memory_is_caught_over_epochs() -> None:
    """One epsilon for ever was claimed; each epoch draws afresh, so that eight epochs tell eight times as much."""
    rng = random.Random(1)

    def forgetful():  # type: ignore[no-untyped-def]
        return lambda value: _response(rng, value, 2, 1)

    def remembering():  # type: ignore[no-untyped-def]
        known: dict[int, int] = {}
        return lambda value: known.setdefault(value, _response(rng, value, 2, 1))

    streams = [(0,) * 8, (1,) * 8]
    assert audit(forgetful, 1, 4000, inputs=streams, stream=True, processes=False, seed=1).verdict == "violated"
    assert audit(remembering, 1, 4000, inputs=streams, stream=True, processes=False, seed=1).verdict == "cleared"


def test_a_float_threshold_is_caught_by_enumeration_and_undecided_as_a_black_box() -> None:
    """At epsilon 37 a float keeps the answer always. A replica with 16-bit thresholds shows it exactly at 12."""

    def sixteen_bits(epsilon: float, value: int) -> list[Run]:
        keep = round(65536 / (1 + math.exp(-epsilon)))  # from epsilon 12 on it is 65536: never flipped
        return follow(lambda bits: bytes([value ^ (bits.integers(65536) >= keep)]))

    assert largest_ratio([sixteen_bits(12, value) for value in (0, 1)]).ratio == math.inf
    assert math.log(largest_ratio([sixteen_bits(11, value) for value in (0, 1)]).ratio) > 11
    found = audit(lambda value: bytes([value]), 37, 2000, inputs=[0, 1], processes=False)
    assert found.verdict == "undecided"


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="processes cannot be forked here")
def test_seeds_that_repeat_after_a_fork_are_caught() -> None:
    rng = random.Random(1)
    found = audit(lambda value: _response(rng, value, 50, 1), 1, 1000, inputs=[0, 1])
    assert found.verdict == "violated"
    assert "same" in found.event
    protocol = dn.GRR(2, 1)
    assert audit(protocol.report, 1, 8000, inputs=[0, 1], level=SURE).verdict == "cleared"


# -- programs in any language ---------------------------------------------------------------------------

PROGRAM = """
    import math, random, sys
    rng, known = random.Random({seed}), {{}}
    for line in sys.stdin:
        value = line.strip()
        if not value:
            known.clear()
            print("", flush=True)
            continue
        if value not in known or {fresh}:
            keep = (math.exp({epsilon}) - 1) / (math.exp({epsilon}) + 1)
            known[value] = int(value) if rng.random() < keep else rng.randrange(2)
        print(format(known[value], "02x"), flush=True)
"""


def _program(epsilon: float, seed: str = "", fresh: bool = True) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(PROGRAM.format(epsilon=epsilon, seed=seed, fresh=fresh))]


def test_a_program_is_judged_by_its_lines() -> None:
    assert audit(_program(1), 1, 8000, inputs=["0", "1"], level=SURE).verdict == "cleared"
    assert audit(_program(1.5), 1, 4000, inputs=["0", "1"]).verdict == "violated"
    same = audit(_program(1, seed="7"), 1, 4000, inputs=["0", "1"])
    assert (same.verdict, same.lower) == ("violated", math.inf)


def test_a_program_keeps_state_over_the_epochs_of_a_device() -> None:
    streams = [["0"] * 6, ["1"] * 6]
    assert audit(_program(1, fresh=False), 1, 8000, inputs=streams, stream=True, level=SURE).verdict == "cleared"
    assert audit(_program(1), 1, 2000, inputs=streams, stream=True).verdict == "violated"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("", "and then ended"),
        ("print('xyz', flush=True); import sys; [print('zz', flush=True) for _ in sys.stdin]", "hexadecimal"),
        ("import time; time.sleep(60)", "flush the output"),
        ("raise SystemExit(7)", "with exit status 7"),
        ("import sys; [print('01\\n00', flush=True) for _ in sys.stdin]", "more lines than it is given"),
        ("import sys; [print(flush=True) for _ in sys.stdin]", "line 1 of the client is empty"),
        ("import subprocess; subprocess.run(['sleep', '60'])", "nothing for 0.5 s"),
    ],
)
def test_a_program_that_does_not_answer_is_told_why(code: str, said: str) -> None:
    client = Command([sys.executable, "-c", code], patience=0.5)
    with pytest.raises(ReportError, match=said):
        client.twice("0", 64)
    with pytest.raises(ReportError, match="cannot be started"):
        Command(["./no-such-program"]).sample("0", 1)


class Forgetful(dn.LGRR):
    """Keeps the answer itself, and draws every report afresh, by the law of a first report."""

    def _permanent(self, value, shared, bits):
        return bytes([value])

    def _instant(self, state, bits):
        return dn.LGRR._instant(self, dn.LGRR._permanent(self, state[0], b"", bits), bits)


def test_what_a_device_keeps_is_audited_as_well() -> None:
    asked = {"first": "1/2", "forever": 1}
    kept = audit(dn.LGRR(["a", "b", "c"], **asked))
    assert kept.verdict == "cleared"
    assert any("`forever` is 1" in note for note in kept.notes)
    found = audit(Forgetful(["a", "b", "c"], **asked))
    assert (found.verdict, found.exact) == ("violated", math.inf)
    assert "forever" in found.event


class _InClear(Batches):
    """Honest randomized response, but now and then a byte that only this answer has."""

    def __init__(self, size: int, seed: int, rate: float, answers: set[int] | None = None) -> None:
        super().__init__(dn.GRR(size, 1), dn.Simulation(seed))
        self.rate, self.answers, self.random = rate, answers, np.random.default_rng(seed)

    def sample(self, value: int, count: int) -> np.ndarray:
        rows = super().sample(value, count).copy()
        if self.answers is None or value in self.answers:
            rows[self.random.random(count) < self.rate] = 128 + value
        return rows


@pytest.mark.parametrize("rate", [0.01, 0.003])
def test_a_client_that_seldom_sends_the_truth_is_caught(rate: float) -> None:
    """With 20,000 samples, where one answer does so and where all do."""
    for seed in range(2):
        for answers in (None, {2}):
            client = _InClear(4, seed, rate, answers)
            found = audit(client, 1, inputs=list(range(4)), processes=False, seed=seed)
            assert found.verdict == "violated", (found, answers)


def test_rare_reports_are_judged_without_accusing_honest_clients() -> None:
    """200 audits: at most 5 percent above the claim, and Monte-Carlo error (three standard errors are 4.6 percent)."""
    over = 0
    for seed in range(200):
        found = search(_InClear(3, 10_000 + seed, 0.0), range(3), 500, seed=seed)
        over += found.lower > 1
    assert over <= 19


def test_what_would_have_been_seen_is_said_of_the_events_that_were_looked_for() -> None:
    found = audit(_InClear(4, 2, 0.0), 1, inputs=list(range(4)), processes=False, seed=2)
    assert found.verdict == "cleared"
    assert "by the event that was judged" in found.words
    assert found.rarest_visible == pytest.approx(rarest_visible(10_000, 10_000, 0.05, 1.0))
    assert f"from {100 * found.rarest_visible:.2g} % on" in found.words
    assert found.to_dict()["rarest_visible"] == found.rarest_visible


def test_too_few_rare_reports_to_accuse_are_too_many_to_clear() -> None:
    """One report in two thousand gives its answer away: in some audits that is seen, and then nobody is cleared."""
    verdicts = {}
    for seed in range(12):
        found = audit(_InClear(2, seed, 0.0007), 1, inputs=[0, 1], processes=False, seed=seed)
        verdicts[found.verdict] = found
    assert "violated" in verdicts or "undecided" in verdicts
    if "undecided" in verdicts:
        assert any("too many to clear" in note for note in verdicts["undecided"].notes)


def test_reports_that_the_spec_does_not_know_are_refused() -> None:
    spec = dn.GRR(["yes", "no"], epsilon=1)
    for sent, said in ((b"\0\0", "reports of 2 bytes"), (b"\7", "not a report of GRR")):
        with pytest.raises(ReportError, match=said):
            audit(lambda value, sent=sent: sent, protocol=spec, samples=100, processes=False)


def test_a_leak_beside_what_the_spec_looks_at_is_found() -> None:
    """Two other bits always agree: every answer is supported as often as the spec says, and epsilon is infinite."""

    class Agreeing(Batches):
        def sample(self, value: int, count: int) -> np.ndarray:
            rows = super().sample(value, count)
            first, second = (np.uint8((value + more) % 8) for more in (1, 2))
            return rows & ~(np.uint8(1) << second) | (rows >> first & np.uint8(1)) << second

    protocol = dn.OUE(8, epsilon=1)
    leaking, honest = Agreeing(protocol, dn.Simulation(1)), Batches(protocol, dn.Simulation(1))
    assert search(leaking, range(8), 8000, protocol=protocol, seed=1).lower > 1
    assert search(honest, range(8), 8000, protocol=protocol, seed=1).lower < 1


# -- bounds, power and its absence ----------------------------------------------------------------------


class _NoPairs(dn.GRR):
    """Promises something between inputs of which there are none."""

    def law(self):  # type: ignore[no-untyped-def]
        base = super().law()
        promise = base.guarantee._replace(relation="edge", over="neighbours")
        return base.but(guarantee=promise, related=lambda: iter(()))

    def draw(self, value, bits):  # type: ignore[no-untyped-def]
        return bytes([value])

    def draw_many(self, values, bits):  # type: ignore[no-untyped-def]
        return values.astype(np.uint8)[:, None]


def test_a_guarantee_about_no_inputs_at_all_is_undecided() -> None:
    found = audit(_NoPairs(3, 1), seed=1)
    assert (found.verdict, found.exact) == ("undecided", None)
    assert "relates no two inputs" in found.notes[0]


class _Backdoor(dn.OUE):
    """One answer of many is sent in clear."""

    def draw(self, value, bits):  # type: ignore[no-untyped-def]
        return (1 << 777).to_bytes(self.report_bytes, "little") if value == 777 else super().draw(value, bits)


@pytest.mark.slow
def test_one_answer_of_many_that_is_sent_in_clear_is_found() -> None:
    """The code is followed for every answer."""
    found = audit(_Backdoor(1000, 1), seed=1)
    assert (found.verdict, found.exact) == ("violated", math.inf)
    assert "777" in found.pair


class _LateBackdoor(dn.GRR):
    """One answer of many is sent in clear; none that is tried."""

    def draw(self, value, bits):  # type: ignore[no-untyped-def]
        return value.to_bytes(self.report_bytes, "little") if value == 7777 else super().draw(value, bits)


def test_the_verdict_says_how_many_answers_were_tried() -> None:
    large = audit(_LateBackdoor(20_000, 1), seed=1)
    assert (large.tried, large.answers) == (64, 20_000)
    assert "64 of 20,000 answers" in large.words
    protocol = dn.GRR(1000, 6)
    sampled = audit(Batches(protocol, dn.Simulation(1)), protocol=protocol, samples=200, seed=1)
    assert (sampled.tried, sampled.answers) == (64, 1000)
    assert "64 of 1,000 answers were tried" in sampled.words
    assert sampled.to_dict()["tried"] == 64
    texts = replace(sampled, answers=None)
    assert "64 of more than can be listed were tried" in texts.words


def test_identical_inputs_tell_nothing() -> None:
    """The bound is above zero with probability 1/20 at most; the seed is fixed."""
    rng = random.Random(1)
    found = audit(lambda value: rng.randrange(16), 1, 4000, inputs=[0, 1], processes=False)
    assert (found.verdict, found.lower, found.more) == ("undecided", 0.0, None)


def test_too_few_samples_to_see_a_liar_clear_nobody() -> None:
    """The bound looks right, but no epsilon would have been found out for sure: undecided, with what decides."""
    found = audit(_program(1, seed="7"), 1, 150, inputs=["0", "1"], processes=False)
    assert found.smallest_visible is None
    assert found.verdict == "undecided"
    assert found.more is not None
    assert found.more > 150


@pytest.mark.parametrize("kind", [dn.OLH, dn.BLH])
def test_hashes_without_their_decoder_are_never_cleared(kind: type[dn.Protocol]) -> None:
    protocol = kind(50, 1)
    found = search(Batches(protocol, dn.Simulation(1)), range(0, 50, 3), 2000, seed=1)
    from deniable.audit.verdict import _judged

    judged = _judged("OLH", Fraction(1), found, 4000, 0.95, 50)
    assert judged.verdict == "undecided"
    with_spec = search(Batches(protocol, dn.Simulation(1)), range(0, 50, 3), 4000, protocol=protocol, seed=1)
    assert _judged("OLH", Fraction(1), with_spec, 4000, 0.95, 50).verdict == "cleared"


@pytest.mark.slow
@pytest.mark.parametrize("kind", [dn.OUE, dn.SubsetSelection])
def test_the_spec_makes_an_audit_sharper(kind: type[dn.Protocol]) -> None:
    """20,000 samples a side, epsilon 1, 50 answers: at least 0.92 with the spec, in each of two audits."""
    protocol = kind(50, 1)
    drawn = [Batches(protocol, dn.Simulation(seed)) for seed in range(2)]
    lower = [search(one, range(50), 20_000, protocol=protocol, seed=s).lower for s, one in enumerate(drawn)]
    assert min(lower) >= 0.92
    assert max(lower) <= 1


@pytest.mark.slow
def test_a_black_box_is_seen_nearly_as_well() -> None:
    """At least 0.90 in each of four audits, and 0.93 in their mean; one in twenty may be above 1."""
    protocol = dn.OUE(50, 1)
    lower = [search(Batches(protocol, dn.Simulation(s)), range(50), 20_000, seed=s).lower for s in range(4)]
    assert 0.93 <= np.mean(lower) <= 1
    assert min(lower) >= 0.90


@pytest.mark.slow
@pytest.mark.parametrize(("size", "above", "seed"), [(2, "1.05", 0), (16, "1.15", 1)])
def test_a_million_samples_find_a_client_a_little_above_its_claim(size: int, above: str, seed: int) -> None:
    found = search(Batches(dn.GRR(size, above), dn.Simulation(seed)), range(size), 1_000_000, seed=seed)
    assert found.lower > 1
    honest = search(Batches(dn.GRR(size, 1), dn.Simulation(seed)), range(size), 1_000_000, seed=seed)
    assert honest.lower <= 1


@pytest.mark.slow
def test_the_bound_is_wrong_as_rarely_as_it_says() -> None:
    """400 audits of clients of exactly epsilon: at most 8 percent above it (5 percent and Monte-Carlo error)."""
    over = 0
    for seed in range(400):
        protocol = [dn.GRR(2, 1), dn.GRR(4, 1), dn.OUE(4, 1), dn.SubsetSelection(6, 1)][seed % 4]
        found = search(Batches(protocol, dn.Simulation(seed)), range(protocol.domain.size), 1000, seed=seed)
        over += found.lower > protocol.realized_epsilon
    assert over <= 32


def test_bounds_of_a_ratio_by_hand() -> None:
    """Never below ln of Clopper and Pearson's: of 1,000 and 0 of 1,000 at 1/40 each, 0.9963 over 0.0037."""
    assert lower_bound(1000, 0, 1000, 0.05) >= math.log(0.025**0.001 / (1 - 0.025**0.001)) - 1e-9
    assert lower_bound(0, 5, 1000, 0.05) == -math.inf
    # Two standard errors of 0.0132 and 0.0254 are not added but joined: 1.645 of 0.0286 are lost instead of 0.0755.
    assert lower_bound(3655, 1345, 10_000, 0.05) == pytest.approx(math.log(3655 / 1345) - 0.047, abs=0.005)


def test_both_ways_together_are_bounded_exactly() -> None:
    """Two inputs that are told apart differently: what is wrong is the sum of a trinomial's tails, without samples."""
    from scipy.stats import binom

    speaks = {"own": (0.30, 0.24), "against": (0.06, 0.16)}  # of the first input, of the second
    towards, against = (sum(both) / 2 for both in speaks.values())
    trials, alpha, odds = 60, 0.05, math.log(towards / against)
    wrong = sum(
        binom.pmf(said, trials, towards + against) * binom.pmf(right, said, towards / (towards + against))
        for said in range(trials + 1)
        for right in range(said + 1)
        if lower_bound_of_odds(right, said - right, alpha) > odds
    )
    assert 0.01 < wrong <= alpha
    # The epsilon of such a client is that of the better event, so that the mixture is never above it.
    assert odds <= max(math.log(0.30 / 0.16), math.log(0.24 / 0.06))


def test_the_bound_of_a_ratio_covers_exactly() -> None:
    """Of all pairs of counts of ten those with a bound above ln(p / q) have 5 percent together, at most."""
    n, counts = 10, np.arange(11)
    bounds = np.array([[lower_bound(a, b, n, 0.05) for b in counts] for a in counts])
    ways = np.array([math.comb(n, count) for count in counts])
    worst = 0.0
    for q in np.linspace(0.02, 0.98, 25):
        for epsilon in np.linspace(0, 4, 33):
            p = q * math.exp(epsilon)
            if p <= 1:
                own, other = (ways * x**counts * (1 - x) ** (n - counts) for x in (p, q))
                worst = max(worst, float((own[:, None] * other * (bounds > epsilon)).sum()))
    assert 0.02 < worst <= 0.05


def test_what_cannot_be_audited_is_refused() -> None:
    with pytest.raises(SpecError, match="needs the claimed epsilon"):
        audit(lambda value: value)
    with pytest.raises(SpecError, match="not int"):
        audit(7, 1, inputs=[0, 1])
    with pytest.raises(ReportError, match="returns bytes"):
        audit(lambda value: object(), 1, inputs=[0, 1], processes=False)
    assert Function(lambda value: [b"a", b"bc"]).sample(0, 1) == [b"\x01\0\0\0a\x02\0\0\0bc"]


def test_a_survey_is_the_sum_of_its_questions() -> None:
    smoke = dn.Question("smoke", "Do you smoke?", dn.GRR(["yes", "no"], epsilon=1))
    drink = dn.Question("drink", "How often?", dn.OUE(["never", "weekly", "daily"], epsilon="1/2"))
    found = audit(dn.Survey("habits", [smoke, drink]), seed=1)
    assert found.verdict == "cleared"
    assert found.exact == pytest.approx(1.5, abs=1e-9)
    assert [part.subject.split(":")[0] for part in found.parts] == ["smoke", "drink"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "verdict"),
    [
        (dn.BLH(50, 1), "undecided"),
        (dn.OLH(50, 1), "undecided"),
        (dn.OLH(50, 2), "undecided"),
        (dn.OUE(50, 1), "cleared"),
        (dn.SubsetSelection(50, 1), "cleared"),
        (dn.GRR(100, 4), "cleared"),
    ],
    ids=str,
)
def test_only_an_audit_that_sees_all_inputs_clears(protocol: dn.Protocol, verdict: str) -> None:
    from deniable.audit.verdict import _judged

    size = protocol.domain.size
    found = search(Batches(protocol, dn.Simulation(3)), range(size), 20_000, seed=3)
    assert _judged("client", protocol.epsilon, found, 20_000, 0.95, size).verdict == verdict


class _Points(dn.Ranges):
    """Says by its group whether the answer is small; all else is inherited."""

    def draw(self, value, bits):
        sent = super().draw(value, bits)
        return bytes([0]) + sent[1:] if value == 0 else sent


class _Tells(dn.Ranges):
    """Asks a group about another answer than it has."""

    def project(self, value, group):
        return 99 if value == 0 else super().project(value, group)


def test_groups_are_judged_one_by_one(monkeypatch) -> None:
    levels = dn.Ranges(dn.Integers(0, 8), 1, fanout=3)
    whole = AUDIT._followed

    def large(protocol, answers):
        if isinstance(protocol, dn.Ranges):
            raise TooManyRuns("a tree of many levels")
        return whole(protocol, answers)

    monkeypatch.setattr(AUDIT, "_followed", large)
    found = audit(levels, samples=500)
    assert (found.verdict, found.method) == ("cleared", "structure")
    assert found.exact == pytest.approx(levels.realized_epsilon)
    assert any("groups: the report begins with the number of one" in note for note in found.notes)
    # Each group is about the whole claim: at twice the epsilon one of them is above it.
    assert audit(levels, epsilon="1/2", samples=500).verdict == "violated"
    for liar in (_Points, _Tells):
        lying = liar(dn.Integers(0, 8), 1, fanout=3)
        assert audit(lying, samples=500).verdict != "cleared"


def test_strata_are_judged_by_what_is_sent_beside_them() -> None:
    grouped = dn.Stratified({"country": ["A", "B", "C", "D"]}, dn.OUE(40, 1), "answer")
    found = audit(grouped, samples=500)
    assert found.verdict == "cleared"
    assert found.exact == pytest.approx(1)
    assert any("sent in clear: country" in note for note in found.notes)


# -- answers that the code does not look at ------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "stand_for_all"),
    [(kind(16, 1), 3) for kind in (dn.OUE, dn.SUE, dn.BLH, dn.OLH)] + [(dn.LOSUE(16, first="1/2", forever=1), 3)],
    ids=lambda one: getattr(one, "name", ""),
)
def test_some_hidden_answers_stand_for_all(protocol: dn.Protocol, stand_for_all: int) -> None:
    hidden = [follow(partial(protocol.draw, Hidden(value, 16))) for value in range(stand_for_all)]
    known = [follow(partial(protocol.draw, value)) for value in range(16)]
    assert largest_ratio_of_hidden(hidden).ratio == largest_ratio(known).ratio == protocol.ratio
    # Whatever stands for all: a hidden number has the law of the number itself.
    other = follow(partial(protocol.draw, Hidden(13, 16)))
    assert largest_ratio([other, known[13]]).ratio == 1


HALF, THIRD = Dyadic(1 << 63), Dyadic((1 << 64) // 3)


def _one_lane_differs(value, bits):
    return ((bits.lanes(THIRD, 16) ^ bits.lanes(THIRD, 1) << 7) | 1 << value).to_bytes(2, "little")


def _lane_is_looked_at(value, bits):
    row = bits.lanes(THIRD, 16)
    return (row | 1 << value).to_bytes(2, "little") if row & 1 else row.to_bytes(2, "little")


def _changed_afterwards(value, bits):
    before = bits.lanes(THIRD, 16)
    return ((before | 1 << value) & (before | 8)).to_bytes(2, "little")


def _sent_in_part(value, bits):
    return (bits.lanes(THIRD, 16) | 1 << value).to_bytes(2, "little")[:1]


def _flat_at_times(value, bits):
    row = bits.lanes(THIRD, 16)
    return (row | 1 << value if bits.bernoulli(HALF) else row | 3).to_bytes(2, "little")


def _row_is_not_sent(value, bits):
    row = bits.integers(16)
    return ((row & value).bit_count() & 1 | row << 1 & 14).to_bytes(1, "little")


def _row_is_known_at_times(value, bits):
    row = bits.integers(16)
    if bits.bernoulli(HALF):
        return ((row & value).bit_count() & 1 | row << 1).to_bytes(1, "little")
    return (bits.integers(2) | 6).to_bytes(1, "little")


def _two_coins_in_one(value, bits):
    row = bits.integers(16)
    return ((row & value).bit_count() & 1 ^ row & 1 | row << 1).to_bytes(1, "little")


def _special(value, bits):
    return b"\1" if value == 5 else b"\0"


def _asks_for_its_kind(value, bits):
    return bytes([isinstance(value, int) and value == 5])


def _indexed(value, bits):
    return bytes([list(range(16))[value]])


def _not_used(value, bits):
    return bits.integers(2).to_bytes(1, "little")


@pytest.mark.parametrize(
    "code",
    [
        *(_one_lane_differs, _lane_is_looked_at, _changed_afterwards, _sent_in_part, _flat_at_times, _row_is_not_sent),
        *(_row_is_known_at_times, _two_coins_in_one, _special, _asks_for_its_kind, _indexed, _not_used),
    ],
    ids=lambda code: code.__name__,
)
def test_code_that_treats_answers_differently_has_no_answer_that_stands_for_all(code) -> None:
    with pytest.raises(TooManyRuns):
        largest_ratio_of_hidden([follow(partial(code, Hidden(value, 16))) for value in range(3)])


class _Secret(dn.HCMS):
    """Sends the cell of one word as it is."""

    def _one_text(self, text, cohort, bits):  # type: ignore[no-untyped-def]
        if isinstance(text, str) and text == "secret":
            return bytes(self.inner.report_bytes)
        return super()._one_text(text, cohort, bits)


class _Longer(dn.RAPPOR):
    """Has another noise for long texts."""

    def _one_text(self, text, cohort, bits):  # type: ignore[no-untyped-def]
        return dn.RAPPOR(self.domain, 2)._one_text(text, cohort, bits) if len(text) > 3 else b"\0" * 16


class _Ordered(dn.RAPPOR):
    """Of the bits of a filter the first one is hardly flipped."""

    def _one_text(self, text, cohort, bits):  # type: ignore[no-untyped-def]
        row = bits.lanes(self.flip, self.bloom_bits)
        for number, place in enumerate(self.positions(text, cohort)):
            row |= 1 << place
            if not bits.bernoulli(self.flip.complement) and (number or not bits.bernoulli(self.flip.complement)):
                row ^= 1 << place
        return row.to_bytes(-(-self.bloom_bits // 8), "little")


TEXT = {
    "CMS": dn.CMS(dn.Strings(cells=256), 1),
    "HCMS": dn.HCMS(dn.Strings(), 1),
    "OLH": dn.OLHSketch(dn.Strings(), 1),
    "RAPPOR": dn.RAPPOR(dn.Strings(), 1),
    "hash and response in two stages": dn.LOLOHA(dn.Strings(cells=4), first="1/2", forever=1),
    "RAPPOR in two stages": dn.RAPPOR(dn.Strings(), first="1/2", forever=1, cohorts=2),
    "discovery": dn.HeavyHitters(dn.BitStrings(64), 1),
}


@pytest.mark.parametrize("protocol", TEXT.values(), ids=TEXT)
def test_answers_that_cannot_be_listed_are_hidden_from_the_code(protocol: dn.Protocol) -> None:
    found = audit(protocol, seed=1)
    assert (found.verdict, found.method) == ("cleared", "structure"), found
    assert found.exact == pytest.approx(float(protocol.epsilon), abs=1e-9)
    assert any("holds for every answer" in note for note in found.notes)
    assert dn.privacy.compose(protocol).epsilon == protocol.epsilon


def test_code_that_looks_at_a_text_is_judged_for_some_texts_only() -> None:
    found = audit(_Secret(dn.Strings(cells=64, cohorts=2), 1), seed=1)
    assert (found.verdict, found.exact) == ("cleared", None)  # the word is not among those that were tried
    assert any("64 answers were looked at; the others were not" in note for note in found.notes)
    assert audit(_Longer(dn.Strings(), 1, cohorts=1), seed=1).verdict == "violated"
    assert audit(_Ordered(dn.Strings(), 1, cohorts=1), seed=1).verdict == "violated"
