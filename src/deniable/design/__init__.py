"""Designs: the best mechanism for given knowledge and goals, found by optimization and returned with its proof."""

from __future__ import annotations

from deniable.design.base import Certificate, Check, Design, Verdict, plot_channel
from deniable.design.bayes import Compromise, bayes, compromise
from deniable.design.bayes_certificate import BayesCertificate
from deniable.design.extremal import (
    Bracket,
    ExtremalCertificate,
    Regimes,
    ScanPoint,
    binary_guarantee,
    extremal,
    plot_regimes,
    plot_value,
    regimes,
)
from deniable.design.mean import MeanCertificate, MeanDesign, mean
from deniable.design.partitions import BlockResponse
from deniable.design.readout import Readout, readout
from deniable.design.robust import RobustCertificate, least_favourable, robust
from deniable.design.several import ChernoffCertificate, GuessCertificate, hellinger_factor, several
from deniable.design.staircase import (
    StaircaseCertificate,
    best_columns,
    family,
    mutual_information,
    pattern_matrix,
    staircase,
)
from deniable.design.together import Together, best_of_rounds, together
from deniable.trace import Step

__all__ = [
    "BayesCertificate",
    "BlockResponse",
    "Bracket",
    "Certificate",
    "Check",
    "ChernoffCertificate",
    "Compromise",
    "Design",
    "ExtremalCertificate",
    "GuessCertificate",
    "MeanCertificate",
    "MeanDesign",
    "Readout",
    "Regimes",
    "RobustCertificate",
    "ScanPoint",
    "StaircaseCertificate",
    "Step",
    "Together",
    "Verdict",
    "bayes",
    "best_columns",
    "best_of_rounds",
    "binary_guarantee",
    "compromise",
    "extremal",
    "family",
    "hellinger_factor",
    "least_favourable",
    "mean",
    "mutual_information",
    "pattern_matrix",
    "plot_channel",
    "plot_regimes",
    "plot_value",
    "readout",
    "regimes",
    "robust",
    "several",
    "staircase",
    "together",
]
