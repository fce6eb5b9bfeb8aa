from deniable.protocols.profiles.composition import (
    Composition as Composition,
    compose as compose,
    independent_profiles as independent_profiles,
    independent_samples as independent_samples,
    linked_profiles as linked_profiles,
    post_process as post_process,
    same_sample as same_sample,
)
from deniable.protocols.profiles.graph import (
    ProfileGraph as ProfileGraph,
    Verdict as Verdict,
    from_csv as from_csv,
    from_data as from_data,
    from_json as from_json,
    from_networkx as from_networkx,
    verify as verify,
)
from deniable.protocols.profiles.mechanism import (
    MECHANISMS as MECHANISMS,
    ProfileMechanism as ProfileMechanism,
    SolverError as SolverError,
)
from deniable.protocols.profiles.smooth import (
    KaryResponse as KaryResponse,
    OneBitCluster as OneBitCluster,
    SmoothCategorical as SmoothCategorical,
    SmoothOneBit as SmoothOneBit,
    Warner as Warner,
    pair_flip as pair_flip,
    pair_program as pair_program,
)
from deniable.protocols.profiles.table import ProfileTable as ProfileTable
