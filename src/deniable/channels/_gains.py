"""Reading gain and loss functions: gain[guess, truth]."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deniable.channels._vectors import Floats, probability_vector
from deniable.errors import LabelError, NumberError, ShapeError
from deniable.labels import Label, as_label, as_labels, index_of, label_key

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

    Unless `guesses` are given, the guesses of a function are the truths, and so are those of a square matrix;
    the rows of another matrix are numbered.
    """
    named = None if guesses is None else tuple(as_label(guess) for guess in guesses)
    if isinstance(function, str):
        if function not in NAMED:
            raise NumberError(f"unknown function {function!r}: {', '.join(NAMED)}, a matrix or a function")
        if function == "identity" and named is None:
            return np.eye(len(truths)), tuple(truths)  # truths differ
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
