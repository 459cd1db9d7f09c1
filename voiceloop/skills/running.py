"""Answers about the timers, alarms and reminders that run: what is left, what is changed, paused or
canceled, and what is set now if the words could not be understood."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from voiceloop.skills import timers
from voiceloop.skills.clock import until
from voiceloop.skills.known import (
    NOON,
    Answer,
    Answers,
    AnswerTo,
    Clock,
    Pending,
    SkillContext,
    SkillRequest,
    Timer,
)
from voiceloop.skills.phrases import Phrases
from voiceloop.skills.timers import beside, confirmed, current, rings

ANSWERS = Answers()
SNOOZE_S = 600
"""Seconds after which a timer rings again, if the user does not say when."""
FRESH = 2
"""Number of replies about other things after which words without the name of a timer, such as "make
it seven", are no longer about timers."""

NAMES = {"what", "length", "name", "matter", "at", "nth"}
"""Slots that say which timer is meant."""


# ---- which timers are meant


def _meant(request: SkillRequest) -> list[Timer]:
    """Return the running timers that fit the kind, duration, name, time and number in `request`, in
    the order in which they ring."""
    values, found = request.values, list(request.known.timers)
    if kind := values.get("what"):
        # If no timer runs, "timer" may mean an alarm or a reminder.
        found = [one for one in found if one.what == kind] or (found if kind == "timer" else [])
    if "length" in values:
        found = [one for one in found if one.seconds == values["length"]]
    if name := values.get("name"):
        found = [one for one in found if one.name.lower() == name.lower()]
    if matter := values.get("matter"):
        found = [one for one in found if _concerns(one, matter)]
    if time := values.get("at"):
        found = [one for one in found if _is_at(one, time, request.known.now)]
    if nth := values.get("nth"):
        found = found[nth - 1 : nth]
    return found


def _concerns(timer: Timer, matter: str) -> bool:
    """Return whether the name of a timer has each word of `matter`, in whatever form: `Eiern` are
    `Eier`."""
    named = timer.name.lower().split()
    pairs = [[sorted((word, one), key=len) for one in named] for word in matter.lower().split()]
    return all(
        any(long == short or (len(short) > 3 and long.startswith(short)) for short, long in one)
        for one in pairs
    )


def _is_at(timer: Timer, time: Clock, now: datetime) -> bool:
    return timer.due in (time.next(now), time.on(timer.due, now)) or (
        not time.sure and timer.due.hour % 12 * 60 + timer.due.minute == time.minutes % NOON
    )


def _named(request: SkillRequest) -> bool:
    """Return whether the request says which timer it means, or names a kind."""
    return not request.values.keys().isdisjoint(NAMES)


def fresh(known: SkillContext) -> bool:
    """Return whether timers were talked about so lately that their names may be left out."""
    return known.since_timers in range(FRESH + 1)


def _for_one(
    *kinds: str,
) -> Callable[[Callable[[SkillRequest, Timer], Answer | None]], AnswerTo]:
    """Register a function that answers requests of these kinds about one running timer.

    If the request does not say which timer, it is about the one that was talked about last. If
    several fit, the reply asks for one.
    """

    def add(answer: Callable[[SkillRequest, Timer], Answer | None]) -> AnswerTo:
        def answered(request: SkillRequest) -> Answer | None:
            subject, named = current(request.known), _named(request)
            found = _meant(request)
            if not named and (not fresh(request.known) or not found):
                return None
            if subject in found and "nth" not in request.values:
                found = [subject]
            if not found and "matter" in request.values:
                return None  # what is over may be anything
            return answer(request, found[0]) if len(found) == 1 else _choose(request, found)

        return ANSWERS.register(*kinds)(answered)

    return add


