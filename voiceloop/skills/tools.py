"""Skills as tools that a language model can call, if its chat template supports tools.

The output of a model is not trusted. If arguments are wrong, the model gets an error as the result,
and no exception is raised. The starter model was trained to call the first two of `TOOLS` and to
read their results.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from voiceloop.languages import installed
from voiceloop.skills.answer import reply_to, understand
from voiceloop.skills.known import Answer, SkillContext
from voiceloop.skills.phrases import phrases_of
from voiceloop.skills.timers import LONGEST_S, MOST, new_timer
from voiceloop.types import Tool

UNITS = {"hours": 3600, "minutes": 60, "seconds": 1}


def _tool(tool: str, description: str, required: str = "", **given: str) -> Tool:
    """Make a tool. `given` has the names and JSON types of its arguments. `required` has the names
    of the arguments that a call must have, separated by spaces."""
    properties = {key: {"type": kind} for key, kind in given.items()}
    parameters = {"type": "object", "properties": properties, "required": required.split()}
    return Tool(tool, description, parameters)


TOOLS = (
    _tool("get_time", "The time and the date now."),
    _tool(
        "set_timer",
        "Ring after hours, minutes and seconds, together.",
        **{"hours": "integer", "minutes": "integer", "seconds": "integer", "name": "string"},
    ),
    _tool("cancel_timer", "Cancel the timer of that name, or all.", **{"name": "string"}),
    _tool("calculate", "Compute, such as '15% of 80'.", "expression", expression="string"),
    _tool(
        "convert",
        "Convert units, such as 5 from 'miles' to 'kilometers'.",
        "amount from to",
        **{"amount": "number", "from": "string", "to": "string"},
    ),
)
"""The tools that are offered to the language model."""


def run_tool(name: str, arguments: Mapping[str, object], known: SkillContext, code: str) -> Answer:
    """Run the tool called `name` for a user who speaks the language `code`. The text of the answer
    is JSON for the model."""
    match name:
        case "get_time":
            return _result(time=_clock(known), day=f"{known.now:%A}", date=_date(known))
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


def _clock(known: SkillContext) -> str:
    return known.now.strftime("%I:%M %p").lstrip("0")


def _date(known: SkillContext) -> str:
    return f"{known.now:%B} {known.now.day}"


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
    sets = new_timer(known, phrases_of(code if code in installed() else "en"), seconds, name)
    return Answer(json.dumps({"timer": said}), sets=[sets], about=())


def _cancel_timer(arguments: Mapping[str, object], known: SkillContext) -> Answer:
    name = str(arguments.get("name") or "").lower()
    meant = frozenset(one.number for one in known.timers if not name or one.name.lower() == name)
    return Answer(json.dumps({"canceled": len(meant)}), cancels=meant, about=())


def _answer_by_rule(text: str, kind: str, known: SkillContext) -> Answer:
    """Return the answer of the rules to the English request `text`. Return an error if `text` is no
    request of the kind `kind`."""
    request = next(understand(text, "en"), None)
    found = reply_to(request, "en", known) if request and request.kind == kind else None
    return _result(result=found.text) if found else _result(error="that cannot be computed")
