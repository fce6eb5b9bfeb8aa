"""The total privacy loss of one person, attacks on it, and audits of the epsilon that a client claims."""

from deniable.privacy.attacks import Attack, Repeated, attack, averaging, surest
from deniable.privacy.audit import Audit, audit
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
from deniable.privacy.guesses import (
    Case,
    Evidence,
    Guess,
    correlated,
    household,
    profile_inference,
    recurrence,
    reidentify,
)
from deniable.privacy.poisoning import ATTACKS, Gain, Inspection, Moved, defences, forge, gain, gains, inspect
from deniable.privacy.shuffle import CannotShuffle, Shuffled, fewest_people, largest_epsilon, shuffled
from deniable.protocols.secure_sum import Collector, ImpossibleSum, SecureSum, TooFewShares, close_epoch

__all__ = [
    "ATTACKS",
    "Account",
    "Attack",
    "Audit",
    "CannotCompose",
    "CannotShuffle",
    "Case",
    "Collector",
    "Composition",
    "Evidence",
    "Gain",
    "Guess",
    "ImpossibleSum",
    "Inspection",
    "Loss",
    "Moved",
    "OverBudget",
    "Repeated",
    "SecureSum",
    "Shuffled",
    "TooFewShares",
    "attack",
    "audit",
    "averaging",
    "close_epoch",
    "compose",
    "correlated",
    "defences",
    "fewest_people",
    "forge",
    "gain",
    "gains",
    "household",
    "inspect",
    "largest_epsilon",
    "parallel",
    "profile_inference",
    "ratios",
    "recurrence",
    "reidentify",
    "sequential",
    "shuffled",
    "surest",
]
