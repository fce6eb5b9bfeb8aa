"""The verifier decides with integers: right at the edge, and on channels that a float would let pass."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from deniable import exact
from deniable.channels import Channel
from deniable.errors import DeniableError
from deniable.protocols.profiles import ProfileGraph, verify

pytestmark = pytest.mark.floats

PAIR = ProfileGraph({"a": 0, "b": 1}, [("a", "b")])
SURE = Channel([[1, 0], [0, 1]])


def flip(top, bottom=1 << 64):
    return Channel.from_integers([[bottom - top, top], [top, bottom - top]], bottom)


def test_one_part_in_2_to_the_64_decides():
    top = exact.ceil_of(lambda odds: (1 << 64) / (1 + odds), Fraction(1))
    assert verify(PAIR, [flip(top)] * 2, 1)
    broken = verify(PAIR, [flip(top - 1)] * 2, 1)
    assert not broken
    assert float(broken.ratio) == float(verify(PAIR, [flip(top)] * 2, 1).ratio)  # a float sees no difference


def test_the_worst_edge_is_named():
    graph = ProfileGraph({"a": 0.1, "b": 0.2, "c": 0.6}, [("a", "b"), ("b", "c")])
    verdict = verify(graph, [SURE] * 3, 1)
    assert (verdict.ratio, verdict.edge, verdict.output) == (Fraction(3), ("c", "b"), 1)
    assert verdict.epsilon == pytest.approx(math.log(3), rel=1e-15)
    assert not verdict.holds


def test_an_output_of_one_profile_only_gives_it_away():
    verdict = verify(PAIR, [SURE, SURE], 64)
    assert verdict.epsilon == math.inf
    assert not verdict


def test_impossible_outputs_do_not_count():
    graph = ProfileGraph([[0.5, 0.5, 0], [0.5, 0.5, 0]], [(0, 1)])
    assert verify(graph, [np.eye(3, dtype=int)] * 2, "1/1000000").ratio == 1


def test_channels_may_have_other_outputs_and_denominators():
    graph = ProfileGraph({"a": "1/4", "b": "1/2"}, [("a", "b")])
    channels = {"b": [[1, 0, 0], ["1/2", "1/4", "1/4"]], "a": [["1/3", "1/3", "1/3"], [1, 0, 0]]}
    # a: 1/4 + 1/4, 1/4, 1/4; b: 3/4, 1/8, 1/8
    assert verify(graph, channels, 1).ratio == 2


def test_huge_ratios_are_still_exact():
    tiny = 10**400
    channels = [flip(1, tiny), flip(1, tiny)]
    assert verify(PAIR, channels, 1).ratio == tiny - 1


def test_random_channels_against_fractions():
    random = np.random.default_rng(5)
    for _ in range(20):
        table = random.integers(1, 50, size=(4, 3))
        laws = [[Fraction(int(entry), int(row.sum())) for entry in row] for row in table]
        graph = ProfileGraph.chain(laws)
        channels = []
        for _ in laws:
            rows = random.integers(1, 9, size=(3, 3))
            channels.append([[Fraction(int(entry), int(row.sum())) for entry in row] for row in rows])
        pushed = [
            [sum(p[x] * c[x][y] for x in range(3)) for y in range(3)] for p, c in zip(laws, channels, strict=True)
        ]
        ratios = [pushed[i][y] / pushed[j][y] for a in range(3) for i, j in ((a, a + 1), (a + 1, a)) for y in range(3)]
        assert verify(graph, channels, 1).ratio == max(ratios)


def test_refusals():
    with pytest.raises(DeniableError, match="1 channels for 2 profiles"):
        verify(PAIR, [SURE], 1)
    with pytest.raises(DeniableError, match="no channel for profile 'b'"):
        verify(PAIR, {"a": SURE}, 1)
    with pytest.raises(DeniableError, match="3 x 3"):
        verify(PAIR, [SURE, np.eye(3, dtype=int)], 1)
    with pytest.raises(DeniableError, match="must be positive"):
        verify(PAIR, [SURE, SURE], 0)
