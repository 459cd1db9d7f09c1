"""The Spanish language: endings of turns, and how written text is said.

Prepositions, articles and the pronouns before a verb never end a sentence. Accents tell words apart
("qué", "tú", "mí", "sé"), but recognisers leave some out. So finished endings are listed without
accents too ("no se", "para tu").
"""

# ruff: noqa: RUF001 - the look-alikes among the signs are meant

from __future__ import annotations

import re

from voiceloop.languages.language import INTERNATIONAL, Language, endings
from voiceloop.languages.numbers import (
    ISO,
    ROMAN,
    Gender,
    Noun,
    Numbers,
    Others,
    Prefixed,
    noun,
    roman,
    units,
)
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
    "el la los las lo un una unos unas al del mi tu su mis tus sus nuestro nuestra nuestros "
    "nuestras cada algún ningún cualquier gran buen primer tercer san don doña cuántos cuántas "
    "cuánto cuánta "
    # prepositions
    "a de en con por para sin sobre entre hasta desde hacia contra según durante mediante ante "
    "tras "
    # conjunctions and question words
    "y e o u ni pero sino porque que si aunque mientras donde cuando como pues "
    "qué quién quiénes cuál cuáles dónde cuándo cómo adónde "
    # auxiliaries, and pronouns before a verb
    "ha he has han hemos había habían habré me te se le les nos os "
    # requests that are incomplete, sums, degrees, fillers
    "dime dame pon ponme muéstrame enséñame recuérdame explícame cuéntame léeme tradúceme traduce "
    "calcula convierte añade agrega despiértame dividido multiplicado muy tan casi eh em ehm "
    "mmm".split()
)
_PHRASES = endings(
    "qué|cuál|quién es|era|fue",
    "cuáles|quiénes|qué son|eran",
    "dónde está|están|queda|hay",
    "esto|hoy|nombre|cumpleaños es",
    "^ es|son|está|hay|puedes|podrías|puede|podría|puedo|quiero|necesito|quisiera|quieres|tengo",
    "yo quiero|necesito|quisiera|tengo",
    "me puedes|podrías|puede|podría|gustaría",
    "qué|cómo|dónde|cuándo puedo|puedes|puede",
    "te gustaría",
    "qué significa",
    "se dice",
    "o sea",
    "a ver",
    "desde hace",
    "por ejemplo",
    "# más|menos|por|entre",
    "temporizador de #",
)
_FINISHED = endings(
    "es|a la una",
    "^|ya|vale|ok|okay|alto|no para",
    "^ si",
    "que|pues|yo si",
    "por qué",
    "desde|hasta cuándo|cuando",
    "por|a cuánto",
    "dime|sé|sabes|di qué|quién|cuál|cómo es|era",
    "dime|sé|sabes dónde está|están|queda|hay",
    "no|ya|lo se",
    "y|eres|para tu",
    "para|de|sin|con mi",
    "ahora|así|tan como",
    "sí|no pues",
)
_BACKCHANNELS = INTERNATIONAL | frozenset(
    "ajá ajam anda bien bueno bravo cierto claro entiendo eso exacto genial guay listo mira "
    "perfecto sí si sip vale vaya verdad ya".split()
)
_CONSENT = frozenset(
    "adelante afirmativo claro confirmado confirmo dale hazlo ok okay seguro sí si vale".split()
) | {"de acuerdo", "por supuesto", "desde luego", "claro que sí", "está bien"}
_COURTESIES = frozenset("ahora eh gracias pues".split()) | {"por favor", "muchas gracias"}

# ---- how written text is said

_TABLES = tables("es")


_NO_NOUN = _TABLES["patterns"]["no_noun"]
"""Pattern of words that may follow a number but are not the noun that it counts."""


_IN_A = _TABLES["patterns"]["in_a"]
"""Pattern of masculine nouns that end with a."""
_FEMININE = _TABLES["patterns"]["feminine"]


class _SpanishNumbers(Numbers):
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


NUMBERS = _SpanishNumbers("es", group=".", decimal=",", marks={",": "coma", ".": "punto"})
_OWN = Rules()

