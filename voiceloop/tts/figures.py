"""The rules for text with digits, in the order in which they are tried.

They cover telephone numbers and codes, dates, money, measures, ranges, arithmetic, and at the end
any other number. The form of a number and the words before it decide whether it is a telephone
number or a code. Of the text after the number, only the next word counts, because the rest may not
be written yet.
"""

# ruff: noqa: RUF001 - the look-alikes among the signs are meant

from __future__ import annotations

import re
from functools import cache

from voiceloop.languages.numbers import YEAR, roman
from voiceloop.languages.spoken import Match, Rules, SpeakingRules, final, written

PAIRS = Rules()
"""Rules for pairs of numbers such as 24/7. They are tried before a language's own rules, because
those would read the pairs as fractions."""
FIGURES = Rules()
"""Rules that are tried after a language's own rules."""

NEAR = 100
"""Number of characters before a number that are searched for words that show its kind: `PIN`."""
_SHARES = "|".join(f"{share}/{100 - share}" for share in range(10, 91))
_FALLING = "|".join(f"{share}-{100 - share}" for share in range(50, 91))
"""Shares with a hyphen are no range if the first is the larger."""


@PAIRS.add(
    rf"({{DATE}}(?!\d/[2348]\b)\d\d?/\d\d?(?![\d/]| del? \D))"
    rf"|(?<![\d/.,-])(?:24[/-]7|[79]/11|20[/-]20|{_SHARES}|{_FALLING}|0\d/\d\d?|\d\d?/0\d)"
    r"(?![\d/%]|-\d|[.,:]\d)|"
    r"(?=\d{1,3}[:{DECIMAL}]){VERSE}\d{1,3}[:{DECIMAL}](?:(?<=,) )?[1-9]\d{0,2}"
    r"(?![\d:]|\s?(?:{UNIT}|{CURRENCY}|%|[aApP]\.?[mM]){APART})"
)
def _pair(spoken: SpeakingRules, match: Match) -> str:
    first, last = map(int, re.findall(r"\d+", match[0]))
    if match[1] and first < 32 and last in range(1, len(spoken.months) + 1):
        return f"{spoken.numbers.words(first)} {spoken.of} {spoken.months[last - 1]}"
    return f"{spoken.numbers.words(first)} {spoken.numbers.words(last)}"


@PAIRS.add(
    r"(?=\d+:){RATIO}({NUMBER})\s?:\s?({NUMBER})(?!:)"
    r"|(?<![\d:.,])(\d{1,3}):(\d{1,3})(?=[ -](?:{RATIO_NEXT}){APART})"
)
def _against(spoken: SpeakingRules, match: Match) -> str:
    """Put a ratio or a score into words that could be a time: `a score of 21:14`."""
    numbers = [spoken.numbers.cardinal(part) for part in match.groups() if part]
    return f" {spoken.ratio} ".join(numbers)


@PAIRS.add(
    r"(?<![\w.])(?:([123])\.?\s)?({BOOK})\.?\s(?=\d{1,3}[:{DECIMAL}](?:(?<=,) )?\d)"
    r"(?!\d\d?:\d\d\s?[ap]m)"
)
def _book(spoken: SpeakingRules, match: Match) -> str:
    name = spoken.books.get(match[2], match[2])
    return f"{spoken.books[match[1]]} {name}" if match[1] else name


@PAIRS.add(r"(?<![\w.])(?<!\d )({DATED})\.\s?(?=[12]?\d{3}(?!\d))")
def _dated(spoken: SpeakingRules, match: Match) -> str:
    return spoken.dated[written(match[1])]


@PAIRS.add(r"(?:{VERSION}|(?<=\b[vV]))\d+\.[1-9]\d(?![\w.]*\d|\s?(?:%|{UNIT}){APART})")
def _version(spoken: SpeakingRules, match: Match) -> str:
    return f" {spoken.point} ".join(map(spoken.numbers.integer, match[0].split(".")))


@PAIRS.add(r"(?<!\w)(?:(?=[IVX]+\s?[-–])({ROMAN}|[IVX])\s?[-–]\s?({ROMAN})|({ROMAN_YEAR})){APART}")
def _romans(spoken: SpeakingRules, match: Match) -> str:
    """Put a range of Roman numbers or a year in Roman numbers into words."""
    if match[3]:
        return spoken.numbers.year(roman(match[3]))
    return f" {spoken.to} ".join(spoken.numbers.cardinal(roman(part)) for part in match.group(1, 2))


