"""The English language: endings of turns, and how written text is said."""

# ruff: noqa: RUF001 - the look-alikes among the signs are meant

from __future__ import annotations

import re

from voiceloop.languages.language import INTERNATIONAL, Language, endings
from voiceloop.languages.numbers import ISO, ROMAN, Noun, Numbers, Prefixed, noun, roman, units
from voiceloop.languages.spoken import (
    APART,
    Match,
    Rules,
    SpeakingRules,
    alternatives,
    final,
    lead,
    tables,
)

# ---- endings of turns

_WORDS = frozenset(
    # articles, possessives and other words before a noun
    "a an the my your our their its every each whose which what such some other "
    # prepositions, except those that end verbs (turn it on, start over)
    "of to in at by for from with about into onto under between without during until since against "
    "among toward towards upon via versus except near per than as "
    # conjunctions and question words
    "and or but nor if because so while although unless whether before after when where who how "
    # auxiliaries, pronouns and requests that something usually follows
    "am be been being do does did have has had can could will would shall should "
    "might must don't doesn't didn't isn't aren't wasn't weren't couldn't wouldn't shouldn't "
    "i he we she they i'm i've i'll i'd you're you've you'll you'd he's she's it's we're we've "
    "we'll they're they've that's there's here's what's who's where's when's how's let's "
    "tell give set convert spell define calculate add "
    # sums, degrees, fillers
    "plus minus times divided multiplied "
    "very just um uh er uhm erm hmm well mr mrs ms".split()
)
_PHRASES = endings(
    "tell|give|show|teach|remind|let|send|ask|read|bring|make me",
    "are|can|could|would|will|do|did|have|should|if|when|what|because|where you",
    "can|could|would|will you please",
    "will|does|can|could|would it",
    "i want|need|think|wonder|mean",
    "i'm wondering|looking",
    "i'd|would|we'd|they'd like",
    "something|anything|someone like",
    "like|want|need|love to know",
    "i|to know|hear|learn|read|talk more about",
    "do you know",
    "make sure|certain",
    "remind me that",
    "so|think|sure|hope that",
    "based|depends|depending|information|news|article|reminder on",
    "what|who|where|when|how|why|which|whose|there|here|and|or|so|because is|are|was|were",
    "time|day|date|year|color|kind|old|far|tall|big|long|much|many is|are|was|were",
    "it|that|this|he|she is|was",
    "you|they|we|these|those are|were",
    "^ is|are|was|were",
    "timer for|of|to #",
    "convert #",
    "how many|much|long|far|old|tall|big|often|fast|deep|high|heavy",
    "what time|day|year|month|kind|color|language|country|city",
    "half|quarter past",
    "as well as",
)
_FINISHED = endings(
    # prepositions that a question leaves behind: "Where do rainbows come from?"
    "you|he|she|they|it|that|this|come|comes|came from",
    "it|this|that|known|famous|used|stand|stands|what for",
    "it|this|that|book|movie|film|song|talking|thinking about",
    "what can|could|do|will you help me with",
    "to talk|speak|play with",
    "made|heard|think|thinking|kind|sort of",
    "i|you|we talking|listening|speaking to",
    "good|look|looking|laugh at",
    "come|log|sign|check|zoom|me|what's|it in",
    # verbs at the end of a question or of a clause
    "you|i|we|they|to|can|will|please do",
    "he|she|it|that does",
    "i|you|he|she|it|we|they did",
    "do|did i|we have",
    "what do you have",
    "you|we|i can|could|would|should",
    "i|he|she|it|you|we|they|that don't|doesn't|didn't|isn't|aren't|wasn't|couldn't|wouldn't",
    "what|who|where|how|time|day|date|year|old|far|tall|big|long|it it|he|she|that|this is|was",
    "what|who|where|how|old|tall|many there|you|they|we|those|these are|were",
    "who|where|what|how|old i am",
    "so|yes|sure i am",
    "who|what|where|how old|tall am i",
    "who|where|what|how am i",
    "who|where|what|how|old|tall|far is|was he|she",
    "who|where|what|how|old|tall are|were they|we|you",
    "not sure are you",
    "can|could|will|would|should|might|to|what it|that|he|she|they be",
    "you been",
    "^ how have you been",
    "what|that's|all|not|how|do i need|want|think|mean",
    # words that usually continue a sentence, but may end these phrases
    "guess|so|now|you what|who",
    "each|any|every other",
    "think|hope|say|guess|is that|why|said|told so|you so",
    "think|hope|believe|guess|say so",
    "ever|long since",
    "day|month|week|night|year|never|ever|me|met|said before|after",
    "look|soon after",
    "many|few|several|of|old times",
    "that|it # times",
    "two|three|four|five|six|ten times",
    "feel|as|very|pretty|quite|sleep|work|going well",
    "at what time",
    "what about|with you",
)
_BACKCHANNELS = INTERNATIONAL | frozenset(
    "aye er erm good great huh nice right sure true uh uhhuh uhm um well wow yeah yep yes "
    "yup".split()
)
_CONSENT = frozenset(
    "absolutely affirmative agreed alright certainly confirm confirmed definitely ok okay sure "
    "yeah yep yes yup".split()
) | {"of course", "go ahead", "do it", "do that", "do so", "please do", "go for it"}
_COURTESIES = frozenset("now please thanks that uh um well".split()) | {"thank you", "i do", "i am"}

