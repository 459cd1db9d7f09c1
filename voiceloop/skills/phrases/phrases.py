"""The phrases that a language needs for requests and answers.

`skills.template` explains how templates are written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction

from voiceloop.languages.numbers import Numbers
from voiceloop.skills.words import NumberWords

MOST_PLACES = 6
"""Maximum number of decimals in a number that is said exactly."""
FEW_PLACES = 3
"""Decimals of a rounded number. A number near zero gets more."""


@dataclass(frozen=True, eq=False)
class Phrases(ABC):
    """The phrases of one language. Languages differ in exactly these fields.

    Subclasses define how times, days and numbers are put into words.
    """

    code: str
    words: NumberWords
    articles: frozenset[str]
    """Words that mean one before a counted noun."""
    fillers: frozenset[str]
    """Words that are ignored everywhere, except after a number."""
    times: Sequence[tuple[str, int, int]]
    """Templates of times of the day, with {h:hour}, {m:minute}, {t:written} and {p:half}. Each
    comes with the minutes to add to {h} or {t}, and with the factor of {m}: 1 for `past`, -1 for
    `to`, 0 without {m}."""
    halves: Mapping[str, str]
    """Templates of the halves of the day, `am` and `pm`."""
    weekdays: Sequence[str]
    """Names of the weekdays from Monday on. Other names of the same day follow after `|`."""
    months: Sequence[str]
    days: Mapping[str, str]
    """Templates of days, by kinds such as `today`, `later` and `weekday`."""
    periods: Mapping[str, str]
    """Names of `day`, `week`, `month` and `year`, singular and plural."""
    feasts: Mapping[str, str]
    """Templates of feasts, by date such as `12-25`, or by the name of a `values.Feast`."""
    amounts: Sequence[tuple[str, str]]
    """Templates of amounts, with {n:number} and {u:unit}, and the number that is added to {n}, e.g.
    1/2 for `{n:number} and a half {u:unit}`."""
    halved: str
    """Pattern of a word that means a number and a half, such as `anderthalb`. It is `(?!)`, which
    matches nothing, if the language has none."""
    units: Mapping[str, str]
    """Names of each of `units.UNITS`: singular and plural, then other names after `|`."""
    operators: Mapping[str, str]
    """Words for each sign of a sum, separated by `|`. Answers use the first."""
    sums: Mapping[str, str]
    """Templates of sums whose sign is not between {a:number} and {b:number}, such as `add 3 and 4`,
    by sign."""
    parts: Mapping[int, str]
    """Names of 1/2, 1/3 and so on, singular and plural, by the number below the line of the
    fraction."""
    of: str
    """Words that may follow a part, such as `of` in `half of`; `|` separates them."""
    noise: frozenset[str]
    """Articles that may stand in a sum and mean nothing."""
    cities: Mapping[str, str]
    """Time zones of cities and countries, by names that the tz database does not have."""
    things: Mapping[str, str]
    """Names of a timer, an alarm and a reminder."""
    no_label: frozenset[str]
    """Words that are never the name of a timer."""
    years: Mapping[str, int]
    """Words for the next year (1), this year (0) and the last year (-1)."""
    money: frozenset[str]
    """Names of currencies, as `words.plain` writes them."""
    swaps: Mapping[str, str]
    """Words that change when the assistant repeats them: `my` becomes `your`."""
    says: Mapping[str, str]
    """Texts of answers, by name."""

    @property
    def numbers(self) -> Numbers:
        """How the language writes and says numbers."""
        return self.words.numbers

    # ---- how values are put into words

    def stem(self, ordinal: str) -> str:
        """Return `ordinal` in the form that `numbers.ordinal` gives. Languages with several forms
        of an ordinal override this."""
        return ordinal

    def number(self, value: Fraction, places: int = MOST_PLACES) -> str:
        """Write `value` exactly if it needs at most `places` decimals. Otherwise write it rounded,
        after the word for "about"."""
        exact, written = written_number(value, places)
        whole, _, rest = written.partition(".")
        sign, whole = ("-", whole[1:]) if whole.startswith("-") else ("", whole)
        groups = f"{int(whole):,}".replace(",", self.numbers.group)
        text = f"{groups}{self.numbers.decimal}{rest}" if rest else groups
        text = f"{self.says['minus']} {text}" if sign else text
        return text if exact else f"{self.says['about']} {text}"

    @abstractmethod
    def time(self, moment: datetime, *, half: bool = True) -> str:
        """Return the time of the day in words, without the half of the day if `half` is false."""

    def it_is(self, moment: datetime) -> str:
        """Return a sentence that tells the time, without its final mark."""
        return f"{self.says['it is']} {self.time(moment)}"

    @abstractmethod
    def date(self, day: date, *, year: bool = False) -> str:
        """Return a day in words, with its weekday; with its year too if `year` is true."""

    def weekday(self, day: int) -> str:
        """Return the name of a weekday; Monday is 0."""
        return self.weekdays[day].partition("|")[0]

    def month(self, month: int) -> str:
        """Return the name of a month; January is 1."""
        return self.months[month - 1].partition("|")[0]

    def span(self, seconds: int) -> str:
        """Return a duration in words: hours, minutes and seconds."""
        whole = (
            ("hour", seconds // 3600),
            ("minute", seconds // 60 % 60),
            ("second", seconds % 60),
        )
        return self.listed(
            [self.count(n, unit) for unit, n in whole if n] or [self.count(0, "second")]
        )

    def count(self, number: int, unit: str) -> str:
        """Return a number with its unit or period."""
        return f"{self.number(Fraction(number))} {self.unit(unit, one=number == 1)}"

    def part(self, below: int) -> str:
        """Return the words for 1/`below`, such as `a third`."""
        return (
            self.says["half"] if below == 2 else f"{self.says['a']} {self.parts[below].split()[0]}"
        )

    def unit(self, unit: str, *, one: bool) -> str:
        """Return the name of a unit or period, in the singular if `one` is true."""
        forms = (self.units.get(unit) or self.periods[unit]).partition("|")[0].split()
        return (forms[0] if one else forms[-1]).replace("_", " ")

    def listed(self, parts: Sequence[str]) -> str:
        """Join parts as in `a, b and c`."""
        if len(parts) < 2:
            return "".join(parts)
        return f"{', '.join(parts[:-1])} {self.says['and']} {parts[-1]}"


def written_number(value: Fraction, places: int) -> tuple[bool, str]:
    """Return whether `value` needs at most `places` decimals, and `value` in digits with a decimal
    point. A value that needs more decimals is rounded."""
    exact = round(value, places) == value
    if not exact:
        places = FEW_PLACES
        while abs(value) < Fraction(1, 10 ** (places - 2)) and places < 12:
            places += 1
    digits = f"{abs(round(value * 10**places)):0{places + 1}}"
    written = f"{digits[:-places]}.{digits[-places:]}".rstrip("0").rstrip(".")
    return exact, f"-{written}" if value < 0 and written != "0" else written