@PAIRS.add(r"(?=\d){PART}(\d{1,4})\s?/\s?(\d{1,4})(?![\d/%])")
def _part(spoken: SpeakingRules, match: Match) -> str:
    return f"{spoken.numbers.integer(match[1])} {spoken.of} {spoken.numbers.integer(match[2])}"


@PAIRS.add(
    r"(?<![\d/.,-])(?:(?=\d){RATED}({NUMBER})/(\d{1,3})(?![\d/])"
    r"|({NUMBER})/(5|10|100)(?=\s(?:{RATED_NEXT}){APART})"
    r"|(?<!= )([2-9]|10|[2-9]\d)/(10{1,2})(?=[.,;:!?)]*(?:\s|$))(?!\s[a-zà-ÿ\d]|[^\n]{0,40}=))"
)
def _rated(spoken: SpeakingRules, match: Match) -> str:
    above, below = (spoken.numbers.cardinal(part) for part in match.groups() if part)
    return f"{above} {spoken.out_of} {below}"


@PAIRS.add(
    r"(?=\d\d?:\d)(?:(?:(?<![\d:.,/-])(?!{CLOCK})(\d)|{LASTING}(\d\d?)):([0-5]\d):([0-5]\d(?:[.,]\d{1,3})?)"
    r"(?![\d:]|\s?(?:Uhr|[ap]\.?\s?m|[AP]M)\b)(?:\s?(?:{HOUR}){APART})?"
    r"|(?:{LASTING}|(?=[\d:]+ (?:{HOURS_NEXT})\b)(?<![\d:.,/-])(?!{CLOCK}))"
    r"(\d\d?):([0-5]\d)\s?(?:{HOUR}|{HOURS}){APART}"
    r"|(?<![\d:.,/-])(\d\d?):([0-5]\d)\s?(?:{MINUTE}|{MINUTES}){APART})"
)
def _elapsed(spoken: SpeakingRules, match: Match) -> str:
    """Put a duration with colons into words: `2:30:00`."""
    one, two, minutes, seconds, hours, rest, alone, last = match.groups()
    parts = (one or two or hours, minutes or rest or alone, seconds or last)
    return _lasting(spoken, *(part if part and part.strip("0") else None for part in parts))


def _lasting(spoken: SpeakingRules, *parts: str | None) -> str:
    """Put hours, minutes and seconds into words, those that are there."""
    nouns, mark = [spoken.units[unit] for unit in ("h", "min", "s")], spoken.numbers.decimal
    said = [
        spoken.numbers.count(re.sub(r"\D", mark, re.sub(r"^0+(?=\d)", "", number)), noun)
        for number, noun in zip(parts, nouns, strict=True)
        if number
    ]
    return " ".join(said) or spoken.numbers.count("0", nouns[-1])


@PAIRS.add(r"(?<=\d)T(?=\d\d:\d\d)|(?:(?<=°[CF])|(?<=° [CF]))\s?/\s?(?=-?\d)")
def _then(spoken: SpeakingRules, match: Match) -> str:
    return ","


@PAIRS.add(
    r"(?<=:\d\d)(?:\.\d{1,9})?(?:Z|(?:(?<=:\d\d:\d\d)|(?<=\.\d{3}))([+-])(\d\d):?(\d\d)){APART}"
)
def _zone(spoken: SpeakingRules, match: Match) -> str:
    """Put the zone at the end of a time stamp into words."""
    sign = spoken.minus if match[1] == "-" else spoken.signs["+"]
    offset = [spoken.numbers.words(int(part)) for part in match.group(2, 3) if part and int(part)]
    return " ".join(["U T C", sign, *offset] if offset else ["U T C"])


@PAIRS.add(r"(?<![\d/.,-])(0?[1-9]|1[0-2])/((?:19|20)\d\d)(?![\d/])")
def _month(spoken: SpeakingRules, match: Match) -> str:
    return f"{spoken.numbers.integer(match[1])} {spoken.numbers.year(match[2])}"


@PAIRS.add(r"(?<![\d/.,-])((?:19|20)\d\d)/(\d\d)(?![\d/])")
def _season(spoken: SpeakingRules, match: Match) -> str:
    return f"{spoken.numbers.year(match[1])} {spoken.numbers.integer(match[2])}"


