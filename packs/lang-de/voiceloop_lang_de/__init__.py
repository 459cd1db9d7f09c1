"""German for voiceloop: rules for saying written text, beside the tables of the language.

Verbs come last in subordinate clauses, and in main clauses their prefixes come last ("Mach das
Licht an", "Wann geht die Sonne unter?", "Weißt du, wie spät es ist?"). So a verb is an unfinished
ending only after certain words, and so is a preposition that is also a prefix.
"""

# ruff: noqa: RUF001 - the look-alikes among the signs are meant

from __future__ import annotations

import re
from typing import ClassVar

from voiceloop.languages.language import load
from voiceloop.languages.numbers import ISO, ROMAN, Gender, Noun, Numbers, roman
from voiceloop.languages.spoken import APART, LETTER, Match, Rules, SpeakingRules, final, lead


class _GermanNumbers(Numbers):
    code, group, decimal = "de", ".", ","
    marks: ClassVar = {",": "Komma", ".": "Punkt"}

    def agreeing(self, number: str, gender: Gender) -> str:
        """Put `number` into words in its form before a noun: ein Kilometer, eine Stunde."""
        if number == "1":
            return "eine" if gender == "f" else "ein"
        return self.cardinal(number)

    def standing(self, number: str, before: str, after: str) -> str:
        """Put `number` into words. The number 1 before a noun agrees with it: ein Tag, eine Minute,
        but Kapitel eins."""
        counts = number == "1" and re.match(r" [A-ZÄÖÜ][^\W\d_]{2}", after)
        if not counts or re.search(r"\b[A-ZÄÖÜ]\w* $", before):
            return super().standing(number, before, after)
        feminine = r" \w+(?:e|ung|heit|keit|schaft|ion|tät|in|son)\b"
        return self.agreeing(number, "f" if re.match(feminine, after) else "m")

    def inflected(self, number: str, before: str, *, alone: str) -> str:
        """Put `number` into words as an ordinal with its ending. The text `before` it decides the
        ending; if it does not, the ending is `alone`: n, r or empty."""
        return self.ordinal(number) + _ending(before, alone)


NUMBERS = _GermanNumbers()
RULES = Rules()

_MONTHS = (
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"
).split()
_SHORT = {name[:3]: name for name in _MONTHS if name != "Mai"} | {"Sept": "September"}
_MONTH = "|".join([*_MONTHS, "Jänner", *(rf"{name}(?:\.|(?= \d{{4}}\b))" for name in _SHORT)])
_WEEKDAY = "Mo|Di|Mi|Do|Fr|Sa|So"
_WEAK = (
    r"(?:am|im|vom|zum|zur|beim|ans|ins|bis|ab|seit|vor|nach|dem|den|des|einem|einen|einer|eines)"
)
_STRONG = r"(?:der|die|das|ein|eine|jede|jeder|jedes|diese|dieser|dieses)"
_DATIVE = r"\b(?:in|an|auf|aus|bei|mit|nach|seit|von|vor|zu|unter|über|neben|zwischen) der $"
_DETERMINERS = (
    rf"\b(?:{_WEAK}|{_STRONG}|jede[nm]|diese[nm]|(?:mein|dein|sein|ihr|unser)e?[nmrs]?|und|oder)"
)


def _ending(before: str, alone: str) -> str:
    """Return the last letter of an ordinal that follows the text `before`: n in `am dritten`, r in
    `ein dritter`, empty in `der dritte`. If no word decides, return `alone`."""
    before = before.rstrip() + " "
    if re.search(rf"(?i){_DATIVE}|\b(?:{_WEAK}|jede[nm]|diese[nm]|\w+em) $", before):
        return "n"
    if re.search(r"(?i)\b(?:ein|mein|dein|sein|unser) $", before):
        return "r"
    if re.search(rf"(?i)\b{_STRONG} $", before):
        return ""
    if pair := re.search(r"(\S+ (?:und|oder)|\d\.,) $", before):
        return _ending(before[: pair.start(1)], alone)
    return alone


def _date(match: Match, day: str, month: str, year: str | None) -> str:
    said = NUMBERS.inflected(day, re.sub(r"(?<=\d\.)[-–]$", " bis", lead(match)), alone="r")
    said += f" {month}"
    return f"{said} {NUMBERS.year(year)}" if year else said


_HALVES = {"m": "ein halber", "f": "eine halbe", "n": "ein halbes"}
_GENDERS = {
    **dict.fromkeys("Tag Monat Löffel Apfel Becher Bund Liter Kuchen Teller".split(), "m"),
    **dict.fromkeys("Kilo Jahr Brot Glas Dutzend Huhn Prozent Hähnchen Stück".split(), "n"),
}


