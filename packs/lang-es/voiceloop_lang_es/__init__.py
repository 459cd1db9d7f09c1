"""Spanish for voiceloop: rules for saying written text, beside the tables of the language.

Prepositions, articles and the pronouns before a verb never end a sentence. Accents tell words apart
("qué", "tú", "mí", "sé"), but recognisers leave some out. So finished endings are listed without
accents too ("no se", "para tu").
"""

from __future__ import annotations

import re
from typing import ClassVar

from voiceloop.languages.language import load
from voiceloop.languages.numbers import ISO, ROMAN, Gender, Noun, Numbers, roman
from voiceloop.languages.spoken import APART, Match, Rules, SpeakingRules, final, lead

_NO_NOUN = (
    r"(?:más|menos|por|entre|con|que|para|son|era|fue|como|está|están|hasta|desde|pero|sin"
    r"|sobre|igual|elevado|grados|punto|coma|dividido|multiplicado)"
)
"""Pattern of words that may follow a number but are not the noun that it counts."""
_IN_A = (
    r"(?:días?|mapas?|planetas?|problemas?|sistemas?|programas?|temas?|idiomas?|climas?"
    r"|poemas?|dilemas?|esquemas?|síntomas?|diplomas?|gramas?|dálmatas|cometas?|sofás?|papás?"
    r"|poetas?)\b"
)
"""Pattern of masculine nouns that end with a."""
_FEMININE = (
    r"(?:[^\W\d_]+as?|ve(?:z|ces)|manos?|fotos?|motos?|noches?|partes?|clases?|calles?|naves?"
    r"|llaves?|leyes|ley|fuentes?|flor(?:es)?|imagen|imágenes|mujer(?:es)?|[^\W\d_]+(?:[cs]ión"
    r"|[cs]iones|[dt]ad(?:es)?|tud|umbres?))"
)


class _SpanishNumbers(Numbers):
    code, group, decimal = "es", ".", ","
    marks: ClassVar = {",": "coma", ".": "punto"}

    def fractional(self, number: str) -> str:
        """Put decimals into words, pairs as one number: 14 -> catorce, but 05 -> cero cinco."""
        pair = len(number) == 2 and not number.startswith("0")
        return self.integer(number) if pair else self.digits(number)

    def agreeing(self, number: str, gender: Gender) -> str:
        """Put `number` into words that agree with a noun: veintiuna horas, veintiún euros."""
        said = self.cardinal(number)
        if gender == "n" or self.marks[self.decimal] in said:
            return said
        if gender == "m":
            return re.sub(r"veintiuno$", "veintiún", re.sub(r"\buno$", "un", said))
        # Only the part below a million agrees with the noun: doscientos millones de libras.
        above, million, below = said.rpartition("illones ")
        below = re.sub(r"uno$", "una", below)
        return above + million + re.sub(r"(ciento|quinient|cient)os\b", r"\1as", below)

    def standing(self, number: str, before: str, after: str) -> str:
        """Put `number` into words that agree with the noun after it: una hora, veintiún días."""
        if not re.match(rf" (?!{_NO_NOUN}\b)[^\W\d_A-Z]{{3,}}", after):
            return self.cardinal(number)
        return self.agreeing(number, "f" if re.match(rf" (?!{_IN_A}){_FEMININE}\b", after) else "m")

    def count(self, number: str, counted: Noun) -> str:
        said = super().count(number, counted)
        return re.sub(r"(illón|illones) (?!de )", r"\1 de ", said) if self.even(number) else said

    def even(self, number: str) -> bool:
        """Return whether `number` is a whole number of millions. Such a number takes "de" before a
        noun: dos millones de euros."""
        return bool(re.search(r"[1-9]0{6,}$", self.ungrouped(number)))

    def words(self, number: int, to: str = "cardinal") -> str:
        # num2words says veintiuno mil and treinta y uno millones, which is wrong.
        said = re.sub(r"veintiuno (?=mil|\w+illones)", "veintiún ", super().words(number, to))
        return re.sub(r"\buno (?=mil|\w+illones)", "un ", said)

    def year(self, number: str) -> str:
        return self.words(int(number))


NUMBERS = _SpanishNumbers()
RULES = Rules()

_MONTHS = (
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"
).split()
_SHORT = {name[:3]: name for name in _MONTHS} | {"sept": "septiembre"}
_HALF = r"(?:\s?([ap])\.?\s?m\b\.?)"


@RULES.add(ISO)
def _iso_date(spoken: SpeakingRules, match: Match) -> str:
    return _date(match[3], match[2], match[1]) or NUMBERS.digits(re.sub(r"\D", "", match[0]))


