"""Surveys: named questions with their protocols, published and identified by a fingerprint; and their tallies."""

from __future__ import annotations

from deniable.surveys.campaign import Campaign
from deniable.surveys.narrowing import Narrowing
from deniable.surveys.panel import Panel
from deniable.surveys.question import Question
from deniable.surveys.record_rounds import RegressionRounds, Screening
from deniable.surveys.survey import Survey
from deniable.surveys.tally import SurveyTally
from deniable.surveys.terms import Budget, Epochs, Longitudinal, Terms

__all__ = [
    "Budget",
    "Campaign",
    "Epochs",
    "Longitudinal",
    "Narrowing",
    "Panel",
    "Question",
    "RegressionRounds",
    "Screening",
    "Survey",
    "SurveyTally",
    "Terms",
]