_MONTHS = (
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"
).split()
_SHORT = {name[:3]: name for name in _MONTHS} | {"sept": "septiembre"}
_DAYS = "lunes martes miércoles jueves viernes sábado domingo".split()
_CALENDAR = {
    **_SHORT,
    **{name[:3]: name for name in _DAYS},
    **{name.capitalize()[:3]: name for name in _DAYS},
    **{"L": "lunes", "V": "viernes", "S": "sábado", "D": "domingo"},
    **{name: name for name in (*_MONTHS, *_DAYS)},
    **{name.capitalize(): name for name in (*_MONTHS, *_DAYS)},
}
_HALF = r"(?:\s?([ap])\.?\s?m\b\.?)"
_COUNTED = _TABLES["patterns"]["counted"]
_RULERS = _TABLES["patterns"]["rulers"]


def _units() -> dict[str, Noun]:
    prefixed: Prefixed = (
        (
            {"m": "metro metros"}, "m",
            {"": "", "k": "kiló", "c": "centí", "m": "milí", "d": "decí", "μ": "micró",
             "n": "nanó"},
        ),
        ({"g": "gramo gramos"}, "m", {"": "", "k": "kilo", "m": "mili", "μ": "micro"}),
        (
            {"l": "litro litros", "L": "litro litros"}, "m",
            {"": "", "m": "mili", "c": "centi", "d": "deci", "μ": "micro"},
        ),
        (
            {"W": "vatio vatios", "V": "voltio voltios"}, "m",
            {"": "", "k": "kilo", "M": "mega", "G": "giga", "m": "mili"},
        ),
        ({"A": "amperio amperios"}, "m", {"m": "mili"}),
        ({"Ah": "amperio_hora amperios_hora"}, "m", {"": "", "m": "mili"}),
        ({"J": "julio julios"}, "m", {"k": "kilo", "M": "mega"}),
        ({"Pa": "pascal pascales"}, "m", {"k": "kilo", "M": "mega", "h": "hecto"}),
        ({"Ω": "ohmio ohmios"}, "m", {"": "", "k": "kilo", "M": "mega"}),
        (
            {"bit": "bit bits", "bps": "bit_por_segundo bits_por_segundo"}, "m",
            {"k": "kilo", "K": "kilo", "M": "mega", "G": "giga", "T": "tera"},
        ),
        ({"iB": "bibyte bibytes"}, "m", {"K": "ki", "M": "me", "G": "gi", "T": "te"}),
        ({"s": "segundo segundos"}, "m", {"": "", "m": "mili", "μ": "micro", "n": "nano"}),
    )  # fmt: skip
    others: Others = (
        ("Wh", "vatio_hora vatios_hora", "m"), ("kWh", "kilovatio_hora kilovatios_hora", "m"),
        ("KB kB", "kilobyte kilobytes", "m"), ("MB", "megabyte megabytes", "m"),
        ("GB", "gigabyte gigabytes", "m"), ("TB", "terabyte terabytes", "m"),
        ("Hz", "hercio hercios", "m"), ("kHz", "kilohercio kilohercios", "m"),
        ("MHz", "megahercio megahercios", "m"), ("GHz", "gigahercio gigahercios", "m"),
        ("h hs hrs", "hora horas", "f"), ("min mins", "minuto minutos", "m"),
        ("seg", "segundo segundos", "m"), ("t", "tonelada toneladas", "f"),
        ("ha", "hectárea hectáreas", "f"), ("lb lbs", "libra libras", "f"),
        ("oz", "onza onzas", "f"), ("cda cdas", "cucharada cucharadas", "f"),
        ("cdta cdtas", "cucharadita cucharaditas", "f"), ("kcal", "kilocaloría kilocalorías", "f"),
        ("cal", "caloría calorías", "f"), ("¢", "centavo centavos", "m"),
        ("cts", "céntimo céntimos", "m"), ("dB", "decibelio decibelios", "m"),
        ("bps", "bit_por_segundo bits_por_segundo", "m"),
        ("mph", "milla_por_hora millas_por_hora", "f"), ("CV", "caballo caballos", "m"),
        ("MP", "megapíxel megapíxeles", "m"), ("px", "píxel píxeles", "m"),
        ("mmHg", "milímetro_de_mercurio milímetros_de_mercurio", "m"),
        ("dpi ppp", "punto_por_pulgada puntos_por_pulgada", "m"),
        ("fps", "cuadro_por_segundo cuadros_por_segundo", "m"),
        ("rpm", "revolución_por_minuto revoluciones_por_minuto", "f"),
        ("ppm", "parte_por_millón partes_por_millón", "f"), ("ft", "pie pies", "m"),
        ("yd", "yarda yardas", "f"), ("gal", "galón galones", "m"), ("N", "newton newtons", "m"),
        ("kn", "nudo nudos", "m"), ("mol", "mol moles", "m"), ("ud. uds.", "unidad unidades", "f"),
        ("hab.", "habitante habitantes", "m"),
        ("kg. kgs kgs.", "kilogramo kilogramos", "m"), ("sem.", "semana semanas", "f"),
    )  # fmt: skip
    found = units(prefixed, others)
    for symbol in ("m", "km", "cm", "dm", "mm"):
        name = found[symbol]
        for square, cube in ("²³", "23", ("^2", "^3")):
            found[symbol + square] = Noun(f"{name.one} cuadrado", f"{name.many} cuadrados", "m")
            found[symbol + cube] = Noun(f"{name.one} cúbico", f"{name.many} cúbicos", "m")
    return found


