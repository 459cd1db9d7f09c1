"""Units, and answers to sums and conversions. This module does not know how languages name the
units."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from importlib.resources import files
from itertools import product
from typing import Any, NamedTuple

from voiceloop.skills.known import Amount, Answer, SkillContext, SkillRequest
from voiceloop.skills.phrases import FEW_PLACES, Phrases
from voiceloop.skills.sums import Sum


class Unit(NamedTuple):
    """The quantity that a unit measures, and the unit's size."""

    measures: str
    worth: Fraction
    """Size of the unit, relative to the basic unit of the quantity, e.g. 1000 for a kilometer,
    because the basic unit is the meter."""
    zero: Fraction = Fraction(0)
    """Number that is added to an amount before it is multiplied by `worth`, e.g. 273.15 for degrees
    Celsius; 0 for most units."""


_TABLE = tomllib.loads((files("voiceloop.skills") / "units.toml").read_text(encoding="utf-8"))
UNITS = {
    name: Unit(measures, *(Fraction(number) for number in numbers.split()))
    for measures, units in _TABLE.items()
    for name, numbers in units.items()
}


class Converted(NamedTuple):
    """The amounts that were given, as pairs of number and unit, and their total: `number` of
    `unit`."""

    given: Sequence[tuple[Fraction, str]]
    number: Fraction
    unit: str


def converted(amounts: Sequence[Amount], targets: Sequence[str]) -> Converted | None:
    """Return the total of `amounts` in the first of `targets` that measures the same quantity and
    is not the unit of one of the amounts. Return None if no target does."""
    for target in targets:
        for units in product(*(one.units for one in amounts)):
            alike = all(UNITS[unit].measures == UNITS[target].measures for unit in units)
            if alike and target not in units:
                given = [(one.number, unit) for one, unit in zip(amounts, units, strict=True)]
                total = sum(
                    ((number + UNITS[unit].zero) * UNITS[unit].worth for number, unit in given),
                    Fraction(0),
                )
                number = total / UNITS[target].worth - UNITS[target].zero
                return Converted(given, number, target)
    return None


HUGE = 10**15
"""A number of this absolute value or more is said with a power of ten."""


def _sum(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer:
    found = request.values.get("sum") or _together(request, phrases)
    if found.value is None:
        return Answer(phrases.says["by zero"])
    said = phrases.says["sum"].format(sum=found.said, value=_number(found.value, phrases))
    return Answer(said[0].upper() + said[1:])


def _together(request: SkillRequest, phrases: Phrases) -> Sum:
    """Add two numbers, as in `two and two`."""
    first, second = request.values["a"], request.values["b"]
    plus = phrases.operators["+"].partition("|")[0]
    said = f"{phrases.number(first)} {plus} {phrases.number(second)}"
    return Sum(said, first + second)


def _number(value: Fraction, phrases: Phrases) -> str:
    if abs(value) < HUGE:
        return phrases.number(value)
    power = len(str(abs(round(value)))) - 1
    mantissa = round(value / 10**power, FEW_PLACES)
    if abs(mantissa) >= 10:  # it was rounded up to ten
        power, mantissa = power + 1, Fraction(1 if value > 0 else -1)
    number = phrases.number(mantissa, FEW_PLACES)
    said = phrases.says["huge"].format(value=number, power=power)
    return said if mantissa * 10**power == value else f"{phrases.says['about']} {said}"


def _convert(request: SkillRequest, known: SkillContext, phrases: Phrases) -> Answer | None:
    values = request.values
    amount = values["amount"] if "amount" in values else (Amount(Fraction(1), values["v"]),)
    found = converted(amount, request.values["u"])
    if found is None:
        return None
    given = [
        f"{phrases.number(number)} {phrases.unit(unit, one=number == 1)}"
        for number, unit in found.given
    ]
    value = phrases.number(found.number, FEW_PLACES)
    value = f"{value} {phrases.unit(found.unit, one=found.number == 1)}"
    one = len(found.given) == 1 and found.given[0][0] == 1
    verb = phrases.says["is" if one else "are"]
    said = phrases.says["converted"].format(
        **{"amount": phrases.listed(given), "is": verb}, value=value
    )
    return Answer(said[0].upper() + said[1:])


ANSWERS: Mapping[str, Any] = {"sum": _sum, "convert": _convert}
