"""Studies of protocols and estimators: right numbers, cached cells, estimators of one's own."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deniable as dn
from deniable.errors import LabelError, NumberError, SpecError
from deniable.files import Comparison
from deniable.postprocess import METHODS, Method

BREAD = {"rye": 6, "spelt": 3, "white": 1}


def run(protocols: Any = ("GRR",), **how: Any) -> Comparison:
    given: dict[str, Any] = {"truth": BREAD, "n": 1000, "repeats": 40, "progress": False}
    return dn.study(protocols, **given | how)


def halves(protocol: Any, tally: Any) -> Any:
    return protocol.estimate(tally).value / 2


def test_the_grid_is_complete_and_tidy() -> None:
    found = run(["GRR", dn.OUE], n=[500, 2000], epsilon=[1, 2], estimators=["unbiased", "norm-sub"])
    frame = found.to_pandas()
    assert len(found) == len(frame) == 16
    assert not frame.duplicated(["protocol", "estimator", "epsilon", "n"]).any()
    assert found.to_polars()["rmse"].to_list() == frame["rmse"].tolist() == [row.rmse for row in found.rows]
    assert found._repr_html_().count("<tr>") == 17
    assert "<img" in found._repr_html_()


def test_the_error_is_that_of_the_formula() -> None:
    """The mean squared error over 2,000 repeats is within 5 of its standard errors of the exact one."""
    protocol = dn.GRR(list(BREAD), epsilon=1)
    (row,) = run([protocol], repeats=2000).rows
    people = [600, 300, 100]
    exact = math.sqrt(float(np.mean(protocol.worth().variances(list(BREAD), people))))
    assert abs(row.rmse - exact) < 5 * row.rmse_stderr < 0.1 * exact
    assert row.coverage is not None
    assert 0.93 < row.coverage < 0.97
    assert row.bias < row.rmse / 4
    (wrong,) = run([protocol], repeats=2000, estimators=halves).rows
    assert abs(wrong.rmse - exact) > 5 * wrong.rmse_stderr
    assert wrong.bias > 0.25
    assert (wrong.estimator, wrong.coverage) == ("halves", None)


def test_all_estimators_read_the_same_collections() -> None:
    alone = run(estimators="norm-sub").rows
    both = run(
        estimators={"a": "unbiased", "b": "norm-sub", "c": lambda protocol, tally: protocol.estimate(tally)}
    ).rows
    assert (both[1].rmse, both[1].bias) == (alone[0].rmse, alone[0].bias)
    assert (both[2].rmse, both[2].coverage) == (both[0].rmse, both[0].coverage)


def test_a_study_goes_on_where_it_was_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(folder=tmp_path, epsilon=[1, 2])
    assert (first.reused, len(list(tmp_path.iterdir()))) == (0, 2)
    whole = run(["GRR", "OUE"], folder=tmp_path, epsilon=[1, 2], estimators=["unbiased", halves])
    assert whole.reused == 2
    assert whole.rows == run(["GRR", "OUE"], epsilon=[1, 2], estimators=["unbiased", halves]).rows
    monkeypatch.setattr("deniable.files.comparison._measured", lambda *given: {} if not given[2] else 1 / 0)
    again = run(["GRR", "OUE"], folder=tmp_path, epsilon=[1, 2], estimators=["unbiased", halves])
    assert (again.reused, again.rows) == (8, whole.rows)
    for changed in ({"seed": 1}, {"repeats": 41}, {"n": 1001}, {"truth": BREAD | {"rye": 7}}, {"epsilon": 3}):
        with pytest.raises(ZeroDivisionError):
            run(folder=tmp_path, **changed)


def test_a_changed_function_is_another_estimator(tmp_path: Path) -> None:
    def scaled(factor: float) -> Any:
        return lambda protocol, tally: protocol.estimate(tally).value * factor

    one = run(folder=tmp_path, estimators={"mine": scaled(1.0)})
    other = run(folder=tmp_path, estimators={"mine": scaled(0.5)})
    assert (other.reused, one.rows[0].rmse == other.rows[0].rmse) == (0, False)
    assert run(folder=tmp_path, estimators={"renamed": scaled(0.5)}).rows[0].rmse == other.rows[0].rmse


def test_a_method_of_ones_own_is_known_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Method(lambda shares, stderr, n: np.full_like(shares, 1 / shares.size), "never", "large", True)
    monkeypatch.setitem(METHODS, "even", own)
    (row,) = run(estimators="even").rows
    assert math.isclose(row.bias, 0.6 - 1 / 3)
    found = dn.GRR(list(BREAD), epsilon=1)
    assert found.estimate(found.tally(found.privatize(["rye"] * 9))).consistent("even").value.tolist() == [1 / 3] * 3


def test_numbers_and_several_truths() -> None:
    hours = dn.Interval(0, 24, unit="hours")
    found = run(["Window", "OneBitMean"], truth={"early": [5.0, 6.0], "late": [9.0]}, domain=hours, n=400)
    assert [(row.protocol, row.truth) for row in found.rows] == [
        (name, truth) for name in ("Window", "OneBitMean") for truth in ("early", "late")
    ]
    assert all(0 < row.rmse < 24 for row in found.rows)


def test_what_makes_no_study_is_refused() -> None:
    for error, message, how in (
        (LabelError, "there is no protocol 'GRRR'", {"protocols": ["GRRR"]}),
        (LabelError, "norm-sub", {"estimators": "norm-sup"}),
        (NumberError, "positive whole numbers", {"n": 0}),
        (NumberError, "positive whole numbers", {"repeats": True}),
        (SpecError, "one of them is positive", {"truth": {"rye": 0, "white": 0}}),
        (SpecError, "give their domain", {"truth": [1.0, 2.0]}),
        (SpecError, "gives 1 figures, and GRR has 3", {"estimators": lambda protocol, tally: [1.0]}),
    ):
        with pytest.raises(error, match=message):
            run(**how)
