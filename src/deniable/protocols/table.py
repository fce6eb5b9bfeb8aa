"""Any exact channel as a protocol: what `design` found, a closed form, or a matrix of your own, asked in a survey.

Law        the row of the answer, integer weights drawn exactly
Privacy    the largest ratio in a column of the matrix, exact; never above the epsilon that the spec states. With a
           delta: P(S | one answer) <= e^epsilon P(S | another) + delta for every set S of outputs and every two
           answers, decided with integers; only then may some answers never give an output
Error      of the unbiased read-out: the spread of the reports' contributions, by a linear inverse of the matrix
Report     the output's index, ceil(log2(m) / 8) bytes for m outputs
Cost       one random word per report, more only on a tie; m counters
Source     the channel; where it was designed, the spec carries the fingerprint of its certificate

Read-out   shares of the answers by inversion, by least squares where there are more outputs than answers; by the
           iterative Bayesian update (IBU) where different shares give the same outputs. A table that was designed to
           tell hypotheses apart has their laws in its spec, and `decide` says which of them the reports favour
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deniable import exact
from deniable.channels import Channel
from deniable.channels.adjacency import largest_factor
from deniable.channels.inference import ibu
from deniable.channels.laws import Laws, plain_weights, read_laws
from deniable.domains import Categories, Domain, Integers, ListedDomain
from deniable.errors import ChannelError, DeniableError, DomainError, MismatchError, ShapeError, SpecError
from deniable.labels import Label, as_labels, label_key, label_spec, load_label, text
from deniable.protocols.blanket import of_laws
from deniable.protocols.frequency.histogram import ShareProtocol
from deniable.protocols.law import Guarantee, Law
from deniable.protocols.protocol import Positions, Protocol, first_of, kind_named, percent
from deniable.protocols.record import remembered
from deniable.protocols.reports import Bytes, from_bytes, to_bytes, width_of
from deniable.protocols.tally import Counts, Tally
from deniable.protocols.traits import Traits, not_offered
from deniable.protocols.worth import WORD_BYTES, Cost, Worth
from deniable.randomness import Bits
from deniable.results import Estimate, Floats, Weights
from deniable.results.bounds import Numbers
from deniable.results.significance import too_few, too_many
from deniable.specs import keys
from deniable.words import Fact, word

if TYPE_CHECKING:
    from deniable.channels.hypothesis import Decision

MOST_CELLS = 1 << 20
MOST_COMPARED = 1 << 20
"""Answers squared times outputs of a table with a delta: its rows are compared pair by pair, here and in browsers."""

MOST_LAWS = 64
"""Hypotheses of one table."""

_UNCLEAR = (
    "the outputs of this table do not tell all answers apart, and the shares are one of several solutions. Design a "
    "table with as many outputs as answers at least"
)
"""Outputs that are named in words."""

_HEX = frozenset("0123456789abcdef")
_OPTIONAL = frozenset({"certificate", "delta", "laws"})


@dataclass(frozen=True, init=False, repr=False)
class Table(ShareProtocol):
    """A channel, or a design with its channel, as a protocol.

    Args:
        mechanism: A channel, or a design or certificate that has one.
        epsilon: Epsilon of a report; that of the design if None, or the smallest that holds with this `delta`, rounded
            up in the twelfth digit.
        certificate: Fingerprint of the proof that no private mechanism is better, if there is one.
        delta: Probability up to which the epsilon holds.
        laws: The hypotheses to decide between, as {name: law} or a list; those of the design if None.
        **more: Further arguments of the kind that the mechanism asks for, such as `read` or `domain`.

    Raises:
        ChannelError: The channel reveals more than epsilon and delta allow.
        DomainError: A label is not an answer.
        ShapeError: The laws are about other answers.

    >>> from deniable.channels import Channel
    >>> coin = Table(Channel([["3/4", "1/4"], ["1/4", "3/4"]], inputs=["yes", "no"], outputs=["heads", "tails"]), "1.1")
    >>> coin.ratio, coin.report_bytes, coin.outputs
    (Fraction(3, 1), 1, ('heads', 'tails'))
    >>> coin.estimate(coin.tally(coin.privatize(["yes"] * 30 + ["no"] * 10))).labels
    ('yes', 'no')
    """

    name: ClassVar[str] = "Table"
    traits: ClassVar[Traits] = Traits(
        takes=(ListedDomain,),
        candidates=not_offered,  # people choose a table, not the planner
        at_epsilon=lambda protocol, factor: protocol._scaled(factor),
        waived=lambda protocol: protocol._waived(),
        says=lambda protocol, report: protocol._says(report),
    )

    domain: ListedDomain
    outputs: tuple[Label, ...] = ()
    rows: tuple[tuple[int, ...], ...] = ()
    """Integer weights, one row per answer; every row has the same sum."""
    certificate: str | None = None
    delta: Fraction = Fraction(0)
    laws: Laws | None = None

    def __new__(
        cls,
        mechanism: Any = None,
        epsilon: exact.Number | None = None,
        certificate: str | None = None,
        delta: exact.Number = 0,
        laws: Laws | Mapping[Any, Any] | Sequence[Any] | None = None,
        **more: Any,
    ) -> Self:
        """A mechanism may ask for a table of its own kind: `table_kind` of a profile mechanism is `ProfileTable`.

        A design, which knows nothing of protocols, has the name of the kind: that of a mean "MeanTable". `more`
        is what the kind takes besides, such as `read` or `domain`.
        """
        kind: Any = getattr(mechanism, "table_kind", cls) if cls is Table else cls
        made: Self = super().__new__(kind_named(kind) if isinstance(kind, str) else kind)
        return made

    def __init__(
        self,
        mechanism: Any,
        epsilon: exact.Number | None = None,
        certificate: str | None = None,
        delta: exact.Number = 0,
        laws: Laws | Mapping[Any, Any] | Sequence[Any] | None = None,
    ) -> None:
        channel = mechanism if isinstance(mechanism, Channel) else getattr(mechanism, "channel", None)
        channel = channel if channel is not None else getattr(mechanism, "mechanism", None)
        if not isinstance(channel, Channel):
            raise ChannelError(f"a table is made of a channel or a design, not of a {type(mechanism).__name__}")
        if epsilon is None and channel is not mechanism:
            epsilon = getattr(mechanism, "epsilon", None)
        numerators = [[int(entry) for entry in row] for row in channel.numerators]
        between = getattr(mechanism, "hypotheses", None) if laws is None else laws
        self._set(_domain(channel.inputs), epsilon, channel.outputs, numerators, certificate, delta, between)

    def _set(
        self,
        domain: Domain,
        epsilon: Any,
        outputs: Sequence[Label],
        rows: Sequence[Sequence[int]],
        proof: str | None,
        delta: Any = 0,
        laws: Any = None,
    ) -> None:
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "outputs", as_labels(outputs, len(rows[0]) if rows else 0, "output"))
        common = math.gcd(*(entry for row in rows for entry in row)) if rows else 1
        object.__setattr__(self, "rows", tuple(tuple(entry // common for entry in row) for row in rows))
        object.__setattr__(self, "certificate", proof)
        object.__setattr__(self, "delta", _as_delta(delta))
        object.__setattr__(self, "laws", None if laws is None else _as_laws(laws, domain))
        size = len(self.outputs) * len(self.rows)
        if not isinstance(domain, ListedDomain) or domain.size != len(self.rows):
            raise DomainError(f"a table with {len(self.rows)} rows needs as many listed answers")
        if len(self.outputs) < 2 or size > MOST_CELLS:
            raise ChannelError(f"a table has at least 2 outputs and at most {MOST_CELLS:,} cells, not {size:,}")
        if any(len(row) != len(self.outputs) for row in self.rows):
            raise ChannelError("the rows of a table have different lengths")
        if len({sum(row) for row in self.rows}) != 1 or any(entry < 0 for row in self.rows for entry in row):
            raise ChannelError("the rows of a table are weights that are not negative and have one sum")
        if proof is not None and (not isinstance(proof, str) or len(proof) != 64 or not set(proof) <= _HEX):
            raise SpecError("the certificate of a table is a fingerprint of 64 hexadecimal digits")
        if self.delta and size * len(self.rows) > MOST_COMPARED:
            raise ChannelError(
                f"a table with a delta compares every two rows: {len(self.rows):,} answers to {len(self.outputs):,} "
                f"outputs are more than {MOST_COMPARED:,} comparisons; merge answers or outputs"
            )
        ratio = self.ratio
        stated = epsilon_above(ratio, bool(self.delta)) if epsilon is None else exact.as_epsilon(epsilon)
        object.__setattr__(self, "epsilon", stated)
        if not exact.exp_at_least(stated, ratio):
            held = f" at delta {exact.shown(self.delta)}" if self.delta else ""
            raise ChannelError(
                f"between any two answers this channel has epsilon {exact.log(ratio):.6g}{held}, more than "
                f"{exact.shown(stated)}: state a larger one"
            )

    def parameters(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            "outputs": [label_spec(label) for label in self.outputs],
            "rows": [[str(entry) for entry in row] for row in self.rows],
        }
        if self.certificate is not None:
            content["certificate"] = self.certificate
        if self.delta:
            content["delta"] = exact.canonical(self.delta)
        return content if self.laws is None else content | {"laws": self.laws.spec()}

    @classmethod
    def _from_parameters(cls, domain: Domain, epsilon: Any, parameters: Mapping[str, Any]) -> Table:
        match parameters:
            case {"outputs": list(outputs), "rows": list(rows), **rest} if set(rest) <= _OPTIONAL:
                if all(isinstance(row, list) and all(_is_weight(entry) for entry in row) for row in rows):
                    table = cls.__new__(cls)
                    weights = [[int(entry) for entry in row] for row in rows]
                    labels = [load_label(label) for label in outputs]
                    laws = None if "laws" not in rest else Laws.load(rest["laws"])
                    table._set(domain, epsilon, labels, weights, rest.get("certificate"), rest.get("delta", 0), laws)
                    return table
        raise SpecError(
            "a table needs outputs and rows of whole numbers as text, and nothing else but a certificate, a delta and "
            "laws"
        )

    @classmethod
    def of_proof(cls, proof: Any, epsilon: Any, certificate: str, asked: Mapping[str, Any]) -> Table:
        """The table of a certificate that was verified; `asked` is what a question says of its answers besides."""
        keys(asked, (), "answers", optional=("hypotheses",))
        laws = proof.hypotheses
        if (names := asked.get("hypotheses")) is not None:
            if laws is None or not isinstance(names, list):
                raise SpecError('"hypotheses" are a list of names, for a proof about hypotheses')
            laws = laws.renamed([load_label(name) for name in names])
        return cls(proof.mechanism, epsilon, certificate, laws=laws)

    @classmethod
    def examples(cls) -> Iterator[Protocol]:
        yield cls(Channel([["3/4", "1/4"], ["1/4", "3/4"]], ["yes", "no"], ["yes", "no"]), "1.1")
        yield cls(Channel([["1/2", "1/3", "1/6"], ["1/6", "1/2", "1/3"]], [1, 2], ["a", "b", "c"]), "1.1")
        leaky = Channel([["97/100", "1/50", "1/100"], ["1/50", "49/50", 0]], ["yes", "no"], ["yes", "no", "sure"])
        yield cls(leaky, 4, delta="1/100")
        halves = Channel([["2/3", "1/3"], ["2/3", "1/3"], ["1/3", "2/3"]], ["a", "b", "c"], [0, 1])
        yield cls(halves, 1, laws={"rare": ["1/2", "1/3", "1/6"], "common": ["1/4", "1/4", "1/2"], 3: [0, 0, 1]})

    def _waived(self) -> Mapping[str, str]:
        reasons = {"tight": "the author of the matrix states its epsilon, which may be more than it needs"}
        if self._inverse is None:
            reasons["unbiased"] = "different shares give the same outputs: the estimate is one of several"
        return reasons

    def _scaled(self, factor: Fraction) -> Table:
        """Every likelihood ratio to the power of the factor, rows normalized again; a delta grows where it must."""
        rows = self.matrix.rows
        centre = rows.mean(axis=0)
        powers = centre * (rows / np.where(centre > 0, centre, 1.0)) ** float(factor)
        weights = [[round(entry * (1 << 40)) for entry in row] for row in powers / powers.sum(axis=1, keepdims=True)]
        for row in weights:
            row[row.index(max(row))] += (1 << 40) - sum(row)
        told = [sum(a for a, b in zip(one, other, strict=True) if not b) for one in weights for other in weights]
        delta = max(self.delta, min(Fraction(2 * max(told), 1 << 40), Fraction(99, 100)))
        table = type(self).__new__(type(self))
        table._set(self.domain, None, self.outputs, weights, None, delta)
        return table

    # -- the law -----------------------------------------------------------------------------------

    @cached_property
    def matrix(self) -> Channel:
        """The exact channel from answers to outputs."""
        return Channel.from_integers(self.rows, sum(self.rows[0]), list(self.domain.labels), list(self.outputs))

    def reading(self, read: str) -> Table:
        """The same law, read for something else; a table of answers is read for their shares alone."""
        raise SpecError(f"this table is read for the shares of its answers, not for {read!r}")

    @cached_property
    def _ratio(self) -> Fraction:
        if self.delta:
            return self._ratio_beyond()
        largest = Fraction(1)
        for output, column in zip(self.outputs, zip(*self.rows, strict=True), strict=True):
            if max(column) and not min(column):
                raise ChannelError(
                    f"output {text(output)!r} tells some answers apart for certain: every output of a table needs a "
                    "positive probability under every answer, unless it has a delta"
                )
            if max(column):
                largest = max(largest, Fraction(max(column), min(column)))
        return largest

    def _ratio_beyond(self) -> Fraction:
        found = largest_factor(self.rows, self.delta)
        if isinstance(found, float):
            raise ChannelError(
                f"some outputs tell two answers apart for certain with a probability above delta "
                f"{exact.shown(self.delta)}: state a larger delta"
            )
        return found

    def draw(self, value: int, bits: Bits) -> bytes:
        return bits.draw(self.matrix._law(value)).to_bytes(self.report_bytes, "little")

    def draw_many(self, values: Positions, bits: Bits) -> Bytes:
        return to_bytes(self.matrix.sample_indices(values, bits), self.report_bytes)

    def valid(self, reports: Bytes) -> NDArray[np.bool_]:
        return from_bytes(reports) < len(self.outputs)

    def count(self, reports: Bytes) -> Counts:
        return np.bincount(from_bytes(reports), minlength=len(self.outputs))

    def story(self, value: Any, encoded: Any, report: bytes) -> Sequence[Fact]:
        row = self.rows[encoded]
        total = sum(row)
        chances = (
            word("story.table.output", output=_said(label), chance=percent(10**9 * weight // total / 1e9))
            for label, weight in zip(self.outputs, row, strict=True)
        )
        return [word("story.table", n=len(row), chances=first_of(chances, len(row)))]

    def _says(self, report: bytes) -> Fact:
        return text(self.outputs[int.from_bytes(report, "little")])

    # -- the read-out ------------------------------------------------------------------------------

    @cached_property
    def _inverse(self) -> Floats | None:
        """A matrix W with C W = 1, outputs x answers; None if it does not exist."""
        rows = self.matrix.rows
        if rows.shape[0] > rows.shape[1] or rank(self.rows) < rows.shape[0]:
            return None
        # Outputs that come often weigh more: least squares with the variances of a uniform population.
        scale = np.sqrt(rows.mean(axis=0))
        whitened = rows / np.where(scale > 0, scale, 1.0)
        inverse: Floats = np.linalg.pinv(whitened) / np.where(scale > 0, scale, 1.0)[:, None]
        return inverse

    @property
    def is_invertible(self) -> bool:
        """Whether different shares of the answers always give different shares of the outputs."""
        return self._inverse is not None

    def estimate(self, tally: Tally) -> Estimate:
        """Unbiased counts with error bars, or those of IBU where the channel cannot be inverted."""
        found: Estimate = super().estimate(tally)
        return found

    def infer(self, tally: Tally) -> Estimate:
        if not tally.n:
            return self._nothing()
        labels, n = self.domain.labels, tally.n
        observed = tally.counts.astype(np.float64)
        if self._inverse is None:
            found = ibu(self.matrix, observed)
            shares = found.frequencies
            total = np.minimum(found.stderr, 1.0) ** 2
            noise = np.maximum(total - shares * (1 - shares) / n, 1e-6 * total) * n**2
            return Estimate(
                labels,
                n,
                shares * n,
                noise,
                self.name,
                "ibu, one of several solutions",
                bounded=True,
                unbounded=_UNCLEAR,
            )
        counts = observed @ self._inverse
        # The sum of squares of the contributions, less that of what they estimate; at least what the law always adds.
        noise = np.maximum(observed @ self._inverse**2 - counts, n * self._spread.min(axis=0))
        weights = Weights(self._inverse.min(axis=0), self._inverse.max(axis=0))
        linear = Estimate(labels, n, counts, noise, self.name, law=self._covariance, weights=weights)
        seen = np.broadcast_to(observed, self._inverse.T.shape)
        return replace(linear, bounds=Numbers(self._inverse.T, seen, linear.errors()))

    def _noise_covariance(self, shares: Floats) -> Floats | None:
        return None if self._inverse is None else self._covariance(shares)

    def _covariance(self, shares: Floats) -> Floats:
        inverse = self._inverse
        assert inverse is not None
        found: Floats = inverse.T @ ((shares @ self.matrix.rows)[:, None] * inverse) - np.diag(shares)
        return found

    def decide(
        self,
        tally: Tally,
        laws: Laws | Mapping[Any, Any] | Sequence[Any] | None = None,
        level: exact.Number = Fraction(1, 20),
    ) -> Decision:
        """Which hypothesis the reports favour: one of `laws`, or of those that the table was designed for.

        Raises MismatchError if there are no hypotheses.

        >>> coin = Channel([["3/4", "1/4"], ["1/4", "3/4"]], inputs=["yes", "no"])
        >>> table = Table(coin, "1.1", laws={"rare": [0.1, 0.9], "common": [0.5, 0.5]})
        >>> table.decide(Tally(table.fingerprint, 100, [34, 66])).favoured
        'rare'
        """
        from deniable.channels.hypothesis import decide

        self._check_tally(tally)
        between = self.laws if laws is None else _as_laws(laws, self.domain)
        if between is None:
            raise MismatchError("this table has no hypotheses to decide between: decide(tally, laws) takes them")
        return replace(decide(self.matrix, between, tally.counts.tolist(), level), protocol=self.name)

    def _decided(self, tally: Tally, level: exact.Number = Fraction(1, 20), laws: Any = None) -> Decision | None:
        return None if self.laws is None and laws is None else self.decide(tally, laws, level)

    @cached_property
    def _spread(self) -> Floats:
        """The variance of one report's contribution to the count of each answer, by the answer given: (given, of)."""
        inverse = self._inverse
        if inverse is None:
            return np.full((len(self.rows), len(self.rows)), np.inf)
        spread: Floats = self.matrix.rows @ inverse**2 - np.eye(len(self.rows))
        return spread

    def _figure_variances(self, answers: Any, people: Any = None) -> Floats:
        n = len(answers) if people is None else int(np.sum(people))
        spread: Floats = self.worth().truth(answers, people) @ self._spread / n
        return spread

    def variance(self, n: int, frequency: ArrayLike = 0.0, population: bool = True) -> Any:
        """For the answer with the largest variance, when all others are spread evenly over the other answers."""
        f = np.asarray(frequency, dtype=np.float64)
        own = np.diag(self._spread)
        others = (self._spread.sum(axis=0) - own) / max(1, len(self.rows) - 1)
        worst = int(np.argmax(others))
        spread = n * (f * own[worst] + (1 - f) * others[worst])
        if population:
            spread = spread + n * f * (1 - f)
        return float(spread) if spread.ndim == 0 else spread

    def _worst_variance(self, n: int, frequency: float = 0.0, population: bool = True) -> float:
        own = float(np.diag(self._spread).max())
        others = float(self._spread[~np.eye(len(self.rows), dtype=np.bool_)].max())
        drawn = frequency * (1 - frequency) if population else 0.0
        return n * (frequency * own + (1 - frequency) * others + drawn)

    def _misfits(self, tally: Tally, worth: float) -> list[float]:
        rows, counts, n = self.matrix.rows, tally.counts * worth, tally.n * worth
        size = len(self.outputs)
        few = min(too_few(c, n, p, size) for c, p in zip(counts, rows.min(axis=0), strict=True))
        return [few, min(too_many(c, n, p, size) for c, p in zip(counts, rows.max(axis=0), strict=True))]

    def __repr__(self) -> str:
        delta = f", delta={self.delta}" if self.delta else ""
        return f"Table({len(self.rows)} answers to {len(self.outputs)} outputs, epsilon={self.epsilon}{delta})"

    @remembered
    def worth(self, n: int = 1, read: str | None = None, population: bool = True) -> Worth:
        base = super().worth(n, read, population)
        return base.but(
            hypotheses=() if self.laws is None else self.laws.names,
            takes_laws=True,
            decide=self._decided,
            tests=lambda: len(self.rows),
            cost=Cost(float(WORD_BYTES), 1),
            variances=self._figure_variances,
            leverage=lambda: None if self._inverse is None else float(self._inverse.max()),
            moved=lambda: None if self._inverse is None else float(np.ptp(self._inverse, axis=0).max()),
            # Guess the answer under which the output is likeliest.
            guess=lambda: float(self.matrix.rows.max(axis=0).sum() / len(self.rows)),
        )

    @remembered
    def law(self) -> Law:
        base = super().law()
        return base.but(
            guarantee=lambda: Guarantee("any", self.epsilon, self.delta),
            ratio=lambda: self._ratio,
            blankets=lambda: () if self.delta else of_laws(self.rows, self.law().related()),
            width=lambda: width_of(len(self.outputs)),
            forms=lambda: len(self.outputs),
            counters=lambda: len(self.outputs),
            inputs=lambda: ((label, place) for place, label in enumerate(self.domain.labels)),
            input_count=lambda: len(self.rows),
            checks=self._misfits,
        )


