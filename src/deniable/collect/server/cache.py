"""Answers to analysts, kept until something newer needs the room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable


class Cache:
    """Bytes by key, the least recently used forgotten first.

    >>> cache = Cache(10)
    >>> cache.put("a", b"12345"), cache.put("b", b"12345"), cache.get("a"), cache.put("c", b"1")
    (None, None, b'12345', None)
    >>> cache.get("b") is None, cache.get("a"), cache.get("c")
    (True, b'12345', b'1')
    """

    def __init__(self, most_bytes: int) -> None:
        self._most, self._size = most_bytes, 0
        self._held: OrderedDict[Hashable, bytes] = OrderedDict()

    def get(self, key: Hashable) -> bytes | None:
        found = self._held.get(key)
        if found is not None:
            self._held.move_to_end(key)
        return found

    def put(self, key: Hashable, value: bytes) -> None:
        if len(value) > self._most // 2:
            return
        self._size += len(value) - len(self._held.pop(key, b""))
        self._held[key] = value
        while self._size > self._most:
            _, gone = self._held.popitem(last=False)
            self._size -= len(gone)
