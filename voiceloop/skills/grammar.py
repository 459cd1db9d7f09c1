"""The grammar of requests in one language: templates of requests, and functions that read the words
in the slots of a template."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from voiceloop.skills import sums
from voiceloop.skills.known import Amount, Clock, Day
from voiceloop.skills.measures import UNITS
from voiceloop.skills.phrases import Phrases, cities, templates
from voiceloop.skills.template import NOTHING, ByFirstWord, Kind, Template, compiled, whole
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


class Grammar:
    """The grammar of one language, compiled from its templates and phrases. `rules` has the
    templates of each kind of request. `leads` and `tails` match the words that people say before
    and after a request."""

    def __init__(self, phrases: Phrases) -> None:
        table(phrases.words)  # fill the cache now, because that takes a moment
        self.phrases, given = phrases, templates(phrases.code)
        self._given = given
        self._names = {unit: _forms(names) for unit, names in phrases.units.items()}
        self._kinds: dict[str, Kind] = {}
        self._named: dict[str, Template] = {}
        for made in (self._simple, self._composite, self._whole):
            self._kinds |= made()
        self._named = self._compiled(given.named)
        self.leads, self.tails = self._one(given.leads), self._one(given.tails)
        self.rules = self._several(given.rules)
        self.by_first = tuple(
            ByFirstWord([((kind, one), one) for kind, several in group.items() for one in several])
            for group in (self.rules, self._several(given.guards))
        )
        """The rules, and then the guards, which are tried last."""

    def _one(self, text: str) -> Template:
        return compiled(text, self._named, self._kinds)

    def _several(self, group: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[Template]]:
        return {kind: [self._one(text) for text in texts] for kind, texts in group.items()}

    def _compiled(self, texts: Mapping[str, str]) -> dict[str, Template]:
        """Compile `texts`, and return the templates by name. The templates that a template calls
        are compiled before it."""
        waiting, found = dict(texts), dict[str, Template]()
        while waiting:
            for name, text in list(waiting.items()):
                if set(re.findall(r"<([\w ]+)>", text)) <= found.keys():
                    found[name] = compiled(waiting.pop(name), found, self._kinds)
        return found

    # ---- kinds of slots

    def _simple(self) -> dict[str, Kind]:
        """Return the kinds of slots for numbers, single words and names."""
        phrases, numbers = self.phrases, self.phrases.numbers
        ordinals = {
            plain(numbers.ordinal(str(n))).replace(" ", "").replace("-", ""): n
            for n in range(1, 32)
        }
        units = _inverted(self._names)
        years = {
            tuple(plain(word) for word in name.split()): n for name, n in phrases.years.items()
        }

        def ordinal(words: tuple[str, ...]) -> int | None:
            digits = (
                re.fullmatch(r"(\d{1,2})(?:st|nd|rd|th)?", words[0]) if len(words) == 1 else None
            )
            found = int(digits[1]) if digits else ordinals.get(phrases.stem("".join(words)))
            if len(words) == 2 and words[0] in (
                "20",
                "30",
            ):  # "20 fourth": the first word is in digits already
                found = int(words[0]) + ordinals.get(words[1], 99)
            return found if found and found <= 31 else None

        return {
            "words": lambda words: True,
            "own": lambda words: words[0] in phrases.swaps,
            "deed": lambda words: re.fullmatch(phrases.deeds, words[0]),
            "label": self._is_label,
            "noun": lambda words: self._is_label(words) and not phrases.swaps.keys() & set(words),
            "number": self._number,
            "count": lambda words: _integer(self._number(words), 0, 10**6),
            "whole": lambda words: _integer(self._plain_number(words), 1, 10**6),
            "hour": lambda words: (
                _integer(self._number(words[:1]), 0, 24) if len(words) == 1 else None
            ),
            "minute": lambda words: _integer(self._plain_number(words), 0, 59),
            "minutes": lambda words: _integer(self._plain_number(words), 10, 59),
            "year": lambda words: (
                years[words] if words in years else _integer(self._plain_number(words), 1000, 9999)
            ),
            "written": _written,
            "dotted": _dotted,
            "nth": lambda words: None if (found := ordinal(words)) is None else Fraction(found),
            "ordinal": ordinal,
            "weekday": _lookup(_indexed(phrases.weekdays, 0)),
            "weekly": _lookup(_indexed([day.split("|")[1] for day in phrases.weekdays], 0)),
            "month": _lookup(_indexed(phrases.months, 1)),
            "period": _lookup(
                {form: one for one, names in phrases.periods.items() for form in _forms(names)}
            ),
            "thing": _lookup(_by_name(phrases.things)),
            "unit": _lookup(units),
            "money": lambda words: phrases.money.issuperset(words) or None,
            "city": _lookup(
                {
                    tuple(plain(word) for word in name.replace("-", " ").split()): (name, zone)
                    for name, zone in cities(phrases.code).items()
                }
            ),
        }

    def _composite(self) -> dict[str, Kind]:
        """Return the kinds of slots whose words are matched with templates: `half`, `feast`,
        `amount` and `sum`."""
        phrases = self.phrases
        halves = {half: self._one(text) for half, text in phrases.halves.items()}
        feasts = {day: self._one(text) for day, text in phrases.feasts.items()}
        return {
            "half": lambda words: _first(halves, words),
            "feast": lambda words: _first(feasts, words),
            "amount": _brief(self._amounts(), 6),
            "sum": _brief(sums.reader(phrases, self._one, self._plain_number), 0),
        }

    def _whole(self) -> dict[str, Kind]:
        """Return the kinds of slots that use other kinds: `duration`, `time` and `day`."""
        phrases, amount = self.phrases, self._kinds["amount"]
        times = [(self._one(text), base, sign) for text, base, sign in phrases.times]
        days = {how: self._one(text) for how, text in phrases.days.items()}

        def duration(words: tuple[str, ...]) -> int | None:
            found: Any = amount(words)
            if found is None or any(not _seconds(one) for one in found):
                return None
            seconds = int(sum(one.number * _seconds(one) for one in found))
            return seconds if 0 < seconds <= MOST_S else None

        def marked(marks: str) -> Kind:
            """Return the kind of slot for a duration with one of the words `marks` around it."""
            known = frozenset(map(plain, marks.split()))

            def read(words: tuple[str, ...]) -> int | None:
                rest = tuple(word for word in words if word not in known)
                return None if len(rest) == len(words) else duration(rest)

            return read

        given = self._given
        hours = {hour: self._one(text) for hour, text in given.hours.items()}
        repeats = {days: self._one(text) for days, text in given.repeats.items()}
        return {
            "duration": duration,
            "interval": lambda words: duration(words) or duration(("1", *words)),
            "extra": marked(given.more),
            "fewer": marked(given.less),
            "daypart": lambda words: (
                None if (hour := _first(hours, words)) is None else Clock(60 * int(hour), sure=True)
            ),
            "repeat": lambda words: _repeat(words, repeats),
            "time": _brief(lambda words: _time(words, times), 2),
            "day": _brief(lambda words: _day(words, days), 6),
        }

    def _plain_number(self, words: tuple[str, ...]) -> Fraction | None:
        return value(words[0], self.phrases.numbers) if len(words) == 1 else None

    def _number(self, words: tuple[str, ...]) -> Fraction | None:
        """Return the number that `words` mean, or None. An article alone means one; before a number
        of 100 or more it is ignored."""
        if len(words) == 1 and words[0] in self.phrases.articles:
            return Fraction(1)
        if len(words) == 1 and (half := re.fullmatch(self.phrases.halved, words[0])):
            whole = counted(spelled(half[1]), self.phrases.words) if half[1] else []
            number = value(whole[0].text, self.phrases.numbers) if whole else Fraction(1)
            return None if number is None else number + Fraction(1, 2)
        if len(words) == 2 and words[0] in self.phrases.articles:
            large = self._plain_number(words[1:])
            return large if large and large >= 100 else None
        return self._plain_number(words)

    def _is_label(self, words: tuple[str, ...]) -> bool:
        """Return whether `words` may be the name of a timer."""
        fit = (word.isalpha() and word not in self.phrases.no_label for word in words)
        return len(words) <= LONGEST_LABEL and all(fit)

    def _amounts(self) -> Kind:
        """Return the kind of slot for one or several amounts, as in `an hour and ten minutes`, or
        `5 foot 11`."""
        templates = [(self._one(text), Fraction(more)) for text, more in self.phrases.amounts]
        join = plain(self.phrases.says["and"])

        def amounts(words: tuple[str, ...]) -> tuple[Amount, ...] | None:
            found = next(_amounts_from(words, 0, templates, join), None)
            rest = self._plain_number(words[2:]) if len(words) == 3 else None
            if found is not None or rest is None:
                return found
            for one in next(_amounts_from(words[:2], 0, templates, join), ()):
                for smaller in (_SMALLER[unit] for unit in one.units if unit in _SMALLER):
                    return (one, Amount(rest, (smaller,)))
            return None

        return amounts


def _amounts_from(
    words: tuple[str, ...], at: int, templates: Sequence[tuple[Template, Fraction]], join: str
) -> Iterator[tuple[Amount, ...]]:
    """Yield each way to read the words from `at` to the end as amounts. The word `join` may stand
    between two amounts. `templates` are those of an amount, each with a number to add to it."""
    for template, more in templates:
        for end, values in template.ends(words, at, NOTHING):
            number: Any = values.get("n", Fraction(0))
            units: Any = values["u"]
            one = Amount(number + more, units)
            if end == len(words):
                yield (one,)
                continue
            follows = end + (words[end] == join)
            if follows < len(words):
                for rest in _amounts_from(words, follows, templates, join):
                    yield (one, *rest)


def _brief(kind: Kind, most: int) -> Kind:
    """Return `kind` for words with a number. Other words mean nothing if they are more than
    `most`."""
    return lambda words: (
        kind(words) if len(words) <= most or any(word[0].isdigit() for word in words) else None
    )


def _seconds(amount: Amount) -> int:
    return next((int(UNITS[unit].worth) for unit in amount.units if unit in DURATION), 0)


def _time(words: tuple[str, ...], times: Sequence[tuple[Template, int, int]]) -> Clock | None:
    for template, base, sign in times:
        values: Any = whole(template, words)
        if values is None:
            continue
        if not values.keys() & {"h", "t"}:
            return Clock(base, sure=True)
        half = values.get("p")
        minutes: int = values["t"] if "t" in values else 60 * values["h"]
        named = minutes // 60
        minutes += base + sign * values.get("m", 0)
        if half and not 1 <= named <= 12:
            half = None
        if half:
            minutes = minutes % (12 * 60) + (12 * 60 if half == "pm" else 0)
        sure = bool(half) or not 1 <= named <= 12
        return Clock(minutes % (24 * 60), sure)
    return None


def _day(words: tuple[str, ...], days: Mapping[str, Template]) -> Day | None:
    for how, template in days.items():
        values: Any = whole(template, words)
        if values is None:
            continue
        if how in _OFFSETS:
            return Day(offset=_OFFSETS[how])
        if how in ("later", "ago"):
            months, day = (
                n * values["n"] * (1 if how == "later" else -1) for n in _PERIODS[values["p"]]
            )
            return Day(offset=day, months=months)
        if how in ("weekday", "next", "last"):
            return Day(weekday=values["w"], step={"weekday": 0, "next": 1, "last": -1}[how])
        if how == "feast":
            return _feast(values["f"], values.get("y"))
        month, day = values["d"] if isinstance(values["d"], tuple) else (None, values["d"])
        return Day(day=day, month=month or values.get("m"), year=values.get("y"))
    return None


def _repeat(words: tuple[str, ...], repeats: Mapping[str, Template]) -> tuple[int, ...] | None:
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


def _forms(names: str) -> list[tuple[str, ...]]:
    """Return all names of a unit or a period, each as a tuple of words."""
    first, *others = names.split("|")
    own = [one.replace("_", " ").replace("-", " ") for one in first.split()]
    return [tuple(plain(word) for word in one.split()) for one in (*own, *others)]


def _inverted(
    names: Mapping[str, Sequence[tuple[str, ...]]],
) -> dict[tuple[str, ...], tuple[str, ...]]:
    found = dict[tuple[str, ...], tuple[str, ...]]()
    for unit, forms in names.items():
        for form in dict.fromkeys(forms):
            found[form] = (*found.get(form, ()), unit)
    return found


def _by_name(names: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    return {
        tuple(plain(word) for word in name.split()): what
        for what, several in names.items()
        for name in several.split("|")
    }


def _indexed(names: Sequence[str], first: int) -> dict[tuple[str, ...], int]:
    return {
        (plain(name),): index for index, one in enumerate(names, first) for name in one.split("|")
    }


def _lookup(table: Mapping[tuple[str, ...], object]) -> Kind:
    return table.get


def _first(templates: Mapping[str, Template], words: tuple[str, ...]) -> str | None:
    return next((name for name, one in templates.items() if whole(one, words) is not None), None)


def _integer(number: Fraction | None, least: int, most: int) -> int | None:
    if number is None or number.denominator != 1 or not least <= number <= most:
        return None
    return int(number)


def _written(words: tuple[str, ...]) -> int | None:
    """Convert a time such as `6:30` into minutes since midnight. Return None for other words."""
    found = re.fullmatch(r"([01]?\d|2[0-4])[:.]([0-5]\d)", words[0]) if len(words) == 1 else None
    return int(found[1]) * 60 + int(found[2]) if found else None


def _dotted(words: tuple[str, ...]) -> tuple[int, int] | None:
    """Convert a date such as `24.12` into its month and its day, here (12, 24). Return None for
    other words."""
    found = re.fullmatch(r"([0-3]?\d)\.([01]?\d)", words[0]) if len(words) == 1 else None
    return (int(found[2]), int(found[1])) if found else None
