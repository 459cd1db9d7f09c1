"""The phrases and the templates of requests that a language needs for requests and answers.

They are tables of the language's pack. `skills.template` explains how templates are written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from functools import cache
from zoneinfo import available_timezones

import msgspec

from voiceloop.languages.language import language, table
from voiceloop.languages.numbers import Numbers
from voiceloop.skills.words import NumberWords

MOST_PLACES = 6
"""Maximum number of decimals in a number that is said exactly."""
FEW_PLACES = 3
"""Decimals of a rounded number. A number near zero gets more."""


@dataclass(frozen=True, eq=False)
class Phrases:
    """The phrases of one language. Languages differ in exactly these fields."""

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
    """Names of the weekdays from Monday on. Other names of the same day follow after `|`; the first
    of them means each such day, as `Mondays` does."""
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
    seams: str
    """Pattern of the places where a compound is taken apart, as in `egg|timer`. It is `(?!)` if the
    language needs none."""
    deeds: str
    """Pattern of infinitives, where nothing else tells them from other words; otherwise `(?!)`."""
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
    """Time zones of cities and countries, by names that neither the tz database nor English has."""
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
    stems: tuple[str, str]
    """Pattern of the endings of ordinals, and what replaces one in the form that `numbers.ordinal`
    gives. The pattern is `(?!)` if ordinals have one form only."""
    clock: Mapping[str, str]
    """Templates of times of the day in answers, with {hour}, {hour12}, {minute} and {part}: `time`,
    `on the hour`, both with ` at one` after them, and `half` for the part of the day. Only `time`
    is needed."""
    says: Mapping[str, str]
    """Texts of answers, by name."""
    day_parts: Mapping[int, str] = field(default_factory=dict[int, str])
    """Names of the parts of the day, by the hour at which each ends."""

    @property
    def numbers(self) -> Numbers:
        """How the language writes and says numbers."""
        return self.words.numbers

    # ---- how values are put into words

    def say(self, key: str, **facts: object) -> str:
        """Return the text `key` of an answer with `facts` filled in, and with a capital."""
        said = self.says[key].format(**facts)
        return said[:1].upper() + said[1:]

    def stem(self, ordinal: str) -> str:
        """Return `ordinal` in the form that `numbers.ordinal` gives: `dritten` -> dritte."""
        return re.sub(*self.stems, ordinal)

    def number(self, value: Fraction, places: int = MOST_PLACES) -> str:
        """Write `value` exactly if it needs at most `places` decimals. Otherwise write it rounded,
        after the word for "about". A value near zero is rounded to more than `FEW_PLACES`."""
        exact = round(value, places) == value
        if not exact:
            places = FEW_PLACES
            while abs(value) < Fraction(1, 10 ** (places - 2)) and places < 12:
                places += 1
        digits = f"{abs(round(value * 10**places)):0{places + 1}}"
        whole, rest = digits[:-places], digits[-places:].rstrip("0")
        text = f"{int(whole):,}".replace(",", self.numbers.group)
        text = f"{text}{self.numbers.decimal}{rest}" if rest else text
        text = f"{self.says['minus']} {text}" if value < 0 and text != "0" else text
        return text if exact else f"{self.says['about']} {text}"

    def time(self, moment: datetime, *, half: bool = True) -> str:
        """Return the time of the day in words, without the half of the day if `half` is false."""
        hour12 = moment.hour % 12 or 12
        full = self.clock["time"]
        said = full if moment.minute else self.clock.get("on the hour", full)
        if hour12 == 1:
            said = self.clock.get("time at one" if moment.minute else "on the hour at one", said)
        part = next((name for end, name in self.day_parts.items() if moment.hour < end), "")
        said += self.clock.get("half", "") if half else ""
        return said.format(hour=moment.hour, hour12=hour12, minute=moment.minute, part=part)

    def it_is(self, moment: datetime) -> str:
        """Return a sentence that tells the time, without its final mark."""
        one = self.says.get("it is one") if moment.hour % 12 == 1 else None
        return f"{one or self.says['it is']} {self.time(moment)}"

    def date(self, day: date, *, year: bool = False) -> str:
        """Return a day in words, with its weekday; with its year too if `year` is true."""
        names = {"weekday": self.weekday(day.weekday()), "month": self.month(day.month)}
        template = self.says["date and year" if year else "date"]
        return template.format(day=day.day, year=day.year, **names)

    def weekday(self, day: int) -> str:
        """Return the name of a weekday; Monday is 0."""
        return self.weekdays[day].partition("|")[0]

    def month(self, month: int) -> str:
        """Return the name of a month; January is 1."""
        return self.months[month - 1].partition("|")[0]

    def span(self, seconds: int) -> str:
        """Return a duration in words: hours, minutes and seconds."""
        numbers = (seconds // 3600, seconds // 60 % 60, seconds % 60)
        units = zip(numbers, ("hour", "minute", "second"), strict=True)
        parts = [self.count(number, unit) for number, unit in units if number]
        return self.listed(parts or [self.count(0, "second")])

    def count(self, number: int, unit: str) -> str:
        """Return a number with its unit or period."""
        return f"{self.number(Fraction(number))} {self.unit(unit, one=number == 1)}"

    def weekly(self, days: Sequence[int]) -> str:
        """Return the words for a repetition on the weekdays `days`."""
        named = self.says.get(f"every {''.join(map(str, days))}")
        return named or self.says["every"].format(days=self.listed([self.weekday(d) for d in days]))

    def interval(self, seconds: int) -> str:
        """Return the words for a repetition after each `seconds`."""
        unit = {60: "minute", 3600: "hour", 86_400: "day"}.get(seconds, "span")
        return self.says[f"every {unit}"].format(span=self.span(seconds))

    def part(self, below: int) -> str:
        """Return the words for 1/`below`, such as `a third`."""
        if below == 2:
            return self.says["half"]
        return f"{self.says['a']} {self.parts[below].split()[0]}"

    def unit(self, unit: str, *, one: bool) -> str:
        """Return the name of a unit or period, in the singular if `one` is true."""
        forms = (self.units.get(unit) or self.periods[unit]).partition("|")[0].split()
        return (forms[0] if one else forms[-1]).replace("_", " ")

    def listed(self, parts: Sequence[str]) -> str:
        """Join parts as in `a, b and c`."""
        if len(parts) < 2:
            return "".join(parts)
        return f"{', '.join(parts[:-1])} {self.says['and']} {parts[-1]}"


@dataclass(frozen=True, slots=True)
class Templates:
    """The templates of requests in one language."""

    leads: str
    """Template of words that people say before a request."""
    tails: str
    """Template of words that people say after a request."""
    more: frozenset[str]
    """Words that mark an amount that is added to another, such as `more`."""
    less: frozenset[str]
    """Words that mark an amount that is taken away from another, such as `earlier`."""
    names: tuple[str, ...]
    """Beginnings of words that name a timer, an alarm or a reminder."""
    doubts: frozenset[str]
    """Words beside a request by which it may be withdrawn, quoted or conditional."""
    hours: Mapping[str, str]
    """Templates of the parts of the day, by the hour that is meant if none is said."""
    repeats: Mapping[str, str]
    """Templates of repetitions, by their weekdays as digits (Monday is 0). `each` is for weekdays
    that are named in {w:weekday} and other slots."""
    named: Mapping[str, str]
    """Templates by name, which other templates call."""
    rules: Mapping[str, Sequence[str]]
    """Templates of each kind of request. Those of earlier kinds are tried first."""
    guards: Mapping[str, Sequence[str]]
    """Templates of words that are about timers although no rule understands them. They are tried
    last, and kept from the language model, which would claim to have done something."""
    tools: Mapping[str, str]
    """Beginnings of words in the text of a tool that may fulfil a wish, by the kind of the wish."""


@cache
def phrases_of(code: str) -> Phrases:
    """Return the phrases of an installed language."""
    found, spoken = table(code, "phrases"), language(code).spoken
    found["words"]["numbers"] = spoken and spoken.numbers
    return msgspec.convert(found, Phrases, str_keys=True)


@cache
def templates(code: str) -> Templates:
    """Return the templates of requests in an installed language."""
    found = table(code, "requests")
    words = {name: found[name].split() for name in ("more", "less", "names", "doubts")}
    return msgspec.convert({**found, **words}, Templates)


CONTINENTS = ("Africa", "America", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")


def cities(code: str) -> Mapping[str, str]:
    """Return the time zones of cities and countries by their names in English and in the language
    `code`, e.g. `Japan`: `Asia/Tokyo`. Those of zones that this machine does not know are left
    out."""
    zones = available_timezones()
    found = {
        zone.rpartition("/")[2].replace("_", " "): zone
        for zone in sorted(zones)
        if zone.partition("/")[0] in CONTINENTS
    }
    named = {**phrases_of("en").cities, **phrases_of(code).cities}
    return {**found, **{name: zone for name, zone in named.items() if zone in zones}}
