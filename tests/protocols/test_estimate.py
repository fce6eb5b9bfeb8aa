"""Estimates: intervals, combination, comparison, and the ways out (tables, Arrow, plots)."""

from __future__ import annotations

import io
import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from rich.console import Console

from deniable.domains import Categories, Integers, Strings
from deniable.errors import MismatchError, NumberError, ReportError
from deniable.protocols import GRR, HCMS, OUE, Estimate, HadamardResponse, Tally, TextProtocol, combine
from deniable.randomness import Simulation

ANSWERS = ["never", "once", "often"]
SHARES = [0.6, 0.3, 0.1]


def collected(
    kind: type = OUE, epsilon: str = "1", n: int = 20_000, seed: int = 1, shares: list[float] = SHARES
) -> Estimate:
    protocol = kind(ANSWERS, epsilon)
    values = np.random.default_rng(seed).choice(ANSWERS, n, p=shares)
    return protocol.estimate(protocol.tally(protocol.privatize(values, Simulation(seed))))


def test_counts_frequencies_and_errors_agree() -> None:
    estimate = collected()
    assert np.allclose(estimate.frequencies * estimate.n, estimate.counts)
    assert np.allclose(estimate.stderr * estimate.n, np.sqrt(estimate.variance))
    shares = np.clip(estimate.frequencies, 0, 1)
    assert np.array_equal(estimate.stderr, estimate.errors(population=True))
    sampled = estimate.stderr**2 - estimate.errors(population=False) ** 2
    assert np.allclose(sampled, shares * (1 - shares) / estimate.n)


def test_intervals() -> None:
    estimate = collected()
    ends = estimate.interval(0.95, population=False)
    assert ends.shape == (3, 2)
    assert np.allclose(ends.mean(axis=1), estimate.frequencies)
    assert np.allclose(np.diff(ends, axis=1)[:, 0], 2 * 1.959964 * estimate.errors(population=False), rtol=1e-5)
    for population in (False, True):
        ends = estimate.interval(0.95, population=population)
        wide = estimate.interval(0.95, simultaneous=True, population=population)
        assert (np.diff(wide, axis=1) > np.diff(ends, axis=1)).all()
        assert np.allclose(wide, estimate.interval(1 - 0.05 / 3, population=population))
    reach = 1.96 * estimate.stderr[:, None]
    assert np.allclose(estimate.interval(), estimate.frequencies[:, None] + [[-1, 1]] * 3 * reach, atol=1e-3)
    for level in (0, 1, -0.5, math.nan):
        with pytest.raises(NumberError, match="between 0 and 1"):
            estimate.interval(level)


def test_consistent_is_a_distribution_and_keeps_the_unbiased_estimate() -> None:
    raw = collected(n=300, epsilon="0.5", shares=[0.99, 0.01, 0.0])
    assert raw.frequencies.min() < 0
    consistent = raw.consistent()
    assert consistent.method == "norm-sub"
    assert consistent.raw is raw
    assert consistent.frequencies.min() >= 0
    assert consistent.frequencies.sum() == pytest.approx(1)
    assert np.allclose(consistent.interval(), np.clip(raw.interval(), 0, 1))
    # Always from the unbiased estimate: two steps are not stacked on each other.
    assert np.allclose(consistent.consistent("clip").frequencies, raw.consistent("clip").frequencies)
    assert np.allclose(raw.consistent("none").frequencies, raw.frequencies)


def test_combination_weighs_by_precision() -> None:
    rough, fine = collected(OUE, "0.5", seed=1), collected(GRR, "3", seed=2)
    both = combine(rough, fine)
    assert both.n == rough.n + fine.n
    assert (both.stderr < np.minimum(rough.stderr, fine.stderr)).all()
    noise = [one.errors(population=False) ** 2 for one in (rough, fine)]
    first = (fine.frequencies / noise[1] + rough.frequencies / noise[0]) / (1 / noise[0] + 1 / noise[1])
    total = [one + first * (1 - first) / rough.n for one in noise]  # as many people in both
    weight = total[0] / (total[0] + total[1])
    assert np.allclose(both.frequencies, weight * fine.frequencies + (1 - weight) * rough.frequencies)
    assert np.allclose(both.stderr**2, 1 / (1 / total[0] + 1 / total[1]))
    assert np.allclose(both.errors(population=False) ** 2, weight**2 * noise[1] + (1 - weight) ** 2 * noise[0])
    assert np.allclose(rough.combine(fine).frequencies, both.frequencies)
    assert combine(rough).counts.tolist() == pytest.approx(rough.counts.tolist())
    assert both.protocol == "GRR + OUE"
    with pytest.raises(MismatchError, match="different answers"):
        combine(rough, OUE(["a", "b"], 1).estimate(OUE(["a", "b"], 1).tally(OUE(["a", "b"], 1).privatize(["a"] * 9))))
    with pytest.raises(MismatchError, match="no estimate"):
        combine()