def _domain(labels: Sequence[Label]) -> Domain:
    numbers = [label for label in labels if isinstance(label, int) and not isinstance(label, bool)]
    if len(numbers) == len(labels) > 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        return Integers(numbers[0], numbers[-1])
    try:
        return Categories(list(labels))
    except DeniableError as wrong:
        raise DomainError(f"the inputs of this channel cannot be answers: {wrong}") from None


def _as_delta(delta: Any) -> Fraction:
    found = exact.short_number(exact.fraction(delta, "delta"), "delta")
    if not 0 <= found < 1:
        raise ChannelError(f"delta is a probability below 1, not {exact.shown(found)}")
    return found


def _as_laws(given: Any, domain: Domain) -> Laws:
    """Laws of the answers, in their order and without their names."""
    labels = list(domain.labels) if isinstance(domain, ListedDomain) else []
    laws = given if isinstance(given, Laws) else read_laws(given, labels if _named(given) else None)
    if laws.size != len(labels):
        raise ShapeError(f"the laws are about {laws.size} answers, and the table has {len(labels)}")
    if laws.inputs is not None and [*map(label_key, laws.inputs)] != [*map(label_key, labels)]:
        raise ShapeError("the laws are about other answers than those of the table, or in another order")
    if laws.count > MOST_LAWS:
        raise ShapeError(f"a table decides between at most {MOST_LAWS} laws, not {laws.count}")
    return Laws(tuple(plain_weights(law) for law in laws.weights), laws.names)


