"""Distinguishing hypotheses by private reports: exponents, exact errors, people needed, and the decision."""

from __future__ import annotations

from deniable.channels.hypothesis.decide import Decision, decide
from deniable.channels.hypothesis.exponents import (
    Chernoff,
    chernoff_information,
    le_cam_bound,
    least_chernoff_information,
    stein_exponent,
)
from deniable.channels.hypothesis.ratio_test import BayesError, TestError, bayes_error, likelihood_ratio_test
from deniable.channels.hypothesis.sample_size import (
    PeopleNeeded,
    SampleSize,
    effective_sample_size,
    people_needed,
    plot_effective_sample_size,
    sample_size,
)
from deniable.channels.laws import Laws, read_laws

__all__ = [
    "BayesError",
    "Chernoff",
    "Decision",
    "Laws",
    "PeopleNeeded",
    "SampleSize",
    "TestError",
    "bayes_error",
    "chernoff_information",
    "decide",
    "effective_sample_size",
    "le_cam_bound",
    "least_chernoff_information",
    "likelihood_ratio_test",
    "people_needed",
    "plot_effective_sample_size",
    "read_laws",
    "sample_size",
    "stein_exponent",
]
