"""From noisy counts back to the distribution of true answers.

`invert` undoes the channel and is unbiased; `ibu` finds the most likely distribution for any channel;
`mle_randomized_response` has it in closed form; `bootstrap` gives any of them error bars by resampling.
"""

from __future__ import annotations

from deniable._extras import exports

__getattr__, __dir__, __all__ = exports(__name__, at_once=True)
