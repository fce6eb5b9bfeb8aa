"""A manifest: which files have been counted, and what they held, so that a run can go on where another stopped.

File       JSON: kind "tally-manifest", version 1, the fingerprint of the survey or protocol, and for each file its
           size, time of change, checksum of its end (for Parquet, the footer), rows and tallies; counts are 64-bit
           integers, little-endian, compressed, in base64
Whole      rewritten under its name in one step, every few seconds and at the end: a killed run loses seconds
Changed    a file whose size, time or end differs, or whose time is not known, is counted anew
Secrets    URLs are kept without user and password, and of their options only a hash
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from deniable.engines.layout import Layout
from deniable.engines.places import Place
from deniable.engines.units import Tallies
from deniable.engines.urls import is_url, open_url, shown, split_options
from deniable.errors import MismatchError, SpecError
from deniable.protocols import Tally
from deniable.surveys.strict import parse_json
from deniable.surveys.whole import whole

VERSION = 1
SECONDS_BETWEEN = 2.0
_LONGEST_END = 1 << 26
_SHORTEST_END = 1 << 12


class Manifest:
    """The files done so far; `keep` adds one and now and then writes all."""

    def __init__(self, path: str | Path, layout: Layout) -> None:
        self._path, self._layout = Path(path), layout
        self._files: dict[str, dict[str, Any]] = {}
        self._due = time.monotonic() + SECONDS_BETWEEN
        if self._path.exists():
            self._files = self._read()
        else:
            # A place that cannot be written is better known before the work than after.
            self.write()

    def known(self, place: Place) -> tuple[int, Tallies] | None:
        """Rows and tallies of a file that has not changed since it was counted."""
        entry = self._files.get(_key(place))
        if entry is None or place.once or entry["size"] != place.size or entry["modified"] != place.modified:
            return None
        if place.modified is None:
            return None  # nobody can tell whether it has changed
        try:
            same = entry["end"] == end_checksum(place)
        except OSError:
            return None  # counting will name what is wrong with it
        return (entry["rows"], self._tallies(entry)) if same else None

    def keep(self, place: Place, end: str | None, rows: int, tallies: Tallies) -> None:
        """Take a file down as done; `end` is its checksum from before it was counted."""
        if place.once:
            return
        packed = {name: {"n": tally.n, "counts": _packed(tally)} for name, tally in tallies.items()}
        entry = {"size": place.size, "modified": place.modified, "end": end, "rows": rows, "tallies": packed}
        self._files[_key(place)] = entry
        if time.monotonic() >= self._due:
            self.write()

    def write(self) -> None:
        start = time.monotonic()
        content = {"kind": "tally-manifest", "version": VERSION, self._layout.kind: self._layout.fingerprint}
        with whole(self._path) as file:
            file.write(json.dumps(content | {"files": self._files}, separators=(",", ":")).encode())
        now = time.monotonic()
        # However large it grows, writing it takes a small share of the time.
        self._due = now + max(SECONDS_BETWEEN, 20 * (now - start))

    def _read(self) -> dict[str, dict[str, Any]]:
        where = repr(str(self._path))
        content = parse_json(self._path.read_bytes(), where)
        match content:
            case {"kind": "tally-manifest", "version": 1, "files": dict(files)}:
                pass
            case {"kind": "tally-manifest", "version": version}:
                raise SpecError(f"{where} is a manifest of version {version!r}: try a newer deniable")
            case _:
                raise SpecError(f"{where} is no manifest of a tally: give another name, or remove it")
        owner = content.get(self._layout.kind)
        if owner != self._layout.fingerprint:
            raise MismatchError(
                f"the manifest {where} does not belong to {self._layout.kind} {self._layout.fingerprint}"
            )
        for name, entry in files.items():
            if not isinstance(entry, dict) or set(entry) != {"size", "modified", "end", "rows", "tallies"}:
                raise SpecError(f"{where} is damaged at {name!r}: remove it to count everything anew")
        return files

    def _tallies(self, entry: dict[str, Any]) -> Tallies:
        where = repr(str(self._path))
        try:
            return {
                name: Tally(
                    self._layout.protocols[name].fingerprint,
                    packed["n"],
                    _unpacked(packed["counts"], self._layout.protocols[name].tally_size),
                    self._layout.source(name),
                )
                for name, packed in entry["tallies"].items()
            }
        except (KeyError, TypeError, ValueError, zlib.error):
            raise SpecError(f"{where} is damaged: remove it to count everything anew") from None


def end_checksum(place: Place) -> str | None:
    """SHA-256 of a Parquet file's footer, and of the last bytes of any other file; None where there is none."""
    if place.once or place.size is None:
        return None
    with _opened(place.name) as file:
        file.seek(max(0, place.size - 8))
        last = file.read(8)
        length = _SHORTEST_END
        if last[4:] == b"PAR1":
            length = min(_LONGEST_END, int.from_bytes(last[:4], "little") + 8)
        file.seek(max(0, place.size - length))
        return hashlib.sha256(file.read(length)).hexdigest()


def _opened(name: str) -> Any:
    return open_url(name)[0] if is_url(name) else open(name, "rb")


def _key(place: Place) -> str:
    if not is_url(place.name):
        return os.path.realpath(place.name)
    # Of options, which may be secret, only whether they are the same.
    options = split_options(place.name)[1]
    return shown(place.name) + (f"#{hashlib.sha256(options.encode()).hexdigest()[:16]}" if options else "")


def _packed(tally: Tally) -> str:
    return base64.b64encode(zlib.compress(tally.counts.astype("<i8").tobytes(), 1)).decode()


def _unpacked(text: str, size: int) -> Any:
    counts = np.frombuffer(zlib.decompress(base64.b64decode(text, validate=True)), dtype="<i8")
    if counts.size != size:
        raise ValueError("a tally of another size")
    return counts
