"""Sums in words, computed as fractions, and the conversion of units: `half of 9 plus 3` is 7.5.

The grammar of sums is:

sum     = product (+ product | - product)…
product = power (* power | / power | % power | of power)…
power   = factor (^ power | ^2 | ^3)…
factor  = number | - factor | root factor | twice factor
"""

from __future__ import annotations

import operator
import tomllib
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files
from itertools import product
from math import isqrt
from typing import NamedTuple

from voiceloop.skills.known import Amount, Answer, Answers, SkillRequest
from voiceloop.skills.phrases import FEW_PLACES, MOST_PLACES, Phrases
from voiceloop.skills.template import Kind, Template, Words, whole
from voiceloop.skills.words import plain

ANSWERS = Answers()
MOST_BITS = 4096
"""Maximum number of bits in the numerator and in the denominator of a power."""
ROOT_PLACES = 30
"""Decimals of a root that is not exact."""
HUGE = 10**15
"""A number of this absolute value or more is said with a power of ten."""
PERCENT = "pct"


# ---- units


class Unit(NamedTuple):
    """The quantity that a unit measures, and the unit's size."""

    measures: str
    worth: Fraction
    """Size of the unit, relative to the basic unit of the quantity, e.g. 1000 for a kilometer,
    because the basic unit is the meter."""
    zero: Fraction = Fraction(0)
    """Number that is added to an amount before it is multiplied by `worth`, e.g. 273.15 for degrees
    Celsius; 0 for most units."""


_TABLE = tomllib.loads((files("voiceloop.skills") / "units.toml").read_text(encoding="utf-8"))
UNITS = {
    name: Unit(measures, *(Fraction(number) for number in numbers.split()))
    for measures, units in _TABLE.items()
    for name, numbers in units.items()
}


class Converted(NamedTuple):
    """The amounts that were given, as pairs of number and unit, and their total: `number` of
    `unit`."""

    given: Sequence[tuple[Fraction, str]]
    number: Fraction
    unit: str


def converted(amounts: Sequence[Amount], targets: Sequence[str]) -> Converted | None:
    """Return the total of `amounts` in the first of `targets` that measures the same quantity and
    is not the unit of one of the amounts. Return None if no target does."""
    for target in targets:
        for units in product(*(one.units for one in amounts)):
            alike = all(UNITS[unit].measures == UNITS[target].measures for unit in units)
            if alike and target not in units:
                given = [(one.number, unit) for one, unit in zip(amounts, units, strict=True)]
                worth = ((n + UNITS[unit].zero) * UNITS[unit].worth for n, unit in given)
                total = sum(worth, Fraction(0))
                number = total / UNITS[target].worth - UNITS[target].zero
                return Converted(given, number, target)
    return None


@ANSWERS.register("convert")
def _convert(request: SkillRequest) -> Answer | None:
    values, phrases = request.values, request.phrases
    found = converted(values.get("amount") or [Amount(Fraction(1), values["v"])], values["u"])
    if found is None:
        return None

    def written(number: Fraction, unit: str, places: int) -> str:
        return f"{phrases.number(number, places)} {phrases.unit(unit, one=number == 1)}"

    one = len(found.given) == 1 and found.given[0][0] == 1
    given = [written(*amount, MOST_PLACES) for amount in found.given]
    facts = {"amount": phrases.listed(given), "is": phrases.says["is" if one else "are"]}
    return request.reply("converted", value=written(found.number, found.unit, FEW_PLACES), **facts)


# ---- sums


class NotASum(Exception):
    """The error for words that are not a sum, or for a sum that is not computed here, such as the
    root of a negative number."""


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum in words as answers say it, and its value. The value is None if something is divided by
    zero."""

    said: str
    value: Fraction | None


class _Token(NamedTuple):
    said: str
    sign: str = ""
    number: Fraction | None = None
    money: str = ""
    """Name of the number's currency; empty for a number without one."""


@ANSWERS.register("sum")
def _sum(request: SkillRequest) -> Answer:
    values, phrases = request.values, request.phrases
    if (found := values.get("sum")) is None:  # as in `two and two`
        plus = phrases.operators["+"].partition("|")[0]
        said = f"{phrases.number(values['a'])} {plus} {phrases.number(values['b'])}"
        found = Sum(said, values["a"] + values["b"])
    if found.value is None:
        return request.reply("by zero")
    return request.reply("sum", sum=found.said, value=_written(found.value, phrases))