def test_differences_are_tested() -> None:
    same = collected(seed=3) - collected(GRR, seed=4)
    assert same.p_value > 1e-3
    changed = collected(seed=5) - collected(seed=6, shares=[0.4, 0.3, 0.3])
    assert changed.p_value < 1e-6
    assert (changed.interval()[0] > 0).all()
    assert (changed.interval()[2] < 0).all()
    assert changed.value.sum() == pytest.approx(0, abs=0.1)
    assert np.allclose(
        np.diff(changed.interval(simultaneous=True), axis=1), 2 * 2.39398 * changed.stderr[:, None], rtol=1e-4
    )
    with pytest.raises(TypeError):
        collected() - 1


def test_false_alarms_are_as_rare_as_stated() -> None:
    # 200 comparisons of equal crowds at 5 %: none, or more than 28 rejections, has a chance below 4e-5.
    protocol = GRR(["yes", "no"], 1)
    values = np.array(["yes", "no"] * 500)
    estimates = []
    bits = Simulation(8)
    rng = np.random.default_rng(8)
    for _ in range(400):
        drawn = rng.choice(values, 1000)
        estimates.append(protocol.estimate(protocol.tally(protocol.privatize(drawn, bits))))
    alarms = sum((a - b).p_values[0] < 0.05 for a, b in zip(estimates[::2], estimates[1::2], strict=True))
    assert 1 <= alarms <= 28


def test_ways_out() -> None:
    estimate = collected()
    rows = estimate.rows()
    assert [row["label"] for row in rows] == ANSWERS
    assert set(rows[0]) == {"label", "value", "stderr", "low", "high", "unit", "count"}
    assert json.loads(json.dumps(estimate.to_dict()))["sections"][0]["rows"][1]["label"] == "once"
    table = estimate.to_arrow()
    assert table.column("label").to_pylist() == ANSWERS
    assert pa.table(estimate).equals(table)
    assert pl.from_arrow(table).height == 3
    assert pl.DataFrame(estimate).height == 3
    assert pd.api.interchange.from_dataframe(table).shape == (3, 14)
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(estimate)
    assert "often" in console.export_text()
    assert "OUE, unbiased, n = 20,000" in str(estimate)
    assert "3 answers from 20000 reports" in repr(estimate)
    html = estimate._repr_html_()
    assert html.count("<tr>") == 4
    assert "<td>often</td>" in html
    lines = estimate.to_csv().splitlines()
    assert lines[0] == (
        "section,label,value,stderr,low,high,unit,count,n,level,population,simultaneous,method,protocol"
    )
    assert len(lines) == 4


def test_many_answers_show_the_largest() -> None:
    protocol = OUE(100, 2)
    estimate = protocol.estimate(protocol.tally(protocol.privatize([7] * 5000, Simulation(1))))
    lines = str(estimate).splitlines()
    shown = [int(line.split()[0]) for line in lines[2:-1]]
    assert shown == sorted(shown)
    assert 7 in shown
    assert "20 largest of 100" in lines[-1]


def test_numbers_are_drawn_in_their_order_and_all() -> None:
    for size in (60, 61):
        protocol = OUE(Integers(18, 17 + size), 1)
        estimate = protocol.estimate(protocol.tally(protocol.privatize([20] * 500 + [30] * 99, Simulation(1))))
        ax = estimate.plot()
        assert "largest" not in ax.get_title()
        if size == 60:
            assert [int(tick.get_text()) for tick in ax.get_xticklabels()] == list(range(18, 78))
        else:
            assert not ax.patches
            line = ax.lines[0]
            assert line.get_xdata().tolist() == list(range(18, 79))
            assert np.array_equal(line.get_ydata(), estimate.frequencies)
            (band,) = ax.collections
            corners = {tuple(point) for point in band.get_paths()[0].vertices}
            assert {(18 + i, end) for i, ends in enumerate(estimate.interval()) for end in ends} <= corners


