"""Reads what `deniable design` starts from: hypotheses, priors, losses and profile graphs.

Two laws   --p0 and --p1; CSV lines label,P0,P1 or P0,P1; or JSON with p0, p1 and perhaps inputs
Any laws   --law, once per law; or a CSV or JSON of `read_laws`
Prior      0.5,0.5 or yes=0.5,no=0.5; CSV lines label,probability or one probability per line; or JSON
Loss       a name, or a matrix in CSV or JSON
Profiles   two CSV files with headers, or one JSON
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from deniable import exact
from deniable._files import parse_csv, parse_json
from deniable.channels.utilities import NAMED
from deniable.cli.options import STDIN, errors_in, is_json, named, read_text
from deniable.cli.read_channels import Names, as_floats, is_number, read_laws, read_matrix, read_vector
from deniable.errors import LabelError, ShapeError, SpecError
from deniable.labels import Label, as_labels, label_key, load_label
from deniable.protocols.profiles import ProfileGraph, from_csv, from_json

# -- hypotheses ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TwoLaws:
    inputs: tuple[Any, ...] | None
    p0: list[Fraction]
    p1: list[Fraction]


def read_two_laws(source: str | None, p0: str | None, p1: str | None) -> TwoLaws:
    """Both hypotheses, from a file or from the options."""
    if (source is None) == (p0 is None) or (p0 is None) != (p1 is None):
        raise SpecError("give the two hypotheses in one file, or as --p0 and --p1")
    if p0 is not None and p1 is not None:
        inputs, laws = _inline({"P0": p0, "P1": p1})
        return TwoLaws(inputs, *laws)
    assert source is not None
    content, where = read_text(source), named(source)
    with errors_in(where):
        return _two_from_json(parse_json(content, where)) if is_json(content) else _two_from_csv(content, where)


def _inline(given: dict[str, str]) -> tuple[tuple[Any, ...] | None, list[list[Fraction]]]:
    """Laws by their names in errors. The first one says which symbols there are."""
    first = next(iter(given.values()))
    pieces = first.split(",")
    if os.path.lexists(first):
        labels: tuple[Any, ...] = tuple(range(len(parse_csv(read_text(first), named(first)))))
    else:
        written = [piece.rpartition("=")[0].strip() for piece in pieces]
        labels = as_labels(written if all(written) else None, len(pieces), "symbol")
    names = Names.of(labels, "symbol")
    has_names = "=" in first and not os.path.lexists(first)
    return labels if has_names else None, [read_vector(law, names, what) for what, law in given.items()]


def _two_from_json(content: Any) -> TwoLaws:
    if not isinstance(content, dict) or not {"p0", "p1"} <= content.keys():
        raise SpecError('the hypotheses are {"p0": [...], "p1": [...]}, and "inputs" if the symbols have names')
    laws = []
    for key in ("p0", "p1"):
        if not isinstance(content[key], list):
            raise SpecError(f'"{key}" must be a list of numbers')
        laws.append([exact.fraction(value, f"entry {i} of {key}") for i, value in enumerate(content[key])])
    inputs = content.get("inputs")
    return TwoLaws(None if inputs is None else as_labels(inputs, len(laws[0]), "symbol"), *laws)


def _two_from_csv(content: str, where: str) -> TwoLaws:
    rows = parse_csv(content, where)
    width = len(rows[0][1])
    if width not in (2, 3) or any(len(row) != width for _, row in rows):
        raise ShapeError("every line holds a label, P0 and P1, or P0 and P1 alone")
    body = rows if is_number(rows[0][1][-1]) else rows[1:]  # without a header
    if not body:
        raise ShapeError("there is no line below the header")
    p0, p1 = ([exact.fraction(row[i], f"the number in line {line}") for line, row in body] for i in (-2, -1))
    return TwoLaws(as_labels([row[0] for _, row in body], len(body), "symbol") if width == 3 else None, p0, p1)


def read_several_laws(source: str | None, given: list[str] | None) -> tuple[dict[Label, list[Fraction]], Any]:
    """Laws by name and the names of the symbols, from a file or from the options."""
    if (source is None) == (not given):
        raise SpecError("give the laws in one file, or as --law, once per law")
    if given:
        inputs, laws = _inline({f"law {place}": law for place, law in enumerate(given, start=1)})
        return dict(enumerate(laws)), inputs
    assert source is not None
    return read_laws(source)


# -- priors and losses ---------------------------------------------------------------------------------


def read_weights(source: str | None, labels: Sequence[Label], what: str) -> list[Fraction] | None:
    """A prior over known labels; None if it is not given."""
    return None if source is None else read_vector(source, Names.of(tuple(labels), what), "the prior")


def read_prior(source: str) -> tuple[tuple[Label, ...], list[Fraction]]:
    """Labels and weights of a prior that is given inline or in a file."""
    if source != STDIN and not os.path.lexists(source):
        pieces = [piece.rpartition("=") for piece in source.split(",")]
        if len(pieces) == 1 and not pieces[0][1]:
            raise SpecError(f"there is no file {source!r}: give the prior as a file, as 0.5,0.5 or as yes=0.5,no=0.5")
        return _weighed([(label if equals else None, value) for label, equals, value in pieces])
    content, where = read_text(source), named(source)
    with errors_in(where):
        if is_json(content):
            value = parse_json(content, where)
            return _weighed(list(value.items()) if isinstance(value, dict) else [(None, entry) for entry in value])
        rows = [row for _, row in parse_csv(content, where)]
        if any(len(row) != len(rows[0]) or len(row) > 2 for row in rows):
            raise ShapeError("a prior has lines label,probability, or one probability in each line")
        if len(rows) > 1 and not is_number(rows[0][-1]):
            rows = rows[1:]  # a header
        return _weighed([(row[0] if len(row) == 2 else None, row[-1]) for row in rows])


def _weighed(pairs: Sequence[tuple[Any, Any]]) -> tuple[tuple[Label, ...], list[Fraction]]:
    """Labels and exact weights, from pairs; labels may be None, but then all of them."""
    unnamed = [label is None for label, _ in pairs]
    if any(unnamed) and not all(unnamed):
        raise LabelError("give every probability of the prior a label, or none")
    weights = [exact.fraction(value, f"entry {i} of the prior") for i, (_, value) in enumerate(pairs)]
    names = None if any(unnamed) else _labels([label for label, _ in pairs])
    return as_labels(names, len(pairs), "input"), weights


def read_priors(sources: Sequence[str]) -> tuple[tuple[Label, ...], list[list[Fraction]]]:
    """Priors over the labels of the first one."""
    labels, first = read_prior(sources[0])
    priors = [first]
    for source in sources[1:]:
        names, weights = read_prior(source)
        places = {label_key(name): weight for name, weight in zip(names, weights, strict=True)}
        if len(names) != len(labels) or any(label_key(label) not in places for label in labels):
            raise LabelError("all users have a prior over the same inputs: give each the labels of the first")
        priors.append([places[label_key(label)] for label in labels])
    return labels, priors


def _labels(written: Sequence[str]) -> list[Label]:
    """Numbers if all are numbers, because losses compute with them; else texts."""
    texts = [piece.strip() for piece in written]
    if not all(map(is_number, texts)):
        return list(texts)
    numbers = [exact.fraction(piece) for piece in texts]
    return [int(value) if value.denominator == 1 else value for value in numbers]


def read_loss(source: str | None, labels: tuple[Label, ...]) -> tuple[Any, list[Label] | None]:
    """The name of a loss or gain; or its matrix, with the labels of the guesses."""
    if source is None or source in NAMED:
        return source, None
    if source != STDIN and not os.path.lexists(source):
        raise LabelError(f"{source!r} is none of {', '.join(NAMED)}, and there is no such file")
    content, where = read_text(source), named(source)
    if is_json(content):
        value = parse_json(content, where)
        if isinstance(value, list):
            return value, None
        names = value.get("guesses")
        return value.get("rows"), None if names is None else [load_label(name) for name in names]
    matrix = read_matrix(content, where)
    places = [Names.of(labels, "input").place(truth, f"{where}: ") for truth in matrix.columns]
    if sorted(places) != list(range(len(labels))):
        raise ShapeError(f"{where}: the first row names each of the {len(labels)} inputs once")
    table = [as_floats(numbers, "matrix") for numbers in matrix.numbers()]
    return [[row[places.index(x)] for x in range(len(labels))] for row in table], _labels(matrix.rows)


# -- profiles ------------------------------------------------------------------------------------------


def read_graph(source: str, edges: str | None) -> ProfileGraph:
    """The profiles and edges, from one JSON file or two CSV files."""
    content, where = read_text(source), named(source)
    if is_json(content):
        if edges is not None:
            raise SpecError(f"{where} is JSON, which holds the edges itself: leave out --edges")
        found = parse_json(content, where)
        with errors_in(where):
            if not isinstance(found, dict) or not isinstance(found.get("values", []), list):
                raise SpecError('a profile graph in JSON is {"profiles": {...}, "edges": [...]}, perhaps with "values"')
            return from_json(content)
    if edges is None:
        raise SpecError("say which profiles must look alike: --edges edges.csv, two profiles per line below a header")
    if STDIN in (source, edges):
        raise SpecError("only JSON can come from standard input here: give the profiles and the edges as two CSV files")
    # Read once so that bytes that are not text, and text that is not CSV, get the command line's messages.
    parse_csv(content, where)
    parse_csv(read_text(edges), named(edges))
    return from_csv(source, edges)
