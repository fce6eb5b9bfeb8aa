"""The result of every design: a mechanism, its value, and a proof that no better one exists.

Design       the exact channel, its value, a bound that no private mechanism exceeds, the gap, how it was found
Certificate  everything that a verifier needs in one JSON file: `verify()` checks rows and ratios with integers and the
             bound without the solver; `rigor` is "proved" (rounding errors included) or "numeric" (floats, for
             functions that a user supplied)
Direction    `sense` is "max" for a utility, whose bound lies above the value, "min" for a loss
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from deniable import exact
from deniable._files import atomic_write, read_json
from deniable._sheets import Sheet, Shown
from deniable.channels import Channel
from deniable.channels.laws import Laws
from deniable.design.partitions import BlockResponse
from deniable.errors import NumberError, SpecError
from deniable.trace import Step, summary

FORMAT = "deniable-certificate"


@dataclass(frozen=True, slots=True)
class Check:
    """One claim of a certificate, and whether it holds.

    Args:
        name: Name of the claim.
        holds: Whether it holds.
        detail: The numbers that were compared.
    """

    name: str
    holds: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Verdict(Shown):
    """The outcome of all checks; true if all of them hold.

    Args:
        checks: The single checks.
        rigor: "proved" (rounding errors included) or "numeric".
    """

    checks: tuple[Check, ...]
    rigor: str

    def __bool__(self) -> bool:
        return all(check.holds for check in self.checks)

    def sheet(self) -> Sheet:
        names = ("name", "holds", "detail")
        columns = {name: [getattr(check, name) for check in self.checks] for name in names}
        body = [[check.name, "ok" if check.holds else "FAILS", check.detail] for check in self.checks]
        return Sheet(
            [f"{'verified' if self else 'not verified'} ({self.rigor})"], ["check", "", "detail"], body, (), columns
        )

    def __str__(self) -> str:
        lines = [f"{'ok' if check.holds else 'FAILS':<6}{check.name}: {check.detail}" for check in self.checks]
        return "\n".join([*lines, f"{'verified' if self else 'not verified'} ({self.rigor})"])


class Certificate(ABC):
    """A claim that can be checked from a file alone."""

    kind: ClassVar[str]
    kinds: ClassVar[dict[str, type[Certificate]]] = {}
    table_kind: ClassVar[str] = "Table"
    """The name of the protocol that uses the mechanism."""

    value: float
    bound: float

    def __init_subclass__(cls, **extra: Any) -> None:
        super().__init_subclass__(**extra)
        if "kind" in cls.__dict__:
            Certificate.kinds[cls.kind] = cls

    @property
    @abstractmethod
    def rigor(self) -> str:
        """ "proved" or "numeric"."""

    @property
    @abstractmethod
    def mechanism(self) -> Channel:
        """The exact channel that the certificate is about; a saved proof is read for it as well as checked."""

    @property
    def hypotheses(self) -> Laws | None:
        """The laws of the answers that the mechanism was designed to distinguish, if any."""
        return None

    @abstractmethod
    def verify(self) -> Verdict:
        """Check rows, ratios, value and bound again."""

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """The claim as JSON."""

    @classmethod
    @abstractmethod
    def read(cls, content: dict[str, Any]) -> Certificate:
        """The claim from JSON."""

    @property
    def gap(self) -> float:
        return abs(self.bound - self.value)

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the bound; 0 if both are 0."""
        return self.gap / abs(self.bound) if self.bound else self.gap

    def spec(self) -> dict[str, Any]:
        return {"format": FORMAT, "version": 1, "kind": self.kind, **self.content()}

    def save(self, path: str | Path) -> None:
        """Write the certificate as a JSON file, atomically."""
        with atomic_write(path) as file:
            file.write((json.dumps(self.spec(), ensure_ascii=False) + "\n").encode())

    @staticmethod
    def load(source: str | Path | dict[str, Any]) -> Certificate:
        """A certificate from a file, or from its parsed JSON."""
        content = source if isinstance(source, dict) else read_json(source)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise SpecError(f'this is not a certificate: it needs "format": "{FORMAT}"')
        if content.get("version") != 1:
            raise SpecError(f"certificates of version {content.get('version')!r} are unknown here: only 1 is")
        reader = Certificate.kinds.get(str(content.get("kind")))
        if reader is None:
            raise SpecError(f"certificates of kind {content.get('kind')!r} are unknown here")
        try:
            return reader.read(content)
        except (KeyError, TypeError, IndexError, OverflowError) as wrong:
            raise SpecError(f"the certificate is incomplete or malformed ({type(wrong).__name__}: {wrong})") from None


