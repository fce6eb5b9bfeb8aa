"""Studies: distributions, cells that do not depend on order or engine, results that resume."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from deniable.errors import DeniableError, LabelError, NumberError, SpecError
from deniable.files.studies import (
    Cell,
    Row,
    by_processes,
    draw,
    grid,
    load_study,
    people_of,
    relative_error,
    run_study,
    shares,
)

CELLS = grid(["GRR", "OUE", "OLH"], [1, "2"], [500], [4, 16], ["zipf", "spike:0.9"], runs=8, seed=1)


def figures(rows: list[Row]) -> list[tuple[object, ...]]:
    """All but the seconds."""
    return [(row.cell, row.exact, row.variance, row.mae, row.max_error, row.coverage) for row in rows]


@pytest.mark.parametrize("name", ["uniform", "zipf", "zipf:2", "geometric", "geometric:0.5", "spike", "spike:0.99"])
@pytest.mark.parametrize("answers", [2, 7, 100])
def test_distributions(name: str, answers: int) -> None:
    found = shares(name, answers)
    assert found.sum() == pytest.approx(1)
    assert (np.diff(found) <= 1e-15).all()
    for people in (1, 10, 12_345):
        counts = people_of(name, answers, people)
        assert counts.sum() == people
        assert (np.abs(counts - found * people) < 1).all()


@pytest.mark.parametrize("name", ["normal", "zipf:x", "spike:2", "uniform:3", "geometric:-1", ""])
def test_distributions_that_are_none(name: str) -> None:
    with pytest.raises(SpecError):
        shares(name, 5)


def test_grids_are_checked_before_they_run() -> None:
    assert len(CELLS) == 24
    assert grid(["GRR"], [1, "1", 1.0], [10], [3]) == [Cell("GRR", "1", 10, 3, "zipf", 100, 0)]
    with pytest.raises(LabelError, match="no protocol 'ABC'"):
        grid(["ABC"], [1], [10], [3])
    for wrong in ({"runs": 0}, {"people": [0]}, {"answers": [1]}, {"epsilons": ["x"]}):
        with pytest.raises(DeniableError):
            grid(**({"protocols": ["GRR"], "epsilons": [1], "people": [10], "answers": [3]} | wrong))  # type: ignore[arg-type]
    with pytest.raises(NumberError, match="runs"):
        grid(["GRR"], [1], [10], [3], runs=0)


def test_neither_order_nor_engine_changes_a_figure() -> None:
    rows = run_study(CELLS)
    assert figures(run_study(CELLS[::-1]))[::-1] == figures(rows)
    assert figures(run_study(CELLS, engine=by_processes(2))) == figures(rows)
    other = grid(["GRR"], [1], [500], [4], ["zipf"], runs=8, seed=2)
    assert figures(run_study(other)) != figures(rows[:1])


def test_the_formulas_hold() -> None:
    """200 runs of 16 answers: the mean of squares is within 10 percent (about 4 standard errors; seed fixed)."""
    rows = run_study(grid(["GRR", "OUE", "OLH", "HadamardResponse"], [1], [2000], [16], ["zipf"], runs=200))
    rows += run_study(grid(["HadamardResponse"], [4], [2000], [64], ["zipf", "spike:0.8"], runs=200))
    for row in rows:
        assert relative_error(row) == pytest.approx(1, abs=0.1), row
        assert row.coverage == pytest.approx(0.95, abs=0.02)
        assert row.mae < row.max_error
        assert row.exact == (row.protocol != "OLH")
    assert math.sqrt(rows[0].variance) > rows[0].mae


def test_an_interrupted_study_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "study.parquet"
    expected = figures(run_study(CELLS))

    def interrupted(cells: list[Cell]) -> Iterator[Row]:
        for count, row in enumerate(by_processes(1)(cells)):
            if count == 5:
                raise KeyboardInterrupt
            yield row

    with pytest.raises(KeyboardInterrupt):
        run_study(CELLS, path, interrupted)
    assert len(load_study(path)) == 5
    done: list[int] = []
    rows = run_study(CELLS, path, progress=lambda count, _: done.append(count))
    assert len(done) == len(CELLS) - 5
    assert figures(rows) == expected
    assert figures(run_study(CELLS[:3], path)) == expected[:3]
    table = pq.read_table(path)
    assert table.num_rows == len(CELLS)
    levels = zip(table["epsilon"].to_pylist(), table["epsilon_exact"].to_pylist(), strict=True)
    assert set(levels) == {(1.0, "1"), (2.0, "2")}
    assert {"variance", "variance_theory", "mae", "max_error", "coverage", "seconds"} <= set(table.column_names)


def test_other_files_are_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "other.parquet"
    path.write_text("hello")
    with pytest.raises(SpecError, match="give another name"):
        run_study(CELLS, path)
    assert path.read_text() == "hello"


def test_results_of_another_version_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "study.parquet"
    run_study(CELLS[:1], path)
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"deniable.study": "2"}), path)
    before = path.read_bytes()
    with pytest.raises(SpecError, match="of another version of deniable: give another name"):
        run_study(CELLS[:1], path)
    assert path.read_bytes() == before


def test_a_fourth_thing_that_varies_has_line_styles() -> None:
    import matplotlib.pyplot as plt

    rows = run_study(grid(["GRR"], [1, 2, 3], [100, 200], [4, 8], ["zipf", "uniform"], runs=1))
    panels = draw(rows).figure.axes
    assert len(panels) == 4
    assert {line.get_linestyle() for line in panels[0].lines} == {"-", "--", "None"}
    assert [text.get_text() for text in panels[0].figure.legends[0].get_texts()] == ["GRR", "zipf", "uniform"]
    plt.close(panels[0].figure)


def test_the_picture() -> None:
    import matplotlib.pyplot as plt

    rows = run_study(CELLS)
    panels = draw(rows).figure.axes
    assert [len(axes.lines) for axes in panels] == 4 * [2 * 3]
    assert [axes.get_title() for axes in panels][:2] == ["4 answers, zipf", "16 answers, zipf"]
    assert panels[-1].get_xlabel() == "epsilon"
    (legend,) = panels[0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["GRR", "OUE", "OLH"]
    panels[0].figure.canvas.draw()
    assert legend.get_window_extent().x0 > max(axes.get_window_extent().x1 for axes in panels)
    plt.close(panels[0].figure)
    with pytest.raises(SpecError, match="nothing to draw"):
        draw([])


@pytest.mark.parametrize(
    ("epsilons", "spread"),
    [(["1"], 1.0), (["1", "1.1"], 1.0), (["1"], 1.9), (["1", "2"], 5.0), (["0.1", "8"], 3e4)],
)
def test_the_picture_says_its_numbers(epsilons: list[str], spread: float) -> None:
    """Wherever the errors lie, two labels that are not formulas; crowded ones are left out."""
    import matplotlib.pyplot as plt

    for middle in np.geomspace(1e-4, 1e-2, 25):
        rows = [
            Row(*cell_of(epsilon), True, error**2, error**2, 0.0, 0.0, 1.0, 0.0)
            for epsilon, error in itertools.product(epsilons, (middle, middle * spread))
        ]
        axes = draw(rows)
        low, high = axes.get_ylim()
        assert low < middle
        assert middle * spread < high
        shown = [tick for tick in axes.get_yticks() if low <= tick <= high]
        written = [label.get_text() for label in axes.get_yticklabels()]
        assert len(shown) >= 2
        assert [float(label) for label in written] == shown
        assert [label.get_text() for label in axes.get_xticklabels()] == epsilons
        plt.close(axes.figure)


def cell_of(epsilon: str) -> tuple[str, float, str, int, int, str, int, int]:
    return "GRR", float(epsilon), epsilon, 100, 8, "zipf", 1, 0


def test_crowded_labels_are_left_out() -> None:
    import matplotlib.pyplot as plt

    levels = ["0.1", "1", "1.05", "1.1", "2", "8"]
    axes = draw([Row(*cell_of(epsilon), True, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0) for epsilon in levels])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.1", "1", "", "", "2", "8"]
    plt.close(axes.figure)
