"""A number from low to high, in a unit; numbers outside are clipped on the device, and no report reveals this."""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deniable import exact
from deniable.columns import absent, flat, is_absent, kind
from deniable.domains.base import Domain, wrong_spec
from deniable.errors import DomainError, NumberError, ValueRefused

Floats = NDArray[np.float64]

_LARGEST = 1 << 53
_NUMBERS = (int, float, np.integer, np.floating, Decimal, Fraction)
_TRUTHS = (bool, np.bool_)


@dataclass(frozen=True)
class Interval(Domain):
    """Any number from low to high. An encoded answer is a float, clipped to the interval.

    Args:
        low: The smallest number.
        high: The largest number.
        unit: The unit, for tables and figures.

    Raises:
        DomainError: The ends are not numbers in order, or not short fractions.

    >>> hours = Interval(0, 100, unit="hours")
    >>> hours.encode([7.5, 120, -3]).tolist(), str(hours)
    ([7.5, 100.0, 0.0], 'a number from 0 to 100 hours')
    """

    kind: ClassVar[str] = "interval"

    reads: ClassVar[str] = "mean"

    low: Fraction
    high: Fraction
    unit: str = ""

    def __init__(self, low: exact.Number, high: exact.Number, unit: str = "") -> None:
        for name, end in (("low", low), ("high", high)):
            try:
                number = exact.fraction(end, f"the {name} end of an interval")
            except NumberError as wrong:
                raise DomainError(str(wrong)) from None
            if max(abs(number.numerator), number.denominator) >= _LARGEST:
                raise DomainError(f"the {name} end of an interval is a fraction of numbers below 2^53: round it")
            object.__setattr__(self, name, number)
        if not isinstance(unit, str):
            raise DomainError(f"the unit of an interval is text, not {kind(unit)}")
        object.__setattr__(self, "unit", unit)
        if self.low >= self.high:
            raise DomainError(f"an interval needs low < high, not {self.low} to {self.high}")

    @property
    def ends(self) -> tuple[float, float]:
        return float(self.low), float(self.high)

    def encode(self, values: Any) -> Floats:
        array = flat(values)
        if array.dtype.kind == "O":
            array = np.array([self._number(value, place) for place, value in enumerate(array)], dtype=np.float64)
        if array.dtype.kind not in "iuf":
            raise DomainError(f"an answer to this question is a number, not a {array.dtype.name} value")
        numbers = array.astype(np.float64)
        if not numbers.size:
            return numbers
        (low, high), least, most = self.ends, float(numbers.min()), float(numbers.max())
        if math.isnan(least):
            raise absent(int(np.argmax(np.isnan(numbers))))
        if math.isinf(least) or math.isinf(most):
            raise ValueRefused(" is not a finite number", int(np.argmax(np.isinf(numbers))))
        return numbers if low <= least and most <= high else np.clip(numbers, low, high)

    def encode_one(self, value: Any) -> float:
        number = value if type(value) is float else self._number(value, 0)
        if math.isnan(number):
            raise absent(0)
        if math.isinf(number):
            raise ValueRefused(" is not a finite number", 0)
        low, high = self.ends
        return min(max(number, low), high)

    def _number(self, value: Any, place: int) -> float:
        if is_absent(value):
            raise absent(place)
        if isinstance(value, _TRUTHS) or not isinstance(value, _NUMBERS):
            raise ValueRefused(f", {kind(value)}, is not a number", place)
        try:
            return float(value)
        except OverflowError:  # an integer beyond the range of floats is clipped like any other
            return sys.float_info.max if value > 0 else -sys.float_info.max

    def reader(self, typed: bool = True) -> Callable[[str], Any]:
        def meaning(entry: str) -> float | str:
            try:
                return float(entry) if "_" not in entry else entry
            except ValueError:
                return entry

        return meaning

    def answer_key(self, encoded: Any) -> bytes:
        """02 and the clipped number as a float of 8 bytes, little-endian."""
        return b"\2" + struct.pack("<d", encoded + 0.0)  # -0.0 and 0.0 are the same answer

    @property
    def example(self) -> float:
        return sum(self.ends) / 2

    @property
    def texts(self) -> dict[str, Any]:
        return {"unit": self.unit} if self.unit else {}

    def translated(self, texts: Mapping[str, Any]) -> Interval:
        return Interval(self.low, self.high, texts.get("unit", ""))

    def written(self, number: float, digits: int = 4) -> str:
        """A number with the unit."""
        return f"{number:.{digits}g}" + (f" {self.unit}" if self.unit else "")

    def spec(self) -> dict[str, Any]:
        return {"kind": "interval", "low": str(self.low), "high": str(self.high), "unit": self.unit}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Interval:
        match spec:
            case {"kind": "interval", "low": str(low), "high": str(high), "unit": str(unit), **rest} if not rest:
                return cls(low, high, unit)
        raise wrong_spec("an interval", "low, high and unit, all of them text")

    def __repr__(self) -> str:
        unit = f", unit={self.unit!r}" if self.unit else ""
        return f"Interval({exact.literal(self.low)}, {exact.literal(self.high)}{unit})"

    def __str__(self) -> str:
        low, high = (f"{float(end):.12g}" for end in (self.low, self.high))
        return f"a number from {low} to {high}" + (f" {self.unit}" if self.unit else "")
