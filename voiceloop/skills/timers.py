"""Answers about timers, alarms and reminders. Other modules keep them and let them ring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

from voiceloop.skills.known import Answer, SkillContext, Timer, What
from voiceloop.skills.phrases.phrases import Phrases
from voiceloop.skills.values import Day, SkillRequest

LONGEST_S = 86_400
"""Maximum duration of a timer, in seconds."""
FURTHEST_S = 7 * 86_400
"""Maximum time from now until an alarm, or a reminder at a time of the day, in seconds."""
MOST = 20
"""Maximum number of timers, alarms and reminders at the same time."""


def _timer(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    if request.kind == "duration" and not known.asks_for_time:
        return None
    seconds, name = request.values["duration"], request.values.get("name", "")
    if seconds > LONGEST_S:
        return Answer(phrases.says["too long"])
    span = phrases.span(seconds)
    named = "named " if name else ""
    text = phrases.says[f"{named}timer set"].format(span=span, name=name)
    rings = phrases.says[f"{named}timer over"].format(span=span, name=name)
    return _set(known, phrases, text, "timer", seconds, name, rings)


def _ask_for_time(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    return Answer(phrases.says["timer for how long"], asks_for_time=True)


def _alarm(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    at = _moment(request, known.now)
    if at is None:
        return None
    text = _on(at, "alarm set", known.now, phrases)
    rings = phrases.says["alarm over"].format(it_is=phrases.it_is(at))
    return _set(known, phrases, text, "alarm", _until(at, known.now), "", rings)


def _reminder(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Set a reminder that is due after a duration, or at a time."""
    name = _swapped(request.values["name"], phrases)
    if "duration" in request.values:
        seconds = request.values["duration"]
        if seconds > FURTHEST_S:
            return None
        text = phrases.says["reminder set"].format(span=phrases.span(seconds), name=name)
    elif at := _moment(request, known.now):
        seconds, text = _until(at, known.now), _on(at, "reminder set at", known.now, phrases)
    else:
        return None
    rings = phrases.says["reminder over"].format(name=name)
    return _set(known, phrases, text, "reminder", seconds, name, rings)


def _moment(request: SkillRequest, now: datetime) -> datetime | None:
    """Return the moment when an alarm or reminder is due. Return None if it is past or more than
    `FURTHEST_S` ahead, or if the day does not exist."""
    time, day = request.values["time"], request.values.get("day")
    if half := request.values.get("q"):
        time = time.of(half)
    if day is None or day == Day(offset=0):
        at = time.next(now, wakes=request.kind == "wake")
    else:
        date = day.date(now.date())
        at = date and time.on(date, now)
    ahead = timedelta(seconds=FURTHEST_S)
    return at if at and now < at <= now + ahead else None


def _until(at: datetime, now: datetime) -> int:
    return ceil((at.astimezone(UTC) - now.astimezone(UTC)).total_seconds())


def _on(at: datetime, key: str, now: datetime, phrases: Phrases) -> str:
    """Return the words that confirm a time, with the day unless it is today."""
    days = (at.date() - now.date()).days
    key = key if days == 0 else f"{key} tomorrow" if days == 1 else f"{key} on"
    weekday = phrases.weekday(at.weekday())
    return phrases.says[key].format(time=phrases.time(at), weekday=weekday)


def _set(
    known: SkillContext,
    phrases: Phrases,
    text: str,
    what: What,
    seconds: int,
    name: str,
    rings: str,
) -> Answer:
    if len(known.timers) >= MOST:
        return Answer(phrases.says["too many"].format(count=MOST))
    return Answer(text, sets=timer(known, what, seconds, name, rings))


def timer(known: SkillContext, what: What, seconds: int, name: str, rings: str) -> Timer:
    """Return a timer, alarm or reminder that starts now and ends after `seconds`. `rings` is the
    text that is said then. The number is 0 until the timer is started."""
    return Timer(0, what, known.now + timedelta(seconds=seconds), seconds, name, rings)


