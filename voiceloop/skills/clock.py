"""Answers about the time and the date."""

from __future__ import annotations

from calendar import isleap
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from math import ceil
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from voiceloop.errors import ConfigError
from voiceloop.settings.schema import suggestion
from voiceloop.skills.known import DAY, NOON, Answer, Day, SkillContext, SkillRequest, meant
from voiceloop.skills.phrases import Phrases


def zone(name: str) -> ZoneInfo | None:
    """Return the time zone called `name`; None if the name is empty. Raises ConfigError for an
    unknown name."""
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:
        hint = suggestion(name, available_timezones())
        raise ConfigError(f"there is no time zone called '{name}'", hint) from error


OLDEST = 125
"""Maximum age of a person, in years."""
ZERO = timedelta()
NAMED = {0: "today", 1: "tomorrow", -1: "yesterday"}


def _time(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    return Answer(phrases.says["time"].format(it_is=phrases.it_is(known.now)))


def _time_in(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    place, zone = request.values["city"]
    there = _there(known.now, zone)
    if there is None:
        return None
    key = "time in" if there.date() == known.now.date() else "time in on"
    said = {"place": place, "weekday": phrases.weekday(there.weekday())}
    said |= {"it_is": phrases.it_is(there), "time": phrases.time(there)}
    return Answer(phrases.says[key].format(**said))


def _there(now: datetime, zone: str) -> datetime | None:
    """Return the moment `now` in a time zone. Return None if this machine does not know the
    zone."""
    try:
        return now.astimezone(ZoneInfo(zone))
    except (KeyError, OSError, ValueError):
        return None


def _difference(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Answer how many hours a city is ahead of another, or of the user."""
    place, zone = request.values["b"]
    there, here = _there(known.now, zone), known.now
    if "a" in request.values:
        here = _there(known.now, request.values["a"][1])
    if here is None or there is None:
        return None
    ahead_s = round(((there.utcoffset() or ZERO) - (here.utcoffset() or ZERO)).total_seconds())
    key = "ahead" if ahead_s > 0 else "behind" if ahead_s < 0 else "same time"
    return Answer(phrases.says[key].format(place=place, span=phrases.span(abs(ahead_s))))


def _time_sum(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Answer what time it is a duration after a time of the day, or before it."""
    time, seconds = request.values["time"], request.values["duration"]
    if seconds % 60:
        return None
    later = timedelta(seconds=seconds if request.kind == "time_plus" else -seconds)
    then = time.on(known.now.date(), known.now) + later
    said = phrases.time(then, half=time.sure)
    return Answer(phrases.says["time sum"].format(time=said))


def _time_between(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Answer how long it is from one time of the day to another."""
    first, last = request.values["a"], request.values["b"]
    minutes = (last.minutes - first.minutes) % (DAY if first.sure and last.sure else NOON)
    return Answer(phrases.says["time between"].format(span=phrases.span(60 * minutes)))


def _time_then(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Answer what the time will be after a duration such as ten minutes, or what it was ten minutes
    ago."""
    seconds, later = request.values["duration"], request.kind == "time_later"
    then = known.now + timedelta(seconds=seconds if later else -seconds)
    key = "time later" if later else "time ago"
    if then.date() != known.now.date():
        key = f"{key} on"
    said = phrases.says[key].format(
        span=phrases.span(seconds), time=phrases.time(then), weekday=phrases.weekday(then.weekday())
    )
    return Answer(said[0].upper() + said[1:])


def _day(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    requested, today = request.values.get("day", Day(offset=0)), known.now.date()
    found = requested.date(today)
    if found is None:
        return None
    offset = (found - today).days
    named = (
        NAMED.get(requested.offset)
        if requested.offset is not None and not requested.months
        else None
    )
    key = named or ("today too" if offset == 0 else "day" if offset > 0 else "past day")
    year = named == "today" or found.year != today.year
    return Answer(phrases.says[key].format(date=phrases.date(found, year=year)))


def _beside(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Answer which weekday comes after a given weekday, or before it."""
    weekday, after = request.values["weekday"], request.kind == "day_after"
    other = phrases.weekday((weekday + (1 if after else -1)) % 7)
    key = "day after" if after else "day before"
    return Answer(phrases.says[key].format(weekday=phrases.weekday(weekday), other=other))


def _calendar(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Answer with the current month, year or week."""
    now = known.now
    facts = {"month": phrases.month(now.month), "year": now.year, "week": now.isocalendar().week}
    return Answer(phrases.says[request.kind].format(**facts))


def _days_until(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    today = known.now.date()
    day = request.values["day"].date(today)
    if day is None or day < today:
        return None
    date = phrases.date(day, year=day.year != today.year)
    if day == today:
        return Answer(phrases.says["today too"].format(date=date))
    count = _between(today, day, request.values.get("p", "day"), phrases)
    one = (day - today).days == 1
    key = "until one day" if one and "until one day" in phrases.says else "until day"
    return Answer(phrases.says[key].format(count=count, date=date))


def _days_since(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    today = known.now.date()
    day = request.values["day"].date(today, past=True)
    if day is None or day > today:
        return None
    if day == today:
        return Answer(phrases.says["today too"].format(date=phrases.date(day)))
    count = _between(day, today, request.values.get("p", "day"), phrases)
    return Answer(phrases.says["since day"].format(count=count))


def _between(first: date, last: date, period: str, phrases: Phrases) -> str:
    """Return the time from `first` to `last` in words: whole periods and the days that remain, e.g.
    `2 weeks and 3 days`. `period` is `day`, `week`, `month` or `year`."""
    days = (last - first).days
    whole, rest = 0, days
    if period == "week":
        whole, rest = divmod(days, 7)
    elif period in ("month", "year"):
        length = 1 if period == "month" else 12
        while (then := Day(offset=0, months=(whole + 1) * length).date(first)) and then <= last:
            whole, rest = whole + 1, (last - then).days
    parts = [(whole, period), (rest, "day")]
    return phrases.listed([phrases.count(count, unit) for count, unit in parts if count])


def _leap(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Answer whether a year is a leap year, or which year is the next leap year."""
    asked = "y" in request.values
    year = meant(request.values.get("y", 1), known.now.date())
    leap = next(one for one in range(year, year + 9) if isleap(one))
    key = "next leap" if not asked else "leap" if leap == year else "no leap"
    return Answer(phrases.says[key].format(year=year, leap=leap))


def _age(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Answer how old somebody is who was born in a year, or on a day of a year."""
    today, born = known.now.date(), request.values.get("day")
    if born is None:
        key, age = "age", today.year - meant(request.values["y"], today)
    elif born.year is not None and (day := born.date(today)) and day <= today:
        key, age = (
            "age now",
            today.year - day.year - ((today.month, today.day) < (day.month, day.day)),
        )
    else:
        return None
    return Answer(phrases.says[key].format(age=age)) if 0 <= age <= OLDEST else None


def _time_until(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    then, now = request.values["time"].next(known.now), known.now
    minutes = ceil((then.astimezone(UTC) - now.astimezone(UTC)).total_seconds() / 60)
    return Answer(phrases.says["until time"].format(span=phrases.span(60 * minutes)))


ANSWERS: Mapping[str, Any] = {
    "time": _time,
    "time_in": _time_in,
    "time_later": _time_then,
    "time_ago": _time_then,
    "time_plus": _time_sum,
    "time_minus": _time_sum,
    "time_between": _time_between,
    "time_difference": _difference,
    "leap": _leap,
    "age": _age,
    "day": _day,
    "day_after": _beside,
    "day_before": _beside,
    "month": _calendar,
    "year": _calendar,
    "week": _calendar,
    "days_until": _days_until,
    "days_since": _days_since,
    "time_until": _time_until,
}
