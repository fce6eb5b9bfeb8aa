"""Exact numbers against mpmath's interval arithmetic, at ties, and with hostile input."""

from __future__ import annotations

import math
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from deniable import exact
from deniable.errors import EpsilonError, NumberError, ProbabilityError
from deniable.exact import WORD, Dyadic
from tests.memory import memory_below

# -- independent arithmetic ----------------------------------------------------------------------------


def _fraction(raw: tuple[int, int, int, int]) -> Fraction:
    sign, mantissa, exponent, _ = raw
    return (-1) ** sign * mantissa * Fraction(2) ** exponent


def interval(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """e^x enclosed by mpmath's intervals, far narrower than 2^-bits."""
    before = mpmath.iv.prec
    mpmath.iv.prec = 2 * bits + 2400
    try:
        low, high = mpmath.iv.exp(mpmath.iv.mpf(x.numerator) / mpmath.iv.mpf(x.denominator))._mpi_
    finally:
        mpmath.iv.prec = before
    return _fraction(low), _fraction(high)


PRECISIONS = [1, 2, 7, 53, 64, 128, 257, 1000]
EXPONENTS = [
    Fraction(1),
    Fraction(-1),
    Fraction(1, 3),
    Fraction(-22, 7),
    Fraction(1, 10**6),
    Fraction(-1, 10**6),
    Fraction(1, 10**40),
    Fraction(-1, 10**40),
    Fraction(3, 10**300),
    Fraction(64),
    Fraction(-64),
    Fraction(64) + Fraction(1, 10**9),
    Fraction(700),
    Fraction(-4096),
    Fraction(10**6, 7),
    Fraction(-(10**6), 7),
    Fraction("0.69314718055994530941723212145817656807550013436025525412068"),  # a hair from ln 2
]


@pytest.mark.parametrize("bits", PRECISIONS)
def test_bounds_enclose_what_mpmath_encloses(bits):
    for x in EXPONENTS:
        lower, upper = exact.exp_bounds(x, bits)
        low, high = interval(x, bits)
        assert lower < low <= high < upper, exact.shown(x)
        assert (upper - lower) * 2**bits <= lower, exact.shown(x)
        assert (exact.exp_floor(x, bits), exact.exp_ceil(x, bits)) == (lower, upper), exact.shown(x)


@pytest.mark.parametrize("bits", [16, 64, 128])
def test_bounds_enclose_where_nothing_is_rounded(bits):
    """For powers of two the first terms are exact, and only the bound of the remainder lifts the upper end."""
    for power in range(1, 120):
        x = Fraction(1, 2**power)
        lower, upper = exact.exp_bounds(x, bits)
        low, high = interval(x, bits)
        assert lower < low <= high < upper


@given(st.fractions(-70, 70, max_denominator=10**6), st.integers(1, 200))
@settings(max_examples=150)
def test_bounds_enclose_everywhere(x, bits):
    lower, upper = exact.exp_bounds(x, bits)
    low, high = interval(x, bits)
    assert lower <= low <= high <= upper
    assert (lower == upper) is (x == 0)
    assert (upper - lower) * 2**bits <= lower


def test_an_interval_test_can_fail():
    low, high = interval(Fraction(1), 64)
    naive = Fraction(math.e)
    assert not (low <= naive <= high)


def test_no_exponent_up_to_64_trips_the_internal_check():
    for x in (Fraction(k, 7) for k in range(1, 449, 3)):
        for bits in (1, 3, 16, 97):
            lower, upper = exact.exp_bounds(x, bits)  # raises InternalError if they are too wide
            assert (upper - lower) * 2**bits <= lower


def test_bounds_refuse_what_makes_no_sense():
    with pytest.raises(NumberError, match="at least 1"):
        exact.exp_bounds(Fraction(1), 0)
    with pytest.raises(NumberError, match="must not exceed"):
        exact.exp_bounds(Fraction(10**400))
    with pytest.raises(NumberError, match="must not exceed"):
        exact.exp_bounds(Fraction(-(2**20) - 1))


# -- comparisons ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [Fraction(1), Fraction(-3, 7), Fraction(1, 10**6), Fraction(64), Fraction(5000)])
@pytest.mark.parametrize("bits", [1, 10, 63, 64, 65, 300, 1500])
def test_comparison_at_near_ties(x, bits):
    """Rationals closer to e^x than any fixed precision could tell."""
    low, high = interval(x, bits)
    nudge = Fraction(1, 2**bits)
    assert exact.exp_at_least(x, low)
    assert not exact.exp_at_least(x, high)
    assert exact.exp_at_least(x, low * (1 - nudge))
    assert not exact.exp_at_least(x, high * (1 + nudge))


def test_comparison_at_zero_is_exact():
    assert exact.exp_at_least(Fraction(0), Fraction(1))
    assert exact.exp_at_least(Fraction(0), Fraction(0))
    assert not exact.exp_at_least(Fraction(0), 1 + Fraction(1, 10**100))


def test_comparison_beats_floats():
    """A ratio that rounds to the float e^1 but is larger than e."""
    above = interval(Fraction(1), 200)[1]
    assert float(above) == pytest.approx(math.exp(1), rel=1e-15)
    assert not exact.exp_at_least(Fraction(1), above)


# -- floors and ceilings -------------------------------------------------------------------------------

GOLDEN = {
    ("GRR", 2): 8524556932045589908,
    ("GRR", 10): 2704893567170488823,
    ("GRR", 1024): 30901959824277224,
    ("GRR", 4): 5543047035272007536,  # local hashing with g = 4
}


@pytest.mark.parametrize(("name", "threshold"), GOLDEN.items())
def test_golden_keep_thresholds(name, threshold):
    d = name[1]
    keep = Dyadic.floor_of(lambda e: (e - 1) / (e + d - 1), Fraction(1))
    assert keep.numerator == threshold


def test_golden_unary_thresholds():
    assert Dyadic.ceil_of(lambda e: 1 / (e + 1), Fraction(1)).numerator == 4961093570831980854
    assert Dyadic.ceil_of(lambda e: 1 / (e + 1), Fraction(1, 2)).numerator == 6964396094736529935


def test_floats_give_other_thresholds():
    assert int(2.0**64 * (math.e - 1) / (math.e + 1)) != GOLDEN["GRR", 2]


@given(st.fractions(Fraction(1, 10**6), 64, max_denominator=10**6), st.integers(2, 10**6))
@settings(max_examples=100)
def test_floor_and_ceiling_agree_with_a_thousand_bits(epsilon, d):
    low, high = interval(epsilon, 1000)
    exactly = [math.floor(WORD * (e - 1) / (e + d - 1)) for e in (low, high)]
    assert exactly[0] == exactly[1]
    keep = exact.floor_of(lambda e: WORD * (e - 1) / (e + d - 1), epsilon)
    assert keep == exactly[0]
    assert exact.ceil_of(lambda e: WORD * (e - 1) / (e + d - 1), epsilon) == keep + 1
    # A falling function, where the bounds change places.
    assert exact.floor_of(lambda e: WORD / (e + d), epsilon) == math.floor(WORD / (low + d))


@pytest.mark.parametrize("digits", [10, 38, 39, 40, 77, 200, 1000])
def test_floor_needs_as_many_bits_as_it_needs(digits):
    """Beyond 38 digits the first precision that is tried cannot settle it."""
    with mpmath.workdps(digits + 30):
        expected = int(mpmath.floor(mpmath.e * mpmath.mpf(10) ** digits))
    assert exact.floor_of(lambda e: e * 10**digits, Fraction(1)) == expected


def test_floor_at_zero_and_of_a_constant():
    assert exact.floor_of(lambda e: e * 5, Fraction(0)) == 5
    assert exact.ceil_of(lambda e: e * 5, Fraction(0)) == 5
    assert exact.floor_of(lambda e: Fraction(7, 2), Fraction(1)) == 3


def test_floor_gives_up_with_a_reason():
    toggle = iter(range(10**6))
    with pytest.raises(NumberError, match="not monotone"):
        exact.floor_of(lambda e: Fraction(next(toggle)), Fraction(1))


# -- reading numbers -----------------------------------------------------------------------------------


class Level(IntEnum):
    ONE = 1


TENTHS = [
    0.1,
    "0.1",
    " 0.1 ",
    "1e-1",
    "1/10",
    "+2/20",
    " 1 / 10 ",
    Decimal("0.1"),
    Decimal("0.10"),
    Fraction(1, 10),
    np.float64(0.1),
    np.float32(0.1),
    np.float16(0.1),
    np.longdouble("0.1"),
    np.str_("0.1"),
]


@pytest.mark.parametrize("value", TENTHS, ids=repr)
def test_one_tenth_is_one_value(value):
    assert exact.as_epsilon(value) == Fraction(1, 10)
    assert exact.canonical(exact.as_epsilon(value)) == "1/10"


@pytest.mark.parametrize("value", [1, 1.0, "1", "1.000", np.int8(1), np.uint64(1), np.float32(1), Level.ONE], ids=repr)
def test_one_is_one_value(value):
    epsilon = exact.as_epsilon(value)
    assert epsilon == 1
    assert type(epsilon) is Fraction
    assert exact.canonical(epsilon) == "1"


def test_binary_value_of_a_float_is_not_what_was_meant():
    assert Fraction(0.1) != Fraction(1, 10)


@given(st.floats(1e-6, 64))
def test_a_float_and_its_text_are_one_epsilon(value):
    assert exact.as_epsilon(value) == exact.as_epsilon(repr(value)) == exact.as_epsilon(Decimal(repr(value)))


REFUSED = [
    (0, "must be positive"),
    (0.0, "must be positive"),
    ("-0", "must be positive"),
    (-1, "must be positive"),
    ("-1e-9", "must be positive"),
    (1e-9, "below 1e-6"),
    ("1e-400", "1e-400.*below 1e-6"),
    (100, "above 64"),
    (64.00000001, "above 64"),
    (10**400, "above 64"),
    ("1e400", "above 64"),
    (math.nan, "NaN"),
    ("nan", "NaN"),
    (np.float32("nan"), "NaN"),
    (Decimal("sNaN"), "NaN"),
    (math.inf, "infinite"),
    ("-inf", "infinite"),
    ("abc", "'abc' is not a number"),
    ("0,3", "'0,3' has a comma: write a point"),
    ("", "not a number"),
    ("1/0", "divides by zero"),
    ("1/2/3", "not a number"),
    ("0x10", "not a number"),
    (None, "NoneType"),
    (True, "truth value"),
    (False, "truth value"),
    (np.True_, "bool"),
    (1j, "complex"),
    (b"1", "bytes"),
    ([1], "list"),
    (np.array([1.0]), "ndarray"),
    ("1e999999999", "out of any sensible range"),
    ("-1e-999999999", "out of any sensible range"),
    (Decimal("1e999999999"), "out of any sensible range"),
    ("1" * 3000, "3000 characters"),
    ("0." + "1" * 3000, "3002 characters"),
    (Decimal("0." + "1" * 3000), "more than 2000 digits"),
    (Decimal("1" * 3000), "out of any sensible range"),
    ("x" * 1000, "xxx\\.\\.\\."),
    (Fraction(10**3000 + 1, 10**3000), "digits"),
]


@pytest.mark.parametrize(("value", "reason"), REFUSED, ids=lambda v: repr(v)[:24])
def test_refused_epsilon_says_why_before_it_is_worked_out(value, reason):
    with memory_below(100_000), pytest.raises(EpsilonError, match=reason) as refused:
        exact.as_epsilon(value)
    message = str(refused.value)
    assert message.startswith("epsilon ")
    assert len(message) < 160
    assert isinstance(refused.value, ValueError)


@pytest.mark.parametrize("value", ["1e-6", Fraction(1, 10**6), 64, "64.0"])
def test_the_ends_of_the_range_belong_to_it(value):
    assert exact.SMALLEST_EPSILON <= exact.as_epsilon(value) <= exact.LARGEST_EPSILON


def test_zero_with_a_huge_exponent_is_zero():
    assert exact.fraction("0e999999999") == 0


@pytest.mark.parametrize(("value", "expected"), [(3, 3), (3.0, 3), ("3", 3), (np.int8(3), 3), (Fraction(6, 2), 3)])
def test_whole_numbers(value, expected):
    result = exact.whole(value, "the size")
    assert result == expected
    assert type(result) is int


@pytest.mark.parametrize(("value", "reason"), [(2.5, "2.5, not a whole number"), (True, "truth value"), (None, "None")])
def test_whole_numbers_are_not_cut(value, reason):
    with pytest.raises(NumberError, match=f"the size.*{reason}"):
        exact.whole(value, "the size")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(1, 10), "0.1"),
        (Fraction(0), "0"),
        (Fraction(1, 3), "0.333333"),
        (Fraction(10) ** 400, "1e+400 or so"),
        (-(Fraction(10) ** 400), "-1e+400 or so"),
        (Fraction(10) ** -400, "1e-400 or so"),
    ],
)
def test_fractions_for_people(value, text):
    assert exact.shown(value) == text


