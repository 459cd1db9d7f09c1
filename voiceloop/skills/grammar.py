"""The grammar of requests in one language: templates of requests, and functions that read the words
in the slots of a template."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from voiceloop.skills import sums
from voiceloop.skills.known import DAY, NOON, Amount, Clock, Day
from voiceloop.skills.phrases import Phrases, cities, templates
from voiceloop.skills.sums import UNITS
from voiceloop.skills.template import (
    NOTHING,
    Kind,
    Template,
    Words,
    by_first_word,
    compiled,
    whole,
)
from voiceloop.skills.words import counted, plain, spelled, table, value

LONGEST_LABEL = 2
"""Maximum number of words of a timer's name before the word `timer`, e.g. one in `pizza timer`."""
MOST_S = 3650 * 86_400
"""Maximum duration that is understood, in seconds."""
DURATION = ("second", "minute", "quarter hour", "three quarter hour", "hour", "day", "week")
"""Units that a duration may have."""
_OFFSETS = {"today": 0, "tomorrow": 1, "after tomorrow": 2, "yesterday": -1, "before yesterday": -2}
_SMALLER = {"foot": "inch", "stone": "pound"}
"""Unit of a number that follows an amount: 11 in `5 foot 11` is inches."""
_PERIODS = {"day": (0, 1), "week": (0, 7), "month": (1, 0), "year": (12, 0)}
"""Length of each period: a number of months, and a number of days."""
T = TypeVar("T")