_UNITS = _units()


@_OWN.add(ISO)
def _iso_date(match: Match) -> str:
    return _date(match[3], match[2], match[1]) or NUMBERS.digits(re.sub(r"\D", "", match[0]))


@_OWN.add(
    rf"(?<![\w.,/])(\d{{1,2}})(?: | de |[-/])({'|'.join(_SHORT)})(?![^\W\d_])\.?"
    r"(?:(?: | de |[-/])(\d{4})(?!\d))?"
)
def _short_month(match: Match) -> str:
    said = f"{NUMBERS.words(int(match[1]))} de {_SHORT[match[2]]}"
    return f"{said} de {NUMBERS.year(match[3])}" if match[3] else said


@_OWN.add(
    r"(?<![\d/.,-])(\d{1,2})[/.-](\d{1,2})(?:[/.-](\d{4})|(?<![.-]\d)(?<![.-]\d\d)/(\d\d))(?![\d/-]|[.,]\d)"
)
def _numeric_date(match: Match) -> str:
    day, month, year = filter(None, match.groups())
    return _date(day, month, year) or " ".join(NUMBERS.integer(part) for part in (day, month, year))


def _date(day: str, month: str, year: str) -> str:
    """Put a date into words. Return an empty string if there is no such date."""
    if not 1 <= int(month) <= 12 or not 1 <= int(day) <= 31:
        return ""
    name = _MONTHS[int(month) - 1]
    return f"{NUMBERS.words(int(day))} de {name} de {NUMBERS.year(year)}"


@_OWN.add(
    r"(?<![\w.,:/+-])[6-9]\d{2}[ \u202f]\d{3}[ \u202f](?!000)\d{3}(?![ \u202f]?\d|\s?[€$£%])"
    r"|(?<=\d, )\d{5}(?= [A-ZÁÉÍÓÚ])"
)
def _phone(match: Match) -> str:
    return ", ".join(NUMBERS.digits(group) for group in re.findall(r"\d+", match[0]))


@_OWN.add(
    rf"(?<![\d:.,])([01]?\d|2[0-4]):([0-5]\d)(?::([0-5]\d))?(?![\d:])(?:{_HALF}|\s?(?:horas|h|hs|hrs)\b\.?)?"
)
def _clock(match: Match) -> str:
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


@_OWN.add(rf"(?<![\w.,])(\d{{1,2}}){_HALF}")
def _hour(match: Match) -> str:
    return _hour_words(int(match[1])) + _half(match[2], int(match[1])) + final(match)


_SECOND = noun("segundo segundos", "m")


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


@_OWN.add(
    r"(?<![\d/.,])(?:(\d+) )?(\d{1,2})/(2|3|4|5|6|7|8|9|10|12|16|100)(?![\d/.]*\d)"
    rf"(?:\s?({alternatives(_UNITS)}){APART}|(?<=\d 1/2) (?!más|menos)([^\W\d_]{{2,20}}s)\b)?"
)
def _fraction(match: Match) -> str:
    whole, above, below, unit, things = match.groups()
    counted = _UNITS[unit] if unit else None
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


@_OWN.add(
    r"(?<![\d.,])(\d{1,3})(?:\.?(º|ª|er|o|a|os|as)(?![^\W_]|\s[CF]\b)|(?<=[13])(?:r|\.º)(o|a|os|as)\b"
    r"|(?<=2)d(o|a|os|as)\b|(?<=[456])t(o|a|os|as)\b|(?<=[7890])(?:m|v|n)(o|a|os|as)\b"
    r"|[.]?(°)(?=\s(?:de (?:enero|mayo|abril|ju|ag|sep|oct|nov|dic|feb|mar)|piso|lugar|puesto)))"
)
def _ordinal(match: Match) -> str:
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


