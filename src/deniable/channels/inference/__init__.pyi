from deniable.channels.inference.em import fisher_stderr as fisher_stderr
from deniable.channels.inference.estimators import (
    bootstrap as bootstrap,
    ibu as ibu,
    invert as invert,
    mle_randomized_response as mle_randomized_response,
)
from deniable.channels.inference.result import Inference as Inference
from deniable.results.significance import Misfit as Misfit
