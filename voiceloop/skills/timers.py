"""Answers that set timers, alarms and reminders. `running` has those about the ones that run; other
modules keep them and let them ring."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

from voiceloop.skills.known import (
    AWAKE,
    MORNING,
    Answer,
    Clock,
    Day,
    Pending,
    SkillContext,
    SkillRequest,
    Timer,
    What,
)
from voiceloop.skills.phrases import Phrases

LONGEST_S = 86_400
"""Maximum duration of a timer, in seconds."""
FURTHEST_S = 7 * 86_400
"""Maximum time from now until an alarm, or a reminder at a time of the day, in seconds."""
MOST = 20
"""Maximum number of timers, alarms and reminders at the same time."""
OFTEN_S = 60
"""Minimum number of seconds between two rings of a repeated reminder."""
UNTIMED = Clock(9 * 60, sure=True)
"""Time at which a reminder is due if only its day is said."""
CLOSES_S = 4 * 3600
"""From this number of seconds on, the user is reminded that only an open conversation rings."""


def _timer(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Set one timer, or two."""
    values, name = request.values, request.values.get("name", "")
    if "time" in values:
        spans = [until(values["time"].next(known.now), known.now)]
    else:
        spans = [_span(values, key) for key in ("duration", "second") if _has(values, key)]
    if max(spans) > LONGEST_S:
        return Answer(phrases.says["too long"], about=())
    return _set(known, phrases, [new_timer(known, phrases, span, name) for span in spans])


def _has(values: Mapping[str, Any], key: str) -> bool:
    return key in values or f"{key}_n" in values


def _span(values: Mapping[str, Any], key: str) -> int:
    """Return the seconds of a slot. A number without a unit, whose slot has `_n` at the end of its
    name, counts minutes."""
    return int(values[key] if key in values else 60 * values[f"{key}_n"])


def new_timer(known: SkillContext, phrases: Phrases, seconds: int, name: str) -> Timer:
    """Return a timer that starts now and ends after `seconds`. Its number is 0 until it is
    started."""
    span, named = phrases.span(seconds), "named " if name else ""
    rings = phrases.says[f"{named}timer over"].format(span=span, name=name)
    return Timer(0, "timer", known.now + timedelta(seconds=seconds), seconds, name, rings)


