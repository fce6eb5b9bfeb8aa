"""Profile-based privacy: hide which distribution a person's data come from, and not more than that.

A `ProfileGraph` says which profiles must look alike; `OneBitCluster`, `SmoothOneBit` and `SmoothCategorical` find how
little noise that takes; a `ProfileTable` is such a mechanism as the protocol of a question; `verify` checks any set of
channels exactly; `compose` says what several releases tell.
"""

from __future__ import annotations

from deniable.protocols.profiles.composition import (
    Composition,
    compose,
    independent_profiles,
    independent_samples,
    linked_profiles,
    post_process,
    same_sample,
)
from deniable.protocols.profiles.graph import (
    ProfileGraph,
    Verdict,
    from_csv,
    from_data,
    from_json,
    from_networkx,
    verify,
)
from deniable.protocols.profiles.mechanism import MECHANISMS, ProfileMechanism, SolverError
from deniable.protocols.profiles.smooth import (
    KaryResponse,
    OneBitCluster,
    SmoothCategorical,
    SmoothOneBit,
    Warner,
    pair_flip,
    pair_program,
)
from deniable.protocols.profiles.table import ProfileTable

__all__ = [
    "MECHANISMS",
    "Composition",
    "KaryResponse",
    "OneBitCluster",
    "ProfileGraph",
    "ProfileMechanism",
    "ProfileTable",
    "SmoothCategorical",
    "SmoothOneBit",
    "SolverError",
    "Verdict",
    "Warner",
    "compose",
    "from_csv",
    "from_data",
    "from_json",
    "from_networkx",
    "independent_profiles",
    "independent_samples",
    "linked_profiles",
    "pair_flip",
    "pair_program",
    "post_process",
    "same_sample",
    "verify",
]
