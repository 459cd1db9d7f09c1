"""What a language has to tell of requests and answers.

Templates are those of `skills.template`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction

from voiceloop.languages.numbers import Numbers
from voiceloop.skills.words import NumberWords

Templates = str | Sequence[str]
MOST_PLACES = 6
"""Decimals of a number that is said exactly."""
FEW_PLACES = 3
"""Of one that is not, unless it is small."""


@dataclass(frozen=True, eq=False)
class Phrases(ABC):
    """Subclasses say what differs in how times, days and numbers are put into words.

    Its fields are all in which languages differ.
    """

    code: str
    words: NumberWords
    articles: frozenset[str]
    """Words that stand for one before what is counted."""
    fillers: frozenset[str]
    """Words that say nothing wherever they stand, but behind a number."""
    leads: str
    """What people say before a request."""
    tails: str
    """And behind one."""
    named: Mapping[str, str]
    """Templates that others call by name, in an order in which none calls a later one."""
    rules: Mapping[str, Templates]
    """Of each kind of request."""
    times: Sequence[tuple[str, int, int]]
    """Times of the day, from {h:hour}, {m:minute}, {t:written} and {p:half}; minutes that are added
    to the hour, and how often {m} is."""
    halves: Mapping[str, str]
    """What tells the half of the day: `am` and `pm`."""
    weekdays: Sequence[str]
    """From Monday; other names follow behind `|`."""
    months: Sequence[str]
    days: Mapping[str, str]
    """Days by how they are reckoned, see `days.day`."""
    periods: Mapping[str, str]
    """`day`, `week`, `month` and `year`, one and several."""
    feasts: Mapping[str, str]
    """Names of days, by `month-day`, or the name of a `values.Feast`."""
    amounts: Sequence[tuple[str, str]]
    """How much of a unit: {n:number} and {u:unit}, and what is added to the number."""
    halved: str
    """Pattern of a word that is a number and a half."""
    units: Mapping[str, str]
    """Names of each of `units.UNITS`: one and many, and then others behind `|`."""
    operators: Mapping[str, str]
    """How each sign of `sums` is said; the first is what is said in answers."""
    sums: Mapping[str, str]
    """Sums of {a:number} and {b:number} that are put otherwise, by their sign."""
    parts: Mapping[int, str]
    """Names of a half, a third, …: the part, and several."""
    of: str
    """Behind such a part."""
    noise: frozenset[str]
    """Articles that may stand in a sum and say nothing."""
    cities: Mapping[str, str]
    """Time zones of cities and countries by names that are not in the tz database."""
    things: Mapping[str, str]
    """Names of a timer, an alarm and a reminder."""
    no_label: frozenset[str]
    """Words that are never the name of a timer."""
    swaps: Mapping[str, str]
    """What becomes of words when they are said back: my, your."""
    says: Mapping[str, str]
    """What is answered."""

    @property
    def numbers(self) -> Numbers:
        """How the language writes and says numbers."""
        return self.words.numbers

    # ---- how values are put into words

    def stem(self, ordinal: str) -> str:
        """An ordinal in the form in which `numbers` gives it."""
        return ordinal

    def number(self, value: Fraction, places: int = MOST_PLACES) -> str:
        """`value` as it is written: all of it where that is no more than so many places, else
        about."""
        exact, written = written_number(value, places)
        whole, _, rest = written.partition(".")
        sign, whole = ("-", whole[1:]) if whole.startswith("-") else ("", whole)
        groups = f"{int(whole):,}".replace(",", self.numbers.group)
        text = f"{groups}{self.numbers.decimal}{rest}" if rest else groups
        text = f"{self.says['minus']} {text}" if sign else text
        return text if exact else f"{self.says['about']} {text}"

    @abstractmethod
    def time(self, moment: datetime) -> str:
        """The time of the day."""

    def it_is(self, moment: datetime) -> str:
        """A sentence that tells the time, without its end."""
        return f"{self.says['it is']} {self.time(moment)}"

    @abstractmethod
    def date(self, day: date, *, year: bool = False) -> str:
        """A day, with its weekday."""

    def weekday(self, day: int) -> str:
        """Its name, from Monday, 0."""
        return self.weekdays[day].partition("|")[0]

    def month(self, month: int) -> str:
        """Its name, from January, 1."""
        return self.months[month - 1].partition("|")[0]

    def span(self, seconds: int) -> str:
        """So long."""
        whole = (
            ("hour", seconds // 3600),
            ("minute", seconds // 60 % 60),
            ("second", seconds % 60),
        )
        return self.listed(
            [self.count(n, unit) for unit, n in whole if n] or [self.count(0, "second")]
        )

    def count(self, number: int, unit: str) -> str:
        """So many of a unit or a period."""
        return f"{self.number(Fraction(number))} {self.unit(unit, one=number == 1)}"

    def part(self, below: int) -> str:
        """One part of so many."""
        return (
            self.says["half"] if below == 2 else f"{self.says['a']} {self.parts[below].split()[0]}"
        )

    def unit(self, unit: str, *, one: bool) -> str:
        """A unit's name, of one or several."""
        forms = (self.units.get(unit) or self.periods[unit]).partition("|")[0].split()
        return (forms[0] if one else forms[-1]).replace("_", " ")

    def listed(self, parts: Sequence[str]) -> str:
        """`a, b and c`."""
        if len(parts) < 2:
            return "".join(parts)
        return f"{', '.join(parts[:-1])} {self.says['and']} {parts[-1]}"


def written_number(value: Fraction, places: int) -> tuple[bool, str]:
    """Whether it is exact, and how it is written with a point."""
    exact = round(value, places) == value
    if not exact:
        places = FEW_PLACES
        while abs(value) < Fraction(1, 10 ** (places - 2)) and places < 12:
            places += 1
    digits = f"{abs(round(value * 10**places)):0{places + 1}}"
    written = f"{digits[:-places]}.{digits[-places:]}".rstrip("0").rstrip(".")
    return exact, f"-{written}" if value < 0 and written != "0" else written
