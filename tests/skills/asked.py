"""What people say, and what is known when they do."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from voiceloop.skills.answer import answer, reply_to, understand
from voiceloop.skills.known import Answer, Fact, Pending, SkillContext, Timer

CODES = ("en", "de", "es")
NONE = "none"
NOW = datetime(2026, 11, 26, 15, 42, tzinfo=ZoneInfo("Europe/Lisbon"))
SOON = Timer(1, "timer", NOW + timedelta(minutes=5), 600)
NAMED = Timer(2, "timer", NOW + timedelta(minutes=8), 900, "pasta")
ALARM = Timer(3, "alarm", NOW.replace(hour=19, minute=0), 11_880)
ALONE = SkillContext(NOW)


def about(*timers: Timer, **known: Any) -> SkillContext:
    """Return the context right after a reply about `timers`, of which the last is talked about."""
    known = {"subject": timers[-1].number, "since_timers": 0, **known}
    return SkillContext(NOW, timers=timers, **known)


ON_TIMER, ON_ALARM = about(SOON), about(ALARM)
WHICH = Pending("timer_cancel")
FOLLOWS: Mapping[str, Sequence[SkillContext]] = {
    **dict.fromkeys(
        "timer_add timer_change timer_more timer_cancel timer_pause timer_left timer_restart "
        "timer_rename unsure_follow unsure_named timer_left_follow".split(),
        (ON_TIMER, ON_ALARM),
    ),
    **dict.fromkeys(("timer_resume", "timer_go_on"), (about(replace(SOON, paused_s=300)),)),
    "duration": (SkillContext(NOW, pending=Pending("timer")), ON_TIMER),
    "moment": (SkillContext(NOW, pending=Pending("alarm")), ON_ALARM),
    "snooze_more": (SkillContext(NOW, just_rung=ALARM, subject=3, since_timers=0),),
    "forget_fact": (SkillContext(NOW, facts=[Fact(1, "my name is Anna")]),),
    "choice": (
        *(about(SOON, replace(NAMED, name=name), pending=WHICH) for name in ("pasta", "Nudeln")),
        about(SOON, replace(NAMED, name="Nudel"), ALARM, pending=WHICH),
    ),
}
"""Contexts in which a request of a kind is made, unless it can be made at any time."""
FOLDER = Path(__file__).parents[1] / "data" / "skills"


def said(code: str) -> Mapping[str, Sequence[str]]:
    """What is said, by the kind of request that it is."""
    return tomllib.loads((FOLDER / f"{code}.toml").read_text(encoding="utf-8"))


def told(text: str, code: str = "en", known: SkillContext | None = None) -> Answer:
    """The answer that there has to be."""
    found = answer(text, code, known or SkillContext(NOW))
    assert found is not None, f"no rule knows '{text}'"
    return found


def kind_of(text: str, code: str, kind: str = "") -> str:
    """Return `kind` if `text` is such a request where one makes it. Otherwise return the kind of
    request that it is."""
    found = NONE
    for known in FOLLOWS.get(kind, (ALONE,)):
        answered = (one for one in understand(text, code, known) if reply_to(one))
        request = next(answered, None)
        found = request.kind if request else NONE
        if found == kind:
            break
    return found
