"""Privacy accounting: what several releases about one person give away together."""

from __future__ import annotations

from deniable.privacy.accounting import Account, OverBudget, parallel, ratios, sequential

__all__ = ["Account", "OverBudget", "parallel", "ratios", "sequential"]
