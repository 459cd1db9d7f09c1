"""What is said for what is written, in other languages than English."""

# ruff: noqa: E501, RUF001 - one case a line; the look-alikes among the signs are meant

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.tts.test_clauses import burst
from tests.tts.test_normalize import check
from tests.tts.written import SAID as WRITTEN
from voiceloop.languages import Language, installed, language
from voiceloop.languages.spoken import SpeakingRules
from voiceloop.tts.clauses import ClauseCutter
from voiceloop.tts.markup import plain
from voiceloop.tts.normalize import normalize

pytestmark = pytest.mark.pure

SAID = {
    "de": {
        # numbers
        "3,14 und 1.234,5": "drei Komma eins vier und eintausendzweihundertvierunddreißig Komma fünf",
        "007 und 1.2.3": "null null sieben und eins Punkt zwei Punkt drei",
        "B12, H2O, COVID-19": "B zwölf, H zwei O, COVID neunzehn",
        "1984, 2024": "neunzehnhundertvierundachtzig, zweitausendvierundzwanzig",
        "die 1980er und die 80er": "die neunzehnhundertachtziger und die achtziger",
        "1 Tag, 1 Minute, Kapitel 1 Der": "ein Tag, eine Minute, Kapitel eins Der",
        "1/2 Tasse, 2 1/2 Tassen, 2½ l": "eine halbe Tasse, zweieinhalb Tassen, zweieinhalb Liter",
        "3/4 TL, 1/2 h": "drei viertel Teelöffel, eine halbe Stunde",
        "5-10 Minuten, Seiten 3–5": "fünf bis zehn Minuten, Seiten drei bis fünf",
        "Nr. 5 lebt. Nr. 6": "Nummer fünf lebt. Nummer sechs",
        # ordinals and dates: their ending follows the word before
        "Der 3. Mai. Das war der 3.": "Der dritte Mai. Das war der dritte.",
        "Am 3. Mai 2024": "Am dritten Mai zweitausendvierundzwanzig",
        "vom 3. bis 5. Mai, am 3. und 4. Mai": "vom dritten bis fünften Mai, am dritten und vierten Mai",
        "3. Mai, die 3.-5. Woche": "dritter Mai, die dritte bis fünfte Woche",
        "im 19. Jahrhundert, in der 3. Woche": "im neunzehnten Jahrhundert, in der dritten Woche",
        "die 2. Frage, ein 4. Versuch": "die zweite Frage, ein vierter Versuch",
        "bis 24.12. geöffnet": "bis vierundzwanzigsten Dezember geöffnet",
        "Ich bin 30. Danach gehe ich.": "Ich bin dreißig. Danach gehe ich.",
        "Ludwig XIV. war da. Kapitel IV": "Ludwig der vierzehnte war da. Kapitel vier",
        # money, shares, units, times
        "2,5 Mio. €, 1 Million €": "zwei Komma fünf Millionen Euro, eine Million Euro",
        "-5 °C, 90°": "minus fünf Grad Celsius, neunzig Grad",
        "um 1 Uhr, 8:00": "um ein Uhr, acht Uhr",
        # signs, abbreviations, addresses
        "12 - 9 = 3, 6 * 7, 8 / 2": "zwölf minus neun gleich drei, sechs mal sieben, acht geteilt durch zwei",
        "x², 2^10, a < b, § 5": "x Quadrat, zwei hoch zehn, a kleiner als b, Paragraf fünf",
        "Herr Dr. Meier bzw. Fr. Müller, usw.": "Herr Doktor Meier beziehungsweise Frau Müller, und so weiter.",
        "Obst, z. B. Äpfel, d.h. diese": "Obst, zum Beispiel Äpfel, das heißt diese",
        "500 v. Chr. in St. Gallen": "fünfhundert vor Christus in Sankt Gallen",
        "ca. 5 km in der Mozartstr. 5": "circa fünf Kilometer in der Mozartstraße fünf",
        "www.beispiel.de/a-b": "beispiel Punkt de",
        "Hallo „Welt“ — so ist es… ja": "Hallo Welt, so ist es, ja",
    },
    "es": {
        # numbers
        "3,14 y 2,05 y 1.2.3": "tres coma catorce y dos coma cero cinco y uno punto dos punto tres",
        "21.000, 31.001, 21.000.000": "veintiún mil, treinta y un mil uno, veintiún millones",
        "007, en 1984": "cero cero siete, en mil novecientos ochenta y cuatro",
        "1 hora, 1 minuto, 21 personas": "una hora, un minuto, veintiuna personas",
        "200 libras, 1 más 1, 1 de mayo": "doscientas libras, uno más uno, uno de mayo",
        "el 1er piso, la 3ª vez, el 1.º": "el primer piso, la tercera vez, el primero",
        "1/2 taza, 2 1/2 l, 1/3": "media taza, dos litros y medio, un tercio",
        "3/4 kg, 1/2 h": "tres cuartos de kilogramo, media hora",
        "5-10 minutos, páginas 3–5": "cinco a diez minutos, páginas tres a cinco",
        "n.º 5 y núm. 7": "número cinco y número siete",
        "Felipe VI, Alfonso XIII, siglo XXI": "Felipe sexto, Alfonso trece, siglo veintiuno",
        "Isabel II, siglos XV y XVI": "Isabel segunda, siglos quince y dieciséis",
        # money, shares, units, times
        "200 £, 21 €, 1.000.000 €": "doscientas libras, veintiún euros, un millón de euros",
        "2,5 millones de €, 1 millón de €": "dos coma cinco millones de euros, un millón de euros",
        "-5 °C, 1 °F, 90°": "menos cinco grados Celsius, un grado Fahrenheit, noventa grados",
        "a las 4:30, la 1:15, 4:00": "a las cuatro y media, la una y cuarto, cuatro en punto",
        "a las 16:30, 16:05 h, 16:00": "a las dieciséis treinta, dieciséis cero cinco, dieciséis horas",
        "a las 4 p. m. y a las 8:10 a. m. no": "a las cuatro de la tarde y a las ocho y diez de la mañana no",
        # signs, abbreviations, addresses
        "12 - 9 = 3, 6 * 7, 8 / 2": "doce menos nueve igual a tres, seis por siete, ocho entre dos",
        "x², 2^10, a < b": "x al cuadrado, dos elevado a diez, a menor que b",
        "El Sr. García y la Dra. Ruiz, etc.": "El señor García y la doctora Ruiz, etcétera.",
        "Frutas, p. ej. uvas, en EE. UU. hoy": "Frutas, por ejemplo uvas, en Estados Unidos hoy",
        "500 a. C. y Ud. también": "quinientos antes de Cristo y usted también",
        "www.ejemplo.es/a-b": "ejemplo punto es",
        "¿Qué hora es? ¡Las tres!": "Qué hora es? Las tres!",
    },
    "fr": {
        "Il est 16:30, 3,5 km et 50 %.": "Il est 16:30, 3,5 km et 50 %.",
        "www.a.fr/b et **gras**, l'eau-de-vie": "a.fr et gras, l'eau-de-vie",
        "x² (de 2) — voilà\n- 5 € !": "x², de 2, voilà. 5 €!",
    },
}  # fmt: skip
CASES = [(code, *case) for code, cases in SAID.items() for case in cases.items()]
FILLED = pytest.mark.parametrize("known", [*map(language, installed())], ids=[*installed()])


