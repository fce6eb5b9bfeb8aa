"""Planning a collection: which protocol, how many people, which epsilon.

`plan(domain, ...)` with any two of epsilon, n (or people) and within; the `Plan` explains itself when printed.
`half_width` says how exact a protocol is that is chosen already.
"""

from __future__ import annotations

from deniable.planning.planner import Option, Plan, half_width, plan

__all__ = ["Option", "Plan", "half_width", "plan"]
