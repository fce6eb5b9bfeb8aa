"""Everything that the protocols say, as one file: a change of the code that is no change of meaning leaves it as it is.

    make dump          writes tests/golden/dump.json.gz
    make dump-check    compares with it, and names what differs

Each example of each kind and each pinned protocol gives its fingerprint, ratio, channel, formats, guarantee, the tally
of simulated reports, every number of its result, errors, cost, leverage and life of a report; each survey of
`tests/surveys/test_promises.py` all of its sentences. Integers and texts must be equal, floats agree to nine digits.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from deniable.errors import DeniableError
from deniable.protocols import Protocol, registered
from deniable.protocols.traits import scaled
from deniable.randomness import Simulation
from deniable.results import Result, View
from deniable.surveys.promises import band, promises
from tests.protocols.test_golden import PINNED
from tests.surveys.test_promises import all_surveys, named

FILE = Path(__file__).parent / "golden" / "dump.json.gz"
CELLS, SIMULATED_BYTES, MOST_PEOPLE = 1 << 13, 1 << 20, 100_000
PEOPLE = (10, 1_000, 1_000_000)
LISTED = 64
"""Entries of a list that are kept: of longer ones every so many."""
NEAR = 1e-9


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def plain(value: Any) -> Any:
    """JSON of any fact: fractions as text, arrays as lists, records by their fields."""
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float | np.floating):
        return float(f"{value:.12g}") if math.isfinite(value) else str(value)
    if isinstance(value, np.integer | np.bool_):
        return value.item()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in (value if len(value) <= LISTED else value[:: -(-len(value) // LISTED)])]
    return repr(value)


def tried(fact: Callable[[], Any]) -> Any:
    """A fact, or why there is none: refusals are facts, too."""
    try:
        return plain(fact())
    except Exception as refused:
        return f"{type(refused).__name__}: {refused}" if isinstance(refused, DeniableError) else type(refused).__name__


def answers(protocol: Protocol) -> list[Any]:
    try:
        listed = [
            protocol.domain.answer(label) for (label, _), _ in zip(protocol.law().inputs(), range(64), strict=False)
        ]
    except DeniableError:
        listed = []
    return listed or [protocol.domain.example]


def channel_of(protocol: Protocol) -> str:
    channel = protocol.channel(max_cells=CELLS)
    return digest(repr([[str(entry) for entry in row] for row in channel.numerators]).encode()) + repr(channel.shape)


def collected(protocol: Protocol) -> dict[str, Any]:
    """What a simulated collection gives, down to the last number of its result."""
    people = max(64, min(MOST_PEOPLE, SIMULATED_BYTES // protocol.report_bytes))
    some = answers(protocol)
    given = [some[(place * place) % len(some)] for place in range(people)]
    reports = protocol.privatize(given, bits=Simulation(2026))
    tally = protocol.tally(reports)
    facts: dict[str, Any] = {
        "people": people,
        "reports": digest(np.asarray(reports).tobytes()),
        "counts": digest(tally.counts.astype("<i8").tobytes()),
        "plausible": int(protocol.law().plausible(reports).sum()),
    }
    named = ([str(one) for one in some],) if protocol.traits.answers != "all" else ()
    result = protocol.estimate(tally, *named)
    for level, population in ((0.95, True), (0.8, False)):
        facts[f"result {level} {population}"] = tried(lambda: read(result, level, population))  # noqa: B023
    facts["text"] = tried(lambda: str(result))
    facts["misfit"] = tried(lambda: protocol.misfit(tally).p_value)
    return facts


def read(result: Result, level: float, population: bool) -> dict[str, Any]:
    """The numbers of a result's table and what is said with them, as its document has them."""
    document = result.document(View(level, population=population))
    names = ("kind", "protocol", "method", "n", "level", "population", "simultaneous", "notes")
    content = {name: getattr(document, name) for name in names}
    content |= {"rows": full(document.rows), "misfit": document.trust.misfit}
    return content | {name: getattr(document, name) for name in ("fakes", "assumed") if getattr(document, name)}


