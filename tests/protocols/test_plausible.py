"""Reports that no honest device would send are not counted, and honest ones always are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from deniable.domains import Strings
from deniable.protocols import CMS, GRR, OUE, RAPPOR, SUE
from deniable.protocols.frequency.bit_rows import usual_weights
from deniable.randomness import Simulation


@pytest.mark.parametrize(("m", "q"), [(1023, 0.2689), (99, 0.0067), (4095, 0.5), (63, 0.2689), (10, 0.01)])
def test_the_bounds_hold_and_are_not_idle(m: int, q: float) -> None:
    low, high = usual_weights(m, q)
    assert binom.cdf(low - 1, m, q) + binom.sf(high, m, q) <= 2.0**-60
    if high < m:
        # Two standard deviations less room, and honest devices would be refused at times.
        tight = int(high - 2 * (m * q * (1 - q)) ** 0.5)
        assert binom.sf(tight, m, q) > 2.0**-61


@pytest.mark.parametrize("protocol", [SUE(300, 1), OUE(300, 1), CMS(Strings(cells=256), 2), RAPPOR(Strings(), 2)])
def test_honest_reports_pass_and_full_ones_do_not(protocol: Any) -> None:
    answers: Any = np.arange(2000) % 300 if protocol.name in ("SUE", "OUE") else ["x"] * 2000
    honest = protocol.privatize(answers, bits=Simulation(1))
    assert protocol.law().plausible(honest).all()
    array = np.array(honest)
    width = len(array[0])
    full, empty = array[:1].copy(), array[:1].copy()
    # The first byte of a sketch names its cohort.
    full[0, 1 if protocol.name in ("CMS", "RAPPOR") else 0 : width - 1] = 255
    empty[0, 1 if protocol.name in ("CMS", "RAPPOR") else 0 :] = 0
    assert not protocol.law().plausible(full).any()
    assert not protocol.law().plausible(empty).any()
    assert protocol.valid(full).all()  # so it is the number of ones that gave them away


def test_other_protocols_take_what_is_valid() -> None:
    assert GRR(3, 1).law().plausible(np.array([[0], [2], [3]], dtype=np.uint8)).tolist() == [True, True, False]