# ---- how written text is said

_TABLES = tables("en")


class _EnglishNumbers(Numbers):
    def fraction(self, above: str, below: str) -> str:
        """Put a fraction into words: `3`, `4` -> three quarters."""
        part = {2: "half", 4: "quarter"}.get(int(below)) or self.ordinal(below)
        if int(above) == 1:
            return f"one {part}"
        return f"{self.cardinal(above)} {'halves' if part == 'half' else part + 's'}"


NUMBERS = _EnglishNumbers("en", group=",", decimal=".", marks={".": "point", ",": "point"})
_OWN = Rules()

_MONTHS = (
    "January February March April May June July August September October November December"
).split()
_MONTH = "|".join(
    rf"{name[:3]}(?:{name[3:]}|{'t?' * (name == 'September')}\.?)" if name != "May" else name
    for name in _MONTHS
)
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_CALENDAR = {
    **{name[:3]: name for name in (*_MONTHS, *_DAYS)},
    **{"Sept": "September", "Tues": "Tuesday", "Thur": "Thursday", "Thurs": "Thursday"},
    **{name: name for name in (*_MONTHS, *_DAYS)},
}
_TO = rf"\s?[-–]\s?(\d{{1,2}})(?:st|nd|rd|th)?{APART}"
_HALF = r"(?:\s?([aApP])(?:[mM]\b|\.[mM]\b\.?))"
_COUNTED = _TABLES["patterns"]["counted"]
_RULERS = _TABLES["patterns"]["rulers"]