def _another(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Set another timer or alarm, right after a reply about one."""
    subject = current(known)
    if subject is None or known.since_timers:
        return None
    if subject.what == "timer" and "time" not in request.values:
        return _timer(request, known, phrases)
    if subject.what == "alarm" and "time" in request.values:
        at = beside(subject, request.values, known.now)
        return at and _set(known, phrases, [_at(known, phrases, "alarm", at, request.values)])
    return None


def beside(timer: Timer, values: Mapping[str, Any], now: datetime) -> datetime | None:
    """Return the moment that is meant after one has spoken of an alarm or a reminder: what was not
    said, the time, the day or the half of the day, is as in `timer`."""
    due = timer.due
    time: Clock = values.get("time") or Clock(due.hour * 60 + due.minute, sure=True)
    if values.keys().isdisjoint({"day", "days", "q"}):
        return time.near(due, now)
    half = "pm" if due.hour >= 12 else "am"
    return moment({"q": half, **values, "time": time}, now)


def _ask_how_long(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    pending = Pending("timer", request.values)
    return Answer(phrases.says["timer for how long"], pending=pending, about=())


def _ask_when(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    pending = Pending(request.kind.removesuffix("_asks"), request.values)
    return Answer(phrases.says["when"], pending=pending, about=())


def _alarm(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    hours = MORNING if request.kind == "wake" else range(24)
    at = moment(request.values, known.now, hours)
    return at and _set(known, phrases, [_at(known, phrases, "alarm", at, request.values)])


def _reminder(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Set a reminder that is due after a duration, at a time, or again and again."""
    name = _swapped(request.values["name"], phrases)
    values: dict[str, Any] = {**request.values, "name": name}
    every = values.get("every", 0)
    if seconds := values.get("duration", every):
        if seconds > FURTHEST_S or 0 < every < OFTEN_S:
            return None
        over = phrases.says["reminder over"].format(name=name)
        due = known.now + timedelta(seconds=seconds)
        timer = Timer(0, "reminder", due, seconds, name, over, every_s=every)
        return _set(known, phrases, [timer], in_span=True)
    if "time" not in values:
        if values.get("day") == Day(offset=0):
            return None
        values["time"] = UNTIMED
    at = moment(values, known.now, AWAKE)
    return at and _set(known, phrases, [_at(known, phrases, "reminder", at, values)])


def _at(
    known: SkillContext, phrases: Phrases, what: What, at: datetime, values: Mapping[str, Any]
) -> Timer:
    """Return an alarm or a reminder that is due at the moment `at`."""
    timer = Timer(0, what, at, until(at, known.now), values.get("name", ""))
    timer = replace(timer, days=values.get("days", ()))
    return replace(timer, rings=rings(timer, phrases))


def rings(timer: Timer, phrases: Phrases) -> str:
    """Return what is said when an alarm or a reminder is due."""
    key = f"{timer.what} over"
    return phrases.says[key].format(it_is=phrases.it_is(timer.due), name=timer.name)


def moment(
    values: Mapping[str, Any], now: datetime, hours: Container[int] = range(24)
) -> datetime | None:
    """Return the moment when an alarm or reminder is due. Return None if it is past or more than
    `FURTHEST_S` ahead, or if the day does not exist. If the half of the day is unknown, one of the
    `hours` is preferred."""
    time: Clock = values["time"]
    day, days = values.get("day"), values.get("days")
    if half := values.get("q"):
        time = time.of(half)
    if days:
        at = _first(days, time.next(now, MORNING))
    elif day is None or day == Day(offset=0):
        at = time.next(now, hours)
    else:
        date = day.date(now.date())
        at = date and time.within(hours).on(date, now)
    ahead = timedelta(seconds=FURTHEST_S)
    return at if at and now < at <= now + ahead else None


def _first(days: Sequence[int], at: datetime) -> datetime:
    """Return the first of the moments `at` and at the same time of later days that is on one of the
    weekdays `days`."""
    return next(one for n in range(8) if (one := at + timedelta(days=n)).weekday() in days)


def after_ring(timer: Timer) -> Timer | None:
    """Return `timer` as it goes on after it has rung; None if it rings only once."""
    if timer.every_s:
        return replace(timer, due=timer.due + timedelta(seconds=timer.every_s))
    if timer.days:
        return replace(timer, due=_first(timer.days, timer.due + timedelta(days=1)))
    return None


def until(at: datetime, now: datetime) -> int:
    """Return the seconds from `now` until `at`, rounded up."""
    return ceil((at.astimezone(UTC) - now.astimezone(UTC)).total_seconds())


def _set(
    known: SkillContext, phrases: Phrases, timers: Sequence[Timer], *, in_span: bool = False
) -> Answer:
    if len(known.timers) + len(timers) > MOST:
        return Answer(phrases.says["too many"].format(count=MOST), about=())
    text = " ".join(confirmed(timer, known, phrases, in_span=in_span) for timer in timers)
    return Answer(text, sets=timers, about=())


def confirmed(timer: Timer, known: SkillContext, phrases: Phrases, *, in_span: bool = False) -> str:
    """Return the sentence that confirms what was set: with `in_span` by the time from now,
    otherwise an alarm or a reminder by its time of the day. It says so if the timer may be lost
    with the conversation before it rings."""
    says, span, name = phrases.says, phrases.span(timer.seconds), timer.name
    if timer.every_s:
        text = says["reminder set every"].format(span=phrases.interval(timer.every_s), name=name)
    elif timer.days:
        days = phrases.weekly(timer.days)
        key = "alarm set every" if timer.what == "alarm" else "reminder set every day"
        text = says[key].format(time=phrases.time(timer.due), days=days, name=name)
    elif timer.what == "timer":
        key = "named timer set" if name else "timer set"
        text = says[key].format(span=span, name=name)
    elif timer.what == "reminder" and in_span:
        text = says["reminder set"].format(span=span, name=name)
    else:
        key = "alarm set" if timer.what == "alarm" else "reminder set at"
        text = _on(timer.due, key, known.now, phrases)
    lost = not known.keeps and until(timer.due, known.now) >= CLOSES_S
    return f"{text} {says['keep open']}" if lost else text


def _on(at: datetime, key: str, now: datetime, phrases: Phrases) -> str:
    """Return the words that confirm a time, with the day unless it is today."""
    days = (at.date() - now.date()).days
    key = key if days == 0 else f"{key} tomorrow" if days == 1 else f"{key} on"
    weekday = phrases.weekday(at.weekday())
    return phrases.says[key].format(time=phrases.time(at), weekday=weekday)


def _swapped(text: str, phrases: Phrases) -> str:
    """Return `text` as the assistant repeats it: `my mother` -> your mother."""
    return " ".join(phrases.swaps.get(word.lower(), word) for word in text.split())


def current(known: SkillContext) -> Timer | None:
    """Return the running timer that was talked about last, or the only one; None if there is
    none."""
    found = [one for one in known.timers if one.number == known.subject]
    return (found or [*known.timers])[0] if found or len(known.timers) == 1 else None


ANSWERS: Mapping[str, Any] = {
    "timer": _timer,
    "timer_more": _another,
    "timer_asks": _ask_how_long,
    "alarm": _alarm,
    "alarm_asks": _ask_when,
    "wake": _alarm,
    "wake_asks": _ask_when,
    "reminder": _reminder,
    "reminder_at": _reminder,
    "reminder_every": _reminder,
    "reminder_asks": _ask_when,
}
