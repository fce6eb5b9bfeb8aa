"""Laws that are known up to a distance: the worst pair is found exactly, and the certificate notices any other."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from deniable import errors
from deniable.channels import divergence, marginal_divergence
from deniable.design import Certificate, extremal, family, least_favourable, robust
from tests.design.instances import KINDS, STYLES, random_pair

pytestmark = pytest.mark.floats

P0, P1 = [0.4, 0.25, 0.15, 0.12, 0.08], [0.1, 0.12, 0.2, 0.23, 0.35]


def failing(certificate):
    return [check.name for check in certificate.verify().checks if not check.holds]


def radii_of(rng, p0, p1):
    """Two radii whose balls do not meet; now and then one of them is zero."""
    apart = divergence([float(p) for p in p0], [float(p) for p in p1], "tv")
    return [Fraction(int(1000 * apart * rng.uniform(0, 0.45) * (rng.random() < 0.8)), 1000) for _ in range(2)]


@pytest.mark.parametrize("style", STYLES)
def test_certificates_verify_from_their_content(style):
    # "zeros" and radii of zero include symbols that the least favourable pair loses altogether.
    rng = np.random.default_rng(STYLES.index(style))
    for number in range(12):
        p0, p1 = random_pair(rng, int(rng.integers(2, 9)), style)
        design = robust(p0, p1, float(rng.choice([0.1, 1, 4])), radii_of(rng, p0, p1), KINDS[number % len(KINDS)])
        loaded = Certificate.load(design.certificate.spec())
        assert loaded.verify(), str(loaded.verify())
        assert loaded.value <= loaded.bound <= loaded.value * (1 + 1e-9) + 1e-300
        assert design.channel.satisfies(design.epsilon)


def test_a_symbol_that_the_hardest_pair_loses_stays_on_its_side():
    # P1 excludes the last symbol, and P0 loses all of it; other pairs in the ball still have it.
    p0, p1 = [0.0665, 0.268, 0.5742, 0.0913], [0.1628, 0.8371, 0.0001, 0]
    design = robust(p0, p1, 3, ("0.344", 0), "chi2")
    hardest = least_favourable(p0, p1, ("0.344", 0))
    assert hardest[0][3] == hardest[1][3] == 0
    assert design.law.block[3] == design.law.outputs - 1
    assert design.certificate.verify()


@pytest.mark.parametrize("kind", KINDS)
def test_no_pair_in_the_balls_is_worse_and_no_mechanism_is_better(kind):
    # A claim of 1.001 times the value would fail on the least favourable pair itself, which is one of the pairs.
    rng = np.random.default_rng(5)
    radius = 0.08
    design = robust(P0, P1, 2, radius, kind)
    hardest = least_favourable(P0, P1, radius)
    assert marginal_divergence(design.channel, *hardest, kind) == pytest.approx(design.value, rel=1e-9)
    for _ in range(300):
        pair = [np.array(law) + _within(rng, law, radius) for law in (P0, P1)]
        assert marginal_divergence(design.channel, *pair, kind) >= design.value * (1 - 1e-12)
    # The finite family of the centres and the least favourable pair lies in the balls: its bound is one here, too.
    both = family([(P0, P1), hardest], 2, kind)
    assert design.value <= both.bound * (1 + 1e-9)
    assert both.value == pytest.approx(design.value, rel=1e-8)


def _within(rng, law, radius):
    """A change of a law that moves at most `radius`, and leaves it a law."""
    out_of, into = rng.dirichlet(np.full(len(law), 0.3), 2)
    taken = np.minimum(radius * out_of, law)
    return into * taken.sum() - taken


def test_the_design_for_the_centres_loses_in_the_worst_case():
    p0, p1 = [0.5, 0.3, 0.2], [0.82, 0.03, 0.15]
    hardest = least_favourable(p0, p1, "0.1")
    design = robust(p0, p1, 2, "0.1")
    naive = extremal(p0, p1, 2)
    assert marginal_divergence(naive.channel, *hardest) < 0.8 * design.value
    assert naive.law.block != design.law.block


def test_the_least_favourable_pair_is_cut_off_at_both_ends():
    radius = Fraction(1, 20)
    q0, q1 = least_favourable(P0, P1, radius)
    assert sum(q0) == sum(q1) == 1
    for law, moved in ((P0, q0), (P1, q1)):
        assert sum(abs(Fraction(str(p)) - q) for p, q in zip(law, moved, strict=True)) / 2 == radius
    before = [Fraction(str(a)) / Fraction(str(b)) for a, b in zip(P0, P1, strict=True)]
    after = [a / b for a, b in zip(q0, q1, strict=True)]
    low, high = min(after), max(after)
    assert after == [min(max(ratio, low), high) for ratio in before]
    assert low < 1 < high


def test_without_a_radius_it_is_the_extremal_mechanism():
    assert robust(P0, P1, 1, 0).law == extremal(P0, P1, 1).law
    assert robust(P0, P1, 1, 0).value == extremal(P0, P1, 1).value


def test_balls_that_meet_leave_nothing_to_tell():
    design = robust([0.6, 0.4], [0.4, 0.6], 1, ("0.15", "0.05"))
    assert (design.value, design.bound, design.outputs) == (0, 0, 1)
    assert design.certificate.verify()
    q0, q1 = least_favourable([0.6, 0.4], [0.4, 0.6], ("0.15", "0.05"))
    assert q0 == q1 == [Fraction(9, 20), Fraction(11, 20)]


def test_false_claims_fail():
    good = robust(P0, P1, 1, "0.05").certificate
    assert failing(good) == []
    centres = extremal(P0, P1, 1).certificate
    # The certificate of the centres bounds nothing smaller, and it is not about the worst pair.
    assert failing(replace(good, worst=centres, value=centres.value, bound=centres.bound)) == ["worst pair"]
    assert failing(replace(good, radii=(Fraction(1, 25), Fraction(1, 20)))) == ["balls", "worst pair"]
    assert failing(replace(good, radii=(Fraction(1, 20), Fraction(3, 50)))) == ["worst pair"]
    assert failing(replace(good, value=good.value * 1.01)) == ["claim"]
    assert failing(replace(good, bound=good.bound * 0.99)) == ["claim"]
    leaky = replace(good.worst, epsilon=Fraction(9, 10))
    assert "ratios" in failing(replace(good, worst=leaky))


def test_many_symbols():
    rng = np.random.default_rng(3)
    p0, p1 = rng.dirichlet(np.ones(400), 2)
    design = robust(p0, p1, 2, "0.03")
    assert design.relative_gap < 1e-9
    assert design.certificate.verify()
    assert design.value < extremal(p0, p1, 2).value


def test_names_and_refusals():
    design = robust({"yes": 0.8, "no": 0.2}, {"no": 0.7, "yes": 0.3}, 1, "0.1")
    assert design.channel.inputs == ("yes", "no")
    assert "robust extremal (kl)" in str(design)
    with pytest.raises(errors.NumberError, match="from 0 to 1"):
        robust(P0, P1, 1, "1.5")
    with pytest.raises(errors.NumberError, match="one radius, or two"):
        robust(P0, P1, 1, (0, 0, 0))
    spec = design.certificate.spec()
    with pytest.raises(errors.SpecError, match="extremal mechanism"):
        Certificate.load(spec | {"worst": family([([0.5, 0.5], [0.2, 0.8])], 1).certificate.spec()})