def _units() -> dict[str, Noun]:
    prefixed: Prefixed = (
        (
            {"m": "meter meters"}, "n",
            {"": "", "k": "kilo", "d": "deci", "c": "centi", "m": "milli", "μ": "micro",
             "n": "nano"},
        ),
        ({"g": "gram grams"}, "n", {"": "", "k": "kilo", "m": "milli", "μ": "micro"}),
        (
            {"l": "liter liters", "L": "liter liters"}, "n",
            {"": "", "d": "deci", "c": "centi", "m": "milli", "μ": "micro"},
        ),
        (
            {"W": "watt watts", "Wh": "watt_hour watt_hours", "V": "volt volts"}, "n",
            {"": "", "k": "kilo", "M": "mega", "G": "giga", "m": "milli"},
        ),
        ({"Ah": "amp_hour amp_hours"}, "n", {"": "", "m": "milli"}),
        ({"A": "amp amps"}, "n", {"m": "milli"}),
        (
            {"J": "joule joules", "Pa": "pascal pascals"}, "n",
            {"k": "kilo", "M": "mega", "h": "hecto"},
        ),
        ({"N": "newton newtons"}, "n", {"k": "kilo"}),
        ({"Ω": "ohm ohms"}, "n", {"": "", "k": "kilo", "M": "mega"}),
        (
            {"B": "byte bytes", "bit": "bit bits", "bps": "bit_per_second bits_per_second"}, "n",
            {"k": "kilo", "K": "kilo", "M": "mega", "G": "giga", "T": "tera"},
        ),
        ({"iB": "bibyte bibytes"}, "n", {"K": "ki", "M": "me", "G": "gi", "T": "te"}),
        ({"s": "second seconds"}, "n", {"": "", "m": "milli", "μ": "micro", "n": "nano"}),
    )  # fmt: skip
    others = {
        "Hz": "hertz", "kHz": "kilohertz", "MHz": "megahertz", "GHz": "gigahertz",
        "THz": "terahertz", "¢": "cent cents", "bps": "bit_per_second bits_per_second",
        "dB": "decibel decibels", "rpm": "revolution_per_minute revolutions_per_minute",
        "fps": "frame_per_second frames_per_second", "ppm": "part_per_million parts_per_million",
        "psi": "pound_per_square_inch pounds_per_square_inch", "MP": "megapixel megapixels",
        "px": "pixel pixels", "mpg": "mile_per_gallon miles_per_gallon",
        "dpi": "dot_per_inch dots_per_inch", "bpm": "beat_per_minute beats_per_minute",
        "mmHg": "millimeter_of_mercury millimeters_of_mercury",
        "cc": "cubic_centimeter cubic_centimeters", "mcg": "microgram micrograms",
        "mol": "mole moles", "kn": "knot knots", "ha": "hectare hectares", "pt pts": "pint pints",
        "qt qts": "quart quarts", "hp": "horsepower", "mi": "mile miles", "ft": "foot feet",
        "yd": "yard yards", "in.": "inch inches", "gal": "gallon gallons", "lb lbs": "pound pounds",
        "oz": "ounce ounces", "tsp": "teaspoon teaspoons", "tbsp": "tablespoon tablespoons",
        "h hr hrs": "hour hours", "min mins": "minute minutes", "sec secs": "second seconds",
        "mph": "mile_per_hour miles_per_hour", "kph": "kilometer_per_hour kilometers_per_hour",
        "cal": "calorie calories", "kcal": "kilocalorie kilocalories", "yr yrs": "year years",
        "wk wks": "week weeks", "mos": "month months", "doz doz.": "dozen",
        "pkg pkgs": "package packages",
    }  # fmt: skip
    found = units(prefixed, [(symbols, forms, "n") for symbols, forms in others.items()])
    for symbol in ("m", "km", "cm", "dm", "mm", "mi", "ft", "yd"):
        length = found[symbol]
        for square, cube in ("²³", "23", ("^2", "^3")):
            found[symbol + square] = Noun(f"square {length.one}", f"square {length.many}")
            found[symbol + cube] = Noun(f"cubic {length.one}", f"cubic {length.many}")
    found["sq ft"], found["cu ft"] = found["ft²"], found["ft³"]
    found["fl oz"] = found["fl. oz."] = noun("fluid_ounce fluid_ounces")
    return found


@_OWN.add(ISO)
def _iso_date(match: Match) -> str:
    month, day = int(match[2]), int(match[3])
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return NUMBERS.digits(re.sub(r"\D", "", match[0]))
    return f"{_MONTHS[month - 1]} {NUMBERS.ordinal(str(day))}, {NUMBERS.year(match[1])}"


@_OWN.add(r"(?<![\w.,:/+-])(?:555-\d{4}|[2-9]\d\d-\d{2}(?!00|50)\d\d)(?![\w-]|\s?[%°€$£])")
def _local_phone(match: Match) -> str:
    return ", ".join(map(NUMBERS.digits, match[0].split("-")))


@_OWN.add(r"(?<=, [A-Z]{2} )\d{5}(?:-\d{4})?(?![\w-])|(?<![\w.,/-])\d{5}-\d\d(?!00)\d\d(?![\w-])")
def _zip(match: Match) -> str:
    return ", ".join(map(NUMBERS.digits, match[0].split("-")))


@_OWN.add(
    rf"\b({_MONTH}) (\d{{1,2}})(?:st|nd|rd|th)?{APART}(?:{_TO})?"
    rf"(?:(,?) (\d{{4}}){APART})?(?![.:]\d)"
)
def _date(match: Match) -> str:
    day = f"{_month(match[1])} {_days(match[2], match[3])}"
    return f"{day}, {NUMBERS.year(match[5])}" if match[5] else day


@_OWN.add(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?:{_TO})? (?:of )?({_MONTH})(?:,? (\d{{4}}))?{APART}")
def _day(match: Match) -> str:
    day = f"{_days(match[1], match[2])} of {_month(match[3])}"
    return f"{day} {NUMBERS.year(match[4])}" if match[4] else day


