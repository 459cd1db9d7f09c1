"""Answers about the timers, alarms and reminders that run: what is left, what is changed, paused or
canceled, and what is set now if the words could not be understood."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from voiceloop.skills import timers
from voiceloop.skills.known import Answer, Clock, Pending, SkillContext, SkillRequest, Timer
from voiceloop.skills.phrases import Phrases
from voiceloop.skills.timers import beside, confirmed, current, rings, until

SNOOZE_S = 600
"""Seconds after which a timer rings again, if the user does not say when."""
FRESH = 2
"""Number of replies about other things after which words without the name of a timer, such as "make
it seven", are no longer about timers."""

NAMES = {"what", "length", "name", "matter", "at", "nth"}
"""Slots that say which timer is meant."""

Selected = Callable[[SkillRequest, SkillContext, Phrases, Timer], Answer | None]
"""A function that answers a request about one running timer."""


# ---- which timers are meant


def _meant(request: SkillRequest, known: SkillContext, phrases: Phrases) -> list[Timer]:
    """Return the running timers that fit the kind, duration, name, time and number in `request`, in
    the order in which they ring."""
    values, found = request.values, list(known.timers)
    if kind := values.get("what"):
        # If no timer runs, "timer" may mean an alarm or a reminder.
        found = [one for one in found if one.what == kind] or (found if kind == "timer" else [])
    if "length" in values:
        found = [one for one in found if one.seconds == values["length"]]
    if name := values.get("name"):
        found = [one for one in found if one.name.lower() == name.lower()]
    if matter := values.get("matter"):
        found = [one for one in found if _concerns(one, matter.lower().split())]
    if time := values.get("at"):
        found = [one for one in found if _is_at(one, time, known.now)]
    if nth := values.get("nth"):
        found = found[nth - 1 : nth]
    return found


def _concerns(timer: Timer, words: Sequence[str]) -> bool:
    """Return whether the name of a timer has each of some words, in whatever form: `Eiern` are
    `Eier`."""
    named = timer.name.lower().split()
    return all(
        any(word == one or _begins(word, one) or _begins(one, word) for one in named)
        for word in words
    )


def _begins(word: str, with_: str) -> bool:
    return len(with_) > 3 and word.startswith(with_)


def _is_at(timer: Timer, time: Clock, now: datetime) -> bool:
    return timer.due in (time.next(now), time.on(timer.due, now)) or (
        not time.sure and timer.due.hour % 12 * 60 + timer.due.minute == time.minutes % 720
    )


def _named(request: SkillRequest) -> bool:
    """Return whether the request says which timer it means, or names a kind."""
    return not request.values.keys().isdisjoint(NAMES)


def fresh(known: SkillContext) -> bool:
    """Return whether timers were talked about so lately that their names may be left out."""
    return known.since_timers in range(FRESH + 1)


