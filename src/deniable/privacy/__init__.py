"""What all that is known about one person adds up to."""

from deniable.privacy.composition import (
    Account,
    CannotCompose,
    Composition,
    Loss,
    OverBudget,
    compose,
    parallel,
    ratios,
    sequential,
)

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