@_OWN.add(rf"\b({_MONTH}) ((?:1[1-9]|20)\d\d){APART}")
def _month_year(match: Match) -> str:
    return f"{_month(match[1])} {NUMBERS.year(match[2])}"


@_OWN.add(
    r"(?:(?<=\b[Oo]n )|(?<=\b[Bb]y )|(?<=\b[Ss]ince )|(?<=\b[Uu]ntil )"
    r"|(?<=\b[Bb]efore )|(?<=\b[Aa]fter ))"
    r"(?!\d/[2348]\b)(0?[1-9]|1[0-2])/(0?[1-9]|[12]\d|3[01])(?![\d/])"
)
def _month_day(match: Match) -> str:
    return f"{NUMBERS.integer(match[1])} {NUMBERS.integer(match[2])}"


def _days(first: str, last: str | None) -> str:
    days = [NUMBERS.ordinal(day) for day in (first, last) if day]
    return " to ".join(days)


def _month(name: str) -> str:
    return next(month for month in _MONTHS if month.startswith(name[:3]))


@_OWN.add(rf"(?<![\d:.,])([01]?\d|2[0-4]):([0-5]\d)(?::([0-5]\d))?(?![\d:])(?:{_HALF}|\s?h\b)?")
def _clock(match: Match) -> str:
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
        said += f" and {NUMBERS.count(second, _UNITS['s'])}"
    return said + _half(match, half) if half else said


@_OWN.add(
    rf"(?:(?<=\b[aA] )|(?<=\b[aA]n ))\$({NUMBERS.whole}(?:\.\d+(?= [mbt]))?)(?=[ -][a-z])"
    r"((?: (?:thousand|million|billion|trillion))?)"
)
def _price(match: Match) -> str:
    return f"{NUMBERS.cardinal(match[1])}{match[2]} dollar"


@_OWN.add(r"(?<![\w.,])(\d\d?)p\b(?!\.)")
def _pence(match: Match) -> str:
    return NUMBERS.count(match[1], noun("penny pence"))


@_OWN.add(rf"(?<![\w.])(\d{{1,2}}){_HALF}")
def _hour(match: Match) -> str:
    return NUMBERS.cardinal(match[1]) + _half(match, match[2])


def _half(match: Match, letter: str) -> str:
    return f" {letter.upper()} M{final(match)}"


@_OWN.add(
    r"(?:(?:'|(?i:(?<=\bthe )|(?<=\bmy )|(?<=\bhis )|(?<=\bher )|(?<=\byour )|(?<=\btheir )"
    r"|(?<!\w)(?=\d0s (?:music|rock|pop|movies?|films?|style|fashion|hits|songs?))"
    r"|(?<=\bearly )|(?<=\blate )|(?<=\bmid-)|(?<=\bmid )))(\d0)|\b((?:1[1-9]|20)\d0)"
    r"|(?:(?<=[A-Z])-?|(?<=[A-Za-z][a-z])-)(\d{1,3}))'?s\b"
)
def _decade(match: Match) -> str:
    """Put the plural of a number into words: `the 1990s`, `F-16s`."""
    words = NUMBERS.year(match[2]) if match[2] else NUMBERS.cardinal(match[1] or match[3])
    return re.sub(r"ys$", "ies", re.sub(r"xs$", "xes", f"{words}s"))


@_OWN.add(rf"({NUMBERS.whole})(?:st|nd|rd|th){APART}")
def _ordinal(match: Match) -> str:
    return NUMBERS.ordinal(match[1])


_UNITS = _units()


@_OWN.add(
    r"(?<![\d/.,])(?:(\d+)(?: |-(?=1/2|[13]/4|[12]/3|[1357]/8)))?"
    r"(\d{1,2})/(2|3|4|5|6|7|8|9|10|12|16|32|64|100)(?![\d/.]*\d)"
    rf"(?:\s?({alternatives(_UNITS)}){APART})?"
)
def _fraction(match: Match) -> str:
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
    return f"{said} {_UNITS[unit].many if whole else _UNITS[unit].one}"