def _named(laws: Any) -> bool:
    """Whether the laws name their answers."""
    listed = laws.values() if isinstance(laws, Mapping) else laws
    return any(isinstance(law, Mapping) for law in listed)


def _is_weight(entry: Any) -> bool:
    return isinstance(entry, str) and entry.isascii() and entry.isdigit() and (entry == "0" or entry[0] != "0")


def epsilon_above(ratio: Fraction, tells: bool = False) -> Fraction:
    """A short number that is at least log(ratio); zero is refused unless the channel `tells` something beyond it."""
    guess = Fraction(math.ceil(exact.log(ratio) * 10**12), 10**12)
    if ratio == 1 and tells:
        return exact.SMALLEST_EPSILON
    while not exact.exp_at_least(guess, ratio):
        guess += Fraction(1, 10**12)
    return exact.as_epsilon(guess)


def rank(rows: Sequence[Sequence[int]]) -> int:
    """The exact rank of integer rows, by elimination over a large prime: never above the true one.

    A matrix of full rank loses it modulo one of two primes only if both divide all of its minors.
    """
    return max(_rank_modulo(rows, prime) for prime in ((1 << 61) - 1, (1 << 31) - 1))


def _rank_modulo(rows: Sequence[Sequence[int]], prime: int) -> int:
    left = [[entry % prime for entry in row] for row in rows]
    rank = 0
    for column in range(len(left[0])):
        pivot = next((i for i in range(rank, len(left)) if left[i][column]), None)
        if pivot is None:
            continue
        left[rank], left[pivot] = left[pivot], left[rank]
        scale = pow(left[rank][column], -1, prime)
        for i in range(rank + 1, len(left)):
            factor = left[i][column] * scale % prime
            if factor:
                left[i] = [(a - factor * b) % prime for a, b in zip(left[i], left[rank], strict=True)]
        rank += 1
        if rank == len(left):
            break
    return rank


def _said(label: Label) -> Fact:
    """An output as people read it."""
    return word("label.true" if label else "label.false") if isinstance(label, bool) else text(label)
