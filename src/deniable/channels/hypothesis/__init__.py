"""Telling hypotheses apart from private reports: exponents, exact errors with proven brackets, people needed."""

from __future__ import annotations

from deniable.channels.hypothesis.exponents import (
    Chernoff,
    chernoff_information,
    le_cam_bound,
    least_chernoff_information,
    stein_exponent,
)
from deniable.channels.hypothesis.people import (
    PeopleNeeded,
    SampleSize,
    effective_sample_size,
    people_needed,
    plot_effective_sample_size,
    sample_size,
)
from deniable.channels.hypothesis.ratio_test import BayesError, TestError, bayes_error, likelihood_ratio_test

__all__ = [
    "BayesError",
    "Chernoff",
    "PeopleNeeded",
    "SampleSize",
    "TestError",
    "bayes_error",
    "chernoff_information",
    "effective_sample_size",
    "le_cam_bound",
    "least_chernoff_information",
    "likelihood_ratio_test",
    "people_needed",
    "plot_effective_sample_size",
    "sample_size",
    "stein_exponent",
]
