"""Levels add up exactly, ratios multiply, and an account never passes its cap."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from deniable import exact
from deniable.channels import Channel, randomized_response
from deniable.errors import NumberError
from deniable.privacy import Account, OverBudget, parallel, ratios, sequential

levels = st.fractions(min_value=0, max_value=10)


def test_floats_would_not_do():
    assert sum([0.1] * 10) != 1.0
    assert sequential([0.1] * 10) == 1
    account = Account(1)
    for _ in range(10):
        account = account.spend(0.1)
    assert account.left == 0
    assert not account.allows(Fraction(1, 10**30))


@given(st.lists(levels, max_size=5), st.lists(levels, max_size=5))
def test_sums_and_maxima(first, second):
    assert sequential([*first, *second]) == sequential(first) + sequential(second)
    assert parallel([*first, *second]) == max(parallel(first), parallel(second))
    assert parallel(first) <= sequential(first)


@given(levels, st.lists(levels, max_size=8))
def test_an_account_never_passes_its_cap(cap, asked):
    account = Account(cap)
    for level in asked:
        before = account
        if account.allows(level):
            account = account.spend(level)
        else:
            assert level > account.left
            with pytest.raises(OverBudget):
                account.spend(level)
            assert account == before
        assert account.spent <= account.cap
        assert account.left == account.cap - account.spent


def test_a_refusal_says_what_is_left():
    with pytest.raises(OverBudget, match=r"costs epsilon 2 and 1/2 is left of 3/2"):
        Account("3/2", spent=1).spend(2)


def test_a_cap_that_was_lowered_leaves_nothing_and_still_allows_what_is_free():
    account = Account(1, spent=2)
    assert (account.left, account.allows(0), account.allows("1e-9")) == (0, True, False)


def test_ratios_of_a_product_channel():
    """Two answers in one report: the exact ratio of the product law is the product of the ratios."""
    one, two = randomized_response(2, 1), randomized_response(3, "1/2")
    product = [
        [a * b for a in row for b in other] for row in one.numerators.tolist() for other in two.numerators.tolist()
    ]
    bottom = one.denominator * two.denominator
    law = Channel([[Fraction(cell, bottom) for cell in row] for row in product])
    assert law.ratio == ratios([one.ratio, two.ratio])
    assert exact.exp_at_least(sequential([1, "1/2"]), law.ratio)


def test_nonsense_is_refused():
    with pytest.raises(NumberError, match="not negative"):
        sequential([1, -1])
    with pytest.raises(NumberError, match="at least 1"):
        ratios(["1/2"])
    with pytest.raises(NumberError):
        Account(math.inf)
    with pytest.raises(NumberError):
        Account(-1)
