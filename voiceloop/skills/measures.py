"""Answers to sums and conversions of units."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from voiceloop.skills.known import Answer, SkillContext
from voiceloop.skills.phrases.phrases import FEW_PLACES, Phrases
from voiceloop.skills.sums import Sum
from voiceloop.skills.units import converted
from voiceloop.skills.values import Amount, SkillRequest

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
