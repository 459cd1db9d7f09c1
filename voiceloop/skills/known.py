"""Types that all skills share: a request and the values of its slots, its context, and the answer.

Times of the day, days and amounts of units depend on no language.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from typing import Any, Literal, NamedTuple, TypeVar

from voiceloop.skills.phrases import Phrases

NOON = 12 * 60
DAY = 24 * 60
"""Minutes of a day."""
MORNING = range(4, 12)
"""Hours of the day, from 0 to 23, at which a wake-up call is meant if the user says neither am nor
pm."""
AWAKE = range(6, 24)
"""Hours of the day at which a reminder is meant if the user says neither am nor pm."""


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

    def within(self, hours: Container[int]) -> Clock:
        """Return this time in the half of the day whose hour is one of `hours`. A sure time, and
        one that fits in both halves or in none, does not change."""
        later = Clock((self.minutes + NOON) % DAY, sure=True)
        fits, fits_later = (one.minutes // 60 in hours for one in (self, later))
        if self.sure or fits == fits_later:
            return self
        return later if fits_later else Clock(self.minutes, sure=True)

    def next(self, now: datetime, hours: Container[int] = range(24)) -> datetime:
        """Return the first moment after `now` at this time of the day. If the half of the day is
        unknown, return the earlier of the two possible moments; one of the `hours` is
        preferred."""
        return min(self.within(hours)._moments(now, now))

    def near(self, at: datetime, now: datetime) -> datetime:
        """Return the moment at this time of the day that is nearest to `at`, and after `now`."""
        return min(self._moments(at, now), key=lambda one: abs(one - at))

    def _moments(self, day: date, now: datetime) -> list[datetime]:
        """Return the moments at this time on the days around `day` that are after `now`."""
        step = timedelta(hours=24 if self.sure else 12)
        moments = [self.on(day, now) + n * step for n in range(-2, 4)]
        return [one for one in moments if one > now]

    def on(self, day: date, now: datetime) -> datetime:
        """Return this time on the given day, in the time zone of `now`."""
        said = time(self.minutes // 60, self.minutes % 60, fold=now.fold)
        return datetime.combine(day, said, now.tzinfo)


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


What = Literal["timer", "alarm", "reminder"]
GAINS = (-18.0, 12.0)
"""Smallest and largest gain in decibels, relative to the configured voice."""
SPEEDS = (0.6, 1.8)
"""Smallest and largest speed, as a factor of the configured pace."""
STEPS = {
    "louder": (6.0, 1.0),
    "softer": (-6.0, 1.0),
    "slower": (0.0, 1 / 1.2),
    "faster": (0.0, 1.2),
}
"""Decibels that each change of the voice adds to the gain, and the factor of its speed."""


@dataclass(frozen=True, slots=True)
class Timer:
    """A running timer, alarm or reminder."""

    number: int
    """Number that identifies the timer; 0 until it is started."""
    what: What
    due: datetime
    seconds: int
    """Seconds from start to end."""
    name: str = ""
    """The timer's name, or the text of a reminder."""
    rings: str = ""
    """Text that is said when the timer is over."""
    days: tuple[int, ...] = ()
    """Weekdays on which it rings again at the same time; Monday is 0."""
    every_s: int = 0
    """Seconds after which it rings again; 0 if it does not."""
    paused_s: int | None = None
    """Seconds that are left of a paused timer; None while it runs."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A request about timers that lacks something, for which the last reply asked."""

    kind: str
    """Kind of the request, such as `timer`."""
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the request said already, such as the name of the timer or its new duration."""


class Effect(NamedTuple):
    """What an answer does, as a call with its result. The language model reads it in place of the
    spoken words, because a small model copies such words without doing anything."""

    name: str
    asked: str
    """The kind of the request."""
    result: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that the user asked to be remembered."""

    number: int
    """Number that identifies the fact; those of later facts are larger."""
    text: str
    """The user's words."""


@dataclass(frozen=True, slots=True)
class VoiceAdjustment:
    """Gain and speed of replies, relative to the configured voice."""

    gain_db: float = 0.0
    speed: float = 1.0

    @property
    def gain(self) -> float:
        """Return the factor by which the samples of a reply are multiplied."""
        return 10 ** (self.gain_db / 20)

    def changed(self, change: str) -> VoiceAdjustment:
        """Return the adjustment after `change`. `louder` and `softer` change the gain by one step,
        `slower` and `faster` the speed, within `GAINS` and `SPEEDS`. `normal` gives the configured
        voice."""
        if change == "normal":
            return VoiceAdjustment()
        gain_db, speed = STEPS[change]
        return VoiceAdjustment(
            min(max(self.gain_db + gain_db, GAINS[0]), GAINS[1]),
            min(max(self.speed * speed, SPEEDS[0]), SPEEDS[1]),
        )

    def at(self, percent: int) -> VoiceAdjustment:
        """Return the adjustment with the gain at `percent` of the way through `GAINS`."""
        return VoiceAdjustment(GAINS[0] + (GAINS[1] - GAINS[0]) * percent / 100, self.speed)


