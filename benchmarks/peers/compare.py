"""Benchmarks against other packages: the same work, per report, each called in the fastest way that it offers."""

from __future__ import annotations

from fractions import Fraction

from benchmarks.core import ANSWERS, EPSILON, answers
from benchmarks.peers.environments import task
from benchmarks.registry import Case, Goal, Size, at_least, benchmark, faster, work
from deniable.channels import RandomizedResponse
from deniable.randomness import Secure


def _response(package: str, theirs: int, size: Size, goal: Goal) -> Case:
    n, one_by_one = size(10**7, 10**6), size(20_000, 5_000)
    law, values, bits = RandomizedResponse.at(ANSWERS, EPSILON), answers(n), Secure()
    single = [values[i : i + 1] for i in range(one_by_one)]
    return Case(
        tasks={
            "deniable": work(lambda: law.sample_indices(values, bits), n, "report"),
            "deniable, one by one": work(
                lambda: [law.sample_indices(value, bits) for value in single], one_by_one, "report"
            ),
            package: task(package, "response", theirs, "report"),
        },
        ratios=[
            faster("deniable", than=package, goal=goal),
            # Neither package randomizes many values in one call, so this says what a single call costs.
            faster("deniable, one by one", than=package),
        ],
    )


@benchmark("response-opendp", "k-ary response against opendp, k = 1024, epsilon = 1", peers=("opendp",))
def response_opendp(size: Size) -> Case:
    return _response("opendp", size(5_000, 1_000), size, at_least(5_000))


@benchmark("response-pure-ldp", "k-ary response against pure-ldp, k = 1024, epsilon = 1", peers=("pure-ldp",))
def response_pure_ldp(size: Size) -> Case:
    return _response("pure-ldp", size(200_000, 50_000), size, at_least(60))


@benchmark("laplace-opendp", "discrete Laplace noise against opendp, scale 10", peers=("opendp",))
def laplace_opendp(size: Size) -> Case:
    n, theirs, bits, scale = size(10**6, 10**5), size(50_000, 10_000), Secure(), Fraction(10)
    return Case(
        tasks={
            "deniable": work(lambda: bits.discrete_laplace(scale, n), n, "draw"),
            "opendp": task("opendp", "laplace", theirs, "draw"),
        },
        ratios=[faster("deniable", than="opendp")],
    )