class Grammar:
    """The grammar of one language, compiled from its templates and phrases. `rules` has the
    templates of each kind of request. `leads` and `tails` match the words that people say before
    and after a request."""

    def __init__(self, phrases: Phrases) -> None:
        table(phrases.words)  # fill the cache now, because that takes a moment
        self.phrases, self._given = phrases, templates(phrases.code)
        ordinals = ((n, plain(phrases.numbers.ordinal(str(n)))) for n in range(1, 32))
        self._ordinals = {re.sub("[ -]", "", name): n for n, name in ordinals}
        self._kinds: dict[str, Kind] = {}
        self._named: dict[str, Template] = {}
        for made in (self._simple, self._composite, self._whole):
            self._kinds |= made()
        self._call(self._given.named)
        self.leads, self.tails = self._one(self._given.leads), self._one(self._given.tails)
        self.rules = self._several(self._given.rules)
        self.by_first = [
            by_first_word([(kind, one) for kind, several in group.items() for one in several])
            for group in (self.rules, self._several(self._given.guards))
        ]
        """The rules, and then the guards, which are tried last."""

    def _one(self, text: str) -> Template:
        return compiled(text, self._named, self._kinds)

    def _each(self, texts: Mapping[T, str]) -> dict[T, Template]:
        return {name: self._one(text) for name, text in texts.items()}

    def _several(self, group: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[Template]]:
        return {kind: [self._one(text) for text in texts] for kind, texts in group.items()}

    def _call(self, texts: Mapping[str, str]) -> None:
        """Compile the templates that others call by name. Those that a template calls itself are
        compiled before it."""
        waiting = dict(texts)
        while waiting:
            for name, text in list(waiting.items()):
                if set(re.findall(r"<([\w ]+)>", text)) <= self._named.keys():
                    self._named[name] = self._one(waiting.pop(name))

    # ---- kinds of slots

    def _simple(self) -> dict[str, Kind]:
        """Return the kinds of slots for numbers, single words and names."""
        phrases = self.phrases
        units = dict[Words, tuple[str, ...]]()
        for unit, names in phrases.units.items():
            for form in dict.fromkeys(_forms(names)):
                units[form] = (*units.get(form, ()), unit)
        weekly = {day: names.split("|")[1:2] for day, names in enumerate(phrases.weekdays)}
        years = {_words(name): year for name, year in phrases.years.items()}
        own = phrases.swaps.keys()
        return {
            "words": lambda words: True,
            "own": lambda words: words[0] in own,
            "deed": lambda words: re.fullmatch(phrases.deeds, words[0]),
            "label": self._is_label,
            "noun": lambda words: self._is_label(words) and own.isdisjoint(words),
            "number": self._number,
            "count": lambda words: _integer(self._number(words), 0, 10**6),
            "whole": lambda words: _integer(self._plain_number(words), 1, 10**6),
            "hour": lambda words: _integer(self._number(words), 0, 24) if not words[1:] else None,
            "minute": lambda words: _integer(self._plain_number(words), 0, 59),
            "minutes": lambda words: _integer(self._plain_number(words), 10, 59),
            "year": lambda words: years.get(words, _integer(self._plain_number(words), 1000, 9999)),
            "written": _written,
            "dotted": _dotted,
            "nth": lambda words: None if (n := self._ordinal(words)) is None else Fraction(n),
            "ordinal": self._ordinal,
            "weekday": _named({n: day.split("|") for n, day in enumerate(phrases.weekdays)}),
            "weekly": _named(weekly),
            "month": _named({n: month.split("|") for n, month in enumerate(phrases.months, 1)}),
            "period": {
                form: period for period, names in phrases.periods.items() for form in _forms(names)
            }.get,
            "thing": _named({what: names.split("|") for what, names in phrases.things.items()}),
            "unit": units.get,
            "money": lambda words: phrases.money.issuperset(words) or None,
            "city": _named({city: [city[0]] for city in cities(phrases.code).items()}),
        }

    def _composite(self) -> dict[str, Kind]:
        """Return the kinds of slots whose words are matched with templates: `half`, `feast`,
        `amount` and `sum`."""
        halves, feasts = self._each(self.phrases.halves), self._each(self.phrases.feasts)
        return {
            "half": lambda words: _first(halves, words),
            "feast": lambda words: _first(feasts, words),
            "amount": _brief(self._amounts(), 6),
            "sum": _brief(sums.reader(self.phrases, self._one, self._plain_number), 0),
        }

    def _whole(self) -> dict[str, Kind]:
        """Return the kinds of slots that use other kinds: `duration`, `time` and `day`."""
        amount, given = self._kinds["amount"], self._given
        times = [(self._one(text), base, sign) for text, base, sign in self.phrases.times]
        days, hours = self._each(self.phrases.days), self._each(given.hours)
        repeats = self._each(given.repeats)

        def duration(words: Words) -> int | None:
            found: Any = amount(words)
            if found is None or any(not _seconds(one) for one in found):
                return None
            seconds = int(sum(one.number * _seconds(one) for one in found))
            return seconds if 0 < seconds <= MOST_S else None

        def marked(marks: Iterable[str]) -> Kind:
            """Return the kind of slot for a duration with one of the words `marks` around it."""
            known = frozenset(map(plain, marks))

            def read(words: Words) -> int | None:
                rest = tuple(word for word in words if word not in known)
                return None if len(rest) == len(words) else duration(rest)

            return read

        def daypart(words: Words) -> Clock | None:
            hour = _first(hours, words)
            return None if hour is None else Clock(60 * int(hour), sure=True)

        return {
            "duration": duration,
            "interval": lambda words: duration(words) or duration(("1", *words)),
            "extra": marked(given.more),
            "fewer": marked(given.less),
            "daypart": daypart,
            "repeat": lambda words: _repeat(words, repeats),
            "time": _brief(lambda words: _time(words, times), 2),
            "day": _brief(lambda words: _day(words, days), 6),
        }

    # ---- numbers, names and amounts

    def _plain_number(self, words: Words) -> Fraction | None:
        return value(words[0], self.phrases.numbers) if len(words) == 1 else None

    def _number(self, words: Words) -> Fraction | None:
        """Return the number that `words` mean, or None. An article alone means one; before a number
        of 100 or more it is ignored."""
        first, articles = words[0], self.phrases.articles
        if len(words) == 2 and first in articles:
            large = self._plain_number(words[1:])
            return large if large and large >= 100 else None
        if len(words) > 1:
            return None
        if first in articles:
            return Fraction(1)
        if half := re.fullmatch(self.phrases.halved, first):
            whole = counted(spelled(half[1] or "1"), self.phrases.words)
            number = value(whole[0].text, self.phrases.numbers)
            return None if number is None else number + Fraction(1, 2)
        return value(first, self.phrases.numbers)

    def _ordinal(self, words: Words) -> int | None:
        """Return the number that an ordinal up to the 31st means, such as `24th`."""
        if len(words) == 1 and (digits := re.fullmatch(r"(\d{1,2})(?:st|nd|rd|th)?", words[0])):
            found = int(digits[1])
        elif len(words) == 2 and words[0] in ("20", "30"):  # "20 fourth" for "twenty fourth"
            found = int(words[0]) + self._ordinals.get(words[1], 99)
        else:
            found = self._ordinals.get(self.phrases.stem("".join(words)), 99)
        return found if 0 < found <= 31 else None

    def _is_label(self, words: Words) -> bool:
        """Return whether `words` may be the name of a timer."""
        fit = (word.isalpha() and word not in self.phrases.no_label for word in words)
        return len(words) <= LONGEST_LABEL and all(fit)

    def _amounts(self) -> Kind:
        """Return the kind of slot for one or several amounts, as in `an hour and ten minutes`, or
        `5 foot 11`."""
        templates = [(self._one(text), Fraction(more)) for text, more in self.phrases.amounts]
        join = plain(self.phrases.says["and"])

        def split(words: Words, at: int) -> Iterator[tuple[Amount, ...]]:
            """Yield each way to read the words from `at` to the end as amounts. The word `join` may
            stand between two amounts."""
            for template, more in templates:
                for end, values in template.ends(words, at, NOTHING):
                    slots: Mapping[str, Any] = values
                    one = Amount(slots.get("n", Fraction(0)) + more, slots["u"])
                    if end == len(words):
                        yield (one,)
                        continue
                    follows = end + (words[end] == join)
                    if follows < len(words):
                        for rest in split(words, follows):
                            yield (one, *rest)

        def amounts(words: Words) -> tuple[Amount, ...] | None:
            found = next(split(words, 0), None)
            rest = self._plain_number(words[2:])
            if found is not None or rest is None:
                return found
            for one in next(split(words[:2], 0), ()):
                for smaller in (_SMALLER[unit] for unit in one.units if unit in _SMALLER):
                    return (one, Amount(rest, (smaller,)))
            return None

        return amounts