def _choose(request: SkillRequest, found: Sequence[Timer]) -> Answer:
    """Ask which of the timers `found` is meant, or say that there is none."""
    if not found:
        return Answer(_nothing(request), about=())
    names = request.phrases.listed([which(one, request.phrases) for one in found])
    text = request.phrases.say("which", list=names)
    said = {k: v for k, v in request.values.items() if k == "what" or k not in NAMES}
    return Answer(text, pending=Pending(request.kind, said), about=_numbers(found))


def _nothing(request: SkillRequest) -> str:
    """Say that no such timer runs, and what is set."""
    if not request.known.timers:
        return request.phrases.say(f"no {request.values.get('what') or 'timer'}")
    return f"{request.phrases.say('no such timer')} {_all(request)}"


def _numbers(found: Sequence[Timer]) -> tuple[int, ...]:
    return tuple(one.number for one in found)


# ---- questions


@ANSWERS.register("timer_left")
def _remaining(request: SkillRequest) -> Answer | None:
    """Say how long one timer, or each of several, still runs."""
    known = request.known
    if not _named(request) and known.since_timers is None:
        return None
    found = _meant(request)
    text = status(found, known.now, request.phrases) if found else _nothing(request)
    return Answer(text, about=_numbers(found))


@ANSWERS.register("timer_left_follow")
def _remaining_follow(request: SkillRequest) -> Answer | None:
    """Answer a question that is about timers only soon after they were talked about."""
    return _remaining(request) if request.known.timers and fresh(request.known) else None


@ANSWERS.register("timers_left")
def _all_set(request: SkillRequest) -> Answer:
    """Say everything that is set."""
    return Answer(_all(request), about=_numbers(request.known.timers))


@ANSWERS.register("reminders_left")
def _reminders(request: SkillRequest) -> Answer | None:
    """Say what the user is going to be reminded of."""
    return _remaining(replace(request, values={"what": "reminder"}))


def _all(request: SkillRequest) -> str:
    """Return a sentence that says everything that is set."""
    timers = request.known.timers
    if not timers:
        return request.phrases.say("nothing set")
    return status(timers, request.known.now, request.phrases)


def status(found: Sequence[Timer], now: datetime, phrases: Phrases) -> str:
    """Return a sentence that says what is set: of each timer what is left."""
    if len(found) == 1:
        (one,) = found
        key = "left of" if one.name or one.what != "timer" else "left"
        return phrases.say("left, paused" if one.paused_s else key, **_facts(one, now, phrases))
    each = (
        phrases.says["one of all, paused" if one.paused_s else "one of all"].format(
            **_facts(one, now, phrases)
        )
        for one in found
    )
    return phrases.say("all left", count=len(found), list="; ".join(each))


def _facts(timer: Timer, now: datetime, phrases: Phrases) -> dict[str, str]:
    """Return how a timer is called (`which`), and how long it still runs (`span`), in words. From
    ten minutes on the span is rounded to whole minutes."""
    seconds = timer.paused_s
    if seconds is None:
        seconds = max(0, round((timer.due - now).total_seconds()))
    unit = 60 if seconds >= 600 else 1
    return {"which": which(timer, phrases), "span": phrases.span(round(seconds / unit) * unit)}


def which(timer: Timer, phrases: Phrases) -> str:
    """Return words that distinguish a timer from others: its name, its duration or the time when it
    is due."""
    key = "named timer" if timer.what == "timer" and timer.name else timer.what
    whole, time = phrases.span(timer.seconds), phrases.time(timer.due)
    said = phrases.says[key].format(name=timer.name, whole=whole, time=time)
    return f"{said} {phrases.weekly(timer.days)}" if timer.days else said


# ---- canceling


@_for_one("timer_cancel")
def _cancel(request: SkillRequest, timer: Timer) -> Answer:
    return _canceled([timer], request.phrases)


@ANSWERS.register("timer_cancel_all")
def _cancel_all(request: SkillRequest) -> Answer:
    found = _meant(request)
    return _canceled(found, request.phrases) if found else _choose(request, found)