@pytest.mark.parametrize(("code", "written", "said"), CASES)
def test_written_things_are_said_in_words(code: str, written: str, said: str) -> None:
    assert normalize(written, language(code)).text == said


pieces = st.one_of(
    st.sampled_from([text for _, *texts in CASES for text in texts]),
    st.sampled_from(
        [text for cases in WRITTEN.values() for case in cases.items() for text in case]
    ),
    st.text(max_size=8),
)
jumble = st.text(
    alphabet=st.sampled_from("0123456789.,:/-–+=$€¢%°²³⁶⁻º'\"x amhkμ1I#*_|()[]<>!^\u202f\n"),
    max_size=40,
)


@given(st.lists(pieces).map("".join) | jumble)
def test_in_an_unknown_language_no_digit_is_lost(text: str) -> None:
    said = normalize(text, language("xx"))
    check(said, text)
    left = [char for char in said.text if char.isdecimal()]
    assert left == [char for char in plain(text).text if char.isdecimal()]


@given(st.integers(0, 10**15 - 1))
def test_in_an_unknown_language_a_number_is_left_to_the_synthesizer(number: int) -> None:
    assert normalize(f"ab {number} cd", language("xx")).text == f"ab {number} cd"


def spoken_of(known: Language) -> SpeakingRules:
    assert known.spoken is not None
    return known.spoken


