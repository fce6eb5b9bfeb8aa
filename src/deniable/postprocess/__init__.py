"""Functions on vectors of estimates: explicit steps that make them consistent."""

from __future__ import annotations

from deniable.postprocess.simplex import clip_renormalize, project_simplex

__all__ = ["clip_renormalize", "project_simplex"]
