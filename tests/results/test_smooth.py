"""Intervals that assume a smooth distribution: exact at the worst one, shorter, and named wherever they stand."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import deniable as dn
from deniable.errors import NumberError
from deniable.results.base import quantile
from deniable.results.several import Several
from deniable.results.smooth import Smooth, critical, read_assumption

CELLS, PEOPLE = 64, 1_000_000
NAME = "smooth:0.1"


def asked(kind: str, domain: dn.Interval | dn.Integers | None = None) -> Any:
    domain = domain or dn.Interval(0, 1)
    if kind == "ranges":
        return dn.Ranges(domain, 1, **({"cells": CELLS} if isinstance(domain, dn.Interval) else {}))
    return dn.Window(
        domain, 1, read="distribution", **({"positions": CELLS} if isinstance(domain, dn.Interval) else {})
    )


def found(kind: str, people: Any = None, domain: Any = None, seed: int = 1) -> Any:
    protocol = asked(kind, domain)
    if people is None:
        people = np.random.default_rng(seed).normal(0.45, 0.15, 20_000).clip(0, 1)
    return protocol.estimate(protocol.tally(protocol.privatize(people, dn.Simulation(seed))))


def worst_bias(smooth: Smooth, wanted: np.ndarray, sizes: np.ndarray) -> float:
    """From the definition: what the figure says about each density, and the densities that bend by the bound."""

    def told(seen: np.ndarray) -> float:
        return float(replace(smooth, linear=smooth.linear._replace(seen=seen)).read(wanted[None, :]).value[0])

    nothing = told(np.zeros(smooth.linear.seen.size))  # what is known beforehand: that all shares add up to one
    law = smooth.linear.chances * sizes
    off = np.array([told(one) - nothing for one in law.T]) + (nothing - wanted) * sizes
    at = np.cumsum(sizes) - sizes / 2
    bends = np.zeros((sizes.size - 2, sizes.size))
    for row in range(sizes.size - 2):
        a, b, c = at[row : row + 3]
        bends[row, row : row + 3] = 2 / ((a - b) * (a - c)), 2 / ((b - a) * (b - c)), 2 / ((c - a) * (c - b))
        bends[row] *= math.sqrt((c - a) / 2)
    along, *_ = np.linalg.lstsq(bends.T, off, rcond=None)
    assert np.allclose(bends.T @ along, off, atol=1e-10)  # straight densities have no bias
    grid = np.linspace(-2, 2, 400_001)
    normal = np.exp(-(grid**2) / (2 * 0.1**2)) / (0.1 * math.sqrt(2 * math.pi))
    bent = (grid**2 / 0.1**4 - 1 / 0.1**2) * normal
    return math.sqrt(float((bent**2).sum() * (grid[1] - grid[0]))) * float(np.linalg.norm(along))


@pytest.mark.parametrize("kind", ["distribution", "ranges"])
def test_the_interval_holds_in_95_of_100_at_the_worst_smooth_distribution(kind: str) -> None:
    """Without chance: the bias of the worst density is found from the definition. A fifth shorter is .88."""
    protocol = asked(kind)
    people = np.tile((np.arange(CELLS * 16) + 0.5) / (CELLS * 16), 20)
    plain = protocol.estimate(protocol.tally(protocol.privatize(people, dn.Simulation(1))))
    result = plain.assuming("smooth")
    smooth = result.assumed
    boundaries = result._boundaries
    sizes = np.diff(boundaries) / np.ptp(boundaries)
    stop = np.array([0.4 * boundaries[-1]])
    wanted = smooth.between(np.zeros(1), stop)[0]
    read = smooth.read(wanted[None, :])
    bias, error = worst_bias(smooth, wanted, sizes), math.sqrt(read.everything[0])
    assert read.bias[0] == pytest.approx(bias, rel=1e-3)
    ends = result._assumed_between(np.full(1, 0.4), np.zeros(1), stop, quantile(0.95), True)
    rare = quantile(0.95) ** 2 / 6 * read.moved[0, 0]
    reach = float(ends.high[0] - ends.low[0]) / 2 - rare
    normal = NormalDist(bias, error)
    assert normal.cdf(reach) - normal.cdf(-reach) == pytest.approx(0.95, abs=0.002)
    narrow = 0.8 * reach
    assert normal.cdf(narrow) - normal.cdf(-narrow) < 0.9


@pytest.mark.parametrize("kind", ["distribution", "ranges"])
def test_the_stated_variance_is_that_of_simulated_reports(kind: str) -> None:
    random = np.random.default_rng(3)
    values = []
    for seed in range(150):
        result = found(kind, random.normal(0.45, 0.15, 2000).clip(0, 1), seed=seed).assuming()
        read = result.assumed.read(result.assumed.between(np.zeros(1), np.array([0.4 * result._boundaries[-1]])))
        values.append((read.value[0], read.everything[0]))
    value, variance = np.array(values).T
    assert value.var() / variance.mean() == pytest.approx(1, abs=4 * math.sqrt(2 / 150))


def test_how_far_an_interval_with_bias_reaches() -> None:
    for ratio in (0.0, 0.3, 1.0, 4.0):
        (far,) = critical(np.array([ratio]), quantile(0.95))
        assert NormalDist(ratio).cdf(far) - NormalDist(ratio).cdf(-far) == pytest.approx(0.95, abs=1e-6)


@pytest.mark.parametrize("kind", ["distribution", "ranges"])
@pytest.mark.parametrize("domain", [None, dn.Integers(18, 99)], ids=["interval", "whole"])
def test_smooth_intervals_are_shorter_hold_the_values_and_keep_them(kind: str, domain: Any) -> None:
    people = np.random.default_rng(1).normal(0.45, 0.15, 20_000).clip(0, 1)
    held = people if domain is None else (18 + 81 * people).astype(int)
    free = found(kind, held, domain)
    smooth = free.assuming("smooth")
    wide, short = free.table(), smooth.table()
    assert wide.value.tolist() == short.value.tolist()
    assert (short.low <= short.value).all()
    assert (short.value <= short.high).all()
    length = [np.ptp(rows.ends, axis=1) for rows in (wide, short)]
    assert (length[1][5:7] == length[0][5:7]).all()  # the mean and the deviation assume nothing
    assert length[1][:5].sum() < 0.9 * length[0][:5].sum()
    assert length[1][7:].sum() < 0.75 * length[0][7:].sum()
    low, high = np.quantile(held, (0.2, 0.6))
    for one in (smooth.range(low, high), smooth.cdf_at(low), smooth.quantile(0.5)):
        first, last = one.interval()
        assert first <= one <= last
    assert np.ptp(smooth.range(low, high).interval()) < np.ptp(free.range(low, high).interval())
    true = np.mean((held >= low) & (held <= high))
    assert smooth.range(low, high).interval(0.9999)[0] <= true <= smooth.range(low, high).interval(0.9999)[1]
    assert smooth.assuming("").table().low.tolist() == wide.low.tolist()


@pytest.mark.parametrize("kind", ["distribution", "ranges"])
def test_a_weaker_assumption_and_forged_reports_widen_and_respondents_do_not(kind: str) -> None:
    free = found(kind)
    lengths = [np.ptp(free.assuming(f"smooth:{width}").table().ends[7:], axis=1).sum() for width in (0.3, 0.1, 0.03)]
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[2]
    smooth = free.assuming("smooth")
    own = np.ptp(smooth.histogram().ends, axis=1).sum()
    assert np.ptp(smooth.robust(200).histogram().ends, axis=1).sum() > 1.1 * own
    assert np.ptp(smooth.histogram(population=False).ends, axis=1).sum() < own


def test_the_assumption_is_named_in_every_form() -> None:
    result = found("distribution").assuming("smooth")
    plain = found("distribution")
    for text in (str(result), result.headline, result._repr_html_(), result.histogram().interval_name):
        assert NAME in text
    assert NAME not in str(plain) + json.dumps(plain.to_dict()) + plain.to_csv()
    assert result.to_dict()["assumed"] == NAME
    assert any("bends no more" in note and "0.1 of the range" in note for note in result.to_dict()["notes"])
    names = [row["assumed"] for row in result.rows()]
    assert names[:7] == [NAME] * 5 + ["", ""]
    assert set(names[7:]) == {NAME}
    assert "assumed" in result.to_csv().splitlines()[0].split(",")
    assert result.to_arrow().column("assumed").to_pylist()[: len(names)] == names
    for rows in (result.cumulative(), result.of_ranges([(0.2, 0.5)])):
        assert rows.assumption == NAME
    axes = result.plot()
    assert all(NAME in one.get_title() for one in axes.figure.axes)


def test_assumptions_that_nobody_knows_are_refused() -> None:
    assert read_assumption("smooth:0.25") == 0.25
    for wrong in ("Smooth", "rough", "smooth:", "smooth:x", "smooth:0", "smooth:nan", "smooth:2", None):
        with pytest.raises(NumberError, match="may assume"):
            found("ranges").assuming(wrong)
    nothing = asked("distribution").estimate(asked("distribution").empty())
    assert nothing.assuming("smooth").table().assumption == ""


def test_parts_may_assume_it_and_other_figures_stay() -> None:
    shares = dn.GRR(["yes", "no"], 1)
    estimate = shares.estimate(shares.tally(shares.privatize(["yes", "no"] * 50, dn.Simulation(1))))
    assert estimate.assuming("smooth") is estimate
    several = Several({"age": found("ranges"), "smokes": estimate}, estimate.n, "parts").assuming("smooth")
    assert several.parts["age"].assumed.name == NAME
    rows = several.table()
    assert set(rows.assumed[-2:]) == {""}
    assert rows.assumed[0] == NAME
    assert several.tables()["smokes"].assumption == ""
