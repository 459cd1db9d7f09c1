"""The two tools that the starter model can call: the time, and a timer.

What a model writes is not to be trusted: wrong arguments come back to it as an error that it can
read, never as an exception. This module does not wait and reads no clock; a timer's ringing is the
session's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

UNITS = {"hours": 3600, "minutes": 60, "seconds": 1}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool did."""

    text: str
    """What the model is told, as JSON."""
    rings_after: int = 0
    """Seconds after which the user is to be told `rings`; 0 for never."""
    rings: str = ""


def run_tool(name: str, arguments: Mapping[str, object], now: datetime) -> ToolResult:
    """Call the tool called `name`."""
    if name == "get_time":
        clock = now.strftime("%I:%M %p").lstrip("0")
        date = f"{now.strftime('%B')} {now.day}"
        answer = {"time": clock, "day": now.strftime("%A"), "date": date}
        return ToolResult(json.dumps(answer))
    if name == "set_timer":
        return _set_timer(arguments)
    return ToolResult(json.dumps({"error": f"there is no tool called {name}"}))


def _set_timer(arguments: Mapping[str, object]) -> ToolResult:
    numbers: dict[str, int] = {}
    for unit, value in arguments.items():
        if unit not in UNITS or type(value) is not int or not 0 < value <= 86_400:
            numbers.clear()
            break
        numbers[unit] = value
    if not numbers:
        return ToolResult(json.dumps({"error": "a timer takes hours, minutes or seconds above 0"}))
    said = " ".join(f"{n} {unit[:-1] if n == 1 else unit}" for unit, n in numbers.items())
    seconds = sum(n * UNITS[unit] for unit, n in numbers.items())
    return ToolResult(json.dumps({"timer": said}), seconds, f"The timer of {said} is over.")