def _swapped(text: str, phrases: Phrases) -> str:
    """Return `text` as the assistant repeats it: `my mother` -> your mother."""
    return " ".join(phrases.swaps.get(word.lower(), word) for word in text.split())


# ---- running timers


def _remaining(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    found = _selected(request, known, phrases)
    if not found:
        key = "no such timer" if known.timers else "no timer"
        return Answer(phrases.says[key])
    if len(found) > 1:
        each = [
            phrases.says["one of all"].format(
                which=which(one, phrases), span=_span(one, known, phrases)
            )
            for one in found
        ]
        return Answer(phrases.says["all left"].format(count=len(found), list="; ".join(each)))
    (one,) = found
    named = one.name or one.what != "timer"
    key = "left of" if named else "left"
    span = _span(one, known, phrases)
    said = phrases.says[key].format(span=span, which=which(one, phrases))
    return Answer(said[0].upper() + said[1:])


def _span(timer: Timer, known: SkillContext, phrases: Phrases) -> str:
    """Return in words how long a timer still runs. From ten minutes on it is rounded to whole
    minutes."""
    seconds = max(0, round((timer.due - known.now).total_seconds()))
    unit = 60 if seconds >= 600 else 1
    return phrases.span(round(seconds / unit) * unit)


def _cancel(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    found = _selected(request, known, phrases)
    if not found:
        key = "no such timer" if known.timers else "no timer"
        return Answer(phrases.says[key])
    if len(found) > 1:
        names = phrases.listed([which(one, phrases) for one in found])
        return Answer(phrases.says["which"].format(list=names))
    return _canceled(found, phrases)


def _cancel_all(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    found = _selected(request, known, phrases)
    return _canceled(found, phrases) if found else Answer(phrases.says["no timer"])


def _undo(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Cancel the timer that the last request set. If it set none, say nothing."""
    found = [one for one in known.timers if one.number == known.just_set]
    return _canceled(found, phrases) if found else Answer("", aside=True)


def _canceled(timers: Sequence[Timer], phrases: Phrases) -> Answer:
    text = phrases.says["all canceled"]
    if len(timers) == 1:
        text = phrases.says["canceled"].format(which=which(timers[0], phrases))
    return Answer(text, cancels=frozenset(one.number for one in timers))


def _selected(request: SkillRequest, known: SkillContext, phrases: Phrases) -> list[Timer]:
    """Return the running timers that fit the kind, duration, name and time in `request`."""
    values, found = request.values, list(known.timers)
    if kind := values.get("what"):
        # If no timer runs, "timer" may mean an alarm or a reminder.
        found = [one for one in found if one.what == kind] or (found if kind == "timer" else [])
    if "duration" in values:
        found = [one for one in found if one.seconds == values["duration"]]
    if name := values.get("name"):
        found = [one for one in found if one.name.lower() == name.lower()]
    if time := values.get("time"):
        found = [
            one for one in found if one.due in (time.next(known.now), time.on(one.due, known.now))
        ]
    return found


def which(timer: Timer, phrases: Phrases) -> str:
    """Return words that distinguish a timer from others: its name, its duration or the time when it
    is due."""
    key = "named timer" if timer.what == "timer" and timer.name else timer.what
    whole, time = phrases.span(timer.seconds), phrases.time(timer.due)
    return phrases.says[key].format(name=timer.name, whole=whole, time=time)


ANSWERS: Mapping[str, Any] = {
    "timer": _timer,
    "duration": _timer,
    "timer_asks": _ask_for_time,
    "alarm": _alarm,
    "wake": _alarm,
    "reminder": _reminder,
    "reminder_at": _reminder,
    "timer_left": _remaining,
    "timer_cancel": _cancel,
    "timer_cancel_all": _cancel_all,
    "undo": _undo,
}
