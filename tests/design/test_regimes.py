"""Thresholds between the regimes, and the pictures."""

from __future__ import annotations

import math

import pytest

from deniable import errors
from deniable.channels import binary, marginal_divergence, randomized_response
from deniable.design import extremal, plot_value, regimes

GRID = [0.01, 0.3, 1, 2, 4, 6, 8, 12]


def test_thresholds_bracket_the_change():
    p0, p1 = [0.4, 0.25, 0.15, 0.12, 0.08], [0.1, 0.12, 0.2, 0.23, 0.35]
    found = regimes(p0, p1, "kl", GRID)
    assert found.binary.width <= 1e-4
    assert found.response.width <= 1e-4
    assert found.binary.high <= found.response.low
    assert found.binary_exceptions == found.response_exceptions == ()
    for mechanism, bracket, inside in (
        (lambda e: binary(p0, p1, e), found.binary, "low"),
        (lambda e: randomized_response(5, e), found.response, "high"),
    ):
        other = "high" if inside == "low" else "low"
        good, bad = getattr(bracket, inside), getattr(bracket, other)
        value = marginal_divergence(mechanism(good), p0, p1)
        assert value >= extremal(p0, p1, good).bound * (1 - 2e-9)
        assert marginal_divergence(mechanism(bad), p0, p1) < extremal(p0, p1, bad).value * (1 - 1e-10)


def test_binary_is_never_left_for_total_variation():
    found = regimes([0.5, 0.3, 0.2], [0.2, 0.2, 0.6], "tv", GRID)
    assert found.binary.high == math.inf
    assert all(at.binary_optimal for at in found.scan)


def test_ties_and_repeated_ratios_are_merged_first():
    tied = regimes([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], "kl", GRID)
    assert tied.binary.low > 1
    merged = regimes([0.2, 0.2, 0.4, 0.2], [0.1, 0.1, 0.2, 0.6], "kl", GRID)
    assert merged.response.low == 0  # two ratios only: both mechanisms are the same


def test_equal_hypotheses_leave_nothing_to_choose():
    found = regimes([0.5, 0.5], [0.5, 0.5], "kl", [1, 2])
    assert all(at.best == 0 and at.binary_optimal and at.response_optimal for at in found.scan)


def test_a_scan_needs_levels():
    with pytest.raises(errors.NumberError, match="two different"):
        regimes([0.5, 0.5], [0.4, 0.6], epsilons=[1, 1])


def test_pictures():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    p0, p1 = [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]
    design = extremal(p0, p1, 1)
    assert "relative gap" in design.plot().get_title()
    assert len(plot_value(p0, p1, [0.1, 1, 4]).lines) == 4
    top, bottom = regimes(p0, p1, "kl", [1, 2, 4]).plot()
    assert len(top.lines) == 2
    assert bottom.get_ylabel() == "outputs"
    pyplot.close("all")


def test_a_result_fits_on_two_lines():
    found = regimes([0.5, 0.3, 0.2], [0.2, 0.2, 0.6], epsilons=[1, 2, 3, 4])
    assert len(repr(found)) < 200
    for part in ("3 symbols", "kl", f"{found.binary.low:.4f}", f"{found.response.high:.4f}", "4 epsilons"):
        assert part in repr(found)
