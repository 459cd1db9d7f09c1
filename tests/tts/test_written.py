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