def read_number(written: Any) -> float:
    """A finite number from a certificate, which writes them as decimals."""
    try:
        number = float(written)
    except ValueError:
        raise SpecError("a certificate writes numbers as decimals") from None
    if not math.isfinite(number):
        raise NumberError("a certificate's numbers are finite")
    return number


@dataclass(frozen=True, repr=False)
class Design(Shown):
    """A mechanism found by optimization. The certificate is computed on first use.

    Args:
        name: Name of the mechanism.
        epsilon: The guarantee.
        value: The objective that the mechanism attains.
        law: The mechanism, exact.
        certify: Computes the certificate.
        inputs: Labels of the inputs.
        trace: Input and outcome of each solver run.
        seconds: Duration of the whole search.
        sense: "max" or "min": whether a larger value is better.
        hypotheses: The laws of the answers that it was designed to distinguish, if any.
    """

    pictured: ClassVar[bool] = True

    name: str
    epsilon: Fraction
    value: float
    law: BlockResponse | Channel
    certify: Callable[[], Certificate]
    inputs: tuple[Any, ...] | None = None
    trace: tuple[Step, ...] = ()
    seconds: float = 0.0
    sense: str = "max"
    hypotheses: Laws | None = None

    @cached_property
    def channel(self) -> Channel:
        """The exact matrix, inputs by outputs."""
        return self.law if isinstance(self.law, Channel) else self.law.channel(self.inputs)

    @cached_property
    def certificate(self) -> Certificate:
        return self.certify()

    @property
    def bound(self) -> float:
        """The bound that no mechanism at this epsilon can exceed."""
        return self.certificate.bound

    @property
    def gap(self) -> float:
        """The distance of value and bound."""
        return self.certificate.gap

    @property
    def relative_gap(self) -> float:
        return self.certificate.relative_gap

    @property
    def ratio(self) -> Fraction | float:
        """The largest column ratio over all pairs, exactly: at most e^epsilon if all pairs are adjacent."""
        return self.law.ratio

    @property
    def realized_epsilon(self) -> float:
        """The actual epsilon of the mechanism, over the pairs that it was designed for."""
        if isinstance(self.law, Channel):
            return self.law.epsilon_under(self.law.adjacency)
        ratio = self.ratio
        return float("inf") if isinstance(ratio, float) else exact.log(ratio)

    @property
    def outputs(self) -> int:
        return self.law.outputs if isinstance(self.law, BlockResponse) else len(self.law.outputs)

    def sheet(self) -> Sheet:
        return replace(self.channel.sheet(), above=[str(self)])

    def plot(self, ax: Any = None) -> Any:
        """The channel as a heat map."""
        return plot_channel(self, ax)

    def __repr__(self) -> str:
        return (
            f"<{self.name} at epsilon {exact.shown(self.epsilon)}: value {self.value:.9g}, {self.outputs} outputs; "
            f"{summary(self.trace)}>"
        )

    def __str__(self) -> str:
        return (
            f"{self.name} at epsilon {exact.shown(self.epsilon)}: value {self.value:.9g} with {self.outputs} outputs; "
            f"no mechanism {'exceeds' if self.sense == 'max' else 'goes below'} {self.bound:.9g} "
            f"(relative gap {self.relative_gap:.1e}, {self.certificate.rigor})"
        )


def plot_channel(design: Design, ax: Any = None) -> Any:
    """The designed channel, with its value and its gap in the title.

    Args:
        design: The mechanism.
        ax: Axes of matplotlib to draw on; new ones if None.

    Returns:
        The axes.
    """
    ax = design.channel.plot(ax)
    ax.set_title(
        f"{design.name}, epsilon = {design.realized_epsilon:.4g}\n"
        f"value {design.value:.6g}, relative gap {design.relative_gap:.0e}"
    )
    return ax
