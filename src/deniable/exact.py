"""Exact numbers: epsilon as a fraction, e^epsilon between rational bounds, dyadic probabilities.

No float touches a privacy claim. A float that a person typed is read by its `repr` (0.1 is 1/10).
e^x of a non-zero rational x is irrational, so every comparison of e^x with a rational, and every
floor or ceiling of a rational function of e^x, is decided after finitely many bits: the results below
do not depend on the working precision, and any language that follows the same rule gets the same integers.

Bounds     0 <= sum of all terms x^i / i! beyond N  <=  next term * 1 / (1 - x / (N + 2)), for x < N + 2
Rounding   `floor` and `ceil` in a name state the direction; nothing is rounded to nearest
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from typing import Any

from deniable.errors import EpsilonError, InternalError, NumberError, ProbabilityError

Number = int | float | str | Decimal | Fraction

SMALLEST_EPSILON = Fraction(1, 10**6)
LARGEST_EPSILON = Fraction(64)
WORD_BITS = 64
WORD = 1 << WORD_BITS

MOST_DIGITS = 100
"""Maximum number of digits of an epsilon and of the numbers in a survey: more than any float has."""

_SHORT_END = 10**MOST_DIGITS
_LARGEST_EXPONENT = 1 << 20

# Longer than any number that a person or a program has a reason to write; a hostile number stays cheap to reject.
_LONGEST = 2000
_COMMA = re.compile(r"\s*[+-]?\d*,\d+\s*\Z")
_RATIO = re.compile(r"\s*[+-]?\d+\s*/\s*\d+\s*\Z")


def fraction(value: Any, what: str = "the number") -> Fraction:
    """Read a number exactly; a float is read as the decimal that prints it.

    Args:
        value: An integer, a fraction, a decimal, a float or a text such as "1/3".
        what: What the number is, for error messages.

    Returns:
        The number.

    Raises:
        NumberError: It is not a finite number.

    >>> fraction(0.1), fraction("1/3"), fraction("1e-3")
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 1000))
    """
    if isinstance(value, bool):
        raise NumberError(f"{what} is a truth value, not a number")
    if isinstance(value, Fraction):
        return value
    if isinstance(value, numbers.Integral):
        return Fraction(int(value))
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, str):
        return _from_text(value, what)
    if isinstance(value, Decimal):
        return _from_decimal(value, what)
    if isinstance(value, float):
        return _from_decimal(Decimal(float.__repr__(value)), what)
    if isinstance(value, numbers.Real):  # numpy's other floats: the decimal that prints a float32 is shorter
        return _from_text(str(value), what)
    raise NumberError(f"{what} is a {type(value).__name__}: give an int, float, str, Decimal or Fraction")


def _from_text(text: str, what: str) -> Fraction:
    if len(text) > _LONGEST:
        raise NumberError(f"{what} is written with {len(text)} characters; {_LONGEST} are the most")
    if _RATIO.match(text):
        top, bottom = text.split("/")
        if int(bottom) == 0:
            raise NumberError(f"{what} {text.strip()!r} divides by zero")
        return Fraction(int(top), int(bottom))
    try:
        return _from_decimal(Decimal(text.strip()), what)
    except InvalidOperation:
        shown = text if len(text) <= 40 else text[:40] + "..."
        if _COMMA.match(text):
            raise NumberError(f"{what} {shown!r} has a comma: write a point instead, as in 0.3") from None
        raise NumberError(f"{what} {shown!r} is not a number: write it like 1.5, 3/2 or 1e-3") from None


def _from_decimal(value: Decimal, what: str) -> Fraction:
    if value.is_nan():
        raise NumberError(f"{what} is NaN (not a number)")
    if value.is_infinite():
        raise NumberError(f"{what} is infinite")
    # Checked before conversion: Fraction("1e999999999") would fill the memory.
    if value and abs(value.adjusted()) > _LONGEST:
        raise NumberError(f"{what} is {value:.3e}, out of any sensible range")
    if len(value.as_tuple().digits) > _LONGEST:
        raise NumberError(f"{what} is written with more than {_LONGEST} digits, the most that are read")
    return Fraction(value)


def whole(value: Any, what: str) -> int:
    """Read a size or a count of steps; 3.0 is accepted as whole, 2.5 is refused rather than truncated.

    Args:
        value: A number.
        what: What the number is, for error messages.

    Returns:
        The integer.

    Raises:
        NumberError: It is not a whole number.

    >>> whole(3.0, "the size")
    3
    """
    number = fraction(value, what)
    if number.denominator != 1:
        raise NumberError(f"{what} is {shown(number)}, not a whole number")
    return number.numerator


def as_epsilon(value: Any) -> Fraction:
    """An epsilon, held exactly, between 1e-6 and 64.

    Args:
        value: A number.

    Returns:
        The epsilon.

    Raises:
        EpsilonError: It is not a number between 1e-6 and 64.

    >>> as_epsilon(0.1) == as_epsilon("0.1") == as_epsilon(Fraction(1, 10))
    True
    """
    try:
        epsilon = fraction(value, "epsilon")
    except NumberError as refused:
        raise EpsilonError(str(refused)) from None
    if epsilon <= 0:
        raise EpsilonError(f"epsilon is {shown(epsilon)}, but it must be positive: at 0 nothing can be learned")
    if epsilon < SMALLEST_EPSILON:
        raise EpsilonError(f"epsilon is {shown(epsilon)}, below 1e-6: no crowd on earth is large enough")
    if epsilon > LARGEST_EPSILON:
        raise EpsilonError(f"epsilon is {shown(epsilon)}, above 64: that protects nobody; usual values are 0.1 to 8")
    try:
        return short_number(epsilon, "epsilon")
    except NumberError as refused:
        raise EpsilonError(str(refused)) from None


def short_number(value: Fraction, what: str) -> Fraction:
    """The number itself, if numerator and denominator have at most 100 digits; longer ones would slow everything down.

    Args:
        value: A fraction.
        what: What the number is, for error messages.

    Returns:
        The same fraction.

    Raises:
        NumberError: It is too long.

    >>> short_number(Fraction(1, 3), "the threshold")
    Fraction(1, 3)
    """
    if max(abs(value.numerator), value.denominator) >= _SHORT_END:
        raise NumberError(f"{what} has more than {MOST_DIGITS} digits above or below the line: round it")
    return value


def shown(value: Fraction) -> str:
    """A fraction for people: short decimals exactly, others to six digits.

    Args:
        value: A fraction.

    Returns:
        Its text.
    """
    try:
        nearest = float(value)
    except OverflowError:
        nearest = math.inf
    if math.isfinite(nearest) and (nearest or not value):
        return f"{nearest:.6g}"
    # Outside the range of floats: find the exponent by counting bits.
    digits = (abs(value.numerator).bit_length() - value.denominator.bit_length()) * math.log10(2)
    return f"{'-' if value < 0 else ''}1e{digits:+.0f} or so"


def canonical(value: Fraction) -> str:
    """The one way to write a fraction in a spec: "a" or "a/b", reduced.

    Args:
        value: A fraction.

    Returns:
        Its text.
    """
    return str(value)


def literal(value: Fraction) -> str:
    """Python code for the number, accepted by all our constructors.

    Args:
        value: A fraction.

    Returns:
        An expression.

    >>> literal(Fraction(2)), literal(Fraction(1, 3))
    ('2', "'1/3'")
    """
    return str(value) if value.denominator == 1 else repr(canonical(value))


@lru_cache(maxsize=1024)
def exp_bounds(x: Fraction, bits: int = 128) -> tuple[Fraction, Fraction]:
    """Rationals lower < e^x < upper (equal to 1 at x = 0) with upper - lower <= 2^-bits * lower.

    Args:
        x: The exponent.
        bits: Relative precision.

    Returns:
        The lower and the upper bound.

    Raises:
        NumberError: `bits` is below 1.

    >>> lower, upper = exp_bounds(Fraction(1), 64)
    >>> float(lower), lower < upper
    (2.718281828459045, True)
    """
    if bits < 1:
        raise NumberError(f"bounds to {bits} bits make no sense: ask for at least 1")
    if x == 0:
        return Fraction(1), Fraction(1)
    if x < 0:
        lower, upper = exp_bounds(-x, bits)
        return 1 / upper, 1 / lower
    if x > _LARGEST_EXPONENT:
        raise NumberError(f"e^{shown(x)} is not computed: the exponent must not exceed {_LARGEST_EXPONENT}")
    if x > 64:
        # Squaring doubles the relative width of the bounds; the other guard bits cover the rounding.
        lower, upper = exp_bounds(x / 2, bits + 3)
        return floor_to_bits(lower * lower, bits + 8), -floor_to_bits(-upper * upper, bits + 8)
    # Fixed point with enough guard bits that all roundings together stay below 2^-bits (e^x >= 1).
    terms = 16 + int(4 * x) + bits
    scale = bits + terms.bit_length() + 4
    low_term = high_term = low = high = 1 << scale
    step = 0
    while high_term > 1 or step < 2 * x:
        step += 1
        bottom = x.denominator * step
        low_term = low_term * x.numerator // bottom
        high_term = -(-high_term * x.numerator // bottom)
        low += low_term
        high += high_term
    # From here every term is at most half of the previous one, so the remainder is at most the last term.
    high += high_term
    lower, upper = Fraction(low, 1 << scale), Fraction(high, 1 << scale)
    if (upper - lower) * (1 << bits) > lower:
        raise InternalError(f"the bounds of e^{x} are wider than 2^-{bits}")
    return lower, upper


def floor_to_bits(value: Fraction, bits: int) -> Fraction:
    """The value rounded down to about `bits` significant bits.

    Args:
        value: A number.
        bits: Number of significant bits.

    Returns:
        The rounded number.
    """
    unit = abs(value.numerator).bit_length() - value.denominator.bit_length() - bits
    step = Fraction(2) ** unit
    return math.floor(value / step) * step


def exp_floor(x: Fraction, bits: int = 128) -> Fraction:
    """A rational just below e^x.

    Args:
        x: The exponent.
        bits: Relative precision.

    Returns:
        The lower bound.
    """
    return exp_bounds(x, bits)[0]


def exp_ceil(x: Fraction, bits: int = 128) -> Fraction:
    """A rational just above e^x.

    Args:
        x: The exponent.
        bits: Relative precision.

    Returns:
        The upper bound.
    """
    return exp_bounds(x, bits)[1]


def exp_at_least(x: Fraction, ratio: Fraction) -> bool:
    """Whether ratio <= e^x, decided exactly.

    Args:
        x: The exponent.
        ratio: The number that is compared with e^x.

    Returns:
        Whether ratio <= e^x.

    >>> exp_at_least(Fraction(11, 10), Fraction(3)), exp_at_least(Fraction(10987, 10000), Fraction(3))
    (True, True)
    >>> exp_at_least(Fraction(10986, 10000), Fraction(3))
    False
    """
    if x == 0:
        return ratio <= 1
    bits = 64
    while True:
        lower, upper = exp_bounds(x, bits)
        if ratio <= lower:
            return True
        if ratio >= upper:
            return False
        bits *= 2


def floor_of(function: Callable[[Fraction], Fraction], x: Fraction) -> int:
    """floor(function(e^x)) for a monotone rational function, exact whatever the precision.

    Args:
        function: A monotone function that maps fractions to fractions.
        x: The exponent.

    Returns:
        The integer.

    >>> floor_of(lambda e: 1000 * e, Fraction(1))
    2718
    """
    if x == 0:
        return math.floor(function(Fraction(1)))
    bits = 128
    while bits <= 1 << 16:
        lower, upper = exp_bounds(x, bits)
        ends = {math.floor(function(lower)), math.floor(function(upper))}
        if len(ends) == 1:
            return ends.pop()
        bits *= 2
    raise NumberError("the function does not depend on e^x, or is not monotone: its floor cannot be settled")


def ceil_of(function: Callable[[Fraction], Fraction], x: Fraction) -> int:
    """ceil(function(e^x)) for a monotone rational function, exact whatever the precision.

    Args:
        function: A monotone function that maps fractions to fractions.
        x: The exponent.

    Returns:
        The integer.
    """
    return -floor_of(lambda e: -function(e), x)


def log(ratio: Fraction) -> float:
    """Natural logarithm for display: the nearest float, so that ln(ratio) <= epsilon still shows as such.

    Args:
        ratio: A positive number.

    Returns:
        The logarithm.

    Raises:
        NumberError: The number is not positive.

    >>> log(Fraction(3)) == math.log(3), log(Fraction(10**18 + 1, 10**18))
    (True, 1e-18)
    """
    if ratio <= 0:
        raise NumberError("only positive numbers have a logarithm")
    if Fraction(1, 2) < ratio < 2:
        rough = math.log1p(float(ratio - 1))
        if abs(rough) < 1e-20:
            return rough
    else:
        rough = math.log(ratio.numerator) - math.log(ratio.denominator)
    if abs(rough) > _LARGEST_EXPONENT:
        return rough
    # One Newton step with rational bounds removes the rounding of the float functions.
    return rough + float(ratio * exp_floor(-Fraction(rough), 256) - 1)


def log_ceil(ratio: Fraction, parts: int = 1000) -> Fraction:
    """The smallest multiple of 1 / parts that is at least the natural logarithm of a ratio of 1 or more, exactly.

    Args:
        ratio: A number of at least 1.
        parts: The result is a multiple of 1 / parts.

    Returns:
        The upper bound.

    Raises:
        NumberError: The ratio is below 1.

    >>> log_ceil(Fraction(3)), log_ceil(Fraction(1))
    (Fraction(1099, 1000), Fraction(0, 1))
    """
    if ratio < 1:
        raise NumberError("a likelihood ratio is at least 1")
    place = math.floor(log(ratio) * parts)
    while not exp_at_least(Fraction(place, parts), ratio):
        place += 1
    while place > 0 and exp_at_least(Fraction(place - 1, parts), ratio):
        place -= 1
    return Fraction(place, parts)


@dataclass(frozen=True, slots=True)
class Dyadic:
    """The probability numerator / 2^64, which one 64-bit random word decides.

    Args:
        numerator: An integer from 0 to 2^64.

    Raises:
        ProbabilityError: The numerator is out of range.

    >>> Dyadic.floor(Fraction(1, 3)), Dyadic.ceil(Fraction(1, 3)).numerator
    (Dyadic(numerator=6148914691236517205), 6148914691236517206)
    """

    numerator: int

    def __post_init__(self) -> None:
        if not 0 <= self.numerator <= WORD:
            raise ProbabilityError(f"{self.numerator} / 2^64 is not a probability")

    @classmethod
    def floor(cls, probability: Fraction) -> Dyadic:
        """The largest multiple of 2^-64 that is not above the probability."""
        return cls(math.floor(probability * WORD))

    @classmethod
    def ceil(cls, probability: Fraction) -> Dyadic:
        """The smallest multiple of 2^-64 that is not below the probability."""
        return cls(math.ceil(probability * WORD))

    @classmethod
    def floor_of(cls, function: Callable[[Fraction], Fraction], x: Fraction) -> Dyadic:
        """`floor` of a monotone rational function of e^x, settled exactly."""
        return cls(floor_of(lambda e: WORD * function(e), x))

    @classmethod
    def ceil_of(cls, function: Callable[[Fraction], Fraction], x: Fraction) -> Dyadic:
        """`ceil` of a monotone rational function of e^x, settled exactly."""
        return cls(ceil_of(lambda e: WORD * function(e), x))

    @property
    def value(self) -> Fraction:
        return Fraction(self.numerator, WORD)

    @property
    def complement(self) -> Dyadic:
        return Dyadic(WORD - self.numerator)

    def __float__(self) -> float:
        return self.numerator / WORD


def simplest_between(low: Fraction, high: Fraction) -> Fraction:
    """The fraction with the smallest denominator in [low, high].

    Args:
        low: Lower end, at least 0.
        high: Upper end.

    Returns:
        The fraction.

    Raises:
        NumberError: The ends are not in order.

    >>> simplest_between(Fraction(314, 100), Fraction(315, 100))
    Fraction(22, 7)
    """
    if not 0 <= low <= high:
        raise NumberError("simplest_between needs 0 <= low <= high")
    # Walk down the continued fraction that both ends share.
    whole = math.ceil(low)
    if whole <= high:
        return Fraction(whole)
    whole -= 1
    return whole + 1 / simplest_between(1 / (high - whole), 1 / (low - whole))


# -- epsilons as people read them ---------------------------------------------------------------------


DIGITS = 10
_LONGEST_FRACTION = 9


def level_text(ratio: Fraction | float, distance: Fraction = Fraction(1), digits: int = DIGITS) -> str:
    """ln(ratio) / distance: the epsilon of a law whose likelihood ratios are at most `ratio`.

    Args:
        ratio: The likelihood ratio; a float is infinite.
        distance: Distance of the inputs.
        digits: Significant digits.

    Returns:
        The epsilon as text, rounded up.

    >>> level_text(Fraction(3)), level_text(Fraction(27182818285, 10**10)), level_text(Fraction(3), digits=4)
    ('1.098612289', '1.000000001', '1.099')
    """
    if isinstance(ratio, float):
        return "infinite"
    level = log(ratio) / float(distance) if ratio > 1 else 0.0
    if not 0 < level <= LARGEST_EPSILON:
        return f"{level:.{digits}g}"
    found = Context(digits, ROUND_FLOOR).create_decimal(level)
    while not exp_at_least(Fraction(found) * distance, ratio):
        found = found.next_plus(Context(digits))
    return f"{float(found):.{digits}g}"


def largest_text(epsilon: Fraction) -> str:
    """An epsilon that is a limit: as `epsilon_text` if that is exact, else rounded down to stay within the limit.

    Args:
        epsilon: The limit.

    Returns:
        The limit as text.

    >>> largest_text(Fraction("0.4")), largest_text(Fraction(1, 7)), largest_text(Fraction("1.23457") / 7)
    ('0.4', '1/7', '0.1763')
    """
    written = epsilon_text(epsilon)
    if Fraction(written) <= epsilon:
        return written
    found = Context(4, ROUND_FLOOR).divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    return f"{float(found):.4g}"


def epsilon_text(epsilon: Fraction, digits: int = DIGITS) -> str:
    """An epsilon that a person chose: exact if that is short, as in 0.1 and 1/3.

    Args:
        epsilon: The epsilon.
        digits: Significant digits, if it is not short.

    Returns:
        The epsilon as text.

    >>> epsilon_text(Fraction("0.1")), epsilon_text(Fraction(1, 3)), epsilon_text(Fraction("1.0986122886681098"))
    ('0.1', '1/3', '1.098612289')
    """
    found = Context(digits, ROUND_CEILING).divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    fraction = canonical(epsilon)
    if Fraction(found) != epsilon and len(fraction) <= _LONGEST_FRACTION:
        return fraction
    return f"{float(found):.{digits}g}"
