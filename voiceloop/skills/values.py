"""The values of slots: times of the day, days, and amounts of units. They depend on no language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any, Literal

NOON = 12 * 60
DAY = 24 * 60
"""Minutes of a day."""
MORNING = range(4, 12)
"""Hours of the day, from 0 to 23, at which a wake-up call is meant if the user says neither am nor
pm."""


@dataclass(frozen=True, slots=True)
class SkillRequest:
    """A request: its kind, and the values of its slots."""

    kind: str
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Clock:
    """A time of the day, as it was said."""

    minutes: int
    """Minutes since midnight."""
    sure: bool
    """True if the half of the day is known. If not, the time twelve hours later may be meant as
    well."""

    def of(self, half: str) -> Clock:
        """Return this time in the given half of the day, `am` or `pm`. A sure time does not
        change."""
        return self if self.sure else Clock(self.minutes % NOON + NOON * (half == "pm"), sure=True)

    def next(self, now: datetime, *, wakes: bool = False) -> datetime:
        """Return the first moment after `now` at this time of the day. If the half of the day is
        unknown, return the earlier of the two possible moments. With `wakes`, a moment with an hour
        in `MORNING` is preferred."""
        moments = {self.minutes} if self.sure else {self.minutes, (self.minutes + NOON) % DAY}
        if wakes and not self.sure:
            moments = {one for one in moments if one // 60 in MORNING} or moments
        return min(_after(now, one) for one in moments)

    def on(self, day: date, now: datetime) -> datetime:
        """Return this time on the given day, in the time zone of `now`."""
        return now.replace(
            year=day.year, month=day.month, day=day.day, second=0, microsecond=0,
            hour=self.minutes // 60, minute=self.minutes % 60,
        )  # fmt: skip


def _after(now: datetime, minutes: int) -> datetime:
    moment = now.replace(hour=minutes // 60, minute=minutes % 60, second=0, microsecond=0)
    return moment if moment > now else moment + timedelta(days=1)


Feast = Literal["easter", "thanksgiving"]


@dataclass(frozen=True, slots=True)
class Day:
    """A day as it was said. Parts that were not said are None."""

    offset: int | None = None
    """Days from today; negative for days in the past."""
    months: int = 0
    """Months from today, in addition to the days of `offset`."""
    weekday: int | None = None
    """Weekday; Monday is 0."""
    step: int = 0
    """Which day with this `weekday` is meant: -1 is the last one before today, 0 the next one from
    today on, 1 the next one after today."""
    day: int | None = None
    month: int | None = None
    year: int | None = None
    """The year, or -1, 0 or 1 for the last, this and the next year."""
    feast: Feast | None = None
    """A feast whose date changes from year to year."""

    def date(self, today: date, *, past: bool = False) -> date | None:
        """Return the date; None for a day that does not exist, such as February 30.

        If the year was not said, return the next matching date, or with `past` the last matching
        date.
        """
        if self.offset is not None:
            return _moved(today, self.months, self.offset)
        if self.weekday is not None:
            return self._of_the_week(today, past)
        years = range(today.year - 1, today.year + 9)
        if self.year is not None:
            years = [meant(self.year, today)]
        months = [self.month] if self.month else range(1, 13)
        found = [self._in(year, month) for year in years for month in months]
        days = sorted({day for day in found if day is not None})
        if self.year is not None:
            return days[0] if days else None
        if past:
            return max((day for day in days if day <= today), default=None)
        return min((day for day in days if day >= today), default=None)

    def _of_the_week(self, today: date, past: bool) -> date:
        assert self.weekday is not None, "it is a weekday"
        ahead = (self.weekday - today.weekday()) % 7
        if self.step < 0 or past:
            return today - timedelta(days=(7 - ahead) % 7 or 7)
        return today + timedelta(days=ahead or 7 * self.step)

    def _in(self, year: int, month: int) -> date | None:
        if self.feast:
            return easter(year) if self.feast == "easter" else thanksgiving(year)
        try:
            return date(year, month, self.day or 1)
        except ValueError:
            return None


def meant(year: int, today: date) -> int:
    """Return the year that is meant if -1, 0 and 1 stand for the last, this and the next year."""
    return today.year + year if abs(year) <= 1 else year


def _moved(today: date, months: int, days: int) -> date | None:
    month = today.month - 1 + months
    year, month = today.year + month // 12, month % 12 + 1
    for day in (today.day, 30, 29, 28):  # a month may be shorter
        try:
            return date(year, month, day) + timedelta(days=days)
        except (ValueError, OverflowError):
            continue
    return None


def easter(year: int) -> date:
    """Return Easter Sunday (Gregorian; algorithm of Meeus, Jones and Butcher)."""
    a, (b, c) = year % 19, divmod(year, 100)
    h = (19 * a + b - b // 4 - (b - (b + 8) // 25 + 1) // 3 + 15) % 30
    k = (32 + 2 * (b % 4) + 2 * (c // 4) - h - c % 4) % 7
    month, day = divmod(h + k - 7 * ((a + 11 * h + 22 * k) // 451) + 114, 31)
    return date(year, month, day + 1)


def thanksgiving(year: int) -> date:
    """Return the fourth Thursday of November."""
    first = date(year, 11, 1)
    return first + timedelta(days=(3 - first.weekday()) % 7 + 21)


@dataclass(frozen=True, slots=True)
class Amount:
    """A number with its unit. `units` has several units if all of them have the name that was said,
    e.g. `ounce` and `fluid ounce`."""

    number: Fraction
    units: tuple[str, ...]
