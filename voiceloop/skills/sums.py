"""Sums in words, computed as fractions: `half of 9 plus 3` is 7.5. Their grammar is:

sum     = product (+ product | - product)…
product = power (* power | / power | % power | of power)…
power   = factor (^ power | ^2 | ^3)…
factor  = number | - factor | root factor | twice factor
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import NamedTuple

from voiceloop.skills.phrases import Phrases
from voiceloop.skills.template import Kind, Template, whole
from voiceloop.skills.words import plain

MOST_BITS = 4096
"""Maximum number of bits in the numerator and in the denominator of a power."""
ROOT_PLACES = 30
"""Decimals of a root that is not exact."""
_BINARY = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2, "%off": 2, "of": 2, "^": 3}
"""Precedence of the signs between two numbers; signs with a higher one are computed first."""
_BEFORE = {"-", "neg", "sqrt", "cbrt", "sq", "2*", "3*"}
_BEHIND = {"^2": 2, "^3": 3}
PERCENT = "pct"


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


def reader(
    phrases: Phrases,
    compile: Callable[[str], Template],
    number: Callable[[tuple[str, ...]], Fraction | None],
) -> Kind:
    """Return the kind of slot for sums in the language of `phrases`. `compile` compiles a template.
    `number` returns the number that words mean, or None."""
    lexer = _Lexer(phrases, number)
    others = {sign: compile(text) for sign, text in phrases.sums.items()}

    def read(words: tuple[str, ...]) -> Sum | None:
        tokens = lexer.tokens(words) or _put_otherwise(words, others, lexer)
        signs = [token.sign for token in tokens if token.sign]
        if not signs or (signs == [tokens[0].sign] and signs[0] in ("-", "neg")):
            return None  # a number alone, even a negative one, is no sum
        if len({token.money for token in tokens if token.money}) > 1:
            return None
        try:
            value = _Parser(tokens).whole()
        except ZeroDivisionError:
            value = None
        except NotASum:
            return None
        return Sum(" ".join(token.said for token in tokens), value)

    return read


def _put_otherwise(
    words: tuple[str, ...], others: dict[str, Template], lexer: _Lexer
) -> list[_Token]:
    """Read a sum whose sign is not between its numbers: `add 3 and 4` -> 3 plus 4."""
    for sign, template in others.items():
        if (values := whole(template, words)) is not None:
            first, second = (lexer.number(values[name]) for name in "ab")
            return [first, lexer.sign(sign), second]
    return []


class _Lexer:
    """A lexer for the signs and numbers of a language."""

    def __init__(
        self, phrases: Phrases, number: Callable[[tuple[str, ...]], Fraction | None]
    ) -> None:
        self._phrases = phrases
        self._number = number
        self._signs = {
            tuple(plain(word) for word in name.split()): sign
            for sign, names in phrases.operators.items()
            for name in names.split("|")
        }
        self._parts = {
            tuple(plain(word) for word in name.replace("_", " ").split()): (
                number,
                name.replace("_", " "),
            )
            for number, names in phrases.parts.items()
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

    def tokens(self, words: tuple[str, ...]) -> list[_Token]:
        """Return the tokens of all words; an empty list if a word does not belong to a sum."""
        found, at = list[_Token](), 0
        while at < len(words):
            token, at = self._next(words, at, found)
            if token is None:
                return []
            if token.said:
                found.append(token)
        return found

    def _next(
        self, words: tuple[str, ...], at: int, found: list[_Token]
    ) -> tuple[_Token | None, int]:
        number = self._number(words[at : at + 1])
        if number is not None:
            token, money = self.number(number), "".join(words[at + 1 : at + 2])
            if money not in self._phrases.money:
                return token, at + 1
            return token._replace(said=f"{token.said} {money}", money=money), at + 2
        for length in range(min(self._longest, len(words) - at), 0, -1):
            key, end = words[at : at + length], at + length
            if key in self._parts:
                return self._part(key, end, words, found)
            if key in self._signs:
                return self.sign(self._signs[key]), end
        if words[at] in self._of and [token.sign for token in found[-2:]] == ["/", ""]:
            return _Token(words[at], "of"), at + 1  # 3/4 of
        follows = at + 1 < len(words) and words[at] in self._phrases.noise
        return (_Token(""), at + 1) if follows else (None, at)

    def _part(
        self, key: tuple[str, ...], end: int, words: tuple[str, ...], found: list[_Token]
    ) -> tuple[_Token | None, int]:
        """Read a part such as `3 quarters of` or `half of`, whose name `key` ends at index `end`.
        Append its value to `found`, in place of the number before the name, if there is one. Return
        the token of the sign `of`, and the next index. If no word for `of` follows, return None and
        `end`."""
        below, name = self._parts[key]
        if end >= len(words) or words[end] not in self._of:
            return None, end
        above = found.pop() if found and found[-1].number is not None else None
        number = (above.number if above and above.number else Fraction(1)) / below
        found.append(
            _Token(f"{above.said} {name}" if above else self._phrases.part(below), number=number)
        )
        return _Token(self._of[0], "of"), end + 1


class _Parser:
    """A parser that computes the value of tokens, from left to right."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def whole(self) -> Fraction:
        """Return the value of all tokens. Raises NotASum and ZeroDivisionError."""
        value = self._expression(1)
        if self._at < len(self._tokens):
            raise NotASum
        return value

    @property
    def _sign(self) -> str:
        return self._tokens[self._at].sign if self._at < len(self._tokens) else ""

    def _expression(self, least: int) -> Fraction:
        """Compute the value of the next tokens. Stop at a sign whose precedence is lower than
        `least`."""
        left = self._factor()
        while (sign := self._sign) and (_BINARY.get(sign, 0) >= least or sign in _BEHIND):
            self._at += 1
            if sign in _BEHIND:
                left = power(left, Fraction(_BEHIND[sign]))
                continue
            right = self._expression(_BINARY[sign] + (sign != "^"))
            if self._sign == PERCENT:  # 50 + 10 % is 50 plus 10 % of 50
                self._at += 1
                right *= (left if sign in "+-" else 1) / Fraction(100)
            left = _binary(sign, left, right)
        return left

    def _factor(self) -> Fraction:
        if self._at >= len(self._tokens):
            raise NotASum
        token = self._tokens[self._at]
        self._at += 1
        if token.number is not None:
            return token.number
        if token.sign not in _BEFORE:
            raise NotASum
        # A sign before a factor, such as a root, applies to the factor and its powers.
        return _before(token.sign, self._expression(_BINARY["^"]))


def _binary(sign: str, left: Fraction, right: Fraction) -> Fraction:
    match sign:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*" | "of":
            return left * right
        case "/":
            return left / right
        case "%":
            return left * right / 100
        case "%off":
            return right - left * right / 100
        case _:
            return power(left, right)


def _before(sign: str, value: Fraction) -> Fraction:
    match sign:
        case "-" | "neg":
            return -value
        case "sqrt":
            return root(value, 2)
        case "cbrt":
            return root(value, 3)
        case "sq":
            return power(value, Fraction(2))
        case _:
            return int(sign[0]) * value


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
