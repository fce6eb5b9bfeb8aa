"""Telling hypotheses apart from private reports: exponents, exact errors, people needed, and the decision."""

from __future__ import annotations

from deniable.channels.hypothesis.decide import Decision, decide
from deniable.channels.hypothesis.ratio_test import (
    BayesError,
    Chernoff,
    PeopleNeeded,
    SampleSize,
    TestError,
    bayes_error,
    chernoff_information,
    effective_sample_size,
    le_cam_bound,
    least_chernoff_information,
    likelihood_ratio_test,
    people_needed,
    plot_effective_sample_size,
    sample_size,
    stein_exponent,
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
