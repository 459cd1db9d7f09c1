"""English, which is always there: rules for saying written text, beside the tables of the
language."""

# ruff: noqa: RUF001 - the look-alikes among the signs are meant

from __future__ import annotations

import re
from typing import ClassVar

from voiceloop.languages.language import load
from voiceloop.languages.numbers import ISO, ROMAN, Noun, Numbers, roman
from voiceloop.languages.spoken import APART, Match, Rules, SpeakingRules, final, lead


class _EnglishNumbers(Numbers):
    code, group, decimal = "en", ",", "."
    marks: ClassVar = {".": "point", ",": "point"}

    def fraction(self, above: str, below: str) -> str:
        """Put a fraction into words: `3`, `4` -> three quarters."""
        part = {2: "half", 4: "quarter"}.get(int(below)) or self.ordinal(below)
        if int(above) == 1:
            return f"one {part}"
        return f"{self.cardinal(above)} {'halves' if part == 'half' else part + 's'}"


NUMBERS = _EnglishNumbers()
RULES = Rules()

_MONTHS = (
    "January February March April May June July August September October November December"
).split()
_MONTH = "|".join(
    rf"{name[:3]}(?:{name[3:]}|{'t?' * (name == 'September')}\.?)" if name != "May" else name
    for name in _MONTHS
)
_TO = rf"\s?[-–]\s?(\d{{1,2}})(?:st|nd|rd|th)?{APART}"
_HALF = r"(?:\s?([aApP])(?:[mM]\b|\.[mM]\b\.?))"


@RULES.add(ISO)
def _iso_date(spoken: SpeakingRules, match: Match) -> str:
    month, day = int(match[2]), int(match[3])
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return NUMBERS.digits(re.sub(r"\D", "", match[0]))
    return f"{_MONTHS[month - 1]} {NUMBERS.ordinal(str(day))}, {NUMBERS.year(match[1])}"


@RULES.add(r"(?<![\w.,:/+-])(?:555-\d{4}|[2-9]\d\d-\d{2}(?!00|50)\d\d)(?![\w-]|\s?[%°€$£])")
def _local_phone(spoken: SpeakingRules, match: Match) -> str:
    return ", ".join(map(NUMBERS.digits, match[0].split("-")))


@RULES.add(r"(?<=, [A-Z]{2} )\d{5}(?:-\d{4})?(?![\w-])|(?<![\w.,/-])\d{5}-\d\d(?!00)\d\d(?![\w-])")
def _zip(spoken: SpeakingRules, match: Match) -> str:
    return ", ".join(map(NUMBERS.digits, match[0].split("-")))


@RULES.add(
    rf"\b({_MONTH}) (\d{{1,2}})(?:st|nd|rd|th)?{APART}(?:{_TO})?"
    rf"(?:(,?) (\d{{4}}){APART})?(?![.:]\d)"
)
def _date(spoken: SpeakingRules, match: Match) -> str:
    day = f"{_month(match[1])} {_days(match[2], match[3])}"
    return f"{day}, {NUMBERS.year(match[5])}" if match[5] else day


@RULES.add(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?:{_TO})? (?:of )?({_MONTH})(?:,? (\d{{4}}))?{APART}")
def _day(spoken: SpeakingRules, match: Match) -> str:
    day = f"{_days(match[1], match[2])} of {_month(match[3])}"
    return f"{day} {NUMBERS.year(match[4])}" if match[4] else day


@RULES.add(rf"\b({_MONTH}) ((?:1[1-9]|20)\d\d){APART}")
def _month_year(spoken: SpeakingRules, match: Match) -> str:
    return f"{_month(match[1])} {NUMBERS.year(match[2])}"


@RULES.add(
    r"(?:(?<=\b[Oo]n )|(?<=\b[Bb]y )|(?<=\b[Ss]ince )|(?<=\b[Uu]ntil )"
    r"|(?<=\b[Bb]efore )|(?<=\b[Aa]fter ))"
    r"(?!\d/[2348]\b)(0?[1-9]|1[0-2])/(0?[1-9]|[12]\d|3[01])(?![\d/])"
)
def _month_day(spoken: SpeakingRules, match: Match) -> str:
    return f"{NUMBERS.integer(match[1])} {NUMBERS.integer(match[2])}"


def _days(first: str, last: str | None) -> str:
    days = [NUMBERS.ordinal(day) for day in (first, last) if day]
    return " to ".join(days)


def _month(name: str) -> str:
    return next(month for month in _MONTHS if month.startswith(name[:3]))


@RULES.add(rf"(?<![\d:.,])([01]?\d|2[0-4]):([0-5]\d)(?::([0-5]\d))?(?![\d:])(?:{_HALF}|\s?h\b)?")
def _clock(spoken: SpeakingRules, match: Match) -> str:
    hour, minute, second = (part and str(int(part)) for part in match.groups()[:3])
    half = match[4]
    if match[0] in ("00:00", "24:00"):
        return "midnight"
    said = NUMBERS.cardinal(hour)
    if minute != "0":
        said += f" {'oh ' * (match[2][0] == '0')}{NUMBERS.cardinal(minute)}"
    elif not half:
        said += " o'clock" if 0 < int(hour) < 13 else " hundred"
    if second and second != "0":
        said += f" and {NUMBERS.count(second, spoken.units['s'])}"
    return said + _half(match, half) if half else said


@RULES.add(
    rf"(?:(?<=\b[aA] )|(?<=\b[aA]n ))\$({NUMBERS.whole}(?:\.\d+(?= [mbt]))?)(?=[ -][a-z])"
    r"((?: (?:thousand|million|billion|trillion))?)"
)
def _price(spoken: SpeakingRules, match: Match) -> str:
    return f"{NUMBERS.cardinal(match[1])}{match[2]} dollar"