def _brief(kind: Kind, most: int) -> Kind:
    """Return `kind` for words with a number. Other words mean nothing if they are more than
    `most`."""
    return lambda words: (
        kind(words) if len(words) <= most or any(word[0].isdigit() for word in words) else None
    )


def _seconds(amount: Amount) -> int:
    return next((int(UNITS[unit].worth) for unit in amount.units if unit in DURATION), 0)


def _time(words: Words, times: Sequence[tuple[Template, int, int]]) -> Clock | None:
    for template, base, sign in times:
        values: Any = whole(template, words)
        if values is None:
            continue
        if not values.keys() & {"h", "t"}:
            return Clock(base, sure=True)
        said: int = values["t"] if "t" in values else 60 * values["h"]
        minutes = said + base + sign * values.get("m", 0)
        if not 1 <= said // 60 <= 12:
            return Clock(minutes % DAY, sure=True)
        if half := values.get("p"):
            return Clock(minutes % NOON + NOON * (half == "pm"), sure=True)
        return Clock(minutes % DAY, sure=False)
    return None


def _day(words: Words, days: Mapping[str, Template]) -> Day | None:
    for how, template in days.items():
        values: Any = whole(template, words)
        if values is None:
            continue
        match how:
            case "later" | "ago":
                count = values["n"] if how == "later" else -values["n"]
                months, offset = (count * n for n in _PERIODS[values["p"]])
                return Day(offset=offset, months=months)
            case "weekday" | "next" | "last":
                step = {"weekday": 0, "next": 1, "last": -1}[how]
                return Day(weekday=values["w"], step=step)
            case "feast":
                return _feast(values["f"], values.get("y"))
            case "date":
                month, day = values["d"] if isinstance(values["d"], tuple) else (None, values["d"])
                return Day(day=day, month=month or values.get("m"), year=values.get("y"))
            case _:
                return Day(offset=_OFFSETS[how])
    return None


def _repeat(words: Words, repeats: Mapping[str, Template]) -> tuple[int, ...] | None:
    """Return the weekdays of a repetition, such as `every Monday`; None for other words."""
    for days, template in repeats.items():
        values: Any = whole(template, words)
        if values is not None:
            return tuple(sorted(values.values() if days == "each" else map(int, days)))
    return None


def _feast(name: str, year: int | None) -> Day:
    month, fixed, day = name.partition("-")
    if fixed:
        return Day(day=int(day), month=int(month), year=year)
    return Day(feast="easter" if name == "easter" else "thanksgiving", year=year)


# ---- names


def _words(name: str) -> Words:
    return tuple(plain(word) for word in name.replace("-", " ").split())


def _forms(names: str) -> list[Words]:
    """Return all names of a unit or a period: singular and plural, then other names after `|`."""
    first, *others = names.split("|")
    return [_words(one.replace("_", " ")) for one in (*first.split(), *others)]


def _named(names: Mapping[T, Iterable[str]]) -> Kind:
    """Return the kind of slot for each key of `names`, which has several names."""
    return {_words(name): meant for meant, several in names.items() for name in several}.get


def _first(templates: Mapping[str, Template], words: Words) -> str | None:
    return next((name for name, one in templates.items() if whole(one, words) is not None), None)


def _integer(number: Fraction | None, least: int, most: int) -> int | None:
    if number is None or number.denominator != 1 or not least <= number <= most:
        return None
    return int(number)


def _written(words: Words) -> int | None:
    """Convert a time such as `6:30` into minutes since midnight. Return None for other words."""
    found = re.fullmatch(r"([01]?\d|2[0-4])[:.]([0-5]\d)", words[0]) if len(words) == 1 else None
    return int(found[1]) * 60 + int(found[2]) if found else None


def _dotted(words: Words) -> tuple[int, int] | None:
    """Convert a date such as `24.12` into its month and its day, here (12, 24). Return None for
    other words."""
    found = re.fullmatch(r"([0-3]?\d)\.([01]?\d)", words[0]) if len(words) == 1 else None
    return (int(found[2]), int(found[1])) if found else None
