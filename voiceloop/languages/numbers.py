"""Puts numbers into words with num2words. Languages override methods of `Numbers` where they
differ.

The rules of each language decide what a number means (a year, a price, a phone number).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NamedTuple, cast

LONGEST = 15
"""Maximum number of digits in a number that is said as one number. A longer number is said digit by
digit."""

Gender = Literal["m", "f", "n"]

YEAR = re.compile(r"(?:1[1-9]|20)\d\d")
"""Pattern of a number without groups that is most likely a year."""

_SPACED = r"(?:\d{1,3}(?:[ \u202f]\d{3}){2,}|\d{1,3}\u202f\d{3}|\d{2,3} \d00|\d 000)"
"""Pattern of a number with spaces between its groups. A number with a single group after an
ordinary space must be round, because otherwise it may be two numbers."""

ISO = (
    r"(?<![^\W_])(?<![/.-])(\d{4})(?:-(?=\d\d-\d\d)|/(?=\d\d?/)|\.(?=\d\d\.))(\d\d?)[-/.](\d\d?)"
    r"(?:(?=T\d\d:)|(?![\w/-]|\.\d))"
)
"""Pattern of a date that begins with its year: `2024-03-05`, `2024/3/5`."""


ROMAN = r"(?!XL\b)(?=[IVXL]{2})(?:XL|L?X{0,3})(?:IX|IV|V?I{0,3})"
"""Pattern of a Roman number from II to LXXXIX. XL is a size."""


ROMAN_YEAR = r"(?=[IVXLCDM]{4})M{1,2}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})"
"""Pattern of a year in Roman numbers: `MMXXV`."""


def roman(number: str) -> str:
    """Convert a Roman number into digits: `XIV` -> `14`."""
    values = [(1, 5, 10, 50, 100, 500, 1000)["IVXLCDM".index(letter)] for letter in number]
    return str(sum(-n if n < max(values[at:]) else n for at, n in enumerate(values)))


class Noun(NamedTuple):
    """A noun that can be counted."""

    one: str
    many: str
    gender: Gender = "n"
    """The gender, which in some languages decides how the number before the noun is said."""


class Numbers:
    """The way in which a language writes and says numbers. A subclass for each language sets the
    attributes, and overrides what differs."""

    code: ClassVar[str]
    """Code of the language in num2words."""
    group: ClassVar[str]
    """Mark between groups of three digits."""
    decimal: ClassVar[str]
    """Mark before the decimals."""
    marks: ClassVar[Mapping[str, str]]
    """Words for the marks within a number, e.g. `.`: point."""

    @property
    def number(self) -> str:
        """Pattern of a number without its sign. It has no capturing groups."""
        group, decimal = re.escape(self.group), re.escape(self.decimal)
        grouped = rf"[1-9]\d{{0,2}}(?:{group}\d{{3}})+(?!\d)(?:{decimal}\d+)?"
        foreign = rf"\d{{1,3}}(?:{decimal}\d{{3}})+(?:{group}\d{{1,2}})(?!\d)"
        foreign += rf"|\d{{1,3}}(?:{decimal}\d{{3}}){{2,}}(?![\d.,]*\d)"
        foreign += r"|[1-9]\d{0,2},000(?![\d.,]*\d)"
        indian = r"\d{1,2}(?:,\d\d){1,5},\d{3}(?!\d|,\d)(?:\.\d+)?"
        money = rf"\d{{1,3}} \d{{3}}(?={decimal}\d|\s?[€$£])"
        spaced = rf"(?:{_SPACED}|{money})(?![ \u202f]?\d)(?:{decimal}\d+)?"
        alone = rf"\d+(?:\.\d+){{2,}}|0,\d{{3}}(?!\d)|\d+(?:[{decimal}.]\d+)?"
        return rf"(?:{foreign}|{indian}|{grouped}|{spaced}|{alone})"

    @property
    def whole(self) -> str:
        """Pattern of a whole number without its sign. It has no capturing groups."""
        return rf"(?:\d{{1,3}}(?:{re.escape(self.group)}\d{{3}})+(?!\d)|\d+)"

    def cardinal(self, number: str) -> str:
        """Put a number into words: `12.5` -> twelve point five; `007` digit by digit.

        `number` is written with the marks of the language.
        """
        first, *rest = re.split(r"([.,])", self.ungrouped(number))
        said = [self.integer(first)]
        put = self.integer if len(rest) > 2 else self.fractional  # 1.10.0 is a version
        for mark, part in zip(rest[::2], rest[1::2], strict=True):
            said += [self.marks[mark], put(part)]
        return " ".join(said)

    def standing(self, number: str, before: str, after: str) -> str:
        """Put `number` into words. The texts `before` and `after` it may show what kind of number
        it is. This method does not use them: it says a number as a year if it is most likely
        one."""
        return self.year(number) if YEAR.fullmatch(number) else self.cardinal(number)

    def integer(self, number: str) -> str:
        """Put a whole number, given in digits alone, into words: `21` -> twenty-one."""
        if len(number) > LONGEST or (number.startswith("0") and len(number) > 1):
            return self.digits(number)
        return self.words(int(number))

    def fractional(self, number: str) -> str:
        """Put the digits after the point into words: `14` -> one four."""
        return self.digits(number)

    def digits(self, number: str) -> str:
        """Put each digit into a word: `042` -> zero four two."""
        return " ".join(self.words(int(digit)) for digit in number)

    def ordinal(self, number: str) -> str:
        """Put an ordinal into words: `21` -> twenty-first."""
        plain = self.ungrouped(number)
        return self.words(int(plain), "ordinal") if len(plain) <= LONGEST else self.digits(plain)

    def year(self, number: str) -> str:
        """Put a year into words: `1984` -> nineteen eighty-four."""
        return self.words(int(number), "year" if 1100 <= int(number) < 2100 else "cardinal")

    def count(self, number: str, counted: Noun) -> str:
        """Put a number and its noun into words: `2`, foot -> two feet."""
        words = self.agreeing(number, counted.gender)
        return f"{words} {counted.one if number == '1' else counted.many}"

    def agreeing(self, number: str, gender: Gender) -> str:
        """Put `number` into words in its form before a noun of `gender`."""
        return self.cardinal(number)

    def words(self, number: int, to: str = "cardinal") -> str:
        """Return `number` in the words of num2words, without commas. `to` is `cardinal`, `ordinal`
        or `year`."""
        import num2words  # pyright: ignore[reportMissingTypeStubs]  # imported when a number is said

        said = cast(Any, num2words).num2words(number, lang=self.code, to=to)
        return str(said).replace(",", "")

    def ungrouped(self, number: str) -> str:
        """Remove the marks between groups: `1,234.5` -> `1234.5`."""
        group, decimal = re.escape(self.group), re.escape(self.decimal)
        foreign = rf"(\d{{1,3}}(?:{decimal}\d{{3}})+){group}(\d{{1,2}})"
        if other := re.fullmatch(foreign, number):
            return other[1].replace(self.decimal, "") + self.decimal + other[2]
        if re.fullmatch(rf"\d{{1,3}}(?:{decimal}\d{{3}}){{2,}}|[1-9]\d{{0,2}},000", number):
            return re.sub(r"\D", "", number)
        if re.match(r"\d{1,2}(?:,\d\d){1,5},\d{3}", number):
            return number.replace(",", "")
        whole, mark, rest = number.partition(self.decimal)
        if re.fullmatch(rf"[1-9]\d{{0,2}}(?:{re.escape(self.group)}\d{{3}})+", whole):
            return whole.replace(self.group, "") + mark + rest
        if re.fullmatch(r"\d{1,3}(?:[ \u202f]\d{3})+", whole):
            return re.sub(r"\s", "", whole) + mark + rest
        return number