def _written(value: Fraction, phrases: Phrases) -> str:
    """Return a number in digits, a huge one with a power of ten."""
    if abs(value) < HUGE:
        return phrases.number(value)
    power = len(str(abs(round(value)))) - 1
    mantissa = round(value / 10**power, FEW_PLACES)
    if abs(mantissa) >= 10:  # it was rounded up to ten
        power, mantissa = power + 1, mantissa / 10
    said = phrases.says["huge"].format(value=phrases.number(mantissa, FEW_PLACES), power=power)
    return said if mantissa * 10**power == value else f"{phrases.says['about']} {said}"


def reader(
    phrases: Phrases,
    compile: Callable[[str], Template],
    number: Callable[[Words], Fraction | None],
) -> Kind:
    """Return the kind of slot for sums in the language of `phrases`. `compile` compiles a template.
    `number` returns the number that words mean, or None."""
    lexer = _Lexer(phrases, number)
    others = {sign: compile(text) for sign, text in phrases.sums.items()}

    def put_otherwise(words: Words) -> list[_Token]:
        """Read a sum whose sign is not between its numbers: `add 3 and 4` -> 3 plus 4."""
        for sign, template in others.items():
            if (values := whole(template, words)) is not None:
                return [lexer.number(values["a"]), lexer.sign(sign), lexer.number(values["b"])]
        return []

    def read(words: Words) -> Sum | None:
        tokens = lexer.tokens(words) or put_otherwise(words)
        signs = [token.sign for token in tokens if token.sign]
        if not signs or (signs == [tokens[0].sign] and signs[0] in ("-", "neg")):
            return None  # a number alone, even a negative one, is no sum
        if len({token.money for token in tokens if token.money}) > 1:
            return None
        try:
            value = _total(tokens)
        except ZeroDivisionError:
            value = None
        except NotASum:
            return None
        return Sum(" ".join(token.said for token in tokens), value)

    return read


class _Lexer:
    """A lexer for the signs and numbers of a language."""

    def __init__(self, phrases: Phrases, number: Callable[[Words], Fraction | None]) -> None:
        self._phrases, self._number = phrases, number
        self._signs = {
            tuple(map(plain, name.split())): sign
            for sign, names in phrases.operators.items()
            for name in names.split("|")
        }
        self._parts = {
            tuple(map(plain, name.split("_"))): (below, name.replace("_", " "))
            for below, names in phrases.parts.items()
            for name in names.split()
        }
        self._of = phrases.of.split("|")
        self._longest = max(map(len, (*self._signs, *self._parts)))

    def number(self, value: object) -> _Token:
        """Return the token of a number."""
        assert isinstance(value, Fraction), "it is a number"
        return _Token(self._phrases.number(value), number=value)

    def sign(self, sign: str) -> _Token:
        """Return the token of a sign, worded as in answers."""
        return _Token(self._phrases.operators[sign].partition("|")[0], sign)

    def tokens(self, words: Words) -> list[_Token]:
        """Return the tokens of all words; an empty list if a word does not belong to a sum."""
        found, at = list[_Token](), 0
        while at < len(words):
            if (number := self._number(words[at : at + 1])) is not None:
                found.append(self.number(number))
                at += 1
                if at < len(words) and (money := words[at]) in self._phrases.money:
                    found[-1] = found[-1]._replace(said=f"{found[-1].said} {money}", money=money)
                    at += 1
                continue
            name = self._name(words[at : at + self._longest])
            end = at + len(name)
            if name in self._parts:
                if words[end : end + 1] not in [(of,) for of in self._of]:
                    return []
                found.append(self._part(name, found))
                found.append(_Token(self._of[0], "of"))
                end += 1
            elif name in self._signs:
                found.append(self.sign(self._signs[name]))
            elif words[at] in self._of and [token.sign for token in found[-2:]] == ["/", ""]:
                found.append(_Token(words[at], "of"))  # 3/4 of
                end = at + 1
            elif at + 1 < len(words) and words[at] in self._phrases.noise:
                end = at + 1
            else:
                return []
            at = end
        return found

    def _name(self, words: Words) -> Words:
        """Return the longest name of a sign or a part with which `words` begin; () for none."""
        names = (words[:length] for length in range(len(words), 0, -1))
        return next((name for name in names if name in self._parts or name in self._signs), ())

    def _part(self, name: Words, found: list[_Token]) -> _Token:
        """Return the token of a part, such as `half` or `3 quarters`. The number before the name is
        removed from `found`."""
        below, said = self._parts[name]
        if not found or found[-1].number is None:
            return _Token(self._phrases.part(below), number=Fraction(1, below))
        above = found.pop()
        return _Token(f"{above.said} {said}", number=Fraction(above.number or 1) / below)