@RULES.add(ISO)
def _iso_date(spoken: SpeakingRules, match: Match) -> str:
    month, day = int(match[2]), int(match[3])
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return NUMBERS.digits(re.sub(r"\D", "", match[0]))
    return _date(match, str(day), _MONTHS[month - 1], match[1])


@RULES.add(r"(?<![\d.,])(0[1-9]|[12]\d|3[01])\.(0[1-9]|1[0-2])\.(\d\d)(?![\w.])")
def _short_date(spoken: SpeakingRules, match: Match) -> str:
    day = NUMBERS.inflected(str(int(match[1])), lead(match), alone="r")
    return f"{day} {_MONTHS[int(match[2]) - 1]} {NUMBERS.integer(match[3])}"


@RULES.add(
    r"(?<![\d.,])(0?[1-9]|[12]\d|3[01])\.\s?(0?[1-9]|1[0-2])\.(?:\s?(\d{4})(?!\.?\d)|(?!\d))"
)
def _numeric_date(spoken: SpeakingRules, match: Match) -> str:
    before, after = lead(match), match.string[match.end() :]
    if (
        match[3]
        or re.search(rf"(?i)(?:{_DETERMINERS}|tag,|\b(?:{_WEEKDAY})\.?,) $", before)
        or re.match(r"\s+[a-zäöü]|[-–]\d{1,2}\.\d{1,2}\.", after)
        or re.search(r"\d\.[-–]$", before)
    ):
        said = _date(match, str(int(match[1])), _MONTHS[int(match[2]) - 1], match[3])
        return said + final(match)
    return f"{NUMBERS.cardinal(match[1])} Punkt {NUMBERS.cardinal(match[2])} ."


@RULES.add(r"(?<=\d\.)[-–](?=\d{1,2}\.\d{1,2}\.)")
def _until(spoken: SpeakingRules, match: Match) -> str:
    return "bis"


@RULES.add(rf"(?<![\d.,])(\d{{1,2}})\.\s?[-–]\s?(\d{{1,2}})\.(?=\s+({_MONTH})|\s|$)")
def _ordinals(spoken: SpeakingRules, match: Match) -> str:
    before = lead(match)
    days = (NUMBERS.inflected(day, before, alone="r" * bool(match[3])) for day in match.group(1, 2))
    return " bis ".join(days) + final(match)


@RULES.add(rf"(?<![\d.,])(\d{{1,2}})\. ({_MONTH})(?:(?<=\w) (\d{{4}})|(?<=\.) (\d{{4}}))?{APART}")
def _day(spoken: SpeakingRules, match: Match) -> str:
    month = next((one for one in _MONTHS if one[:3] == match[2][:3]), match[2])
    return _date(match, match[1], month, match[3] or match[4]) + final(match)


@RULES.add(r"(?<=\d, )\d{5}(?= [A-ZÄÖÜ])")
def _postcode(spoken: SpeakingRules, match: Match) -> str:
    return NUMBERS.digits(match[0])


@RULES.add(
    r"(?<![\d:.,])([01]?\d|2[0-4])(?::([0-5]\d)(?::([0-5]\d))?(?![\d:])(?:\s?(?:Uhr|h)\b)?"
    r"|\.([0-5]\d)(?: Uhr\b|(?= ?(?:[-–]|bis|und) ?\d\d?(?:[.:]\d\d)? Uhr\b))"
    r"| Uhr (?:([0-5]?\d)(?![\w.,:]\w))| Uhr\b)"
)
def _clock(spoken: SpeakingRules, match: Match) -> str:
    minute = next((part for part in match.group(2, 4, 5) if part), "0")
    said = f"{NUMBERS.agreeing(str(int(match[1])), 'n')} Uhr"
    if int(minute):
        said += f" {NUMBERS.cardinal(str(int(minute)))}"
    if match[3] and int(match[3]):
        said += f" und {NUMBERS.count(str(int(match[3])), Noun('Sekunde', 'Sekunden', 'f'))}"
    return said


@RULES.add(r"(?<![\d.,])1 (Mio|Mrd)\b\.?(?= [^\W\d_]{4})")
def _million(spoken: SpeakingRules, match: Match) -> str:
    return "eine Million" if match[1] == "Mio" else "eine Milliarde"


@RULES.add(rf"\b((?:1[1-9]|20)?\d0|[2-9](?=er-))(ern?){APART}")
def _decade(spoken: SpeakingRules, match: Match) -> str:
    return NUMBERS.year(match[1]) + match[2]


