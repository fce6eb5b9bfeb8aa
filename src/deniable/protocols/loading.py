"""From a spec back to the protocol: the same object, anywhere."""

from __future__ import annotations

import inspect
from typing import Any

from deniable.domains import load_domain
from deniable.errors import SpecError
from deniable.protocols import frequency
from deniable.protocols.base import Protocol
from deniable.specs import parsed

PROTOCOLS: dict[str, type[Protocol]] = {
    cls.name: cls
    for cls in (getattr(frequency, exported) for exported in frequency.__all__)
    if inspect.isclass(cls) and issubclass(cls, Protocol)
}
"""Every protocol that a spec may name."""

_HEAD = {"kind", "version", "protocol", "domain", "epsilon"}


def load(spec: Any) -> Protocol:
    """The protocol of a spec, given as a dictionary or as JSON text.

    >>> from deniable.protocols import OLH
    >>> load(OLH(1024, epsilon=1).spec()) == OLH(1024, epsilon=1)
    True
    """
    spec = parsed(spec)
    if isinstance(spec, dict) and spec.get("kind") == "table":
        raise SpecError("this is the spec of a profile mechanism, which deniable.load and deniable.profiles.load take")
    if not isinstance(spec, dict) or spec.get("kind") != "protocol":
        raise SpecError('this is not the spec of a protocol: it needs "kind": "protocol"')
    if spec.get("version") != 1:
        raise SpecError(f"protocol specs of version {spec.get('version')!r} are unknown here: only 1 is")
    name = spec.get("protocol")
    if not isinstance(name, str) or name not in PROTOCOLS:
        raise SpecError(f"there is no protocol {name!r}; there are {', '.join(sorted(PROTOCOLS))}")
    missing = _HEAD - set(spec)
    if missing:
        raise SpecError(f"the spec misses {', '.join(sorted(missing))}")
    if not isinstance(spec["epsilon"], str):
        raise SpecError('epsilon stands in a spec as text, like "1" or "1/2"')
    parameters = {key: value for key, value in spec.items() if key not in _HEAD}
    try:
        protocol = PROTOCOLS[name](load_domain(spec["domain"]), spec["epsilon"], **parameters)
    except TypeError:
        raise SpecError(f"the spec gives {name} parameters that it does not have: {', '.join(parameters)}") from None
    if protocol.spec() != spec:
        raise SpecError("the spec is not in canonical form: load and write it again")
    return protocol