@FILLED
@given(st.integers(0, 10**15 - 1), st.integers(0, 10**15 - 1))
def test_every_number_has_words_of_its_own(known: Language, one: int, other: int) -> None:
    numbers = spoken_of(known).numbers
    assert (numbers.cardinal(str(one)) == numbers.cardinal(str(other))) == (one == other)


@FILLED
@given(st.integers(10_000, 10**15 - 1))
def test_the_words_of_a_number_count_with_the_last_of_them(known: Language, number: int) -> None:
    numbers = spoken_of(known).numbers
    groups = f"{number:,}".split(",")
    assume(len(groups) != 4 or max(map(int, groups)) > 255)  # 10.0.0.1 is an address
    for digits in (str(number), numbers.group.join(groups)):
        said = normalize(f"ab {digits}, cd", known)
        assert said.text == f"ab {numbers.cardinal(str(number))}, cd"
        first, *inner, last, after = [word.written for word in said.words]
        # Each word of it but the last leaves it unsaid.
        assert (first, last, after) == (2, len(digits) + 4, len(digits) + 7)
        assert set(inner) <= {3}


@FILLED
@given(st.integers(2, 99_999), st.integers(0, 99), st.data())
def test_what_is_counted_is_said_with_its_number(
    known: Language, number: int, part: int, data: st.DataObject
) -> None:
    spoken = spoken_of(known)
    unit = data.draw(st.sampled_from(sorted(spoken.units)))
    said = normalize(f"ab {number} {unit} cd", known)
    expected = spoken.numbers.count(str(number), spoken.units[unit])
    assert said.text == f"ab {expected} cd"
    sign = data.draw(st.sampled_from(sorted(spoken.currencies)))
    money, coin = spoken.currencies[sign]
    price = f"{number}{spoken.numbers.decimal}{part:02}"
    expected = spoken.numbers.count(str(number), money)
    if part:
        expected += f" {spoken.coins} {spoken.numbers.count(str(part), coin)}"
    assert normalize(f"ab {price} {sign}, cd", known).text == f"ab {expected}, cd"
    assert normalize(f"ab {sign}{price}, cd", known).text == f"ab {expected}, cd"


def cut(text: str, code: str) -> list[str]:
    cutter = ClauseCutter(7, language(code))
    return [clause.text for clause in cutter.feed(burst(list(text))) + cutter.flush()]


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("de", "Das war im 19. Jahrhundert noch anders."),
        ("de", "Wir treffen uns am 3. und 4. Mai im Garten."),
        ("de", "Das sagte Herr Dr. Meier z. B. gestern."),
        ("de", "Es kostet etwa 2,5 Mio. Euro im Jahr."),
        ("es", "Hablé ayer con la Sra. Ruiz en la oficina."),
        ("es", "Hay fruta fresca p. ej. Manzanas de la huerta."),
    ],
)
def test_a_sentence_is_not_cut_at_a_period_within_it(code: str, sentence: str) -> None:
    # It is not the first, which ends after some words in any case.
    assert cut(f"So war das. {sentence} Ja.", code) == ["So war das.", f" {sentence}", " Ja."]


@pytest.mark.parametrize("code", ["de", "es", "fr", "xx"])
def test_sentences_of_any_language_are_cut(code: str) -> None:
    text = "Bonjour Hallo Hola. Alors so es! Tres bien gut?"
    assert cut(text, code) == ["Bonjour Hallo Hola.", " Alors so es!", " Tres bien gut?"]
