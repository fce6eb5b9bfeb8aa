"""From a spec of kind "table" back to the mechanism: its integers are read and verified, never computed again."""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable import exact
from deniable.errors import SpecError
from deniable.exact import WORD
from deniable.protocols.profiles.baselines import KaryResponse, Warner
from deniable.protocols.profiles.categorical import SmoothCategorical
from deniable.protocols.profiles.graph import ProfileGraph
from deniable.protocols.profiles.mechanism import ProfileMechanism
from deniable.protocols.profiles.onebit import OneBitCluster, SmoothOneBit
from deniable.specs import parsed, read_integer

MECHANISMS: dict[str, type[ProfileMechanism]] = {
    cls.name: cls for cls in (KaryResponse, OneBitCluster, SmoothCategorical, SmoothOneBit, Warner)
}
"""Every mechanism that a spec may name."""


def load(spec: Any) -> ProfileMechanism:
    """The mechanism of a spec, given as a dictionary or as JSON text; its epsilon is verified on the way in.

    >>> mechanism = OneBitCluster(ProfileGraph.chain([0.2, 0.7]), epsilon=1)
    >>> load(mechanism.spec()) == mechanism
    True
    """
    spec = parsed(spec)
    match spec:
        case {
            "kind": "table",
            "version": 1,
            "mechanism": str(name),
            "graph": graph,
            "epsilon": str(epsilon),
            "table": list(rows),
            **rest,
        } if not rest:
            pass
        case _:
            raise SpecError('a profile mechanism has "kind": "table", version 1, mechanism, graph, epsilon and table')
    if name not in MECHANISMS:
        raise SpecError(f"there is no profile mechanism {name!r}; there are {', '.join(sorted(MECHANISMS))}")
    known = ProfileGraph.load(graph)
    shape = (known.size, known.whole.width, known.whole.width)
    table = np.empty(shape, dtype=object)
    try:
        table[:] = [[[read_integer(entry) for entry in row] for row in channel] for channel in rows]
    except (TypeError, ValueError):
        raise SpecError(f"the table holds integers as text, {shape[0]} x {shape[1]} x {shape[2]}") from None
    if (table < 0).any() or (table.sum(axis=2) != WORD).any():
        raise SpecError("each row of the table holds integers that are not negative and sum to 2^64")
    made = MECHANISMS[name]._stored(known, exact.as_epsilon(epsilon), table)
    if made.spec() != spec:
        raise SpecError("the spec is not in canonical form: load and write it again")
    return made