@PAIRS.add(
    r"(?<![^\W\d])(?:({FUNCTION})([²³]?)(?:\s?ꜜ\s?(\d{1,2}))?\((?!s\))"
    r"|(?<!\d )([fghFGP])\((?=(?:[A-Za-z]|-?\d+)[,)]))"
)
def _function(spoken: SpeakingRules, match: Match) -> str:
    """Put a function of mathematics into words, up to its argument: `sin(`."""
    name, raised, base, letter = match.groups()
    said = [spoken.functions[name] if name else letter, spoken.signs[raised] if raised else ""]
    said += [spoken.signs["ꜜ"], spoken.numbers.integer(base)] if base else []
    return " ".join([*said, spoken.of])


# ---- telephone numbers and codes, which are said digit by digit

_ALONE = r"(?<![\w.,:/+-])"


@FIGURES.add(
    r"(?<![\w.,:/-])(\d{1,2})(?:/(\d{1,2})/(\d{4}|\d\d)|[.-](\d{1,2})[.-](\d{4}))(?![\d/-])"
)
def _numeric_date(spoken: SpeakingRules, match: Match) -> str:
    day, month, year = filter(None, match.groups())
    numbers = spoken.numbers
    last = numbers.year(year) if len(year) == 4 else numbers.integer(year)
    return f"{numbers.cardinal(day)} {numbers.cardinal(month)} {last}"


@FIGURES.add(
    # with a country code
    r"(?<![\w+])\+(?=(?:[ \u202f()./-]{0,2}\d){8})\d{1,4}(?:[ \u202f]?\(0\))?[ \u202f./-]?\(?\d+\)?"
    r"(?:[ \u202f./-]\d{2,})*"
    # with the 0 before an area code
    rf"|{_ALONE}(?!0\d[ /-](?:19|20)\d\d(?!\d))\(?0\d{{1,5}}\)?(?=(?:[ \u202f/-]?\d){{4}})"
    r"(?=[ \u202f/-]\d{3}|(?:[ \u202f/-]\d\d){4})(?:[ \u202f/-]\d{2,})+(?!\d)"
    rf"|{_ALONE}0\d(?:\.\d\d){{4}}(?!\d)"
    # North America
    rf"|{_ALONE}(?:1[ .-])?(?:\(\d{{3}}\) ?|\d{{3}}[-. ])\d{{3}}[-. ]\d{{4}}(?!\d)"
    rf"|{_ALONE}1-8\d\d-(?=[A-Z])|\(\d{{2,4}}\) ?\d{{3,4}}[- ]\d{{4}}(?!\d)"
)
def _telephone(spoken: SpeakingRules, match: Match) -> str:
    said = _groups(spoken, re.sub(r"\(0\)", " ", match[0]))
    return f"{spoken.signs['+']} {said}" if match[0].startswith("+") else said


@FIGURES.add(
    r"(?<![\w.,:/+-])(?=(?:[ \u202f]?\d){9})(?!\d{1,3}(?:[ \u202f]\d{3})+(?!\d|[ \u202f]\d))"
    r"\d{2,4}(?:[ \u202f-]\d{2,4}){2,}(?![ \u202f]?\d)"
    rf"|{_ALONE}\d+(?:-\d+){{2,}}(?![\w-])"
)
def _grouped(spoken: SpeakingRules, match: Match) -> str:
    """Put groups of digits that are not one number into words. If all groups are years or have at
    most two digits, they become a list of numbers; otherwise they are said digit by digit."""
    groups = re.findall(r"\d+", match[0])
    if all(len(group) < 3 or YEAR.fullmatch(group) for group in groups):
        return ", ".join(spoken.numbers.standing(group, "", "") for group in groups)
    return _groups(spoken, match[0])


def _groups(spoken: SpeakingRules, number: str) -> str:
    return ", ".join(map(spoken.numbers.digits, re.findall(r"\d+", number)))


# ---- money, shares, measures


