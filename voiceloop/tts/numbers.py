"""Numbers in words, as English says them, with money and units; thin rules over num2words.

What a number means (a year, a price, a phone number) is decided by `normalize`.
"""

from __future__ import annotations

from typing import Any, cast

import num2words  # pyright: ignore[reportMissingTypeStubs]

LONGEST = 15
"""Digits of the longest number that is said as one; a longer one is said digit by digit."""

CURRENCIES = {
    "$": ("dollar", "cent"),
    "€": ("euro", "cent"),
    "£": ("pound", "penny"),
    "¥": ("yen", "sen"),
    "₹": ("rupee", "paisa"),
}
MAGNITUDES = {"k": "thousand", "m": "million", "bn": "billion", "b": "billion", "tn": "trillion"}
UNITS = {
    prefix + unit: f"{before}{name}s"
    for units, prefixes in (
        ({"m": "meter"}, {"": "", "k": "kilo", "c": "centi", "m": "milli"}),
        ({"g": "gram"}, {"": "", "k": "kilo", "m": "milli"}),
        ({"l": "liter", "L": "liter"}, {"": "", "m": "milli"}),
        ({"W": "watt", "Wh": "watt hour", "V": "volt"}, {"": "", "k": "kilo", "M": "mega"}),
        ({"B": "byte"}, {"k": "kilo", "K": "kilo", "M": "mega", "G": "giga", "T": "tera"}),
        ({"s": "second"}, {"": "", "m": "milli"}),
    )
    for unit, name in units.items()
    for prefix, before in prefixes.items()
} | {
    **{"Hz": "hertz", "kHz": "kilohertz", "MHz": "megahertz", "GHz": "gigahertz"},
    **{"mi": "miles", "ft": "feet", "yd": "yards", "in.": "inches", "gal": "gallons"},
    **{"lb": "pounds", "lbs": "pounds", "oz": "ounces", "tsp": "teaspoons", "tbsp": "tablespoons"},
    **{"h": "hours", "hr": "hours", "hrs": "hours", "min": "minutes", "mins": "minutes"},
    **{"sec": "seconds", "secs": "seconds", "mph": "miles per hour", "kph": "kilometers per hour"},
    **{"cal": "calories", "kcal": "kilocalories"},
}
IRREGULAR = {"feet": "foot", "inches": "inch", "hertz": "hertz"}


def cardinal(number: str) -> str:
    """`1,234.5` -> one thousand two hundred and thirty-four point five; `007` digit by digit."""
    whole, *fractions = number.replace(",", "").split(".")
    parts = [_whole(whole)] if whole else []
    for fraction in fractions:
        parts += ["point", digits(fraction)]
    return " ".join(parts)


def digits(number: str) -> str:
    """`042` -> zero four two."""
    return " ".join(_words(int(digit)) for digit in number)


def ordinal(number: str) -> str:
    """`21` -> twenty-first."""
    plain = number.replace(",", "")
    return _words(int(plain), to="ordinal") if len(plain) <= LONGEST else digits(plain)


def year(number: str) -> str:
    """`1984` -> nineteen eighty-four."""
    return _words(int(number), to="year")


def fraction(above: str, below: str) -> str:
    """`3`, `4` -> three quarters."""
    names = {2: "half", 4: "quarter"}
    part = names.get(int(below)) or ordinal(below)
    if int(above) == 1:
        return f"one {part}"
    return f"{cardinal(above)} {'halves' if part == 'half' else part + 's'}"


def plural(words: str) -> str:
    """`nineteen eighty` -> nineteen eighties."""
    return f"{words[:-1]}ies" if words.endswith("y") else f"{words}s"


def _whole(number: str) -> str:
    if len(number) > LONGEST or (number.startswith("0") and len(number) > 1):
        return digits(number)
    return _words(int(number))


def _words(number: int, to: str = "cardinal") -> str:
    return str(cast(Any, num2words).num2words(number, to=to)).replace(",", "")


def unit(name: str, *, one: bool) -> str:
    """`km` -> kilometers, or kilometer where there is but one."""
    words = UNITS[name]
    if not one:
        return words
    first, _, rest = words.partition(" ")
    if rest == "hours":
        return f"{first} hour"
    return f"{IRREGULAR.get(first, first.removesuffix('s'))} {rest}".rstrip()


def money(sign: str, number: str, magnitude: str | None) -> str:
    """`$`, `3.50` -> three dollars and fifty cents; `$`, `2.5`, `m` -> two point five million..."""
    name, coin = CURRENCIES[sign]
    if magnitude:
        return f"{cardinal(number)} {MAGNITUDES.get(magnitude.lower(), magnitude)} {_many(name)}"
    whole, _, part = number.replace(",", "").partition(".")
    if len(part) != 2:
        return f"{cardinal(number)} {name if number == '1' else _many(name)}"
    said = f"{cardinal(whole)} {name if whole == '1' else _many(name)}"
    if part == "00":
        return said
    coins = f"{cardinal(str(int(part)))} {coin if part == '01' else _many(coin)}"
    return f"{said} and {coins}" if whole.strip("0") else coins


def _many(name: str) -> str:
    return {"yen": "yen", "sen": "sen", "paisa": "paise", "penny": "pence"}.get(name, f"{name}s")
