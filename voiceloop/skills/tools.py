"""Skills as tools that a language model can call, if its chat template supports tools.

The output of a model is not trusted. If arguments are wrong, the model gets an error as the result,
and no exception is raised. The starter model was trained to call the first two of `TOOLS` and to
read their results.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import msgspec

from voiceloop.languages import installed
from voiceloop.skills.answer import reply_to, understand
from voiceloop.skills.known import Answer, SkillContext
from voiceloop.skills.phrases import phrases_of
from voiceloop.skills.timers import LONGEST_S, MOST, new_timer
from voiceloop.types import Tool

_TABLE = tomllib.loads((files("voiceloop.skills") / "tools.toml").read_text(encoding="utf-8"))
TOOLS = msgspec.convert(_TABLE["tools"], tuple[Tool, ...])
"""The tools that are offered to the language model."""
UNITS = {"hours": 3600, "minutes": 60, "seconds": 1}


def run_tool(name: str, arguments: Mapping[str, object], known: SkillContext, code: str) -> Answer:
    """Run the tool called `name` for a user who speaks the language `code`. The text of the answer
    is JSON for the model."""
    match name:
        case "get_time":
            now, english = known.now, phrases_of("en")  # strftime would follow the locale
            time = f"{now.hour % 12 or 12}:{now.minute:02} {'AM' if now.hour < 12 else 'PM'}"
            day, month = english.weekday(now.weekday()), english.month(now.month)
            return _result(time=time, day=day, date=f"{month} {now.day}")
        case "set_timer":
            return _set_timer(arguments, known, code)
        case "cancel_timer":
            return _cancel_timer(arguments, known)
        case "calculate":
            return _answer_by_rule(f"what is {arguments.get('expression')}", "sum", known)
        case "convert":
            amount, source, target = (arguments.get(key) for key in ("amount", "from", "to"))
            return _answer_by_rule(f"convert {amount} {source} to {target}", "convert", known)
        case _:
            return _result(error=f"there is no tool called {name}")


def _result(**facts: object) -> Answer:
    return Answer(json.dumps(facts))


def _set_timer(arguments: Mapping[str, object], known: SkillContext, code: str) -> Answer:
    given: dict[str, Any] = dict(arguments)
    name = given.pop("name", "")
    fit = (unit in UNITS and type(n) is int and n > 0 for unit, n in given.items())
    if not given or not all(fit) or not isinstance(name, str):
        return _result(error="a timer takes hours, minutes or seconds above 0")
    if len(known.timers) >= MOST:
        return _result(error=f"{MOST} timers are running")
    seconds = sum(n * UNITS[unit] for unit, n in given.items())
    if seconds > LONGEST_S:
        return _result(error="a timer takes 24 hours at most")
    said = " ".join(f"{n} {unit[:-1] if n == 1 else unit}" for unit, n in given.items())
    phrases = phrases_of(code if code in installed() else "en")
    sets = new_timer(known.now, seconds, name, phrases)
    return Answer(json.dumps({"timer": said}), sets=[sets], about=())


def _cancel_timer(arguments: Mapping[str, object], known: SkillContext) -> Answer:
    name = str(arguments.get("name") or "").lower()
    meant = frozenset(one.number for one in known.timers if not name or one.name.lower() == name)
    return Answer(json.dumps({"canceled": len(meant)}), cancels=meant, about=())


def _answer_by_rule(text: str, kind: str, known: SkillContext) -> Answer:
    """Return the answer of the rules to the English request `text`. Return an error if `text` is no
    request of the kind `kind`."""
    request = next(understand(text, "en", known), None)
    found = reply_to(request) if request and request.kind == kind else None
    return _result(result=found.text) if found else _result(error="that cannot be computed")
