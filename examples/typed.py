"""What a type checker must accept, and what it must refuse: `make lint` checks this file, nothing runs it.

Each line with `type: ignore` is a mistake that a type checker should find; `mypy --strict` also complains when such a
line is no mistake any more.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np

import deniable as dn
from deniable.surveys import Question, Survey

answers = ["never", "once", "often"]

# A domain is given as a list or tuple of labels, an array, a range, a number of answers, or itself.
by_list = dn.OUE(answers, epsilon=1)
by_tuple = dn.GRR(("yes", "no"), 1.5)
by_number = dn.OLH(1024, epsilon="1/3")
by_array = dn.SUE(np.array([1, 2, 3]), Decimal("0.5"))
by_range = dn.SubsetSelection(range(18, 100), Fraction(1, 2))
by_domain = dn.HadamardResponse(dn.Integers(18, 99), 2, blocks=4)
with_extras = dn.GRR(dn.Categories(answers, other="something else", missing="no answer"), 1)
open_text = dn.HCMS(dn.Strings(), 4)
sketched = dn.OLHSketch(["rye", "wheat"], 2, hash_bits=2, hashing=dn.Strings(cells=256))
bloom = dn.RAPPOR(dn.Strings(), 4, bloom_bits=64)
threshold = dn.THE(answers, 1, threshold="0.6")
planned = dn.plan(answers, epsilon=1, n=1000)

# What is kept is the domain and the exact fraction.
size: int = by_list.domain.size
level: Fraction = by_list.epsilon

reports: dn.Reports = by_list.privatize(["never", "often"])
tally: dn.Tally = by_list.tally(reports)
estimate: dn.Estimate = by_list.estimate(tally)
survey = Survey("habits", [Question("smoke", "Do you smoke?", by_tuple)])

dn.GRR({"yes", "no"}, 1)  # type: ignore[arg-type]  # a set has no order
dn.GRR({"yes": 1, "no": 2}.keys(), 1)  # type: ignore[arg-type]
dn.GRR((label for label in answers), 1)  # type: ignore[arg-type]
dn.Categories({"yes", "no"})  # type: ignore[arg-type]
dn.OUE(answers, epsilon=None)  # type: ignore[arg-type]
dn.OUE(answers)  # type: ignore[call-arg]
dn.OLH(answers, 1, hash_bit=3)  # type: ignore[call-arg]
