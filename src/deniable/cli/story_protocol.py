"""The part of the demo with a thousand answers: planner, protocol, shards that add up, estimate."""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable.channels.levels import level_text
from deniable.cli import output
from deniable.cli.output import heading, prose, table
from deniable.planning import plan
from deniable.protocols import Estimate, Protocol
from deniable.protocols.estimate import RESPONDENTS
from deniable.randomness import Bits

ANSWERS, EPSILON, SHOWN = 1_000, 1, 5


class Thousand:
    """People who each have one of a thousand pages as their favourite, Zipf's law; collected in two shards."""

    def __init__(self, people: int, bits: Bits) -> None:
        # The crowd is made up and the same every time; only the noise differs.
        shares = 1 / np.arange(1, ANSWERS + 1) ** 1.2
        values = np.random.default_rng(2026).choice(ANSWERS, people, p=shares / shares.sum())
        self.truth = np.bincount(values, minlength=ANSWERS) / people
        self.plan = plan(ANSWERS, epsilon=EPSILON, n=people)
        self.protocol: Protocol = self.plan.best
        reports = self.protocol.privatize(values, bits)
        half = people // 2
        first, second = self.protocol.tally(reports[:half]), self.protocol.tally(reports[half:])
        self.estimate: Estimate = self.protocol.estimate(first + second)

    def to_dict(self) -> dict[str, Any]:
        top = np.argsort(-self.estimate.counts)[:SHOWN]
        rows = self.estimate.rows(population=False)
        return {
            "answers": ANSWERS,
            "epsilon": EPSILON,
            "people": self.estimate.n,
            "protocol": self.protocol.spec(),
            "largest": [rows[i] | {"truth": float(self.truth[i])} for i in top],
        }

    def tell(self) -> None:
        heading("6. A thousand answers")
        size = self.protocol.report_bytes
        prose(
            f"Which of {ANSWERS:,} pages do {self.estimate.n:,} people like best? The planner compares the protocols "
            f"and takes {self.protocol.name} at epsilon {EPSILON}: {size} bytes leave each device. Two collectors add "
            f"up their reports, then their tallies, {self.protocol.tally_size:,} integers each; no report is kept."
        )
        output.write("\n")
        ends = self.estimate.interval(population=False)
        errors = self.estimate.errors(population=False)
        top = np.argsort(-self.estimate.counts)[:SHOWN]
        rows = [
            [
                f"page {i}",
                f"{100 * self.truth[i]:.1f}%",
                f"{100 * self.estimate.frequencies[i]:.1f}%",
                f"{100 * errors[i]:.2f}%",
                f"{100 * ends[i, 0]:.1f}% to {100 * ends[i, 1]:.1f}%",
            ]
            for i in top
        ]
        table(["answer", "truth", "estimate", "stderr", "95% interval"], rows)
        inside = int(((ends[:, 0] <= self.truth) & (self.truth <= ends[:, 1])).sum())
        output.write("\n")
        prose(
            f"{inside} of the {ANSWERS:,} intervals contain the truth {RESPONDENTS}, where 95 in 100 should. "
            f"The exact level of the reports is {level_text(self.protocol.ratio, digits=12)}."
        )
        output.write("\n")
