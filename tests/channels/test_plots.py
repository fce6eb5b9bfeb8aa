"""Pictures: what stands on the axes, not how it looks."""

from __future__ import annotations

import sys

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from matplotlib import pyplot as plt

from deniable.channels import Channel, coin_response, product, randomized_response, truncated_geometric
from deniable.errors import MissingExtra


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    plt.close("all")


def names(axis_labels) -> list[str]:
    return [label.get_text() for label in axis_labels]


def test_a_small_channel_is_written_out():
    ax = coin_response().plot()
    assert names(ax.get_xticklabels()) == names(ax.get_yticklabels()) == ["yes", "no"]
    assert ax.get_xlabel() == "output"
    assert ax.get_ylabel() == "input"
    assert ax.get_title() == "P(output | input), epsilon = 1.099"
    assert [text.get_text() for text in ax.texts] == ["0.75", "0.25", "0.25", "0.75"]
    assert np.asarray(ax.images[0].get_array()).tolist() == [[0.75, 0.25], [0.25, 0.75]]
    assert ax.images[0].get_clim() == (0.0, 0.75)
    colorbar = ax.figure.axes[-1]
    assert colorbar.get_ylabel() == "probability"


def test_numbers_are_readable_on_their_cells():
    ax = coin_response().plot()
    assert [text.get_color() for text in ax.texts] == ["white", "black", "black", "white"]


@pytest.mark.parametrize(("size", "written", "named"), [(12, True, True), (13, False, True), (25, False, False)])
def test_large_channels_say_less(size, written, named):
    ax = randomized_response([f"n{i}" for i in range(size)], 1).plot()
    assert bool(ax.texts) == written
    assert ("n3" in names(ax.get_xticklabels())) == named
    assert ("n3" in names(ax.get_yticklabels())) == named


def test_a_given_axis_is_used():
    figure, axes = plt.subplots(1, 2)
    assert truncated_geometric(3, 1).plot(axes[1]) is axes[1]
    assert not axes[0].images
    assert axes[1].images
    assert axes[1].figure is figure


def test_tuples_and_infinite_levels():
    ax = product(coin_response(truth=1), coin_response(truth=1)).plot()
    assert names(ax.get_xticklabels())[1] == "(yes, no)"
    assert ax.get_title().endswith("epsilon = infinite")


def test_long_names_are_slanted():
    channel = Channel(np.eye(8, dtype=int), outputs=[f"category {i}" for i in range(8)])
    assert {label.get_rotation() for label in channel.plot().get_xticklabels()} == {45.0}


def test_ranges_of_money_are_not_formulas():
    labels = ["$5-$10", "$5^$6"]
    ax = Channel([[1, 0], [0, 1]], labels, labels).plot()
    ax.figure.canvas.draw()  # as a formula the second label cannot be parsed
    ticks = [*ax.get_xticklabels(), *ax.get_yticklabels()]
    assert names(ticks) == labels * 2
    assert not any(tick.get_parse_math() for tick in ticks)
    ax.set_title(labels[1])
    with pytest.raises(ValueError, match="Parse"):
        ax.figure.canvas.draw()


def test_a_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtra, match=r"pip install 'deniable\[plot\]'"):
        coin_response().plot()


def test_no_figure_is_made_for_nothing():
    before = plt.get_fignums()
    repr(coin_response())
    assert plt.get_fignums() == before