def _total(tokens: Iterable[_Token]) -> Fraction:
    """Return the value of all tokens. Raises NotASum and ZeroDivisionError."""
    rest = deque(tokens)
    value = _expression(rest, 1)
    if rest:
        raise NotASum
    return value


def _expression(tokens: deque[_Token], least: int) -> Fraction:
    """Take tokens from the left, and return their value. Stop at a sign whose precedence is lower
    than `least`."""
    if not tokens:
        raise NotASum
    first = tokens.popleft()
    left = first.number
    if left is None:
        if first.sign not in _BEFORE:
            raise NotASum
        # A sign before a factor, such as a root, applies to the factor and its powers.
        left = _BEFORE[first.sign](_expression(tokens, _BINARY["^"][0]))
    while tokens:
        sign = tokens[0].sign
        if sign in _BEHIND:
            tokens.popleft()
            left = power(left, _BEHIND[sign])
            continue
        precedence, compute = _BINARY.get(sign, (0, operator.add))
        if precedence < least:
            break
        tokens.popleft()
        right = _expression(tokens, precedence + (sign != "^"))
        if tokens and tokens[0].sign == PERCENT:  # 50 + 10 % is 50 plus 10 % of 50
            tokens.popleft()
            right *= (left if sign in "+-" else 1) / Fraction(100)
        left = compute(left, right)
    return left


def power(base: Fraction, exponent: Fraction) -> Fraction:
    """Return `base` ** `exponent`. Raises NotASum if the result is too large, or if the exponent is
    neither a whole number nor 1/2."""
    if exponent == Fraction(1, 2):
        return root(base, 2)
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if exponent.denominator != 1 or abs(exponent) > MOST_BITS or abs(exponent) * bits > MOST_BITS:
        raise NotASum
    return base ** int(exponent)


def root(value: Fraction, degree: int) -> Fraction:
    """Return the root of `value` with degree 2 or 3: exact if the root is a fraction, else cut off
    after `ROOT_PLACES` decimals. Raises NotASum for a negative `value`."""
    if value < 0:
        raise NotASum
    above, below = _whole_root(value.numerator, degree), _whole_root(value.denominator, degree)
    if above**degree == value.numerator and below**degree == value.denominator:
        return Fraction(above, below)
    scale = 10 ** (ROOT_PLACES * degree)
    return Fraction(_whole_root(int(value * scale), degree), 10**ROOT_PLACES)


def _whole_root(value: int, degree: int) -> int:
    """Return the root of `value` without its decimals. A root of degree 3 is found by bisection."""
    if degree == 2:
        return isqrt(value)
    low, high = 0, 1 << (value.bit_length() // degree + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= value else (low, middle - 1)
    return low


_BINARY: Mapping[str, tuple[int, Callable[[Fraction, Fraction], Fraction]]] = {
    "+": (1, operator.add),
    "-": (1, operator.sub),
    "*": (2, operator.mul),
    "of": (2, operator.mul),
    "/": (2, lambda left, right: left / right),
    "%": (2, lambda left, right: left * right / 100),
    "%off": (2, lambda left, right: right - left * right / 100),
    "^": (3, power),
}
"""Signs between two numbers. Each has its precedence, because signs with a higher one are computed
first, and its function."""
_BEFORE: Mapping[str, Callable[[Fraction], Fraction]] = {
    "-": operator.neg,
    "neg": operator.neg,
    "sqrt": lambda value: root(value, 2),
    "cbrt": lambda value: root(value, 3),
    "sq": lambda value: power(value, Fraction(2)),
    "2*": lambda value: 2 * value,
    "3*": lambda value: 3 * value,
}
_BEHIND = {"^2": Fraction(2), "^3": Fraction(3)}
