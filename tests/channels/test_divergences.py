"""f-divergences: closed forms, limits, accuracy, inequalities, and what a bad generator is told."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st

from deniable.channels import Channel, binary, randomized_response
from deniable.channels.divergences import (
    DIVERGENCES,
    FDivergence,
    divergence,
    find_divergence,
    marginal_divergence,
    marginals,
)
from deniable.errors import LabelError, NumberError, ProbabilityError, ShapeError

pytestmark = pytest.mark.floats

NAMES = ["kl", "reverse-kl", "tv", "chi2", "hellinger2", "js"]

# The textbook terms, in any arithmetic: the implementation uses other forms.
TEXTBOOK = {
    "kl": lambda p, q: p * mpmath.log(p / q),
    "reverse-kl": lambda p, q: q * mpmath.log(q / p),
    "tv": lambda p, q: abs(p - q) / 2,
    "chi2": lambda p, q: (p - q) ** 2 / q,
    "hellinger2": lambda p, q: (mpmath.sqrt(p) - mpmath.sqrt(q)) ** 2 / 2,
    "js": lambda p, q: (p * mpmath.log(2 * p / (p + q)) + q * mpmath.log(2 * q / (p + q))) / 2,
}


def exact(p, q, name):
    """The divergence of these very floats (divided by their sums), to 50 digits."""
    with mpmath.workdps(50):
        first, second = [mpmath.mpf(float(x)) for x in p], [mpmath.mpf(float(x)) for x in q]
        first = [x / mpmath.fsum(first) for x in first]
        second = [x / mpmath.fsum(second) for x in second]
        return mpmath.fsum(TEXTBOOK[name](a, b) for a, b in zip(first, second, strict=True))


def laws(size: int, least: float = 1e-3):
    return st.lists(st.floats(least, 1.0), min_size=size, max_size=size).map(lambda v: np.array(v) / sum(v))


PAIRS = st.integers(2, 6).flatmap(lambda k: st.tuples(laws(k), laws(k)))


def test_the_names_are_the_promised_ones():
    assert list(DIVERGENCES) == NAMES
    for built_in in DIVERGENCES.values():
        built_in.check()  # what a user's own has to pass
    assert all(find_divergence(name).name == name for name in NAMES)
    assert find_divergence(DIVERGENCES["js"]) is DIVERGENCES["js"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kl", math.log(3) / 2),
        ("reverse-kl", math.log(3) / 2),
        ("tv", 0.5),
        ("chi2", 4 / 3),
        ("hellinger2", 1 - math.sqrt(3) / 2),
        ("js", 0.75 * math.log(1.5) + 0.25 * math.log(0.5)),
    ],
)
def test_closed_forms_for_a_biased_coin(name, value):
    assert divergence([0.75, 0.25], [0.25, 0.75], name) == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize("name", NAMES)
@given(pair=PAIRS)
def test_textbook_value(name, pair):
    p, q = pair
    reference = exact(p, q, name)
    assert divergence(p, q, name) == pytest.approx(float(reference), rel=1e-9, abs=1e-28)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("apart", [1e-10, 1e-9, 1e-7, 1e-4, 1e-2])
def test_accuracy_when_the_laws_nearly_agree(name, apart):
    # Steps of a power of two: the floats are exactly this far apart and their sums are exactly one.
    step = 2.0 ** round(math.log2(apart))
    p, q = [0.1875 + step, 0.3125 - step, 0.5], [0.1875, 0.3125, 0.5]
    reference = float(exact(p, q, name))
    assert divergence(p, q, name) == pytest.approx(reference, rel=1e-13)


def test_the_naive_sum_would_not_pass_the_accuracy_test():
    step = 2.0**-30
    p, q = np.array([0.1875 + step, 0.3125 - step, 0.5]), np.array([0.1875, 0.3125, 0.5])
    naive = float(np.sum(p * np.log(p / q)))
    assert abs(naive / float(exact(p, q, "kl")) - 1) > 1e-3


@pytest.mark.parametrize("name", [name for name in NAMES if name != "tv"])
def test_local_expansion_is_half_the_second_derivative_times_chi2(name):
    p, q = np.array([0.3 + 1e-6, 0.3 - 1e-6, 0.4]), np.array([0.3, 0.3, 0.4])
    second = DIVERGENCES[name].second
    assert second is not None
    assert divergence(p, q, name) == pytest.approx(second / 2 * divergence(p, q, "chi2"), rel=1e-5)


def test_zeros():
    p, q = [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]
    assert divergence(p, q, "kl") == math.inf
    assert divergence(p, q, "reverse-kl") == math.inf
    assert divergence(p, q, "chi2") == math.inf
    assert divergence(p, q, "tv") == pytest.approx(0.5)
    assert divergence(p, q, "hellinger2") == pytest.approx(0.5)
    assert divergence(p, q, "js") == pytest.approx(math.log(2) / 2)
    # One side only: a value that q allows and p does not costs KL nothing.
    assert divergence([1, 0], [0.5, 0.5], "kl") == pytest.approx(math.log(2))
    assert divergence([1, 0], [0.5, 0.5], "chi2") == pytest.approx(1)
    assert divergence([1, 0], [0.5, 0.5], "reverse-kl") == math.inf
    # Impossible under both laws: no contribution.
    assert divergence([0.75, 0.25, 0], [0.25, 0.75, 0], "kl") == pytest.approx(math.log(3) / 2)


@pytest.mark.parametrize(("name", "largest"), [("tv", 1), ("hellinger2", 1), ("js", math.log(2))])
def test_disjoint_laws_reach_the_largest_value(name, largest):
    assert divergence([1, 0], [0, 1], name) == pytest.approx(largest)


def test_tiny_probabilities_do_not_overflow():
    p, q = [0.3, 0.5, 0.2], [5e-324, 0.8, 0.2]
    reference = 0.3 * (math.log(0.3) - math.log(5e-324)) + 0.5 * math.log(0.5 / 0.8)
    assert divergence(p, q, "kl") == pytest.approx(reference, rel=1e-12)
    assert divergence([0.5, 0.5], [1e-200, 1 - 1e-200], "chi2") == pytest.approx(2.5e199)


@given(pair=PAIRS)
def test_inequalities_between_divergences(pair):
    p, q = pair
    d = {name: divergence(p, q, name) for name in NAMES}
    slack = 1e-12
    assert 2 * d["tv"] ** 2 <= d["kl"] + slack  # Pinsker
    assert d["tv"] <= math.sqrt(1 - math.exp(-d["kl"])) + slack  # Bretagnolle and Huber
    assert d["kl"] <= math.log1p(d["chi2"]) + slack
    assert d["hellinger2"] <= d["tv"] + slack
    assert d["tv"] <= math.sqrt(d["hellinger2"] * (2 - d["hellinger2"])) + slack
    assert 2 * d["hellinger2"] <= d["kl"] + slack
    assert d["js"] <= d["tv"] * math.log(2) + slack
    assert d["kl"] == pytest.approx(divergence(q, p, "reverse-kl"), rel=1e-12, abs=1e-30)
    assert all(value >= 0 for value in d.values())


@given(pair=PAIRS, seed=st.integers(0, 2**32 - 1))
def test_data_processing(pair, seed):
    p, q = pair
    matrix = np.random.default_rng(seed).dirichlet(np.ones(4), size=p.size)
    for name in NAMES:
        before, after = divergence(p, q, name), divergence(p @ matrix, q @ matrix, name)
        assert after <= before * (1 + 1e-9) + 1e-15
    # Power: splitting outputs by a law that depends on the hypothesis is no post-processing, and gains; not in total
    # variation, where the ratios were beyond the split's already.
    split = np.concatenate([p * 0.9, p * 0.1]), np.concatenate([q * 0.1, q * 0.9])
    gains = {name: divergence(*split, name) > divergence(p, q, name) * (1 + 1e-9) for name in NAMES}
    assert all(gained for name, gained in gains.items() if name != "tv")


@given(pair=PAIRS, epsilon=st.floats(0.01, 3), seed=st.integers(0, 2**32 - 1))
def test_an_epsilon_private_channel_leaves_little(pair, epsilon, seed):
    """Duchi, Jordan and Wainwright: KL + reverse KL <= min(4, e^2eps) (e^eps - 1)^2 TV^2."""
    p, q = pair
    rng = np.random.default_rng(seed)
    staircase = np.exp(epsilon * rng.integers(0, 2, size=(p.size, 3)))
    scale = staircase.sum(axis=1).max()
    rows = np.column_stack([staircase / scale, 1 - staircase.sum(axis=1) / scale])
    last = rows[:, -1]
    if (last.min() == 0 and last.max() > 0) or last.max() > np.exp(epsilon) * last.min():
        rows = randomized_response(p.size, epsilon).rows
    both = divergence(p @ rows, q @ rows, "kl") + divergence(p @ rows, q @ rows, "reverse-kl")
    bound = min(4, math.exp(2 * epsilon)) * math.expm1(epsilon) ** 2 * divergence(p, q, "tv") ** 2
    assert both <= bound * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize("name", NAMES)
def test_generators_are_vectorised_centred_and_dual(name):
    f = DIVERGENCES[name]
    u = np.linspace(0.01, 5, 300).reshape(3, 100)
    value, slope = f.value(u), f.derivative(u)
    assert value.shape == slope.shape == u.shape
    np.testing.assert_allclose(value + f.conjugate(slope), u * slope, atol=1e-12)
    one = np.ones(1)
    assert f.value(one)[0] == 0
    assert f.derivative(one)[0] == 0
    # The conjugate is the supremum, on a fine grid.
    t = np.linspace(-3, min(f.slope, 2.0) - 0.05, 40)
    grid = np.concatenate([[0.0], np.geomspace(1e-6, 1e3, 40_000)])
    at = f.value(grid)
    at[0] = f.at_zero
    supremum = (t[:, None] * grid - at).max(axis=1)
    np.testing.assert_allclose(f.conjugate(t), supremum, atol=2e-6)


@pytest.mark.parametrize("name", ["reverse-kl", "tv", "hellinger2", "js"])
def test_the_conjugate_is_infinite_past_the_slope_at_infinity(name):
    f = DIVERGENCES[name]
    assert f.conjugate(np.array([f.slope + 1e-6]))[0] == math.inf


@pytest.mark.parametrize("name", NAMES)
def test_terms_add_up_and_scale(name):
    f = DIVERGENCES[name]
    p, q = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.3, 0.1])
    assert f.terms(p, q).sum() == pytest.approx(divergence(p, q, name))
    np.testing.assert_allclose(f.terms(7 * p, 7 * q), 7 * f.terms(p, q))
    np.testing.assert_allclose(f.terms(p, q), q * f.value(p / q), atol=1e-15)


def alpha_divergence(**changes):
    """f(u) = (u^3 - 3u + 2) / 6, which the package does not know."""
    parts = {
        "name": "cubic",
        "value": lambda u: (u**3 - 3 * u + 2) / 6,
        "derivative": lambda u: (u**2 - 1) / 2,
        "conjugate": lambda t: np.where(t > -0.5, ((1 + 2 * np.maximum(t, -0.5)) ** 1.5 - 1) / 3, -1 / 3),
        "at_zero": 1 / 3,
        "slope": math.inf,
        "second": 1.0,
    }
    return FDivergence(**(parts | changes))


@given(pair=PAIRS)
def test_a_divergence_of_your_own(pair):
    p, q = pair
    reference = float(np.sum(q * ((p / q) ** 3 - 3 * p / q + 2) / 6))
    assert divergence(p, q, alpha_divergence()) == pytest.approx(reference, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("apart", [1e-10, 1e-8, 1e-6, 1e-4, 1e-3])
def test_your_own_divergence_is_accurate_too(apart):
    step = 2.0 ** round(math.log2(apart))
    p, q = [0.1875 + step, 0.3125 - step, 0.5], [0.1875, 0.3125, 0.5]
    with mpmath.workdps(50):
        ratios = [mpmath.mpf(a) / mpmath.mpf(b) for a, b in zip(p, q, strict=True)]
        reference = sum(b * (u**3 - 3 * u + 2) / 6 for u, b in zip(ratios, q, strict=True))
    assert divergence(p, q, alpha_divergence()) == pytest.approx(float(reference), rel=2e-6)


def test_a_tilted_generator_gives_the_same_divergence():
    tilted = FDivergence(
        "kl-textbook",
        lambda u: u * np.log(u),
        lambda u: np.log(u) + 1,
        lambda t: np.exp(t - 1),
        at_zero=0.0,
        slope=math.inf,
    )
    for p, q in [([0.2, 0.8], [0.7, 0.3]), ([0, 1], [0.5, 0.5]), ([0.5 + 2**-30, 0.5 - 2**-30], [0.5, 0.5])]:
        assert divergence(p, q, tilted) == pytest.approx(divergence(p, q, "kl"), rel=1e-6)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"value": lambda u: (u**3 - 3 * u + 3) / 6}, r"f\(1\) is 0.1666"),
        ({"value": lambda u: -((u - 1) ** 2), "derivative": lambda u: -2 * (u - 1)}, "not convex"),
        ({"derivative": lambda u: (u**2 - 1) / 3}, "not its derivative"),
        ({"conjugate": lambda t: t + t**2 / 4}, "correct the conjugate"),
        ({"conjugate": lambda t: np.full_like(t, np.nan)}, "correct the conjugate"),
        ({"at_zero": 0.2}, "at_zero says 0.2"),
        ({"at_zero": 0.5}, "at_zero says 0.5"),
        ({"at_zero": math.inf}, "at_zero says inf"),
        ({"slope": 1e4}, "slope says 10000"),
        ({"second": 2.0}, r"f''\(1\) is about 1,"),
        ({"precise": lambda p, q: (p - q) ** 2}, "precise"),
        ({"value": lambda u: np.log(u - 0.5)}, "finite"),
        ({"value": lambda u: u[:3]}, "same shape"),
    ],
)
def test_a_broken_generator_is_refused(changes, complaint):
    alpha_divergence()
    with pytest.raises(NumberError, match=complaint):
        alpha_divergence(**changes)


def test_refusals():
    with pytest.raises(LabelError, match="'euclid' is not a divergence: use one of kl"):
        divergence([1], [1], "euclid")
    with pytest.raises(ShapeError):
        divergence([0.5, 0.5], [1.0])
    with pytest.raises(ProbabilityError):
        divergence([0.5, 0.6], [0.5, 0.5])
    with pytest.raises(ProbabilityError):
        divergence([1.5, -0.5], [0.5, 0.5])


def test_through_a_channel():
    p0, p1 = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]
    channel = randomized_response(3, 1)
    m0, m1 = marginals(channel, p0, p1)
    np.testing.assert_allclose(m0, np.array(p0) @ channel.rows)
    for name in NAMES:
        assert marginal_divergence(channel, p0, p1, name) == pytest.approx(divergence(m0, m1, name))
        assert marginal_divergence(channel, p0, p1, name) < divergence(p0, p1, name)
    nothing = Channel([[0.5, 0.5]] * 3)
    assert marginal_divergence(nothing, p0, p1) == 0


def test_binary_mechanism_keeps_tanh_half_epsilon_of_the_total_variation():
    p0, p1 = [0.5, 0.3, 0.2], [0.2, 0.35, 0.45]
    for epsilon in (0.01, 0.5, 2.0):
        kept = marginal_divergence(binary(p0, p1, epsilon), p0, p1, "tv")
        assert kept == pytest.approx(math.tanh(epsilon / 2) * divergence(p0, p1, "tv"), rel=1e-9)
