from deniable.design.base import (
    Certificate as Certificate,
    Check as Check,
    Design as Design,
    Verdict as Verdict,
    plot_channel as plot_channel,
)
from deniable.design.bayes import Compromise as Compromise, bayes as bayes, compromise as compromise
from deniable.design.bayes_certificate import BayesCertificate as BayesCertificate
from deniable.design.extremal import (
    Bracket as Bracket,
    ExtremalCertificate as ExtremalCertificate,
    Regimes as Regimes,
    ScanPoint as ScanPoint,
    binary_guarantee as binary_guarantee,
    extremal as extremal,
    plot_regimes as plot_regimes,
    plot_value as plot_value,
    regimes as regimes,
)
from deniable.design.mean import MeanCertificate as MeanCertificate, MeanDesign as MeanDesign, mean as mean
from deniable.design.partitions import BlockResponse as BlockResponse
from deniable.design.readout import Readout as Readout, readout as readout
from deniable.design.robust import (
    RobustCertificate as RobustCertificate,
    least_favourable as least_favourable,
    robust as robust,
)
from deniable.design.several import (
    ChernoffCertificate as ChernoffCertificate,
    GuessCertificate as GuessCertificate,
    hellinger_factor as hellinger_factor,
    several as several,
)
from deniable.design.staircase import (
    StaircaseCertificate as StaircaseCertificate,
    best_columns as best_columns,
    family as family,
    mutual_information as mutual_information,
    pattern_matrix as pattern_matrix,
    staircase as staircase,
)
from deniable.design.together import Together as Together, best_of_rounds as best_of_rounds, together as together
from deniable.trace import Step as Step
