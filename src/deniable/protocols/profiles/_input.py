"""Reading what people give for profiles and edges, exactly, with one sentence for each thing that can be wrong."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.errors import LabelError, ProbabilityError, ShapeError
from deniable.exact import fraction, shown
from deniable.labels import Label, as_label, index_of, label_key

# A row of floats that is off by more than this was not meant to be a distribution.
_ROUNDING = Fraction(1, 10**9)


def read_profiles(profiles: Any) -> tuple[list[Any], list[Any], list[Any] | None]:
    """Labels, rows, and the names of values where the profiles bring them."""
    if isinstance(profiles, Mapping):
        rows = list(profiles.values())
        if rows and all(isinstance(row, Mapping) for row in rows):
            values = list(rows[0])
            keys = {label_key(as_label(value)) for value in values}
            for name, row in profiles.items():
                if {label_key(as_label(value)) for value in row} != keys:
                    raise ShapeError(f"profile {name!r} has other values than the first profile: all need the same")
            return list(profiles), [[row[value] for value in values] for row in rows], values
        return list(profiles), rows, None
    if isinstance(profiles, str) or not hasattr(profiles, "__iter__"):
        raise ShapeError("profiles are a dictionary, a list or an array, one entry a profile")
    rows = list(profiles)
    return list(range(len(rows))), rows, None


def read_law(row: Any, label: Label) -> list[Fraction]:
    """A profile read exactly; a lone number is a Bernoulli parameter, the probability of 1."""
    what = f"profile {label!r}"
    if isinstance(row, str) or not hasattr(row, "__iter__"):
        chance = fraction(row, what)
        if not 0 <= chance <= 1:
            raise ProbabilityError(f"{what} has the parameter {shown(chance)}: a probability lies between 0 and 1")
        return [1 - chance, chance]
    entries = [fraction(entry, f"an entry of {what}") for entry in row]
    if entries and min(entries) < 0:
        raise ProbabilityError(f"{what} has a negative entry ({shown(min(entries))})")
    total = sum(entries, Fraction(0))
    if abs(total - 1) > _ROUNDING:
        raise ProbabilityError(f"{what} sums to {shown(total)}, not to 1: divide it by its sum")
    return [entry / total for entry in entries]


def read_edges(edges: Any, labels: tuple[Label, ...]) -> NDArray[np.int64]:
    index = index_of(labels)
    try:
        listed = [(a, b) for a, b in getattr(edges, "edges", edges)]
    except (TypeError, ValueError):
        raise ShapeError("edges are a list of pairs of profile labels") from None
    found: dict[tuple[int, int], None] = {}
    for a, b in listed:
        i, j = (position_of(index, end, "end of an edge") for end in (a, b))
        if i == j:
            raise LabelError(f"the profile {a!r} has an edge to itself: an edge joins two different profiles")
        found[min(i, j), max(i, j)] = None
    if not found:
        raise ShapeError("the graph has no edges, so it protects nobody: join the profiles that must look alike")
    return np.array(list(found), dtype=np.int64)


def position_of(index: dict[Any, int], label: Any, what: str) -> int:
    place = index.get(label_key(as_label(label)))
    if place is None:
        raise LabelError(f"the {what} {label!r} is not one of the {len(index)} profiles")
    return place