@FIGURES.add(
    r"({CURRENCY})\s?(-?)(?:({NUMBER})[-–](?=\d))?({NUMBER}|[.,]\d\d(?!\d))"
    r"(?:[\s-]?({MAGNITUDE}){APART})?"
    r"(?:[^\S\n]?({CURRENCY_CODE})(?!\s?\d))?"
    r"(?:\s?/\s?({UNIT}){APART}|(-)(?=[^\W\d_])|(/)(?=[^\W\d_]{3}))?"
    r"|({NUMBER})(?:\s?|-(?={CURRENCY}(?!\s?\d)))(?:({MAGNITUDE})\s?)?({CURRENCY})(?!\s?\d)"
    r"(?:\s?/\s?({UNIT}){APART}|(/)(?=[^\W\d_]{3}))?"
)
def _money(spoken: SpeakingRules, match: Match) -> str:
    if match[1]:
        sign, minus, first, number, magnitude, code, per, adjective, rate = match.groups()[:9]
    else:
        number, magnitude, sign, per, rate = match.groups()[9:]
        minus = first = code = adjective = ""
    said = _amount(spoken, number, magnitude, code or sign, bool(adjective))
    if first:
        said = f"{spoken.numbers.cardinal(first)} {spoken.to} {said}"
    if minus:
        said = f"{spoken.minus} {said}"
    if per:
        return f"{said} {spoken.per} {spoken.units[per].one}"
    return f"{said} {spoken.per}" if rate else said


def _amount(spoken: SpeakingRules, number: str, magnitude: str, sign: str, adjective: bool) -> str:
    numbers = spoken.numbers
    if number[0] in ".,":
        number = f"0{numbers.decimal}{number[1:]}"
    if re.search(r"[.,]\d\d$", number):  # whatever the country, these are cents
        number = re.sub(r"\D", "", number[:-3]) + numbers.decimal + number[-2:]
    elif not magnitude and re.fullmatch(r"[1-9]\d{0,2}(?:[.,]\d{3})+", number):
        number = re.sub(r"\D", "", number)
    number = numbers.ungrouped(number)
    name, coin = spoken.currencies[sign]
    if magnitude:
        return f"{numbers.count(number, spoken.magnitudes[written(magnitude)])} {name.many}"
    if adjective:
        return f"{numbers.agreeing(number, name.gender)} {name.one}"
    whole, mark, part = number.rpartition(numbers.decimal)
    if not mark or len(part) != 2:
        return numbers.count(number, name)
    if part == "00":
        return numbers.count(whole, name)
    coins = numbers.count(str(int(part)), coin)
    return f"{numbers.count(whole, name)} {spoken.coins} {coins}" if whole.strip("0") else coins


@FIGURES.add(
    r"(?:(?<![\w.,/-])|(?<=\d[kKM]-)|(?<=\s\d-)|(?<=\s\d\d-))"
    r"(?!3M\b(?! (?:people|users|views)\b)|[48]K\b|401k|\d+[kK] (?:run|gold)\b)"
    r"({NUMBER})(?=[kKM]|bn\b|B [a-z]{2,}(?:s|le)\b|\sM (?:de|people|users|views)\b)"
    r"\s?({MAGNITUDE})(?!\w|-(?!{CURRENCY}?[\d.,]+[kKMB]\b))(?=(\s(?!de\b)[^\W\d_])?)"
)
def _many(spoken: SpeakingRules, match: Match) -> str:
    """Put a large number with a letter into words: `75k`, `1.5M people`."""
    said = spoken.numbers.count(match[1], spoken.magnitudes[match[2]])
    return said if match[3] else said.removesuffix(f" {spoken.of}")


@FIGURES.add(r"(?<![\w.,])({NUMBER})\s?A{APART}(?![./'-]\w)")
def _amperes(spoken: SpeakingRules, match: Match) -> str:
    """Put `3 A` into words. The A is a unit only near other words of electricity."""
    around = match.string[max(0, match.start() - NEAR) : match.end() + NEAR]
    near = rf"\d\s?k?[VW]\b|\d[.,]\d+\s?A\b|(?i:{spoken.currents})"
    volts = re.search(near, around)
    numbers = spoken.numbers
    return numbers.count(match[1], spoken.ampere) if volts else f"{numbers.cardinal(match[1])} A"


@FIGURES.add(r"({NUMBER})\s?%")
def _percent(spoken: SpeakingRules, match: Match) -> str:
    return spoken.numbers.count(match[1], spoken.percent)


@FIGURES.add(r"({NUMBER})\s?[°º]\s?({SCALE}){APART}")
def _temperature(spoken: SpeakingRules, match: Match) -> str:
    return f"{spoken.numbers.count(match[1], spoken.degree)} {spoken.scales[match[2]]}"


@FIGURES.add(r"°\s?({SCALE}){APART}")
def _scale(spoken: SpeakingRules, match: Match) -> str:
    return f"{spoken.degree.many} {spoken.scales[match[1]]}"


