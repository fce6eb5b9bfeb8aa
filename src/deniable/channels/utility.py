"""What a report is worth: to a rational user who guesses the true answer (utility), or to an adversary (leakage).

Utility of a mechanism: how well a rational user guesses the true answer from the reported one.

Formula    U = max_r sum_x prior(x) sum_z P(z | x) gain(r(z), f(x)), over all remaps r from outputs to guesses
Oblivious  the channel is on true answers; with a query its prior on databases is pushed through f
General    the channel is on databases x, the gain compares the guess with f(x)
Remap      the best guess for each output is found by itself; among equally good ones the output's own label
           is preferred, so the remap is the identity wherever that is optimal
Losses     the same with a minimum: give `loss` instead of `gain`
Source     Ghosh, Roughgarden and Sundararajan 2009; Alvim et al. 2011

What an observer learns: vulnerability, leakage and information, all for an explicit adversary.

Prior      V(prior) = max_w sum_x prior(x) gain(w, x): the adversary's gain before seeing anything
Posterior  sum_y max_w sum_x prior(x) P(y | x) gain(w, x): after seeing one output, on average
Leakage    multiplicative: posterior / prior; additive: posterior - prior; min-entropy leakage: ln of the
           ratio (with gain "identity", the probability of guessing right in one try)
Worst      min-capacity, the largest min-entropy leakage over priors: ln sum_y max_x P(y | x), exact law
Unit       nats throughout; the largest mutual information over priors is `capacity`
Source     Smith 2009; Alvim, Chatzikokolakis, McIver, Morgan, Palamidessi and Smith 2020

Capacity of a channel: the most that one output can say about the input, over all priors, with proof.

Formula    C = max_r I(r), reached where D(row x || output marginal) is the same for every input in use
Promise    value <= C <= upper: the value is the information under the returned prior, the upper bound is the
           largest divergence of a row from that prior's marginal
Method     Blahut-Arimoto, r'_x ~ r_x exp D(row x || r C), then damped Newton steps on the same equations;
           a step that lowers the information is dropped for the plain update
Source     Blahut 1972; Arimoto 1972
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deniable import exact
from deniable.channels.channel import Channel
from deniable.channels.compose import Query
from deniable.channels.inference.em import NewtonSystem
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


Answers = Query | Callable[[Any], Any] | Mapping[Any, Any] | Sequence[Any]
Remap = Mapping[Any, Any] | Callable[[Any], Any] | Sequence[Any]

# Guesses whose values differ by less than this share count as equally good.
TIE = 1e-12


@dataclass(frozen=True, slots=True)
class Utility:
    """The expected gain (or loss) of a user, with the guess for each output."""

    value: float
    remap: tuple[Label, ...]
    """The guess for each output, in the order of `outputs`."""
    indices: tuple[int, ...]
    """The same as positions in `guesses`."""
    outputs: tuple[Label, ...]
    guesses: tuple[Label, ...]
    direct: float | None
    """The value when each output is taken at its word; None when some output is not a guess."""
    blind: float
    """The best value without seeing the output."""
    is_loss: bool = False

    def guess(self, output: Any) -> Label:
        """What to guess when `output` is seen."""
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
    matrix the truths stand in the order of the channel's inputs, or, when the channel is on databases, of
    the answers' first appearance.

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


# -- what an observer learns --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Leakage:
    """Vulnerability before and after seeing the output."""

    prior: float
    posterior: float

    @property
    def additive(self) -> float:
        return self.posterior - self.prior

    @property
    def multiplicative(self) -> float:
        """posterior / prior; NaN where the prior vulnerability is not positive and a ratio means nothing."""
        return self.posterior / self.prior if self.prior > 0 else math.nan

    @property
    def min_entropy(self) -> float:
        """ln of the multiplicative leakage, in nats."""
        return math.log(self.multiplicative) if self.prior > 0 else math.nan


def prior_vulnerability(prior: ArrayLike, gain: Function = "identity") -> float:
    """The best expected gain of a guess made blindly; inputs are numbered 0, 1, 2, ...

    >>> prior_vulnerability([0.5, 0.3, 0.2])
    0.5
    """
    weights = probability_vector(prior)
    return float((read_function(gain, range(weights.size))[0] @ weights).max())


def posterior_vulnerability(channel: Channel, prior: Distribution, gain: Function = "identity") -> float:
    """The expected gain of the best guess for each output."""
    return leakage(channel, prior, gain).posterior


def leakage(channel: Channel, prior: Distribution, gain: Function = "identity") -> Leakage:
    """How much one output helps an adversary with this prior and this gain.

    >>> coin = Channel([["3/4", "1/4"], ["1/4", "3/4"]])
    >>> leakage(coin, [0.5, 0.5]).multiplicative
    1.5
    """
    channel = as_channel(channel)
    weights = read_prior(prior, channel.inputs)
    matrix, _ = read_function(gain, channel.inputs)
    worth = matrix @ (weights[:, None] * channel.rows)
    return Leakage(float((matrix @ weights).max()), float(worth.max(axis=0).sum()))


def min_capacity(channel: Channel) -> float:
    """The largest min-entropy leakage over all priors, in nats; reached by the uniform one.

    >>> round(min_capacity(Channel([["3/4", "1/4"], ["1/4", "3/4"]])), 6)
    0.405465
    """
    return exact.log(Fraction(sum(as_channel(channel)._largest_of_columns()), channel.denominator))


def mutual_information(channel: Channel, prior: Distribution) -> float:
    """I(input; output) in nats.

    >>> round(mutual_information(Channel([[1, 0], [0, 1]]), [0.5, 0.5]), 6)
    0.693147
    """
    channel = as_channel(channel)
    weights = read_prior(prior, channel.inputs)
    rows = channel.rows
    marginal = weights @ rows
    # Inputs of prior zero may lead to outputs of marginal zero; they count for nothing.
    used = (weights[:, None] > 0) & (rows > 0)
    ratio = np.divide(rows, marginal, out=np.ones_like(rows), where=used)
    return max(float(weights @ (rows * np.log(ratio)).sum(axis=1)), 0.0)


# -- capacity -----------------------------------------------------------------------------------------


WARM_UP = 5
NEWTON_LIMIT = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Capacity:
    """Bounds of the capacity in nats, and the prior that comes that close."""

    value: float
    upper: float
    prior: Floats
    iterations: int
    converged: bool

    @property
    def gap(self) -> float:
        return self.upper - self.value

    @property
    def bits(self) -> float:
        return float(self.value / np.log(2))


def capacity(channel: Channel, tolerance: float = 1e-12, max_iterations: int = 10_000) -> Capacity:
    """The largest mutual information, within `tolerance` nats.

    >>> result = capacity(Channel([["3/4", "1/4"], ["1/4", "3/4"]]))
    >>> round(result.value, 6), result.gap <= 1e-12
    (0.130812, True)
    """
    if not tolerance > 0:
        raise NumberError(f"the tolerance must be positive, not {tolerance!r}")
    channel = as_channel(channel)
    rows = channel.rows[:, channel.rows.max(axis=0) > 0]
    logs = np.log(rows, out=np.zeros_like(rows), where=rows > 0)
    entropy = (rows * logs).sum(axis=1)
    prior = np.full(len(channel.inputs), 1 / len(channel.inputs))
    damping, wait = 1e-4, WARM_UP if len(channel.inputs) <= NEWTON_LIMIT else max_iterations + 1
    iterations = 0
    while True:
        iterations += 1
        marginal = prior @ rows
        divergence = np.maximum(entropy - rows @ np.log(marginal), 0.0)
        value, upper = float(prior @ divergence), float(divergence.max())
        if upper - value <= tolerance or iterations >= max_iterations:
            return Capacity(value, upper, prior, iterations, upper - value <= tolerance)
        if wait <= 0:
            found, damping = _newton(rows, prior, marginal, divergence, damping)
            if found is not None:
                prior = found
                continue
            wait = 1
        wait -= 1
        prior = prior * np.exp(divergence - upper)
        prior /= prior.sum()


def _newton(
    rows: Floats, prior: Floats, marginal: Floats, divergence: Floats, damping: float
) -> tuple[Floats | None, float]:
    system = NewtonSystem.at(prior, divergence, rows / np.sqrt(marginal))
    for _ in range(4):
        candidate = system.candidate(damping)
        if candidate is not None and information_gain(rows, prior, candidate, marginal, divergence) > 0:
            return candidate, max(damping / 10, 1e-13)
        damping *= 10
    return None, damping


def information_gain(rows: Floats, old: Floats, new: Floats, marginal: Floats, divergence: Floats) -> float:
    """I(new) - I(old), from the difference: I(new) = new.D_old - KL(marginal_new || marginal_old)."""
    change = ((new - old) @ rows) / marginal
    with np.errstate(divide="ignore", invalid="ignore"):
        kl = marginal @ ((1 + change) * np.log1p(change) - change)
    return float((new - old) @ divergence - kl)
