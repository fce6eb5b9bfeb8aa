"""Reads channels, vectors of numbers, labels and edges, from files, standard input or arguments.

Channels   a closed form by name, the spec that `Channel.spec()` writes, a bare matrix, or a CSV with labels
Forms      `warner:epsilon=1`, `binary:p0=0.5,0.3,0.2,p1=0.2,0.3,0.5,epsilon=1`: a name, then a colon and key=value
           pairs with commas between them; a value without a key continues the one before, which makes a list.
           Nothing in it needs quotes in a shell, and "/" stays free for 1/3
Vectors    0.2,0.8 or yes=0.2,no=0.8 or a file: a JSON list or object, or CSV lines "label,number"
Numbers    read exactly: 0.1 is 1/10, and 1/3 is 1/3
Labels     found by their written form: the text 0 finds the integer 0
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from functools import partial
from typing import Any

from deniable import channels, exact
from deniable._files import parse_csv, parse_json
from deniable.channels import Channel
from deniable.channels.adjacency import Adjacency, as_adjacency, line
from deniable.channels.laws import read_row
from deniable.cli.options import STDIN, errors_in, is_json, named, read_text
from deniable.errors import LabelError, NumberError, ShapeError, SpecError
from deniable.labels import Label, as_labels, load_label, text

# -- channels ----------------------------------------------------------------------------------------


def read_channel(source: str) -> Channel:
    """A channel from its name, a file or standard input."""
    name = source.partition(":")[0]
    if name in FORMS:
        return build_form(source, read_scores)
    if source != STDIN and not os.path.lexists(source):
        raise LabelError(
            f"there is no file {source!r} and no closed form called {name!r}{meant(name)}: see deniable channel list"
        )
    content, where = read_text(source), named(source)
    if not is_json(content):
        return _channel_from_csv(content, where)
    value = parse_json(content, where)
    with errors_in(where):
        return _channel_from_json(value)


def _channel_from_json(content: Any) -> Channel:
    if isinstance(content, list):
        return Channel(content)
    if "kind" in content or "rows" not in content:
        return Channel.load(content)
    names = {key: content.get(key) for key in ("inputs", "outputs")}
    for key, labels in names.items():
        if labels is not None and not isinstance(labels, list):
            raise SpecError(f'"{key}" must be a list of labels')
        names[key] = None if labels is None else [load_label(label) for label in labels]
    return Channel(content["rows"], **names)


def _channel_from_csv(content: str, where: str) -> Channel:
    matrix = read_matrix(content, where)
    rows = [
        read_row(cells, f"{matrix.line(x)}: row {matrix.rows[x]!r}", partial(matrix.entry, x))
        for x, cells in enumerate(matrix.cells)
    ]
    with errors_in(where):
        return Channel(rows, matrix.rows, matrix.columns)


def read_scores(source: str) -> tuple[list[str], list[str], list[list[Fraction]]]:
    """Row labels, column labels and numbers of a CSV."""
    matrix = read_matrix(read_text(source), named(source))
    return matrix.rows, matrix.columns, matrix.numbers()


@dataclass(frozen=True, slots=True)
class Matrix:
    """A CSV with labels on two sides; cells are kept as written."""

    where: str
    lines: list[int]
    rows: list[str]
    columns: list[str]
    cells: list[list[str]]

    def line(self, x: int) -> str:
        return f"line {self.lines[x]} of {self.where}"

    def entry(self, x: int, y: int) -> str:
        """The name of a cell in errors."""
        return f"{self.line(x)}, row {self.rows[x]!r}, column {self.columns[y]!r}: the entry"

    def numbers(self) -> list[list[Fraction]]:
        return [
            [exact.fraction(cell, self.entry(x, y)) for y, cell in enumerate(row)] for x, row in enumerate(self.cells)
        ]


def read_matrix(content: str, where: str) -> Matrix:
    """A first row of labels and, below it, rows that begin with their label."""
    (_, head), *body = parse_csv(content, where)
    if len(head) < 2 or not body or is_number(head[0]):
        raise ShapeError(
            f"{where} is no matrix with labels: a CSV needs a first row of output labels, with nothing or a word in "
            "its corner, and below it a row for each input that begins with its label"
        )
    for number, row in body:
        if len(row) != len(head):
            raise ShapeError(f"line {number} of {where} has {len(row)} cells, the first row has {len(head)}")
    lines, rows = [number for number, _ in body], [row for _, row in body]
    return Matrix(where, lines, [row[0] for row in rows], head[1:], [row[1:] for row in rows])


# -- labels ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Names:
    """The labels of one side of a channel, by their written form."""

    labels: tuple[Label, ...]
    what: str
    places: dict[str, int]

    @classmethod
    def of(cls, labels: tuple[Label, ...], what: str) -> Names:
        places: dict[str, int] = {}
        for place, label in enumerate(labels):
            written = text(label)
            # -1: two labels are written alike, such as the integer 1 and the text "1".
            places[written] = -1 if written in places else place
        return cls(labels, what, places)

    def find(self, written: str, show: bool = True) -> int | None:
        normal = unicodedata.normalize("NFC", written)
        place = self.places.get(normal, self.places.get(normal.strip()))
        if place == -1:
            how = repr(written.strip()) if show else "alike"
            raise LabelError(f"two {self.what}s are written {how}: rename one of them")
        return place

    def place(self, written: str, where: str = "", show: bool = True) -> int:
        place = self.find(written, show)
        if place is None:
            listed = ", ".join(repr(text(label)) for label in self.labels[:8])
            more = ", ..." if len(self.labels) > 8 else ""
            # The answer is not repeated: an error may end in a log.
            what = repr(written.strip()) if show else "the label"
            raise LabelError(f"{where}{what} is not one of the {len(self.labels)} {self.what}s ({listed}{more})")
        return place


def read_lines(source: str, names: Names, show: bool = True) -> list[int]:
    """Labels, one per line."""
    places = []
    for number, written in enumerate(read_text(source).rstrip("\r\n").split("\n"), start=1):
        places.append(names.place(written.rstrip("\r"), f"line {number} of {named(source)}: ", show))
    return places


def read_adjacency(source: str, channel: Channel) -> Adjacency:
    """all, own, line, line:2, hamming, or a CSV of edges between labels."""
    if source == "own":
        return channel.adjacency
    if source in ("all", "line", "hamming"):
        return as_adjacency(source)
    if source.startswith("line:"):
        return line(integer(source[5:], "the reach on the line"))
    if source != STDIN and not os.path.lexists(source):
        raise LabelError(
            f"the adjacency {source!r} is none of all, own, line, line:2, hamming and there is no such file"
        )
    names, where = Names.of(channel.inputs, "input"), named(source)
    edges = []
    for number, row in parse_csv(read_text(source), where):
        if len(row) != 2:
            raise ShapeError(
                f"line {number} of {where} has {len(row)} cells: an edge is two labels, with no header above"
            )
        edges.append(tuple(channel.inputs[names.place(cell, f"line {number} of {where}: ")] for cell in row))
    return as_adjacency(edges)


# -- vectors -----------------------------------------------------------------------------------------


def read_vector(source: str, names: Names, what: str) -> list[Fraction]:
    """One number per label. In a list with labels, a missing label counts as zero."""
    return [one or Fraction(0) for one in read_some(source, names, what)]


def read_some(source: str, names: Names, what: str) -> list[Fraction | None]:
    """One number per label; in a list with labels, None for a missing label."""
    if source == STDIN or os.path.lexists(source):
        content, where = read_text(source), named(source)
        if not is_json(content):
            return _vector_from_rows(parse_csv(content, where), names, what, where)
        value = parse_json(content, where)
        return _by_label(list(value.items()), names, what) if isinstance(value, dict) else _in_order(value, names, what)
    pieces = source.split(",")
    pairs = [piece.rpartition("=") for piece in pieces]
    if all(equals for _, equals, _ in pairs):
        return _by_label([(label, value) for label, _, value in pairs], names, what)
    if len(pieces) == 1 and not is_number(source):
        raise SpecError(f"there is no file {source!r}: give the {what} as a file, as 1,2,3 or as label=1,label=2")
    return _in_order(pieces, names, what)


def _vector_from_rows(
    rows: Sequence[tuple[int, list[str]]], names: Names, what: str, where: str
) -> list[Fraction | None]:
    only = rows[0][1]
    if len(rows) == 1 and len(only) == len(names.labels) and all(map(is_number, only)):
        return _in_order(only, names, what)
    if all(len(row) == 1 for _, row in rows):
        return _in_order([row[0] for _, row in rows], names, what)
    for number, row in rows:
        if len(row) != 2:
            raise ShapeError(f"line {number} of {where} has {len(row)} cells: write label,number in each line")
    # A first line that is neither a label nor a number is a header.
    head = only[0], only[1]
    body = rows if names.find(head[0]) is not None or is_number(head[1]) else rows[1:]
    return _by_label([(row[0], row[1]) for _, row in body], names, what)


def _in_order(values: Sequence[Any], names: Names, what: str) -> list[Fraction | None]:
    if len(values) != len(names.labels):
        raise ShapeError(f"{len(values)} numbers are given as {what}, but there are {len(names.labels)} {names.what}s")
    return [exact.fraction(value, f"entry {i} of the {what}") for i, value in enumerate(values)]


def _by_label(pairs: Sequence[tuple[str, Any]], names: Names, what: str) -> list[Fraction | None]:
    found: dict[int, Fraction] = {}
    for written, value in pairs:
        place = names.place(written)
        if place in found:
            raise LabelError(f"{written.strip()!r} stands twice in the {what}: add the two up, or drop one")
        found[place] = exact.fraction(value, f"the number of {written.strip()!r} in the {what}")
    return [found.get(place) for place in range(len(names.labels))]


# -- laws --------------------------------------------------------------------------------------------


def read_laws(source: str) -> tuple[dict[Label, list[Fraction]], Any]:
    """Hypotheses by name, and the names of their symbols if they have any.

    A CSV has one column per law, under its name, and lines that begin with the symbol.
    """
    content, where = read_text(source), named(source)
    with errors_in(where):
        return _laws_from_json(parse_json(content, where)) if is_json(content) else _laws_from_csv(content, where)


def _laws_from_json(content: Any) -> tuple[dict[Label, list[Fraction]], Any]:
    listed = content.get("laws") if isinstance(content, dict) else None
    if not isinstance(listed, dict) or not all(isinstance(law, list) for law in listed.values()):
        raise SpecError('the laws are {"laws": {name: [...], ...}}, and "inputs" if the symbols have names')
    laws: dict[Label, list[Fraction]] = {
        name: [exact.fraction(value, f"entry {i} of {name!r}") for i, value in enumerate(law)]
        for name, law in listed.items()
    }
    return laws, content.get("inputs")


def _laws_from_csv(content: str, where: str) -> tuple[dict[Label, list[Fraction]], Any]:
    matrix = read_matrix(content, where)
    numbers = matrix.numbers()
    names = as_labels(matrix.columns, len(matrix.columns), "law")
    return {name: [row[y] for row in numbers] for y, name in enumerate(names)}, matrix.rows


# -- numbers -----------------------------------------------------------------------------------------


def is_number(written: Any) -> bool:
    """Whether a text is a number or a fraction."""
    try:
        exact.fraction(written)
    except NumberError:
        return False
    return True


def as_floats(values: Sequence[Fraction], what: str) -> list[float]:
    """The numbers as floats; too large ones are refused."""
    try:
        return [float(value) for value in values]
    except OverflowError:
        raise NumberError(f"a number in the {what} is too large to compute with") from None


# -- closed forms by name -----------------------------------------------------------------------------


# More rows than any exact matrix may have: larger numbers are refused before any computation.
LARGEST = 10_000

ScoreReader = Callable[[str], tuple[list[str], list[str], list[list[Fraction]]]]


@dataclass(frozen=True, slots=True)
class FormParameter:
    name: str
    meaning: str
    default: str | None = None
    instead_of: str | None = None

    @property
    def need(self) -> str:
        if self.instead_of is not None:
            return f"or {self.instead_of}"
        return "required" if self.default is None else f"default {self.default}"


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """A closed form: its parameters and how it is built."""

    name: str
    summary: str
    parameters: tuple[FormParameter, ...]
    example: str
    build: Callable[[FormArguments], Channel]


@dataclass(frozen=True, slots=True)
class FormArguments:
    """The parameters after the colon."""

    form: str
    values: dict[str, list[str]]
    read_scores: ScoreReader

    def has(self, key: str) -> bool:
        return key in self.values

    def words(self, key: str, default: Sequence[str] | None = None) -> list[str]:
        if key in self.values:
            return self.values[key]
        if default is None:
            raise LabelError(f"{self.form} needs {key}: write {FORMS[self.form].example}")
        return list(default)

    def word(self, key: str, default: str | None = None) -> str:
        written = self.words(key, None if default is None else [default])
        if len(written) != 1:
            raise ShapeError(f"{key} of {self.form} is one value, not {len(written)}")
        return written[0]

    def integer(self, key: str, default: str | None = None) -> int:
        """A whole number in a sensible range, read exactly; `what` is its name in errors."""
        return integer(self.word(key, default), f"{key} of {self.form}")

    def numbers(self, key: str) -> list[float]:
        values = [exact.fraction(value, f"a number in {key}") for value in self.words(key)]
        if any(abs(value) > LARGEST for value in values):
            raise NumberError(f"{key} of {self.form} holds probabilities, none of them above 1")
        return [float(value) for value in values]

    def choice(self, key: str, default: str, allowed: Sequence[str]) -> str:
        value = self.word(key, default)
        if value not in allowed:
            raise LabelError(f"{key} of {self.form} is {' or '.join(allowed)}, not {value!r}")
        return value


def integer(written: str, what: str) -> int:
    value = exact.fraction(written, what)
    if value.denominator != 1:
        raise NumberError(f"{what} is a whole number, not {exact.shown(value)}")
    if abs(value) > LARGEST:
        raise NumberError(f"{what} is at most {LARGEST}: a larger matrix is not built")
    return int(value)


def build_form(source: str, read_scores: ScoreReader) -> Channel:
    """The channel for a name with parameters."""
    name, _, rest = source.partition(":")
    form = FORMS[name]
    values = _split(rest, name)
    known = [parameter.name for parameter in form.parameters]
    for key in values:
        if key not in known:
            raise LabelError(f"{name} has no parameter {key!r}: it takes {', '.join(known)}, as in {form.example}")
    return form.build(FormArguments(name, values, read_scores))


def _split(rest: str, name: str) -> dict[str, list[str]]:
    """The values by key, from `key=value` pairs with commas between them."""
    values: dict[str, list[str]] = {}
    key = ""
    for piece in rest.split(",") if rest else []:
        before, equals, after = (part.strip() for part in piece.partition("="))
        if equals and before in values:
            raise LabelError(f"{name} is given {before} twice")
        if equals:
            key = before
            values[key] = []
        elif not key:
            raise LabelError(f"{before!r} needs the name of a parameter before it: write {FORMS[name].example}")
        value = after if equals else before
        if not value:
            raise LabelError(f"{key} of {name} has an empty value: write {FORMS[name].example}")
        values[key].append(value)
    return values


def meant(name: str) -> str:
    """A hint for a misspelled name, or an empty text."""
    close = get_close_matches(name, FORMS, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _coin(given: FormArguments) -> Channel:
    return channels.coin_response(given.word("truth", "1/2"), given.word("yes", "1/2"))


def _warner(given: FormArguments) -> Channel:
    return channels.warner(given.word("epsilon"), given.words("labels", ["yes", "no"]))


def _randomized_response(given: FormArguments) -> Channel:
    _one_of(given, "k", "labels")
    answers = given.words("labels") if given.has("labels") else given.integer("k")
    return channels.randomized_response(answers, given.word("epsilon"))


def _truncated_geometric(given: FormArguments) -> Channel:
    return channels.truncated_geometric(given.integer("n"), given.word("epsilon"), given.integer("sensitivity", "1"))


def _subset_selection(given: FormArguments) -> Channel:
    w = given.integer("w") if given.has("w") else None
    return channels.subset_selection(given.integer("k"), given.word("epsilon"), w)


def _binary(given: FormArguments) -> Channel:
    return channels.binary(given.numbers("p0"), given.numbers("p1"), given.word("epsilon"), given.integer("ties", "0"))


def _exponential(given: FormArguments) -> Channel:
    _one_of(given, "scores", "n")
    adjacency = given.choice("adjacency", "all", ["all", "line", "hamming"])
    sensitivity = given.word("sensitivity") if given.has("sensitivity") else None
    inputs: Sequence[Any]
    outputs: Sequence[Any]
    if given.has("scores"):
        inputs, outputs, table = given.read_scores(given.word("scores"))
        return channels.exponential(table, given.word("epsilon"), inputs, outputs, adjacency, sensitivity)
    inputs = outputs = range(given.integer("n") + 1)
    return channels.exponential(
        lambda x, y: -abs(x - y), given.word("epsilon"), inputs, outputs, adjacency, sensitivity
    )


def _product_response(given: FormArguments) -> Channel:
    sizes = [integer(size, "a size") for size in given.words("sizes")]
    together = given.choice("split", "yes", ["yes", "no"]) == "no"
    return channels.product_response(sizes, given.word("epsilon"), split=not together)


def _one_of(given: FormArguments, first: str, second: str) -> None:
    """Refuse both or neither of two parameters."""
    if given.has(first) == given.has(second):
        raise LabelError(f"{given.form} needs either {first} or {second}: write {FORMS[given.form].example}")


_EPSILON = FormParameter("epsilon", "how much a report may tell, from 1e-6 to 64")

FORMS = {
    form.name: form
    for form in (
        ClosedForm(
            "coin",
            "the embarrassing question with two coins",
            (
                FormParameter("truth", "probability of telling the truth", "1/2"),
                FormParameter("yes", "probability of saying yes otherwise", "1/2"),
            ),
            "coin:truth=1/2,yes=1/2",
            _coin,
        ),
        ClosedForm(
            "warner",
            "randomized response to a question with two answers",
            (_EPSILON, FormParameter("labels", "the two answers", "yes,no")),
            "warner:epsilon=1",
            _warner,
        ),
        ClosedForm(
            "randomized-response",
            "tell the truth, or say any of k answers",
            (
                FormParameter("k", "number of answers", instead_of="labels"),
                FormParameter("labels", "the answers by name", instead_of="k"),
                _EPSILON,
            ),
            "randomized-response:k=4,epsilon=1",
            _randomized_response,
        ),
        ClosedForm(
            "truncated-geometric",
            "a count from 0 to n with noise that stays in that range",
            (
                FormParameter("n", "the largest count"),
                _EPSILON,
                FormParameter("sensitivity", "how far one person moves it", "1"),
            ),
            "truncated-geometric:n=10,epsilon=1",
            _truncated_geometric,
        ),
        ClosedForm(
            "subset-selection",
            "report w of k answers, the true one more often than not",
            (
                FormParameter("k", "number of answers"),
                _EPSILON,
                FormParameter("w", "how many are reported", "the best"),
            ),
            "subset-selection:k=6,epsilon=1",
            _subset_selection,
        ),
        ClosedForm(
            "binary",
            "one bit that says which of two hypotheses an answer speaks for",
            (
                FormParameter("p0", "law of the first"),
                FormParameter("p1", "law of the second"),
                _EPSILON,
                FormParameter("ties", "output for equal laws", "0"),
            ),
            "binary:p0=0.5,0.3,0.2,p1=0.2,0.3,0.5,epsilon=1",
            _binary,
        ),
        ClosedForm(
            "exponential",
            "the better an output fits, the likelier it is",
            (
                FormParameter("scores", "a CSV of scores with labels", instead_of="n"),
                FormParameter("n", "answers 0 to n, scored by -|x - y|", instead_of="scores"),
                _EPSILON,
                FormParameter("adjacency", "all, line or hamming", "all"),
                FormParameter("sensitivity", "how far neighbours' scores lie apart", "computed"),
            ),
            "exponential:n=4,epsilon=1",
            _exponential,
        ),
        ClosedForm(
            "product-response",
            "a record of several attributes",
            (
                FormParameter("sizes", "number of answers of each attribute"),
                _EPSILON,
                FormParameter("split", "yes: each by itself; no: the record as one answer", "yes"),
            ),
            "product-response:sizes=2,3,epsilon=1",
            _product_response,
        ),
    )
}
