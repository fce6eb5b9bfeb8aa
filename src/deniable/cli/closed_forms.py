"""Closed forms by name: `warner:epsilon=1`, `binary:p0=0.5,0.3,0.2,p1=0.2,0.3,0.5,epsilon=1`.

Syntax     name, then a colon and key=value pairs with commas between them; a value without a key continues
           the one before, which makes a list. Nothing in it needs quotes in a shell, and "/" stays free for 1/3
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from typing import Any

from deniable import channels, exact
from deniable.channels import Channel
from deniable.errors import LabelError, NumberError, ShapeError

# More rows than any exact matrix may have: larger numbers are refused before anything is computed with them.
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
    """A closed form: what it takes and how it is built."""

    name: str
    summary: str
    parameters: tuple[FormParameter, ...]
    example: str
    build: Callable[[FormArguments], Channel]


@dataclass(frozen=True, slots=True)
class FormArguments:
    """What was written after the colon."""

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
        """A whole number in a sensible range, exactly read; `what` is what errors call it."""
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


def build(source: str, read_scores: ScoreReader) -> Channel:
    """The channel that a name with parameters stands for."""
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
