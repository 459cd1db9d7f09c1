"""German phrases: names and numbers in requests, and answers."""

from __future__ import annotations

import re
from datetime import date, datetime

from voiceloop.languages.de import NUMBERS
from voiceloop.skills.phrases.phrases import Phrases
from voiceloop.skills.words import NumberWords


class _GermanPhrases(Phrases):
    def stem(self, ordinal: str) -> str:
        """Return `ordinal` in the form that `numbers.ordinal` gives: `dritten` -> dritte."""
        return re.sub(r"(?<=te)[nrsm]$", "", ordinal)

    def time(self, moment: datetime, *, half: bool = True) -> str:
        """Return the time as in `15:42 Uhr`."""
        return f"{moment.hour}:{moment.minute:02} Uhr" if moment.minute else f"{moment.hour} Uhr"

    def date(self, day: date, *, year: bool = False) -> str:
        """Return the day as in `Donnerstag, der 26. November`."""
        said = f"{self.weekday(day.weekday())}, der {day.day}. {self.month(day.month)}"
        return f"{said} {day.year}" if year else said


GERMAN = _GermanPhrases(
    "de",
    words=NumberWords(
        NUMBERS,
        variants=(("^einhundert", "hundert"), ("zwei", "zwo")),
        more={},
        scales={"tausend": 1000, "million": 10**6, "millionen": 10**6, "milliarden": 10**9},
        joins=frozenset({"und"}),
        point=frozenset({"komma"}),
        glued=True,
    ),
    articles=frozenset("ein eine einen einer einem eines".split()),
    fillers=frozenset(
        "bitte mal doch denn eigentlich gerade halt einfach äh ähm eben".split()
    ),
    times=(
        ("{h:hour} [uhr] [{p:half}]", 0, 0),
        ("{t:written} [uhr] [{p:half}]", 0, 0),
        ("{h:hour} uhr [und] {m:minute} [{p:half}]", 0, 1),
        ("halb {h:hour} [{p:half}]", -30, 0),
        ("viertel nach {h:hour} [uhr] [{p:half}]", 15, 0),
        ("viertel vor {h:hour} [uhr] [{p:half}]", -15, 0),
        ("(dreiviertel|drei viertel) {h:hour} [{p:half}]", -15, 0),
        ("{m:minute} [minuten|minute] nach {h:hour} [uhr] [{p:half}]", 0, 1),
        ("{m:minute} [minuten|minute] vor {h:hour} [uhr] [{p:half}]", 0, -1),
        ("{m:minute} [minuten|minute] nach halb {h:hour} [{p:half}]", -30, 1),
        ("{m:minute} [minuten|minute] vor halb {h:hour} [{p:half}]", -30, -1),
        ("mittag|12 uhr mittags", 720, 0),
        ("mitternacht", 0, 0),
    ),
    halves={
        "am": "morgens|früh|in der früh|am (morgen|vormittag)|vormittags|nachts|in der nacht|früh morgens",
        "pm": "nachmittags|abends|am (nachmittag|abend)|heute (abend|nachmittag)",
    },
    weekdays=(
        *("Montag|montags", "Dienstag|dienstags", "Mittwoch|mittwochs", "Donnerstag|donnerstags"),
        *("Freitag|freitags", "Samstag|samstags|sonnabend|wochenende", "Sonntag|sonntags"),
    ),
    months=(
        *("Januar|jänner", "Februar|feber", "März", "April", "Mai", "Juni|juno", "Juli|julei"),
        *("August", "September", "Oktober", "November", "Dezember"),
    ),
    days={
        "today": "heute|heutige|heutigen",
        "tomorrow": "morgen|morgige",
        "after tomorrow": "übermorgen",
        "yesterday": "gestern|gestrige",
        "before yesterday": "vorgestern",
        "later": "in {n:count} {p:period}|heute in {n:count} {p:period}",
        "ago": "vor {n:count} {p:period}",
        "weekday": "[am|an|diesen|dieser|zum|dem] {w:weekday}",
        "next": "[am] (nächsten|nächster|nächste|kommenden|kommender) {w:weekday}",
        "last": "[am] (letzten|letzter|vergangenen|vorigen) {w:weekday}",
        "date": "[am|der|dem|den|zum|vom] {d:ordinal} {m:month} [{y:year}]"
        "|(am|der|dem|den|zum) {d:ordinal} [dieses monats|des monats]"
        "|[am|der|dem|den|zum] {d:dotted} [{y:year}]",
        "feast": "[am|an|der|zu|dem|das] ({f:feast} [[im [jahr]|in] {y:year}]|{y:year} {f:feast})",
    },
    periods={
        "day": "Tag Tage|tagen|mal schlafen",
        "week": "Woche Wochen",
        "month": "Monat Monate|monaten",
        "year": "Jahr Jahre|jahren",
    },
    feasts={
        "12-25": "weihnachten|1 weihnachtstag|erste weihnachtstag|ersten weihnachtstag",
        "12-24": "heiligabend|heilig abend|heiliger abend",
        "12-26": "2 weihnachtstag|zweite weihnachtstag",
        "1-1": "neujahr|neues jahr|neujahrstag|neue jahr",
        "12-31": "silvester",
        "12-6": "nikolaus|nikolaustag",
        "10-31": "halloween|reformationstag",
        "2-14": "valentinstag",
        "5-1": "tag der arbeit",
        "10-3": "tag der deutschen einheit",
        "easter": "ostern|ostersonntag",
        "thanksgiving": "thanksgiving",
    },
    amounts=(
        ("{n:number} {u:unit}", "0"),
        ("{n:number} und ein halbe {u:unit}", "1/2"),
        ("(eine|einen|ein|ne|einer|einem) (halbe|halben|halbes|halber) {u:unit}", "1/2"),
        ("(halbe|halben|halbes|halber) {u:unit}", "1/2"),
        ("(eine|ein|einer) viertel {u:unit}", "1/4"),
        ("[eine|einer] (dreiviertel|3 viertel) {u:unit}", "3/4"),
        ("{n:number} (einhalb|ein halb) {u:unit}", "1/2"),
    ),
    halved=r"(?:anderthalb|(\w+?)einhalb|eineinhalb)",
    units={
        "second": "Sekunde Sekunden|sek|s",
        "minute": "Minute Minuten|min|minütigen|minütiger",
        "hour": "Stunde Stunden|std|h",
        "quarter hour": "Viertelstunde Viertelstunden",
        "three quarter hour": "Dreiviertelstunde Dreiviertelstunden",
        "day": "Tag Tage|tagen",
        "week": "Woche Wochen",
        "year": "Jahr Jahre|jahren",
        "meter": "Meter Meter|metern|m",
        "kilometer": "Kilometer Kilometer|kilometern|km",
        "centimeter": "Zentimeter Zentimeter|zentimetern|cm|centimeter",
        "millimeter": "Millimeter Millimeter|millimetern|mm",
        "inch": "Zoll Zoll|inch",
        "foot": "Fuß Fuß|feet",
        "yard": "Yard Yards",
        "mile": "Meile Meilen",
        "nautical mile": "Seemeile Seemeilen",
        "light year": "Lichtjahr Lichtjahre|lichtjahren",
        "gram": "Gramm Gramm|g",
        "kilogram": "Kilogramm Kilogramm|kilo|kilos|kg",
        "milligram": "Milligramm Milligramm|mg",
        "ton": "Tonne Tonnen",
        "centner": "Zentner Zentner|zentnern",
        "ounce": "Unze Unzen",
        "metric pound": "Pfund Pfund",
        "pound": "englisches_Pfund englische_Pfund|englischen pfund|lbs|lb",
        "stone": "Stone Stones",
        "liter": "Liter Liter|litern|l",
        "milliliter": "Milliliter Milliliter|millilitern|ml",
        "centiliter": "Zentiliter Zentiliter|zentilitern|cl",
        "deciliter": "Deziliter Deziliter|dezilitern|dl",
        "gallon": "Gallone Gallonen",
        "quart": "Quart Quarts",
        "pint": "Pint Pints|pinte|pinten",
        "cup": "Tasse Tassen|cups",
        "fluid ounce": "Flüssigunze Flüssigunzen|unze|unzen",
        "tablespoon": "Esslöffel Esslöffel|esslöffeln|el",
        "teaspoon": "Teelöffel Teelöffel|teelöffeln|tl",
        "cubic meter": "Kubikmeter Kubikmeter|kubikmetern",
        "celsius": "Grad_Celsius Grad_Celsius|celsius|° c|grad|°|c",
        "fahrenheit": "Grad_Fahrenheit Grad_Fahrenheit|fahrenheit|° f|grad|°|f",
        "kelvin": "Kelvin Kelvin|k",
        "kilometer per hour": "Stundenkilometer Stundenkilometer|stundenkilometern|km / h|kmh"
        "|kilometer pro stunde|kilometern pro stunde|kilometer in der stunde|km pro stunde",
        "mile per hour": "Meile_pro_Stunde Meilen_pro_Stunde|mph|meilen in der stunde",
        "meter per second": "Meter_pro_Sekunde Meter_pro_Sekunde|m / s|metern pro sekunde",
        "knot": "Knoten Knoten",
        "square meter": "Quadratmeter Quadratmeter|quadratmetern|qm|m ^ 2",
        "square kilometer": "Quadratkilometer Quadratkilometer|quadratkilometern",
        "square centimeter": "Quadratzentimeter Quadratzentimeter|quadratzentimetern",
        "square foot": "Quadratfuß Quadratfuß",
        "square mile": "Quadratmeile Quadratmeilen",
        "hectare": "Hektar Hektar",
        "acre": "Morgen Morgen|acre|acres",
        "byte": "Byte Bytes",
        "kilobyte": "Kilobyte Kilobytes|kb",
        "megabyte": "Megabyte Megabytes|mb",
        "gigabyte": "Gigabyte Gigabytes|gb",
        "terabyte": "Terabyte Terabytes|tb",
        "dozen": "Dutzend Dutzend",
        "piece": "Stück Stück|eier|stücke|dinge",
    },
    operators={
        "+": "plus|+|addiert mit|und dazu",
        "-": "minus|weniger|-|abzüglich",
        "*": "mal|multipliziert mit|x|*",
        "/": "geteilt durch|dividiert durch|durch|/",
        "%": "Prozent von|% von|prozent aus|prozent der",
        "%off": "Prozent Rabatt auf|% rabatt auf|prozent nachlass auf|% nachlass auf",
        "^": "hoch|^",
        "^2": "im Quadrat|zum quadrat|quadriert|^ 2",
        "^3": "hoch 3|kubik|^ 3",
        "sqrt": "die Wurzel aus|wurzel aus|wurzel von|quadratwurzel aus|quadratwurzel von|√|die wurzel von"
        "|die quadratwurzel aus|die quadratwurzel von|wurzel",
        "sq": "das Quadrat von|quadrat von",
        "pct": "Prozent|%",
        "cbrt": "die dritte Wurzel aus|dritte wurzel aus|kubikwurzel aus|die kubikwurzel aus",
        "2*": "das Doppelte von|doppelte von|doppelt|das zweifache von|zweimal",
        "3*": "das Dreifache von|dreifache von|dreimal",
        "neg": "negativ",
    },
    sums={
        "%": "{a:number} (prozent|%) trinkgeld (auf|von|für|bei) {b:number} [{c:money}]",
        "%off": "{b:number} [{c:money}] (mit|abzüglich|minus) {a:number} (prozent|%) (rabatt|nachlass)",
        "+": "(addiere|addier|addieren) {a:number} (und|mit|zu|plus) {b:number}"
        "|[die] summe (von|aus) {a:number} und {b:number}|{a:number} und {b:number} (zusammen|addiert)"
        "|{a:number} (und|zu) {b:number} (addieren|zusammenzählen)",
        "-": "(subtrahiere|zieh|ziehe) {b:number} von {a:number} [ab]"
        "|[die] differenz (von|zwischen|aus) {a:number} und {b:number}",
        "*": "(multipliziere|multiplizier) {a:number} (mit|und|mal) {b:number}"
        "|[das] produkt (von|aus) {a:number} und {b:number}|{a:number} mit {b:number} multiplizieren",
        "/": "(teile|teil|dividiere|dividier) {a:number} [{c:money}] durch {b:number} [leute|personen]"
        "|(teile|teil|verteile) {a:number} [{c:money}] [auf|durch|zwischen|unter] {b:number}"
        " [leute|leuten|personen|freunde|freunden|leute auf|personen auf]"
        "|{a:number} [{c:money}] (auf|durch|zwischen|unter) {b:number} (leute|leuten|personen|freunde) [geteilt|aufgeteilt|teilen|aufteilen]"
        "|[der] quotient (von|aus) {a:number} und {b:number}|{a:number} durch {b:number} teilen"
        "|wie oft (passt|geht) {b:number} in {a:number}",
    },
    parts={
        2: "Hälfte Hälften", 3: "Drittel", 4: "Viertel", 5: "Fünftel", 6: "Sechstel", 7: "Siebtel",
        8: "Achtel", 9: "Neuntel", 10: "Zehntel", 100: "Hundertstel",
    },
    of="von|aus",
    noise=frozenset("der die das ein eine den einen".split()),
    cities={
        "Tokio": "Asia/Tokyo", "Wien": "Europe/Vienna", "Moskau": "Europe/Moscow",
        "Rom": "Europe/Rome", "Mailand": "Europe/Rome", "Venedig": "Europe/Rome",
        "Neapel": "Europe/Rome", "Florenz": "Europe/Rome", "Athen": "Europe/Athens",
        "Lissabon": "Europe/Lisbon", "Brüssel": "Europe/Brussels", "Warschau": "Europe/Warsaw",
        "Prag": "Europe/Prague", "Kopenhagen": "Europe/Copenhagen", "Zürich": "Europe/Zurich",
        "Genf": "Europe/Zurich", "München": "Europe/Berlin", "Köln": "Europe/Berlin",
        "Hamburg": "Europe/Berlin", "Bukarest": "Europe/Bucharest", "Kairo": "Africa/Cairo",
        "Peking": "Asia/Shanghai", "Schanghai": "Asia/Shanghai", "Hongkong": "Asia/Hong_Kong",
        "Singapur": "Asia/Singapore", "Neu-Delhi": "Asia/Kolkata", "Mexiko-Stadt": "America/Mexico_City",
        "Kapstadt": "Africa/Johannesburg", "Teheran": "Asia/Tehran", "Bagdad": "Asia/Baghdad",
        "Kiew": "Europe/Kyiv", "Sankt Petersburg": "Europe/Moscow", "Straßburg": "Europe/Paris",
        "Deutschland": "Europe/Berlin", "Österreich": "Europe/Vienna", "der Schweiz": "Europe/Zurich",
        "Schweiz": "Europe/Zurich", "England": "Europe/London", "Großbritannien": "Europe/London",
        "Frankreich": "Europe/Paris", "Spanien": "Europe/Madrid", "Italien": "Europe/Rome",
        "Portugal": "Europe/Lisbon", "Griechenland": "Europe/Athens", "Polen": "Europe/Warsaw",
        "Schweden": "Europe/Stockholm", "Norwegen": "Europe/Oslo", "Finnland": "Europe/Helsinki",
        "Dänemark": "Europe/Copenhagen", "Irland": "Europe/Dublin", "Island": "Atlantic/Reykjavik",
        "Ungarn": "Europe/Budapest", "Tschechien": "Europe/Prague", "der Türkei": "Europe/Istanbul",
        "Türkei": "Europe/Istanbul", "Ägypten": "Africa/Cairo", "Südafrika": "Africa/Johannesburg",
        "Indien": "Asia/Kolkata", "Japan": "Asia/Tokyo", "China": "Asia/Shanghai",
        "Südkorea": "Asia/Seoul", "Korea": "Asia/Seoul", "Neuseeland": "Pacific/Auckland",
        "Argentinien": "America/Argentina/Buenos_Aires", "Kalifornien": "America/Los_Angeles",
        "den Niederlanden": "Europe/Amsterdam", "Holland": "Europe/Amsterdam",
        "Belgien": "Europe/Brussels", "Rumänien": "Europe/Bucharest", "Israel": "Asia/Jerusalem",
    },
    things={
        "timer": "timer|timers|countdown|kurzzeitwecker|eieruhr",
        "alarm": "wecker|alarm|alarme",
        "reminder": "erinnerung|erinnerungen",
    },
    no_label=frozenset(
        "ein eine einen der die das den dem mein meine meinen neuen anderen noch mal und oder für von auf in an mit "
        "zu über um am kein keine keinen keiner nicht alle beide timer wecker alarm stell stelle setz setze starte mach bitte tag woche "
        "minute minuten stunde stunden sekunde sekunden es ist war sind weiteren zweiten letzten nächsten jetzt".split()
    ),
    years={"nächstes jahr": 1, "nächsten jahr": 1, "dieses jahr": 0, "letztes jahr": -1},
    money=frozenset("euro euros cent dollar franken pfund yen".split()),
    swaps={
        "mein": "dein", "meine": "deine", "meinen": "deinen", "meiner": "deiner", "meinem": "deinem",
        "ich": "du", "mich": "dich", "mir": "dir",
    },
    says={
        "and": "und",
        "a": "ein",
        "half": "die Hälfte",
        "minus": "minus",
        "about": "ungefähr",
        "it is": "Es ist",
        "time": "{it_is}.",
        "time in": "In {place} ist es {time}.",
        "time in on": "In {place} ist es {weekday}, {time}.",
        "time later": "Dann ist es {time}.",
        "time later on": "Dann ist es {weekday}, {time}.",
        "time ago": "Da war es {time}.",
        "time ago on": "Da war es {weekday}, {time}.",
        "today": "Heute ist {date}.",
        "tomorrow": "Morgen ist {date}.",
        "yesterday": "Gestern war {date}.",
        "day": "Das ist {date}.",
        "past day": "Das war {date}.",
        "day after": "Nach {weekday} kommt {other}.",
        "day before": "Vor {weekday} kommt {other}.",
        "month": "Wir haben {month}.",
        "year": "Wir haben das Jahr {year}.",
        "week": "Wir haben die Kalenderwoche {week}.",
        "until one day": "Das ist noch {count}: {date}.",
        "until day": "Das sind noch {count}: {date}.",
        "since one day": "Das ist {count} her.",
        "since day": "Das ist {count} her.",
        "today too": "Das ist heute, {date}.",
        "until time": "Es dauert noch {span}.",
        "timer set": "Der Timer läuft: {span}.",
        "named timer set": "Der Timer {name} läuft: {span}.",
        "timer for how long": "Für wie lange?",
        "alarm set": "Der Wecker ist auf {time} gestellt.",
        "alarm set on": "Der Wecker ist für {weekday} auf {time} gestellt.",
        "alarm set tomorrow": "Der Wecker ist für morgen auf {time} gestellt.",
        "reminder set": "Ich erinnere dich. Es dauert noch {span}.",
        "reminder set at": "Ich erinnere dich um {time}.",
        "reminder set at on": "Ich erinnere dich am {weekday} um {time}.",
        "reminder set at tomorrow": "Ich erinnere dich morgen um {time}.",
        "too long": "Ein Timer kann höchstens einen Tag laufen.",
        "too many": "Es laufen schon {count}, mehr gehen nicht.",
        "timer over": "Der Timer ist abgelaufen: {span}.",
        "named timer over": "Der Timer {name} ist abgelaufen.",
        "alarm over": "{it_is}. Der Wecker klingelt.",
        "reminder over": "Ich sollte dich erinnern: {name}.",
        "left": "Noch {span}.",
        "left of": "{which}: noch {span}.",
        "timer": "der Timer auf {whole}",
        "named timer": "der Timer {name}",
        "alarm": "der Wecker um {time}",
        "reminder": "die Erinnerung, {name}",
        "all left": "Es sind {count}: {list}.",
        "one of all": "{which}, noch {span}",
        "no timer": "Es läuft kein Timer.",
        "no such timer": "So einen Timer gibt es nicht.",
        "canceled": "Okay, {which} ist gelöscht.",
        "all canceled": "Okay, alle sind gelöscht.",
        "which": "Welcher? Da sind {list}.",
        "sum": "{sum} ist {value}.",
        "by zero": "Durch null kann man nicht teilen.",
        "huge": "{value} mal 10 hoch {power}",
        "converted": "{amount} {is} {value}.",
        "is": "sind",
        "are": "sind",
    },
)  # fmt: skip
