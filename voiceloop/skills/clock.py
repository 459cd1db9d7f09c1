"""Answers about the time and the date."""

from __future__ import annotations

from calendar import isleap
from datetime import UTC, date, datetime, timedelta
from math import ceil
from zoneinfo import ZoneInfo, available_timezones

from voiceloop.errors import ConfigError
from voiceloop.settings.schema import suggestion
from voiceloop.skills.known import DAY, NOON, Answer, Answers, Day, SkillRequest, meant
from voiceloop.skills.phrases import Phrases

ANSWERS = Answers()
OLDEST = 125
"""Maximum age of a person, in years."""
NAMED = {0: "today", 1: "tomorrow", -1: "yesterday"}


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


@ANSWERS.register("time")
def _time(request: SkillRequest) -> Answer:
    return request.reply("time", it_is=request.phrases.it_is(request.known.now))


@ANSWERS.register("time_in")
def _time_in(request: SkillRequest) -> Answer:
    place, zone = request.values["city"]
    there, phrases = request.known.now.astimezone(ZoneInfo(zone)), request.phrases
    return request.reply(
        "time in" if there.date() == request.known.today else "time in on",
        place=place,
        weekday=phrases.weekday(there.weekday()),
        it_is=phrases.it_is(there),
        time=phrases.time(there),
    )


@ANSWERS.register("time_difference")
def _difference(request: SkillRequest) -> Answer:
    """Answer how many hours a city is ahead of another, or of the user."""
    (place, zone), here = request.values["b"], request.known.now
    there = here.astimezone(ZoneInfo(zone))
    if "a" in request.values:
        here = here.astimezone(ZoneInfo(request.values["a"][1]))
    # Without their zones, the two clocks show the difference.
    ahead_s = round((there.replace(tzinfo=None) - here.replace(tzinfo=None)).total_seconds())
    key = "ahead" if ahead_s > 0 else "behind" if ahead_s < 0 else "same time"
    return request.reply(key, place=place, span=request.phrases.span(abs(ahead_s)))


@ANSWERS.register("time_plus", "time_minus")
def _time_sum(request: SkillRequest) -> Answer | None:
    """Answer what time it is a duration after a time of the day, or before it."""
    time, seconds = request.values["time"], request.values["duration"]
    if seconds % 60:
        return None
    later = timedelta(seconds=seconds if request.kind == "time_plus" else -seconds)
    then = time.on(request.known.today, request.known.now) + later
    return request.reply("time sum", time=request.phrases.time(then, half=time.sure))


@ANSWERS.register("time_between")
def _time_between(request: SkillRequest) -> Answer:
    """Answer how long it is from one time of the day to another."""
    first, last = request.values["a"], request.values["b"]
    minutes = (last.minutes - first.minutes) % (DAY if first.sure and last.sure else NOON)
    return request.reply("time between", span=request.phrases.span(60 * minutes))


@ANSWERS.register("time_later", "time_ago")
def _time_then(request: SkillRequest) -> Answer:
    """Answer what the time will be after a duration such as ten minutes, or what it was ten minutes
    ago."""
    seconds, phrases, later = request.values["duration"], request.phrases, "time_later"
    then = request.known.now + timedelta(seconds=seconds if request.kind == later else -seconds)
    key = request.kind.replace("_", " ")
    return request.reply(
        key if then.date() == request.known.today else f"{key} on",
        span=phrases.span(seconds),
        time=phrases.time(then),
        weekday=phrases.weekday(then.weekday()),
    )


@ANSWERS.register("day")
def _day(request: SkillRequest) -> Answer | None:
    requested, today = request.values.get("day", Day(offset=0)), request.known.today
    found = requested.date(today)
    if found is None:
        return None
    named = None if requested.offset is None or requested.months else NAMED.get(requested.offset)
    key = named or ("today too" if found == today else "day" if found > today else "past day")
    year = named == "today" or found.year != today.year
    return request.reply(key, date=request.phrases.date(found, year=year))


@ANSWERS.register("day_after", "day_before")
def _beside(request: SkillRequest) -> Answer:
    """Answer which weekday comes after a given weekday, or before it."""
    weekday, phrases = request.values["weekday"], request.phrases
    other = phrases.weekday((weekday + (1 if request.kind == "day_after" else -1)) % 7)
    key = request.kind.replace("_", " ")
    return request.reply(key, weekday=phrases.weekday(weekday), other=other)


@ANSWERS.register("month", "year", "week")
def _calendar(request: SkillRequest) -> Answer:
    """Answer with the current month, year or week."""
    now, month = request.known.now, request.phrases.month(request.known.now.month)
    return request.reply(request.kind, month=month, year=now.year, week=now.isocalendar().week)


@ANSWERS.register("days_until", "days_since")
def _days(request: SkillRequest) -> Answer | None:
    """Answer how long it is until a day, or how long ago a day was."""
    today, phrases, past = request.known.today, request.phrases, request.kind == "days_since"
    day = request.values["day"].date(today, past=past)
    if day is None or (day > today if past else day < today):
        return None
    date = phrases.date(day, year=day.year != today.year)
    if day == today:
        return request.reply("today too", date=date)
    first, last = sorted((day, today))
    count = _between(first, last, request.values.get("p", "day"), phrases)
    one = (last - first).days == 1 and not past and "until one day" in phrases.says
    key = "since day" if past else "until one day" if one else "until day"
    return request.reply(key, count=count, date=date)


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


@ANSWERS.register("leap")
def _leap(request: SkillRequest) -> Answer:
    """Answer whether a year is a leap year, or which year is the next leap year."""
    year = meant(request.values.get("y", 1), request.known.today)
    leap = next(one for one in range(year, year + 9) if isleap(one))
    key = "next leap" if "y" not in request.values else "leap" if leap == year else "no leap"
    return request.reply(key, year=year, leap=leap)


@ANSWERS.register("age")
def _age(request: SkillRequest) -> Answer | None:
    """Answer how old somebody is who was born in a year, or on a day of a year."""
    today, born = request.known.today, request.values.get("day")
    if born is None:
        key, age = "age", today.year - meant(request.values["y"], today)
    elif born.year is not None and (day := born.date(today)) and day <= today:
        before = (today.month, today.day) < (day.month, day.day)
        key, age = "age now", today.year - day.year - before
    else:
        return None
    return request.reply(key, age=age) if 0 <= age <= OLDEST else None


@ANSWERS.register("time_until")
def _time_until(request: SkillRequest) -> Answer:
    now = request.known.now
    minutes = ceil(until(request.values["time"].next(now), now) / 60)
    return request.reply("until time", span=request.phrases.span(60 * minutes))


def until(at: datetime, now: datetime) -> int:
    """Return the seconds from `now` until `at`, rounded up."""
    return ceil((at.astimezone(UTC) - now.astimezone(UTC)).total_seconds())
