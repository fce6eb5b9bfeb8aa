"""A channel: the probability of each output given each input, as an exact matrix.

Law        exact integers over one denominator; row x, column y holds P(y | x)
Privacy    epsilon = ln of the largest ratio within a column, an integer comparison; the logarithm is for display
Reading    a float is read as the decimal that prints it; a row of floats within 1e-9 of one is divided by its sum
Repair     a solver's floats become exact rows that satisfy their epsilon: see `repair`
Sampling   follows the stored integers, whatever their size
Source     Warner 1965; Alvim et al., "The Science of Quantitative Information Flow", 2020
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable import exact
from deniable._extras import require
from deniable._sheets import Sheet, Shown
from deniable.channels.adjacency import ALL, Adjacency, Witness, as_adjacency, told_apart, worst_of_all, worst_pairs
from deniable.channels.geometric_law import decay_ceil, denominator, fits, matrix
from deniable.channels.laws import Floats, probability_vector, read_rows, reduce_rows
from deniable.errors import ChannelError, InternalError, LabelError, ProbabilityError, ShapeError, SpecError
from deniable.exact import level_text
from deniable.labels import Label, as_label, as_labels, in_order, index_of, label_key, label_spec, load_label, shown
from deniable.randomness import Bits, IntegerWeights, source_of
from deniable.randomness.kernels import RowTables, row_tables
from deniable.specs import canonical_bytes, fingerprint, integer_text, read_integer

Integers = NDArray[np.object_]

# Maximum number of labels next to a picture, and maximum size with probabilities written in its cells.
_MOST_NAMED = 24
_MOST_WRITTEN = 12

_SPEC_KEYS = frozenset({"kind", "version", "inputs", "outputs", "adjacency", "denominator", "rows"})


_MANY = 1 << 12
"""Number of inputs from which lookup tables are worth building."""


class Channel(Shown):
    """An exact stochastic matrix with labels. Immutable.

    Args:
        rows: The matrix, one row per input: integers, decimals, fractions or texts such as "3/4"; rows sum to 1.
        inputs: Labels of the rows; 0, 1, 2, ... if None.
        outputs: Labels of the columns; 0, 1, 2, ... if None.
        adjacency: Which inputs the guarantee is about; all pairs by default.

    Raises:
        ShapeError: The rows are empty or not equally long.
        ProbabilityError: An entry is negative or a row does not sum to 1.
        LabelError: The labels do not fit the matrix.

    >>> coin = Channel([[3/4, 1/4], [1/4, 3/4]], inputs=["yes", "no"], outputs=["yes", "no"])
    >>> coin.ratio, round(coin.epsilon, 6)
    (Fraction(3, 1), 1.098612)
    """

    pictured: ClassVar[bool] = True

    numerators: Integers
    denominator: int
    inputs: tuple[Label, ...]
    outputs: tuple[Label, ...]
    adjacency: Adjacency

    def __init__(
        self,
        rows: Any,
        inputs: Iterable[Any] | None = None,
        outputs: Iterable[Any] | None = None,
        adjacency: Any = ALL,
    ) -> None:
        numerators, denominator = read_rows(rows)
        self._set(numerators, denominator, inputs, outputs, adjacency)

    @classmethod
    def from_integers(
        cls,
        numerators: Any,
        denominator: int,
        inputs: Iterable[Any] | None = None,
        outputs: Iterable[Any] | None = None,
        adjacency: Any = ALL,
    ) -> Channel:
        """A channel whose row entries are integers over a common denominator."""
        channel = Channel.__new__(Channel)
        channel._set(*reduce_rows(numerators, denominator), inputs, outputs, adjacency)
        return channel

    @classmethod
    def from_floats(
        cls,
        rows: Any,
        epsilon: Any = None,
        adjacency: Any = ALL,
        inputs: Iterable[Any] | None = None,
        outputs: Iterable[Any] | None = None,
    ) -> Channel:
        """Make an exact channel from the output of a solver or a spreadsheet, without trusting it.

        Negative entries become zero, rows are divided by their sums, and with `epsilon` the result is
        mixed with the least noise that makes it satisfy that epsilon exactly.
        """
        level, relation = None if epsilon is None else exact.as_epsilon(epsilon), as_adjacency(adjacency)
        channel = cls.from_integers(*repair(rows, level, relation, inputs, outputs), relation)
        if level is not None and not channel.satisfies(level, relation):
            raise InternalError("the repaired channel does not hold its epsilon")
        return channel

    def _set(self, numerators: Integers, denominator: int, inputs: Any, outputs: Any, adjacency: Any) -> None:
        rows, columns = numerators.shape
        fields = {
            "numerators": numerators,
            "denominator": denominator,
            "inputs": as_labels(inputs, rows, "input"),
            "outputs": as_labels(outputs, columns, "output"),
            "adjacency": as_adjacency(adjacency),
        }
        self.__dict__.update(fields)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a channel does not change: build a new one instead of setting {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a channel does not change: {name!r} cannot be deleted")

    # -- the law -----------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.inputs), len(self.outputs)

    @cached_property
    def rows(self) -> Floats:
        """The float view, for analysis."""
        # Python divides integers of any size with one correct rounding.
        view: Floats = (self.numerators / self.denominator).astype(np.float64)
        view.flags.writeable = False
        return view

    def probability(self, given: Any, output: Any) -> Fraction:
        """P(output | input), exactly."""
        top = self.numerators[self.input_index(given), self.output_index(output)]
        return Fraction(int(top), self.denominator)

    def input_index(self, label: Any) -> int:
        return _find(self._input_index, label, "input", self.inputs)

    def output_index(self, label: Any) -> int:
        return _find(self._output_index, label, "output", self.outputs)

    @cached_property
    def _input_index(self) -> dict[Any, int]:
        return index_of(self.inputs)

    @cached_property
    def _output_index(self) -> dict[Any, int]:
        return index_of(self.outputs)

    # -- privacy -----------------------------------------------------------------------------------

    @cached_property
    def ratio(self) -> Fraction | float:
        """The exact largest column ratio over all pairs; `math.inf` if a column has both zero and non-zero entries."""
        return self.witness().ratio

    @property
    def epsilon(self) -> float:
        """The epsilon of local differential privacy: ln of `ratio`."""
        return self.witness().epsilon

    def epsilon_under(self, adjacency: Any) -> float:
        """The epsilon if only some pairs are protected, or in proportion to a distance."""
        return self.witness(adjacency).epsilon

    def satisfies(self, epsilon: Any, adjacency: Any = ALL) -> bool:
        """Whether no ratio exceeds e^(epsilon * distance): decided with integers."""
        level, relation = exact.as_epsilon(epsilon), as_adjacency(adjacency)
        worst = [self._worst_pair] if relation.kind == "all" else self._worst_pairs(relation)
        return all(
            not isinstance(pair.ratio, float) and exact.exp_at_least(level * pair.distance, pair.ratio)
            for pair in worst
        )

    def witness(self, adjacency: Any = ALL) -> Witness:
        """The worst pair of inputs and the output that distinguishes them."""
        relation = as_adjacency(adjacency)
        if relation.kind == "all":
            return self._worst_pair
        nobody = Witness((self.inputs[0], self.inputs[0]), self.outputs[0], Fraction(1))
        return max([nobody, *self._worst_pairs(relation)], key=lambda pair: pair.epsilon)

    @cached_property
    def _worst_pair(self) -> Witness:
        return worst_of_all(self)

    def _worst_pairs(self, relation: Adjacency) -> Iterable[Witness]:
        return worst_pairs(self, relation)

    def _told_apart(self, i: int, j: int, distance: Fraction) -> Witness:
        """The output that distinguishes two inputs best."""
        return told_apart(self, i, j, distance)

    def _largest_of_columns(self) -> Sequence[int]:
        """The largest numerator of each output."""
        return list(self.numerators.max(axis=0))

    def delta(self, epsilon: Any) -> float:
        """The smallest delta for which the channel is (epsilon, delta)-private, never rounded down.

        `epsilon = 0` gives the largest total variation between two rows.
        """
        level = exact.fraction(epsilon, "epsilon")
        if level < 0:
            raise ChannelError("delta is asked for at an epsilon of 0 or more")
        # A lower bound on e^epsilon can only increase delta.
        odds = exact.exp_floor(level)
        share = Fraction(self._largest_excess(odds), self.denominator * odds.denominator)
        nearest = float(share)
        return nearest if Fraction(nearest) >= share else math.nextafter(nearest, 1.0)

    def _largest_excess(self, odds: Fraction) -> int:
        """The largest sum of max(P(y | x) - odds P(y | x'), 0), times both denominators."""
        worst = 0
        scaled = self.numerators * odds.denominator
        other = self.numerators * odds.numerator
        for x in range(len(self.inputs)):
            excess = np.maximum(scaled[x] - other, 0).sum(axis=1)
            worst = max(worst, int(excess.max()))
        return worst

    # -- using it ----------------------------------------------------------------------------------

    def push(self, prior: ArrayLike) -> Floats:
        """The distribution of outputs when inputs follow `prior`."""
        return probability_vector(prior, len(self.inputs)) @ self.rows

    def joint(self, prior: ArrayLike) -> Floats:
        """P(x, y): rows are inputs, columns are outputs."""
        return probability_vector(prior, len(self.inputs))[:, None] * self.rows

    def posterior(self, prior: ArrayLike) -> Floats:
        """P(x | y): row y is the posterior of an observer of output y; NaN if y is impossible."""
        joint = self.joint(prior).T
        total = joint.sum(axis=1, keepdims=True)
        out = np.full_like(joint, np.nan)
        np.divide(joint, total, out=out, where=total > 0)
        return out

    def sample(self, inputs: Any, bits: Bits | None = None) -> Any:
        """Randomize one label, or a sequence of labels (then a list)."""
        if isinstance(inputs, np.ndarray) and inputs.ndim == 0:
            inputs = inputs.item()
        if not isinstance(inputs, np.ndarray) and self._is_label(inputs):
            return self.outputs[self.sample_index(self.input_index(inputs), bits)]
        if isinstance(inputs, str) or not hasattr(inputs, "__iter__"):
            self.input_index(inputs)  # its error lists the labels
        indices = np.array([self.input_index(label) for label in inputs], dtype=np.int64)
        return [self.outputs[y] for y in self.sample_indices(indices, bits)]

    def sample_index(self, given: int, bits: Bits | None = None) -> int:
        """Randomize one input position: one random word, more only on a tie."""
        if not 0 <= given < len(self.inputs):
            raise LabelError(f"positions of inputs run from 0 to {len(self.inputs) - 1}")
        return source_of(bits).draw(self._law(given))

    def sample_indices(self, given: ArrayLike, bits: Bits | None = None) -> NDArray[np.int64]:
        """Randomize many input positions at once."""
        indices = np.asarray(given)
        if indices.ndim != 1 or not (indices.size == 0 or np.issubdtype(indices.dtype, np.integer)):
            raise ShapeError("positions of inputs are a flat array of integers")
        if indices.size and not (indices.min() >= 0 and indices.max() < len(self.inputs)):
            raise LabelError(f"positions of inputs run from 0 to {len(self.inputs) - 1}")
        if indices.size >= _MANY and self._tables is not None:
            return self._tables.choose_many(source_of(bits), indices.astype(np.int64, copy=False)).astype(np.int64)
        out = np.empty(indices.size, dtype=np.int64)
        # Sorting groups equal inputs, so that each law is searched once for all of them.
        # Small integers are sorted by radix sort, ten times as fast.
        short = indices.astype(np.uint8) if len(self.inputs) <= 1 << 8 else indices
        order = np.argsort(short, kind="stable")
        starts = np.searchsorted(indices, np.arange(len(self.inputs) + 1), sorter=order)
        for x in np.flatnonzero(np.diff(starts)):
            places = order[starts[x] : starts[x + 1]]
            out[places] = source_of(bits).draw(self._law(int(x)), places.size)
        return out

    def _law(self, given: int) -> IntegerWeights:
        """The law of one input's outputs, built on the first draw."""
        if given not in self._laws:
            self._laws[given] = IntegerWeights(self.numerators[given])
        return self._laws[given]

    @cached_property
    def _laws(self) -> dict[int, IntegerWeights]:
        return {}

    @cached_property
    def _tables(self) -> RowTables | None:
        return row_tables(self.numerators.tolist())

    def _is_label(self, value: Any) -> bool:
        try:
            return label_key(as_label(value)) in self._input_index
        except LabelError:
            return False

    def __rshift__(self, other: Channel) -> Channel:
        """Post-processing: the outputs of this channel are the inputs of `other`."""
        if not isinstance(other, Channel):
            return NotImplemented
        if self._output_index != other._input_index:
            raise LabelError("`a >> b` needs the outputs of a to be the inputs of b, in the same order")
        return Channel.from_integers(
            self.numerators.dot(other.numerators),
            self.denominator * other.denominator,
            self.inputs,
            other.outputs,
            self.adjacency,
        )

    def sheet(self) -> Sheet:
        rows, (down, along) = self.rows, ([*map(shown, self.inputs)], [*map(shown, self.outputs)])
        worst = self.witness(self.adjacency)
        said = f"P(output | input), epsilon = {level_text(worst.ratio, worst.distance, digits=4)}"
        made = Sheet.matrix([said], "input / output", (down, along), lambda i, j: f"{rows[i, j]:.4g}")
        ends = {"input": np.repeat(down, len(along)).tolist(), "output": along * len(down)}
        return replace(made, columns=ends | {"probability": rows.reshape(-1).tolist()})

    def plot(self, ax: Any = None) -> Any:
        """A heat map with the probabilities in the cells if they fit."""
        return _heat_map(self, ax)

    # -- identity ----------------------------------------------------------------------------------

    def spec(self) -> dict[str, Any]:
        """JSON that recreates this channel anywhere: `Channel.load(spec)`."""
        return {
            "kind": "channel",
            "version": 1,
            "inputs": [label_spec(label) for label in self.inputs],
            "outputs": [label_spec(label) for label in self.outputs],
            "adjacency": self.adjacency.spec(),
            "denominator": integer_text(self.denominator),
            "rows": [[integer_text(entry) for entry in row] for row in self.numerators],
        }

    @classmethod
    def load(cls, spec: dict[str, Any]) -> Channel:
        if not isinstance(spec, dict) or spec.get("kind") != "channel":
            raise SpecError('this is not the spec of a channel: it needs "kind": "channel"')
        if spec.get("version") != 1:
            raise SpecError(f"channel specs of version {spec.get('version')!r} are unknown here: only 1 is")
        if missing := _SPEC_KEYS - spec.keys():
            raise SpecError(f"the spec of a channel misses {', '.join(sorted(missing))}")
        if spec.keys() - _SPEC_KEYS:
            raise SpecError(f"the spec of a channel has {', '.join(sorted(_SPEC_KEYS))}, and nothing else")
        canonical_bytes(spec)  # refuses floats, and text with more than one encoding
        inputs, outputs, rows = (_as_list(spec[key]) for key in ("inputs", "outputs", "rows"))
        rows = [[read_integer(entry) for entry in _as_list(row)] for row in rows]
        inputs, outputs = ([load_label(label) for label in part] for part in (inputs, outputs))
        return cls.from_integers(rows, read_integer(spec["denominator"]), inputs, outputs, spec["adjacency"])

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint("channel", self.spec())

    def _key(self) -> tuple[Any, ...]:
        rows = tuple(tuple(row) for row in self.numerators)
        names = tuple(label_key(label) for label in (*self.inputs, *self.outputs))
        return rows, self.denominator, names, self.adjacency.key()

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Channel) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (
            self.numerators.tolist(),
            self.denominator,
            self.inputs,
            self.outputs,
            self.adjacency,
        )

    def __repr__(self) -> str:
        rows, columns = self.shape
        level = level_text(self.ratio, digits=6)
        return f"<Channel {rows} x {columns}, epsilon {level}, {self.denominator.bit_length()}-bit law>"


def _as_list(part: Any) -> list[Any]:
    if not isinstance(part, list):
        raise SpecError("the inputs, the outputs and each row in the spec of a channel are lists")
    return part


def _rebuild(rows: Any, denominator: int, inputs: Any, outputs: Any, adjacency: Any) -> Channel:
    return Channel.from_integers(rows, denominator, inputs, outputs, adjacency)


def _find(index: dict[Any, int], label: Any, what: str, labels: Sequence[Label]) -> int:
    found = index.get(label_key(as_label(label)))
    if found is None:
        listed = ", ".join(repr(known) for known in labels[:8]) + (", ..." if len(labels) > 8 else "")
        # The value itself is not repeated: on a device it may be somebody's answer.
        raise LabelError(f"this {type(label).__name__} is not one of the {len(labels)} {what}s ({listed})")
    return found


# -- a picture ------------------------------------------------------------------------------------------


def _heat_map(channel: Channel, ax: Any = None) -> Any:
    """Rows are inputs, columns are outputs; darker is likelier."""
    pyplot = require("matplotlib.pyplot", "plot")
    rows, columns = channel.shape
    if ax is None:
        size = (min(10.0, 2.6 + 0.45 * columns), min(8.0, 1.8 + 0.4 * rows))
        _, ax = pyplot.subplots(figsize=size, layout="constrained")
    top = float(channel.rows.max())
    image = ax.imshow(channel.rows, cmap="Blues", vmin=0.0, vmax=top, aspect="auto")
    if columns <= _MOST_NAMED:
        names = [shown(label) for label in channel.outputs]
        slant = 45 if max(map(len, names)) > 4 and columns > 6 else 0
        # "$5-$10" is a range of money, not a formula.
        ax.set_xticks(range(columns), names, rotation=slant, ha="right" if slant else "center", parse_math=False)
    if rows <= _MOST_NAMED:
        ax.set_yticks(range(rows), [shown(label) for label in channel.inputs], parse_math=False)
    if rows <= _MOST_WRITTEN and columns <= _MOST_WRITTEN:
        for x in range(rows):
            for y in range(columns):
                value = float(channel.rows[x, y])
                ax.text(y, x, f"{value:.3g}", ha="center", va="center", fontsize=8,
                        color="white" if value > 0.6 * top else "black")  # fmt: skip
    ax.set_xlabel("output")
    ax.set_ylabel("input")
    worst = channel.witness(channel.adjacency)
    level = f"epsilon = {level_text(worst.ratio, worst.distance, digits=4)}"
    scope = "" if channel.adjacency.kind == "all" else f" for {channel.adjacency}"
    ax.set_title(f"P(output | input), {level}{scope}")
    ax.figure.colorbar(image, ax=ax, label="probability")
    return ax


# -- from a matrix of floats to exact rows that satisfy their epsilon ------------------------------------


_BITS = 96

# A "negative probability" beyond this is not a rounding error of a solver.
_NOISE = Fraction(1, 10**6)


class ExactRows(NamedTuple):
    """Integer rows over one denominator."""

    numerators: Integers
    denominator: int

    @property
    def floats(self) -> Any:
        # Python divides integers of any size with one correct rounding.
        return (self.numerators / self.denominator).astype(np.float64)


class Repaired(NamedTuple):
    """The arguments of `Channel.from_integers`."""

    numerators: Integers
    denominator: int
    inputs: tuple[Label, ...]
    outputs: list[Any]


def repair(
    rows: Any,
    epsilon: Fraction | None,
    adjacency: Adjacency,
    inputs: Iterable[Any] | None,
    outputs: Iterable[Any] | None,
) -> Repaired:
    """Exact rows near `rows`, with the labels of the remaining outputs; with `epsilon` all neighbours satisfy it.

    Solvers return probabilities of -1e-17 and columns with zeros and non-zeros, whose true epsilon is infinite. Here:

    1. negative entries become zero, outputs that never occur are dropped, and each row is rounded to integers
       over 2^bits, with the rounding error added to the row's largest entry;
    2. the result is mixed with an interior channel, one that has slack in every ratio, with the smallest weight
       (rounded up to a multiple of 2^-bits) that makes every ratio valid;
    3. `Channel.from_floats` builds a channel from the result and verifies it with integers.

    The interior channel is uniform or, on a line, a truncated geometric channel at 0.9 epsilon, whichever changes the
    rows less.
    """
    law = _fractions(rows)
    width = len(law[0])
    used = [y for y in range(width) if any(row[y] > 0 for row in law)]
    names = None if outputs is None else in_order(outputs, "the outputs")
    if names is not None and len(names) != width:
        raise ShapeError(f"there are {len(names)} output labels for {width} outputs")
    kept = [names[y] for y in used] if names is not None else used
    given = as_labels(inputs, len(law), "input")
    scale = 1 << _bits(law)
    draft = ExactRows(np.array([_round_row([row[y] for y in used], scale) for row in law], dtype=object), scale)
    if epsilon is None:
        return Repaired(*draft, given, kept)
    candidates = [
        (_smallest_weight(draft, inner, epsilon, adjacency, given), inner)
        for inner in _interiors(draft, width, epsilon, adjacency)
    ]
    return Repaired(*_mix(draft, *min(candidates, key=lambda candidate: _moved(draft, *candidate))), given, kept)


def _fractions(rows: Any) -> list[list[Fraction]]:
    matrix = np.asarray(rows, dtype=object)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ShapeError("a channel to repair is a matrix: rows of one length, none empty")
    law = []
    for x, row in enumerate(matrix):
        entries = [exact.fraction(entry, f"entry {y} of row {x}") for y, entry in enumerate(row)]
        if min(entries) < -_NOISE:
            raise ProbabilityError(
                f"row {x} has an entry of {exact.shown(min(entries))}: too negative to be a rounding error"
            )
        entries = [max(entry, Fraction(0)) for entry in entries]
        total = sum(entries, Fraction(0))
        if total == 0:
            raise ProbabilityError(f"row {x} has no positive entry")
        law.append([entry / total for entry in entries])
    return law


def _bits(law: list[list[Fraction]]) -> int:
    """Enough bits that the smallest positive entry keeps a relative precision of 2^-64."""
    smallest = min(entry for row in law for entry in row if entry > 0)
    return max(_BITS, 64 + math.ceil(-math.log2(smallest.numerator) + math.log2(smallest.denominator)))


def _round_row(row: list[Fraction], scale: int) -> list[int]:
    integers = [math.floor(entry * scale) for entry in row]
    largest = max(range(len(row)), key=lambda y: integers[y])
    integers[largest] += scale - sum(integers)
    return integers


def _interiors(draft: ExactRows, width: int, epsilon: Fraction, adjacency: Adjacency) -> list[ExactRows]:
    """Rows with slack in every ratio, on the outputs in use."""
    rows, columns = draft.numerators.shape
    uniform = ExactRows(np.ones((rows, columns), dtype=object), columns)
    if adjacency.kind == "line" and adjacency.reach == 1 and columns == width == rows > 1:
        # At 0.9 epsilon: at epsilon itself a geometric channel has no slack.
        decay = decay_ceil(epsilon * Fraction(9, 10))
        if fits(decay, rows - 1):
            return [uniform, ExactRows(matrix(decay, rows - 1), denominator(decay, rows - 1))]
    return [uniform]


def _smallest_weight(
    draft: ExactRows, inner: ExactRows, epsilon: Fraction, adjacency: Adjacency, inputs: tuple[Label, ...]
) -> Fraction:
    """The smallest weight of the interior channel with which a <= e^(epsilon d) b holds for all pairs."""
    weight = Fraction(0)
    for i, j, distance in adjacency.pairs(inputs):
        odds = exact.exp_floor(epsilon * distance)
        for x, z in ((i, j), (j, i)):
            excess = draft.numerators[x] * odds.denominator - draft.numerators[z] * odds.numerator
            over = np.flatnonzero(excess > 0)
            slack = inner.numerators[z] * odds.numerator - inner.numerators[x] * odds.denominator
            for y in over:
                if slack[y] <= 0:
                    raise InternalError("the interior channel has no slack")
                lack = Fraction(int(excess[y]), draft.denominator)
                weight = max(weight, lack / (lack + Fraction(int(slack[y]), inner.denominator)))
    return Fraction(math.ceil(weight * (1 << _BITS)), 1 << _BITS)


def _moved(draft: ExactRows, weight: Fraction, inner: ExactRows) -> float:
    """How much mixing changes a row: the weight times the distance to the interior channel."""
    return float(weight) * float(np.abs(draft.floats - inner.floats).sum(axis=1).max())


def _mix(draft: ExactRows, weight: Fraction, inner: ExactRows) -> ExactRows:
    w, total = weight.numerator, weight.denominator
    numerators = draft.numerators * ((total - w) * inner.denominator) + inner.numerators * (w * draft.denominator)
    return ExactRows(numerators, draft.denominator * total * inner.denominator)
