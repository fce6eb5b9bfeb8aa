"""One mechanism for two users: nothing is lost on the line, something on a graph with a cycle (Brenner and Nissim)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from deniable import errors
from deniable.channels import Query
from deniable.design import compromise
from tests.design.test_bayes import failing, monotone_loss, uniform

pytestmark = pytest.mark.floats


def test_nothing_is_lost_by_sharing_on_the_line():
    rng = np.random.default_rng(10)
    for _ in range(15):
        k = int(rng.integers(2, 7))
        pair = [(rng.dirichlet(np.ones(k)), monotone_loss(rng, k)) for _ in range(2)]
        found = compromise(pair, epsilon=round(float(rng.uniform(0.3, 2)), 3), adjacency="line")
        assert found.most < 1e-9
        assert found.shared.certificate.verify()


@pytest.mark.parametrize("function", [sum, lambda records: Fraction(sum(records), len(records))])
def test_a_sum_or_an_average_has_cycles_and_no_mechanism_for_everybody(function):
    query = Query.on_records(2, [0, 1, 2], function)
    assert query.has_cycle
    pair = [([0.5, 0, 0, 0.5, 0], "zero-one"), ([0, 0.5, 0.5, 0, 0], "zero-one")]
    found = compromise(pair, epsilon=1, adjacency=query)
    assert found.least > 1e-3
    assert found.most - found.least < 1e-9
    for design in (found.shared, *found.alone):
        assert design.certificate.verify()
        assert design.channel.satisfies(1, query.graph)
    # Without the multipliers of the edges a spanning tree would have to do, and does not.
    assert failing(replace(found.shared.certificate, flows=())) == ["bound"]


def test_a_ring_of_four_and_its_line():
    pair = [([0.5, 0, 0.5, 0], "identity"), ([0, 0.5, 0, 0.5], "identity")]
    ring = compromise(pair, epsilon=1, adjacency=[(0, 1), (1, 2), (2, 3), (3, 0)], gains=True)
    line = compromise(pair, epsilon=1, adjacency="line", gains=True)
    assert ring.least > 1e-3
    assert ring.most - ring.least < 1e-9
    assert line.most < 1e-9
    assert line.least == 0
    assert "sharing costs between" in str(ring)


def test_refusals():
    with pytest.raises(errors.ShapeError, match="at least one user"):
        compromise([], epsilon=1)
    with pytest.raises(errors.ShapeError, match="combinations"):
        compromise([(uniform(60), "zero-one")] * 3, epsilon=1)
