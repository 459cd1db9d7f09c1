"""The rules that put written text into words, in the order in which they are tried.

`rules.toml` has the rules that all languages share. Most of them have a template for their words;
the functions of the others are here. The form of a number and the words before it decide whether it
is a telephone number or a code. Of the text after the number, only the next word counts, because
the rest may not be written yet.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from importlib.resources import files
from itertools import chain
from typing import Any

from voiceloop.languages import Language
from voiceloop.languages.numbers import YEAR
from voiceloop.languages.spoken import (
    LETTER,
    SIGNS,
    Match,
    Rule,
    SpeakingRules,
    final,
    lead,
    placed,
    placeholders,
    worded,
    written,
)

MARKS = ",;:.!?"
"""Marks from the weakest to the strongest."""
NEAR = 100
"""Number of characters before a number that are searched for words that show its kind: `PIN`."""


def rules(language: Language) -> dict[str, Rule]:
    """Return the rules of `language` by name, in the order in which they are tried."""
    file = files("voiceloop.tts") / "rules.toml"
    table: Mapping[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    spoken = language.spoken
    known = SIGNS if spoken is None else placeholders(spoken) | SIGNS
    # Only the patterns of the file are verbose.
    parts = table["parts"] | {name: f"(?-x:{part})" for name, part in known.items()}

    def filled(*groups: str) -> dict[str, Rule]:
        entries: Iterable[Mapping[str, str]] = chain.from_iterable(table[one] for one in groups)
        return {
            entry["name"]: Rule(f"(?x:{placed(entry['pattern'], parts)}\n)", _say(entry, spoken))
            for entry in entries
        }

    if spoken is None:
        return filled("unknown", "always")
    return filled("before") | spoken.own.filled(spoken, "own") | filled("after", "always")


_FUNCTIONS: dict[str, Callable[[Any, Match], str]] = {}
"""Functions of the rules without a template, by name."""


def _say(entry: Mapping[str, str], spoken: SpeakingRules | None) -> Callable[[Match], str]:
    """Return the function that puts a match of a rule into words."""
    if "say" in entry:
        return partial(worded, entry["say"], spoken)
    return partial(_FUNCTIONS[entry.get("function", entry["name"])], spoken)


def _function(say: Callable[[Any, Match], str]) -> Callable[[Any, Match], str]:
    _FUNCTIONS[say.__name__] = say
    return say


# ---- addresses


@_function
def code(spoken: SpeakingRules, match: Match) -> str:
    within = re.search(r"\w ?\Z", lead(match))
    return spoken.code_within if within else spoken.code


@_function
def link(spoken: SpeakingRules, match: Match) -> str:
    return _spelled(spoken, place_alone(None, match))


@_function
def place_alone(_: object, match: Match) -> str:
    """Return the part of a web address that is said. If the address begins with `www.` or a scheme
    such as `https://`, only its host is said; otherwise host and path."""
    scheme, _, address = match[0].rpartition("://")
    whole = not scheme and not address.startswith("www.")
    address = re.sub(r"^[^/?#]*@|^www\.|[?#].*$|/+$", "", address, flags=re.DOTALL)
    return address if whole else re.sub(r"^([^/]+?)(?:/|:\d).*", r"\1", address)


@_function
def spelled(spoken: SpeakingRules, match: Match) -> str:
    return _spelled(spoken, match[0])


def _spelled(spoken: SpeakingRules, address: str) -> str:
    numbers, said = spoken.numbers, list[str]()
    for part in re.findall(rf"{LETTER}+|\d+|.", address):
        if part.isdecimal():
            said.append(numbers.integer(part) if len(part) <= 2 else numbers.digits(part))
        else:
            said.append(spoken.address_signs.get(part, part if part.isalnum() else ""))
    return " ".join(said)


@_function
def hexadecimal(spoken: SpeakingRules, match: Match) -> str:
    """Spell a number in hexadecimal. The pairs of a network card become a list."""
    signs = dict(spoken.address_signs) | ({} if "::" in match[0] else dict.fromkeys(":- ", ","))
    said = (
        spoken.numbers.words(int(sign)) if sign.isdecimal() else signs.get(sign, sign.upper())
        for sign in match[0].removeprefix("#")
    )
    return " ".join(said).replace(" ,", ",")


@_function
def flag(spoken: SpeakingRules, match: Match) -> str:
    return " ".join([spoken.address_signs["-"]] * len(match[0].strip()))


# ---- pairs of numbers


@_function
def pair(spoken: SpeakingRules, match: Match) -> str:
    first, last = map(int, re.findall(r"\d+", match[0]))
    if match["date"] and first < 32 and last in range(1, len(spoken.months) + 1):
        return f"{spoken.numbers.words(first)} {spoken.of} {spoken.months[last - 1]}"
    return f"{spoken.numbers.words(first)} {spoken.numbers.words(last)}"


@_function
def book(spoken: SpeakingRules, match: Match) -> str:
    name = spoken.books.get(match["book"], match["book"])
    return f"{spoken.books[match['number']]} {name}" if match["number"] else name


@_function
def elapsed(spoken: SpeakingRules, match: Match) -> str:
    """Put a duration with colons into words, without parts that are zero."""
    parts = {unit: part for unit, part in match.groupdict().items() if part and part.strip("0")}
    return _lasting(spoken, parts) or spoken.numbers.count("0", spoken.units["s"])


@_function
def duration(spoken: SpeakingRules, match: Match) -> str:
    parts = match.groupdict()
    parts["minutes"] = parts["minutes"] or parts.get("bare")
    return _lasting(spoken, parts) + final(match)


def _lasting(spoken: SpeakingRules, parts: Mapping[str, str]) -> str:
    """Put hours, minutes and seconds into words, those that are in `parts`."""
    units = {"hours": "h", "minutes": "min", "seconds": "s"}
    return " ".join(
        spoken.numbers.count(
            re.sub(r"\D", spoken.numbers.decimal, re.sub(r"^0+(?=\d)", "", parts[part])),
            spoken.units[unit],
        )
        for part, unit in units.items()
        if parts.get(part)
    )


@_function
def zone(spoken: SpeakingRules, match: Match) -> str:
    """Put the zone at the end of a time stamp into words."""
    sign = spoken.minus if match["sign"] == "-" else spoken.signs["+"]
    offset = [
        spoken.numbers.words(int(part))
        for part in match.group("hours", "minutes")
        if part and int(part)
    ]
    return " ".join(["U T C", sign, *offset] if offset else ["U T C"])


@_function
def mathematics(spoken: SpeakingRules, match: Match) -> str:
    """Put a function of mathematics into words, up to its argument: `sin(`."""
    name, raised, base, letter = match.groups()
    said = [spoken.functions[name] if name else letter, spoken.signs[raised] if raised else ""]
    said += [spoken.signs["ꜜ"], spoken.numbers.integer(base)] if base else []
    return " ".join([*said, spoken.of])


# ---- telephone numbers and codes


@_function
def telephone(spoken: SpeakingRules, match: Match) -> str:
    said = _groups(spoken, re.sub(r"\(0\)", " ", match[0]))
    return f"{spoken.signs['+']} {said}" if match[0].startswith("+") else said


@_function
def grouped(spoken: SpeakingRules, match: Match) -> str:
    """Put groups of digits that are not one number into words. If all groups are years or have at
    most two digits, they become a list of numbers; otherwise they are said digit by digit."""
    groups = re.findall(r"\d+", match[0])
    if all(len(group) < 3 or YEAR.fullmatch(group) for group in groups):
        return ", ".join(spoken.numbers.standing(group, "", "") for group in groups)
    return _groups(spoken, match[0])


def _groups(spoken: SpeakingRules, number: str) -> str:
    return ", ".join(map(spoken.numbers.digits, re.findall(r"\d+", number)))


# ---- money, measures


@_function
def money(spoken: SpeakingRules, match: Match) -> str:
    found = match.groupdict()
    said = _amount(spoken, found)
    if found.get("first"):
        said = f"{spoken.numbers.cardinal(found['first'])} {spoken.to} {said}"
    if found.get("minus"):
        said = f"{spoken.minus} {said}"
    if found["per"]:
        return f"{said} {spoken.per} {spoken.units[found['per']].one}"
    return f"{said} {spoken.per}" if found["rate"] else said


def _amount(spoken: SpeakingRules, found: Mapping[str, str]) -> str:
    numbers, number, magnitude = spoken.numbers, found["number"], found["magnitude"]
    if number[0] in ".,":
        number = f"0{numbers.decimal}{number[1:]}"
    if re.search(r"[.,]\d\d$", number):  # whatever the country, these are cents
        number = re.sub(r"\D", "", number[:-3]) + numbers.decimal + number[-2:]
    elif not magnitude and re.fullmatch(r"[1-9]\d{0,2}(?:[.,]\d{3})+", number):
        number = re.sub(r"\D", "", number)
    number = numbers.ungrouped(number)
    name, coin = spoken.currencies[found.get("code") or found["sign"]]
    if magnitude:
        return f"{numbers.count(number, spoken.magnitudes[written(magnitude)])} {name.many}"
    if found.get("adjective"):
        return f"{numbers.agreeing(number, name.gender)} {name.one}"
    whole, mark, part = number.rpartition(numbers.decimal)
    if not mark or len(part) != 2:
        return numbers.count(number, name)
    if part == "00":
        return numbers.count(whole, name)
    coins = numbers.count(str(int(part)), coin)
    return f"{numbers.count(whole, name)} {spoken.coins} {coins}" if whole.strip("0") else coins


@_function
def many(spoken: SpeakingRules, match: Match) -> str:
    """Put a large number with a letter into words. A noun may follow it: `1.5M people`."""
    said = spoken.numbers.count(match["number"], spoken.magnitudes[match["magnitude"]])
    return said if match["noun"] else said.removesuffix(f" {spoken.of}")


@_function
def amperes(spoken: SpeakingRules, match: Match) -> str:
    """Put `3 A` into words. The A is a unit only near other words of electricity."""
    around = match.string[max(0, match.start() - NEAR) : match.end() + NEAR]
    near = rf"\d\s?k?[VW]\b|\d[.,]\d+\s?A\b|(?i:{spoken.currents})"
    if re.search(near, around):
        return spoken.numbers.count(match["number"], spoken.ampere)
    return f"{spoken.numbers.cardinal(match['number'])} A"


@_function
def angle(spoken: SpeakingRules, match: Match) -> str:
    units = spoken.units
    nouns = {"degrees": spoken.degree, "minutes": units["min"], "seconds": units["s"]}
    said = [spoken.numbers.count(match[it], noun) for it, noun in nouns.items() if match[it]]
    if match["compass"]:
        said.append(spoken.compass[match["compass"]])
    return " ".join(said)


@_function
def length(spoken: SpeakingRules, match: Match) -> str:
    """Put feet and inches into words. If the sign closes a quotation, the number alone is said."""
    before, (feet, inches, alone) = match.string[: match.start()], match.groups()
    if _quoted(before, '"' if alone else "'"):
        return spoken.numbers.standing(alone or feet, before, "")
    if inches:
        said = spoken.numbers.count(feet, spoken.foot)
        return f"{said} {spoken.numbers.count(inches, spoken.inch)}"
    noun, number = (spoken.inch, alone) if alone else (spoken.foot, feet)
    if re.search(rf"(?i)\b(?:{spoken.determiners}) $", before):
        return f"{spoken.numbers.agreeing(number, noun.gender)} {noun.one}"
    return spoken.numbers.count(number, noun)


@_function
def part_of_inch(spoken: SpeakingRules, match: Match) -> str:
    return "" if _quoted(match.string[: match.start()], match[0]) else spoken.inch.one


def _quoted(before: str, sign: str) -> bool:
    """Return whether a quotation that began with `sign` is still open at the end of `before`."""
    first = r"\S" if sign == '"' else r"[^\s\d]"  # not the '90s
    marks = re.findall(rf"((?<![\w.,!?)\]]){sign}(?={first}))|{sign}(?!\w)", before[-NEAR:])
    return bool(marks and marks[-1])


@_function
def measure(spoken: SpeakingRules, match: Match) -> str:
    number, unit, per, power, rate = match.groups()
    noun = spoken.units[unit]
    if match[0].startswith(f"{number}-"):  # a 5-km run
        said = f"{spoken.numbers.agreeing(number, noun.gender)} {noun.one}"
    else:
        said = spoken.numbers.count(number, noun)
    if per:
        said += f" {spoken.per} {spoken.units[per].one}"
    if power:
        said += f" {spoken.signs['²' if power[-1] in '2²' else '³']}"
    if rate:
        said += f" {spoken.per}"
    return said + (final(match) if unit.endswith(".") else "")


# ---- ranges and arithmetic


@_function
def span(spoken: SpeakingRules, match: Match) -> str:
    """Return the word for a dash between two amounts. The dash is a minus if an equals sign
    follows, or if the second amount is not larger than the first. But after a time (`10:30`), and
    in all other cases, it marks a range."""
    before, after = match.string[: match.start()], match.string[match.end() :]
    if " - " in match[0] and re.match(r"[^,;.!?\n]{0,40}=", after):
        return spoken.minus
    first, last = re.search(r"[\d.,]+$", before), re.match(r"[\d.,]+", after)
    falls = first and last and _worth(first[0]) >= _worth(last[0])
    return spoken.minus if falls and ":" not in before[-3:] else spoken.to


def _worth(number: str) -> int:
    return int(re.sub(r"\D", "", number) or 0)


@_function
def dash(spoken: SpeakingRules, match: Match) -> str:
    before = match.string[: match.start()]
    code = r"(?:^|[\s(])(?:[A-Z][^\W\d_]*-[\d.]+(?:-\d+)*|[a-z]{3,}-\d\d?)$"
    if re.search(code, before[-NEAR:]) or re.match("0\\d{2}", match.string[match.end() :]):
        return ""  # a code such as INV-2024-001
    return "," if _coded(spoken, "12345", before, "") else spoken.to


@_function
def fold(spoken: SpeakingRules, match: Match) -> str:
    """Put the x of `10x faster` into words. In an equation the x stays a letter."""
    return "x" if "=" in match.string[: match.start()] else spoken.fold


@_function
def scientific(spoken: SpeakingRules, match: Match) -> str:
    numbers, minus = spoken.numbers, [spoken.minus] * (match["sign"] == "-")
    ten, exponent = numbers.words(10), numbers.words(int(match["exponent"][:9]))
    said = (numbers.cardinal(match["number"]), spoken.times, ten, spoken.power, *minus, exponent)
    return " ".join(said)


# ---- other numbers


@_function
def day(spoken: SpeakingRules, match: Match) -> str:
    name = re.compile(rf"\b({'|'.join(spoken.calendar)})\b\.?")
    return name.sub(lambda day: spoken.calendar[day[1]], match[0])


@_function
def any_number(spoken: SpeakingRules, match: Match) -> str:
    before, after = match.string[: match.start()], match.string[match.end() :]
    if _coded(spoken, match[0], before, after):
        return _groups(spoken, match[0])
    return spoken.numbers.standing(match[0], before, after)


def _coded(spoken: SpeakingRules, number: str, before: str, after: str) -> bool:
    """Return whether the text around a number shows that people dial or type it, digit by digit."""
    dialled, dialled_is, typed, typed_is = _contexts(spoken)
    before = before[-NEAR:]
    if not number.isdecimal() or (len(number) < 3 and not re.search(r"\d-$", before)):
        return False
    counts = re.match(r"\s[^\W\d_]{4}", after)  # "is 1200 pages long"
    if typed.search(before) or (typed_is.search(before) and not counts):
        return True
    begun, rest = re.search(r"[\d-]*$", before), re.match(r"[\d-]*", after)
    length = len(number) + sum(len(part[0]) for part in (begun, rest) if part)
    known = number in spoken.short_numbers or length > 6 or (length > 4 and not counts)
    return bool((known and dialled.search(before)) or (length > 8 and dialled_is.search(before)))


@cache
def _contexts(spoken: SpeakingRules) -> tuple[re.Pattern[str], ...]:
    """Compile four patterns for the text before a number. The first two are for numbers that people
    dial, after "call" and after "my number is". The last two are for numbers that people type,
    after "PIN" and after "the code is"."""
    tail = rf"(?:(?<=[Tt]el)\.)?[\s:#=\"'(]*(?:\d[\d ,-]*(?:(?:{spoken.joins}) )?[\d -]*)?$"
    dials, codes = rf"\b(?:{spoken.dials})\b", rf"\b(?:{spoken.codes})\b"
    patterns = (
        rf"{dials}(?:[\s:,]+(?:{spoken.links})\b)*",
        rf"{dials}[^.!?;\d\n]{{0,60}}?\b(?:{spoken.tells})\b",
        codes,
        rf"{codes}[^.!?;\d\n]{{0,60}}?(?:\b(?:{spoken.tells})\b|:)",
    )
    return tuple(re.compile(pattern + tail) for pattern in patterns)


# ---- words and marks


@_function
def initialism(_: object, match: Match) -> str:
    return match[0].replace(".", " ").upper().strip() + final(match)


@_function
def mark(_: object, match: Match) -> str:
    strongest = max(match[0], key=MARKS.index)
    # Several dots before a small letter are a pause. Elsewhere they end the sentence.
    goes_on = re.match(r"\s+([^\W\d_])", match.string[match.end() :])
    trails = strongest == "." and len(match[0]) > 1 and goes_on and goes_on[1].islower()
    return "," if trails else strongest
