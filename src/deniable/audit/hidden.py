"""Exact ratios between any two answers, also of more than can be listed: the answer is hidden from the code.

Run        a structure counts if it is what a device runs: the kind has no code of its own that draws a report, and
           inherits the draw of every protocol, which runs the structure
Members    the code that gets a set runs on an unknown set of each size
Seeded     the noise is drawn without the answer: its law is the ratio of any two answers, whatever their cells are
Hashed     the kind's own code runs on an answer at which it cannot look; what the hash function makes of it is hidden,
           too. Whether the hash function is one of this package, whether it gives what the structure says, and whether
           the reports are the same bytes if only the hash is known, is checked
Numbers    of a long list of answers: the kind's own code runs on a hidden number
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from itertools import combinations, islice
from typing import Any

from deniable.audit.structure import Worst, largest_ratio, largest_ratio_of_hidden, largest_ratio_of_sets
from deniable.domains import ListedDomain
from deniable.errors import NumberError
from deniable.protocols import Protocol
from deniable.protocols.structures import RUN, Choice, Hashed, Mapped, Members, Seeded, Stages, Structure
from deniable.randomness import Simulation
from deniable.randomness.symbolic import Hidden, Run, Sealed, TooManyRuns, Unknown, follow

FEW_CELLS, MANY_ANSWERS = 64, 1 << 10
"""Cells that are followed one by one; answers that are, of more it is tried first whether the code looks at them."""
_AGREE = 16
_PACKAGE = "deniable"


def run_by(protocol: Protocol) -> Structure | None:
    """The structure that draws the reports of a protocol; None if the kind has code of its own for that."""
    kind = type(protocol)
    if kind.draw is not Protocol.draw or kind._kept_draw is not Protocol._kept_draw or "draw" in vars(protocol):
        return None
    draw: Any = protocol._kept_draw
    structure: Any = getattr(draw, "__self__", None)
    return structure if type(structure) in RUN and draw.__func__ is type(structure).draw else None


def chosen_by(protocol: Protocol, answers: Sequence[Any]) -> Choice | None:
    """The choice that draws the reports, if it depends on nothing but chance and the parts sent in clear.

    None if a member would be asked about something that is not one of its answers: no report is sent then.
    """
    match run_by(protocol):
        case Choice() as choice if choice.place is None or choice.clear == len(protocol.law().clear):
            encoded = [protocol.domain.encode_one(answer) for answer in answers]
            parts = ((member, choice.project(one, number)) for one in encoded
                     for number, member in enumerate(choice.members))  # fmt: skip
            return choice if all(_is_answer(member, part) for member, part in parts) else None
    return None


def mapped_by(protocol: Protocol, answers: Sequence[Any]) -> Mapped | None:
    """The map that draws the reports; None as above."""
    match run_by(protocol):
        case Mapped() as mapped:
            bits = Simulation(0)
            found = (mapped.value(protocol.domain.encode_one(answer), bits) for answer in answers)
            return mapped if all(_is_answer(mapped.inner, one) for one in found) else None
    return None


def _is_answer(protocol: Protocol, encoded: Any) -> bool:
    return not isinstance(protocol.domain, ListedDomain) or 0 <= int(encoded) < protocol.domain.size


def of_members(protocol: Protocol) -> Callable[[], Worst] | None:
    """How to judge a law without listing it, where a structure makes a set or a cell of an answer; else None."""
    match run_by(protocol):
        case Mapped(inner=inner):
            return of_members(inner)
        case Members() as members:
            return partial(_of_members, members)
        case Seeded() as seeded:
            return partial(_of_seeded, seeded, protocol)
    return None


def _of_members(members: Members) -> Worst:
    sizes, universe = members.sizes, members.universe
    then: Callable[[Any, Any], bytes] = members.then
    runs: dict[int, Sequence[Run]] = {size: follow(partial(then, Unknown(size, universe))) for size in sizes}
    worst = largest_ratio_of_sets(runs, universe)
    many = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    said = (
        f"any answer becomes {many} of {universe:,} elements by the code of `Members`, which the kind does not change; "
        "what it does with them was followed without knowing them, so it holds for every answer"
    )
    return Worst(worst.ratio, worst.reached, worst.pair, (said, *worst.rules))


def _of_seeded(seeded: Seeded, protocol: Protocol) -> Worst:
    """The ratio of the noise, which two answers reach if under some seed their reports are not the same set."""

    def near(answer: int, seed: int) -> set[int]:
        cell = seeded.hashed(answer, seed)
        return {seeded.added(cell, noise) for noise in range(seeded.window)}

    some = range(min(protocol.domain.size, FEW_CELLS) if isinstance(protocol.domain, ListedDomain) else 0)
    tried = ((one, 0, seed) for seed in range(1, min(seeded.seeds, FEW_CELLS) + 1) for one in some)
    for one, other, seed in tried:
        if near(one, seed) != near(other, seed):
            said = (
                "seed and noise are drawn without the answer by the code of `Seeded`, which the kind does not change; "
                "the ratio is that of the noise, so it holds for every answer"
            )
            return Worst(seeded.ratio, True, (one, other), (said,))
    raise TooManyRuns("no two answers were found whose cells differ")


def of_hidden(protocol: Protocol, listed: Sequence[Any], most_runs: int) -> Worst | None:
    """The largest ratio of more answers than can be followed, if the code does not look at the answer; else None.

    The number of an answer, the cell of a text or the bits of its filter are hidden. Some of them stand for all.
    """
    structure = protocol.law().structure
    match structure:
        case Stages(answer=first):
            structure = first
    followed = False
    devices: list[Callable[[Any], Any]]
    if isinstance(protocol.domain, ListedDomain):
        size = protocol.domain.size
        if size <= MANY_ANSWERS:
            return None
        devices = [partial(protocol.draw, Hidden(value, size)) for value in range(3)]
        said = f"which of {size:,} answers it is was hidden from the code"
    else:
        match structure:
            case Hashed() as hashed if _sees_alone(protocol, hashed, listed):
                seen = _seen(hashed)
            case _:
                return None
        if not seen:
            return None
        followed = hashed.count is None and hashed.size <= FEW_CELLS
        devices = [_seeing(protocol, hashed, Sealed(), lambda *given, one=one: one) for one in seen]
        what = f"one of {hashed.size:,} cells" if hashed.count is None else f"{hashed.count} of {hashed.size:,} bits"
        one = "one" if hashed.count is None else "ones"
        how = "each of them was followed" if followed else f"which {one} was hidden from the code"
        said = f"any answer becomes {what}, by `{hashed.via}`; {how}"
    try:
        runs = [follow(device, most_runs) for device in devices]
        worst = largest_ratio(runs) if followed else largest_ratio_of_hidden(runs)
    except NumberError:
        return None
    return Worst(worst.ratio, worst.reached, worst.pair, (f"{said}, so it holds for every answer", *worst.rules))


def _seen(hashed: Hashed) -> list[Any]:
    """What a hash function may give: numbers that stand for all; empty if these are too many."""
    if hashed.count is None:
        return list(range(hashed.size)) if hashed.size <= FEW_CELLS else [Hidden(one, hashed.size) for one in range(3)]
    # Two sets of places and their order are as two are of twice as many places as one set has.
    chosen = list(islice(combinations(range(2 * hashed.count), hashed.count), FEW_CELLS + 1))
    return [] if len(chosen) > FEW_CELLS else [[Hidden(place, hashed.size) for place in own] for own in chosen]


class _Instead:
    """An object, but for one of its methods."""

    def __init__(self, real: Any, name: str, method: Callable[..., Any]) -> None:
        self._real = real
        setattr(self, name, method)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def _seeing(protocol: Any, hashed: Hashed, answer: Any, method: Callable[..., Any]) -> Callable[[Any], Any]:
    """The code of a report about an answer, with another method in the place of the hash function."""
    made, (*owner, name) = copy(protocol), hashed.via.split(".")
    if owner:
        vars(made)[owner[0]] = _Instead(getattr(protocol, owner[0]), name, method)
    else:
        vars(made)[name] = method
    return partial(made.draw, answer)


def _sees_alone(protocol: Any, hashed: Hashed, answers: Sequence[Any]) -> bool:
    """Whether the hash function is a known one, and some reports are the same bytes if only the hash is known.

    And whether it gives what the structure says, for many answers and in the cohorts of these reports.
    """
    *owner, name = hashed.via.split(".")
    if len(owner) > 1:
        return False
    holder = getattr(protocol, owner[0], None) if owner else protocol
    method: Any = getattr(holder, name, None)
    if not _is_ours(getattr(method, "__func__", None)) or (owner and not _is_ours(type(holder))):
        return False
    hidden, calls = Sealed(), []
    encoded = [protocol.domain.encode_one(answer) for answer in answers]
    for seed in range(_AGREE):
        answer = encoded[seed % len(encoded)]

        def known(*given: Any, answer: Any = answer) -> Any:
            calls.append(given)
            return method(*_with(given, hidden, answer))

        try:
            sent = _seeing(protocol, hashed, hidden, known)(Simulation(seed))
        except (TooManyRuns, TypeError, AttributeError):
            return False
        if bytes(sent) != bytes(protocol.draw(answer, Simulation(seed))):
            return False
    tried = ((calls[number % len(calls)], answer) for number, answer in enumerate(encoded) if calls)
    return bool(calls) and all(_is_hash(hashed, method(*_with(given, hidden, answer))) for given, answer in tried)


def _with(given: Sequence[Any], hidden: Sealed, answer: Any) -> list[Any]:
    return [answer if one is hidden else one for one in given]


def _is_hash(hashed: Hashed, found: Any) -> bool:
    places = [found] if hashed.count is None else list(found)
    small = all(type(place) is int and 0 <= place < hashed.size for place in places)
    return small and len(places) == (hashed.count or 1) and sorted(set(places)) == places


def _is_ours(code: Any) -> bool:
    """Whether a function or a class is the one of this package under its name."""
    module = str(getattr(code, "__module__", ""))
    found: Any = sys.modules.get(module)
    for name in str(getattr(code, "__qualname__", "")).split("."):
        found = getattr(found, name, None)
    return module.split(".")[0] == _PACKAGE and found is code
