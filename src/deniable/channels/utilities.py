"""Utility of a mechanism: how well a rational user guesses the true answer from the reported one.

Formula    U = max_r sum_x prior(x) sum_z P(z | x) gain(r(z), f(x)), over all remaps r from outputs to guesses
Oblivious  the channel is on true answers; with a query its prior on databases is pushed through f
General    the channel is on databases x, the gain compares the guess with f(x)
Remap      the best guess is found for each output separately; among equally good ones the output's own label
           is preferred, so the remap is the identity wherever that is optimal
Losses     the same with a minimum: give `loss` instead of `gain`
Source     Ghosh, Roughgarden and Sundararajan 2009; Alvim et al. 2011
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deniable.channels.channel import Channel
from deniable.channels.compose import Query
from deniable.channels.laws import Floats, probability_vector
from deniable.channels.noise import as_channel
from deniable.errors import LabelError, NumberError, ShapeError
from deniable.labels import Label, as_label, as_labels, index_of, label_key, shown

# -- gain and loss functions: gain[guess, truth] ------------------------------------------------------


Function = str | ArrayLike | Callable[[Any, Any], float]
Distribution = ArrayLike | Mapping[Any, float]


def _same(guess: Any, truth: Any) -> float:
    return float(label_key(guess) == label_key(truth))


NAMED: dict[str, Callable[[Any, Any], float]] = {
    "identity": _same,
    "zero-one": lambda guess, truth: 1 - _same(guess, truth),
    "absolute": lambda guess, truth: abs(guess - truth),
    "squared": lambda guess, truth: (guess - truth) ** 2,
}


def read_function(
    function: Function, truths: Sequence[Label], guesses: Iterable[Any] | None = None
) -> tuple[Floats, tuple[Label, ...]]:
    """The matrix [guess, truth] and the labels of its rows.

    Unless `guesses` are given, the guesses of a function or of a square matrix are the truths;
    the rows of another matrix are numbered.
    """
    named = None if guesses is None else tuple(as_label(guess) for guess in guesses)
    if isinstance(function, str):
        if function not in NAMED:
            raise NumberError(f"unknown function {function!r}: {', '.join(NAMED)}, a matrix or a function")
        if function == "identity" and named is None:
            return np.eye(len(truths)), tuple(truths)  # truths are distinct
        function = NAMED[function]
    if callable(function):
        rows = tuple(truths) if named is None else named
        try:
            table = [[float(function(guess, truth)) for truth in truths] for guess in rows]
        except TypeError as wrong:
            raise LabelError(f"the gain or loss does not work on these labels: {wrong}") from None
        matrix = np.array(table, dtype=np.float64)
    else:
        matrix = _matrix(function, len(truths))
        default = tuple(truths) if matrix.shape[0] == len(truths) else None
        rows = as_labels(named if named is not None else default, matrix.shape[0], "guess")
    if not np.isfinite(matrix).all():
        raise NumberError("a gain or loss is NaN or infinite")
    return matrix, rows


def _matrix(values: Any, truths: int) -> Floats:
    try:
        matrix = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError("a gain or loss is a matrix of numbers, a function (guess, truth) or a name") from None
    if matrix.ndim != 2 or matrix.shape[0] == 0 or matrix.shape[1] != truths:
        raise ShapeError(f"the matrix [guess, truth] needs {truths} columns, got shape {matrix.shape}")
    return matrix


def read_prior(prior: Distribution, labels: Sequence[Label]) -> Floats:
    """A prior in the order of `labels`, from a vector or from a mapping by label (absent means zero)."""
    if isinstance(prior, Mapping):
        index = index_of(labels)
        vector = np.zeros(len(labels))
        for label, probability in prior.items():
            place = index.get(label_key(as_label(label)))
            if place is None:
                raise LabelError(f"the prior names {label!r}, which is not one of the {len(labels)} labels")
            vector[place] = probability
        prior = vector
    return probability_vector(prior, len(labels))


Answers = Query | Callable[[Any], Any] | Mapping[Any, Any] | Sequence[Any]
Remap = Mapping[Any, Any] | Callable[[Any], Any] | Sequence[Any]

# Guesses whose values differ by less than this fraction count as equally good.
TIE = 1e-12


@dataclass(frozen=True, slots=True)
class Utility:
    """The expected gain (or loss) of a user, with the guess for each output.

    Args:
        value: The expected gain or loss.
        remap: The guess for each output, in the order of `outputs`.
        indices: The same as positions in `guesses`.
        outputs: The channel's outputs.
        guesses: The possible guesses.
        direct: The value if each output is used as the guess; None if some output is not a guess.
        blind: The best value without seeing the output.
        is_loss: Whether `value` is a loss.
    """

    value: float
    remap: tuple[Label, ...]
    indices: tuple[int, ...]
    outputs: tuple[Label, ...]
    guesses: tuple[Label, ...]
    direct: float | None
    blind: float
    is_loss: bool = False

    def guess(self, output: Any) -> Label:
        """The guess for an observed `output`."""
        place = index_of(self.outputs).get(label_key(as_label(output)))
        if place is None:
            raise LabelError(f"{output!r} is not one of the {len(self.outputs)} outputs")
        return self.remap[place]

    def __str__(self) -> str:
        kind = "loss" if self.is_loss else "gain"
        moved = [
            f"{shown(z)} -> {shown(g)}"
            for z, g in zip(self.outputs, self.remap, strict=True)
            if label_key(z) != label_key(g)
        ]
        listed = ", ".join(moved[:8]) + (f", ... ({len(moved)} in all)" if len(moved) > 8 else "")
        taken = "" if self.direct is None else f", {self.direct:.6g} at face value"
        return f"expected {kind} {self.value:.6g} ({self.blind:.6g} blind{taken}); remap {listed or 'none'}"


def utility(
    channel: Channel,
    prior: Distribution,
    gain: Function | None = None,
    query: Answers | None = None,
    remap: Remap | None = None,
    *,
    loss: Function | None = None,
    guesses: Iterable[Any] | None = None,
) -> Utility:
    """The expected gain with the best remap, or with a given one.

    `gain` is a matrix [guess, truth], a function (guess, truth) or "identity" (the default); `loss` may also
    be "zero-one", "absolute" or "squared". Without `query` the true answers are the channel's inputs. A
    function, mapping or sequence gives the answer f(x) of each channel input x. A `Query` works either way,
    with a channel on its databases or with noise on its answers; the prior is then on its databases. In a
    matrix the truths are in the order of the channel's inputs, or, when the channel is on databases, of
    the answers' first appearance.

    Args:
        channel: The channel.
        prior: A probability per input, or per database of a `Query`.
        gain: What a guess is worth for each true answer; "identity" if neither gain nor loss is given.
        query: The function of the input that the user wants to know.
        remap: The guess for each output; the best one if None.
        loss: What a guess costs for each true answer; minimized instead of a gain.
        guesses: The possible guesses; the true answers if None.

    Returns:
        The expected gain or loss, with the guess for each output.

    Raises:
        NumberError: Both a gain and a loss are given.

    >>> from deniable.channels.noise import truncated_geometric
    >>> round(utility(truncated_geometric(100, epsilon=1), [1 / 101] * 101).value, 5)
    0.46744
    """
    if gain is not None and loss is not None:
        raise NumberError("give a gain or a loss, not both")
    channel = as_channel(channel, query.values if isinstance(query, Query) else None)
    joint, truths = _joint(channel, prior, query)
    function = loss if loss is not None else "identity" if gain is None else gain
    matrix, named = read_function(function, truths, guesses)
    sign = -1.0 if loss is not None else 1.0
    worth = sign * (matrix @ joint)
    own = _own(channel.outputs, named)
    chosen = _best(worth, own) if remap is None else _given(remap, channel.outputs, named)
    columns = np.arange(len(channel.outputs))
    return Utility(
        value=float(sign * worth[chosen, columns].sum()),
        remap=tuple(named[i] for i in chosen),
        indices=tuple(int(i) for i in chosen),
        outputs=channel.outputs,
        guesses=named,
        direct=None if (own < 0).any() else float(sign * worth[own, columns].sum()),
        blind=float(sign * worth.sum(axis=1).max()),
        is_loss=loss is not None,
    )


def _joint(channel: Channel, prior: Distribution, query: Answers | None) -> tuple[Floats, tuple[Label, ...]]:
    """P(true answer, output), and the true answers."""
    if query is None:
        return read_prior(prior, channel.inputs)[:, None] * channel.rows, channel.inputs
    if isinstance(query, Query):
        weights = read_prior(prior, query.databases)
        if _keys(query.databases) == _keys(channel.inputs):
            return _grouped(weights[:, None] * channel.rows, query.values)
        pushed = np.zeros(len(channel.inputs))
        np.add.at(pushed, [channel.input_index(value) for value in query.values], weights)
        return pushed[:, None] * channel.rows, channel.inputs
    return _grouped(read_prior(prior, channel.inputs)[:, None] * channel.rows, _answers(query, channel.inputs))


def _answers(query: Answers, inputs: Sequence[Label]) -> list[Label]:
    if isinstance(query, Mapping):
        known = {label_key(as_label(key)): value for key, value in query.items()}
        missing = [x for x in inputs if label_key(x) not in known]
        if missing:
            raise LabelError(f"the query has no answer for the input {shown(missing[0])}")
        return [as_label(known[label_key(x)]) for x in inputs]
    if callable(query):
        return [as_label(query(x)) for x in inputs]
    listed = list(query)  # type: ignore[arg-type]
    if len(listed) != len(inputs):
        raise ShapeError(f"the query lists {len(listed)} answers for {len(inputs)} inputs")
    return [as_label(value) for value in listed]


def _grouped(joint: Floats, values: Sequence[Label]) -> tuple[Floats, tuple[Label, ...]]:
    unique = {label_key(value): value for value in values}
    order = {key: i for i, key in enumerate(unique)}
    summed = np.zeros((len(unique), joint.shape[1]))
    np.add.at(summed, [order[label_key(value)] for value in values], joint)
    return summed, tuple(unique.values())


def _keys(labels: Sequence[Label]) -> tuple[Any, ...]:
    return tuple(label_key(label) for label in labels)


def _own(outputs: Sequence[Label], guesses: Sequence[Label]) -> np.ndarray[Any, np.dtype[np.intp]]:
    index = index_of(guesses)
    return np.array([index.get(label_key(output), -1) for output in outputs], dtype=np.intp)


def _best(worth: Floats, own: np.ndarray[Any, np.dtype[np.intp]]) -> np.ndarray[Any, np.dtype[np.intp]]:
    best = worth.argmax(axis=0)
    columns = np.arange(worth.shape[1])
    top = worth[best, columns]
    scale = np.abs(worth).max(axis=0)
    as_good = (own >= 0) & (worth[np.maximum(own, 0), columns] >= top - TIE * scale)
    return np.where(as_good, own, best)


def _given(remap: Remap, outputs: Sequence[Label], guesses: Sequence[Label]) -> np.ndarray[Any, np.dtype[np.intp]]:
    try:
        chosen = _answers(remap, outputs)
    except (LabelError, ShapeError):
        raise LabelError(f"the remap needs one guess for each of the {len(outputs)} outputs") from None
    places = _own(chosen, guesses)
    if (places < 0).any():
        raise LabelError(f"the remap guesses {shown(chosen[int(np.argmin(places))])}, which is not a guess")
    return places
