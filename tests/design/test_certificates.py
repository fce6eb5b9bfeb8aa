"""Certificates: they verify from a file, and every kind of false claim fails."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from deniable import errors
from deniable.design import (
    Certificate,
    ExtremalCertificate,
    bayes,
    extremal,
    family,
    mutual_information,
    partitions,
    robust,
    several,
    staircase,
)
from deniable.design.partitions import _column, _tangent, context, proven_bound, proven_value
from deniable.design.staircase import Information
from deniable.design.tangents import Pair, Switches, curve_of, sweep
from deniable.exact import Dyadic
from tests.design.instances import KINDS, STYLES, random_pair

pytestmark = pytest.mark.floats


@pytest.fixture
def design():
    return extremal([0.4, 0.3, 0.2, 0.1], [0.1, 0.15, 0.25, 0.5], "1.5")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("style", STYLES)
def test_certificates_verify_from_a_file(tmp_path, kind, style):
    p0, p1 = random_pair(np.random.default_rng(8), 20, style)
    design = extremal(p0, p1, 2, kind)
    path = tmp_path / "proof.json"
    design.certificate.save(path)
    loaded = Certificate.load(path)
    verdict = loaded.verify()
    assert verdict, str(verdict)
    assert loaded.rigor == "proved"
    assert (loaded.value, loaded.bound) == (design.value, design.bound)
    assert loaded.value <= loaded.bound <= loaded.value * (1 + 1e-9)


def failing(certificate):
    return [check.name for check in certificate.verify().checks if not check.holds]


def test_false_claims_fail(design):
    good = design.certificate
    assert failing(good) == []
    assert failing(replace(good, value=good.value * 1.0001)) == ["value"]
    assert failing(replace(good, value=good.value * 0.999)) == ["value"]
    assert failing(replace(good, bound=good.bound * (1 - 1e-11))) == ["bound"]
    lower = tuple(m - 1e-4 for m in good.multipliers)
    assert failing(replace(good, multipliers=lower)) == ["bound"]
    assert failing(replace(good, epsilon=Fraction(14, 10))) == ["ratios"]
    leaky = replace(good.law, keep=Dyadic(good.law.keep.numerator + 1))
    assert "ratios" in failing(replace(good, law=leaky))
    swapped = replace(good.law, block=(1, 0, 1, 0))
    assert failing(replace(good, law=swapped)) == ["value"]
    assert "rows" in failing(replace(good, multipliers=good.multipliers[:-1]))
    certain = replace(good.law, keep=Dyadic(1 << 64))
    assert failing(replace(good, law=certain)) == ["rows", "ratios"]


def test_a_worse_mechanism_may_be_certified_but_shows_its_gap(design):
    good = design.certificate
    pooled = replace(good.law, block=(1, 1, 1, 0)) if good.law.outputs == 2 else good.law
    low, _ = proven_value("kl", pooled.push(good.pair.weights0), pooled.push(good.pair.weights1), good.epsilon)
    worse = replace(good, law=pooled, value=low)
    assert worse.verify()
    assert worse.relative_gap > 1e-3


def test_any_multipliers_give_a_valid_bound():
    # Random multipliers prove little, but what they prove is above the optimum, always.
    rng = np.random.default_rng(4)
    for kind in KINDS:
        p0, p1 = random_pair(rng, 7, "zeros")
        best = extremal(p0, p1, 1, kind)
        pair = Pair.read(p0, p1)
        for scale in (0.0, 0.1, 1.0, 1e60):
            prices = np.array(best.certificate.multipliers) + scale * best.value * rng.normal(size=7)
            assert proven_bound(kind, pair, prices, Fraction(1)) >= best.value


@pytest.mark.parametrize("kind", KINDS)
def test_the_sweep_finds_the_worst_of_all_columns(kind):
    rng = np.random.default_rng(6)
    bits = (np.arange(2**9)[:, None] >> np.arange(9)) & 1
    curve = curve_of(kind)
    for odds in (0.1, 3.0, 40.0):
        pair = Pair.read(*random_pair(rng, 9, "plain"))
        _, lower, gaps = pair.merged
        prices = rng.normal(size=9) * 0.05 * odds / (1 + odds)
        utility = curve.column(1 + odds * bits @ lower, odds * bits @ gaps)
        every = utility - (1 + odds * bits) @ prices
        found = sweep(lower, gaps, prices, odds, curve).largest
        # The flat column is left to the caller: it has no event.
        assert max(found, -prices.sum()) == pytest.approx(every.max(), rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_decimals_agree_with_floats_and_with_each_other(kind):
    curve = curve_of(kind)
    with localcontext(context(Fraction(2))):
        for a, b in ((1.5, 0.7), (0.4, 2.0), (1.0, 1.0001)):
            exact = _column(kind, Decimal(a), Decimal(b))
            assert float(exact) == pytest.approx(float(curve.column(np.array([b]), np.array([a - b]))[0]), rel=1e-10)
            # Every tangent lies below, and the right one touches.
            z = float(curve.tangent_to(np.array([b]), np.array([a - b]))[0])
            for shift in (-0.3, 0.0, 0.3):
                place = min(max(z + shift, -0.5), 0.5) if kind == "tv" else z + shift
                t, h = _tangent(kind, Decimal(place))
                gap = exact - (t * Decimal(a) + h * Decimal(b))
                assert gap >= Decimal("-1e-40")
                if shift == 0:
                    assert gap < Decimal("1e-15")


def test_a_certificate_names_its_inputs(tmp_path):
    named = extremal([0.5, 0.3, 0.2], [0.2, 0.2, 0.6], 1, inputs=["never", 3, True]).certificate
    named.save(tmp_path / "proof.json")
    content = json.loads((tmp_path / "proof.json").read_text())
    loaded = Certificate.load(content)
    assert loaded.inputs == ("never", 3, True)
    assert loaded == named
    assert loaded.verify()
    # Files that were written before, and designs without names, have none.
    old = {key: value for key, value in content.items() if key != "inputs"}
    assert Certificate.load(old).inputs is None
    assert Certificate.load(old).verify()
    assert "inputs" not in extremal([0.5, 0.5], [0.2, 0.8], 1).certificate.spec()
    assert not replace(named, inputs=("never", "once")).verify()
    for wrong in ("abc", ["a", "a", "b"], [{"kind": "?"}]):
        with pytest.raises(errors.DeniableError):
            Certificate.load({**content, "inputs": wrong})


def test_other_certificates_round_trip(tmp_path):
    p0, p1 = [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]
    designs = [
        staircase(p0, p1, 1, "js"),
        mutual_information([0.5, 0.3, 0.2], 2),
        family([(p0, p1), ([0.6, 0.2, 0.2], p1)], 1),
        family([(p0, p1), ([0.6, 0.2, 0.2], p1)], 1, goal="weighted", weights=[0.9, 0.1]),
    ]
    for number, design in enumerate(designs):
        path = tmp_path / f"{number}.json"
        design.certificate.save(path)
        loaded = Certificate.load(path)
        assert loaded.verify(), str(loaded.verify())
        assert not replace(loaded, bound=loaded.bound * (1 - 1e-6)).verify()
        assert not replace(loaded, value=loaded.value * 1.001).verify()
        assert not replace(loaded, multipliers=tuple(m * 0.99 for m in loaded.multipliers)).verify()
        assert not replace(loaded, epsilon=Fraction(1, 2)).verify()


def test_what_is_no_certificate(tmp_path, design):
    content = design.certificate.spec()
    for broken, words in (
        ({}, "format"),
        ({**content, "version": 2}, "version"),
        ({**content, "kind": "oracle"}, "unknown"),
        ({key: value for key, value in content.items() if key != "multipliers"}, "incomplete"),
        ({**content, "value": "many"}, "decimals"),
        ({**content, "divergence": "mine", "rigor": "numeric"}, "not built in"),
    ):
        path = tmp_path / "broken.json"
        path.write_text(json.dumps(broken))
        with pytest.raises(errors.SpecError, match=words):
            Certificate.load(path)
    path.write_text("hello")
    with pytest.raises(errors.SpecError, match="not JSON"):
        Certificate.load(path)
    assert isinstance(Certificate.load(content), ExtremalCertificate)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", ["0.1", 1, 5, 20])
def test_another_processor_proves_the_claim_too(kind, epsilon, monkeypatch):
    chance = np.random.default_rng(0)
    found = partitions.switches

    def rounded_otherwise(*given):
        """The ends of the proof's intervals, each moved by up to three floats."""
        intervals = found(*given)
        low, high = intervals.low.copy(), intervals.high.copy()
        for ends in (low, high):
            for _ in range(3):
                way = np.where(chance.random(ends.size) < 0.5, -np.inf, np.inf)
                ends[:] = np.where(chance.random(ends.size) < 0.7, np.nextafter(ends, way), ends)
        return Switches(intervals.on, low, high)

    for size in (3, 20):
        certificate = extremal(
            chance.dirichlet(np.ones(size)), chance.dirichlet(np.ones(size)), epsilon, kind
        ).certificate
        with monkeypatch.context() as other:
            other.setattr(partitions, "switches", rounded_otherwise)
            for _ in range(2):
                verdict = certificate.verify()
                assert verdict, str(verdict)


