"""A channel in words, in a table and in JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deniable.channels import Channel, Witness
from deniable.channels.adjacency import Adjacency
from deniable.channels.levels import level_text
from deniable.cli import output
from deniable.cli.output import ratio_text, ratio_words, shown
from deniable.errors import ChannelError
from deniable.labels import label_spec

# A larger matrix is shown by its corner, unless all of it is asked for.
_MOST_ROWS = 24
_MOST_COLUMNS = 12

# An exact law that would fill more than some 20 megabytes of JSON is left out of it.
_MOST_BITS = 1 << 26


def cell_of(given: Channel, fractions: bool) -> Callable[[int, int], str]:
    """How the entry at a row and a column is written."""
    if fractions:
        return lambda x, y: str(given.probability(given.inputs[x], given.outputs[y]))
    return lambda x, y: probability(float(given.rows[x, y]))


def exact_rows(given: Channel) -> list[list[str]]:
    """The whole law in fractions."""
    rows, columns = given.shape
    cell = cell_of(given, fractions=True)
    return [[cell(x, y) for y in range(columns)] for x in range(rows)]


def probability(value: float) -> str:
    """Four decimals, but never 0.0000 for what can happen."""
    return f"{value:.4f}" if value == 0 or value >= 0.00005 else f"{value:.0e}"


def summary(source: str, given: Channel, fractions: bool) -> list[tuple[str, str]]:
    worst = given.witness()
    ratio = ratio_text(worst.ratio) if fractions else ratio_words(worst.ratio)
    return [
        ("channel", shown(source)),
        ("size", f"{given.shape[0]} inputs, {given.shape[1]} outputs"),
        ("epsilon", f"{level_text(worst.ratio)} over all pairs of inputs"),
        ("ratio", ratio if isinstance(worst.ratio, float) or ratio == str(worst.ratio) else f"{ratio} (rounded)"),
        ("worst pair", words(worst)),
        ("adjacency", _relation(given, given.adjacency)),
        ("law", f"integers over {_denominator(given.denominator)}"),
        ("fingerprint", fingerprint_of(given) or "none: the exact law is too large to write down"),
    ]


def fingerprint_of(given: Channel) -> str | None:
    """The fingerprint, where the exact law fits in memory."""
    try:
        return given.fingerprint
    except ChannelError:
        return None


def is_short(given: Channel) -> bool:
    """Whether the exact law belongs into a document."""
    return given.rows.size * given.denominator.bit_length() <= _MOST_BITS


def _denominator(value: int) -> str:
    return str(value) if value < 10**6 else f"a denominator of {value.bit_length()} bits"


def _relation(given: Channel, relation: Adjacency) -> str:
    if relation.kind == "all":
        return str(relation)
    worst = given.witness(relation)
    return f"{relation}: epsilon {level_text(worst.ratio, worst.distance)}"


def words(worst: Witness) -> str:
    first, second = map(shown, worst.inputs)
    if worst.ratio == 1:
        return "none: no output says anything about the input"
    if isinstance(worst.ratio, float):
        return f"output {shown(worst.output)} can come from input {first} and never from {second}"
    times = f"{ratio_words(worst.ratio)} times as likely from input {first} as from {second}"
    apart = "" if worst.distance == 1 else f", which are {worst.distance} apart"
    return f"output {shown(worst.output)} is {times}{apart}"


def matrix(corner: str, rows: list[str], columns: list[str], cell: Callable[[int, int], str], everything: bool) -> None:
    """The part of a matrix that fits, and a line that says what is missing."""
    height, width = len(rows), len(columns)
    if not everything:
        height, width = min(height, _MOST_ROWS), min(width, _MOST_COLUMNS)
    cells = [[cell(i, j) for j in range(width)] for i in range(height)]
    if not everything:
        widths = [max(map(len, column)) for column in zip(columns[:width], *cells, strict=True)]
        width = output.fitting_columns(max(map(len, rows[:height])), widths)
    output.table([corner, *columns[:width]], [[rows[i], *cells[i][:width]] for i in range(height)])
    if (height, width) != (len(rows), len(columns)):
        output.write(f"... of {len(rows)} rows and {len(columns)} columns: --all shows everything\n")


def description(source: str, given: Channel) -> dict[str, Any]:
    return {
        "channel": source,
        "inputs": [label_spec(label) for label in given.inputs],
        "outputs": [label_spec(label) for label in given.outputs],
        **level(given.witness()),
        "adjacency": given.adjacency.spec(),
        "epsilon_under_adjacency": output.finite(given.epsilon_under(given.adjacency)),
        "fingerprint": fingerprint_of(given),
        "rows": given.rows.tolist(),
        "exact": exact_rows(given) if is_short(given) else None,
    }


def level(worst: Witness) -> dict[str, Any]:
    return {
        "epsilon": output.finite(worst.epsilon),
        "ratio": ratio_text(worst.ratio),
        "witness": {
            "inputs": [label_spec(label) for label in worst.inputs],
            "output": label_spec(worst.output),
            "distance": str(worst.distance),
        },
    }
