"""The rules by which written things are said: each a pattern and the words for what it matches.

Order matters: at each place the first rule that matches takes its piece, and the last one takes any
character, silently. A rule looks at the text around its piece but takes no more than that. A result
that is only a mark goes to the word before; a line break becomes a period where there is no mark.
English only. This module does not know where the pieces come from.
"""

# ruff: noqa: RUF001 - the look-alikes among the signs are meant

from __future__ import annotations

import re
from collections.abc import Callable

from voiceloop.tts.numbers import (
    CURRENCIES,
    UNITS,
    cardinal,
    digits,
    fraction,
    money,
    ordinal,
    plural,
    unit,
    year,
)
from voiceloop.tts.plain import KNOWN

LETTER = rf"[^\s\d!-/:-@\[-`{{-~{re.escape(KNOWN)}]"
NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)*)"
WHOLE = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)"
SIGN = f"[{''.join(CURRENCIES)}]"
UNIT = "|".join(re.escape(name) for name in sorted(UNITS, key=len, reverse=True))
APART = r"(?![^\W_])"
"""No letter or digit follows."""
MARKS = ",;:.!?"
"""From the weakest to the strongest; where several meet, the strongest is kept."""

MONTHS = "January February March April May June July August September October November December"
MONTH = "|".join(
    rf"{name[:3]}(?:{name[3:]}|t?\.)" if name != "May" else name for name in MONTHS.split()
)

WITH_DOT = {
    "Gen": "General", "Gov": "Governor", "Sen": "Senator", "Rep": "Representative",
    "Capt": "Captain", "Col": "Colonel", "Lt": "Lieutenant", "Sgt": "Sergeant", "Rev": "Reverend",
    "Co": "Company", "Corp": "Corporation", "Inc": "Incorporated", "Fig": "Figure", "fig": "figure",
    "Ave": "Avenue", "Rd": "Road", "Mt": "Mount", "dept": "department", "Dept": "Department",
}  # fmt: skip
"""Abbreviations only where a period follows."""
WITHOUT_DOT = {
    "Mr": "Mister", "Mrs": "Missus", "Ms": "Miz", "Dr": "Doctor", "Prof": "Professor",
    "Jr": "Junior", "Sr": "Senior", "Ltd": "Limited", "vs": "versus", "etc": "et cetera",
    "approx": "approximately", "Ph.D": "P H D", "PhD": "P H D", "Blvd": "Boulevard",
}  # fmt: skip
"""Abbreviations with or without a period."""
LATIN = {"e.g": "for example", "i.e": "that is"}
SIGNS = {
    "+": "plus", "=": "equals", "×": "times", "÷": "divided by", "±": "plus or minus", "≈": "about",
    "≤": "less than or equal to", "≥": "greater than or equal to", "≠": "is not equal to",
    "&": "and", "@": "at", "%": "percent", "°": "degrees",
}  # fmt: skip
ADDRESS_SIGNS = {
    ".": "dot", "/": "slash", "-": "dash", "_": "underscore", "@": "at", "+": "plus", "~": "tilde",
    ":": "colon",
}  # fmt: skip
ROMAN = (
    "II",
    "III",
    "IV",
    "V",
    "VI",
    "VII",
    "VIII",
    "IX",
    "X",
    "XI",
    "XII",
    "XIII",
    "XIV",
    "XV",
    "XVI",
)
COUNTED = "War|Chapter|Part|Act|Volume|Book|Phase|Type|Level|Episode|Section|Class|Stage"

Match = re.Match[str]
RULES: dict[str, tuple[str, Callable[[Match], str]]] = {}


def _rule(pattern: str) -> Callable[[Callable[[Match], str]], Callable[[Match], str]]:
    """Add a rule after those above it: `pattern`, and the words that its match is said as."""

    def add(say: Callable[[Match], str]) -> Callable[[Match], str]:
        RULES[say.__name__] = (pattern, say)
        return say

    return add