def test_a_seed_is_no_source_of_bits() -> None:
    for protocol in (OUE(3, 1), HCMS(Strings(), 1)):
        for seed in (0, 1):
            with pytest.raises(NumberError, match=rf"^{seed} is no source .*give dn\.Simulation\({seed}\)$"):
                protocol.privatize("1" if isinstance(protocol, TextProtocol) else 1, bits=seed)  # type: ignore[arg-type]


@pytest.mark.parametrize("most", [50, 80])
def test_numbers_keep_their_order_beside_an_answer_for_what_is_missing(most: int) -> None:
    """A range with `missing` is a list of numbers and a word: drawn and printed like the range."""
    protocol = GRR(Categories([*range(1, most + 1), "no answer"], missing="no answer"), 3)
    counts = np.random.default_rng(1).integers(1, 1000, most + 1)
    estimate = protocol.estimate(Tally(protocol.fingerprint, int(counts.sum()), counts))
    ax = estimate.plot()
    if most == 50:
        assert [tick.get_text() for tick in ax.get_xticklabels()] == [*map(str, range(1, 51)), "no answer"]
    else:
        (line,) = (one for one in ax.get_lines() if one.get_label() == "share")
        assert line.get_xdata().tolist() == list(range(1, 81))
        assert ", no answer " in ax.get_title()
    shown = [line.split()[0] for line in str(estimate).splitlines()[2:-1]]
    assert shown == sorted(shown, key=lambda name: (not name.isdigit(), int(name) if name.isdigit() else 0))


def test_the_plot_greys_what_may_be_zero() -> None:
    ax = collected(shares=[0.9, 0.1, 0.0]).plot()
    colors = {patch.get_facecolor() for patch in ax.patches}
    assert len(ax.patches) == 3
    assert len(colors) == 2


def test_the_legend_is_beside_the_bars() -> None:
    ax = collected(shares=[0.9, 0.1, 0.0]).plot()
    ax.figure.canvas.draw()
    assert ax.get_legend().get_window_extent().x0 >= ax.get_window_extent().x1


def test_without_support_counts_a_population_interval_is_nearly_walds_in_a_large_survey() -> None:
    protocol = HadamardResponse(ANSWERS, 2)
    estimate = protocol.estimate(protocol.tally(protocol.privatize(ANSWERS * 500, Simulation(2))))
    normal = 2 * 1.959964 * estimate.stderr
    width = np.diff(estimate.interval(), axis=1)[:, 0]
    assert (width > normal).all()
    assert (width < 1.04 * normal).all()


def test_a_difference_is_a_table() -> None:
    difference = collected(seed=5) - collected(seed=6, shares=[0.4, 0.3, 0.3])
    rows = difference.rows()
    assert [row["label"] for row in rows] == ANSWERS
    assert rows[0]["low"] < rows[0]["difference"] < rows[0]["high"]
    assert "never" in str(difference)
    assert "The groups differ" in str(difference)
    assert repr(difference).startswith("<Difference of 3 figures")


def test_natural_mistakes_get_a_sentence() -> None:
    protocol = OUE(ANSWERS, 1)
    reports = protocol.privatize(ANSWERS)
    with pytest.raises(MismatchError, match=r"protocol.tally\(reports\)"):
        protocol.estimate(reports)  # type: ignore[arg-type]
    with pytest.raises(ReportError, match="privatized first"):
        protocol.tally(ANSWERS)  # type: ignore[arg-type]


def test_the_picture_shows_the_intervals_asked_for() -> None:
    estimate = collected()
    heights = [max(p[1, 1] for p in estimate.plot(simultaneous=s).collections[0].get_segments()) for s in (False, True)]
    assert heights[0] < heights[1]
    assert estimate.plot(simultaneous=True).get_title().endswith("95 % intervals, all answers at once")
    assert estimate.plot().get_title().endswith("95 % intervals")


def test_as_a_data_frame() -> None:
    frame = collected().to_pandas()
    assert list(frame["label"]) == ANSWERS
    columns = ["label", "value", "stderr", "low", "high", "unit", "count"]
    assert list(frame.columns)[:8] == ["section", *columns]
