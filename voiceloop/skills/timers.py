"""Answers that set timers, alarms and reminders."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from voiceloop.skills.clock import until
from voiceloop.skills.known import (
    AWAKE,
    MORNING,
    Answer,
    Answers,
    Clock,
    Day,
    Pending,
    SkillContext,
    SkillRequest,
    Timer,
    What,
)
from voiceloop.skills.phrases import Phrases

ANSWERS = Answers()
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


@ANSWERS.register("timer")
def _timer(request: SkillRequest) -> Answer:
    """Set one timer, or two."""
    values, now = request.values, request.known.now
    if "time" in values:
        spans = [until(values["time"].next(now), now)]
    else:
        # A number without a unit counts minutes.
        slots = {"duration": 1, "duration_n": 60, "second": 1, "second_n": 60}
        spans = [int(unit * values[slot]) for slot, unit in slots.items() if slot in values]
    if max(spans) > LONGEST_S:
        return Answer(request.phrases.say("too long"), about=())
    name = values.get("name", "")
    timers = [new_timer(now, span, name, request.phrases) for span in spans]
    return _set(request, timers)


def new_timer(now: datetime, seconds: int, name: str, phrases: Phrases) -> Timer:
    """Return a timer that starts at `now` and ends after `seconds`. Its number is 0 until it is
    started."""
    timer = Timer(0, "timer", now + timedelta(seconds=seconds), seconds, name)
    return replace(timer, rings=rings(timer, phrases))


@ANSWERS.register("timer_more")
def _another(request: SkillRequest) -> Answer | None:
    """Set another timer or alarm, right after a reply about one."""
    known, timed = request.known, "time" in request.values
    subject = current(known)
    if subject is None or known.since_timers:
        return None
    if subject.what == "timer" and not timed:
        return _timer(request)
    if subject.what == "alarm" and timed:
        return _set_at(request, "alarm", beside(subject, request.values, known.now))
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


@ANSWERS.register("timer_asks", "alarm_asks", "wake_asks", "reminder_asks")
def _ask(request: SkillRequest) -> Answer:
    """Ask for how long, or when."""
    kind = request.kind.removesuffix("_asks")
    text = request.phrases.say("timer for how long" if kind == "timer" else "when")
    return Answer(text, pending=Pending(kind, request.values), about=())


@ANSWERS.register("alarm", "wake")
def _alarm(request: SkillRequest) -> Answer | None:
    hours = MORNING if request.kind == "wake" else range(24)
    return _set_at(request, "alarm", moment(request.values, request.known.now, hours))


@ANSWERS.register("reminder", "reminder_at", "reminder_every")
def _reminder(request: SkillRequest) -> Answer | None:
    """Set a reminder that is due after a duration, at a time, or again and again."""
    values, now, phrases = request.values, request.known.now, request.phrases
    # The assistant repeats the words: `my mother` -> your mother.
    name = " ".join(phrases.swaps.get(word.lower(), word) for word in values["name"].split())
    every = values.get("every", 0)
    if seconds := values.get("duration", every):
        if seconds > FURTHEST_S or 0 < every < OFTEN_S:
            return None
        due = now + timedelta(seconds=seconds)
        timer = Timer(0, "reminder", due, seconds, name, every_s=every)
        timer = replace(timer, rings=rings(timer, phrases))
        return _set(request, [timer], in_span=True)
    if "time" not in values and values.get("day") == Day(offset=0):
        return None
    values = {"time": UNTIMED, **values, "name": name}
    return _set_at(replace(request, values=values), "reminder", moment(values, now, AWAKE))


def rings(timer: Timer, phrases: Phrases) -> str:
    """Return what is said when a timer, an alarm or a reminder is over."""
    key = "named timer over" if timer.what == "timer" and timer.name else f"{timer.what} over"
    it_is, span = phrases.it_is(timer.due), phrases.span(timer.seconds)
    return phrases.say(key, it_is=it_is, span=span, name=timer.name)


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


def _set_at(request: SkillRequest, what: What, at: datetime | None) -> Answer | None:
    """Set an alarm or a reminder that is due at the moment `at`."""
    if at is None:
        return None
    seconds, values = until(at, request.known.now), request.values
    timer = Timer(0, what, at, seconds, values.get("name", ""), days=values.get("days", ()))
    return _set(request, [replace(timer, rings=rings(timer, request.phrases))])


def _set(request: SkillRequest, timers: Sequence[Timer], *, in_span: bool = False) -> Answer:
    if len(request.known.timers) + len(timers) > MOST:
        return Answer(request.phrases.say("too many", count=MOST), about=())
    text = " ".join(confirmed(timer, request, in_span=in_span) for timer in timers)
    return Answer(text, sets=timers, about=())


def confirmed(timer: Timer, request: SkillRequest, *, in_span: bool = False) -> str:
    """Return the sentence that confirms what was set: with `in_span` by the time from now,
    otherwise an alarm or a reminder by its time of the day. It says so if the timer may be lost
    with the conversation before it rings."""
    phrases, known = request.phrases, request.known
    span, weekday = phrases.span(timer.seconds), phrases.weekday(timer.due.weekday())
    days = (timer.due.date() - known.today).days
    if timer.every_s:
        key, span = "reminder set every", phrases.interval(timer.every_s)
    elif timer.days:
        key = "alarm set every" if timer.what == "alarm" else "reminder set every day"
    elif timer.what == "timer":
        key = "named timer set" if timer.name else "timer set"
    elif timer.what == "reminder" and in_span:
        key = "reminder set"
    else:
        key = "alarm set" if timer.what == "alarm" else "reminder set at"
        key += "" if days == 0 else " tomorrow" if days == 1 else " on"
    repeated, time = phrases.weekly(timer.days) if timer.days else "", phrases.time(timer.due)
    text = phrases.say(key, span=span, name=timer.name, time=time, days=repeated, weekday=weekday)
    lost = not known.keeps and until(timer.due, known.now) >= CLOSES_S
    return f"{text} {phrases.says['keep open']}" if lost else text


def current(known: SkillContext) -> Timer | None:
    """Return the running timer that was talked about last, or the only one; None if there is
    none."""
    found = [one for one in known.timers if one.number == known.subject]
    return (found or [*known.timers])[0] if found or len(known.timers) == 1 else None
