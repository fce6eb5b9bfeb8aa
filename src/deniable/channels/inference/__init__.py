"""From noisy counts back to the distribution of true answers.

`invert` undoes the channel and is unbiased; `ibu` finds the most likely distribution for any channel;
`mle_randomized_response` has it in closed form; `bootstrap` gives any of them error bars by resampling.
"""

from __future__ import annotations

from deniable.channels.inference.em import fisher_stderr
from deniable.channels.inference.estimators import bootstrap, ibu, invert, mle_randomized_response
from deniable.channels.inference.result import Inference
from deniable.results.significance import Misfit

__all__ = ["Inference", "Misfit", "bootstrap", "fisher_stderr", "ibu", "invert", "mle_randomized_response"]
