from deniable.postprocess.methods import (
    METHODS as METHODS,
    Method as Method,
    apply as apply,
    base_cut as base_cut,
    clip as clip,
    cut_quantile as cut_quantile,
    named as named,
    none as none,
    norm as norm,
    norm_mul as norm_mul,
    norm_sub as norm_sub,
    power as power,
)
from deniable.postprocess.power_law import fitted_exponent as fitted_exponent, power_shares as power_shares
from deniable.postprocess.simplex import clip_renormalize as clip_renormalize, project_simplex as project_simplex