@FIGURES.add(r"(\d+)\s?°\s?(\d{1,2})\s?'(?:\s?(\d{1,2}(?:[.,]\d+)?)\s?\")?(?:\s?([NSEWO]){APART})?")
def _angle(spoken: SpeakingRules, match: Match) -> str:
    nouns = (spoken.degree, spoken.units["min"], spoken.units["s"])
    said = [
        spoken.numbers.count(number, noun)
        for number, noun in zip(match.groups(), nouns, strict=False)
        if number
    ]
    return " ".join([*said, *([spoken.compass[match[4]]] if match[4] else [])])


@FIGURES.add(r"(?<=\d)\s?°\s?([NSEWO]){APART}")
def _bearing(spoken: SpeakingRules, match: Match) -> str:
    return f"{spoken.degree.many} {spoken.compass[match[1]]}"


@FIGURES.add(
    r"(?<![^\W\d_])({NUMBER})'(?:\s?(\d{1,2}(?:\.\d+)?)(?:\"|(?!\w)))?(?![\w'])|({NUMBER})\"(?!\w)"
)
def _length(spoken: SpeakingRules, match: Match) -> str:
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


@FIGURES.add(r"(?:(?<=\d/\d)|(?<=\d/\d\d))\"(?!\w)")
def _part_of_inch(spoken: SpeakingRules, match: Match) -> str:
    return "" if _quoted(match.string[: match.start()], match[0]) else spoken.inch.one


def _quoted(before: str, sign: str) -> bool:
    """Return whether a quotation that began with `sign` is still open at the end of `before`."""
    first = r"\S" if sign == '"' else r"[^\s\d]"  # not the '90s
    marks = re.finditer(rf"((?<![\w.,!?)\]]){sign}(?={first}))|{sign}(?!\w)", before[-NEAR:])
    within = False
    for mark in marks:
        within = bool(mark[1])
    return within


@FIGURES.add(
    r"(\d+)\s?(?:{HOUR})(?:,?\s?(\d{1,2})\s?(?:{MINUTE}|m)|([0-5]\d)){APART}"
    r"(?:,?\s?(\d{1,2})\s?(?:{SECOND}){APART})?"
    r"|(\d+)\s?(?:{MINUTE}|m)\s?([0-5]?\d)\s?(?:{SECOND}){APART}"
)
def _duration(spoken: SpeakingRules, match: Match) -> str:
    hours, minutes, bare, seconds, only_minutes, last = match.groups()
    parts = (hours, minutes or bare or only_minutes, seconds or last)
    return _lasting(spoken, *parts) + final(match)


@FIGURES.add(
    r"(?<![^\W\d_])({NUMBER})(?:\s|-)?({UNIT})(?:\s?/\s?({UNIT})(\^?[23]|[²³])?)?{APART}"
    r"(?:(/)(?=[^\W\d_]{3})|\.(?=\s+[a-z]))?"
)
def _measure(spoken: SpeakingRules, match: Match) -> str:
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


@FIGURES.add(
    r"{PER}({UNIT}){APART}|(?<=\d)/({HOUR}|{MINUTE}|{SECOND}){APART}|(?=/\d){MEASURED}/"
    r"|(?:(?<=\d)|(?<=\dx)|(?<=[^\W\d_]{2}s))/(?=(?:{EACH_NEXT}){APART})"
)
def _per(spoken: SpeakingRules, match: Match) -> str:
    if match[1]:
        return spoken.units[match[1]].one
    return f"{spoken.per} {spoken.units[match[2]].one}" if match[2] else spoken.per


@FIGURES.add(r"(?<=\d )({LETTER}{3,20})/(?={LETTER}{2,12}(?<!en)(?<!nder)(?<!iche)(?<!s){APART})")
def _each(spoken: SpeakingRules, match: Match) -> str:
    """Put the slash of `7 days/week` into words."""
    return f"{match[1]} {spoken.per}"


@FIGURES.add(r"(?<![\w/])(km|m|kg|mg|g|MB|GB|Mbit)/({UNIT})(?![^\W_]|/)")
def _rate(spoken: SpeakingRules, match: Match) -> str:
    return f"{spoken.units[match[1]].many} {spoken.per} {spoken.units[match[2]].one}"


# ---- ranges