@_OWN.add(
    rf"(?:(?<=[a-z] )|(?<=[IVX], )|(?<=[a-z]\. )|(?<=[A-Z]{{2}} )(?=[IVX]{{2}}))"
    rf"(?!IV (?:line|drip|fluid|therap|antibiotic|bag|access|catheter|infusion))"
    rf"({ROMAN}|[VX]|I(?=[.,;:!?)–-]|$| (?:of|and|in|was|is|to|began|ended|"
    r"ruled|errors?|trials?|diabetes|collagen|cancer|study|studies|clinical)\b))"
    rf"{APART}(?:('s)\b|(?!'))"
)
def _roman(match: Match) -> str:
    before, number = lead(match), roman(match[1])
    owner = match[2] or ""
    if re.match(" centur", match.string[match.end() :]):
        return NUMBERS.ordinal(number)
    if re.search(
        rf"\b(?:{_COUNTED}|(?:[Vv]ol|[Cc]h|Sec|Pt)\.) (?:[IVX]+,? (?:and |or |to )?){{0,3}}$",
        before,
    ):
        return NUMBERS.cardinal(number) + owner
    ruler, name = (re.search(rf"\b(?:{names}) $", before) for names in (_RULERS, "[A-Z][A-Za-z]+"))
    if ruler or (name and int(number) < 5 and len(match[1]) > 1):
        return f"the {NUMBERS.ordinal(number)}{owner}"
    return (NUMBERS.cardinal(number) if name and len(match[1]) > 1 else match[1]) + owner


@_OWN.add(
    rf"({NUMBERS.number})[ -]?in(?=\s?[=,;:)]| (?:tall|wide|long|deep|high|by|x)\b|(?<=-in)\s)"
    r"|(?<=\dft )(\d+) ?in\b|(?<=\d ft )(\d+) ?in\b"
)
def _inches(match: Match) -> str:
    return NUMBERS.count(match[1] or match[2] or match[3], _UNITS["in."])


@_OWN.add(r"(?<=[a-z] )Dr\b(?!\.?\s*(?!(?:He|She|It|The|They|We|You|And|In|Call)\b)[A-Z])\.?")
def _drive(match: Match) -> str:
    street = re.search(r"\b(?!Hello|Hi |Dear|Thank|Yes|The|My|Your)[A-Z][a-z]+ $", lead(match))
    return ("Drive" if street else "Doctor") + final(match)


@_OWN.add(r"\bSt\.(?=\s+[A-Z])")
def _saint(match: Match) -> str:
    return "Saint"


@_OWN.add(r"\bSt\.")
def _street(match: Match) -> str:
    return "Street" + final(match)