@dataclass(frozen=True, slots=True)
class SkillContext:
    """The state of the conversation when a request is made.

    Its fields are everything that skills need to know.
    """

    now: datetime
    """Current time, with its time zone."""
    timers: Sequence[Timer] = ()
    asked: Sequence[str] = ()
    """What the user said in earlier turns, oldest first. Requests about the conversation itself are
    left out."""
    heard: str = ""
    """The part of the last reply that the user heard, as text."""
    voice: VoiceAdjustment = VoiceAdjustment()
    paced: bool = True
    """True if the voice can speak faster and slower."""
    pending: Pending | None = None
    """The request for whose missing part the last reply asked; None if it asked for none."""
    just_set: int | None = None
    """Number of the timer that the last request set; None if it set none."""
    subject: int | None = None
    """Number of the timer that was talked about last; None before the first."""
    since_timers: int | None = None
    """Number of replies since the last one about timers; None before the first."""
    just_rung: Timer | None = None
    """The timer that rang last; None before the first."""
    facts: Sequence[Fact] = ()
    """What the user asked to be remembered, oldest first."""
    keeps: bool = False
    """True if facts outlast the conversation."""
    just_kept: int | None = None
    """Number of the fact that the last request added; None if it added none."""
    tools: Sequence[str] = ()
    """Tools of the user's own that the language model may call now, each as `name: description`.
    voiceloop's own tools are left out."""
    acts: bool = False
    """True if the language model may do what the user wishes, and says what it can do."""
    persona: bool = False
    """True if the language model says who it is: the user wrote the system prompt, or it acts."""
    seed: int = 0
    """Seed of whatever is left to chance, such as a coin. It differs between turns, but not between
    the attempts to answer one turn."""

    @property
    def today(self) -> date:
        """The current date of the user."""
        return self.now.date()


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request: a text to say, and effects such as a timer to start. The effects
    happen only once the user's words are final."""

    text: str
    """Text to say; empty says nothing."""
    sets: Sequence[Timer] = ()
    """Timers to start. Those with the number 0 are new and get theirs then; any other one replaces
    the running timer with its number."""
    cancels: frozenset[int] = frozenset()
    """Numbers of timers to cancel."""
    remembers: str = ""
    """A fact to remember; empty for none."""
    strikes: frozenset[int] = frozenset()
    """Numbers of facts to forget."""
    voice: VoiceAdjustment | None = None
    """How this reply and later ones sound; None changes nothing."""
    ends: bool = False
    """True if the conversation ends once this answer has been heard."""
    pending: Pending | None = None
    """The request for whose missing part the answer asks."""
    about: Sequence[int] | None = None
    """Numbers of the running timers that the answer is about; None if it is not about timers."""
    effect: Effect | None = None
    """What the answer does, for the language model; None if it only says something."""
    aside: bool = False
    """True if the request is about the conversation itself. Then it does not become part of
    `SkillContext.asked`."""


@dataclass(frozen=True, slots=True)
class SkillRequest:
    """A request with everything on which its answer depends."""

    kind: str
    values: Mapping[str, Any]
    """Values of its slots."""
    phrases: Phrases
    """Phrases of the language in which it was made."""
    known: SkillContext

    def reply(self, key: str, **facts: object) -> Answer:
        """Return an answer that only says the text `key` of the phrases."""
        return Answer(self.phrases.say(key, **facts))

    def aside(self, key: str, **facts: object) -> Answer:
        """Return an answer about the conversation itself that says the text `key`."""
        return Answer(self.phrases.say(key, **facts), aside=True)


AnswerTo = Callable[[SkillRequest], Answer | None]
"""A function that answers a request. It returns None if the language model has to answer."""
F = TypeVar("F", bound=AnswerTo)


class Answers(dict[str, AnswerTo]):
    """Functions that answer requests, by the kind of the request."""

    def register(self, *kinds: str) -> Callable[[F], F]:
        """Return a decorator for a function that answers requests of these kinds."""

        def add(answer: F) -> F:
            self.update(dict.fromkeys(kinds, answer))
            return answer

        return add