# -- logarithm -----------------------------------------------------------------------------------------


def nearest_log(ratio: Fraction) -> float:
    with mpmath.workprec(max(400, 3 * ratio.numerator.bit_length())):
        return float(mpmath.log(mpmath.mpf(ratio.numerator) / mpmath.mpf(ratio.denominator)))


@given(st.fractions(Fraction(1, 10**4), 10**4, max_denominator=10**12))
@settings(max_examples=200)
def test_log_is_the_nearest_float(ratio):
    assert exact.log(ratio) == nearest_log(ratio)


@pytest.mark.parametrize(
    "ratio",
    [
        Fraction(10**18 + 1, 10**18),
        Fraction(10**18, 10**18 + 1),
        1 + Fraction(1, 2**200),
        Fraction(10) ** 299,
        Fraction(10) ** 301,
        Fraction(10) ** -5000,
        Fraction(3**7000 + 1, 2**100),
        Fraction(2) - Fraction(1, 10**30),
        Fraction(2) + Fraction(1, 10**30),
    ],
    ids=exact.shown,
)
def test_log_far_out_and_close_to_one(ratio):
    assert exact.log(ratio) == nearest_log(ratio)


def test_log_of_the_float_would_not_do():
    """Some ratio below e^epsilon would be shown as an epsilon above the one that was asked for."""
    ratios = {eps: exact.exp_floor(exact.fraction(eps)) for eps in np.arange(1, 400) / 100}
    assert any(math.log(float(ratio)) > eps for eps, ratio in ratios.items())
    assert all(exact.log(ratio) <= eps for eps, ratio in ratios.items())


