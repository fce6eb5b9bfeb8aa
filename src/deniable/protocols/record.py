"""Records: the facts of a protocol as data, some of them computed when they are first read.

A record has the fields that its class lists in `defaults`. A field in `lazy` may be given as a function without
arguments, which is called once, when the field is read. `but` copies a record and changes some facts: a kind takes the
record of its family and changes its own facts, and a wrapper maps the record of the protocol that it wraps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ClassVar, Self, TypeVar

KEPT = "_kept_"
"""The prefix of the attributes that hold remembered records."""
_MOST = 32
"""The most records that one protocol remembers, for different numbers of people."""


class Record:
    """Frozen facts; see the head of this file."""

    defaults: ClassVar[Mapping[str, Any]] = {}
    lazy: ClassVar[frozenset[str]] = frozenset()
    changed: frozenset[str]
    """The fields that were given by `but`."""

    def __init__(self, **facts: Any) -> None:
        vars(self).update(
            _later={},
            changed=frozenset(),
            **{name: value for name, value in self.defaults.items() if name not in self.lazy},
        )
        vars(self)["_later"].update({name: value for name, value in self.defaults.items() if name in self.lazy})
        self._take(facts)

    def _take(self, facts: Mapping[str, Any]) -> None:
        for name, value in facts.items():
            if name not in self.defaults:
                raise TypeError(f"{type(self).__name__} has no field {name!r}: it has {', '.join(self.defaults)}")
            vars(self).pop(name, None)
            vars(self)["_later"].pop(name, None)
            (vars(self)["_later"] if name in self.lazy else vars(self))[name] = value

    def but(self, **facts: Any) -> Self:
        """The same record with these facts instead."""
        made = object.__new__(type(self))
        vars(made).update(vars(self), _later=dict(vars(self)["_later"]), changed=self.changed | set(facts))
        made._take(facts)
        return made

    def __getattr__(self, name: str) -> Any:
        later = vars(self).get("_later", {})
        if name not in later:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}")
        value = later[name]() if callable(later[name]) else later[name]
        vars(self)[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a {type(self).__name__} is frozen: use but({name}=...)")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(self.defaults)}>"


Hook = TypeVar("Hook", bound=Callable[..., Any])


def remembered(hook: Hook) -> Hook:
    """Keep the records that a hook returns, per protocol and arguments; those of a base class are kept separately."""
    name = f"{KEPT}{hook.__qualname__}"

    @wraps(hook)
    def kept(self: Any, *args: Any, **more: Any) -> Any:
        known = vars(self).setdefault(name, {})
        key = (args, tuple(sorted(more.items())))
        if key not in known:
            while len(known) >= _MOST:
                del known[next(iter(known))]
            known[key] = hook(self, *args, **more)
        return known[key]

    return kept  # type: ignore[return-value]
