"""Generated amounts, dates, times, telephone numbers and measures are said as what they are: their
words are read back by code that knows nothing of the product's."""

# ruff: noqa: E501, RUF001 - forms are listed; the look-alikes are meant

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest

from tests.tts import listening
from voiceloop.languages import language
from voiceloop.tts.normalize import normalize

pytestmark = pytest.mark.pure

Case = tuple[str, object, object]
"""What is written, what it means, and what was heard."""

EACH = 135
"""Texts of a kind and a language; more than two thousand in all."""
CODES = ("en", "de", "es")


def heard(written: str, code: str) -> str:
    return normalize(written, language(code)).text


def grouped(number: int, code: str, random: Random) -> str:
    mark = random.choice([",", ""] if code == "en" else [".", ""])
    if random.random() < 0.2:
        mark = "\u202f" if number < 10**6 else random.choice(" \u202f\u00a0")
    return f"{number:,}".replace(",", mark)


def decimal(number: int, places: int, code: str, random: Random) -> str:
    above, below = divmod(number, 10**places)
    return f"{grouped(above, code, random)}{'.' if code == 'en' else ','}{below:0{places}}"


def amount(code: str, random: Random) -> Case:
    cents = random.choice([random.randrange(1, 1000), random.randrange(1, 10**8)])
    sign, name = random.choice(
        {
            "en": [("$", "dollar"), ("€", "euro"), ("USD", "U S dollar")],
            "de": [("€", "Euro"), ("$", "Dollar"), ("EUR", "Euro")],
            "es": [("€", "euro"), ("$", "dólar"), ("EUR", "euro")],
        }[code]
    )
    if cents % 100 or random.random() < 0.5:
        number = decimal(cents, 2, code, random)
    else:
        number = grouped(cents // 100, code, random)
    minus = random.random() < 0.2
    space = " " if sign.isalpha() else random.choice(["", " "])
    if code != "en" or (sign.isalpha() and random.random() < 0.5):
        written = f"{'-' * minus}{number}{space}{sign}"
    else:
        space *= sign.isalpha()
        if cents < 100 and random.random() < 0.5:
            number = number[1:]
        written = random.choice(["-" * minus + sign + space, sign + space + "-" * minus]) + number
    said, currency = listening.money(heard(written, code), code)
    expected = Decimal(-cents if minus else cents)
    return written, (expected, True), (said, not currency or currency.startswith(name[:3]))


def date(code: str, random: Random) -> Case:
    day = datetime.date(1900, 1, 1) + datetime.timedelta(random.randrange(365 * 180))
    y, m, d = day.year, day.month, day.day
    month = listening.MONTHS[code][m - 1]
    short = month[:3]
    forms = {
        "en": [f"{month} {d}, {y}", f"{short} {d}, {y}", f"{short}. {d}, {y}", f"{d} {short} {y}",
               f"{d} {month} {y}"],
        "de": [f"{d}. {month} {y}", f"{d:02}.{m:02}.{y}", f"{d}.{m}.{y}", f"{d}. {short}. {y}".replace("Mai.", "Mai")],
        "es": [f"{d} de {month} de {y}", f"{d:02}/{m:02}/{y}", f"{d}/{m}/{y}", f"{d} {short} {y}",
               f"{d}-{short}-{y}"],
    }  # fmt: skip
    written = random.choice(
        [*forms[code], f"{y}-{m:02}-{d:02}", f"{y}/{m:02}/{d:02}", f"{y}/{m}/{d}"]
    )
    return written, (y, m, d), listening.date(heard(written, code), code)


def clock(code: str, random: Random) -> Case:
    hour, minute = random.randrange(24), random.choice([0, 15, 30, random.randrange(60)])
    half = f"{hour % 12 or 12}:{minute:02}"
    forms = {
        "en": [
            f"{hour:02}:{minute:02}",
            f"{half} {'ap'[hour > 11]}m",
            f"{half} {'AP'[hour > 11]}M",
        ],
        "de": [f"{hour}:{minute:02} Uhr", f"{hour:02}:{minute:02}", f"{hour}.{minute:02} Uhr"],
        "es": [f"{hour}:{minute:02} h", f"{hour:02}:{minute:02}"],
    }[code]
    written = random.choice(forms)
    return written, (hour, minute), listening.clock(heard(written, code), code)


def opening(code: str, random: Random) -> Case:
    """A range of times."""
    dash = random.choice(["-", "–", " - ", " – "])
    first, last = random.randrange(1, 11), random.randrange(13, 24)
    forms = {
        "en": [f"{first}am{dash}{last - 12}pm", f"{first} am{dash}{last - 12} pm"],
        "de": [f"{first}:30{dash}{last}:30 Uhr", f"{first} Uhr{dash}{last} Uhr"],
        "es": [f"{first} a. m.{dash}{last - 12} p. m.", f"{first}:30{dash}{last}:30"],
    }[code]
    written = random.choice(forms)
    minute = 30 * (":30" in written)
    begins, _, ends = heard(written, code).partition(
        {"en": " to ", "de": " bis ", "es": " a "}[code]
    )
    ends = ends.rstrip(".")
    found = listening.clock(begins, code), listening.clock(ends, code)
    return written, ((first, minute), (last, minute)), found


def lasting(code: str, random: Random) -> Case:
    hours, minutes, seconds = (random.randrange(1, 60) for _ in range(3))
    minute = random.choice(["m", "min", " min"])
    written, worth = random.choice(
        [
            (f"{hours}h {minutes}{minute}", 3600 * hours + 60 * minutes),
            (f"{hours} h {minutes} min", 3600 * hours + 60 * minutes),
            (f"{hours}h{minutes:02}", 3600 * hours + 60 * minutes),
            (f"{minutes}m {seconds}s", 60 * minutes + seconds),
            (f"{hours}h {minutes}m {seconds}s", 3600 * hours + 60 * minutes + seconds),
        ]
    )
    total, words = Fraction(0), list[str]()
    for word in heard(written, code).split():
        words.append(word)
        if word.rstrip("sn").removesuffix("e") in _TIMES[code]:
            total += listening.measure(" ".join(words), code)[0]
            words.clear()
    return written, (worth, []), (total, words)


_TIMES = {
    "en": {"hour", "minut", "second"},
    "de": {"Stund", "Minut", "Sekund"},
    "es": {"hora", "minuto", "segundo"},
}


def telephone(code: str, random: Random) -> Case:
    def digits(count: int) -> str:
        return "".join(random.choices("0123456789", k=count))

    town, office, line = (
        f"{random.choice('23456789')}{digits(2)}",
        f"{random.choice('23456789')}{digits(2)}",
        digits(4),
    )
    call = {"en": "Call", "de": "Telefon", "es": "Teléfono"}[code]
    forms = [
        f"{town}-{office}-{line}", f"({town}) {office}-{line}", f"1-{town}-{office}-{line}",
        f"+1 {town} {office} {line}", f"+49 {digits(3)} {digits(7)}", f"+34 {digits(3)} {digits(3)} {digits(3)}",
        f"+44 20 {digits(4)} {digits(4)}", f"+33 {random.choice('123')} {digits(2)} {digits(2)} {digits(2)} {digits(2)}",
        f"020 {digits(4)} {digits(4)}", f"0{town} {digits(6)}", f"0{town}/{digits(7)}",
        f"0{random.choice('123456')} {digits(2)} {digits(2)} {digits(2)} {digits(2)}",
        f"{town}{office}{line}", f"+49{digits(10)}",
    ]  # fmt: skip
    if code == "es":
        forms += [
            f"9{digits(2)} {digits(3)} 9{digits(2)}",
            f"6{digits(2)} {digits(2)} {digits(2)} {digits(2)}",
        ]
    number = random.choice(forms)
    written = f"{call} {number}"
    meant = "".join(char for char in number if char.isdecimal() or char == "+")
    return written, meant, listening.digits(heard(written, code).removeprefix(call), code)


def secret(code: str, random: Random) -> Case:
    number = "".join(random.choices("0123456789", k=random.randrange(4, 9)))
    before = random.choice(
        {
            "en": ["Your PIN is", "The verification code is", "Use code", "Zip code:"],
            "de": ["Deine PIN ist", "Der Code lautet", "Postleitzahl", "Kundennummer:"],
            "es": ["Tu PIN es", "El código es", "Código postal", "El código de verificación es:"],
        }[code]
    )
    written = f"{before} {number}."
    said = heard(written, code).removeprefix(before).rstrip(".")
    return written, number, listening.digits(said, code)


_SYMBOLS = (
    "m km cm mm μm g kg mg μg l ml s min h V kWh GB MHz m² km² m³ m2 km2 m3 °C ºC % "
    "km/h m/s kg/m³ MB/s"
).split()
_WORTH: dict[str, tuple[Fraction, str]] = {
    "km/h": (Fraction(1000, 3600), "m/s"), "m/s": (Fraction(1), "m/s"),
    "kg/m³": (Fraction(1000), "g/m3"),
    "μm": (Fraction(1, 10**6), "m"), "μg": (Fraction(1, 10**6), "g"),
    "mm": (Fraction(1, 1000), "m"), "cm": (Fraction(1, 100), "m"), "km": (Fraction(1000), "m"),
    "mg": (Fraction(1, 1000), "g"), "kg": (Fraction(1000), "g"), "ml": (Fraction(1, 1000), "l"),
    "min": (Fraction(60), "s"), "h": (Fraction(3600), "s"), "kWh": (Fraction(1000), "Wh"),
    "GB": (Fraction(10**9), "B"), "MHz": (Fraction(10**6), "Hz"),
    "m²": (Fraction(1), "m2"), "km²": (Fraction(10**6), "m2"), "m³": (Fraction(1), "m3"),
    "km2": (Fraction(10**6), "m2"), "°C": (Fraction(1), "C"), "ºC": (Fraction(1), "C"),
}  # fmt: skip


def measure(code: str, random: Random) -> Case:
    symbol = random.choice([symbol for symbol in _SYMBOLS if symbol != "MB/s"])
    worth, name = _WORTH.get(symbol, (Fraction(1), symbol))
    places = random.choice([0, 0, 1, 2])
    value = random.randrange(1, 10 ** random.randrange(1, 7))
    number = decimal(value, places, code, random) if places else grouped(value, code, random)
    minus = "-" * (random.random() < 0.2)
    written = f"{minus}{number}{random.choice(['', ' '])}{symbol}"
    if symbol == "s" and number[-1] == "0" and " " not in written:
        written = f"{minus}{number} s"  # not the eighties
    meant = Fraction(value, 10**places) * worth * (-1 if minus else 1)
    return written, (meant, name), listening.measure(heard(written, code), code)


def power(code: str, random: Random) -> Case:
    """Scientific notation and powers."""
    exponent = random.choice([1, -1]) * random.randrange(4, 30)
    base = random.randrange(2, 20)
    raised = str(exponent).translate(str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"))
    written = random.choice([f"{base}{raised}", f"{base}^{exponent}", f"{base}e{exponent}"])
    by = {"en": " to the power of ", "de": " hoch ", "es": " elevado a "}[code]
    first, _, last = heard(written, code).partition(by)
    times = {"en": " times ten", "de": " mal zehn", "es": " por diez"}[code]
    scientific = first.endswith(times)
    found = (
        listening.number(first.removesuffix(times).split(), code),
        listening.number(last.split(), code),
    )
    return written, ((base, exponent), "e" in written), (found, scientific)


KINDS = (amount, date, clock, opening, lasting, telephone, secret, measure, power)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_is_said_is_what_was_meant(kind: Callable[[str, Random], Case], code: str) -> None:
    random = Random(f"{kind.__name__} {code}")
    cases = [kind(code, random) for _ in range(EACH)]
    assert [case for case in cases if case[1] != case[2]] == []


@pytest.mark.parametrize("code", CODES)
def test_whoever_listens_understands_every_number(code: str) -> None:
    """The reading back is no echo: it finds numbers that num2words has put in words."""
    random = Random(code)
    for number in [*range(130), *(random.randrange(10**9) for _ in range(300))]:
        assert listening.number(heard(f"ab {number}, cd", code)[3:-4].split(), code) == number