def _to_one(answer: Selected) -> Callable[[SkillRequest, SkillContext, Phrases], Answer | None]:
    """Return a function that answers a request about one timer with `answer`.

    If the request does not say which timer, it is about the one that was talked about last. If
    several fit, the reply asks for one.
    """

    def answered(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
        if not _named(request):
            if not fresh(known):
                return None
            subject = current(known)
            found = [subject] if subject else list(known.timers)
            if not found:
                return None
        else:
            found = _meant(request, known, phrases)
            subject = current(known)
            found = [subject] if subject in found and "nth" not in request.values else found
            if not found and "matter" in request.values:
                return None  # what is over may be anything
        if len(found) == 1:
            return answer(request, known, phrases, found[0])
        return _choose(request, found, known, phrases)

    return answered


def _choose(
    request: SkillRequest, found: Sequence[Timer], known: SkillContext, phrases: Phrases
) -> Answer:
    """Ask which of the timers `found` is meant, or say that there is none."""
    if found:
        names = phrases.listed([which(one, phrases) for one in found])
        text = phrases.says["which"].format(list=names)
        said = {k: v for k, v in request.values.items() if k == "what" or k not in NAMES}
        return Answer(text, pending=Pending(request.kind, said), about=_numbers(found))
    return Answer(_nothing(request, known, phrases), about=())


def _nothing(request: SkillRequest, known: SkillContext, phrases: Phrases) -> str:
    """Say that no such timer runs, and what is set."""
    kind = request.values.get("what") or "timer"
    if not known.timers:
        return phrases.says[f"no {kind}"]
    return f"{phrases.says['no such timer']} {status(known.timers, known.now, phrases)}"


def _numbers(found: Sequence[Timer]) -> tuple[int, ...]:
    return tuple(one.number for one in found)


# ---- questions


def _remaining(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Say how long one timer, or each of several, still runs."""
    if not _named(request) and known.since_timers is None:
        return None
    found = _meant(request, known, phrases)
    if not found:
        return Answer(_nothing(request, known, phrases), about=())
    return Answer(status(found, known.now, phrases), about=_numbers(found))


def _remaining_follow(
    request: SkillRequest, known: SkillContext, phrases: Phrases
) -> Answer | None:
    """Answer a question that is about timers only soon after they were talked about."""
    return _remaining(request, known, phrases) if known.timers and fresh(known) else None


def _all_set(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Say everything that is set."""
    if not known.timers:
        return Answer(phrases.says["nothing set"], about=())
    return Answer(status(known.timers, known.now, phrases), about=_numbers(known.timers))


def _reminders(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Say what the user is going to be reminded of."""
    return _remaining(SkillRequest(request.kind, {"what": "reminder"}), known, phrases)


def status(found: Sequence[Timer], now: datetime, phrases: Phrases) -> str:
    """Return a sentence that says what is set: of each timer what is left."""
    if len(found) > 1:
        each = "; ".join(
            phrases.says["one of all" if one.paused_s is None else "one of all, paused"].format(
                which=which(one, phrases), span=_left(one, now, phrases)
            )
            for one in found
        )
        return phrases.says["all left"].format(count=len(found), list=each)
    (one,) = found
    key = "left of" if one.name or one.what != "timer" else "left"
    key = key if one.paused_s is None else "left, paused"
    said = phrases.says[key].format(span=_left(one, now, phrases), which=which(one, phrases))
    return said[0].upper() + said[1:]


def _left(timer: Timer, now: datetime, phrases: Phrases) -> str:
    """Return in words how long a timer still runs. From ten minutes on it is rounded to whole
    minutes."""
    seconds = timer.paused_s
    if seconds is None:
        seconds = max(0, round((timer.due - now).total_seconds()))
    unit = 60 if seconds >= 600 else 1
    return phrases.span(round(seconds / unit) * unit)


def which(timer: Timer, phrases: Phrases) -> str:
    """Return words that distinguish a timer from others: its name, its duration or the time when it
    is due."""
    key = "named timer" if timer.what == "timer" and timer.name else timer.what
    whole, time = phrases.span(timer.seconds), phrases.time(timer.due)
    said = phrases.says[key].format(name=timer.name, whole=whole, time=time)
    return f"{said} {phrases.weekly(timer.days)}" if timer.days else said


# ---- canceling


def _cancel(request: SkillRequest, known: SkillContext, phrases: Phrases, timer: Timer) -> Answer:
    return _canceled([timer], phrases)


def _cancel_all(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    found = _meant(request, known, phrases)
    return _canceled(found, phrases) if found else _choose(request, found, known, phrases)


def _undo(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Cancel the timer that the last request set. If it set none, nothing is canceled, and what is
    set is said."""
    found = [one for one in known.timers if one.number == known.just_set]
    if found:
        return _canceled(found, phrases)
    if known.timers:
        text = phrases.says["still set"].format(list=status(known.timers, known.now, phrases))
        return Answer(text, about=_numbers(known.timers))
    return Answer(phrases.says["nothing to undo"], aside=True)


def _canceled(found: Sequence[Timer], phrases: Phrases) -> Answer:
    text = phrases.says["all canceled"]
    if len(found) == 1:
        text = phrases.says["canceled"].format(which=which(found[0], phrases))
    return Answer(text, cancels=frozenset(_numbers(found)), about=())


# ---- changing


def _change(
    request: SkillRequest, known: SkillContext, phrases: Phrases, timer: Timer
) -> Answer | None:
    """Let a timer end after another duration, or let an alarm or a reminder ring at another time or
    on other days. Return None if the timer has nothing like that."""
    values = request.values
    if timer.every_s or (timer.days and "day" in values):
        return _unsure(request, known, phrases)
    seconds = values.get("duration")
    if seconds is None and timer.what == "timer" and "n" in values:
        seconds = 60 * values["n"]
    if seconds is None and timer.what != "alarm" and values.get("in_n"):
        # "in one", after a reminder in two hours
        seconds = values["in_n"] * (60 if timer.seconds % 3600 else 3600)
    if seconds is not None:
        changed = replace(timer, due=known.now + timedelta(seconds=seconds), seconds=seconds)
        if timer.what == "timer" and seconds > timers.LONGEST_S:
            return Answer(phrases.says["too long"], about=(timer.number,))
        return _changed(changed, known, phrases, in_span=True)
    if timer.what == "timer" or values.keys().isdisjoint({"time", "day", "days"}):
        return None
    at = beside(timer, values, known.now)
    if at is None:
        return None
    days = values.get("days", timer.days)
    return _changed(replace(timer, due=at, seconds=until(at, known.now), days=days), known, phrases)


def _add(
    request: SkillRequest, known: SkillContext, phrases: Phrases, timer: Timer
) -> Answer | None:
    """Let a timer end later or earlier."""
    values = request.values
    more = values.get("more", 0) + 60 * values.get("more_n", 0)
    more -= values.get("less", 0) + 60 * values.get("less_n", 0)
    left = timer.paused_s if timer.paused_s is not None else until(timer.due, known.now)
    if timer.every_s or left + more <= 0 or timer.seconds + more > timers.FURTHEST_S:
        return _unsure(request, known, phrases)
    changed = replace(
        timer,
        due=timer.due + timedelta(seconds=more),
        seconds=timer.seconds + more,
        paused_s=None if timer.paused_s is None else left + more,
    )
    changed = replace(changed, rings=_rings(changed, phrases))
    if timer.what != "timer":
        return _changed(changed, known, phrases)
    text = phrases.says["now left"].format(
        span=_left(changed, known.now, phrases), which=which(changed, phrases)
    )
    return Answer(text, sets=[changed], about=(timer.number,))


def _changed(
    timer: Timer, known: SkillContext, phrases: Phrases, *, in_span: bool = False
) -> Answer:
    """Replace the running timer that has the number of `timer`."""
    timer = replace(timer, paused_s=None, rings=_rings(timer, phrases))
    text = confirmed(timer, known, phrases, in_span=in_span)
    return Answer(text, sets=[timer], about=(timer.number,))


def _rings(timer: Timer, phrases: Phrases) -> str:
    if timer.what != "timer":
        return rings(timer, phrases)
    named = "named " if timer.name else ""
    span = phrases.span(timer.seconds)
    return phrases.says[f"{named}timer over"].format(span=span, name=timer.name)


def _pause(
    request: SkillRequest, known: SkillContext, phrases: Phrases, timer: Timer
) -> Answer | None:
    if timer.what != "timer" or timer.paused_s is not None:
        return _unsure(request, known, phrases)
    left = max(1, until(timer.due, known.now))
    paused = replace(timer, paused_s=left)
    text = phrases.says["paused"].format(
        which=which(timer, phrases), span=_left(paused, known.now, phrases)
    )
    return Answer(text, sets=[paused], about=(timer.number,))


def _resume(
    request: SkillRequest, known: SkillContext, phrases: Phrases, timer: Timer
) -> Answer | None:
    if timer.paused_s is None:  # "continue" alone may mean a story
        return None if request.kind == "timer_go_on" else _unsure(request, known, phrases)
    due = known.now + timedelta(seconds=timer.paused_s)
    runs = replace(timer, due=due, paused_s=None)
    text = phrases.says["resumed"].format(
        which=which(timer, phrases), span=_left(runs, known.now, phrases)
    )
    return Answer(text, sets=[runs], about=(timer.number,))


def _restart(
    request: SkillRequest, known: SkillContext, phrases: Phrases, timer: Timer
) -> Answer | None:
    if timer.what != "timer":
        return _unsure(request, known, phrases)
    due = known.now + timedelta(seconds=timer.seconds)
    return _changed(replace(timer, due=due), known, phrases)


def _rename(request: SkillRequest, known: SkillContext, phrases: Phrases, timer: Timer) -> Answer:
    named = replace(timer, name=request.values["label"])
    named = replace(named, rings=_rings(named, phrases))
    text = phrases.says["renamed"].format(which=which(named, phrases))
    return Answer(text, sets=[named], about=(timer.number,))


def _snooze(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    """Let what rang last ring once more."""
    rung = known.just_rung
    if rung is None:
        text = phrases.says["nothing rang"]
        if known.timers:
            text = f"{text} {status(known.timers, known.now, phrases)}"
        return Answer(text, about=())
    seconds = request.values.get("duration", SNOOZE_S)
    due = known.now + timedelta(seconds=seconds)
    again = replace(rung, number=0, due=due, seconds=seconds, days=(), every_s=0)
    text = phrases.says["snoozed"].format(span=phrases.span(seconds))
    return Answer(text, sets=[again], about=())


def _snooze_more(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Let what has just rung ring once more, if the user only says by how much later."""
    rung = known.just_rung
    meant = rung and known.subject == rung.number and fresh(known)
    return _snooze(request, known, phrases) if meant else None


# ---- what is said in reply to a question, and what is not understood


def _complete(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Complete the request for whose missing part the last reply asked. If it asked for none, and
    was about timers, change the timer."""
    pending = known.pending
    if pending is None:
        at_once = known.since_timers == 0 and request.kind != "choice"
        changed = SkillRequest("timer_change", request.values)
        return ANSWERS["timer_change"](changed, known, phrases) if at_once else None
    chooses = pending.kind not in timers.ANSWERS
    if chooses != (request.kind == "choice"):
        return None
    # An alarm "in ten minutes" is a timer.
    in_span = pending.kind in ("alarm", "wake") and "duration" in request.values
    kind = "timer" if in_span else pending.kind
    whole = SkillRequest(kind, {**pending.values, **request.values})
    if chooses:
        # "The second" of which kind may not be known.
        kinds = {one.what for one in known.timers}
        unknown = len(kinds) > 1 and "nth" in whole.values and "what" not in whole.values
        found = not unknown and _meant(whole, known, phrases)
        return ANSWERS[kind](whole, known, phrases) if found else None
    fits = {"duration", "duration_n"} if kind == "timer" else {"duration", "time"}
    lacks = request.values.keys().isdisjoint(fits)
    return None if lacks else timers.ANSWERS[kind](whole, known, phrases)


def _unsure(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    """Say that nothing was changed, what is set, and what can be said."""
    kind = request.values.get("what")
    if request.kind == "unsure_named" and not (known.timers and fresh(known)):
        return None
    if kind is None:
        if request.kind == "unsure_follow" and known.since_timers != 0:
            return None
        subject = current(known)
        kind = subject.what if subject else "timer"
    state = (
        status(known.timers, known.now, phrases) if known.timers else phrases.says["nothing set"]
    )
    hint = phrases.says[f"{kind} hint"]
    return Answer(
        phrases.says["unsure"].format(state=state, hint=hint), about=_numbers(known.timers)
    )


ANSWERS: Mapping[str, Any] = {
    "timer_left": _remaining,
    "timer_left_follow": _remaining_follow,
    "timers_left": _all_set,
    "reminders_left": _reminders,
    "timer_cancel": _to_one(_cancel),
    "timer_cancel_all": _cancel_all,
    "timer_change": _to_one(_change),
    "timer_add": _to_one(_add),
    "timer_pause": _to_one(_pause),
    **dict.fromkeys(("timer_resume", "timer_go_on"), _to_one(_resume)),
    "timer_restart": _to_one(_restart),
    "timer_rename": _to_one(_rename),
    "snooze": _snooze,
    "snooze_more": _snooze_more,
    "undo": _undo,
    "duration": _complete,
    "moment": _complete,
    "choice": _complete,
    "unsure": _unsure,
    "unsure_follow": _unsure,
    "unsure_named": _unsure,
}