@RULES.add(r"(?<![\w.,])(\d\d?)p\b(?!\.)")
def _pence(spoken: SpeakingRules, match: Match) -> str:
    return NUMBERS.count(match[1], Noun("penny", "pence"))


@RULES.add(rf"(?<![\w.])(\d{{1,2}}){_HALF}")
def _hour(spoken: SpeakingRules, match: Match) -> str:
    return NUMBERS.cardinal(match[1]) + _half(match, match[2])


def _half(match: Match, letter: str) -> str:
    return f" {letter.upper()} M{final(match)}"


@RULES.add(
    r"(?:(?:'|(?i:(?<=\bthe )|(?<=\bmy )|(?<=\bhis )|(?<=\bher )|(?<=\byour )|(?<=\btheir )"
    r"|(?<!\w)(?=\d0s (?:music|rock|pop|movies?|films?|style|fashion|hits|songs?))"
    r"|(?<=\bearly )|(?<=\blate )|(?<=\bmid-)|(?<=\bmid )))(\d0)|\b((?:1[1-9]|20)\d0)"
    r"|(?:(?<=[A-Z])-?|(?<=[A-Za-z][a-z])-)(\d{1,3}))'?s\b"
)
def _decade(spoken: SpeakingRules, match: Match) -> str:
    """Put the plural of a number into words: `the 1990s`, `F-16s`."""
    words = NUMBERS.year(match[2]) if match[2] else NUMBERS.cardinal(match[1] or match[3])
    return re.sub(r"ys$", "ies", re.sub(r"xs$", "xes", f"{words}s"))


@RULES.add(rf"({NUMBERS.whole})(?:st|nd|rd|th){APART}")
def _ordinal(spoken: SpeakingRules, match: Match) -> str:
    return NUMBERS.ordinal(match[1])


@RULES.add(
    r"(?<![\d/.,])(?:(\d+)(?: |-(?=1/2|[13]/4|[12]/3|[1357]/8)))?"
    r"(\d{1,2})/(2|3|4|5|6|7|8|9|10|12|16|32|64|100)(?![\d/.]*\d)"
    rf"(?:\s?({{UNIT}}){APART})?"
)
def _fraction(spoken: SpeakingRules, match: Match) -> str:
    whole, above, below, unit = match.groups()
    if not 0 < int(above) < int(below):
        said = f"{NUMBERS.cardinal(above)} over {NUMBERS.cardinal(below)}"
    else:
        said = NUMBERS.fraction(above, below)
        if whole:
            one = "an" if below == "8" else "a"
            said = f"and {said.replace('one', one, 1) if above == '1' else said}"
    said = f"{NUMBERS.cardinal(whole)} {said}" if whole else said
    if not unit:
        return said
    return f"{said} {spoken.units[unit].many if whole else spoken.units[unit].one}"


@RULES.add(
    rf"(?:(?<=[a-z] )|(?<=[IVX], )|(?<=[a-z]\. )|(?<=[A-Z]{{2}} )(?=[IVX]{{2}}))"
    rf"(?!IV (?:line|drip|fluid|therap|antibiotic|bag|access|catheter|infusion))"
    rf"({ROMAN}|[VX]|I(?=[.,;:!?)–-]|$| (?:of|and|in|was|is|to|began|ended|"
    r"ruled|errors?|trials?|diabetes|collagen|cancer|study|studies|clinical)\b))"
    rf"{APART}(?:('s)\b|(?!'))"
)
def _roman(spoken: SpeakingRules, match: Match) -> str:
    before, number = lead(match), roman(match[1])
    owner = match[2] or ""
    if re.match(" centur", match.string[match.end() :]):
        return NUMBERS.ordinal(number)
    if re.search(
        rf"\b(?:{spoken.patterns['counted']}|(?:[Vv]ol|[Cc]h|Sec|Pt)\.) "
        r"(?:[IVX]+,? (?:and |or |to )?){0,3}$",
        before,
    ):
        return NUMBERS.cardinal(number) + owner
    ruler = re.search(rf"\b(?:{spoken.patterns['rulers']}) $", before)
    name = re.search(r"\b[A-Z][A-Za-z]+ $", before)
    if ruler or (name and int(number) < 5 and len(match[1]) > 1):
        return f"the {NUMBERS.ordinal(number)}{owner}"
    return (NUMBERS.cardinal(number) if name and len(match[1]) > 1 else match[1]) + owner


@RULES.add(
    rf"({NUMBERS.number})[ -]?in(?=\s?[=,;:)]| (?:tall|wide|long|deep|high|by|x)\b|(?<=-in)\s)"
    r"|(?<=\dft )(\d+) ?in\b|(?<=\d ft )(\d+) ?in\b"
)
def _inches(spoken: SpeakingRules, match: Match) -> str:
    return NUMBERS.count(match[1] or match[2] or match[3], spoken.units["in."])


@RULES.add(r"(?<=[a-z] )Dr\b(?!\.?\s*(?!(?:He|She|It|The|They|We|You|And|In|Call)\b)[A-Z])\.?")
def _drive(spoken: SpeakingRules, match: Match) -> str:
    street = re.search(r"\b(?!Hello|Hi |Dear|Thank|Yes|The|My|Your)[A-Z][a-z]+ $", lead(match))
    return ("Drive" if street else "Doctor") + final(match)


@RULES.add(r"\bSt\.(?=\s+[A-Z])")
def _saint(spoken: SpeakingRules, match: Match) -> str:
    return "Saint"


@RULES.add(r"\bSt\.")
def _street(spoken: SpeakingRules, match: Match) -> str:
    return "Street" + final(match)


ENGLISH = load(__name__, NUMBERS, RULES)
