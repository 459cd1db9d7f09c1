"""Questions that take a call of a tool: the time, and a timer."""

from __future__ import annotations

import json
import random

from models.train.domain.exchange import Exchange, choose, pick
from models.train.domain.grammar import expand
from models.train.domain.tables import DAYS, MONTHS


def call_text(name: str, **arguments: object) -> str:
    """A call in the form that the Qwen family writes."""
    body = json.dumps({"name": name, "arguments": arguments})
    return f"<tool_call>\n{body}\n</tool_call>"


TIME = ("what time is it?", "what's the time?", "tell me the time.", "do you know what time it is?", "how late is it?",
        "what is the time (now|)?", "can you tell me the time?", "what time do we have?", "the time, please.")  # fmt: skip
DAY = ("what day is (it|today)?", "which day is (it|today)?", "what day of the week is it?", "what weekday is it?",
       "tell me what day it is.")  # fmt: skip
DATE = ("what is the date?", "what's the date (today|)?", "what date is (it|today)?", "tell me the date.",
        "which date is it?")  # fmt: skip
TIMER = ("set a timer for {x}.", "start a timer for {x}.", "timer for {x}.", "set the timer to {x}.",
         "I need a timer for {x}.", "can you set a timer for {x}?", "a timer for {x}, please.", "wake me in {x}.",
         "remind me in {x}.", "set an alarm in {x}.", "count down {x}.", "give me {x} on the timer.",
         "please set a timer for {x}.")  # fmt: skip
DURATIONS = tuple(
    f"{n} {unit if n == 1 else unit + 's'}"
    for unit, numbers in (
        ("minute", (*range(1, 21), 25, 30, 35, 40, 45, 50, 60, 90)),
        ("second", (5, 10, 15, 20, 30, 40, 45, 60, 90)),
        ("hour", (1, 2, 3, 4, 5, 6, 8, 12)),
    )
    for n in numbers
)


def clock_result(rng: random.Random) -> tuple[str, str, str]:
    """A time, a weekday and a date, as the time tool returns them."""
    hour, minute = rng.randint(1, 12), rng.randrange(60)
    time = f"{hour}:{minute:02d} {rng.choice(('AM', 'PM'))}"
    return time, rng.choice(DAYS), f"{rng.choice(MONTHS)} {rng.randint(1, 31)}"


def draw_tool(rng: random.Random, split: str) -> Exchange:
    """A question that takes a call; one timer in twenty fails."""
    if rng.random() < 0.5:
        carrier, value = choose("timer", TIMER, DURATIONS, split, rng)
        amount, unit = value.split()
        call = call_text("set_timer", **{unit if unit.endswith("s") else unit + "s": int(amount)})
        user, reply = carrier.replace("{x}", value), f"I set a timer for {value}."
        if rng.random() < 0.05:
            error = json.dumps({"error": "no timer is available"})
            return Exchange(user, "I am sorry, that did not work.", "timer", value, error, call)
        return Exchange(user, reply, "timer", value, json.dumps({"timer": value}), call)
    time, day, date = clock_result(rng)
    result = json.dumps({"time": time, "day": day, "date": date})
    kind, carriers, reply = rng.choice(
        (("time", TIME, f"It is {time}."), ("time", TIME, f"It is {time}."), ("day", DAY, f"Today is {day}."), ("date", DATE, f"Today is {date}."))
    )  # fmt: skip
    carrier = pick(kind, carriers, split, rng)
    assert carrier is not None
    return Exchange(expand(carrier, rng), reply, "time", time, result, call_text("get_time"))