@FIGURES.add(r"\b({CALENDAR})\.?(?:\s?[-–]\s?|\s{TO}\s)({CALENDAR}){APART}\.?")
def _calendar(spoken: SpeakingRules, match: Match) -> str:
    first, last = spoken.calendar[match[1]], spoken.calendar[match[2]]
    return f"{first} {spoken.to} {last}{final(match)}"


@FIGURES.add(
    r"(?=\s?[-–]\s?{CURRENCY}?\d){MEASURED}\s?[-–]\s?|(?<=\d)\s-\s(?={CURRENCY}\d)"
    r"|(?<=\d)\s-\s(?=\d[\d.,:]*(?:\s?(?:{UNIT}|{CURRENCY}|[%°])|\s[^\W\d_]{2}))"
    r"|(?<=:\d\d)\s-\s(?=\d)|(?<=\d{4})\s-\s(?=(?:1[1-9]|20)\d\d(?!\d))"
    r"|(?<=\d)\s?[-–]\s?(?=(?:{CALENDAR})\.?\s\d)|(?=\s[-–]\s\d){NAMED}\s[-–]\s"
)
def _span(spoken: SpeakingRules, match: Match) -> str:
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


@FIGURES.add(
    r"(?<=[\d%])\s*=\s*-?(?=\d)|(?<=\d)-(?=[\d.,]+\s*=)|(?<=[\d)])\s+-\s+(?=[\d(])"
    r"|(?:(?<=\b[a-z])|(?<=\d[a-z]))\s+-\s+(?=\d|[a-z](?:\b|[²³]))|(?<=\b[kmnxyz])-(?=\d\b)"
    r"|(?<=[²³])\s+-\s+(?=[\d(]|[a-z](?:\b|[²³]))"
)
def _arithmetic(spoken: SpeakingRules, match: Match) -> str:
    words = {"=": spoken.equals, "-": spoken.minus}
    return " ".join(words[sign] for sign in re.findall("[=-]", match[0]))


@FIGURES.add(
    r"(?<=[\d%])(?:\s?–\s?|-)(?={CURRENCY}?\d)"
    r"|(?<=\d[kKMB])(?:\s?–\s?|-)(?={CURRENCY}?[\d.,]+[kKMB]\b)"
)
def _range(spoken: SpeakingRules, match: Match) -> str:
    before = match.string[: match.start()]
    code = r"(?:^|[\s(])(?:[A-Z][^\W\d_]*-[\d.]+(?:-\d+)*|[a-z]{3,}-\d\d?)$"
    if re.search(code, before[-NEAR:]) or re.match("0\\d{2}", match.string[match.end() :]):
        return ""  # a code such as INV-2024-001
    return "," if _coded(spoken, "12345", before, "") else spoken.to


@FIGURES.add(
    r"(?<![^\s(\[=<>≤≥≠≈±×÷*/+^~\"'])-(?=(?:{CURRENCY}\s?)?\.?\d)|(?<=\b(?:GMT|UTC))-(?=\d)"
    r"|(?:(?<=[=<>≤≥≠≈±×÷*/+^])|(?<=[=<>≤≥≠≈±×÷*/+^] )|(?<=\w\())"
    r"-(?=[A-Za-zα-ω](?![^\W\d_²³])|[√(]|[a-z]{2,4}\()"
)
def _negative(spoken: SpeakingRules, match: Match) -> str:
    return spoken.minus


@FIGURES.add(
    r"(?<=\d)\s?[x×]\s?(?=[\d.]+\s?(?:[ck]?m|ft|px)\b)|(?<=\d{3})×(?=\d{3})"
    r"|(?<=\d)(\s?)[x*](\s?)(?=-?\d)|(?<=['\"])\s?x\s?(?=\d)|(?=\s?x\s?\d){MEASURED}\s?x\s?"
    r"|(?<=[\w)])\s\*\s(?=[\w(])"
)
def _times(spoken: SpeakingRules, match: Match) -> str:
    return spoken.times if match[0].strip() == "*" or match[1] else spoken.by


@FIGURES.add(r"(?<=\d)x(?![\w-])(?!\s?[=+*^×÷(]|\s-|\s?/(?![^\W\d_]{3}))")
def _fold(spoken: SpeakingRules, match: Match) -> str:
    """Put the x of `10x faster` into words. In an equation the x stays a letter."""
    return "x" if "=" in match.string[: match.start()] else spoken.fold