@ANSWERS.register("undo")
def _undo(request: SkillRequest) -> Answer:
    """Cancel the timer that the last request set. If it set none, nothing is canceled, and what is
    set is said."""
    known, phrases = request.known, request.phrases
    if found := [one for one in known.timers if one.number == known.just_set]:
        return _canceled(found, phrases)
    if known.timers:
        text = phrases.say("still set", list=_all(request))
        return Answer(text, about=_numbers(known.timers))
    return request.aside("nothing to undo")


def _canceled(found: Sequence[Timer], phrases: Phrases) -> Answer:
    key = "canceled" if len(found) == 1 else "all canceled"
    text = phrases.say(key, which=which(found[0], phrases))
    return Answer(text, cancels=frozenset(_numbers(found)), about=())


# ---- changing


@_for_one("timer_change")
def _change(request: SkillRequest, timer: Timer) -> Answer | None:
    """Let a timer end after another duration, or let an alarm or a reminder ring at another time or
    on other days. Return None if the timer has nothing like that."""
    values, now = request.values, request.known.now
    if timer.every_s or (timer.days and "day" in values):
        return _unsure(request)
    seconds = values.get("duration")
    if seconds is None and timer.what == "timer" and "n" in values:
        seconds = 60 * values["n"]
    if seconds is None and timer.what != "alarm" and values.get("in_n"):
        # "in one", after a reminder in two hours
        seconds = values["in_n"] * (60 if timer.seconds % 3600 else 3600)
    if seconds is not None:
        if timer.what == "timer" and seconds > timers.LONGEST_S:
            return Answer(request.phrases.say("too long"), about=(timer.number,))
        changed = replace(timer, due=now + timedelta(seconds=seconds), seconds=seconds)
        return _changed(changed, request, in_span=True)
    if timer.what == "timer" or values.keys().isdisjoint({"time", "day", "days"}):
        return None
    at = beside(timer, values, now)
    if at is None:
        return None
    days = values.get("days", timer.days)
    return _changed(replace(timer, due=at, seconds=until(at, now), days=days), request)


@_for_one("timer_add")
def _add(request: SkillRequest, timer: Timer) -> Answer | None:
    """Let a timer end later or earlier."""
    values, now = request.values, request.known.now
    more = values.get("more", 0) + 60 * values.get("more_n", 0)
    more -= values.get("less", 0) + 60 * values.get("less_n", 0)
    left = timer.paused_s if timer.paused_s is not None else until(timer.due, now)
    if timer.every_s or left + more <= 0 or timer.seconds + more > timers.FURTHEST_S:
        return _unsure(request)
    changed = replace(timer, due=timer.due + timedelta(seconds=more), seconds=timer.seconds + more)
    if timer.paused_s is not None:
        changed = replace(changed, paused_s=left + more)
    changed = replace(changed, rings=rings(changed, request.phrases))
    if timer.what != "timer":
        return _changed(changed, request)
    return _set_again(changed, request, "now left")


def _changed(timer: Timer, request: SkillRequest, *, in_span: bool = False) -> Answer:
    """Replace the running timer that has the number of `timer`."""
    timer = replace(timer, paused_s=None, rings=rings(timer, request.phrases))
    text = confirmed(timer, request, in_span=in_span)
    return Answer(text, sets=[timer], about=(timer.number,))


def _set_again(timer: Timer, request: SkillRequest, key: str) -> Answer:
    """Replace the running timer that has the number of `timer`, and say the text `key`."""
    facts = _facts(timer, request.known.now, request.phrases)
    text = request.phrases.say(key, **facts)
    return Answer(text, sets=[timer], about=(timer.number,))


@_for_one("timer_pause")
def _pause(request: SkillRequest, timer: Timer) -> Answer | None:
    if timer.what != "timer" or timer.paused_s is not None:
        return _unsure(request)
    left = max(1, until(timer.due, request.known.now))
    return _set_again(replace(timer, paused_s=left), request, "paused")