@_OWN.add(
    r"(?<!\w)(?:([Cc]/)\s?(?=[A-ZÁÉÍÓÚ])|[Nn]\.?\s?º(?!\s?\d)"
    r"|(?<!\bla )(?<!ión )(?<!letra )(?<!vitamina )(?<!plan )(D\.ª?)(?=\s[A-ZÁÉÍÓÚ][a-zà-ÿ])"
    r"|(ss?|t)\.\s?(?=[IVXL]{1,6}\b))"
)
def _title(match: Match) -> str:
    names = {"D.": "don", "D.ª": "doña", "s.": "siglo", "ss.": "siglos", "t.": "tomo"}
    return "calle" if match[1] else names.get(match[0].strip(), "número")


_EVENTS = _TABLES["patterns"]["events"]
_EVENTS_F = _TABLES["patterns"]["events_f"]


@_OWN.add(
    rf"(?<![^\s(])({ROMAN}|[IVX])(?=\s(?:(?:{_EVENTS})|({_EVENTS_F}))\b)"
    rf"|(?:(?<=[a-záéíóúñ] )|(?<=[a-z]\. ))({ROMAN}|[IVX]){APART}"
)
def _roman(match: Match) -> str:
    before, number = lead(match), roman(match[1] or match[3])
    if match[1] and int(number) < 11:
        said = NUMBERS.ordinal(number)
        return re.sub(r"o$", "a", said) if match[2] else re.sub(r"(primer|tercer)o$", r"\1", said)
    if match[1]:
        return NUMBERS.agreeing(number, "f" if match[2] else "n")
    if re.search(
        rf"(?i)\b(?:{_COUNTED}|ss?\.|t\.|vol\.|cap\.|art\.|(?:siglos?|ss\.) \w+ y) $", before
    ):
        return NUMBERS.cardinal(number)
    ruler = re.search(rf"\b(?:{_RULERS}) $", before)
    if (ruler or len(match[3]) > 1) and (name := re.search(r"\b([A-ZÁÉÍÓÚÑ]\w+) $", before)):
        if int(number) > 10:
            return NUMBERS.cardinal(number)
        feminine = name[1].endswith("a") or name[1] == "Isabel"
        said = NUMBERS.ordinal(number)
        return re.sub(r"o$", "a", said) if feminine else said
    return match[3]