_SPOKEN = SpeakingRules(
    numbers=NUMBERS,
    own=_OWN,
    units=_UNITS,
    signs=_TABLES["signs"],
    address_signs=_TABLES["address_signs"],
    currencies={
        "$": (noun("dollar dollars"), noun("cent cents")),
        "€": (noun("euro euros"), noun("cent cents")),
        "£": (noun("pound pounds"), noun("penny pence")),
        "¥": (noun("yen"), noun("sen")),
        "₹": (noun("rupee rupees"), noun("paisa paise")),
        "₩": (noun("won"), noun("jeon")),
        "₽": (noun("ruble rubles"), noun("kopeck kopecks")),
        "₺": (noun("lira liras"), noun("kurus")),
        "₿": (noun("bitcoin bitcoins"), noun("cent cents")),
        **dict.fromkeys(("USD", "US$"), (noun("U_S_dollar U_S_dollars"), noun("cent cents"))),
        **dict.fromkeys(("CAD", "C$", "CA$"),
            (noun("Canadian_dollar Canadian_dollars"), noun("cent cents"))),
        **dict.fromkeys(("AUD", "A$", "AU$"),
            (noun("Australian_dollar Australian_dollars"), noun("cent cents"))),
        "EUR": (noun("euro euros"), noun("cent cents")),
        "GBP": (noun("pound pounds"), noun("penny pence")),
        "JPY": (noun("yen"), noun("sen")),
        "CNY": (noun("yuan"), noun("fen")),
        **dict.fromkeys(("INR", "Rs"), (noun("rupee rupees"), noun("paisa paise"))),
        "CHF": (noun("Swiss_franc Swiss_francs"), noun("centime centimes")),
        "MXN": (noun("Mexican_peso Mexican_pesos"), noun("centavo centavos")),
        **dict.fromkeys(("BRL", "R$"), (noun("real reais"), noun("centavo centavos"))),
    },
    magnitudes={
        **{name: noun(name) for name in ("hundred", "thousand", "million", "billion", "trillion")},
        **dict.fromkeys("kK", noun("thousand")),
        **dict.fromkeys("mM", noun("million")),
        **dict.fromkeys(("bn", "b", "B"), noun("billion")),
        "tn": noun("trillion"),
    },
    dotted=_TABLES["dotted"],
    undotted=_TABLES["undotted"],
    asides=_TABLES["asides"],
    number_signs=("No.", "Nos.", "no."),
    calendar=_CALENDAR,
    ends=tuple("am pm AM PM a.m. p.m. A.M. P.M. st nd rd th % in".split()),
    numbered=_TABLES["numbered"],
    near=_TABLES["near"],
    after=_TABLES["after"],
    books=_TABLES["books"],
    functions=_TABLES["functions"],
    dated=_TABLES["dated"],
    dials=(
        "(?i:call|calls|calling|called|dial|dialing|phone|telephone|tel|ring|text|texting|fax|"
        "sms|whatsapp|mobile|cell|hotline|helpline|reach|(?:my|your|our|his|her|their|phone|mobile|"
        "cell|telephone|fax|home|office|direct|toll[- ]free|new|whatsapp) number)"
    ),
    links=(
        "(?i:us|me|him|her|them|it|at|on|is|the|to|toll|free|our|line|number|numbers|"
        "emergency|services|either|in|by|phone|please|now|[A-Z]{4,})"
    ),
    short_numbers=frozenset(
        "911 999 112 988 211 311 411 511 611 711 811 101 111 000 116117".split()
    ),
    codes=(
        "(?i:codes?|pins?|pin number|zip|passcodes?|passwords?|postcodes?|otp|extension|"
        "(?:account|order|confirmation|reference|serial|tracking|ticket|routing|policy|customer|"
        "invoice|booking|model|card|phone|case|claim|id|member|membership) (?:number|no\\.|id)|"
        "PO box|(?:order|ticket|invoice|case|claim|reservation|booking) #|"
        "(?:card|account|number) ending (?:in|with))|ID|SKU|ISBN|IBAN"
    ),
    tells="is|are|was|be|of|as|to",
    joins="and|or",
    percent=noun("percent"),
    degree=noun("degree degrees"),
    scales={"C": "Celsius", "F": "Fahrenheit", "K": "Kelvin"},
    foot=noun("foot feet"),
    inch=noun("inch inches"),
    ampere=noun("amp amps"),
    determiners="an?|the|this|that|my|your|our|his|her|their|every|each|one",
    compass={"N": "north", "S": "south", "E": "east", "W": "west", "O": "O"},
    number="number",
    coins="and",
    per="per",
    to="to",
    of="of",
    out_of="out of",
    ratio="to",
    equals="equals",
    minus="minus",
    times="times",
    by="by",
    fold="times",
    sharp="sharp",
    over="over",
    divided_by="divided by",
    power="to the power of",
    less="less than",
    greater="greater than",
    below="less than",
    above="more than",
    about="about",
    point="point",
    dot="dot",
    code="There is code here that I cannot read aloud.",
    code_within="code that I cannot read aloud",
    openings=(
        *("yes", "no", "yeah", "sure", "well", "okay", "ok", "right", "great", "so", "hello", "hi"),
        *("of course", "certainly", "absolutely", "sorry", "thanks", "thank you", "alright"),
    ),
    runs_on=r"\b(?:approx|cf|incl|excl|avg|Ft|Mt)\.",
)  # fmt: skip

ENGLISH = Language(
    "en",
    unfinished=_WORDS | _PHRASES,
    finished=_FINISHED,
    backchannels=_BACKCHANNELS,
    consent=_CONSENT,
    courtesies=_COURTESIES,
    articles=frozenset({"a", "an", "the"}),
    apology="Sorry, I can't answer right now.",
    loads="One moment, the model is loading.",
    nothing="I have nothing to say to that.",
    done="Done.",
    welcome="Welcome back.",
    asks="Shall I do this? {call}.",
    left_out="and {count} more words",
    truth=("no", "yes"),
    spoken=_SPOKEN,
)