@RULES.add(
    rf"(?<![\w.,/])(\d{{1,2}})(?: | de |[-/])({'|'.join(_SHORT)})(?![^\W\d_])\.?"
    r"(?:(?: | de |[-/])(\d{4})(?!\d))?"
)
def _short_month(spoken: SpeakingRules, match: Match) -> str:
    said = f"{NUMBERS.words(int(match[1]))} de {_SHORT[match[2]]}"
    return f"{said} de {NUMBERS.year(match[3])}" if match[3] else said


@RULES.add(
    r"(?<![\d/.,-])(\d{1,2})[/.-](\d{1,2})(?:[/.-](\d{4})|(?<![.-]\d)(?<![.-]\d\d)/(\d\d))(?![\d/-]|[.,]\d)"
)
def _numeric_date(spoken: SpeakingRules, match: Match) -> str:
    day, month, year = filter(None, match.groups())
    return _date(day, month, year) or " ".join(NUMBERS.integer(part) for part in (day, month, year))


def _date(day: str, month: str, year: str) -> str:
    """Put a date into words. Return an empty string if there is no such date."""
    if not 1 <= int(month) <= 12 or not 1 <= int(day) <= 31:
        return ""
    name = _MONTHS[int(month) - 1]
    return f"{NUMBERS.words(int(day))} de {name} de {NUMBERS.year(year)}"


@RULES.add(
    r"(?<![\w.,:/+-])[6-9]\d{2}[ \u202f]\d{3}[ \u202f](?!000)\d{3}(?![ \u202f]?\d|\s?[€$£%])"
    r"|(?<=\d, )\d{5}(?= [A-ZÁÉÍÓÚ])"
)
def _phone(spoken: SpeakingRules, match: Match) -> str:
    return ", ".join(NUMBERS.digits(group) for group in re.findall(r"\d+", match[0]))


@RULES.add(
    rf"(?<![\d:.,])([01]?\d|2[0-4]):([0-5]\d)(?::([0-5]\d))?(?![\d:])(?:{_HALF}|\s?(?:horas|h|hs|hrs)\b\.?)?"
)
def _clock(spoken: SpeakingRules, match: Match) -> str:
    hour, minute = int(match[1]), int(match[2])
    said = _hour_words(hour)
    if match[3] and int(match[3]):
        said += f" {NUMBERS.words(minute)} y {NUMBERS.count(str(int(match[3])), _SECOND)}"
    elif not 0 < hour < 13:
        said += " horas" if not minute else f" {'cero ' * (minute < 10)}{NUMBERS.words(minute)}"
    elif minute:
        said += f" y {({15: 'cuarto', 30: 'media'}).get(minute) or NUMBERS.words(minute)}"
    elif not match[4]:
        said += " en punto"
    return said + _half(match[4], hour) + final(match)


@RULES.add(rf"(?<![\w.,])(\d{{1,2}}){_HALF}")
def _hour(spoken: SpeakingRules, match: Match) -> str:
    return _hour_words(int(match[1])) + _half(match[2], int(match[1])) + final(match)


_SECOND = Noun("segundo", "segundos", "m")


def _hour_words(hour: int) -> str:
    return NUMBERS.agreeing(str(hour), "f")


def _half(letter: str | None, hour: int) -> str:
    """Return the words for the part of the day, such as ` de la tarde` for `p` and 3. `letter` is
    `a` or `p`; without it, return an empty string. `hour` is the number that was written."""
    if not letter:
        return ""
    if letter == "a":
        return " de la noche" if hour == 12 else " de la mañana"
    return " de la noche" if 8 <= hour < 12 else " de la tarde"


