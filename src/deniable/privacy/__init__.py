"""What all that is known about one person adds up to."""

from deniable.privacy.accounting import Account, OverBudget, parallel, ratios, sequential
from deniable.privacy.composition import CannotCompose, Composition, Loss, compose

__all__ = [
    "Account",
    "CannotCompose",
    "Composition",
    "Loss",
    "OverBudget",
    "compose",
    "parallel",
    "ratios",
    "sequential",
]