def test_a_staircase_claim_leaves_room_for_other_logarithms(monkeypatch):
    certificate = mutual_information([0.4, 0.3, 0.2, 0.1], 2).certificate
    table = Information.table
    for share in (1 - 3e-16, 1 + 3e-16):
        monkeypatch.setattr(Information, "table", lambda self, columns, share=share: table(self, columns) * share)
        assert certificate.verify()
    monkeypatch.setattr(Information, "table", lambda self, columns: table(self, columns) * (1 + 1e-9))
    assert not certificate.verify()


@pytest.mark.parametrize(
    "made",
    [
        lambda: extremal({"no": 0.5, "yes": 0.5}, {"no": 0.2, "yes": 0.8}, 1),
        lambda: staircase([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], 1),
        lambda: robust({"no": 0.5, "yes": 0.5}, {"no": 0.2, "yes": 0.8}, 1, "0.1"),
        lambda: several({"a": [0.5, 0.5], "b": [0.2, 0.8]}, 1),
        lambda: several([[0.5, 0.5], [0.2, 0.8]], 1, goal="chernoff"),
        lambda: bayes([0.5, 0.3, 0.2], epsilon=1),
    ],
    ids=["extremal", "staircase", "robust", "guess", "chernoff", "bayes"],
)
def test_a_saved_proof_holds_the_mechanism(made):
    design = made()
    found = Certificate.load(design.certificate.spec()).mechanism
    assert found.denominator == design.channel.denominator
    assert (found.numerators == design.channel.numerators).all()
    assert (found.inputs, found.outputs) == (design.channel.inputs, design.channel.outputs)