@FIGURES.add(r"(?<=\d)(?: : |:)(?=\d)")
def _ratio(spoken: SpeakingRules, match: Match) -> str:
    shared = " " in match[0] and re.match(r"[\d.,]+\s?=", match.string[match.end() :])
    return spoken.divided_by if shared else spoken.ratio


@FIGURES.add(r"(?<=\d)\s?/\s?(?=\d)|(?<=\))/(?=[a-z\d(]\b)|(?<=\b[a-z])/(?=\d\b)")
def _divided(spoken: SpeakingRules, match: Match) -> str:
    return spoken.divided_by if " " in match[0] else spoken.over


@FIGURES.add(r"(?<![\w.,])({NUMBER})[eE]([+-]?)(\d+){APART}")
def _scientific(spoken: SpeakingRules, match: Match) -> str:
    numbers, minus = spoken.numbers, [spoken.minus] * (match[2] == "-")
    ten, exponent = numbers.words(10), numbers.words(int(match[3][:9]))
    said = (numbers.cardinal(match[1]), spoken.times, ten, spoken.power, *minus, exponent)
    return " ".join(said)


@FIGURES.add(r"(?<=[\w)])\s?\^\s?(?=[\w(+-])")
def _power(spoken: SpeakingRules, match: Match) -> str:
    return spoken.power


@FIGURES.add(
    r"(?:(?<=[^\W\d_]{2})\s([<>])|(?<![^\s(\[:,])([<>])\s?)(?=[-+]?{CURRENCY}?\.?\d)"
    r"|(?<=[\w)%°²³])\s?([<>])\s?(?=[-+]?{CURRENCY}?[\w(.])"
)
def _comparison(spoken: SpeakingRules, match: Match) -> str:
    """Return the words for `<` or `>`. The sign compares two things, or it gives a limit, as in
    `takes <5 minutes`."""
    below, limit = "<" in match[0], match[1] or match[2]
    if limit:
        return spoken.below if below else spoken.above
    return spoken.less if below else spoken.greater


@FIGURES.add(r"(?<!\w)#(?=\d)|№\s?(?=\d)|\b(?:{NUMBER_SIGN})\s?(?=\d)")
def _number_sign(spoken: SpeakingRules, match: Match) -> str:
    return spoken.number


@FIGURES.add(
    r"\b(?=\w\w)({CALENDAR})\.?(?=\s\d\d?(?:[:.]\d\d|\s?[-–]|\s?(?:[ap]m|Uhr|h)\b))"
    r"|\b(?=\w\w)(?:{CALENDAR})\.?(?:,?\s(?:(?:{JOINS})\s)?(?=\w\w)(?:{CALENDAR})\b\.?)+(?!\s?\d)"
    r"|\b(?=\w\w)({CALENDAR})\.?(?=,\s(?:{CALENDAR})?\.?\s?\d\d?(?:\.|\b))"
)
def _day(spoken: SpeakingRules, match: Match) -> str:
    name = re.compile(rf"\b({'|'.join(spoken.calendar)})\b\.?")
    return name.sub(lambda day: spoken.calendar[day[1]], match[0])


@FIGURES.add(r"\b({NUMBERED})\s?(?=\d|[IVX]{1,6}\b)")
def _numbered(spoken: SpeakingRules, match: Match) -> str:
    return spoken.numbered[written(match[1])]


@FIGURES.add(r"(?:{ABOUT}()~|~)\s?(?={CURRENCY}?\d)")
def _about(spoken: SpeakingRules, match: Match) -> str:
    return spoken.about if match[1] is None else ""


@FIGURES.add(r"{NUMBER}")
def _number(spoken: SpeakingRules, match: Match) -> str:
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
    return (
        re.compile(rf"\b(?:{spoken.dials})\b(?:[\s:,]+(?:{spoken.links})\b)*{tail}"),
        re.compile(rf"\b(?:{spoken.dials})\b[^.!?;\d\n]{{0,60}}?\b(?:{spoken.tells})\b{tail}"),
        re.compile(rf"\b(?:{spoken.codes})\b{tail}"),
        re.compile(
            rf"\b(?:{spoken.codes})\b[^.!?;\d\n]{{0,60}}?(?:\b(?:{spoken.tells})\b|:){tail}"
        ),
    )


@FIGURES.add(r"(?<!\w)\.(?=\d)")
def _point(spoken: SpeakingRules, match: Match) -> str:
    return spoken.point