_SPOKEN = SpeakingRules(
    numbers=NUMBERS,
    own=_OWN,
    units=_UNITS,
    signs=_TABLES["signs"],
    address_signs=_TABLES["address_signs"],
    currencies={
        "€": (noun("euro euros", "m"), noun("céntimo céntimos", "m")),
        "$": (noun("dólar dólares", "m"), noun("centavo centavos", "m")),
        "£": (noun("libra libras", "f"), noun("penique peniques", "m")),
        "¥": (noun("yen yenes", "m"), noun("sen", "m")),
        "₹": (noun("rupia rupias", "f"), noun("paisa paisas", "f")),
        "₩": (noun("won wones", "m"), noun("jeon", "m")),
        "₽": (noun("rublo rublos", "m"), noun("kopek kopeks", "m")),
        "₺": (noun("lira liras", "f"), noun("kurus", "m")),
        "₿": (noun("bitcoin bitcoins", "m"), noun("céntimo céntimos", "m")),
        **dict.fromkeys(("USD", "US$"), (noun("dólar_estadounidense dólares_estadounidenses", "m"),
            noun("centavo centavos", "m"))),
        "EUR": (noun("euro euros", "m"), noun("céntimo céntimos", "m")),
        "GBP": (noun("libra libras", "f"), noun("penique peniques", "m")),
        "JPY": (noun("yen yenes", "m"), noun("sen", "m")),
        "CHF": (noun("franco_suizo francos_suizos", "m"), noun("céntimo céntimos", "m")),
        **dict.fromkeys(("MXN", "MX$"), (
            noun("peso_mexicano pesos_mexicanos", "m"), noun("centavo centavos", "m"))),
        "ARS": (noun("peso_argentino pesos_argentinos", "m"), noun("centavo centavos", "m")),
        "COP": (noun("peso_colombiano pesos_colombianos", "m"), noun("centavo centavos", "m")),
        "CLP": (noun("peso_chileno pesos_chilenos", "m"), noun("centavo centavos", "m")),
        **dict.fromkeys(("PEN", "S/"), (noun("sol soles", "m"), noun("céntimo céntimos", "m"))),
    },
    magnitudes={
        **dict.fromkeys(("mil", "k", "K"), noun("mil")),
        **dict.fromkeys(("millón de", "millones de", "millón", "millones", "M"),
            noun("millón_de millones_de", "m")),
        **dict.fromkeys(("mil millones de", "mil millones"), noun("mil_millones_de", "m")),
    },
    dotted=_TABLES["dotted"],
    undotted=_TABLES["undotted"],
    asides=_TABLES["asides"],
    number_signs=("n.º", "N.º", "nº", "Nº", "núm.", "Núm.", "No."),
    calendar=_CALENDAR,
    ends=("am", "pm", "AM", "PM", "a.m.", "p.m.", "a. m.", "p. m.", "%"),
    numbered=_TABLES["numbered"],
    near=_TABLES["near"],
    after=_TABLES["after"],
    books=_TABLES["books"],
    functions=_TABLES["functions"],
    dated=_TABLES["dated"],
    dials=(
        "(?i:llama|llame|llamar|llámame|llámanos|llamando|marca|marque|marcar|teléfono|tel|móvil|"
        "celular|fax|whatsapp|emergencias|(?:mi|tu|su|nuestro) número|número de)"
    ),
    links=(
        "(?i:al|a|me|nos|el|la|los|de|por|teléfono|número|es|gratis|gratuito|emergencias|en|ya|"
        "policía|bomberos|directamente)"
    ),
    short_numbers=frozenset("112 911 091 092 062 061 080 085 016 024 060 010 123 060".split()),
    codes=(
        "(?i:códigos?|código postal|pin|clave|contraseña|c\\.? ?p\\.?|extensión|"
        "(?:tarjeta|cuenta) (?:terminada|que termina) en|"
        "número de (?:cuenta|pedido|referencia|serie|cliente|factura|reserva|seguimiento|teléfono|"
        "tarjeta|confirmación|expediente|socio)|ID|ISBN|IBAN|DNI|PUK)"
    ),
    tells="es|son|era|será",
    joins="y|o",
    percent=noun("por_ciento"),
    degree=noun("grado grados", "m"),
    scales={"C": "Celsius", "F": "Fahrenheit", "K": "Kelvin"},
    foot=noun("pie pies", "m"),
    inch=noun("pulgada pulgadas", "f"),
    ampere=noun("amperio amperios", "m"),
    determiners="(?!)",
    compass={"N": "norte", "S": "sur", "E": "este", "O": "oeste", "W": "oeste"},
    number="número",
    coins="con",
    per="por",
    to="a",
    of="de",
    out_of="de",
    months=tuple(_MONTHS),
    ratio="a",
    equals="igual a",
    minus="menos",
    times="por",
    by="por",
    fold="veces",
    sharp="sharp",
    over="entre",
    divided_by="entre",
    power="elevado a",
    less="menor que",
    greater="mayor que",
    below="menos de",
    above="más de",
    about="aproximadamente",
    point="punto",
    dot="punto",
    code="Aquí hay código que no puedo leer en voz alta.",
    code_within="código que no puedo leer en voz alta",
    openings=(
        *("sí", "no", "claro", "bueno", "vale", "bien", "hola", "gracias", "perdón"),
        *("por supuesto", "de acuerdo", "desde luego", "lo siento"),
    ),
    runs_on=r"\d\s?[ap]\.?\s?m\.?\s+[-–]"
    r"|\b(?:[ad]|Dña|Ctra|Avda|Gral|Sto|Sta|Pza|Dpto)\.",
)  # fmt: skip

SPANISH = Language(
    "es",
    sample="¡Hola! Así es como sueno.",
    unfinished=_WORDS | _PHRASES,
    finished=_FINISHED,
    backchannels=_BACKCHANNELS,
    consent=_CONSENT,
    courtesies=_COURTESIES,
    articles=frozenset("el la un una los las".split()),
    apology="Lo siento, ahora mismo no puedo responder.",
    loads="Un momento, el modelo se está cargando.",
    nothing="No tengo nada que decir a eso.",
    done="Hecho.",
    welcome="Hola de nuevo.",
    asks="¿Hago esto? {call}.",
    left_out="y {count} palabras más",
    truth=("no", "sí"),
    spoken=_SPOKEN,
)
