from deniable.channels.hypothesis.decide import Decision as Decision, decide as decide
from deniable.channels.hypothesis.exponents import (
    Chernoff as Chernoff,
    chernoff_information as chernoff_information,
    le_cam_bound as le_cam_bound,
    least_chernoff_information as least_chernoff_information,
    stein_exponent as stein_exponent,
)
from deniable.channels.hypothesis.ratio_test import (
    BayesError as BayesError,
    TestError as TestError,
    bayes_error as bayes_error,
    likelihood_ratio_test as likelihood_ratio_test,
)
from deniable.channels.hypothesis.sample_size import (
    PeopleNeeded as PeopleNeeded,
    SampleSize as SampleSize,
    effective_sample_size as effective_sample_size,
    people_needed as people_needed,
    plot_effective_sample_size as plot_effective_sample_size,
    sample_size as sample_size,
)
from deniable.channels.laws import Laws as Laws, read_laws as read_laws
