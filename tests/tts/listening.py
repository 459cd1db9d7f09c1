"""What somebody who hears spoken words understands: numbers, amounts, dates, times, lengths.

Nothing of this is taken from the product: it is what the words mean, written down once more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

_EN = dict(
    zip(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen".split(),
        range(20),
        strict=True,
    )
) | {
    word: 10 * tens
    for tens, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)
}
_DE = dict(
    zip(
        "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn "
        "fünfzehn sechzehn siebzehn achtzehn neunzehn".split(),
        range(20),
        strict=True,
    )
) | {
    word: 10 * tens
    for tens, word in enumerate(
        "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split(), 2
    )
}
_DE |= {"eins": 1, "eine": 1, "": 0}
_ES = dict(
    zip(
        "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince "
        "dieciséis diecisiete dieciocho diecinueve veinte veintiuno veintidós veintitrés "
        "veinticuatro veinticinco veintiséis veintisiete veintiocho veintinueve".split(),
        range(30),
        strict=True,
    )
) | {
    word: 10 * tens
    for tens, word in enumerate(
        "treinta cuarenta cincuenta sesenta setenta ochenta noventa".split(), 3
    )
}
_ES |= {"un": 1, "una": 1, "veintiún": 21, "veintiuna": 21, "cien": 100, "ciento": 100}
for hundreds, stem in enumerate(
    "doscient trescient cuatrocient quinient seiscient setecient ochocient novecient".split(), 2
):
    _ES |= {f"{stem}os": 100 * hundreds, f"{stem}as": 100 * hundreds}

_LARGE = {
    "en": {"thousand": 10**3, "million": 10**6, "billion": 10**9},
    "de": {"Million": 10**6, "Millionen": 10**6, "Milliarde": 10**9, "Milliarden": 10**9},
    "es": {"mil": 10**3, "millón": 10**6, "millones": 10**6},
}
_SILENT = {"en": {"and"}, "de": set[str](), "es": {"y", "de"}}
_POINT = {"en": "point", "de": "Komma", "es": "coma"}
_MINUS = {"en": "minus", "de": "minus", "es": "menos"}
MONTHS: dict[str, Sequence[str]] = {
    "en": (
        "January February March April May June July August September October November December"
    ).split(),
    "de": (
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"
    ).split(),
    "es": (
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"
    ).split(),
}


def small(word: str, code: str) -> int:
    """A word that is no power of a thousand."""
    if code == "de":
        return _german(word)
    if code == "es":
        return _ES[word]
    return sum(_EN[part] for part in word.replace("oh-", "").split("-"))


def _german(word: str) -> int:
    for large, worth in (("tausend", 1000), ("hundert", 100)):
        before, found, after = word.partition(large)
        if found:
            return (_german(before) or 1) * worth + _german(after)
    if word in _DE:
        return _DE[word]
    one, _, ten = word.partition("und")
    return _DE[one] + _DE[ten]


def whole(words: list[str], code: str) -> int:
    """A whole number in words."""
    assert words
    total = part = 0
    for word in words:
        if word in _SILENT[code]:
            continue
        if word == "hundred" and code == "en":
            part *= 100
        elif worth := _LARGE[code].get(word):
            # In Spanish a thousand millions are mil millones.
            if code == "es" and worth > 1000:
                total, part = (total + part) * worth, 0
            else:
                total, part = total + (part or 1) * worth, 0
        else:
            part += small(word, code)
    return total + part


def digits(text: str, code: str) -> str:
    """Digits one by one, with a plus before them."""
    plus = {"en": "plus", "de": "plus", "es": "más"}[code]
    words = text.replace(",", "").split()
    return "".join("+" if word == plus else str(small(word, code)) for word in words)


def number(words: list[str], code: str) -> Decimal:
    """Any number in words."""
    sign = -1 if words[0] == _MINUS[code] else 1
    words = words[sign < 0 :]
    if _POINT[code] not in words:
        return sign * Decimal(whole(words, code))
    at = words.index(_POINT[code])
    parts = [str(small(word, code)) for word in words[at + 1 :] if word not in _SILENT[code]]
    if code == "es" and words[at + 1] != "cero" and len(parts) == 2 and len(parts[0]) == 2:
        parts = [str(int(parts[0]) + int(parts[1]))]  # treinta y uno
    return sign * Decimal(f"{whole(words[:at], code)}.{''.join(parts)}")


def money(text: str, code: str) -> tuple[Decimal, str]:
    """Hundredths, and the first letters of the name of the money."""
    joins = {"en": r" and (?=[^,]*c)", "de": " und ", "es": " con "}[code]
    whole_part, _, coins = text.rpartition(" and " if code == "en" else joins)
    name = r"(.+?) ((?:U S )?\S+)"
    if not re.search(r"(?i)cent|cént", text):
        said = re.fullmatch(name, text)
        assert said is not None
        return 100 * number(said[1].split(), code), said[2]
    if not re.search(r"dollar|euro|Euro|Dollar|dólar", whole_part):
        return number(text.split()[:-1], code), ""
    said = re.fullmatch(name, whole_part)
    assert said is not None
    pounds = 100 * number(said[1].split(), code)
    cents = number(coins.split()[:-1], code)
    return pounds + (cents if pounds >= 0 and not text.startswith(_MINUS[code]) else -cents), said[
        2
    ]


_ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fifth": 5, "eighth": 8, "ninth": 9, "twelfth": 12,
    "erster": 1, "dritter": 3, "siebter": 7, "achter": 8,
}  # fmt: skip


def ordinal(word: str, code: str) -> int:
    """The number of a day."""
    if word in _ORDINALS:
        return _ORDINALS[word]
    if code == "de":
        stem = word.removesuffix("ter")
        return _german(stem if stem in _DE else stem.removesuffix("s"))
    *tens, last = word.split("-")
    if last in _ORDINALS:
        return sum(_EN[ten] for ten in tens) + _ORDINALS[last]
    if last.endswith("ieth"):
        return _EN[last.replace("ieth", "y")]
    return sum(_EN[ten] for ten in tens) + _EN[last.removesuffix("th")]


def year(words: list[str], code: str) -> int:
    """A year in words."""
    if code != "en" or "thousand" in words or "hundred" in words:
        return whole(words, code)
    century, rest = words
    return 100 * small(century, code) + small(rest, code)


def date(text: str, code: str) -> tuple[int, int, int]:
    """Year, month and day."""
    words = [word for word in text.replace(",", "").split() if word not in ("of", "de")]
    at = next(at for at, word in enumerate(words) if word in MONTHS[code])
    month = MONTHS[code].index(words[at]) + 1
    if code == "en" and at == 0:
        return year(words[2:], code), month, ordinal(words[1], code)
    day = whole(words[:at], code) if code == "es" else ordinal(words[at - 1], code)
    return year(words[at + 1 :], code), month, day


def clock(text: str, code: str) -> tuple[int, int]:
    """Hour and minute."""
    later = text.endswith(("P M", "de la tarde", "de la noche"))
    earlier = text.endswith(("A M", "de la mañana")) or text in (
        "doce de la noche",
        "doce y media de la noche",
    )
    text = re.sub(r" (?:[AP] M|de la \w+|en punto|o'clock)$", "", text)
    if code == "de":
        hour_words, _, minute_words = text.partition(" Uhr")
        hour, minute = whole([hour_words], code), whole(minute_words.split() or ["null"], code)
    elif code == "en":
        hour_words, *rest = text.split()
        hour = 0 if text == "midnight" else small(hour_words, code)
        rest = [word for word in rest if word not in ("oh", "hundred")]
        minute = whole(rest, code) if rest else 0
    else:
        hour_words, *rest = text.removesuffix(" horas").split()
        rest = [word for word in rest if word not in ("y", "cero")]
        hour = small(hour_words, code)
        quarters = {"cuarto": 15, "media": 30}
        minute = sum(quarters.get(word) or small(word, code) for word in rest)
    if later and hour < 12:
        hour += 12
    if earlier and hour == 12:
        hour = 0
    return hour, minute


UNITS = {
    "en": {
        "meter": ("m", 1), "kilometer": ("m", 1000), "centimeter": ("m", Fraction(1, 100)),
        "millimeter": ("m", Fraction(1, 1000)), "micrometer": ("m", Fraction(1, 10**6)),
        "gram": ("g", 1), "kilogram": ("g", 1000), "milligram": ("g", Fraction(1, 1000)),
        "microgram": ("g", Fraction(1, 10**6)),
        "liter": ("l", 1), "milliliter": ("l", Fraction(1, 1000)),
        "second": ("s", 1), "minute": ("s", 60), "hour": ("s", 3600), "volt": ("V", 1),
        "kilowatt hour": ("Wh", 1000), "gigabyte": ("B", 10**9), "megahertz": ("Hz", 10**6),
        "square meter": ("m2", 1), "square kilometer": ("m2", 10**6), "cubic meter": ("m3", 1),
        "degree Celsius": ("C", 1), "percent": ("%", 1),
    },
    "de": {
        "Meter": ("m", 1), "Kilometer": ("m", 1000), "Zentimeter": ("m", Fraction(1, 100)),
        "Millimeter": ("m", Fraction(1, 1000)), "Mikrometer": ("m", Fraction(1, 10**6)),
        "Gramm": ("g", 1), "Kilogramm": ("g", 1000), "Milligramm": ("g", Fraction(1, 1000)),
        "Mikrogramm": ("g", Fraction(1, 10**6)),
        "Liter": ("l", 1), "Milliliter": ("l", Fraction(1, 1000)),
        "Sekunde": ("s", 1), "Minute": ("s", 60), "Stunde": ("s", 3600), "Volt": ("V", 1),
        "Kilowattstunde": ("Wh", 1000), "Gigabyte": ("B", 10**9), "Megahertz": ("Hz", 10**6),
        "Quadratmeter": ("m2", 1), "Quadratkilometer": ("m2", 10**6), "Kubikmeter": ("m3", 1),
        "Grad Celsius": ("C", 1), "Prozent": ("%", 1),
    },
    "es": {
        "metro": ("m", 1), "kilómetro": ("m", 1000), "centímetro": ("m", Fraction(1, 100)),
        "milímetro": ("m", Fraction(1, 1000)), "micrómetro": ("m", Fraction(1, 10**6)),
        "gramo": ("g", 1), "kilogramo": ("g", 1000), "miligramo": ("g", Fraction(1, 1000)),
        "microgramo": ("g", Fraction(1, 10**6)),
        "litro": ("l", 1), "mililitro": ("l", Fraction(1, 1000)),
        "segundo": ("s", 1), "minuto": ("s", 60), "hora": ("s", 3600), "voltio": ("V", 1),
        "kilovatio hora": ("Wh", 1000), "gigabyte": ("B", 10**9), "megahercio": ("Hz", 10**6),
        "metro cuadrado": ("m2", 1), "kilómetro cuadrado": ("m2", 10**6), "metro cúbico": ("m3", 1),
        "grado Celsius": ("C", 1), "por ciento": ("%", 1),
    },
}  # fmt: skip


def _one(unit: str, code: str) -> str | None:
    """The singular of a unit's name."""
    plural = {"en": "s", "de": "n", "es": "s"}[code]
    for one in UNITS[code]:
        pairs = list(zip(one.split(), unit.split(), strict=False))
        if one.count(" ") == unit.count(" ") and all(b in (a, a + plural) for a, b in pairs):
            return one
    return None


def measure(text: str, code: str) -> tuple[Fraction, str]:
    """How many of which unit without a prefix; `m/s` of two."""
    per = {"en": " per ", "de": " pro ", "es": " por "}[code]
    amount, _, below = text.partition(per)
    if below and f"{per.strip()} {below}" in UNITS[code]:
        amount, below = text, ""
    words = amount.split()
    for length in (2, 1):
        unit = _one(" ".join(words[-length:]), code)
        if unit and len(words) > length:
            break
    else:
        raise AssertionError(text)
    name, worth = UNITS[code][unit]
    value = Fraction(number(words[:-length], code)) * worth
    if not below:
        return value, name
    name_below, worth_below = UNITS[code][below]
    return value / worth_below, f"{name}/{name_below}"
