"""What one report tells: known figures, and no protocol above what any mechanism can tell."""

from __future__ import annotations

import math

import numpy as np
import pytest

import deniable as dn
from deniable import errors
from deniable.channels import randomized_response
from deniable.planning import Told, information

pytestmark = pytest.mark.floats

SIX = dn.Categories(list("ABCDEF"))


@pytest.fixture(scope="module")
def six():
    return information(SIX, 1)


def test_six_answers_at_epsilon_one(six):
    known = {"GRR": 0.1004, "SUE": 0.1011, "OUE": 0.0977, "OLH": 0.0957, "HadamardResponse": 0.0946}
    found = {told.name: told.information for told in six.rows}
    assert {name: round(found[name], 4) for name in known} == known
    assert six.rows[0].information == pytest.approx(six.best.value, rel=1e-9)
    assert round(six.best.bound, 5) == 0.12328
    assert six.left_out == ()


def test_no_protocol_tells_more_than_any_mechanism_can(six):
    for told in six.rows:
        assert told.information <= six.best.bound * (1 + 1e-12)
        assert told.capacity >= told.information - 1e-12
    # One that keeps less privacy does: the comparison can fail.
    assert Told.of("leaky", randomized_response(6, 2)).information > six.best.bound


def test_closed_forms():
    e, d, w = math.e, 6, 2
    p, q = e / (e + d - 1), 1 / (e + d - 1)
    told = Told.of("GRR", randomized_response(d, 1))
    assert told.information == pytest.approx(p * math.log(d * p) + (d - 1) * q * math.log(d * q), rel=1e-12)
    # The variance of an unbiased estimate of shares that are all alike, n times the sum.
    assert told.spread == pytest.approx((d - 1) ** 2 * (e + d - 1) ** 2 / (d * (e - 1) ** 2 * (d - 1)), rel=1e-9)
    subset = Told.of("SS", dn.channels.subset_selection(d, 1, w))
    known = (d - 1) ** 2 * (w * e + d - w) ** 2 / (d * (e - 1) ** 2 * w * (d - w))
    assert subset.spread == pytest.approx(known, rel=1e-9)


def test_a_prior_and_protocols_of_your_own():
    three = dn.Categories(["a", "b", "c"])
    even, skewed = (
        information(three, 1, prior, [dn.GRR(three, 1)]) for prior in (None, {"a": 0.8, "b": 0.1, "c": 0.1})
    )
    assert [told.name for told in skewed.rows] == ["GRR"]
    assert skewed.rows[0].information < even.rows[0].information
    assert skewed.rows[0].capacity == pytest.approx(even.rows[0].capacity, rel=1e-12)
    assert skewed.best.value < even.best.value
    with pytest.raises(errors.LabelError, match="'d'"):
        information(three, 1, {"d": 1}, [dn.GRR(three, 1)])


def test_reports_with_too_many_forms_are_left_out_by_name():
    wide = dn.Categories([f"answer {i}" for i in range(20)])
    found = information(wide, 1, protocols=[dn.GRR(wide, 1), dn.OUE(wide, 1)])
    assert [told.name for told in found.rows] == ["GRR"]
    assert found.left_out == ("OUE",)


def test_undetermined_shares_have_an_infinite_spread():
    blind = Told.of("blind", dn.Channel([["1/2", "1/2"]] * 3))
    assert (blind.information, blind.spread) == (0, np.inf)
