"""The example of the README with its picture: `python examples/readme.py` writes docs/assets/readme.svg."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt

import deniable as dn

answers = dn.Categories(["never", "once", "often"])
protocol = dn.OUE(answers, epsilon=1)
truth = ["never"] * 6000 + ["once"] * 3000 + ["often"] * 1000
reports = protocol.privatize(truth, bits=dn.Simulation(2026))
estimate = protocol.estimate(protocol.tally(reports))
print(estimate)

_, ax = plt.subplots(figsize=(6.5, 3), layout="constrained")
estimate.plot(ax)
shares = [truth.count(label) / len(truth) for label in answers.values]
ax.scatter(range(len(shares)), shares, marker="D", color="#d9822b", zorder=3, label="truth, which nobody sees")
ax.set_title("10,000 people at epsilon = 1: estimates with 95 % intervals", fontsize="medium")
ax.legend(frameon=False)
plt.rcParams["svg.hashsalt"] = "deniable"
picture = Path(__file__).parents[1] / "docs" / "assets" / "readme.svg"
plt.savefig(picture, metadata={"Date": None})
