"""The German language: endings of turns, and how written text is said.

Verbs come last in subordinate clauses, and in main clauses their prefixes come last ("Mach das
Licht an", "Wann geht die Sonne unter?", "Weißt du, wie spät es ist?"). So a verb is an unfinished
ending only after certain words, and so is a preposition that is also a prefix.
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
    LETTER,
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
    "der die den dem des eine einen einem einer eines kein keinen keinem mein meine meinen meinem "
    "meiner meines dein deine deinen deinem deiner deines unser unsere unseren unserem unserer "
    "ihre ihren ihrem seine seinen seinem seiner dieser dieses diese diesen diesem jeden jedem "
    "jedes welche welcher welches welchen welchem "
    # prepositions that are no prefixes of verbs
    "für von in im am vom zum zur beim ins ans aufs fürs ohne gegen bis seit während wegen trotz "
    "außer innerhalb außerhalb zwischen hinter neben über mit zu bei durch pro "
    # conjunctions and question words
    "und oder aber sondern weil dass daß ob wenn als wie obwohl bevor nachdem falls sobald solange "
    "sodass indem entweder weder sowie beziehungsweise sowohl was wer wen wem wessen wo wann "
    # requests that are incomplete, sums, degrees, fillers
    "stell stelle schalte schalt setz setze berechne nenn nenne gib erinnere füge buchstabiere "
    "übersetze plus minus geteilt multipliziert dividiert komma sehr ungefähr circa etwa ziemlich "
    "mindestens ich herr frau dr äh ähm öh öhm hm hmm".split()
)
_SUBJECTS = "ich|du|er|sie|es|wir|ihr|man|das"
_ASKING = "was|wer|wie|wo|wann|warum|woher|wohin|welcher|welche|welches"
_PHRASES = endings(
    # "das" and "ein" are often the last word, but not after these words
    "in|auf|an|für|durch|über|um|ohne|gegen|hinter|neben das",
    "mach|mache|schalt|schalte|stell|stelle|dreh|drehe|spiel|spiele|öffne das",
    "ist|hat|wie|als|oder|und|so|noch|wiegt|in|für|auf|über|um|ohne|gegen|von|an|durch ein",
    "es|das|ich|du|er|man|wir|mir|uns|möchte|will|brauche|hätte|gern|gerne ein",
    "spiel|spiele|schreib|schreibe|mach|mache ein",
    "erstelle|erzähl|erzähle|such|suche|kennst|nimm|buche|plane ein",
    # prefixes of verbs that are prepositions after these words
    "erinnere|erinner mich an|um|daran",
    "denk|denke an",
    "heißt|ist|nennt|sagt|übersetze das|man|es auf",
    "timer|wecker|lautstärke|temperatur|termin|warte|lust|antwort|bezug auf",
    "besteht|bestehen aus",
    "wecker|alarm|termin|treffen|weck|wecke|mich|heute|morgen|abend|früh um",
    "montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag um",
    "suche|such|weg|zug|bus|flug|fahrt|reise|route|ich|viertel|minuten|kommt nach",
    "kilometer|kilometern|jahre|tage nach",
    "viertel|minuten|kommt|angst|kurz|jahren|jahre vor",
    # the verb of a main clause or a question, in its second place
    f"{_ASKING} ist|sind|war|waren|hat|haben|hatte|kann|soll|muss|darf|wird|werden|wurde|wurden",
    f"{_ASKING} bin|bist|habe|hast|möchte|würde|würdest|heißt|bedeutet|gibt|kostet|kosten",
    "viel|viele|lange ist|sind|war|waren|hat|haben|kostet|kosten|wiegt",
    "ich bin|habe|hab|möchte|will|kann|muss|brauche|hätte|würde|werde|soll|war|darf|suche",
    "das|dies|es|er|sie ist|war|wird|hat",
    "weit|spät|alt|groß|hoch|lang|teuer|schnell|schwer|warm|kalt ist|war|wird",
    "es gibt|sind",
    "gibt es",
    "kann|kannst|könnte|könntest|würdest|willst|hast|bist|wirst|magst|weißt|möchtest|sollst du|ich",
    "soll|muss|darf|habe|bin|möchte|will|brauche|würde ich",
    "kann|muss|soll|darf man",
    f"dass|ob|wenn|weil|wo|wann|wie|was|wer|warum {_SUBJECTS}",
    "kannst|könntest|würdest du|sie mir|bitte|mich",
    "du|sie mir bitte",
    "gib|sag|sage|zeig|zeige|erzähl|erzähle|nenn|nenne|erklär|erkläre|schick|schicke mir",
    "such|suche|spiel|spiele|bring|schreib|lies|hol|stell|stelle|mach|mache|buche|bestell mir",
    "weck|wecke mich",
    "würde|hätte|möchte|will gern|gerne|wissen",
    "gern|gerne wissen",
    # measures and examples
    "wie viel|viele|lange|weit|groß|alt|hoch|oft|spät|schnell|schwer|teuer|tief|warm|kalt",
    "viel uhr",
    "um|dreiviertel halb|viertel",
    "zum beispiel",
    "# mal|durch|hoch",
    "timer auf|für|von #",
)
_FINISHED = endings(
    "ja|bitte|dann mach das",
    "noch|auch einen|eine|einer",
    "kosten|heißt|heißen|macht|machen der|die",
    "kennst du|ihr den|die",
    "es|noch|auch|sind welche",
    # prefixes of verbs
    "komm|kommst|kommt|spiel|spielst|mach|macht mit",
    "du|ich|er|sie|ihr|jemand mit",
    "mir das mit",
    "hör|hört|mir|uns|mach|stimmt|gar|tür|fenster|und|nimmt zu",
    "mir|dir|uns das|etwas|spanisch|deutsch|englisch bei",
    "das|es|alles|text|noch|mal durch",
    "bleiben|bleibt|läuft|noch über",
    # short answers and questions
    "und|aber|wieso|ach wie|wo|was|wer",
    "noch|so|weißt|erzähl|erzähle|sag|ach|kannst|irgend was",
    "mir was",
    "seit|bis wann",
    "danke|bitte|so sehr",
    "meine frau",
    "und|auch|nur|nicht ich",
    "wer|wo|was bin ich",
    "was|wer|wo|wie|alt|groß kannst|bist|hast|weißt|magst|willst|möchtest du",
    "wie alt|groß bist du",
    "was muss|kann|soll|darf man",
    "was gibt es",
    "wie|was ist das",
    "was|wie|wo|noch|auch gibt es",
    # the verb of a clause, in its last place
    "wo|was|wie|wer|alt|woher|ob|dass|weil|wenn|spät|was|groß ich bin|war|will|möchte|habe|kann",
    "wo|was|wie|ob|dass|wenn ich brauche|muss|soll|darf|suche|werde|würde",
    "wer|was|wie|wo|wann|ob|dass|weil|wenn das|es|er|sie ist|war",
    "spät|alt|groß|weit|hoch|teuer|lange|viel das|es|er|sie ist|war",
    "was|wie|wo|ob|dass|weil|wenn|warm|kalt|viel das|es|er|sie wird|hat",
    "was|ob|wo|wie es gibt|sind",
    "wie oft|viel|lange|alt|spät das|es",
    "sag|weiß|zu|egal|genau wie viel|viele|oft|lange",
    "um wie viel uhr",
)
_BACKCHANNELS = INTERNATIONAL | frozenset(
    "ach achja achso äh ähm ahja alles cool danke echt eben genau gut interessant ja jaja jep jo "
    "jup klar mhmm na naja natürlich okey prima richtig schön sicher so soso stimmt super toll "
    "verstehe wow".split()
)
_CONSENT = frozenset(
    "bestätigt bestätige einverstanden gern gerne ja jawohl jep jo ok okay okey sicher".split()
) | {"mach das", "mach es", "machs", "tu das", "tu es", "auf jeden fall", "na klar", "natürlich"}
_COURTESIES = frozenset("ähm bitte danke jetzt nun also".split()) | {"vielen dank", "ich bin"}

# ---- how written text is said

_TABLES = tables("de")


class _GermanNumbers(Numbers):
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


NUMBERS = _GermanNumbers("de", group=".", decimal=",", marks={",": "Komma", ".": "Punkt"})
_OWN = Rules()

_MONTHS = (
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"
).split()
_SHORT = {name[:3]: name for name in _MONTHS if name != "Mai"} | {"Sept": "September"}
_MONTH = "|".join([*_MONTHS, "Jänner", *(rf"{name}(?:\.|(?= \d{{4}}\b))" for name in _SHORT)])
_DAYS = "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag".split()
_CALENDAR = {
    **{name[:2]: name for name in _DAYS},
    **_SHORT,
    **{name: name for name in (*_MONTHS, *_DAYS, "Sonnabend", "Jänner")},
}
_WEEKDAY = "Mo|Di|Mi|Do|Fr|Sa|So"
_WEAK = (
    r"(?:am|im|vom|zum|zur|beim|ans|ins|bis|ab|seit|vor|nach|dem|den|des|einem|einen|einer|eines)"
)
_STRONG = r"(?:der|die|das|ein|eine|jede|jeder|jedes|diese|dieser|dieses)"
_DATIVE = r"\b(?:in|an|auf|aus|bei|mit|nach|seit|von|vor|zu|unter|über|neben|zwischen) der $"
_MASCULINE = _TABLES["patterns"]["masculine"]
_FEMININE = _TABLES["patterns"]["feminine"]
_NEUTER = _TABLES["patterns"]["neuter"]
_DETERMINERS = (
    rf"\b(?:{_WEAK}|{_STRONG}|jede[nm]|diese[nm]|(?:mein|dein|sein|ihr|unser)e?[nmrs]?|und|oder)"
)


_COUNTED = _TABLES["patterns"]["counted"]


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


def _units() -> dict[str, Noun]:
    prefixed: Prefixed = (
        (
            {"m": "Meter"}, "m",
            {"": "", "k": "Kilo", "c": "Zenti", "m": "Milli", "d": "Dezi", "μ": "Mikro",
             "n": "Nano"},
        ),
        ({"g": "Gramm"}, "n", {"": "", "k": "Kilo", "m": "Milli", "μ": "Mikro"}),
        (
            {"l": "Liter", "L": "Liter"}, "m",
            {"": "", "m": "Milli", "c": "Zenti", "d": "Dezi", "μ": "Mikro"},
        ),
        (
            {"W": "Watt", "V": "Volt"}, "n",
            {"": "", "k": "Kilo", "M": "Mega", "G": "Giga", "m": "Milli"},
        ),
        ({"Wh": "Wattstunde Wattstunden"}, "f", {"": "", "k": "Kilo", "M": "Mega"}),
        ({"Ah": "Amperestunde Amperestunden"}, "f", {"": "", "m": "Milli"}),
        ({"A": "Ampere"}, "n", {"m": "Milli"}),
        ({"J": "Joule", "Pa": "Pascal"}, "n", {"k": "Kilo", "M": "Mega", "h": "Hekto"}),
        ({"N": "Newton"}, "n", {"k": "Kilo"}),
        ({"Ω": "Ohm"}, "n", {"": "", "k": "Kilo", "M": "Mega"}),
        (
            {"B": "Byte", "bit": "Bit", "bps": "Bit_pro_Sekunde"}, "n",
            {"k": "Kilo", "K": "Kilo", "M": "Mega", "G": "Giga", "T": "Tera"},
        ),
        ({"iB": "Bibyte"}, "n", {"K": "Ki", "M": "Me", "G": "Gi", "T": "Te"}),
        ({"Hz": "Hertz"}, "n", {"": "", "k": "Kilo", "M": "Mega", "G": "Giga", "T": "Tera"}),
        ({"s": "Sekunde Sekunden"}, "f", {"": "", "m": "Milli", "μ": "Mikro", "n": "Nano"}),
    )  # fmt: skip
    others: Others = (
        ("h Std. Std", "Stunde Stunden", "f"), ("min Min. Min", "Minute Minuten", "f"),
        ("sek Sek. Sek", "Sekunde Sekunden", "f"), ("t", "Tonne Tonnen", "f"),
        ("EL", "Esslöffel", "m"), ("TL", "Teelöffel", "m"), ("Stk. Stk", "Stück", "n"),
        ("kcal", "Kilokalorie Kilokalorien", "f"), ("ha", "Hektar", "n"), ("¢ ct", "Cent", "m"),
        ("dB", "Dezibel", "n"), ("bps", "Bit_pro_Sekunde", "n"), ("PS", "PS", "n"),
        ("MP", "Megapixel", "n"), ("px", "Pixel", "n"), ("mmHg", "Millimeter_Quecksilber", "m"),
        ("dpi", "Punkt_pro_Zoll Punkte_pro_Zoll", "m"),
        ("fps", "Bild_pro_Sekunde Bilder_pro_Sekunde", "n"),
        ("rpm U/min", "Umdrehung_pro_Minute Umdrehungen_pro_Minute", "f"),
        ("lb lbs Pfd.", "Pfund", "n"), ("oz", "Unze Unzen", "f"), ("ft", "Fuß", "m"),
        ("mi", "Meile Meilen", "f"), ("gal", "Gallone Gallonen", "f"), ("kn", "Knoten", "m"),
        ("mol", "Mol", "n"), ("cal", "Kalorie Kalorien", "f"),
        ("f. ff.", "folgende", "f"), ("Mt. Mte.", "Monat Monate", "m"), ("J.", "Jahr Jahre", "n"),
        ("Wo.", "Woche Wochen", "f"), ("Pck. Pkg.", "Packung Packungen", "f"),
        ("Pers.", "Person Personen", "f"),
        ("Msp.", "Messerspitze Messerspitzen", "f"), ("Zi.", "Zimmer", "n"),
        ("mph", "Meile_pro_Stunde Meilen_pro_Stunde", "f"),
    )  # fmt: skip
    found = units(
        prefixed,
        others,
        lambda before, form: before + (form[0].lower() + form[1:] if before else form),
    )
    for symbol in ("m", "km", "cm", "dm", "mm"):
        name = found[symbol].one.lower()
        for square, cube in ("²³", "23", ("^2", "^3")):
            found[symbol + square] = noun(f"Quadrat{name}", "m")
            found[symbol + cube] = noun(f"Kubik{name}", "m")
    found |= {"qm": found["m²"], "cbm": found["m³"]}
    return found


_UNITS = _units()
_HALVES = {"m": "ein halber", "f": "eine halbe", "n": "ein halbes"}
_GENDERS: dict[str, str] = {unit.one: unit.gender for unit in _UNITS.values()} | {
    **dict.fromkeys("Tag Monat Löffel Apfel Becher Bund Liter Kuchen Teller".split(), "m"),
    **dict.fromkeys("Kilo Jahr Brot Glas Dutzend Huhn Prozent Hähnchen Stück".split(), "n"),
}  # fmt: skip


@_OWN.add(ISO)
def _iso_date(match: Match) -> str:
    month, day = int(match[2]), int(match[3])
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return NUMBERS.digits(re.sub(r"\D", "", match[0]))
    return _date(match, str(day), _MONTHS[month - 1], match[1])


@_OWN.add(r"(?<![\d.,])(0[1-9]|[12]\d|3[01])\.(0[1-9]|1[0-2])\.(\d\d)(?![\w.])")
def _short_date(match: Match) -> str:
    day = NUMBERS.inflected(str(int(match[1])), lead(match), alone="r")
    return f"{day} {_MONTHS[int(match[2]) - 1]} {NUMBERS.integer(match[3])}"


@_OWN.add(r"(?<![\d.,])(0?[1-9]|[12]\d|3[01])\.\s?(0?[1-9]|1[0-2])\.(?:\s?(\d{4})(?!\.?\d)|(?!\d))")
def _numeric_date(match: Match) -> str:
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


@_OWN.add(r"(?<=\d\.)[-–](?=\d{1,2}\.\d{1,2}\.)")
def _until(match: Match) -> str:
    return "bis"


@_OWN.add(rf"(?<![\d.,])(\d{{1,2}})\.\s?[-–]\s?(\d{{1,2}})\.(?=\s+({_MONTH})|\s|$)")
def _ordinals(match: Match) -> str:
    before = lead(match)
    days = (NUMBERS.inflected(day, before, alone="r" * bool(match[3])) for day in match.group(1, 2))
    return " bis ".join(days) + final(match)


@_OWN.add(rf"(?<![\d.,])(\d{{1,2}})\. ({_MONTH})(?:(?<=\w) (\d{{4}})|(?<=\.) (\d{{4}}))?{APART}")
def _day(match: Match) -> str:
    month = next((one for one in _MONTHS if one[:3] == match[2][:3]), match[2])
    return _date(match, match[1], month, match[3] or match[4]) + final(match)


@_OWN.add(r"(?<=\d, )\d{5}(?= [A-ZÄÖÜ])")
def _postcode(match: Match) -> str:
    return NUMBERS.digits(match[0])


@_OWN.add(
    r"(?<![\d:.,])([01]?\d|2[0-4])(?::([0-5]\d)(?::([0-5]\d))?(?![\d:])(?:\s?(?:Uhr|h)\b)?"
    r"|\.([0-5]\d)(?: Uhr\b|(?= ?(?:[-–]|bis|und) ?\d\d?(?:[.:]\d\d)? Uhr\b))"
    r"| Uhr (?:([0-5]?\d)(?![\w.,:]\w))| Uhr\b)"
)
def _clock(match: Match) -> str:
    minute = next((part for part in match.group(2, 4, 5) if part), "0")
    said = f"{NUMBERS.agreeing(str(int(match[1])), 'n')} Uhr"
    if int(minute):
        said += f" {NUMBERS.cardinal(str(int(minute)))}"
    if match[3] and int(match[3]):
        said += f" und {NUMBERS.count(str(int(match[3])), noun('Sekunde Sekunden', 'f'))}"
    return said


@_OWN.add(r"(?<![\d.,])1 (Mio|Mrd)\b\.?(?= [^\W\d_]{4})")
def _million(match: Match) -> str:
    return "eine Million" if match[1] == "Mio" else "eine Milliarde"


@_OWN.add(rf"\b((?:1[1-9]|20)?\d0|[2-9](?=er-))(ern?){APART}")
def _decade(match: Match) -> str:
    return NUMBERS.year(match[1]) + match[2]


@_OWN.add(
    r"(?<![\d/.,])(?:(\d+) )?(\d{1,2})/(2|3|4|5|6|7|8|9|10|12|16|100)(?![\d/.]*\d)"
    rf"(?:\s?({alternatives(_UNITS)}){APART})?"
)
def _fraction(match: Match) -> str:
    whole, above, below, unit = match.groups()
    counted = _UNITS[unit] if unit else None
    if not 0 < int(above) < int(below):
        said = f"{NUMBERS.cardinal(above)} durch {NUMBERS.cardinal(below)}"
    elif below != "2":
        said = f"{NUMBERS.agreeing(above, 'n')} {NUMBERS.ordinal(below)}l"
    elif whole:
        return f"{NUMBERS.agreeing(whole, 'n')}einhalb" + (f" {counted.many}" if counted else "")
    elif counted:
        return f"{_HALVES[counted.gender]} {counted.one}"
    else:  # most nouns in -e are feminine: eine halbe Tasse
        thing = re.match(r"\s+([A-ZÄÖÜ]\w*?(e)?)\b", match.string[match.end() :])
        gender = thing and (_GENDERS.get(thing[1]) or (thing[2] and "f"))
        return _HALVES.get(gender or "", "ein halb")
    if whole:
        said = f"{NUMBERS.cardinal(whole)} {said}"
    return f"{said} {counted.one}" if counted else said


# "Wähle 110 oder 112." ends with a number, not with an ordinal.
@_OWN.add(
    r"(?<![\d.,])(?!(?:(?<=und )(?<!\d\. und )|(?<=oder )(?<!\d\. oder )|11)\d+\.[\"')]*\s*$)"
    r"(\d{1,3})\.(?=\s+[^\W\d_]|,\s\d|[\"')]*\s*$)"
)
def _ordinal(match: Match) -> str:
    before, after = lead(match), match.string[match.end() :]
    determined = re.search(rf"(?i){_DETERMINERS}\s$", before)
    if determined or re.match(r"\s+[a-zäöü]|,\s\d", after):
        return NUMBERS.inflected(match[1], before, alone="") + final(match)
    if counted := re.match(rf"\s+(?:({_MASCULINE})|({_FEMININE})|(?:{_NEUTER}))\b", after):
        return NUMBERS.ordinal(match[1]) + ("r" if counted[1] else "" if counted[2] else "s")
    return f"{NUMBERS.cardinal(match[1])} ."


@_OWN.add(rf"({NUMBERS.number})\s?%-?(ig(?:e[nmrs]?)?){APART}")
def _percentage(match: Match) -> str:
    return f"{NUMBERS.cardinal(match[1])}prozent{match[2]}"


@_OWN.add(
    rf"(?<![^\s(])({ROMAN}|[IVX])\.(?=\s(?:({_MASCULINE})|({_FEMININE})|(?:{_NEUTER}))\b)"
    rf"|(?<=[a-zäöüß] )({ROMAN}|[IVX])(?:\.|(?={APART}))(?!')"
)
def _roman(match: Match) -> str:
    number, before = roman(match[1] or match[4]), lead(match)
    if match[1]:
        ending = "r" if match[2] else "" if match[3] else "s"
        return NUMBERS.inflected(number, before, alone=ending)
    if re.search(rf"\b(?:{_COUNTED}) $", before):
        return NUMBERS.cardinal(number) + final(match)
    if match[0].endswith(".") and (name := re.search(r"([A-ZÄÖÜ]\w+) $", before)):
        queen = name[1] in ("Elisabeth", "Katharina", "Maria", "Margarethe", "Isabella")
        return f"{'die' if queen else 'der'} {NUMBERS.ordinal(number)}{final(match)}"
    if match[0].endswith(".") and re.search(rf"(?i){_DETERMINERS} $", before):
        return NUMBERS.inflected(number, before, alone="") + final(match)
    if len(match[4]) == 1 or match[0].endswith("."):
        return match[4] + final(match)
    return NUMBERS.cardinal(number)


@_OWN.add(rf"({LETTER}{{2,}})(?:str\.|pl\.(?=\s?\d))")
def _street(match: Match) -> str:
    return match[1] + ("straße" if "str." in match[0] else "platz") + final(match)


_SPOKEN = SpeakingRules(
    numbers=NUMBERS,
    own=_OWN,
    units=_UNITS,
    signs=_TABLES["signs"],
    address_signs=_TABLES["address_signs"],
    currencies={
        "€": (noun("Euro", "m"), noun("Cent", "m")),
        "$": (noun("Dollar", "m"), noun("Cent", "m")),
        "£": (noun("Pfund", "n"), noun("Penny Pence", "m")),
        "¥": (noun("Yen", "m"), noun("Sen", "m")),
        "₹": (noun("Rupie Rupien", "f"), noun("Paisa", "m")),
        "₩": (noun("Won", "m"), noun("Jeon", "m")),
        "₽": (noun("Rubel", "m"), noun("Kopeke Kopeken", "f")),
        "₺": (noun("Lira", "f"), noun("Kuruş", "m")),
        "₿": (noun("Bitcoin", "m"), noun("Cent", "m")),
        **dict.fromkeys(("USD", "US$"), (noun("US-Dollar", "m"), noun("Cent", "m"))),
        "CAD": (noun("kanadische_Dollar", "m"), noun("Cent", "m")),
        "AUD": (noun("australische_Dollar", "m"), noun("Cent", "m")),
        "EUR": (noun("Euro", "m"), noun("Cent", "m")),
        "GBP": (noun("Pfund", "n"), noun("Penny Pence", "m")),
        "JPY": (noun("Yen", "m"), noun("Sen", "m")),
        "CNY": (noun("Yuan", "m"), noun("Fen", "m")),
        "INR": (noun("Rupie Rupien", "f"), noun("Paisa", "m")),
        "CHF": (noun("Schweizer_Franken", "m"), noun("Rappen", "m")),
    },
    magnitudes={
        **dict.fromkeys(("Tausend", "tausend", "Tsd.", "k", "K", "T"), noun("tausend")),
        **dict.fromkeys(("Million", "Millionen", "Mio.", "Mio", "M", "Mill."),
            noun("Million Millionen", "f")),
        **dict.fromkeys(("Milliarde", "Milliarden", "Mrd.", "Mrd"),
            noun("Milliarde Milliarden", "f")),
        **dict.fromkeys(("Billion", "Billionen", "Bio."), noun("Billion Billionen", "f")),
    },
    dotted=_TABLES["dotted"] | _SHORT,
    undotted=_TABLES["undotted"],
    asides=_TABLES["asides"],
    number_signs=("Nr.", "Nrn.", "No."),
    calendar=_CALENDAR,
    ends=("Uhr", "%"),
    numbered=_TABLES["numbered"],
    near=_TABLES["near"],
    after=_TABLES["after"],
    books=_TABLES["books"],
    functions=_TABLES["functions"],
    dated=_TABLES["dated"],
    dials=(
        "(?i:ruf|rufe|rufen|anrufen|wähl|wähle|wählen|telefon|telefonnummer|tel|telefonnr|fax|"
        "handy|handynummer|mobil|rufnummer|nummer|notruf|notrufnummer|hotline|sms|erreichen|erreichst)"
    ),
    links=(
        "(?i:sie|du|mich|uns|ihn|an|die|den|der|unter|ist|lautet|nummer|notruf|auf|bitte|jetzt|"
        "polizei|feuerwehr|am|bei|gebührenfrei|kostenlos|immer)"
    ),
    short_numbers=frozenset("110 112 115 116117 144 117 118 122 133".split()),
    codes=(
        "(?i:pin|tan|code|codes|plz|postleitzahl|postleitzahlen|passwort|kennwort|blz|bankleitzahl|"
        "vorwahl|geheimzahl|kennziffer|(?:konto|kunden|bestell|auftrags|rechnungs|serien|"
        "artikel|karten|telefon|handy|referenz|sendungs|buchungs|ticket|mitglieds|versicherungs)"
        "nummer|\\w+code|ID|ISBN|IBAN|(?:karte|konto|nummer) endet auf)"
    ),
    tells="ist|sind|lautet|lauten|war|heißt",
    joins="und|oder",
    percent=noun("Prozent"),
    degree=noun("Grad"),
    scales={"C": "Celsius", "F": "Fahrenheit", "K": "Kelvin"},
    foot=noun("Fuß", "m"),
    inch=noun("Zoll", "m"),
    ampere=noun("Ampere"),
    determiners="(?!)",
    compass={"N": "Nord", "S": "Süd", "O": "Ost", "E": "Ost", "W": "West"},
    number="Nummer",
    coins="und",
    per="pro",
    to="bis",
    of="von",
    out_of="von",
    ratio="zu",
    equals="gleich",
    minus="minus",
    times="mal",
    by="mal",
    fold="mal",
    sharp="sharp",
    over="durch",
    divided_by="geteilt durch",
    power="hoch",
    less="kleiner als",
    greater="größer als",
    below="weniger als",
    above="mehr als",
    about="etwa",
    point="Punkt",
    dot="Punkt",
    code="Hier steht Code, den ich nicht vorlesen kann.",
    code_within="Code, den ich nicht vorlesen kann,",
    openings=(
        *("ja", "nein", "klar", "gern", "gerne", "gut", "okay", "ok", "also", "nun", "hallo"),
        *("natürlich", "sicher", "genau", "danke", "na klar", "tut mir leid"),
    ),
    runs_on=r"(?<![\d.,])\d{1,2}\.,?|(?<!\S)[IVX]+\.|\b(?:inkl|exkl|zzgl|med|Ing|dent|jur|phil|einschl|allg|ehem|Tsd|z\.\s?Zt)\.",
)  # fmt: skip

GERMAN = Language(
    "de",
    sample="Hallo! So klinge ich.",
    unfinished=_WORDS | _PHRASES,
    finished=_FINISHED,
    backchannels=_BACKCHANNELS,
    consent=_CONSENT,
    courtesies=_COURTESIES,
    articles=frozenset("der die das den ein eine".split()),
    apology="Entschuldigung, ich kann gerade nicht antworten.",
    loads="Einen Moment, das Modell wird geladen.",
    nothing="Dazu habe ich nichts zu sagen.",
    done="Erledigt.",
    welcome="Da bist du ja wieder.",
    asks="Soll ich das tun? {call}.",
    left_out="und {count} weitere Wörter",
    truth=("nein", "ja"),
    spoken=_SPOKEN,
)
