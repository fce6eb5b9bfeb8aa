"""Post-processing of estimates: explicit steps that make them consistent.

`apply(method, frequencies, stderr, n)` with a name from `METHODS`; `Estimate.consistent(method)` calls it.
"""

from __future__ import annotations

from deniable.postprocess.methods import METHODS, Method, apply, named
from deniable.postprocess.simplex import clip_renormalize, project_simplex

__all__ = ["METHODS", "Method", "apply", "clip_renormalize", "named", "project_simplex"]