@RULES.add(
    r"(?<![\d/.,])(?:(\d+) )?(\d{1,2})/(2|3|4|5|6|7|8|9|10|12|16|100)(?![\d/.]*\d)"
    rf"(?:\s?({{UNIT}}){APART})?"
)
def _fraction(spoken: SpeakingRules, match: Match) -> str:
    whole, above, below, unit = match.groups()
    counted = spoken.units[unit] if unit else None
    if not 0 < int(above) < int(below):
        said = f"{NUMBERS.cardinal(above)} durch {NUMBERS.cardinal(below)}"
    elif below != "2":
        said = f"{NUMBERS.agreeing(above, 'n')} {NUMBERS.ordinal(below)}l"
    elif whole:
        return f"{NUMBERS.agreeing(whole, 'n')}einhalb" + (f" {counted.many}" if counted else "")
    elif counted:
        return f"{_HALVES[counted.gender]} {counted.one}"
    else:
        thing = re.match(r"\s+([A-ZÄÖÜ]\w*)", match.string[match.end() :])
        gender = thing and _gender(spoken, thing[1])
        return _HALVES.get(gender or "", "ein halb")
    if whole:
        said = f"{NUMBERS.cardinal(whole)} {said}"
    return f"{said} {counted.one}" if counted else said


def _gender(spoken: SpeakingRules, noun: str) -> str:
    """Return the gender of `noun`; empty if it is not known."""
    of_units = (unit.gender for unit in spoken.units.values() if unit.one == noun)
    # Most nouns in -e are feminine: eine halbe Tasse.
    return _GENDERS.get(noun) or next(of_units, "f" * noun.endswith("e"))


# "Wähle 110 oder 112." ends with a number, not with an ordinal.
@RULES.add(
    r"(?<![\d.,])(?!(?:(?<=und )(?<!\d\. und )|(?<=oder )(?<!\d\. oder )|11)\d+\.[\"')]*\s*$)"
    r"(\d{1,3})\.(?=\s+[^\W\d_]|,\s\d|[\"')]*\s*$)"
)
def _ordinal(spoken: SpeakingRules, match: Match) -> str:
    before, after = lead(match), match.string[match.end() :]
    determined = re.search(rf"(?i){_DETERMINERS}\s$", before)
    if determined or re.match(r"\s+[a-zäöü]|,\s\d", after):
        return NUMBERS.inflected(match[1], before, alone="") + final(match)
    masculine, feminine, neuter = map(spoken.patterns.get, ("masculine", "feminine", "neuter"))
    if counted := re.match(rf"\s+(?:({masculine})|({feminine})|(?:{neuter}))\b", after):
        return NUMBERS.ordinal(match[1]) + ("r" if counted[1] else "" if counted[2] else "s")
    return f"{NUMBERS.cardinal(match[1])} ."


@RULES.add(rf"({NUMBERS.number})\s?%-?(ig(?:e[nmrs]?)?){APART}")
def _percentage(spoken: SpeakingRules, match: Match) -> str:
    return f"{NUMBERS.cardinal(match[1])}prozent{match[2]}"


@RULES.add(
    rf"(?<![^\s(])({ROMAN}|[IVX])\.(?=\s(?:({{MASCULINE}})|({{FEMININE}})|(?:{{NEUTER}}))\b)"
    rf"|(?<=[a-zäöüß] )({ROMAN}|[IVX])(?:\.|(?={APART}))(?!')"
)
def _roman(spoken: SpeakingRules, match: Match) -> str:
    number, before = roman(match[1] or match[4]), lead(match)
    if match[1]:
        ending = "r" if match[2] else "" if match[3] else "s"
        return NUMBERS.inflected(number, before, alone=ending)
    if re.search(rf"\b(?:{spoken.patterns['counted']}) $", before):
        return NUMBERS.cardinal(number) + final(match)
    if match[0].endswith(".") and (name := re.search(r"([A-ZÄÖÜ]\w+) $", before)):
        queen = name[1] in ("Elisabeth", "Katharina", "Maria", "Margarethe", "Isabella")
        return f"{'die' if queen else 'der'} {NUMBERS.ordinal(number)}{final(match)}"
    if match[0].endswith(".") and re.search(rf"(?i){_DETERMINERS} $", before):
        return NUMBERS.inflected(number, before, alone="") + final(match)
    if len(match[4]) == 1 or match[0].endswith("."):
        return match[4] + final(match)
    return NUMBERS.cardinal(number)


@RULES.add(rf"({LETTER}{{2,}})(?:str\.|pl\.(?=\s?\d))")
def _street(spoken: SpeakingRules, match: Match) -> str:
    return match[1] + ("straße" if "str." in match[0] else "platz") + final(match)


GERMAN = load(__name__, NUMBERS, RULES)
