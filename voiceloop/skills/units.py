"""Units, and the conversion of amounts. This module does not know how languages name the units."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import NamedTuple

from voiceloop.skills.values import Amount


class Unit(NamedTuple):
    """The quantity that a unit measures, and the unit's size."""

    measures: str
    worth: Fraction
    """Size of the unit, relative to the basic unit of the quantity, e.g. 1000 for a kilometer,
    because the basic unit is the meter."""
    zero: Fraction = Fraction(0)
    """Number that is added to an amount before it is multiplied by `worth`, e.g. 273.15 for degrees
    Celsius; 0 for most units."""


_TABLE = {
    "time": "second 1|minute 60|quarter hour 900|three quarter hour 2700|hour 3600|day 86400"
    "|week 604800|year 31536000",
    "length": "meter 1|kilometer 1000|centimeter 0.01|millimeter 0.001|inch 0.0254|foot 0.3048"
    "|yard 0.9144|mile 1609.344|nautical mile 1852|light year 9460730472580800",
    "weight": "gram 1|kilogram 1000|milligram 0.001|ton 1000000|ounce 28.349523125"
    "|pound 453.59237|stone 6350.29318|metric pound 500|centner 50000",
    "volume": "liter 1|milliliter 0.001|centiliter 0.01|deciliter 0.1|cubic meter 1000"
    "|gallon 3.785411784|quart 0.946352946|pint 0.473176473|cup 0.2365882365"
    "|fluid ounce 0.0295735295625|tablespoon 0.01478676478125|teaspoon 0.00492892159375",
    "speed": "meter per second 1|kilometer per hour 5/18|mile per hour 0.44704|knot 463/900",
    "area": "square meter 1|square kilometer 1000000|square centimeter 0.0001|hectare 10000"
    "|square foot 0.09290304|square mile 2589988.110336|acre 4046.8564224",
    "data": "byte 1|kilobyte 1000|megabyte 1000000|gigabyte 1000000000|terabyte 1000000000000",
    "number": "piece 1|dozen 12",
}
UNITS = {
    name: Unit(measures, Fraction(worth))
    for measures, table in _TABLE.items()
    for name, worth in (one.rsplit(" ", 1) for one in table.split("|"))
} | {
    "kelvin": Unit("temperature", Fraction(1)),
    "celsius": Unit("temperature", Fraction(1), Fraction("273.15")),
    "fahrenheit": Unit("temperature", Fraction(5, 9), Fraction("459.67")),
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
