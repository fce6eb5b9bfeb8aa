"""The made-up surveys of the demo: a crowd, its devices, and what a collector learns."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from deniable.channels import Channel, coin_response, randomized_response
from deniable.exact import Dyadic
from deniable.labels import text
from deniable.randomness import Bits

if TYPE_CHECKING:
    from deniable.channels.inference import Inference

LEVEL = 0.95
HALF = Dyadic.floor(Fraction(1, 2))


@dataclass(frozen=True, slots=True)
class Survey:
    """A question, the channel that every device uses, and how common each answer really is."""

    question: str
    channel: Channel
    shares: tuple[float, ...]
    people: int


@dataclass(frozen=True, slots=True)
class Study:
    """A survey that was carried out."""

    survey: Survey
    truth: Any
    reports: Any
    inverted: Inference
    likeliest: Inference

    @property
    def ends(self) -> Any:
        return self.inverted.interval(LEVEL)

    @property
    def covered(self) -> int:
        """How many intervals contain the truth."""
        return int(((self.ends[:, 0] <= self.truth) & (self.truth <= self.ends[:, 1])).sum())

    @property
    def open_answers(self) -> float:
        """How many answers given in the open would have had the same error, for the first answer."""
        share = float(self.truth[0])
        return share * (1 - share) / float(self.inverted.stderr[0]) ** 2

    def to_dict(self) -> dict[str, Any]:
        channel = self.survey.channel
        return {
            "question": self.survey.question,
            "people": self.survey.people,
            "epsilon": channel.epsilon,
            "ratio": str(channel.ratio),
            "labels": [text(label) for label in channel.inputs],
            "truth": self.truth.tolist(),
            "reports": self.reports.tolist(),
            "estimate": self.inverted.frequencies.tolist(),
            "stderr": self.inverted.stderr.tolist(),
            "level": LEVEL,
            "interval": self.ends.tolist(),
            "ibu": self.likeliest.frequencies.tolist(),
        }


def exam(people: int) -> Survey:
    return Survey("Have you ever cheated in an exam?", coin_response(), (0.18, 0.82), people)


def habits(people: int) -> Survey:
    answers = ["never", "once or twice", "monthly", "weekly", "daily", "prefer not to say"]
    return Survey(
        "How often did you use cannabis last year?",
        randomized_response(answers, "3/2"),
        (0.46, 0.22, 0.13, 0.09, 0.04, 0.06),
        people,
    )


def carry_out(survey: Survey, bits: Bits) -> Study:
    """Every device randomizes its answer; the collector counts what arrives and infers."""
    from deniable.channels.inference import ibu, invert

    answers = np.repeat(np.arange(len(survey.shares)), _whole(survey.shares, survey.people))
    reports = np.bincount(survey.channel.sample_indices(answers, bits), minlength=len(survey.shares))
    truth = np.bincount(answers, minlength=len(survey.shares)) / survey.people
    return Study(survey, truth, reports, invert(survey.channel, reports), ibu(survey.channel, reports))


def _whole(shares: tuple[float, ...], people: int) -> list[int]:
    counts = [round(share * people) for share in shares]
    counts[-1] += people - sum(counts)
    return counts


@dataclass(frozen=True, slots=True)
class Life:
    """One answer on its way out of a device, toss by toss."""

    truth: str
    first: str
    second: str
    said: str


def toss(truth: str, bits: Bits) -> Life:
    """The two coins of the exam question. Same law as `coin_response()`, shown step by step."""
    if bits.bernoulli(HALF):
        return Life(truth, "heads: the truth", "", truth)
    said = "yes" if bits.bernoulli(HALF) else "no"
    return Life(truth, "tails: toss again", f"{'heads' if said == 'yes' else 'tails'}: say {said}", said)
