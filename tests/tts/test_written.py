"""What is said for written texts of every kind, whole and cut as they come."""

from __future__ import annotations

import pytest

from tests.tts.test_clauses import burst
from tests.tts.test_normalize import check
from tests.tts.written import SAID
from voiceloop.languages import language
from voiceloop.tts.clauses import ClauseCutter
from voiceloop.tts.normalize import normalize

pytestmark = pytest.mark.pure

CASES = [(code, *case) for code, cases in SAID.items() for case in cases.items()]


@pytest.mark.parametrize(("code", "written", "said"), CASES)
def test_written_things_are_said_for_what_they_mean(code: str, written: str, said: str) -> None:
    found = normalize(written, language(code))
    assert found.text == said
    check(found, written)


@pytest.mark.parametrize(("code", "written", "said"), CASES)
def test_what_is_cut_while_it_is_written_says_the_same(code: str, written: str, said: str) -> None:
    def clauses(text: str) -> str:
        cutter = ClauseCutter(7, language(code))
        found = cutter.feed(burst(list(text))) + cutter.flush()
        return " ".join(clause.spoken for clause in found if clause.spoken)

    assert clauses(written) == said
    # In the middle of a reply other places are cut.
    opening = {"en": "And so it is with", "de": "Und so ist es mit", "es": "Y eso pasa con"}[code]
    assert clauses(f"{opening} {written}").removeprefix(f"{opening} ") == said


@pytest.mark.parametrize("said", [(code, said) for code, _, said in CASES])
def test_what_is_said_is_said_the_same_again(said: tuple[str, str]) -> None:
    code, text = said
    assert normalize(text, language(code)).text == text


@pytest.mark.parametrize(
    ("code", "written", "said"),
    [
        (
            "en",
            "The code that you have to enter there is 482913 and",
            "four eight two nine one three",
        ),
        ("en", "Our number, if you need us, for free, is 8005550199.", "eight zero zero five"),
        ("en", "I paid for all those big red apples $2.50 per kg and", "fifty cents per kilogram"),
        ("de", "Die Geheimzahl, die du gleich brauchst, ist 4021 und", "vier null zwei eins"),
        ("es", "El código que tienes que poner ahora ahí es 482913 y", "cuatro ocho dos nueve"),
    ],
)
def test_words_of_an_earlier_clause_tell_what_a_number_is(
    code: str, written: str, said: str
) -> None:
    cutter = ClauseCutter(7, language(code))
    clauses = cutter.feed(burst(list(written))) + cutter.flush()
    assert len(clauses) > 1
    assert said in " ".join(clause.spoken for clause in clauses)
