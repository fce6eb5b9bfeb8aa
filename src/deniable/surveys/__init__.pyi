from deniable.surveys.campaign import Campaign as Campaign
from deniable.surveys.narrowing import Narrowing as Narrowing
from deniable.surveys.panel import Panel as Panel
from deniable.surveys.question import Question as Question
from deniable.surveys.record_rounds import RegressionRounds as RegressionRounds, Screening as Screening
from deniable.surveys.results import SurveyEstimate as SurveyEstimate
from deniable.surveys.survey import Survey as Survey
from deniable.surveys.tally import SurveyTally as SurveyTally
from deniable.surveys.terms import Budget as Budget, Epochs as Epochs, Longitudinal as Longitudinal, Terms as Terms