@RULES.add(
    r"(?<![\d/.,])(?:(\d+) )?(\d{1,2})/(2|3|4|5|6|7|8|9|10|12|16|100)(?![\d/.]*\d)"
    rf"(?:\s?({{UNIT}}){APART}|(?<=\d 1/2) (?!más|menos)([^\W\d_]{{2,20}}s)\b)?"
)
def _fraction(spoken: SpeakingRules, match: Match) -> str:
    whole, above, below, unit, things = match.groups()
    counted = spoken.units[unit] if unit else None
    if not 0 < int(above) < int(below):
        said = f"{NUMBERS.cardinal(above)} entre {NUMBERS.cardinal(below)}"
    elif below == "2":
        after = match.string[match.start(5) - 1 if things else match.end() :]
        ends_in_a = re.match(r"\s+(?:[^\W\d_]+as?|veces)\b", after)
        feminine = counted.gender == "f" if counted else ends_in_a
        half = "media" if feminine else "medio"
        if not whole:
            return f"{half} {counted.one}" if counted else half
        said = f"{NUMBERS.agreeing(whole, 'f' if feminine else 'm' if unit or things else 'n')}"
        # The noun stands before its half: dos litros y medio.
        if counted:
            return f"{said} {counted.one if whole == '1' else counted.many} y {half}"
        if things and whole == "1":
            things = re.sub(r"(?<=[lrsd])es$|s$", "", things)
        return f"{said} {things} y {half}" if things else f"{said} y {half}"
    else:
        part = {3: "tercio", 12: "doceavo", 16: "dieciseisavo"}.get(int(below))
        part = part or NUMBERS.ordinal(below)
        said = f"{NUMBERS.agreeing(above, 'm')} {part}{'s' * (above != '1')}"
    if whole:
        said = f"{NUMBERS.cardinal(whole)} y {said}"
    return f"{said} de {counted.one}" if counted else said


@RULES.add(
    r"(?<![\d.,])(\d{1,3})(?:\.?(º|ª|er|o|a|os|as)(?![^\W_]|\s[CF]\b)|(?<=[13])(?:r|\.º)(o|a|os|as)\b"
    r"|(?<=2)d(o|a|os|as)\b|(?<=[456])t(o|a|os|as)\b|(?<=[7890])(?:m|v|n)(o|a|os|as)\b"
    r"|[.]?(°)(?=\s(?:de (?:enero|mayo|abril|ju|ag|sep|oct|nov|dic|feb|mar)|piso|lugar|puesto)))"
)
def _ordinal(spoken: SpeakingRules, match: Match) -> str:
    said, ending = NUMBERS.ordinal(match[1]), next(part for part in match.groups()[1:] if part)
    after = match.string[match.end() :]
    match ending:
        case "ª" | "a":
            return re.sub(r"o\b", "a", said)
        case "as":
            return re.sub(r"o\b", "a", said) + "s"
        case "os":
            return f"{said}s"
        case _ if ending == "er" or re.match(r" (?:lugar|piso|puesto|grado|premio)\b", after):
            return re.sub(r"(primer|tercer)o$", r"\1", said)
        case _:
            return said


@RULES.add(
    r"(?<!\w)(?:([Cc]/)\s?(?=[A-ZÁÉÍÓÚ])|[Nn]\.?\s?º(?!\s?\d)"
    r"|(?<!\bla )(?<!ión )(?<!letra )(?<!vitamina )(?<!plan )(D\.ª?)(?=\s[A-ZÁÉÍÓÚ][a-zà-ÿ])"
    r"|(ss?|t)\.\s?(?=[IVXL]{1,6}\b))"
)
def _title(spoken: SpeakingRules, match: Match) -> str:
    names = {"D.": "don", "D.ª": "doña", "s.": "siglo", "ss.": "siglos", "t.": "tomo"}
    return "calle" if match[1] else names.get(match[0].strip(), "número")


@RULES.add(
    rf"(?<![^\s(])({ROMAN}|[IVX])(?=\s(?:(?:{{EVENTS}})|({{EVENTS_F}}))\b)"
    rf"|(?:(?<=[a-záéíóúñ] )|(?<=[a-z]\. ))({ROMAN}|[IVX]){APART}"
)
def _roman(spoken: SpeakingRules, match: Match) -> str:
    before, number = lead(match), roman(match[1] or match[3])
    if match[1] and int(number) < 11:
        said = NUMBERS.ordinal(number)
        return re.sub(r"o$", "a", said) if match[2] else re.sub(r"(primer|tercer)o$", r"\1", said)
    if match[1]:
        return NUMBERS.agreeing(number, "f" if match[2] else "n")
    if re.search(
        rf"(?i)\b(?:{spoken.patterns['counted']}"
        r"|ss?\.|t\.|vol\.|cap\.|art\.|(?:siglos?|ss\.) \w+ y) $",
        before,
    ):
        return NUMBERS.cardinal(number)
    ruler = re.search(rf"\b(?:{spoken.patterns['rulers']}) $", before)
    if (ruler or len(match[3]) > 1) and (name := re.search(r"\b([A-ZÁÉÍÓÚÑ]\w+) $", before)):
        if int(number) > 10:
            return NUMBERS.cardinal(number)
        feminine = name[1].endswith("a") or name[1] == "Isabel"
        said = NUMBERS.ordinal(number)
        return re.sub(r"o$", "a", said) if feminine else said
    return match[3]


SPANISH = load(__name__, NUMBERS, RULES)
