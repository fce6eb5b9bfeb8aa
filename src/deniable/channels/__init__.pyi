from deniable.channels import hypothesis as hypothesis, inference as inference
from deniable.channels.adjacency import (
    ALL as ALL,
    HAMMING as HAMMING,
    LINE as LINE,
    Adjacency as Adjacency,
    Witness as Witness,
    hamming as hamming,
    line as line,
)
from deniable.channels.capacities import Capacity as Capacity, capacity as capacity
from deniable.channels.channel import Channel as Channel
from deniable.channels.closed_forms import (
    RandomizedResponse as RandomizedResponse,
    binary as binary,
    coin_response as coin_response,
    exponential as exponential,
    product_response as product_response,
    randomized_response as randomized_response,
    subset_selection as subset_selection,
    warner as warner,
)
from deniable.channels.compose import (
    Collection as Collection,
    Query as Query,
    collection as collection,
    group_ratio as group_ratio,
    mixture as mixture,
    product as product,
)
from deniable.channels.divergences import (
    DIVERGENCES as DIVERGENCES,
    FDivergence as FDivergence,
    divergence as divergence,
    marginal_divergence as marginal_divergence,
)
from deniable.channels.leakages import (
    Leakage as Leakage,
    leakage as leakage,
    min_capacity as min_capacity,
    mutual_information as mutual_information,
    posterior_vulnerability as posterior_vulnerability,
    prior_vulnerability as prior_vulnerability,
)
from deniable.channels.noise import (
    DiscreteLaplace as DiscreteLaplace,
    GridLaplace as GridLaplace,
    Noise as Noise,
    noisy_count as noisy_count,
    noisy_max_law as noisy_max_law,
    report_noisy_max as report_noisy_max,
    truncated_geometric as truncated_geometric,
    two_sided_geometric as two_sided_geometric,
)
from deniable.channels.utilities import Utility as Utility, utility as utility
