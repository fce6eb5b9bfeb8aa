"""Post-processing of estimates: named methods, the simplex, and power laws."""

from __future__ import annotations

from deniable.postprocess.methods import (
    METHODS,
    Method,
    apply,
    base_cut,
    clip,
    cut_quantile,
    named,
    none,
    norm,
    norm_mul,
    norm_sub,
    power,
)
from deniable.postprocess.power_law import fitted_exponent, power_shares
from deniable.postprocess.simplex import clip_renormalize, project_simplex

__all__ = [
    "METHODS",
    "Method",
    "apply",
    "base_cut",
    "clip",
    "clip_renormalize",
    "cut_quantile",
    "fitted_exponent",
    "named",
    "none",
    "norm",
    "norm_mul",
    "norm_sub",
    "power",
    "power_shares",
    "project_simplex",
]
