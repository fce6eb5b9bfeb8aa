"""Random pairs of hypotheses of the kinds that break things: zeros, repeated ratios, spikes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from deniable.channels import DIVERGENCES

KINDS = tuple(DIVERGENCES)


def random_pair(rng, k, style):
    if style == "repeated":  # small integers: ratios repeat, zeros appear
        p, q = rng.integers(0, 4, k), rng.integers(0, 4, k)
        p[0] += 1
        q[-1] += 1
        return [Fraction(int(a), int(p.sum())) for a in p], [Fraction(int(b), int(q.sum())) for b in q]
    concentration = {"plain": 1.0, "spiky": 0.2, "even": 5.0, "zeros": 1.0}[style]
    p, q = rng.dirichlet(np.full(k, concentration)), rng.dirichlet(np.ones(k))
    if style == "zeros":
        p[rng.random(k) < 0.3] = 0
        q[rng.random(k) < 0.3] = 0
        p[0], q[-1] = p[0] + 0.1, q[-1] + 0.1
    return (p / p.sum()).tolist(), (q / q.sum()).tolist()


STYLES = ("plain", "spiky", "even", "zeros", "repeated")