def full(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of several sections with the columns of all of them."""
    columns = dict.fromkeys(column for row in rows for column in row)
    return [{column: row.get(column) for column in columns} for row in rows]


def told(protocol: Protocol) -> dict[str, Any]:
    """What a protocol says of itself."""
    worth, law = protocol.worth(), protocol.law()
    kept = law.kept
    facts: dict[str, Callable[[], Any]] = {
        "fingerprint": lambda: protocol.fingerprint,
        "repr": lambda: repr(protocol),
        "ratio": lambda: protocol.ratio,
        "guarantee": lambda: tuple(protocol.guarantee[:4]),
        "whole": lambda: kept.ratio,
        "format": lambda: [protocol.report_bytes, str(law.forms), protocol.tally_size],
        "channel": lambda: channel_of(protocol),
        "reads": lambda: [protocol.worth().read, protocol.traits.serves],
        "fresh, local": lambda: [protocol.traits.fresh, protocol.traits.local],
        "clear": lambda: [law.clear, law.clear_bytes, worth.strata],
        "kept": lambda: [
            kept.state_forms > 10**9 or kept.state_forms,
            kept.noise,
        ],
        "linking": lambda: [kept.linking(epochs) for epochs in (1, 30)],
        "spent": lambda: [
            kept.spent(7),
            kept.lifetime(30),
            kept.lifetime(30, 3),
        ],
        "blankets": lambda: law.blankets,
        "likeliest": lambda: law.likeliest,
        "another": lambda: law.wrong_answer,
        "noise": lambda: [protocol.worth(n).noise for n in PEOPLE],
        "error": lambda: [protocol.worth(n, population=own).error for n in PEOPLE for own in (True, False)],
        "visible": lambda: [protocol.worth(n).visible(0.95) for n in PEOPLE],
        "unit": lambda: [worth.unit, worth.scale, worth.tests, worth.unreadable],
        "leverage": lambda: [worth.leverage, worth.moved],
        "attack": lambda: worth.guess,
        "remark": lambda: protocol.worth(10_000).remark(0.95),
        "parts": lambda: {name: [part.fingerprint, n] for name, (part, n) in protocol.worth(10_000).parts.items()},
        "scaled": lambda: scaled(protocol, Fraction(9, 8)).fingerprint,
        "truth": lambda: worth.truth(answers(protocol)),
        "variances": lambda: [worth.variances(answers(protocol)), worth.scales],
        "spreads": lambda: worth.spreads(answers(protocol)),
        "story": lambda: story(protocol),
        "collected": lambda: collected(protocol),
    }
    return {name: tried(fact) for name, fact in facts.items()}


def story(protocol: Protocol) -> list[Any]:
    value = answers(protocol)[0]
    report = protocol.report(value, bits=Simulation(5))
    return [report.hex(), *(list(step) for step in protocol.explain(value, report))]


def instances() -> list[Protocol]:
    return [one for _, kind in sorted(registered().items()) for one in kind.examples()] + PINNED


def dump() -> Iterator[tuple[str, Any]]:
    for protocol in track(instances(), "protocols", disable=not sys.stderr.isatty()):
        yield f"{protocol.name} {protocol.fingerprint[:16]}", told(protocol)
    for place, survey in enumerate(track(all_surveys(), "surveys", disable=not sys.stderr.isatty())):
        said = {"band": tried(lambda: band(survey))}  # noqa: B023
        for here, lasting in (("device", True), ("browser", False)):
            said |= {f"{name}, this {here}": text for name, text in promises(survey, here, lasting).items()}
        yield f"survey {place} {named(survey)}", {name: digest(str(text).encode()) for name, text in said.items()}


def differences(old: Any, new: Any, where: str = "") -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old.keys() | new.keys():
            if key not in old or key not in new:
                yield f"{where}/{key} is only in the {'new' if key in new else 'old'} one"
            else:
                yield from differences(old[key], new[key], f"{where}/{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(one, other, f"{where}/{place}")
    elif isinstance(old, float) and isinstance(new, int | float):
        if not math.isclose(old, new, rel_tol=NEAR, abs_tol=1e-12):
            yield f"{where}: {old} became {new}"
    elif old != new:
        yield f"{where}: {str(old)[:200]} became {str(new)[:200]}"


def main(arguments: list[str]) -> int:
    found = json.loads(json.dumps(dict(dump())))
    if "--check" not in arguments:
        FILE.write_bytes(gzip.compress(json.dumps(found, sort_keys=True).encode(), mtime=0))
        print(f"{len(found)} entries, {FILE.stat().st_size:,} bytes")
        return 0
    differ = sorted(differences(json.loads(gzip.decompress(FILE.read_bytes())), found))
    for one in differ[:200]:
        print(one)
    print(f"{len(found)} entries, {len(differ)} differences")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