def _final(match: Match) -> str:
    """The period of an abbreviation where it ends the sentence too."""
    rest = match.string[match.end() :].lstrip("\"')]")
    return "." if match[0].endswith(".") and not rest.strip() else ""


def _abbreviated(match: Match, words: str) -> str:
    return words + _final(match)


# ---- the rules, in the order in which they are tried


@_rule(r"[^\s@<>\"(),;:\[\]]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
def _email(match: Match) -> str:
    return _address(match[0])


@_rule(
    r"(?:(?:https?|ftp)://|www\.)[^\s<>\"]*[^\s<>\".,;:!?)\]}'*_]"
    r"|(?<![\w.])(?:[a-z0-9-]+\.)+(?:com|org|net|edu|gov|io|ai|dev|app|co\.uk|eu|de)"
    r"(?![\w-])(?:/[^\s<>\"]*[^\s<>\".,;:!?)\]}'*_])?"
)
def _link(match: Match) -> str:
    address = re.sub(r"^(?:\w+://)?(?:www\.)?|[?#].*$|/+$", "", match[0], flags=re.DOTALL)
    return _address(address)


def _address(address: str) -> str:
    said = list[str]()
    for part in re.findall(rf"{LETTER}+|\d+|.", address):
        if part.isdecimal():
            said.append(cardinal(part) if len(part) <= 2 else digits(part))
        else:
            said.append(ADDRESS_SIGNS.get(part, part if part.isalnum() else ""))
    return " ".join(said)


@_rule(r"(?<![\w/])(\d{4})-(\d\d)-(\d\d)(?![\w-])")
def _iso_date(match: Match) -> str:
    month, day = int(match[2]), int(match[3])
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return digits(match[0].replace("-", ""))
    return f"{MONTHS.split()[month - 1]} {ordinal(str(day))}, {_year(match[1])}"


@_rule(r"(?:\+\d{1,3}[ -])?(?:\(\d{3}\) ?|\d{3}[-. ])\d{3}[-. ]\d{4}(?!\d)|\d{3}-\d{4}(?!\d)")
def _phone(match: Match) -> str:
    groups = re.findall(r"\d+", match[0])
    return ", ".join(digits(group) for group in groups)


@_rule(rf"\b({MONTH}) (\d{{1,2}})(?:st|nd|rd|th)?{APART}(?:(,?) (\d{{4}}){APART})?(?![.:]\d)")
def _date(match: Match) -> str:
    day = f"{_month(match[1])} {ordinal(match[2])}"
    return f"{day}, {_year(match[4])}" if match[4] else day


@_rule(rf"\b(\d{{1,2}})(?:st|nd|rd|th)? (?:of )?({MONTH})(?: (\d{{4}}))?{APART}")
def _day(match: Match) -> str:
    day = f"{ordinal(match[1])} of {_month(match[2])}"
    return f"{day} {_year(match[3])}" if match[3] else day


def _month(name: str) -> str:
    return next(month for month in MONTHS.split() if month.startswith(name[:3]))


def _year(number: str) -> str:
    return year(number) if 1100 <= int(number) < 2100 else cardinal(number)


@_rule(
    r"(?<![\d:.,])([01]?\d|2[0-4]):([0-5]\d)(?::([0-5]\d))?(?![\d:])(?:\s?([aApP])(?:[mM]\b|\.[mM]\b\.?))?"
)
def _clock(match: Match) -> str:
    hour, minute, second, half = match.groups()
    if second:
        said = (
            f"{cardinal(str(int(hour)))} {cardinal(str(int(minute)))} {cardinal(str(int(second)))}"
        )
    elif minute == "00":
        said = cardinal(str(int(hour))) + (" o'clock" if not half and 0 < int(hour) < 13 else "")
        said += " hundred" if not half and not 0 < int(hour) < 13 else ""
    else:
        said = (
            f"{cardinal(str(int(hour)))} {'oh ' * (minute[0] == '0')}{cardinal(str(int(minute)))}"
        )
    return _abbreviated(match, f"{said} {half.upper()} M") if half else said


@_rule(r"(?<![\w.])(\d{1,2})\s?([aApP])(?:[mM]\b|\.[mM]\b\.?)")
def _hour(match: Match) -> str:
    return _abbreviated(match, f"{cardinal(match[1])} {match[2].upper()} M")


@_rule(
    rf"({SIGN})\s?({NUMBER})(?:\s?(hundred|thousand|million|billion|trillion|bn|tn|[kKmMbB]){APART})?"
)
def _money(match: Match) -> str:
    return money(*match.groups())


@_rule(rf"({NUMBER})\s?%")
def _percent(match: Match) -> str:
    return f"{cardinal(match[1])} percent"


@_rule(rf"({NUMBER})\s?°\s?([CFK]){APART}")
def _temperature(match: Match) -> str:
    scale = {"C": "Celsius", "F": "Fahrenheit", "K": "Kelvin"}[match[2]]
    return f"{cardinal(match[1])} degree{'s' * (match[1] != '1')} {scale}"


@_rule(r"(?:'(\d0)|\b((?:1[1-9]|20)\d0))'?s\b")
def _decade(match: Match) -> str:
    return plural(year(match[2]) if match[2] else cardinal(match[1]))


@_rule(rf"({NUMBER})\s?({UNIT})(?:/({UNIT}))?{APART}(?: (squared|cubed)\b)?(?:\.(?=\s+[a-z]))?")
def _measure(match: Match) -> str:
    number, name, per, power = match.groups()
    said = [cardinal(number), unit(name, one=number == "1")]
    if power:
        said.insert(1, {"squared": "square", "cubed": "cubic"}[power])
    if per:
        said += ["per", unit(per, one=True)]
    return " ".join(said) + (_final(match) if name == "in." else "")


@_rule(rf"({WHOLE})(?:st|nd|rd|th){APART}")
def _ordinal(match: Match) -> str:
    return ordinal(match[1])


@_rule(r"(\d{1,2})/(\d{1,2})/(\d{4})(?![\d/])")
def _numeric_date(match: Match) -> str:
    return f"{cardinal(match[1])} {cardinal(match[2])} {_year(match[3])}"


@_rule(
    r"(?<![\d/.,])(?:(\d+) )?(\d{1,2})/(2|3|4|5|6|7|8|9|10|12|16|32|64|100)(?![\d/.]*\d)"
    rf"(?:\s?({UNIT}){APART})?"
)
def _fraction(match: Match) -> str:
    whole, above, below, name = match.groups()
    if not 0 < int(above) < int(below):
        said = f"{cardinal(above)} over {cardinal(below)}"
    else:
        said = fraction(above, below)
        if whole:
            said = f"and {said.replace('one', 'a', 1) if above == '1' else said}"
    said = f"{cardinal(whole)} {said}" if whole else said
    return f"{said} {unit(name, one=not whole)}" if name else said


@_rule(
    r"(?<=[\d%])\s*=\s*-?(?=\d)|(?<=\d)-(?=[\d.,]+\s*=)|(?<=[\d)])\s+-\s+(?=[\d(])|(?<=\b[a-z])\s+-\s+(?=\d|[a-z]\b)"
)
def _arithmetic(match: Match) -> str:
    return " ".join({"=": "equals", "-": "minus"}[sign] for sign in re.findall("[=-]", match[0]))


@_rule(rf"(?<=[\d%])(?:\s?–\s?|-)(?={SIGN}?\d)")
def _range(match: Match) -> str:
    return "to"


@_rule(rf"(?<![^\s(\[=<>≤≥≈±×÷*/+\"'])-(?={SIGN}?\.?\d)")
def _negative(match: Match) -> str:
    return "minus"


@_rule(r"(?<=\d)(\s?)[x*](\s?)(?=-?\d)|(?<=[\w)])\s\*\s(?=[\w(])")
def _times(match: Match) -> str:
    return "times" if match[0].strip() == "*" or match[1] else "by"


@_rule(r"(?<=\d):(?=\d)")
def _ratio(match: Match) -> str:
    return "to"


@_rule(r"(?<=\d)\s?/\s?(?=\d)")
def _divided(match: Match) -> str:
    return "divided by" if " " in match[0] else "over"


@_rule(r"(?<=\w)\s?\^\s?(?=[\w(-])")
def _power(match: Match) -> str:
    return "to the power of"


@_rule(r"(?<=[\w)]\s)([<>])(?=\s[\w(-])")
def _comparison(match: Match) -> str:
    return "less than" if match[1] == "<" else "greater than"


@_rule(r"(?<!\w)#(?=\d)|\b(?:No|Nos|no)\.\s?(?=\d)")
def _number_sign(match: Match) -> str:
    return "number"


@_rule(r"~(?=\d)")
def _about(match: Match) -> str:
    return "about"


@_rule(r"(?<![\d.])((?:1[1-9]|20)\d\d)(?![\d.,]*\d)")
def _bare_year(match: Match) -> str:
    return year(match[1])


@_rule(NUMBER)
def _number(match: Match) -> str:
    return cardinal(match[0])


@_rule(r"(?<!\w)\.(?=\d)")
def _point(match: Match) -> str:
    return "point"


@_rule(rf"(?<=[a-z] )({'|'.join(sorted(ROMAN, key=len, reverse=True))}){APART}(?!')")
def _roman(match: Match) -> str:
    value = str(ROMAN.index(match[1]) + 2)
    before = match.string[: match.start()]
    if re.search(rf"\b(?:{COUNTED}) $", before):
        return cardinal(value)
    if len(match[1]) > 1 and re.search(r"\b[A-Z][a-z]+ $", before):
        return f"the {ordinal(value)}"
    return match[1]


@_rule(r"\bSt\.(?=\s+[A-Z])")
def _saint(match: Match) -> str:
    return "Saint"


@_rule(r"\bSt\.")
def _street(match: Match) -> str:
    return _abbreviated(match, "Street")


@_rule(
    rf"\b({'|'.join(map(re.escape, LATIN))})\.,?",
)
def _latin(match: Match) -> str:
    return _abbreviated(match, LATIN[match[1]])


@_rule(rf"\b({'|'.join(WITH_DOT)})\.|\b({'|'.join(map(re.escape, WITHOUT_DOT))}){APART}\.?")
def _abbreviation(match: Match) -> str:
    return _abbreviated(match, WITH_DOT[match[1]] if match[1] else WITHOUT_DOT[match[2]])


@_rule(rf"(?<![\w.])(?:{LETTER}\.){{2,}}")
def _initialism(match: Match) -> str:
    return _abbreviated(match, match[0].replace(".", " ").upper().strip())


@_rule(r"(?<![\w.'])([A-HJ-Z])\.(?=\s+[A-Z])")
def _initial(match: Match) -> str:
    return match[1]


@_rule(rf"{LETTER}+(?:['-]+{LETTER}+)*")
def _word(match: Match) -> str:
    return match[0]


@_rule(r"(?<![^\W_])\.(?=[a-zA-Z])|(?<=\w)\.(?=[a-z\d])")
def _dot(match: Match) -> str:
    return "dot"


@_rule(r"[.,;:!?]+")
def _mark(match: Match) -> str:
    mark = max(match[0], key=MARKS.index)
    # Three dots trail off within a sentence and end it only where something new begins.
    trails = (
        mark == "." and len(match[0]) > 1 and re.match(r"\s+[a-z]", match.string[match.end() :])
    )
    return "," if trails else mark


@_rule(r"\s*(?:--+|[–—])\s*|\s+-(?=\s|$)|(?<=\s)[(\[{]|[)\]}](?=\s+\w)|\|")
def _pause(match: Match) -> str:
    return ","


@_rule(r"\s*\n\s*")
def _line(match: Match) -> str:
    return "\n"


@_rule(rf"[{re.escape(''.join(SIGNS))}]")
def _sign(match: Match) -> str:
    return SIGNS[match[0]]


@_rule(r"(?s:.)")
def _silent(match: Match) -> str:
    return ""
