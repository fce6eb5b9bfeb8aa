"""From any spec back to what it describes: a protocol (kind "protocol") or a profile mechanism (kind "table")."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from deniable.protocols.base import Protocol
from deniable.protocols.base import load as load_protocol

if TYPE_CHECKING:
    from deniable.protocols.profiles import ProfileMechanism


def load(spec: Any) -> Protocol | ProfileMechanism:
    """The protocol or the profile mechanism of a spec, given as a dictionary or as JSON text.

    >>> from deniable.protocols import OLH, profiles
    >>> load(OLH(1024, epsilon=1).spec()) == OLH(1024, epsilon=1)
    True
    >>> mechanism = profiles.SmoothOneBit(profiles.ProfileGraph.chain([0.2, 0.7]), epsilon=1)
    >>> load(mechanism.spec()) == mechanism
    True
    """
    if _kind(spec) == "table":
        from deniable.protocols import profiles

        return profiles.load(spec)
    return load_protocol(spec)


def _kind(spec: Any) -> Any:
    if isinstance(spec, str | bytes):
        try:
            spec = json.loads(spec)
        except ValueError:
            return None
    return spec.get("kind") if isinstance(spec, dict) else None