@pytest.mark.parametrize("ratio", [Fraction(0), Fraction(-1)])
def test_log_of_nothing(ratio):
    with pytest.raises(NumberError, match="positive"):
        exact.log(ratio)


def test_log_of_one_is_zero():
    assert exact.log(Fraction(1)) == 0.0


# -- dyadic probabilities and simple fractions ---------------------------------------------------------


@given(st.fractions(0, 1))
def test_dyadic_rounds_in_the_named_direction(probability):
    floor, ceil = Dyadic.floor(probability), Dyadic.ceil(probability)
    assert floor.value <= probability <= ceil.value
    assert ceil.numerator - floor.numerator == (floor.value != probability)
    assert floor.complement.value == 1 - floor.value
    assert float(floor) == float(floor.value)


@pytest.mark.parametrize("numerator", [-1, WORD + 1])
def test_dyadic_refuses_what_is_no_probability(numerator):
    with pytest.raises(ProbabilityError, match="not a probability"):
        Dyadic(numerator)


def test_dyadic_ends():
    assert Dyadic.floor(Fraction(0)).value == 0
    assert Dyadic.ceil(Fraction(1)).value == 1
    with pytest.raises(ProbabilityError):
        Dyadic.floor(Fraction(3, 2))


@given(st.fractions(0, 3, max_denominator=60), st.fractions(0, 1, max_denominator=60))
def test_simplest_fraction_by_trying_every_denominator(low, width):
    high = low + width
    found = exact.simplest_between(low, high)
    assert low <= found <= high
    assert not any(math.ceil(low * d) <= high * d for d in range(1, found.denominator))


@pytest.mark.parametrize(("low", "high"), [(Fraction(-1), Fraction(1)), (Fraction(2), Fraction(1))])
def test_simplest_fraction_needs_an_interval(low, high):
    with pytest.raises(NumberError, match="0 <= low <= high"):
        exact.simplest_between(low, high)


@given(st.fractions(-(10**9), 10**9).filter(bool), st.integers(2, 100))
def test_floor_to_bits(value, bits):
    short = exact.floor_to_bits(value, bits)
    assert short <= value
    assert value - short <= abs(value) / 2 ** (bits - 1)
    odd = abs(short.numerator) // (short.numerator & -short.numerator)
    assert odd.bit_length() <= bits + 1
    assert short.denominator & (short.denominator - 1) == 0
