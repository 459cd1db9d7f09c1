"""All facts: those of the tables, and sums and conversions, whose rows are computed."""

from __future__ import annotations

from models.train.domain.tables import FACTS, Fact


def _sums() -> dict[str, str]:
    rows: dict[str, str] = {}
    for a in range(21):
        for b in range(21):
            rows[f"{a} plus {b}"] = f"{a} plus {b} is {a + b}."
            if b <= a:
                rows[f"{a} minus {b}"] = f"{a} minus {b} is {a - b}."
            if 1 <= a <= 12 and 1 <= b <= 12:
                rows[f"{a} times {b}"] = f"{a} times {b} is {a * b}."
                if b > 1:
                    rows[f"{a * b} divided by {b}"] = f"{a * b} divided by {b} is {a}."
    return rows


UNITS = (
    ("kilometer", "meter", 1000), ("meter", "centimeter", 100), ("kilogram", "gram", 1000),
    ("hour", "minute", 60), ("minute", "second", 60), ("foot", "inch", 12), ("week", "day", 7),
    ("year", "month", 12), ("day", "hour", 24), ("dollar", "cent", 100), ("pound", "ounce", 16),
    ("liter", "milliliter", 1000), ("yard", "foot", 3), ("mile", "yard", 1760),
)  # fmt: skip
PLURALS = {"foot": "feet", "inch": "inches"}


def _plural(unit: str) -> str:
    return PLURALS.get(unit, unit + "s")


def _conversions() -> dict[str, str]:
    rows: dict[str, str] = {}
    for big, small, factor in UNITS:
        for n in range(1, 13):
            if big == "mile" and n > 3:
                continue
            amount = f"1 {big}" if n == 1 else f"{n} {_plural(big)}"
            verb = "is" if n == 1 else "are"
            rows[f"{amount}|{_plural(small)}"] = f"{amount} {verb} {n * factor:,} {_plural(small)}."
    for c in range(0, 45, 5):
        f = round(c * 9 / 5 + 32)
        rows[f"{c} degrees Celsius|Fahrenheit"] = f"{c} degrees Celsius is {f} degrees Fahrenheit."
    return rows


COMPUTED = (
    Fact("sum", (
        "what is {x}?", "what's {x}?", "how much is {x}?", "calculate {x}.", "tell me {x}.",
        "can you calculate {x}?", "what does {x} make?", "{x}, please.", "I need to know {x}.",
        "do you know what {x} is?", "what do I get for {x}?", "{x}?",
    ), _sums(), 8.0),
    Fact("conversion", (
        "how many {b} are {a}?", "convert {a} to {b}.", "what is {a} in {b}?", "how much is {a} in {b}?",
        "{a} in {b}, please.", "tell me {a} in {b}.", "what are {a} in {b}?", "how many {b} are in {a}?",
        "can you convert {a} to {b}?", "turn {a} into {b}.",
    ), _conversions(), 3.5),
)  # fmt: skip
ALL_FACTS = FACTS + COMPUTED
WEIGHTS = [fact.weight for fact in ALL_FACTS]
BY_NAME = {fact.name: fact for fact in ALL_FACTS}