@_for_one("timer_resume", "timer_go_on")
def _resume(request: SkillRequest, timer: Timer) -> Answer | None:
    if timer.paused_s is None:  # "continue" alone may mean a story
        return None if request.kind == "timer_go_on" else _unsure(request)
    due = request.known.now + timedelta(seconds=timer.paused_s)
    return _set_again(replace(timer, due=due, paused_s=None), request, "resumed")


@_for_one("timer_restart")
def _restart(request: SkillRequest, timer: Timer) -> Answer | None:
    if timer.what != "timer":
        return _unsure(request)
    due = request.known.now + timedelta(seconds=timer.seconds)
    return _changed(replace(timer, due=due), request)


@_for_one("timer_rename")
def _rename(request: SkillRequest, timer: Timer) -> Answer:
    named = replace(timer, name=request.values["label"])
    named = replace(named, rings=rings(named, request.phrases))
    return _set_again(named, request, "renamed")


@ANSWERS.register("snooze")
def _snooze(request: SkillRequest) -> Answer:
    """Let what rang last ring once more."""
    known, rung, phrases = request.known, request.known.just_rung, request.phrases
    if rung is None:
        text = phrases.say("nothing rang")
        return Answer(f"{text} {_all(request)}" if known.timers else text, about=())
    seconds = request.values.get("duration", SNOOZE_S)
    due = known.now + timedelta(seconds=seconds)
    again = replace(rung, number=0, due=due, seconds=seconds, days=(), every_s=0)
    return Answer(phrases.say("snoozed", span=phrases.span(seconds)), sets=[again], about=())


@ANSWERS.register("snooze_more")
def _snooze_more(request: SkillRequest) -> Answer | None:
    """Let what has just rung ring once more, if the user only says by how much later."""
    known = request.known
    meant = known.just_rung and known.subject == known.just_rung.number and fresh(known)
    return _snooze(request) if meant else None


# ---- what is said in reply to a question, and what is not understood


@ANSWERS.register("duration", "moment", "choice")
def _complete(request: SkillRequest) -> Answer | None:
    """Complete the request for whose missing part the last reply asked. If it asked for none, and
    was about timers, change the timer."""
    known, pending, chooses = request.known, request.known.pending, request.kind == "choice"
    if pending is None:
        changes = known.since_timers == 0 and not chooses
        return ANSWERS["timer_change"](replace(request, kind="timer_change")) if changes else None
    if chooses != (pending.kind not in timers.ANSWERS):
        return None
    # An alarm "in ten minutes" is a timer.
    in_span = pending.kind in ("alarm", "wake") and "duration" in request.values
    kind = "timer" if in_span else pending.kind
    whole = replace(request, kind=kind, values={**pending.values, **request.values})
    if chooses:
        # "The second" of which kind may not be known.
        kinds = {one.what for one in known.timers}
        unknown = len(kinds) > 1 and "nth" in whole.values and "what" not in whole.values
        return ANSWERS[kind](whole) if not unknown and _meant(whole) else None
    fits = {"duration", "duration_n"} if kind == "timer" else {"duration", "time"}
    lacks = request.values.keys().isdisjoint(fits)
    return None if lacks else timers.ANSWERS[kind](whole)


@ANSWERS.register("unsure", "unsure_follow", "unsure_named")
def _unsure(request: SkillRequest) -> Answer | None:
    """Say that nothing was changed, what is set, and what can be said."""
    known, kind = request.known, request.values.get("what")
    if request.kind == "unsure_named" and not (known.timers and fresh(known)):
        return None
    if kind is None:
        if request.kind == "unsure_follow" and known.since_timers != 0:
            return None
        subject = current(known)
        kind = subject.what if subject else "timer"
    hint = request.phrases.say(f"{kind} hint")
    text = request.phrases.say("unsure", state=_all(request), hint=hint)
    return Answer(text, about=_numbers(known.timers))
