"""Planning a collection: which protocol, how many people, which epsilon.

`plan(domain, ...)` with any two of epsilon, n and width; the `Plan` explains itself when printed.
"""

from __future__ import annotations

from deniable.planning.candidates import CANDIDATES, TEXT_CANDIDATES, Candidate
from deniable.planning.planner import plan
from deniable.planning.result import Option, Plan

__all__ = ["CANDIDATES", "TEXT_CANDIDATES", "Candidate", "Option", "Plan", "plan"]
